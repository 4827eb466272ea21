//! [`ChunkEncoder`] converts the rows of a shard to tensors of one or more output shards.

use std::collections::BTreeMap;

use arrow::array::{Array, StringArray};

use super::cohort_codes::{CodeEntry, CohortCodes, ValueArithmetic};
use super::shard_builder::{CohortShardBuilder, Measurement, sort_rows};
use super::{TensorizeOptions, UnknownCodes};
use crate::error::{Error, Result};
use crate::io::meds::file::MedsFile;
use crate::io::meds::{
    ChunkValues, MedsChunk, MedsDataset, SplitSource, SubjectSplits, move_below_split,
};

/// Returns the names of the output shards of each shard: one, or one per split if subjects have
/// splits.
pub(super) fn list_part_names(
    dataset: &MedsDataset,
    splits: &SubjectSplits,
) -> Result<Vec<Vec<String>>> {
    let mut seen = std::collections::HashMap::new();
    let sources = dataset.sources();
    let names = sources.iter().map(|(name, source)| {
        let names = match splits.find_shard_split(name) {
            SplitSource::Split(split) => vec![move_below_split(split, name)],
            SplitSource::BySubject => {
                splits.names().iter().map(|s| move_below_split(s, name)).collect()
            }
            SplitSource::Unknown => vec![name.clone()],
        };
        for name in &names {
            if let Some(other) = seen.insert(name.clone(), source.path()) {
                return Err(Error::file(
                    source.path(),
                    format!(
                        "this shard and the shard {} would both be written as {name:?}; rename one of them",
                        other.display()
                    ),
                ));
            }
        }
        Ok(names)
    });
    names.collect()
}

pub(super) struct EncodedShard {
    /// Name and tensors of each output shard. If there are several, output shards without subjects
    /// are omitted.
    pub(super) parts: Vec<(String, CohortShardBuilder)>,
    pub(super) unknown: BTreeMap<String, u64>,
    pub(super) sorted: bool,
}

impl EncodedShard {
    /// Returns an error if a subject of shard `i` is also in another shard, unless
    /// `options.shared_subjects` is true.
    pub(super) fn check_subjects(
        &self,
        dataset: &MedsDataset,
        i: usize,
        options: &TensorizeOptions,
    ) -> Result<()> {
        if options.shared_subjects {
            return Ok(());
        }
        self.parts.iter().try_for_each(|(_, part)| dataset.check_subjects(i, &part.subjects))
    }
}

pub(super) struct ChunkEncoder<'a> {
    pub(super) codes: &'a CohortCodes,
    pub(super) splits: &'a SubjectSplits,
    pub(super) unknown: UnknownCodes,
}

enum RowTarget {
    /// Rows are appended to tensors as they are read, up to the first row that is out of order.
    Build,
    /// The encoder collects the rows here, sorts them, and then builds tensors.
    Collect(Vec<Measurement>),
}

/// Appends the rows of the file `source` to the tensors of its output shards.
struct RowSink<'a> {
    source: &'a MedsFile,
    target: RowTarget,
    /// The tensors of each output shard.
    builders: Vec<CohortShardBuilder>,
    route: SplitRoute<'a>,
}

impl RowSink<'_> {
    /// Appends rows of one time to the tensors. Returns false if they are out of order.
    #[inline]
    fn push_run(
        &mut self,
        subject: i64,
        time: i64,
        tokens: &[u32],
        values: &[f32],
    ) -> Result<bool> {
        let to = self.route.route_to(self.source, subject)?;
        Ok(self.builders[to].push_run(subject, time, tokens, values))
    }

    /// Appends a row to the tensors, or to the rows to be sorted. Returns false if a row of tensors
    /// is out of order.
    #[inline]
    fn push(&mut self, row: Measurement) -> Result<bool> {
        match &mut self.target {
            RowTarget::Collect(rows) => {
                rows.push(row);
                Ok(true)
            }
            RowTarget::Build => {
                let to = self.route.route_to(self.source, row.subject)?;
                Ok(self.builders[to].push(row))
            }
        }
    }

    /// Returns the tensors of each output shard. Collected rows are sorted and appended first.
    fn finish(mut self) -> Result<Vec<CohortShardBuilder>> {
        if let RowTarget::Collect(mut rows) = self.target {
            sort_rows(&mut rows);
            for row in rows {
                let to = self.route.route_to(self.source, row.subject)?;
                self.builders[to].push(row);
            }
        }
        Ok(self.builders)
    }
}

