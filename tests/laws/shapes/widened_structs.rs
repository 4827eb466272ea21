//! Lists of structs with elements of another type, next to the values of their fields.

use super::Shape;

// A brace would be a placeholder of a part, so the structs are calls of `named_struct`.
pub(super) const WIDENED_STRUCTS: &[Shape] = &[(
    &["i", "f", "f"],
    "SELECT y.id AS c0, CAST(y.k AS DOUBLE) AS c1, y.f AS c2 FROM $p AS y WHERE $c(y.)",
    &[
        (
            "a struct appended to a list",
            "SELECT w.id AS c0, w.l[1]['a'] AS c1, w.l[2]['a'] AS c2 FROM (SELECT y.id, \
             list_append([named_struct('a', y.k)], named_struct('a', y.f)) AS l FROM $p AS y WHERE \
             $c(y.)) AS w",
        ),
        (
            "a struct in front of a list",
            "SELECT w.id AS c0, w.l[2]['a'] AS c1, w.l[1]['a'] AS c2 FROM (SELECT y.id, \
             list_prepend(named_struct('a', y.f), [named_struct('a', y.k)]) AS l FROM $p AS y \
             WHERE $c(y.)) AS w",
        ),
        (
            "lists of structs in a row",
            "SELECT w.id AS c0, w.l[1]['a'] AS c1, w.l[2]['a'] AS c2 FROM (SELECT y.id, \
             [named_struct('a', y.k)] || [named_struct('a', y.f)] AS l FROM $p AS y WHERE $c(y.)) \
             AS w",
        ),
    ],
)];
