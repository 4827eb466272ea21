//! Lists of the Arrow type ListView. The equivalent queries use plain lists.

use super::Shape;

pub(super) const LIST_VIEWS: &[Shape] = &[
    (
        &["i", "i"],
        "SELECT y.id AS c0, len(y.li) AS c1 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "the length of a list view",
                "SELECT y.id AS c0, CAST(len(arrow_cast(y.li, 'ListView(Int64)')) AS BIGINT) AS \
                 c1 FROM $p AS y WHERE $c(y.)",
            ),
            (
                "the length of a large list view",
                "SELECT w.id AS c0, CAST(array_length(w.l) AS BIGINT) AS c1 FROM (SELECT y.id, \
                 arrow_cast(y.li, 'LargeListView(Int64)') AS l FROM $p AS y WHERE $c(y.)) AS w",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT y.id AS c0, y.li[1] AS c1, y.li[-1] AS c2 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "elements of a list view",
                "SELECT w.id AS c0, w.l[1] AS c1, w.l[-1] AS c2 FROM (SELECT y.id, \
                 arrow_cast(y.li, 'ListView(Int64)') AS l FROM $p AS y WHERE $c(y.)) AS w",
            ),
            (
                "elements of a large list view",
                "SELECT w.id AS c0, w.l[1] AS c1, w.l[-1] AS c2 FROM (SELECT y.id, \
                 arrow_cast(y.li, 'LargeListView(Int64)') AS l FROM $p AS y WHERE $c(y.)) AS w",
            ),
        ],
    ),
    (
        &["i", "li"],
        "SELECT y.id AS c0, y.li AS c1 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "a list of a view of a list",
                "SELECT y.id AS c0, arrow_cast(arrow_cast(y.li, 'ListView(Int64)'), \
                 'List(Int64)') AS c1 FROM $p AS y WHERE $c(y.)",
            ),
            (
                "a list view of CASE",
                "SELECT y.id AS c0, arrow_cast(CASE WHEN $d(y.) THEN arrow_cast(y.li, \
                 'LargeListView(Int64)') ELSE arrow_cast(arrow_cast(y.li, 'ListView(Int64)'), \
                 'LargeListView(Int64)') END, 'List(Int64)') AS c1 FROM $p AS y WHERE $c(y.)",
            ),
            (
                "a list view of UNION ALL",
                "SELECT w.id AS c0, arrow_cast(w.l, 'List(Int64)') AS c1 FROM (SELECT y.id, \
                 arrow_cast(y.li, 'ListView(Int64)') AS l FROM $p AS y WHERE $c(y.) UNION ALL \
                 SELECT z.id, arrow_cast(z.li, 'ListView(Int64)') AS l FROM $q AS z WHERE $e) \
                 AS w",
            ),
        ],
    ),
    (
        &["li", "i"],
        "SELECT y.li AS c0, count(*) AS c1 FROM $p AS y WHERE $c(y.) GROUP BY y.li",
        &[
            (
                "groups of list views",
                "SELECT arrow_cast(w.l, 'List(Int64)') AS c0, count(*) AS c1 FROM (SELECT \
                 arrow_cast(y.li, 'ListView(Int64)') AS l FROM $p AS y WHERE $c(y.)) AS w GROUP \
                 BY w.l",
            ),
            (
                "groups of large list views",
                "SELECT arrow_cast(w.l, 'List(Int64)') AS c0, count(*) AS c1 FROM (SELECT \
                 arrow_cast(y.li, 'LargeListView(Int64)') AS l FROM $p AS y WHERE $c(y.)) AS w \
                 GROUP BY w.l",
            ),
        ],
    ),
    (
        &["li"],
        "SELECT DISTINCT y.li AS c0 FROM $p AS y WHERE $c(y.)",
        &[(
            "distinct list views",
            "SELECT arrow_cast(w.l, 'List(Int64)') AS c0 FROM (SELECT DISTINCT arrow_cast(y.li, \
             'LargeListView(Int64)') AS l FROM $p AS y WHERE $c(y.)) AS w",
        )],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, unnest(y.li) AS c1 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "rows of a list view",
                "SELECT y.id AS c0, unnest(arrow_cast(y.li, 'ListView(Int64)')) AS c1 FROM $p \
                 AS y WHERE $c(y.)",
            ),
            (
                "rows of a large list view",
                "SELECT w.id AS c0, unnest(w.l) AS c1 FROM (SELECT y.id, arrow_cast(y.li, \
                 'LargeListView(Int64)') AS l FROM $p AS y WHERE $c(y.)) AS w",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, z.id AS c1 FROM $p AS y JOIN $q AS z ON y.li = z.li AND $c(y.)",
        &[
            (
                "a join by list views",
                "SELECT y.id AS c0, z.id AS c1 FROM $p AS y JOIN $q AS z ON arrow_cast(y.li, \
                 'ListView(Int64)') = arrow_cast(z.li, 'ListView(Int64)') AND $c(y.)",
            ),
            (
                "a condition on list views",
                "SELECT y.id AS c0, z.id AS c1 FROM $p AS y CROSS JOIN $q AS z WHERE $c(y.) AND \
                 arrow_cast(z.li, 'LargeListView(Int64)') = arrow_cast(y.li, \
                 'LargeListView(Int64)')",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT y.id AS c0 FROM $p AS y WHERE $c(y.) AND y.li IN (SELECT z.li FROM $q AS z)",
        &[(
            "a list view among list views",
            "SELECT y.id AS c0 FROM $p AS y WHERE $c(y.) AND arrow_cast(y.li, \
             'ListView(Int64)') IN (SELECT arrow_cast(z.li, 'ListView(Int64)') FROM $q AS z)",
        )],
    ),
    (
        &["i", "b", "i"],
        "SELECT y.id AS c0, list_contains(y.li, $i(y.)) AS c1, CAST(array_position(y.li, 1) AS \
         BIGINT) AS c2 FROM $p AS y",
        &[(
            "a search in a list view",
            "SELECT y.id AS c0, list_contains(arrow_cast(y.li, 'ListView(Int64)'), $i(y.)) AS \
             c1, CAST(array_position(arrow_cast(y.li, 'LargeListView(Int64)'), 1) AS BIGINT) AS \
             c2 FROM $p AS y",
        )],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, CAST(rank() OVER (ORDER BY y.li) AS BIGINT) AS c1 FROM $p AS y \
         WHERE $c(y.)",
        &[(
            "list views have the order of lists",
            "SELECT y.id AS c0, CAST(rank() OVER (ORDER BY arrow_cast(y.li, 'ListView(Int64)')) \
             AS BIGINT) AS c1 FROM $p AS y WHERE $c(y.)",
        )],
    ),
    (
        &["i", "li", "li"],
        "SELECT y.id AS c0, list_sort(y.li) AS c1, list_transform(y.li, w -> w + 1) AS c2 FROM \
         $p AS y WHERE $c(y.)",
        &[(
            "functions of list views",
            "SELECT y.id AS c0, list_sort(arrow_cast(y.li, 'ListView(Int64)')) AS c1, \
             list_transform(arrow_cast(y.li, 'ListView(Int64)'), w -> w + 1) AS c2 FROM $p AS y \
             WHERE $c(y.)",
        )],
    ),
];
