//! [`NumberSketch`]: counts numbers in bounded memory, and computes quantiles from the counts.

use std::collections::BTreeMap;

/// Maximum number of distinct numbers that a [`NumberSketch`] counts exactly.
pub(super) const MAX_EXACT: usize = 1 << 16;
/// Maximum number of values that a [`NumberSketch`] sorts at a time, to count equal values
/// together.
const MAX_SORTED: usize = 1 << 16;

/// Counts of finite numbers. Up to [`MAX_EXACT`] distinct numbers have one count each. If there are
/// more, each range of numbers has one count, and the width of a range is proportional to the
/// numbers in it. The counts do not depend on the order in which numbers arrive, or on their
/// division into batches.
#[derive(Clone, Debug)]
pub(super) struct NumberSketch {
    /// Number of values per key. A key encodes the bits of a number, so that keys have the same
    /// order as numbers. A key without its low bits stands for a range of numbers.
    counts: BTreeMap<u64, u64>,
    /// Number of low bits that the keys of `counts` lack: 0 while each number has its own count,
    /// then `coarse`.
    dropped: u32,
    /// Value of `dropped` once there are more than [`MAX_EXACT`] distinct numbers.
    coarse: u32,
    total: u64,
    range: Option<(f64, f64)>,
}

impl NumberSketch {
    /// Creates a sketch whose ranges have a relative width of `2^-bits`.
    pub(super) fn new(bits: u32) -> Self {
        let coarse = (f64::MANTISSA_DIGITS - 1).saturating_sub(bits);
        Self { counts: BTreeMap::new(), dropped: 0, coarse, total: 0, range: None }
    }

    /// Counts the finite numbers in `numbers`. NaN and infinite numbers are ignored.
    pub(super) fn extend(&mut self, numbers: impl Iterator<Item = f64>) {
        let mut keys = Vec::with_capacity(MAX_SORTED.min(numbers.size_hint().0));
        for number in numbers.filter(|n| n.is_finite()) {
            // This addition turns -0.0 into 0.0, so that both zeros count as one number.
            let number = number + 0.0;
            let (low, high) = self.range.unwrap_or((number, number));
            self.range = Some((low.min(number), high.max(number)));
            keys.push(to_key(number));
            if keys.len() == MAX_SORTED {
                self.add_keys(&mut keys);
            }
        }
        self.add_keys(&mut keys);
    }

    fn add_keys(&mut self, keys: &mut Vec<u64>) {
        keys.sort_unstable();
        for run in keys.chunk_by(|a, b| a >> self.dropped == b >> self.dropped) {
            let count = run.len() as u64;
            self.total += count;
            if let Some(key) = run.first() {
                *self.counts.entry(key >> self.dropped).or_default() += count;
            }
        }
        keys.clear();
        if self.dropped == 0 && self.counts.len() > MAX_EXACT {
            let exact = std::mem::take(&mut self.counts);
            self.dropped = self.coarse;
            for (key, count) in exact {
                *self.counts.entry(key >> self.dropped).or_default() += count;
            }
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.total
    }

    /// Returns the smallest and the greatest number, exactly; `None` without numbers.
    pub(super) fn bounds(&self) -> Option<(f64, f64)> {
        self.range
    }

    pub(super) fn count_distinct(&self) -> Option<usize> {
        (self.dropped == 0).then_some(self.counts.len())
    }

    /// Returns numbers with their counts, in ascending order. If numbers are counted by ranges, the
    /// middle of each range is returned instead of its numbers.
    pub(super) fn iter_counts(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let (low, high) = self.range.unwrap_or((0.0, 0.0));
        let middle = if self.dropped == 0 { 0 } else { 1u64 << (self.dropped - 1) };
        self.counts.iter().map(move |(key, count)| {
            (from_key((key << self.dropped) | middle).clamp(low, high), *count)
        })
    }

    /// Returns quantile `q` (0 to 1): the smallest number such that a share of at least `q` of all
    /// numbers is less than or equal to it. Returns `None` if there are no numbers.
    pub(super) fn find_quantile(&self, q: f64) -> Option<f64> {
        // The quantiles 0 and 1 are exact, even if numbers are counted by ranges.
        match self.range? {
            (low, _) if q <= 0.0 => return Some(low),
            (_, high) if q >= 1.0 => return Some(high),
            _ => {}
        }
        let mut seen = 0;
        self.iter_counts().find_map(|(number, count)| {
            seen += count;
            (seen as f64 >= self.total as f64 * q).then_some(number)
        })
    }

    /// Divides the range from quantile `low` to quantile `high` into `bins` equal parts, and
    /// returns how many numbers are in each. Returns `None` if there are no numbers.
    pub(super) fn count_bins(&self, bins: usize, low: f64, high: f64) -> Option<Vec<u64>> {
        let (low, high) = (self.find_quantile(low)?, self.find_quantile(high)?);
        let width = high - low;
        let mut counts = vec![0; bins];
        for (number, count) in self.iter_counts().filter(|(n, _)| (low..=high).contains(n)) {
            let share = if width > 0.0 && width.is_finite() { (number - low) / width } else { 0.5 };
            if let Some(bin) = counts.get_mut(find_share_index(share, bins)) {
                *bin += count;
            }
        }
        Some(counts)
    }
}

/// Divides the range from 0 to 1 into `parts` equal parts. Returns the index of the part that
/// contains `share`.
pub(super) fn find_share_index(share: f64, parts: usize) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the number of parts"
    )]
    let index = (share.clamp(0.0, 1.0) * parts as f64) as usize;
    index.min(parts.saturating_sub(1))
}

