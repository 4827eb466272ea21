//! The shape of a population: how many events, how many measurements, which codes have values.

use std::path::Path;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng as _;
use serde::Deserialize;

use crate::error::{Error, Result};

/// Distributions that generated patients follow.
///
/// The built-in one, [`Shape::mimic`], holds the frequencies counted in an extract of MIMIC: 897
/// distinct numbers of events per patient (mean 228) and 511 of measurements per event (mean 36.7).
#[derive(Clone, Debug, Deserialize)]
pub struct Shape {
    /// Number of distinct codes, the tokens `1..=vocab_size`.
    vocab_size: u32,
    /// Which fraction of a code's occurrences have a value, with how many codes it is so.
    frac_codes_with_value: Frequencies<f64>,
    /// Events per patient.
    events: Frequencies<u32>,
    /// Measurements per event.
    measurements: Frequencies<u32>,
}

/// Values and how often each was seen.
#[derive(Clone, Debug, Deserialize)]
struct Frequencies<T> {
    x: Vec<T>,
    freq: Vec<u64>,
}

impl Shape {
    /// The shape of a MIMIC extract, built in.
    ///
    /// # Errors
    /// None in practice: the distribution is part of the program.
    pub fn mimic() -> Result<Self> {
        Self::parse(include_str!("mimic-shape.json"))
            .map_err(|e| Error::invalid(format!("the built-in shape: {e}")))
    }

    /// A shape from a JSON file with the members `vocab_size`, `frac_codes_with_value`, `events`
    /// and `measurements`; the last three are `{"x": [values], "freq": [counts]}`.
    ///
    /// # Errors
    /// When the file cannot be read, is no such JSON, or a distribution is empty or unbalanced.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
        Self::parse(&text).map_err(|e| Error::file(path, e))
    }

    fn parse(text: &str) -> std::result::Result<Self, String> {
        let shape: Self = serde_json::from_str(text).map_err(|e| e.to_string())?;
        if shape.vocab_size == 0 || shape.vocab_size > u32::from(u16::MAX) - RESERVED {
            return Err(format!(
                "vocab_size {} is not within 1..={}",
                shape.vocab_size,
                u32::from(u16::MAX) - RESERVED
            ));
        }
        shape.events.check("events")?;
        shape.measurements.check("measurements")?;
        shape.frac_codes_with_value.check("frac_codes_with_value")?;
        match shape.frac_codes_with_value.x.iter().find(|p| !(0.0..=1.0).contains(*p)) {
            Some(p) => Err(format!("frac_codes_with_value: {p} is not within 0..=1")),
            None => Ok(shape),
        }
    }

    /// Number of distinct codes; tokens are `1..=vocab_size`, 0 is padding.
    pub fn vocab_size(&self) -> u32 {
        self.vocab_size
    }

    /// Mean number of events per patient and of measurements per event.
    pub fn means(&self) -> (f64, f64) {
        (self.events.mean(), self.measurements.mean())
    }
}

/// Tokens above the vocabulary that static facts take in a MEDS data set.
pub(super) const RESERVED: u32 = 3;

impl<T> Frequencies<T> {
    fn check(&self, name: &str) -> std::result::Result<(), String> {
        if self.x.len() != self.freq.len() {
            return Err(format!("{name}: {} x but {} freq", self.x.len(), self.freq.len()));
        }
        if u32::try_from(self.x.len()).is_err() {
            return Err(format!("{name}: more than 2^32 - 1 values"));
        }
        let total = self.freq.iter().try_fold(0u64, |sum, f| sum.checked_add(*f));
        match total {
            Some(0) => Err(format!("{name}: no frequency is above 0")),
            Some(_) => Ok(()),
            None => Err(format!("{name}: the frequencies do not add up within 64 bits")),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "frequencies are far below 2^53")]
    fn weights(&self) -> Vec<f64> {
        self.freq.iter().map(|f| *f as f64).collect()
    }
}

impl Frequencies<u32> {
    fn mean(&self) -> f64 {
        let weights = self.weights();
        let sum: f64 = self.x.iter().zip(&weights).map(|(x, w)| f64::from(*x) * w).sum();
        sum / weights.iter().sum::<f64>()
    }
}

/// Draws an index by weight in constant time (the alias method).
#[derive(Clone, Debug)]
struct Alias {
    /// Per slot: take the slot itself when 32 random bits are below this, else its alias.
    slots: Vec<(u32, u32)>,
}

impl Alias {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "indices are below 2^32 (checked with the shape), thresholds within 0..2^32"
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
    fn draw(&self, random: u64) -> usize {
        let (low, high) = (random & 0xffff_ffff, random >> 32);
        // Below the number of slots: high < 2^32.
        let slot = ((high * self.slots.len() as u64) >> 32) as usize;
        let (threshold, alias) = self.slots[slot];
        if low < u64::from(threshold) { slot } else { alias as usize }
    }
}

