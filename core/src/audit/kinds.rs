use super::Severity;

/// A kind of finding. Names are stable, so that programs can rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Name of the kind, which is the value of [`Finding::check`](super::Finding::check).
    pub name: &'static str,
    /// Severity of findings of this kind.
    pub severity: Severity,
    /// The fault that findings of this kind report, in one sentence.
    pub meaning: &'static str,
}

const fn error(name: &'static str, meaning: &'static str) -> Kind {
    Kind { name, severity: Severity::Error, meaning }
}

const fn warning(name: &'static str, meaning: &'static str) -> Kind {
    Kind { name, severity: Severity::Warning, meaning }
}

/// All kinds, errors first; `docs/check.md` and `serrate check --help` list them.
pub const KINDS: &[Kind] = &[
    error("unreadable", "a file is damaged or violates its format"),
    error("pair", "tensors without a schema file, or vice versa"),
    error("columns", "a column or tensor is missing, or a folder has no file"),
    error("types", "a column is stored as another type than expected, or than in other files"),
    error("null", "a subject, code or time is NULL where it may not be"),
    error("bounds", "lists end before their start, or after their values"),
    error("rows", "tensors and schema file have different numbers of rows"),
    error("events", "tensors and schema file have different numbers of events in a row"),
    error("measurements", "tensors and schema file have different numbers of measurements"),
    error("order", "times decrease, or the rows of a subject are not contiguous"),
    error("delta", "time_delta_days differs from the times"),
    error("start-time", "start_time is not the first of the times"),
    error("subject-twice", "a subject is in two shards, or in two rows of one"),
    error("split", "a folder contradicts the split in subject_splits.parquet"),
    error("vocabulary", "codes.parquet gives a code no valid token, or a cohort lacks the file"),
    error("vocabulary-loss", "more than half of the measurements have codes outside codes.parquet"),
    error(
        "code-twice",
        "a code has several rows in codes.parquet, so joins repeat its measurements",
    ),
    error("token", "a token is not in the vocabulary"),
    error("dataset-json", "dataset.json is not a JSON object, or a field has a wrong type"),
    error("label-subject", "a label refers to a subject that is not in the data"),
    error("label-split", "a label is in the folder of another split than its subject"),
    error("label-contradiction", "labels of one subject and time have different values"),
    warning("meds-types", "all shards store a column as another type than MEDS prescribes"),
    warning("no-split", "a subject or shard has no split"),
    warning("unknown-code", "codes are not in the vocabulary, or are the token 0"),
    warning("unseen-code", "a code does not occur in train"),
    warning("infinite", "numbers are infinite"),
    warning("before-birth", "measurements before the MEDS_BIRTH of their subject"),
    warning("after-death", "measurements after the MEDS_DEATH of their subject"),
    warning("future-time", "times after today, which also occur when dates are shifted on purpose"),
    warning("implausible-time", "times before 1901 or after 2299, such as the sentinel 2999-12-31"),
    warning("doubled-row", "rows with equal subject, time, code, numeric_value and text_value"),
    warning("no-dataset-json", "there is no metadata/dataset.json"),
    warning("tasks", "a folder has the labels of several tasks, which are mixed when it is read"),
    warning("no-value", "a file of labels has no column with a value"),
    warning("label-early", "a label is before all events of its subject"),
    warning("label-late", "a label is more than a year after the last event of its subject"),
    warning("label-twice", "labels of one subject and time have the same value"),
];
