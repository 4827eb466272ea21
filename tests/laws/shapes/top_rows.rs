//! DISTINCT and GROUP BY with ORDER BY and LIMIT, and sorted queries below OFFSET and row numbers.

use super::Shape;

pub(super) const TOPMOST: &[Shape] = &[
    (
        &["i", "i"],
        "SELECT w.c0, w.c1 FROM (SELECT x.c0, x.c1, row_number() OVER (ORDER BY x.c0 DESC \
         NULLS LAST, x.c1 NULLS FIRST) AS cnt FROM (SELECT z.c0, z.c1 FROM (SELECT y.k AS c0, \
         count(*) OVER (PARTITION BY y.v) AS c1 FROM $p AS y WHERE $c(y.)) AS z GROUP BY z.c0, \
         z.c1) AS x) AS w WHERE w.cnt <= $n",
        &[
            (
                "DISTINCT and LIMIT above a window",
                "SELECT DISTINCT y.k AS c0, count(*) OVER (PARTITION BY y.v) AS c1 FROM $p AS \
                 y WHERE $c(y.) ORDER BY c0 DESC NULLS LAST, c1 NULLS FIRST LIMIT $n",
            ),
            (
                "DISTINCT and LIMIT above a query of a window",
                "SELECT DISTINCT c0, c1 FROM (SELECT y.k AS c0, count(*) OVER (PARTITION BY \
                 y.v) AS c1 FROM $p AS y WHERE $c(y.)) ORDER BY c0 DESC NULLS LAST, c1 NULLS \
                 FIRST LIMIT $n",
            ),
            (
                "LIMIT above DISTINCT of a window",
                "SELECT c0, c1 FROM (SELECT DISTINCT y.k AS c0, count(*) OVER (PARTITION BY \
                 y.v) AS c1 FROM $p AS y WHERE $c(y.)) AS z ORDER BY c0 DESC NULLS LAST, c1 \
                 NULLS FIRST LIMIT $n",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT w.c0, w.c1 FROM (SELECT x.c0, x.c1, row_number() OVER (ORDER BY x.c0 DESC \
         NULLS LAST, x.c1 NULLS FIRST) AS cnt FROM (SELECT z.c0, z.c1 FROM (SELECT $i(y.) AS c0, \
         count(*) AS c1 FROM $p AS y WHERE $c(y.) GROUP BY $i(y.), y.b) AS z GROUP BY z.c0, \
         z.c1) AS x) AS w WHERE w.cnt <= $n",
        &[
            (
                "DISTINCT and LIMIT above groups",
                "SELECT DISTINCT $i(y.) AS c0, count(*) AS c1 FROM $p AS y WHERE $c(y.) GROUP \
                 BY $i(y.), y.b ORDER BY c0 DESC NULLS LAST, c1 NULLS FIRST LIMIT $n",
            ),
            (
                "DISTINCT and LIMIT above a query of groups",
                "SELECT DISTINCT c0, c1 FROM (SELECT $i(y.) AS c0, count(*) AS c1 FROM $p AS y \
                 WHERE $c(y.) GROUP BY $i(y.), y.b) ORDER BY c0 DESC NULLS LAST, c1 NULLS \
                 FIRST LIMIT $n",
            ),
            (
                "LIMIT above DISTINCT of groups",
                "SELECT c0, c1 FROM (SELECT DISTINCT $i(y.) AS c0, count(*) AS c1 FROM $p AS y \
                 WHERE $c(y.) GROUP BY $i(y.), y.b) AS z ORDER BY c0 DESC NULLS LAST, c1 NULLS \
                 FIRST LIMIT $n",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT w.c0, w.c1 FROM (SELECT x.c0, x.c1, row_number() OVER (ORDER BY x.c0 DESC \
         NULLS LAST, x.c1 NULLS FIRST) AS cnt FROM (SELECT z.c0, z.c1 FROM (SELECT y.k AS c0, \
         max(z.v) OVER (PARTITION BY z.k) AS c1 FROM $p AS y $h $q AS z ON y.k = z.k) AS z \
         GROUP BY z.c0, z.c1) AS x) AS w WHERE w.cnt <= $n",
        &[
            (
                "DISTINCT and LIMIT above a window of a join",
                "SELECT DISTINCT y.k AS c0, max(z.v) OVER (PARTITION BY z.k) AS c1 FROM $p AS \
                 y $h $q AS z ON y.k = z.k ORDER BY c0 DESC NULLS LAST, c1 NULLS FIRST LIMIT \
                 $n",
            ),
            (
                "DISTINCT and LIMIT above a query of a window of a join",
                "SELECT DISTINCT c0, c1 FROM (SELECT y.k AS c0, max(z.v) OVER (PARTITION BY \
                 z.k) AS c1 FROM $p AS y $h $q AS z ON y.k = z.k) ORDER BY c0 DESC NULLS LAST, \
                 c1 NULLS FIRST LIMIT $n",
            ),
            (
                "LIMIT above DISTINCT of a window of a join",
                "SELECT c0, c1 FROM (SELECT DISTINCT y.k AS c0, max(z.v) OVER (PARTITION BY \
                 z.k) AS c1 FROM $p AS y $h $q AS z ON y.k = z.k) AS z ORDER BY c0 DESC NULLS \
                 LAST, c1 NULLS FIRST LIMIT $n",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT w.c0, w.c1 FROM (SELECT x.c0, x.c1, row_number() OVER (ORDER BY x.c0, x.c1) AS \
         cnt FROM (SELECT z.c0, z.c1 FROM (SELECT y.k AS c0, count(*) OVER (PARTITION BY y.v) AS \
         c1 FROM $p AS y WHERE $c(y.)) AS z GROUP BY z.c0, z.c1) AS x) AS w WHERE w.cnt > 1 AND \
         w.cnt <= 1 + $n",
        &[
            (
                "DISTINCT and OFFSET above a window",
                "SELECT DISTINCT y.k AS c0, count(*) OVER (PARTITION BY y.v) AS c1 FROM $p AS \
                 y WHERE $c(y.) ORDER BY c0, c1 LIMIT $n OFFSET 1",
            ),
            (
                "DISTINCT and OFFSET in two steps",
                "SELECT * FROM (SELECT DISTINCT y.k AS c0, count(*) OVER (PARTITION BY y.v) AS \
                 c1 FROM $p AS y WHERE $c(y.) ORDER BY c0, c1 OFFSET 1) ORDER BY c0, c1 LIMIT \
                 $n",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.k AS c0, coalesce(y.v, 0) AS c1 FROM $p AS y WHERE $c(y.) GROUP BY y.k, y.v \
         ORDER BY c1, c0 LIMIT $n",
        &[(
            "LIMIT above groups in the order of positions",
            "SELECT x.c0, x.c1 FROM (SELECT k AS v, coalesce(v, 0) FROM $p AS y WHERE $c() \
                 GROUP BY k, v ORDER BY 2, 1 LIMIT $n) AS x(c0, c1)",
        )],
    ),
    (
        &["i", "i"],
        "SELECT count(x.c0) AS c0, sum(x.c0) AS c1 FROM (SELECT y.k AS c0, row_number() OVER (ORDER \
         BY y.v NULLS FIRST, y.id) AS cnt FROM $p AS y WHERE $c(y.)) AS x WHERE x.cnt > $n",
        &[
            (
                "OFFSET above a sort by columns that are not returned",
                "SELECT count(x.c0) AS c0, sum(x.c0) AS c1 FROM (SELECT y.k AS c0 FROM $p AS y \
                 WHERE $c(y.) ORDER BY y.v NULLS FIRST, y.id OFFSET $n) AS x",
            ),
            (
                "row numbers above a sort by columns that are not returned",
                "SELECT count(x.c0) AS c0, sum(x.c0) AS c1 FROM (SELECT w.c0, row_number() OVER () \
                 AS cnt FROM (SELECT y.k AS c0 FROM $p AS y WHERE $c(y.) ORDER BY y.v NULLS FIRST, \
                 y.id) AS w) AS x WHERE x.cnt > $n",
            ),
        ],
    ),
];
