//! The rules of the physical optimizer, in their order, and the rules of DataFusion that are
//! wrapped.

use std::any::TypeId;

use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PiecewiseMergeJoinExec, SortMergeJoinExec,
    SymmetricHashJoinExec,
};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};

use super::session_rule::UpstreamIssue::DataFusion;
use super::session_rule::{RemovalCondition, RuleStep, SessionRule, UpstreamReport};
use crate::sql::base::node_types::NodeType;
use crate::sql::exec::nest::NestExec;
use crate::sql::exec::{compact_texts, copied, stack, yielding};
use crate::sql::order::order_rules;
use crate::sql::pushdown::{contains, leaf_limit, lengths, offset, partitions};
use crate::sql::sources::{asof, guarded_source, parquet};
use crate::sql::workarounds::expressions::lambdas;
use crate::sql::workarounds::grouping::{
    distinct_counts, empty_inputs, filtered_aggregates, topk, unnested_names,
};
use crate::sql::workarounds::guards::{guarded_rules, repeated_constants};
use crate::sql::workarounds::joins_and_unions::{distinct_recursions, join_orders, merge_joins};
use crate::sql::workarounds::sorting::{
    equations, merged_orders, missing_partitions, moved_keys, opaque_limits, partition_constants,
    scan_order, sort_lists, sorts,
};
use crate::sql::workarounds::windows::{nested_windows, range_frames, unique_partitions};

/// Lists the types of nodes that a rule concerns.
macro_rules! nodes {
    ($($node:ty),+) => {
        &[$(TypeId::of::<$node> as NodeType),+]
    };
}

/// No type of nodes: the rule concerns nodes of any type.
const ANY_NODE: &[NodeType] = &[];

