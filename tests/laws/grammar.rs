//! Templates of expressions with their equivalent forms, from which [`crate::queries`] builds
//! expressions.
//!
//! Types are written `i`nteger, `u`nsigned 64-bit integer, `f`loat, `s`tring, `b`oolean, `d`ate,
//! `t`imestamp without a time zone, `tz` for a timestamp with one, `g` for a duration, `n` for a
//! decimal, and `l` before the type of elements. In a template, `{i}` is an argument of that type,
//! and `{0}`, `{1}` and so on repeat the arguments.

use std::sync::LazyLock;

use crate::tables::ZONE;

pub const SINGLE: [&str; 10] = ["i", "u", "f", "s", "b", "d", "t", "tz", "g", "n"];
pub const LISTS: [&str; 7] = ["li", "lf", "ls", "ll", "ld", "ltz", "lg"];

/// A template of an expression of type `ty`, and other ways to write it, each with the law that
/// makes it equivalent.
#[derive(Clone, Debug)]
pub struct Template {
    pub ty: &'static str,
    pub text: String,
    pub ways: Vec<(&'static str, String)>,
}

/// Returns literals of a type. One of them is NULL.
pub fn list_literals(ty: &str) -> &'static [&'static str] {
    match ty {
        "i" => &["1", "0", "CAST(NULL AS BIGINT)", "2", "-1", "7"],
        "u" => {
            &["CAST(1 AS BIGINT UNSIGNED)", "18446744073709551615", "CAST(NULL AS BIGINT UNSIGNED)"]
        }
        "f" => &[
            "0.5::DOUBLE",
            "CAST(NULL AS DOUBLE)",
            "0.0::DOUBLE",
            "'-0.0'::DOUBLE",
            "'NaN'::DOUBLE",
            "'-inf'::DOUBLE",
        ],
        "s" => &["'a'", "CAST(NULL AS VARCHAR)", "''", "'it''s'", "'äß'", "'%'"],
        "b" => &["true", "false", "CAST(NULL AS BOOLEAN)"],
        "d" => {
            &["DATE '2020-02-29'", "CAST(NULL AS DATE)", "DATE '1600-01-01'", "DATE '2999-12-31'"]
        }
        "t" => &[
            "TIMESTAMP '2020-02-29 12:00:00'",
            "CAST(NULL AS TIMESTAMP)",
            "TIMESTAMP '1600-01-01 00:00:01'",
            "TIMESTAMP '2999-12-31 23:59:59'",
        ],
        // All these timestamps have the time zone `ZONE`. Its clocks skip the third of them and
        // repeat the fourth.
        "tz" => &[
            "arrow_cast('2020-02-29T00:00:00', 'Timestamp(Microsecond, Some(\"Europe/Berlin\"))')",
            "arrow_cast(NULL, 'Timestamp(Microsecond, Some(\"Europe/Berlin\"))')",
            "arrow_cast('2020-03-29T02:30:00', 'Timestamp(Microsecond, Some(\"Europe/Berlin\"))')",
            "arrow_cast('2020-10-25T02:30:00', 'Timestamp(Microsecond, Some(\"Europe/Berlin\"))')",
            "arrow_cast('2999-12-31T23:59:59', 'Timestamp(Microsecond, Some(\"Europe/Berlin\"))')",
        ],
        "g" => &[
            "arrow_cast(1000000, 'Duration(Microsecond)')",
            "arrow_cast(NULL, 'Duration(Microsecond)')",
        ],
        "n" => &["1.50::DECIMAL(12,2)", "CAST(NULL AS DECIMAL(12,2))", "0.00::DECIMAL(12,2)"],
        "li" => &["[1, 2]", "CAST(NULL AS BIGINT[])", "[1, NULL]", "[0]"],
        "lf" => &["[0.5::DOUBLE]", "CAST(NULL AS DOUBLE[])", "['NaN'::DOUBLE, 0.0::DOUBLE]"],
        "ls" => &["['a']", "CAST(NULL AS VARCHAR[])", "['', 'it''s']"],
        "ll" => &["[[1], [2, 3]]", "CAST(NULL AS BIGINT[][])", "[[1, NULL]]"],
        "ld" => &["[DATE '2020-02-29']", "CAST(NULL AS DATE[])", "[DATE '1600-01-01', NULL]"],
        "ltz" => &[
            "[arrow_cast('2020-10-25T02:30:00', 'Timestamp(Microsecond, Some(\"Europe/Berlin\"))')]",
            "arrow_cast(NULL, 'List(Timestamp(Microsecond, Some(\"Europe/Berlin\")))')",
            "[arrow_cast('2020-03-29T02:30:00', 'Timestamp(Microsecond, Some(\"Europe/Berlin\"))'), NULL]",
        ],
        "lg" => &[
            "[arrow_cast(1000000, 'Duration(Microsecond)')]",
            "arrow_cast(NULL, 'List(Duration(Microsecond))')",
            "[arrow_cast(-1, 'Duration(Microsecond)'), NULL]",
        ],
        _ => unreachable!("type {ty}"),
    }
}

