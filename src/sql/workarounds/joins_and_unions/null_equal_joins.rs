use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::{EmptyRelation, Join, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::sql::base::plan_nodes::has_node;

/// `SELECT a.id FROM a JOIN c ON a.k IS NOT DISTINCT FROM c.k WHERE a.s = c.s` returns rows in
/// which both `s` are NULL without this rule.
///
/// Applies two rules of DataFusion so that no join mixes keys for which NULL equals NULL with other
/// keys.
///
/// A join with `a.x IS NOT DISTINCT FROM b.x`, or with the outer values of a correlated subquery,
/// compares all its keys with NULL equal to NULL. DataFusion 55 adds keys from `=` to such a join,
/// which then returns rows with NULL:
///
/// * `extract_equijoin_predicate` takes the keys from the condition of the join, to which
///   `push_down_filter` may have moved conditions of a WHERE. Here, such a join keeps its
///   condition.
/// * `eliminate_cross_join` merges consecutive inner joins and WHERE, and then compares NULL in all
///   keys as the topmost join does, which also loses rows. While the rule runs here, an empty
///   relation replaces such a join, so that the rule does not merge the join.
///
/// This workaround is obsolete once the test `stock_joins_still_mix_equalities_of_null` fails.
pub(in crate::sql) fn keep_null_equal_joins(
    stock: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if stock.name() == "eliminate_cross_join" {
        return rewrite_apart(stock, plan, config);
    }
    match &plan {
        LogicalPlan::Join(join) if is_null_equal(join) => Ok(Transformed::no(plan)),
        _ => stock.rewrite(plan, config),
    }
}

/// Applies `eliminate_cross_join` to the inputs of each inner join for which NULL equals NULL, and
/// then to the plan above these joins.
fn rewrite_apart(
    stock: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let is_merged =
        |node: &LogicalPlan| matches!(node, LogicalPlan::Join(join) if is_chained(join));
    if !has_node(&plan, |node| Ok(is_merged(node)))? {
        return stock.rewrite(plan, config);
    }
    let mut apart = Vec::new();
    let mut changed = false;
    let plan = plan.transform_down_with_subqueries(|node| match node {
        LogicalPlan::Join(join) if is_chained(&join) => {
            let join = LogicalPlan::Join(join)
                .map_children(|child| keep_null_equal_joins(stock, child, config))?;
            changed |= join.transformed;
            // The address of this copy of the schema identifies the relation that replaces the
            // join.
            let schema = Arc::new(join.data.schema().as_ref().clone());
            apart.push((Arc::clone(&schema), join.data));
            let leaf = LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema });
            Ok(Transformed::new(leaf, true, TreeNodeRecursion::Jump))
        }
        node => Ok(Transformed::no(node)),
    })?;
    let done = stock.rewrite(plan.data, config)?;
    changed |= done.transformed;
    let whole = done.data.transform_up_with_subqueries(|node| {
        let LogicalPlan::EmptyRelation(leaf) = &node else { return Ok(Transformed::no(node)) };
        let join = apart.iter().find(|(schema, _)| Arc::ptr_eq(schema, &leaf.schema));
        Ok(match join {
            Some((_, join)) => Transformed::yes(join.clone()),
            None => Transformed::no(node),
        })
    })?;
    Ok(Transformed::new_transformed(whole.data, changed))
}

fn is_null_equal(join: &Join) -> bool {
    join.null_equality == NullEquality::NullEqualsNull && !join.on.is_empty()
}

/// Whether `eliminate_cross_join` could merge a join with other inner joins.
fn is_chained(join: &Join) -> bool {
    is_null_equal(join) && join.join_type == JoinType::Inner
}
