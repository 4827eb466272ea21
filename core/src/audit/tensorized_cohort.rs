//! Checks of a tensorized cohort.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use arrow::array::{Array, AsArray, Float32Array, TimestampMicrosecondArray, UInt32Array};
use arrow::datatypes::{DataType, Float32Type, Int64Type, TimestampMicrosecondType, UInt32Type};

use super::code_table::read_vocabulary;
use super::time_checks::OddTimes;
use super::{
    Audit, AuditLog, ShardFacts, ShardPlace, describe_core_error, format_time, list_names,
};
use crate::access;
use crate::error::Result;
use crate::io::meds::file::{MedsFile, list_files_with_ending};
use crate::io::meds::{TRAIN, Vocabulary, compute_delta_days};
use crate::io::meds_torch::{CohortShard, CohortTables, CountMismatch, SCHEMAS, TENSORS};
use crate::io::nrt::{NrtFile, ReadOptions};
use crate::table::RaggedTable;

/// Expected columns of a tensor file, each with its axis (1: events, 2: measurements) and type.
const COLUMNS: [(&str, usize, DataType); 3] = [
    ("time_delta_days", 1, DataType::Float32),
    ("code", 2, DataType::Int64),
    ("numeric_value", 2, DataType::Float32),
];

/// Number of measurements of each token (number of a code) in the split `train` and in all other
/// splits.
type TokenCounts = BTreeMap<i64, [u64; 2]>;

pub(super) fn check_cohort(root: &Path, log: &mut AuditLog) -> Result<Audit> {
    let schemas = list_files_with_ending(&root.join(SCHEMAS), "parquet")?;
    let tensors = list_files_with_ending(&root.join(TENSORS), "nrt")?;
    let path =
        |folder: &str, name: &str, ending: &str| root.join(folder).join(format!("{name}.{ending}"));
    for name in tensors.iter().filter(|n| !schemas.contains(n)) {
        let file = path(TENSORS, name, "nrt");
        log.add_finding(
            "pair",
            &file,
            String::new,
            "no schema file",
            format!("{SCHEMAS}/{name}.parquet"),
        );
    }
    for name in schemas.iter().filter(|n| !tensors.contains(n)) {
        let file = path(SCHEMAS, name, "parquet");
        log.add_finding("pair", &file, String::new, "no tensors", format!("{TENSORS}/{name}.nrt"));
    }
    let codes = root.join("metadata").join("codes.parquet");
    let vocabulary = match access::exists(&codes) {
        true => read_vocabulary(&codes, false, log),
        false => {
            log.add_finding("vocabulary", &codes, String::new, "no such file", "codes with tokens");
            None
        }
    };
    let mut shards = Vec::new();
    let mut seen = TokenCounts::new();
    for name in schemas.iter().filter(|n| tensors.contains(n)) {
        let shard = CohortShard::new(root, name);
        let split = name.split_once('/').map(|(split, _)| split.to_string());
        if split.is_none() {
            let found = "a shard outside the folders of splits, so a meds-torch-data dataset of a split skips it";
            log.add_finding(
                "no-split",
                shard.tensors_path(),
                String::new,
                found,
                "a shard in the folder of a split, such as train/0 or held_out/0",
            );
        }
        log.shards.push(ShardPlace { name: name.clone(), split });
        let Some(tables) = open_shard(&shard, log) else { continue };
        shards.push(check_contents(&shard, &tables, vocabulary.as_ref(), &mut seen, log)?);
    }
    report_unseen_tokens(root, &seen, vocabulary.as_ref(), log);
    Ok(Audit { kind: "tensorized cohort", shards, ..Audit::default() })
}