impl ChunkEncoder<'_> {
    /// Encodes a shard while reading it. If its rows are out of order, reads the file again and
    /// sorts them.
    pub(super) fn encode_shard(&self, source: &MedsFile, names: &[String]) -> Result<EncodedShard> {
        if let Some(encoded) = self.read(source, names, RowTarget::Build)? {
            return Ok(encoded);
        }
        let encoded = self.read(source, names, RowTarget::Collect(Vec::new()))?;
        encoded.ok_or_else(|| {
            Error::file(source.path(), "the file changed while it was being read; read it again")
        })
    }

    /// Encodes a shard. Returns `None` if `target` is [`RowTarget::Build`] and the rows are out of
    /// order.
    fn read(
        &self,
        source: &MedsFile,
        names: &[String],
        target: RowTarget,
    ) -> Result<Option<EncodedShard>> {
        let mut builders: Vec<CohortShardBuilder> =
            names.iter().map(|_| CohortShardBuilder::default()).collect();
        if let ([builder], RowTarget::Build) = (builders.as_mut_slice(), &target) {
            builder.reserve(source.rows()?);
        }
        let mut codes = ChunkCodes::default();
        let mut scratch = ChunkScratch::default();
        let of = (names.len() > 1).then_some(self.splits);
        let route = SplitRoute { of, subject: None, to: 0 };
        let mut sink = RowSink { source, target, builders, route };
        for chunk in MedsChunk::read(source)? {
            let chunk = chunk?;
            if codes.known.as_ref().is_none_or(|k| !chunk.has_same_codes(k)) {
                codes.replace_codes(&chunk.codes, self.codes);
            }
            self.translate_codes(source, &chunk, &mut codes, &mut scratch)?;
            let (mut row, mut dropped) = (0, scratch.dropped.iter().copied().peekable());
            while row < chunk.len() {
                if dropped.next_if_eq(&row).is_some() {
                    row += 1;
                    continue;
                }
                let rows =
                    row..chunk.find_run_end(row, dropped.peek().copied().unwrap_or(chunk.len()));
                row = rows.end;
                let (subject, time) = (chunk.subjects[rows.start], chunk.time(rows.start));
                let tokens = &scratch.tokens[rows.clone()];
                match (&sink.target, time) {
                    (RowTarget::Build, Some(time)) => {
                        if !sink.push_run(subject, time, tokens, &scratch.values[rows])? {
                            return Ok(None);
                        }
                    }
                    // Compute the value again, because `scratch.values` has NaN for a missing
                    // value, but static facts and rows to be sorted have NULL.
                    _ => {
                        for (row, token) in rows.zip(tokens) {
                            let entry = find_entry_of_row(&codes.entries, &chunk, row);
                            let value = self.scale_value(&chunk.values, row, &entry);
                            if !sink.push(Measurement { subject, time, token: *token, value })? {
                                return Ok(None);
                            }
                        }
                    }
                }
            }
        }
        codes.count_missed();
        let sorted = matches!(sink.target, RowTarget::Collect(_));
        let mut parts: Vec<(String, CohortShardBuilder)> =
            names.iter().cloned().zip(sink.finish()?).collect();
        if parts.len() > 1 {
            parts.retain(|(_, builder)| !builder.subjects.is_empty());
        }
        Ok(Some(EncodedShard { parts, unknown: codes.unknown, sorted }))
    }

    /// Fills `scratch` with the tokens, the values, and the indices of the rows to drop. Counts the
    /// measurements whose code is not in the vocabulary.
    fn translate_codes(
        &self,
        source: &MedsFile,
        chunk: &MedsChunk,
        codes: &mut ChunkCodes,
        scratch: &mut ChunkScratch,
    ) -> Result<()> {
        let (entries, missed) = (codes.entries.as_slice(), codes.missed.as_mut_slice());
        scratch.dropped.clear();
        scratch.tokens.clear();
        scratch.tokens.reserve(chunk.len());
        for (row, &key) in chunk.keys.iter().enumerate() {
            let token = match &entries[key as usize] {
                Some(entry) => entry.token,
                None => {
                    missed[key as usize] += 1;
                    match self.unknown {
                        UnknownCodes::Drop => scratch.dropped.push(row),
                        UnknownCodes::Zero => {}
                        UnknownCodes::Refuse => {
                            return Err(self.make_unknown_code_error(source, chunk, row));
                        }
                    }
                    UNKNOWN.token
                }
            };
            scratch.tokens.push(token);
        }
        let values = &mut scratch.values;
        match (&chunk.values, self.codes.arithmetic) {
            (ChunkValues::Absent, _) => fill_values(values, chunk, |_| f32::NAN),
            (ChunkValues::Single(v), ValueArithmetic::Raw) => {
                let raw = v.values();
                fill_values(values, chunk, |row| raw[row]);
            }
            (ChunkValues::Single(v), ValueArithmetic::Single) => {
                let raw = v.values();
                fill_values(values, chunk, |row| {
                    scale_f32(raw[row], &find_entry_of_row(entries, chunk, row))
                });
            }
            (ChunkValues::Single(v), ValueArithmetic::Double) => {
                let raw = v.values();
                fill_values(values, chunk, |row| {
                    scale_f64(f64::from(raw[row]), &find_entry_of_row(entries, chunk, row))
                });
            }
            (ChunkValues::Double(v), ValueArithmetic::Raw) => {
                let raw = v.values();
                fill_values(values, chunk, |row| to_f32(raw[row]));
            }
            (ChunkValues::Double(v), _) => {
                let raw = v.values();
                fill_values(values, chunk, |row| {
                    scale_f64(raw[row], &find_entry_of_row(entries, chunk, row))
                });
            }
        }
        Ok(())
    }

    fn scale_value(&self, values: &ChunkValues, row: usize, entry: &CodeEntry) -> Option<f32> {
        match values {
            ChunkValues::Absent => None,
            ChunkValues::Single(v) if v.is_null(row) => None,
            ChunkValues::Double(v) if v.is_null(row) => None,
            ChunkValues::Single(v) => match self.codes.arithmetic {
                ValueArithmetic::Raw => Some(v.value(row)),
                _ if !entry.scaled => None,
                ValueArithmetic::Single => Some(scale_f32(v.value(row), entry)),
                ValueArithmetic::Double => Some(scale_f64(f64::from(v.value(row)), entry)),
            },
            ChunkValues::Double(v) => match self.codes.arithmetic {
                ValueArithmetic::Raw => Some(to_f32(v.value(row))),
                _ if !entry.scaled => None,
                _ => Some(scale_f64(v.value(row), entry)),
            },
        }
    }

    fn make_unknown_code_error(&self, source: &MedsFile, chunk: &MedsChunk, row: usize) -> Error {
        let code = chunk.codes.value(chunk.keys[row] as usize);
        source.make_value_error(
            "code",
            chunk.first_row.saturating_add(row),
            &format!(
                "{code:?} is not among the {} codes of the vocabulary; drop measurements of unknown codes, or give them the token 0",
                self.codes.len()
            ),
        )
    }
}

