//! Aggregates with FILTER over the results of aggregates, and with DISTINCT over constants.

use super::Shape;

pub(super) const FILTERED: &[Shape] = &[
    (
        &["i"],
        "SELECT count(CASE WHEN w.cnt > 1 THEN 1 END) AS c0 FROM (SELECT count(*) AS cnt FROM $p \
         AS y WHERE $c(y.)) AS w",
        &[
            (
                "count(*) FILTER over one count",
                "SELECT count(*) FILTER (WHERE cnt > 1) AS c0 FROM (SELECT count(*) AS cnt FROM $p \
                 AS y WHERE $c())",
            ),
            (
                "count(*) of a condition on a count",
                "SELECT count(*) AS c0 FROM (SELECT count(*) AS cnt FROM $p AS y WHERE $c()) AS \
                 w WHERE cnt > 1",
            ),
            (
                "count(*) FILTER over WITH",
                "WITH w AS (SELECT count(*) AS cnt FROM $p AS y WHERE $c()) SELECT count(*) \
                 FILTER (WHERE w.cnt > 1) AS c0 FROM w",
            ),
        ],
    ),
    (
        &["i", "i"],
        "SELECT count(CASE WHEN w.cnt > 1 THEN 1 END) AS c0, max(CASE WHEN w.m > 0 THEN w.m END) \
         AS c1 FROM (SELECT y.k, count(*) AS cnt, max(y.v) AS m FROM $p AS y WHERE $c(y.) GROUP \
         BY y.k) AS w",
        &[
            (
                "FILTER over groups",
                "SELECT count(*) FILTER (WHERE cnt > 1) AS c0, max(m) FILTER (WHERE m > 0) AS c1 \
                 FROM (SELECT k, count(*) AS cnt, max(v) AS m FROM $p AS y WHERE $c() GROUP BY \
                 k) AS w",
            ),
            (
                "FILTER over groups of a query",
                "SELECT count(cnt) FILTER (WHERE cnt > 1) AS c0, max(m) FILTER (WHERE m > 0) AS c1 \
                 FROM (SELECT count(*) AS cnt, max(v) AS m FROM (SELECT k, v FROM $p AS y WHERE \
                 $c()) GROUP BY k)",
            ),
        ],
    ),
    (
        &["i", "i", "i"],
        "SELECT w.m AS c0, count(CASE WHEN w.cnt > 1 THEN w.k END) AS c1, count(*) AS c2 FROM \
         (SELECT y.k, max(y.v) AS m, count(*) AS cnt FROM $p AS y GROUP BY y.k) AS w GROUP BY \
         w.m",
        &[(
            "groups of groups",
            "SELECT m AS c0, count(k) FILTER (WHERE cnt > 1) AS c1, count(*) FILTER (WHERE \
                 true) AS c2 FROM (SELECT k, max(v) AS m, count(*) AS cnt FROM $p AS y GROUP BY \
                 k) GROUP BY m",
        )],
    ),
    (
        &["i", "i"],
        "SELECT count(CASE WHEN $c(w.) THEN 1 END) AS c0, count(DISTINCT CASE WHEN $d(w.) THEN \
         $i(w.) END) AS c1 FROM (SELECT * FROM $p AS y ORDER BY y.id LIMIT $n) AS w",
        &[(
            "FILTER over LIMIT",
            "SELECT count(*) FILTER (WHERE $c()) AS c0, count(DISTINCT $i()) FILTER (WHERE \
                 $d()) AS c1 FROM (SELECT * FROM $p AS y ORDER BY id LIMIT $n) AS w",
        )],
    ),
    (
        &["i"],
        "SELECT count(CASE WHEN w.cnt > 0 THEN 1 END) AS c0 FROM (SELECT count(*) AS cnt FROM $p \
         AS y UNION ALL SELECT count(*) AS cnt FROM $q AS z WHERE $c(z.)) AS w",
        &[(
            "FILTER over a union of counts",
            "SELECT count(*) FILTER (WHERE cnt > 0) AS c0 FROM (SELECT count(*) AS cnt FROM $p \
                 AS y UNION ALL SELECT count(*) FROM $q AS z WHERE $c())",
        )],
    ),
    (
        &["i", "i"],
        "SELECT 0 AS c0, count(*) AS c1 FROM $p AS y WHERE $c(y.)",
        &[(
            "DISTINCT over a constant NULL",
            "SELECT count(DISTINCT w.n) AS c0, count(*) AS c1 FROM (SELECT CAST(NULL AS BIGINT) \
             AS n FROM $p AS y WHERE $c(y.)) AS w",
        )],
    ),
    (
        &["i", "i"],
        "SELECT count(*) AS c0, count(*) AS c1 FROM $p AS y WHERE $e",
        &[(
            "DISTINCT over a product with no rows",
            "SELECT count(DISTINCT w.n) AS c0, count(*) AS c1 FROM (SELECT 5 AS n FROM $p AS y) \
             AS w CROSS JOIN (SELECT z.id FROM $q AS z WHERE $e) AS x",
        )],
    ),
];
