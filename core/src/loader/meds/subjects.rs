//! [`ShardSubjects`]: the tables of one shard, and their conversion for a loader.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, Int64Array, StringArray, new_null_array,
};
use arrow::buffer::ScalarBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type};

use super::super::shard_timeline::ShardTimeline;
use super::options::{MedsOptions, SequenceUnit, StaticsMode};
use crate::array::exact_casts::{
    InexactCast, cast_exact, cast_integers, cast_microseconds, find_first_null,
};
use crate::error::{Error, Result};
use crate::table::{Column, EventHistory, RaggedTable};

/// The subjects of one shard, with their events and static facts.
///
/// `events` has the axes subject, event, measurement and the columns
///
/// | column | axis | type | |
/// |---|---|---|---|
/// | `subject_id` | 0 | integer | required for labels |
/// | `time` | 1 | timestamp | required for labels; ascending within a subject |
/// | `time_delta_days` | 1 | number | NULL or NaN if missing |
/// | `code` | 2 | integer | if its values are strings, the column `code_id` is used instead |
/// | `numeric_value` | 2 | number | NULL or NaN if missing; the column is optional |
///
/// If rows already end at their prediction time, `events` may also have, on axis 0, any of
/// `prediction_time`, `boolean_value`, `integer_value`, `float_value` and `categorical_value`.
/// `statics` has the same rows, and on axis 1 `static_code` (or `static_code_id`) and
/// `static_numeric_value`. Other columns are ignored.
#[derive(Clone, Debug)]
pub struct ShardSubjects {
    /// Name of the shard in error messages.
    pub name: String,
    /// The events: the measurements that have a time.
    pub events: RaggedTable,
    /// Static facts, which have no time; not needed with
    /// [`StaticsMode::Omit`](super::StaticsMode::Omit).
    pub statics: Option<RaggedTable>,
}

#[cfg(feature = "parquet")]
impl From<crate::io::meds_torch::CohortTables> for ShardSubjects {
    fn from(tables: crate::io::meds_torch::CohortTables) -> Self {
        Self { name: tables.name, events: tables.events, statics: Some(tables.statics) }
    }
}

#[cfg(feature = "parquet")]
impl From<crate::io::meds::MedsShard> for ShardSubjects {
    fn from(shard: crate::io::meds::MedsShard) -> Self {
        Self { name: shard.name, events: shard.events, statics: Some(shard.statics) }
    }
}

/// Names of the columns of values to predict (axis 0 of `events`), in the order of their tensors.
pub(super) const TARGETS: [&str; 5] =
    ["prediction_time", "boolean_value", "integer_value", "float_value", "categorical_value"];

pub(super) struct PreparedShard {
    /// Table with the axes subject and measurement, or subject, event and measurement.
    pub(super) events: RaggedTable,
    /// Table with the axes subject and static fact; `None` if static facts are omitted.
    pub(super) facts: Option<RaggedTable>,
    /// The events that the measurements belong to; `None` for sequences of events.
    pub(super) timeline: Option<ShardTimeline>,
    /// The times of all events; `None` if no labels are given.
    pub(super) times: Option<SubjectTimes>,
}

/// For each row of a shard, its subject and the times of its events.
pub(super) struct SubjectTimes {
    pub(super) subjects: Int64Array,
    pub(super) history: EventHistory,
}

pub(super) struct ShardRequirements<'a> {
    pub(super) options: &'a MedsOptions,
    /// Whether labels are given, which require a time for every event.
    pub(super) labels: bool,
    /// Whether any shard has numeric values.
    pub(super) numbers: bool,
    pub(super) categories: &'a [String],
}

impl PreparedShard {
    pub(super) fn new(subjects: &ShardSubjects, wanted: &ShardRequirements<'_>) -> Result<Self> {
        let named = |e: Error| match e {
            Error::File { .. } | Error::Io { .. } => e,
            e => Error::invalid(format!("shard {:?}: {e}", subjects.name)),
        };
        Self::build(subjects, wanted).map_err(named)
    }

