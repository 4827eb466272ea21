//! Means and quantiles of times and durations, rounded to the unit in which they are stored.

/// Returns `sum / count`, rounded to the nearest integer, halves away from zero. Returns `None` if
/// `count` is 0 or the result does not fit an `i64`.
pub fn round_mean(sum: i128, count: u64) -> Option<i64> {
    let count = i128::from(count);
    let half = if sum < 0 { -(count / 2) } else { count / 2 };
    i64::try_from(sum.checked_add(half)?.checked_div(count)?).ok()
}

/// Rounds `low + share * (high - low)`, halves up, in 128 bits, because a difference of nanoseconds
/// may exceed the 53 bits of a float.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the product is from 0 to 2^64"
)]
pub(in crate::kernels) fn interpolate_rounded(low: i64, high: i64, share: f64) -> i64 {
    const ONE: f64 = 18_446_744_073_709_551_616.0;
    let gap = u128::from(high.abs_diff(low));
    let share = (share * ONE) as u128;
    // `share` is now at most 2^64, and `gap` less than 2^64, so product and sum fit 128 bits.
    let step = (gap * share + (1 << 63)) >> 64;
    low.saturating_add_unsigned(u64::try_from(step).unwrap_or(u64::MAX))
}

/// Returns the `q` quantile of `values`, interpolated linearly between two values and rounded to an
/// integer; `None` if there are no values. If `descending` is true, the values count from the
/// largest: the 0.1 quantile is then the 0.9 quantile of the ascending values. Does not sort
/// `values`, but reorders them.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a position is between 0 and the length"
)]
pub fn select_rounded_quantile(values: &mut [i64], q: f64, descending: bool) -> Option<i64> {
    let last = values.len().checked_sub(1)?;
    let position = q * last as f64;
    let position = if descending { last as f64 - position } else { position };
    let low = (position.floor() as usize).min(last);
    let (_, first, behind) = values.select_nth_unstable(low);
    let first = *first;
    let next = behind.iter().min().copied().unwrap_or(first);
    Some(interpolate_rounded(first, next, position - low as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_round_halves_away_from_zero() {
        assert_eq!(round_mean(5, 2), Some(3));
        assert_eq!(round_mean(-5, 2), Some(-3));
        assert_eq!(round_mean(4, 3), Some(1));
        assert_eq!(round_mean(2 * i128::from(i64::MAX), 2), Some(i64::MAX));
        assert_eq!(round_mean(0, 0), None);
    }

    #[test]
    fn quantiles_of_distant_times_are_exact() {
        // The difference is odd and exceeds 2^53, so that a float cannot hold it.
        let far = (1 << 60) + 1;
        assert_eq!(interpolate_rounded(0, far, 0.5), (1 << 59) + 1);
        assert_eq!(interpolate_rounded(i64::MIN, i64::MAX, 0.5), 0);
        assert_eq!(interpolate_rounded(i64::MIN, i64::MAX, 1.0), i64::MAX);
        assert_eq!(interpolate_rounded(-2, -1, 0.5), -1);
        assert_eq!(interpolate_rounded(7, 7, 0.3), 7);
        assert_eq!(select_rounded_quantile(&mut [4, 1, 2, 9], 0.5, false), Some(3));
        assert_eq!(select_rounded_quantile(&mut [4, 1, 2, 9], 0.25, true), Some(5));
        assert_eq!(select_rounded_quantile(&mut [], 0.5, false), None);
    }
}
