//! Comparisons, keys, minima and maxima of 16-bit floats. The equivalent queries use 64-bit floats.

use super::Shape;

pub(super) const HALVES: &[&str] = &[
    "arrow_cast(§f, 'Float16')",
    "arrow_cast(§f / 3, 'Float16')",
    "arrow_cast(§k % 3, 'Float16')",
    "CASE WHEN §b THEN arrow_cast(§f, 'Float16') ELSE arrow_cast('-0.0'::DOUBLE, 'Float16') END",
    "coalesce(arrow_cast(§f, 'Float16'), arrow_cast(0.1::DOUBLE, 'Float16'))",
];

pub(super) const HALF_FLOATS: &[Shape] = &[
    (
        &["f", "i"],
        "SELECT w.h AS c0, count(*) AS c1 FROM (SELECT CAST($w(y.) AS DOUBLE) AS h FROM $p AS y \
         WHERE $c(y.)) AS w GROUP BY w.h",
        &[
            (
                "groups of halves are groups of doubles",
                "SELECT CAST(w.h AS DOUBLE) AS c0, count(*) AS c1 FROM (SELECT $w(y.) AS h FROM \
                 $p AS y WHERE $c(y.)) AS w GROUP BY w.h",
            ),
            (
                "a group of halves is a window",
                "SELECT CAST(h AS DOUBLE) AS c0, n AS c1 FROM (SELECT w.h, count(*) OVER \
                 (PARTITION BY w.h) AS n, row_number() OVER (PARTITION BY w.h) AS r FROM (SELECT \
                 $w(y.) AS h FROM $p AS y WHERE $c(y.)) AS w) AS x WHERE r = 1",
            ),
        ],
    ),
    (
        &["f"],
        "SELECT DISTINCT CAST($w(y.) AS DOUBLE) AS c0 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "distinct halves are distinct doubles",
                "SELECT CAST(x.h AS DOUBLE) AS c0 FROM (SELECT DISTINCT $w(y.) AS h FROM $p AS y \
                 WHERE $c(y.)) AS x",
            ),
            (
                "a UNION of halves is one of doubles",
                "SELECT CAST(x.h AS DOUBLE) AS c0 FROM (SELECT $w(y.) AS h FROM $p AS y WHERE \
                 $c(y.) AND ($d(y.)) UNION SELECT $w(z.) AS h FROM $p AS z WHERE $c(z.) AND \
                 ($d(z.)) IS NOT TRUE) AS x",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT y.id AS c0 FROM $p AS y WHERE CAST($w(y.) AS DOUBLE) = y.f",
        &[
            ("a half equals a double", "SELECT y.id AS c0 FROM $p AS y WHERE $w(y.) = y.f"),
            (
                "a half does not differ from a double",
                "SELECT y.id AS c0 FROM $p AS y WHERE NOT (y.f <> $w(y.))",
            ),
        ],
    ),
    (
        &["i", "b", "b"],
        "SELECT y.id AS c0, CAST($w(y.) AS DOUBLE) < CAST(y.k AS DOUBLE) AS c1, \
         CAST($w(y.) AS DOUBLE) >= 0.1::DOUBLE AS c2 FROM $p AS y",
        &[
            (
                "a half compares as a double",
                "SELECT y.id AS c0, $w(y.) < y.k AS c1, $w(y.) >= 0.1::DOUBLE AS c2 FROM $p AS y",
            ),
            (
                "a half compares as a double turned round",
                "SELECT y.id AS c0, y.k > $w(y.) AS c1, NOT (0.1::DOUBLE > $w(y.)) AS c2 FROM $p \
                 AS y",
            ),
        ],
    ),
    (
        &["i", "b"],
        "SELECT y.id AS c0, (CAST($w(y.) AS DOUBLE) = 1.5::DOUBLE OR CAST($w(y.) AS DOUBLE) = y.f \
         OR CAST($w(y.) AS DOUBLE) = 0.0::DOUBLE) AS c1 FROM $p AS y",
        &[
            (
                "IN over a half is OR",
                "SELECT y.id AS c0, $w(y.) IN (1.5::DOUBLE, y.f, 0.0::DOUBLE) AS c1 FROM $p AS y",
            ),
            (
                "NOT IN over a half is AND",
                "SELECT y.id AS c0, NOT ($w(y.) NOT IN (0.0::DOUBLE, 1.5::DOUBLE, y.f)) AS c1 \
                 FROM $p AS y",
            ),
        ],
    ),
    (
        &["i", "b", "b"],
        "SELECT y.id AS c0, coalesce(CAST($w(y.) AS DOUBLE) = 0.1::DOUBLE, false) AS c1, \
         coalesce(CAST($w(y.) AS DOUBLE) = y.f, false) AS c2 FROM $p AS y",
        &[
            (
                "a list of halves compares with a query as doubles",
                "SELECT y.id AS c0, ragged_any([$w(y.)] = (SELECT 0.1::DOUBLE)) AS c1, \
                 ragged_any([$w(y.)] = y.f) AS c2 FROM $p AS y",
            ),
            (
                "a list of halves holds doubles of a query",
                "SELECT y.id AS c0, ragged_any(ragged_isin([$w(y.)], (SELECT [0.1::DOUBLE]))) AS \
                 c1, ragged_any(ragged_isin([$w(y.)], [y.f])) AS c2 FROM $p AS y",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT y.id AS c0 FROM $p AS y WHERE CAST($w(y.) AS DOUBLE) IN (0.0::DOUBLE, \
         'NaN'::DOUBLE, -2.25::DOUBLE, 1.0::DOUBLE)",
        &[
            (
                "IN of halves is IN of doubles",
                "SELECT y.id AS c0 FROM $p AS y WHERE $w(y.) IN (arrow_cast('-0.0'::DOUBLE, \
                 'Float16'), arrow_cast('NaN'::DOUBLE, 'Float16'), arrow_cast(-2.25::DOUBLE, \
                 'Float16'), arrow_cast(1, 'Float16'))",
            ),
            (
                "IN of halves is a join",
                "SELECT y.id AS c0 FROM $p AS y LEFT SEMI JOIN (VALUES (arrow_cast(0.0::DOUBLE, \
                 'Float16')), (arrow_cast('NaN'::DOUBLE, 'Float16')), (arrow_cast(-2.25::DOUBLE, \
                 'Float16')), (arrow_cast(1, 'Float16'))) AS z(h) ON $w(y.) = z.h",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, z.id AS c1 FROM $p AS y JOIN $q AS z ON CAST($w(y.) AS DOUBLE) = \
         CAST($w(z.) AS DOUBLE) AND $c(y.)",
        &[
            (
                "a join by halves is one by doubles",
                "SELECT y.id AS c0, z.id AS c1 FROM $p AS y JOIN $q AS z ON $w(y.) = $w(z.) AND \
                 $c(y.)",
            ),
            (
                "a join by halves is a condition",
                "SELECT y.id AS c0, z.id AS c1 FROM $p AS y CROSS JOIN $q AS z WHERE $c(y.) AND \
                 $w(z.) = $w(y.)",
            ),
        ],
    ),
    (
        &["b", "f", "f"],
        "SELECT w.b AS c0, min(w.h) AS c1, max(w.h) AS c2 FROM (SELECT y.b, CAST($w(y.) AS \
         DOUBLE) AS h FROM $p AS y WHERE $c(y.)) AS w GROUP BY w.b",
        &[(
            "extremes of halves are those of doubles",
            "SELECT w.b AS c0, CAST(min(w.h) AS DOUBLE) AS c1, CAST(max(w.h) AS DOUBLE) AS c2 \
             FROM (SELECT y.b, $w(y.) AS h FROM $p AS y WHERE $c(y.)) AS w GROUP BY w.b",
        )],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, CAST(rank() OVER (ORDER BY CAST($w(y.) AS DOUBLE)) AS BIGINT) AS c1 \
         FROM $p AS y WHERE $c(y.)",
        &[(
            "halves have the order of doubles",
            "SELECT y.id AS c0, CAST(rank() OVER (ORDER BY $w(y.)) AS BIGINT) AS c1 FROM $p AS y \
             WHERE $c(y.)",
        )],
    ),
];