/// Templates that hold for every type, which replaces `Z`.
const ANY: &[(&str, &[(&str, &str)])] = &[
    (
        "coalesce({Z}, {Z})",
        &[("coalesce is CASE", "CASE WHEN {0} IS NOT NULL THEN {0} ELSE {1} END")],
    ),
    (
        "CASE WHEN {b} THEN {Z} ELSE {Z} END",
        &[("CASE turned round", "CASE WHEN ({0}) IS NOT TRUE THEN {2} ELSE {1} END")],
    ),
    (
        "CASE WHEN {b} THEN {Z} END",
        &[("CASE by IF NOT", "CASE WHEN {0} IS TRUE THEN {1} ELSE NULL END")],
    ),
];

/// Templates that hold for every type that is not a list, which replaces `Z`.
const ONE: &[(&str, &[(&str, &str)])] = &[
    ("nullif({Z}, {Z})", &[("nullif is CASE", "CASE WHEN {0} = {1} THEN NULL ELSE {0} END")]),
    (
        "CASE {Z} WHEN {Z} THEN {Z} ELSE {Z} END",
        &[("CASE x WHEN is CASE WHEN x =", "CASE WHEN {0} = {1} THEN {2} ELSE {3} END")],
    ),
];

const ORDERED: &[(&str, &[(&str, &str)])] = &[
    (
        "greatest({Z}, {Z})",
        &[("greatest is CASE", "CASE WHEN {0} >= {1} OR {1} IS NULL THEN {0} ELSE {1} END")],
    ),
    (
        "least({Z}, {Z})",
        &[("least is CASE", "CASE WHEN {0} <= {1} OR {1} IS NULL THEN {0} ELSE {1} END")],
    ),
];

/// Conditions on values of every type, which replaces `Z`.
const TESTS: &[(&str, &[(&str, &str)])] = &[
    ("{Z} = {Z}", &[("= goes both ways", "{1} = {0}"), ("= is NOT <>", "NOT ({0} <> {1})")]),
    ("{Z} <> {Z}", &[("<> is NOT =", "NOT ({0} = {1})")]),
    ("({Z}) IS NULL", &[("IS NULL", "NOT (({0}) IS NOT NULL)")]),
    (
        "{Z} IS DISTINCT FROM {Z}",
        &[
            ("IS DISTINCT FROM", "NOT ({0} IS NOT DISTINCT FROM {1})"),
            (
                "IS DISTINCT FROM is CASE",
                "CASE WHEN ({0}) IS NULL THEN ({1}) IS NOT NULL WHEN ({1}) IS NULL THEN true ELSE {0} <> {1} END",
            ),
        ],
    ),
];

