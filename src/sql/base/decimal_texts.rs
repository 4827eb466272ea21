//! Decimal numbers in strings, with or without an exponent.

/// A decimal number: the integer `digits` times ten to the power `exponent`. The digits neither
/// begin nor end with 0.
pub(in crate::sql) struct DecimalNumber {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

impl DecimalNumber {
    pub(in crate::sql) fn parse(text: &str) -> Option<Self> {
        let (is_negative, unsigned) = match text.as_bytes().first()? {
            b'-' => (true, text.get(1..)?),
            b'+' => (false, text.get(1..)?),
            _ => (false, text),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !is_number(whole) || !is_number(fraction) {
            return None;
        }
        let all = format!("{whole}{fraction}");
        let trimmed = all.trim_end_matches('0');
        let zeros = i64::try_from(all.len() - trimmed.len()).ok()?;
        let places = i64::try_from(fraction.len()).ok()?;
        let exponent = exponent.checked_sub(places)?.checked_add(zeros)?;
        let digits = trimmed.trim_start_matches('0').to_owned();
        let exponent = if digits.is_empty() { 0 } else { exponent };
        Some(Self { is_negative, digits, exponent })
    }

    /// Returns the number if it is an integer of at most 38 digits, otherwise `None`.
    pub(in crate::sql) fn as_integer(&self) -> Option<i128> {
        if self.digits.is_empty() {
            return Some(0);
        }
        let zeros = u32::try_from(self.exponent).ok()?;
        if self.digits.len() > 38 || zeros > 38 {
            return None;
        }
        let digits: i128 = self.digits.parse().ok()?;
        let value = digits.checked_mul(10i128.checked_pow(zeros)?)?;
        Some(if self.is_negative { -value } else { value })
    }

    /// Whether a decimal type of the scale `scale` represents all digits after the point.
    pub(in crate::sql) fn fits_scale(&self, scale: i8) -> bool {
        self.exponent.checked_add(i64::from(scale)).is_some_and(|digits| digits >= 0)
    }

    /// Returns the number without an exponent and without trailing zeros of the fraction: `1.50e2`
    /// becomes `150`. Returns `None` if more than 80 zeros would follow the digits.
    pub(in crate::sql) fn to_plain_text(&self) -> Option<String> {
        let zeros = usize::try_from(self.exponent.max(0)).ok().filter(|zeros| *zeros <= 80)?;
        let sign = if self.is_negative { "-" } else { "" };
        let places = usize::try_from(self.exponent.min(0).unsigned_abs()).ok()?;
        let digits = format!("{:0>width$}{}", self.digits, "0".repeat(zeros), width = places + 1);
        let (whole, fraction) = digits.split_at(digits.len() - places);
        Some(match places {
            0 => format!("{sign}{whole}"),
            _ => format!("{sign}{whole}.{fraction}"),
        })
    }
}

/// Rewrites a number with an exponent, such as `1.5e2`, without it: `150`. Returns `None` for any
/// other string, and for numbers that no decimal type represents.
pub(in crate::sql) fn write_out_exponent(text: &str) -> Option<String> {
    /// The greatest scale of a decimal type.
    const MOST_PLACES: i64 = 76;
    if !text.contains(['e', 'E']) {
        return None;
    }
    let number = DecimalNumber::parse(text.trim())?;
    let digits = i64::try_from(number.digits.len()).ok()?;
    if number.exponent.checked_add(digits)? < -MOST_PLACES {
        // Every decimal type rounds the number to 0.
        return Some("0".to_owned());
    }
    (number.exponent >= -MOST_PLACES).then(|| number.to_plain_text()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_written_out() {
        for (text, plain) in [
            ("1e2", Some("100")),
            (" -1.50E+2 ", Some("-150")),
            ("+1.5e-3", Some("0.0015")),
            ("12.5e1", Some("125")),
            ("0e5", Some("0")),
            (".5e1", Some("5")),
            ("-1e-400", Some("0")),
            ("1e81", None),
            ("1e99999999999999999999", None),
            ("e5", None),
            ("1e", None),
            ("1e2e3", None),
            ("1.5", None),
            ("one", None),
        ] {
            assert_eq!(write_out_exponent(text).as_deref(), plain, "{text}");
        }
    }
}
