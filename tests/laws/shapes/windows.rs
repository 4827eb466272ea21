//! Window functions of rows before and after, with several frames, and over keys of joins.

use super::Shape;

pub(super) const SHIFTED: &[Shape] = &[
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
