//! Shapes of queries whose names, rows or keys are easily confused, each next to a plain spelling.
//!
//! In a text, `$p` and `$q` are relations with the columns `id`, `k`, `v`, `f`, `b` and `li`, and
//! `$t` is the table below `$p`. `$i(y.)` and `$j(y.)` are integers of columns that `y.` qualifies,
//! `$c(y.)` and `$d(y.)` are conditions. `$x` is a condition with a query about a row of `y`; in
//! that, `$o` is the outer relation. `$e` is never true, `$h` is a kind of join and `$n` a number.

use super::{Col, Columns, Queries, query_role};
use crate::forms::{Node, Parts, Role};

/// Laws, each with a text that means the same as the first.
type Ways = &'static [(&'static str, &'static str)];

/// Types of columns, the first text and others.
type Shape = (&'static [&'static str], &'static str, Ways);

const QUALIFIERS: [&str; 6] = ["", "u.", "w.", "x.", "y.", "z."];
const INTEGERS: &[&str] = &[
    "§k",
    "§v",
    "(§k + §v)",
    "abs(§v)",
    "coalesce(§v, §k)",
    "CASE WHEN §b THEN §k ELSE §v END",
    "(§k % 3)",
    "(-§v)",
];
const CONDITIONS: &[&str] = &[
    "true",
    "§k > 1",
    "§v IS NULL",
    "§b",
    "§k = §v",
    "(§b OR §v > 0)",
    "NOT §b",
    "coalesce(§v, 0) <= 1",
    "§k IN (1, 2)",
];
const NEVER: &[&str] = &["false", "1 = 0", "NULL", "2 < 1 AND true"];
const KINDS: &[&str] = &["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"];
const NUMBERS: &[&str] = &["1", "2", "3"];

/// All shapes, by subject.
pub(super) const SHAPES: [&[Shape]; 11] = [
    UNNAMED, MERGED, BRANCHES, FILTERED, CORRELATED, SHIFTED, CAPTURED, EQUATED, TOPMOST, SHARED,
    CAST_SETS,
];

/// Queries in FROM without a name.
const UNNAMED: &[Shape] = &[
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
];

