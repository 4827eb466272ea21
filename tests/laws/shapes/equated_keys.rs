//! GROUP BY keys that a join declares equal, and GROUPING SETS of expressions.

use super::Shape;

pub(super) const EQUATED: &[Shape] = &[
    (
        &["i", "i"],
        "SELECT w.h AS c0, count(*) AS c1 FROM (SELECT y.k AS h FROM $p AS y JOIN $q AS z ON \
         y.k = z.k WHERE $c(y.)) AS w GROUP BY w.h",
        &[
            (
                "groups by both join keys",
                "SELECT y.k AS c0, count(*) AS c1 FROM $p AS y JOIN $q AS z ON y.k = z.k WHERE \
                 $c(y.) GROUP BY y.k, z.k",
            ),
            (
                "groups by the other join key",
                "SELECT z.k AS c0, count(*) AS c1 FROM $p AS y JOIN $q AS z ON y.k = z.k WHERE \
                 $c(y.) GROUP BY z.k, y.k",
            ),
            (
                "groups by a merged key",
                "SELECT k AS c0, count(*) AS c1 FROM $p AS y JOIN $q AS z USING (k) WHERE \
                 $c(y.) GROUP BY k",
            ),
            (
                "groups by a key and an expression of it",
                "SELECT y.k AS c0, count(*) AS c1 FROM $p AS y JOIN $q AS z ON y.k = z.k WHERE \
                 $c(y.) GROUP BY y.k, z.k + 1",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT w.h AS c0, w.g AS c1, count(*) AS c2 FROM (SELECT y.k AS h, z.k AS g FROM $p \
         AS y $h $q AS z ON y.k = z.k) AS w GROUP BY w.h, w.g",
        &[
            (
                "groups by keys of an outer join",
                "SELECT y.k AS c0, z.k AS c1, count(*) AS c2 FROM $p AS y $h $q AS z ON y.k = \
                 z.k GROUP BY y.k, z.k",
            ),
            (
                "DISTINCT keys of an outer join",
                "SELECT c0, c1, cnt AS c2 FROM (SELECT DISTINCT y.k AS c0, z.k AS c1, count(*) \
                 OVER (PARTITION BY z.k, y.k) AS cnt FROM $p AS y $h $q AS z ON y.k = z.k)",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT $i(y.) AS c0, count(*) AS c1 FROM $p AS y GROUP BY $i(y.) UNION ALL SELECT \
         CAST(NULL AS BIGINT) AS c0, count(*) AS c1 FROM $p AS y",
        &[
            (
                "ROLLUP of an expression",
                "SELECT $i() AS c0, count(*) AS c1 FROM $p AS y GROUP BY ROLLUP ($i())",
            ),
            (
                "CUBE of an expression",
                "SELECT $i() AS c0, count(*) AS c1 FROM $p AS y GROUP BY CUBE ($i())",
            ),
            (
                "GROUPING SETS of an expression",
                "SELECT $i() AS c0, count(*) AS c1 FROM (SELECT * FROM $p AS y) GROUP BY \
                 GROUPING SETS ((), ($i()))",
            ),
        ],
    ),
    (
        &["s", "i", "i"],
        "SELECT CAST(y.k AS VARCHAR) AS c0, CAST(NULL AS BIGINT) AS c1, count(*) AS c2 FROM $p \
         AS y GROUP BY CAST(y.k AS VARCHAR) UNION ALL SELECT NULL AS c0, y.v AS c1, count(*) \
         AS c2 FROM $p AS y GROUP BY y.v",
        &[
            (
                "GROUPING SETS of a cast",
                "SELECT CAST(k AS VARCHAR) AS c0, v AS c1, count(*) AS c2 FROM $p AS y GROUP \
                 BY GROUPING SETS ((CAST(k AS VARCHAR)), (v))",
            ),
            (
                "GROUPING SETS of a cast of a query",
                "SELECT s AS c0, v AS c1, count(*) AS c2 FROM (SELECT v, CAST(k AS VARCHAR) AS \
                 s FROM $p AS y) GROUP BY GROUPING SETS ((v), (s))",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT w.h AS c0, CAST(NULL AS BIGINT) AS c1, count(*) AS c2 FROM (SELECT y.k AS h \
         FROM $p AS y JOIN $q AS z ON y.k = z.k) AS w GROUP BY w.h UNION ALL SELECT CAST(NULL \
         AS BIGINT) AS c0, w.g AS c1, count(*) AS c2 FROM (SELECT z.k AS g FROM $p AS y JOIN \
         $q AS z ON y.k = z.k) AS w GROUP BY w.g",
        &[(
            "GROUPING SETS of join keys",
            "SELECT y.k AS c0, z.k AS c1, count(*) AS c2 FROM $p AS y JOIN $q AS z ON y.k \
                 = z.k GROUP BY GROUPING SETS ((y.k), (z.k))",
        )],
    ),
];
