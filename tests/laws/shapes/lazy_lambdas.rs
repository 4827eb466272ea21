//! Lambdas whose body fails, over lists without elements.

use super::Shape;

pub(super) const LAZY_LAMBDAS: &[Shape] = &[(
    &["i", "i"],
    "SELECT y.id AS c0, 0 AS c1 FROM $p AS y WHERE $c(y.)",
    &[
        (
            "a lambda over filtered lists without elements",
            "SELECT y.id AS c0, CAST(len(list_transform(list_filter(coalesce(y.li, [1, 2]), e -> \
             false), e -> 1 / 0)) AS BIGINT) AS c1 FROM $p AS y WHERE $c(y.)",
        ),
        (
            "a lambda over literals without elements",
            "SELECT y.id AS c0, CAST(len(list_transform(CASE WHEN $d(y.) THEN [] ELSE \
             list_filter([y.id], e -> e < 0) END, e -> 1 / 0)) AS BIGINT) AS c1 FROM $p AS y \
             WHERE $c(y.)",
        ),
        (
            "a ragged_map over lists without elements",
            "SELECT y.id AS c0, ragged_count(ragged_map(ragged_filter(coalesce(y.li, [1, 2]), \
             ragged_lt(coalesce(y.li, [1, 2]), coalesce(y.li, [1, 2]))), e -> 1 / 0)) AS c1 FROM \
             $p AS y WHERE $c(y.)",
        ),
    ],
)];
