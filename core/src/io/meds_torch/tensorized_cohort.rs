//! Reads tensorized cohorts: the tensors and the schema file of each shard, and the vocabulary.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, Float32Array, StringArray, UInt32Array,
    new_empty_array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float32Type, Int64Type, SchemaRef, UInt32Type};

use super::{SCHEMAS, TENSORS, read_split_name};
use crate::access;
use crate::array::exact_casts::{InexactCast, cast_integers};
use crate::array::{Layout, Offsets, RaggedArray};
use crate::error::{Error, Result};
use crate::io::lease::complete_commits;
use crate::io::meds::file::{MedsFile, list_files_with_ending};
use crate::io::meds::{
    MedsShard, NeededColumns, VOCABULARY_METADATA, Vocabulary, find_time_type,
    make_missing_shard_error,
};
use crate::io::nrt::{NrtFile, ReadOptions};
use crate::table::{Column, RaggedTable};

pub(super) const EVENT_AXES: [&str; 3] = ["subject", "event", "measurement"];
pub(super) const STATIC_AXES: [&str; 2] = ["subject", "static"];

/// A folder of MEDS data in the format of meds-torch-data: for each shard, a tensor file of events
/// and a Parquet file of subjects, and the vocabulary of the codes.
///
/// [`tensorize`](super::tensorize()) and meds-torch-data write such folders.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::meds_torch::TensorizedCohort;
/// let cohort = TensorizedCohort::open("../tests/data/synthea-meds-torch-data")?;
/// assert!(cohort.root().ends_with("synthea-meds-torch-data"));
/// let tables = cohort.shard("train/0")?.read()?;
/// assert_eq!(tables.events.array("code")?.len(), 11);
/// assert_eq!(cohort.vocabulary()?.len(), 400);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TensorizedCohort {
    root: PathBuf,
    shards: Vec<CohortShard>,
    vocabulary: Option<Vocabulary>,
}