    fn build(subjects: &ShardSubjects, wanted: &ShardRequirements<'_>) -> Result<Self> {
        let (events, options) = (&subjects.events, wanted.options);
        if events.ndim() < 3 {
            return Err(Error::invalid(format!(
                "the number of axes of the table is {}, but health records need three axes: subjects, events and measurements; give a table of MEDS data or of a tensorized cohort",
                events.ndim()
            )));
        }
        let (rows, inner) = (events.layout(1)?, events.layout(2)?);
        let code = find_tokens(events, "code", "code_id", 2)?;
        let numbers = (wanted.numbers && options.numeric_value)
            .then(|| match events.column("numeric_value") {
                Ok(_) => read_floats(events, "numeric_value", 2),
                Err(_) => Ok(new_null_array(&DataType::Float32, code.len())),
            })
            .transpose()?;
        let days =
            options.time_delta.then(|| read_floats(events, "time_delta_days", 1)).transpose()?;

        let mut columns = read_row_values(events, wanted)?;
        let times = wanted.labels.then(|| SubjectTimes::read(events)).transpose()?;
        let facts = match options.statics {
            StaticsMode::Omit => None,
            _ => Some(read_facts(subjects, options)?),
        };
        let (axes, timeline, axis) = match options.unit {
            SequenceUnit::Event => {
                columns.extend(days.map(|days| Column::new("time_delta_days", 1, days)));
                (vec![(None, rows.clone()), (None, inner.clone())], None, 2)
            }
            SequenceUnit::Measurement => {
                let days = days.map(|days| convert_nulls_to_nan(&days));
                let timeline = ShardTimeline::new(rows.clone(), inner, days)?;
                (vec![(None, timeline.compute_row_offsets()?.into())], Some(timeline), 1)
            }
        };
        columns.push(Column::new("code", axis, code));
        columns.extend(numbers.map(|values| Column::new("numeric_value", axis, values)));
        let events = RaggedTable::try_new(events.num_rows(), None, axes, columns)?;
        Ok(Self { events, facts, timeline, times })
    }
}

impl SubjectTimes {
    fn read(events: &RaggedTable) -> Result<Self> {
        let times = find_column_at(events, "time", 1)?.values();
        let times = cast_microseconds(times).map_err(|e| describe_inexact("time", times, &e))?;
        if let Some(at) = find_first_null(&times) {
            return Err(Error::invalid(format!(
                "column \"time\" is NULL at event {at}; give every event a time"
            )));
        }
        let subjects = read_subject_ids(events)?;
        let history = EventHistory::try_new(events.layout(1)?.clone(), times.values().clone());
        let history = history.map_err(|row| {
            Error::invalid(format!(
                "the times of subject {} do not ascend, so the events before a prediction time cannot be determined; sort the events first",
                subjects.value(row)
            ))
        })?;
        Ok(Self { subjects, history })
    }
}

fn find_column_at<'a>(table: &'a RaggedTable, name: &str, axis: usize) -> Result<&'a Column> {
    let column = table.column(name)?;
    match column.axis() == axis {
        true => Ok(column),
        false => Err(Error::invalid(format!(
            "column {name:?} is on axis {}, but must be on axis {axis}; create the shard again with the column on this axis",
            column.axis()
        ))),
    }
}

/// Returns the tokens (integer codes): column `name` if it has integers, else column `encoded`.
/// Keeps nulls. Returns an error if the selected column does not exist or is not on axis `axis`.
fn find_tokens(table: &RaggedTable, name: &str, encoded: &str, axis: usize) -> Result<ArrayRef> {
    let column = table.column(name);
    let column = match column {
        Ok(c) if c.data_type().is_integer() => find_column_at(table, name, axis)?,
        _ => match (find_column_at(table, encoded, axis), column) {
            (Ok(encoded), _) => encoded,
            (Err(_), Ok(column)) => {
                let expected = format!(
                    "integers, or strings with an additional column {encoded:?} of integers (add this column)"
                );
                return Err(Error::type_of(
                    format!("column {name:?}"),
                    expected,
                    column.data_type(),
                ));
            }
            (Err(_), Err(missing)) => return Err(missing),
        },
    };
    Ok(Arc::clone(column.values()))
}

fn read_floats(table: &RaggedTable, name: &str, axis: usize) -> Result<ArrayRef> {
    let column = find_column_at(table, name, axis)?;
    let found = column.data_type();
    if !found.is_numeric() && *found != DataType::Null {
        return Err(Error::type_of(
            format!("column {name:?}"),
            "numbers (create the shard again with numbers in this column)",
            found,
        ));
    }
    Ok(cast(column.values(), &DataType::Float32)?)
}

fn convert_nulls_to_nan(values: &ArrayRef) -> ScalarBuffer<f32> {
    let values: &Float32Array = values.as_primitive::<Float32Type>();
    match values.null_count() {
        0 => values.values().clone(),
        _ => values.iter().map(|v| v.unwrap_or(f32::NAN)).collect(),
    }
}

fn read_subject_ids(events: &RaggedTable) -> Result<Int64Array> {
    let column = find_column_at(events, "subject_id", 0)?.values();
    let ids = cast_integers(column).map_err(|e| describe_inexact("subject_id", column, &e))?;
    match find_first_null(&ids) {
        Some(row) => Err(Error::invalid(format!(
            "column \"subject_id\" is NULL in row {row}; give every row a subject"
        ))),
        None => Ok(ids),
    }
}

