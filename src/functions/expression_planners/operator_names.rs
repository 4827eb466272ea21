//! Names of custom operators with which `sql::statement` replaces predicates and clauses, and of
//! the functions that operators on lists call.

use datafusion::logical_expr::sqlparser::ast::BinaryOperator;

use crate::kernels::elementwise::BinaryOp;

pub(super) fn is_distinction(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::Custom(word) if [DISTINCT, NOT_DISTINCT].contains(&word.as_str()))
}

/// Predicates, with or without `NOT`, for which the parser has no binary operators.
/// `sql::statement` replaces these predicates with custom operators of the same names; the right
/// side of `IN` becomes a call of `make_array`.
pub(crate) const PREDICATES: [&str; 3] = ["LIKE", "ILIKE", "IN"];

/// Custom operator with which `sql::statement` replaces the predicate `IS DISTINCT FROM`;
/// [`NOT_DISTINCT`] replaces `IS NOT DISTINCT FROM`. DataFusion does not pass these predicates to
/// expression planners, but it passes custom operators to them.
pub(crate) const DISTINCT: &str = "IS DISTINCT FROM";

pub(crate) const NOT_DISTINCT: &str = "IS NOT DISTINCT FROM";

/// Custom operator in `call ON LISTS NULL`. If an argument of the scalar function on the left side
/// is a list, the planner applies the function to the values of the list. The right side is
/// ignored.
pub(crate) const ON_LISTS: &str = "ON LISTS";

/// Custom operator that replaces a unary minus, so that the planner can cast the operand to a type
/// with a sign. The left side is the operand, and the right side is ignored.
pub(crate) const SIGNED: &str = "SIGNED";

/// Custom operator in `call FILTER mask`, with which `sql::statement` replaces `call FILTER (WHERE
/// mask)` if `call` calls a scalar function, as in `ragged_mean(x)`.
pub(crate) const FILTER: &str = "FILTER";

pub(super) fn list_operation(op: &BinaryOperator) -> Option<(BinaryOp, &'static str)> {
    Some(match op {
        BinaryOperator::Plus => (BinaryOp::Add, "ragged_add"),
        BinaryOperator::Minus => (BinaryOp::Sub, "ragged_sub"),
        BinaryOperator::Multiply => (BinaryOp::Mul, "ragged_mul"),
        BinaryOperator::Divide => (BinaryOp::Div, "ragged_div"),
        BinaryOperator::Modulo => (BinaryOp::Rem, "ragged_mod"),
        BinaryOperator::Eq => (BinaryOp::Eq, "ragged_eq"),
        BinaryOperator::NotEq => (BinaryOp::NotEq, "ragged_ne"),
        BinaryOperator::Lt => (BinaryOp::Lt, "ragged_lt"),
        BinaryOperator::LtEq => (BinaryOp::LtEq, "ragged_le"),
        BinaryOperator::Gt => (BinaryOp::Gt, "ragged_gt"),
        BinaryOperator::GtEq => (BinaryOp::GtEq, "ragged_ge"),
        BinaryOperator::And => (BinaryOp::And, "ragged_and"),
        BinaryOperator::Or => (BinaryOp::Or, "ragged_or"),
        _ => return None,
    })
}
