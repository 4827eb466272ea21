//! Checks of whole data sets: MEDS folders and tensorized cohorts, their labels with them.
//!
//! [`check`] reads everything and lists what is wrong, each with file, position, what was found and
//! what was expected. It goes on after a finding, as far as that leaves something to look at.
//!
//! | check | severity | |
//! |---|---|---|
//! | `unreadable` | error | a file is damaged, or not what its format says |
//! | `pair` | error | tensors without a schema file, or the other way round |
//! | `columns`, `types` | error | a column is missing, or has another type than expected or in the first shard (labels: in the task's first file) |
//! | `null` | error | a subject, code or time is NULL where it may not be |
//! | `bounds` | error | lists end before they begin, or past their values |
//! | `rows`, `events`, `measurements` | error | tensors and schema file count differently |
//! | `order` | error | times go back, or the rows of a subject are apart |
//! | `delta`, `start-time` | error | `time_delta_days` or `start_time` is not what the times say |
//! | `subject-twice` | error | a subject is in two shards, or in two rows of one |
//! | `split` | error | a folder says another split than `subject_splits.parquet` |
//! | `no-split` | warning | a subject is in no split |
//! | `vocabulary` | error | `codes.parquet` is missing or gives a code no sound token |
//! | `token` | error | a token is not in the vocabulary |
//! | `unknown-code` | warning | a code is not in the vocabulary, or is the token 0 |
//! | `unseen-code` | warning | a code is kept back from train altogether |
//! | `infinite` | warning | numbers are infinite |
//! | `tasks` | warning | a folder has the labels of several tasks, which reading it mixes |
//! | `label-subject` | error | a label is about a subject that is not in the data |
//! | `label-split` | error | a label lies in the folder of another split than its subject |
//! | `label-early` | warning | nothing happened before a label |

mod cohort;
mod labels;
mod meds;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::io::meds_torch::TensorizedCohort;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing breaks.
    Warning,
    /// A model trained on it learns something wrong, or not at all.
    Error,
}

/// One kind of fault in one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Which check found it; see [the list](self).
    pub check: &'static str,
    /// The file.
    pub file: PathBuf,
    /// Where in it: that of the first, when there are several.
    pub position: String,
    /// What is there.
    pub found: String,
    /// What should be.
    pub expected: String,
    /// How often it is so in the file.
    pub count: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file.display())?;
        if !self.position.is_empty() {
            write!(f, "{}: ", self.position)?;
        }
        write!(f, "[{}] {}; expected {}", self.check, self.found, self.expected)?;
        if self.count > 1 {
            write!(f, " ({} times)", self.count)?;
        }
        Ok(())
    }
}

/// What a shard holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ShardFacts {
    /// Its name, such as `train/0`.
    pub name: String,
    /// Subjects.
    pub subjects: u64,
    /// Measurements with a time.
    pub measurements: u64,
    /// Measurements without one.
    pub statics: u64,
    /// Measurements with a time and without a number: NULL, which a tensor has as NaN.
    pub missing: u64,
    /// Those whose number is NaN where it could be NULL.
    pub nan: u64,
    /// Those whose number is infinite.
    pub infinite: u64,
}

/// The result of [`check`].
#[derive(Clone, Debug, Default, Serialize)]
pub struct Audit {
    /// `MEDS` or `tensorized cohort`.
    pub kind: &'static str,
    /// What was found, errors first, then by file.
    pub findings: Vec<Finding>,
    /// The shards that could be read.
    pub shards: Vec<ShardFacts>,
    /// Labels that were looked at.
    pub labels: u64,
}

impl Audit {
    /// Number of findings that are errors.
    pub fn errors(&self) -> usize {
        self.findings.iter().filter(|f| f.severity == Severity::Error).count()
    }

    /// Number of findings that are warnings.
    pub fn warnings(&self) -> usize {
        self.findings.len() - self.errors()
    }
}

/// Options of [`check`].
#[derive(Clone, Debug, Default)]
pub struct CheckOptions {
    /// Folder of labels; `labels` in the data set when there is one.
    pub labels: Option<PathBuf>,
}

