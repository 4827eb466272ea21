//! Queries with the condition `$x`. The columns of its subquery have the same names as columns of
//! the outer relation.

use super::Shape;

pub(super) const MERGED: &[Shape] = &[
    (
        &["i", "i"],
        "SELECT y.id AS c0, y.k AS c1 FROM $p AS y WHERE $x",
        &[
            (
                "a query of WHERE over unqualified columns",
                "SELECT id AS c0, k AS c1 FROM $p AS y WHERE $x",
            ),
            (
                "a query as a column",
                "SELECT id AS c0, k AS c1 FROM (SELECT y.id, y.k, $x AS m FROM $p AS y) AS z \
                 WHERE m",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.v AS c0, count(*) AS c1 FROM $p AS y WHERE $x GROUP BY y.v",
        &[(
            "a query of a filter",
            "SELECT v AS c0, cnt AS c1 FROM (SELECT v, count(*) FILTER (WHERE m) AS cnt FROM \
                 (SELECT y.v, $x AS m FROM $p AS y) AS z GROUP BY v) AS w WHERE cnt > 0",
        )],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, w.cnt AS c1 FROM $p AS y JOIN (SELECT coalesce(z.k, x.k) AS h, \
         count(*) AS cnt FROM $q AS z $h $p AS x ON z.k = x.k GROUP BY coalesce(z.k, x.k)) AS w \
         ON w.h = y.v WHERE $c(y.)",
        &[
            (
                "USING in a query in FROM",
                "SELECT y.id AS c0, w.cnt AS c1 FROM $p AS y JOIN (SELECT k, count(*) AS cnt FROM \
                 $q AS z $h $p AS x USING (k) GROUP BY k) AS w ON w.k = y.v WHERE $c(y.)",
            ),
            (
                "NATURAL in a query in FROM",
                "SELECT id AS c0, cnt AS c1 FROM $p AS y JOIN (SELECT k AS h, count(*) AS cnt FROM \
                 (SELECT k, v AS m FROM $q AS z) AS z NATURAL $h (SELECT k, b AS o FROM $p AS \
                 x) AS x GROUP BY k) AS w ON h = v WHERE $c()",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT y.id AS c0, count(w.h) AS c1, max(w.h) AS c2 FROM $p AS y LEFT JOIN (SELECT \
         coalesce(z.k, x.k) AS h FROM $q AS z $h $p AS x ON z.k = x.k) AS w ON w.h = y.v GROUP \
         BY y.id",
        &[
            (
                "USING in LATERAL",
                "SELECT y.id AS c0, w.cnt AS c1, CASE WHEN w.cnt > 0 THEN y.v END AS c2 FROM $p AS \
                 y CROSS JOIN LATERAL (SELECT count(*) AS cnt FROM $q AS z $h $p AS x USING (k) \
                 WHERE k = y.v) AS w",
            ),
            (
                "a key that USING merges in LATERAL",
                "SELECT y.id AS c0, w.cnt AS c1, w.m AS c2 FROM $p AS y CROSS JOIN LATERAL \
                 (SELECT count(*) AS cnt, max(m) AS m FROM (SELECT k AS m FROM $q AS z $h $p AS \
                 x USING (k)) AS u WHERE m = y.v) AS w",
            ),
            (
                "USING in queries of SELECT",
                "SELECT id AS c0, (SELECT count(*) FROM $q AS z $h $p AS x USING (k) WHERE k = \
                 y.v) AS c1, CASE WHEN EXISTS (SELECT 1 FROM $q AS z $h $p AS x USING (k) \
                 WHERE k = y.v) THEN v END AS c2 FROM $p AS y",
            ),
            (
                "a key that USING merges in queries of SELECT",
                "SELECT id AS c0, (SELECT count(*) FROM $q AS z $h $p AS x USING (k) WHERE k = \
                 y.v) AS c1, (SELECT max(m) FROM (SELECT k AS m FROM $q AS z $h $p AS x USING \
                 (k)) AS w WHERE m = v) AS c2 FROM $p AS y",
            ),
        ],
    ),
];
