//! Aggregates over queries without rows, and over set operations with a branch without rows.

use super::Shape;

pub(super) const EMPTY_INPUTS: &[Shape] = &[
    (
        &["i", "i", "f", "li", "b"],
        "SELECT 0 AS c0, CAST(NULL AS BIGINT) AS c1, CAST(NULL AS DOUBLE) AS c2, CAST(NULL AS \
         BIGINT[]) AS c3, CAST(NULL AS BOOLEAN) AS c4",
        &[
            (
                "aggregates without rows",
                "SELECT count(y.v) AS c0, max($i(y.)) AS c1, avg(y.f) AS c2, array_agg(y.v ORDER \
                 BY y.id) AS c3, bool_or(y.b) AS c4 FROM $p AS y WHERE $e",
            ),
            (
                "aggregates over LIMIT 0",
                "SELECT count(y.v) AS c0, max($i(y.)) AS c1, avg(y.f) AS c2, array_agg(y.v ORDER \
                 BY y.id) AS c3, bool_or(y.b) AS c4 FROM (SELECT * FROM $p AS z LIMIT 0) AS y",
            ),
            (
                "aggregates beyond OFFSET",
                "SELECT count(y.v) AS c0, max($i(y.)) AS c1, avg(y.f) AS c2, array_agg(y.v ORDER \
                 BY y.id) AS c3, bool_or(y.b) AS c4 FROM (SELECT * FROM $p AS z ORDER BY id LIMIT \
                 5 OFFSET 1000) AS y WHERE $c(y.)",
            ),
            (
                "aggregates of an empty product",
                "SELECT count(y.v) AS c0, max($i(y.)) AS c1, avg(y.f) AS c2, ragged_sum_agg(y.li) \
                 AS c3, bool_and(y.b) AS c4 FROM $p AS y CROSS JOIN (SELECT z.id FROM $q AS z \
                 WHERE $e) AS z",
            ),
            (
                "aggregates of constants without rows",
                "SELECT count(5) AS c0, min(7) AS c1, max(0.5::DOUBLE) AS c2, max([1, 2]) AS c3, \
                 bool_or(true) AS c4 FROM $q AS z WHERE $e",
            ),
            (
                "aggregates of an empty UNION ALL",
                "SELECT count(y.v) AS c0, max($i(y.)) AS c1, avg(y.f) AS c2, array_agg(y.v ORDER \
                 BY y.id) AS c3, bool_or(y.b) AS c4 FROM (SELECT 1 AS id, 2 AS k, 3 AS v, \
                 0.5::DOUBLE AS f, true AS b FROM $q AS z WHERE $e UNION ALL SELECT id, k, v, f, b \
                 FROM $p AS x WHERE $e) AS y",
            ),
            (
                "aggregates with a FILTER that no row passes",
                "SELECT count(*) FILTER (WHERE 1 = 0) AS c0, min(y.k) FILTER (WHERE $d(y.) AND \
                 false) AS c1, sum(y.f) FILTER (WHERE y.id < 0) AS c2, array_agg(y.v ORDER BY \
                 y.id) FILTER (WHERE y.id < 0) AS c3, bool_or(y.b) FILTER (WHERE false) AS c4 FROM \
                 $p AS y",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT min(y.v) AS c0, max(y.v) AS c1 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "extremes next to a constant without rows",
                "SELECT min(x.v) AS c0, max(x.v) AS c1 FROM (SELECT 99 AS v FROM $q AS z WHERE $e \
                 UNION ALL SELECT y.v FROM $p AS y WHERE $c(y.) UNION ALL (SELECT -99 AS v FROM $q \
                 AS z LIMIT 0)) AS x",
            ),
            (
                "extremes next to groups without rows",
                "SELECT min(x.v) AS c0, max(x.v) AS c1 FROM (SELECT y.v FROM $p AS y WHERE $c(y.) \
                 UNION ALL SELECT 99 AS v FROM $q AS z WHERE $e GROUP BY z.k UNION ALL SELECT \
                 max(-99) AS v FROM $q AS z WHERE $e) AS x",
            ),
            (
                "extremes next to an empty product",
                "SELECT min(x.v) AS c0, max(x.v) AS c1 FROM (SELECT -99 AS v FROM $q AS z JOIN \
                 (SELECT u.k FROM $p AS u WHERE $e) AS u ON u.k = z.k UNION ALL SELECT y.v FROM $p \
                 AS y WHERE $c(y.)) AS x",
            ),
            (
                "extremes next to an empty WITH",
                "WITH w AS (SELECT 99 AS v FROM $q AS z WHERE $e), x AS (SELECT * FROM w UNION ALL \
                 SELECT y.v FROM $p AS y WHERE $c(y.)) SELECT (SELECT min(v) FROM x) AS c0, \
                 (SELECT max(v) FROM x) AS c1",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT CAST(NULL AS BIGINT) AS c0, 0 AS c1",
        &[
            (
                "the total of a ROLLUP without rows",
                "SELECT y.k AS c0, count(*) AS c1 FROM $p AS y WHERE $e GROUP BY ROLLUP (y.k)",
            ),
            (
                "the total of GROUPING SETS without rows",
                "SELECT y.v AS c0, count(y.k) AS c1 FROM $p AS y WHERE $e GROUP BY GROUPING SETS \
                 ((y.v), (), (y.v, y.k))",
            ),
            (
                "a group of nothing without rows",
                "SELECT min(y.v) AS c0, count(*) AS c1 FROM $p AS y WHERE $e GROUP BY ()",
            ),
            (
                "HAVING without rows",
                "SELECT min(y.v) AS c0, count(*) AS c1 FROM $p AS y WHERE $e HAVING count(*) = 0",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT y.id AS c0, CAST(NULL AS BIGINT) AS c1, 0 AS c2 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "queries of SELECT without rows",
                "SELECT y.id AS c0, (SELECT max(z.v) FROM $q AS z WHERE $e) AS c1, (SELECT \
                 count(*) FROM $q AS z WHERE z.k = y.k AND $e) AS c2 FROM $p AS y WHERE $c(y.)",
            ),
            (
                "constant queries of SELECT without rows",
                "SELECT y.id AS c0, (SELECT 5 FROM $q AS z WHERE $e) AS c1, (SELECT count(5) FROM \
                 $q AS z WHERE $e) AS c2 FROM $p AS y WHERE $c(y.)",
            ),
            (
                "LATERAL without rows",
                "SELECT y.id AS c0, l.a AS c1, l.o AS c2 FROM $p AS y, LATERAL (SELECT min(z.v) AS \
                 a, count(*) AS o FROM $q AS z WHERE z.v > y.k AND $e) AS l WHERE $c(y.)",
            ),
            (
                "a LEFT JOIN with no rows",
                "SELECT y.id AS c0, max(z.a) AS c1, count(z.a) AS c2 FROM $p AS y LEFT JOIN \
                 (SELECT 5 AS a, u.k FROM $q AS u WHERE $e) AS z ON z.k = y.k WHERE $c(y.) GROUP \
                 BY y.id",
            ),
        ],
    ),
];