/// Looks through a data set: a MEDS folder or a tensorized cohort.
///
/// Shards are read one after the other, so that memory is that of one shard, of the ids of all
/// subjects, and of the codes.
///
/// # Errors
/// When the folder is neither. What is wrong within it is a finding, not an error.
///
/// ```
/// use serrate::audit::{CheckOptions, check};
/// let audit = check("tests/data/synthea-meds", &CheckOptions::default())?;
/// assert_eq!(audit.errors(), 0);
/// // 27 codes of held_out and tuning are never seen in train.
/// assert!(audit.findings.iter().any(|f| f.check == "unseen-code"));
/// # Ok::<(), serrate::Error>(())
/// ```
pub fn check(root: impl AsRef<Path>, options: &CheckOptions) -> Result<Audit> {
    let root = root.as_ref();
    let mut log = Log::default();
    let mut audit = if TensorizedCohort::is_at(root) {
        cohort::check(root, &mut log)
    } else if root.join("data").is_dir() {
        meds::check(root, &mut log)
    } else if !root.exists() {
        return Err(Error::file(root, "there is no such folder"));
    } else {
        return Err(Error::file(
            root,
            "neither a MEDS data set nor a tensorized cohort: both have a folder data",
        ));
    }?;
    let own = root.join("labels");
    let folder = options.labels.clone().or_else(|| own.is_dir().then_some(own));
    if let Some(folder) = folder {
        audit.labels = labels::check(&folder, &mut log)?;
    }
    audit.findings = log.findings;
    audit.findings.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| a.file.cmp(&b.file)));
    Ok(audit)
}

/// Findings as they come in, and what later checks need of earlier ones.
#[derive(Debug, Default)]
struct Log {
    findings: Vec<Finding>,
    /// Position in `findings` by check and file.
    known: HashMap<(&'static str, PathBuf), usize>,
    subjects: HashMap<i64, SubjectFacts>,
    shards: Vec<ShardPlace>,
}

/// A shard by its name, file and split.
#[derive(Clone, Debug)]
struct ShardPlace {
    name: String,
    split: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct SubjectFacts {
    shard: usize,
    /// Number of the split in the file of splits.
    first_time: Option<i64>,
}

impl Log {
    fn error(
        &mut self,
        check: &'static str,
        file: &Path,
        position: impl FnOnce() -> String,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) {
        self.add(Severity::Error, check, file, position, || (found.into(), expected.into()));
    }

    fn warn(
        &mut self,
        check: &'static str,
        file: &Path,
        position: impl FnOnce() -> String,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) {
        self.add(Severity::Warning, check, file, position, || (found.into(), expected.into()));
    }

    /// Only the first of its kind in a file is described.
    fn add(
        &mut self,
        severity: Severity,
        check: &'static str,
        file: &Path,
        position: impl FnOnce() -> String,
        describe: impl FnOnce() -> (String, String),
    ) {
        if let Some(at) = self.known.get(&(check, file.to_path_buf())) {
            self.findings[*at].count += 1;
            return;
        }
        let (found, expected) = describe();
        self.known.insert((check, file.to_path_buf()), self.findings.len());
        self.findings.push(Finding {
            severity,
            check,
            file: file.to_path_buf(),
            position: position(),
            found,
            expected,
            count: 1,
        });
    }

    /// A subject of the shard that was begun last; a second appearance is a finding.
    fn subject(&mut self, file: &Path, row: usize, subject: i64) {
        let shard = self.shards.len().saturating_sub(1);
        let Some(before) = self.subjects.get(&subject).copied() else {
            self.subjects.insert(subject, SubjectFacts { shard, first_time: None });
            return;
        };
        let other = self.shards[before.shard].name.clone();
        let where_ = if before.shard == shard {
            "in this shard before".into()
        } else {
            format!("in {other}")
        };
        self.error(
            "subject-twice",
            file,
            || format!("row {row}"),
            format!("subject {subject}, which is {where_}"),
            "each subject in one shard, once",
        );
    }

    fn first_time(&mut self, subject: i64, time: i64) {
        if let Some(facts) = self.subjects.get_mut(&subject) {
            facts.first_time = Some(facts.first_time.map_or(time, |t| t.min(time)));
        }
    }
}

/// The names of some things and how many more there are.
fn some<S: AsRef<str>>(names: impl ExactSizeIterator<Item = S>) -> String {
    let all = names.len();
    let shown: Vec<String> = names.take(5).map(|n| n.as_ref().to_string()).collect();
    let more = all.saturating_sub(shown.len());
    match more {
        0 => shown.join(", "),
        more => format!("{}, .. ({more} more)", shown.join(", ")),
    }
}

/// What is wrong, without the file, which a finding names already.
fn message(e: &Error) -> String {
    match e {
        Error::File { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

/// A time for people.
fn moment(microseconds: i64) -> String {
    arrow::temporal_conversions::timestamp_us_to_datetime(microseconds)
        .map_or_else(|| format!("{microseconds} µs"), |t| t.to_string())
}