impl TensorizedCohort {
    /// Opens a folder: finds its shards and reads `metadata/codes.parquet`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds_torch::TensorizedCohort;
    /// let cohort = TensorizedCohort::open("../tests/data/synthea-meds-torch-data")?;
    /// assert_eq!(cohort.shards().len(), 4);
    /// assert!(TensorizedCohort::open("../tests/data/synthea-meds").is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no schema file, tensors and schema files do not correspond, or the codes cannot
    /// be read.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref().to_path_buf();
        complete_commits(&root)?;
        let schemas = list_files_with_ending(&root.join(SCHEMAS), "parquet")?;
        let tensors = list_files_with_ending(&root.join(TENSORS), "nrt")?;
        if schemas.is_empty() {
            return Err(Error::file(
                root.join(SCHEMAS),
                "the folder has no *.parquet file, but the schema files of a tensorized cohort belong in this folder; create the cohort again",
            ));
        }
        if let Some(name) = tensors.iter().find(|n| !schemas.contains(n)) {
            return Err(Error::file(
                root.join(TENSORS).join(format!("{name}.nrt")),
                format!(
                    "the schema file {SCHEMAS}/{name}.parquet, which describes the rows of this file, is missing; create the cohort again"
                ),
            ));
        }
        let shards = schemas
            .into_iter()
            .map(|name| {
                let shard = CohortShard::new(&root, &name);
                match tensors.contains(&shard.name) {
                    true => Ok(shard),
                    false => {
                        let missing = format!(
                            "the tensors {} of this schema file are missing; create the cohort again",
                            shard.tensors.display()
                        );
                        Err(Error::file(&shard.schema, missing))
                    }
                }
            })
            .collect::<Result<_>>()?;
        let path = root.join("metadata").join("codes.parquet");
        let vocabulary = access::exists(&path).then(|| Vocabulary::read(path)).transpose()?;
        Ok(Self { root, shards, vocabulary })
    }

    /// Returns whether a folder has the subfolder `tokenization/schemas`, as cohorts do.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds_torch::TensorizedCohort;
    /// assert!(TensorizedCohort::is_at("../tests/data/synthea-meds-torch-data"));
    /// assert!(!TensorizedCohort::is_at("../tests/data/synthea-meds"));
    /// ```
    pub fn is_at(root: impl AsRef<Path>) -> bool {
        access::is_dir(root.as_ref().join(SCHEMAS))
    }

    /// Returns the path of the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the shards in the order of their names (`train/2` before `train/10`).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds_torch::TensorizedCohort;
    /// let cohort = TensorizedCohort::open("../tests/data/synthea-meds-torch-data")?;
    /// let names: Vec<_> = cohort.shards().iter().map(|shard| shard.name()).collect();
    /// assert_eq!(names, ["held_out/0", "train/0", "train/1", "tuning/0"]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn shards(&self) -> &[CohortShard] {
        &self.shards
    }

    /// Returns a shard by name, such as `train/0`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds_torch::TensorizedCohort;
    /// let cohort = TensorizedCohort::open("../tests/data/synthea-meds-torch-data")?;
    /// assert_eq!(cohort.shard("train/0")?.name(), "train/0");
    /// assert!(cohort.shard("train/2").is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such shard.
    pub fn shard(&self, name: &str) -> Result<&CohortShard> {
        self.shards.iter().find(|s| s.name == name).ok_or_else(|| {
            make_missing_shard_error(&self.root, name, self.shards.iter().map(CohortShard::name))
        })
    }

    /// Returns the codes and their tokens.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds_torch::TensorizedCohort;
    /// let cohort = TensorizedCohort::open("../tests/data/synthea-meds-torch-data")?;
    /// assert_eq!(cohort.vocabulary()?.len(), 400);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no `metadata/codes.parquet`.
    pub fn vocabulary(&self) -> Result<&Vocabulary> {
        self.vocabulary.as_ref().ok_or_else(|| {
            let path = self.root.join("metadata").join("codes.parquet");
            Error::file(
                path,
                "the cohort has no file metadata/codes.parquet, so the codes of its tokens are unknown; add the file",
            )
        })
    }

    /// Reads shard `index` as tables of MEDS data: tokens become codes, and NaN becomes NULL.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds_torch::TensorizedCohort;
    /// let path = "../tests/data/synthea-meds-torch-data";
    /// assert!(TensorizedCohort::is_at(path));
    /// let cohort = TensorizedCohort::open(path)?;
    /// let shard = &cohort.shards()[0];
    /// assert!(shard.name().starts_with(shard.split()));
    /// assert!(shard.tensors_path().starts_with(cohort.root()) && shard.schema_path().is_file());
    /// assert_eq!(cohort.read_meds(0)?.events.num_rows(), shard.tensors()?.num_rows());
    /// assert_eq!(cohort.meds_schema()?.field(0).name(), "subject_id");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`CohortShard::read`]; also if there is no vocabulary, or a token is not in it.
    pub fn read_meds(&self, index: usize) -> Result<MedsShard> {
        self.read_needed(index, NeededColumns::ALL)
    }

    /// Reads only the columns `subject_id`, `time` and those that `needed` names.
    pub(crate) fn read_needed(&self, index: usize, needed: NeededColumns<'_>) -> Result<MedsShard> {
        let shard = self.shards.get(index).ok_or_else(|| Error::OutOfRange {
            axis: 0,
            index: i64::try_from(index).unwrap_or(i64::MAX),
            size: self.shards.len(),
        })?;
        let codes = CodeDictionary::from_vocabulary(self.vocabulary()?)?;
        codes.decode_tables(shard.read()?, needed).map_err(|e| match e {
            Error::Invalid(message) => Error::file(&shard.tensors, message),
            other => other,
        })
    }

    /// Returns the schema of the record batch to which [`MedsShard::to_batch`] converts the result
    /// of [`read_meds`](Self::read_meds).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds_torch::TensorizedCohort;
    /// let cohort = TensorizedCohort::open("../tests/data/synthea-meds-torch-data")?;
    /// let shard = cohort.read_meds(0)?;
    /// assert_eq!(cohort.meds_schema()?, shard.to_batch()?.schema());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no vocabulary.
    pub fn meds_schema(&self) -> Result<SchemaRef> {
        let codes = CodeDictionary::from_vocabulary(self.vocabulary()?)?;
        Ok(codes.decode_tables(CohortTables::empty()?, NeededColumns::ALL)?.to_batch()?.schema())
    }
}

