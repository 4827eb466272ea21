//! Lists the rules in their order, each with the reason for it and the condition for its removal.

use std::sync::Arc;

use super::{LogicalRule, PhysicalRule, Switched, TypeRule};
use crate::sql::exec::guard::NamedFiles;
use crate::sql::exec::stack::DeepStacks;
use crate::sql::exec::yielding::YieldingJoins;
use crate::sql::order::{MemoryOrder, OffsetIntoScan, SourceOrder};
use crate::sql::pushdown::below_joins::BelowJoins;
use crate::sql::pushdown::contains::ContainsPushdown;
use crate::sql::pushdown::flat_filters::FlatFilters;
use crate::sql::pushdown::leaf_limit::LeafBatches;
use crate::sql::pushdown::lengths::{LengthsBelow, LengthsIntoScan};
use crate::sql::pushdown::partitions::LeafPartitions;
use crate::sql::sources::asof::{AsOfOrder, AsOfProjections};
use crate::sql::sources::parquet::ParquetLists;
use crate::sql::statement::from_alone::FromAlone;
use crate::sql::statement::hints::ListHints;
use crate::sql::workarounds::boolean_casts::BooleanCasts;
use crate::sql::workarounds::cast_groups::CastGroups;
use crate::sql::workarounds::cast_statistics::CastStatistics;
use crate::sql::workarounds::changes::PlainChanges;
use crate::sql::workarounds::coarser_times::CoarserTimes;
use crate::sql::workarounds::computed_keys::ComputedKeys;
use crate::sql::workarounds::computed_lists::ComputedLists;
use crate::sql::workarounds::conditions::LazyConditions;
use crate::sql::workarounds::decimals::StableDecimals;
use crate::sql::workarounds::dependencies::UnnestDependencies;
use crate::sql::workarounds::dictionary_casts::DictionaryCasts;
use crate::sql::workarounds::dictionary_keys::DictionaryKeys;
use crate::sql::workarounds::distinct_recursions::DistinctRecursions;
use crate::sql::workarounds::duration_windows::DurationWindows;
use crate::sql::workarounds::empty_queries::EmptyQueries;
use crate::sql::workarounds::equations::PlainEquations;
use crate::sql::workarounds::float_keys::{ConstantFloatKeys, FloatKeys};
use crate::sql::workarounds::grouped_outer::GroupedOuter;
use crate::sql::workarounds::hidden_values::{HiddenValues, ParquetFields};
use crate::sql::workarounds::join_orders::JoinOrders;
use crate::sql::workarounds::joined_groups::JoinedGroups;
use crate::sql::workarounds::lambdas::{LambdaParameters, LambdaTypes};
use crate::sql::workarounds::list_texts::ListTexts;
use crate::sql::workarounds::local_times::LocalTimes;
use crate::sql::workarounds::merge_joins::MergeJoinFilters;
use crate::sql::workarounds::missing_partitions::MissingPartitions;
use crate::sql::workarounds::moved_keys::MovedKeys;
use crate::sql::workarounds::multisets::CountedSets;
use crate::sql::workarounds::negations::PlainNegations;
use crate::sql::workarounds::nested_constants::NestedConstants;
use crate::sql::workarounds::nested_order::NestedOrder;
use crate::sql::workarounds::partition_constants::PartitionConstants;
use crate::sql::workarounds::query_values::QueryValues;
use crate::sql::workarounds::range_frames::RangeFrames;
use crate::sql::workarounds::rows_in::RowsIn;
use crate::sql::workarounds::scan_order::OrderedScanLimits;
use crate::sql::workarounds::shared_rows::SharedOnce;
use crate::sql::workarounds::similar::SimilarPatterns;
use crate::sql::workarounds::sort_lists::SortLists;
use crate::sql::workarounds::sorts::{LostConstants, MissingSorts, UnorderedKeys};
use crate::sql::workarounds::subqueries::ThreeValuedIn;
use crate::sql::workarounds::text_to_list_casts::TextLists;
use crate::sql::workarounds::text_to_time_casts::TimeTexts;
use crate::sql::workarounds::texts::OneText;
use crate::sql::workarounds::times::ExactTimes;
use crate::sql::workarounds::topk::{SortedDistinct, WholeFloatGroups};
use crate::sql::workarounds::unions::FlatUnions;
use crate::sql::workarounds::unique_partitions::UniquePartitions;
use crate::sql::workarounds::volatile_between::VolatileBetween;
use crate::sql::workarounds::wide_frames::WideFrames;
use crate::sql::workarounds::window_keys::WindowKeys;
use crate::sql::workarounds::window_orders::WindowOrders;
use crate::sql::workarounds::xor_pairs::XorPairs;

