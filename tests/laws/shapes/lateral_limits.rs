//! LATERAL queries with LIMIT, GROUP BY, HAVING, UNION ALL and windows, compared with joins of
//! ranked rows.

use super::Shape;

pub(super) const LATERAL_LIMITS: &[Shape] = &[
    (
        &["i", "i"],
        "SELECT y.id AS c0, w.i AS c1 FROM $p AS y JOIN (SELECT z.k, z.v, z.id AS i, row_number() \
         OVER (PARTITION BY z.k ORDER BY z.v DESC NULLS LAST, z.id) AS m FROM $q AS z WHERE \
         $c(z.)) AS w ON w.k = y.k AND w.m <= $n",
        &[
            (
                "LATERAL of the first rows",
                "SELECT y.id AS c0, l.id AS c1 FROM $p AS y, LATERAL (SELECT z.id FROM $q AS z \
                 WHERE z.k = y.k AND $c(z.) ORDER BY z.v DESC NULLS LAST, z.id LIMIT $n) AS l",
            ),
            (
                "LATERAL of the first rows of a query",
                "SELECT y.id AS c0, l.i AS c1 FROM $p AS y JOIN LATERAL (SELECT x.id AS i FROM \
                 (SELECT * FROM $q AS z WHERE $c()) AS x WHERE x.k = y.k ORDER BY x.v DESC NULLS \
                 LAST, x.id LIMIT $n) AS l ON true",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, w.i AS c1 FROM $p AS y LEFT JOIN (SELECT z.k, z.v, z.id AS i, \
         row_number() OVER (PARTITION BY z.k ORDER BY z.v DESC NULLS LAST, z.id) AS m FROM $q AS z \
         WHERE $c(z.)) AS w ON w.k = y.k AND w.m = 1 + $n",
        &[
            (
                "LEFT JOIN LATERAL with OFFSET",
                "SELECT y.id AS c0, l.id AS c1 FROM $p AS y LEFT JOIN LATERAL (SELECT z.id FROM $q \
                 AS z WHERE z.k = y.k AND $c(z.) ORDER BY z.v DESC NULLS LAST, z.id LIMIT 1 OFFSET \
                 $n) AS l ON true",
            ),
            (
                "a query of SELECT with OFFSET",
                "SELECT y.id AS c0, (SELECT z.id FROM $q AS z WHERE z.k = y.k AND $c(z.) ORDER BY \
                 z.v DESC NULLS LAST, z.id LIMIT 1 OFFSET $n) AS c1 FROM $p AS y",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT y.id AS c0, count(w.i) AS c1, max(w.v) AS c2 FROM $p AS y LEFT JOIN (SELECT z.k, \
         z.v, z.id AS i, row_number() OVER (PARTITION BY z.k ORDER BY z.v DESC NULLS LAST, z.id) \
         AS m FROM $q AS z WHERE $c(z.)) AS w ON w.k = y.k AND w.m <= $n GROUP BY y.id",
        &[
            (
                "LATERAL aggregates of the first rows",
                "SELECT y.id AS c0, l.a AS c1, l.o AS c2 FROM $p AS y, LATERAL (SELECT count(*) AS \
                 a, max(x.v) AS o FROM (SELECT z.v FROM $q AS z WHERE z.k = y.k AND $c(z.) ORDER \
                 BY z.v DESC NULLS LAST, z.id LIMIT $n) AS x) AS l",
            ),
            (
                "LEFT JOIN LATERAL aggregates of the first rows",
                "SELECT y.id AS c0, l.a AS c1, l.o AS c2 FROM $p AS y LEFT JOIN LATERAL (SELECT \
                 count(*) AS a, max(v) AS o FROM (SELECT * FROM $q AS z WHERE k = y.k AND $c() \
                 ORDER BY z.v DESC NULLS LAST, z.id LIMIT $n) AS x) AS l ON true",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, min(z.id) AS c1 FROM $p AS y JOIN $q AS z ON z.k > y.k AND $c(z.) \
         GROUP BY y.id",
        &[
            (
                "LATERAL of the first row by an inequality",
                "SELECT y.id AS c0, l.id AS c1 FROM $p AS y, LATERAL (SELECT z.id FROM $q AS z \
                 WHERE z.k > y.k AND $c(z.) ORDER BY z.id LIMIT 1) AS l",
            ),
            (
                "LATERAL with HAVING",
                "SELECT y.id AS c0, l.m AS c1 FROM $p AS y, LATERAL (SELECT min(z.id) AS m FROM $q \
                 AS z WHERE z.k > y.k AND $c(z.) HAVING count(*) > 0) AS l",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT y.id AS c0, z.v AS c1, count(*) AS c2 FROM $p AS y JOIN $q AS z ON z.k = y.k AND \
         $c(z.) GROUP BY y.id, z.v",
        &[
            (
                "LATERAL of groups",
                "SELECT y.id AS c0, l.v AS c1, l.m AS c2 FROM $p AS y, LATERAL (SELECT z.v, \
                 count(*) AS m FROM $q AS z WHERE z.k = y.k AND $c(z.) GROUP BY z.v) AS l",
            ),
            (
                "LATERAL of distinct windows",
                "SELECT y.id AS c0, l.v AS c1, l.m AS c2 FROM $p AS y, LATERAL (SELECT DISTINCT \
                 z.v, count(*) OVER (PARTITION BY z.v) AS m FROM $q AS z WHERE z.k = y.k AND \
                 $c(z.)) AS l",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, z.v AS c1 FROM $p AS y JOIN $q AS z ON z.k = y.k AND $c(z.) UNION ALL \
         SELECT y.id AS c0, x.id AS c1 FROM $p AS y JOIN $p AS x ON x.v = y.v",
        &[(
            "LATERAL of a UNION ALL",
            "SELECT y.id AS c0, l.a AS c1 FROM $p AS y, LATERAL (SELECT z.v AS a FROM $q AS z \
             WHERE z.k = y.k AND $c(z.) UNION ALL SELECT x.id AS a FROM $p AS x WHERE x.v = y.v) \
             AS l",
        )],
    ),
    (
        &["i", "i", "i"],
        "SELECT y.id AS c0, w.i AS c1, w.m AS c2 FROM $p AS y LEFT JOIN (SELECT z.k, z.id AS i, \
         row_number() OVER (PARTITION BY z.k ORDER BY z.id) AS m FROM $q AS z WHERE $c(z.)) AS w \
         ON w.k = y.k",
        &[(
            "LATERAL of a window",
            "SELECT y.id AS c0, l.i AS c1, l.m AS c2 FROM $p AS y LEFT JOIN LATERAL (SELECT z.id \
             AS i, row_number() OVER (ORDER BY z.id) AS m FROM $q AS z WHERE z.k = y.k AND $c(z.)) \
             AS l ON true",
        )],
    ),
];
