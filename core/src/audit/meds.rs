//! Checks of a MEDS data set.

use std::collections::HashSet;
use std::path::Path;

use arrow::array::{Array, StringArray};

use super::code_table::{CodeTable, read_vocabulary};
use super::column_types::{ColumnTypes, refuse_type};
use super::subject_timeline::{MeasurementFields, SubjectTimeline};
use super::time_checks::OddTimes;
use super::{Audit, AuditLog, ShardFacts, ShardPlace, format_time, metadata};
use crate::access;
use crate::error::Result;
use crate::io::meds::file::{MedsFile, list_files_with_ending};
use crate::io::meds::{ChunkValues, MedsChunk, MissingValue, SplitSource, SubjectSplits, TRAIN};

pub(super) fn check_meds(root: &Path, log: &mut AuditLog) -> Result<Audit> {
    let data = root.join("data");
    let names = list_files_with_ending(&data, "parquet")?;
    if names.is_empty() {
        let expected = "at least one file data/**/*.parquet";
        log.add_finding("columns", &data, String::new, "no *.parquet file", expected);
    }
    let folder = root.join("metadata");
    let splits = match SubjectSplits::read_splits(root) {
        Ok(splits) => Some(splits),
        Err(e) => {
            let path = folder.join("subject_splits.parquet");
            log.add_unreadable(&path, &e, "subjects and splits");
            None
        }
    };
    let modified = metadata::check_metadata(root, log);
    let path = folder.join("codes.parquet");
    let vocabulary = access::exists(&path).then(|| read_vocabulary(&path, modified, log)).flatten();
    let mut shards = Vec::new();
    let mut codes = CodeTable::default();
    let mut types = ColumnTypes::default();
    for name in names {
        let path = data.join(format!("{name}.parquet"));
        let split = match splits.as_ref().map(|s| s.find_shard_split(&name)) {
            Some(SplitSource::Split(split)) => Some(split.to_string()),
            _ => None,
        };
        log.shards.push(ShardPlace { name: name.clone(), split: split.clone() });
        let opened = MedsFile::open(&path)
            .and_then(|source| Ok((check_columns(&source, &mut types, log)?, source)));
        let source = match opened {
            Ok((true, source)) => source,
            Ok((false, _)) => continue,
            Err(e) => {
                log.add_unreadable(&path, &e, "a Parquet file");
                continue;
            }
        };
        let mut shard = ShardCheck {
            path: &path,
            splits: splits.as_ref(),
            in_train: split.as_deref() == Some(TRAIN),
            split,
            seen: HashSet::new(),
            facts: ShardFacts { name, ..ShardFacts::default() },
        };
        match shard.check_rows(&source, &mut codes, log) {
            Ok(()) => shards.push(shard.facts),
            Err(e) => log.add_unreadable(&path, &e, "rows that can be read in the MEDS format"),
        }
    }
    types.report_findings(true, log);
    codes.report_findings(root, vocabulary.as_ref(), log);
    Ok(Audit { kind: "MEDS", shards, ..Audit::default() })
}

/// Reports missing columns and wrong types of a data file. Returns true if there are no such
/// faults; if it returns false, the caller skips the checks of the rows, which need all columns.
fn check_columns(source: &MedsFile, types: &mut ColumnTypes, log: &mut AuditLog) -> Result<bool> {
    let schema = source.schema();
    let mut refused = Vec::new();
    for name in ["subject_id", "time", "code"] {
        if schema.field_with_name(name).is_err() {
            let (found, expected) = (format!("no column {name:?}"), format!("column {name:?}"));
            log.add_finding_about(name, "columns", source.path(), String::new, found, expected);
            refused.push(name);
        }
    }
    for field in schema.fields() {
        if let Some(expected) = refuse_type(field.name(), field.data_type()) {
            let (name, found) = (field.name(), field.data_type().to_string());
            let position = || format!("column {name:?}");
            log.add_finding_about(name, "types", source.path(), position, found, expected);
            refused.push(name);
        }
    }
    types.add(source, &refused)?;
    Ok(refused.is_empty())
}

/// Returns the value of a row; `None` for NULL.
#[inline]
fn read_number(values: &ChunkValues, row: usize) -> Option<f64> {
    match values {
        ChunkValues::Absent => None,
        ChunkValues::Single(v) => v.is_valid(row).then(|| f64::from(v.value(row))),
        ChunkValues::Double(v) => v.is_valid(row).then(|| v.value(row)),
    }
}

struct ShardCheck<'a> {
    path: &'a Path,
    splits: Option<&'a SubjectSplits>,
    /// The split that the folder of the file names.
    split: Option<String>,
    /// The subjects of the rows that have been checked.
    seen: HashSet<i64>,
    /// Whether the current subject is in the split `train`.
    in_train: bool,
    facts: ShardFacts,
}

