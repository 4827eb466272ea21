//! Names of custom operators with which `sql::statement` replaces predicates and clauses, and of the
//! functions that operators on lists call.

use datafusion::logical_expr::sqlparser::ast::BinaryOperator;

use crate::kernels::elementwise::Op;

pub(super) fn is_distinction(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::Custom(word) if [DISTINCT, NOT_DISTINCT].contains(&word.as_str()))
}

/// Predicates, with or without `NOT`, for which the parser has no binary operators.
/// `sql::statement` replaces these predicates with custom operators of the same names; the right
/// side of `IN` becomes a call of `make_array`.
pub(crate) const PREDICATES: [&str; 3] = ["LIKE", "ILIKE", "IN"];

/// Custom operators that replace the predicates of the same names, because DataFusion's planner has
/// no hook for these predicates.
pub(crate) const DISTINCT: &str = "IS DISTINCT FROM";

pub(crate) const NOT_DISTINCT: &str = "IS NOT DISTINCT FROM";

/// Custom operator of the planner in `call ON LISTS NULL`: applies the call to the values of its
/// lists. The right side is ignored.
pub(crate) const ON_LISTS: &str = "ON LISTS";

/// Custom operator that replaces a unary minus, so that the planner can cast the operand to a type
/// with a sign. The left side is the operand, and the right side is ignored.
pub(crate) const SIGNED: &str = "SIGNED";

/// Custom operator in `call FILTER mask`, for `ragged_mean(x) FILTER (WHERE mask)`.
pub(crate) const FILTER: &str = "FILTER";

pub(super) fn list_operation(op: &BinaryOperator) -> Option<(Op, &'static str)> {
    Some(match op {
        BinaryOperator::Plus => (Op::Add, "ragged_add"),
        BinaryOperator::Minus => (Op::Sub, "ragged_sub"),
        BinaryOperator::Multiply => (Op::Mul, "ragged_mul"),
        BinaryOperator::Divide => (Op::Div, "ragged_div"),
        BinaryOperator::Modulo => (Op::Rem, "ragged_mod"),
        BinaryOperator::Eq => (Op::Eq, "ragged_eq"),
        BinaryOperator::NotEq => (Op::NotEq, "ragged_ne"),
        BinaryOperator::Lt => (Op::Lt, "ragged_lt"),
        BinaryOperator::LtEq => (Op::LtEq, "ragged_le"),
        BinaryOperator::Gt => (Op::Gt, "ragged_gt"),
        BinaryOperator::GtEq => (Op::GtEq, "ragged_ge"),
        BinaryOperator::And => (Op::And, "ragged_and"),
        BinaryOperator::Or => (Op::Or, "ragged_or"),
        _ => return None,
    })
}
