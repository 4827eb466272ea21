//! [`Labels`]: what is to be predicted, about whom, and from what was known when.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, TimestampMicrosecondArray,
    new_null_array,
};
use arrow::compute::{concat, filter};
use arrow::datatypes::{
    DataType, Field, FieldRef, Int64Type, Schema, SchemaRef, TimestampMicrosecondType,
};

use super::file::{Source, files, string_like};
use super::shard::time_type;
use super::splits::KNOWN as SPLITS;
use crate::array::exact::{first_null, integers, microseconds};
use crate::error::{Error, Result};
use crate::io::order::textual;

const SUBJECT: &str = "subject_id";
const TIME: &str = "prediction_time";

/// The columns that say what a label is about.
pub(crate) const KEYS: [&str; 2] = [SUBJECT, TIME];

/// The columns in which MEDS has the value of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LabelKind {
    /// `boolean_value`, as Boolean.
    Boolean,
    /// `integer_value`, as Int64.
    Integer,
    /// `float_value`, as Float32.
    Float,
    /// `categorical_value`, as Utf8.
    Categorical,
}

impl LabelKind {
    /// All of them, in the order in which tables have them.
    pub const ALL: [Self; 4] = [Self::Boolean, Self::Integer, Self::Float, Self::Categorical];

    /// The name of the column.
    pub fn column(self) -> &'static str {
        match self {
            Self::Boolean => "boolean_value",
            Self::Integer => "integer_value",
            Self::Float => "float_value",
            Self::Categorical => "categorical_value",
        }
    }

    /// The type of its array in [`Labels`].
    pub fn data_type(self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Integer => DataType::Int64,
            Self::Float => DataType::Float32,
            Self::Categorical => DataType::Utf8,
        }
    }

    /// What a file may have there; anything may be NULL.
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Self::Boolean => "booleans",
            Self::Integer => "integers",
            Self::Float => "numbers",
            Self::Categorical => "strings",
        }
    }

    pub(crate) fn accepts(self, found: &DataType) -> bool {
        let fits = match self {
            Self::Boolean => *found == DataType::Boolean,
            Self::Integer => found.is_integer(),
            Self::Float => found.is_numeric(),
            Self::Categorical => string_like(found),
        };
        fits || *found == DataType::Null
    }
}

/// Labels in the MEDS format: a subject, a time up to and including which may be looked at, and a value
/// of one or more kinds, or of none.
///
/// A subject may have any number of labels, at any times. The order is that of the files (natural order
/// of their names, folder by folder), then that of the rows, and nothing here changes it.
///
/// ```
/// use serrate::io::meds::{LabelKind, Labels};
/// let labels = Labels::read("tests/data/synthea-meds/labels")?;
/// assert_eq!(labels.len(), 1715);
/// assert_eq!(labels.kinds().collect::<Vec<_>>(), [LabelKind::Boolean]);
/// assert_eq!(labels.value(LabelKind::Boolean).map(|v| v.len()), Some(1715));
/// // held_out comes first.
/// assert_eq!(labels.subject_ids().value(0), 8);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Labels {
    subject_ids: Int64Array,
    prediction_times: TimestampMicrosecondArray,
    /// In the order of [`LabelKind::ALL`].
    values: Vec<(LabelKind, ArrayRef)>,
}

