//! Recursive queries that append rows to lists, and that read lists element by element.

use super::Shape;

pub(super) const RECURSIVE_LISTS: &[Shape] = &[
    (
        &["i", "li"],
        "WITH w AS (SELECT y.id, [CAST(y.k AS BIGINT)] AS l FROM $p AS y WHERE $c(y.)), x AS \
         (SELECT w.id, list_append(w.l, CAST(z.v AS BIGINT)) AS l FROM w JOIN $q AS z ON z.id = \
         w.id + 1), u AS (SELECT x.id, list_append(x.l, CAST(z.v AS BIGINT)) AS l FROM x JOIN $q \
         AS z ON z.id = x.id + 2) SELECT id AS c0, l AS c1 FROM w UNION ALL SELECT id, l FROM x \
         UNION ALL SELECT id, l FROM u",
        &[
            (
                "lists of paths",
                "WITH RECURSIVE r AS (SELECT y.id, [CAST(y.k AS BIGINT)] AS l FROM $p AS y WHERE \
                 $c(y.) UNION ALL SELECT r.id, list_append(r.l, CAST(z.v AS BIGINT)) FROM r JOIN \
                 $q AS z ON z.id = r.id + len(r.l) WHERE len(r.l) < 3) SELECT id AS c0, l AS c1 \
                 FROM r",
            ),
            (
                "distinct lists of paths",
                "WITH RECURSIVE r AS (SELECT y.id, [CAST(y.k AS BIGINT)] AS l FROM $p AS y WHERE \
                 $c(y.) UNION SELECT r.id, r.l || CAST(z.v AS BIGINT) FROM $q AS z, r WHERE z.id - \
                 len(r.l) = r.id AND len(r.l) < 3) SELECT id AS c0, l AS c1 FROM r",
            ),
            (
                "lists of structs of paths",
                "WITH RECURSIVE r AS (SELECT y.id, [named_struct('a', CAST(y.k AS BIGINT))] AS l \
                 FROM $p AS y WHERE $c(y.) UNION ALL SELECT r.id, list_append(r.l, \
                 named_struct('a', CAST(z.v AS BIGINT))) FROM r JOIN $q AS z ON z.id = r.id + \
                 len(r.l) WHERE len(r.l) < 3) SELECT id AS c0, ragged_unzip(l, 'a') AS c1 FROM r",
            ),
        ],
    ),
    (
        &["i", "i", "li"],
        "SELECT y.id AS c0, coalesce(ragged_sum(y.li), 0) AS c1, CASE WHEN y.li IS NULL THEN \
         CAST([] AS BIGINT[]) ELSE ragged_reverse(y.li) END AS c2 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "a list consumed from its start",
                "WITH RECURSIVE r AS (SELECT y.id, y.li AS l, 0 AS a, CAST([] AS BIGINT[]) AS o \
                 FROM $p AS y WHERE $c(y.) UNION ALL SELECT r.id, (r.l)[2:], r.a + \
                 coalesce(r.l[1], 0), list_prepend(r.l[1], r.o) FROM r WHERE len(r.l) > 0) SELECT \
                 id AS c0, a AS c1, o AS c2 FROM r WHERE coalesce(len(l), 0) = 0",
            ),
            (
                "a list consumed from its end",
                "WITH RECURSIVE r AS (SELECT y.id, y.li AS l, 0 AS a, CAST([] AS BIGINT[]) AS o \
                 FROM $p AS y WHERE $c(y.) UNION ALL SELECT r.id, ragged_slice(r.l, 0, -1), r.a + \
                 coalesce(r.l[-1], 0), list_append(r.o, r.l[-1]) FROM r WHERE len(r.l) > 0) SELECT \
                 id AS c0, a AS c1, o AS c2 FROM r WHERE coalesce(len(l), 0) = 0",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, unnest(y.li) AS c1 FROM $p AS y WHERE $c(y.)",
        &[(
            "the elements of a list in steps",
            "WITH RECURSIVE r AS (SELECT y.id, y.li AS l, 1 AS m FROM $p AS y WHERE $c(y.) UNION \
             ALL SELECT r.id, r.l, r.m + 1 FROM r WHERE r.m < len(r.l)) SELECT id AS c0, l[m] AS \
             c1 FROM r WHERE m <= len(l)",
        )],
    ),
];
