//! Expands short forms in the strings of intervals: `3d` becomes `3 days`.

/// Short and full names of units. Casts of intervals to strings write the short names (`1y 2mo`).
const SHORT_UNITS: [(&str, &str); 7] = [
    ("y", "years"),
    ("mo", "months"),
    ("w", "weeks"),
    ("d", "days"),
    ("h", "hours"),
    ("m", "minutes"),
    ("s", "seconds"),
];

/// Splits `3d` into `3` and `days`. Returns `None` if the word is not a number followed by a short
/// name of a unit.
fn split_unit(word: &str) -> Option<[&str; 2]> {
    let at = word.find(|c: char| c.is_ascii_alphabetic()).filter(|at| *at > 0)?;
    let (number, short) = word.split_at(at);
    let is_unit = |(name, _): &&(&str, &str)| name.eq_ignore_ascii_case(short);
    let (_, unit) = SHORT_UNITS.iter().find(is_unit)?;
    number.parse::<f64>().is_ok().then_some([number, unit])
}

/// Spells out times of day, quarters, short units and `ago` in an interval: `1 day 01:30:00`
/// becomes `1 day 01 hours 30 minutes 00 seconds`. A number without a unit at the end is a number
/// of seconds, as in PostgreSQL; Arrow's casts would take it for months. Returns `None` if nothing
/// changes.
pub(in crate::sql) fn spell_out(text: &str) -> Option<String> {
    let written: Vec<&str> = text.split_whitespace().collect();
    let mut words: Vec<&str> = Vec::with_capacity(written.len());
    for word in &written {
        match split_unit(word) {
            Some(parts) => words.extend(parts),
            None => words.push(word),
        }
    }
    let has_short_units = words.len() > written.len();
    let is_quarter =
        |word: &&str| ["quarter", "quarters"].iter().any(|q| q.eq_ignore_ascii_case(word));
    let ago = words.last().is_some_and(|word| word.eq_ignore_ascii_case("ago"));
    if ago {
        words.pop();
    }
    let is_number =
        |word: &&str| word.ends_with(|c: char| c.is_ascii_digit()) && word.parse::<f64>().is_ok();
    let needs_change = |word: &&str| word.contains(':') || is_quarter(word);
    let lacks_unit = words.last().is_some_and(is_number);
    if !ago && !has_short_units && !lacks_unit && !words.iter().any(needs_change) {
        return None;
    }
    let mut parts: Vec<(String, String)> = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word.contains(':') {
            let (sign, digits) = match word.strip_prefix('-') {
                Some(digits) => ("-", digits),
                None => ("", word.strip_prefix('+').unwrap_or(word)),
            };
            let fields: Vec<&str> = digits.split(':').collect();
            if fields.len() > 3 || fields.iter().any(|field| field.parse::<f64>().is_err()) {
                return None;
            }
            for (field, unit) in fields.iter().zip(["hours", "minutes", "seconds"]) {
                parts.push((format!("{sign}{field}"), unit.to_owned()));
            }
            continue;
        }
        let unit = words.next().or_else(|| is_number(&word).then_some("seconds"))?;
        match is_quarter(&unit) {
            true => {
                let months = word.parse::<i64>().ok()?.checked_mul(3)?;
                parts.push((months.to_string(), "months".to_owned()));
            }
            false => parts.push((word.to_owned(), unit.to_owned())),
        }
    }
    let written = parts.into_iter().map(|(number, unit)| match (ago, number.strip_prefix('-')) {
        (true, Some(positive)) => format!("{positive} {unit}"),
        (true, None) => format!("-{} {unit}", number.trim_start_matches('+')),
        (false, _) => format!("{number} {unit}"),
    });
    Some(written.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day_quarters_and_ago_are_numbers_of_units() {
        for (text, units) in [
            ("1:30:00", Some("1 hours 30 minutes 00 seconds")),
            ("-01:30", Some("-01 hours -30 minutes")),
            ("1 month 2 days 03:04:05.5", Some("1 month 2 days 03 hours 04 minutes 05.5 seconds")),
            ("2 days ago", Some("-2 days")),
            ("1 quarter -1 day ago", Some("-3 months 1 day")),
            ("2 quarters", Some("6 months")),
            ("1y 2mo 3d 04:00", Some("1 years 2 months 3 days 04 hours 00 minutes")),
            ("-3d 1.5h", Some("-3 days 1.5 hours")),
            ("2 days", None),
            ("2x 3d", None),
            ("1:2:3:4", None),
            ("x:y", None),
            ("1 quarter 2", Some("3 months 2 seconds")),
            ("2", Some("2 seconds")),
            ("1d -2.5", Some("1 days -2.5 seconds")),
            ("1 day nan", None),
        ] {
            assert_eq!(spell_out(text).as_deref(), units, "{text}");
        }
    }
}
