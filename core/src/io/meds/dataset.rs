//! MEDS data sets: the shards, splits and metadata of a folder.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, SchemaRef};

use super::file::MedsFile;
use super::plain_types::unify_types;
use super::shard::{MeasurementColumns, MedsShard, MedsShardFile, NeededColumns};
use super::sources::{DatasetFiles, MedsReadOptions};
use super::vocabulary::Vocabulary;
use crate::access;
use crate::error::{Error, Result};
use crate::io::hidden_names::is_hidden;
use crate::io::lease::complete_commits;
use crate::io::natural_order::make_natural_key;

/// A MEDS data set: `data/**/*.parquet` with one row per measurement, and `metadata/`.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::meds::MedsDataset;
/// let data = MedsDataset::open("../tests/data/synthea-meds")?;
/// assert!(data.root().ends_with("synthea-meds"));
/// for shard in data.shards() {
///     let shard = shard.read(&Default::default())?;
///     println!("{}: {} subjects", shard.name, shard.events.num_rows());
/// }
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MedsDataset {
    inner: Arc<DatasetFiles>,
}

impl MedsDataset {
    /// Opens a folder: finds its shards, sorts them by path and reads their footers.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::MedsDataset;
    /// let data = MedsDataset::open("../tests/data/synthea-meds")?;
    /// assert_eq!(data.shards().len(), 4);
    /// assert!(MedsDataset::open("../tests/data/synthea-meds/metadata").is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no `data` folder or no Parquet file in it, a file is not Parquet or lacks
    /// `subject_id`, `time` or `code`, or the types of a column in two shards have no common type.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref().to_path_buf();
        let data = root.join("data");
        if !access::exists(&root) {
            return Err(Error::io(
                root,
                io::Error::new(
                    io::ErrorKind::NotFound,
                    "the folder does not exist; give the folder of a MEDS data set",
                ),
            ));
        }
        if !access::exists(&data) {
            return Err(Error::file(
                root,
                "the folder is not a MEDS data set; give a folder that has shards in data/**/*.parquet",
            ));
        }
        complete_commits(&root)?;
        let shards = open_shards(&data)?;
        if shards.is_empty() {
            return Err(Error::file(
                root,
                "the sub-folder data has no *.parquet file; give a MEDS data set, which has its shards in data/**/*.parquet",
            ));
        }
        let inner = DatasetFiles {
            root,
            further: unify_further_columns(&shards)?,
            shards,
            vocabulary: OnceLock::new(),
            subjects: Mutex::default(),
            distinct: OnceLock::new(),
        };
        let path = inner.root.join("metadata").join("codes.parquet");
        if access::exists(&path) {
            inner.vocabulary.set(Vocabulary::read(path)?).ok();
        }
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the folder of the data set.
    pub fn root(&self) -> &Path {
        &self.inner.root
    }

    /// Returns whether no subject is in two shards. Reads only the footers of the shards and, if
    /// these do not suffice, their column `subject_id`. Returns false, too, if a file cannot be
    /// read, or if the shards have too many rows or subjects to find out in about a second.
    #[doc(hidden)]
    pub fn has_distinct_subjects(&self) -> bool {
        self.inner.has_distinct_subjects()
    }

    /// Returns an error that names both files if another shard that was read has one of `ids`.
    pub(crate) fn check_subjects(&self, shard: usize, ids: &[i64]) -> Result<()> {
        self.inner.check_subjects(shard, ids)
    }

    pub(crate) fn sources(&self) -> &[(String, MedsFile)] {
        &self.inner.shards
    }

    /// Returns the shards in the order of their names (`train/2` before `train/10`).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::MedsDataset;
    /// let data = MedsDataset::open("../tests/data/synthea-meds")?;
    /// let names: Vec<_> = data.shards().map(|shard| shard.name().to_owned()).collect();
    /// assert_eq!(names, ["held_out/0", "train/0", "train/1", "tuning/0"]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn shards(&self) -> impl ExactSizeIterator<Item = MedsShardFile> + '_ {
        (0..self.inner.shards.len())
            .map(|index| MedsShardFile { dataset: Arc::clone(&self.inner), index })
    }

    /// Returns a shard by name, such as `train/0`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::MedsDataset;
    /// let data = MedsDataset::open("../tests/data/synthea-meds")?;
    /// assert_eq!(data.shard("tuning/0")?.num_measurements()?, 2410);
    /// assert!(data.shard("tuning/1").is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such shard; the message lists some names.
    pub fn shard(&self, name: &str) -> Result<MedsShardFile> {
        self.shards().find(|s| s.name() == name).ok_or_else(|| {
            let known = self.inner.shards.iter().map(|(name, _)| name.as_str());
            make_missing_shard_error(&self.inner.root, name, known)
        })
    }

    /// Returns the codes and their tokens, which all shards share.
    ///
    /// The tokens are read from the column `code/vocab_index` of `metadata/codes.parquet`. Without
    /// this column, codes in the file are sorted by their bytes and numbered in this order. If the
    /// file does not exist, the codes of all shards are read once, sorted and numbered.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::MedsDataset;
    /// let data = MedsDataset::open("../tests/data/synthea-meds")?;
    /// assert_eq!(data.vocabulary()?.len(), 400);
    /// assert_eq!(data.vocabulary()?.decode(1), Some("BIRTH_YEAR"));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the codes of a shard cannot be read.
    pub fn vocabulary(&self) -> Result<&Vocabulary> {
        self.inner.vocabulary()
    }

    /// Returns the schema of [`MedsShard::to_batch`], which is the same for every shard.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::MedsDataset;
    /// let data = MedsDataset::open("../tests/data/synthea-meds")?;
    /// let schema = data.schema(&Default::default())?;
    /// assert!(schema.field_with_name("code").is_ok() && schema.field_with_name("time").is_ok());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`MedsShardFile::read`].
    pub fn schema(&self, options: &MedsReadOptions) -> Result<SchemaRef> {
        let further = self.inner.find_additional_columns(options)?;
        let (_, source) = &self.inner.shards[0];
        let empty = RecordBatch::new_empty(Arc::clone(source.schema()));
        let (events, statics) = MeasurementColumns::new(
            source,
            &empty,
            &further,
            self.inner.vocabulary()?,
            NeededColumns::ALL,
        )?
        .nest_tables(options.unsorted)?;
        Ok(MedsShard { name: String::new(), events, statics }.to_batch()?.schema())
    }

    /// Reads `metadata/subject_splits.parquet`: subjects and their splits; `None` without the file.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::MedsDataset;
    /// let data = MedsDataset::open("../tests/data/synthea-meds")?;
    /// let splits = data.subject_splits()?;
    /// assert!(splits.is_none_or(|splits| splits.iter().all(|(_, split)| !split.is_empty())));
    /// let shard = data.shard("train/0")?;
    /// assert!(shard.path().starts_with(data.root()) && shard.num_measurements()? > 0);
    /// let read = shard.read(&Default::default())?;
    /// assert_eq!((shard.name(), read.name.as_str()), ("train/0", "train/0"));
    /// assert_eq!(read.to_batch()?.schema(), data.schema(&Default::default())?);
    /// assert!(data.vocabulary()?.len() > 0);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read or lacks the columns `subject_id` and `split`.
    pub fn subject_splits(&self) -> Result<Option<Vec<(i64, String)>>> {
        read_splits(&self.inner.root)
    }
}

