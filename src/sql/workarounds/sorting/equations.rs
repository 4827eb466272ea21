use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal, NotExpr};
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_expr::{PhysicalExpr, conjunction};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};

/// Physical optimizer rule, before all of DataFusion's: rewrites `abs(v) = v` to
/// `NOT (abs(v) <> v)`.
///
/// DataFusion 55 assumes that both sides are interchangeable and replaces `v` with `abs(v)` in the
/// sort keys above such a condition, even within `abs(v)`. The sort keys then lack `v`, so windows
/// partitioned by `v` fail. Equations between columns and literals are left unchanged. Obsolete
/// once the test `stock_windows_over_equations_still_fail` fails.
pub(in crate::sql) fn rewrite_equations(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let Some(filter) = node.downcast_ref::<FilterExec>() else {
            return Ok(Transformed::no(node));
        };
        let mut changed = false;
        let conditions = split_conjunction(filter.predicate()).into_iter().map(|condition| {
            let negated = negate_inequality(condition);
            changed |= negated.is_some();
            negated.unwrap_or_else(|| Arc::clone(condition))
        });
        let predicate = conjunction(conditions.collect::<Vec<_>>());
        if !changed {
            return Ok(Transformed::no(node));
        }
        let filter = FilterExecBuilder::from(filter).with_predicate(predicate).build()?;
        Ok(Transformed::yes(Arc::new(filter) as Arc<dyn ExecutionPlan>))
    })?;
    Ok(plan.data)
}

/// Returns `NOT (a <> b)` for `a = b`. Returns `None` if each operand is a column or a literal, and
/// for other conditions.
fn negate_inequality(condition: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
    let equation = condition.downcast_ref::<BinaryExpr>()?;
    let is_plain = |e: &Arc<dyn PhysicalExpr>| {
        e.downcast_ref::<Column>().is_some() || e.downcast_ref::<Literal>().is_some()
    };
    let (left, right) = (equation.left(), equation.right());
    if *equation.op() != Operator::Eq || (is_plain(left) && is_plain(right)) {
        return None;
    }
    let differs = BinaryExpr::new(Arc::clone(left), Operator::NotEq, Arc::clone(right));
    Some(Arc::new(NotExpr::new(Arc::new(differs))))
}
