//! Documentation of short forms such as `year(t)`, which `.help` prints.

use datafusion::logical_expr::Documentation;

use crate::functions::DocumentationText;

/// Returns Serrate's documentation of a short form such as `arg_max`, or of a function that
/// DataFusion documents incompletely. Returns `None` for other names.
pub(crate) fn find_shorthand_documentation(name: &str) -> Option<Documentation> {
    let (_, text) = DOCUMENTS.iter().find(|(names, _)| names.contains(&name))?;
    let call = format!("{name}(");
    let has_form =
        text.syntax.starts_with(&call) || text.also.iter().any(|form| form.starts_with(&call));
    let mut doc = text.to_documentation();
    if !has_form {
        doc.description = format!("Another name of `{}`. {}", text.syntax, doc.description);
    }
    Some(doc)
}

const OF_NULL: &str = "The result is NULL for NULL, and a list for a list.";

const AN_INTEGER: &str = "The result is NULL for NULL, and a list for a list. An untyped NULL literal is an error. The number is an INTEGER; parts of an interval or a duration are those that it is written with, so that `hour(INTERVAL '36 hours')` is 36.";

const A_SPAN: &str = "The result is NULL for NULL. `n` is a whole number.";

const DOCUMENTS: &[(&[&str], DocumentationText)] = &[
    (
        &["year"],
        DocumentationText {
            syntax: "year(t)",
            description: "Returns the year of a date or timestamp, as `extract(year FROM t)` does. A timestamp with a zone has its local year.",
            missing: AN_INTEGER,
            example: "SELECT year(DATE '2020-02-29');   -- 2020",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["quarter"],
        DocumentationText {
            syntax: "quarter(t)",
            description: "Returns the quarter of a date or timestamp, 1 to 4.",
            missing: AN_INTEGER,
            example: "SELECT quarter(DATE '2020-02-29');   -- 1",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["month"],
        DocumentationText {
            syntax: "month(t)",
            description: "Returns the month of a date or timestamp, 1 to 12.",
            missing: AN_INTEGER,
            example: "SELECT month(DATE '2020-02-29');   -- 2",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["week", "weekofyear"],
        DocumentationText {
            syntax: "week(t)",
            description: "Returns the ISO week of a date or timestamp, 1 to 53. Weeks begin on Monday, and week 1 has the first Thursday of the year.",
            missing: AN_INTEGER,
            example: "SELECT week(DATE '2020-03-01');   -- 9",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["day", "dayofmonth"],
        DocumentationText {
            syntax: "day(t)",
            description: "Returns the day of the month of a date or timestamp, 1 to 31.",
            missing: AN_INTEGER,
            example: "SELECT day(DATE '2020-02-29');   -- 29",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["dayofweek", "weekday"],
        DocumentationText {
            syntax: "dayofweek(t)",
            description: "Returns the day of the week of a date or timestamp, 0 (Sunday) to 6 (Saturday). `isodow(t)` is 1 (Monday) to 7 (Sunday).",
            missing: AN_INTEGER,
            example: "SELECT dayofweek(DATE '2020-03-01'), isodow(DATE '2020-03-01');   -- 0  7",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["dayofyear"],
        DocumentationText {
            syntax: "dayofyear(t)",
            description: "Returns the day of the year of a date or timestamp, 1 to 366.",
            missing: AN_INTEGER,
            example: "SELECT dayofyear(DATE '2020-03-01');   -- 61",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["millisecond"],
        DocumentationText {
            syntax: "millisecond(t)",
            description: "Returns the seconds of a timestamp with their fraction, in milliseconds, 0 to 59999.",
            missing: AN_INTEGER,
            example: "SELECT millisecond(TIMESTAMP '2020-02-29 13:45:30.5');   -- 30500",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["microsecond"],
        DocumentationText {
            syntax: "microsecond(t)",
            description: "Returns the seconds of a timestamp with their fraction, in microseconds, 0 to 59999999.",
            missing: AN_INTEGER,
            example: "SELECT microsecond(TIMESTAMP '2020-02-29 13:45:30.5');   -- 30500000",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["isodow"],
        DocumentationText {
            syntax: "isodow(t)",
            description: "Returns the day of the week of a date or timestamp, 1 (Monday) to 7 (Sunday).",
            missing: AN_INTEGER,
            example: "SELECT isodow(DATE '2020-03-01');   -- 7",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["isoyear"],
        DocumentationText {
            syntax: "isoyear(t)",
            description: "Returns the year of the ISO week that contains a date or timestamp; it begins on the Monday of the week with the first Thursday of January.",
            missing: AN_INTEGER,
            example: "SELECT isoyear(DATE '2021-01-03'), week(DATE '2021-01-03');   -- 2020  53",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["decade"],
        DocumentationText {
            syntax: "decade(t)",
            description: "Returns the decade of a date or timestamp, its year divided by 10.",
            missing: AN_INTEGER,
            example: "SELECT decade(DATE '2020-02-29');   -- 202",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["century"],
        DocumentationText {
            syntax: "century(t)",
            description: "Returns the century of a date or timestamp. The 21st begins in 2001.",
            missing: AN_INTEGER,
            example: "SELECT century(DATE '2000-12-31'), century(DATE '2001-01-01');   -- 20  21",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["millennium"],
        DocumentationText {
            syntax: "millennium(t)",
            description: "Returns the millennium of a date or timestamp. The third begins in 2001.",
            missing: AN_INTEGER,
            example: "SELECT millennium(DATE '2000-12-31'), millennium(DATE '2001-01-01');   -- 2  3",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["hour"],
        DocumentationText {
            syntax: "hour(t)",
            description: "Returns the hour of a timestamp, 0 to 23.",
            missing: AN_INTEGER,
            example: "SELECT hour(TIMESTAMP '2020-02-29 13:45:30.5');   -- 13",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["minute"],
        DocumentationText {
            syntax: "minute(t)",
            description: "Returns the minute of a timestamp, 0 to 59.",
            missing: AN_INTEGER,
            example: "SELECT minute(TIMESTAMP '2020-02-29 13:45:30.5');   -- 45",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["second"],
        DocumentationText {
            syntax: "second(t)",
            description: "Returns the whole second of a timestamp, 0 to 59.",
            missing: AN_INTEGER,
            example: "SELECT second(TIMESTAMP '2020-02-29 13:45:30.5');   -- 30",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["epoch"],
        DocumentationText {
            syntax: "epoch(t)",
            description: "Returns the seconds from 1970-01-01 00:00 UTC to a date or timestamp, or the length of an interval or a duration in seconds, as a DOUBLE with the fraction.",
            missing: OF_NULL,
            example: "SELECT epoch(TIMESTAMP '1970-01-01 00:00:01.5'), epoch(INTERVAL '36 hours');   -- 1.5  129600.0",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["dayname"],
        DocumentationText {
            syntax: "dayname(t)",
            description: "Returns the English name of the day of the week.",
            missing: OF_NULL,
            example: "SELECT dayname(DATE '2020-03-01');   -- Sunday",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["monthname"],
        DocumentationText {
            syntax: "monthname(t)",
            description: "Returns the English name of the month.",
            missing: OF_NULL,
            example: "SELECT monthname(DATE '2020-03-01');   -- March",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["unicode"],
        DocumentationText {
            syntax: "unicode(s)",
            description: "Returns the code point of the first character of a string, and -1 for an empty string, for which `ascii(s)` returns 0.",
            missing: OF_NULL,
            example: "SELECT unicode('a'), unicode('');   -- 97  -1",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["time_bucket"],
        DocumentationText {
            syntax: "time_bucket(width, time [, origin])",
            description: "Returns the start of the bucket that contains a date or timestamp. Buckets follow each other without gaps from `origin`, in both directions. Buckets of times with a zone begin at these times in UTC; `date_trunc('day', t)` follows the zone. The result is a timestamp, also for a DATE, for which DuckDB returns a DATE.",
            args: &[
                ("width", "an interval of months, or of days and shorter parts"),
                ("time", "dates or timestamps; a list returns a list"),
                (
                    "origin",
                    "a timestamp at which a bucket begins; for a width of months, the start of its month. An interval literal is the time by which buckets begin later than by default. By default a Monday, 2000-01-03, for buckets of days and shorter parts, and 2000-01-01 for buckets of months, as in DuckDB",
                ),
            ],
            missing: "The result is NULL if an argument is NULL.",
            example: "SELECT time_bucket(INTERVAL '7 days', TIMESTAMP '2020-03-04 10:00');   -- 2020-03-02T00:00:00\nSELECT time_bucket(INTERVAL '1 month', DATE '2020-03-04')::DATE;   -- 2020-03-01",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["date_bin"],
        DocumentationText {
            syntax: "date_bin(width, t [, origin])",
            description: "Returns the start of the bucket that contains a date or timestamp, as `time_bucket` does, but buckets begin at 1970-01-01, a Thursday, unless an origin is given. The result is a timestamp, also for a DATE.",
            args: &[
                ("width", "an interval of months, or of days and shorter parts"),
                ("t", "dates or timestamps; a list returns a list"),
                ("origin", "a timestamp at which a bucket begins"),
            ],
            missing: "The result is NULL if an argument is NULL.",
            example: "SELECT date_bin(INTERVAL '7 days', TIMESTAMP '2020-03-04 10:00');   -- 2020-02-27T00:00:00",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["make_timestamp"],
        DocumentationText {
            syntax: "make_timestamp(year, month, day, hour, minute, second)",
            description: "Returns the timestamp with these parts. The seconds may have a fraction. `make_date(year, month, day)` returns a date.",
            missing: "The result is NULL if an argument is NULL. A month or day that does not exist is an error. Hours, minutes and seconds are added, so that hour 25 is 1 o'clock of the next day.",
            example: "SELECT make_timestamp(2020, 3, 4, 10, 30, 1.5);   -- 2020-03-04T10:30:01.500",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["timezone"],
        DocumentationText {
            syntax: "timezone(zone, t)",
            description: "Is `t AT TIME ZONE zone`: gives a zone to a local time, and converts a timestamp with a zone to another zone.",
            missing: "The result is NULL for NULL. An unknown zone is an error.",
            example: "SELECT timezone('Europe/Berlin', TIMESTAMP '2020-01-01 10:00');   -- 2020-01-01T10:00:00+01:00",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["to_years", "to_months", "to_weeks", "to_days", "to_hours", "to_minutes"],
        DocumentationText {
            syntax: "to_days(n)",
            also: &["to_years(n)", "to_months(n)", "to_weeks(n)", "to_hours(n)", "to_minutes(n)"],
            description: "Returns the interval of this number of days, or of another unit.",
            missing: A_SPAN,
            example: "SELECT to_days(3), to_months(14);   -- 3d  1y 2mo",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["to_seconds"],
        DocumentationText {
            syntax: "to_seconds(n)",
            description: "Returns the interval of this number of seconds, which may have a fraction.",
            missing: "The result is NULL for NULL.",
            example: "SELECT to_seconds(1.5);   -- 00:00:01.5",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["arg_max", "max_by", "argmax"],
        DocumentationText {
            syntax: "arg_max(x, y)",
            also: &["arg_max(x, y, n)"],
            description: "Returns the value of x in the row with the greatest y: an aggregate. If several rows have it, the least of their x, so that the result does not depend on the order of the rows. With a number n, returns the list of the x of the n greatest y. arg_max(x, y) takes FILTER, and OVER with PARTITION BY only.",
            missing: "Rows in which x or y is NULL are ignored. The result is NULL without rows.",
            example: "SELECT arg_max(x, y) FROM (VALUES ('a', 1), ('c', 3), ('b', 3), ('d', NULL)) t(x, y);   -- b",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["arg_min", "min_by", "argmin"],
        DocumentationText {
            syntax: "arg_min(x, y)",
            also: &["arg_min(x, y, n)"],
            description: "Returns the value of x in the row with the least y: an aggregate. If several rows have it, the least of their x, so that the result does not depend on the order of the rows. With a number n, returns the list of the x of the n least y.",
            missing: "Rows in which x or y is NULL are ignored. The result is NULL without rows.",
            example: "SELECT arg_min(x, y) FROM (VALUES ('a', 1), ('c', 3), ('d', NULL)) t(x, y);   -- a",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["mode"],
        DocumentationText {
            syntax: "mode(x)",
            also: &["mode() WITHIN GROUP (ORDER BY x)"],
            description: "Returns the most frequent value: an aggregate. If several are equally frequent, the least of them, so that the result does not depend on the order of the rows. Lists and structs count as a whole. It takes FILTER and OVER.",
            missing: "NULL is ignored. The result is NULL without values. All NaN are one value, the greatest, and 0.0 equals -0.0.",
            example: "SELECT mode(x) FROM (VALUES (2), (1), (2), (NULL), (NULL), (NULL)) t(x);   -- 2\nSELECT mode(x) FROM (VALUES ([1, 2]), ([1, 2]), ([3, 3, 3])) t(x);   -- [1, 2]",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["quantile_disc"],
        DocumentationText {
            syntax: "quantile_disc(x, q)",
            also: &["quantile_disc(x, [q, ..])", "percentile_disc(q) WITHIN GROUP (ORDER BY x)"],
            description: "Returns the least value that at least a fraction q of the values do not exceed: an aggregate. With `ORDER BY x DESC` in WITHIN GROUP, the values count from the greatest: the greatest value that at least a fraction q of the values are not below. `quantile_cont` interpolates between two values instead.",
            missing: "NULL is ignored. The result is NULL without values.",
            example: "SELECT quantile_disc(x, 0.5) FROM (VALUES (1), (2), (4)) t(x);   -- 2",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["count_if", "countif"],
        DocumentationText {
            syntax: "count_if(condition)",
            description: "Counts the rows for which a condition is true: an aggregate.",
            missing: "NULL is not counted. Without a row whose condition is true or false, the result is NULL.",
            example: "SELECT count_if(x > 1) FROM (VALUES (1), (2), (4), (NULL)) t(x);   -- 2",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["regexp_matches"],
        DocumentationText {
            syntax: "regexp_matches(text, pattern)",
            description: "Whether a regular expression matches a part of a string.",
            missing: OF_NULL,
            example: "SELECT regexp_matches('LAB//51', '^LAB');   -- true",
            ..DocumentationText::EMPTY
        },
    ),
    (
        &["regexp_full_match"],
        DocumentationText {
            syntax: "regexp_full_match(text, pattern)",
            description: "Whether a regular expression matches a whole string.",
            missing: OF_NULL,
            example: "SELECT regexp_full_match('LAB//51', 'LAB');   -- false",
            ..DocumentationText::EMPTY
        },
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::statement::functions::shorthands::list_shorthand_forms;

    #[test]
    fn each_name_is_documented_once_with_all_parts() {
        let names: Vec<&str> =
            DOCUMENTS.iter().flat_map(|(names, _)| names.iter().copied()).collect();
        for name in &names {
            assert_eq!(names.iter().filter(|other| other == &name).count(), 1, "{name}");
            assert!(!list_shorthand_forms(name).is_empty() || *name == "date_bin", "{name}");
            let doc = find_shorthand_documentation(name).unwrap();
            let example = doc.sql_example.unwrap();
            assert!(example.contains("SELECT ") && example.contains("   -- "), "{name}");
            assert!(doc.description.contains("NULL"), "{name}");
        }
        assert!(find_shorthand_documentation("week").unwrap().description.starts_with("Returns"));
        assert!(
            find_shorthand_documentation("weekofyear").unwrap().description.starts_with("Another")
        );
        assert!(find_shorthand_documentation("nothing").is_none());
    }
}
