//! Groups, windows and as-of look-ups within a row. The equivalent queries group, window and join
//! the unnested elements.

use super::Shape;

pub(super) const GROUPS_WITHIN_ROWS: &[Shape] = &[
    (
        &["i", "i", "i"],
        "SELECT y.id AS c0, ragged_sum(ragged_filter(y.li, ragged_abs(y.li) % 2 = 0)) AS c1, \
         ragged_count(ragged_filter(y.li, ragged_abs(y.li) % 2 = 1)) AS c2 FROM $p AS y WHERE \
         $c(y.)",
        &[
            (
                "a pivot of a list",
                "SELECT y.id AS c0, (ragged_sum(ragged_group(y.li, ragged_abs(y.li) % 2, [0, 1]), \
                 -1))[1] AS c1, (ragged_count(ragged_group(y.li, ragged_abs(y.li) % 2, [0, 1]), \
                 -1))[2] AS c2 FROM $p AS y WHERE $c(y.)",
            ),
            (
                "a pivot of structs",
                "SELECT w.id AS c0, (ragged_sum(ragged_unzip(w.l, 'b'), -1))[2] AS c1, \
                 (ragged_count(ragged_unzip(w.l, 'a'), -1))[1] AS c2 FROM (SELECT y.id, \
                 ragged_group(ragged_zip('a', y.li, 'b', y.li), ragged_abs(y.li) % 2, [1, 0]) AS l \
                 FROM $p AS y WHERE $c(y.)) AS w",
            ),
            (
                "a pivot of unnested rows",
                "SELECT y.id AS c0, CASE WHEN y.li IS NOT NULL THEN coalesce(l.a, 0) END AS c1, \
                 CASE WHEN y.li IS NOT NULL THEN l.o END AS c2 FROM $p AS y, LATERAL (SELECT \
                 sum(u.e) FILTER (WHERE abs(u.e) % 2 = 0) AS a, count(*) FILTER (WHERE abs(u.e) % \
                 2 = 1) AS o FROM unnest(y.li) AS u(e)) AS l WHERE $c(y.)",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT x.id AS c0, x.e AS c1, CAST(sum(x.m) AS BIGINT) AS c2 FROM (SELECT y.id, y.k, \
         unnest(y.li) AS e, unnest(ragged_coords(y.li, -1)) AS m FROM $p AS y WHERE $c(y.)) AS x \
         GROUP BY x.id, x.e",
        &[
            (
                "groups within a row",
                "SELECT w.id AS c0, unnest(w.l) AS c1, unnest(w.m) AS c2 FROM (SELECT y.id, \
                 ragged_group_keys(y.li) AS l, ragged_sum(ragged_group(ragged_coords(y.li, -1), \
                 y.li), -1) AS m FROM $p AS y WHERE $c(y.)) AS w",
            ),
            (
                "groups of structs by structs within a row",
                "SELECT w.id AS c0, unnest(ragged_unzip(w.l, 'a')) AS c1, unnest(w.m) AS c2 FROM \
                 (SELECT y.id, ragged_group_keys(ragged_zip('a', y.li)) AS l, \
                 ragged_sum(ragged_unzip(ragged_group(ragged_zip('m', ragged_coords(y.li, -1)), \
                 ragged_zip('a', y.li)), 'm'), -1) AS m FROM $p AS y WHERE $c(y.)) AS w",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT x.id AS c0, CAST(x.m AS BIGINT) AS c1, coalesce(CAST(sum(x.e) OVER (PARTITION BY \
         x.id ORDER BY x.m ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS BIGINT), 0) AS c2 FROM \
         (SELECT y.id, y.k, unnest(y.li) AS e, unnest(ragged_coords(y.li, -1)) AS m FROM $p AS y \
         WHERE $c(y.)) AS x",
        &[
            (
                "sums of windows within a row",
                "SELECT w.id AS c0, CAST(unnest(w.m) AS BIGINT) AS c1, unnest(w.l) AS c2 FROM \
                 (SELECT y.id, ragged_coords(y.li, -1) AS m, ragged_window(y.li, \
                 ragged_coords(y.li, -1), ragged_coords(y.li, -1), 'sum', 2) AS l FROM $p AS y \
                 WHERE $c(y.)) AS w",
            ),
            (
                "windows of lists within a row",
                "SELECT w.id AS c0, CAST(unnest(w.m) AS BIGINT) AS c1, unnest(ragged_sum(w.l, -1)) \
                 AS c2 FROM (SELECT y.id, ragged_coords(y.li, -1) AS m, ragged_window(y.li, \
                 ragged_coords(y.li, -1), ragged_coords(y.li, -1), before => 2) AS l FROM $p AS y \
                 WHERE $c(y.)) AS w",
            ),
            (
                "windows of structs within a row",
                "SELECT w.id AS c0, CAST(unnest(w.m) AS BIGINT) AS c1, \
                 unnest(ragged_sum(ragged_unzip(w.l, 'a'), -1)) AS c2 FROM (SELECT y.id, \
                 ragged_coords(y.li, -1) AS m, ragged_window(ragged_zip('a', y.li, 'b', y.li + \
                 y.id), ragged_coords(y.li, -1), ragged_coords(y.li, -1), before => 2) AS l FROM \
                 $p AS y WHERE $c(y.)) AS w",
            ),
            (
                "sums of the last two within a row",
                "SELECT w.id AS c0, CAST(unnest(w.m) AS BIGINT) AS c1, coalesce(unnest(w.l), 0) AS \
                 c2 FROM (SELECT y.id, ragged_coords(y.li, -1) AS m, ragged_rolling(y.li, 2, \
                 'sum', 1) AS l FROM $p AS y WHERE $c(y.)) AS w",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT x.id AS c0, x.e AS c1, CASE WHEN x.e IS NOT NULL THEN count(x.e) OVER (PARTITION \
         BY x.id ORDER BY x.e RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) END AS c2 FROM (SELECT \
         y.id, y.k, unnest(y.li) AS e, unnest(ragged_coords(y.li, -1)) AS m FROM $p AS y WHERE \
         $c(y.)) AS x",
        &[
            (
                "counts of ranges within a row",
                "SELECT y.id AS c0, unnest(y.li) AS c1, unnest(ragged_window(y.li, y.li, y.li, \
                 'count', 2)) AS c2 FROM $p AS y WHERE $c(y.)",
            ),
            (
                "counts of both ends of ranges within a row",
                "SELECT w.id AS c0, unnest(w.a) AS c1, unnest(w.l) AS c2 FROM (SELECT y.id, y.li \
                 AS a, ragged_window(y.li, y.li, y.li, 'count', 1, closed => '[]') AS l FROM $p AS \
                 y WHERE $c(y.)) AS w",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, w.e AS c1 FROM $p AS y LEFT JOIN (SELECT x.id, x.e, row_number() OVER \
         (PARTITION BY x.id ORDER BY x.m DESC) AS i FROM (SELECT y.id, y.k, unnest(y.li) AS e, \
         unnest(ragged_coords(y.li, -1)) AS m FROM $p AS y WHERE $c(y.)) AS x WHERE x.m <= x.k) AS \
         w ON w.id = y.id AND w.i = 1 WHERE $c(y.)",
        &[
            (
                "the last element at a time",
                "SELECT y.id AS c0, ragged_asof(y.li, ragged_coords(y.li, -1), y.k) AS c1 FROM $p \
                 AS y WHERE $c(y.)",
            ),
            (
                "the last struct at a time",
                "SELECT y.id AS c0, (ragged_asof(ragged_zip('a', y.li, 'b', y.li + y.id), \
                 ragged_coords(y.li, -1), y.k))['a'] AS c1 FROM $p AS y WHERE $c(y.)",
            ),
            (
                "the last element at a list of times",
                "SELECT y.id AS c0, (ragged_asof(y.li, ragged_coords(y.li, -1), [y.k, 0]))[1] AS \
                 c1 FROM $p AS y WHERE $c(y.)",
            ),
            (
                "the last of the filtered elements",
                "SELECT y.id AS c0, (ragged_filter(y.li, ragged_coords(y.li, -1) <= y.k))[-1] AS \
                 c1 FROM $p AS y WHERE $c(y.)",
            ),
        ],
    ),
];