pub(super) fn read_splits(root: &Path) -> Result<Option<Vec<(i64, String)>>> {
    let path = root.join("metadata").join("subject_splits.parquet");
    if !access::exists(&path) {
        return Ok(None);
    }
    let source = MedsFile::open(path)?;
    let batch = source.read(&["subject_id", "split"], None)?;
    let column = |name| source.require_column(&batch, name);
    let ids = source.cast_column("subject_id", column("subject_id")?, &DataType::Int64)?;
    let splits = source.cast_column("split", column("split")?, &DataType::Utf8)?;
    let pairs = ids.as_primitive::<Int64Type>().iter().zip(splits.as_string::<i32>());
    pairs
        .enumerate()
        .map(|(row, (id, split))| match (id, split) {
            (Some(id), Some(split)) => Ok((id, split.to_string())),
            (None, _) => Err(source.make_value_error(
                "subject_id",
                row,
                "the value is NULL, but MEDS requires a value; correct the row or remove it",
            )),
            (_, None) => Err(source.make_value_error(
                "split",
                row,
                "the value is NULL, but MEDS requires a value; correct the row or remove it",
            )),
        })
        .collect::<Result<_>>()
        .map(Some)
}

/// Opens the Parquet files in a folder and its subfolders, in natural order, each with its name.
fn open_shards(data: &Path) -> Result<Vec<(String, MedsFile)>> {
    let mut found = Vec::new();
    for entry in access::walk_folder(data) {
        let entry = entry?;
        let path = entry.path();
        let hidden = is_hidden(path.strip_prefix(data).unwrap_or(path));
        if entry.file_type().is_file()
            && path.extension().is_some_and(|e| e == "parquet")
            && !hidden
        {
            found.push((format_shard_name(data, path), path.to_path_buf()));
        }
    }
    found.sort_by_cached_key(|(name, _)| make_natural_key(name));
    found.into_iter().map(|(name, path)| Ok((name, MedsFile::open(path)?))).collect()
}

/// Returns the columns of all shards that MEDS does not define, with common types. Returns an error
/// if a shard lacks a column that MEDS requires.
fn unify_further_columns(shards: &[(String, MedsFile)]) -> Result<Vec<Field>> {
    let mut further: Vec<Field> = Vec::new();
    for (_, source) in shards {
        for name in ["subject_id", "time", "code"] {
            if source.schema().field_with_name(name).is_err() {
                return Err(source.make_missing_column_error(name));
            }
        }
        for field in source.schema().fields() {
            if !["subject_id", "time", "code", "numeric_value"].contains(&field.name().as_str()) {
                unify_column(&mut further, field, source)?;
            }
        }
    }
    Ok(further)
}

fn unify_column(further: &mut Vec<Field>, field: &Field, source: &MedsFile) -> Result<()> {
    match further.iter_mut().find(|f| f.name() == field.name()) {
        None => further.push(Field::new(field.name(), field.data_type().clone(), true)),
        Some(known) => {
            let unified = unify_types(known.data_type(), field.data_type()).ok_or_else(|| {
                let expected = format!("{} as in the earlier shards", known.data_type());
                source.make_type_error(field.name(), &expected, field.data_type())
            })?;
            known.set_data_type(unified);
        }
    }
    Ok(())
}

fn format_shard_name(data: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(data).unwrap_or(path).with_extension("");
    let parts: Vec<_> =
        relative.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
    parts.join("/")
}

/// Returns the error for a shard `name` that the data set in the folder `root` does not have. The
/// message lists the first names of `known`, the shards of the data set.
pub(crate) fn make_missing_shard_error<'a>(
    root: &Path,
    name: &str,
    mut known: impl Iterator<Item = &'a str>,
) -> Error {
    let listed: Vec<&str> = known.by_ref().take(10).collect();
    let more = if known.next().is_some() { ", .." } else { "" };
    Error::file(
        root,
        format!("there is no shard {name:?}; choose one of {}{more}", listed.join(", ")),
    )
}
