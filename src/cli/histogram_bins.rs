//! Divides counted integers into a few histogram bins with round bounds.

/// A range of integers, and the number of values in this range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HistogramBin {
    pub(super) low: u64,
    /// Largest integer in the range, which starts at `low`.
    pub(super) high: u64,
    pub(super) count: u64,
}

impl HistogramBin {
    /// Returns the bounds of the bin joined by `dash`, such as `10–19`. For a bin of one integer,
    /// returns only this integer. `format` formats each integer.
    pub(super) fn to_label(&self, format: impl Fn(u64) -> String, dash: &str) -> String {
        match self.low == self.high {
            true => format(self.low),
            false => format!("{}{dash}{}", format(self.low), format(self.high)),
        }
    }
}

/// Groups integers into at most `most` (4 or more) bins. `counts` has each integer with its number
/// of occurrences, in ascending order of the integers. In a short range, each integer has its own
/// bin. In a longer range, all bins have the same round width (`0–49`, `50–99`), unless most
/// integers are small and a few are large ([`is_skewed`]): then bins begin at 0 or at powers of two
/// (`0`, `1`, `2–3`, `4–7`).
pub(super) fn group_into_bins(counts: &[(u64, u64)], most: usize) -> Vec<HistogramBin> {
    let (Some((min, _)), Some((max, _))) = (counts.first(), counts.last()) else {
        return Vec::new();
    };
    let (min, max, most) = (*min, *max, most.max(4) as u64);
    let mut bins = match (max - min).checked_add(1) {
        Some(values) if values <= most => split_evenly(min, max, 1),
        _ if is_skewed(counts, max) => split_geometrically(min, max, most),
        _ => {
            let fits = |width: u64| max / width - min / width < most;
            split_evenly(min, max, find_round_number(fits))
        }
    };
    let mut at = 0;
    for (value, count) in counts {
        while bins.get(at).is_some_and(|bin| bin.high < *value) {
            at += 1;
        }
        if let Some(bin) = bins.get_mut(at) {
            bin.count += count;
        }
    }
    bins
}

/// Whether at least half of the values in `counts` are at most a sixth of `max`, the largest value.
/// Bins of equal width would then put most values into the first few bins.
fn is_skewed(counts: &[(u64, u64)], max: u64) -> bool {
    let total: u64 = counts.iter().map(|(_, n)| n).sum();
    let mut seen = 0;
    let median = counts.iter().find(|(_, n)| {
        seen += n;
        seen * 2 >= total
    });
    median.is_some_and(|(median, _)| max / 6 >= (*median).max(1))
}

/// Returns the first of the numbers 1, 2, 5, 10, 20, 50, .. that `fits` accepts. It must accept all
/// large numbers.
pub(super) fn find_round_number(fits: impl Fn(u64) -> bool) -> u64 {
    let mut unit: u64 = 1;
    loop {
        for factor in [1, 2, 5] {
            let number = unit.saturating_mul(factor);
            if fits(number) {
                return number;
            }
        }
        unit = unit.saturating_mul(10);
    }
}

fn split_evenly(min: u64, max: u64, width: u64) -> Vec<HistogramBin> {
    let bin = |i: u64| {
        let low = i.saturating_mul(width);
        HistogramBin { low, high: low.saturating_add(width - 1), count: 0 }
    };
    (min / width..=max / width).map(bin).collect()
}

fn split_geometrically(min: u64, max: u64, most: u64) -> Vec<HistogramBin> {
    let digits = |n: u64| u64::from(u64::BITS - n.leading_zeros());
    let step = (digits(max) - digits(min)).div_ceil(most - 1).max(1);
    let mut bins = Vec::new();
    let mut low = min;
    loop {
        // The value 0 has a bin of its own.
        let power = if low == 0 { 0 } else { digits(low) + step - 1 };
        let high = match u32::try_from(power).ok().and_then(|p| 1u64.checked_shl(p)) {
            Some(bound) => bound - 1,
            None => u64::MAX,
        };
        bins.push(HistogramBin { low, high, count: 0 });
        if high >= max {
            break;
        }
        low = high + 1;
    }
    // Rounds the start of the first bin down to a power of two: `5–7` becomes `4–7`.
    if let Some(first) = bins.first_mut().filter(|b| b.low > 0) {
        first.low = 1 << (digits(first.low) - 1);
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_bounds(counts: &[(u64, u64)], most: usize) -> Vec<(u64, u64, u64)> {
        group_into_bins(counts, most).iter().map(|b| (b.low, b.high, b.count)).collect()
    }

    #[test]
    fn bins_have_round_bounds() {
        assert_eq!(find_bounds(&[], 8), []);
        assert_eq!(find_bounds(&[(7, 2)], 8), [(7, 7, 2)]);
        assert_eq!(find_bounds(&[(0, 2), (3, 1)], 8), [(0, 0, 2), (1, 1, 0), (2, 2, 0), (3, 3, 1)]);
        let even: Vec<(u64, u64)> = (3..=47).map(|n| (n, 1)).collect();
        assert_eq!(
            find_bounds(&even, 8),
            [(0, 9, 7), (10, 19, 10), (20, 29, 10), (30, 39, 10), (40, 49, 8)]
        );
        let skewed = [(0, 4), (1, 3), (5, 10), (90, 1)];
        assert_eq!(
            find_bounds(&skewed, 10),
            [
                (0, 0, 4),
                (1, 1, 3),
                (2, 3, 0),
                (4, 7, 10),
                (8, 15, 0),
                (16, 31, 0),
                (32, 63, 0),
                (64, 127, 1)
            ]
        );
        assert_eq!(find_bounds(&[(5, 9), (100, 1)], 10)[0], (4, 7, 9));
    }

    #[test]
    fn every_value_is_in_one_bin() {
        let mut state = 7u64;
        for case in 0..2000 {
            let mut values: Vec<u64> = (0..1 + case % 9)
                .map(|_| {
                    state =
                        state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    (state >> 8) >> (state % 60)
                })
                .collect();
            if case % 50 == 0 {
                values.push(u64::MAX);
            }
            values.sort_unstable();
            values.dedup();
            let counts: Vec<(u64, u64)> = values.iter().map(|v| (*v, 2)).collect();
            let most = 4 + usize::try_from(case % 30).unwrap();
            let bins = group_into_bins(&counts, most);
            assert!(bins.len() <= most + 1, "{values:?} {most}: {bins:?}");
            assert_eq!(bins.iter().map(|b| b.count).sum::<u64>(), 2 * values.len() as u64);
            assert!(bins.is_sorted_by(|a, b| a.low <= a.high && a.high < b.low), "{bins:?}");
            assert!(bins[0].count > 0 && bins[bins.len() - 1].count > 0, "{values:?} {bins:?}");
        }
    }
}