/// A shard of a cohort, which is read on demand.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::meds_torch::TensorizedCohort;
/// let cohort = TensorizedCohort::open("../tests/data/synthea-meds-torch-data")?;
/// let shard = cohort.shard("train/0")?;
/// assert_eq!((shard.name(), shard.split()), ("train/0", "train"));
/// assert!(shard.tensors_path().ends_with("data/train/0.nrt"));
/// assert!(shard.schema_path().ends_with("tokenization/schemas/train/0.parquet"));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CohortShard {
    name: String,
    tensors: PathBuf,
    schema: PathBuf,
}

/// The tensors and the schema file of one shard, as two tables with one row per subject.
///
/// Columns of `events` (axes subject, event, measurement), as in the files:
///
/// | column | axis | type | |
/// |---|---|---|---|
/// | `subject_id` | 0 | Int64 | |
/// | `start_time` | 0 | Timestamp(µs) | time of the first event; NULL without events |
/// | `time` | 1 | Timestamp(µs) | |
/// | `time_delta_days` | 1 | Float32 | NaN in a subject's first event |
/// | `code` | 2 | Int64 | token |
/// | `numeric_value` | 2 | Float32 | NaN if missing |
///
/// `statics` (axes subject, static) has `subject_id`, `static_code` (UInt32) and
/// `static_numeric_value` (Float32). Values of the tensors are not copied.
#[derive(Clone, Debug)]
pub struct CohortTables {
    /// Name of the shard, such as `train/0`.
    pub name: String,
    /// The measurements with a time, grouped into the events of each subject.
    pub events: RaggedTable,
    /// The measurements without a time, grouped by subject.
    pub statics: RaggedTable,
}

/// The count, of events or of measurements, that differs between the tensors and the schema file of
/// a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountMismatch {
    Events,
    Measurements,
}

impl CohortShard {
    pub(crate) fn new(root: &Path, name: &str) -> Self {
        Self {
            name: name.to_string(),
            tensors: root.join(TENSORS).join(format!("{name}.nrt")),
            schema: root.join(SCHEMAS).join(format!("{name}.parquet")),
        }
    }

