//! The rules of the logical optimizer, in their order, and the rules of DataFusion that are removed
//! or wrapped.

use datafusion::optimizer::ApplyOrder;

use super::session_rule::UpstreamIssue::DataFusion;
use super::session_rule::{RemovalCondition, RuleStep, SessionRule, UpstreamReport};
use crate::sql::pushdown::{below_joins, flat_filters, lengths};
use crate::sql::workarounds::expressions::{computed_lists, hidden_values, in_lists};
use crate::sql::workarounds::grouping::{computed_keys, float_keys, list_keys, nested_constants};
use crate::sql::workarounds::guards::{conditions, failing_rules};
use crate::sql::workarounds::joins_and_unions::{dictionary_keys, lone_branches, null_equal_joins};
use crate::sql::workarounds::sorting::{repeated_orders, sort_keys};
use crate::sql::workarounds::types::compared_casts;
use crate::sql::workarounds::windows::whole_windows;

pub(super) static LOGICAL_RULES: &[SessionRule] = &[
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
        without: "`ORDER BY length(s) > 1` over several partitions and windows by `sqrt(x)` fail, and windows by `abs(v), k` if `v` equals another column",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_comparisons_of_functions_are_still_no_keys"),
    },
    SessionRule {
        name: "serrate_list_keys",
        // Must run after `serrate_float_keys`, because the bytes of floats must be canonical.
        step: RuleStep::LastLogical(ApplyOrder::BottomUp, list_keys::group_by_bytes),
        without: "GROUP BY a list takes several times the memory limit",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Speed,
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
];