/// Entry for measurements that are kept although their code is not in the vocabulary.
const UNKNOWN: CodeEntry = CodeEntry { token: 0, mean: f64::NAN, std: f64::NAN, scaled: false };

#[inline]
fn find_entry_of_row(entries: &[Option<CodeEntry>], chunk: &MedsChunk, row: usize) -> CodeEntry {
    entries[chunk.keys[row] as usize].unwrap_or(UNKNOWN)
}

/// Normalizes a value in 32-bit arithmetic; NaN if the code has no mean and standard deviation.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "32-bit arithmetic; mean and std are already rounded to it"
)]
fn scale_f32(value: f32, entry: &CodeEntry) -> f32 {
    if entry.scaled { (value - entry.mean as f32) / entry.std as f32 } else { f32::NAN }
}

#[inline]
fn scale_f64(value: f64, entry: &CodeEntry) -> f32 {
    if entry.scaled { to_f32((value - entry.mean) / entry.std) } else { f32::NAN }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "tensors have 32-bit values")]
fn to_f32(value: f64) -> f32 {
    value as f32
}

/// Fills `values` with `number(row)` for each row of `chunk`, or NaN if the number is infinite or
/// the numeric value of the row is null.
#[inline]
fn fill_values(values: &mut Vec<f32>, chunk: &MedsChunk, number: impl Fn(usize) -> f32) {
    let finite = |value: f32| if value.is_finite() { value } else { f32::NAN };
    values.clear();
    match chunk.values.nulls() {
        None => values.extend((0..chunk.len()).map(|row| finite(number(row)))),
        Some(nulls) => values.extend((0..chunk.len()).map(|row| {
            let value = finite(number(row));
            if nulls.is_valid(row) { value } else { f32::NAN }
        })),
    }
}

