//! [`MedsDataset`]: a folder of shards with their metadata.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type, SchemaRef};
use walkdir::WalkDir;

use super::file::Source;
use super::shard::{DERIVED, Long, MedsShard, Needed, Shard};
use super::vocabulary::Vocabulary;
use crate::error::{Error, Result};
use crate::io::listing::is_hidden;
use crate::io::order::natural;
use crate::table::{Unsorted, promote_types};

/// Options of [`Shard::read`].
#[derive(Clone, Debug)]
pub struct MedsOptions {
    /// Which columns to take besides `subject_id`, `time`, `code` and `numeric_value`; `None` for all
    /// that any shard has. One that a shard lacks is NULL there. Refused: a name that no shard has,
    /// or that reading makes itself (such as `code_id`).
    pub columns: Option<Vec<String>>,
    /// Rows that are not in the order of subject and time, as MEDS wants them: sorted (the default;
    /// equal ones keep their order) or refused.
    pub unsorted: Unsorted,
    /// Whether a subject may have measurements in several shards, each of which then has a row for it.
    /// MEDS keeps a subject in one shard: otherwise (the default) reading the second shard with a
    /// subject is an error that names both. Shards that nobody reads are not looked at.
    pub shared_subjects: bool,
}

impl Default for MedsOptions {
    fn default() -> Self {
        Self { columns: None, unsorted: Unsorted::Sort, shared_subjects: false }
    }
}

/// A MEDS data set: `data/**/*.parquet` with one row per measurement, and `metadata/`.
///
/// ```
/// use serrate::io::meds::MedsDataset;
/// let data = MedsDataset::open("tests/data/synthea-meds")?;
/// for shard in data.shards() {
///     let shard = shard.read(&Default::default())?;
///     println!("{}: {} subjects", shard.name, shard.events.num_rows());
/// }
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MedsDataset {
    inner: Arc<Dataset>,
}

/// What all shards share.
#[derive(Debug)]
pub(super) struct Dataset {
    root: PathBuf,
    /// By path.
    pub(super) shards: Vec<(String, Source)>,
    /// Columns beyond those of MEDS, of all shards, with the types they unify to.
    further: Vec<Field>,
    vocabulary: OnceLock<Vocabulary>,
    /// The shard that each subject read so far lies in.
    subjects: Mutex<HashMap<i64, usize>>,
}

