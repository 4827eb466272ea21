//! Reads one shard of a MEDS data set as a table with a row for each subject.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, RecordBatch, TimestampMicrosecondArray, new_null_array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::compute::{filter, is_not_null, is_null};
use arrow::datatypes::{
    DataType, Field, FieldRef, Int64Type, Schema, TimeUnit, TimestampMicrosecondType,
};

use super::file::MedsFile;
use super::sources::{DatasetFiles, MedsReadOptions};
use super::vocabulary::{VOCABULARY_METADATA, Vocabulary};
use crate::array::Offsets;
use crate::array::exact_casts::cast_integers;
use crate::error::{Error, Result};
use crate::memory::MemoryCharge;
use crate::table::{Column, NestOptions, RaggedTable, UnsortedRows};

/// A shard file of a data set.
///
/// Only its footer has been read. Cheap to clone.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::meds::MedsDataset;
/// let shard = MedsDataset::open("../tests/data/synthea-meds")?.shard("train/0")?;
/// assert_eq!((shard.name(), shard.num_measurements()?), ("train/0", 10531));
/// assert!(shard.path().ends_with("data/train/0.parquet"));
/// assert_eq!(shard.read(&Default::default())?.events.num_rows(), 11);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MedsShardFile {
    pub(super) dataset: Arc<DatasetFiles>,
    pub(super) index: usize,
}

impl MedsShardFile {
    fn source(&self) -> &MedsFile {
        &self.dataset.shards[self.index].1
    }

    /// Returns the path below `data/` without the ending, with `/` on every system: `train/0`.
    pub fn name(&self) -> &str {
        &self.dataset.shards[self.index].0
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        self.source().path()
    }

    /// Returns the number of measurements, including static facts, according to the footer.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::MedsDataset;
    /// let data = MedsDataset::open("../tests/data/synthea-meds")?;
    /// assert_eq!(data.shard("train/1")?.num_measurements()?, 6906);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the footer declares a negative number.
    pub fn num_measurements(&self) -> Result<usize> {
        self.source().rows()
    }

    /// Reads the whole shard.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::{MedsDataset, MedsReadOptions};
    /// let data = MedsDataset::open("../tests/data/synthea-meds")?;
    /// let shard = data.shard("train/0")?.read(&MedsReadOptions::default())?;
    /// assert_eq!((shard.name.as_str(), shard.events.num_rows()), ("train/0", 11));
    /// let options = MedsReadOptions { columns: Some(vec!["x".into()]), ..Default::default() };
    /// assert!(data.shard("train/0")?.read(&options).is_err()); // no shard has a column x
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read or violates the MEDS format; the message names file, column and
    /// row. See [`MedsReadOptions`] for other errors.
    pub fn read(&self, options: &MedsReadOptions) -> Result<MedsShard> {
        self.read_needed(options, NeededColumns::ALL)
    }

    /// Reads like [`read`](Self::read), but returns only `subject_id`, `time`, `time_delta_days`
    /// and the columns in `needed`.
    #[doc(hidden)]
    pub fn read_needed(
        &self,
        options: &MedsReadOptions,
        needed: NeededColumns<'_>,
    ) -> Result<MedsShard> {
        let further = self.dataset.find_additional_columns(options)?;
        let mut columns = vec!["subject_id", "time", "code", "numeric_value"];
        columns.extend(further.iter().map(|f| f.name().as_str()));
        let source = self.source();
        columns.retain(|c| match *c {
            "subject_id" | "time" => true,
            "code" => needed.needs_column("code") || needed.needs_column("code_id"),
            other => needed.needs_column(other),
        });
        let batch = source.read(&columns, Some("code"))?;
        let long =
            MeasurementColumns::new(source, &batch, &further, self.dataset.vocabulary()?, needed)?;
        let (events, statics) = long.nest_tables(options.unsorted).map_err(|e| match e {
            Error::Invalid(message) => Error::file(source.path(), message),
            other => other,
        })?;
        if !options.shared_subjects {
            let ids = events.column("subject_id")?.values().as_primitive::<Int64Type>();
            self.dataset.check_subjects(self.index, ids.values())?;
        }
        Ok(MedsShard { name: self.name().into(), events, statics })
    }
}

/// Names of the columns that the caller needs; `None` if it needs all columns.
#[derive(Clone, Copy, Debug)]
pub struct NeededColumns<'a>(pub Option<&'a [&'a str]>);

impl NeededColumns<'_> {
    pub(crate) const ALL: Self = Self(None);

    pub(crate) fn has_column(&self, name: &str) -> bool {
        self.0.is_none_or(|names| names.contains(&name))
    }

    /// Returns whether the column `name` of events or `static_{name}` of static facts is needed.
    fn needs_column(&self, name: &str) -> bool {
        self.has_column(name) || self.has_column(&format!("static_{name}"))
    }
}

