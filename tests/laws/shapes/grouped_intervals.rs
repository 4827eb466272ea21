//! Dates computed from intervals that are keys, minima or maxima of groups. Intervals of the same
//! length are equal, although adding them to a date may give different dates. Of several equal
//! intervals, a key and `min` are the one with the fewest months and then days, and `max` is the
//! one with the most.

use super::Shape;

/// Expressions of intervals, each with an expression of its rank: 10000 times the hours, plus 100
/// times the months, plus the days. Equal intervals have ranks with the same multiple of 10000.
pub(super) const INTERVALS: &[(&str, &str)] = &[
    (
        "CASE §k % 3 WHEN 0 THEN INTERVAL '1 month' WHEN 1 THEN INTERVAL '30 days' \
         ELSE INTERVAL '720 hours' END",
        "CASE §k % 3 WHEN 0 THEN 7200100 WHEN 1 THEN 7200030 ELSE 7200000 END",
    ),
    (
        "CASE WHEN §k > 1 THEN INTERVAL '1 month' WHEN §b THEN INTERVAL '30 days' \
         WHEN §v > 0 THEN INTERVAL '31 days' END",
        "CASE WHEN §k > 1 THEN 7200100 WHEN §b THEN 7200030 WHEN §v > 0 THEN 7440031 END",
    ),
    (
        "CASE WHEN §b THEN INTERVAL '1 month 1 day' WHEN §k = 2 THEN INTERVAL '31 days' \
         ELSE INTERVAL '-1 month' END",
        "CASE WHEN §b THEN 7440101 WHEN §k = 2 THEN 7440031 ELSE -7200100 END",
    ),
    (
        "CASE WHEN §v IS NULL THEN NULL WHEN §b THEN INTERVAL '24 hours' \
         ELSE INTERVAL '1 day' END",
        "CASE WHEN §v IS NULL THEN NULL WHEN §b THEN 240000 ELSE 240001 END",
    ),
];

/// The date that results from adding an interval to 2020-02-01.
macro_rules! after {
    ($interval:literal) => {
        concat!("CAST(DATE '2020-02-01' + ", $interval, " AS DATE)")
    };
}

/// The same date as `after!`, looked up by the rank of the interval.
macro_rules! date_of {
    ($rank:literal) => {
        concat!(
            "CASE ",
            $rank,
            " WHEN 7200100 THEN DATE '2020-03-01' WHEN 7200030 THEN DATE '2020-03-02' \
             WHEN 7200000 THEN DATE '2020-03-02' WHEN 7440101 THEN DATE '2020-03-02' \
             WHEN 7440031 THEN DATE '2020-03-03' WHEN -7200100 THEN DATE '2020-01-01' \
             WHEN 240000 THEN DATE '2020-02-02' WHEN 240001 THEN DATE '2020-02-02' END"
        )
    };
}

pub(super) const GROUPED_INTERVALS: &[Shape] = &[
    (
        &["d", "i"],
        concat!(
            "SELECT ",
            after!("w.d"),
            " AS c0, count(*) AS c1 FROM (SELECT $s(y.) AS d FROM $p AS y WHERE $c(y.)) AS w \
             GROUP BY w.d"
        ),
        &[
            (
                "a group of intervals is one of lengths",
                concat!(
                    "SELECT ",
                    date_of!("x.l"),
                    " AS c0, x.n AS c1 FROM (SELECT min(w.l) AS l, count(*) AS n FROM (SELECT \
                     $r(y.) AS l FROM $p AS y WHERE $c(y.)) AS w GROUP BY w.l - w.l % 10000) AS x"
                ),
            ),
            (
                "a group of intervals is a window",
                concat!(
                    "SELECT c0, c1 FROM (SELECT ",
                    after!("min(w.d) OVER (PARTITION BY w.d)"),
                    " AS c0, count(*) OVER (PARTITION BY w.d) AS c1, row_number() OVER \
                     (PARTITION BY w.d) AS r FROM (SELECT $s(y.) AS d FROM $p AS y WHERE $c(y.)) \
                     AS w) AS x WHERE r = 1"
                ),
            ),
            (
                "an interval is added above its groups",
                concat!(
                    "SELECT ",
                    after!("x.d"),
                    " AS c0, x.n AS c1 FROM (SELECT w.d, count(*) AS n FROM (SELECT $s(y.) AS d \
                     FROM $p AS y WHERE $c(y.)) AS w GROUP BY w.d) AS x"
                ),
            ),
        ],
    ),
    (
        &["d"],
        concat!(
            "SELECT ",
            date_of!("x.l"),
            " AS c0 FROM (SELECT min(w.l) AS l FROM (SELECT $r(y.) AS l FROM $p AS y WHERE \
             $c(y.)) AS w GROUP BY w.l - w.l % 10000) AS x"
        ),
        &[
            (
                "distinct intervals are the least of their lengths",
                concat!(
                    "SELECT ",
                    after!("x.d"),
                    " AS c0 FROM (SELECT DISTINCT $s(y.) AS d FROM $p AS y WHERE $c(y.)) AS x"
                ),
            ),
            (
                "a UNION of intervals has the least of their lengths",
                concat!(
                    "SELECT ",
                    after!("x.d"),
                    " AS c0 FROM (SELECT $s(y.) AS d FROM $p AS y WHERE $c(y.) AND ($d(y.)) \
                     UNION SELECT $s(z.) AS d FROM $p AS z WHERE $c(z.) AND ($d(z.)) IS NOT TRUE) \
                     AS x"
                ),
            ),
        ],
    ),
    (
        &["b", "d", "d"],
        concat!(
            "SELECT w.b AS c0, ",
            after!("min(w.d)"),
            " AS c1, ",
            after!("max(w.d)"),
            " AS c2 FROM (SELECT y.b, $s(y.) AS d FROM $p AS y WHERE $c(y.)) AS w GROUP BY w.b"
        ),
        &[
            (
                "extremes of intervals are those of ranks",
                concat!(
                    "SELECT w.b AS c0, ",
                    date_of!("min(w.l)"),
                    " AS c1, ",
                    date_of!("max(w.l)"),
                    " AS c2 FROM (SELECT y.b, $r(y.) AS l FROM $p AS y WHERE $c(y.)) AS w \
                     GROUP BY w.b"
                ),
            ),
            (
                "extremes of intervals are those of parts",
                concat!(
                    "SELECT w.b AS c0, ",
                    after!("min(w.l)"),
                    " AS c1, ",
                    after!("max(w.m)"),
                    " AS c2 FROM (SELECT y.b, y.k, min($s(y.)) AS l, max($s(y.)) AS m FROM $p AS \
                     y WHERE $c(y.) GROUP BY y.b, y.k) AS w GROUP BY w.b"
                ),
            ),
        ],
    ),
];
