//! Joins of joins, with and without parentheses.

use super::Shape;

pub(super) const NESTED_JOINS: &[Shape] = &[
    (
        &["i", "i", "i"],
        "SELECT y.id AS c0, z.id AS c1, u.v AS c2 FROM $p AS y $h ($q AS z LEFT JOIN $t AS u ON \
         z.k = u.id) ON y.id = z.id",
        &[
            (
                "a LEFT JOIN before its condition",
                "SELECT y.id AS c0, z.id AS c1, u.v AS c2 FROM $p AS y $h $q AS z LEFT JOIN $t \
                 AS u ON z.k = u.id ON y.id = z.id",
            ),
            (
                "a RIGHT JOIN before its condition",
                "SELECT y.id AS c0, z.id AS c1, u.v AS c2 FROM $p AS y $h $t AS u RIGHT JOIN $q \
                 AS z ON z.k = u.id ON y.id = z.id",
            ),
            (
                "a join with a query of a join",
                "SELECT y.id AS c0, w.a AS c1, w.b AS c2 FROM $p AS y $h (SELECT z.id AS a, u.v \
                 AS b FROM $q AS z LEFT JOIN $t AS u ON z.k = u.id) AS w ON y.id = w.a",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT y.id AS c0, z.id AS c1, u.v AS c2 FROM ($p AS y $h $q AS z ON y.k = z.id) FULL \
         JOIN $t AS u ON u.id = z.id",
        &[(
            "joins from the left to the right",
            "SELECT y.id AS c0, z.id AS c1, u.v AS c2 FROM $p AS y $h $q AS z ON y.k = z.id FULL \
             JOIN $t AS u ON u.id = z.id",
        )],
    ),
];
