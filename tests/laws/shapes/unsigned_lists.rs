//! Lists of UInt64 together with signed numbers. The equivalent queries compute element by element.

use super::Shape;

pub(super) const UNSIGNED_LISTS: &[Shape] = &[
    (
        &["i", "b", "b", "b"],
        "SELECT y.id AS c0, coalesce(greatest(y.v, 0) = $i(y.) OR greatest(y.k, 0) = $i(y.), \
         false) AS c1, $i(y.) IS NOT NULL AS c2, coalesce(greatest(y.v, 0) < $i(y.) OR \
         greatest(y.k, 0) < $i(y.), false) AS c3 FROM $p AS y",
        &[
            (
                "a list of UInt64 compares as its values",
                "SELECT w.id AS c0, ragged_any(w.u = w.i) AS c1, ragged_any(w.u > w.i) AS c2, \
                 ragged_any(w.u < w.i) AS c3 FROM (SELECT y.id, $i(y.) AS i, \
                 [arrow_cast(greatest(y.v, 0), 'UInt64'), arrow_cast(greatest(y.k, 0), \
                 'UInt64'), 18446744073709551615] AS u FROM $p AS y) AS w",
            ),
            (
                "a list of UInt64 compares as its values turned round",
                "SELECT w.id AS c0, ragged_any(w.i = w.u) AS c1, ragged_any(ragged_not(w.i >= \
                 w.u)) AS c2, ragged_any(w.i > w.u) AS c3 FROM (SELECT y.id, $i(y.) AS i, \
                 [arrow_cast(greatest(y.v, 0), 'UInt64'), arrow_cast(greatest(y.k, 0), \
                 'UInt64'), 18446744073709551615] AS u FROM $p AS y) AS w",
            ),
            (
                "a signed number among values of UInt64",
                "SELECT w.id AS c0, coalesce(list_contains(w.u, w.i), false) AS c1, \
                 ragged_any(ragged_isin(w.u, [w.i, 18446744073709551615])) AND w.i IS NOT NULL \
                 AS c2, ragged_any(ragged_not(w.u >= w.i)) AS c3 FROM (SELECT y.id, $i(y.) AS \
                 i, [arrow_cast(greatest(y.v, 0), 'UInt64'), arrow_cast(greatest(y.k, 0), \
                 'UInt64'), 18446744073709551615] AS u FROM $p AS y) AS w",
            ),
        ],
    ),
    (
        &["i", "b", "b"],
        "SELECT y.id AS c0, greatest(y.v, 0) <= 1 AS c1, greatest(y.v, 0) IN (0, 7) AS c2 FROM \
         $p AS y",
        &[(
            "a literal next to a list of UInt64",
            "SELECT w.id AS c0, ragged_all(w.u <= 1) AND ragged_all(w.u > -1) AS c1, \
             ragged_any(w.u IN (7, -1, 0, 9223372036854775808)) AS c2 FROM (SELECT y.id, \
             [arrow_cast(greatest(y.v, 0), 'UInt64')] AS u FROM $p AS y) AS w",
        )],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, CASE WHEN greatest(y.v, 0) = $i(y.) THEN 1 WHEN greatest(y.k, 0) = \
         $i(y.) THEN 2 END AS c1 FROM $p AS y",
        &[(
            "the position in a list of UInt64",
            "SELECT y.id AS c0, CAST(array_position([arrow_cast(greatest(y.v, 0), 'UInt64'), \
             arrow_cast(greatest(y.k, 0), 'UInt64'), 18446744073709551615], $i(y.)) AS BIGINT) \
             AS c1 FROM $p AS y",
        )],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, CAST(greatest(y.v, 0) + greatest(y.k, 0) + 2 * coalesce($i(y.), 0) \
         AS BIGINT) AS c1 FROM $p AS y",
        &[(
            "the sum of a list of UInt64 and a signed number",
            "SELECT y.id AS c0, ragged_sum(ragged_cast([arrow_cast(greatest(y.v, 0), 'UInt64'), \
             arrow_cast(greatest(y.k, 0), 'UInt64')] + coalesce($i(y.), 0), 'BIGINT')) AS c1 \
             FROM $p AS y",
        )],
    ),
];