impl Labels {
    /// From arrays of one length; values in any order, each kind once.
    ///
    /// # Errors
    /// When lengths differ, a subject or a time is NULL, a kind comes twice, or values are not of the
    /// [type](LabelKind::data_type) of their kind.
    pub fn try_new(
        subject_ids: Int64Array,
        prediction_times: TimestampMicrosecondArray,
        mut values: Vec<(LabelKind, ArrayRef)>,
    ) -> Result<Self> {
        let length = |column: &str, found: usize| match found == subject_ids.len() {
            true => Ok(()),
            false => Err(Error::ColumnLength {
                column: column.into(),
                axis: 0,
                expected: subject_ids.len(),
                found,
            }),
        };
        let no_null = |column: &str, values: &dyn Array| match first_null(values) {
            None => Ok(()),
            Some(row) => Err(Error::invalid(format!("column {column:?}, row {row}: NULL"))),
        };
        if prediction_times.timezone().is_some() {
            return Err(Error::type_of(
                TIME,
                time_type().to_string(),
                prediction_times.data_type(),
            ));
        }
        length(TIME, prediction_times.len())?;
        no_null(SUBJECT, &subject_ids)?;
        no_null(TIME, &prediction_times)?;
        values.sort_by_key(|(kind, _)| *kind);
        for (i, (kind, values_of)) in values.iter().enumerate() {
            length(kind.column(), values_of.len())?;
            if *values_of.data_type() != kind.data_type() {
                let expected = kind.data_type().to_string();
                return Err(Error::type_of(kind.column(), expected, values_of.data_type()));
            }
            if i > 0 && values[i - 1].0 == *kind {
                return Err(Error::invalid(format!("column {:?} is given twice", kind.column())));
            }
        }
        Ok(Self { subject_ids, prediction_times, values })
    }

