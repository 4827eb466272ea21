//! Physical rules of DataFusion that push into nodes, kept from nodes where they change rows.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::projection::{ProjectionExec, try_embed_projection};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use serrate_core::internal::find_repeated_name;

use crate::functions::physical_cannot_fail;
use crate::sql::base::plan_nodes::replace_inputs;
use crate::sql::exec::{display_name, hide_node, pass_through, same_rows};
use crate::sql::workarounds::guards::row_filters::{guard_row_filters, release_row_filters};
use crate::sql::workarounds::guards::waiting_joins::refuse_waiting_filters;

/// `SELECT b.id, b.v FROM small a RIGHT JOIN big b ON a.id = b.id WHERE a.id IS NULL` over Parquet
/// files returns no row without this function.
///
/// Applies `FilterPushdown`, `FilterPushdown(Post)`, `ProjectionPushdown` or `PushdownSort` so that
/// it moves nothing past a node where columns would be mixed up, or where the rows of a LIMIT would
/// change.
///
/// While the rule runs, a [`BarrierExec`] above each such node keeps filters, projections and
/// orders above it. The node's own filters and projections, and all others below the barrier, move
/// as usual.
///
/// `FilterPushdown` of DataFusion 55 passes a filter from a node to its child by the names of its
/// columns. If a schema has a name twice, as above a join of two tables with a column `id`, the
/// filter is applied to another column, and the query loses rows:
/// <https://github.com/apache/datafusion/issues/21246>,
/// <https://github.com/apache/datafusion/issues/25296>,
/// <https://github.com/apache/datafusion/issues/25244>. The upstream fix,
/// <https://github.com/apache/datafusion/pull/25259>, is not released yet;
/// `stock_filter_pushdown_is_still_wrong` in `tests/sql/joins.rs` fails once it is.
/// `FilterPushdown` also passes conditions on lists to scans of Parquet, which accept these
/// conditions and do not apply them ([`guard_row_filters`]).
///
/// `FilterPushdown(Post)` passes dynamic filters to scans below expressions that can fail. Such
/// filters depend on other rows and on timing, so whether a query over Parquet fails would depend
/// on the rows that a join or TopK has seen. The rule also gives the scan below `min(f(a)), max(b)`
/// a filter for `max(b)` alone, which drops rows that `min(f(a))` needs. The filter that the rule
/// gives the scan below `max(x)` of floats drops row groups with NaN, because statistics omit NaN
/// ([`filters_too_much`]). The filters of some joins make the query wait forever
/// ([`refuse_waiting_filters`]). The rule also gives a filter to a scan that has taken over a
/// LIMIT, which then counts the rows that pass the filter. This workaround is obsolete once the
/// test `stock_joins_still_filter_below_limits` in `tests/sql/limits.rs` fails.
///
/// `PushdownSort` makes a scan of Parquet that has taken over a LIMIT read its row groups and files
/// in another order, so that the LIMIT returns other rows. This workaround is obsolete once the
/// test `stock_limited_scans_still_reorder_rows` fails.
///
/// `ProjectionPushdown` has three bugs. It moves a projection below a `FilterExec` that itself
/// projects, as if both had the same columns. This workaround is obsolete once the test
/// `stock_projections_of_filters_still_fail` fails. It moves expressions that can fail below a
/// `FilterExec`, where they are evaluated for the rows that the filter drops
/// ([`GuardedFilterExec`]). This workaround is obsolete once the test
/// `stock_projections_still_move_below_filters` fails. It also moves subexpressions of the
/// condition of a nested-loop join below the join, where they are evaluated for rows without a
/// match, and out of lambda bodies, although they cannot be evaluated outside. This workaround is
/// obsolete once the test `stock_parts_of_join_conditions_still_move` fails.
pub(in crate::sql) fn guard_pushdowns(
    stock: &dyn PhysicalOptimizerRule,
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let resolves_rightly: fn(&Arc<dyn ExecutionPlan>) -> bool = match stock.name() {
        "FilterPushdown" => resolves_filters_rightly,
        "FilterPushdown(Post)" => takes_dynamic_filters_rightly,
        "PushdownSort" => takes_orders_rightly,
        _ => takes_projections_rightly,
    };
    let passes_conditions = stock.name() == "FilterPushdown";
    let plan = match passes_conditions {
        true => guard_row_filters(plan)?,
        false => plan,
    };
    let moves_parts = stock.name() == "ProjectionPushdown";
    let moves_filters = stock.name() == "FilterPushdown(Post)";
    let bar = |input| Arc::new(BarrierExec { input }) as Arc<dyn ExecutionPlan>;
    let waiting = match moves_filters {
        true => refuse_waiting_filters(Arc::clone(&plan), &bar)?,
        false => Arc::clone(&plan),
    };
    let refuses = !Arc::ptr_eq(&waiting, &plan);
    let guarded = waiting.transform_up(|node| {
        if moves_filters && filters_too_much(&node) {
            let inputs = node.children().into_iter().map(|input| bar(Arc::clone(input)));
            let inputs = inputs.collect();
            return replace_inputs(node, inputs).map(Transformed::yes);
        }
        Ok(match resolves_rightly(&node) {
            true if moves_parts && has_fallible_condition(&node) => {
                Transformed::yes(Arc::new(OpaqueJoinExec { join: node }) as _)
            }
            true if moves_parts && node.is::<FilterExec>() => {
                Transformed::yes(Arc::new(GuardedFilterExec { filter: node }) as _)
            }
            true => Transformed::no(node),
            false => Transformed::yes(Arc::new(BarrierExec { input: node }) as _),
        })
    })?;
    let plan = stock.optimize(guarded.data, config)?;
    let plan = match passes_conditions {
        true => release_row_filters(plan)?,
        false => plan,
    };
    if !guarded.transformed && !refuses {
        return Ok(plan);
    }
    let bare = plan.transform_up(|node| {
        Ok(match node.downcast_ref::<BarrierExec>() {
            Some(barrier) => Transformed::yes(Arc::clone(&barrier.input)),
            None => match node.downcast_ref::<OpaqueJoinExec>() {
                Some(opaque) => Transformed::yes(Arc::clone(&opaque.join)),
                None => match node.downcast_ref::<GuardedFilterExec>() {
                    Some(guarded) => Transformed::yes(Arc::clone(&guarded.filter)),
                    None => Transformed::no(node),
                },
            },
        })
    })?;
    Ok(bare.data)
}