impl ShardCheck<'_> {
    fn check_rows(
        &mut self,
        source: &MedsFile,
        codes: &mut CodeTable,
        log: &mut AuditLog,
    ) -> Result<()> {
        let path = self.path;
        let mut current: Option<i64> = None;
        let mut last_time: Option<i64> = None;
        let mut known: Option<StringArray> = None;
        let mut ids: Vec<u32> = Vec::new();
        let mut timeline = SubjectTimeline::new(source);
        let mut odd = OddTimes::new();
        for chunk in MedsChunk::read_complete(source)? {
            let (chunk, missing) = chunk?;
            for MissingValue { column, row } in missing {
                let position = || format!("column {column:?}, row {row}");
                log.add_finding_about(column, "null", path, position, "NULL", "a value");
            }
            if known.as_ref().is_none_or(|k| !chunk.has_same_codes(k)) {
                ids = codes.number_codes(&chunk.codes);
                known = Some(chunk.codes.clone());
            }
            for row in 0..chunk.len() {
                let subject = chunk.subjects[row];
                let at = chunk.find_row_in_file(row);
                let position = || format!("row {at}");
                if current != Some(subject) {
                    if let Some((subject, first, last)) = timeline.start_subject(subject, codes) {
                        log.add_span(subject, first, last);
                    }
                    current = Some(subject);
                    last_time = None;
                    self.start_subject(subject, at, log);
                }
                let code = ids[chunk.keys[row] as usize];
                codes.count(code, self.in_train);
                let number = read_number(&chunk.values, row);
                let time = chunk.time(row);
                timeline.push(MeasurementFields {
                    time,
                    code,
                    value: number.map(f64::to_bits),
                    row: at,
                });
                let Some(time) = time else {
                    self.facts.statics += 1;
                    continue;
                };
                self.facts.measurements += 1;
                if let Some(before) = last_time.filter(|before| time < *before) {
                    log.add_finding_with("order", path, || {
                        let found = format!("time {} of subject {subject}", format_time(time));
                        let before = format_time(before);
                        (
                            position(),
                            found,
                            format!("a time at or after {before}, the one in the row above"),
                        )
                    });
                }
                odd.check_time(time, subject, position);
                last_time = Some(time);
                self.count_number(number, at, code, codes, log);
            }
        }
        if let Some((subject, first, last)) = timeline.end_subject(codes) {
            log.add_span(subject, first, last);
        }
        odd.report_findings(path, log);
        timeline.report_findings(source, log)
    }

    /// Adds the subject whose rows start at `row`. Reports an error if the file has other rows of
    /// this subject before those of another subject.
    fn start_subject(&mut self, subject: i64, row: usize, log: &mut AuditLog) {
        if self.seen.insert(subject) {
            self.facts.subjects += 1;
            log.add_subject(self.path, row, subject);
            self.in_train = self.is_train(subject, log);
        } else {
            log.add_finding_with("order", self.path, || {
                let found = format!("subject {subject} again, after other subjects");
                (format!("row {row}"), found, "all rows of a subject together".into())
            });
        }
    }

    /// Counts the numeric value of a measurement in `row` with the code `code`, and warns about an
    /// infinite one.
    fn count_number(
        &mut self,
        number: Option<f64>,
        row: usize,
        code: u32,
        codes: &CodeTable,
        log: &mut AuditLog,
    ) {
        match number {
            None => self.facts.missing += 1,
            Some(v) if v.is_nan() => self.facts.nan += 1,
            Some(v) if v.is_infinite() => {
                self.facts.infinite += 1;
                let found = format!("{v} of {}", codes.name(code));
                let position = || format!("row {row}");
                log.add_finding("infinite", self.path, position, found, "finite numbers");
            }
            Some(_) => {}
        }
    }

    /// Returns whether a subject is in the split `train`. Reports a subject without a split, and a
    /// subject whose split differs from the one that the folder of the file names.
    fn is_train(&self, subject: i64, log: &mut AuditLog) -> bool {
        let place = self.split.as_deref();
        let Some(splits) = self.splits else { return place == Some(TRAIN) };
        let of_file = splits.find_split(subject).map(|s| splits.names()[s].as_str());
        let position = || format!("subject {subject}");
        match (place, of_file) {
            (Some(place), Some(of_file)) => {
                if place != of_file {
                    log.add_finding(
                        "split",
                        self.path,
                        position,
                        format!("a subject that subject_splits.parquet assigns to {of_file}"),
                        format!("subjects of {place}"),
                    );
                }
                place == TRAIN
            }
            (Some(place), None) => {
                if splits.is_given() {
                    log.add_finding(
                        "no-split",
                        self.path,
                        position,
                        "not in subject_splits.parquet",
                        "a split",
                    );
                }
                place == TRAIN
            }
            (None, Some(of_file)) => of_file == TRAIN,
            (None, None) => {
                if splits.is_given() {
                    log.add_finding("no-split", self.path, position, "without a split", "a split");
                }
                // If the data set has no splits, all its subjects are in train.
                !splits.is_given()
            }
        }
    }
}