    /// Returns the name of the shard: the path of its tensors relative to `data/`, without the file
    /// ending, such as `train/0`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the split of the shard, which is the part of its name before the first `/`, such as
    /// `train`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds_torch::TensorizedCohort;
    /// let cohort = TensorizedCohort::open("../tests/data/synthea-meds-torch-data")?;
    /// assert_eq!(cohort.shard("held_out/0")?.split(), "held_out");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn split(&self) -> &str {
        read_split_name(&self.name)
    }

    /// Returns the path of the file of the tensors.
    pub fn tensors_path(&self) -> &Path {
        &self.tensors
    }

    /// Returns the path of the schema file, the Parquet file of the subjects.
    pub fn schema_path(&self) -> &Path {
        &self.schema
    }

    /// Opens the file of the tensors.
    ///
    /// Row `i` of the tensors belongs to row `i` of the schema file only if both files have the
    /// same number of rows.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds_torch::TensorizedCohort;
    /// let cohort = TensorizedCohort::open("../tests/data/synthea-meds-torch-data")?;
    /// let tensors = cohort.shard("train/0")?.tensors()?;
    /// assert!(tensors.column("code").is_ok() && tensors.column("numeric_value").is_ok());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read or is not an `.nrt` file.
    pub fn tensors(&self) -> Result<NrtFile> {
        NrtFile::open(&self.tensors, &ReadOptions::default())
    }

    /// Reads the tensors and the schema file of the shard into two tables.
    ///
    /// meds-torch-data omits subjects without events from the tensors. They become rows without
    /// events.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds_torch::TensorizedCohort;
    /// let cohort = TensorizedCohort::open("../tests/data/synthea-meds-torch-data")?;
    /// let tables = cohort.shard("train/0")?.read()?;
    /// assert_eq!((tables.events.num_rows(), tables.statics.num_rows()), (11, 11));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a file cannot be read, lacks a column or has a column of a wrong type, or the two files
    /// differ in the number of rows, of events per row, or of measurements per event.
    pub fn read(&self) -> Result<CohortTables> {
        self.read_noting(&mut None)
    }

    /// Reads like [`read`](Self::read). If the tensors and the schema file differ in the number of
    /// events or measurements, sets `mismatch` and returns an error.
    pub(crate) fn read_noting(&self, mismatch: &mut Option<CountMismatch>) -> Result<CohortTables> {
        let schema = SchemaFile::read(&self.schema)?;
        let events = self.read_events(&schema, mismatch)?;
        let statics = schema.read_statics(&self.schema)?;
        Ok(CohortTables { name: self.name.clone(), events, statics })
    }

    fn read_events(
        &self,
        schema: &SchemaFile,
        mismatch: &mut Option<CountMismatch>,
    ) -> Result<RaggedTable> {
        let tensors = self.tensors()?.table()?;
        let times = schema.times.axis(1)?.layout();
        let lengths: Vec<usize> = (0..schema.rows).map(|row| times.length(row)).collect();
        if tensors.ndim() == 1 && tensors.num_rows() == 0 && lengths.iter().all(|n| *n == 0) {
            // If no subject has events, other tools write tensors without rows: give each subject
            // an empty row.
            let tables = CohortTables::empty()?;
            return schema.combine_events(
                lengths,
                tables.events.axes()[1].layout(),
                &tables.events,
            );
        }
        for (name, axis) in [("code", 2), ("time_delta_days", 1)] {
            let found =
                tensors.column(name).map_err(|e| Error::file(&self.tensors, e.to_string()))?.axis();
            if found != axis {
                return Err(Error::file(
                    &self.tensors,
                    format!(
                        "column {name:?} has {found} levels of lists per row instead of {axis}; create the cohort again"
                    ),
                ));
            }
        }
        self.check_events(&tensors, &lengths, mismatch)?;
        let inner = tensors.layout(2)?;
        if let Some(counts) = &schema.measurements {
            self.check_measurements(inner, counts, mismatch)?;
        }
        schema.combine_events(lengths, inner, &tensors)
    }

    /// Checks that the rows of the tensors, which may omit rows without events, have `lengths[i]`
    /// events. If the numbers differ, sets `mismatch` and returns an error.
    fn check_events(
        &self,
        tensors: &RaggedTable,
        lengths: &[usize],
        mismatch: &mut Option<CountMismatch>,
    ) -> Result<()> {
        let layout = tensors.layout(1)?;
        let with_events = lengths.iter().filter(|n| **n > 0).count();
        let aligned = tensors.num_rows() == lengths.len();
        if !aligned && tensors.num_rows() != with_events {
            return Err(Error::file(
                &self.tensors,
                format!(
                    "the file has {rows} row(s); expected {expected} as in {schema}, or {with_events} if rows without events are omitted; create the cohort again",
                    rows = tensors.num_rows(),
                    expected = lengths.len(),
                    schema = self.schema.display()
                ),
            ));
        }
        // Index of the row of the tensors that belongs to row `row` of the schema file.
        let mut next = 0;
        for (row, expected) in lengths.iter().enumerate() {
            if !aligned && *expected == 0 {
                continue;
            }
            let found = layout.length(next);
            if found != *expected {
                *mismatch = Some(CountMismatch::Events);
                return Err(Error::file(
                    &self.tensors,
                    format!(
                        "row {next} has {found} event(s), but row {row} of the schema file {}, which is the same subject, has {expected} time(s); create the cohort again",
                        self.schema.display()
                    ),
                ));
            }
            next += 1;
        }
        Ok(())
    }

    /// Compares the measurements of events with `measurements_per_event` of the schema file. If the
    /// numbers differ, sets `mismatch` and returns an error.
    fn check_measurements(
        &self,
        events: &Layout,
        counts: &RaggedArray,
        mismatch: &mut Option<CountMismatch>,
    ) -> Result<()> {
        let counts = counts.leaves().as_primitive::<Int64Type>();
        if counts.len() != events.lists() || counts.null_count() > 0 {
            *mismatch = Some(CountMismatch::Measurements);
            return Err(Error::file(
                &self.schema,
                format!(
                    "the shard has {} event(s), but measurements_per_event has {} value(s), {} of them NULL; create the cohort again with one number per event",
                    events.lists(),
                    counts.len(),
                    counts.null_count()
                ),
            ));
        }
        let differs = |e: &usize| usize::try_from(counts.value(*e)).ok() != Some(events.length(*e));
        if let Some(event) = (0..events.lists()).find(differs) {
            *mismatch = Some(CountMismatch::Measurements);
            return Err(Error::file(
                &self.tensors,
                format!(
                    "event {event} of the shard has {found} measurement(s), but measurements_per_event in {schema} is {expected}; create the cohort again",
                    found = events.length(event),
                    schema = self.schema.display(),
                    expected = counts.value(event)
                ),
            ));
        }
        Ok(())
    }
}

