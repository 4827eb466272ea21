//! Queries that unnest a list of the outer row, compared with `unnest` in SELECT and with functions
//! of lists.

use super::Shape;

pub(super) const LATERAL_LISTS: &[Shape] = &[
    (
        &["i", "i"],
        "SELECT y.id AS c0, unnest(y.li) AS c1 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "unnest in FROM",
                "SELECT y.id AS c0, u.e AS c1 FROM $p AS y, unnest(y.li) AS u(e) WHERE $c(y.)",
            ),
            (
                "LATERAL of unnest in SELECT",
                "SELECT y.id AS c0, l.e AS c1 FROM $p AS y, LATERAL (SELECT unnest(y.li) AS e) AS \
                 l WHERE $c(y.)",
            ),
            (
                "LATERAL of unnest in FROM",
                "SELECT y.id AS c0, l.e AS c1 FROM $p AS y CROSS JOIN LATERAL (SELECT u.e FROM \
                 unnest(y.li) AS u(e)) AS l WHERE $c(y.)",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, unnest(CASE WHEN len(ragged_filter(y.li, y.li > $i(y.))) > 0 THEN \
         ragged_filter(y.li, y.li > $i(y.)) ELSE [CAST(NULL AS BIGINT)] END) AS c1 FROM $p AS y",
        &[
            (
                "LEFT JOIN unnest with a condition",
                "SELECT y.id AS c0, u.e AS c1 FROM $p AS y LEFT JOIN unnest(y.li) AS u(e) ON u.e > \
                 $i(y.)",
            ),
            (
                "LEFT JOIN LATERAL of unnest",
                "SELECT y.id AS c0, l.e AS c1 FROM $p AS y LEFT JOIN LATERAL (SELECT u.e FROM \
                 unnest(y.li) AS u(e) WHERE u.e > $i(y.)) AS l ON true",
            ),
            (
                "rows without elements in a UNION ALL",
                "SELECT y.id AS c0, u.e AS c1 FROM $p AS y, unnest(y.li) AS u(e) WHERE u.e > \
                 $i(y.) UNION ALL SELECT y.id AS c0, NULL AS c1 FROM $p AS y WHERE NOT EXISTS \
                 (SELECT 1 FROM unnest(y.li) AS u(e) WHERE u.e > $i(y.))",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT y.id AS c0, ragged_max(ragged_filter(y.li, y.li > $i(y.))) AS c1, \
         coalesce(ragged_count(ragged_filter(y.li, y.li > $i(y.))), 0) AS c2 FROM $p AS y",
        &[
            (
                "queries of SELECT over a list",
                "SELECT y.id AS c0, (SELECT max(u.e) FROM unnest(y.li) AS u(e) WHERE u.e > $i(y.)) \
                 AS c1, (SELECT count(*) FROM unnest(y.li) AS u(e) WHERE u.e > $i(y.)) AS c2 FROM \
                 $p AS y",
            ),
            (
                "LATERAL aggregates of a list",
                "SELECT y.id AS c0, l.a AS c1, l.o AS c2 FROM $p AS y, LATERAL (SELECT max(u.e) AS \
                 a, count(u.e) AS o FROM unnest(y.li) AS u(e) WHERE u.e > $i(y.)) AS l",
            ),
            (
                "LEFT JOIN LATERAL aggregates of a list",
                "SELECT y.id AS c0, l.a AS c1, coalesce(l.o, 0) AS c2 FROM $p AS y LEFT JOIN \
                 LATERAL (SELECT max(u.e) AS a, count(*) AS o FROM unnest(y.li) AS u(e) WHERE u.e \
                 > $i(y.)) AS l ON l.o > 0",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT w.id AS c0, w.e AS c1 FROM (SELECT x.id, x.e, row_number() OVER (PARTITION BY x.id \
         ORDER BY x.e DESC NULLS LAST) AS m FROM (SELECT y.id, unnest(y.li) AS e FROM $p AS y) AS \
         x) AS w WHERE w.m <= $n",
        &[
            (
                "LATERAL of the first elements",
                "SELECT y.id AS c0, l.e AS c1 FROM $p AS y, LATERAL (SELECT u.e FROM unnest(y.li) \
                 AS u(e) ORDER BY u.e DESC NULLS LAST LIMIT $n) AS l",
            ),
            (
                "a slice of a sorted list",
                "SELECT y.id AS c0, unnest((list_sort(y.li, 'DESC', 'NULLS LAST'))[1:$n]) AS c1 \
                 FROM $p AS y",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT x.id AS c0, z.id AS c1 FROM (SELECT y.id, unnest(y.li) AS e FROM $p AS y) AS x \
         JOIN $q AS z ON z.k = x.e AND $c(z.)",
        &[
            (
                "LATERAL of a join with a list",
                "SELECT y.id AS c0, l.id AS c1 FROM $p AS y, LATERAL (SELECT z.id FROM \
                 unnest(y.li) AS u(e) JOIN $q AS z ON z.k = u.e AND $c(z.)) AS l",
            ),
            (
                "a join with unnest in FROM",
                "SELECT y.id AS c0, z.id AS c1 FROM $p AS y CROSS JOIN unnest(y.li) AS u(e) JOIN \
                 $q AS z ON z.k = u.e AND $c(z.)",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT y.id AS c0 FROM $p AS y WHERE ragged_any(y.li = $i(y.))",
        &[
            (
                "EXISTS of an element",
                "SELECT y.id AS c0 FROM $p AS y WHERE EXISTS (SELECT 1 FROM unnest(y.li) AS u(e) \
                 WHERE u.e = $i(y.))",
            ),
            (
                "IN of the elements",
                "SELECT y.id AS c0 FROM $p AS y WHERE $i(y.) IN (SELECT u.e FROM unnest(y.li) AS \
                 u(e))",
            ),
            (
                "IN of unnest in SELECT",
                "SELECT y.id AS c0 FROM $p AS y WHERE $i(y.) IN (SELECT unnest(y.li))",
            ),
        ],
    ),
];
