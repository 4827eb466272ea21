//! Labels as what windows are taken of: rows that end at a prediction time.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::compute::{cast, filter};
use arrow::datatypes::{DataType, Int64Type, TimestampMicrosecondType};

use super::super::Target;
use super::super::plan::Cuts;
use super::super::source::{Source, Values};
use super::options::MedsOptions;
use super::subjects::{TARGETS, Times, categories, first_null, target};
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
        let mut ordered = vec![false; source.rows()];
        let mut cuts = Cuts::default();
        let mut known = Vec::with_capacity(labels.num_rows());
        for (subject, moment) in
            subjects.as_primitive::<Int64Type>().values().iter().zip(moments.values())
        {
            let row = rows.get(subject);
            known.push(row.is_some());
            let Some(row) = row else { continue };
            let (shard, row_of_shard) = source.locate(*row as usize);
            let line = times[shard];
            let events = &line.times[line.rows.range(row_of_shard)];
            if let Some(ordered) = ordered.get_mut(*row as usize).filter(|ordered| !**ordered) {
                if !events.is_sorted() {
                    return Err(Error::invalid(format!(
                        "the times of subject {subject} do not ascend, so that what comes before a \
                         prediction time is not known; sort its events first"
                    )));
                }
                *ordered = true;
            }
            let seen = events.partition_point(|time| time <= moment);
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
            // MEDS files have columns of every kind of value, most of them empty.
            if values.is_empty() || values.null_count() < values.len() {
                targets.push(Target::new(name, values)?);
            }
        }
        Ok(Self { cuts, targets, unknown, categories })
    }
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
fn keys(
    labels: &RecordBatch,
) -> Result<(ArrayRef, arrow::array::PrimitiveArray<TimestampMicrosecondType>)> {
    let column = |name: &str| {
        labels.column_by_name(name).ok_or_else(|| {
            let schema = labels.schema();
            let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            Error::NoSuchColumn { name: name.into(), available: names.join(", ") }
        })
    };
    let subjects = column("subject_id")?;
    if !subjects.data_type().is_integer() {
        return Err(Error::type_of("subject_id of labels", "integers", subjects.data_type()));
    }
    let subjects = cast(subjects, &DataType::Int64)?;
    let moments = target("prediction_time", column("prediction_time")?, &[])?;
    for (name, values) in [("subject_id", &subjects), ("prediction_time", &moments)] {
        if let Some(row) = first_null(values) {
            return Err(Error::invalid(format!("label {row} has no {name}")));
        }
    }
    let moments = moments.as_primitive::<TimestampMicrosecondType>().clone();
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
