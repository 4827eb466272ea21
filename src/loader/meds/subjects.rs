//! [`Subjects`]: the tables of one shard, and what a loader makes of them.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, Int64Array, StringArray, new_null_array,
};
use arrow::buffer::ScalarBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type};

use super::super::timeline::Timeline;
use super::options::{MedsOptions, Statics, Unit};
use crate::array::exact::{Inexact, cast_exact, first_null, integers, microseconds};
use crate::error::{Error, Result};
use crate::table::{Column, History, RaggedTable};

/// Subjects of one shard: what happened to them, and what holds of them.
///
/// `events` has the axes subject, event, measurement and the columns
///
/// | column | axis | type | |
/// |---|---|---|---|
/// | `subject_id` | 0 | integer | needed for labels |
/// | `time` | 1 | timestamp | needed for labels; ascending within a subject |
/// | `time_delta_days` | 1 | number | NULL or NaN where there is none |
/// | `code` | 2 | integer | or, where that is text, `code_id` |
/// | `numeric_value` | 2 | number | NULL or NaN where there is none; may be missing |
///
/// and any of `prediction_time`, `boolean_value`, `integer_value`, `float_value` and
/// `categorical_value` on axis 0, for rows that are cut at their prediction time already. `statics`
/// has the same rows and on axis 1 `static_code` (or `static_code_id`) and `static_numeric_value`.
/// Other columns are not looked at.
#[derive(Clone, Debug)]
pub struct Subjects {
    /// Name of the shard, for messages.
    pub name: String,
    /// What happened at a time.
    pub events: RaggedTable,
    /// What holds without a time; may be missing where static facts are left out.
    pub statics: Option<RaggedTable>,
}

#[cfg(feature = "parquet")]
impl From<crate::io::meds_torch::CohortTables> for Subjects {
    fn from(tables: crate::io::meds_torch::CohortTables) -> Self {
        Self { name: tables.name, events: tables.events, statics: Some(tables.statics) }
    }
}

#[cfg(feature = "parquet")]
impl From<crate::io::meds::MedsShard> for Subjects {
    fn from(shard: crate::io::meds::MedsShard) -> Self {
        Self { name: shard.name, events: shard.events, statics: Some(shard.statics) }
    }
}

/// Columns of single values that rows may have, in the order of their tensors.
pub(super) const TARGETS: [&str; 5] =
    ["prediction_time", "boolean_value", "integer_value", "float_value", "categorical_value"];

/// A shard as a loader takes it.
pub(super) struct Prepared {
    /// Subjects and measurements, or subjects, events and measurements.
    pub(super) events: RaggedTable,
    /// Subjects and their static facts.
    pub(super) facts: Option<RaggedTable>,
    /// The events of sequences of measurements.
    pub(super) timeline: Option<Timeline>,
    /// What is needed to find the place of a prediction time.
    pub(super) times: Option<Times>,
}

/// Who the rows of a shard are, and when their events were.
pub(super) struct Times {
    pub(super) subjects: Int64Array,
    pub(super) history: History,
}

/// What all shards are to have.
pub(super) struct Wanted<'a> {
    pub(super) options: &'a MedsOptions,
    /// Whether times are looked at.
    pub(super) labels: bool,
    /// Whether some shard has numbers.
    pub(super) numbers: bool,
    /// The categories of `categorical_value`, in order.
    pub(super) categories: &'a [String],
}

impl Prepared {
    pub(super) fn new(subjects: &Subjects, wanted: &Wanted<'_>) -> Result<Self> {
        let named = |e: Error| match e {
            Error::File { .. } | Error::Io { .. } => e,
            e => Error::invalid(format!("shard {:?}: {e}", subjects.name)),
        };
        Self::of(subjects, wanted).map_err(named)
    }