/// Conditions on values of every type that is not a list, which replaces `Z`.
const COMPARISONS: &[(&str, &[(&str, &str)])] = &[
    ("{Z} < {Z}", &[("< is >", "{1} > {0}"), ("< is NOT >=", "NOT ({0} >= {1})")]),
    ("{Z} <= {Z}", &[("<= is < or =", "({0} < {1} OR {0} = {1})")]),
    (
        "({Z} BETWEEN {Z} AND {Z})",
        &[
            ("BETWEEN is two comparisons", "({0} >= {1} AND {0} <= {2})"),
            ("NOT BETWEEN", "NOT ({0} NOT BETWEEN {1} AND {2})"),
        ],
    ),
    (
        "({Z} IN ({Z}, {Z}))",
        &[
            ("IN is OR", "({0} = {1} OR {0} = {2})"),
            ("IN is NOT (NOT IN)", "NOT ({0} NOT IN ({2}, {1}))"),
        ],
    ),
    (
        "({Z} NOT IN ({Z}, {Z}, {Z}))",
        &[("NOT IN is AND", "({0} <> {1} AND {0} <> {2} AND {0} <> {3})")],
    ),
    ("({Z} IN ({Z}, NULL))", &[("IN with NULL", "({0} = {1} OR NULL)")]),
    ("({Z} NOT IN ({Z}, NULL))", &[("NOT IN with NULL", "({0} <> {1} AND NULL)")]),
];

type Replacements = &'static [(&'static str, &'static str)];

