//! The rules that run in analysis, before and after type coercion, in their order.

use super::session_rule::UpstreamIssue::{Arrow, DataFusion};
use super::session_rule::{RemovalCondition, RuleStep, SessionRule, UpstreamReport};
use crate::sql::base::plan_facts::PlanFact::{
    Aggregate, AggregateCall, AnyPlan, Between, Binary, Case, Cast, CastCall, Change, ChoiceCall,
    Distinct, Extension, Function, InList, Join, LambdaCall, Like, Negative, Order, Query,
    Recursion, SelectNothing, SimilarTo, Sort, Sum, Text, Time, Union, Unnest, Values, Window,
    WindowCall, Xor,
};
use crate::sql::checks::list_uses;
use crate::sql::workarounds::expressions::{
    chosen_tokens, computed_lists, hidden_values, lambdas, negations, nested_order, similar,
    volatile_between, volatile_coalesce, xor_pairs,
};
use crate::sql::workarounds::grouping::{cast_groups, dependencies, joined_groups};
use crate::sql::workarounds::joins_and_unions::{
    multisets, recursive_metadata, union_tensors, unions,
};
use crate::sql::workarounds::subqueries::correlated::query_values;
use crate::sql::workarounds::subqueries::{
    empty_queries, grouped_outer, rows_in, shared_rows, subquery_conditions,
};
use crate::sql::workarounds::types::{
    boolean_casts, cast_statistics, coarser_times, decimals, dictionary_casts, float_ranges,
    large_texts, list_texts, local_times, narrow_floats, nearest_floats, text_to_decimal_casts,
    text_to_list_casts, text_to_time_casts, texts, times,
};
use crate::sql::workarounds::windows::{duration_windows, wide_frames, window_keys, window_orders};
use crate::sql::workarounds::{changes, from_alone, inserted_nulls, inserted_types};

