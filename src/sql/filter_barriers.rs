//! [`UnambiguousFilterPushdown`]: DataFusion's filter push-down, kept from resolving columns by a name
//! that several columns have.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::exec::one_input;

/// DataFusion's `FilterPushdown` (static or dynamic filters) over a plan in which no filter enters a
/// node that would resolve its columns wrongly.
///
/// `FilterPushdown` of DataFusion 55 hands a filter from a node to its child by the names of its
/// columns. Where a schema has one name twice, as above a join of two tables with a column `id`, the
/// filter ends on another column, and the query loses rows:
/// <https://github.com/apache/datafusion/issues/21246>,
/// <https://github.com/apache/datafusion/issues/25296>,
/// <https://github.com/apache/datafusion/issues/25244>. The mend upstream,
/// <https://github.com/apache/datafusion/pull/25259>, is in no release yet;
/// `stock_filter_pushdown_is_still_wrong` in `tests/sql/joins.rs` fails once it is, and this rule
/// can go then.
///
/// A [`FilterBarrierExec`] stands above each such node while the rule runs, and refuses the filters of
/// the nodes above it. Filters that start at the node itself or below are pushed as ever.
#[derive(Debug)]
pub(super) struct UnambiguousFilterPushdown {
    stock: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
}

impl UnambiguousFilterPushdown {
    pub(super) fn new(stock: Arc<dyn PhysicalOptimizerRule + Send + Sync>) -> Self {
        Self { stock }
    }
}

impl PhysicalOptimizerRule for UnambiguousFilterPushdown {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let guarded = plan.transform_up(|node| {
            Ok(match resolves_filters_rightly(&node) {
                true => Transformed::no(node),
                false => Transformed::yes(Arc::new(FilterBarrierExec { input: node }) as _),
            })
        })?;
        let plan = self.stock.optimize(guarded.data, config)?;
        if !guarded.transformed {
            return Ok(plan);
        }
        let bare = plan.transform_up(|node| {
            Ok(match node.downcast_ref::<FilterBarrierExec>() {
                Some(barrier) => Transformed::yes(Arc::clone(&barrier.input)),
                None => Transformed::no(node),
            })
        })?;
        Ok(bare.data)
    }

    fn name(&self) -> &str {
        self.stock.name()
    }

    fn schema_check(&self) -> bool {
        self.stock.schema_check()
    }
}

/// Whether a filter over the columns of a node means the same columns after the node has handed it to
/// its children by name.
fn resolves_filters_rightly(node: &Arc<dyn ExecutionPlan>) -> bool {
    let children = node.children();
    if has_repeated_name(&node.schema())
        || children.iter().any(|child| has_repeated_name(&child.schema()))
    {
        return false;
    }
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        // A key is a column of the output; its name may be that of another column of the input.
        return aggregate.group_expr().expr().iter().all(|(key, name)| is_column(key, name));
    }
    if node.is::<UnionExec>() {
        // The columns of the inputs correspond by position.
        let schema = node.schema();
        return children.iter().all(|child| have_equal_names(&child.schema(), &schema));
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        return maps_keys_by_name(join);
    }
    true
}

/// Whether filters on the keys of a semi join, which go to both of its sides, find the key of the other
/// side under the same name.
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

/// Whether an expression is the column of a name.
fn is_column(e: &Arc<dyn PhysicalExpr>, name: &str) -> bool {
    e.downcast_ref::<Column>().is_some_and(|column| column.name() == name)
}

fn has_repeated_name(schema: &Schema) -> bool {
    let mut seen = HashSet::with_capacity(schema.fields().len());
    !schema.fields().iter().all(|field| seen.insert(field.name()))
}

fn have_equal_names(a: &Schema, b: &Schema) -> bool {
    a.fields().len() == b.fields().len()
        && a.fields().iter().zip(b.fields()).all(|(a, b)| a.name() == b.name())
}

/// Refuses the filters of the nodes above it; present only while [`UnambiguousFilterPushdown`] runs.
#[derive(Debug)]
struct FilterBarrierExec {
    input: Arc<dyn ExecutionPlan>,
}

impl FilterBarrierExec {
    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self { input }
    }
}

impl DisplayAs for FilterBarrierExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FilterBarrierExec")
    }
}

impl ExecutionPlan for FilterBarrierExec {
    fn name(&self) -> &str {
        "FilterBarrierExec"
    }

    /// The properties of the input, the same allocation: nodes above keep what they know of it.
    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    one_input!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