    /// Reads a Parquet file, or all `**/*.parquet` of a folder.
    ///
    /// Times may have any unit, integers any width, strings any encoding; what does not fit is an
    /// error. Numbers of `float_value` are rounded to 32 bits, as MEDS has them. A kind of value that
    /// only some of the files have is NULL in the others. Columns that MEDS does not know are not read.
    ///
    /// A folder may hold several [tasks](Self::tasks), if their labels have values of the same kinds: they
    /// are one after the other then, and nothing tells them apart.
    ///
    /// # Errors
    /// When there is no file, one cannot be read, lacks `subject_id` or `prediction_time`, has a column
    /// in another type, or a subject or time is NULL; when there are tasks of different kinds. Messages
    /// name file, column and row.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::of_files(path, &names(path)?)
    }

    /// As [`read`](Self::read), with the files in the order of their names as text (`10.parquet` before
    /// `9.parquet`): that in which meds-torch-data reads them.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_in_text_order(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut names = names(path)?;
        names.sort_by_cached_key(|name| textual(&format!("{name}.parquet")));
        Self::of_files(path, &names)
    }

    /// The tasks that a folder has labels of, when they are several: the folders in it that have
    /// files, unless they are splits (`train`, `tuning`, `held_out` is among them) or numbered.
    ///
    /// # Errors
    /// When a folder cannot be listed.
    pub fn tasks(path: impl AsRef<Path>) -> Result<Vec<String>> {
        Ok(tasks(&names(path.as_ref())?).into_iter().map(str::to_owned).collect())
    }

    /// The files of a folder, without their ending; none for a file.
    fn of_files(path: &Path, names: &[String]) -> Result<Self> {
        if !path.exists() {
            return Err(Error::file(path, "there is no such file or folder of labels"));
        }
        if !path.is_dir() {
            return Self::file(&Source::open(path)?);
        }
        let parts = names
            .iter()
            .map(|name| Self::file(&Source::open(path.join(format!("{name}.parquet")))?))
            .collect::<Result<Vec<_>>>()?;
        if parts.is_empty() {
            return Err(Error::file(path, "no *.parquet file; labels are Parquet files"));
        }
        one_kind(path, names, &parts)?;
        Self::concat(&parts)
    }

    fn file(source: &Source) -> Result<Self> {
        if let Some(missing) =
            KEYS.into_iter().find(|c| source.schema().field_with_name(c).is_err())
        {
            return Err(source.no_column(missing));
        }
        let kinds = kinds(source);
        let mut columns = KEYS.to_vec();
        columns.extend(kinds.iter().map(|kind| kind.column()));
        let batch = source.read(&columns, None)?;
        let (subject_ids, prediction_times) = keys(source, &batch)?;
        for (name, values) in
            [(SUBJECT, &subject_ids as &dyn Array), (TIME, &prediction_times as &dyn Array)]
        {
            if let Some(row) = first_null(values) {
                return Err(source.wrong_value(name, row, "NULL, but a value was expected"));
            }
        }
        let values = kinds
            .into_iter()
            .map(|kind| {
                let values = required(source, &batch, kind.column())?;
                if !kind.accepts(values.data_type()) {
                    return Err(source.wrong_type(
                        kind.column(),
                        kind.expected(),
                        values.data_type(),
                    ));
                }
                Ok((kind, source.cast(kind.column(), values, &kind.data_type())?))
            })
            .collect::<Result<_>>()?;
        Self::try_new(subject_ids, prediction_times, values)
    }

    /// One after the other; kinds that a part lacks are NULL in it.
    fn concat(parts: &[Self]) -> Result<Self> {
        if let [one] = parts {
            return Ok(one.clone());
        }
        let join = |arrays: &[ArrayRef]| -> Result<ArrayRef> {
            let arrays: Vec<&dyn Array> = arrays.iter().map(|a| a.as_ref()).collect();
            Ok(concat(&arrays)?)
        };
        let of = |f: fn(&Self) -> ArrayRef| join(&parts.iter().map(f).collect::<Vec<_>>());
        let ids = of(|p| Arc::new(p.subject_ids.clone()))?;
        let times = of(|p| Arc::new(p.prediction_times.clone()))?;
        let values = LabelKind::ALL
            .into_iter()
            .filter(|kind| parts.iter().any(|p| p.value(*kind).is_some()))
            .map(|kind| {
                let arrays: Vec<ArrayRef> = parts
                    .iter()
                    .map(|p| match p.value(kind) {
                        Some(values) => Arc::clone(values),
                        None => new_null_array(&kind.data_type(), p.len()),
                    })
                    .collect();
                Ok((kind, join(&arrays)?))
            })
            .collect::<Result<_>>()?;
        Self::try_new(
            ids.as_primitive::<Int64Type>().clone(),
            times.as_primitive::<TimestampMicrosecondType>().clone(),
            values,
        )
    }

    /// Those labels for which `keep` is true.
    pub(crate) fn filter(&self, keep: &BooleanArray) -> Result<Self> {
        Ok(Self {
            subject_ids: filter(&self.subject_ids, keep)?.as_primitive::<Int64Type>().clone(),
            prediction_times: filter(&self.prediction_times, keep)?
                .as_primitive::<TimestampMicrosecondType>()
                .clone(),
            values: self
                .values
                .iter()
                .map(|(kind, values)| Ok((*kind, filter(values, keep)?)))
                .collect::<Result<_>>()?,
        })
    }

    /// Number of labels.
    pub fn len(&self) -> usize {
        self.subject_ids.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whom each is about; no NULL.
    pub fn subject_ids(&self) -> &Int64Array {
        &self.subject_ids
    }

    /// The last moment that may be looked at, itself included, in microseconds without a time zone; no
    /// NULL.
    pub fn prediction_times(&self) -> &TimestampMicrosecondArray {
        &self.prediction_times
    }

    /// The values, by kind, in the order of [`LabelKind::ALL`]; any may be NULL.
    pub fn values(&self) -> &[(LabelKind, ArrayRef)] {
        &self.values
    }

    /// The kinds of values there are.
    pub fn kinds(&self) -> impl Iterator<Item = LabelKind> + '_ {
        self.values.iter().map(|(kind, _)| *kind)
    }

    /// The values of one kind.
    pub fn value(&self, kind: LabelKind) -> Option<&ArrayRef> {
        self.values.iter().find(|(k, _)| *k == kind).map(|(_, values)| values)
    }

    /// `subject_id`, `prediction_time`, and the columns of the values.
    pub fn schema(&self) -> SchemaRef {
        let mut fields: Vec<FieldRef> = vec![
            Arc::new(Field::new(SUBJECT, DataType::Int64, false)),
            Arc::new(Field::new(TIME, time_type(), false)),
        ];
        fields.extend(self.kinds().map(|k| Arc::new(Field::new(k.column(), k.data_type(), true))));
        Arc::new(Schema::new(fields))
    }

    /// As a batch of [`schema`](Self::schema); arrays are shared.
    ///
    /// # Errors
    /// None are known.
    pub fn to_batch(&self) -> Result<RecordBatch> {
        let mut columns: Vec<ArrayRef> =
            vec![Arc::new(self.subject_ids.clone()), Arc::new(self.prediction_times.clone())];
        columns.extend(self.values.iter().map(|(_, values)| Arc::clone(values)));
        Ok(RecordBatch::try_new(self.schema(), columns)?)
    }
}

