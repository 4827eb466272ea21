//! Reads and writes labels in the MEDS format.

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

use super::file::{MedsFile, list_files_with_ending};
use super::shard::find_time_type;
use super::splits::KNOWN as SPLITS;
use crate::access;
use crate::array::exact_casts::{cast_integers, cast_microseconds, find_first_null};
use crate::array::nested_types::is_string_like;
use crate::error::{Error, Result};
use crate::io::natural_order::make_text_key;

const SUBJECT: &str = "subject_id";
const TIME: &str = "prediction_time";

pub(crate) const KEYS: [&str; 2] = [SUBJECT, TIME];

/// Kind of the value of a label.
///
/// MEDS has one column for each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LabelKind {
    /// The column `boolean_value`, read as Boolean.
    Boolean,
    /// The column `integer_value`, read as Int64.
    Integer,
    /// The column `float_value`, read as Float32.
    Float,
    /// The column `categorical_value`, read as Utf8.
    Categorical,
}

impl LabelKind {
    /// All kinds, in the column order of tables.
    pub const ALL: [Self; 4] = [Self::Boolean, Self::Integer, Self::Float, Self::Categorical];

    /// Returns the name of the MEDS column that holds values of this kind.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::LabelKind;
    /// assert_eq!(LabelKind::ALL.map(LabelKind::column)[1..3], ["integer_value", "float_value"]);
    /// ```
    pub fn column(self) -> &'static str {
        match self {
            Self::Boolean => "boolean_value",
            Self::Integer => "integer_value",
            Self::Float => "float_value",
            Self::Categorical => "categorical_value",
        }
    }

    /// Returns the Arrow type of the values of this kind in [`Labels`].
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::datatypes::DataType;
    /// use serrate::io::meds::LabelKind;
    /// assert_eq!(LabelKind::Float.data_type(), DataType::Float32);
    /// ```
    pub fn data_type(self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Integer => DataType::Int64,
            Self::Float => DataType::Float32,
            Self::Categorical => DataType::Utf8,
        }
    }

    pub(crate) fn describe_expected_types(self) -> &'static str {
        match self {
            Self::Boolean => "booleans",
            Self::Integer => "integers",
            Self::Float => "numbers",
            Self::Categorical => "strings",
        }
    }

    pub(crate) fn accepts_type(self, found: &DataType) -> bool {
        let fits = match self {
            Self::Boolean => *found == DataType::Boolean,
            Self::Integer => found.is_integer(),
            Self::Float => found.is_numeric(),
            Self::Categorical => is_string_like(found),
        };
        fits || *found == DataType::Null
    }
}

/// Labels in the MEDS format: each has a subject, a prediction time (data up to and including this
/// time may be used), and a value or NULL for each [kind](LabelKind) of value.
///
/// A subject may have any number of labels. Labels are ordered by file (natural order of names),
/// then by row.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::meds::{LabelKind, Labels};
/// let labels = Labels::read("../tests/data/synthea-meds/labels")?;
/// assert_eq!((labels.len(), labels.is_empty()), (1715, false));
/// assert_eq!(labels.kinds().collect::<Vec<_>>(), [LabelKind::Boolean]);
/// assert_eq!(labels.value(LabelKind::Boolean).map(|v| v.len()), Some(1715));
/// // Files of held_out come first.
/// assert_eq!(labels.subject_ids().value(0), 8);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Labels {
    subject_ids: Int64Array,
    prediction_times: TimestampMicrosecondArray,
    /// Values of each kind, in the order of [`LabelKind::ALL`].
    values: Vec<(LabelKind, ArrayRef)>,
}

impl Labels {
    /// Creates labels from arrays of equal length; `values` has at most one array per kind, in any
    /// order.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// use arrow::array::{ArrayRef, BooleanArray, Int64Array, TimestampMicrosecondArray};
    /// use serrate::io::meds::{LabelKind, Labels};
    /// let ids = Int64Array::from(vec![1, 7]);
    /// let times = TimestampMicrosecondArray::from(vec![0, 86_400_000_000]);
    /// let values: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None]));
    /// let labels = Labels::try_new(ids, times, vec![(LabelKind::Boolean, values)])?;
    /// assert_eq!((labels.len(), labels.schema().field(2).name().as_str()), (2, "boolean_value"));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If lengths differ, a subject or time is NULL, a kind is given twice, or values do not have
    /// the [type](LabelKind::data_type) of their kind.
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
        let no_null = |column: &str, values: &dyn Array| match find_first_null(values) {
            None => Ok(()),
            Some(row) => Err(Error::invalid(format!(
                "column {column:?}, row {row}: the value is NULL, but MEDS requires a value; correct the row or remove it"
            ))),
        };
        if prediction_times.timezone().is_some() {
            return Err(Error::type_of(
                TIME,
                find_time_type().to_string(),
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
                return Err(Error::invalid(format!(
                    "the labels have column {:?} twice; give each column once",
                    kind.column()
                )));
            }
        }
        Ok(Self { subject_ids, prediction_times, values })
    }