    fn of(subjects: &Subjects, wanted: &Wanted<'_>) -> Result<Self> {
        let (events, options) = (&subjects.events, wanted.options);
        if events.ndim() < 3 {
            return Err(Error::invalid(format!(
                "{} axes; health records have subjects, events and measurements",
                events.ndim()
            )));
        }
        let (rows, inner) = (events.layout(1)?, events.layout(2)?);
        let code = tokens(events, "code", "code_id", 2)?;
        let numbers = (wanted.numbers && options.numeric_value)
            .then(|| match events.column("numeric_value") {
                Ok(_) => floats(events, "numeric_value", 2),
                Err(_) => Ok(new_null_array(&DataType::Float32, code.len())),
            })
            .transpose()?;
        let days = options.time_delta.then(|| floats(events, "time_delta_days", 1)).transpose()?;

        let mut columns = values_of_rows(events, wanted)?;
        let times = wanted.labels.then(|| Times::of(events)).transpose()?;
        let facts = match options.statics {
            Statics::Omit => None,
            _ => Some(facts(subjects, options)?),
        };
        let (axes, timeline, axis) = match options.unit {
            Unit::Event => {
                columns.extend(days.map(|days| Column::new("time_delta_days", 1, days)));
                (vec![(None, rows.clone()), (None, inner.clone())], None, 2)
            }
            Unit::Measurement => {
                let days = days.map(|days| with_nan(&days));
                let timeline = Timeline::new(rows.clone(), inner, days)?;
                (vec![(None, timeline.measurements()?.into())], Some(timeline), 1)
            }
        };
        columns.push(Column::new("code", axis, code));
        columns.extend(numbers.map(|values| Column::new("numeric_value", axis, values)));
        let events = RaggedTable::try_new(events.num_rows(), None, axes, columns)?;
        Ok(Self { events, facts, timeline, times })
    }
}

impl Times {
    fn of(events: &RaggedTable) -> Result<Self> {
        let times = at(events, "time", 1)?.values();
        let times = microseconds(times).map_err(|e| inexact("time", times, &e))?;
        if let Some(at) = first_null(&times) {
            return Err(Error::invalid(format!("column \"time\", event {at}: NULL")));
        }
        let subjects = subject_ids(events)?;
        let history = History::try_new(events.layout(1)?.clone(), times.values().clone());
        let history = history.map_err(|row| {
            Error::invalid(format!(
                "the times of subject {} do not ascend, so that what comes before a prediction \
                 time is not known; sort its events first",
                subjects.value(row)
            ))
        })?;
        Ok(Self { subjects, history })
    }
}

/// A column where it is expected.
fn at<'a>(table: &'a RaggedTable, name: &str, axis: usize) -> Result<&'a Column> {
    let column = table.column(name)?;
    match column.axis() == axis {
        true => Ok(column),
        false => Err(Error::invalid(format!(
            "column {name:?} is on axis {}; expected on axis {axis}",
            column.axis()
        ))),
    }
}