struct SchemaFile {
    rows: usize,
    subjects: ArrayRef,
    start_time: Option<ArrayRef>,
    times: RaggedArray,
    measurements: Option<RaggedArray>,
    static_code: Option<RaggedArray>,
    static_value: Option<RaggedArray>,
}

impl SchemaFile {
    fn read(path: &Path) -> Result<Self> {
        let source = MedsFile::open(path)?;
        let columns = [
            "subject_id",
            "start_time",
            "time",
            "measurements_per_event",
            "static_code",
            "static_numeric_value",
        ];
        let batch = source.read(&columns, None)?;
        let required = |name: &str| source.require_column(&batch, name);
        let lists = |name: &str, values: &ArrayRef, leaf: DataType| -> Result<RaggedArray> {
            // A column in which every list is NULL may have the type Null, so cast it to a list
            // type.
            let list = Field::new_list_field(leaf.clone(), true);
            let values = match values.data_type() {
                DataType::Null => {
                    &source.cast_column(name, values, &DataType::List(list.into()))?
                }
                _ => values,
            };
            let array = RaggedArray::try_from_arrow(values)
                .map_err(|e| Error::file(path, format!("column {name:?}: {e}")))?;
            if array.ndim() != 2 {
                return Err(source.make_type_error(
                    name,
                    &format!("one list of {leaf} per row (create the cohort again)"),
                    values.data_type(),
                ));
            }
            let leaves = source.cast_column(name, array.leaves(), &leaf)?;
            array.with_leaves(leaves)
        };
        let optional = |name: &str, leaf: DataType| {
            batch.column_by_name(name).map(|values| lists(name, values, leaf)).transpose()
        };
        let subjects =
            source.cast_column("subject_id", required("subject_id")?, &DataType::Int64)?;
        if let Some(nulls) = subjects.nulls().filter(|n| n.null_count() > 0) {
            let row = nulls.iter().position(|valid| !valid).unwrap_or(0);
            return Err(source.make_value_error(
                "subject_id",
                row,
                "the value is NULL, but a value is required; create the cohort again",
            ));
        }
        let start_time = batch.column_by_name("start_time");
        Ok(Self {
            rows: batch.num_rows(),
            start_time: start_time
                .map(|t| source.cast_column("start_time", t, &find_time_type()))
                .transpose()?,
            times: lists("time", required("time")?, find_time_type())?,
            measurements: optional("measurements_per_event", DataType::Int64)?,
            static_code: optional("static_code", DataType::UInt32)?,
            static_value: optional("static_numeric_value", DataType::Float32)?,
            subjects,
        })
    }

    /// Combines columns of the tensors with subjects and times of the schema file. `lengths` has
    /// the number of events of each row; `inner` has one list of measurements per event.
    fn combine_events(
        &self,
        lengths: Vec<usize>,
        inner: &Layout,
        tensors: &RaggedTable,
    ) -> Result<RaggedTable> {
        let mut columns = vec![Column::new("subject_id", 0, self.subjects.clone())];
        columns.extend(self.start_time.clone().map(|t| Column::new("start_time", 0, t)));
        columns.push(Column::new("time", 1, self.times.leaves().clone()));
        let rest = tensors.columns().iter().filter(|c| c.axis() > 0);
        for column in rest {
            if columns.iter().all(|c| c.name() != column.name()) {
                columns.push(column.clone());
            }
        }
        let mut axes = vec![(None, Offsets::from_lengths(lengths)?.into()), (None, inner.clone())];
        axes.extend(tensors.axes().iter().skip(2).map(|a| (None, a.layout().clone())));
        let names = EVENT_AXES.into_iter().take(axes.len() + 1);
        RaggedTable::try_new(self.rows, None, axes, columns)?.with_axis_names(names)
    }

