//! UNION ALL of queries of which some return no rows.

use super::Shape;

pub(super) const BRANCHES: &[Shape] = &[
    (
        &["i", "i"],
        "SELECT y.k AS c0, y.v AS c1 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "a branch without rows is last",
                "SELECT k AS c0, v AS c1 FROM (SELECT v, k, b FROM $p AS y UNION ALL SELECT v, \
                 k, b FROM $q AS z WHERE $e) AS w WHERE $c()",
            ),
            (
                "a branch without rows is first",
                "SELECT k AS c0, v AS c1 FROM (SELECT k AS v, v AS k, b FROM $q AS z WHERE $e \
                 UNION ALL SELECT y.v, y.k, y.b FROM $p AS y) AS w WHERE $c()",
            ),
            (
                "a branch of LIMIT 0",
                "SELECT k AS c0, v AS c1 FROM (SELECT b, v, k FROM $p AS y UNION ALL (SELECT \
                 b, k, v FROM $q AS z LIMIT 0)) AS w WHERE $c()",
            ),
            (
                "branches without rows around one with rows",
                "SELECT k AS c0, v AS c1 FROM (SELECT k, v, b FROM $q AS z WHERE $e UNION ALL \
                 (SELECT k, v, b FROM $p AS y UNION ALL (SELECT v, k, b FROM $q AS x WHERE $e \
                 UNION ALL SELECT id, k, b FROM $q AS u LIMIT 0))) AS w WHERE $c()",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, z.v AS c1 FROM $p AS y $h $q AS z ON y.k = z.k",
        &[
            (
                "a join of branches without rows",
                "SELECT y.id AS c0, z.v AS c1 FROM (SELECT k, id FROM $p AS w UNION ALL SELECT \
                 v, k FROM $q AS w WHERE $e) AS y $h (SELECT id AS k, k AS v FROM $p AS u \
                 WHERE $e UNION ALL SELECT k, v FROM $q AS u) AS z ON y.k = z.k",
            ),
            (
                "a branch of a join without rows",
                "SELECT y.id AS c0, z.v AS c1 FROM $p AS y $h $q AS z ON y.k = z.k UNION ALL \
                 SELECT z.k, y.id FROM $p AS y $h $q AS z ON y.v = z.v WHERE $e",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT count(*) AS c0, CAST(sum(y.v) AS BIGINT) AS c1 FROM $p AS y WHERE $c(y.)",
        &[
            (
                "an aggregate over a branch without rows",
                "SELECT count(*) AS c0, CAST(sum(v) AS BIGINT) AS c1 FROM (SELECT k, b, v FROM \
                 $p AS y UNION ALL SELECT v, b, k FROM $q AS z WHERE $e) AS w WHERE $c()",
            ),
            (
                "an aggregate of a branch without rows",
                "SELECT c0, c1 FROM (SELECT id AS c1, k AS c0 FROM $q AS z WHERE $e UNION ALL \
                 SELECT CAST(sum(v) AS BIGINT), count(*) FROM $p AS y WHERE $c()) AS w",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.k AS c0, y.v AS c1 FROM $p AS y WHERE $c(y.) UNION ALL SELECT z.v AS c0, z.k \
         AS c1 FROM $q AS z",
        &[
            (
                "nested UNION ALL",
                "SELECT c0, c1 FROM (SELECT c1, c0 FROM (SELECT v AS c1, k AS c0 FROM $p AS y \
                 WHERE $c() UNION ALL SELECT k, v FROM $q AS z) AS x UNION ALL SELECT id, k \
                 FROM $q AS w WHERE $e) AS u",
            ),
            (
                "nested UNION ALL turned round",
                "SELECT c1 AS c0, c0 AS c1 FROM (SELECT id AS c0, id AS c1 FROM $p AS w WHERE \
                 $e UNION ALL (SELECT k, v FROM $q AS z UNION ALL SELECT v, k FROM $p AS y \
                 WHERE $c())) AS u",
            ),
            (
                "WITH of UNION ALL",
                "WITH w AS (SELECT v AS m, k AS cnt, true AS o FROM $q AS z UNION ALL SELECT k, \
                 v, false FROM $p AS y WHERE $c() UNION ALL SELECT id, id, true FROM $q AS x \
                 WHERE $e) SELECT m AS c0, cnt AS c1 FROM w WHERE o UNION ALL SELECT m, cnt FROM w \
                 WHERE NOT o",
            ),
        ],
    ),
];