/// Conditions of $x, whose queries see an outer relation with columns of the same names.
const MERGED: &[Shape] = &[
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

/// UNION ALL with branches without rows.
const BRANCHES: &[Shape] = &[
    (
        &["i", "i"],
        "SELECT y.k AS c0, y.v AS c1 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "a branch without rows is last",
                "SELECT k AS c0, v AS c1 FROM (SELECT v, k, b FROM $p AS y UNION ALL SELECT v, \
                 k, b FROM $q AS z WHERE $e) AS w WHERE $c()",
            ),
            (
                "a branch without rows is first",
                "SELECT k AS c0, v AS c1 FROM (SELECT k AS v, v AS k, b FROM $q AS z WHERE $e \
                 UNION ALL SELECT y.v, y.k, y.b FROM $p AS y) AS w WHERE $c()",
            ),
            (
                "a branch of LIMIT 0",
                "SELECT k AS c0, v AS c1 FROM (SELECT b, v, k FROM $p AS y UNION ALL (SELECT \
                 b, k, v FROM $q AS z LIMIT 0)) AS w WHERE $c()",
            ),
            (
                "branches without rows around one with rows",
                "SELECT k AS c0, v AS c1 FROM (SELECT k, v, b FROM $q AS z WHERE $e UNION ALL \
                 (SELECT k, v, b FROM $p AS y UNION ALL (SELECT v, k, b FROM $q AS x WHERE $e \
                 UNION ALL SELECT id, k, b FROM $q AS u LIMIT 0))) AS w WHERE $c()",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, z.v AS c1 FROM $p AS y $h $q AS z ON y.k = z.k",
        &[
            (
                "a join of branches without rows",
                "SELECT y.id AS c0, z.v AS c1 FROM (SELECT k, id FROM $p AS w UNION ALL SELECT \
                 v, k FROM $q AS w WHERE $e) AS y $h (SELECT id AS k, k AS v FROM $p AS u \
                 WHERE $e UNION ALL SELECT k, v FROM $q AS u) AS z ON y.k = z.k",
            ),
            (
                "a branch of a join without rows",
                "SELECT y.id AS c0, z.v AS c1 FROM $p AS y $h $q AS z ON y.k = z.k UNION ALL \
                 SELECT z.k, y.id FROM $p AS y $h $q AS z ON y.v = z.v WHERE $e",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT count(*) AS c0, CAST(sum(y.v) AS BIGINT) AS c1 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "an aggregate over a branch without rows",
                "SELECT count(*) AS c0, CAST(sum(v) AS BIGINT) AS c1 FROM (SELECT k, b, v FROM \
                 $p AS y UNION ALL SELECT v, b, k FROM $q AS z WHERE $e) AS w WHERE $c()",
            ),
            (
                "an aggregate of a branch without rows",
                "SELECT c0, c1 FROM (SELECT id AS c1, k AS c0 FROM $q AS z WHERE $e UNION ALL \
                 SELECT CAST(sum(v) AS BIGINT), count(*) FROM $p AS y WHERE $c()) AS w",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.k AS c0, y.v AS c1 FROM $p AS y WHERE $c(y.) UNION ALL SELECT z.v AS c0, z.k \
         AS c1 FROM $q AS z",
        &[
            (
                "nested UNION ALL",
                "SELECT c0, c1 FROM (SELECT c1, c0 FROM (SELECT v AS c1, k AS c0 FROM $p AS y \
                 WHERE $c() UNION ALL SELECT k, v FROM $q AS z) AS x UNION ALL SELECT id, k \
                 FROM $q AS w WHERE $e) AS u",
            ),
            (
                "nested UNION ALL turned round",
                "SELECT c1 AS c0, c0 AS c1 FROM (SELECT id AS c0, id AS c1 FROM $p AS w WHERE \
                 $e UNION ALL (SELECT k, v FROM $q AS z UNION ALL SELECT v, k FROM $p AS y \
                 WHERE $c())) AS u",
            ),
            (
                "WITH of UNION ALL",
                "WITH w AS (SELECT v AS m, k AS cnt, true AS o FROM $q AS z UNION ALL SELECT k, \
                 v, false FROM $p AS y WHERE $c() UNION ALL SELECT id, id, true FROM $q AS x \
                 WHERE $e) SELECT m AS c0, cnt AS c1 FROM w WHERE o UNION ALL SELECT m, cnt FROM w \
                 WHERE NOT o",
            ),
        ],
    ),
];

/// Aggregates with FILTER over aggregates.
const FILTERED: &[Shape] = &[
    (
        &["i"],
        "SELECT count(CASE WHEN w.cnt > 1 THEN 1 END) AS c0 FROM (SELECT count(*) AS cnt FROM $p \
         AS y WHERE $c(y.)) AS w",
        &[
            (
                "count(*) FILTER over one count",
                "SELECT count(*) FILTER (WHERE cnt > 1) AS c0 FROM (SELECT count(*) AS cnt FROM $p \
                 AS y WHERE $c())",
            ),
            (
                "count(*) of a condition on a count",
                "SELECT count(*) AS c0 FROM (SELECT count(*) AS cnt FROM $p AS y WHERE $c()) AS \
                 w WHERE cnt > 1",
            ),
            (
                "count(*) FILTER over WITH",
                "WITH w AS (SELECT count(*) AS cnt FROM $p AS y WHERE $c()) SELECT count(*) \
                 FILTER (WHERE w.cnt > 1) AS c0 FROM w",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT count(CASE WHEN w.cnt > 1 THEN 1 END) AS c0, max(CASE WHEN w.m > 0 THEN w.m END) \
         AS c1 FROM (SELECT y.k, count(*) AS cnt, max(y.v) AS m FROM $p AS y WHERE $c(y.) GROUP \
         BY y.k) AS w",
        &[
            (
                "FILTER over groups",
                "SELECT count(*) FILTER (WHERE cnt > 1) AS c0, max(m) FILTER (WHERE m > 0) AS c1 \
                 FROM (SELECT k, count(*) AS cnt, max(v) AS m FROM $p AS y WHERE $c() GROUP BY \
                 k) AS w",
            ),
            (
                "FILTER over groups of a query",
                "SELECT count(cnt) FILTER (WHERE cnt > 1) AS c0, max(m) FILTER (WHERE m > 0) AS c1 \
                 FROM (SELECT count(*) AS cnt, max(v) AS m FROM (SELECT k, v FROM $p AS y WHERE \
                 $c()) GROUP BY k)",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT w.m AS c0, count(CASE WHEN w.cnt > 1 THEN w.k END) AS c1, count(*) AS c2 FROM \
         (SELECT y.k, max(y.v) AS m, count(*) AS cnt FROM $p AS y GROUP BY y.k) AS w GROUP BY \
         w.m",
        &[(
            "groups of groups",
            "SELECT m AS c0, count(k) FILTER (WHERE cnt > 1) AS c1, count(*) FILTER (WHERE \
                 true) AS c2 FROM (SELECT k, max(v) AS m, count(*) AS cnt FROM $p AS y GROUP BY \
                 k) GROUP BY m",
        )],
    ),
    (
        &["i", "i"],
        "SELECT count(CASE WHEN $c(w.) THEN 1 END) AS c0, count(DISTINCT CASE WHEN $d(w.) THEN \
         $i(w.) END) AS c1 FROM (SELECT * FROM $p AS y ORDER BY y.id LIMIT $n) AS w",
        &[(
            "FILTER over LIMIT",
            "SELECT count(*) FILTER (WHERE $c()) AS c0, count(DISTINCT $i()) FILTER (WHERE \
                 $d()) AS c1 FROM (SELECT * FROM $p AS y ORDER BY id LIMIT $n) AS w",
        )],
    ),
    (
        &["i"],
        "SELECT count(CASE WHEN w.cnt > 0 THEN 1 END) AS c0 FROM (SELECT count(*) AS cnt FROM $p \
         AS y UNION ALL SELECT count(*) AS cnt FROM $q AS z WHERE $c(z.)) AS w",
        &[(
            "FILTER over a union of counts",
            "SELECT count(*) FILTER (WHERE cnt > 0) AS c0 FROM (SELECT count(*) AS cnt FROM $p \
                 AS y UNION ALL SELECT count(*) FROM $q AS z WHERE $c())",
        )],
    ),
];

/// LATERAL and queries with columns of the names of the outer row.
const CORRELATED: &[Shape] = &[
    (
        &["i", "i"],
        "SELECT y.id AS c0, count(z.id) AS c1 FROM $p AS y LEFT JOIN $q AS z ON z.k = y.k AND \
         $c(z.) GROUP BY y.id",
        &[
            (
                "LATERAL of a count",
                "SELECT y.id AS c0, l.cnt AS c1 FROM $p AS y, LATERAL (SELECT count(*) AS cnt FROM \
                 $q AS z WHERE z.k = y.k AND $c(z.)) AS l",
            ),
            (
                "LATERAL over names of the outer row",
                "SELECT y.id AS c0, l.id AS c1 FROM $p AS y, LATERAL (SELECT count(*) AS id \
                 FROM $q AS z WHERE k = y.k AND $c()) AS l",
            ),
            (
                "a count over names of the outer row",
                "SELECT id AS c0, (SELECT count(*) FROM $q AS z WHERE k = y.k AND $c()) AS c1 \
                 FROM $p AS y",
            ),
            (
                "a count of a query in FROM",
                "SELECT id AS c0, (SELECT count(id) FROM (SELECT id, k, b, v FROM $q AS x) \
                 WHERE k = y.k AND $c()) AS c1 FROM $p AS y",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, z.v AS c1 FROM $p AS y JOIN $q AS z ON z.k = y.k WHERE $c(z.)",
        &[
            (
                "LATERAL of rows",
                "SELECT y.id AS c0, l.v AS c1 FROM $p AS y, LATERAL (SELECT v, k FROM $q AS z \
                 WHERE z.k = y.k AND $c()) AS l",
            ),
            (
                "LATERAL of rows of a query",
                "SELECT y.id AS c0, l.v AS c1 FROM $p AS y JOIN LATERAL (SELECT v FROM (SELECT \
                 b, k, v FROM $q AS z) AS z WHERE z.k = y.k AND $c()) AS l ON true",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, z.v AS c1 FROM $p AS y LEFT JOIN $q AS z ON z.k = y.k AND $c(z.)",
        &[(
            "LEFT JOIN LATERAL of rows",
            "SELECT y.id AS c0, l.v AS c1 FROM $p AS y LEFT JOIN LATERAL (SELECT v, id \
                 FROM $q AS z WHERE z.k = y.k AND $c()) AS l ON true",
        )],
    ),
    (
        &["i"],
        "SELECT y.id AS c0 FROM $p AS y WHERE y.k IN (SELECT z.v FROM $q AS z WHERE $c(z.))",
        &[
            (
                "a query of the name of the outer relation",
                "SELECT y.id AS c0 FROM $p AS y WHERE y.k IN (SELECT y.v FROM $q AS y WHERE \
                 $c(y.))",
            ),
            (
                "a query of the names of the outer columns",
                "SELECT id AS c0 FROM $p AS y WHERE k IN (SELECT v FROM $q AS z WHERE $c())",
            ),
            (
                "a query with swapped names",
                "SELECT id AS c0 FROM $p AS y WHERE k IN (SELECT k FROM (SELECT v AS k FROM $q \
                 AS z WHERE $c()) AS y)",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT y.id AS c0 FROM $p AS y WHERE y.k IN (SELECT z.k FROM $q AS z JOIN $p AS x ON \
         x.v = z.v WHERE $c(x.))",
        &[
            (
                "EXISTS within EXISTS",
                "SELECT id AS c0 FROM $p AS y WHERE EXISTS (SELECT 1 FROM $q AS r WHERE k = \
                 y.k AND EXISTS (SELECT 1 FROM $p AS x WHERE v = r.v AND $c()))",
            ),
            (
                "IN within EXISTS",
                "SELECT id AS c0 FROM $p AS y WHERE EXISTS (SELECT id FROM $q AS z WHERE z.k = \
                 y.k AND v IN (SELECT v FROM $p AS x WHERE $c()))",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, w.cnt AS c1 FROM $p AS y LEFT JOIN (SELECT z.k, max($i(z.)) AS cnt \
         FROM $q AS z WHERE $c(z.) GROUP BY z.k) AS w ON w.k = y.k",
        &[
            (
                "a maximum over names of the outer row",
                "SELECT id AS c0, (SELECT max($i()) FROM $q AS z WHERE k = y.k AND $c()) AS c1 \
                 FROM $p AS y",
            ),
            (
                "LATERAL of a maximum",
                "SELECT y.id AS c0, k AS c1 FROM (SELECT id, k AS h FROM $p AS y) AS y LEFT \
                 JOIN LATERAL (SELECT max($i()) AS k FROM $q AS z WHERE k = y.h AND $c()) AS l \
                 ON true",
            ),
        ],
    ),
];

/// Windows: rows before and after, several frames, and keys of joins.
const SHIFTED: &[Shape] = &[
    (
        &["i", "i"],
        "WITH w AS (SELECT y.id, y.b, $i(y.) AS i, $j(y.) AS j, CAST(row_number() OVER \
         (PARTITION BY y.b ORDER BY y.id) AS BIGINT) AS cnt FROM $p AS y) SELECT x.id AS c0, \
         CASE WHEN z.cnt IS NULL THEN x.j ELSE z.i END AS c1 FROM w AS x LEFT JOIN w AS z ON z.b \
         IS NOT DISTINCT FROM x.b AND z.cnt = x.cnt - $n",
        &[
            (
                "lag with a default",
                "SELECT id AS c0, lag($i(), $n, $j()) OVER (PARTITION BY b ORDER BY id) AS c1 \
                 FROM $p AS y",
            ),
            (
                "lag is lead backwards",
                "SELECT id AS c0, lead($i(), $n, $j()) OVER (PARTITION BY b ORDER BY id DESC) \
                 AS c1 FROM $p AS y",
            ),
            (
                "lag of a negative offset",
                "SELECT id AS c0, lead($i(), -$n, $j()) OVER (PARTITION BY b ORDER BY id) AS \
                 c1 FROM $p AS y",
            ),
            (
                "lag of columns of a query",
                "SELECT id AS c0, lag(i, $n, j) OVER (PARTITION BY b ORDER BY id) AS c1 FROM \
                 (SELECT $j() AS j, b, $i() AS i, id FROM $p AS y) AS z",
            ),
        ],
    ),
    (
        &["i", "i"],
        "WITH w AS (SELECT y.id, y.b, $i(y.) AS i, $j(y.) AS j, CAST(row_number() OVER \
         (PARTITION BY y.b ORDER BY y.id) AS BIGINT) AS cnt FROM $p AS y) SELECT x.id AS c0, \
         CASE WHEN z.cnt IS NULL THEN x.j ELSE z.i END AS c1 FROM w AS x LEFT JOIN w AS z ON z.b \
         IS NOT DISTINCT FROM x.b AND z.cnt = x.cnt + $n",
        &[
            (
                "lead with a default",
                "SELECT id AS c0, lead($i(), $n, $j()) OVER (PARTITION BY b ORDER BY id) AS c1 \
                 FROM $p AS y",
            ),
            (
                "lead with a computed offset",
                "SELECT id AS c0, lead($i(), $n + 1 - 1, $j()) OVER (PARTITION BY b ORDER BY \
                 id) AS c1 FROM $p AS y",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT y.id AS c0, w.cnt AS c1, z.cnt AS c2 FROM $p AS y JOIN (SELECT u.id, count(u.v) \
         OVER (PARTITION BY u.k ORDER BY u.id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS cnt \
         FROM $p AS u) AS w ON w.id = y.id JOIN (SELECT x.id, max($i(x.)) OVER (PARTITION BY \
         x.k ORDER BY x.id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS cnt FROM $p AS \
         x) AS z ON z.id = y.id",
        &[
            (
                "windows of two frames",
                "SELECT id AS c0, count(v) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 1 \
                 PRECEDING AND CURRENT ROW) AS c1, max($i()) OVER (PARTITION BY k ORDER BY id \
                 ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS c2 FROM $p AS y",
            ),
            (
                "windows of two frames in two steps",
                "SELECT id AS c0, m AS c1, max($i()) OVER (PARTITION BY k ORDER BY id ROWS \
                 BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS c2 FROM (SELECT *, count(v) \
                 OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS \
                 m FROM $p AS y)",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT y.id AS c0, w.cnt AS c1, z.cnt AS c2 FROM $p AS y JOIN (SELECT u.id, count(*) OVER \
         (PARTITION BY u.k) AS cnt FROM $p AS u) AS w ON w.id = y.id JOIN (SELECT x.id, count(*) \
         OVER (PARTITION BY x.k, x.v) AS cnt FROM $p AS x) AS z ON z.id = y.id",
        &[
            (
                "windows of two partitions",
                "SELECT id AS c0, count(*) OVER (PARTITION BY k) AS c1, count(*) OVER \
                 (PARTITION BY v, k) AS c2 FROM $p AS y",
            ),
            (
                "equal windows twice",
                "SELECT id AS c0, cnt AS c1, m AS c2 FROM (SELECT id, count(*) OVER (PARTITION \
                 BY k) AS cnt, count(*) OVER (PARTITION BY k) AS o, count(*) OVER (PARTITION BY \
                 k, v) AS m FROM $p AS y) WHERE cnt = o",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT w.i AS c0, count(*) OVER (PARTITION BY w.h) AS c1, max(w.h) OVER (PARTITION BY \
         w.g) AS c2 FROM (SELECT y.id AS i, y.k + 1 AS h, z.k % 2 AS g FROM $p AS y JOIN $q AS \
         z ON y.k = z.k) AS w",
        &[
            (
                "windows by a join key",
                "SELECT y.id AS c0, count(*) OVER (PARTITION BY z.k + 1) AS c1, max(z.k + 1) \
                 OVER (PARTITION BY y.k % 2) AS c2 FROM $p AS y JOIN $q AS z ON y.k = z.k",
            ),
            (
                "windows by a merged key",
                "SELECT y.id AS c0, count(*) OVER (PARTITION BY k + 1) AS c1, max(k + 1) OVER \
                 (PARTITION BY k % 2) AS c2 FROM $p AS y JOIN $q AS z USING (k)",
            ),
            (
                "windows by both join keys",
                "SELECT y.id AS c0, count(*) OVER (PARTITION BY y.k + 1, z.k) AS c1, max(y.k + \
                 1) OVER (PARTITION BY z.k % 2, y.k % 2) AS c2 FROM $p AS y JOIN $q AS z ON \
                 y.k = z.k",
            ),
        ],
    ),
];

/// Lambdas that capture columns.
const CAPTURED: &[Shape] = &[
    (
        &["i", "li"],
        "SELECT y.id AS c0, y.li + $i(y.) AS c1 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "a lambda captures a column",
                "SELECT id AS c0, list_transform(li, lambda e: e + $i()) AS c1 FROM $p AS y \
                 WHERE $c()",
            ),
            (
                "a lambda captures a column of a query",
                "SELECT id AS c0, list_transform(li, e -> e + m) AS c1 FROM (SELECT li, $i() \
                 AS m, id FROM $p AS y WHERE $c())",
            ),
            (
                "a parameter has the name of a column",
                "SELECT id AS c0, list_transform(li, lambda k: k + m) AS c1 FROM (SELECT id, \
                 li, k, $i() AS m FROM $p AS y WHERE $c()) AS z",
            ),
        ],
    ),
    (
        &["i", "li"],
        "SELECT y.id AS c0, ragged_filter(y.li, y.li > $i(y.)) AS c1 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "a filter captures a column",
                "SELECT id AS c0, list_filter(li, lambda e: e > $i()) AS c1 FROM $p AS y WHERE \
                 $c()",
            ),
            (
                "a filter captures a column of a query",
                "SELECT id AS c0, list_filter(li, id -> id > m) AS c1 FROM (SELECT $i() AS m, \
                 id, li FROM $p AS y WHERE $c())",
            ),
        ],
    ),
    (
        &["i", "li"],
        "SELECT w.i AS c0, w.l + w.m AS c1 FROM (SELECT y.id AS i, y.li AS l, $i(z.) AS m FROM \
         $p AS y $h $q AS z ON y.k = z.k) AS w",
        &[
            (
                "a lambda above a join",
                "SELECT y.id AS c0, list_transform(y.li, lambda e: e + $i(z.)) AS c1 FROM $p \
                 AS y $h $q AS z ON y.k = z.k",
            ),
            (
                "a lambda captures both sides of a join",
                "SELECT y.id AS c0, list_transform(y.li, e -> e + m) AS c1 FROM $p AS y $h \
                 (SELECT k, $i() AS m FROM $q AS z) AS z USING (k)",
            ),
        ],
    ),
    (
        &["i", "li"],
        "SELECT y.id AS c0, CASE WHEN $c(y.) THEN y.li + $i(y.) ELSE ragged_filter(y.li, y.li \
         > $j(y.)) END AS c1 FROM $p AS y",
        &[(
            "lambdas below CASE",
            "SELECT id AS c0, CASE WHEN $c() THEN list_transform(li, lambda e: e + $i()) \
                 ELSE list_filter(li, lambda e: e > $j()) END AS c1 FROM $p AS y",
        )],
    ),
    (
        &["i", "li"],
        "SELECT y.id AS c0, CASE WHEN $c(y.) THEN y.li + 1 ELSE y.li - 1 END AS c1 FROM $p AS \
         y",
        &[
            (
                "CASE within a lambda",
                "SELECT id AS c0, list_transform(li, lambda e: CASE WHEN $c() THEN e + 1 ELSE \
                 e - 1 END) AS c1 FROM $p AS y",
            ),
            (
                "a parameter within CASE has the name of a column",
                "SELECT id AS c0, list_transform(li, lambda f: CASE WHEN $c() THEN f + 1 ELSE \
                 f - 1 END) AS c1 FROM $p AS y",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT y.id AS c0 FROM $p AS y WHERE y.id IN (SELECT x.id FROM $p AS x JOIN $q AS z \
         ON z.k = x.k WHERE ragged_any(z.li > x.v))",
        &[
            (
                "a lambda captures an outer column",
                "SELECT id AS c0 FROM $p AS y WHERE EXISTS (SELECT 1 FROM $q AS z WHERE z.k = \
                 y.k AND array_length(list_filter(z.li, lambda e: e > y.v)) > 0)",
            ),
            (
                "a lambda in LATERAL",
                "SELECT y.id AS c0 FROM $p AS y, LATERAL (SELECT count(*) AS cnt FROM $q AS z \
                 WHERE z.k = y.k AND array_length(list_filter(li, lambda v: v > y.v)) > 0) AS \
                 l WHERE l.cnt > 0",
            ),
        ],
    ),
];

/// Groups by keys that joins equate, and GROUPING SETS of expressions.
const EQUATED: &[Shape] = &[
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

/// DISTINCT with ORDER BY and LIMIT.
const TOPMOST: &[Shape] = &[
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
];

/// Queries of WITH that are read several times.
const SHARED: &[Shape] = &[
    (
        &["i", "i"],
        "SELECT y.id AS c0, z.cnt AS c1 FROM (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) \
         AS y JOIN (SELECT x.k AS h, count(*) AS cnt FROM (SELECT u.id, u.k, u.v FROM $p AS u \
         WHERE $c(u.)) AS x GROUP BY x.k) AS z ON z.h = y.k WHERE y.v IN (SELECT w.k FROM \
         (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) AS w)",
        &[
            (
                "WITH, read thrice",
                "WITH r AS (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) SELECT y.id AS \
                 c0, z.cnt AS c1 FROM r AS y JOIN (SELECT x.k AS h, count(*) AS cnt FROM r AS x \
                 GROUP BY x.k) AS z ON z.h = y.k WHERE y.v IN (SELECT w.k FROM r AS w)",
            ),
            (
                "WITH MATERIALIZED, read thrice",
                "WITH r AS MATERIALIZED (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) \
                 SELECT y.id AS c0, z.cnt AS c1 FROM r AS y JOIN (SELECT x.k AS h, count(*) AS cnt \
                 FROM r AS x GROUP BY x.k) AS z ON z.h = y.k WHERE y.v IN (SELECT w.k FROM r \
                 AS w)",
            ),
            (
                "WITH NOT MATERIALIZED, read thrice",
                "WITH r AS NOT MATERIALIZED (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) \
                 SELECT y.id AS c0, z.cnt AS c1 FROM r AS y JOIN (SELECT x.k AS h, count(*) AS cnt \
                 FROM r AS x GROUP BY x.k) AS z ON z.h = y.k WHERE y.v IN (SELECT w.k FROM r \
                 AS w)",
            ),
            (
                "WITH of the name of a table, read thrice",
                "WITH $t AS (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) SELECT y.id AS \
                 c0, z.cnt AS c1 FROM $t AS y JOIN (SELECT x.k AS h, count(*) AS cnt FROM $t AS x \
                 GROUP BY x.k) AS z ON z.h = y.k WHERE y.v IN (SELECT w.k FROM $t AS w)",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.k AS c0, y.v AS c1 FROM (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) AS \
         y UNION ALL SELECT max(z.v) AS c0, count(*) AS c1 FROM (SELECT u.id, u.k, u.v FROM $p \
         AS u WHERE $c(u.)) AS z",
        &[
            (
                "WITH, read twice",
                "WITH r AS (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) SELECT y.k AS c0, \
                 y.v AS c1 FROM r AS y UNION ALL SELECT max(z.v) AS c0, count(*) AS c1 FROM r \
                 AS z",
            ),
            (
                "WITH MATERIALIZED, read twice",
                "WITH r AS MATERIALIZED (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) \
                 SELECT y.k AS c0, y.v AS c1 FROM r AS y UNION ALL SELECT max(z.v) AS c0, \
                 count(*) AS c1 FROM r AS z",
            ),
            (
                "WITH NOT MATERIALIZED, read twice",
                "WITH r AS NOT MATERIALIZED (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) \
                 SELECT y.k AS c0, y.v AS c1 FROM r AS y UNION ALL SELECT max(z.v) AS c0, \
                 count(*) AS c1 FROM r AS z",
            ),
            (
                "WITH of the name of a table, read twice",
                "WITH $t AS (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) SELECT y.k AS \
                 c0, y.v AS c1 FROM $t AS y UNION ALL SELECT max(z.v) AS c0, count(*) AS c1 \
                 FROM $t AS z",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT y.id AS c0 FROM $p AS y WHERE y.k IN (SELECT z.v FROM $q AS z WHERE $c(z.))",
        &[
            (
                "WITH within a query hides the outer one",
                "WITH r AS (SELECT * FROM $p AS y) SELECT id AS c0 FROM r WHERE k IN (WITH r \
                 AS (SELECT * FROM $q AS z WHERE $c()) SELECT v FROM r)",
            ),
            (
                "WITH of the name of a table within a query",
                "SELECT y.id AS c0 FROM $p AS y WHERE y.k IN (WITH $t AS (SELECT * FROM $q AS \
                 z WHERE $c()) SELECT v FROM $t)",
            ),
            (
                "WITH in EXISTS",
                "WITH r AS (SELECT v, b, k FROM $q AS z WHERE $c()) SELECT id AS c0 FROM $p AS \
                 y WHERE EXISTS (SELECT 1 FROM r WHERE v = y.k) AND (SELECT count(*) FROM r) > \
                 0",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, z.v AS c1 FROM $p AS y JOIN $p AS z ON y.id = z.id WHERE $c(y.) \
         AND $d(z.)",
        &[
            (
                "WITH of WITH",
                "WITH r AS (SELECT * FROM $p AS y WHERE $c()), s AS (SELECT id, v FROM r WHERE \
                 $d()) SELECT r.id AS c0, s.v AS c1 FROM r JOIN s ON r.id = s.id",
            ),
            (
                "WITH of WITH merges a key",
                "WITH r AS MATERIALIZED (SELECT * FROM $p AS y WHERE $c()), s AS (SELECT id, v \
                 AS m FROM r WHERE $d()) SELECT id AS c0, m AS c1 FROM r JOIN s USING (id) \
                 WHERE id IN (SELECT id FROM s)",
            ),
        ],
    ),
];

/// EXCEPT and INTERSECT of casts.
const CAST_SETS: &[Shape] = &[
    (
        &["s"],
        "SELECT w.c0 FROM (SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.)) AS w \
         WHERE NOT EXISTS (SELECT 1 FROM (SELECT CAST(z.v AS VARCHAR) AS c0 FROM $q AS z WHERE \
         $d(z.)) AS x WHERE x.c0 IS NOT DISTINCT FROM w.c0) GROUP BY w.c0",
        &[
            (
                "EXCEPT of casts to texts",
                "SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.) EXCEPT SELECT \
                 CAST(z.v AS VARCHAR) AS c0 FROM $q AS z WHERE $d(z.)",
            ),
            (
                "EXCEPT of casts to texts in FROM",
                "SELECT c0 FROM (SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.) \
                 EXCEPT SELECT c0 FROM (SELECT CAST(z.v AS VARCHAR) AS c0 FROM $q AS z WHERE \
                 $d(z.)))",
            ),
        ],
    ),
    (
        &["s"],
        "SELECT w.c0 FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM \
         (SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.)) AS x) AS w WHERE EXISTS \
         (SELECT 1 FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM (SELECT \
         CAST(z.v AS VARCHAR) AS c0 FROM $q AS z WHERE $d(z.)) AS x) AS u WHERE u.c0 IS NOT \
         DISTINCT FROM w.c0 AND u.cnt = w.cnt)",
        &[
            (
                "INTERSECT ALL of casts to texts",
                "SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.) INTERSECT ALL \
                 SELECT CAST(z.v AS VARCHAR) AS c0 FROM $q AS z WHERE $d(z.)",
            ),
            (
                "INTERSECT ALL of casts to texts turned round",
                "SELECT CAST(z.v AS VARCHAR) AS c0 FROM $q AS z WHERE $d(z.) INTERSECT ALL \
                 SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.)",
            ),
        ],
    ),
    (
        &["s"],
        "SELECT w.c0 FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM \
         (SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.)) AS x) AS w WHERE NOT \
         EXISTS (SELECT 1 FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM \
         (SELECT CAST(z.v AS VARCHAR) AS c0 FROM $q AS z WHERE $d(z.)) AS x) AS u WHERE u.c0 \
         IS NOT DISTINCT FROM w.c0 AND u.cnt = w.cnt)",
        &[
            (
                "EXCEPT ALL of casts to texts",
                "SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.) EXCEPT ALL SELECT \
                 CAST(z.v AS VARCHAR) AS c0 FROM $q AS z WHERE $d(z.)",
            ),
            (
                "EXCEPT ALL of casts to texts of queries",
                "SELECT * FROM (SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.)) \
                 EXCEPT ALL SELECT * FROM (SELECT CAST(z.v AS VARCHAR) AS c0 FROM $q AS z \
                 WHERE $d(z.))",
            ),
        ],
    ),
    (
        &["s"],
        "SELECT w.c0 FROM (SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.)) AS w \
         WHERE EXISTS (SELECT 1 FROM (SELECT CAST(z.v AS VARCHAR) AS c0 FROM $q AS z WHERE \
         $d(z.)) AS x WHERE x.c0 IS NOT DISTINCT FROM w.c0) GROUP BY w.c0",
        &[(
            "INTERSECT of casts to texts",
            "SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.) INTERSECT SELECT \
                 CAST(z.v AS VARCHAR) AS c0 FROM $q AS z WHERE $d(z.)",
        )],
    ),
    (
        &["i"],
        "SELECT w.c0 FROM (SELECT y.k AS c0 FROM $p AS y WHERE $c(y.)) AS w WHERE NOT EXISTS \
         (SELECT 1 FROM (SELECT CAST(z.v AS SMALLINT) AS c0 FROM $q AS z WHERE $d(z.)) AS x \
         WHERE x.c0 IS NOT DISTINCT FROM w.c0) GROUP BY w.c0",
        &[
            (
                "EXCEPT of casts to numbers",
                "SELECT y.k AS c0 FROM $p AS y WHERE $c(y.) EXCEPT SELECT CAST(z.v AS \
                 SMALLINT) AS c0 FROM $q AS z WHERE $d(z.)",
            ),
            (
                "EXCEPT of casts to numbers in FROM",
                "SELECT c0 FROM (SELECT y.k AS c0 FROM $p AS y WHERE $c(y.) EXCEPT SELECT c0 \
                 FROM (SELECT CAST(z.v AS SMALLINT) AS c0 FROM $q AS z WHERE $d(z.)))",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT w.c0 FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM \
         (SELECT y.k AS c0 FROM $p AS y WHERE $c(y.)) AS x) AS w WHERE EXISTS (SELECT 1 FROM \
         (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM (SELECT CAST(z.v AS \
         SMALLINT) AS c0 FROM $q AS z WHERE $d(z.)) AS x) AS u WHERE u.c0 IS NOT DISTINCT FROM \
         w.c0 AND u.cnt = w.cnt)",
        &[
            (
                "INTERSECT ALL of casts to numbers",
                "SELECT y.k AS c0 FROM $p AS y WHERE $c(y.) INTERSECT ALL SELECT CAST(z.v AS \
                 SMALLINT) AS c0 FROM $q AS z WHERE $d(z.)",
            ),
            (
                "INTERSECT ALL of casts to numbers turned round",
                "SELECT CAST(z.v AS SMALLINT) AS c0 FROM $q AS z WHERE $d(z.) INTERSECT ALL \
                 SELECT y.k AS c0 FROM $p AS y WHERE $c(y.)",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT w.c0 FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM \
         (SELECT y.k AS c0 FROM $p AS y WHERE $c(y.)) AS x) AS w WHERE NOT EXISTS (SELECT 1 \
         FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM (SELECT CAST(z.v \
         AS SMALLINT) AS c0 FROM $q AS z WHERE $d(z.)) AS x) AS u WHERE u.c0 IS NOT DISTINCT \
         FROM w.c0 AND u.cnt = w.cnt)",
        &[
            (
                "EXCEPT ALL of casts to numbers",
                "SELECT y.k AS c0 FROM $p AS y WHERE $c(y.) EXCEPT ALL SELECT CAST(z.v AS \
                 SMALLINT) AS c0 FROM $q AS z WHERE $d(z.)",
            ),
            (
                "EXCEPT ALL of casts to numbers of queries",
                "SELECT * FROM (SELECT y.k AS c0 FROM $p AS y WHERE $c(y.)) EXCEPT ALL SELECT \
                 * FROM (SELECT CAST(z.v AS SMALLINT) AS c0 FROM $q AS z WHERE $d(z.))",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT w.c0 FROM (SELECT y.k AS c0 FROM $p AS y WHERE $c(y.)) AS w WHERE EXISTS \
         (SELECT 1 FROM (SELECT CAST(z.v AS SMALLINT) AS c0 FROM $q AS z WHERE $d(z.)) AS x \
         WHERE x.c0 IS NOT DISTINCT FROM w.c0) GROUP BY w.c0",
        &[(
            "INTERSECT of casts to numbers",
            "SELECT y.k AS c0 FROM $p AS y WHERE $c(y.) INTERSECT SELECT CAST(z.v AS \
                 SMALLINT) AS c0 FROM $q AS z WHERE $d(z.)",
        )],
    ),
    (
        &["i"],
        "SELECT w.c0 FROM (SELECT CAST(y.v AS INTEGER) AS c0 FROM $p AS y WHERE $c(y.)) AS w \
         WHERE NOT EXISTS (SELECT 1 FROM (SELECT z.k AS c0 FROM $q AS z WHERE $d(z.)) AS x \
         WHERE x.c0 IS NOT DISTINCT FROM w.c0) GROUP BY w.c0",
        &[
            (
                "EXCEPT of casts to integers",
                "SELECT CAST(y.v AS INTEGER) AS c0 FROM $p AS y WHERE $c(y.) EXCEPT SELECT z.k \
                 AS c0 FROM $q AS z WHERE $d(z.)",
            ),
            (
                "EXCEPT of casts to integers in FROM",
                "SELECT c0 FROM (SELECT CAST(y.v AS INTEGER) AS c0 FROM $p AS y WHERE $c(y.) \
                 EXCEPT SELECT c0 FROM (SELECT z.k AS c0 FROM $q AS z WHERE $d(z.)))",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT w.c0 FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM \
         (SELECT CAST(y.v AS INTEGER) AS c0 FROM $p AS y WHERE $c(y.)) AS x) AS w WHERE EXISTS \
         (SELECT 1 FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM (SELECT \
         z.k AS c0 FROM $q AS z WHERE $d(z.)) AS x) AS u WHERE u.c0 IS NOT DISTINCT FROM w.c0 \
         AND u.cnt = w.cnt)",
        &[
            (
                "INTERSECT ALL of casts to integers",
                "SELECT CAST(y.v AS INTEGER) AS c0 FROM $p AS y WHERE $c(y.) INTERSECT ALL \
                 SELECT z.k AS c0 FROM $q AS z WHERE $d(z.)",
            ),
            (
                "INTERSECT ALL of casts to integers turned round",
                "SELECT z.k AS c0 FROM $q AS z WHERE $d(z.) INTERSECT ALL SELECT CAST(y.v AS \
                 INTEGER) AS c0 FROM $p AS y WHERE $c(y.)",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT w.c0 FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM \
         (SELECT CAST(y.v AS INTEGER) AS c0 FROM $p AS y WHERE $c(y.)) AS x) AS w WHERE NOT \
         EXISTS (SELECT 1 FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM \
         (SELECT z.k AS c0 FROM $q AS z WHERE $d(z.)) AS x) AS u WHERE u.c0 IS NOT DISTINCT \
         FROM w.c0 AND u.cnt = w.cnt)",
        &[
            (
                "EXCEPT ALL of casts to integers",
                "SELECT CAST(y.v AS INTEGER) AS c0 FROM $p AS y WHERE $c(y.) EXCEPT ALL SELECT \
                 z.k AS c0 FROM $q AS z WHERE $d(z.)",
            ),
            (
                "EXCEPT ALL of casts to integers of queries",
                "SELECT * FROM (SELECT CAST(y.v AS INTEGER) AS c0 FROM $p AS y WHERE $c(y.)) \
                 EXCEPT ALL SELECT * FROM (SELECT z.k AS c0 FROM $q AS z WHERE $d(z.))",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT w.c0 FROM (SELECT CAST(y.v AS INTEGER) AS c0 FROM $p AS y WHERE $c(y.)) AS w \
         WHERE EXISTS (SELECT 1 FROM (SELECT z.k AS c0 FROM $q AS z WHERE $d(z.)) AS x WHERE \
         x.c0 IS NOT DISTINCT FROM w.c0) GROUP BY w.c0",
        &[(
            "INTERSECT of casts to integers",
            "SELECT CAST(y.v AS INTEGER) AS c0 FROM $p AS y WHERE $c(y.) INTERSECT SELECT \
                 z.k AS c0 FROM $q AS z WHERE $d(z.)",
        )],
    ),
];

/// Conditions with a query about a row of the outer relation `$o`.
const OUTER_TESTS: &[(&str, Ways)] = &[
    (
        "EXISTS (SELECT 1 FROM $q AS z JOIN $p AS x ON z.k = x.k WHERE z.k = $o.v AND $c(z.))",
        &[
            (
                "USING in EXISTS",
                "EXISTS (SELECT 1 FROM $q AS z JOIN $p AS x USING (k) WHERE k = $o.v AND \
                 $c(z.))",
            ),
            (
                "NATURAL in EXISTS",
                "EXISTS (SELECT 1 FROM (SELECT k, v AS m FROM $q AS z WHERE $c()) AS z NATURAL \
                 JOIN (SELECT k, id AS cnt FROM $p AS x) AS x WHERE k = $o.v)",
            ),
            ("USING in IN", "$o.v IN (SELECT k FROM $q AS z JOIN $p AS x USING (k) WHERE $c(z.))"),
            (
                "USING in a count",
                "(SELECT count(*) FROM $q AS z JOIN $p AS x USING (k) WHERE k = $o.v AND \
                 $c(z.)) > 0",
            ),
        ],
    ),
    (
        "$o.v IN (SELECT coalesce(z.k, x.k) FROM $q AS z $h $p AS x ON z.k = x.k)",
        &[
            (
                "EXISTS of a merged key",
                "EXISTS (SELECT 1 FROM $q AS z $h $p AS x USING (k) WHERE k = $o.v)",
            ),
            (
                "EXISTS of a natural key",
                "EXISTS (SELECT 1 FROM (SELECT k, v AS m FROM $q AS z) AS z NATURAL $h (SELECT \
                 k, id AS cnt FROM $p AS x) AS x WHERE k = $o.v)",
            ),
            ("a merged key of IN", "$o.v IN (SELECT k FROM $q AS z $h $p AS x USING (k))"),
            (
                "a natural key of IN",
                "$o.v IN (SELECT k FROM (SELECT k, v AS m FROM $q AS z) AS z NATURAL $h \
                 (SELECT k, id AS cnt FROM $p AS x) AS x)",
            ),
        ],
    ),
    (
        "$o.k NOT IN (SELECT coalesce(z.v, x.v) FROM $q AS z $h $p AS x ON z.v = x.v)",
        &[("a merged key of NOT IN", "$o.k NOT IN (SELECT v FROM $q AS z $h $p AS x USING (v))")],
    ),
    (
        "(SELECT count(*) FROM $q AS z WHERE z.k = $o.k AND $c(z.)) > 1",
        &[
            (
                "a count over a query without a name",
                "(SELECT count(*) FROM (SELECT v, b, k FROM $q AS z) WHERE k = $o.k AND $c()) \
                 > 1",
            ),
            (
                "a count over WITH",
                "(WITH r AS (SELECT * FROM $q AS z WHERE $c()) SELECT count(*) FROM r WHERE k \
                 = $o.k) > 1",
            ),
            (
                "a count over a branch without rows",
                "(SELECT count(*) FROM (SELECT v, b, k FROM $q AS z UNION ALL SELECT k, b, v \
                 FROM $p AS x WHERE $e) AS w WHERE k = $o.k AND $c()) > 1",
            ),
        ],
    ),
    (
        "EXISTS (SELECT 1 FROM $q AS z WHERE z.k = $o.k AND $c(z.))",
        &[
            (
                "EXISTS over a branch without rows",
                "EXISTS (SELECT 1 FROM (SELECT v AS k, k AS v FROM $p AS x WHERE $e UNION ALL \
                 SELECT k, v FROM $q AS z WHERE $c()) AS w WHERE k = $o.k)",
            ),
            (
                "EXISTS over WITH of the name of a table",
                "EXISTS (WITH $t AS (SELECT v, k, b FROM $q AS z WHERE $c()) SELECT 1 FROM $t \
                 WHERE k = $o.k)",
            ),
            (
                "IN of groups without a name",
                "$o.k IN (SELECT k FROM (SELECT k, b, v FROM $q AS z WHERE $c()) GROUP BY k)",
            ),
        ],
    ),
];

impl Queries {
    /// Returns a query of one subject of [`SHAPES`].
    pub(super) fn make_shape(&mut self, subject: usize) -> (Node, Columns) {
        let (types, first, ways) = self.pick(SHAPES[subject]);
        let columns: Columns =
            types.iter().enumerate().map(|(i, ty)| (format!("c{i}"), *ty)).collect();
        let node = self.make_spellings(query_role(&columns), first, ways, "y");
        (node, columns)
    }

    /// Returns a condition with a query about a row of a relation, which has the columns of tables.
    pub(super) fn make_outer_test(&mut self, outer: &str) -> Node {
        let (first, ways) = self.pick(OUTER_TESTS);
        self.make_spellings(Role::Value("b"), first, ways, outer)
    }

    /// Fills the same parts into all statements.
    fn make_spellings(&mut self, role: Role, first: &str, ways: Ways, outer: &str) -> Node {
        let used =
            |name: &str| first.contains(name) || ways.iter().any(|(_, text)| text.contains(name));
        let mut p = Parts::default();
        let (left, table) = self.make_side();
        let (right, _) = self.make_side();
        let mut drawn = vec![("$t".to_string(), table), ("$o".to_string(), outer.to_string())];
        for (name, side) in [("$p", left), ("$q", right)] {
            if used(name) {
                drawn.push((name.to_string(), p.put(side)));
            }
        }
        if used("$x") {
            let test = self.make_outer_test(outer);
            drawn.push(("$x".to_string(), p.put(test)));
        }
        for (name, of) in
            [("$i", INTEGERS), ("$j", INTEGERS), ("$c", CONDITIONS), ("$d", CONDITIONS)]
        {
            let text = self.pick(of);
            drawn.extend(QUALIFIERS.map(|q| (format!("{name}({q})"), text.replace('§', q))));
        }
        for (name, of) in [("$e", NEVER), ("$h", KINDS), ("$n", NUMBERS)] {
            drawn.push((name.to_string(), self.pick(of).to_string()));
        }
        let fill = |text: &str| {
            drawn.iter().fold(text.to_string(), |out, (name, part)| out.replace(name, part))
        };
        let mut node = p.node(role, fill(first));
        for &(law, text) in ways {
            node = node.or(law, fill(text));
        }
        node
    }

    /// Returns a table or a query with its main columns, and the name of the table.
    fn make_side(&mut self) -> (Node, String) {
        let at = self.below(self.tables.len());
        let (table, columns) = self.tables[at].clone();
        if self.chance(40) {
            return (Node::text(Role::Fixed, table.clone()), table);
        }
        let r = self.name("r");
        let scope: Vec<Col> =
            columns.into_iter().map(|(n, ty)| Col { text: format!("{r}.{n}"), ty }).collect();
        let mut p = Parts::default();
        let [k, v] = ["i", "i"].map(|ty| {
            let made = self.value(ty, &scope, 1);
            p.put(made)
        });
        let made = self.condition(&scope, false);
        let w = p.put(made);
        let text = format!(
            "(SELECT {r}.id, {k} AS k, {v} AS v, {r}.f, {r}.b, {r}.li \
             FROM {table} AS {r} WHERE {w})"
        );
        (p.node(Role::Fixed, text), table)
    }
}
