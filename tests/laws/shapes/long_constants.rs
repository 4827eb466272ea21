//! Constant lists of many kilobytes, which the plan repeats for only a few rows at a time.

use super::Shape;

pub(super) const LONG_CONSTANTS: &[Shape] = &[
    (
        &["i", "b"],
        "SELECT y.id AS c0, (y.v >= 0 AND y.v < 3000) AS c1 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "a search in a long constant",
                "SELECT y.id AS c0, list_contains(range(0, 3000), y.v) AS c1 FROM $p AS y WHERE \
                 $c(y.)",
            ),
            (
                "a search in the long constant of a query",
                "SELECT w.id AS c0, list_contains(w.c, w.v) AS c1 FROM (SELECT y.id, y.v, \
                 (SELECT range(0, 3000)) AS c FROM $p AS y WHERE $c(y.)) AS w",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT y.id AS c0, abs(y.v % 3000) AS c1, 3001 AS c2 FROM $p AS y WHERE $c(y.)",
        &[(
            "an element of a long constant",
            "SELECT w.id AS c0, w.c[abs(w.v % 3000) + 1] AS c1, CAST(len(array_append(w.c, \
             w.v)) AS BIGINT) AS c2 FROM (SELECT y.id, y.v, range(0, 3000) AS c FROM $p AS y \
             WHERE $c(y.)) AS w",
        )],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, CASE WHEN $d(y.) THEN 3000 ELSE len(y.li) END AS c1 FROM $p AS y \
         WHERE $c(y.)",
        &[(
            "a long constant in CASE",
            "SELECT w.id AS c0, CAST(len(w.c) AS BIGINT) AS c1 FROM (SELECT y.id, CASE WHEN \
             $d(y.) THEN range(0, 3000) ELSE y.li END AS c FROM $p AS y WHERE $c(y.)) AS w",
        )],
    ),
    (
        &["i", "i"],
        "SELECT count(*) AS c0, CASE WHEN count(*) > 0 THEN 5 END AS c1 FROM $p AS y WHERE $c(y.)",
        &[(
            "an aggregate of a long constant",
            "SELECT count(*) AS c0, max(w.c[1]) AS c1 FROM (SELECT range(5, 3000) AS c FROM $p \
             AS y WHERE $c(y.)) AS w",
        )],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, z.id AS c1 FROM $p AS y $h $q AS z ON y.k = z.k",
        &[(
            "a join of long constants",
            "SELECT y.id AS c0, z.id AS c1 FROM (SELECT y.id, y.k, range(0, 3000) AS c FROM $p \
             AS y) AS y $h (SELECT z.id, z.k, range(7, 3000) AS c FROM $q AS z) AS z ON y.k = \
             z.k AND y.c[8] = z.c[1]",
        )],
    ),
    (
        &["i", "i"],
        "SELECT w.k AS c0, count(*) AS c1 FROM (SELECT y.k FROM $p AS y WHERE $c(y.)) AS w \
         GROUP BY w.k",
        &[(
            "groups of a long constant",
            "SELECT w.k AS c0, count(*) AS c1 FROM (SELECT y.k, range(0, 3000) AS c FROM $p AS \
             y WHERE $c(y.)) AS w GROUP BY w.k, w.c",
        )],
    ),
];
