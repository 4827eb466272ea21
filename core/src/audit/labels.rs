//! Checks of the files with labels (values to predict for a subject at a time): their columns, and
//! their subjects and times, which must match the data.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, RecordBatch, new_null_array};
use arrow::datatypes::{DataType, Float32Type};
use arrow::row::{RowConverter, Rows, SortField};

use super::column_types::ColumnTypes;
use super::time_checks::FaultTally;
use super::{AuditLog, format_time, list_names};
use crate::access;
use crate::error::Result;
use crate::io::meds::LabelKind;
use crate::io::meds::file::{MedsFile, list_files_with_ending};
use crate::io::meds::labels::{KEYS, list_kinds, list_tasks, read_label_keys};

/// Checks all label files of a folder; returns the number of labels.
pub(super) fn check_labels(folder: &Path, log: &mut AuditLog) -> Result<u64> {
    let mut labels = 0;
    if !access::exists(folder) {
        return Err(crate::Error::file(
            folder,
            "the file or folder of labels does not exist; give the path of labels in the MEDS format",
        ));
    }
    if !access::is_dir(folder) {
        return LabelTask::default().check_file(folder, "", log);
    }
    let names = list_files_with_ending(folder, "parquet")?;
    if names.is_empty() {
        let (found, expected) = ("no *.parquet file", "at least one *.parquet file of labels");
        log.add_finding("columns", folder, String::new, found, expected);
    }
    let tasks = list_tasks(&names);
    if !tasks.is_empty() {
        let found = format!("labels of {} tasks: {}", tasks.len(), list_names(tasks.iter()));
        let expected = "the labels of one task, because labels of several tasks cannot be distinguished when they are read together; give the folder of one task";
        log.add_finding("tasks", folder, String::new, found, expected);
    }
    // The files of one task are adjacent in `names`, so `task` collects one task at a time.
    let (mut current, mut task) = ("", LabelTask::default());
    for name in &names {
        let path = folder.join(format!("{name}.parquet"));
        let own = tasks.iter().find(|t| name.split('/').next() == Some(t)).unwrap_or(&"");
        if current != *own {
            std::mem::take(&mut task).types.report_findings(false, log);
            current = own;
        }
        match task.check_file(&path, name, log) {
            Ok(rows) => labels += rows,
            Err(e) => log.add_unreadable(&path, &e, "labels"),
        }
    }
    task.types.report_findings(false, log);
    Ok(labels)
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct LabelKey {
    subject: i64,
    time: i64,
}

#[derive(Clone, Copy)]
struct FirstLabel {
    /// Hash of the values of all label columns.
    value: u64,
    /// Index of the file in `LabelTask::files`.
    file: usize,
    row: usize,
}

#[derive(Default)]
struct LabelTask {
    types: ColumnTypes,
    /// The first label of each subject and time.
    first: HashMap<LabelKey, FirstLabel>,
    files: Vec<PathBuf>,
    hasher: RandomState,
}

impl LabelTask {
    fn check_file(&mut self, path: &Path, name: &str, log: &mut AuditLog) -> Result<u64> {
        let source = MedsFile::open(path)?;
        let schema = source.schema();
        let mut missing = false;
        for column in KEYS {
            if schema.field_with_name(column).is_err() {
                let found = format!("no column {column:?}");
                let expected = format!("column {column:?}");
                log.add_finding_about(column, "columns", path, String::new, found, expected);
                missing = true;
            }
        }
        let mut kinds = list_kinds(&source);
        if kinds.is_empty() {
            let expected = LabelKind::ALL.map(LabelKind::column).join(" or ");
            log.add_finding("no-value", path, String::new, "no column with a value", expected);
        }
        let mut refused = Vec::new();
        kinds.retain(|kind| {
            let name = kind.column();
            let Ok(field) = schema.field_with_name(name) else { return false };
            if kind.accepts_type(field.data_type()) {
                return true;
            }
            let position = || format!("column {name:?}");
            let expected =
                format!("{}; other values are not read as labels", kind.describe_expected_types());
            log.add_finding_about(
                name,
                "types",
                path,
                position,
                field.data_type().to_string(),
                expected,
            );
            refused.push(name);
            false
        });
        self.types.add(&source, &refused)?;
        if missing {
            return Ok(0);
        }
        self.files.push(path.to_path_buf());
        self.check_rows(&source, name, &kinds, log)
    }

    fn check_rows(
        &mut self,
        source: &MedsFile,
        name: &str,
        kinds: &[LabelKind],
        log: &mut AuditLog,
    ) -> Result<u64> {
        let path = source.path();
        let splits: Vec<&String> = log.shards.iter().filter_map(|s| s.split.as_ref()).collect();
        let split = name.split('/').find(|part| splits.iter().any(|s| *s == part));
        let columns: Vec<&str> =
            KEYS.into_iter().chain(kinds.iter().map(|kind| kind.column())).collect();
        let mut late = FaultTally::default();
        let mut first_row = 0usize;
        for batch in source.read_batches(&columns, None, 1 << 16)? {
            let batch = batch?;
            let (subjects, times) = read_label_keys(source, &batch)?;
            let values = encode_values(source, &batch, kinds)?;
            let numbers = read_numbers(source, &batch, kinds)?;
            for i in 0..batch.num_rows() {
                let row = first_row.saturating_add(i);
                let position = || format!("row {row}");
                for (column, null) in KEYS.iter().zip([subjects.is_null(i), times.is_null(i)]) {
                    if null {
                        let position = || format!("column {column:?}, row {row}");
                        let expected = "a subject and a prediction_time";
                        log.add_finding_about(column, "null", path, position, "NULL", expected);
                    }
                }
                if subjects.is_null(i) || times.is_null(i) {
                    continue;
                }
                let (subject, time) = (subjects.value(i), times.value(i));
                if let Some(number) =
                    numbers.as_ref().and_then(|numbers| find_nonfinite_number(numbers, i))
                {
                    let column = LabelKind::Float.column();
                    let found = format!("a label of subject {subject} that is {number}");
                    let expected =
                        "a finite number in the range of float32; the loader refuses other labels";
                    log.add_finding_about(column, "label-value", path, position, found, expected);
                }
                let value = self.hasher.hash_one(values.row(i).as_ref());
                let key = LabelKey { subject, time };
                self.compare_label(key, value, row, log);
                check_subject(key, split, (path, row), &mut late, log);
            }
            first_row = first_row.saturating_add(batch.num_rows());
        }
        late.log_finding("label-late", path, "labels within a year after the last event", log);
        Ok(u64::try_from(first_row).unwrap_or(u64::MAX))
    }

    fn compare_label(&mut self, key: LabelKey, value: u64, row: usize, log: &mut AuditLog) {
        let file = self.files.len().saturating_sub(1);
        let Some(first) = self.first.get(&key).copied() else {
            self.first.insert(key, FirstLabel { value, file, row });
            return;
        };
        let place = match first.file == file {
            true => format!("row {}", first.row),
            false => format!("row {} of {}", first.row, self.files[first.file].display()),
        };
        let (subject, time) = (key.subject, format_time(key.time));
        let position = || format!("row {row}");
        let path = &self.files[file];
        if first.value == value {
            let found = format!("a label of subject {subject} at {time}, as in {place}");
            log.add_finding("label-twice", path, position, found, "each label once");
        } else {
            let found = format!(
                "a label of subject {subject} at {time} with another value than in {place}"
            );
            let expected = "one value for one subject and time";
            log.add_finding("label-contradiction", path, position, found, expected);
        }
    }
}

/// Checks one label, given by its subject and time, against the events and the split of this
/// subject. `split` is the split that the path of the label file names. Adds the label to `late` if
/// its time is more than a year after the last event.
fn check_subject(
    LabelKey { subject, time }: LabelKey,
    split: Option<&str>,
    (path, row): (&Path, usize),
    late: &mut FaultTally,
    log: &mut AuditLog,
) {
    let position = || format!("row {row}");
    let Some(facts) = log.subjects.get(&subject).copied() else {
        let found = format!("a label of subject {subject}, who is not in the data");
        log.add_finding("label-subject", path, position, found, "subjects of the data");
        return;
    };
    match facts.span {
        Some((first, last)) if first <= time => {
            if time.saturating_sub(last) > YEAR {
                late.add(|| {
                    let (time, last) = (format_time(time), format_time(last));
                    let found = format!(
                        "a label of subject {subject} at {time}, whose last event is at {last}"
                    );
                    (position(), found)
                });
            }
        }
        _ => {
            let found = format!("a label of subject {subject} without an event before it");
            let expected = "an event at or before its time";
            log.add_finding("label-early", path, position, found, expected);
        }
    }
    let of_subject = log.shards[facts.shard].split.clone();
    if let (Some(split), Some(of_subject)) = (split, of_subject)
        && split != of_subject
    {
        let found = format!("a label of subject {subject}, who is in {of_subject}");
        log.add_finding("label-split", path, position, found, format!("subjects of {split}"));
    }
}

const YEAR: i64 = 365 * 86_400_000_000;

/// Returns the float labels of a batch as float32, the type to which the loader of training batches
/// converts them. Returns `None` if there is no column of float labels.
fn read_numbers(
    source: &MedsFile,
    batch: &RecordBatch,
    kinds: &[LabelKind],
) -> Result<Option<Float32Array>> {
    let name = LabelKind::Float.column();
    let column = batch.column_by_name(name).filter(|_| kinds.contains(&LabelKind::Float));
    let Some(column) = column else { return Ok(None) };
    let numbers = source.cast_column(name, column, &DataType::Float32)?;
    Ok(numbers.as_primitive_opt::<Float32Type>().cloned())
}

/// Returns the number in `row` if it is NaN or infinite, because the loader of training batches
/// refuses such a label. Returns `None` for other numbers and for NULL.
fn find_nonfinite_number(numbers: &Float32Array, row: usize) -> Option<f32> {
    let number = numbers.is_valid(row).then(|| numbers.value(row))?;
    (!number.is_finite()).then_some(number)
}

/// Encodes the label values of each row of a batch as [`Rows`], which can be compared. Encodes NULL
/// for each label column that is not in `kinds`, so that all files of a task have the same columns.
fn encode_values(source: &MedsFile, batch: &RecordBatch, kinds: &[LabelKind]) -> Result<Rows> {
    // Compare float labels as float64 to find differences that are lost in the float32 labels of
    // the loader.
    let types = LabelKind::ALL.map(|kind| match kind {
        LabelKind::Float => DataType::Float64,
        other => other.data_type(),
    });
    let columns = LabelKind::ALL.iter().zip(&types).map(|(kind, t)| {
        let values = batch.column_by_name(kind.column()).filter(|_| kinds.contains(kind));
        match values {
            Some(values) => source.cast_column(kind.column(), values, t),
            None => Ok(new_null_array(t, batch.num_rows())),
        }
    });
    let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
    let fields = types.iter().map(|t| SortField::new(t.clone())).collect();
    Ok(RowConverter::new(fields)?.convert_columns(&columns)?)
}