/// Tokens, values and dropped rows of one chunk. All chunks of a shard use the same memory.
#[derive(Default)]
struct ChunkScratch {
    tokens: Vec<u32>,
    values: Vec<f32>,
    dropped: Vec<usize>,
}

/// The codes of a chunk, and the measurements whose code is not in the vocabulary.
#[derive(Default)]
struct ChunkCodes {
    known: Option<StringArray>,
    /// For each code, its entry in the vocabulary.
    entries: Vec<Option<CodeEntry>>,
    /// For each code that is not in the vocabulary, the number of its measurements that `unknown`
    /// does not count yet.
    missed: Vec<u64>,
    unknown: BTreeMap<String, u64>,
}

impl ChunkCodes {
    fn replace_codes(&mut self, codes: &StringArray, vocabulary: &CohortCodes) {
        self.count_missed();
        self.entries = (0..codes.len())
            .map(|i| match codes.is_valid(i) {
                true => vocabulary.get(codes.value(i)),
                false => None,
            })
            .collect();
        self.missed.resize(self.entries.len(), 0);
        self.known = Some(codes.clone());
    }

    /// Moves the counts in `missed` to `unknown`.
    fn count_missed(&mut self) {
        if let Some(codes) = &self.known {
            for (key, count) in self.missed.iter().enumerate().filter(|(_, count)| **count > 0) {
                *self.unknown.entry(codes.value(key).to_string()).or_default() += count;
            }
        }
        self.missed.clear();
    }
}

/// Finds the output shard of each subject. `of` is `None` if there is only one output shard. `to`
/// is the output shard of `subject`, the subject of the previous row.
struct SplitRoute<'a> {
    of: Option<&'a SubjectSplits>,
    subject: Option<i64>,
    to: usize,
}

impl SplitRoute<'_> {
    #[inline]
    fn route_to(&mut self, source: &MedsFile, subject: i64) -> Result<usize> {
        if let Some(splits) = self.of
            && self.subject != Some(subject)
        {
            self.subject = Some(subject);
            self.to = splits.find_split(subject).ok_or_else(|| {
                Error::file(
                    source.path(),
                    format!(
                        "subject {subject} is in no split, because the folder of the shard does not have the name of a split and metadata/subject_splits.parquet does not list the subject; add the subject to this file"
                    ),
                )
            })?;
        }
        Ok(self.to)
    }
}