/// The subjects of one shard, in ascending order of `subject_id`.
///
/// Both tables have the same rows. Columns of `events` (axes subject, event, measurement):
///
/// | column | axis | type | |
/// |---|---|---|---|
/// | `subject_id` | 0 | Int64 | |
/// | `time` | 1 | Timestamp(µs) | ascending within a subject; equal times are one event |
/// | `time_delta_days` | 1 | Float32 | whole seconds since the previous event / 86,400; NULL in the first event (NaN in the values buffer) |
/// | `code` | 2 | Dictionary(UInt32, Utf8) | |
/// | `code_id` | 2 | UInt32 | token (0 if the code is not in the vocabulary); [`VOCABULARY_METADATA`] of the field identifies the vocabulary |
/// | `numeric_value` | 2 | Float32 | NULL if missing |
/// | any further column | 2 | as in the files | |
///
/// `statics` (axes subject, static) holds the facts without a time: `subject_id`, and on axis 1
/// `static_code`, `static_code_id`, `static_numeric_value` and the further columns with the prefix
/// `static_`. A subject with only static facts has an empty list of events, and a subject with only
/// events an empty list of static facts. Measurements of one event, and facts of one subject, keep
/// the order of the file.
///
/// Codes are dictionaries, because codes are long and repeated thousands of times: dictionaries
/// take a tenth of the memory of plain strings, and a search for a code compares each dictionary
/// value once. Dictionary keys are valid for one array; `code_id` is comparable across arrays.
#[derive(Clone, Debug)]
pub struct MedsShard {
    /// Name of the shard, such as `train/0`.
    pub name: String,
    /// The measurements that have a time, grouped into the events of each subject.
    pub events: RaggedTable,
    /// The measurements that have no time (static facts), grouped by subject.
    pub statics: RaggedTable,
}

impl MedsShard {
    /// Reserves the memory of the shard within the memory limit of the process. Returns an error if
    /// the limit would be exceeded.
    #[doc(hidden)]
    pub fn charge_memory(&self) -> Result<MemoryCharge> {
        let bytes = |table: &RaggedTable| Ok::<_, Error>(table.to_batch()?.get_array_memory_size());
        let all = bytes(&self.events)?.saturating_add(bytes(&self.statics)?);
        MemoryCharge::take(&format!("the MEDS shard {}", self.name), all)
    }

    pub(crate) fn read_event_times(&self) -> Result<ScalarBuffer<i64>> {
        let values = self.events.column("time")?.values();
        let times = values.as_primitive_opt::<TimestampMicrosecondType>().ok_or_else(|| {
            Error::type_of(
                "column time",
                "Timestamp(µs), as in MEDS data (convert the column to Timestamp(µs))",
                values.data_type(),
            )
        })?;
        Ok(times.values().clone())
    }

    /// Returns the columns of `events`, then of `statics`, as sibling lists, with one row per
    /// subject.
    ///
    /// The static columns have their own lengths on axis 1, so the batch is not a single ragged
    /// table.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::MedsDataset;
    /// let data = MedsDataset::open("../tests/data/synthea-meds")?;
    /// let batch = data.shard("train/0")?.read(&Default::default())?.to_batch()?;
    /// assert_eq!(batch.num_rows(), 11);
    /// assert!(batch.column_by_name("code").is_some() && batch.column_by_name("static_code").is_some());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a list column has too many values for its offsets.
    pub fn to_batch(&self) -> Result<RecordBatch> {
        let (events, statics) = (self.events.to_batch()?, self.statics.to_batch()?);
        let mut fields: Vec<FieldRef> = events.schema().fields().to_vec();
        let mut columns = events.columns().to_vec();
        for (field, column) in statics.schema().fields().iter().zip(statics.columns()) {
            if field.name() != "subject_id" {
                fields.push(Arc::clone(field));
                columns.push(column.clone());
            }
        }
        let schema = Schema::new_with_metadata(fields, events.schema().metadata().clone());
        Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
    }
}

pub(crate) fn find_time_type() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

/// The columns of a file, validated and cast to the result types, one value per measurement.
pub(super) struct MeasurementColumns<'a> {
    subject_id: ArrayRef,
    time: ArrayRef,
    others: Vec<(FieldRef, ArrayRef)>,
    needed: NeededColumns<'a>,
}

