//! Sums of dates and integers, and dates that are compared or combined with integers. Comparing or
//! combining them is an error; without this error, the query would return other values than the
//! first one.

use super::Shape;

pub(super) const DATES_AND_NUMBERS: &[Shape] = &[
    (
        &["i", "i"],
        "SELECT y.id AS c0, CAST(($i(y.)) % 1000 AS BIGINT) AS c1 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "a date plus a number of days",
                "SELECT y.id AS c0, CAST((DATE '2020-02-20' + ($i(y.)) % 1000) - DATE '2020-02-20' \
                 AS BIGINT) AS c1 FROM $p AS y WHERE $c(y.)",
            ),
            (
                "a date minus a number of days",
                "SELECT y.id AS c0, date_diff('day', DATE '2020-02-20' - ($i(y.)) % 1000, DATE \
                 '2020-02-20') AS c1 FROM $p AS y WHERE $c(y.)",
            ),
            (
                "a list of dates plus a number of days",
                "SELECT y.id AS c0, CAST(([DATE '2020-02-20'] + ($i(y.)) % 1000)[1] - DATE \
                 '2020-02-20' AS BIGINT) AS c1 FROM $p AS y WHERE $c(y.)",
            ),
        ],
    ),
    (
        &["b", "d", "d", "i"],
        "SELECT y.b AS c0, DATE '2020-02-20' + min(($i(y.)) % 1000) AS c1, DATE '2020-02-20' + \
         max(($i(y.)) % 1000) AS c2, count(DISTINCT ($i(y.)) % 1000) AS c3 FROM $p AS y GROUP BY \
         y.b",
        &[
            (
                "aggregates of dates",
                "SELECT y.b AS c0, min(DATE '2020-02-20' + ($i(y.)) % 1000) AS c1, max(DATE \
                 '2020-02-20' + ($i(y.)) % 1000) AS c2, count(DISTINCT DATE '2020-02-20' + \
                 ($i(y.)) % 1000) AS c3 FROM $p AS y GROUP BY y.b",
            ),
            (
                "aggregates of dates as times",
                "SELECT w.b AS c0, CAST(min(w.d) AS DATE) AS c1, CAST(max(w.d) AS DATE) AS c2, \
                 count(DISTINCT w.d) AS c3 FROM (SELECT y.b, CAST(DATE '2020-02-20' + ($i(y.)) % \
                 1000 AS TIMESTAMP) AS d FROM $p AS y) AS w GROUP BY w.b",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, z.id AS c1 FROM $p AS y JOIN $q AS z ON y.k % 1000 = z.v % 1000 AND \
         $c(z.)",
        &[
            (
                "a join by dates",
                "SELECT y.id AS c0, z.id AS c1 FROM $p AS y JOIN $q AS z ON DATE '2020-02-20' + \
                 y.k % 1000 = DATE '2020-02-20' + z.v % 1000 AND $c(z.)",
            ),
            (
                "a join by dates and times",
                "SELECT y.id AS c0, z.id AS c1 FROM $p AS y JOIN $q AS z ON DATE '2020-02-20' + \
                 y.k % 1000 = CAST(DATE '2020-02-20' + z.v % 1000 AS TIMESTAMP) AND $c(z.)",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, 1 AS c1 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "a date is not compared with an integer",
                "SELECT y.id AS c0, 2 AS c1 FROM $p AS y WHERE $c(y.) AND DATE '2020-02-20' > \
                 $i(y.)",
            ),
            (
                "the greatest of a date and an integer",
                "SELECT y.id AS c0, date_diff('day', DATE '2020-02-20', greatest(DATE \
                 '2020-02-20', $i(y.))) AS c1 FROM $p AS y WHERE $c(y.)",
            ),
            (
                "a CASE of a date and an integer",
                "SELECT y.id AS c0, CAST(CASE WHEN y.b THEN DATE '2020-02-20' ELSE $i(y.) END AS \
                 BIGINT) AS c1 FROM $p AS y WHERE $c(y.)",
            ),
            (
                "a UNION of a date and an integer",
                "SELECT w.id AS c0, CAST(w.d AS BIGINT) AS c1 FROM (SELECT y.id, DATE '2020-02-20' \
                 AS d FROM $p AS y WHERE $c(y.) UNION ALL SELECT z.id, $i(z.) AS d FROM $p AS z \
                 WHERE false) AS w",
            ),
            (
                "a list of a date and an integer",
                "SELECT y.id AS c0, CAST([DATE '2020-02-20', $i(y.)][1] AS BIGINT) AS c1 FROM $p \
                 AS y WHERE $c(y.)",
            ),
            (
                "a date among integers",
                "SELECT y.id AS c0, 2 AS c1 FROM $p AS y WHERE $c(y.) AND DATE '2020-02-20' NOT IN \
                 (SELECT z.k FROM $q AS z)",
            ),
        ],
    ),
];
