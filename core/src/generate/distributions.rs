//! Distributions from which synthetic patients are drawn.

use std::path::Path;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng as _;
use serde::Deserialize;

use crate::access;
use crate::error::{Error, Result};

/// Distributions from which synthetic patients are drawn: the number of events of a patient, the
/// number of measurements of an event, and how often measurements of a code have a value.
///
/// The default, [`PatientDistributions::mimic`], has the frequencies of an extract of MIMIC: the
/// number of events per patient has 897 distinct values (mean 228), and the number of measurements
/// per event has 511 distinct values (mean 36.7).
#[derive(Clone, Debug, Deserialize)]
pub struct PatientDistributions {
    /// Number of distinct codes; their tokens are `1..=vocab_size`.
    vocab_size: u32,
    /// Distribution of the fraction (0 to 1) of the measurements of a code that have a value. The
    /// generator draws one fraction per code.
    frac_codes_with_value: FrequencyTable<f64>,
    events: FrequencyTable<u32>,
    measurements: FrequencyTable<u32>,
}

#[derive(Clone, Debug, Deserialize)]
struct FrequencyTable<T> {
    x: Vec<T>,
    freq: Vec<u64>,
}

impl PatientDistributions {
    /// Returns the built-in distributions, which are those of an extract of MIMIC.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::generate::PatientDistributions;
    /// let (events, measurements) = PatientDistributions::mimic()?.means();
    /// assert!(events > 200.0 && measurements > 30.0);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Never, unless the built-in distributions are invalid, which is a bug of the crate.
    pub fn mimic() -> Result<Self> {
        Self::parse(include_str!("mimic-shape.json"))
            .map_err(|e| Error::invalid(format!("internal error: the built-in distributions of the synthetic patients are invalid ({e}); please report it")))
    }

    /// Reads distributions from a JSON file with the members `vocab_size`, `frac_codes_with_value`,
    /// `events` and `measurements`; the last three are `{"x": [values], "freq": [counts]}`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::generate::PatientDistributions;
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("distributions.json");
    /// std::fs::write(&path, r#"{"vocab_size": 5, "frac_codes_with_value": {"x": [0.5], "freq": [1]},
    ///     "events": {"x": [3], "freq": [1]}, "measurements": {"x": [2], "freq": [1]}}"#)?;
    /// let distributions = PatientDistributions::open(&path)?;
    /// assert_eq!((distributions.vocab_size(), distributions.means()), (5, (3.0, 2.0)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read or lacks one of these members, or if in a distribution the lists
    /// `x` and `freq` differ in length or all frequencies are 0.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = access::read_to_string(path).map_err(|e| Error::io(path, e))?;
        Self::parse(&text).map_err(|e| Error::file(path, e))
    }

    fn parse(text: &str) -> std::result::Result<Self, String> {
        let distributions: Self = serde_json::from_str(text).map_err(|e| e.to_string())?;
        if distributions.vocab_size == 0
            || distributions.vocab_size > u32::from(u16::MAX) - RESERVED
        {
            return Err(format!(
                "vocab_size is {}; give a number from 1 to {}",
                distributions.vocab_size,
                u32::from(u16::MAX) - RESERVED
            ));
        }
        distributions.events.check_frequencies("events")?;
        distributions.measurements.check_frequencies("measurements")?;
        distributions.frac_codes_with_value.check_frequencies("frac_codes_with_value")?;
        match distributions.frac_codes_with_value.x.iter().find(|p| !(0.0..=1.0).contains(*p)) {
            Some(p) => Err(format!(
                "frac_codes_with_value has the value {p}, but every value must be from 0 to 1; correct the value"
            )),
            None => Ok(distributions),
        }
    }

    /// Returns the number of distinct codes; tokens are `1..=vocab_size`, token 0 is padding.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::generate::PatientDistributions;
    /// assert!(PatientDistributions::mimic()?.vocab_size() > 1000);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn vocab_size(&self) -> u32 {
        self.vocab_size
    }

    /// Returns the mean number of events per patient and of measurements per event.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::generate::PatientDistributions;
    /// let (events, measurements) = PatientDistributions::mimic()?.means();
    /// assert!((events - 228.0).abs() < 0.1 && (measurements - 36.7).abs() < 0.1);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn means(&self) -> (f64, f64) {
        (self.events.compute_mean(), self.measurements.compute_mean())
    }
}