/// The Parquet files of a folder in order, without their ending.
fn names(path: &Path) -> Result<Vec<String>> {
    files(path, "parquet")
}

/// The tasks that files are of; none when they are of one. See [`Labels::tasks`].
pub(crate) fn tasks(names: &[String]) -> Vec<&str> {
    let mut tasks: Vec<&str> = Vec::new();
    for (task, _) in names.iter().filter_map(|name| name.split_once('/')) {
        if !tasks.contains(&task) {
            tasks.push(task);
        }
    }
    let numbered = |task: &&str| task.bytes().all(|b| b.is_ascii_digit());
    if tasks.len() < 2 || tasks.iter().any(|t| SPLITS.contains(t)) || tasks.iter().all(numbered) {
        tasks.clear();
    }
    tasks
}

/// Refuses tasks whose labels have values of different kinds.
fn one_kind(path: &Path, names: &[String], parts: &[Labels]) -> Result<()> {
    let mut first: Option<(&str, Vec<LabelKind>)> = None;
    for task in tasks(names) {
        let of_task = |name: &str| name.split_once('/').is_some_and(|(t, _)| t == task);
        let own = || names.iter().zip(parts).filter(|(name, _)| of_task(name)).map(|(_, p)| p);
        let has = |part: &Labels, kind| part.value(kind).is_some_and(|v| v.null_count() < v.len());
        let kinds: Vec<LabelKind> =
            LabelKind::ALL.into_iter().filter(|k| own().any(|part| has(part, *k))).collect();
        let say =
            |kinds: &[LabelKind]| kinds.iter().map(|k| k.column()).collect::<Vec<_>>().join(", ");
        match &first {
            _ if kinds.is_empty() => {}
            None => first = Some((task, kinds)),
            Some((other, expected)) if *expected != kinds => {
                return Err(Error::file(
                    path,
                    format!(
                        "labels of several tasks with values of different kinds: {other:?} has {}, {task:?} has {}; name the folder of one task",
                        say(expected),
                        say(&kinds)
                    ),
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The kinds of values that a file has.
pub(crate) fn kinds(source: &Source) -> Vec<LabelKind> {
    let has = |kind: &LabelKind| source.schema().field_with_name(kind.column()).is_ok();
    LabelKind::ALL.into_iter().filter(has).collect()
}

/// Subjects and times of some rows of a file, NULL where they are in the file.
///
/// # Errors
/// When they have other types, or do not fit 64 bits of microseconds.
pub(crate) fn keys(
    source: &Source,
    batch: &RecordBatch,
) -> Result<(Int64Array, TimestampMicrosecondArray)> {
    let subjects = required(source, batch, SUBJECT)?;
    let times = required(source, batch, TIME)?;
    Ok((
        integers(subjects).map_err(|e| source.inexact(SUBJECT, subjects, &e))?,
        microseconds(times).map_err(|e| source.inexact(TIME, times, &e))?,
    ))
}

fn required<'a>(source: &Source, batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef> {
    batch.column_by_name(name).ok_or_else(|| source.no_column(name))
}