const OTHERS: &[(&str, &str, Replacements)] = &[
    ("i", "{i} + {i}", &[("+ goes both ways", "{1} + {0}")]),
    ("i", "{i} - {i}", &[("- is + -", "{0} + -({1})")]),
    ("i", "abs({i})", &[("abs is CASE", "CASE WHEN {0} < 0 THEN -({0}) ELSE {0} END")]),
    ("i", "-({i})", &[]),
    ("i", "{i} % 3", &[]),
    (
        "i",
        "CASE WHEN {i} <> 0 THEN 10 / {0} END",
        &[
            ("guarded division", "CASE WHEN {0} = 0 THEN NULL ELSE 10 / {0} END"),
            ("guarded division by nullif", "10 / nullif({0}, 0)"),
        ],
    ),
    (
        "i",
        "CASE WHEN {s} ~ '^[0-9]+$' THEN CAST({0} AS BIGINT) ELSE -1 END",
        &[("guarded cast", "CASE WHEN {0} ~ '^[0-9]+$' THEN TRY_CAST({0} AS BIGINT) ELSE -1 END")],
    ),
    (
        "i",
        "CASE {f} WHEN {f} THEN {i} WHEN {f} THEN {i} END",
        &[("CASE x WHEN over floats", "CASE WHEN {0} = {1} THEN {2} WHEN {0} = {3} THEN {4} END")],
    ),
    (
        "i",
        "CAST({b} AS BIGINT)",
        &[("boolean as integer", "CASE WHEN {0} THEN 1 WHEN NOT ({0}) THEN 0 END")],
    ),
    ("i", "CAST(length({s}) AS BIGINT)", &[]),
    (
        "i",
        "CAST(date_part('year', {d}) AS BIGINT)",
        &[("year", "CAST(date_part('year', CAST({0} AS TIMESTAMP)) AS BIGINT)")],
    ),
    ("i", "CAST(date_part('day', {t}) AS BIGINT)", &[]),
    (
        "i",
        "CAST(year({t}) AS BIGINT)",
        &[("year of the date", "CAST(date_part('year', CAST({0} AS DATE)) AS BIGINT)")],
    ),
    ("i", "CAST(month({d}) AS BIGINT)", &[("month", "CAST(date_part('month', {0}) AS BIGINT)")]),
    (
        "i",
        "CAST(week({d}) AS BIGINT)",
        &[("week of the first day", "CAST(date_part('week', date_trunc('week', {0})) AS BIGINT)")],
    ),
    (
        "i",
        "date_diff('day', {t}, {d})",
        &[("the difference of dates", "CAST({1} AS DATE) - CAST({0} AS DATE)")],
    ),
    (
        "i",
        "date_diff('month', {d}, {d})",
        &[(
            "months are counted",
            "CAST((year({1}) - year({0})) * 12 + month({1}) - month({0}) AS BIGINT)",
        )],
    ),
    (
        "i",
        "date_sub('hour', {t}, {t})",
        &[("whole hours go both ways", "-date_sub('hour', {1}, {0})")],
    ),
    ("i", "ragged_count({li})", &[]),
    ("i", "ragged_count({ll})", &[("count of leaves", "ragged_count(ragged_flatten({0}))")]),
    ("i", "({li})[1]", &[("first element", "ragged_at({0}, 0)")]),
    ("i", "({li})[{i}]", &[]),
    ("i", "ragged_sum({li})", &[]),
    ("f", "{f} + {f}", &[("+ goes both ways", "{1} + {0}")]),
    ("f", "{f} * 0.5", &[("* is /", "{0} / 2.0")]),
    ("f", "-({f})", &[]),
    ("f", "CAST({i} AS DOUBLE)", &[]),
    ("f", "CAST({n} AS DOUBLE)", &[]),
    ("f", "({lf})[1]", &[("first element", "ragged_at({0}, 0)")]),
    ("f", "ragged_max({lf})", &[]),
    (
        "s",
        "{s} || {s}",
        &[(
            "|| is concat",
            "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL ELSE concat({0}, {1}) END",
        )],
    ),
    ("s", "upper({s})", &[]),
    ("s", "reverse(reverse({s}))", &[]),
    ("s", "substr({s}, 2)", &[]),
    ("s", "replace({s}, 'a', '''')", &[]),
    ("s", "CAST({i} AS VARCHAR)", &[]),
    ("s", "CAST({d} AS VARCHAR)", &[]),
    ("s", "({ls})[1]", &[("first element", "ragged_at({0}, 0)")]),
    (
        "b",
        "(({b}) AND ({b}))",
        &[
            ("AND goes both ways", "(({1}) AND ({0}))"),
            ("AND is NOT OR", "NOT (NOT ({0}) OR NOT ({1}))"),
        ],
    ),
    (
        "b",
        "(({b}) OR ({b}))",
        &[
            ("OR goes both ways", "(({1}) OR ({0}))"),
            ("OR is NOT AND", "NOT (NOT ({0}) AND NOT ({1}))"),
        ],
    ),
    (
        "b",
        "NOT ({b})",
        &[("NOT is CASE", "CASE WHEN {0} THEN false WHEN {0} IS NULL THEN NULL ELSE true END")],
    ),
    ("b", "(({b}) IS TRUE)", &[("IS TRUE", "coalesce({0}, false)")]),
    ("b", "(({b}) IS NOT FALSE)", &[("IS NOT FALSE", "coalesce({0}, true)")]),
    (
        "b",
        "({i} <> 0 AND 10 / {0} > 1)",
        &[(
            "AND keeps the right from failing",
            "CASE WHEN {0} <> 0 THEN 10 / {0} > 1 ELSE {0} <> 0 END",
        )],
    ),
    (
        "b",
        "({i} = 0 OR 10 / {0} < 3)",
        &[(
            "OR keeps the right from failing",
            "CASE WHEN {0} = 0 THEN true ELSE 10 / nullif({0}, 0) < 3 END",
        )],
    ),
    (
        "b",
        "({s} ~ '^[0-9]+$' AND CAST({0} AS BIGINT) > 5)",
        &[("AND keeps a cast from failing", "({0} ~ '^[0-9]+$' AND TRY_CAST({0} AS BIGINT) > 5)")],
    ),
    (
        "b",
        "{i} = ANY({li})",
        &[(
            "= ANY is a count",
            "CASE WHEN {0} IS NULL OR {1} IS NULL THEN CASE WHEN ragged_lengths({1}) = 0 THEN false END WHEN ragged_count(ragged_filter({1}, {1} = {0})) > 0 THEN true WHEN ragged_any(ragged_is_null({1})) THEN NULL ELSE false END",
        )],
    ),
    ("b", "array_has({li}, {i})", &[]),
    ("b", "{i} = {f}", &[("integer and float", "CAST({0} AS DOUBLE) = {1}")]),
    ("b", "{i} < {n}", &[("integer and decimal", "CAST({0} AS DECIMAL(20,2)) < {1}")]),
    (
        "b",
        "{u} > {i}",
        &[(
            "unsigned and integer",
            "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN {1} < 0 THEN true ELSE {0} > CAST({1} AS BIGINT UNSIGNED) END",
        )],
    ),
    (
        "i",
        "{i} ^ 5",
        &[("a number ^ itself is 0", "{0} ^ 5 ^ 3 ^ 3"), ("^ goes both ways", "5 ^ {0}")],
    ),
    ("i", "({i} ^ {i})", &[("^ thrice", "({1} ^ {0} ^ {1} ^ {1})")]),
    ("b", "{d} < {t}", &[("date and time", "CAST({0} AS TIMESTAMP) < {1}")]),
    ("b", "{s} LIKE 'a%'", &[("LIKE of a prefix", "starts_with({0}, 'a')")]),
    ("b", "{s} LIKE '%''%'", &[("LIKE of a part", "strpos({0}, '''') > 0")]),
    ("b", "isnan({f})", &[]),
    (
        "b",
        "CAST({t} AS TIME) > TIME '12:00:00'",
        &[("the time of a day", "{0} - date_trunc('day', {0}) > INTERVAL '12 hours'")],
    ),
    ("b", "TRY_CAST({i} AS BOOLEAN)", &[("an integer as boolean", "{0} <> 0")]),
    (
        "b",
        "CAST({i} AS VARCHAR) < '5'",
        &[("an integer as text", "CAST({0} AS VARCHAR) || '' < '5'")],
    ),
    (
        "b",
        "TRY_CAST({f} AS BIGINT) > 0",
        &[(
            "a float as integer",
            "CASE WHEN {0} >= 9223372036854775808.0 OR {0} < -9223372036854775808.0 THEN NULL ELSE trunc({0}) > 0 END",
        )],
    ),
    (
        "b",
        "TRY_CAST({s} AS BIGINT) > 5",
        &[(
            "text as integer",
            "CASE WHEN {0} ~ '^ *[+-]?[0-9]+ *$' THEN TRY_CAST(trim({0}) AS BIGINT) > 5 END",
        )],
    ),
    ("b", "CAST({t} AS DATE) = {d}", &[("dates go both ways", "{1} = CAST({0} AS DATE)")]),
    ("d", "CAST({t} AS DATE)", &[("date of a time", "CAST(date_trunc('day', {0}) AS DATE)")]),
    ("d", "{d} + 1", &[("a day is an interval", "CAST({0} + INTERVAL '1 day' AS DATE)")]),
    ("t", "CAST({d} AS TIMESTAMP)", &[]),
    ("t", "{t} + INTERVAL '1 day'", &[("a day is 24 hours", "{0} + INTERVAL '24 hours'")]),
    ("t", "date_trunc('month', {t})", &[]),
    ("t", "time_bucket(INTERVAL '1 day', {t})", &[("a bucket of a day", "date_trunc('day', {0})")]),
    ("t", "{t} + {g}", &[]),
    ("g", "{t} - {t}", &[]),
    (
        "g",
        "{g} * 3",
        &[("a product by a float", "{0} * 3.0"), ("a quotient", "{0} / 0.25 / 4 * 3")],
    ),
    (
        "s",
        "strftime({t}, '%Y-%m-%d %H:%M')",
        &[("the format is first", "strftime('%x %H:%M', {0})")],
    ),
    (
        "t",
        "CAST(strftime({t}, '%Y-%m-%d %H:%M') AS TIMESTAMP)",
        &[("text without seconds", "date_trunc('minute', {0})")],
    ),
    (
        "n",
        "CAST({n} + {n} AS DECIMAL(12,2))",
        &[("+ goes both ways", "CAST({1} + {0} AS DECIMAL(12,2))")],
    ),
    ("n", "CAST({i} AS DECIMAL(12,2))", &[]),
    ("n", "abs({n})", &[]),
    ("li", "[{i}, {i}]", &[("a list in two steps", "array_append([{0}], {1})")]),
    ("li", "({li})[2:]", &[]),
    (
        "li",
        "({li})[({i}):({i}):-1]",
        &[("a slice backwards is reversed", "array_reverse(({0})[({2}):({1})])")],
    ),
    (
        "li",
        "({li})[9:1:-2]",
        &[("every second element backwards", "(array_reverse(({0})[1:9]))[1:9:2]")],
    ),
    ("i", "ragged_sum(({li})[5:-9:-1])", &[("a sum goes both ways", "ragged_sum(({0})[-9:5])")]),
    ("ls", "({ls})[-1:-3:-1]", &[("the last elements backwards", "array_reverse(({0})[-3:-1])")]),
    ("ll", "({ll})[3:0:-1]", &[("the first elements backwards", "array_reverse(({0})[:3])")]),
    ("li", "array_concat({li}, {li})", &[]),
    ("li", "ragged_sort({li})", &[]),
    ("li", "{li} + {i}", &[("broadcast is a lambda", "ragged_map({0}, lambda v: v + {1})")]),
    ("li", "ragged_flatten({ll})", &[]),
    ("g", "ragged_sum({lg})", &[("a sum goes both ways", "ragged_sum(ragged_reverse({0}))")]),
    ("g", "ragged_mean({lg})", &[("a mean goes both ways", "ragged_mean(ragged_reverse({0}))")]),
    ("g", "ragged_median({lg})", &[("a median is a quantile", "ragged_quantile({0}, 0.5)")]),
    ("g", "ragged_max({lg})", &[("max is the last of sorted", "ragged_max(ragged_sort({0}))")]),
    ("g", "({lg})[1]", &[("first element", "ragged_at({0}, 0)")]),
    ("d", "ragged_min({ld})", &[("min of the reverse", "ragged_min(ragged_reverse({0}))")]),
    ("d", "({ld})[1]", &[("first element", "ragged_at({0}, 0)")]),
    ("i", "ragged_count({ld})", &[("a count goes both ways", "ragged_count(ragged_sort({0}))")]),
    ("i", "ragged_nunique({lg})", &[("values of a list", "ragged_nunique(ragged_sort({0}))")]),
    ("b", "array_has({ld}, {d})", &[]),
    ("ld", "[{d}, {d}]", &[("a list in two steps", "array_append([{0}], {1})")]),
    ("ld", "ragged_sort({ld})", &[("sorted once", "ragged_sort(ragged_reverse({0}))")]),
    ("ld", "array_concat({ld}, {ld})", &[]),
    ("lg", "[{g}, {g}]", &[]),
    ("lg", "ragged_neg({lg})", &[]),
    ("lg", "({lg})[2:]", &[]),
    ("ls", "[{s}, {s}]", &[]),
    ("lf", "[{f}]", &[]),
    ("ll", "[{li}, {li}]", &[]),
];