/// Opens the tables of a shard; reports an error and returns `None` if they cannot be checked.
fn open_shard(shard: &CohortShard, log: &mut AuditLog) -> Option<CohortTables> {
    let path = shard.tensors_path();
    let file = match NrtFile::open(path, &ReadOptions::default()) {
        Ok(file) => file,
        Err(e) => {
            log.add_unreadable(path, &e, "an .nrt file");
            return None;
        }
    };
    if let Err(e) = file.validate() {
        log.add_finding(
            "bounds",
            path,
            String::new,
            describe_core_error(&e),
            "lists that end at or after their start, and within the values",
        );
        return None;
    }
    for (name, axis, data_type) in &COLUMNS {
        match file.column(name) {
            Err(_) if file.columns().is_empty() && file.num_rows() == 0 => {}
            Err(_) => {
                let found = format!("no tensor dim{axis}/{name}");
                let expected = format!("tensor dim{axis}/{name}");
                log.add_finding_about(name, "columns", path, String::new, found, expected);
            }
            Ok(c) if c.axis() != *axis || c.data_type() != data_type => {
                let position = || format!("column {name:?}");
                let found = format!("{} on axis {}", c.data_type(), c.axis());
                let expected = format!("{data_type} on axis {axis}");
                log.add_finding_about(name, "types", path, position, found, expected);
            }
            Ok(_) => {}
        }
    }
    check_row_count(shard, &file, log);
    let mut mismatch = None;
    match shard.read_noting(&mut mismatch) {
        Ok(tables) => Some(tables),
        Err(e) => {
            // Skip an error whose likely cause (wrong number of rows, missing column) is already
            // reported.
            let reported = log.has_finding("rows", path) || log.has_finding("columns", path);
            if !reported {
                let check = match mismatch {
                    Some(CountMismatch::Measurements) => "measurements",
                    Some(CountMismatch::Events) => "events",
                    None => "unreadable",
                };
                let found = describe_core_error(&e);
                log.add_finding(check, path, String::new, found, "the contents of the schema file");
            }
            None
        }
    }
}

fn check_row_count(shard: &CohortShard, file: &NrtFile, log: &mut AuditLog) {
    let Ok(source) = MedsFile::open(shard.schema_path()) else { return };
    let (Ok(expected), found) = (source.rows(), file.num_rows()) else { return };
    if found == expected {
        return;
    }
    let without = source
        .read(&["time"], None)
        .ok()
        .and_then(|b| {
            let time = crate::array::RaggedArray::try_from_arrow(b.column_by_name("time")?).ok()?;
            let layout = time.axes().first()?.layout();
            (0..layout.lists()).position(|row| layout.length(row) == 0).map(|first| {
                let all = (0..layout.lists()).filter(|row| layout.length(*row) == 0).count();
                (first, all)
            })
        })
        .filter(|(_, without)| found.saturating_add(*without) == expected);
    let why = match without {
        Some((first, n)) => format!(
            "; it lacks the {n} row(s) without events, so from row {first} on each row belongs to another subject than in the schema file"
        ),
        None => String::new(),
    };
    log.add_finding(
        "rows",
        shard.tensors_path(),
        String::new,
        format!("{found} row(s){why}"),
        format!("{expected} as in {}", shard.schema_path().display()),
    );
}

fn check_contents(
    shard: &CohortShard,
    tables: &CohortTables,
    vocabulary: Option<&Vocabulary>,
    seen: &mut TokenCounts,
    log: &mut AuditLog,
) -> Result<ShardFacts> {
    let events = &tables.events;
    check_times(shard, events, log)?;
    let mut facts = ShardFacts {
        name: shard.name().to_string(),
        subjects: to_u64(events.num_rows()),
        measurements: to_u64(events.axis_len(2)?),
        statics: to_u64(tables.statics.axis_len(1)?),
        ..ShardFacts::default()
    };
    if let Some(tokens) = events.column("code")?.values().as_primitive_opt::<Int64Type>() {
        check_tokens(shard, tokens.values(), vocabulary, seen, log);
    }
    let statics = tables.statics.column("static_code")?.values().as_primitive::<UInt32Type>();
    check_static_tokens(shard, statics, vocabulary, log);
    if let Ok(values) = events.column("numeric_value")
        && let Some(values) = values.values().as_primitive_opt::<Float32Type>()
    {
        for (i, value) in values.values().iter().enumerate() {
            facts.missing += u64::from(value.is_nan());
            if value.is_infinite() {
                facts.infinite += 1;
                let position = || format!("dim2/numeric_value, element {i}");
                log.add_finding(
                    "infinite",
                    shard.tensors_path(),
                    position,
                    value.to_string(),
                    "NaN or finite numbers",
                );
            }
        }
    }
    Ok(facts)
}