    /// Reads a Parquet file, or all `**/*.parquet` of a folder.
    ///
    /// Times may have any unit, integers any width, strings any encoding; a value that does not fit
    /// is an error. Values of `float_value` are rounded to 32 bits, as in MEDS. If only some files
    /// of a task have a kind of value, the labels of the other files have NULL for this kind. Other
    /// columns are not read.
    ///
    /// Labels of several [tasks](Self::tasks) are concatenated; all tasks with values must have the
    /// same kinds of values.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::Labels;
    /// let folder = "../tests/data/synthea-meds/labels/emergency_within_a_year";
    /// let labels = Labels::read(format!("{folder}/train/0.parquet"))?;
    /// assert_eq!((labels.len(), Labels::read(folder)?.len()), (1182, 1715));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if no label file is found, if a file cannot be read, if a file lacks
    /// `subject_id` or `prediction_time`, if a column has an unexpected type, if a subject or time
    /// is NULL, or if tasks have values of different kinds. Messages name the file, column and row.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::read_files(path, &list_files(path)?)
    }

    /// Reads labels like [`read`](Self::read), but files in the order of their names as strings
    /// (`10` before `9`), as meds-torch-data does.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::Labels;
    /// let folder = "../tests/data/synthea-meds/labels";
    /// assert_eq!(Labels::read_in_text_order(folder)?.len(), Labels::read(folder)?.len());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`read`](Self::read).
    pub fn read_in_text_order(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut names = list_files(path)?;
        names.sort_by_cached_key(|name| make_text_key(&format!("{name}.parquet")));
        Self::read_files(path, &names)
    }

    /// Returns the tasks of a folder: the names of its sub-folders with files.
    ///
    /// The list is empty if there are fewer than two such folders, if one of them is named like a
    /// split (`train`, `tuning` or `held_out`), or if all their names are numbers.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::Labels;
    /// // The folder has the labels of only one task.
    /// assert!(Labels::tasks("../tests/data/synthea-meds/labels")?.is_empty());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a folder cannot be listed.
    pub fn tasks(path: impl AsRef<Path>) -> Result<Vec<String>> {
        Ok(list_tasks(&list_files(path.as_ref())?).into_iter().map(str::to_owned).collect())
    }

    /// `names` are relative paths without `.parquet`, which are ignored if `path` is a file.
    fn read_files(path: &Path, names: &[String]) -> Result<Self> {
        if !access::exists(path) {
            return Err(Error::file(
                path,
                "there is no such file or folder of labels; check the path",
            ));
        }
        if !access::is_dir(path) {
            return Self::read_file(&MedsFile::open(path)?);
        }
        let parts = names
            .iter()
            .map(|name| Self::read_file(&MedsFile::open(path.join(format!("{name}.parquet")))?))
            .collect::<Result<Vec<_>>>()?;
        if parts.is_empty() {
            return Err(Error::file(
                path,
                "the folder of labels has no *.parquet file; give a folder of Parquet files",
            ));
        }
        check_kinds(path, names, &parts)?;
        Self::concat_parts(&parts)
    }

    fn read_file(source: &MedsFile) -> Result<Self> {
        if let Some(missing) =
            KEYS.into_iter().find(|c| source.schema().field_with_name(c).is_err())
        {
            return Err(source.make_missing_column_error(missing));
        }
        let kinds = list_kinds(source);
        let mut columns = KEYS.to_vec();
        columns.extend(kinds.iter().map(|kind| kind.column()));
        let batch = source.read(&columns, None)?;
        let (subject_ids, prediction_times) = read_label_keys(source, &batch)?;
        for (name, values) in
            [(SUBJECT, &subject_ids as &dyn Array), (TIME, &prediction_times as &dyn Array)]
        {
            if let Some(row) = find_first_null(values) {
                return Err(source.make_value_error(
                    name,
                    row,
                    "the value is NULL, but MEDS requires a value; correct the row or remove it",
                ));
            }
        }
        let values = kinds
            .into_iter()
            .map(|kind| {
                let values = source.require_column(&batch, kind.column())?;
                if !kind.accepts_type(values.data_type()) {
                    return Err(source.make_type_error(
                        kind.column(),
                        kind.describe_expected_types(),
                        values.data_type(),
                    ));
                }
                Ok((kind, source.cast_column(kind.column(), values, &kind.data_type())?))
            })
            .collect::<Result<_>>()?;
        Self::try_new(subject_ids, prediction_times, values)
    }

    /// Labels of a part that lacks a kind of value have NULL for this kind.
    fn concat_parts(parts: &[Self]) -> Result<Self> {
        if let [one] = parts {
            return Ok(one.clone());
        }
        let join = |arrays: &[ArrayRef]| -> Result<ArrayRef> {
            let arrays: Vec<&dyn Array> = arrays.iter().map(|a| a.as_ref()).collect();
            Ok(concat(&arrays)?)
        };
        let join_parts = |f: fn(&Self) -> ArrayRef| join(&parts.iter().map(f).collect::<Vec<_>>());
        let ids = join_parts(|p| Arc::new(p.subject_ids.clone()))?;
        let times = join_parts(|p| Arc::new(p.prediction_times.clone()))?;
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

    /// Returns the number of labels.
    pub fn len(&self) -> usize {
        self.subject_ids.len()
    }

    /// Returns whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the subject of each label; none is NULL.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, BooleanArray, Int64Array, TimestampMicrosecondArray};
    /// use serrate::io::meds::{LabelKind, Labels};
    /// # let ids = Int64Array::from(vec![1, 7]);
    /// # let times = TimestampMicrosecondArray::from(vec![0, 60_000_000]);
    /// # let values: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None]));
    /// # let labels = Labels::try_new(ids, times, vec![(LabelKind::Boolean, values)])?;
    /// assert_eq!(labels.subject_ids().values(), &[1, 7]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn subject_ids(&self) -> &Int64Array {
        &self.subject_ids
    }

    /// Returns the prediction times (none is NULL).
    ///
    /// Data up to and including the prediction time of a label may be used.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, BooleanArray, Int64Array, TimestampMicrosecondArray};
    /// use serrate::io::meds::{LabelKind, Labels};
    /// # let ids = Int64Array::from(vec![1, 7]);
    /// # let times = TimestampMicrosecondArray::from(vec![0, 60_000_000]);
    /// # let values: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None]));
    /// # let labels = Labels::try_new(ids, times, vec![(LabelKind::Boolean, values)])?;
    /// assert_eq!(labels.prediction_times().values(), &[0, 60_000_000]); // microseconds
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn prediction_times(&self) -> &TimestampMicrosecondArray {
        &self.prediction_times
    }

    /// Returns the values by kind, in the order of [`LabelKind::ALL`]; values may be NULL.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, TimestampMicrosecondArray};
    /// use serrate::io::meds::{LabelKind, Labels};
    /// # let ids = Int64Array::from(vec![1, 7]);
    /// # let times = TimestampMicrosecondArray::from(vec![0, 60_000_000]);
    /// # let values: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None]));
    /// # let labels = Labels::try_new(ids, times, vec![(LabelKind::Boolean, values)])?;
    /// let (kind, values) = &labels.values()[0];
    /// assert_eq!((*kind, values.len(), values.null_count()), (LabelKind::Boolean, 2, 1));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn values(&self) -> &[(LabelKind, ArrayRef)] {
        &self.values
    }

    /// Returns the kinds of values that the labels have.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, BooleanArray, Int64Array, TimestampMicrosecondArray};
    /// use serrate::io::meds::{LabelKind, Labels};
    /// # let ids = Int64Array::from(vec![1, 7]);
    /// # let times = TimestampMicrosecondArray::from(vec![0, 60_000_000]);
    /// # let values: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None]));
    /// # let labels = Labels::try_new(ids, times, vec![(LabelKind::Boolean, values)])?;
    /// assert_eq!(labels.kinds().collect::<Vec<_>>(), [LabelKind::Boolean]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn kinds(&self) -> impl Iterator<Item = LabelKind> + '_ {
        self.values.iter().map(|(kind, _)| *kind)
    }

    /// Returns the values of one kind; `None` if the labels have no values of this kind.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, BooleanArray, Int64Array, TimestampMicrosecondArray};
    /// use serrate::io::meds::{LabelKind, Labels};
    /// # let ids = Int64Array::from(vec![1, 7]);
    /// # let times = TimestampMicrosecondArray::from(vec![0, 60_000_000]);
    /// # let values: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None]));
    /// # let labels = Labels::try_new(ids, times, vec![(LabelKind::Boolean, values)])?;
    /// let values = BooleanArray::from(vec![Some(true), None]);
    /// assert_eq!(labels.value(LabelKind::Boolean).unwrap().as_ref(), &values);
    /// assert!(labels.value(LabelKind::Float).is_none());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn value(&self, kind: LabelKind) -> Option<&ArrayRef> {
        self.values.iter().find(|(k, _)| *k == kind).map(|(_, values)| values)
    }

    /// Returns the schema: `subject_id`, `prediction_time`, and the columns of the values.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, BooleanArray, Int64Array, TimestampMicrosecondArray};
    /// use serrate::io::meds::{LabelKind, Labels};
    /// # let ids = Int64Array::from(vec![1, 7]);
    /// # let times = TimestampMicrosecondArray::from(vec![0, 60_000_000]);
    /// # let values: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None]));
    /// # let labels = Labels::try_new(ids, times, vec![(LabelKind::Boolean, values)])?;
    /// let schema = labels.schema();
    /// let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    /// assert_eq!(names, ["subject_id", "prediction_time", LabelKind::Boolean.column()]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn schema(&self) -> SchemaRef {
        let mut fields: Vec<FieldRef> = vec![
            Arc::new(Field::new(SUBJECT, DataType::Int64, false)),
            Arc::new(Field::new(TIME, find_time_type(), false)),
        ];
        fields.extend(self.kinds().map(|k| Arc::new(Field::new(k.column(), k.data_type(), true))));
        Arc::new(Schema::new(fields))
    }

    /// Returns the labels as a batch with the [`schema`](Self::schema); arrays are not copied.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::Labels;
    /// let path = "../tests/data/synthea-meds/labels";
    /// let labels = Labels::read(path)?;
    /// assert_eq!((labels.is_empty(), labels.prediction_times().len()), (false, labels.len()));
    /// assert_eq!(labels.to_batch()?.schema(), labels.schema());
    /// let (kind, values) = &labels.values()[0];
    /// assert_eq!((kind.column(), values.data_type()), ("boolean_value", &kind.data_type()));
    /// assert_eq!(Labels::read_in_text_order(path)?.len(), labels.len());
    /// assert!(Labels::tasks(path)?.is_empty());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Never: all columns have one value per label and the types of the schema.
    pub fn to_batch(&self) -> Result<RecordBatch> {
        let mut columns: Vec<ArrayRef> =
            vec![Arc::new(self.subject_ids.clone()), Arc::new(self.prediction_times.clone())];
        columns.extend(self.values.iter().map(|(_, values)| Arc::clone(values)));
        Ok(RecordBatch::try_new(self.schema(), columns)?)
    }
}

