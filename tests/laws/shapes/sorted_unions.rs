//! LIMIT, OFFSET and row numbers above UNION ALL of sorted queries, which return the rows of the
//! first query first.

use super::Shape;

pub(super) const SORTED_UNIONS: &[Shape] = &[
    (
        &["i", "i"],
        "SELECT w.id AS c0, w.k AS c1 FROM (SELECT 1 AS part, y.id, y.k, row_number() OVER (ORDER \
         BY y.v NULLS FIRST, y.id) AS m FROM $p AS y WHERE $c(y.) UNION ALL SELECT 2 AS part, \
         y.id, y.k, row_number() OVER (ORDER BY y.v NULLS FIRST, y.id) AS m FROM $q AS y WHERE \
         $d(y.)) AS w ORDER BY w.part, w.m LIMIT $n",
        &[
            (
                "LIMIT above a union of sorted queries",
                "SELECT w.id AS c0, w.k AS c1 FROM ((SELECT y.id, y.k, y.v FROM $p AS y WHERE \
                 $c(y.) ORDER BY y.v NULLS FIRST, y.id) UNION ALL (SELECT y.id, y.k, y.v FROM $q \
                 AS y WHERE $d(y.) ORDER BY y.v NULLS FIRST, y.id)) AS w LIMIT $n",
            ),
            (
                "row numbers above a union of sorted queries",
                "SELECT w.id AS c0, w.k AS c1 FROM (SELECT x.id, x.k, row_number() OVER () AS m \
                 FROM ((SELECT y.id, y.k, y.v FROM $p AS y WHERE $c(y.) ORDER BY y.v NULLS FIRST, \
                 y.id) UNION ALL (SELECT y.id, y.k, y.v FROM $q AS y WHERE $d(y.) ORDER BY y.v \
                 NULLS FIRST, y.id)) AS x) AS w WHERE w.m <= $n",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT count(x.id) AS c0, sum(x.id) AS c1 FROM (SELECT w.id FROM (SELECT 1 AS part, y.id, \
         row_number() OVER (ORDER BY y.id DESC) AS m FROM $p AS y WHERE $c(y.) UNION ALL SELECT 2 \
         AS part, y.id, row_number() OVER (ORDER BY y.id DESC) AS m FROM $q AS y UNION ALL SELECT \
         3 AS part, y.id, row_number() OVER (ORDER BY y.id DESC) AS m FROM $p AS y) AS w ORDER BY \
         w.part, w.m LIMIT 9 OFFSET $n) AS x",
        &[(
            "LIMIT and OFFSET above a union of three sorted queries",
            "WITH w AS ((SELECT y.id FROM $p AS y WHERE $c(y.) ORDER BY y.id DESC) UNION ALL \
             (SELECT y.id FROM $q AS y ORDER BY y.id DESC) UNION ALL (SELECT y.id FROM $p AS y \
             ORDER BY y.id DESC)) SELECT count(x.id) AS c0, sum(x.id) AS c1 FROM (SELECT id FROM \
             w LIMIT 9 OFFSET $n) AS x",
        )],
    ),
];
