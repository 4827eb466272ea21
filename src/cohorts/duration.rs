//! Parses lengths of time as configurations write them: `24h`, `30 days`, `1 day, 14:20:16`.

const MICROSECONDS_PER_SECOND: i128 = 1_000_000;
/// Maximum number of decimals of a number: lengths are summed in units of 10^-12 seconds.
const MAX_DECIMALS: usize = 12;
const UNITS_PER_SECOND: i128 = 1_000_000_000_000;

/// The names of each unit and its length in seconds, in the order in which units occur in a text.
const UNITS: [(&[&str], i128); 5] = [
    (&["w", "wk", "wks", "week", "weeks"], 7 * 86_400),
    (&["d", "dy", "dys", "day", "days"], 86_400),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600),
    (&["m", "min", "mins", "minute", "minutes"], 60),
    (&["s", "sec", "secs", "second", "seconds"], 1),
];
const SECONDS: usize = 4;

/// Parses a length of time without a sign, to microseconds. Units are weeks, days, hours, minutes
/// and seconds, in this order. Weeks and days may precede a clock (`1 day, 14:20:16`). A clock may
/// also stand alone: `1:30` is 90 seconds, `2:01:30` begins with hours, and `1:02:01:30` with days.
///
/// Fractions of a second count only if the text has seconds with a fraction, as in pytimeparse,
/// which ACES uses: `0.0001 days` is 8 seconds, not 8.64.
pub(super) fn parse_duration(text: &str) -> Result<i64, &'static str> {
    const WRONG: &str = "expected a length of time such as 24h, 30 days or 1 day 12:00:00";
    const TOO_LONG: &str = "expected a length of time of at most 2^63 - 1 microseconds";
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(WRONG);
    }
    // The length of all units together, and the length of the seconds alone, in 10^-12 seconds.
    let (mut total, mut seconds) = (0i128, 0i128);
    let mut has_fraction = false;
    let mut next = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        if after.starts_with(':') {
            let clock = parse_clock(rest, next).ok_or(WRONG)?;
            total = total.checked_add(clock.total).ok_or(WRONG)?;
            (seconds, has_fraction) = (clock.seconds, clock.has_fraction);
            break;
        }
        let after = after.trim_start();
        let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit = unit.to_ascii_lowercase();
        let (at, (_, length)) = UNITS
            .iter()
            .enumerate()
            .skip(next)
            .find(|(_, (names, _))| names.contains(&unit.as_str()))
            .ok_or(WRONG)?;
        let value = parse_decimal(number).ok_or(WRONG)?;
        let value = value.checked_mul(*length).ok_or(WRONG)?;
        total = total.checked_add(value).ok_or(WRONG)?;
        next = at + 1;
        rest = after.trim_start();
        if at == SECONDS {
            (seconds, has_fraction) = (value, number.contains('.'));
            if !rest.is_empty() {
                return Err(WRONG);
            }
        } else if let Some(after) = rest.strip_prefix([',', '/']) {
            rest = after.trim_start();
        }
    }
    let micros = match has_fraction {
        true => round_half_even(total, UNITS_PER_SECOND / MICROSECONDS_PER_SECOND),
        false => {
            let whole = (total - seconds) / UNITS_PER_SECOND + seconds / UNITS_PER_SECOND;
            whole.checked_mul(MICROSECONDS_PER_SECOND).ok_or(WRONG)?
        }
    };
    i64::try_from(micros).map_err(|_| TOO_LONG)
}

/// The length of a clock such as `2:01:30`, in 10^-12 seconds.
struct ClockLength {
    total: i128,
    /// The part of `total` that the seconds make up.
    seconds: i128,
    /// Whether the seconds have a fraction.
    has_fraction: bool,
}