fn list_files(path: &Path) -> Result<Vec<String>> {
    list_files_with_ending(path, "parquet")
}

/// Returns the distinct first folders of `names`, such as `mortality` of `mortality/0`; none if
/// there are fewer than two, if one is named like a split, or if all are numbers.
pub(crate) fn list_tasks(names: &[String]) -> Vec<&str> {
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

fn check_kinds(path: &Path, names: &[String], parts: &[Labels]) -> Result<()> {
    let mut first: Option<(&str, Vec<LabelKind>)> = None;
    for task in list_tasks(names) {
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
                        "the tasks have labels with values of different kinds ({other:?} has {other_kinds}, {task:?} has {task_kinds}); give the folder of one task",
                        other_kinds = say(expected),
                        task_kinds = say(&kinds)
                    ),
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

pub(crate) fn list_kinds(source: &MedsFile) -> Vec<LabelKind> {
    let has = |kind: &LabelKind| source.schema().field_with_name(kind.column()).is_ok();
    LabelKind::ALL.into_iter().filter(has).collect()
}

/// Reads subjects and times; NULLs stay NULL. Returns an error for types other than integers and
/// timestamps or dates, for subjects beyond 64 bits, and for times beyond 64-bit microseconds.
pub(crate) fn read_label_keys(
    source: &MedsFile,
    batch: &RecordBatch,
) -> Result<(Int64Array, TimestampMicrosecondArray)> {
    let subjects = source.require_column(batch, SUBJECT)?;
    let times = source.require_column(batch, TIME)?;
    Ok((
        cast_integers(subjects).map_err(|e| source.describe_inexact(SUBJECT, subjects, &e))?,
        cast_microseconds(times).map_err(|e| source.describe_inexact(TIME, times, &e))?,
    ))
}