/// Templates that combine timestamps with a time zone and local times or dates. `x@` stands for the
/// timestamp with the time zone `ZONE` whose local time is `x`.
const ZONED: &[(&str, &str, Replacements)] = &[
    (
        "b",
        "{tz} < {t}",
        &[("< of an instant is >", "{1} > {0}"), ("a local time is in the zone", "{0} < ({1}@)")],
    ),
    ("b", "{tz} = {t}", &[("a local time is in the zone", "{0} = ({1}@)")]),
    (
        "b",
        "{tz} IS DISTINCT FROM {t}",
        &[("a local time is in the zone", "NOT ({0} IS NOT DISTINCT FROM ({1}@))")],
    ),
    ("b", "{d} = {tz}", &[("a date is in the zone", "(CAST({0} AS TIMESTAMP)@) = {1}")]),
    ("b", "{d} >= {tz}", &[("a date is in the zone", "{1} <= (CAST({0} AS TIMESTAMP)@)")]),
    (
        "b",
        "({tz} IN ({t}, {d}))",
        &[
            ("IN over an instant is OR", "({0} = {1} OR {0} = {2})"),
            ("IN over an instant is in the zone", "({0} IN ({1}@, CAST({2} AS TIMESTAMP)@))"),
        ],
    ),
    (
        "b",
        "({t} NOT IN ({tz}, {d}))",
        &[(
            "IN over a local time is in the zone",
            "(({0}@) NOT IN ({1}, CAST({2} AS TIMESTAMP)@))",
        )],
    ),
    (
        "b",
        "({tz} BETWEEN {t} AND {d})",
        &[
            ("BETWEEN of an instant is two comparisons", "({0} >= {1} AND {0} <= {2})"),
            (
                "BETWEEN of an instant is in the zone",
                "({0} BETWEEN ({1}@) AND (CAST({2} AS TIMESTAMP)@))",
            ),
        ],
    ),
    (
        "b",
        "({t} BETWEEN {tz} AND {d})",
        &[(
            "BETWEEN of a local time is in the zone",
            "(({0}@) BETWEEN {1} AND (CAST({2} AS TIMESTAMP)@))",
        )],
    ),
    (
        "b",
        "{tz} < CAST({t} AS TIMESTAMPTZ)",
        &[("an instant in the zone of the session", "CAST({1} AS TIMESTAMPTZ) > {0}")],
    ),
    ("tz", "{t}@", &[("a zone is a cast", "arrow_cast({0}, 'TYPE')")]),
    ("tz", "coalesce({tz}, {t})", &[("coalesce in the zone", "coalesce({0}, {1}@)")]),
    ("tz", "greatest({tz}, {t})", &[("greatest in the zone", "greatest({0}, {1}@)")]),
    (
        "tz",
        "CASE WHEN {b} THEN {d} ELSE {tz} END",
        &[("CASE in the zone", "CASE WHEN {0} THEN CAST({1} AS TIMESTAMP)@ ELSE {2} END")],
    ),
    (
        "i",
        "CASE {tz} WHEN {t} THEN {i} WHEN {d} THEN {i} END",
        &[(
            "CASE x WHEN over instants",
            "CASE WHEN {0} = {1} THEN {2} WHEN {0} = {3} THEN {4} END",
        )],
    ),
    ("g", "{tz} - {tz}", &[]),
    ("g", "{tz} - {t}", &[("a difference is in the zone", "{0} - ({1}@)")]),
    ("g", "{t} - {tz}", &[("a difference is in the zone", "({0}@) - {1}")]),
    ("g", "{d} - {tz}", &[("a difference is in the zone", "(CAST({0} AS TIMESTAMP)@) - {1}")]),
    ("tz", "{tz} + {g}", &[]),
    ("tz", "{tz} + INTERVAL '1 day'", &[]),
    (
        "tz",
        "{tz} + INTERVAL '24 hours'",
        &[("hours are a duration", "{0} + arrow_cast(86400000000, 'Duration(Microsecond)')")],
    ),
    ("d", "CAST({tz} AS DATE)", &[]),
    (
        "t",
        "CAST({tz} AS TIMESTAMP)",
        &[("a cast takes the time in UTC", "CAST({0} AT TIME ZONE 'UTC' AS TIMESTAMP)")],
    ),
    ("i", "CAST(date_part('hour', {tz}) AS BIGINT)", &[]),
    (
        "i",
        "ragged_count(ragged_filter({ltz}, {0} < {t}))",
        &[
            ("< is ragged_lt", "ragged_count(ragged_filter({0}, ragged_lt({0}, {1})))"),
            (
                "a local time is in the zone of a list",
                "ragged_count(ragged_filter({0}, {0} < ({1}@)))",
            ),
        ],
    ),
    (
        "i",
        "ragged_count(ragged_filter({ltz}, {0} >= {d}))",
        &[(
            "a date is in the zone of a list",
            "ragged_count(ragged_filter({0}, {0} >= (CAST({1} AS TIMESTAMP)@)))",
        )],
    ),
    (
        "i",
        "ragged_count(ragged_filter({ltz}, ragged_isin({0}, [{t}, {t}])))",
        &[(
            "ragged_isin is in the zone",
            "ragged_count(ragged_filter({0}, ragged_isin({0}, [{1}@, {2}@])))",
        )],
    ),
    (
        "i",
        "ragged_count(ragged_filter({ltz}, ragged_between({0}, {t}, {tz})))",
        &[
            (
                "ragged_between is in the zone",
                "ragged_count(ragged_filter({0}, ragged_between({0}, {1}@, {2})))",
            ),
            (
                "ragged_between is two comparisons",
                "ragged_count(ragged_filter({0}, ragged_and(ragged_ge({0}, {1}), ragged_le({0}, {2}))))",
            ),
        ],
    ),
    (
        "b",
        "array_has({ltz}, {d})",
        &[("a date is in the zone of a list", "array_has({0}, CAST({1} AS TIMESTAMP)@)")],
    ),
    ("b", "{ltz} = {ld}", &[("= goes both ways", "{1} = {0}")]),
    ("lg", "{ltz} - {t}", &[("differences are in the zone", "{0} - ({1}@)")]),
    ("tz", "({ltz})[1]", &[("first element", "ragged_at({0}, 0)")]),
    ("tz", "ragged_max({ltz})", &[("max is the last of sorted", "ragged_max(ragged_sort({0}))")]),
    ("i", "ragged_nunique({ltz})", &[("values of a list", "ragged_nunique(ragged_sort({0}))")]),
    ("ltz", "[{tz}, {t}]", &[("elements are in the zone", "[{0}, {1}@]")]),
    ("ltz", "[{tz}, {tz}]", &[("a list in two steps", "array_append([{0}], {1})")]),
    ("ltz", "ragged_sort({ltz})", &[("sorted once", "ragged_sort(ragged_reverse({0}))")]),
    ("ltz", "array_concat({ltz}, {ltz})", &[]),
    ("ltz", "({ltz})[2:]", &[]),
];

