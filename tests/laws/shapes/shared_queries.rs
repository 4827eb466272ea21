//! Queries that WITH defines and the statement reads several times.

use super::Shape;

pub(super) const SHARED: &[Shape] = &[
    (
        &["i", "i"],
        "SELECT y.id AS c0, z.cnt AS c1 FROM (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) \
         AS y JOIN (SELECT x.k AS h, count(*) AS cnt FROM (SELECT u.id, u.k, u.v FROM $p AS u \
         WHERE $c(u.)) AS x GROUP BY x.k) AS z ON z.h = y.k WHERE y.v IN (SELECT w.k FROM \
         (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) AS w)",
        &[
            (
                "WITH, read thrice",
                "WITH r AS (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) SELECT y.id AS \
                 c0, z.cnt AS c1 FROM r AS y JOIN (SELECT x.k AS h, count(*) AS cnt FROM r AS x \
                 GROUP BY x.k) AS z ON z.h = y.k WHERE y.v IN (SELECT w.k FROM r AS w)",
            ),
            (
                "WITH MATERIALIZED, read thrice",
                "WITH r AS MATERIALIZED (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) \
                 SELECT y.id AS c0, z.cnt AS c1 FROM r AS y JOIN (SELECT x.k AS h, count(*) AS cnt \
                 FROM r AS x GROUP BY x.k) AS z ON z.h = y.k WHERE y.v IN (SELECT w.k FROM r \
                 AS w)",
            ),
            (
                "WITH NOT MATERIALIZED, read thrice",
                "WITH r AS NOT MATERIALIZED (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) \
                 SELECT y.id AS c0, z.cnt AS c1 FROM r AS y JOIN (SELECT x.k AS h, count(*) AS cnt \
                 FROM r AS x GROUP BY x.k) AS z ON z.h = y.k WHERE y.v IN (SELECT w.k FROM r \
                 AS w)",
            ),
            (
                "WITH of the name of a table, read thrice",
                "WITH $t AS (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) SELECT y.id AS \
                 c0, z.cnt AS c1 FROM $t AS y JOIN (SELECT x.k AS h, count(*) AS cnt FROM $t AS x \
                 GROUP BY x.k) AS z ON z.h = y.k WHERE y.v IN (SELECT w.k FROM $t AS w)",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.k AS c0, y.v AS c1 FROM (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) AS \
         y UNION ALL SELECT max(z.v) AS c0, count(*) AS c1 FROM (SELECT u.id, u.k, u.v FROM $p \
         AS u WHERE $c(u.)) AS z",
        &[
            (
                "WITH, read twice",
                "WITH r AS (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) SELECT y.k AS c0, \
                 y.v AS c1 FROM r AS y UNION ALL SELECT max(z.v) AS c0, count(*) AS c1 FROM r \
                 AS z",
            ),
            (
                "WITH MATERIALIZED, read twice",
                "WITH r AS MATERIALIZED (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) \
                 SELECT y.k AS c0, y.v AS c1 FROM r AS y UNION ALL SELECT max(z.v) AS c0, \
                 count(*) AS c1 FROM r AS z",
            ),
            (
                "WITH NOT MATERIALIZED, read twice",
                "WITH r AS NOT MATERIALIZED (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) \
                 SELECT y.k AS c0, y.v AS c1 FROM r AS y UNION ALL SELECT max(z.v) AS c0, \
                 count(*) AS c1 FROM r AS z",
            ),
            (
                "WITH of the name of a table, read twice",
                "WITH $t AS (SELECT u.id, u.k, u.v FROM $p AS u WHERE $c(u.)) SELECT y.k AS \
                 c0, y.v AS c1 FROM $t AS y UNION ALL SELECT max(z.v) AS c0, count(*) AS c1 \
                 FROM $t AS z",
            ),
        ],
    ),
    (
        &["i"],
        "SELECT y.id AS c0 FROM $p AS y WHERE y.k IN (SELECT z.v FROM $q AS z WHERE $c(z.))",
        &[
            (
                "WITH within a query hides the outer one",
                "WITH r AS (SELECT * FROM $p AS y) SELECT id AS c0 FROM r WHERE k IN (WITH r \
                 AS (SELECT * FROM $q AS z WHERE $c()) SELECT v FROM r)",
            ),
            (
                "WITH of the name of a table within a query",
                "SELECT y.id AS c0 FROM $p AS y WHERE y.k IN (WITH $t AS (SELECT * FROM $q AS \
                 z WHERE $c()) SELECT v FROM $t)",
            ),
            (
                "WITH in EXISTS",
                "WITH r AS (SELECT v, b, k FROM $q AS z WHERE $c()) SELECT id AS c0 FROM $p AS \
                 y WHERE EXISTS (SELECT 1 FROM r WHERE v = y.k) AND (SELECT count(*) FROM r) > \
                 0",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT y.id AS c0, z.v AS c1 FROM $p AS y JOIN $p AS z ON y.id = z.id WHERE $c(y.) \
         AND $d(z.)",
        &[
            (
                "WITH of WITH",
                "WITH r AS (SELECT * FROM $p AS y WHERE $c()), s AS (SELECT id, v FROM r WHERE \
                 $d()) SELECT r.id AS c0, s.v AS c1 FROM r JOIN s ON r.id = s.id",
            ),
            (
                "WITH of WITH merges a key",
                "WITH r AS MATERIALIZED (SELECT * FROM $p AS y WHERE $c()), s AS (SELECT id, v \
                 AS m FROM r WHERE $d()) SELECT id AS c0, m AS c1 FROM r JOIN s USING (id) \
                 WHERE id IN (SELECT id FROM s)",
            ),
        ],
    ),
];
