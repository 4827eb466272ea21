//! Lists the tensors in batches of health records.

use super::super::loader_source::{LoaderSource, SourceColumn};
use super::super::options::{BatchForm, LoaderOptions};
use super::super::state::LoaderTarget;
use super::super::tensor_output::{
    TensorContent, TensorOutput, TensorOutputs, push_lengths, push_position_ids,
};
use super::options::{MedsOptions, SequenceUnit, StaticsMode};
use super::subjects::TARGETS;
use crate::dense::{DType, PaddingSide};
use crate::error::Result;

const ZERO: [u8; 8] = [0; 8];
const ONE: [u8; 8] = [1; 8];

pub(super) fn list_outputs(
    source: &LoaderSource,
    targets: &[LoaderTarget],
    options: &MedsOptions,
    loader: &LoaderOptions,
) -> Result<Vec<TensorOutput>> {
    let mut out = TensorOutputs::new(loader);
    let packed = options.get_form() == BatchForm::Packed;
    let padding = find_mask_padding(options);

    if let Some((i, c)) = find_column(source, "code") {
        out.push("code", c.axis, DType::I64, ZERO, TensorContent::Column(i))?;
    }
    if let Some((i, c)) = find_column(source, "numeric_value") {
        out.push("numeric_value", c.axis, DType::F32, ZERO, TensorContent::Column(i))?;
        out.push("numeric_value_mask", c.axis, DType::Bool, padding, TensorContent::Number(i))?;
    }
    match (options.unit, find_column(source, "time_delta_days")) {
        (SequenceUnit::Event, Some((i, _))) => {
            out.push("time_delta_days", 1, DType::F32, ZERO, TensorContent::Column(i))?;
        }
        (SequenceUnit::Measurement, _) if options.time_delta => {
            out.push("time_delta_days", 1, DType::F32, ZERO, TensorContent::Spread)?;
        }
        _ => {}
    }
    if options.unit == SequenceUnit::Event && !packed {
        out.push("event_mask", 1, DType::Bool, ZERO, TensorContent::Mask)?;
    }
    push_statics(&mut out, source, options)?;
    push_targets(&mut out, source, targets, options)?;
    if !options.compat {
        out.push("event_start", 0, DType::I64, ZERO, TensorContent::FirstEvent)?;
        out.push("event_end", 0, DType::I64, ZERO, TensorContent::EndEvent)?;
    }
    if options.window_counts {
        out.push("n_subject_windows", 0, DType::I64, ZERO, TensorContent::Windows)?;
    }
    if packed {
        let deepest = if options.unit == SequenceUnit::Event { 2 } else { 1 };
        push_lengths(&mut out, deepest)?;
        for axis in 1..=deepest {
            push_position_ids(&mut out, loader, axis)?;
        }
    }
    Ok(out.into_outputs())
}

/// Returns the value of padding in the mask of a column.
fn find_mask_padding(options: &MedsOptions) -> [u8; 8] {
    if options.compat { ONE } else { ZERO }
}

fn push_statics(
    out: &mut TensorOutputs<'_>,
    source: &LoaderSource,
    options: &MedsOptions,
) -> Result<()> {
    let padding = find_mask_padding(options);
    match (options.statics, &source.facts) {
        (StaticsMode::Prepend, Some(_)) => {
            let leading = options.compat && options.get_side() == PaddingSide::Left;
            let what = if leading { TensorContent::Leading } else { TensorContent::Fact };
            out.push("static_mask", 1, DType::Bool, ZERO, what)?;
        }
        (StaticsMode::Include, Some(facts)) => {
            for (i, c) in facts.source.columns.iter().enumerate() {
                let name = c.name.as_ref();
                out.push_fact(name, 1, c.dtype, ZERO, TensorContent::Column(i))?;
                if c.finite {
                    let mask = format!("{name}_mask");
                    out.push_fact(mask, 1, DType::Bool, padding, TensorContent::Number(i))?;
                }
            }
            if options.get_form() == BatchForm::Packed {
                let what = TensorContent::CuSeqlens;
                out.push_fact("static/cu_seqlens", 1, DType::I32, ZERO, what)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Adds the tensors of `targets`, then those of the columns in [`TARGETS`] and of the subject.
fn push_targets(
    out: &mut TensorOutputs<'_>,
    source: &LoaderSource,
    targets: &[LoaderTarget],
    options: &MedsOptions,
) -> Result<()> {
    for (i, target) in targets.iter().enumerate() {
        if options.compat && target.name.as_ref() != "boolean_value" {
            continue;
        }
        out.push(target.name.as_ref(), 0, target.dtype, ZERO, TensorContent::Target(i))?;
        if target.nulls {
            let mask = format!("{}_mask", target.name);
            out.push(mask, 0, DType::Bool, ZERO, TensorContent::TargetValid(i))?;
        }
    }
    for name in TARGETS.into_iter().chain(["subject_id"]) {
        let Some((i, c)) = find_column(source, name) else { continue };
        if options.compat && name != "boolean_value" {
            continue;
        }
        out.push(name, 0, c.dtype, ZERO, TensorContent::Column(i))?;
        if c.nulls {
            out.push(format!("{name}_mask"), 0, DType::Bool, ZERO, TensorContent::Valid(i))?;
        }
    }
    Ok(())
}

fn find_column<'a>(source: &'a LoaderSource, name: &str) -> Option<(usize, &'a SourceColumn)> {
    source.columns.iter().enumerate().find(|(_, column)| column.name.as_ref() == name)
}
