//! Scalar subqueries as arguments of functions and operators over lists, next to joins with their
//! single row.

use super::Shape;

pub(super) const SUBQUERY_ARGUMENTS: &[Shape] = &[
    (
        &["i", "li", "li"],
        "SELECT y.id AS c0, y.li + m.m AS c1, y.li + m.m AS c2 FROM $p AS y CROSS JOIN (SELECT \
         max(z.v) AS m FROM $q AS z) AS m",
        &[
            (
                "a subquery as first and as second operand",
                "SELECT y.id AS c0, (SELECT max(z.v) FROM $q AS z) + y.li AS c1, y.li + (SELECT \
                 max(z.v) FROM $q AS z) AS c2 FROM $p AS y",
            ),
            (
                "a subquery as first and as second argument",
                "SELECT y.id AS c0, ragged_add((SELECT max(z.v) FROM $q AS z), y.li) AS c1, \
                 ragged_add(y.li, (SELECT max(z.v) FROM $q AS z)) AS c2 FROM $p AS y",
            ),
        ],
    ),
    (
        &["i", "b", "b"],
        "SELECT y.id AS c0, ragged_any(y.li = m.m) AS c1, ragged_any(y.li < m.m) AS c2 FROM $p \
         AS y CROSS JOIN (SELECT max(z.k) AS m FROM $q AS z) AS m",
        &[
            (
                "a subquery compares with a list",
                "SELECT y.id AS c0, ragged_any((SELECT max(z.k) FROM $q AS z) = y.li) AS c1, \
                 ragged_any((SELECT max(z.k) FROM $q AS z) > y.li) AS c2 FROM $p AS y",
            ),
            (
                "a list compares with a subquery",
                "SELECT y.id AS c0, ragged_any(y.li = (SELECT max(z.k) FROM $q AS z)) AS c1, \
                 ragged_any((SELECT max(z.k) FROM $q AS z) > y.li) AS c2 FROM $p AS y",
            ),
        ],
    ),
    (
        &["i", "li", "i"],
        "SELECT y.id AS c0, CASE WHEN $d(y.) THEN m.m + y.li ELSE y.li - m.m END AS c1, \
         ragged_sum(m.m + y.li) AS c2 FROM $p AS y CROSS JOIN (SELECT min(z.v) AS m FROM $q AS z \
         WHERE $c(z.)) AS m",
        &[(
            "a subquery as operand in CASE",
            "SELECT y.id AS c0, CASE WHEN $d(y.) THEN (SELECT min(z.v) FROM $q AS z WHERE \
             $c(z.)) + y.li ELSE y.li - (SELECT min(z.v) FROM $q AS z WHERE $c(z.)) END AS c1, \
             ragged_sum((SELECT min(z.v) FROM $q AS z WHERE $c(z.)) + y.li) AS c2 FROM $p AS y",
        )],
    ),
];
