//! Checks of whole data sets: MEDS folders and tensorized cohorts, with their labels.
//!
//! [`check`] reads everything and lists the faults, each with file, position, and the found and
//! expected values. It continues after a finding as far as possible. [`KINDS`] lists the kinds of
//! findings.

mod code_table;
mod column_types;
mod kinds;
mod labels;
mod meds;
mod metadata;
mod subject_timeline;
mod tensorized_cohort;
mod time_checks;

pub use kinds::{FindingKind, KINDS};

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::access;
use crate::error::{Error, Result};
use crate::io::meds_torch::TensorizedCohort;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A fault that is notable but breaks nothing.
    Warning,
    /// A fault that makes a model learn something wrong from the data, or prevents its training.
    Error,
}

/// A fault found in a file, or in one column of a file.
///
/// If the fault occurs several times, the position and the values are those of the first
/// occurrence, and `count` is the number of all occurrences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Whether the finding is an error or only a warning.
    pub severity: Severity,
    /// The kind of the finding, which is the name of one of [`KINDS`].
    pub check: &'static str,
    /// The file with the fault.
    pub file: PathBuf,
    /// Position of the first occurrence in the file.
    pub position: String,
    /// The value or type found.
    pub found: String,
    /// The value or type expected.
    pub expected: String,
    /// Number of occurrences in the file, or in the column.
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

/// Number of subjects and measurements of a shard (one data file of the data set).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ShardFacts {
    /// Name of the shard, such as `train/0`.
    pub name: String,
    /// Number of subjects.
    pub subjects: u64,
    /// Number of measurements with a time.
    pub measurements: u64,
    /// Number of measurements without a time.
    pub statics: u64,
    /// Number of measurements with a time but a NULL `numeric_value`, which becomes NaN in a
    /// tensor.
    pub missing: u64,
    /// Number of measurements with a time whose `numeric_value` is NaN instead of NULL.
    pub nan: u64,
    /// Number of measurements with a time whose `numeric_value` is infinite.
    pub infinite: u64,
}

/// The result of [`check`].
#[derive(Clone, Debug, Default, Serialize)]
pub struct Audit {
    /// `MEDS` or `tensorized cohort`.
    pub kind: &'static str,
    /// All errors in the order of the files, then all warnings in the order of the files.
    pub findings: Vec<Finding>,
    /// Counts of each readable shard.
    pub shards: Vec<ShardFacts>,
    /// Number of labels checked.
    pub labels: u64,
}

impl Audit {
    /// Returns the number of findings that are errors.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::audit::{CheckOptions, check};
    /// let audit = check("../tests/data/synthea-meds", &CheckOptions::default())?;
    /// assert_eq!((audit.kind, audit.errors()), ("MEDS", 0));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn errors(&self) -> usize {
        self.findings.iter().filter(|f| f.severity == Severity::Error).count()
    }

    /// Returns the number of findings that are warnings.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::audit::{CheckOptions, check};
    /// let audit = check("../tests/data/synthea-meds", &CheckOptions::default())?;
    /// assert_eq!(audit.errors(), 0);
    /// assert_eq!(audit.warnings(), audit.findings.len());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn warnings(&self) -> usize {
        self.findings.len() - self.errors()
    }
}

/// Options of [`check`].
#[derive(Clone, Debug, Default)]
pub struct CheckOptions {
    /// Folder of labels; by default `labels` in the data set, if it exists.
    pub labels: Option<PathBuf>,
}

/// Checks a data set: a MEDS folder or a tensorized cohort.
///
/// Shards are read one after the other, in batches. Memory holds one batch, one subject, the ids of
/// all subjects, the codes, and the labels of one task.
///
/// # Errors
/// If `root` is not a data set, a folder cannot be listed, or the labels of `options` do not exist.
/// Faults in the data are not errors: they are returned as findings.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::audit::{CheckOptions, check};
/// let audit = check("../tests/data/synthea-meds", &CheckOptions::default())?;
/// assert_eq!(audit.errors(), 0);
/// // 27 codes of held_out and tuning are never seen in train.
/// assert!(audit.findings.iter().any(|f| f.check == "unseen-code"));
/// # Ok::<(), serrate::Error>(())
/// ```
pub fn check(root: impl AsRef<Path>, options: &CheckOptions) -> Result<Audit> {
    let root = root.as_ref();
    let mut log = AuditLog::default();
    let mut audit = if TensorizedCohort::is_at(root) {
        tensorized_cohort::check_cohort(root, &mut log)
    } else if access::exists(root.join("data")) {
        meds::check_meds(root, &mut log)
    } else if !access::exists(root) {
        return Err(Error::io(
            root,
            io::Error::new(
                io::ErrorKind::NotFound,
                "the folder does not exist; give the folder of a MEDS data set or a tensorized cohort",
            ),
        ));
    } else {
        return Err(Error::file(
            root,
            "the folder is neither a MEDS data set nor a tensorized cohort; give a folder with data/**/*.parquet (MEDS), or with data/**/*.nrt and tokenization/schemas (cohort)",
        ));
    }?;
    let own = root.join("labels");
    let folder = options.labels.clone().or_else(|| access::is_dir(&own).then_some(own));
    if let Some(folder) = folder {
        audit.labels = labels::check_labels(&folder, &mut log)?;
    }
    audit.findings = log.findings;
    audit.findings.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| a.file.cmp(&b.file)));
    Ok(audit)
}