/// Number of tokens after `vocab_size` that are reserved for the static facts of a MEDS data set.
pub(super) const RESERVED: u32 = 3;

impl<T> FrequencyTable<T> {
    fn check_frequencies(&self, name: &str) -> std::result::Result<(), String> {
        if self.x.len() != self.freq.len() {
            return Err(format!(
                "{name}: x has {} values but freq has {}; give both lists the same number of values",
                self.x.len(),
                self.freq.len()
            ));
        }
        if u32::try_from(self.x.len()).is_err() {
            return Err(format!(
                "{name} has more than 2^32 - 1 values, the maximum; remove values"
            ));
        }
        let total = self.freq.iter().try_fold(0u64, |sum, f| sum.checked_add(*f));
        match total {
            Some(0) => Err(format!(
                "{name}: all frequencies are 0; at least one frequency must be above 0"
            )),
            Some(_) => Ok(()),
            None => Err(format!(
                "{name}: the sum of the frequencies exceeds 64 bits; use smaller frequencies"
            )),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "frequencies are far below 2^53")]
    fn compute_weights(&self) -> Vec<f64> {
        self.freq.iter().map(|f| *f as f64).collect()
    }
}

impl FrequencyTable<u32> {
    fn compute_mean(&self) -> f64 {
        let weights = self.compute_weights();
        let sum: f64 = self.x.iter().zip(&weights).map(|(x, w)| f64::from(*x) * w).sum();
        sum / weights.iter().sum::<f64>()
    }
}

/// Draws an index by weight in constant time (Walker's alias method).
#[derive(Clone, Debug)]
struct AliasTable {
    /// Threshold and alias of each index. A random u32 below the threshold draws the index itself;
    /// any other u32 draws the alias.
    slots: Vec<(u32, u32)>,
}