impl<'a> MeasurementColumns<'a> {
    pub(super) fn new(
        source: &MedsFile,
        batch: &RecordBatch,
        further: &[Field],
        vocabulary: &Vocabulary,
        needed: NeededColumns<'a>,
    ) -> Result<Self> {
        let subject_id = source.require_column(batch, "subject_id")?;
        source.check_no_nulls("subject_id", subject_id, 0)?;
        let ids = cast_integers(subject_id)
            .map_err(|e| source.describe_inexact("subject_id", subject_id, &e))?;
        let subject_id: ArrayRef = Arc::new(ids);

        let time = source.require_column(batch, "time")?;
        let time = source.cast_time("time", time)?;

        let mut others: Vec<(FieldRef, ArrayRef)> = Vec::new();
        if needed.needs_column("code") || needed.needs_column("code_id") {
            let code = source.cast_codes(batch, 0)?;
            let code_id = vocabulary.encode_array(&code)?;
            let tokens = Field::new("code_id", DataType::UInt32, false).with_metadata(
                [(VOCABULARY_METADATA.to_string(), vocabulary.id().to_string())].into(),
            );
            if needed.needs_column("code") {
                let field = Field::new("code", code.data_type().clone(), false);
                others.push((Arc::new(field), code));
            }
            if needed.needs_column("code_id") {
                others.push((Arc::new(tokens), Arc::new(code_id)));
            }
        }
        if needed.needs_column("numeric_value") {
            let values = match batch.column_by_name("numeric_value") {
                None => new_null_array(&DataType::Float32, batch.num_rows()),
                Some(v) if v.data_type().is_numeric() || *v.data_type() == DataType::Null => {
                    source.cast_column("numeric_value", v, &DataType::Float32)?
                }
                Some(v) => {
                    return Err(source.make_type_error(
                        "numeric_value",
                        "numbers (cast the column in the file)",
                        v.data_type(),
                    ));
                }
            };
            let field = Field::new("numeric_value", DataType::Float32, true);
            others.push((Arc::new(field), values));
        }
        for field in further.iter().filter(|f| needed.needs_column(f.name())) {
            let values = match batch.column_by_name(field.name()) {
                Some(values) => source.cast_column(field.name(), values, field.data_type())?,
                None => new_null_array(field.data_type(), batch.num_rows()),
            };
            others.push((Arc::new(field.clone()), values));
        }
        Ok(Self { subject_id, time, others, needed })
    }

    /// Nests the columns into the tables of events and statics, which have the same rows.
    pub(super) fn nest_tables(self, unsorted: UnsortedRows) -> Result<(RaggedTable, RaggedTable)> {
        let (has_time, has_none) = (is_not_null(&self.time)?, is_null(&self.time)?);
        let all_timed = self.time.null_count() == 0;
        let part = |values: &ArrayRef, timed: bool| -> Result<ArrayRef> {
            Ok(match (timed, all_timed) {
                (true, true) => values.clone(),
                (true, false) => filter(values, &has_time)?,
                (false, _) => filter(values, &has_none)?,
            })
        };
        let key = |name: &str, values: ArrayRef| {
            let field = Field::new(name, values.data_type().clone(), false);
            Column::with_field(Arc::new(field), 0, values)
        };

        let mut events = vec![
            key("subject_id", part(&self.subject_id, true)?),
            key("time", part(&self.time, true)?),
        ];
        let mut statics = vec![key("subject_id", part(&self.subject_id, false)?)];
        for (field, values) in self.others {
            let name = format!("static_{}", field.name());
            if self.needed.has_column(&name) {
                let values = part(&values, false)?;
                statics.push(Column::with_field(Arc::clone(&field), 0, values).renamed(name));
            }
            if self.needed.has_column(field.name()) {
                events.push(Column::with_field(field, 0, part(&values, true)?));
            }
        }

        let options = NestOptions { unsorted };
        let nest = |columns: Vec<Column>, keys: &[&str], with_or_without: &str| {
            let rows = columns[0].values().len();
            RaggedTable::try_new(rows, None, vec![], columns)?.nest_rows(keys, &options).map_err(
                |e| match e {
                    Error::Invalid(message) => Error::Invalid(format!(
                        "{message} (this row number counts only the rows {with_or_without} a time)"
                    )),
                    other => other,
                },
            )
        };
        let events = insert_deltas(nest(events, &["subject_id", "time"], "with")?)?;
        let statics = nest(statics, &["subject_id"], "without")?;

        let ids = |t: &RaggedTable| -> Result<ScalarBuffer<i64>> {
            Ok(t.column("subject_id")?.values().as_primitive::<Int64Type>().values().clone())
        };
        let (a, b) = (ids(&events)?, ids(&statics)?);
        let subjects = merge_sorted(&a, &b);
        Ok((
            insert_subjects(events, &a, &subjects, &["subject", "event", "measurement"])?,
            insert_subjects(statics, &b, &subjects, &["subject", "static"])?,
        ))
    }
}

