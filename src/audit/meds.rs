//! MEDS folders.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, StringArray};
use arrow::datatypes::DataType;

use super::{Audit, Log, ShardFacts, ShardPlace, message, moment, some};
use crate::error::Result;
use crate::io::meds::file::{Source, files};
use crate::io::meds::{Chunk, Place, Splits, TRAIN, Values, Vocabulary};

/// Measurements of a code in train, and elsewhere.
type CodeCounts = BTreeMap<Arc<str>, [u64; 2]>;

pub(super) fn check(root: &Path, log: &mut Log) -> Result<Audit> {
    let data = root.join("data");
    let names = files(&data, "parquet")?;
    if names.is_empty() {
        log.error("columns", &data, String::new, "no *.parquet file", "shards");
    }
    let metadata = root.join("metadata");
    let splits = match Splits::of(root) {
        Ok(splits) => Some(splits),
        Err(e) => {
            let path = metadata.join("subject_splits.parquet");
            log.error("unreadable", &path, String::new, message(&e), "subjects and splits");
            None
        }
    };
    let vocabulary = vocabulary(&metadata.join("codes.parquet"), log);
    let mut shards = Vec::new();
    let mut codes = CodeCounts::new();
    let mut types: Vec<(String, DataType)> = Vec::new();
    for name in names {
        let path = data.join(format!("{name}.parquet"));
        let split = match splits.as_ref().map(|s| s.place(&name)) {
            Some(Place::Split(split)) => Some(split.to_string()),
            _ => None,
        };
        log.shards.push(ShardPlace { name: name.clone(), split });
        let source = match Source::open(&path) {
            Ok(source) => source,
            Err(e) => {
                log.error("unreadable", &path, String::new, message(&e), "a Parquet file");
                continue;
            }
        };
        if !columns(&source, &mut types, log) {
            continue;
        }
        let mut shard = Shard {
            path: &path,
            splits: splits.as_ref(),
            facts: ShardFacts { name, ..ShardFacts::default() },
        };
        match shard.rows(&source, &mut codes, log) {
            Ok(()) => shards.push(shard.facts),
            Err(e) => {
                log.error("unreadable", &path, String::new, message(&e), "rows as MEDS has them")
            }
        }
    }
    code_findings(root, &codes, vocabulary.as_ref(), log);
    Ok(Audit { kind: "MEDS", shards, ..Audit::default() })
}

fn vocabulary(path: &Path, log: &mut Log) -> Option<Vocabulary> {
    if !path.exists() {
        return None;
    }
    match Vocabulary::read(path) {
        Ok(vocabulary) => Some(vocabulary),
        Err(e) => {
            log.error("vocabulary", path, String::new, message(&e), "codes with tokens");
            None
        }
    }
}

/// Whether the rows can be looked at.
fn columns(source: &Source, types: &mut Vec<(String, DataType)>, log: &mut Log) -> bool {
    let schema = source.schema();
    let mut sound = true;
    for name in ["subject_id", "time", "code"] {
        if schema.field_with_name(name).is_err() {
            log.error("columns", source.path(), String::new, format!("no column {name:?}"), "one");
            sound = false;
        }
    }
    for field in schema.fields() {
        match types.iter().find(|(n, _)| n == field.name()) {
            None => types.push((field.name().clone(), field.data_type().clone())),
            Some((_, first)) if first != field.data_type() => log.error(
                "types",
                source.path(),
                || format!("column {:?}", field.name()),
                field.data_type().to_string(),
                format!("{first} as in the shards before"),
            ),
            Some(_) => {}
        }
    }
    sound
}

struct Shard<'a> {
    path: &'a Path,
    splits: Option<&'a Splits>,
    facts: ShardFacts,
}