pub(super) static PHYSICAL_RULES: &[SessionRule] = &[
    SessionRule {
        name: "serrate_lambda_parameters",
        // Must run before any rule reads the type of a lambda parameter.
        step: RuleStep::FirstPhysical(
            nodes![FilterExec, HashJoinExec, NestedLoopJoinExec, ProjectionExec],
            lambdas::separate_lambda_parameters,
        ),
        without: "lambda parameters read columns instead of list elements",
        upstream: UpstreamReport::Reported(&[DataFusion(24372)]),
        until: RemovalCondition::Fails("stock_parameters_are_still_read_from_columns"),
    },
    SessionRule {
        name: "serrate_merge_join_filters",
        // Must run before `join_selection`, which chooses the build sides of the new hash joins.
        step: RuleStep::FirstPhysical(nodes![SortMergeJoinExec], merge_joins::replace_merge_joins),
        without: "merge joins with a condition fail, or return rows in another order than they claim",
        upstream: UpstreamReport::Reported(&[DataFusion(21197)]),
        until: RemovalCondition::Fails("stock_merge_joins_still_fail"),
    },
    SessionRule {
        name: "serrate_partition_constants",
        step: RuleStep::FirstPhysical(
            nodes![BoundedWindowAggExec, SortExec, WindowAggExec],
            partition_constants::hide_partition_constants,
        ),
        without: "`ORDER BY x` does not sort a UNION ALL that ORDER BY a literal and `x` with LIMIT sorts",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_merges_still_claim_orders_of_partitions"),
    },
    SessionRule {
        name: "serrate_unique_partitions",
        step: RuleStep::FirstPhysical(
            nodes![BoundedWindowAggExec, WindowAggExec],
            unique_partitions::hide_unique_columns,
        ),
        without: "windows by the key of a GROUP BY and an aggregate of it fail if the rows are sorted",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_windows_over_unique_keys_still_fail"),
    },
    SessionRule {
        name: "serrate_unnested_names",
        // Must run before repartitionings and sorts are planned, which rely on what an `unnest`
        // claims of its columns.
        step: RuleStep::FirstPhysical(nodes![UnnestExec], unnested_names::separate_unnested_names),
        without: "above `unnest` of a join of tables with a column `k`, ORDER BY `a.k` may not sort, and GROUP BY `a.k` repeats keys",
        upstream: UpstreamReport::Reported(&[DataFusion(23394)]),
        until: RemovalCondition::Fails("stock_unnest_still_finds_columns_by_name"),
    },
    SessionRule {
        name: "serrate_moved_keys",
        step: RuleStep::FirstPhysical(
            nodes![BoundedWindowAggExec, SortExec, WindowAggExec],
            moved_keys::hide_moved_keys,
        ),
        without: "`SELECT rank() .. AS r, k .. GROUP BY k ORDER BY r, k` is not sorted by `k`",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_projections_still_move_keys"),
    },
    SessionRule {
        name: "serrate_plain_equations",
        // Must run before sorts are enforced, because DataFusion then simplifies sort keys by
        // equations such as `v = abs(v)`.
        step: RuleStep::FirstPhysical(nodes![FilterExec], equations::rewrite_equations),
        without: "windows partitioned by `v` fail above a condition such as `v = abs(v)`",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_windows_over_equations_still_fail"),
    },
    SessionRule {
        name: "serrate_lost_constants",
        // Must run after `aggregate_statistics`, which replaces aggregates with literals, that is,
        // with constants.
        step: RuleStep::AfterPhysical(
            "aggregate_statistics",
            nodes![AggregateExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec],
            sorts::hide_lost_constants,
        ),
        without: "columns that outer joins and GROUPING SETS fill with NULL count as constant",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_constants_are_still_kept_where_they_are_null"),
    },
    SessionRule {
        name: "serrate_memory_order",
        // Must run before DataFusion distributes the batches of tables in memory among partitions,
        // because the distribution changes their order.
        step: RuleStep::FirstPhysical(nodes![GlobalLimitExec], order_rules::keep_memory_order),
        without: "LIMIT over tables in memory does not return the first rows",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Feature,
    },
    SessionRule {
        name: "serrate_sorted_inputs",
        // Must run before `EnsureRequirements` merges the partitions by their keys.
        step: RuleStep::FirstPhysical(
            nodes![BoundedWindowAggExec, GlobalLimitExec, NestExec, WindowAggExec],
            order_rules::concatenate_sorted_inputs,
        ),
        without: "LIMIT over UNION ALL of sorted queries, and over sorted files, depends on the partitions",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Feature,
    },
    SessionRule {
        name: "serrate_asof_projections",
        // Must run before a repartitioning is inserted between a projection and its scan, because
        // the projection is then no longer directly above the scan.
        step: RuleStep::FirstPhysical(nodes![ProjectionExec], asof::push_asof_projections),
        without: "scans of labels copy the history of each label",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Speed,
    },
    SessionRule {
        name: "serrate_contains_pushdown",
        // Must run before conditions are pushed into scans, so that the conditions that this rule
        // rewrites are pushed, too.
        step: RuleStep::FirstPhysical(nodes![FilterExec], contains::push_contains),
        without: "Parquet scans do not evaluate `ragged_any(x == v)`",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Speed,
    },
    SessionRule {
        name: "serrate_leaf_partitions",
        // Must run before DataFusion plans partitions, so that it sees the divided scan.
        step: RuleStep::FirstPhysical(nodes![DataSourceExec], partitions::divide_leaves),
        without: "one thread reads a file of few rows and many leaves",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Speed,
    },
    SessionRule {
        name: "serrate_join_orders",
        // Must run after `join_selection` has chosen the build sides of joins, on which the order
        // of the joined rows depends, and before sorts are removed because of a wrong order.
        step: RuleStep::AfterPhysical(
            "join_selection",
            nodes![HashJoinExec, SortMergeJoinExec],
            join_orders::hide_join_orders,
        ),
        without: "`ORDER BY b, a` does not sort by `a` over a join of sides in the orders `b` and `a`",
        upstream: UpstreamReport::Reported(&[DataFusion(25052), DataFusion(25053)]),
        until: RemovalCondition::Fails("stock_joins_still_claim_two_orders"),
    },
    SessionRule {
        name: "serrate_lost_constants",
        step: RuleStep::AfterPhysical(
            "FilterPushdown",
            nodes![AggregateExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec],
            sorts::hide_lost_constants,
        ),
        without: "columns that conditions in scans make constant, and outer joins NULL, count as constant",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_constants_are_still_kept_where_they_are_null"),
    },
    SessionRule {
        name: "serrate_lengths_into_scan",
        // Must run after conditions are pushed into scans, and before a repartitioning is inserted
        // between the projection and the scan: only a projection directly above a scan is pushed.
        step: RuleStep::AfterPhysical(
            "FilterPushdown",
            nodes![ProjectionExec],
            lengths::push_lengths,
        ),
        without: "scans read the values of lists although only lengths are needed",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Speed,
    },
    SessionRule {
        name: "serrate_merged_orders",
        // Must run after all joins and conditions are in place, because the rule reads the orders
        // of inputs, which depend on the joins and conditions.
        step: RuleStep::BeforePhysical(
            "EnsureRequirements",
            ANY_NODE,
            merged_orders::hide_other_orders,
        ),
        without: "ORDER BY a year does not sort rows of UNION ALL that ORDER BY a time with LIMIT merged",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_merges_still_claim_every_order"),
    },
    SessionRule {
        name: "serrate_merged_orders",
        // Must run after `serrate_missing_partitions`, which therefore follows in this list: of two
        // rules after the same rule of DataFusion, the second in the list runs first.
        step: RuleStep::AfterPhysical(
            "EnsureRequirements",
            nodes![SortPreservingMergeExec],
            merged_orders::merge_by_all_keys,
        ),
        without: "`ORDER BY x, y` does not sort rows in the order `x, y` of several files that ORDER BY x with LIMIT merged",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_merges_still_claim_every_order"),
    },
    SessionRule {
        name: "serrate_missing_partitions",
        step: RuleStep::AfterPhysical(
            "EnsureRequirements",
            ANY_NODE,
            missing_partitions::add_missing_partitions,
        ),
        without: "GROUP BY of a subquery with ORDER BY fails for a table in memory with several partitions and no rows",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_removed_sorts_still_leave_partitions"),
    },
    SessionRule {
        name: "serrate_whole_float_groups",
        step: RuleStep::AfterPhysical(
            "LimitAggregation",
            nodes![AggregateExec],
            topk::remove_float_limits,
        ),
        without: "GROUP BY .. ORDER BY .. LIMIT of floats drops NaN, or panics",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_topk_of_floats_is_still_wrong"),
    },
    // The next two rules run after all sorts are in place and before plans are checked.
    SessionRule {
        name: "serrate_unordered_keys",
        // This rule hides orders, so the next rule, `serrate_missing_sorts`, may have to add sorts.
        step: RuleStep::BeforePhysical(
            "SanityCheckPlan",
            nodes![AggregateExec],
            sorts::hide_unordered_keys,
        ),
        without: "grouping by constant lists of lists fails",
        upstream: UpstreamReport::Reported(&[DataFusion(24937)]),
        until: RemovalCondition::Fails("stock_distinct_of_constant_lists_still_fails"),
    },
    SessionRule {
        name: "serrate_missing_sorts",
        step: RuleStep::BeforePhysical("SanityCheckPlan", ANY_NODE, sorts::add_missing_sorts),
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
        step: RuleStep::LastPhysical(nodes![AggregateExec], topk::remove_distinct_limits),
        without: "DISTINCT .. LIMIT above a window function fails",
        upstream: UpstreamReport::Reported(&[DataFusion(25350)]),
        until: RemovalCondition::Fails("stock_limits_of_sorted_distinct_rows_still_fail"),
    },
    SessionRule {
        name: "serrate_range_frames",
        step: RuleStep::LastPhysical(
            nodes![BoundedWindowAggExec],
            range_frames::read_whole_partitions,
        ),
        without: "frames `RANGE .. AND n PRECEDING` at NULL and at infinity miss peers in later batches",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_range_frames_of_nulls_still_miss_peers"),
    },
    SessionRule {
        name: "serrate_asof_order",
        step: RuleStep::LastPhysical(nodes![RepartitionExec], asof::keep_asof_order),
        without: "`meds_asof` returns rows in any order",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Feature,
    },
    SessionRule {
        name: "serrate_source_order",
        step: RuleStep::LastPhysical(ANY_NODE, order_rules::keep_source_order),
        without: "LIMIT and files that identify rows by position do not get rows in source order",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Feature,
    },
    SessionRule {
        name: "serrate_offset_into_scan",
        step: RuleStep::LastPhysical(nodes![GlobalLimitExec], offset::push_offsets),
        without: "scans read the rows that OFFSET skips",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Speed,
    },
    SessionRule {
        name: "serrate_leaf_batches",
        step: RuleStep::LastPhysical(ANY_NODE, leaf_limit::limit_leaves),
        without: "batches of long lists take gigabytes",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Speed,
    },
    SessionRule {
        name: "serrate_repeated_constants",
        // Must run after `serrate_leaf_batches`, whose batch sizes it lowers.
        step: RuleStep::LastPhysical(ANY_NODE, repeated_constants::limit_constants),
        without: "a long constant list ends the process, because each row of a batch gets a copy",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Feature,
    },
    SessionRule {
        name: "serrate_ordered_scan_limits",
        // Must run after every limit is pushed into its scan, because it changes scans with a
        // limit.
        step: RuleStep::LastPhysical(nodes![DataSourceExec], scan_order::order_limited_scans),
        without: "a LIMIT in an ordered Parquet scan skips row groups and returns later rows",
        upstream: UpstreamReport::Reported(&[DataFusion(24272)]),
        until: RemovalCondition::Fails("stock_limits_drop_row_groups"),
    },
    SessionRule {
        name: "serrate_parquet_lists",
        // Must run after all rules that change scans, because these rules would not recognize the
        // scans that this rule makes. The setting `serrate.parquet_lists` switches off this rule.
        step: RuleStep::LastPhysical(nodes![DataSourceExec], parquet::decode_lists),
        without: "lists in Parquet files are decoded three to four times as slowly",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Feature,
    },
    SessionRule {
        name: "SortLists",
        step: RuleStep::LastPhysical(nodes![SortExec], sort_lists::split_list_sorts),
        without: "ORDER BY lists with NULL and LIMIT loses rows",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Passes("order_by_lists_does_not_depend_on_batches"),
    },
    SessionRule {
        name: "serrate_distinct_recursions",
        step: RuleStep::LastPhysical(
            nodes![RecursiveQueryExec],
            distinct_recursions::drop_repeated_rows,
        ),
        without: "WITH RECURSIVE .. UNION loses rows after NULL and empty lists, and repeats NaN and equal intervals",
        upstream: UpstreamReport::NotReported,
        until: RemovalCondition::Fails("stock_recursive_unions_still_lose_rows"),
    },
    SessionRule {
        name: "serrate_compact_texts",
        step: RuleStep::LastPhysical(nodes![SortExec], compact_texts::compact_texts),
        without: "sorts of strings spill early or fail at the memory limit, because each batch counts the buffers of many others",
        upstream: UpstreamReport::Reported(&[DataFusion(12136), DataFusion(25271)]),
        until: RemovalCondition::Fails("stock_sorts_still_count_shared_buffers"),
    },
    SessionRule {
        name: "serrate_copied_inputs",
        step: RuleStep::LastPhysical(nodes![CrossJoinExec, HashJoinExec], copied::reserve_copies),
        without: "a hash join of lists takes up to twice the memory limit",
        upstream: UpstreamReport::Reported(&[DataFusion(25269), DataFusion(25496)]),
        until: RemovalCondition::Fails("stock_hash_joins_still_do_not_reserve_copies"),
    },
    SessionRule {
        name: "serrate_yielding_joins",
        step: RuleStep::LastPhysical(
            nodes![
                CrossJoinExec,
                HashJoinExec,
                NestedLoopJoinExec,
                PiecewiseMergeJoinExec,
                SortMergeJoinExec,
                SymmetricHashJoinExec
            ],
            yielding::pace_joins,
        ),
        without: "long joins cannot be cancelled",
        upstream: UpstreamReport::Reported(&[DataFusion(19358)]),
        until: RemovalCondition::Fails("stock_joins_still_do_not_yield"),
    },
    SessionRule {
        name: "serrate_deep_stacks",
        step: RuleStep::LastPhysical(ANY_NODE, stack::deepen_stacks),
        without: "deep expressions overflow the stack",
        upstream: UpstreamReport::Reported(&[DataFusion(8900), DataFusion(22229)]),
        until: RemovalCondition::Fails("stock_deep_expressions_still_overflow_the_stack"),
    },
    SessionRule {
        name: "serrate_named_files",
        step: RuleStep::LastPhysical(nodes![DataSourceExec], guarded_source::name_files),
        without: "errors do not name their file, and a damaged file ends the process",
        upstream: UpstreamReport::Ours,
        until: RemovalCondition::Feature,
    },
];
