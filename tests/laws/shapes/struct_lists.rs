//! Lists of structs, compared with parallel lists of their fields.

use super::Shape;

pub(super) const STRUCT_LISTS: &[Shape] = &[
    (
        &["i", "li", "li"],
        "SELECT y.id AS c0, ragged_filter(y.li, y.li > 0) AS c1, ragged_filter(y.li + y.id, y.li > \
         0) AS c2 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "a filter of structs",
                "SELECT w.id AS c0, ragged_unzip(w.l, 'a') AS c1, ragged_unzip(w.l, 'b') AS c2 \
                 FROM (SELECT y.id, ragged_filter(ragged_zip('a', y.li, 'b', y.li + y.id), y.li > \
                 0) AS l FROM $p AS y WHERE $c(y.)) AS w",
            ),
            (
                "a lambda over structs",
                "SELECT w.id AS c0, ragged_unzip(w.l, 'a') AS c1, list_transform(w.l, e -> e['b']) \
                 AS c2 FROM (SELECT y.id, list_filter(ragged_zip('a', y.li, 'b', y.li + y.id), e \
                 -> e['a'] > 0) AS l FROM $p AS y WHERE $c(y.)) AS w",
            ),
            (
                "a struct of filtered lists",
                "SELECT w.id AS c0, w.l['a'] AS c1, w.l['b'] AS c2 FROM (SELECT y.id, \
                 ragged_unzip(ragged_filter(ragged_zip('a', y.li, 'b', y.li + y.id), y.li > 0)) AS \
                 l FROM $p AS y WHERE $c(y.)) AS w",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT y.id AS c0, unnest(y.li) AS c1, unnest(y.li + y.id) AS c2 FROM $p AS y WHERE \
         $c(y.)",
        &[
            (
                "unnested structs",
                "SELECT w.id AS c0, w.e['a'] AS c1, w.e['b'] AS c2 FROM (SELECT y.id, \
                 unnest(ragged_zip('a', y.li, 'b', y.li + y.id)) AS e FROM $p AS y WHERE $c(y.)) \
                 AS w",
            ),
            (
                "structs of unnest in FROM",
                "SELECT y.id AS c0, u.e['a'] AS c1, u.e['b'] AS c2 FROM $p AS y, \
                 unnest(ragged_zip('a', y.li, 'b', y.li + y.id)) AS u(e) WHERE $c(y.)",
            ),
        ],
    ),
    (
        &["li", "i", "i"],
        "SELECT y.li AS c0, count(*) AS c1, max(y.id) AS c2 FROM $p AS y WHERE $c(y.) GROUP BY \
         y.li",
        &[
            (
                "groups by structs",
                "SELECT ragged_unzip(w.l, 'a') AS c0, count(*) AS c1, max(w.id) AS c2 FROM (SELECT \
                 y.id, ragged_zip('a', y.li) AS l FROM $p AS y WHERE $c(y.)) AS w GROUP BY w.l",
            ),
            (
                "windows by structs",
                "SELECT x.a AS c0, x.c AS c1, x.id AS c2 FROM (SELECT w.id, w.a, count(*) OVER \
                 (PARTITION BY w.l) AS c, row_number() OVER (PARTITION BY w.l ORDER BY w.id DESC) \
                 AS m FROM (SELECT y.id, y.li AS a, ragged_zip('a', y.li) AS l FROM $p AS y WHERE \
                 $c(y.)) AS w) AS x WHERE x.m = 1",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, z.id AS c1 FROM $p AS y JOIN $q AS z ON y.li = z.li AND $c(y.)",
        &[
            (
                "a join by structs",
                "SELECT y.id AS c0, z.id AS c1 FROM (SELECT x.id, ragged_zip('a', x.li) AS l FROM \
                 $p AS x WHERE $c(x.)) AS y JOIN (SELECT x.id, ragged_zip('a', x.li) AS l FROM $q \
                 AS x) AS z ON y.l = z.l",
            ),
            (
                "a condition on structs",
                "SELECT y.id AS c0, z.id AS c1 FROM $p AS y, $q AS z WHERE ragged_zip('a', y.li) = \
                 ragged_zip('a', z.li) AND $c(y.)",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, CAST(rank() OVER (ORDER BY y.li NULLS FIRST) AS BIGINT) AS c1 FROM $p \
         AS y WHERE $c(y.)",
        &[
            (
                "structs have the order of their fields",
                "SELECT y.id AS c0, CAST(rank() OVER (ORDER BY ragged_zip('a', y.li) NULLS FIRST) \
                 AS BIGINT) AS c1 FROM $p AS y WHERE $c(y.)",
            ),
            (
                "structs have the reverse order of their fields",
                "SELECT w.id AS c0, w.m - w.n + 1 AS c1 FROM (SELECT y.id, count(*) OVER () AS m, \
                 count(*) OVER (ORDER BY ragged_zip('a', y.li) DESC NULLS LAST) AS n FROM $p AS y \
                 WHERE $c(y.)) AS w",
            ),
        ],
    ),
];