/// Counts the measurements of each token, and reports tokens that are not in the vocabulary.
fn check_tokens(
    shard: &CohortShard,
    tokens: &[i64],
    vocabulary: Option<&Vocabulary>,
    seen: &mut TokenCounts,
    log: &mut AuditLog,
) {
    let path = shard.tensors_path();
    let size = vocabulary.map(|v| i64::from(v.id().size()));
    let elsewhere = usize::from(shard.split() != TRAIN);
    // `counts[token]` is the number of measurements with this token. Padding and tokens that are
    // not in the vocabulary are counted directly in `seen`.
    let mut counts: Vec<u64> = vec![0; vocabulary.and_then(Vocabulary::dense_size).unwrap_or(0)];
    for (i, token) in tokens.iter().enumerate() {
        let count = usize::try_from(*token).ok().and_then(|t| counts.get_mut(t));
        if let Some(count) = count
            && *token != 0
        {
            *count += 1;
            continue;
        }
        let position = || format!("dim2/code, element {i}");
        if *token < 0 || size.is_some_and(|size| *token >= size) {
            let expected = format!("0 to {}", size.map_or(i64::MAX, |s| s - 1));
            log.add_finding("token", path, position, format!("code {token}"), expected);
        } else if *token == 0 {
            let found = "code 0, which is padding";
            log.add_finding("unknown-code", path, position, found, "a code of the vocabulary");
        }
        seen.entry(*token).or_default()[elsewhere] += 1;
    }
    for (token, n) in (0i64..).zip(counts).filter(|(_, n)| *n > 0) {
        seen.entry(token).or_default()[elsewhere] += n;
    }
}

/// Reports tokens of static facts that are not in the vocabulary.
fn check_static_tokens(
    shard: &CohortShard,
    tokens: &UInt32Array,
    vocabulary: Option<&Vocabulary>,
    log: &mut AuditLog,
) {
    let path = shard.schema_path();
    let size = vocabulary.map(|v| i64::from(v.id().size()));
    for (i, token) in tokens.iter().enumerate() {
        let token = i64::from(token.unwrap_or(0));
        let position = || format!("static_code, element {i}");
        let found = || format!("code {token}");
        if token == 0 {
            log.add_finding("unknown-code", path, position, found(), "a code of the vocabulary");
        } else if let Some(size) = size.filter(|size| token >= *size) {
            log.add_finding("token", path, position, found(), format!("1 to {}", size - 1));
        }
    }
}

fn check_times(shard: &CohortShard, events: &RaggedTable, log: &mut AuditLog) -> Result<()> {
    let schema = shard.schema_path();
    let subjects = events.column("subject_id")?.values().as_primitive::<Int64Type>();
    let columns = EventTimes::new(shard, events)?;
    let layout = events.layout(1)?;
    let mut odd = OddTimes::new();
    for row in 0..events.num_rows() {
        let subject = subjects.value(row);
        log.add_subject(schema, row, subject);
        let range = layout.range(row);
        for event in range.clone().filter(|event| columns.times.is_valid(*event)) {
            let time = columns.times.value(event);
            log.add_span(subject, time, time);
            odd.check_time(time, subject, || format!("row {row}, event {}", event - range.start));
        }
        columns.check_start(row, &range, log);
        for event in range.clone() {
            columns.check_event(row, event, &range, log);
        }
    }
    odd.report_findings(schema, log);
    Ok(())
}

