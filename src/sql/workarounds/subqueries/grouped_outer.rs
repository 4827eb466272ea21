use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::utils::{grouping_set_to_exprlist, merge_schema};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Subquery};

use crate::sql::base::expression_parts::map_named;
use crate::sql::base::plan_nodes::has_node;
use crate::sql::base::subquery_parts::has_query;

/// Analyzer rule, before DataFusion's type coercion: lets a subquery use a computed GROUP BY key of
/// the query around it.
///
/// In HAVING, SELECT and QUALIFY, DataFusion 55 replaces a key such as `x + 1` with the column of
/// the groups, but not within subqueries: `GROUP BY x + 1 HAVING EXISTS (SELECT 1 FROM z WHERE
/// z.i = t.x + 1)` fails, because the groups have no column `t.x`. A key that is a merged column of
/// a full join with USING is computed, too, with `coalesce`. This workaround is obsolete once the
/// test `stock_computed_keys_are_still_no_outer_columns` fails.
pub(in crate::sql) fn name_computed_keys(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_node(&plan, |node| Ok(!find_computed_keys(node)?.is_empty()))? {
        return Ok(plan);
    }
    let changed = plan.transform_up_with_subqueries(|node| {
        let keys = find_computed_keys(&node)?;
        let keys: Vec<&GroupKey> = keys.iter().collect();
        let node = match keys.is_empty() {
            true => Transformed::no(node),
            false => node.map_subqueries(|query| name_keys(query, &keys))?,
        };
        // Nodes copy the nullability of their inputs, so schemas above a changed node are computed
        // again.
        node.map_data(LogicalPlan::recompute_schema)
    })?;
    Ok(changed.data)
}

/// A key of a GROUP BY that is not a column.
struct GroupKey {
    expr: Expr,
    /// The output column of the GROUP BY with the values of the key, as an `OuterReferenceColumn`,
    /// the form in which a subquery uses a column of the query around it.
    outer: Expr,
}

impl GroupKey {
    /// Whether the expression of the key uses a column of `schema`.
    fn names_column_of(&self, schema: &DFSchema) -> bool {
        self.expr.column_refs().into_iter().any(|column| schema.has_column(column))
    }
}

/// Returns the keys of the GROUP BY below a node that are computed from columns, such as `x + 1`.
/// Returns no keys if the node has no subqueries.
fn find_computed_keys(node: &LogicalPlan) -> Result<Vec<GroupKey>> {
    let Some(groups) = find_groups_below(node) else { return Ok(Vec::new()) };
    if !has_query(node) {
        return Ok(Vec::new());
    }
    let keys = grouping_set_to_exprlist(&groups.group_expr)?;
    let keys = keys.into_iter().zip(groups.schema.iter()).map(|(key, (table, field))| {
        let column = Column::new(table.cloned(), field.name().clone());
        let outer = Expr::OuterReferenceColumn(Arc::clone(field), column);
        GroupKey { expr: key.clone().unalias(), outer }
    });
    let is_computed = |key: &Expr| {
        !matches!(key, Expr::Column(_))
            && !key.column_refs().is_empty()
            && !key.contains_outer()
            && !key.is_volatile()
    };
    Ok(keys.filter(|key| is_computed(&key.expr)).collect())
}

fn find_groups_below(node: &LogicalPlan) -> Option<&Aggregate> {
    let mut below = match node {
        LogicalPlan::Projection(node) => &node.input,
        LogicalPlan::Filter(node) => &node.input,
        LogicalPlan::Window(node) => &node.input,
        _ => return None,
    };
    loop {
        below = match below.as_ref() {
            LogicalPlan::Filter(node) => &node.input,
            LogicalPlan::Window(node) => &node.input,
            LogicalPlan::Aggregate(groups) => return Some(groups),
            _ => return None,
        };
    }
}

/// Replaces `keys` in a subquery, and in the subqueries within it, with the columns of the groups.
fn name_keys(query: LogicalPlan, keys: &[&GroupKey]) -> Result<Transformed<LogicalPlan>> {
    let mut keys = keys.to_vec();
    query.apply(|node| {
        // Skips the keys that use a column of the left side of a join: if the join is LATERAL, an
        // outer column of the right side may be this column.
        if let LogicalPlan::Join(join) = node {
            keys.retain(|key| !key.names_column_of(join.left.schema()));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    query.transform_up(|node| {
        let node = match node {
            LogicalPlan::Subquery(query) => {
                let outer_ref_columns = query.subquery.all_out_ref_exprs();
                return Ok(Transformed::yes(LogicalPlan::Subquery(Subquery {
                    outer_ref_columns,
                    ..query
                })));
            }
            node => node,
        };
        // Skips the keys that use a table whose name a table of this node also has, because the
        // subqueries of the node see only the table of the node.
        let inputs = merge_schema(&node.inputs());
        let open: Vec<&GroupKey> =
            keys.iter().copied().filter(|key| !key.names_column_of(&inputs)).collect();
        let node = node.map_subqueries(|nested| name_keys(nested, &open))?;
        let node = node.transform_data(|node| {
            map_named(node, |e| e.transform_down(|e| replace_key(e, &keys)))
        })?;
        node.map_data(LogicalPlan::recompute_schema)
    })
}

fn replace_key(e: Expr, keys: &[&GroupKey]) -> Result<Transformed<Expr>> {
    if !e.contains_outer() || !e.column_refs().is_empty() {
        return Ok(Transformed::no(e));
    }
    let plain = e.clone().transform_up(|e| {
        Ok(match e {
            Expr::OuterReferenceColumn(_, column) => Transformed::yes(Expr::Column(column)),
            e => Transformed::no(e),
        })
    })?;
    Ok(match keys.iter().find(|key| key.expr == plain.data) {
        Some(key) => Transformed::new(key.outer.clone(), true, TreeNodeRecursion::Jump),
        None => Transformed::no(e),
    })
}
