//! Windows that the clause WINDOW names, and frames of rows, groups and ranges over keys of several
//! types.

use super::Shape;

pub(super) const NAMED_WINDOWS: &[Shape] = &[
    (
        &["i", "i", "i"],
        "SELECT y.id AS c0, CAST(sum($i(y.)) OVER (PARTITION BY y.b ORDER BY y.id $f) AS BIGINT) \
         AS c1, count(y.v) OVER (PARTITION BY y.b ORDER BY y.id $g) AS c2 FROM $p AS y WHERE \
         $c(y.)",
        &[
            (
                "named windows with frames",
                "SELECT y.id AS c0, CAST(sum($i(y.)) OVER w AS BIGINT) AS c1, count(y.v) OVER x AS \
                 c2 FROM $p AS y WHERE $c(y.) WINDOW w AS (PARTITION BY y.b ORDER BY y.id $f), x \
                 AS (PARTITION BY y.b ORDER BY y.id $g)",
            ),
            (
                "frames added to a named window",
                "SELECT y.id AS c0, CAST(sum($i(y.)) OVER (w $f) AS BIGINT) AS c1, count(y.v) OVER \
                 (w $g) AS c2 FROM $p AS y WHERE $c(y.) WINDOW w AS (PARTITION BY y.b ORDER BY \
                 y.id)",
            ),
            (
                "a named window in two steps",
                "SELECT x.id AS c0, x.i AS c1, count(x.v) OVER w AS c2 FROM (SELECT y.id, y.b, \
                 y.v, CAST(sum($i(y.)) OVER w AS BIGINT) AS i FROM $p AS y WHERE $c(y.) WINDOW w \
                 AS (PARTITION BY y.b ORDER BY y.id $f)) AS x WINDOW w AS (PARTITION BY x.b ORDER \
                 BY x.id $g)",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT w.id AS c0, w.i AS c1 FROM (SELECT y.id, count(*) OVER (PARTITION BY y.b ORDER BY \
         y.id $f) AS i, row_number() OVER (PARTITION BY y.b ORDER BY y.id) AS m FROM $p AS y WHERE \
         $c(y.)) AS w WHERE w.m <= $n",
        &[
            (
                "QUALIFY of a named window",
                "SELECT y.id AS c0, count(*) OVER (w $f) AS c1 FROM $p AS y WHERE $c(y.) WINDOW w \
                 AS (PARTITION BY y.b ORDER BY y.id) QUALIFY row_number() OVER w <= $n",
            ),
            (
                "QUALIFY before a condition",
                "SELECT y.id AS c0, count(*) OVER (PARTITION BY y.b ORDER BY y.id $f) AS c1 FROM \
                 (SELECT * FROM $p AS z WHERE $c()) AS y QUALIFY rank() OVER (PARTITION BY y.b \
                 ORDER BY y.id) <= $n",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, count(*) OVER (PARTITION BY y.b ORDER BY y.k % 100 RANGE BETWEEN 1 \
         PRECEDING AND $n FOLLOWING) AS c1 FROM $p AS y",
        &[
            (
                "a range of dates",
                "SELECT y.id AS c0, count(*) OVER (PARTITION BY y.b ORDER BY DATE '2020-02-20' + \
                 y.k % 100 RANGE BETWEEN INTERVAL '1 day' PRECEDING AND INTERVAL '$n days' \
                 FOLLOWING) AS c1 FROM $p AS y",
            ),
            (
                "a range of times",
                "SELECT y.id AS c0, count(*) OVER (PARTITION BY y.b ORDER BY TIMESTAMP \
                 '2020-02-20' + to_hours(y.k % 100) RANGE BETWEEN INTERVAL '1 hour' PRECEDING AND \
                 INTERVAL '$n hours' FOLLOWING) AS c1 FROM $p AS y",
            ),
            (
                "a range of floats",
                "SELECT y.id AS c0, count(*) OVER (PARTITION BY y.b ORDER BY CAST(y.k % 100 AS \
                 DOUBLE) RANGE BETWEEN 1 PRECEDING AND $n FOLLOWING) AS c1 FROM $p AS y",
            ),
            (
                "a range of decimals",
                "SELECT y.id AS c0, count(*) OVER (PARTITION BY y.b ORDER BY CAST(y.k % 100 AS \
                 DECIMAL(12, 2)) RANGE BETWEEN 1 PRECEDING AND $n FOLLOWING) AS c1 FROM $p AS y",
            ),
            (
                "a range in the reverse order",
                "SELECT y.id AS c0, count(*) OVER (PARTITION BY y.b ORDER BY y.k % 100 DESC RANGE \
                 BETWEEN $n PRECEDING AND 1 FOLLOWING) AS c1 FROM $p AS y",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT w.id AS c0, max(w.v) OVER (PARTITION BY w.b ORDER BY w.m RANGE BETWEEN 1 PRECEDING \
         AND CURRENT ROW) AS c1, count(w.v) OVER (PARTITION BY w.b ORDER BY w.m RANGE BETWEEN 1 \
         FOLLOWING AND UNBOUNDED FOLLOWING) AS c2 FROM (SELECT y.id, y.b, y.v, dense_rank() OVER \
         (PARTITION BY y.b ORDER BY y.k) AS m FROM $p AS y) AS w",
        &[
            (
                "groups before",
                "SELECT y.id AS c0, max(y.v) OVER (PARTITION BY y.b ORDER BY y.k GROUPS BETWEEN 1 \
                 PRECEDING AND CURRENT ROW) AS c1, count(y.v) OVER (PARTITION BY y.b ORDER BY y.k \
                 GROUPS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS c2 FROM $p AS y",
            ),
            (
                "groups of a list after",
                "SELECT y.id AS c0, max(y.v) OVER (PARTITION BY y.b ORDER BY [y.k] DESC NULLS \
                 FIRST GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS c1, count(y.v) OVER \
                 (PARTITION BY y.b ORDER BY [y.k] DESC NULLS FIRST GROUPS BETWEEN UNBOUNDED \
                 PRECEDING AND 1 PRECEDING) AS c2 FROM $p AS y",
            ),
            (
                "groups of a named window",
                "SELECT y.id AS c0, max(y.v) OVER (w GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) \
                 AS c1, count(y.v) OVER (w GROUPS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS \
                 c2 FROM $p AS y WINDOW w AS (PARTITION BY y.b ORDER BY y.k)",
            ),
        ],
    ),
    (
        &["i", "i", "i", "i"],
        "SELECT w.id AS c0, w.l[$n] AS c1, (list_filter(w.l, e -> e IS NOT NULL))[1] AS c2, \
         (list_filter(w.l, e -> e IS NOT NULL))[-1] AS c3 FROM (SELECT y.id, array_agg(y.v) OVER \
         (PARTITION BY y.b ORDER BY y.id $f) AS l FROM $p AS y WHERE $c(y.)) AS w",
        &[
            (
                "values of a frame",
                "SELECT y.id AS c0, nth_value(y.v, $n) OVER (PARTITION BY y.b ORDER BY y.id $f) AS \
                 c1, first_value(y.v IGNORE NULLS) OVER (PARTITION BY y.b ORDER BY y.id $f) AS c2, \
                 last_value(y.v IGNORE NULLS) OVER (PARTITION BY y.b ORDER BY y.id $f) AS c3 FROM \
                 $p AS y WHERE $c(y.)",
            ),
            (
                "values of a named window",
                "SELECT y.id AS c0, nth_value(y.v, $n) OVER w AS c1, first_value(y.v IGNORE NULLS) \
                 OVER w AS c2, last_value(y.v IGNORE NULLS) OVER w AS c3 FROM $p AS y WHERE $c(y.) \
                 WINDOW w AS (PARTITION BY y.b ORDER BY y.id $f)",
            ),
        ],
    ),
    (
        &["i", "i", "li", "li"],
        "SELECT y.id AS c0, count(CASE WHEN $d(y.) THEN 1 END) OVER (PARTITION BY y.b ORDER BY \
         y.id $f) AS c1, array_agg(y.v) OVER (PARTITION BY y.b ORDER BY y.id $f) AS c2, lag(y.li) \
         OVER (PARTITION BY y.b ORDER BY y.id) AS c3 FROM $p AS y",
        &[
            (
                "FILTER of a window",
                "SELECT y.id AS c0, count(*) FILTER (WHERE $d(y.)) OVER w AS c1, \
                 ragged_nest_agg(y.v) OVER w AS c2, lag(y.li) OVER w AS c3 FROM $p AS y WINDOW w \
                 AS (PARTITION BY y.b ORDER BY y.id $f)",
            ),
            (
                "a window of lists",
                "SELECT y.id AS c0, count(*) FILTER (WHERE $d(y.)) OVER (PARTITION BY y.b ORDER BY \
                 y.id $f) AS c1, flatten(array_agg([y.v]) OVER (PARTITION BY y.b ORDER BY y.id \
                 $f)) AS c2, lead(y.li) OVER (PARTITION BY y.b ORDER BY y.id DESC) AS c3 FROM $p \
                 AS y",
            ),
        ],
    ),
];