pub(super) static ANALYSIS_RULES: &[SessionRule] = &[
    SessionRule {
        name: "serrate_list_hints",
        // Must run before type coercion, which replaces the expressions that the errors show.
        step: RuleStep::FirstOfAll(list_uses::CHECKED, list_uses::suggest_list_functions),
        without: "errors of operators on lists have no suggestion",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Feature,
    },
    SessionRule {
        name: "serrate_plain_changes",
        // Must run before rules that change expressions. The query that finds the rows to change is
        // built from the expressions as written in the statement; all rules are then applied to
        // this query.
        step: RuleStep::FirstOfAll(&[AnyPlan], changes::plan_changes),
        without: "DELETE and UPDATE with a subquery in WHERE change every row",
        upstream: UpstreamReport::Reported(&[DataFusion(24654)]),
        until: RemovalCondition::Fails("stock_deletes_with_subqueries_still_change_every_row"),
    },
    SessionRule {
        name: "serrate_grouped_outer",
        // Must run before type coercion, which may add a cast to a GROUP BY key but not to the same
        // expression in a subquery, or the reverse, so that the rule would not recognize them as
        // equal.
        step: RuleStep::BeforeCoercion(&[Query], grouped_outer::name_computed_keys),
        without: "`GROUP BY x + 1 HAVING EXISTS (SELECT .. WHERE z.i = t.x + 1)` fails",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_computed_keys_are_still_no_outer_columns"),
    },
    SessionRule {
        name: "serrate_rows_in",
        step: RuleStep::BeforeCoercion(&[Query], rows_in::rewrite_rows_in),
        without: "`(a, b) IN (SELECT x, y ..)` fails",
        upstream: UpstreamReport::Reported(&[DataFusion(19857)]),
        until: RemovalCondition::Fails("stock_rows_in_queries_still_fail"),
    },
    SessionRule {
        name: "serrate_exact_times",
        step: RuleStep::BeforeCoercion(&[Change, LambdaCall, Query, Time], times::compare_exactly),
        without: "timestamps far from 1970 overflow, durations and intervals compare wrongly",
        upstream: UpstreamReport::Reported(&[DataFusion(22756)]),
        until: RemovalCondition::Fails("stock_functions_still_work_in_nanoseconds"),
    },
    SessionRule {
        name: "serrate_one_text",
        step: RuleStep::BeforeCoercion(&[AggregateCall, Like], texts::cast_dictionaries),
        without: "LIKE of a dictionary with a column of strings fails, and aggregates of dictionaries",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_patterns_of_dictionaries_still_fail"),
    },
    SessionRule {
        name: "serrate_text_lists",
        step: RuleStep::BeforeCoercion(&[Cast], text_to_list_casts::cast_texts_to_lists),
        without: "`'[1, 2]'::INT[]` fails, and `'[a, b]'::VARCHAR[]` has one element",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_texts_of_lists_are_still_elements"),
    },
    SessionRule {
        name: "serrate_stable_decimals",
        step: RuleStep::BeforeCoercion(
            &[Between, Binary, Case, Cast, Function, InList, Join, Query, Union, Values],
            decimals::stabilize_decimals,
        ),
        without: "floats compared with decimals become decimals, and `round` changes its type",
        upstream: UpstreamReport::Reported(&[DataFusion(14272)]),
        until: RemovalCondition::Fails("stock_floats_become_decimals"),
    },
    SessionRule {
        name: "serrate_large_texts",
        step: RuleStep::BeforeCoercion(&[Text], large_texts::compare_large_texts),
        without: "a float32 that is infinite equals `'1e300'`",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_texts_of_large_numbers_are_still_infinite"),
    },
    SessionRule {
        name: "serrate_similar_patterns",
        step: RuleStep::BeforeCoercion(&[SimilarTo], similar::translate_similar_patterns),
        without: "SIMILAR TO searches for its pattern instead of matching the whole string",
        upstream: UpstreamReport::Reported(&[DataFusion(22263), DataFusion(23188)]),
        until: RemovalCondition::Fails("stock_similar_to_still_searches"),
    },
    SessionRule {
        name: "serrate_duration_windows",
        step: RuleStep::BeforeCoercion(&[WindowCall], duration_windows::cast_window_durations),
        without: "windows ordered by durations fail",
        upstream: UpstreamReport::Reported(&[DataFusion(24916)]),
        until: RemovalCondition::Fails("stock_windows_over_durations_still_fail"),
    },
    SessionRule {
        name: "serrate_window_keys",
        step: RuleStep::BeforeCoercion(
            &[Aggregate, Distinct, Window],
            window_keys::replace_window_keys,
        ),
        without: "windows over lists of lists and structs fail",
        upstream: UpstreamReport::Reported(&[DataFusion(24937)]),
        until: RemovalCondition::Fails("stock_windows_over_lists_of_lists_still_fail"),
    },
    SessionRule {
        name: "serrate_wide_frames",
        step: RuleStep::BeforeCoercion(&[Window], wide_frames::widen_frames),
        without: "frames `RANGE .. AND n FOLLOWING` whose end does not fit the type include NULL",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_frames_beyond_a_type_still_include_null"),
    },
    SessionRule {
        name: "serrate_lambda_types",
        // Must run after rules that change the types of CASE branches, because a lambda over CASE
        // gets its parameter types from the branches.
        step: RuleStep::BeforeCoercion(&[LambdaCall], lambdas::retype_lambdas),
        without: "lambdas over CASE fail if its branches are lists of different types",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_parameters_over_case_still_fail"),
    },
    SessionRule {
        name: "serrate_chosen_tokens",
        // Must run before `serrate_union_tensors`, which compares the vocabularies of the inputs of
        // a UNION.
        step: RuleStep::BeforeCoercion(&[Case, Function], chosen_tokens::tag_chosen_tokens),
        without: "CASE and `coalesce` of tokens lose their vocabulary, and those of two vocabularies are decoded as one",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_case_still_has_no_metadata"),
    },
    SessionRule {
        name: "serrate_union_tensors",
        // Must run before type coercion, which merges the metadata of the inputs and recomputes the
        // schemas of the nodes above.
        step: RuleStep::BeforeCoercion(&[Union], union_tensors::untag_mixed_tensors),
        without: "a UNION of tensors of several shapes has the shape of its last query, and one of tokens of several vocabularies names that of its last query",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_unions_still_take_tensors_from_the_last_query"),
    },
    SessionRule {
        name: "serrate_from_alone",
        step: RuleStep::AfterCoercion(&[SelectNothing], from_alone::select_all_columns),
        without: "`FROM t` without SELECT has no columns",
        upstream: UpstreamReport::Reported(&[DataFusion(17520)]),
        until: RemovalCondition::Fails("stock_from_alone_still_has_no_columns"),
    },
    SessionRule {
        name: "serrate_inserted_types",
        step: RuleStep::AfterCoercion(&[AnyPlan], inserted_types::cast_inserted_columns),
        without: "INSERT of a CASE or UNION whose branches differ in type makes its table unreadable",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_inserts_still_write_other_types"),
    },
    SessionRule {
        name: "serrate_inserted_nulls",
        // Must run after `serrate_inserted_types`, so that the checked columns have their types.
        step: RuleStep::AfterCoercion(&[AnyPlan], inserted_nulls::check_inserted_nulls),
        without: "the error about a NULL in a NOT NULL column does not name the column of the table",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_errors_of_null_still_lack_the_column"),
    },
    SessionRule {
        name: "serrate_flat_unions",
        step: RuleStep::AfterCoercion(&[Union], unions::flatten_unions),
        without: "planning takes time quadratic in the number of UNIONs; projections of nested ones mix up columns",
        upstream: UpstreamReport::Reported(&[DataFusion(17261)]),
        until: RemovalCondition::Fails("stock_projections_of_unions_still_mix_columns"),
    },
    SessionRule {
        name: "serrate_hidden_values",
        step: RuleStep::AfterCoercion(&[Function, Unnest], hidden_values::mask_hidden_values),
        without: "`s.a` and `array_append(x, 1)` return what lies below a NULL struct or list",
        upstream: UpstreamReport::Reported(&[DataFusion(25120)]),
        until: RemovalCondition::Fails("stock_fields_of_null_are_still_values"),
    },
    // The following rules run after type coercion, because they need the final types of
    // expressions.
    SessionRule {
        name: "serrate_computed_lists",
        step: RuleStep::AfterCoercion(&[InList], computed_lists::rewrite_computed_lists),
        without: "`x IN (1, CASE ..)` is true for values that the list does not contain",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_lists_with_case_are_still_wrong"),
    },
    SessionRule {
        name: "serrate_nested_order",
        step: RuleStep::AfterCoercion(
            &[AggregateCall, Between, Distinct, Function, Order, Query, Sort, WindowCall],
            nested_order::unify_nested_order,
        ),
        without: "comparisons and sorts of lists and structs with NULL use different orders",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_comparisons_of_lists_have_least_nulls"),
    },
    SessionRule {
        name: "serrate_counted_sets",
        // Must run before `serrate_query_values`, which turns correlated subqueries into joins and
        // adds columns to the inputs of set operations: rows that differ only in such a column
        // would no longer be equal.
        step: RuleStep::AfterCoercion(&[Join], multisets::number_equal_rows),
        without: "EXCEPT ALL and INTERSECT ALL do not match equal rows one to one",
        upstream: UpstreamReport::Reported(&[DataFusion(12955), DataFusion(12956)]),
        until: RemovalCondition::Fails("stock_sets_still_count_nothing"),
    },
    SessionRule {
        name: "serrate_query_values",
        step: RuleStep::AfterCoercion(
            &[AggregateCall, Distinct, Join, Query, Sort, Window],
            query_values::plan_query_values,
        ),
        without: "IN and EXISTS as values, and most correlated scalar subqueries, fail",
        upstream: UpstreamReport::Reported(&[DataFusion(23022)]),
        until: RemovalCondition::Fails("stock_queries_are_no_values"),
    },
    SessionRule {
        name: "serrate_unnest_dependencies",
        // Must run after `serrate_query_values`, which turns correlated subqueries into joins and
        // can thereby put an outer query with unique columns below `unnest`.
        step: RuleStep::AfterCoercion(&[Unnest], dependencies::drop_unnest_dependencies),
        without: "a GROUP BY key counts as unique above `unnest`",
        upstream: UpstreamReport::Reported(&[DataFusion(24787)]),
        until: RemovalCondition::Fails("stock_unnest_still_keeps_dependencies"),
    },
    SessionRule {
        name: "serrate_three_valued_in",
        step: RuleStep::AfterCoercion(&[Query], subquery_conditions::rewrite_subquery_conditions),
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
        step: RuleStep::AfterCoercion(&[Query], empty_queries::make_queries_nullable),
        without: "a scalar subquery that may return no row counts as never NULL",
        upstream: UpstreamReport::Reported(&[DataFusion(24513), DataFusion(24516)]),
        until: RemovalCondition::Fails("stock_queries_without_rows_are_still_values"),
    },
    SessionRule {
        name: "serrate_window_orders",
        step: RuleStep::AfterCoercion(&[Window], window_orders::mark_sliding_frames),
        without: "counts over sliding frames count as sorted, so ORDER BY and DISTINCT are dropped",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_counts_over_frames_still_count_as_sorted"),
    },
    SessionRule {
        name: "serrate_cast_groups",
        step: RuleStep::AfterCoercion(&[Aggregate], cast_groups::keep_cast_groups),
        without: "`GROUP BY f::INT, f` is `GROUP BY f::INT` if the input has unique `f`, and ORDER BY of both loses `f`",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_casts_still_replace_group_keys"),
    },
    SessionRule {
        name: "serrate_joined_groups",
        // Must run after correlated subqueries become joins, because the rule also applies to GROUP
        // BY above these joins.
        step: RuleStep::AfterCoercion(&[Aggregate, Distinct], joined_groups::hide_joined_keys),
        without: "above DISTINCT of a join with a grouped table, ORDER BY and GROUP BY lose keys, and joins lose rows",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_groups_above_joins_still_lose_rows"),
    },
    SessionRule {
        name: "serrate_number_truths",
        step: RuleStep::AfterCoercion(&[Cast], boolean_casts::rewrite_boolean_casts),
        without: "`WHERE CAST(i AS BOOLEAN)` makes `i` a constant for ORDER BY and windows",
        upstream: UpstreamReport::Reported(&[DataFusion(25523)]),
        until: RemovalCondition::Fails("stock_truths_of_integers_are_still_one"),
    },
    SessionRule {
        name: "serrate_narrow_floats",
        // Must run before the optimizer replaces columns by their constant values.
        step: RuleStep::AfterCoercion(&[Function], narrow_floats::compare_as_doubles),
        without: "a list of float32 values compares with a scalar subquery as with a literal, which is rounded to float32",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Feature,
    },
    SessionRule {
        name: shared_rows::SHARED_ONCE,
        // Must run after rules that copy plans: all copies of a `SharedRows` must share one result.
        step: RuleStep::AfterCoercion(&[Extension, Recursion], shared_rows::share_results),
        without: "a CTE with `random()`, or with LIMIT over groups, has other rows in each place that names it",
        upstream: UpstreamReport::Reported(&[DataFusion(10337)]),
        until: RemovalCondition::Fails("stock_ctes_are_still_computed_twice"),
    },
    SessionRule {
        name: "serrate_list_texts",
        step: RuleStep::AfterCoercion(&[Cast, CastCall], list_texts::rewrite_list_texts),
        without: "`CAST([1, NULL] AS VARCHAR)` is `[1, ]`",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_texts_of_lists_still_lack_null"),
    },
    SessionRule {
        name: "serrate_time_texts",
        step: RuleStep::AfterCoercion(&[Cast, CastCall], text_to_time_casts::cast_texts_to_times),
        without: "strings of times without seconds, such as `2024-01-01 10:00`, are errors, and so are strings of intervals without names of units, such as `1d 03:00`",
        upstream: UpstreamReport::Reported(&[Arrow(8219)]),
        until: RemovalCondition::Fails("stock_times_without_seconds_are_still_errors"),
    },
    SessionRule {
        name: "serrate_decimal_texts",
        step: RuleStep::AfterCoercion(
            &[Cast, CastCall],
            text_to_decimal_casts::cast_texts_to_decimals,
        ),
        without: "strings of numbers with an exponent, such as `'1e2'`, are not cast to decimals",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_exponents_are_still_no_decimals"),
    },
    SessionRule {
        name: "serrate_float_ranges",
        // Must run after `serrate_inserted_types`, whose casts it checks.
        step: RuleStep::AfterCoercion(&[Cast], float_ranges::check_float_ranges),
        without: "`1e300::FLOAT` is infinite",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_casts_to_floats_are_still_infinite"),
    },
    SessionRule {
        name: "serrate_nearest_floats",
        // Must run after `serrate_float_ranges`, which checks the decimals.
        step: RuleStep::AfterCoercion(&[Cast, CastCall], nearest_floats::round_decimals_once),
        without: "`0.1::DECIMAL(38, 38)::DOUBLE` is less than 0.1",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_decimals_are_still_rounded_twice"),
    },
    SessionRule {
        name: "serrate_coarser_times",
        step: RuleStep::AfterCoercion(&[Cast, CastCall], coarser_times::round_times_down),
        without: "`x::TIMESTAMP(0)` and `to_unixtime(x)` round times before 1970 up",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_casts_before_1970_still_round_up"),
    },
    SessionRule {
        name: "serrate_local_times",
        // Must run after `serrate_coarser_times`, which inserts casts to other zones that this rule
        // must see.
        step: RuleStep::AfterCoercion(&[Cast, CastCall, Sum], local_times::convert_local_times),
        without: "AT TIME ZONE and `+ INTERVAL '1 day'` fail for local times that clocks skip or repeat; a local time is subtracted from an instant as if it were in UTC",
        upstream: UpstreamReport::Reported(&[DataFusion(25084), Arrow(11037)]),
        until: RemovalCondition::Fails("stock_changes_of_clocks_are_still_errors"),
    },
    SessionRule {
        name: "serrate_plain_negations",
        step: RuleStep::AfterCoercion(&[Negative], negations::check_negations),
        without: "`-x` of the least integer is this integer, and `WHERE -x > 5` fails over Parquet files with it",
        upstream: UpstreamReport::Reported(&[DataFusion(24668)]),
        until: RemovalCondition::Fails("stock_negations_still_wrap"),
    },
    SessionRule {
        name: "serrate_xor_pairs",
        step: RuleStep::AfterCoercion(&[Xor], xor_pairs::rewrite_xor_pairs),
        without: "`x ^ x` and `x ^ 5 ^ x` are values where `x` is NULL",
        upstream: UpstreamReport::Reported(&[DataFusion(24246), DataFusion(24248)]),
        until: RemovalCondition::Fails("stock_pairs_of_xor_still_forget_null"),
    },
    SessionRule {
        name: "serrate_volatile_between",
        step: RuleStep::AfterCoercion(&[Between], volatile_between::evaluate_between_once),
        without: "`random() BETWEEN 0.4 AND 0.6` compares two random numbers",
        upstream: UpstreamReport::Reported(&[DataFusion(25457)]),
        until: RemovalCondition::Fails("stock_between_still_evaluates_its_operand_twice"),
    },
    SessionRule {
        name: "serrate_volatile_coalesce",
        step: RuleStep::AfterCoercion(&[ChoiceCall], volatile_coalesce::evaluate_coalesce_once),
        without: "`coalesce` and `ifnull` of a random value evaluate it twice, and may return NULL",
        upstream: UpstreamReport::Reported(&[DataFusion(25477)]),
        until: RemovalCondition::Fails("stock_coalesce_still_evaluates_its_arguments_twice"),
    },
    SessionRule {
        name: "serrate_dictionary_casts",
        step: RuleStep::AfterCoercion(&[Cast], dictionary_casts::cast_dictionary_values),
        without: "casts of dictionaries fail for values that no row has, and make NULL among the values an empty string",
        upstream: UpstreamReport::Reported(&[Arrow(10510)]),
        until: RemovalCondition::Fails("stock_casts_of_dictionaries_still_cast_unused_values"),
    },
    SessionRule {
        name: "serrate_cast_statistics",
        // Must run after the rules that replace casts, because it must see all casts that remain.
        step: RuleStep::AfterCoercion(&[Cast, CastCall], cast_statistics::hide_cast_statistics),
        without: "`min(s::INT), max(s::INT)` over Parquet are casts of the least and greatest strings; \
                  `t::TIME = TIME '12:00:00'` skips row groups",
        upstream: UpstreamReport::Reported(&[DataFusion(25221)]),
        until: RemovalCondition::Fails("stock_casts_still_keep_statistics"),
    },
    SessionRule {
        name: "serrate_recursive_metadata",
        // Must run after the rules that replace expressions, whose metadata it compares.
        step: RuleStep::AfterCoercion(&[Recursion], recursive_metadata::remove_recursive_metadata),
        without: "WITH RECURSIVE fails if its parts have different metadata, such as that of pandas",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_recursions_still_compare_metadata"),
    },
];
