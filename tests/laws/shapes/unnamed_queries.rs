//! Subqueries in FROM that have no alias.

use super::Shape;

pub(super) const UNNAMED: &[Shape] = &[
    (
        &["i", "i"],
        "SELECT y.k AS c0, count(*) AS c1 FROM $p AS y WHERE $c(y.) GROUP BY y.k",
        &[
            (
                "a query in FROM needs no name",
                "SELECT k AS c0, count(*) AS c1 FROM (SELECT * FROM $p AS z) WHERE $c() GROUP \
                 BY k",
            ),
            (
                "queries in FROM need no names",
                "SELECT * FROM (SELECT k AS c0, count(*) AS c1 FROM (SELECT k, b, v FROM \
                 (SELECT v, k, b, id FROM $p AS z) WHERE $c()) GROUP BY k)",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, z.cnt AS c1 FROM $p AS y $h (SELECT x.k AS h, count(*) AS cnt FROM $q \
         AS x GROUP BY x.k) AS z ON y.k = z.h WHERE $c(y.)",
        &[
            (
                "sides of a join need no names",
                "SELECT id AS c0, cnt AS c1 FROM (SELECT id, k, v, b FROM $p AS y) $h (SELECT k \
                 AS h, count(*) AS cnt FROM $q AS x GROUP BY k) ON k = h WHERE $c()",
            ),
            (
                "a side of a join needs no name",
                "SELECT y.id AS c0, cnt AS c1 FROM $p AS y $h (SELECT k AS h, count(*) AS cnt FROM \
                 (SELECT v, k FROM $q AS x) GROUP BY k) ON y.k = h WHERE $c(y.)",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, z.h AS c1 FROM $p AS y CROSS JOIN (SELECT DISTINCT x.k AS h FROM \
         $q AS x) AS z WHERE y.k = z.h AND $c(y.)",
        &[(
            "queries next to each other need no names",
            "SELECT id AS c0, h AS c1 FROM (SELECT id, k, v, b FROM $p AS y), (SELECT \
                 DISTINCT k AS h FROM $q AS x) WHERE k = h AND $c()",
        )],
    ),
    (
        &["i"],
        "SELECT y.id AS c0 FROM $p AS y WHERE EXISTS (SELECT 1 FROM $q AS z WHERE z.k = y.v \
         AND $c(z.))",
        &[
            (
                "a query of EXISTS needs no name",
                "SELECT y.id AS c0 FROM $p AS y WHERE EXISTS (SELECT 1 FROM (SELECT id, b, v, \
                 k FROM $q AS x) WHERE k = y.v AND $c())",
            ),
            (
                "IN over a query without a name",
                "SELECT id AS c0 FROM (SELECT id, v FROM $p AS y) WHERE v IN (SELECT k FROM \
                 (SELECT b, v, k FROM $q AS x) WHERE $c())",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, CAST(row_number() OVER (PARTITION BY y.k ORDER BY y.id) AS BIGINT) \
         AS c1 FROM $p AS y WHERE $c(y.)",
        &[(
            "a window over a query without a name",
            "SELECT id AS c0, cnt AS c1 FROM (SELECT id, CAST(row_number() OVER (PARTITION \
                 BY k ORDER BY id) AS BIGINT) AS cnt FROM (SELECT b, k, id, v FROM $p AS y) \
                 WHERE $c())",
        )],
    ),
    (
        &["i", "i"],
        "SELECT w.k AS c0, count(*) AS c1 FROM (SELECT y.k, y.v FROM $p AS y UNION ALL SELECT \
         z.v, z.k FROM $q AS z) AS w GROUP BY w.k",
        &[
            (
                "UNION ALL needs no name",
                "SELECT k AS c0, count(*) AS c1 FROM (SELECT k, v FROM $p AS y UNION ALL \
                 SELECT v, k FROM $q AS z) GROUP BY k",
            ),
            (
                "UNION ALL of queries without names",
                "SELECT k AS c0, count(v) + count(*) FILTER (WHERE v IS NULL) AS c1 FROM \
                 (SELECT k, v FROM (SELECT v, k FROM $p AS y) UNION ALL SELECT v, k FROM \
                 (SELECT k, v FROM $q AS z)) GROUP BY k",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.k AS c0, max(y.v) AS c1 FROM $p AS y WHERE $c(y.) GROUP BY y.k HAVING \
         max(y.v) > 0",
        &[(
            "HAVING reads columns of a query without a name",
            "SELECT k AS c0, v AS c1 FROM (SELECT v AS k, max(k) AS v FROM (SELECT z.v AS k, \
                 z.k AS v FROM $p AS z WHERE $c(z.)) GROUP BY v HAVING max(k) > 0) AS x",
        )],
    ),
    (
        &["i", "i"],
        "SELECT y.k AS c0, y.v AS c1 FROM $p AS y WHERE $c(y.) AND y.v > 0",
        &[(
            "QUALIFY reads columns of a query without a name",
            "SELECT k AS c0, v AS c1 FROM (SELECT v AS k, k AS v FROM (SELECT z.v AS k, z.k AS \
                 v FROM $p AS z WHERE $c(z.)) QUALIFY rank() OVER (ORDER BY k) > 0 AND k > 0) AS x",
        )],
    ),
];
