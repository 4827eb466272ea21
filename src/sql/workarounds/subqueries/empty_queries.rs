use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Subquery};

use crate::sql::base::expression_parts::has_part;
use crate::sql::base::nullable_mark::{NULLABLE, is_nullable_mark};
use crate::sql::base::plan_nodes::has_node;
use crate::sql::base::subquery_parts::has_one_row;

/// Analyzer rule, after subqueries are rewritten: makes a scalar subquery that may return no row
/// nullable.
///
/// DataFusion 55 declares the subquery nullable only if the column of the subquery is nullable, and
/// the column can become non-nullable while the plan is optimized, because
/// `CASE WHEN true THEN 1 END` becomes a literal. `(SELECT 1 FROM t WHERE false) IS NULL` then
/// becomes false, and the value is a NULL in a non-nullable column, which is an error. Correlated
/// subqueries are unaffected: they become joins, whose columns are nullable. This workaround is
/// obsolete once the test `stock_queries_without_rows_are_still_values` fails.
pub(in crate::sql) fn make_queries_nullable(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_node(&plan, |node| Ok(has_part(node, is_changed)))? {
        return Ok(plan);
    }
    let changed = plan.transform_up_with_subqueries(|node| {
        let node = node.map_expressions(|e| e.transform_up(as_nullable))?;
        // Nodes copy the nullability of their inputs, so schemas above a changed node are computed
        // again.
        node.map_data(LogicalPlan::recompute_schema)
    })?;
    Ok(changed.data)
}

/// Whether the rule changes an expression: a scalar subquery that DataFusion may declare
/// non-nullable.
fn is_changed(e: &Expr) -> bool {
    let Expr::ScalarSubquery(query) = e else { return false };
    query.outer_ref_columns.is_empty()
        && !is_marked_nullable(&query.subquery)
        && !has_one_row(&query.subquery)
}

fn is_marked_nullable(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Projection(projection) = plan else { return false };
    projection.expr.iter().all(|e| is_nullable_mark(&e.clone().unalias()))
}

fn as_nullable(e: Expr) -> Result<Transformed<Expr>> {
    if !is_changed(&e) {
        return Ok(Transformed::no(e));
    }
    let Expr::ScalarSubquery(query) = e else { return Ok(Transformed::no(e)) };
    let columns = query.subquery.schema().columns().into_iter().map(|column| {
        let name = column.name.clone();
        NULLABLE.call(vec![Expr::Column(column)]).alias(name)
    });
    let plan = LogicalPlanBuilder::from(Arc::unwrap_or_clone(query.subquery));
    let plan = plan.project(columns.collect::<Vec<_>>())?.build()?;
    Ok(Transformed::yes(Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), ..query })))
}
