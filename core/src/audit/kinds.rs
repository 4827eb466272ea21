use super::Severity;

/// A kind of [`Finding`](super::Finding), such as `unreadable` for a damaged file.
///
/// Names are stable, so that programs can rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FindingKind {
    /// Name of the kind, which is the value of [`Finding::check`](super::Finding::check).
    pub name: &'static str,
    /// Severity of findings of this kind.
    pub severity: Severity,
    /// The fault that findings of this kind report, in one sentence.
    pub meaning: &'static str,
}

const fn new_error_kind(name: &'static str, meaning: &'static str) -> FindingKind {
    FindingKind { name, severity: Severity::Error, meaning }
}

const fn new_warning_kind(name: &'static str, meaning: &'static str) -> FindingKind {
    FindingKind { name, severity: Severity::Warning, meaning }
}

/// All kinds, errors first; `docs/check.md` and `serrate check --help` list them.
pub const KINDS: &[FindingKind] = &[
    new_error_kind("unreadable", "a file is damaged or violates its format"),
    new_error_kind("pair", "tensors without a schema file, or vice versa"),
    new_error_kind("columns", "a column or tensor is missing, or a folder has no file"),
    new_error_kind(
        "types",
        "a column is stored as another type than expected, or than in other files",
    ),
    new_error_kind("null", "a subject, code or time is NULL where a value is required"),
    new_error_kind("bounds", "lists end before their start, or after their values"),
    new_error_kind("rows", "tensors and schema file have different numbers of rows"),
    new_error_kind("events", "tensors and schema file have different numbers of events in a row"),
    new_error_kind(
        "measurements",
        "tensors and schema file have different numbers of measurements",
    ),
    new_error_kind("order", "times decrease, or the rows of a subject are not contiguous"),
    new_error_kind("delta", "time_delta_days differs from the times"),
    new_error_kind("start-time", "start_time is not the first of the times"),
    new_error_kind("subject-twice", "a subject is in two shards, or in two rows of one"),
    new_error_kind("split", "a folder contradicts the split in subject_splits.parquet"),
    new_error_kind(
        "vocabulary",
        "codes.parquet gives a code no valid token, or a cohort lacks the file",
    ),
    new_error_kind(
        "vocabulary-loss",
        "more than half of the measurements have codes outside codes.parquet",
    ),
    new_error_kind(
        "code-twice",
        "a code has several rows in codes.parquet, so joins repeat its measurements",
    ),
    new_error_kind("token", "a token is not in the vocabulary"),
    new_error_kind(
        "dataset-json",
        "dataset.json is not a JSON object, or a field has a wrong type",
    ),
    new_error_kind("label-subject", "a label refers to a subject that is not in the data"),
    new_error_kind("label-split", "a label is in the folder of another split than its subject"),
    new_error_kind("label-value", "a float label is NaN, infinite or too large for float32"),
    new_error_kind("label-contradiction", "labels of one subject and time have different values"),
    new_warning_kind(
        "meds-types",
        "all shards store a column as another type than MEDS prescribes",
    ),
    new_warning_kind("no-split", "a subject or shard has no split"),
    new_warning_kind("unknown-code", "codes are not in the vocabulary, or are the token 0"),
    new_warning_kind("unseen-code", "a code does not occur in train"),
    new_warning_kind("infinite", "numbers are infinite"),
    new_warning_kind("before-birth", "measurements before the MEDS_BIRTH of their subject"),
    new_warning_kind("after-death", "measurements after the MEDS_DEATH of their subject"),
    new_warning_kind(
        "future-time",
        "times after today, which also occur when dates are shifted on purpose",
    ),
    new_warning_kind(
        "implausible-time",
        "times before 1901 or after 2299, such as the sentinel 2999-12-31",
    ),
    new_warning_kind(
        "doubled-row",
        "rows with equal subject, time, code, numeric_value and text_value",
    ),
    new_warning_kind("no-dataset-json", "there is no metadata/dataset.json"),
    new_warning_kind(
        "tasks",
        "a folder has the labels of several tasks, which are mixed when it is read",
    ),
    new_warning_kind("no-value", "a file of labels has no column with a value"),
    new_warning_kind("label-early", "a label is before all events of its subject"),
    new_warning_kind(
        "label-late",
        "a label is more than a year after the last event of its subject",
    ),
    new_warning_kind("label-twice", "labels of one subject and time have the same value"),
];
