//! Formats sizes, shares and counts for people, and numbers as JSON.

use serde_json::Value;

use super::group_digits;

#[expect(clippy::cast_precision_loss, reason = "a share for people")]
pub(in crate::cli) fn compute_safe_ratio(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

pub(in crate::cli) fn format_percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p > 0.0 && p < 0.01 => "<0.01%".into(),
        p if p < 1.0 => format!("{p:.2}%"),
        // A share below 100 % never shows as 100.0%.
        p if (99.95..100.0).contains(&p) => ">99.9%".into(),
        p => format!("{p:.1}%"),
    }
}

pub(in crate::cli) fn choose_plural(
    n: impl TryInto<u64>,
    one: &'static str,
    more: &'static str,
) -> &'static str {
    if n.try_into().is_ok_and(|n| n == 1) { one } else { more }
}

/// Formats a number of things, such as `1,234 rows`: `one` is the noun for 1, and `more` for all
/// other numbers.
pub(in crate::cli) fn format_count(
    n: impl ToString + TryInto<u64> + Copy,
    one: &'static str,
    more: &'static str,
) -> String {
    format!("{} {}", group_digits(n), choose_plural(n, one, more))
}

/// Formats a size, such as `1.2 kB (1,234 bytes)`.
pub(in crate::cli) fn format_size(bytes: u128) -> String {
    let exact = format!("{} bytes", group_digits(bytes));
    match format_rounded(bytes) {
        small if small == exact => exact,
        rounded => format!("{rounded} ({exact})"),
    }
}

/// Formats a rounded size, such as `1.2 kB`, or `12 bytes`.
pub(in crate::cli) fn format_rounded(bytes: u128) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a rounded size for people")]
    let mut rounded = bytes as f64;
    let mut unit = "";
    for next in ["kB", "MB", "GB", "TB", "PB"] {
        if rounded < 999.95 {
            break;
        }
        rounded /= 1000.0;
        unit = next;
    }
    if unit.is_empty() {
        format!("{} bytes", group_digits(bytes))
    } else {
        format!("{rounded:.1} {unit}")
    }
}

/// Converts `n` to a JSON number or, if it exceeds 64 bits, to a JSON string.
pub(in crate::cli) fn to_json_number(n: u128) -> Value {
    u64::try_from(n).map_or_else(|_| Value::from(n.to_string()), Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_shares_are_readable() {
        assert_eq!(format_size(12), "12 bytes");
        assert_eq!(format_size(1_234_567), "1.2 MB (1,234,567 bytes)");
        assert_eq!(format_size(999_960), "1.0 MB (999,960 bytes)");
        let shares: Vec<_> = [0.000_001, 0.005, 0.5, 0.99999, 1.0].map(format_percent).into();
        assert_eq!(shares, ["<0.01%", "0.50%", "50.0%", ">99.9%", "100.0%"]);
    }
}
