//! Statistics of the codes of the train split, as meds-torch-data computes them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrowPrimitiveType, PrimitiveArray, StringArray};

use super::parallel::run_in_order;
use crate::error::{Error, Result};
use crate::io::meds::file::MedsFile;
use crate::io::meds::{ChunkValues, MedsChunk, MedsDataset, SplitSource, SubjectSplits, TRAIN};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CodeCounts {
    pub(super) rows: u64,
    /// Number of subjects with the code. A subject in two shards is counted twice.
    pub(super) subjects: u64,
    /// Number of measurements of the code that have a value.
    pub(super) values: u64,
    /// Sums of the values and of their squares, in 64 bits.
    pub(super) sum: f64,
    pub(super) sum_sqd: f64,
    /// Sums of the values and of their squares in 32 bits, added as in meds-torch-data; see
    /// [`PolarsSum`].
    pub(super) single_sum: f32,
    pub(super) single_sum_sqd: f32,
}

/// Codes of the train split in byte order, with statistics of their values.
#[derive(Debug, Default)]
pub(super) struct FittedCodes {
    pub(super) codes: BTreeMap<Arc<str>, CodeCounts>,
    /// Whether some shard has 64-bit values; the sums are then computed in 64 bits.
    pub(super) double: bool,
}

/// A compensated 32-bit sum (Kahan), as Polars computes it within a shard. If Polars divides the
/// rows among threads, the last digit of its sum can differ. Sums of shards are added without
/// compensation.
#[derive(Clone, Copy, Debug, Default)]
struct PolarsSum {
    sum: f32,
    error: f32,
}

impl PolarsSum {
    #[inline]
    fn add(&mut self, value: f32) {
        if !value.is_finite() {
            self.sum += value;
            return;
        }
        let corrected = value - self.error;
        let sum = self.sum + corrected;
        self.error = (sum - self.sum) - corrected;
        self.sum = sum;
    }
}

/// Statistics of one code in a shard. They fill one cache line, so that counting a row loads only
/// this line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct RunningCounts {
    rows: u64,
    subjects: u64,
    values: u64,
    sum: f64,
    sum_sqd: f64,
    single_sum: PolarsSum,
    single_sum_sqd: PolarsSum,
    /// Number of the last run (adjacent rows of one subject) with the code, from 1; 0 if none.
    last_run: u64,
}

const _: () = assert!(size_of::<RunningCounts>() == 64);

/// A numeric value in the width stored in the shard, f32 or f64.
trait SummedNumber: Copy {
    /// Adds the value to the count and the sums of its code, unless it is NaN.
    fn add_to(self, running: &mut RunningCounts);
}

impl SummedNumber for f32 {
    #[inline]
    fn add_to(self, running: &mut RunningCounts) {
        f64::from(self).add_to(running);
        if !self.is_nan() {
            running.single_sum.add(self);
            running.single_sum_sqd.add(self * self);
        }
    }
}

impl SummedNumber for f64 {
    #[inline]
    fn add_to(self, running: &mut RunningCounts) {
        if !self.is_nan() {
            running.values += 1;
            running.sum += self;
            running.sum_sqd += self * self;
        }
    }
}

#[derive(Clone, Copy)]
enum TrainRows {
    All,
    BySubject,
}

impl FittedCodes {
    /// Computes the statistics from the split `train`, or from all shards if no shard has a split.
    /// Returns an error if there are splits, but `train` is not among them.
    pub(super) fn from_dataset(
        dataset: &MedsDataset,
        splits: &SubjectSplits,
        jobs: usize,
    ) -> Result<Self> {
        let sources = dataset.sources();
        let unknown =
            sources.iter().all(|(name, _)| splits.find_shard_split(name) == SplitSource::Unknown);
        let train: Vec<(&MedsFile, TrainRows)> = sources
            .iter()
            .filter_map(|(name, source)| match splits.find_shard_split(name) {
                SplitSource::Split(TRAIN) => Some((source, TrainRows::All)),
                SplitSource::Split(_) => None,
                SplitSource::BySubject => Some((source, TrainRows::BySubject)),
                SplitSource::Unknown => unknown.then_some((source, TrainRows::All)),
            })
            .collect();
        if train.is_empty() {
            return Err(Error::file(
                dataset.root(),
                "no shard is in the split \"train\", from which the vocabulary and the statistics are computed; add a metadata/codes.parquet with the column code/vocab_index (and, to normalize, values/mean and values/std)",
            ));
        }
        let mut fitted = Self::default();
        let work = |i: usize| -> Result<ShardFit> {
            let (source, rows) = train[i];
            let splits = matches!(rows, TrainRows::BySubject).then_some(splits);
            match ShardFit::read(source, splits, false)? {
                Some(fit) => Ok(fit),
                None => ShardFit::read(source, splits, true)?.ok_or_else(|| {
                    Error::file(
                        source.path(),
                        "the file changed while it was being read; read it again",
                    )
                }),
            }
        };
        run_in_order(train.len(), jobs, work, |shard| {
            fitted.merge(shard);
            Ok(())
        })?;
        Ok(fitted)
    }

    fn merge(&mut self, shard: ShardFit) {
        self.double |= shard.double;
        for (code, slot) in shard.slots {
            let running = &shard.running[slot];
            let total = self.codes.entry(code).or_default();
            total.rows += running.rows;
            total.subjects += running.subjects;
            total.values += running.values;
            total.sum += running.sum;
            total.sum_sqd += running.sum_sqd;
            total.single_sum += running.single_sum.sum;
            total.single_sum_sqd += running.single_sum_sqd.sum;
        }
    }
}

struct ShardFit {
    slots: HashMap<Arc<str>, usize>,
    running: Vec<RunningCounts>,
    double: bool,
}

