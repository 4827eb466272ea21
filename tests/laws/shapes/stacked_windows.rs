//! Windows over windows, with LIMIT and OFFSET. A LIMIT must not remove rows that the frame of any
//! of the windows reads.

use super::Shape;

pub(super) const STACKED: &[Shape] = &[
    (
        &["i", "i", "i"],
        "SELECT x.c0, x.c1, x.c2 FROM (SELECT w.id AS c0, w.i AS c1, sum(w.i) OVER (ORDER BY w.id \
         $f) AS c2, row_number() OVER (ORDER BY w.id) AS cnt FROM (SELECT y.id, sum($i(y.)) OVER \
         (ORDER BY y.id $g) AS i FROM $p AS y WHERE $c(y.)) AS w) AS x WHERE x.cnt <= $n",
        &[
            (
                "LIMIT above a window over a window",
                "SELECT w.id AS c0, w.i AS c1, sum(w.i) OVER (ORDER BY w.id $f) AS c2 FROM \
                 (SELECT y.id, sum($i(y.)) OVER (ORDER BY y.id $g) AS i FROM $p AS y WHERE \
                 $c(y.)) AS w ORDER BY w.id LIMIT $n",
            ),
            (
                "LIMIT above a query of a window over a window",
                "SELECT c0, c1, c2 FROM (SELECT *, sum(c1) OVER (ORDER BY c0 $f) AS c2 FROM \
                 (SELECT y.id AS c0, sum($i(y.)) OVER (ORDER BY y.id $g) AS c1 FROM $p AS y \
                 WHERE $c(y.)) AS w) AS x ORDER BY c0 LIMIT $n",
            ),
            (
                "QUALIFY of a window over a window",
                "SELECT w.id AS c0, w.i AS c1, sum(w.i) OVER (ORDER BY w.id $f) AS c2 FROM \
                 (SELECT y.id, sum($i(y.)) OVER (ORDER BY y.id $g) AS i FROM $p AS y WHERE \
                 $c(y.)) AS w QUALIFY row_number() OVER (ORDER BY w.id) <= $n",
            ),
            (
                "LIMIT above WITH of a window",
                "WITH w AS (SELECT y.id, sum($i(y.)) OVER (ORDER BY y.id $g) AS i FROM $p AS y \
                 WHERE $c(y.)) SELECT w.id AS c0, w.i AS c1, sum(w.i) OVER (ORDER BY w.id $f) \
                 AS c2 FROM w ORDER BY c0 LIMIT $n",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT x.c0, x.c1 FROM (SELECT w.id AS c0, sum(w.i) OVER (PARTITION BY w.k ORDER BY \
         w.id DESC $f) AS c1, row_number() OVER (ORDER BY w.k, w.id DESC) AS cnt FROM (SELECT \
         y.id, y.k, sum($i(y.)) OVER (PARTITION BY y.k ORDER BY y.id DESC $g) AS i FROM $p AS y) \
         AS w) AS x WHERE x.cnt > 1 AND x.cnt <= 1 + $n",
        &[
            (
                "OFFSET above a window over a window",
                "SELECT w.id AS c0, sum(w.i) OVER (PARTITION BY w.k ORDER BY w.id DESC $f) AS \
                 c1 FROM (SELECT y.id, y.k, sum($i(y.)) OVER (PARTITION BY y.k ORDER BY y.id \
                 DESC $g) AS i FROM $p AS y) AS w ORDER BY w.k, w.id DESC LIMIT $n OFFSET 1",
            ),
            (
                "OFFSET above windows in two steps",
                "SELECT c0, c1 FROM (SELECT w.id AS c0, w.k, sum(w.i) OVER (PARTITION BY w.k \
                 ORDER BY w.id DESC $f) AS c1 FROM (SELECT y.id, y.k, sum($i(y.)) OVER \
                 (PARTITION BY y.k ORDER BY y.id DESC $g) AS i FROM $p AS y) AS w ORDER BY w.k, \
                 w.id DESC LIMIT 1 + $n) AS x ORDER BY x.k, c0 DESC OFFSET 1",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT x.c0, x.c1, x.c2 FROM (SELECT w.id AS c0, lead(w.i, $n) OVER (ORDER BY w.id) AS \
         c1, sum(w.j) OVER (ORDER BY w.id $g) AS c2, row_number() OVER (ORDER BY w.id) AS cnt \
         FROM (SELECT z.id, z.i, sum(z.j) OVER (ORDER BY z.id $f) AS j FROM (SELECT y.id, $j(y.) \
         AS j, lead($i(y.)) OVER (ORDER BY y.id) AS i FROM $p AS y) AS z) AS w) AS x WHERE \
         x.cnt <= 2",
        &[
            (
                "LIMIT above three windows",
                "SELECT w.id AS c0, lead(w.i, $n) OVER (ORDER BY w.id) AS c1, sum(w.j) OVER \
                 (ORDER BY w.id $g) AS c2 FROM (SELECT z.id, z.i, sum(z.j) OVER (ORDER BY z.id \
                 $f) AS j FROM (SELECT y.id, $j(y.) AS j, lead($i(y.)) OVER (ORDER BY y.id) AS i \
                 FROM $p AS y) AS z) AS w ORDER BY c0 LIMIT 2",
            ),
            (
                "LIMIT above three windows and QUALIFY",
                "SELECT w.id AS c0, lead(w.i, $n) OVER (ORDER BY w.id) AS c1, sum(w.j) OVER \
                 (ORDER BY w.id $g) AS c2 FROM (SELECT z.id, z.i, sum(z.j) OVER (ORDER BY z.id \
                 $f) AS j FROM (SELECT y.id, $j(y.) AS j, lead($i(y.)) OVER (ORDER BY y.id) AS i \
                 FROM $p AS y) AS z) AS w QUALIFY count(*) OVER (ORDER BY w.id $g) >= 0 ORDER BY \
                 c0 LIMIT 2",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT x.c0, x.c1 FROM (SELECT w.id AS c0, sum(w.i) OVER (ORDER BY w.v DESC NULLS LAST, \
         w.id $f) AS c1, row_number() OVER (ORDER BY w.v DESC NULLS LAST, w.id) AS cnt FROM \
         (SELECT y.id, y.v, sum($i(y.)) OVER (PARTITION BY y.b ORDER BY y.id $g) AS i FROM $p \
         AS y) AS w) AS x WHERE x.cnt <= $n",
        &[(
            "LIMIT above windows of two orders",
            "SELECT w.id AS c0, sum(w.i) OVER (ORDER BY w.v DESC NULLS LAST, w.id $f) AS c1 FROM \
                 (SELECT y.id, y.v, sum($i(y.)) OVER (PARTITION BY y.b ORDER BY y.id $g) AS i \
                 FROM $p AS y) AS w ORDER BY w.v DESC NULLS LAST, w.id LIMIT $n",
        )],
    ),
];
