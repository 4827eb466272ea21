//! Conditions with a subquery that is correlated with the outer relation `$o`.

use super::Ways;

pub(super) const OUTER_TESTS: &[(&str, Ways)] = &[
    (
        "EXISTS (SELECT 1 FROM $q AS z JOIN $p AS x ON z.k = x.k WHERE z.k = $o.v AND $c(z.))",
        &[
            (
                "USING in EXISTS",
                "EXISTS (SELECT 1 FROM $q AS z JOIN $p AS x USING (k) WHERE k = $o.v AND \
                 $c(z.))",
            ),
            (
                "NATURAL in EXISTS",
                "EXISTS (SELECT 1 FROM (SELECT k, v AS m FROM $q AS z WHERE $c()) AS z NATURAL \
                 JOIN (SELECT k, id AS cnt FROM $p AS x) AS x WHERE k = $o.v)",
            ),
            ("USING in IN", "$o.v IN (SELECT k FROM $q AS z JOIN $p AS x USING (k) WHERE $c(z.))"),
            (
                "USING in a count",
                "(SELECT count(*) FROM $q AS z JOIN $p AS x USING (k) WHERE k = $o.v AND \
                 $c(z.)) > 0",
            ),
        ],
    ),
    (
        "$o.v IN (SELECT coalesce(z.k, x.k) FROM $q AS z $h $p AS x ON z.k = x.k)",
        &[
            (
                "EXISTS of a merged key",
                "EXISTS (SELECT 1 FROM $q AS z $h $p AS x USING (k) WHERE k = $o.v)",
            ),
            (
                "EXISTS of a natural key",
                "EXISTS (SELECT 1 FROM (SELECT k, v AS m FROM $q AS z) AS z NATURAL $h (SELECT \
                 k, id AS cnt FROM $p AS x) AS x WHERE k = $o.v)",
            ),
            ("a merged key of IN", "$o.v IN (SELECT k FROM $q AS z $h $p AS x USING (k))"),
            (
                "a natural key of IN",
                "$o.v IN (SELECT k FROM (SELECT k, v AS m FROM $q AS z) AS z NATURAL $h \
                 (SELECT k, id AS cnt FROM $p AS x) AS x)",
            ),
        ],
    ),
    (
        "EXISTS (SELECT 1 FROM $q AS z WHERE $c(z.) AND EXISTS (SELECT 1 FROM $p AS x WHERE \
         x.v = $o.k AND $d(x.)))",
        &[
            (
                "IN of an outer column within EXISTS",
                "EXISTS (SELECT 1 FROM $q AS z WHERE $c(z.) AND $o.k IN (SELECT x.v FROM $p AS x \
                 WHERE $d(x.)))",
            ),
            (
                "ANY of an outer column within EXISTS",
                "EXISTS (SELECT 1 FROM $q AS z WHERE $c(z.) AND $o.k = ANY (SELECT x.v FROM $p \
                 AS x WHERE $d(x.)))",
            ),
        ],
    ),
    (
        "EXISTS (SELECT 1 FROM $q AS z WHERE $c(z.) AND NOT EXISTS (SELECT 1 FROM $p AS x WHERE \
         $d(x.) AND (x.v = $o.k) IS NOT FALSE))",
        &[(
            "NOT IN of an outer column within EXISTS",
            "EXISTS (SELECT 1 FROM $q AS z WHERE $c(z.) AND $o.k NOT IN (SELECT x.v FROM $p AS x \
             WHERE $d(x.)))",
        )],
    ),
    (
        "$o.k NOT IN (SELECT coalesce(z.v, x.v) FROM $q AS z $h $p AS x ON z.v = x.v)",
        &[("a merged key of NOT IN", "$o.k NOT IN (SELECT v FROM $q AS z $h $p AS x USING (v))")],
    ),
    (
        "(SELECT count(*) FROM $q AS z WHERE z.k = $o.k AND $c(z.)) > 1",
        &[
            (
                "a count over a query without a name",
                "(SELECT count(*) FROM (SELECT v, b, k FROM $q AS z) WHERE k = $o.k AND $c()) \
                 > 1",
            ),
            (
                "a count over WITH",
                "(WITH r AS (SELECT * FROM $q AS z WHERE $c()) SELECT count(*) FROM r WHERE k \
                 = $o.k) > 1",
            ),
            (
                "a count over a branch without rows",
                "(SELECT count(*) FROM (SELECT v, b, k FROM $q AS z UNION ALL SELECT k, b, v \
                 FROM $p AS x WHERE $e) AS w WHERE k = $o.k AND $c()) > 1",
            ),
        ],
    ),
    (
        "EXISTS (SELECT 1 FROM $q AS z WHERE z.k = $o.k AND $c(z.))",
        &[
            (
                "EXISTS over a branch without rows",
                "EXISTS (SELECT 1 FROM (SELECT v AS k, k AS v FROM $p AS x WHERE $e UNION ALL \
                 SELECT k, v FROM $q AS z WHERE $c()) AS w WHERE k = $o.k)",
            ),
            (
                "EXISTS over WITH of the name of a table",
                "EXISTS (WITH $t AS (SELECT v, k, b FROM $q AS z WHERE $c()) SELECT 1 FROM $t \
                 WHERE k = $o.k)",
            ),
            (
                "IN of groups without a name",
                "$o.k IN (SELECT k FROM (SELECT k, b, v FROM $q AS z WHERE $c()) GROUP BY k)",
            ),
        ],
    ),
];
