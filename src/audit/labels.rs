//! Labels against the subjects of the data.

use std::collections::HashMap;
use std::path::Path;

use arrow::array::Array;
use arrow::datatypes::DataType;

use super::{Log, message, some};
use crate::error::Result;
use crate::io::meds::LabelKind;
use crate::io::meds::file::{Source, files};
use crate::io::meds::labels::{KEYS, keys, kinds, tasks};

/// Checks every file of labels below a folder; returns how many labels there are.
pub(super) fn check(folder: &Path, log: &mut Log) -> Result<u64> {
    let mut labels = 0;
    // Types of the first file of a task.
    let mut types: HashMap<String, Vec<(String, DataType)>> = HashMap::new();
    if !folder.exists() {
        return Err(crate::Error::file(folder, "there is no such file or folder of labels"));
    }
    if !folder.is_dir() {
        return file(folder, "", "", &mut types, log);
    }
    let names = files(folder, "parquet")?;
    if names.is_empty() {
        log.error("columns", folder, String::new, "no *.parquet file", "labels");
    }
    let tasks = tasks(&names);
    if !tasks.is_empty() {
        let found = format!("labels of {} tasks: {}", tasks.len(), some(tasks.iter()));
        let expected =
            "those of one; read together, nothing tells them apart: name the folder of one";
        log.warn("tasks", folder, String::new, found, expected);
    }
    for name in &names {
        let path = folder.join(format!("{name}.parquet"));
        let task = tasks.iter().find(|t| name.split('/').next() == Some(t)).unwrap_or(&"");
        match file(&path, name, task, &mut types, log) {
            Ok(rows) => labels += rows,
            Err(e) => log.error("unreadable", &path, String::new, message(&e), "labels"),
        }
    }
    Ok(labels)
}

fn file(
    path: &Path,
    name: &str,
    task: &str,
    types: &mut HashMap<String, Vec<(String, DataType)>>,
    log: &mut Log,
) -> Result<u64> {
    let source = Source::open(path)?;
    let schema = source.schema();
    for column in KEYS {
        if schema.field_with_name(column).is_err() {
            log.error("columns", path, String::new, format!("no column {column:?}"), "one");
            return Ok(0);
        }
    }
    if kinds(&source).is_empty() {
        let expected = LabelKind::ALL.map(LabelKind::column).join(" or ");
        log.warn("columns", path, String::new, "no column with a value", expected);
    }
    for kind in kinds(&source) {
        let Ok(field) = schema.field_with_name(kind.column()) else { continue };
        if !kind.accepts(field.data_type()) {
            log.error(
                "types",
                path,
                || format!("column {:?}", kind.column()),
                field.data_type().to_string(),
                format!("{}; other values are not read as labels", kind.expected()),
            );
        }
    }
    let own: Vec<(String, DataType)> =
        schema.fields().iter().map(|f| (f.name().clone(), f.data_type().clone())).collect();
    let known = types.entry(task.to_string()).or_insert_with(|| own.clone());
    for (column, t) in &own {
        if let Some((_, first)) = known.iter().find(|(n, f)| n == column && f != t) {
            log.error(
                "types",
                path,
                || format!("column {column:?}"),
                t.to_string(),
                format!("{first} as in the task's first file"),
            );
        }
    }
    let splits: Vec<String> = log.shards.iter().filter_map(|s| s.split.clone()).collect();
    let split = name.split('/').find(|part| splits.iter().any(|s| s == part));
    let mut first_row = 0usize;
    for batch in source.batches(&KEYS, None, 1 << 16)? {
        let batch = batch?;
        let (subjects, times) = keys(&source, &batch)?;
        for i in 0..batch.num_rows() {
            let position = || format!("row {}", first_row.saturating_add(i));
            if subjects.is_null(i) || times.is_null(i) {
                log.error("null", path, position, "NULL", "a subject and a prediction_time");
                continue;
            }
            let (subject, time) = (subjects.value(i), times.value(i));
            let Some(facts) = log.subjects.get(&subject).copied() else {
                let found = format!("a label of subject {subject}, who is not in the data");
                log.error("label-subject", path, position, found, "subjects of the data");
                continue;
            };
            if facts.first_time.is_none_or(|first| first > time) {
                let found = format!("a label of subject {subject} with nothing before it");
                log.warn("label-early", path, position, found, "an event at its time or before");
            }
            let of_subject = log.shards[facts.shard].split.clone();
            if let (Some(split), Some(of_subject)) = (split, of_subject)
                && split != of_subject
            {
                let found = format!("a label of subject {subject}, who is in {of_subject}");
                log.error("label-split", path, position, found, format!("subjects of {split}"));
            }
        }
        first_row = first_row.saturating_add(batch.num_rows());
    }
    Ok(u64::try_from(first_row).unwrap_or(u64::MAX))
}