/// Parses a clock: `1:30`, `:30`, `2:01:30` or `1:02:01:30`. Returns `None` if the clock is not
/// valid. `next` is 1 + the index in [`UNITS`] of the last unit before the clock, or 0 if there is
/// none. Only weeks and days may precede a clock such as `2:01:30`; no unit may precede the other
/// forms.
fn parse_clock(text: &str, next: usize) -> Option<ClockLength> {
    let mut parts: Vec<&str> = text.trim_end().split(':').collect();
    let fits = match parts.as_slice() {
        ["", _] => next == 0,
        [minutes, _] => next == 0 && minutes.len() <= 2,
        [_, _, _] => next <= 2,
        [_, _, _, _] => next == 0,
        _ => false,
    };
    let last = parts.pop()?;
    let (whole, decimals) = match last.split_once('.') {
        Some((whole, decimals)) => (whole, Some(decimals)),
        None => (last, None),
    };
    let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let valid = fits
        && whole.len() == 2
        && is_digits(whole)
        && decimals.is_none_or(|d| !d.is_empty() && is_digits(d))
        && parts.iter().skip(1).all(|part| part.len() == 2)
        && parts.iter().all(|part| is_digits(part))
        && (parts.len() == 1 || !parts[0].is_empty());
    if !valid {
        return None;
    }
    let seconds = parse_decimal(last)?;
    let mut total = seconds;
    for (part, (_, length)) in parts.iter().rev().zip(UNITS.iter().rev().skip(1)) {
        let value = if part.is_empty() { 0 } else { parse_decimal(part)? };
        total = total.checked_add(value.checked_mul(*length)?)?;
    }
    Some(ClockLength { total, seconds, has_fraction: decimals.is_some() })
}

/// Parses a decimal number such as `1.5`, and returns it as a multiple of 10^-12. Returns `None` if
/// `text` is not a number, or has more than [`MAX_DECIMALS`] decimals.
fn parse_decimal(text: &str) -> Option<i128> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let all_digits = whole.bytes().chain(decimals.bytes()).all(|b| b.is_ascii_digit());
    if (whole.is_empty() && decimals.is_empty()) || !all_digits || decimals.len() > MAX_DECIMALS {
        return None;
    }
    let digits = format!("{whole}{decimals:0<MAX_DECIMALS$}");
    digits.parse().ok()
}

/// Divides `number`, which is not negative, by `divisor`, and rounds the quotient to the nearest
/// integer; a half is rounded to the even one.
fn round_half_even(number: i128, divisor: i128) -> i128 {
    let (quotient, rest) = (number / divisor, number % divisor);
    let up = rest * 2 > divisor || (rest * 2 == divisor && quotient % 2 == 1);
    quotient + i128::from(up)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_pytimeparse() {
        for (text, seconds) in [
            ("24h", 86_400.0),
            ("1 day", 86_400.0),
            ("7 days", 604_800.0),
            ("1 days 2 hours 3 minutes 4 seconds", 93_784.0),
            ("1 day, 14:20:16", 138_016.0),
            ("2w3d", 1_468_800.0),
            ("1.5 h", 5_400.0),
            ("4.1m", 246.0),
            ("0.0001 days", 8.0),
            ("0.5m 0.25s", 30.25),
            ("90 Secs", 90.0),
            ("1:30", 90.0),
            (":22", 22.0),
            ("4:12:02.5", 15_122.5),
            ("2:04:13:02", 187_982.0),
            ("1 wk / 2 hrs", 612_000.0),
            ("0h", 0.0),
        ] {
            let micros = parse_duration(text).map(|m| m as f64 / 1e6);
            assert_eq!(micros, Ok(seconds), "{text}");
        }
        for text in [
            "",
            "h",
            "24",
            "1 month",
            "2 years",
            "1h 2d",
            "1h 2h",
            "1.2.3h",
            ". d",
            "1:2",
            "100:30",
            "1h 1:30",
            "30s,",
            "2-04:13:02",
            "invalid",
            "::",
            "1:60:",
            "9999999999999999999999 weeks",
            "20000000 weeks",
        ] {
            assert!(parse_duration(text).is_err(), "{text}: {:?}", parse_duration(text));
        }
        assert_eq!(parse_duration("1.0000005s"), Ok(1_000_000));
        assert_eq!(parse_duration("1.0000015s"), Ok(1_000_002));
    }
}