/// Findings, and facts about shards and subjects that later checks use.
#[derive(Debug, Default)]
struct AuditLog {
    findings: Vec<Finding>,
    /// The keys of the findings of each file. If a further fault has one of these keys, the count
    /// of the finding increases, and no finding is added.
    known: HashMap<PathBuf, Vec<FindingKey>>,
    subjects: HashMap<i64, SubjectFacts>,
    shards: Vec<ShardPlace>,
}

/// Identifies a finding. If the same fault occurs again, only the count of the finding increases.
#[derive(Debug)]
struct FindingKey {
    check: &'static str,
    /// Column or field that the finding is about; empty for a check with one finding per file.
    about: String,
    at: usize,
}

#[derive(Clone, Debug)]
struct ShardPlace {
    name: String,
    split: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct SubjectFacts {
    shard: usize,
    span: Option<(i64, i64)>,
}

impl AuditLog {
    fn add_finding(
        &mut self,
        check: &'static str,
        file: &Path,
        position: impl FnOnce() -> String,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) {
        self.add_finding_about("", check, file, position, found, expected);
    }

    fn add_unreadable(&mut self, file: &Path, error: &Error, expected: &str) {
        self.add_finding("unreadable", file, String::new, describe_core_error(error), expected);
    }

    /// Adds a finding in the column or field `about`. Each column or field has a finding of its
    /// own.
    fn add_finding_about(
        &mut self,
        about: &str,
        check: &'static str,
        file: &Path,
        position: impl FnOnce() -> String,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) {
        self.add(check, file, about, 1, || (position(), found.into(), expected.into()));
    }

    /// Adds a finding that may occur in every row. `describe` is called only for the first
    /// occurrence, and returns the position, the found value and the expected value.
    fn add_finding_with(
        &mut self,
        check: &'static str,
        file: &Path,
        describe: impl FnOnce() -> (String, String, String),
    ) {
        self.add(check, file, "", 1, describe);
    }

    /// Adds a finding that occurs `count` times.
    fn add_many(
        &mut self,
        count: u64,
        check: &'static str,
        file: &Path,
        position: String,
        found: String,
        expected: &str,
    ) {
        self.add(check, file, "", count, || (position, found, expected.into()));
    }

    /// Adds a finding in column or field `about`. `found` is (position, value, expected value).
    fn add_many_about(
        &mut self,
        about: &str,
        count: u64,
        check: &'static str,
        file: &Path,
        found: (String, String, String),
    ) {
        self.add(check, file, about, count, || found);
    }

    /// Adds `count` to the finding with the same kind, file and `about`, or creates it. `describe`
    /// returns position, found value and expected value; it is called only for a new finding. The
    /// kind determines the severity.
    fn add(
        &mut self,
        check: &'static str,
        file: &Path,
        about: &str,
        count: u64,
        describe: impl FnOnce() -> (String, String, String),
    ) {
        if let Some(at) = self.find_group(check, file, about) {
            self.findings[at].count += count;
            return;
        }
        let kind = KINDS.iter().find(|kind| kind.name == check);
        debug_assert!(kind.is_some(), "{check} is not a kind of finding");
        let (position, found, expected) = describe();
        let known = FindingKey { check, about: about.into(), at: self.findings.len() };
        self.known.entry(file.to_path_buf()).or_default().push(known);
        self.findings.push(Finding {
            severity: kind.map_or(Severity::Error, |kind| kind.severity),
            check,
            file: file.to_path_buf(),
            position,
            found,
            expected,
            count,
        });
    }

    fn find_group(&self, check: &str, file: &Path, about: &str) -> Option<usize> {
        let known = self.known.get(file)?;
        known.iter().find(|k| k.check == check && k.about == about).map(|k| k.at)
    }

    fn has_finding(&self, check: &str, file: &Path) -> bool {
        self.known.get(file).is_some_and(|known| known.iter().any(|k| k.check == check))
    }

    /// Registers a subject of the current shard. Reports the subject if it was registered before,
    /// for this or another shard.
    fn add_subject(&mut self, file: &Path, row: usize, subject: i64) {
        let shard = self.shards.len().saturating_sub(1);
        let Some(before) = self.subjects.get(&subject).copied() else {
            self.subjects.insert(subject, SubjectFacts { shard, span: None });
            return;
        };
        let other = self.shards[before.shard].name.clone();
        let seen = if before.shard == shard {
            "already in this shard".into()
        } else {
            format!("also in {other}")
        };
        self.add_finding(
            "subject-twice",
            file,
            || format!("row {row}"),
            format!("subject {subject}, which is {seen}"),
            "each subject in one shard, once",
        );
    }

    fn add_span(&mut self, subject: i64, first: i64, last: i64) {
        if let Some(facts) = self.subjects.get_mut(&subject) {
            let wider = |(a, b): (i64, i64)| (a.min(first), b.max(last));
            facts.span = Some(facts.span.map_or((first, last), wider));
        }
    }
}

fn list_names<S: AsRef<str>>(names: impl ExactSizeIterator<Item = S>) -> String {
    let all = names.len();
    let shown: Vec<String> = names.take(5).map(|n| n.as_ref().to_string()).collect();
    let more = all.saturating_sub(shown.len());
    match more {
        0 => shown.join(", "),
        more => format!("{}, .. ({more} more)", shown.join(", ")),
    }
}

/// Returns the message of an error without the file name, which a finding has in a field of its
/// own.
fn describe_core_error(e: &Error) -> String {
    match e {
        Error::File { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

fn format_time(microseconds: i64) -> String {
    arrow::temporal_conversions::timestamp_us_to_datetime(microseconds)
        .map_or_else(|| format!("{microseconds} µs"), |t| t.to_string())
}