    fn read_statics(&self, path: &Path) -> Result<RaggedTable> {
        let mut builder = RaggedTable::builder().rows(self.rows).names(STATIC_AXES);
        let none =
            || Layout::from(Offsets::I32(arrow::buffer::OffsetBuffer::new_zeroed(self.rows)));
        let layout = match &self.static_code {
            // Use 32-bit offsets if they suffice, even if the file has 64-bit offsets.
            Some(codes) => {
                let layout = codes.axis(1)?.layout();
                Offsets::from_lengths((0..self.rows).map(|row| layout.length(row)))?.into()
            }
            None => none(),
        };
        if let Some(values) = &self.static_value
            && let Some(row) = values.axis(1)?.layout().first_difference(&layout)
        {
            return Err(Error::file(
                path,
                format!(
                    "row {row} has {} value(s) in static_code and {} value(s) in static_numeric_value, but both must have the same number; create the cohort again",
                    layout.length(row),
                    values.axis(1)?.layout().length(row)
                ),
            ));
        }
        let facts = layout.children();
        let leaves = |array: &Option<RaggedArray>, leaf: DataType| match array {
            Some(array) => array.leaves().clone(),
            None => arrow::array::new_null_array(&leaf, facts),
        };
        builder = builder
            .layout(layout)
            .column("subject_id", 0, self.subjects.clone())
            .column("static_code", 1, leaves(&self.static_code, DataType::UInt32))
            .column("static_numeric_value", 1, leaves(&self.static_value, DataType::Float32));
        builder.build()
    }
}

impl CohortTables {
    fn empty() -> Result<Self> {
        let none = |t: DataType| new_empty_array(&t);
        let events = RaggedTable::builder()
            .names(EVENT_AXES)
            .rows(0)
            .lengths([])?
            .lengths([])?
            .column("subject_id", 0, none(DataType::Int64))
            .column("time", 1, none(find_time_type()))
            .column("time_delta_days", 1, none(DataType::Float32))
            .column("code", 2, none(DataType::Int64))
            .column("numeric_value", 2, none(DataType::Float32))
            .build()?;
        let statics = RaggedTable::builder()
            .names(STATIC_AXES)
            .rows(0)
            .lengths([])?
            .column("subject_id", 0, none(DataType::Int64))
            .column("static_code", 1, none(DataType::UInt32))
            .column("static_numeric_value", 1, none(DataType::Float32))
            .build()?;
        Ok(Self { name: String::new(), events, statics })
    }
}

/// The codes of a vocabulary as an Arrow dictionary, which all columns of codes share.
struct CodeDictionary {
    /// Code of each token, indexed by token; an empty string for token 0 and unused tokens.
    texts: ArrayRef,
    id: String,
}

impl CodeDictionary {
    fn from_vocabulary(vocabulary: &Vocabulary) -> Result<Self> {
        let size = vocabulary.id().size();
        if vocabulary.dense_size().is_none() {
            return Err(Error::invalid(format!(
                "the largest token of the vocabulary is {}, but the vocabulary has only {} codes; number the codes in metadata/codes.parquet without large gaps",
                size - 1,
                vocabulary.len()
            )));
        }
        let texts: StringArray =
            (0..size).map(|token| Some(vocabulary.decode(token).unwrap_or_default())).collect();
        Ok(Self { texts: Arc::new(texts), id: vocabulary.id().to_string() })
    }