impl Shard<'_> {
    fn rows(&mut self, source: &Source, codes: &mut CodeCounts, log: &mut Log) -> Result<()> {
        let path = self.path;
        let place = log.shards.last().and_then(|s| s.split.clone());
        let mut here = HashSet::new();
        let mut current: Option<i64> = None;
        let mut last_time: Option<i64> = None;
        let mut train = place.as_deref() == Some(TRAIN);
        let mut known: Option<StringArray> = None;
        let mut counts: Vec<[u64; 2]> = Vec::new();
        for chunk in Chunk::read(source)? {
            let chunk = chunk?;
            if known.as_ref().is_none_or(|k| !chunk.same_codes(k)) {
                flush(known.as_ref(), &mut counts, codes);
                counts.resize(chunk.codes.len(), [0; 2]);
                known = Some(chunk.codes.clone());
            }
            for row in 0..chunk.len() {
                let subject = chunk.subjects[row];
                let position = || format!("row {}", chunk.first_row.saturating_add(row));
                if current != Some(subject) {
                    current = Some(subject);
                    last_time = None;
                    if here.insert(subject) {
                        self.facts.subjects += 1;
                        log.subject(path, chunk.first_row.saturating_add(row), subject);
                        train = self.split(subject, place.as_deref(), log);
                    } else {
                        let found = format!("subject {subject} again, after others");
                        log.error("order", path, position, found, "all rows of a subject together");
                    }
                }
                counts[chunk.keys[row] as usize][usize::from(!train)] += 1;
                if chunk.times.is_null(row) {
                    self.facts.statics += 1;
                    continue;
                }
                self.facts.measurements += 1;
                let time = chunk.times.value(row);
                if let Some(before) = last_time.filter(|before| time < *before) {
                    let found = format!("time {} of subject {subject}", moment(time));
                    log.error(
                        "order",
                        path,
                        position,
                        found,
                        format!("not before {}, which is in the row above", moment(before)),
                    );
                }
                if last_time.is_none() {
                    log.first_time(subject, time);
                }
                last_time = Some(time);
                let number = match &chunk.values {
                    Values::Absent => None,
                    Values::Single(v) => v.is_valid(row).then(|| f64::from(v.value(row))),
                    Values::Double(v) => v.is_valid(row).then(|| v.value(row)),
                };
                match number {
                    None => self.facts.missing += 1,
                    Some(v) if v.is_nan() => self.facts.nan += 1,
                    Some(v) if v.is_infinite() => {
                        self.facts.infinite += 1;
                        let code = chunk.codes.value(chunk.keys[row] as usize);
                        log.warn(
                            "infinite",
                            path,
                            position,
                            format!("{v} of {code}"),
                            "finite numbers",
                        );
                    }
                    Some(_) => {}
                }
            }
        }
        flush(known.as_ref(), &mut counts, codes);
        Ok(())
    }

    /// Whether a subject is for training.
    fn split(&self, subject: i64, place: Option<&str>, log: &mut Log) -> bool {
        let Some(splits) = self.splits else { return place == Some(TRAIN) };
        let of_file = splits.of_subject(subject).map(|s| splits.names()[s].as_str());
        let position = || format!("subject {subject}");
        match (place, of_file) {
            (Some(place), Some(of_file)) => {
                if place != of_file {
                    log.error(
                        "split",
                        self.path,
                        position,
                        format!("a subject of {of_file}, as subject_splits.parquet says"),
                        format!("subjects of {place}"),
                    );
                }
                place == TRAIN
            }
            (Some(place), None) => {
                if splits.is_given() {
                    log.warn(
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
                    log.warn("no-split", self.path, position, "in no split", "one");
                }
                // Without any split, all is for training.
                !splits.is_given()
            }
        }
    }
}

fn flush(known: Option<&StringArray>, counts: &mut Vec<[u64; 2]>, codes: &mut CodeCounts) {
    if let Some(known) = known {
        for (key, [train, other]) in counts.iter().enumerate() {
            if train + other == 0 {
                continue;
            }
            let code = known.value(key);
            let total = match codes.get_mut(code) {
                Some(total) => total,
                None => codes.entry(code.into()).or_default(),
            };
            total[0] += train;
            total[1] += other;
        }
    }
    counts.clear();
}

fn code_findings(root: &Path, codes: &CodeCounts, vocabulary: Option<&Vocabulary>, log: &mut Log) {
    let say = |codes: &[(&Arc<str>, u64)]| {
        let measurements: u64 = codes.iter().map(|(_, n)| n).sum();
        let names = some(codes.iter().map(|(c, _)| c));
        format!("{} codes with {measurements} measurements: {names}", codes.len())
    };
    if let Some(vocabulary) = vocabulary {
        let unknown: Vec<(&Arc<str>, u64)> = codes
            .iter()
            .filter(|(code, _)| vocabulary.encode(code) == 0)
            .map(|(code, [a, b])| (code, a + b))
            .collect();
        if !unknown.is_empty() {
            let path = root.join("metadata").join("codes.parquet");
            let found = format!("it lacks {}", say(&unknown));
            log.warn("unknown-code", &path, String::new, found, "the codes of the data");
        }
    }
    let unseen: Vec<(&Arc<str>, u64)> =
        codes.iter().filter(|(_, [train, _])| *train == 0).map(|(c, [_, n])| (c, *n)).collect();
    if !unseen.is_empty() && codes.values().any(|[train, _]| *train > 0) {
        let found = format!("outside train, {}", say(&unseen));
        log.warn("unseen-code", &root.join("data"), String::new, found, "codes that train has");
    }
}
