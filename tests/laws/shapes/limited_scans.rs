//! LIMIT and OFFSET of a scan, below sorts, joins, subqueries, groups and windows.
//!
//! The reference reads tables in memory; a cut reads files of several row groups.

use super::Shape;

pub(super) const LIMITED_SCANS: &[Shape] = &[
    (
        &["i", "i"],
        "SELECT w.id AS c0, w.k AS c1 FROM (SELECT y.id, y.k FROM $t AS y WHERE $c(y.) LIMIT 7) \
         AS w ORDER BY w.k DESC NULLS LAST, w.id LIMIT $n",
        &[
            (
                "a LIMIT of a scan below ranks",
                "SELECT x.id AS c0, x.k AS c1 FROM (SELECT w.id, w.k, row_number() OVER (ORDER \
                 BY w.k DESC NULLS LAST, w.id) AS m FROM (SELECT y.id, y.k FROM $t AS y WHERE \
                 $c(y.) LIMIT 7) AS w) AS x WHERE x.m <= $n",
            ),
            (
                "a LIMIT of a scan in WITH",
                "WITH w AS (SELECT y.id, y.k FROM $t AS y WHERE $c(y.) LIMIT 7) SELECT id AS \
                 c0, k AS c1 FROM w ORDER BY c1 DESC NULLS LAST, c0 LIMIT $n",
            ),
            (
                "a LIMIT of a scan of all columns",
                "SELECT id AS c0, k AS c1 FROM (SELECT * FROM $t AS y WHERE $c(y.) LIMIT 7) AS \
                 w ORDER BY k DESC NULLS LAST, id LIMIT $n",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, z.id AS c1 FROM $p AS y JOIN (SELECT u.id, u.k FROM $t AS u LIMIT 8 \
         OFFSET $n) AS z ON y.k = z.k",
        &[
            (
                "a join with a LIMIT of a scan in WHERE",
                "SELECT y.id AS c0, z.id AS c1 FROM $p AS y, (SELECT u.id, u.k FROM $t AS u \
                 LIMIT 8 OFFSET $n) AS z WHERE y.k = z.k",
            ),
            (
                "a join with a LIMIT of a scan turned round",
                "SELECT y.id AS c0, z.id AS c1 FROM (SELECT u.id, u.k FROM $t AS u LIMIT 8 \
                 OFFSET $n) AS z JOIN $p AS y ON z.k = y.k",
            ),
            (
                "a join with a LIMIT of a scan by USING",
                "SELECT y.id AS c0, z.id AS c1 FROM $p AS y JOIN (SELECT u.id, u.k FROM $t AS \
                 u LIMIT 8 OFFSET $n) AS z USING (k)",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT w.id AS c0, w.v AS c1 FROM (SELECT y.id, y.k, y.v FROM $t AS y LIMIT 9 OFFSET \
         $n) AS w WHERE w.k IN (SELECT z.k FROM $q AS z WHERE $d(z.))",
        &[
            (
                "EXISTS of a LIMIT of a scan",
                "SELECT w.id AS c0, w.v AS c1 FROM (SELECT y.id, y.k, y.v FROM $t AS y LIMIT 9 \
                 OFFSET $n) AS w WHERE EXISTS (SELECT 1 FROM $q AS z WHERE z.k = w.k AND \
                 $d(z.))",
            ),
            (
                "a join of a LIMIT of a scan with keys",
                "SELECT w.id AS c0, w.v AS c1 FROM (SELECT y.id, y.k, y.v FROM $t AS y LIMIT 9 \
                 OFFSET $n) AS w JOIN (SELECT DISTINCT z.k FROM $q AS z WHERE $d(z.)) AS z ON \
                 w.k = z.k",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, y.v AS c1 FROM $p AS y WHERE y.k IN (SELECT z.k FROM (SELECT u.k \
         FROM $t AS u WHERE $d(u.) LIMIT 4 OFFSET $n) AS z)",
        &[
            (
                "IN of a LIMIT is EXISTS",
                "SELECT y.id AS c0, y.v AS c1 FROM $p AS y WHERE EXISTS (SELECT 1 FROM (SELECT \
                 u.k FROM $t AS u WHERE $d(u.) LIMIT 4 OFFSET $n) AS z WHERE z.k = y.k)",
            ),
            (
                "IN of a LIMIT without a query around it",
                "SELECT y.id AS c0, y.v AS c1 FROM $p AS y WHERE y.k IN (SELECT u.k FROM $t AS \
                 u WHERE $d(u.) LIMIT 4 OFFSET $n)",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT w.k AS c0, max(w.id) AS c1, count(w.v) AS c2 FROM (SELECT y.id, y.k, y.v FROM \
         $t AS y WHERE $c(y.) LIMIT 8) AS w GROUP BY w.k",
        &[(
            "windows over a LIMIT of a scan",
            "SELECT DISTINCT w.k AS c0, first_value(w.id) OVER (PARTITION BY w.k ORDER BY w.id \
             DESC) AS c1, count(w.v) OVER (PARTITION BY w.k) AS c2 FROM (SELECT y.id, y.k, y.v \
             FROM $t AS y WHERE $c(y.) LIMIT 8) AS w",
        )],
    ),
    (
        &["i", "li"],
        "SELECT count(*) AS c0, list(w.id ORDER BY w.id DESC) AS c1 FROM (SELECT y.id FROM $t \
         AS y WHERE $c(y.) LIMIT 6) AS w",
        &[(
            "a list of sorted rows of a LIMIT",
            "SELECT count(*) AS c0, list(x.id ORDER BY x.m) AS c1 FROM (SELECT w.id, \
             row_number() OVER (ORDER BY w.id DESC) AS m FROM (SELECT y.id FROM $t AS y WHERE \
             $c(y.) LIMIT 6) AS w) AS x",
        )],
    ),
    (
        &["i"],
        "SELECT x.id AS c0 FROM ((SELECT y.id FROM $t AS y WHERE $c(y.) LIMIT 6) UNION ALL \
         (SELECT y.id FROM $t AS y WHERE $d(y.) LIMIT 3)) AS x ORDER BY x.id DESC LIMIT $n",
        &[(
            "a union of limits turned round",
            "SELECT x.id AS c0 FROM ((SELECT y.id FROM $t AS y WHERE $d(y.) LIMIT 3) UNION ALL \
             (SELECT y.id FROM $t AS y WHERE $c(y.) LIMIT 6)) AS x ORDER BY x.id DESC LIMIT $n",
        )],
    ),
    (
        &["i", "i"],
        "SELECT w.id AS c0, z.v AS c1 FROM (SELECT y.id, y.k FROM $t AS y ORDER BY y.v DESC \
         NULLS LAST, y.id LIMIT 9) AS w $h $q AS z ON w.k = z.k",
        &[(
            "a join of the first ranks",
            "SELECT w.id AS c0, z.v AS c1 FROM (SELECT x.id, x.k FROM (SELECT y.id, y.k, \
             row_number() OVER (ORDER BY y.v DESC NULLS LAST, y.id) AS m FROM $t AS y) AS x \
             WHERE x.m <= 9) AS w $h $q AS z ON w.k = z.k",
        )],
    ),
];
