//! Reads labels. The windows of a label contain no events after its prediction time.

use std::collections::HashMap;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, TimestampMicrosecondArray,
};
use arrow::compute::filter;

use super::super::items::EarlyEnds;
use super::super::loader_source::{ColumnValues, LoaderSource, ShardRow};
use super::super::state::LoaderTarget;
use super::options::MedsOptions;
use super::subjects::{
    SubjectTimes, TARGETS, collect_categories, describe_inexact, find_non_finite, read_target,
};
use crate::array::exact_casts::{cast_integers, cast_microseconds, find_first_null};
use crate::dense::DType;
use crate::error::{Error, Result};
use crate::table::Column;

pub(super) struct LabelCuts {
    pub(super) cuts: EarlyEnds,
    pub(super) targets: Vec<LoaderTarget>,
    pub(super) unknown: usize,
    pub(super) categories: Vec<String>,
}

impl LabelCuts {
    /// Finds the row of each label, and the number of elements that this row has up to the
    /// prediction time. `times` has one element per shard. Returns an error if a label has no
    /// subject or time, a subject has two rows, or a value to predict does not fit its tensor.
    pub(super) fn new(
        labels: &RecordBatch,
        times: &[&SubjectTimes],
        source: &LoaderSource,
        options: &MedsOptions,
    ) -> Result<Self> {
        let (subjects, moments) = read_keys(labels)?;
        let rows = index_subjects(times)?;
        let mut cuts = EarlyEnds::default();
        let mut known = Vec::with_capacity(labels.num_rows());
        for (subject, moment) in subjects.values().iter().zip(moments.values()) {
            let row = rows.get(subject);
            known.push(row.is_some());
            let Some(row) = row else { continue };
            let ShardRow { shard, row: row_of_shard } = source.locate_row(*row as usize);
            let seen = times[shard].history.count_up_to(row_of_shard, *moment);
            let seen = match &source.shards[shard].timeline {
                Some(line) => line.count_up_to(row_of_shard, seen),
                None => seen,
            };
            cuts.rows.push(*row);
            cuts.ends.push(u32::try_from(seen).map_err(|_| {
                Error::invalid(format!("subject {subject} has at least {seen} measurements, more than the maximum of 2^32 - 1; split the subject into several"))
            })?);
        }
        let known = BooleanArray::from(known);
        let unknown = known.len() - known.true_count();
        let column = |name: &str| labels.column_by_name(name);
        let categories =
            collect_categories(column("categorical_value").filter(|_| !options.compat))?;
        let mut targets = Vec::new();
        for name in TARGETS {
            let wanted = !options.compat || name == "boolean_value";
            let Some(values) = column(name).filter(|_| wanted) else { continue };
            let values = filter(&read_target(name, values, &categories)?, &known)?;
            if options.compat
                && let Some(row) = find_first_null(&values)
            {
                return Err(Error::invalid(format!(
                    "label {row} (counting only labels of subjects in the data) has no {name}; add it, or remove the label"
                )));
            }
            if let Some(row) = find_non_finite(&values) {
                let subject = cuts.rows.get(row).map(|row| source.locate_row(*row as usize));
                let subject = subject.map_or(0, |at| times[at.shard].subjects.value(at.row));
                return Err(Error::invalid(format!(
                    "label {row} (counting only labels of subjects in the data) of subject {subject}: {name} is NaN, infinite or too large for float32; correct or remove the label"
                )));
            }
            // MEDS label files have one column per kind of value. A column that has only nulls gets
            // no tensor.
            if values.is_empty() || values.null_count() < values.len() {
                targets.push(LoaderTarget::new(name, values)?);
            }
        }
        if options.compat && targets.is_empty() {
            refuse_other_kinds(labels, &known)?;
        }
        Ok(Self { cuts, targets, unknown, categories })
    }
}

/// Returns an error if a label has a value other than a boolean, because meds-torch-data reads only
/// booleans. Ignores the labels of unknown subjects, for which `known` is false.
fn refuse_other_kinds(labels: &RecordBatch, known: &BooleanArray) -> Result<()> {
    for name in TARGETS.into_iter().filter(|name| *name != "prediction_time") {
        let Some(values) = labels.column_by_name(name) else { continue };
        let values = filter(values, known)?;
        if values.logical_null_count() < values.len() {
            return Err(Error::invalid(format!(
                "the labels have {name} but no boolean_value, the only kind of value that meds-torch-data reads; omit the labels, or turn off the option compat"
            )));
        }
    }
    Ok(())
}

impl LoaderTarget {
    fn new(name: &str, values: ArrayRef) -> Result<Self> {
        let dtype = DType::of_leaves(values.data_type(), name)?;
        let nulls = values.null_count() > 0;
        let values = ColumnValues::new(&Column::new(name, 0, values), dtype)?;
        Ok(Self { name: name.into(), dtype, nulls, values })
    }
}

fn read_keys(labels: &RecordBatch) -> Result<(Int64Array, TimestampMicrosecondArray)> {
    let column = |name: &str| {
        labels.column_by_name(name).ok_or_else(|| {
            let schema = labels.schema();
            let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            Error::NoSuchColumn { name: name.into(), available: names.join(", ") }
        })
    };
    let (subjects, moments) = (column("subject_id")?, column("prediction_time")?);
    let subjects =
        cast_integers(subjects).map_err(|e| describe_inexact("subject_id", subjects, &e))?;
    let moments =
        cast_microseconds(moments).map_err(|e| describe_inexact("prediction_time", moments, &e))?;
    for (name, values) in
        [("subject_id", &subjects as &dyn Array), ("prediction_time", &moments as &dyn Array)]
    {
        if let Some(row) = find_first_null(values) {
            return Err(Error::invalid(format!(
                "label {row} has no {name}; add it, or remove the label"
            )));
        }
    }
    Ok((subjects, moments))
}

/// Returns a map from each subject to its row, counted over all shards. Returns an error if a
/// subject has two rows.
fn index_subjects(times: &[&SubjectTimes]) -> Result<HashMap<i64, u32>> {
    let mut rows = HashMap::with_capacity(times.iter().map(|t| t.subjects.len()).sum());
    let all = times.iter().flat_map(|t| t.subjects.values().iter());
    for (row, subject) in (0u32..).zip(all) {
        if rows.insert(*subject, row).is_some() {
            return Err(Error::invalid(format!(
                "subject {subject} has two rows in the shards, so the row that a label of the subject belongs to is ambiguous; merge the rows first"
            )));
        }
    }
    Ok(rows)
}