/// Tokens: of one column, or where that is text, of another. NULL is the token 0.
fn tokens(table: &RaggedTable, name: &str, encoded: &str, axis: usize) -> Result<ArrayRef> {
    let column = table.column(name);
    let column = match column {
        Ok(c) if c.data_type().is_integer() => at(table, name, axis)?,
        _ => match (at(table, encoded, axis), column) {
            (Ok(encoded), _) => encoded,
            (Err(_), Ok(column)) => {
                let expected = format!("integers, or a column {encoded:?} of them beside it");
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

/// Numbers in 32 bits.
fn floats(table: &RaggedTable, name: &str, axis: usize) -> Result<ArrayRef> {
    let column = at(table, name, axis)?;
    let found = column.data_type();
    if !found.is_numeric() && *found != DataType::Null {
        return Err(Error::type_of(format!("column {name:?}"), "numbers", found));
    }
    Ok(cast(column.values(), &DataType::Float32)?)
}

/// Numbers with NaN for NULL.
fn with_nan(values: &ArrayRef) -> ScalarBuffer<f32> {
    let values: &Float32Array = values.as_primitive::<Float32Type>();
    match values.null_count() {
        0 => values.values().clone(),
        _ => values.iter().map(|v| v.unwrap_or(f32::NAN)).collect(),
    }
}

fn subject_ids(events: &RaggedTable) -> Result<Int64Array> {
    let column = at(events, "subject_id", 0)?.values();
    let ids = integers(column).map_err(|e| inexact("subject_id", column, &e))?;
    match first_null(&ids) {
        Some(row) => Err(Error::invalid(format!("column \"subject_id\", row {row}: NULL"))),
        None => Ok(ids),
    }
}

/// `subject_id`, and what is to be predicted where the rows say it themselves.
fn values_of_rows(events: &RaggedTable, wanted: &Wanted<'_>) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    if events.column("subject_id").is_ok() {
        columns.push(Column::new("subject_id", 0, Arc::new(subject_ids(events)?)));
    }
    for name in TARGETS.into_iter().filter(|_| !wanted.labels) {
        if let Ok(column) = events.column(name)
            && column.axis() == 0
        {
            let values = target(name, column.values(), wanted.categories)?;
            if let Some(row) = not_finite(&values) {
                return Err(Error::invalid(format!(
                    "row {row}: {name} is no finite number in 32 bits; nothing can be trained on it"
                )));
            }
            columns.push(Column::new(name, 0, values));
        }
    }
    Ok(columns)
}

/// The values of a column of [`TARGETS`], in the type of its tensor. Numbers may be NaN or infinite:
/// see [`not_finite`].
pub(super) fn target(name: &str, values: &ArrayRef, categories: &[String]) -> Result<ArrayRef> {
    let found = values.data_type();
    let null = *found == DataType::Null;
    use DataType::{Boolean, Float32, Int64};
    let wrong = |expected| Err(inexact(name, values, &Inexact::Type(expected)));
    let exact = |to| cast_exact(values, &to).map_err(|e| inexact(name, values, &e));
    match name {
        "prediction_time" => {
            Ok(Arc::new(microseconds(values).map_err(|e| inexact(name, values, &e))?))
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
            let texts = texts(values)?;
            Ok(Arc::new(texts.iter().map(|t| t.and_then(number)).collect::<Int64Array>()))
        }
    }
}

/// The first target that is no number to train on: NaN, or infinite in 32 bits.
pub(super) fn not_finite(targets: &ArrayRef) -> Option<usize> {
    let numbers = targets.as_primitive_opt::<Float32Type>()?;
    numbers.iter().position(|v| v.is_some_and(|v| !v.is_finite()))
}

/// What is wrong with a column, or a value of labels.
pub(super) fn inexact(name: &str, values: &ArrayRef, e: &Inexact) -> Error {
    match e {
        Inexact::Type(expected) => {
            Error::type_of(format!("column {name:?}"), *expected, values.data_type())
        }
        Inexact::Value(i, message) => {
            Error::invalid(format!("column {name:?}, value {i}: {message}"))
        }
        Inexact::Cast(e) => Error::invalid(format!("column {name:?}: {e}")),
    }
}

fn texts(values: &ArrayRef) -> Result<StringArray> {
    let values = cast(values, &DataType::Utf8)?;
    Ok(values.as_string::<i32>().clone())
}

/// The distinct texts of some arrays, in the order of their bytes.
pub(super) fn categories<'a>(
    arrays: impl IntoIterator<Item = &'a ArrayRef>,
) -> Result<Vec<String>> {
    let mut all = std::collections::BTreeSet::new();
    for values in arrays {
        for text in texts(values)?.iter().flatten() {
            if !all.contains(text) {
                all.insert(text.to_owned());
            }
        }
    }
    Ok(all.into_iter().collect())
}

/// Codes and numbers of static facts.
fn facts(subjects: &Subjects, options: &MedsOptions) -> Result<RaggedTable> {
    let Some(statics) = &subjects.statics else {
        return Err(Error::invalid("there are no static facts; omit them"));
    };
    let rows = subjects.events.num_rows();
    if statics.num_rows() != rows || statics.ndim() < 2 {
        return Err(Error::invalid(format!(
            "static facts of {} rows with {} axes; expected the {rows} rows of the events, and lists",
            statics.num_rows(),
            statics.ndim()
        )));
    }
    let code = tokens(statics, "static_code", "static_code_id", 1)?;
    let len = code.len();
    let mut columns = vec![Column::new("static_code", 1, code)];
    // meds-torch-data leaves out those of events alone.
    if options.numeric_value || (options.compat && options.statics == Statics::Include) {
        let values = match statics.column("static_numeric_value") {
            Ok(_) => floats(statics, "static_numeric_value", 1)?,
            Err(_) => new_null_array(&DataType::Float32, len),
        };
        columns.push(Column::new("static_numeric_value", 1, values));
    }
    RaggedTable::try_new(rows, None, vec![(None, statics.layout(1)?.clone())], columns)
}