#[derive(Default)]
struct CodeKeys {
    codes: Option<StringArray>,
    /// Index of each code in [`ShardFit::running`]; [`UNUSED`](Self::UNUSED) until the code occurs.
    slots: Vec<usize>,
}

impl CodeKeys {
    const UNUSED: usize = usize::MAX;

    fn follow_events(&mut self, chunk: &MedsChunk) {
        if self.codes.as_ref().is_none_or(|codes| !chunk.has_same_codes(codes)) {
            self.slots.clear();
            self.slots.resize(chunk.codes.len(), Self::UNUSED);
            self.codes = Some(chunk.codes.clone());
        }
    }
}

impl ShardFit {
    /// Counts the codes of a shard. If the rows of a subject are not contiguous, returns `None`
    /// unless `scattered` is true; such a subject is then counted only once per code, which takes
    /// more memory.
    fn read(
        source: &MedsFile,
        splits: Option<&SubjectSplits>,
        scattered: bool,
    ) -> Result<Option<Self>> {
        let train = splits.and_then(|s| s.names().iter().position(|n| n == TRAIN));
        let mut fit = Self { slots: HashMap::new(), running: Vec::new(), double: false };
        let mut keys = CodeKeys::default();
        let mut left = HashSet::new();
        let mut pairs = scattered.then(HashSet::new);
        let mut current = None;
        let mut run = 0u64;
        let mut wanted = true;
        for chunk in MedsChunk::read_without_times(source)? {
            let chunk = chunk?;
            keys.follow_events(&chunk);
            fit.double |= matches!(chunk.values, ChunkValues::Double(_));
            let mut row = 0;
            while let Some(&subject) = chunk.subjects.get(row) {
                if current != Some(subject) {
                    if let Some(before) = current.replace(subject) {
                        left.insert(before);
                    }
                    if !scattered && left.contains(&subject) {
                        return Ok(None);
                    }
                    run = run.saturating_add(1);
                    wanted =
                        splits.is_none_or(|s| train.is_some() && s.find_split(subject) == train);
                }
                let more = chunk.subjects[row..].iter().take_while(|s| **s == subject).count();
                let rows = row..row + more;
                row = rows.end;
                if !wanted {
                    continue;
                }
                if let Some(pairs) = &mut pairs {
                    for &key in &chunk.keys[rows.clone()] {
                        let slot = fit.find_or_add_slot(&mut keys, &chunk, key);
                        fit.running[slot].subjects += u64::from(pairs.insert((slot, subject)));
                    }
                }
                let run = (!scattered).then_some(run);
                match &chunk.values {
                    ChunkValues::Absent => fit.count(&mut keys, &chunk, rows, run, |_| None::<f32>),
                    ChunkValues::Single(v) => fit.count_values(&mut keys, &chunk, rows, run, v),
                    ChunkValues::Double(v) => fit.count_values(&mut keys, &chunk, rows, run, v),
                }
            }
        }
        Ok(Some(fit))
    }

    fn count_values<T: ArrowPrimitiveType<Native: SummedNumber>>(
        &mut self,
        keys: &mut CodeKeys,
        chunk: &MedsChunk,
        rows: Range<usize>,
        run: Option<u64>,
        values: &PrimitiveArray<T>,
    ) {
        let numbers = values.values();
        match values.nulls().filter(|n| n.null_count() > 0) {
            None => self.count(keys, chunk, rows, run, |row| Some(numbers[row])),
            Some(nulls) => self
                .count(keys, chunk, rows, run, |row| nulls.is_valid(row).then_some(numbers[row])),
        }
    }

    /// Counts the codes of `rows`, which belong to one subject. Also counts the subject, once for
    /// each code of the run `run` (see [`RunningCounts::last_run`]), unless `run` is `None`: the
    /// caller then counts subjects.
    #[inline]
    fn count<N: SummedNumber>(
        &mut self,
        keys: &mut CodeKeys,
        chunk: &MedsChunk,
        rows: Range<usize>,
        run: Option<u64>,
        number: impl Fn(usize) -> Option<N>,
    ) {
        for row in rows {
            let slot = self.find_or_add_slot(keys, chunk, chunk.keys[row]);
            let running = &mut self.running[slot];
            running.rows += 1;
            if let Some(run) = run {
                running.subjects += u64::from(running.last_run != run);
                running.last_run = run;
            }
            if let Some(number) = number(row) {
                number.add_to(running);
            }
        }
    }

    #[inline]
    fn find_or_add_slot(&mut self, keys: &mut CodeKeys, chunk: &MedsChunk, key: u32) -> usize {
        match keys.slots[key as usize] {
            CodeKeys::UNUSED => {
                let slot = self.add_slot(chunk.codes.value(key as usize));
                keys.slots[key as usize] = slot;
                slot
            }
            slot => slot,
        }
    }

    #[cold]
    fn add_slot(&mut self, code: &str) -> usize {
        if let Some(slot) = self.slots.get(code) {
            return *slot;
        }
        self.running.push(RunningCounts::default());
        self.slots.insert(code.into(), self.running.len() - 1);
        self.running.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compensation_keeps_what_plain_addition_loses() {
        let (mut compensated, mut plain) = (PolarsSum::default(), 0.0f32);
        for _ in 0..1_000_000 {
            compensated.add(0.1);
            plain += 0.1;
        }
        assert!((compensated.sum - 100_000.0).abs() < 0.01, "{}", compensated.sum);
        assert!((plain - 100_000.0).abs() > 100.0, "{plain}");
        compensated.add(f32::INFINITY);
        compensated.add(1.0);
        assert_eq!(compensated.sum, f32::INFINITY);
    }
}