fn insert_deltas(events: RaggedTable) -> Result<RaggedTable> {
    let time = events.column("time")?.values().clone();
    let time: &TimestampMicrosecondArray = time.as_primitive::<TimestampMicrosecondType>();
    let time = time.values();
    let mut days = vec![f32::NAN; time.len()];
    let layout = events.layout(1)?;
    let mut first = vec![false; time.len()];
    for subject in 0..layout.lists() {
        let range = layout.range(subject);
        if let Some(f) = first.get_mut(range.start).filter(|_| !range.is_empty()) {
            *f = true;
        }
        for i in range.skip(1) {
            days[i] = compute_delta_days(time[i - 1], time[i]);
        }
    }
    let valid = BooleanBuffer::collect_bool(first.len(), |i| !first[i]);
    let values = Float32Array::try_new(days.into(), Some(NullBuffer::new(valid)))?;
    let mut columns = events.columns().to_vec();
    let at = columns.iter().position(|c| c.name() == "time").map_or(0, |i| i + 1);
    columns.insert(at, Column::new("time_delta_days", 1, Arc::new(values)));
    events.with_columns(columns)
}

/// Returns the days between two times in microseconds, without the fraction of the last second.
/// Computes in 64 bits and rounds to 32 bits, as meds-torch-data does, so that both give the same
/// bits.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "the column is Float32: 24 bits of days"
)]
pub(crate) fn compute_delta_days(from: i64, to: i64) -> f32 {
    ((to.saturating_sub(from) / 1_000_000) as f64 / 86_400.0) as f32
}

fn merge_sorted(a: &[i64], b: &[i64]) -> Vec<i64> {
    let mut out = Vec::with_capacity(a.len().max(b.len()));
    let (mut i, mut k) = (0, 0);
    while i < a.len() || k < b.len() {
        let next = match (a.get(i), b.get(k)) {
            (Some(x), Some(y)) => *x.min(y),
            (Some(x), None) | (None, Some(x)) => *x,
            (None, None) => break,
        };
        i += usize::from(a.get(i) == Some(&next));
        k += usize::from(b.get(k) == Some(&next));
        out.push(next);
    }
    out
}

/// Inserts an empty row into `table` for each of `subjects` that has none. `own` lists the subjects
/// that already have a row. Both lists are ascending.
fn insert_subjects(
    table: RaggedTable,
    own: &[i64],
    subjects: &[i64],
    names: &[&str],
) -> Result<RaggedTable> {
    if own.len() == subjects.len() {
        return table.with_axis_names(names);
    }
    let layout = table.layout(1)?;
    let mut next = 0;
    let lengths = subjects.iter().map(|subject| {
        if own.get(next) == Some(subject) {
            next += 1;
            layout.length(next - 1)
        } else {
            0
        }
    });
    let outer = Offsets::from_lengths(lengths)?.into();
    let mut axes = vec![(None, outer)];
    axes.extend(table.axes().iter().skip(1).map(|a| (None, a.layout().clone())));
    let columns = table
        .columns()
        .iter()
        .map(|c| match c.axis() {
            0 => {
                let ids = arrow::array::Int64Array::from(subjects.to_vec());
                Column::with_field(Arc::clone(c.field()), 0, Arc::new(ids))
            }
            _ => c.clone(),
        })
        .collect();
    RaggedTable::try_new(subjects.len(), None, axes, columns)?.with_axis_names(names)
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests {
    use super::*;

    #[test]
    fn union_of_ids() {
        assert_eq!(merge_sorted(&[1, 3, 5], &[2, 3, 9]), [1, 2, 3, 5, 9]);
        assert_eq!(merge_sorted(&[], &[4]), [4]);
        assert_eq!(merge_sorted(&[4], &[]), [4]);
        assert!(merge_sorted(&[], &[]).is_empty());
    }

    #[test]
    fn deltas_count_whole_seconds() {
        assert_eq!(compute_delta_days(0, 86_400_000_000), 1.0);
        assert_eq!(compute_delta_days(0, 1_999_999), (1.0 / 86_400.0) as f32);
        assert_eq!(
            compute_delta_days(i64::MIN, i64::MAX),
            ((i64::MAX / 1_000_000) as f64 / 86_400.0) as f32
        );
    }
}
