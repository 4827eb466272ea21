//! Labels as what windows are taken of: rows that end at a prediction time.

use std::collections::HashMap;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, TimestampMicrosecondArray,
};
use arrow::compute::filter;

use super::super::Target;
use super::super::plan::Cuts;
use super::super::source::{Source, Values};
use super::options::MedsOptions;
use super::subjects::{TARGETS, Times, categories, inexact, not_finite, target};
use crate::array::exact::{first_null, integers, microseconds};
use crate::dense::DType;
use crate::error::{Error, Result};
use crate::table::Column;

/// Labels that belong to the subjects of a loader.
pub(super) struct Cut {
    pub(super) cuts: Cuts,
    pub(super) targets: Vec<Target>,
    /// Labels of other subjects.
    pub(super) unknown: usize,
    pub(super) categories: Vec<String>,
}

impl Cut {
    /// `times` are those of the shards of `source`.
    pub(super) fn new(
        labels: &RecordBatch,
        times: &[&Times],
        source: &Source,
        options: &MedsOptions,
    ) -> Result<Self> {
        let (subjects, moments) = keys(labels)?;
        let rows = rows_of(times)?;
        let mut cuts = Cuts::default();
        let mut known = Vec::with_capacity(labels.num_rows());
        for (subject, moment) in subjects.values().iter().zip(moments.values()) {
            let row = rows.get(subject);
            known.push(row.is_some());
            let Some(row) = row else { continue };
            let (shard, row_of_shard) = source.locate(*row as usize);
            let seen = times[shard].history.up_to(row_of_shard, *moment);
            let seen = match &source.shards[shard].timeline {
                Some(line) => line.up_to(row_of_shard, seen),
                None => seen,
            };
            cuts.rows.push(*row);
            cuts.ends.push(u32::try_from(seen).map_err(|_| {
                Error::invalid(format!("subject {subject} has 2^32 measurements or more"))
            })?);
        }
        let known = BooleanArray::from(known);
        let unknown = known.len() - known.true_count();
        let column = |name: &str| labels.column_by_name(name);
        let categories = categories(column("categorical_value").filter(|_| !options.compat))?;
        let mut targets = Vec::new();
        for name in TARGETS {
            let wanted = !options.compat || name == "boolean_value";
            let Some(values) = column(name).filter(|_| wanted) else { continue };
            let values = filter(&target(name, values, &categories)?, &known)?;
            if options.compat
                && let Some(row) = first_null(&values)
            {
                return Err(Error::invalid(format!(
                    "label {row} of those that are about known subjects has no {name}"
                )));
            }
            if let Some(row) = not_finite(&values) {
                let subject = cuts.rows.get(row).map(|row| source.locate(*row as usize));
                let subject = subject.map_or(0, |(shard, row)| times[shard].subjects.value(row));
                return Err(Error::invalid(format!(
                    "label {row} of those that are about known subjects, one of subject {subject}: \
                     {name} is no finite number in 32 bits; nothing can be trained on it"
                )));
            }
            // MEDS files have columns of every kind of value, most of them empty.
            if values.is_empty() || values.null_count() < values.len() {
                targets.push(Target::new(name, values)?);
            }
        }
        if options.compat && targets.is_empty() {
            refuse_other_kinds(labels, &known)?;
        }
        Ok(Self { cuts, targets, unknown, categories })
    }
}

/// Labels without the one kind of value that meds-torch-data knows may have none at all.
fn refuse_other_kinds(labels: &RecordBatch, known: &BooleanArray) -> Result<()> {
    for name in TARGETS.into_iter().filter(|name| *name != "prediction_time") {
        let Some(values) = labels.column_by_name(name) else { continue };
        let values = filter(values, known)?;
        if values.logical_null_count() < values.len() {
            return Err(Error::invalid(format!(
                "the labels have {name} and no boolean_value, and meds-torch-data takes the latter \
                 alone; compare with it without labels, or leave compat out"
            )));
        }
    }
    Ok(())
}

impl Target {
    fn new(name: &str, values: ArrayRef) -> Result<Self> {
        let dtype = DType::of_leaves(values.data_type(), name)?;
        let nulls = values.null_count() > 0;
        let values = Values::new(&Column::new(name, 0, values), dtype)?;
        Ok(Self { name: name.into(), dtype, nulls, values })
    }
}

/// Subjects and prediction times.
fn keys(labels: &RecordBatch) -> Result<(Int64Array, TimestampMicrosecondArray)> {
    let column = |name: &str| {
        labels.column_by_name(name).ok_or_else(|| {
            let schema = labels.schema();
            let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            Error::NoSuchColumn { name: name.into(), available: names.join(", ") }
        })
    };
    let (subjects, moments) = (column("subject_id")?, column("prediction_time")?);
    let subjects = integers(subjects).map_err(|e| inexact("subject_id", subjects, &e))?;
    let moments = microseconds(moments).map_err(|e| inexact("prediction_time", moments, &e))?;
    for (name, values) in
        [("subject_id", &subjects as &dyn Array), ("prediction_time", &moments as &dyn Array)]
    {
        if let Some(row) = first_null(values) {
            return Err(Error::invalid(format!("label {row} has no {name}")));
        }
    }
    Ok((subjects, moments))
}

/// The row of each subject, over all shards.
fn rows_of(times: &[&Times]) -> Result<HashMap<i64, u32>> {
    let mut rows = HashMap::with_capacity(times.iter().map(|t| t.subjects.len()).sum());
    let all = times.iter().flat_map(|t| t.subjects.values().iter());
    for (row, subject) in (0u32..).zip(all) {
        if rows.insert(*subject, row).is_some() {
            return Err(Error::invalid(format!(
                "subject {subject} is in two rows, and labels say subjects only; join the rows first"
            )));
        }
    }
    Ok(rows)
}