fn to_key(number: f64) -> u64 {
    let bits = number.to_bits();
    // The bits of negative numbers have the reverse order of the numbers, so all bits are inverted.
    // The sign bit of other numbers is set, so that they follow the negative ones.
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn from_key(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 { key & !(1 << 63) } else { !key })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch_of(numbers: &[f64], chunk: usize) -> NumberSketch {
        let mut sketch = NumberSketch::new(11);
        numbers.chunks(chunk).for_each(|part| sketch.extend(part.iter().copied()));
        sketch
    }

    #[test]
    fn few_numbers_are_exact() {
        let numbers = [3.0, -1.5, f64::NAN, 0.0, -0.0, f64::INFINITY, 3.0, f64::MAX, f64::MIN];
        let sketch = sketch_of(&numbers, 2);
        assert_eq!(sketch.count(), 7);
        assert_eq!(sketch.count_distinct(), Some(5));
        assert_eq!(sketch.bounds(), Some((f64::MIN, f64::MAX)));
        let sorted = [f64::MIN, -1.5, 0.0, 0.0, 3.0, 3.0, f64::MAX];
        for (i, number) in sorted.iter().enumerate() {
            assert_eq!(sketch.find_quantile((i as f64 + 0.5) / 7.0), Some(*number));
        }
        assert_eq!(sketch.find_quantile(0.0), Some(f64::MIN));
        assert_eq!(sketch_of(&[], 1).find_quantile(0.5), None);
        assert_eq!(sketch.count_bins(3, 0.0, 1.0).map(|b| b.iter().sum()), Some(7u64));
        assert_eq!(sketch_of(&[2.0, 2.0], 1).count_bins(3, 0.0, 1.0), Some(vec![0, 2, 0]));
    }

    #[test]
    fn many_numbers_are_close_and_do_not_depend_on_their_order() {
        let mut numbers: Vec<f64> =
            (0..200_000).map(|i| (f64::from(i) - 60_000.0) * 1.37e-3).collect();
        let sketch = sketch_of(&numbers, 1000);
        assert_eq!(sketch.count_distinct(), None);
        for (q, rank) in [(0.0, 1), (0.01, 2_000), (0.25, 50_000), (0.9, 180_000), (1.0, 200_000)] {
            let at = rank - 1;
            let (exact, found) = (numbers[at], sketch.find_quantile(q).unwrap());
            assert!((found - exact).abs() <= exact.abs() / 2048.0, "{q}: {found}, {exact}");
        }
        numbers.reverse();
        let reversed = sketch_of(&numbers, 77_777);
        assert!(sketch.iter_counts().eq(reversed.iter_counts()));
    }
}
