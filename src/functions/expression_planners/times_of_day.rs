//! Casts times of day (`TIME`) in different units to the same unit.

use std::cmp::Ordering;

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::sqlparser::ast::BinaryOperator;
use datafusion::logical_expr::{Expr, ExprSchemable};

use crate::array::{leaf_type, list_depth};
use crate::functions::common_unit::{find_clock_unit, find_finest_clock};
use crate::functions::expression_planners::constant_folding::find_exact_constant;
use crate::functions::expression_planners::operator_names::is_distinction;
use crate::functions::lists::NestedListType;

/// Casts two times of day (`TIME`) in different units to the same unit before they are compared.
/// This is the finer unit, unless the operand in the finer unit is a constant that the coarser unit
/// represents exactly. DataFusion has no common type for the two types, and fails before analyzer
/// rules run.
pub(super) fn unify_times_of_day(expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    if !matches!(expr.op, Eq | NotEq | Lt | LtEq | Gt | GtEq) && !is_distinction(&expr.op) {
        return expr;
    }
    let Ok(right) = expr.right.get_type(schema) else { return expr };
    if list_depth(&right) > 0 {
        let is_alike =
            expr.left.get_type(schema).is_ok_and(|t| list_depth(&t) == list_depth(&right));
        let pair = if is_alike { unify_elements(&[&expr.left, &expr.right], schema) } else { None };
        return match pair.and_then(|pair| <[Expr; 2]>::try_from(pair).ok()) {
            Some([left, right]) => RawBinaryExpr { left, right, ..expr },
            None => expr,
        };
    }
    let Some(of_right) = find_clock_unit(&right) else { return expr };
    let Ok(left) = expr.left.get_type(schema) else { return expr };
    let Some(of_left) = find_clock_unit(&left) else { return expr };
    let cast = |e: Expr, to: DataType| Expr::Cast(Cast::new(Box::new(e), to));
    match of_left.cmp(&of_right) {
        Ordering::Less => match find_exact_constant(&expr.right, &left) {
            Some(right) => RawBinaryExpr { right, ..expr },
            None => RawBinaryExpr { left: cast(expr.left, right), ..expr },
        },
        Ordering::Greater => match find_exact_constant(&expr.left, &right) {
            Some(left) => RawBinaryExpr { left, ..expr },
            None => RawBinaryExpr { right: cast(expr.right, left), ..expr },
        },
        Ordering::Equal => expr,
    }
}

/// Casts times of day (`TIME`) of several units to the finest unit. DataFusion has no common type
/// for them. Returns `None` if there is only one unit, or if a value is not a time of day.
pub(super) fn unify_clocks(values: &[Expr], schema: &DFSchema) -> Option<Vec<Expr>> {
    let first = values.first()?.get_type(schema).ok()?;
    if !first.is_null() && find_clock_unit(&first).is_none() {
        return None;
    }
    let types = values.iter().map(|e| e.get_type(schema).ok()).collect::<Option<Vec<_>>>()?;
    let finest = find_finest_clock(&types)?;
    let is_kept = |t: &DataType| t.is_null() || *t == finest;
    if types.iter().all(is_kept) {
        return None;
    }
    let cast = |(e, t): (&Expr, &DataType)| match is_kept(t) {
        true => e.clone(),
        false => Expr::Cast(Cast::new(Box::new(e.clone()), finest.clone())),
    };
    Some(values.iter().zip(&types).map(cast).collect())
}

/// Casts the times of day in lists and values to the finest of their units. Other values, such as
/// positions, stay unchanged. Returns `None` if there is at most one unit.
pub(super) fn unify_elements(values: &[&Expr], schema: &DFSchema) -> Option<Vec<Expr>> {
    let types = values.iter().map(|e| e.get_type(schema).ok()).collect::<Option<Vec<_>>>()?;
    let clocks = types.iter().map(leaf_type).filter(|t| find_clock_unit(t).is_some());
    let finest = clocks.max_by_key(|t| find_clock_unit(t))?.clone();
    let is_coarser =
        |t: &DataType| find_clock_unit(leaf_type(t)).is_some() && *leaf_type(t) != finest;
    if !types.iter().any(is_coarser) {
        return None;
    }
    let cast = |(e, t): (&&Expr, &DataType)| match is_coarser(t) {
        true => {
            let to = NestedListType::from_type(t).replace_leaf(finest.clone());
            Expr::Cast(Cast::new(Box::new((*e).clone()), to))
        }
        false => (*e).clone(),
    };
    Some(values.iter().zip(&types).map(cast).collect())
}