/// Whether a projection above a node still refers to the same columns after it is pushed below the
/// node.
fn takes_projections_rightly(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.downcast_ref::<FilterExec>().is_none_or(|filter| filter.projection().is_none())
}

/// Whether `PushdownSort` may change the order in which a node reads its rows. It may not if the
/// node has a limit, because the node would then return other rows. A sort with a limit is an
/// exception, also together with a merge: it reads all of its rows, so that their order does not
/// matter, and the rule must be able to find it.
fn takes_orders_rightly(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.fetch().is_none() || node.is::<SortExec>() || node.is::<SortPreservingMergeExec>()
}

fn has_fallible_condition(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.downcast_ref::<NestedLoopJoinExec>()
        .and_then(NestedLoopJoinExec::filter)
        .is_some_and(|filter| !physical_cannot_fail(filter.expression(), filter.schema()))
}

/// Whether a filter on a node still refers to the same columns after it is pushed to the children
/// of the node, where the columns are looked up by name.
fn resolves_filters_rightly(node: &Arc<dyn ExecutionPlan>) -> bool {
    let children = node.children();
    if has_repeated_name(&node.schema())
        || children.iter().any(|child| has_repeated_name(&child.schema()))
    {
        return false;
    }
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        // A group key is the same column above and below the aggregate if it is a column that keeps
        // its name.
        return aggregate.group_expr().expr().iter().all(|(key, name)| is_column(key, name));
    }
    if node.is::<UnionExec>() {
        // A union matches columns by position, so a filter by name needs equal names in all inputs.
        let schema = node.schema();
        return children.iter().all(|child| have_equal_names(&child.schema(), &schema));
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        return maps_keys_by_name(join);
    }
    true
}

/// Whether a dynamic filter may move below a node and still refer to the same columns. It must not
/// move below an expression that can fail, because the rows that the filter drops would decide
/// whether the query fails, nor below a volatile condition or a limit.
fn takes_dynamic_filters_rightly(node: &Arc<dyn ExecutionPlan>) -> bool {
    if node.fetch().is_some() {
        return false;
    }
    let whole = if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        let schema = projection.input().schema();
        projection.expr().iter().all(|made| physical_cannot_fail(&made.expr, &schema))
    } else if let Some(filter) = node.downcast_ref::<FilterExec>() {
        !is_volatile(filter.predicate())
    } else if let Some(scan) = node.downcast_ref::<DataSourceExec>() {
        let config = scan.data_source().downcast_ref::<FileScanConfig>();
        config.is_none_or(|config| {
            let schema = config.file_source().table_schema().table_schema();
            let made = config.file_source().projection();
            made.is_none_or(|made| made.iter().all(|e| physical_cannot_fail(&e.expr, schema)))
        })
    } else {
        true
    };
    whole && resolves_filters_rightly(node)
}

/// Whether a node gives its input a dynamic filter that drops rows which the node needs.
fn filters_too_much(node: &Arc<dyn ExecutionPlan>) -> bool {
    match node.downcast_ref::<HashJoinExec>() {
        Some(join) => joins_nested_keys(join),
        None => node.downcast_ref::<AggregateExec>().is_some_and(aggregates_dropped_rows),
    }
}

/// Whether a hash join compares lists or structs.
///
/// DataFusion 55 gives the probe side a filter by the least and the greatest key of the build side.
/// To find these keys, DataFusion orders NULL within a list differently than the filter does, so
/// the filter drops matching rows. For two equal lists of lists, the query fails. The test
/// `stock_dynamic_filters_of_lists_still_drop_rows` in `tests/sql/dynamic_filters.rs` fails once
/// the filter no longer drops matching rows.
fn joins_nested_keys(join: &HashJoinExec) -> bool {
    let schema = join.left().schema();
    join.on().iter().any(|(key, _)| key.data_type(&schema).is_ok_and(|found| found.is_nested()))
}