impl MedsDataset {
    /// Opens a folder: finds its shards, sorted by path, and reads their footers.
    ///
    /// # Errors
    /// When there is no `data` folder or no Parquet file in it, a file is not Parquet or lacks
    /// `subject_id`, `time` or `code`, or shards have a column in types that do not unify.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref().to_path_buf();
        let data = root.join("data");
        if !root.exists() {
            return Err(Error::file(root, "there is no such folder"));
        }
        if !data.is_dir() {
            return Err(Error::file(
                root,
                "no MEDS data set: that is a folder with its shards in data/**/*.parquet",
            ));
        }
        let mut found = Vec::new();
        for entry in WalkDir::new(&data).follow_links(true) {
            let entry = entry.map_err(|e| {
                let path = e.path().unwrap_or(&data).to_path_buf();
                let cause = e.into_io_error();
                Error::io(path, cause.unwrap_or_else(|| std::io::Error::other("a loop of links")))
            })?;
            let path = entry.path();
            let hidden = is_hidden(path.strip_prefix(&data).unwrap_or(path));
            if entry.file_type().is_file()
                && path.extension().is_some_and(|e| e == "parquet")
                && !hidden
            {
                found.push((shard_name(&data, path), path.to_path_buf()));
            }
        }
        if found.is_empty() {
            return Err(Error::file(
                root,
                "no *.parquet file in its folder data; a MEDS data set has its shards there",
            ));
        }
        found.sort_by_cached_key(|(name, _)| natural(name));
        let shards = found
            .into_iter()
            .map(|(name, path)| Ok((name, Source::open(path)?)))
            .collect::<Result<Vec<_>>>()?;
        let mut further: Vec<Field> = Vec::new();
        for (_, source) in &shards {
            for name in ["subject_id", "time", "code"] {
                if source.schema().field_with_name(name).is_err() {
                    return Err(source.no_column(name));
                }
            }
            for field in source.schema().fields() {
                if !["subject_id", "time", "code", "numeric_value"].contains(&field.name().as_str())
                {
                    unify(&mut further, field, source)?;
                }
            }
        }
        let inner = Dataset {
            root,
            shards,
            further,
            vocabulary: OnceLock::new(),
            subjects: Mutex::default(),
        };
        let path = inner.root.join("metadata").join("codes.parquet");
        if path.exists() {
            inner.vocabulary.set(Vocabulary::read(path)?).ok();
        }
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.inner.root
    }

    /// Names and files of the shards, in order.
    pub(crate) fn sources(&self) -> &[(String, Source)] {
        &self.inner.shards
    }

    /// The shards in the order of their names (`train/2` before `train/10`).
    pub fn shards(&self) -> impl ExactSizeIterator<Item = Shard> + '_ {
        (0..self.inner.shards.len()).map(|index| Shard { dataset: Arc::clone(&self.inner), index })
    }

    /// A shard by name, such as `train/0`.
    ///
    /// # Errors
    /// When there is none; the message lists some that are.
    pub fn shard(&self, name: &str) -> Result<Shard> {
        self.shards().find(|s| s.name() == name).ok_or_else(|| {
            let names: Vec<&str> =
                self.inner.shards.iter().take(10).map(|(n, _)| n.as_str()).collect();
            let more = if self.inner.shards.len() > 10 { ", .." } else { "" };
            Error::file(
                &self.inner.root,
                format!("no shard {name:?}; the shards are {}{more}", names.join(", ")),
            )
        })
    }

    /// The codes and their tokens, one for all shards.
    ///
    /// From `metadata/codes.parquet`: its `code/vocab_index`, else the order of its codes. Without
    /// that file, the order of all codes in the data, which are read once for it.
    ///
    /// # Errors
    /// When the codes of a shard cannot be read.
    pub fn vocabulary(&self) -> Result<&Vocabulary> {
        self.inner.vocabulary()
    }

    /// The schema of [`MedsShard::to_batch`], the same for every shard.
    ///
    /// # Errors
    /// As [`Shard::read`] for its options.
    pub fn schema(&self, options: &MedsOptions) -> Result<SchemaRef> {
        let further = self.inner.further(options)?;
        let (_, source) = &self.inner.shards[0];
        let empty = RecordBatch::new_empty(Arc::clone(source.schema()));
        let (events, statics) =
            Long::new(source, &empty, &further, self.inner.vocabulary()?, Needed::ALL)?
                .nest(options.unsorted)?;
        Ok(MedsShard { name: String::new(), events, statics }.to_batch()?.schema())
    }

    /// `metadata/subject_splits.parquet`: subjects and their splits (`train`, `tuning`, `held_out`);
    /// `None` without that file.
    ///
    /// # Errors
    /// When the file cannot be read or lacks the columns `subject_id` and `split`.
    pub fn subject_splits(&self) -> Result<Option<Vec<(i64, String)>>> {
        read_splits(&self.inner.root)
    }
}

impl Dataset {
    pub(super) fn vocabulary(&self) -> Result<&Vocabulary> {
        if let Some(v) = self.vocabulary.get() {
            return Ok(v);
        }
        let mut codes = std::collections::BTreeSet::new();
        for (_, source) in &self.shards {
            let batch = source.read(&["code"], Some("code"))?;
            let code = batch.column_by_name("code").ok_or_else(|| source.no_column("code"))?;
            let values = match code.as_any_dictionary_opt() {
                Some(d) => d.values().clone(),
                None => code.clone(),
            };
            let values = cast(&values, &DataType::Utf8)?;
            for code in values.as_string::<i32>().iter().flatten() {
                if !codes.contains(code) {
                    codes.insert(code.to_string());
                }
            }
        }
        let vocabulary = Vocabulary::from_codes(codes)?;
        // Another thread may have been first: its result is the same.
        Ok(self.vocabulary.get_or_init(|| vocabulary))
    }

