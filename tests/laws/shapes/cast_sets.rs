//! EXCEPT and INTERSECT of queries whose columns are casts.

use super::Shape;

pub(super) const CAST_SETS: &[Shape] = &[
    (
        &["s"],
        "SELECT w.c0 FROM (SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.)) AS w \
         WHERE NOT EXISTS (SELECT 1 FROM (SELECT CAST(z.v AS VARCHAR) AS c0 FROM $q AS z WHERE \
         $d(z.)) AS x WHERE x.c0 IS NOT DISTINCT FROM w.c0) GROUP BY w.c0",
        &[
            (
                "EXCEPT of casts to texts",
                "SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.) EXCEPT SELECT \
                 CAST(z.v AS VARCHAR) AS c0 FROM $q AS z WHERE $d(z.)",
            ),
            (
                "EXCEPT of casts to texts in FROM",
                "SELECT c0 FROM (SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.) \
                 EXCEPT SELECT c0 FROM (SELECT CAST(z.v AS VARCHAR) AS c0 FROM $q AS z WHERE \
                 $d(z.)))",
            ),
        ],
    ),
    (
        &["s"],
        "SELECT w.c0 FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM \
         (SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.)) AS x) AS w WHERE EXISTS \
         (SELECT 1 FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM (SELECT \
         CAST(z.v AS VARCHAR) AS c0 FROM $q AS z WHERE $d(z.)) AS x) AS u WHERE u.c0 IS NOT \
         DISTINCT FROM w.c0 AND u.cnt = w.cnt)",
        &[
            (
                "INTERSECT ALL of casts to texts",
                "SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.) INTERSECT ALL \
                 SELECT CAST(z.v AS VARCHAR) AS c0 FROM $q AS z WHERE $d(z.)",
            ),
            (
                "INTERSECT ALL of casts to texts turned round",
                "SELECT CAST(z.v AS VARCHAR) AS c0 FROM $q AS z WHERE $d(z.) INTERSECT ALL \
                 SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.)",
            ),
        ],
    ),
    (
        &["s"],
        "SELECT w.c0 FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM \
         (SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.)) AS x) AS w WHERE NOT \
         EXISTS (SELECT 1 FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM \
         (SELECT CAST(z.v AS VARCHAR) AS c0 FROM $q AS z WHERE $d(z.)) AS x) AS u WHERE u.c0 \
         IS NOT DISTINCT FROM w.c0 AND u.cnt = w.cnt)",
        &[
            (
                "EXCEPT ALL of casts to texts",
                "SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.) EXCEPT ALL SELECT \
                 CAST(z.v AS VARCHAR) AS c0 FROM $q AS z WHERE $d(z.)",
            ),
            (
                "EXCEPT ALL of casts to texts of queries",
                "SELECT * FROM (SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.)) \
                 EXCEPT ALL SELECT * FROM (SELECT CAST(z.v AS VARCHAR) AS c0 FROM $q AS z \
                 WHERE $d(z.))",
            ),
        ],
    ),
    (
        &["s"],
        "SELECT w.c0 FROM (SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.)) AS w \
         WHERE EXISTS (SELECT 1 FROM (SELECT CAST(z.v AS VARCHAR) AS c0 FROM $q AS z WHERE \
         $d(z.)) AS x WHERE x.c0 IS NOT DISTINCT FROM w.c0) GROUP BY w.c0",
        &[(
            "INTERSECT of casts to texts",
            "SELECT CAST(y.k AS VARCHAR) AS c0 FROM $p AS y WHERE $c(y.) INTERSECT SELECT \
                 CAST(z.v AS VARCHAR) AS c0 FROM $q AS z WHERE $d(z.)",
        )],
    ),
    (
        &["i"],
        "SELECT w.c0 FROM (SELECT y.k AS c0 FROM $p AS y WHERE $c(y.)) AS w WHERE NOT EXISTS \
         (SELECT 1 FROM (SELECT CAST(z.v AS SMALLINT) AS c0 FROM $q AS z WHERE $d(z.)) AS x \
         WHERE x.c0 IS NOT DISTINCT FROM w.c0) GROUP BY w.c0",
        &[
            (
                "EXCEPT of casts to numbers",
                "SELECT y.k AS c0 FROM $p AS y WHERE $c(y.) EXCEPT SELECT CAST(z.v AS \
                 SMALLINT) AS c0 FROM $q AS z WHERE $d(z.)",
            ),
            (
                "EXCEPT of casts to numbers in FROM",
                "SELECT c0 FROM (SELECT y.k AS c0 FROM $p AS y WHERE $c(y.) EXCEPT SELECT c0 \
                 FROM (SELECT CAST(z.v AS SMALLINT) AS c0 FROM $q AS z WHERE $d(z.)))",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT w.c0 FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM \
         (SELECT y.k AS c0 FROM $p AS y WHERE $c(y.)) AS x) AS w WHERE EXISTS (SELECT 1 FROM \
         (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM (SELECT CAST(z.v AS \
         SMALLINT) AS c0 FROM $q AS z WHERE $d(z.)) AS x) AS u WHERE u.c0 IS NOT DISTINCT FROM \
         w.c0 AND u.cnt = w.cnt)",
        &[
            (
                "INTERSECT ALL of casts to numbers",
                "SELECT y.k AS c0 FROM $p AS y WHERE $c(y.) INTERSECT ALL SELECT CAST(z.v AS \
                 SMALLINT) AS c0 FROM $q AS z WHERE $d(z.)",
            ),
            (
                "INTERSECT ALL of casts to numbers turned round",
                "SELECT CAST(z.v AS SMALLINT) AS c0 FROM $q AS z WHERE $d(z.) INTERSECT ALL \
                 SELECT y.k AS c0 FROM $p AS y WHERE $c(y.)",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT w.c0 FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM \
         (SELECT y.k AS c0 FROM $p AS y WHERE $c(y.)) AS x) AS w WHERE NOT EXISTS (SELECT 1 \
         FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM (SELECT CAST(z.v \
         AS SMALLINT) AS c0 FROM $q AS z WHERE $d(z.)) AS x) AS u WHERE u.c0 IS NOT DISTINCT \
         FROM w.c0 AND u.cnt = w.cnt)",
        &[
            (
                "EXCEPT ALL of casts to numbers",
                "SELECT y.k AS c0 FROM $p AS y WHERE $c(y.) EXCEPT ALL SELECT CAST(z.v AS \
                 SMALLINT) AS c0 FROM $q AS z WHERE $d(z.)",
            ),
            (
                "EXCEPT ALL of casts to numbers of queries",
                "SELECT * FROM (SELECT y.k AS c0 FROM $p AS y WHERE $c(y.)) EXCEPT ALL SELECT \
                 * FROM (SELECT CAST(z.v AS SMALLINT) AS c0 FROM $q AS z WHERE $d(z.))",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT w.c0 FROM (SELECT y.k AS c0 FROM $p AS y WHERE $c(y.)) AS w WHERE EXISTS \
         (SELECT 1 FROM (SELECT CAST(z.v AS SMALLINT) AS c0 FROM $q AS z WHERE $d(z.)) AS x \
         WHERE x.c0 IS NOT DISTINCT FROM w.c0) GROUP BY w.c0",
        &[(
            "INTERSECT of casts to numbers",
            "SELECT y.k AS c0 FROM $p AS y WHERE $c(y.) INTERSECT SELECT CAST(z.v AS \
                 SMALLINT) AS c0 FROM $q AS z WHERE $d(z.)",
        )],
    ),
    (
        &["i"],
        "SELECT w.c0 FROM (SELECT CAST(y.v AS INTEGER) AS c0 FROM $p AS y WHERE $c(y.)) AS w \
         WHERE NOT EXISTS (SELECT 1 FROM (SELECT z.k AS c0 FROM $q AS z WHERE $d(z.)) AS x \
         WHERE x.c0 IS NOT DISTINCT FROM w.c0) GROUP BY w.c0",
        &[
            (
                "EXCEPT of casts to integers",
                "SELECT CAST(y.v AS INTEGER) AS c0 FROM $p AS y WHERE $c(y.) EXCEPT SELECT z.k \
                 AS c0 FROM $q AS z WHERE $d(z.)",
            ),
            (
                "EXCEPT of casts to integers in FROM",
                "SELECT c0 FROM (SELECT CAST(y.v AS INTEGER) AS c0 FROM $p AS y WHERE $c(y.) \
                 EXCEPT SELECT c0 FROM (SELECT z.k AS c0 FROM $q AS z WHERE $d(z.)))",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT w.c0 FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM \
         (SELECT CAST(y.v AS INTEGER) AS c0 FROM $p AS y WHERE $c(y.)) AS x) AS w WHERE EXISTS \
         (SELECT 1 FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM (SELECT \
         z.k AS c0 FROM $q AS z WHERE $d(z.)) AS x) AS u WHERE u.c0 IS NOT DISTINCT FROM w.c0 \
         AND u.cnt = w.cnt)",
        &[
            (
                "INTERSECT ALL of casts to integers",
                "SELECT CAST(y.v AS INTEGER) AS c0 FROM $p AS y WHERE $c(y.) INTERSECT ALL \
                 SELECT z.k AS c0 FROM $q AS z WHERE $d(z.)",
            ),
            (
                "INTERSECT ALL of casts to integers turned round",
                "SELECT z.k AS c0 FROM $q AS z WHERE $d(z.) INTERSECT ALL SELECT CAST(y.v AS \
                 INTEGER) AS c0 FROM $p AS y WHERE $c(y.)",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT w.c0 FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM \
         (SELECT CAST(y.v AS INTEGER) AS c0 FROM $p AS y WHERE $c(y.)) AS x) AS w WHERE NOT \
         EXISTS (SELECT 1 FROM (SELECT x.c0, row_number() OVER (PARTITION BY x.c0) AS cnt FROM \
         (SELECT z.k AS c0 FROM $q AS z WHERE $d(z.)) AS x) AS u WHERE u.c0 IS NOT DISTINCT \
         FROM w.c0 AND u.cnt = w.cnt)",
        &[
            (
                "EXCEPT ALL of casts to integers",
                "SELECT CAST(y.v AS INTEGER) AS c0 FROM $p AS y WHERE $c(y.) EXCEPT ALL SELECT \
                 z.k AS c0 FROM $q AS z WHERE $d(z.)",
            ),
            (
                "EXCEPT ALL of casts to integers of queries",
                "SELECT * FROM (SELECT CAST(y.v AS INTEGER) AS c0 FROM $p AS y WHERE $c(y.)) \
                 EXCEPT ALL SELECT * FROM (SELECT z.k AS c0 FROM $q AS z WHERE $d(z.))",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT w.c0 FROM (SELECT CAST(y.v AS INTEGER) AS c0 FROM $p AS y WHERE $c(y.)) AS w \
         WHERE EXISTS (SELECT 1 FROM (SELECT z.k AS c0 FROM $q AS z WHERE $d(z.)) AS x WHERE \
         x.c0 IS NOT DISTINCT FROM w.c0) GROUP BY w.c0",
        &[(
            "INTERSECT of casts to integers",
            "SELECT CAST(y.v AS INTEGER) AS c0 FROM $p AS y WHERE $c(y.) INTERSECT SELECT \
                 z.k AS c0 FROM $q AS z WHERE $d(z.)",
        )],
    ),
];