/// Whether an aggregate without keys needs rows that its dynamic filter drops.
///
/// DataFusion 55 builds the filter of `min` and `max` from the calls whose argument is a column,
/// and ignores other calls. It also ignores a call while a partition has only NULL for it, or no
/// row that its FILTER accepts. Parquet statistics omit NaN, the greatest float, so pruning by them
/// drops NaN. The test `stock_dynamic_filters_of_extremes_still_drop_rows` fails once the filter no
/// longer ignores other calls.
fn aggregates_dropped_rows(aggregate: &AggregateExec) -> bool {
    let schema = aggregate.input().schema();
    let is_single = aggregate.aggr_expr().len() == 1;
    let is_filtered = aggregate.filter_expr().iter().any(Option::is_some);
    aggregate.group_expr().is_empty()
        && aggregate.aggr_expr().iter().any(|call| match call.expressions().as_slice() {
            [argument] => {
                !argument.is::<Column>()
                    || !is_single && (is_filtered || argument.nullable(&schema).unwrap_or(true))
                    || argument
                        .data_type(&schema)
                        .is_ok_and(|found| found.is_floating() || found.is_nested())
            }
            _ => true,
        })
}

/// Whether a filter on a key of a semi join still refers to a key in both inputs. DataFusion passes
/// the filter to both inputs by column name, and in the other input, a column that is not the key
/// may have this name.
fn maps_keys_by_name(join: &HashJoinExec) -> bool {
    let other = match join.join_type() {
        JoinType::LeftSemi => join.right().schema(),
        JoinType::RightSemi => join.left().schema(),
        _ => return true,
    };
    join.on().iter().all(|(left, right)| {
        let (given, met) = match join.join_type() {
            JoinType::LeftSemi => (left, right),
            _ => (right, left),
        };
        let Some(given) = given.downcast_ref::<Column>() else { return true };
        is_column(met, given.name()) || other.index_of(given.name()).is_err()
    })
}

fn is_column(e: &Arc<dyn PhysicalExpr>, name: &str) -> bool {
    e.downcast_ref::<Column>().is_some_and(|column| column.name() == name)
}

fn has_repeated_name(schema: &Schema) -> bool {
    find_repeated_name(schema.fields()).is_some()
}

fn have_equal_names(a: &Schema, b: &Schema) -> bool {
    a.fields().len() == b.fields().len()
        && a.fields().iter().zip(b.fields()).all(|(a, b)| a.name() == b.name())
}

/// Stops filters, projections and orders that a rule would move down. Present only while
/// [`guard_pushdowns`] runs.
#[derive(Debug)]
struct BarrierExec {
    input: Arc<dyn ExecutionPlan>,
}

impl BarrierExec {
    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self { input }
    }
}

display_name!(BarrierExec);

impl ExecutionPlan for BarrierExec {
    // Returns the `Arc` of the input's properties, so that the nodes above the barrier do not
    // compute their own properties again.
    pass_through!("BarrierExec", input);
    same_rows!();
}

/// Hides a join from a rule, except that projections may move into it. Present while
/// [`guard_pushdowns`] runs.
#[derive(Debug)]
struct OpaqueJoinExec {
    join: Arc<dyn ExecutionPlan>,
}

impl OpaqueJoinExec {
    fn hide_other(&self, join: Arc<dyn ExecutionPlan>) -> Self {
        Self { join }
    }
}

display_name!(OpaqueJoinExec);

impl ExecutionPlan for OpaqueJoinExec {
    fn properties(&self) -> &Arc<PlanProperties> {
        self.join.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.join.maintains_input_order()
    }

    hide_node!("OpaqueJoinExec", join);

    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        self.join.try_swapping_with_projection(projection)
    }
}

/// Lets a rule move a projection below a filter only if the expressions of the projection cannot
/// fail. Other projections may still tell the filter which columns to return. Present while
/// [`guard_pushdowns`] runs.
#[derive(Debug)]
struct GuardedFilterExec {
    filter: Arc<dyn ExecutionPlan>,
}

impl GuardedFilterExec {
    fn hide_other(&self, filter: Arc<dyn ExecutionPlan>) -> Self {
        Self { filter }
    }
}

display_name!(GuardedFilterExec);

impl ExecutionPlan for GuardedFilterExec {
    fn properties(&self) -> &Arc<PlanProperties> {
        self.filter.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.filter.maintains_input_order()
    }

    hide_node!("GuardedFilterExec", filter);

    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let schema = self.filter.schema();
        let can_fail =
            projection.expr().iter().any(|made| !physical_cannot_fail(&made.expr, &schema));
        match self.filter.downcast_ref::<FilterExec>() {
            Some(filter) if can_fail => try_embed_projection(projection, filter),
            _ => self.filter.try_swapping_with_projection(projection),
        }
    }
}
