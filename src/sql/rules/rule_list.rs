//! Lists the optimizer rules that Serrate adds to a session, in their order, each with the reason
//! for it and the condition for its removal.

use datafusion::optimizer::ApplyOrder;

use self::UpstreamIssue::{Arrow, DataFusion};
use super::function_rule::{AnalyzeFn, OptimizeAroundFn, OptimizeFn, RewriteAroundFn, RewriteFn};
use crate::sql::checks::list_uses;
use crate::sql::exec::{compact_texts, copied, stack, yielding};
use crate::sql::order::order_rules;
use crate::sql::pushdown::{
    below_joins, contains, flat_filters, leaf_limit, lengths, offset, partitions,
};
use crate::sql::sources::{asof, guarded_source, parquet};
use crate::sql::workarounds::expressions::{
    computed_lists, hidden_values, in_lists, lambdas, negations, nested_order, similar,
    volatile_between, volatile_coalesce, xor_pairs,
};
use crate::sql::workarounds::grouping::{
    cast_groups, computed_keys, dependencies, distinct_counts, empty_inputs, filtered_aggregates,
    float_keys, joined_groups, nested_constants, topk, unnested_names,
};
use crate::sql::workarounds::guards::{
    conditions, failing_rules, guarded_rules, repeated_constants,
};
use crate::sql::workarounds::joins_and_unions::{
    dictionary_keys, distinct_recursions, join_orders, lone_branches, merge_joins, multisets,
    null_equal_joins, unions,
};
use crate::sql::workarounds::sorting::{
    equations, merged_orders, missing_partitions, moved_keys, opaque_limits, partition_constants,
    repeated_orders, scan_order, sort_keys, sort_lists, sorts,
};
use crate::sql::workarounds::subqueries::correlated::query_values;
use crate::sql::workarounds::subqueries::{
    empty_queries, grouped_outer, rows_in, shared_rows, subquery_conditions,
};
use crate::sql::workarounds::types::{
    boolean_casts, cast_statistics, coarser_times, compared_casts, decimals, dictionary_casts,
    float_ranges, large_texts, list_texts, local_times, narrow_floats, text_to_decimal_casts,
    text_to_list_casts, text_to_time_casts, texts, times,
};
use crate::sql::workarounds::windows::{
    duration_windows, nested_windows, range_frames, unique_partitions, whole_windows, wide_frames,
    window_keys, window_orders,
};
use crate::sql::workarounds::{changes, from_alone, inserted_nulls, inserted_types};

/// A rule of a session, with the data for its row of the table in `docs/internals/sql.md`.
#[cfg_attr(not(test), allow(dead_code, reason = "the documentation is made of it"))]
pub(super) struct SessionRule {
    /// Name in EXPLAIN and in `SET serrate.disabled_rules`. For [`RuleStep::WithoutLogical`], it is
    /// the name of the removed rule of DataFusion. If the function wraps rules of DataFusion,
    /// EXPLAIN shows the names of these rules instead.
    pub(super) name: &'static str,
    pub(super) step: RuleStep,
    /// Wrong behaviour of a session without the rule.
    pub(super) without: &'static str,
    pub(super) upstream: UpstreamReport,
    pub(super) until: RemovalCondition,
}

/// The place of a rule among DataFusion's rules, and the function of the rule. A string is the name
/// of a rule of DataFusion: `AfterPhysical("join_selection", f)` runs `f` after this rule.
///
/// `AroundLogical(names, f)` and `AroundPhysical(names, f)` replace each of the named rules by `f`,
/// which receives the rule and calls it. If several functions name one rule, each wraps the
/// function before it in the list.
pub(super) enum RuleStep {
    FirstOfAll(AnalyzeFn),
    BeforeCoercion(AnalyzeFn),
    AfterCoercion(AnalyzeFn),
    FirstLogical(ApplyOrder, RewriteFn),
    WithoutLogical,
    AroundLogical(&'static [&'static str], RewriteAroundFn),
    LastLogical(ApplyOrder, RewriteFn),
    FirstPhysical(OptimizeFn),
    AfterPhysical(&'static str, OptimizeFn),
    BeforePhysical(&'static str, OptimizeFn),
    AroundPhysical(&'static [&'static str], OptimizeAroundFn),
    LastPhysical(OptimizeFn),
}

