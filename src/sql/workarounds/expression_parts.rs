//! Finds and rewrites parts (subexpressions) of the expressions in a plan.

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Returns the columns that a node's expressions may name: those of its inputs or, for a scan, of
/// its table.
pub(in crate::sql) fn columns_below(plan: &LogicalPlan) -> Result<DFSchema> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = plan {
        let (name, source) = (scan.table_name.clone(), scan.source.schema());
        schema.merge(&DFSchema::try_from_qualified_schema(name, &source)?);
    }
    Ok(schema)
}

/// Whether a node has an expression with a part that `test` accepts, except in subqueries.
pub(in crate::sql) fn has_part(plan: &LogicalPlan, test: impl Fn(&Expr) -> bool) -> bool {
    let mut found = false;
    let visited = plan.apply_expressions(|e| {
        found = e.exists(|e| Ok(test(e)))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found || visited.is_err()
}

/// Rewrites the parts of all expressions of a plan, inner parts first, also in subqueries. Columns keep their names.
///
/// `rewrite` gets the columns that the expression may name. Nodes without a part that `is_affected`
/// accepts are kept: their names and columns take longer to compute than their parts take to visit.
pub(in crate::sql) fn rewrite_parts(
    plan: LogicalPlan,
    is_affected: impl Fn(&Expr) -> bool,
    rewrite: impl Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<LogicalPlan> {
    let rewritten =
        plan.transform_up_with_subqueries(|plan| match has_part(&plan, &is_affected) {
            true => rewrite_node(plan, &rewrite),
            false => Ok(Transformed::no(plan)),
        })?;
    Ok(rewritten.data)
}

/// Like [`rewrite_parts`], but only for the expressions of one node.
pub(in crate::sql) fn rewrite_node(
    plan: LogicalPlan,
    rewrite: impl Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let columns = columns_below(&plan)?;
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|e| {
        let name = names.save(&e);
        let done = e.transform_up(|e| rewrite(e, &columns))?;
        Ok(done.update_data(|e| name.restore(e)))
    })
}