    /// Refuses subjects that a shard read before has too.
    pub(super) fn check_subjects(&self, shard: usize, ids: &[i64]) -> Result<()> {
        let mut subjects = self.subjects.lock().unwrap_or_else(PoisonError::into_inner);
        subjects.reserve(ids.len());
        for id in ids {
            let first = *subjects.entry(*id).or_insert(shard);
            if first != shard {
                // In the order of the shards, whichever was read first.
                let (a, b) = (first.min(shard), first.max(shard));
                return Err(Error::file(
                    self.shards[a].1.path(),
                    format!(
                        "subject {id} is here and in {} as well; MEDS has all of a subject in one shard: join the files, or allow it (`shared_subjects`, in SQL `SET serrate.meds_shared_subjects = true`) and get one row from each",
                        self.shards[b].1.path().display()
                    ),
                ));
            }
        }
        Ok(())
    }

    /// The further columns that the options ask for.
    pub(super) fn further(&self, options: &MedsOptions) -> Result<Vec<Field>> {
        let chosen = match &options.columns {
            None => self.further.clone(),
            Some(names) => names
                .iter()
                .map(|n| {
                    self.further.iter().find(|f| f.name() == n).cloned().ok_or_else(|| {
                        let available: Vec<_> =
                            self.further.iter().map(|f| f.name().as_str()).collect();
                        Error::NoSuchColumn { name: n.clone(), available: available.join(", ") }
                    })
                })
                .collect::<Result<_>>()?,
        };
        let made = |name: &str| {
            // The static facts of a column `X` are `static_X`.
            let base = name.strip_prefix("static_");
            DERIVED.contains(&name) || base.is_some_and(|b| chosen.iter().any(|f| f.name() == b))
        };
        match chosen.iter().find(|f| made(f.name())) {
            Some(f) => Err(Error::file(
                &self.root,
                format!(
                    "column {:?} has the name of one that is made in reading; rename it in the files, or name the columns to take, without it",
                    f.name()
                ),
            )),
            None => Ok(chosen),
        }
    }
}

/// The subjects of a data set's `subject_splits.parquet` with their splits.
pub(super) fn read_splits(root: &Path) -> Result<Option<Vec<(i64, String)>>> {
    let path = root.join("metadata").join("subject_splits.parquet");
    if !path.exists() {
        return Ok(None);
    }
    let source = Source::open(path)?;
    let batch = source.read(&["subject_id", "split"], None)?;
    let column = |name| batch.column_by_name(name).ok_or_else(|| source.no_column(name));
    let ids = source.cast("subject_id", column("subject_id")?, &DataType::Int64)?;
    let splits = source.cast("split", column("split")?, &DataType::Utf8)?;
    let pairs = ids.as_primitive::<Int64Type>().iter().zip(splits.as_string::<i32>());
    pairs
        .enumerate()
        .map(|(row, (id, split))| match (id, split) {
            (Some(id), Some(split)) => Ok((id, split.to_string())),
            (None, _) => Err(source.wrong_value("subject_id", row, "NULL")),
            (_, None) => Err(source.wrong_value("split", row, "NULL")),
        })
        .collect::<Result<_>>()
        .map(Some)
}

fn unify(further: &mut Vec<Field>, field: &Field, source: &Source) -> Result<()> {
    match further.iter_mut().find(|f| f.name() == field.name()) {
        None => further.push(Field::new(field.name(), field.data_type().clone(), true)),
        Some(known) => {
            let unified = promote_types(known.data_type(), field.data_type()).ok_or_else(|| {
                let expected = format!("{} as in the shards before", known.data_type());
                source.wrong_type(field.name(), &expected, field.data_type())
            })?;
            known.set_data_type(unified);
        }
    }
    Ok(())
}

fn shard_name(data: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(data).unwrap_or(path).with_extension("");
    let parts: Vec<_> =
        relative.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
    parts.join("/")
}