/// Reads columns of axis 0: `subject_id` and, unless labels are given, the values to predict
/// ([`TARGETS`]). Returns an error if a subject is null, or a value is not finite or does not fit
/// the type of its tensor.
fn read_row_values(events: &RaggedTable, wanted: &ShardRequirements<'_>) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    if events.column("subject_id").is_ok() {
        columns.push(Column::new("subject_id", 0, Arc::new(read_subject_ids(events)?)));
    }
    for name in TARGETS.into_iter().filter(|_| !wanted.labels) {
        if let Ok(column) = events.column(name)
            && column.axis() == 0
        {
            let values = read_target(name, column.values(), wanted.categories)?;
            if let Some(row) = find_non_finite(&values) {
                return Err(Error::invalid(format!(
                    "row {row}: {name} is NaN, infinite or too large for float32; correct or remove the value"
                )));
            }
            columns.push(Column::new(name, 0, values));
        }
    }
    Ok(columns)
}

/// Converts the column `name` of values to predict to the type of its tensor. Returns an error if
/// the column has another kind of values. Accepts NaN and infinities; callers find these values
/// with [`find_non_finite`].
pub(super) fn read_target(
    name: &str,
    values: &ArrayRef,
    categories: &[String],
) -> Result<ArrayRef> {
    let found = values.data_type();
    let null = *found == DataType::Null;
    use DataType::{Boolean, Float32, Int64};
    let wrong = |expected| Err(describe_inexact(name, values, &InexactCast::Type(expected)));
    let exact = |to| cast_exact(values, &to).map_err(|e| describe_inexact(name, values, &e));
    match name {
        "prediction_time" => {
            Ok(Arc::new(cast_microseconds(values).map_err(|e| describe_inexact(name, values, &e))?))
        }
        "boolean_value" if null || *found == Boolean => exact(Boolean),
        "boolean_value" => wrong("booleans"),
        "integer_value" if null || found.is_integer() => exact(Int64),
        "integer_value" => wrong("integers"),
        "float_value" if null || found.is_numeric() => exact(Float32),
        "float_value" => wrong("numbers"),
        _ => {
            let number = |text: &str| {
                let at = categories.binary_search_by(|c| c.as_str().cmp(text)).ok()?;
                i64::try_from(at).ok()
            };
            let strings = cast_to_strings(values)?;
            Ok(Arc::new(strings.iter().map(|t| t.and_then(number)).collect::<Int64Array>()))
        }
    }
}

/// Returns the index of the first float32 value that is NaN or infinite; `None` if there is no such
/// value or the values have another type.
pub(super) fn find_non_finite(targets: &ArrayRef) -> Option<usize> {
    let numbers = targets.as_primitive_opt::<Float32Type>()?;
    numbers.iter().position(|v| v.is_some_and(|v| !v.is_finite()))
}

pub(super) fn describe_inexact(name: &str, values: &ArrayRef, e: &InexactCast) -> Error {
    match e {
        InexactCast::Type(expected) => {
            let expected = format!("{expected} (cast the column first)");
            Error::type_of(format!("column {name:?}"), expected, values.data_type())
        }
        InexactCast::Value(i, message) => {
            Error::invalid(format!("column {name:?}, value {i}: {message}"))
        }
        InexactCast::Cast(e) => Error::invalid(format!("column {name:?}: {e}")),
    }
}

fn cast_to_strings(values: &ArrayRef) -> Result<StringArray> {
    let values = cast(values, &DataType::Utf8)?;
    Ok(values.as_string::<i32>().clone())
}

pub(super) fn collect_categories<'a>(
    arrays: impl IntoIterator<Item = &'a ArrayRef>,
) -> Result<Vec<String>> {
    let mut all = std::collections::BTreeSet::new();
    for values in arrays {
        for text in cast_to_strings(values)?.iter().flatten() {
            if !all.contains(text) {
                all.insert(text.to_owned());
            }
        }
    }
    Ok(all.into_iter().collect())
}

fn read_facts(subjects: &ShardSubjects, options: &MedsOptions) -> Result<RaggedTable> {
    let Some(statics) = &subjects.statics else {
        return Err(Error::invalid(
            "the shard has no static facts (measurements without a time); set the option `statics` to 'omit', or create the shard again with static facts",
        ));
    };
    let rows = subjects.events.num_rows();
    if statics.num_rows() != rows || statics.ndim() < 2 {
        return Err(Error::invalid(format!(
            "the static facts have {} row(s), and their number of axes is {}; write them with {rows} row(s), as the events have, and 2 axes",
            statics.num_rows(),
            statics.ndim()
        )));
    }
    let code = find_tokens(statics, "static_code", "static_code_id", 1)?;
    let len = code.len();
    let mut columns = vec![Column::new("static_code", 1, code)];
    // meds-torch-data keeps the numbers of facts even if numeric values are turned off, so
    // `compat` keeps them, too.
    if options.numeric_value || (options.compat && options.statics == StaticsMode::Include) {
        let values = match statics.column("static_numeric_value") {
            Ok(_) => read_floats(statics, "static_numeric_value", 1)?,
            Err(_) => new_null_array(&DataType::Float32, len),
        };
        columns.push(Column::new("static_numeric_value", 1, values));
    }
    RaggedTable::try_new(rows, None, vec![(None, statics.layout(1)?.clone())], columns)
}