impl AliasTable {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "indices are below 2^32 (checked with the distributions), thresholds within 0..2^32"
    )]
    fn new(weights: &[f64]) -> Self {
        let total: f64 = weights.iter().sum();
        let mut scaled: Vec<f64> =
            weights.iter().map(|w| w / total * weights.len() as f64).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..scaled.len()).partition(|i| scaled[*i] < 1.0);
        let mut slots: Vec<(u32, u32)> = (0..scaled.len()).map(|i| (u32::MAX, i as u32)).collect();
        while let (Some(s), Some(&l)) = (small.pop(), large.last()) {
            slots[s] = ((scaled[s] * 4_294_967_296.0) as u32, l as u32);
            scaled[l] -= 1.0 - scaled[s];
            if scaled[l] < 1.0 {
                large.pop();
                small.push(l);
            }
        }
        Self { slots }
    }

    #[inline]
    fn draw_index(&self, random: u64) -> usize {
        let (low, high) = (random & 0xffff_ffff, random >> 32);
        // `high < 2^32`, so `slot` is less than the length of `slots`.
        let slot = ((high * self.slots.len() as u64) >> 32) as usize;
        let (threshold, alias) = self.slots[slot];
        if low < u64::from(threshold) { slot } else { alias as usize }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CodeValues {
    /// A measurement has a value if a random 32-bit number is below `present`; 2^32 means always.
    present: u64,
    mean: f32,
    spread: f32,
}

#[derive(Clone, Debug)]
pub(super) struct PatientSampler {
    events: (AliasTable, Vec<u32>),
    measurements: (AliasTable, Vec<u32>),
    codes: AliasTable,
    values: Vec<CodeValues>,
}

impl PatientSampler {
    /// Draws, for each code, how often its measurements have a value, and the mean of the values.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "fractions of 2^32 that were checked to be within 0..=1"
    )]
    pub(super) fn new(distributions: &PatientDistributions, rng: &mut ChaCha8Rng) -> Self {
        let fraction = AliasTable::new(&distributions.frac_codes_with_value.compute_weights());
        let values = (0..distributions.vocab_size)
            .map(|_| {
                let p = distributions.frac_codes_with_value.x[fraction.draw_index(rng.next_u64())];
                let size = [0.1f32, 1.0, 10.0][rng.next_u32() as usize % 3];
                let mean = size * (1 + rng.next_u32() % 99) as f32;
                CodeValues { present: (p * 4_294_967_296.0) as u64, mean, spread: mean * 0.2 }
            })
            .collect();
        // A few codes account for most measurements, as in Zipf's law with an offset of 2.7.
        let weights: Vec<f64> =
            (0..distributions.vocab_size).map(|rank| 1.0 / (f64::from(rank) + 2.7)).collect();
        Self {
            events: (
                AliasTable::new(&distributions.events.compute_weights()),
                distributions.events.x.clone(),
            ),
            measurements: (
                AliasTable::new(&distributions.measurements.compute_weights()),
                distributions.measurements.x.clone(),
            ),
            codes: AliasTable::new(&weights),
            values,
        }
    }

    /// Returns, for each code in token order, whether any of its measurements can have a value.
    #[cfg(feature = "parquet")]
    pub(super) fn have_values(&self) -> impl ExactSizeIterator<Item = bool> + '_ {
        self.values.iter().map(|v| v.present > 0)
    }

    pub(super) fn draw_events(&self, rng: &mut ChaCha8Rng) -> u32 {
        self.events.1[self.events.0.draw_index(rng.next_u64())]
    }

    pub(super) fn draw_measurements(&self, rng: &mut ChaCha8Rng) -> u32 {
        self.measurements.1[self.measurements.0.draw_index(rng.next_u64())]
    }

    /// Draws a token in `1..=vocab_size` and a value; the value is NaN if the measurement has none.
    #[inline]
    pub(super) fn draw_measurement(&self, rng: &mut ChaCha8Rng) -> (u16, f32) {
        let code = self.codes.draw_index(rng.next_u64());
        let values = &self.values[code];
        #[expect(clippy::cast_possible_truncation, reason = "vocab_size fits 16 bits")]
        let token = (code + 1) as u16;
        if values.present == 0 {
            return (token, f32::NAN);
        }
        let random = rng.next_u64();
        if random >> 32 >= values.present {
            return (token, f32::NAN);
        }
        // The sum of three uniform numbers approximates a normal distribution.
        let bits = rng.next_u64();
        let uniform = |shift: u32| ((bits >> shift) & 0xf_ffff) as f32 / 1_048_576.0;
        let bell = (uniform(0) + uniform(20) + uniform(40) - 1.5) * 2.0;
        // Round to two decimals, the precision of laboratory reports.
        (token, ((values.mean + values.spread * bell) * 100.0).round() / 100.0)
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn alias_draws_follow_the_weights() {
        let alias = AliasTable::new(&[1.0, 0.0, 3.0, 6.0]);
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut seen = [0usize; 4];
        for _ in 0..100_000 {
            seen[alias.draw_index(rng.next_u64())] += 1;
        }
        assert_eq!(seen[1], 0);
        for (n, expected) in seen.iter().zip([10_000usize, 0, 30_000, 60_000]) {
            assert!(n.abs_diff(expected) < 1_000, "{seen:?}");
        }
    }

    #[test]
    fn the_built_in_distributions_have_the_means_they_are_known_for() {
        let distributions = PatientDistributions::mimic().unwrap();
        let (events, measurements) = distributions.means();
        assert!((events - 228.018).abs() < 0.001 && (measurements - 36.708).abs() < 0.001);
        assert_eq!(distributions.vocab_size(), 10_000);
    }

    #[test]
    fn wrong_distributions_are_refused() {
        let with = |vocab: u32, x: &str, freq: &str| {
            PatientDistributions::parse(&format!(
                r#"{{"vocab_size": {vocab}, "frac_codes_with_value": {{"x": [0.5], "freq": [1]}},
                   "events": {{"x": {x}, "freq": {freq}}}, "measurements": {{"x": [1], "freq": [1]}}}}"#
            ))
        };
        assert!(with(5, "[1]", "[1]").is_ok());
        assert!(with(0, "[1]", "[1]").unwrap_err().contains("vocab_size"));
        assert!(with(65_535, "[1]", "[1]").unwrap_err().contains("vocab_size"));
        assert!(with(5, "[1, 2]", "[1]").unwrap_err().contains("x has 2 values but freq has 1"));
        assert!(with(5, "[1]", "[0]").unwrap_err().contains("above 0"));
        assert!(with(5, "[]", "[]").unwrap_err().contains("above 0"));
        assert!(with(5, "[1, 2]", "[18446744073709551615, 1]").unwrap_err().contains("64 bits"));
    }
}
