use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field};

use super::distinct_subjects::has_distinct_subjects;
use super::file::MedsFile;
use super::vocabulary::Vocabulary;
use crate::error::{Error, Result};
use crate::locks::lock_mutex;
use crate::table::UnsortedRows;

/// Columns that are computed on reading. A column of a file must not have such a name.
const DERIVED: [&str; 5] =
    ["time_delta_days", "code_id", "static_code", "static_code_id", "static_numeric_value"];

/// Options of [`MedsShardFile::read`](super::MedsShardFile::read).
#[derive(Clone, Debug)]
pub struct MedsReadOptions {
    /// Columns to read in addition to `subject_id`, `time`, `code` and `numeric_value`; `None` for
    /// all columns that any shard has. A column that a shard lacks is NULL there. A name that no
    /// shard has, or the name of a column that is computed when the files are read (such as
    /// `code_id`), is an error.
    pub columns: Option<Vec<String>>,
    /// Treatment of rows not ordered by subject and time: a stable sort (default) or an error.
    pub unsorted: UnsortedRows,
    /// Whether a subject may be in several shards, with a row in each. MEDS forbids it: by default,
    /// reading a second shard with the subject is an error. Unread shards are not checked.
    pub shared_subjects: bool,
}

impl Default for MedsReadOptions {
    fn default() -> Self {
        Self { columns: None, unsorted: UnsortedRows::Sort, shared_subjects: false }
    }
}

/// The files of a data set, and the columns, vocabulary and subjects that its shards share.
#[derive(Debug)]
pub(super) struct DatasetFiles {
    pub(super) root: PathBuf,
    /// Names and files of the shards, sorted by path.
    pub(super) shards: Vec<(String, MedsFile)>,
    /// Columns other than the four standard columns, with the common type of each in all shards.
    pub(super) further: Vec<Field>,
    pub(super) vocabulary: OnceLock<Vocabulary>,
    /// Index of the shard of each subject read so far.
    pub(super) subjects: Mutex<HashMap<i64, usize>>,
    /// Whether no subject is in two shards. Unset until a caller asks for it.
    pub(super) distinct: OnceLock<bool>,
}

impl DatasetFiles {
    pub(super) fn vocabulary(&self) -> Result<&Vocabulary> {
        if let Some(v) = self.vocabulary.get() {
            return Ok(v);
        }
        let mut codes = BTreeSet::new();
        for (_, source) in &self.shards {
            let batch = source.read(&["code"], Some("code"))?;
            let code = source.require_column(&batch, "code")?;
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
        // Another thread may have set the vocabulary first: that one is equal, so return it.
        Ok(self.vocabulary.get_or_init(|| vocabulary))
    }

    pub(super) fn has_distinct_subjects(&self) -> bool {
        *self.distinct.get_or_init(|| has_distinct_subjects(&self.shards))
    }

    pub(super) fn check_subjects(&self, shard: usize, ids: &[i64]) -> Result<()> {
        let mut subjects = lock_mutex(&self.subjects);
        subjects.reserve(ids.len());
        for id in ids {
            let first = *subjects.entry(*id).or_insert(shard);
            if first != shard {
                // Order by index, so that the message does not depend on the order of reading.
                let (a, b) = (first.min(shard), first.max(shard));
                return Err(Error::file(
                    self.shards[a].1.path(),
                    format!(
                        "subject {id} is also in {}, but MEDS keeps all rows of a subject in one shard; merge the files, or allow subjects in several shards (`shared_subjects`, in SQL `SET serrate.meds_shared_subjects = true`) to get one row per shard",
                        self.shards[b].1.path().display()
                    ),
                ));
            }
        }
        Ok(())
    }

    pub(super) fn find_additional_columns(&self, options: &MedsReadOptions) -> Result<Vec<Field>> {
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
            // The static facts of a column `X` become `static_X`, so no other column may have that
            // name.
            let base = name.strip_prefix("static_");
            DERIVED.contains(&name) || base.is_some_and(|b| chosen.iter().any(|f| f.name() == b))
        };
        match chosen.iter().find(|f| made(f.name())) {
            Some(f) => Err(Error::file(
                &self.root,
                format!(
                    "column {:?} of the files has the name of a column that is computed when they are read; rename it in the files, or leave it out of the columns to read",
                    f.name()
                ),
            )),
            None => Ok(chosen),
        }
    }
}