/// A rule of a session, with the data for its row of the table in `docs/internals/sql.md`.
#[cfg_attr(not(test), allow(dead_code, reason = "the documentation is made of it"))]
pub(super) struct SessionRule {
    pub(super) step: RuleStep,
    /// Wrong behaviour of a session without the rule.
    pub(super) without: &'static str,
    /// Issues and pull requests of `apache/datafusion` about the bug that the rule works around.
    pub(super) upstream: &'static [u32],
    pub(super) until: RemovalCondition,
}

/// The time at which a rule runs among DataFusion's rules. A string names a rule of DataFusion, or
/// a wrapper for such rules.
#[cfg_attr(not(test), allow(dead_code, reason = "the documentation is made of it"))]
pub(super) enum RuleStep {
    FirstOfAll(fn() -> TypeRule),
    BeforeCoercion(fn() -> TypeRule),
    AfterCoercion(fn() -> TypeRule),
    FirstLogical(fn() -> LogicalRule),
    WithoutLogical(&'static str),
    /// Passes DataFusion's logical rules to the wrapper with this name, which wraps some of them.
    AroundLogical(&'static str),
    LastLogical(fn() -> LogicalRule),
    FirstPhysical(fn() -> PhysicalRule),
    AfterPhysical(&'static str, fn() -> PhysicalRule),
    BeforePhysical(&'static str, fn() -> PhysicalRule),
    AroundPhysical(&'static str),
    LastPhysical(fn() -> PhysicalRule),
}

/// The condition under which a rule can be removed from Serrate.
#[cfg_attr(not(test), allow(dead_code, reason = "the documentation is made of it"))]
pub(super) enum RemovalCondition {
    /// The rule can be removed when the test with this name fails, because DataFusion has then fixed the bug.
    Fails(&'static str),
    /// The rule can be removed when the test with this name passes without it.
    Passes(&'static str),
    /// The rule is never removed: it speeds up queries. The setting `serrate.rule.NAME` switches it off.
    Speed,
    /// The rule is never removed: it is a feature that DataFusion does not have.
    Feature,
}

/// All rules of a session in the order in which they run. `docs/internals/sql.md` contains them as a table.
pub(super) static RULES: &[SessionRule] = &[
    SessionRule {
        // Must run first, because type coercion replaces the original expressions.
        step: RuleStep::FirstOfAll(|| Arc::new(ListHints)),
        without: "errors of operators on lists have no suggestion",
        upstream: &[],
        until: RemovalCondition::Feature,
    },
    SessionRule {
        // Must run before rules that change expressions. The query that finds the rows to change is built from the
        // expressions as written in the statement; all rules are then applied to this query.
        step: RuleStep::FirstOfAll(|| Arc::new(PlainChanges)),
        without: "DELETE and UPDATE with a subquery in WHERE change every row",
        upstream: &[24654],
        until: RemovalCondition::Feature,
    },
    SessionRule {
        // Must run before type coercion, which changes the keys and the same expressions in subqueries apart.
        step: RuleStep::BeforeCoercion(|| Arc::new(GroupedOuter)),
        without: "`GROUP BY x + 1 HAVING EXISTS (SELECT .. WHERE z.i = t.x + 1)` fails",
        upstream: &[],
        until: RemovalCondition::Fails("stock_computed_keys_are_still_no_outer_columns"),
    },
    SessionRule {
        step: RuleStep::BeforeCoercion(|| Arc::new(RowsIn)),
        without: "`(a, b) IN (SELECT x, y ..)` fails",
        upstream: &[19857],
        until: RemovalCondition::Feature,
    },
    SessionRule {
        step: RuleStep::BeforeCoercion(|| Arc::new(ExactTimes)),
        without: "timestamps far from 1970 overflow, durations and intervals compare wrongly",
        upstream: &[22756],
        until: RemovalCondition::Fails("stock_functions_still_work_in_nanoseconds"),
    },
    SessionRule {
        step: RuleStep::BeforeCoercion(|| Arc::new(OneText)),
        without: "LIKE of a dictionary with a column of strings fails",
        upstream: &[],
        until: RemovalCondition::Feature,
    },
    SessionRule {
        step: RuleStep::BeforeCoercion(|| Arc::new(TextLists)),
        without: "`'[1, 2]'::INT[]` fails, and `'[a, b]'::VARCHAR[]` has one element",
        upstream: &[],
        until: RemovalCondition::Fails("stock_texts_of_lists_are_still_elements"),
    },
    SessionRule {
        step: RuleStep::BeforeCoercion(|| Arc::new(StableDecimals)),
        without: "floats compared with decimals become decimals, and `round` changes its type",
        upstream: &[14272],
        until: RemovalCondition::Fails("stock_floats_become_decimals"),
    },
    SessionRule {
        step: RuleStep::BeforeCoercion(|| Arc::new(SimilarPatterns)),
        without: "SIMILAR TO searches for its pattern instead of matching the whole string",
        upstream: &[22263, 23188],
        until: RemovalCondition::Fails("stock_similar_to_still_searches"),
    },
    SessionRule {
        step: RuleStep::BeforeCoercion(|| Arc::new(DurationWindows)),
        without: "windows ordered by durations fail",
        upstream: &[24916],
        until: RemovalCondition::Fails("stock_windows_over_durations_still_fail"),
    },
    SessionRule {
        step: RuleStep::BeforeCoercion(|| Arc::new(WindowKeys)),
        without: "windows over lists of lists and structs fail",
        upstream: &[24937],
        until: RemovalCondition::Fails("stock_windows_over_lists_of_lists_still_fail"),
    },
    SessionRule {
        step: RuleStep::BeforeCoercion(|| Arc::new(WideFrames)),
        without: "frames `RANGE .. AND n FOLLOWING` whose end does not fit the type include NULL",
        upstream: &[],
        until: RemovalCondition::Fails("stock_frames_beyond_a_type_still_include_null"),
    },
    SessionRule {
        // Must run after the rules that change the types of the branches of CASE.
        step: RuleStep::BeforeCoercion(|| Arc::new(LambdaTypes)),
        without: "lambdas over CASE fail if its branches are lists of different types",
        upstream: &[],
        until: RemovalCondition::Fails("stock_parameters_over_case_still_fail"),
    },
    SessionRule {
        step: RuleStep::AfterCoercion(|| Arc::new(FromAlone)),
        without: "`FROM t` without SELECT has no columns",
        upstream: &[],
        until: RemovalCondition::Feature,
    },
    SessionRule {
        step: RuleStep::AfterCoercion(|| Arc::new(FlatUnions)),
        without: "planning takes time quadratic in the number of UNIONs; projections of nested ones mix up columns",
        upstream: &[17261],
        until: RemovalCondition::Feature,
    },
    SessionRule {
        step: RuleStep::AfterCoercion(|| Arc::new(HiddenValues)),
        without: "`s.a` and `array_append(x, 1)` return what lies below a NULL struct or list",
        upstream: &[],
        until: RemovalCondition::Fails("stock_fields_of_null_are_still_values"),
    },
    // The following rules run after type coercion, because they need the final types of expressions.
    SessionRule {
        step: RuleStep::AfterCoercion(|| Arc::new(ComputedLists)),
        without: "`x IN (1, CASE ..)` is true for values that the list does not contain",
        upstream: &[],
        until: RemovalCondition::Fails("stock_lists_with_case_are_still_wrong"),
    },
    SessionRule {
        step: RuleStep::AfterCoercion(|| Arc::new(NestedOrder)),
        without: "comparisons and sorts of lists and structs with NULL use different orders",
        upstream: &[],
        until: RemovalCondition::Fails("stock_comparisons_of_lists_have_least_nulls"),
    },
    SessionRule {
        // Must run before correlated queries become joins, which add columns to the inputs of set operations.
        step: RuleStep::AfterCoercion(|| Arc::new(CountedSets)),
        without: "EXCEPT ALL and INTERSECT ALL do not match equal rows one to one",
        upstream: &[12955, 12956],
        until: RemovalCondition::Fails("stock_sets_still_count_nothing"),
    },
    SessionRule {
        step: RuleStep::AfterCoercion(|| Arc::new(QueryValues)),
        without: "IN and EXISTS as values, and most correlated scalar subqueries, fail",
        upstream: &[23022],
        until: RemovalCondition::Fails("stock_queries_are_no_values"),
    },
    SessionRule {
        // Must run after correlated queries become joins: this puts the outer rows below `unnest`.
        step: RuleStep::AfterCoercion(|| Arc::new(UnnestDependencies)),
        without: "a GROUP BY key counts as unique above `unnest`",
        upstream: &[24787],
        until: RemovalCondition::Fails("stock_unnest_still_keeps_dependencies"),
    },
    SessionRule {
        step: RuleStep::AfterCoercion(|| Arc::new(ThreeValuedIn)),
        without: "`NOT IN (query)` returns rows although the query returns a NULL",
        upstream: &[8241, 25347, 25473],
        until: RemovalCondition::Fails("stock_in_is_still_two_valued"),
    },
    SessionRule {
        step: RuleStep::AfterCoercion(|| Arc::new(EmptyQueries)),
        without: "a scalar subquery that may return no row counts as never NULL",
        upstream: &[],
        until: RemovalCondition::Fails("stock_queries_without_rows_are_still_values"),
    },
    SessionRule {
        step: RuleStep::AfterCoercion(|| Arc::new(WindowOrders)),
        without: "counts over sliding frames count as sorted, so ORDER BY and DISTINCT are dropped",
        upstream: &[],
        until: RemovalCondition::Fails("stock_counts_over_frames_still_count_as_sorted"),
    },
    SessionRule {
        step: RuleStep::AfterCoercion(|| Arc::new(CastGroups)),
        without: "`GROUP BY f::INT, f` is `GROUP BY f::INT` if the input has unique `f`, and ORDER BY of both loses `f`",
        upstream: &[],
        until: RemovalCondition::Fails("stock_casts_still_replace_group_keys"),
    },
    SessionRule {
        // Must run after correlated queries become joins.
        step: RuleStep::AfterCoercion(|| Arc::new(JoinedGroups)),
        without: "above DISTINCT of a join with a grouped table, ORDER BY and GROUP BY lose keys, and joins lose rows",
        upstream: &[],
        until: RemovalCondition::Fails("stock_groups_above_joins_still_lose_rows"),
    },
    SessionRule {
        step: RuleStep::AfterCoercion(|| Arc::new(BooleanCasts)),
        without: "`WHERE CAST(i AS BOOLEAN)` makes `i` a constant for ORDER BY and windows",
        upstream: &[],
        until: RemovalCondition::Fails("stock_truths_of_integers_are_still_one"),
    },
    SessionRule {
        // Must run after the rules that copy plans.
        step: RuleStep::AfterCoercion(|| Arc::new(SharedOnce)),
        without: "a CTE with `random()`, or with LIMIT over groups, has other rows in each place that names it",
        upstream: &[],
        until: RemovalCondition::Fails("stock_ctes_are_still_computed_twice"),
    },
    SessionRule {
        step: RuleStep::AfterCoercion(|| Arc::new(ListTexts)),
        without: "`CAST([1, NULL] AS VARCHAR)` is `[1, ]`",
        upstream: &[],
        until: RemovalCondition::Fails("stock_texts_of_lists_still_lack_null"),
    },
    SessionRule {
        step: RuleStep::AfterCoercion(|| Arc::new(TimeTexts)),
        without: "strings of times without seconds, such as `2024-01-01 10:00`, are errors, and so are strings of intervals without names of units, such as `1d 03:00`",
        upstream: &[],
        until: RemovalCondition::Fails("stock_times_without_seconds_are_still_errors"),
    },
    SessionRule {
        step: RuleStep::AfterCoercion(|| Arc::new(CoarserTimes)),
        without: "`x::TIMESTAMP(0)` and `to_unixtime(x)` round times before 1970 up",
        upstream: &[],
        until: RemovalCondition::Fails("stock_casts_before_1970_still_round_up"),
    },
    SessionRule {
        // Must run after `CoarserTimes`, which inserts casts to other zones.
        step: RuleStep::AfterCoercion(|| Arc::new(LocalTimes)),
        without: "AT TIME ZONE and `+ INTERVAL '1 day'` fail for local times that clocks skip or repeat",
        upstream: &[],
        until: RemovalCondition::Fails("stock_changes_of_clocks_are_still_errors"),
    },
    SessionRule {
        step: RuleStep::AfterCoercion(|| Arc::new(PlainNegations)),
        without: "`WHERE -x > 5` fails over Parquet files with the least integer",
        upstream: &[],
        until: RemovalCondition::Fails("stock_negations_of_statistics_still_overflow"),
    },
    SessionRule {
        step: RuleStep::AfterCoercion(|| Arc::new(XorPairs)),
        without: "`x ^ x` and `x ^ 5 ^ x` are values where `x` is NULL",
        upstream: &[],
        until: RemovalCondition::Fails("stock_pairs_of_xor_still_forget_null"),
    },
    SessionRule {
        step: RuleStep::AfterCoercion(|| Arc::new(VolatileBetween)),
        without: "`random() BETWEEN 0.4 AND 0.6` compares two random numbers",
        upstream: &[25457],
        until: RemovalCondition::Fails("stock_between_still_evaluates_its_operand_twice"),
    },
    SessionRule {
        step: RuleStep::AfterCoercion(|| Arc::new(DictionaryCasts)),
        without: "casts of dictionaries fail for values that no row has, and make NULL among the values an empty string",
        upstream: &[],
        until: RemovalCondition::Fails("stock_casts_of_dictionaries_still_cast_unused_values"),
    },
    SessionRule {
        // Must run after the rules that replace casts.
        step: RuleStep::AfterCoercion(|| Arc::new(CastStatistics)),
        without: "`min(s::INT), max(s::INT)` over Parquet are casts of the least and greatest strings; \
                  `t::TIME = TIME '12:00:00'` skips row groups",
        upstream: &[25221],
        until: RemovalCondition::Fails("stock_casts_still_keep_statistics"),
    },
    SessionRule {
        step: RuleStep::WithoutLogical("eliminate_group_by_constant"),
        without: "GROUP BY a column and a cast of it fails, because both get the same name",
        upstream: &[],
        until: RemovalCondition::Fails("stock_grouping_by_a_cast_still_fails"),
    },
    // The next two rules of DataFusion move accesses to fields of structs towards the scan.
    SessionRule {
        step: RuleStep::WithoutLogical("extract_leaf_expressions"),
        without: "`SELECT a, s.b FROM (SELECT -a AS a, s FROM t WHERE a > 0)` returns the `a` of `t`, and a struct with `random()` differs in each field",
        upstream: &[24678, 25414],
        until: RemovalCondition::Fails("stock_fields_still_replace_computed_columns"),
    },
    SessionRule {
        step: RuleStep::WithoutLogical("push_down_leaf_projections"),
        without: "the same as for `extract_leaf_expressions`",
        upstream: &[25414],
        until: RemovalCondition::Fails("stock_fields_still_replace_computed_columns"),
    },
    SessionRule {
        step: RuleStep::AroundLogical("PushDownFree"),
        without: "conditions that can fail move below joins and fail for rows that the query drops",
        upstream: &[8927],
        until: RemovalCondition::Fails("stock_conditions_still_move"),
    },
    SessionRule {
        step: RuleStep::AroundLogical("InLists"),
        without: "`x NOT IN (1, 2) OR x NOT IN (3, 4)` and `s ~ '.*'` are not NULL where `x` and `s` are",
        upstream: &[],
        until: RemovalCondition::Fails("stock_in_lists_still_forget_null"),
    },
    SessionRule {
        step: RuleStep::AroundLogical("ComparedCasts"),
        without: "`CAST(1.25 AS INT) = 1` is false, and `CAST(ms AS TIMESTAMP) = t` is true for any `t` within the millisecond",
        upstream: &[],
        until: RemovalCondition::Fails("stock_casts_still_move_to_literals"),
    },
    SessionRule {
        step: RuleStep::AroundLogical("NullEqualJoins"),
        without: "`=` above a join by IS NOT DISTINCT FROM, or above a correlated subquery, is true for two NULLs",
        upstream: &[],
        until: RemovalCondition::Fails("stock_joins_still_mix_equalities_of_null"),
    },
    SessionRule {
        step: RuleStep::AroundLogical("SortKeys"),
        without: "`GROUP BY f ORDER BY f::INT, f` is not sorted by `f`",
        upstream: &[],
        until: RemovalCondition::Fails("stock_casts_still_hide_sort_keys"),
    },
    SessionRule {
        step: RuleStep::AroundLogical("RepeatedOrders"),
        without: "`first_value(x ORDER BY CASE WHEN true THEN k END, k)` with GROUP BY, and DISTINCT ON of such keys, panic",
        upstream: &[],
        until: RemovalCondition::Fails("stock_repeated_keys_still_panic"),
    },
    SessionRule {
        step: RuleStep::AroundLogical("LoneBranches"),
        without: "a filter above UNION ALL with one branch that is not empty applies to another table of a join in it",
        upstream: &[],
        until: RemovalCondition::Fails("stock_filters_of_lone_branches_still_reach_other_tables"),
    },
    SessionRule {
        step: RuleStep::AroundLogical("LoneBranches"),
        without: "columns of UNION ALL are not found after an empty first branch, if the others have other names",
        upstream: &[],
        until: RemovalCondition::Fails("stock_unions_still_take_names_from_a_later_branch"),
    },
    SessionRule {
        step: RuleStep::AroundLogical("WholeWindows"),
        without: "`sum(a + b) OVER w, sum(b + a) OVER w`, and windows by PARTITION BY and ORDER BY of one column, fail",
        upstream: &[],
        until: RemovalCondition::Fails("stock_equal_windows_still_fail"),
    },
    SessionRule {
        step: RuleStep::AroundLogical("FailingRules"),
        without: "`sum(DISTINCT x)` by a column and a cast of it fails; casts fail that no row evaluates",
        upstream: &[],
        until: RemovalCondition::Fails("stock_distinct_sums_by_a_cast_still_fail"),
    },
    SessionRule {
        // Must run before constants are folded.
        step: RuleStep::FirstLogical(|| Arc::new(ConstantFloatKeys)),
        without: "constant zeros, and constant NaN, with different signs are not equal",
        upstream: &[22490, 22835],
        until: RemovalCondition::Fails("stock_comparisons_tell_zeros_and_nan_apart"),
    },
    SessionRule {
        // Must run before expressions are simplified and before subqueries become joins.
        step: RuleStep::FirstLogical(|| Arc::new(LazyConditions)),
        without: "AND, OR and CASE evaluate operands that can fail for rows that do not need them",
        upstream: &[8927, 25136],
        until: RemovalCondition::Fails("stock_conditions_still_move"),
    },
    SessionRule {
        step: RuleStep::LastLogical(|| Arc::new(NestedConstants)),
        without: "DISTINCT, PARTITION BY and INTERSECT of constant lists of lists fail",
        upstream: &[],
        until: RemovalCondition::Fails("stock_constant_lists_of_lists_still_fail"),
    },
    SessionRule {
        step: RuleStep::LastLogical(|| Arc::new(FloatKeys)),
        without: "zeros, and NaN, with different signs are not equal in comparisons, groups and joins",
        upstream: &[22490, 22835],
        until: RemovalCondition::Fails("stock_comparisons_tell_zeros_and_nan_apart"),
    },
    SessionRule {
        // Must run after `FloatKeys`, which makes keys of windows computed.
        step: RuleStep::LastLogical(|| Arc::new(ComputedKeys)),
        without: "`ORDER BY length(s) > 1` over several partitions fails, and windows by `abs(v), k` if `v` equals another column",
        upstream: &[],
        until: RemovalCondition::Fails("stock_comparisons_of_functions_are_still_no_keys"),
    },
    SessionRule {
        step: RuleStep::LastLogical(|| Arc::new(DictionaryKeys)),
        without: "joins by dictionaries of integers fail over Parquet",
        upstream: &[],
        until: RemovalCondition::Fails("stock_joins_by_integer_dictionaries_still_fail"),
    },
    SessionRule {
        step: RuleStep::LastLogical(|| Arc::new(ParquetFields)),
        without: "scans of Parquet read whole structs although one field is needed",
        upstream: &[],
        until: RemovalCondition::Fails("stock_fields_of_null_are_still_values"),
    },
    SessionRule {
        step: RuleStep::LastLogical(|| Arc::new(Switched(FlatFilters))),
        without: "`ragged_filter` builds inner lists that a reduction over the row ignores",
        upstream: &[],
        until: RemovalCondition::Speed,
    },
    SessionRule {
        step: RuleStep::LastLogical(|| Arc::new(Switched(BelowJoins))),
        without: "joins copy lists although only a reduction of them is needed",
        upstream: &[],
        until: RemovalCondition::Speed,
    },
    SessionRule {
        // Must run last, so that no other rule sees the columns that this rule adds.
        step: RuleStep::LastLogical(|| Arc::new(Switched(LengthsBelow))),
        without: "scans read lists although only their lengths are needed",
        upstream: &[],
        until: RemovalCondition::Speed,
    },
    SessionRule {
        // Must run before any rule reads the type of a lambda parameter.
        step: RuleStep::FirstPhysical(|| Arc::new(LambdaParameters)),
        without: "lambda parameters read columns instead of list elements",
        upstream: &[24372],
        until: RemovalCondition::Feature,
    },
    SessionRule {
        // Must run before the sides of joins are chosen.
        step: RuleStep::FirstPhysical(|| Arc::new(MergeJoinFilters)),
        without: "merge joins with a condition fail, or return rows in another order than they claim",
        upstream: &[21197],
        until: RemovalCondition::Fails("stock_merge_joins_still_fail"),
    },
    SessionRule {
        step: RuleStep::FirstPhysical(|| Arc::new(PartitionConstants)),
        without: "`ORDER BY x` does not sort a UNION ALL that ORDER BY a literal and `x` with LIMIT sorts",
        upstream: &[],
        until: RemovalCondition::Fails("stock_merges_still_claim_orders_of_partitions"),
    },
    SessionRule {
        step: RuleStep::FirstPhysical(|| Arc::new(UniquePartitions)),
        without: "windows by the key of a GROUP BY and an aggregate of it fail if the rows are sorted",
        upstream: &[],
        until: RemovalCondition::Fails("stock_windows_over_unique_keys_still_fail"),
    },
    SessionRule {
        step: RuleStep::FirstPhysical(|| Arc::new(MovedKeys)),
        without: "`SELECT rank() .. AS r, k .. GROUP BY k ORDER BY r, k` is not sorted by `k`",
        upstream: &[],
        until: RemovalCondition::Fails("stock_projections_still_move_keys"),
    },
    SessionRule {
        // Must run before redundant sorts are removed.
        step: RuleStep::FirstPhysical(|| Arc::new(PlainEquations)),
        without: "windows partitioned by `v` fail above a condition such as `v = abs(v)`",
        upstream: &[],
        until: RemovalCondition::Fails("stock_windows_over_equations_still_fail"),
    },
    SessionRule {
        // Must run after `aggregate_statistics`, which replaces aggregates with literals.
        step: RuleStep::AfterPhysical("aggregate_statistics", || Arc::new(LostConstants)),
        without: "columns that outer joins and GROUPING SETS fill with NULL count as constant",
        upstream: &[],
        until: RemovalCondition::Fails("stock_constants_are_still_kept_where_they_are_null"),
    },
    SessionRule {
        // Must run before the batches of tables in memory are distributed among partitions.
        step: RuleStep::FirstPhysical(|| Arc::new(MemoryOrder)),
        without: "LIMIT over tables in memory does not return the first rows",
        upstream: &[],
        until: RemovalCondition::Feature,
    },
    SessionRule {
        // Must run before a repartitioning is inserted between a projection and its scan.
        step: RuleStep::FirstPhysical(|| Arc::new(Switched(AsOfProjections))),
        without: "scans of labels copy the history of each label",
        upstream: &[],
        until: RemovalCondition::Speed,
    },
    SessionRule {
        // Must run before conditions are pushed into scans.
        step: RuleStep::FirstPhysical(|| Arc::new(Switched(ContainsPushdown))),
        without: "Parquet scans do not evaluate `ragged_any(x == v)`",
        upstream: &[],
        until: RemovalCondition::Speed,
    },
    SessionRule {
        // Must run before partitions are planned.
        step: RuleStep::FirstPhysical(|| Arc::new(Switched(LeafPartitions))),
        without: "one thread reads a file of few rows and many leaves",
        upstream: &[],
        until: RemovalCondition::Speed,
    },
    SessionRule {
        // Must run after the sides of joins are chosen, and before sorts are removed.
        step: RuleStep::AfterPhysical("join_selection", || Arc::new(JoinOrders)),
        without: "`ORDER BY b, a` does not sort by `a` over a join of sides in the orders `b` and `a`",
        upstream: &[],
        until: RemovalCondition::Fails("stock_joins_still_claim_two_orders"),
    },
    SessionRule {
        // Must run after conditions are pushed into scans, and before a repartitioning is inserted.
        step: RuleStep::AfterPhysical("FilterPushdown", || Arc::new(Switched(LengthsIntoScan))),
        without: "scans read the values of lists although only lengths are needed",
        upstream: &[],
        until: RemovalCondition::Speed,
    },
    SessionRule {
        step: RuleStep::AfterPhysical("EnsureRequirements", || Arc::new(MissingPartitions)),
        without: "GROUP BY of a subquery with ORDER BY fails for a table in memory with several partitions and no rows",
        upstream: &[],
        until: RemovalCondition::Fails("stock_removed_sorts_still_leave_partitions"),
    },
    SessionRule {
        step: RuleStep::AfterPhysical("LimitAggregation", || Arc::new(WholeFloatGroups)),
        without: "GROUP BY .. ORDER BY .. LIMIT of floats drops NaN, or panics",
        upstream: &[],
        until: RemovalCondition::Fails("stock_topk_of_floats_is_still_wrong"),
    },
    // The next two rules run after all sorts are in place and before plans are checked.
    SessionRule {
        // This rule hides orders, so the next rule, `MissingSorts`, may have to add sorts.
        step: RuleStep::BeforePhysical("SanityCheckPlan", || Arc::new(UnorderedKeys)),
        without: "grouping by constant lists of lists fails",
        upstream: &[24937],
        until: RemovalCondition::Fails("stock_distinct_of_constant_lists_still_fails"),
    },
    SessionRule {
        step: RuleStep::BeforePhysical("SanityCheckPlan", || Arc::new(MissingSorts)),
        without: "plans over UNION ALL lack sorts that operators need",
        upstream: &[16171, 17372, 23528],
        until: RemovalCondition::Fails("stock_unions_with_a_constant_still_fail"),
    },
    SessionRule {
        step: RuleStep::AroundPhysical("GuardedRule"),
        without: "filters and projections apply to other columns of the same name",
        upstream: &[21246, 25244, 25259, 25296],
        until: RemovalCondition::Fails("stock_filter_pushdown_is_still_wrong"),
    },
    SessionRule {
        step: RuleStep::AroundPhysical("GuardedRule"),
        without: "a hash join below a partitioned join waits forever for its dynamic filter",
        upstream: &[21666],
        until: RemovalCondition::Fails("stock_joins_below_partitioned_joins_still_hang"),
    },
    SessionRule {
        step: RuleStep::AroundPhysical("FilteredAggregates"),
        without: "an aggregate with FILTER of a subquery that is an aggregate fails, or returns the inner aggregate",
        upstream: &[],
        until: RemovalCondition::Fails("stock_statistics_still_replace_filtered_aggregates"),
    },
    SessionRule {
        step: RuleStep::AroundPhysical("OpaqueLimits"),
        without: "ORDER BY moves below a LIMIT or an OFFSET, and LIMIT below a window function",
        upstream: &[25378, 25408],
        until: RemovalCondition::Fails("stock_sorts_still_move_below_limits"),
    },
    SessionRule {
        // Must run after all sorts are in place.
        step: RuleStep::LastPhysical(|| Arc::new(SortedDistinct)),
        without: "DISTINCT .. LIMIT above a window function fails",
        upstream: &[25350],
        until: RemovalCondition::Fails("stock_limits_of_sorted_distinct_rows_still_fail"),
    },
    SessionRule {
        step: RuleStep::LastPhysical(|| Arc::new(RangeFrames)),
        without: "frames `RANGE .. AND n PRECEDING` at NULL and at infinity miss peers in later batches",
        upstream: &[],
        until: RemovalCondition::Fails("stock_range_frames_of_nulls_still_miss_peers"),
    },
    SessionRule {
        step: RuleStep::LastPhysical(|| Arc::new(AsOfOrder)),
        without: "`meds_asof` returns rows in any order",
        upstream: &[],
        until: RemovalCondition::Feature,
    },
    SessionRule {
        step: RuleStep::LastPhysical(|| Arc::new(SourceOrder)),
        without: "LIMIT and files that identify rows by position do not get rows in source order",
        upstream: &[],
        until: RemovalCondition::Feature,
    },
    SessionRule {
        step: RuleStep::LastPhysical(|| Arc::new(Switched(OffsetIntoScan))),
        without: "scans read the rows that OFFSET skips",
        upstream: &[],
        until: RemovalCondition::Speed,
    },
    SessionRule {
        step: RuleStep::LastPhysical(|| Arc::new(Switched(LeafBatches))),
        without: "batches of long lists take gigabytes",
        upstream: &[],
        until: RemovalCondition::Speed,
    },
    SessionRule {
        // Must run after every limit is in its scan.
        step: RuleStep::LastPhysical(|| Arc::new(OrderedScanLimits)),
        without: "a LIMIT in an ordered Parquet scan skips row groups and returns later rows",
        upstream: &[24272],
        until: RemovalCondition::Fails("stock_limits_drop_row_groups"),
    },
    SessionRule {
        // Must run after all rules that change scans. It has its own setting, `serrate.parquet_lists`.
        step: RuleStep::LastPhysical(|| Arc::new(ParquetLists)),
        without: "lists in Parquet files are decoded three to four times as slowly",
        upstream: &[],
        until: RemovalCondition::Feature,
    },
    SessionRule {
        step: RuleStep::LastPhysical(|| Arc::new(SortLists)),
        without: "ORDER BY lists with NULL and LIMIT loses rows",
        upstream: &[],
        until: RemovalCondition::Passes("order_by_lists_does_not_depend_on_batches"),
    },
    SessionRule {
        step: RuleStep::LastPhysical(|| Arc::new(DistinctRecursions)),
        without: "WITH RECURSIVE .. UNION loses rows after NULL and empty lists, and repeats NaN",
        upstream: &[],
        until: RemovalCondition::Fails("stock_recursive_unions_still_lose_rows"),
    },
    SessionRule {
        step: RuleStep::LastPhysical(|| Arc::new(YieldingJoins)),
        without: "long joins cannot be cancelled",
        upstream: &[19358],
        until: RemovalCondition::Feature,
    },
    SessionRule {
        step: RuleStep::LastPhysical(|| Arc::new(DeepStacks)),
        without: "deep expressions overflow the stack",
        upstream: &[8900, 22229],
        until: RemovalCondition::Feature,
    },
    SessionRule {
        step: RuleStep::LastPhysical(|| Arc::new(NamedFiles)),
        without: "errors do not name their file, and a damaged file ends the process",
        upstream: &[],
        until: RemovalCondition::Feature,
    },
];