/// What a code's values look like.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodeValues {
    /// The code has a value where 32 random bits are below this.
    present: u64,
    mean: f32,
    spread: f32,
}

/// A shape made ready for drawing, with the properties of every code, for one seed.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    events: (Alias, Vec<u32>),
    measurements: (Alias, Vec<u32>),
    codes: Alias,
    values: Vec<CodeValues>,
}

impl Sampler {
    /// `rng` settles which codes have values, and of what size.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "fractions of 2^32 that were checked to be within 0..=1"
    )]
    pub(super) fn new(shape: &Shape, rng: &mut ChaCha8Rng) -> Self {
        let fraction = Alias::new(&shape.frac_codes_with_value.weights());
        let values = (0..shape.vocab_size)
            .map(|_| {
                let p = shape.frac_codes_with_value.x[fraction.draw(rng.next_u64())];
                let size = [0.1f32, 1.0, 10.0][rng.next_u32() as usize % 3];
                let mean = size * (1 + rng.next_u32() % 99) as f32;
                CodeValues { present: (p * 4_294_967_296.0) as u64, mean, spread: mean * 0.2 }
            })
            .collect();
        // A few codes make up most of what is recorded: Zipf's law, the very first flattened.
        let weights: Vec<f64> =
            (0..shape.vocab_size).map(|rank| 1.0 / (f64::from(rank) + 2.7)).collect();
        Self {
            events: (Alias::new(&shape.events.weights()), shape.events.x.clone()),
            measurements: (Alias::new(&shape.measurements.weights()), shape.measurements.x.clone()),
            codes: Alias::new(&weights),
            values,
        }
    }

    /// Whether each code (0-based) ever has values.
    #[cfg(feature = "parquet")]
    pub(super) fn have_values(&self) -> impl ExactSizeIterator<Item = bool> + '_ {
        self.values.iter().map(|v| v.present > 0)
    }

    pub(super) fn events(&self, rng: &mut ChaCha8Rng) -> u32 {
        self.events.1[self.events.0.draw(rng.next_u64())]
    }

    pub(super) fn measurements(&self, rng: &mut ChaCha8Rng) -> u32 {
        self.measurements.1[self.measurements.0.draw(rng.next_u64())]
    }

    /// A token in `1..=vocab_size` and its value, NaN where it has none.
    #[inline]
    pub(super) fn measurement(&self, rng: &mut ChaCha8Rng) -> (u16, f32) {
        let code = self.codes.draw(rng.next_u64());
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
        // The sum of three uniform numbers is close enough to a bell curve.
        let bits = rng.next_u64();
        let uniform = |shift: u32| ((bits >> shift) & 0xf_ffff) as f32 / 1_048_576.0;
        let bell = (uniform(0) + uniform(20) + uniform(40) - 1.5) * 2.0;
        // As laboratories do: a few decimals.
        (token, ((values.mean + values.spread * bell) * 100.0).round() / 100.0)
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn alias_draws_follow_the_weights() {
        let alias = Alias::new(&[1.0, 0.0, 3.0, 6.0]);
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut seen = [0usize; 4];
        for _ in 0..100_000 {
            seen[alias.draw(rng.next_u64())] += 1;
        }
        assert_eq!(seen[1], 0);
        for (n, expected) in seen.iter().zip([10_000usize, 0, 30_000, 60_000]) {
            assert!(n.abs_diff(expected) < 1_000, "{seen:?}");
        }
    }

    #[test]
    fn the_built_in_shape_has_the_means_it_is_known_for() {
        let shape = Shape::mimic().unwrap();
        let (events, measurements) = shape.means();
        assert!((events - 228.018).abs() < 0.001 && (measurements - 36.708).abs() < 0.001);
        assert_eq!(shape.vocab_size(), 10_000);
    }

    #[test]
    fn wrong_shapes_are_refused() {
        let with = |vocab: u32, x: &str, freq: &str| {
            Shape::parse(&format!(
                r#"{{"vocab_size": {vocab}, "frac_codes_with_value": {{"x": [0.5], "freq": [1]}},
                   "events": {{"x": {x}, "freq": {freq}}}, "measurements": {{"x": [1], "freq": [1]}}}}"#
            ))
        };
        assert!(with(5, "[1]", "[1]").is_ok());
        assert!(with(0, "[1]", "[1]").unwrap_err().contains("vocab_size"));
        assert!(with(65_535, "[1]", "[1]").unwrap_err().contains("vocab_size"));
        assert!(with(5, "[1, 2]", "[1]").unwrap_err().contains("2 x but 1 freq"));
        assert!(with(5, "[1]", "[0]").unwrap_err().contains("above 0"));
        assert!(with(5, "[]", "[]").unwrap_err().contains("above 0"));
        assert!(with(5, "[1, 2]", "[18446744073709551615, 1]").unwrap_err().contains("64 bits"));
    }
}
