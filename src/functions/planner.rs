//! Planners in front of DataFusion's own: operators on lists, lists of literals.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::functions_nested::make_array::make_array;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::sqlparser::ast::BinaryOperator;
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use crate::array::{leaf_type, list_depth};
use crate::kernels::elementwise::{Op, OperandType, Types};

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
        match planned(&expr, schema) {
            Some(call) => Ok(PlannerResult::Planned(call)),
            None => Ok(PlannerResult::Original(expr)),
        }
    }
}

/// The call that an operator on lists stands for; `None` for what is left to others.
fn planned(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let (op, name) = operation(&expr.op)?;
    // What has no type here (a parameter, a column that is not there) is left to those who say so.
    let left = expr.left.get_type(schema).ok()?;
    let right = expr.right.get_type(schema).ok()?;
    let lists = (list_depth(&left) > 0, list_depth(&right) > 0);
    let (left, right) = match lists {
        (false, false) => return None,
        // Two lists compare as wholes, and NULL compares with everything as in SQL.
        (true, true) if op.is_comparison() => return None,
        (true, true) => (expr.left.clone(), expr.right.clone()),
        _ if op.is_comparison() && (left.is_null() || right.is_null()) => return None,
        (true, false) => (expr.left.clone(), narrowed(op, &expr.right, &left, false, schema)),
        (false, true) => (narrowed(op, &expr.left, &right, true, schema), expr.right.clone()),
    };
    Some(super::scalar(name)?.call(vec![left, right]))
}

fn operation(op: &BinaryOperator) -> Option<(Op, &'static str)> {
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

/// A constant in the type that it takes beside the values of a list: theirs, when it fits. All else
/// as it is.
fn narrowed(op: Op, scalar: &Expr, list: &DataType, first: bool, schema: &DFSchema) -> Expr {
    let narrow = || {
        let constant = is_constant(scalar).then(|| folded(scalar.clone(), schema)).flatten()?;
        let Expr::Literal(value, metadata) = constant else { return None };
        let one = value.to_array_of_size(1).ok()?;
        let (leaf, literal) = (OperandType::Leaves(leaf_type(list)), OperandType::Literal(&one));
        let (left, right) = if first { (literal, leaf) } else { (leaf, literal) };
        let types = Types::new(op, left, right).ok()?;
        let to = if first { types.left() } else { types.right() };
        Some(Expr::Literal(value.cast_to(to).ok()?, metadata))
    };
    narrow().unwrap_or_else(|| scalar.clone())
}