    fn decode_tables(&self, tables: CohortTables, needed: NeededColumns<'_>) -> Result<MedsShard> {
        let CohortTables { name, events, statics } = tables;
        let mut columns = vec![
            require_values(events.column("subject_id")?),
            require_values(events.column("time")?),
        ];
        if needed.has_column("time_delta_days") {
            let days = cast(events.column("time_delta_days")?.values(), &DataType::Float32)?;
            columns.push(Column::new("time_delta_days", 1, mask_nan(&days)));
        }
        self.append_codes("", events.column("code")?, needed, &mut columns)?;
        if needed.has_column("numeric_value") {
            let values = match events.column("numeric_value") {
                Ok(column) => cast(column.values(), &DataType::Float32)?,
                Err(_) => {
                    let len = events.column("code")?.values().len();
                    arrow::array::new_null_array(&DataType::Float32, len)
                }
            };
            columns.push(Column::new("numeric_value", 2, mask_nan(&values)));
        }
        let events = events.with_columns(columns)?;

        let mut columns = vec![require_values(statics.column("subject_id")?)];
        self.append_codes("static_", statics.column("static_code")?, needed, &mut columns)?;
        if needed.has_column("static_numeric_value") {
            let values = statics.column("static_numeric_value")?.values();
            columns.push(Column::new("static_numeric_value", 1, mask_nan(values)));
        }
        let statics = statics.with_columns(columns)?;
        Ok(MedsShard { name, events, statics })
    }

    fn append_codes(
        &self,
        prefix: &str,
        tokens: &Column,
        needed: NeededColumns<'_>,
        columns: &mut Vec<Column>,
    ) -> Result<()> {
        let (code, code_id) = (format!("{prefix}code"), format!("{prefix}code_id"));
        if !needed.has_column(&code) && !needed.has_column(&code_id) {
            return Ok(());
        }
        let (axis, tokens) = (tokens.axis(), cast_tokens(&code, tokens.values())?);
        let size = self.texts.len();
        if let Some(at) = tokens.values().iter().position(|t| *t as usize >= size) {
            return Err(Error::invalid(format!(
                "column {code}: token {token} at position {at} is not in the vocabulary, whose largest token is {largest}; correct metadata/codes.parquet or create the cohort again",
                token = tokens.value(at),
                largest = size.saturating_sub(1)
            )));
        }
        if needed.has_column(&code) {
            // Token 0, for padding and unknown codes, becomes NULL.
            let known = BooleanBuffer::collect_bool(tokens.len(), |i| tokens.value(i) != 0);
            let nulls = Some(NullBuffer::new(known)).filter(|n| n.null_count() > 0);
            let keys = UInt32Array::try_new(tokens.values().clone(), nulls)?;
            let texts = DictionaryArray::<UInt32Type>::try_new(keys, self.texts.clone())?;
            columns.push(Column::new(code, axis, Arc::new(texts)));
        }
        if needed.has_column(&code_id) {
            let id = Field::new(code_id, DataType::UInt32, false)
                .with_metadata([(VOCABULARY_METADATA.to_string(), self.id.clone())].into());
            columns.push(Column::with_field(Arc::new(id), axis, Arc::new(tokens)));
        }
        Ok(())
    }
}

fn require_values(column: &Column) -> Column {
    let field = Field::new(column.name(), column.data_type().clone(), false);
    Column::with_field(Arc::new(field), column.axis(), column.values().clone())
}

/// Casts a column of tokens to UInt32, with 0 for NULL. Returns an error for a token below 0 or
/// above 2^32 - 1.
fn cast_tokens(name: &str, values: &ArrayRef) -> Result<UInt32Array> {
    let wide = cast_integers(values).map_err(|e| match e {
        InexactCast::Cast(e) => Error::invalid(format!(
            "column {name}: a value is not a token from 0 to 4294967295; create the cohort again: {e}"
        )),
        _ => Error::invalid(format!(
            "column {name}: expected integers (create the cohort again), found {}",
            values.data_type()
        )),
    })?;
    let token = |(at, token): (usize, Option<i64>)| {
        let token = token.unwrap_or(0);
        u32::try_from(token).map_err(|_| {
            Error::invalid(format!(
                "column {name}: the value {token} at position {at} is not a token from 0 to 4294967295; create the cohort again"
            ))
        })
    };
    wide.iter().enumerate().map(|t| token(t).map(Some)).collect()
}

fn mask_nan(values: &ArrayRef) -> ArrayRef {
    let values: &Float32Array = values.as_primitive::<Float32Type>();
    let valid = BooleanBuffer::collect_bool(values.len(), |i| {
        values.is_valid(i) && !values.value(i).is_nan()
    });
    let nulls = Some(NullBuffer::new(valid)).filter(|n| n.null_count() > 0);
    Arc::new(Float32Array::new(values.values().clone(), nulls))
}