/// The columns of a shard that have times, and the paths of its two files, which findings name.
struct EventTimes<'a> {
    schema: &'a Path,
    tensors: &'a Path,
    times: &'a TimestampMicrosecondArray,
    /// The column `start_time`, with the first time of each row.
    starts: Option<&'a TimestampMicrosecondArray>,
    /// The column `time_delta_days`, with the days since the event before.
    deltas: Option<&'a Float32Array>,
}

impl<'a> EventTimes<'a> {
    fn new(shard: &'a CohortShard, events: &'a RaggedTable) -> Result<Self> {
        let starts = events.column("start_time").ok();
        Ok(Self {
            schema: shard.schema_path(),
            tensors: shard.tensors_path(),
            times: events.column("time")?.values().as_primitive::<TimestampMicrosecondType>(),
            starts: starts.map(|c| c.values().as_primitive::<TimestampMicrosecondType>()),
            deltas: events.column("time_delta_days")?.values().as_primitive_opt::<Float32Type>(),
        })
    }

    /// Checks that the start of a row is the time of its first event. The row has the events
    /// `range`.
    fn check_start(&self, row: usize, range: &Range<usize>, log: &mut AuditLog) {
        let first = range.clone().next().filter(|first| self.times.is_valid(*first));
        let (Some(first), Some(starts)) = (first, self.starts) else { return };
        let first = self.times.value(first);
        let start = starts.is_valid(row).then(|| starts.value(row));
        if start != Some(first) {
            log.add_finding(
                "start-time",
                self.schema,
                || format!("row {row}"),
                start.map_or("NULL".into(), format_time),
                format!("{}, the first time of the row", format_time(first)),
            );
        }
    }

    /// Checks that an event has a time after that of the event before it in its row, and the
    /// corresponding `time_delta_days`. The row has the events `range`.
    fn check_event(&self, row: usize, event: usize, range: &Range<usize>, log: &mut AuditLog) {
        let position = || format!("row {row}, event {}", event - range.start);
        if self.times.is_null(event) {
            log.add_finding("null", self.schema, position, "no time", "a time");
            return;
        }
        let before = (event > range.start).then(|| self.times.value(event - 1));
        let time = self.times.value(event);
        if let Some(before) = before.filter(|before| time <= *before) {
            log.add_finding(
                "order",
                self.schema,
                position,
                format_time(time),
                format!("a time after {}, the previous one", format_time(before)),
            );
        }
        let Some(delta) = self.deltas.map(|d| d.value(event)) else { return };
        let expected = before.map_or(f32::NAN, |before| compute_delta_days(before, time));
        // `delta` and `expected` are allowed to differ in the last digits. If one of the two is
        // NaN, the other must also be NaN.
        let is_same = match expected.is_nan() {
            true => delta.is_nan(),
            false => (delta - expected).abs() <= expected.abs() * f32::EPSILON,
        };
        if !is_same {
            log.add_finding(
                "delta",
                self.tensors,
                position,
                format!("time_delta_days {delta}"),
                format!("{expected}, computed from the times"),
            );
        }
    }
}

fn report_unseen_tokens(
    root: &Path,
    seen: &TokenCounts,
    vocabulary: Option<&Vocabulary>,
    log: &mut AuditLog,
) {
    if !seen.values().any(|[train, _]| *train > 0) {
        return;
    }
    let mut count: u64 = 0;
    let unseen: Vec<String> = seen
        .iter()
        .filter(|(token, [train, _])| **token > 0 && *train == 0)
        .map(|(token, [_, other])| {
            count += *other;
            let code = u32::try_from(*token).ok().and_then(|t| vocabulary?.decode(t));
            code.map_or_else(|| token.to_string(), ToString::to_string)
        })
        .collect();
    if !unseen.is_empty() {
        let found =
            format!("outside train, {} code(s): {}", unseen.len(), list_names(unseen.iter()));
        log.add_many(
            count,
            "unseen-code",
            &root.join(TENSORS),
            String::new(),
            found,
            "codes that train has",
        );
    }
}

fn to_u64(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
