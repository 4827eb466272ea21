//! [`Fitted`]: the codes of the train split and what their numbers look like.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, StringArray};

use super::parallel::in_order;
use crate::error::{Error, Result};
use crate::io::meds::file::Source;
use crate::io::meds::{Chunk, MedsDataset, Place, Splits, TRAIN, Values};

/// What was counted for one code.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts {
    /// Measurements.
    pub(super) rows: u64,
    /// Subjects that have it. One that is in two shards counts twice.
    pub(super) subjects: u64,
    /// Measurements with a number.
    pub(super) values: u64,
    /// Sum of the numbers and of their squares, in 64 bits.
    pub(super) sum: f64,
    pub(super) sum_sqd: f64,
    /// The same in the arithmetic of meds-torch-data: see [`Compensated`].
    pub(super) single_sum: f32,
    pub(super) single_sum_sqd: f32,
}

/// Codes of the train split in the order of their bytes.
#[derive(Debug, Default)]
pub(super) struct Fitted {
    pub(super) codes: BTreeMap<Arc<str>, Counts>,
    /// Some shard has numbers of 64 bits.
    pub(super) double: bool,
}

/// A sum in 32 bits with the error of the last addition carried along. Within a shard, polars adds
/// up like this; over shards it adds plainly.
#[derive(Clone, Copy, Debug, Default)]
struct Compensated {
    sum: f32,
    error: f32,
}

impl Compensated {
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

#[derive(Clone, Copy, Debug, Default)]
struct Running {
    counts: Counts,
    single_sum: Compensated,
    single_sum_sqd: Compensated,
    last_subject: Option<i64>,
}

/// Which rows of a shard are for training.
#[derive(Clone, Copy)]
enum Rows {
    All,
    BySubject,
}

impl Fitted {
    /// Reads the train split once, `jobs` shards at a time.
    ///
    /// # Errors
    /// When the data set has splits but none called `train`, or a shard cannot be read.
    pub(super) fn of(dataset: &MedsDataset, splits: &Splits, jobs: usize) -> Result<Self> {
        let sources = dataset.sources();
        let unknown = sources.iter().all(|(name, _)| splits.place(name) == Place::Unknown);
        let train: Vec<(&Source, Rows)> = sources
            .iter()
            .filter_map(|(name, source)| match splits.place(name) {
                Place::Split(TRAIN) => Some((source, Rows::All)),
                Place::Split(_) => None,
                Place::BySubject => Some((source, Rows::BySubject)),
                Place::Unknown => unknown.then_some((source, Rows::All)),
            })
            .collect();
        if train.is_empty() {
            return Err(Error::file(
                dataset.root(),
                "no shard is in the split \"train\", which the vocabulary and the statistics are taken from; put a metadata/codes.parquet with code/vocab_index (and values/mean and values/std to normalize) beside the data",
            ));
        }
        let mut fitted = Self::default();
        let work = |i: usize| -> Result<ShardFit> {
            let (source, rows) = train[i];
            let splits = matches!(rows, Rows::BySubject).then_some(splits);
            match ShardFit::read(source, splits, false)? {
                Some(fit) => Ok(fit),
                None => ShardFit::read(source, splits, true)?.ok_or_else(|| {
                    Error::file(source.path(), "the file changed while it was read")
                }),
            }
        };
        in_order(train.len(), jobs, work, |shard| {
            fitted.merge(shard);
            Ok(())
        })?;
        Ok(fitted)
    }

    fn merge(&mut self, shard: ShardFit) {
        self.double |= shard.double;
        for (code, slot) in shard.slots {
            let running = &shard.running[slot];
            let counts = &running.counts;
            let total = self.codes.entry(code).or_default();
            total.rows += counts.rows;
            total.subjects += counts.subjects;
            total.values += counts.values;
            total.sum += counts.sum;
            total.sum_sqd += counts.sum_sqd;
            total.single_sum += running.single_sum.sum;
            total.single_sum_sqd += running.single_sum_sqd.sum;
        }
    }
}

/// The counts of one shard.
struct ShardFit {
    slots: HashMap<Arc<str>, usize>,
    running: Vec<Running>,
    double: bool,
}

impl ShardFit {
    /// `None` when a subject comes back later in the file, which only `scattered` counts right.
    fn read(source: &Source, splits: Option<&Splits>, scattered: bool) -> Result<Option<Self>> {
        let train = splits.and_then(|s| s.names().iter().position(|n| n == TRAIN));
        let mut fit = Self { slots: HashMap::new(), running: Vec::new(), double: false };
        let mut known: Option<StringArray> = None;
        let mut slot_of: Vec<Option<usize>> = Vec::new();
        let (mut left, mut pairs) = (HashSet::new(), HashSet::new());
        let mut current = None;
        let mut wanted = true;
        for chunk in Chunk::read(source)? {
            let chunk = chunk?;
            if known.as_ref().is_none_or(|k| !chunk.same_codes(k)) {
                slot_of.clear();
                slot_of.resize(chunk.codes.len(), None);
                known = Some(chunk.codes.clone());
            }
            fit.double |= matches!(chunk.values, Values::Double(_));
            for row in 0..chunk.len() {
                let subject = chunk.subjects[row];
                if current != Some(subject) {
                    if let Some(before) = current.replace(subject) {
                        left.insert(before);
                    }
                    if !scattered && left.contains(&subject) {
                        return Ok(None);
                    }
                    wanted =
                        splits.is_none_or(|s| train.is_some() && s.of_subject(subject) == train);
                }
                if !wanted {
                    continue;
                }
                let key = chunk.keys[row] as usize;
                // Only codes that are used are codes of the split: a dictionary may hold more.
                let slot = match slot_of[key] {
                    Some(slot) => slot,
                    None => *slot_of[key].insert(fit.slot(chunk.codes.value(key))),
                };
                let running = &mut fit.running[slot];
                let counts = &mut running.counts;
                counts.rows += 1;
                let new = if scattered {
                    pairs.insert((slot, subject))
                } else {
                    running.last_subject != Some(subject)
                };
                running.last_subject = Some(subject);
                counts.subjects += u64::from(new);
                match &chunk.values {
                    Values::Single(v) if v.is_valid(row) && !v.value(row).is_nan() => {
                        let (single, value) = (v.value(row), f64::from(v.value(row)));
                        counts.values += 1;
                        counts.sum += value;
                        counts.sum_sqd += value * value;
                        running.single_sum.add(single);
                        running.single_sum_sqd.add(single * single);
                    }
                    Values::Double(v) if v.is_valid(row) && !v.value(row).is_nan() => {
                        let value = v.value(row);
                        counts.values += 1;
                        counts.sum += value;
                        counts.sum_sqd += value * value;
                    }
                    _ => {}
                }
            }
        }
        Ok(Some(fit))
    }

    fn slot(&mut self, code: &str) -> usize {
        if let Some(slot) = self.slots.get(code) {
            return *slot;
        }
        self.running.push(Running::default());
        self.slots.insert(code.into(), self.running.len() - 1);
        self.running.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compensation_keeps_what_plain_addition_loses() {
        let (mut compensated, mut plain) = (Compensated::default(), 0.0f32);
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
