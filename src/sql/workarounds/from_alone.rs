//! Supports `FROM t` without SELECT in statements of DataFusion's `ctx.sql`.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, col};

/// Analyzer rule for statements of `ctx.sql`: makes `FROM t` select all columns. The planner
/// converts `FROM t` to a projection without expressions, and no other statement of this dialect
/// becomes such a projection.
pub(in crate::sql) fn select_all_columns(plan: LogicalPlan) -> Result<LogicalPlan> {
    let alone = |plan: &LogicalPlan| {
        matches!(plan, LogicalPlan::Projection(p)
            if p.expr.is_empty() && !p.input.schema().fields().is_empty())
    };
    if !plan.exists(|node| Ok(alone(node)))? {
        return Ok(plan);
    }
    let plan = plan.transform_up(|node| match node {
        LogicalPlan::Projection(projection)
            if projection.expr.is_empty() && !projection.input.schema().fields().is_empty() =>
        {
            let all: Vec<Expr> = projection.input.schema().columns().into_iter().map(col).collect();
            LogicalPlanBuilder::from(projection.input).project(all)?.build().map(Transformed::yes)
        }
        other => other.recompute_schema().map(Transformed::yes),
    })?;
    Ok(plan.data)
}
