//! Finds the operands that an expression compares with each other.

use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Case, Expr, Operator};

use crate::functions::{StockFact, has_fact};

pub(in crate::sql) fn is_comparison_operator(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Whether a function searches a list for an element or for the elements of another list.
pub(in crate::sql) fn searches_list(function: &str) -> bool {
    has_fact(function, StockFact::FindsElement) || has_fact(function, StockFact::FindsElements)
}

/// Returns the operands that `expr` compares with each other; none if `expr` is not a comparison.
/// Searches in lists, aggregates and window functions do not count as comparisons.
pub(in crate::sql) fn list_compared_operands(expr: &mut Expr) -> Vec<&mut Expr> {
    match expr {
        Expr::BinaryExpr(binary) if is_comparison_operator(binary.op) => {
            vec![&mut *binary.left, &mut *binary.right]
        }
        Expr::Between(between) => {
            vec![&mut *between.expr, &mut *between.low, &mut *between.high]
        }
        Expr::InList(InList { expr, list, .. }) => {
            std::iter::once(&mut **expr).chain(list).collect()
        }
        Expr::Case(case) => list_case_operands(case),
        Expr::ScalarFunction(call) if has_fact(call.name(), StockFact::ComparesArguments) => {
            call.args.iter_mut().collect()
        }
        _ => Vec::new(),
    }
}

/// Returns `x`, `a` and `b` of `CASE x WHEN a THEN .. WHEN b THEN .. END`; none for a CASE without
/// `x`.
pub(in crate::sql) fn list_case_operands(case: &mut Case) -> Vec<&mut Expr> {
    let Some(operand) = &mut case.expr else { return Vec::new() };
    let whens = case.when_then_expr.iter_mut().map(|(when, _)| &mut **when);
    std::iter::once(&mut **operand).chain(whens).collect()
}