fn make_template(ty: &'static str, text: &str, ways: &[(&'static str, &str)]) -> Template {
    Template { ty, text: text.into(), ways: ways.iter().map(|(l, t)| (*l, (*t).into())).collect() }
}

/// The templates for all types.
pub static TEMPLATES: LazyLock<Vec<Template>> = LazyLock::new(|| {
    let mut out = Vec::new();
    for ty in SINGLE.into_iter().chain(LISTS) {
        let of = |text: &str| text.replace("{Z}", &format!("{{{ty}}}"));
        let single = SINGLE.contains(&ty);
        let ordered = single && ty != "b";
        let mut add = |result, given: &[(&str, &[(&'static str, &str)])]| {
            out.extend(given.iter().map(|(text, ways)| make_template(result, &of(text), ways)));
        };
        add(ty, ANY);
        add("b", TESTS);
        if single {
            add(ty, ONE);
        }
        if ordered {
            add(ty, ORDERED);
            add("b", COMPARISONS);
        }
    }
    out.extend(OTHERS.iter().map(|(ty, text, ways)| make_template(ty, text, ways)));
    let (at_zone, zoned) =
        (format!(" AT TIME ZONE '{ZONE}'"), format!("Timestamp(Microsecond, Some(\"{ZONE}\"))"));
    let in_zone = |text: &str| text.replace('@', &at_zone).replace("TYPE", &zoned);
    out.extend(ZONED.iter().map(|(ty, text, ways)| Template {
        ty,
        text: in_zone(text),
        ways: ways.iter().map(|(law, text)| (*law, in_zone(text))).collect(),
    }));
    out
});

/// Returns a template with numbers in place of the types of its arguments, and these types.
pub fn number_columns(text: &str) -> (String, Vec<&'static str>) {
    let mut types = Vec::new();
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let end = rest[at..].find('}').map_or(rest.len(), |e| at + e);
        let name = &rest[at + 1..end];
        out.push_str(&rest[..at]);
        match SINGLE.into_iter().chain(LISTS).find(|ty| *ty == name) {
            Some(ty) => {
                out.push_str(&format!("{{{}}}", types.len()));
                types.push(ty);
            }
            None => out.push_str(&rest[at..=end]),
        }
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    (out, types)
}
