//! Lambdas that capture columns of the row.

use super::Shape;

pub(super) const CAPTURED: &[Shape] = &[
    (
        &["i", "li"],
        "SELECT y.id AS c0, y.li + $i(y.) AS c1 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "a lambda captures a column",
                "SELECT id AS c0, list_transform(li, lambda e: e + $i()) AS c1 FROM $p AS y \
                 WHERE $c()",
            ),
            (
                "a lambda captures a column of a query",
                "SELECT id AS c0, list_transform(li, e -> e + m) AS c1 FROM (SELECT li, $i() \
                 AS m, id FROM $p AS y WHERE $c())",
            ),
            (
                "a parameter has the name of a column",
                "SELECT id AS c0, list_transform(li, lambda k: k + m) AS c1 FROM (SELECT id, \
                 li, k, $i() AS m FROM $p AS y WHERE $c()) AS z",
            ),
        ],
    ),
    (
        &["i", "li"],
        "SELECT y.id AS c0, ragged_filter(y.li, y.li > $i(y.)) AS c1 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "a filter captures a column",
                "SELECT id AS c0, list_filter(li, lambda e: e > $i()) AS c1 FROM $p AS y WHERE \
                 $c()",
            ),
            (
                "a filter captures a column of a query",
                "SELECT id AS c0, list_filter(li, id -> id > m) AS c1 FROM (SELECT $i() AS m, \
                 id, li FROM $p AS y WHERE $c())",
            ),
        ],
    ),
    (
        &["i", "li"],
        "SELECT w.i AS c0, w.l + w.m AS c1 FROM (SELECT y.id AS i, y.li AS l, $i(z.) AS m FROM \
         $p AS y $h $q AS z ON y.k = z.k) AS w",
        &[
            (
                "a lambda above a join",
                "SELECT y.id AS c0, list_transform(y.li, lambda e: e + $i(z.)) AS c1 FROM $p \
                 AS y $h $q AS z ON y.k = z.k",
            ),
            (
                "a lambda captures both sides of a join",
                "SELECT y.id AS c0, list_transform(y.li, e -> e + m) AS c1 FROM $p AS y $h \
                 (SELECT k, $i() AS m FROM $q AS z) AS z USING (k)",
            ),
        ],
    ),
    (
        &["i", "li"],
        "SELECT y.id AS c0, CASE WHEN $c(y.) THEN y.li + $i(y.) ELSE ragged_filter(y.li, y.li \
         > $j(y.)) END AS c1 FROM $p AS y",
        &[(
            "lambdas below CASE",
            "SELECT id AS c0, CASE WHEN $c() THEN list_transform(li, lambda e: e + $i()) \
                 ELSE list_filter(li, lambda e: e > $j()) END AS c1 FROM $p AS y",
        )],
    ),
    (
        &["i", "li"],
        "SELECT y.id AS c0, CASE WHEN $c(y.) THEN y.li + 1 ELSE y.li - 1 END AS c1 FROM $p AS \
         y",
        &[
            (
                "CASE within a lambda",
                "SELECT id AS c0, list_transform(li, lambda e: CASE WHEN $c() THEN e + 1 ELSE \
                 e - 1 END) AS c1 FROM $p AS y",
            ),
            (
                "a parameter within CASE has the name of a column",
                "SELECT id AS c0, list_transform(li, lambda f: CASE WHEN $c() THEN f + 1 ELSE \
                 f - 1 END) AS c1 FROM $p AS y",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT y.id AS c0 FROM $p AS y WHERE y.id IN (SELECT x.id FROM $p AS x JOIN $q AS z \
         ON z.k = x.k WHERE ragged_any(z.li > x.v))",
        &[
            (
                "a lambda captures an outer column",
                "SELECT id AS c0 FROM $p AS y WHERE EXISTS (SELECT 1 FROM $q AS z WHERE z.k = \
                 y.k AND array_length(list_filter(z.li, lambda e: e > y.v)) > 0)",
            ),
            (
                "a lambda in LATERAL",
                "SELECT y.id AS c0 FROM $p AS y, LATERAL (SELECT count(*) AS cnt FROM $q AS z \
                 WHERE z.k = y.k AND array_length(list_filter(li, lambda v: v > y.v)) > 0) AS \
                 l WHERE l.cnt > 0",
            ),
        ],
    ),
];
