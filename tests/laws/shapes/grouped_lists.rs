//! Aggregates of lists with ORDER BY, DISTINCT and FILTER, and GROUPING SETS by lists.

use super::Shape;

pub(super) const GROUPED_LISTS: &[Shape] = &[
    (
        &["li", "i", "i", "i"],
        "SELECT y.li AS c0, y.k AS c1, 0 AS c2, count(*) AS c3 FROM $p AS y WHERE $c(y.) GROUP BY \
         y.li, y.k UNION ALL SELECT y.li, NULL, 1, count(*) FROM $p AS y WHERE $c(y.) GROUP BY \
         y.li UNION ALL SELECT NULL, y.k, 2, count(*) FROM $p AS y WHERE $c(y.) GROUP BY y.k UNION \
         ALL SELECT NULL, NULL, 3, count(*) FROM $p AS y WHERE $c(y.)",
        &[
            (
                "CUBE by a list",
                "SELECT y.li AS c0, y.k AS c1, CAST(grouping(y.li) * 2 + grouping(y.k) AS BIGINT) \
                 AS c2, count(*) AS c3 FROM $p AS y WHERE $c(y.) GROUP BY CUBE (y.li, y.k)",
            ),
            (
                "GROUPING SETS by a list",
                "SELECT y.li AS c0, y.k AS c1, CAST(grouping_id(y.li, y.k) AS BIGINT) AS c2, \
                 count(*) AS c3 FROM $p AS y WHERE $c(y.) GROUP BY GROUPING SETS ((), (y.k), (y.k, \
                 y.li), (y.li))",
            ),
            (
                "two ROLLUPs by a list",
                "SELECT w.li AS c0, w.k AS c1, CAST(grouping(w.li) * 2 + grouping(w.k) AS BIGINT) \
                 AS c2, count(*) AS c3 FROM (SELECT y.li, y.k FROM $p AS y WHERE $c(y.)) AS w \
                 GROUP BY ROLLUP (w.li), ROLLUP (w.k)",
            ),
        ],
    ),
    (
        &["b", "li", "i"],
        "SELECT y.b AS c0, array_agg(y.v ORDER BY y.id) AS c1, count(DISTINCT y.k) AS c2 FROM $p \
         AS y WHERE $c(y.) GROUP BY y.b UNION ALL SELECT NULL, array_agg(y.v ORDER BY y.id), \
         count(DISTINCT y.k) FROM $p AS y WHERE $c(y.)",
        &[
            (
                "ordered lists and DISTINCT of a ROLLUP",
                "SELECT y.b AS c0, array_agg(y.v ORDER BY y.id) AS c1, count(DISTINCT y.k) AS c2 \
                 FROM $p AS y WHERE $c(y.) GROUP BY ROLLUP (y.b)",
            ),
            (
                "ordered lists of GROUPING SETS of sorted rows",
                "SELECT w.b AS c0, ragged_nest_agg(w.v ORDER BY w.id) AS c1, count(DISTINCT w.k) \
                 AS c2 FROM (SELECT * FROM $p AS y WHERE $c(y.) ORDER BY y.k DESC) AS w GROUP BY \
                 GROUPING SETS ((w.b), ())",
            ),
        ],
    ),
    (
        &["i", "li"],
        "SELECT w.k AS c0, CASE WHEN w.m > 0 THEN coalesce(x.l, CAST([] AS BIGINT[])) END AS c1 \
         FROM (SELECT y.k, count(y.li) AS m FROM $p AS y GROUP BY y.k) AS w LEFT JOIN (SELECT u.k, \
         array_agg(u.e ORDER BY u.id, u.m) AS l FROM (SELECT y.k, y.id, unnest(y.li) AS e, \
         unnest(ragged_coords(y.li, -1)) AS m FROM $p AS y) AS u GROUP BY u.k) AS x ON x.k IS NOT \
         DISTINCT FROM w.k",
        &[
            (
                "lists of a group one after the other",
                "SELECT y.k AS c0, ragged_concat_agg(y.li ORDER BY y.id) AS c1 FROM $p AS y GROUP \
                 BY y.k",
            ),
            (
                "a flattened list of lists",
                "SELECT y.k AS c0, flatten(array_agg(y.li ORDER BY y.id) FILTER (WHERE y.li IS NOT \
                 NULL)) AS c1 FROM $p AS y GROUP BY y.k",
            ),
            (
                "lists of a group in the reverse order",
                "SELECT y.k AS c0, ragged_reverse(ragged_concat_agg(ragged_reverse(y.li) ORDER BY \
                 y.id DESC)) AS c1 FROM $p AS y GROUP BY y.k",
            ),
        ],
    ),
    (
        &["i", "li"],
        "SELECT w.k AS c0, CASE WHEN w.m > 0 THEN coalesce(x.l, CAST([] AS BIGINT[])) END AS c1 \
         FROM (SELECT y.k, count(y.li) AS m FROM $p AS y GROUP BY y.k) AS w LEFT JOIN (SELECT v.k, \
         array_agg(v.e ORDER BY v.m) AS l FROM (SELECT u.k, u.m, coalesce(sum(u.e), 0) AS e FROM \
         (SELECT y.k, y.id, unnest(y.li) AS e, unnest(ragged_coords(y.li, -1)) AS m FROM $p AS y) \
         AS u GROUP BY u.k, u.m) AS v GROUP BY v.k) AS x ON x.k IS NOT DISTINCT FROM w.k",
        &[
            (
                "sums of the positions of lists",
                "SELECT y.k AS c0, ragged_sum_agg(y.li) AS c1 FROM $p AS y GROUP BY y.k",
            ),
            (
                "sums of sums of the positions of lists",
                "SELECT w.k AS c0, ragged_sum_agg(w.l) AS c1 FROM (SELECT y.k, \
                 ragged_sum_agg(y.li) AS l FROM $p AS y GROUP BY y.k, y.b) AS w GROUP BY w.k",
            ),
        ],
    ),
    (
        &["i", "li"],
        "SELECT w.k AS c0, CASE WHEN w.m > 0 THEN coalesce(x.l, CAST([] AS BIGINT[])) END AS c1 \
         FROM (SELECT y.k, count(y.li) AS m FROM $p AS y GROUP BY y.k) AS w LEFT JOIN (SELECT v.k, \
         array_agg(v.e ORDER BY v.m) AS l FROM (SELECT u.k, u.m, max(u.e) AS e FROM (SELECT y.k, \
         y.id, unnest(y.li) AS e, unnest(ragged_coords(y.li, -1)) AS m FROM $p AS y) AS u GROUP BY \
         u.k, u.m) AS v GROUP BY v.k) AS x ON x.k IS NOT DISTINCT FROM w.k",
        &[
            (
                "extremes of the positions of lists",
                "SELECT y.k AS c0, ragged_max_agg(y.li) AS c1 FROM $p AS y GROUP BY y.k",
            ),
            (
                "least negative values of the positions of lists",
                "SELECT y.k AS c0, ragged_neg(ragged_min_agg(ragged_neg(y.li))) AS c1 FROM $p AS y \
                 GROUP BY y.k",
            ),
        ],
    ),
    (
        &["i", "li"],
        "SELECT w.k AS c0, array_agg(w.v ORDER BY w.v NULLS LAST) AS c1 FROM (SELECT DISTINCT y.k, \
         y.v FROM $p AS y WHERE $c(y.)) AS w GROUP BY w.k",
        &[
            (
                "a list of distinct values",
                "SELECT y.k AS c0, array_agg(DISTINCT y.v ORDER BY y.v NULLS LAST) AS c1 FROM $p \
                 AS y WHERE $c(y.) GROUP BY y.k",
            ),
            (
                "the keys of the groups of a list",
                "SELECT y.k AS c0, ragged_group_keys(array_agg(y.v)) AS c1 FROM $p AS y WHERE \
                 $c(y.) GROUP BY y.k",
            ),
        ],
    ),
    (
        &["i", "li", "li"],
        "SELECT w.k AS c0, w.l AS c1, x.l AS c2 FROM (SELECT y.k, y.li AS l, row_number() OVER \
         (PARTITION BY y.k ORDER BY y.li DESC NULLS LAST) AS m FROM $p AS y WHERE $c(y.)) AS w \
         JOIN (SELECT y.k, y.li AS l, row_number() OVER (PARTITION BY y.k ORDER BY y.li NULLS \
         LAST) AS m FROM $p AS y WHERE $c(y.)) AS x ON x.k IS NOT DISTINCT FROM w.k AND x.m = 1 \
         WHERE w.m = 1",
        &[
            (
                "extremes of lists",
                "SELECT y.k AS c0, max(y.li) AS c1, min(y.li) AS c2 FROM $p AS y WHERE $c(y.) \
                 GROUP BY y.k",
            ),
            (
                "extremes of lists are first values",
                "SELECT y.k AS c0, first_value(y.li ORDER BY y.li DESC NULLS LAST) AS c1, \
                 last_value(y.li ORDER BY y.li DESC NULLS FIRST) AS c2 FROM $p AS y WHERE $c(y.) \
                 GROUP BY y.k",
            ),
            (
                "extremes of lists are those of structs",
                "SELECT y.k AS c0, arg_max(y.li, y.li) AS c1, arg_min(y.li, y.li) AS c2 FROM $p AS \
                 y WHERE $c(y.) GROUP BY y.k",
            ),
        ],
    ),
    (
        &["i", "li", "li"],
        "SELECT v.k AS c0, array_agg(v.e ORDER BY v.m DESC, v.e) AS c1, array_agg(v.m ORDER BY v.m \
         DESC, v.e) AS c2 FROM (SELECT u.k, u.e, count(*) AS m FROM (SELECT y.k, y.id, \
         unnest(y.li) AS e, unnest(ragged_coords(y.li, -1)) AS m FROM $p AS y) AS u WHERE u.e IS \
         NOT NULL GROUP BY u.k, u.e) AS v GROUP BY v.k",
        &[
            (
                "a histogram of lists",
                "SELECT w.k AS c0, ragged_unzip(w.l, 'value') AS c1, ragged_cast(ragged_unzip(w.l, \
                 'count'), 'BIGINT') AS c2 FROM (SELECT y.k, ragged_histogram_agg(y.li) AS l FROM \
                 $p AS y GROUP BY y.k) AS w WHERE len(w.l) > 0",
            ),
            (
                "a histogram of a list of lists",
                "SELECT w.k AS c0, ragged_unzip(w.l, 'value') AS c1, ragged_cast(ragged_unzip(w.l, \
                 'count'), 'BIGINT') AS c2 FROM (SELECT x.k, ragged_histogram_agg(x.l) AS l FROM \
                 (SELECT y.k, array_agg(y.li) AS l FROM $p AS y GROUP BY y.k, y.b) AS x GROUP BY \
                 x.k) AS w WHERE len(w.l) > 0",
            ),
        ],
    ),
];