/// Whether the bug that a rule works around is reported to the project that causes it.
#[cfg_attr(not(test), allow(dead_code, reason = "the documentation is made of it"))]
pub(super) enum UpstreamReport {
    /// The issues and pull requests that describe the bug.
    Reported(&'static [UpstreamIssue]),
    /// No report of the bug was found.
    NotReported,
    /// The rule works around no bug: it speeds up queries, or adds a feature of Serrate.
    Ours,
}

/// The number of an issue or a pull request.
#[cfg_attr(not(test), allow(dead_code, reason = "the documentation is made of it"))]
pub(super) enum UpstreamIssue {
    /// In `apache/datafusion`.
    DataFusion(u32),
    /// In `apache/arrow-rs`.
    Arrow(u32),
}

/// The condition under which a rule can be removed from Serrate.
#[cfg_attr(not(test), allow(dead_code, reason = "the documentation is made of it"))]
pub(super) enum RemovalCondition {
    /// The rule can be removed when the test with this name fails, because DataFusion has then fixed the bug.
    Fails(&'static str),
    /// The rule can be removed when the test with this name passes without the rule.
    Passes(&'static str),
    /// The rule is never removed: it speeds up queries. The setting `serrate.rule.NAME` switches it off.
    Speed,
    /// The rule is never removed: it is a feature that DataFusion does not have.
    Feature,
}

/// All rules of a session in the order in which they run. `docs/internals/sql.md` contains them as a table.
pub(super) static RULES: &[SessionRule] = &[
    SessionRule {
        name: "serrate_list_hints",
        // Must run before type coercion, which replaces the expressions that the errors show.
        step: RuleStep::FirstOfAll(list_uses::suggest_list_functions),
        without: "errors of operators on lists have no suggestion",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Feature,
    },
    SessionRule {
        name: "serrate_plain_changes",
        // Must run before rules that change expressions. The query that finds the rows to change is built from the
        // expressions as written in the statement; all rules are then applied to this query.
        step: RuleStep::FirstOfAll(changes::plan_changes),
        without: "DELETE and UPDATE with a subquery in WHERE change every row",
        upstream: UpstreamReport::Reported(&[DataFusion(24654)]),
        until: RemovalCondition::Fails("stock_deletes_with_subqueries_still_change_every_row"),
    },
    SessionRule {
        name: "serrate_grouped_outer",
        // Must run before type coercion, which may add a cast to a GROUP BY key but not to the same
        // expression in a subquery, or the reverse, so that the rule would not recognize them as
        // equal.
        step: RuleStep::BeforeCoercion(grouped_outer::name_computed_keys),
        without: "`GROUP BY x + 1 HAVING EXISTS (SELECT .. WHERE z.i = t.x + 1)` fails",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_computed_keys_are_still_no_outer_columns"),
    },
    SessionRule {
        name: "serrate_rows_in",
        step: RuleStep::BeforeCoercion(rows_in::rewrite_rows_in),
        without: "`(a, b) IN (SELECT x, y ..)` fails",
        upstream: UpstreamReport::Reported(&[DataFusion(19857)]),
        until: RemovalCondition::Fails("stock_rows_in_queries_still_fail"),
    },
    SessionRule {
        name: "serrate_exact_times",
        step: RuleStep::BeforeCoercion(times::compare_exactly),
        without: "timestamps far from 1970 overflow, durations and intervals compare wrongly",
        upstream: UpstreamReport::Reported(&[DataFusion(22756)]),
        until: RemovalCondition::Fails("stock_functions_still_work_in_nanoseconds"),
    },
    SessionRule {
        name: "serrate_one_text",
        step: RuleStep::BeforeCoercion(texts::cast_dictionaries),
        without: "LIKE of a dictionary with a column of strings fails, and aggregates of dictionaries",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_patterns_of_dictionaries_still_fail"),
    },
    SessionRule {
        name: "serrate_text_lists",
        step: RuleStep::BeforeCoercion(text_to_list_casts::cast_texts_to_lists),
        without: "`'[1, 2]'::INT[]` fails, and `'[a, b]'::VARCHAR[]` has one element",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_texts_of_lists_are_still_elements"),
    },
    SessionRule {
        name: "serrate_stable_decimals",
        step: RuleStep::BeforeCoercion(decimals::stabilize_decimals),
        without: "floats compared with decimals become decimals, and `round` changes its type",
        upstream: UpstreamReport::Reported(&[DataFusion(14272)]),
        until: RemovalCondition::Fails("stock_floats_become_decimals"),
    },
    SessionRule {
        name: "serrate_large_texts",
        step: RuleStep::BeforeCoercion(large_texts::compare_large_texts),
        without: "a float32 that is infinite equals `'1e300'`",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_texts_of_large_numbers_are_still_infinite"),
    },
    SessionRule {
        name: "serrate_similar_patterns",
        step: RuleStep::BeforeCoercion(similar::translate_similar_patterns),
        without: "SIMILAR TO searches for its pattern instead of matching the whole string",
        upstream: UpstreamReport::Reported(&[DataFusion(22263), DataFusion(23188)]),
        until: RemovalCondition::Fails("stock_similar_to_still_searches"),
    },
    SessionRule {
        name: "serrate_duration_windows",
        step: RuleStep::BeforeCoercion(duration_windows::cast_window_durations),
        without: "windows ordered by durations fail",
        upstream: UpstreamReport::Reported(&[DataFusion(24916)]),
        until: RemovalCondition::Fails("stock_windows_over_durations_still_fail"),
    },
    SessionRule {
        name: "serrate_window_keys",
        step: RuleStep::BeforeCoercion(window_keys::replace_window_keys),
        without: "windows over lists of lists and structs fail",
        upstream: UpstreamReport::Reported(&[DataFusion(24937)]),
        until: RemovalCondition::Fails("stock_windows_over_lists_of_lists_still_fail"),
    },
    SessionRule {
        name: "serrate_wide_frames",
        step: RuleStep::BeforeCoercion(wide_frames::widen_frames),
        without: "frames `RANGE .. AND n FOLLOWING` whose end does not fit the type include NULL",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_frames_beyond_a_type_still_include_null"),
    },
    SessionRule {
        name: "serrate_lambda_types",
        // Must run after rules that change the types of CASE branches, because a lambda over CASE
        // gets its parameter types from the branches.
        step: RuleStep::BeforeCoercion(lambdas::retype_lambdas),
        without: "lambdas over CASE fail if its branches are lists of different types",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_parameters_over_case_still_fail"),
    },
    SessionRule {
        name: "serrate_from_alone",
        step: RuleStep::AfterCoercion(from_alone::select_all_columns),
        without: "`FROM t` without SELECT has no columns",
        upstream: UpstreamReport::Reported(&[DataFusion(17520)]),
        until: RemovalCondition::Fails("stock_from_alone_still_has_no_columns"),
    },
    SessionRule {
        name: "serrate_inserted_types",
        step: RuleStep::AfterCoercion(inserted_types::cast_inserted_columns),
        without: "INSERT of a CASE or UNION whose branches differ in type makes its table unreadable",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_inserts_still_write_other_types"),
    },
    SessionRule {
        name: "serrate_inserted_nulls",
        // Must run after `serrate_inserted_types`, so that the checked columns have their types.
        step: RuleStep::AfterCoercion(inserted_nulls::check_inserted_nulls),
        without: "the error about a NULL in a NOT NULL column does not name the column of the table",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_errors_of_null_still_lack_the_column"),
    },
    SessionRule {
        name: "serrate_flat_unions",
        step: RuleStep::AfterCoercion(unions::flatten_unions),
        without: "planning takes time quadratic in the number of UNIONs; projections of nested ones mix up columns",
        upstream: UpstreamReport::Reported(&[DataFusion(17261)]),
        until: RemovalCondition::Fails("stock_projections_of_unions_still_mix_columns"),
    },
    SessionRule {
        name: "serrate_hidden_values",
        step: RuleStep::AfterCoercion(hidden_values::mask_hidden_values),
        without: "`s.a` and `array_append(x, 1)` return what lies below a NULL struct or list",
        upstream: UpstreamReport::Reported(&[DataFusion(25120)]),
        until: RemovalCondition::Fails("stock_fields_of_null_are_still_values"),
    },
    // The following rules run after type coercion, because they need the final types of expressions.
    SessionRule {
        name: "serrate_computed_lists",
        step: RuleStep::AfterCoercion(computed_lists::rewrite_computed_lists),
        without: "`x IN (1, CASE ..)` is true for values that the list does not contain",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_lists_with_case_are_still_wrong"),
    },
    SessionRule {
        name: "serrate_nested_order",
        step: RuleStep::AfterCoercion(nested_order::unify_nested_order),
        without: "comparisons and sorts of lists and structs with NULL use different orders",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_comparisons_of_lists_have_least_nulls"),
    },
    SessionRule {
        name: "serrate_counted_sets",
        // Must run before `serrate_query_values`, which turns correlated subqueries into joins and
        // adds columns to the inputs of set operations: rows that differ only in such a column
        // would no longer be equal.
        step: RuleStep::AfterCoercion(multisets::number_equal_rows),
        without: "EXCEPT ALL and INTERSECT ALL do not match equal rows one to one",
        upstream: UpstreamReport::Reported(&[DataFusion(12955), DataFusion(12956)]),
        until: RemovalCondition::Fails("stock_sets_still_count_nothing"),
    },
    SessionRule {
        name: "serrate_query_values",
        step: RuleStep::AfterCoercion(query_values::plan_query_values),
        without: "IN and EXISTS as values, and most correlated scalar subqueries, fail",
        upstream: UpstreamReport::Reported(&[DataFusion(23022)]),
        until: RemovalCondition::Fails("stock_queries_are_no_values"),
    },
    SessionRule {
        name: "serrate_unnest_dependencies",
        // Must run after `serrate_query_values`, which turns correlated subqueries into joins and
        // can thereby put an outer query with unique columns below `unnest`.
        step: RuleStep::AfterCoercion(dependencies::drop_unnest_dependencies),
        without: "a GROUP BY key counts as unique above `unnest`",
        upstream: UpstreamReport::Reported(&[DataFusion(24787)]),
        until: RemovalCondition::Fails("stock_unnest_still_keeps_dependencies"),
    },
    SessionRule {
        name: "serrate_three_valued_in",
        step: RuleStep::AfterCoercion(subquery_conditions::rewrite_subquery_conditions),
        without: "`NOT IN (query)` returns rows although the query returns a NULL",
        upstream: UpstreamReport::Reported(&[
            DataFusion(8241),
            DataFusion(25347),
            DataFusion(25473),
        ]),
        until: RemovalCondition::Fails("stock_in_is_still_two_valued"),
    },
    SessionRule {
        name: "serrate_empty_queries",
        step: RuleStep::AfterCoercion(empty_queries::make_queries_nullable),
        without: "a scalar subquery that may return no row counts as never NULL",
        upstream: UpstreamReport::Reported(&[DataFusion(24513), DataFusion(24516)]),
        until: RemovalCondition::Fails("stock_queries_without_rows_are_still_values"),
    },
    SessionRule {
        name: "serrate_window_orders",
        step: RuleStep::AfterCoercion(window_orders::mark_sliding_frames),
        without: "counts over sliding frames count as sorted, so ORDER BY and DISTINCT are dropped",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_counts_over_frames_still_count_as_sorted"),
    },
    SessionRule {
        name: "serrate_cast_groups",
        step: RuleStep::AfterCoercion(cast_groups::keep_cast_groups),
        without: "`GROUP BY f::INT, f` is `GROUP BY f::INT` if the input has unique `f`, and ORDER BY of both loses `f`",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_casts_still_replace_group_keys"),
    },
    SessionRule {
        name: "serrate_joined_groups",
        // Must run after correlated subqueries become joins, because the rule also applies to GROUP
        // BY above these joins.
        step: RuleStep::AfterCoercion(joined_groups::hide_joined_keys),
        without: "above DISTINCT of a join with a grouped table, ORDER BY and GROUP BY lose keys, and joins lose rows",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_groups_above_joins_still_lose_rows"),
    },
    SessionRule {
        name: "serrate_number_truths",
        step: RuleStep::AfterCoercion(boolean_casts::rewrite_boolean_casts),
        without: "`WHERE CAST(i AS BOOLEAN)` makes `i` a constant for ORDER BY and windows",
        upstream: UpstreamReport::Reported(&[DataFusion(25523)]),
        until: RemovalCondition::Fails("stock_truths_of_integers_are_still_one"),
    },
    SessionRule {
        name: "serrate_narrow_floats",
        // Must run before the optimizer replaces columns by their constant values.
        step: RuleStep::AfterCoercion(narrow_floats::compare_as_doubles),
        without: "a list of float32 values compares with a scalar subquery as with a literal, which is rounded to float32",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Feature,
    },
    SessionRule {
        name: shared_rows::SHARED_ONCE,
        // Must run after rules that copy plans: all copies of a `SharedRows` must share one result.
        step: RuleStep::AfterCoercion(shared_rows::share_results),
        without: "a CTE with `random()`, or with LIMIT over groups, has other rows in each place that names it",
        upstream: UpstreamReport::Reported(&[DataFusion(10337)]),
        until: RemovalCondition::Fails("stock_ctes_are_still_computed_twice"),
    },
    SessionRule {
        name: "serrate_list_texts",
        step: RuleStep::AfterCoercion(list_texts::rewrite_list_texts),
        without: "`CAST([1, NULL] AS VARCHAR)` is `[1, ]`",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_texts_of_lists_still_lack_null"),
    },
    SessionRule {
        name: "serrate_time_texts",
        step: RuleStep::AfterCoercion(text_to_time_casts::cast_texts_to_times),
        without: "strings of times without seconds, such as `2024-01-01 10:00`, are errors, and so are strings of intervals without names of units, such as `1d 03:00`",
        upstream: UpstreamReport::Reported(&[Arrow(8219)]),
        until: RemovalCondition::Fails("stock_times_without_seconds_are_still_errors"),
    },
    SessionRule {
        name: "serrate_decimal_texts",
        step: RuleStep::AfterCoercion(text_to_decimal_casts::cast_texts_to_decimals),
        without: "strings of numbers with an exponent, such as `'1e2'`, are not cast to decimals",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_exponents_are_still_no_decimals"),
    },
    SessionRule {
        name: "serrate_float_ranges",
        // Must run after `serrate_inserted_types`, whose casts it checks.
        step: RuleStep::AfterCoercion(float_ranges::check_float_ranges),
        without: "`1e300::FLOAT` is infinite",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_casts_to_floats_are_still_infinite"),
    },
    SessionRule {
        name: "serrate_coarser_times",
        step: RuleStep::AfterCoercion(coarser_times::round_times_down),
        without: "`x::TIMESTAMP(0)` and `to_unixtime(x)` round times before 1970 up",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_casts_before_1970_still_round_up"),
    },
    SessionRule {
        name: "serrate_local_times",
        // Must run after `serrate_coarser_times`, which inserts casts to other zones that this rule
        // must see.
        step: RuleStep::AfterCoercion(local_times::convert_local_times),
        without: "AT TIME ZONE and `+ INTERVAL '1 day'` fail for local times that clocks skip or repeat; a local time is subtracted from an instant as if it were in UTC",
        upstream: UpstreamReport::Reported(&[DataFusion(25084), Arrow(11037)]),
        until: RemovalCondition::Fails("stock_changes_of_clocks_are_still_errors"),
    },
    SessionRule {
        name: "serrate_plain_negations",
        step: RuleStep::AfterCoercion(negations::check_negations),
        without: "`-x` of the least integer is this integer, and `WHERE -x > 5` fails over Parquet files with it",
        upstream: UpstreamReport::Reported(&[DataFusion(24668)]),
        until: RemovalCondition::Fails("stock_negations_still_wrap"),
    },
    SessionRule {
        name: "serrate_xor_pairs",
        step: RuleStep::AfterCoercion(xor_pairs::rewrite_xor_pairs),
        without: "`x ^ x` and `x ^ 5 ^ x` are values where `x` is NULL",
        upstream: UpstreamReport::Reported(&[DataFusion(24246), DataFusion(24248)]),
        until: RemovalCondition::Fails("stock_pairs_of_xor_still_forget_null"),
    },
    SessionRule {
        name: "serrate_volatile_between",
        step: RuleStep::AfterCoercion(volatile_between::evaluate_between_once),
        without: "`random() BETWEEN 0.4 AND 0.6` compares two random numbers",
        upstream: UpstreamReport::Reported(&[DataFusion(25457)]),
        until: RemovalCondition::Fails("stock_between_still_evaluates_its_operand_twice"),
    },
    SessionRule {
        name: "serrate_volatile_coalesce",
        step: RuleStep::AfterCoercion(volatile_coalesce::evaluate_coalesce_once),
        without: "`coalesce` and `ifnull` of a random value evaluate it twice, and may return NULL",
        upstream: UpstreamReport::Reported(&[DataFusion(25477)]),
        until: RemovalCondition::Fails("stock_coalesce_still_evaluates_its_arguments_twice"),
    },
    SessionRule {
        name: "serrate_dictionary_casts",
        step: RuleStep::AfterCoercion(dictionary_casts::cast_dictionary_values),
        without: "casts of dictionaries fail for values that no row has, and make NULL among the values an empty string",
        upstream: UpstreamReport::Reported(&[Arrow(10510)]),
        until: RemovalCondition::Fails("stock_casts_of_dictionaries_still_cast_unused_values"),
    },
    SessionRule {
        name: "serrate_cast_statistics",
        // Must run after the rules that replace casts, because it must see all casts that remain.
        step: RuleStep::AfterCoercion(cast_statistics::hide_cast_statistics),
        without: "`min(s::INT), max(s::INT)` over Parquet are casts of the least and greatest strings; \
                  `t::TIME = TIME '12:00:00'` skips row groups",
        upstream: UpstreamReport::Reported(&[DataFusion(25221)]),
        until: RemovalCondition::Fails("stock_casts_still_keep_statistics"),
    },
    SessionRule {
        name: "eliminate_group_by_constant",
        step: RuleStep::WithoutLogical,
        without: "GROUP BY a column and a cast of it fails, because both get the same name",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_grouping_by_a_cast_still_fails"),
    },
    // The next two items remove rules of DataFusion that move accesses to fields of structs towards
    // the scan.
    SessionRule {
        name: "extract_leaf_expressions",
        step: RuleStep::WithoutLogical,
        without: "`SELECT a, s.b FROM (SELECT -a AS a, s FROM t WHERE a > 0)` returns the `a` of `t`, and a struct with `random()` differs in each field",
        upstream: UpstreamReport::Reported(&[DataFusion(24678), DataFusion(25414)]),
        until: RemovalCondition::Fails("stock_fields_still_replace_computed_columns"),
    },
    SessionRule {
        name: "push_down_leaf_projections",
        step: RuleStep::WithoutLogical,
        without: "the same as for `extract_leaf_expressions`",
        upstream: UpstreamReport::Reported(&[DataFusion(25414)]),
        until: RemovalCondition::Fails("stock_fields_still_replace_computed_columns"),
    },
    SessionRule {
        name: "push_free_conditions",
        step: RuleStep::AroundLogical(&["push_down_filter"], conditions::push_free_conditions),
        without: "conditions that can fail move below joins and fail for rows that the query drops",
        upstream: UpstreamReport::Reported(&[DataFusion(8927)]),
        until: RemovalCondition::Fails("stock_conditions_still_move"),
    },
    SessionRule {
        name: "keep_compared_casts",
        // Must come before `keep_in_lists` and `skip_failing_nodes`, which wrap this function.
        step: RuleStep::AroundLogical(
            &["simplify_expressions"],
            compared_casts::keep_compared_casts,
        ),
        without: "`CAST(1.25 AS INT) = 1` is false, and `CAST(ms AS TIMESTAMP) = t` is true for any `t` within the millisecond",
        upstream: UpstreamReport::Reported(&[
            DataFusion(22142),
            DataFusion(23095),
            DataFusion(24702),
        ]),
        until: RemovalCondition::Fails("stock_casts_still_move_to_literals"),
    },
    SessionRule {
        name: "keep_in_lists",
        step: RuleStep::AroundLogical(&["simplify_expressions"], in_lists::keep_in_lists),
        without: r"`x NOT IN (1, 2) OR x NOT IN (3, 4)` and `s ~ '.*'` are not NULL where `x` and `s` are, and `s ~ 'a\\b'` finds no backslash",
        upstream: UpstreamReport::Reported(&[DataFusion(24246), DataFusion(24258)]),
        until: RemovalCondition::Fails("stock_in_lists_still_forget_null"),
    },
    SessionRule {
        name: "keep_null_equal_joins",
        step: RuleStep::AroundLogical(
            &["extract_equijoin_predicate", "eliminate_cross_join"],
            null_equal_joins::keep_null_equal_joins,
        ),
        without: "`=` above a join by IS NOT DISTINCT FROM, or above a correlated subquery, is true for two NULLs",
        upstream: UpstreamReport::Reported(&[DataFusion(12458)]),
        until: RemovalCondition::Fails("stock_joins_still_mix_equalities_of_null"),
    },
    SessionRule {
        name: "keep_sort_keys",
        step: RuleStep::AroundLogical(&["eliminate_duplicated_expr"], sort_keys::keep_sort_keys),
        without: "`GROUP BY f ORDER BY f::INT, f` is not sorted by `f`",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_casts_still_hide_sort_keys"),
    },
    SessionRule {
        name: "drop_repeated_orders",
        step: RuleStep::AroundLogical(
            &["eliminate_duplicated_expr"],
            repeated_orders::drop_repeated_orders,
        ),
        without: "`first_value(x ORDER BY CASE WHEN true THEN k END, k)` with GROUP BY, and DISTINCT ON of such keys, panic",
        upstream: UpstreamReport::Reported(&[DataFusion(25398)]),
        until: RemovalCondition::Fails("stock_repeated_keys_still_panic"),
    },
    SessionRule {
        name: "keep_branch_tables",
        step: RuleStep::AroundLogical(
            &["propagate_empty_relation"],
            lone_branches::keep_branch_tables,
        ),
        without: "a filter above UNION ALL with one branch that is not empty applies to another table of a join in it",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_filters_of_lone_branches_still_reach_other_tables"),
    },
    SessionRule {
        name: "keep_branch_names",
        step: RuleStep::AroundLogical(
            &["propagate_empty_relation"],
            lone_branches::keep_branch_names,
        ),
        without: "columns of UNION ALL are not found after an empty first branch, if the others have other names",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_unions_still_take_names_from_a_later_branch"),
    },
    SessionRule {
        name: "keep_whole_windows",
        step: RuleStep::AroundLogical(
            &["common_sub_expression_eliminate"],
            whole_windows::keep_whole_windows,
        ),
        without: "`sum(a + b) OVER w, sum(b + a) OVER w`, and windows by PARTITION BY and ORDER BY of one column, fail",
        upstream: UpstreamReport::Reported(&[DataFusion(15190), DataFusion(24750)]),
        until: RemovalCondition::Fails("stock_equal_windows_still_fail"),
    },
    SessionRule {
        name: "skip_failing_nodes",
        step: RuleStep::AroundLogical(
            &["single_distinct_aggregation_to_group_by", "simplify_expressions"],
            failing_rules::skip_failing_nodes,
        ),
        without: "`sum(DISTINCT x)` by a column and a cast of it fails; casts fail that no row evaluates",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_distinct_sums_by_a_cast_still_fail"),
    },
    SessionRule {
        name: "serrate_constant_float_keys",
        // Must run before constants are folded, which already evaluates comparisons of constants.
        step: RuleStep::FirstLogical(ApplyOrder::BottomUp, float_keys::unify_constant_floats),
        without: "constant zeros, and constant NaN, with different signs are not equal",
        upstream: UpstreamReport::Reported(&[DataFusion(22490), DataFusion(22835)]),
        until: RemovalCondition::Fails("stock_comparisons_tell_zeros_and_nan_apart"),
    },
    SessionRule {
        name: "serrate_lazy_conditions",
        // Must run before expressions are simplified, which turns a CASE into AND and OR, and
        // before EXISTS and IN become joins, because the rule changes conditions in their
        // subqueries.
        step: RuleStep::FirstLogical(ApplyOrder::TopDown, conditions::make_conditions_lazy),
        without: "AND, OR and CASE evaluate operands that can fail for rows that do not need them",
        upstream: UpstreamReport::Reported(&[DataFusion(8927), DataFusion(25136)]),
        until: RemovalCondition::Fails("stock_conditions_still_move"),
    },
    SessionRule {
        name: "serrate_nested_constants",
        step: RuleStep::LastLogical(ApplyOrder::BottomUp, nested_constants::hide_nested_constants),
        without: "DISTINCT, PARTITION BY and INTERSECT of constant lists of lists fail",
        upstream: UpstreamReport::Reported(&[DataFusion(24937)]),
        until: RemovalCondition::Fails("stock_constant_lists_of_lists_still_fail"),
    },
    SessionRule {
        name: "serrate_computed_lists",
        step: RuleStep::LastLogical(ApplyOrder::BottomUp, computed_lists::rewrite_moved_lists),
        without: "`SELECT .. FROM (SELECT CASE .. END AS c ..) WHERE x IN (1, c)` returns rows whose list does not contain `x`",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_lists_with_case_are_still_wrong"),
    },
    SessionRule {
        name: "serrate_float_keys",
        step: RuleStep::LastLogical(ApplyOrder::BottomUp, float_keys::unify_float_keys),
        without: "zeros, and NaN, with different signs are not equal in comparisons, groups and joins",
        upstream: UpstreamReport::Reported(&[DataFusion(22490), DataFusion(22835)]),
        until: RemovalCondition::Fails("stock_comparisons_tell_zeros_and_nan_apart"),
    },
    SessionRule {
        name: "serrate_computed_keys",
        // Must run after `serrate_float_keys`, which replaces keys of windows with computed
        // expressions: this rule moves computed keys to a projection.
        step: RuleStep::LastLogical(ApplyOrder::BottomUp, computed_keys::project_computed_keys),
        without: "`ORDER BY length(s) > 1` over several partitions fails, and windows by `abs(v), k` if `v` equals another column",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_comparisons_of_functions_are_still_no_keys"),
    },
    SessionRule {
        name: "serrate_dictionary_keys",
        step: RuleStep::LastLogical(ApplyOrder::BottomUp, dictionary_keys::join_dictionary_values),
        without: "joins by dictionaries of integers fail over Parquet",
        upstream: UpstreamReport::Reported(&[DataFusion(24587)]),
        until: RemovalCondition::Fails("stock_joins_by_integer_dictionaries_still_fail"),
    },
    SessionRule {
        name: "serrate_parquet_fields",
        step: RuleStep::LastLogical(ApplyOrder::TopDown, hidden_values::restore_parquet_fields),
        without: "scans of Parquet read whole structs although one field is needed",
        upstream: UpstreamReport::Reported(&[DataFusion(25120)]),
        until: RemovalCondition::Fails("stock_fields_of_null_are_still_values"),
    },
    SessionRule {
        name: "serrate_flat_filters",
        step: RuleStep::LastLogical(ApplyOrder::TopDown, flat_filters::flatten_filters),
        without: "`ragged_filter` builds inner lists that a reduction over the row ignores",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Speed,
    },
    SessionRule {
        name: "serrate_below_joins",
        step: RuleStep::LastLogical(ApplyOrder::TopDown, below_joins::move_below_joins),
        without: "joins copy lists although only a reduction of them is needed",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Speed,
    },
    SessionRule {
        name: "serrate_lengths_below",
        // Must run last, so that no other rule sees the columns that this rule adds.
        step: RuleStep::LastLogical(ApplyOrder::TopDown, lengths::move_lengths_below),
        without: "scans read lists although only their lengths are needed",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Speed,
    },
    SessionRule {
        name: "serrate_lambda_parameters",
        // Must run before any rule reads the type of a lambda parameter.
        step: RuleStep::FirstPhysical(lambdas::separate_lambda_parameters),
        without: "lambda parameters read columns instead of list elements",
        upstream: UpstreamReport::Reported(&[DataFusion(24372)]),
        until: RemovalCondition::Fails("stock_parameters_are_still_read_from_columns"),
    },
    SessionRule {
        name: "serrate_merge_join_filters",
        // Must run before `join_selection`, which chooses the build sides of the new hash joins.
        step: RuleStep::FirstPhysical(merge_joins::replace_merge_joins),
        without: "merge joins with a condition fail, or return rows in another order than they claim",
        upstream: UpstreamReport::Reported(&[DataFusion(21197)]),
        until: RemovalCondition::Fails("stock_merge_joins_still_fail"),
    },
    SessionRule {
        name: "serrate_partition_constants",
        step: RuleStep::FirstPhysical(partition_constants::hide_partition_constants),
        without: "`ORDER BY x` does not sort a UNION ALL that ORDER BY a literal and `x` with LIMIT sorts",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_merges_still_claim_orders_of_partitions"),
    },
    SessionRule {
        name: "serrate_unique_partitions",
        step: RuleStep::FirstPhysical(unique_partitions::hide_unique_columns),
        without: "windows by the key of a GROUP BY and an aggregate of it fail if the rows are sorted",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_windows_over_unique_keys_still_fail"),
    },
    SessionRule {
        name: "serrate_unnested_names",
        // Must run before repartitionings and sorts are planned, which rely on what an `unnest`
        // claims of its columns.
        step: RuleStep::FirstPhysical(unnested_names::separate_unnested_names),
        without: "above `unnest` of a join of tables with a column `k`, ORDER BY `a.k` may not sort, and GROUP BY `a.k` repeats keys",
        upstream: UpstreamReport::Reported(&[DataFusion(23394)]),
        until: RemovalCondition::Fails("stock_unnest_still_finds_columns_by_name"),
    },
    SessionRule {
        name: "serrate_moved_keys",
        step: RuleStep::FirstPhysical(moved_keys::hide_moved_keys),
        without: "`SELECT rank() .. AS r, k .. GROUP BY k ORDER BY r, k` is not sorted by `k`",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_projections_still_move_keys"),
    },
    SessionRule {
        name: "serrate_plain_equations",
        // Must run before sorts are enforced, because DataFusion then simplifies sort keys by
        // equations such as `v = abs(v)`.
        step: RuleStep::FirstPhysical(equations::rewrite_equations),
        without: "windows partitioned by `v` fail above a condition such as `v = abs(v)`",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_windows_over_equations_still_fail"),
    },
    SessionRule {
        name: "serrate_lost_constants",
        // Must run after `aggregate_statistics`, which replaces aggregates with literals, that is,
        // with constants.
        step: RuleStep::AfterPhysical("aggregate_statistics", sorts::hide_lost_constants),
        without: "columns that outer joins and GROUPING SETS fill with NULL count as constant",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_constants_are_still_kept_where_they_are_null"),
    },
    SessionRule {
        name: "serrate_memory_order",
        // Must run before DataFusion distributes the batches of tables in memory among partitions,
        // because the distribution changes their order.
        step: RuleStep::FirstPhysical(order_rules::keep_memory_order),
        without: "LIMIT over tables in memory does not return the first rows",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Feature,
    },
    SessionRule {
        name: "serrate_sorted_inputs",
        // Must run before `EnsureRequirements` merges the partitions by their keys.
        step: RuleStep::FirstPhysical(order_rules::concatenate_sorted_inputs),
        without: "LIMIT over UNION ALL of sorted queries, and over sorted files, depends on the partitions",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Feature,
    },
    SessionRule {
        name: "serrate_asof_projections",
        // Must run before a repartitioning is inserted between a projection and its scan, because
        // the projection is then no longer directly above the scan.
        step: RuleStep::FirstPhysical(asof::push_asof_projections),
        without: "scans of labels copy the history of each label",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Speed,
    },
    SessionRule {
        name: "serrate_contains_pushdown",
        // Must run before conditions are pushed into scans, so that the conditions that this rule
        // rewrites are pushed, too.
        step: RuleStep::FirstPhysical(contains::push_contains),
        without: "Parquet scans do not evaluate `ragged_any(x == v)`",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Speed,
    },
    SessionRule {
        name: "serrate_leaf_partitions",
        // Must run before DataFusion plans partitions, so that it sees the divided scan.
        step: RuleStep::FirstPhysical(partitions::divide_leaves),
        without: "one thread reads a file of few rows and many leaves",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Speed,
    },
    SessionRule {
        name: "serrate_join_orders",
        // Must run after `join_selection` has chosen the build sides of joins, on which the order
        // of the joined rows depends, and before sorts are removed because of a wrong order.
        step: RuleStep::AfterPhysical("join_selection", join_orders::hide_join_orders),
        without: "`ORDER BY b, a` does not sort by `a` over a join of sides in the orders `b` and `a`",
        upstream: UpstreamReport::Reported(&[DataFusion(25052), DataFusion(25053)]),
        until: RemovalCondition::Fails("stock_joins_still_claim_two_orders"),
    },
    SessionRule {
        name: "serrate_lost_constants",
        step: RuleStep::AfterPhysical("FilterPushdown", sorts::hide_lost_constants),
        without: "columns that conditions in scans make constant, and outer joins NULL, count as constant",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_constants_are_still_kept_where_they_are_null"),
    },
    SessionRule {
        name: "serrate_lengths_into_scan",
        // Must run after conditions are pushed into scans, and before a repartitioning is inserted
        // between the projection and the scan: only a projection directly above a scan is pushed.
        step: RuleStep::AfterPhysical("FilterPushdown", lengths::push_lengths),
        without: "scans read the values of lists although only lengths are needed",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Speed,
    },
    SessionRule {
        name: "serrate_merged_orders",
        // Must run after all joins and conditions are in place, because the rule reads the orders
        // of inputs, which depend on the joins and conditions.
        step: RuleStep::BeforePhysical("EnsureRequirements", merged_orders::hide_other_orders),
        without: "ORDER BY a year does not sort rows of UNION ALL that ORDER BY a time with LIMIT merged",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_merges_still_claim_every_order"),
    },
    SessionRule {
        name: "serrate_merged_orders",
        // Must run after `serrate_missing_partitions`, which therefore follows in this list: of two
        // rules after the same rule of DataFusion, the second in the list runs first.
        step: RuleStep::AfterPhysical("EnsureRequirements", merged_orders::merge_by_all_keys),
        without: "`ORDER BY x, y` does not sort rows in the order `x, y` of several files that ORDER BY x with LIMIT merged",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_merges_still_claim_every_order"),
    },
    SessionRule {
        name: "serrate_missing_partitions",
        step: RuleStep::AfterPhysical(
            "EnsureRequirements",
            missing_partitions::add_missing_partitions,
        ),
        without: "GROUP BY of a subquery with ORDER BY fails for a table in memory with several partitions and no rows",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_removed_sorts_still_leave_partitions"),
    },
    SessionRule {
        name: "serrate_whole_float_groups",
        step: RuleStep::AfterPhysical("LimitAggregation", topk::remove_float_limits),
        without: "GROUP BY .. ORDER BY .. LIMIT of floats drops NaN, or panics",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_topk_of_floats_is_still_wrong"),
    },
    // The next two rules run after all sorts are in place and before plans are checked.
    SessionRule {
        name: "serrate_unordered_keys",
        // This rule hides orders, so the next rule, `serrate_missing_sorts`, may have to add sorts.
        step: RuleStep::BeforePhysical("SanityCheckPlan", sorts::hide_unordered_keys),
        without: "grouping by constant lists of lists fails",
        upstream: UpstreamReport::Reported(&[DataFusion(24937)]),
        until: RemovalCondition::Fails("stock_distinct_of_constant_lists_still_fails"),
    },
    SessionRule {
        name: "serrate_missing_sorts",
        step: RuleStep::BeforePhysical("SanityCheckPlan", sorts::add_missing_sorts),
        without: "plans over UNION ALL lack sorts that operators need",
        upstream: UpstreamReport::Reported(&[
            DataFusion(16171),
            DataFusion(17372),
            DataFusion(23528),
        ]),
        until: RemovalCondition::Fails("stock_unions_with_a_constant_still_fail"),
    },
    SessionRule {
        name: "guard_pushdowns",
        step: RuleStep::AroundPhysical(
            &["FilterPushdown", "ProjectionPushdown"],
            guarded_rules::guard_pushdowns,
        ),
        without: "filters and projections apply to other columns of the same name",
        upstream: UpstreamReport::Reported(&[
            DataFusion(21246),
            DataFusion(25244),
            DataFusion(25259),
            DataFusion(25296),
        ]),
        until: RemovalCondition::Fails("stock_filter_pushdown_is_still_wrong"),
    },
    SessionRule {
        name: "guard_pushdowns",
        step: RuleStep::AroundPhysical(&["FilterPushdown(Post)"], guarded_rules::guard_pushdowns),
        without: "a hash join below a partitioned join waits forever for its dynamic filter",
        upstream: UpstreamReport::Reported(&[DataFusion(21666)]),
        until: RemovalCondition::Fails("stock_joins_below_partitioned_joins_still_hang"),
    },
    SessionRule {
        name: "guard_pushdowns",
        step: RuleStep::AroundPhysical(&["PushdownSort"], guarded_rules::guard_pushdowns),
        without: "ORDER BY above a subquery with LIMIT returns other rows of Parquet files",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_limited_scans_still_reorder_rows"),
    },
    SessionRule {
        name: "keep_filtered_aggregates",
        step: RuleStep::AroundPhysical(
            &["aggregate_statistics"],
            filtered_aggregates::keep_filtered_aggregates,
        ),
        without: "an aggregate with FILTER of a subquery that is an aggregate fails, or returns the inner aggregate",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_statistics_still_replace_filtered_aggregates"),
    },
    SessionRule {
        name: "keep_distinct_counts",
        step: RuleStep::AroundPhysical(
            &["aggregate_statistics"],
            distinct_counts::keep_distinct_counts,
        ),
        without: "`count(DISTINCT c), count(*)` counts a constant NULL, and values of rows that a cross join drops",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_distinct_counts_are_still_those_of_statistics"),
    },
    SessionRule {
        name: "keep_empty_inputs",
        step: RuleStep::AroundPhysical(&["aggregate_statistics"], empty_inputs::keep_empty_inputs),
        without: "`min` and `max` over UNION ALL return literals of inputs without rows",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_extremes_still_include_literals_without_rows"),
    },
    SessionRule {
        name: "hide_limits",
        step: RuleStep::AroundPhysical(&["EnsureRequirements"], opaque_limits::hide_limits),
        without: "ORDER BY moves below a LIMIT or an OFFSET, and LIMIT below a window function; OFFSET above ORDER BY a column that is not selected skips other rows",
        upstream: UpstreamReport::Reported(&[DataFusion(25378), DataFusion(25408)]),
        until: RemovalCondition::Fails("stock_sorts_still_move_below_limits"),
    },
    SessionRule {
        name: "keep_nested_windows",
        step: RuleStep::AroundPhysical(
            &["LimitPushPastWindows"],
            nested_windows::keep_nested_windows,
        ),
        without: "windows over the results of windows lack rows below a LIMIT if both frames end after the current row",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_limits_still_forget_nested_windows"),
    },
    SessionRule {
        name: "serrate_sorted_distinct",
        // Must run after all sorts are in place, because the limit is wrong only above sorted rows.
        step: RuleStep::LastPhysical(topk::remove_distinct_limits),
        without: "DISTINCT .. LIMIT above a window function fails",
        upstream: UpstreamReport::Reported(&[DataFusion(25350)]),
        until: RemovalCondition::Fails("stock_limits_of_sorted_distinct_rows_still_fail"),
    },
    SessionRule {
        name: "serrate_range_frames",
        step: RuleStep::LastPhysical(range_frames::read_whole_partitions),
        without: "frames `RANGE .. AND n PRECEDING` at NULL and at infinity miss peers in later batches",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_range_frames_of_nulls_still_miss_peers"),
    },
    SessionRule {
        name: "serrate_asof_order",
        step: RuleStep::LastPhysical(asof::keep_asof_order),
        without: "`meds_asof` returns rows in any order",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Feature,
    },
    SessionRule {
        name: "serrate_source_order",
        step: RuleStep::LastPhysical(order_rules::keep_source_order),
        without: "LIMIT and files that identify rows by position do not get rows in source order",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Feature,
    },
    SessionRule {
        name: "serrate_offset_into_scan",
        step: RuleStep::LastPhysical(offset::push_offsets),
        without: "scans read the rows that OFFSET skips",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Speed,
    },
    SessionRule {
        name: "serrate_leaf_batches",
        step: RuleStep::LastPhysical(leaf_limit::limit_leaves),
        without: "batches of long lists take gigabytes",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Speed,
    },
    SessionRule {
        name: "serrate_repeated_constants",
        // Must run after `serrate_leaf_batches`, whose batch sizes it lowers.
        step: RuleStep::LastPhysical(repeated_constants::limit_constants),
        without: "a long constant list ends the process, because each row of a batch gets a copy",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Feature,
    },
    SessionRule {
        name: "serrate_ordered_scan_limits",
        // Must run after every limit is pushed into its scan, because it changes scans with a
        // limit.
        step: RuleStep::LastPhysical(scan_order::order_limited_scans),
        without: "a LIMIT in an ordered Parquet scan skips row groups and returns later rows",
        upstream: UpstreamReport::Reported(&[DataFusion(24272)]),
        until: RemovalCondition::Fails("stock_limits_drop_row_groups"),
    },
    SessionRule {
        name: "serrate_parquet_lists",
        // Must run after all rules that change scans, because these rules would not recognize the
        // scans that this rule makes. The setting `serrate.parquet_lists` switches off this rule.
        step: RuleStep::LastPhysical(parquet::decode_lists),
        without: "lists in Parquet files are decoded three to four times as slowly",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Feature,
    },
    SessionRule {
        name: "SortLists",
        step: RuleStep::LastPhysical(sort_lists::split_list_sorts),
        without: "ORDER BY lists with NULL and LIMIT loses rows",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Passes("order_by_lists_does_not_depend_on_batches"),
    },
    SessionRule {
        name: "serrate_distinct_recursions",
        step: RuleStep::LastPhysical(distinct_recursions::drop_repeated_rows),
        without: "WITH RECURSIVE .. UNION loses rows after NULL and empty lists, and repeats NaN and equal intervals",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_recursive_unions_still_lose_rows"),
    },
    SessionRule {
        name: "serrate_compact_texts",
        step: RuleStep::LastPhysical(compact_texts::compact_texts),
        without: "sorts of strings spill early or fail at the memory limit, because each batch counts the buffers of many others",
        upstream: UpstreamReport::Reported(&[DataFusion(12136), DataFusion(25271)]),
        until: RemovalCondition::Fails("stock_sorts_still_count_shared_buffers"),
    },
    SessionRule {
        name: "serrate_copied_inputs",
        step: RuleStep::LastPhysical(copied::reserve_copies),
        without: "a hash join of lists takes up to twice the memory limit",
        upstream: UpstreamReport::Reported(&[DataFusion(25269), DataFusion(25496)]),
        until: RemovalCondition::Fails("stock_hash_joins_still_do_not_reserve_copies"),
    },
    SessionRule {
        name: "serrate_yielding_joins",
        step: RuleStep::LastPhysical(yielding::pace_joins),
        without: "long joins cannot be cancelled",
        upstream: UpstreamReport::Reported(&[DataFusion(19358)]),
        until: RemovalCondition::Fails("stock_joins_still_do_not_yield"),
    },
    SessionRule {
        name: "serrate_deep_stacks",
        step: RuleStep::LastPhysical(stack::deepen_stacks),
        without: "deep expressions overflow the stack",
        upstream: UpstreamReport::Reported(&[DataFusion(8900), DataFusion(22229)]),
        until: RemovalCondition::Fails("stock_deep_expressions_still_overflow_the_stack"),
    },
    SessionRule {
        name: "serrate_named_files",
        step: RuleStep::LastPhysical(guarded_source::name_files),
        without: "errors do not name their file, and a damaged file ends the process",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Feature,
    },
];
