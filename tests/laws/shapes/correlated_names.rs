//! LATERAL queries and subqueries whose columns have the same names as columns of the outer row.

use super::Shape;

pub(super) const CORRELATED: &[Shape] = &[
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
