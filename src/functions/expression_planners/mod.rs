//! Expression planners that run before those of DataFusion: operators on lists, and lists of
//! literals.

mod constant_folding;
mod date_arithmetic;
mod list_calls;
mod list_views;
mod literal_lists;
mod operator_names;
mod span_operations;
mod times_of_day;
mod word_operators;

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::functions::unicode::substr;
use datafusion::functions_nested::concat::{array_append_udf, array_prepend_udf};
use datafusion::functions_nested::extract::array_element;
use datafusion::functions_nested::map_extract::map_extract;
use datafusion::logical_expr::expr::{BinaryExpr, Cast};
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr,
};
use datafusion::logical_expr::sqlparser::ast::BinaryOperator;
use datafusion::logical_expr::{Expr, ExprSchemable, GetFieldAccess, Operator, lit};

use super::chain;
use super::clipped_element::build_clipped_element;
use super::clipped_slice::build_clipped_slice;
use super::text_positions::plan_characters;
use super::unsigned::{make_signed_operand, plan_quotient, takes_unsigned};
use crate::array::list_depth;
use crate::functions::expression_planners::constant_folding::narrow_constant;
use crate::functions::expression_planners::date_arithmetic::{
    cast_date_to_timestamp, cast_dates_for_hours, cast_dates_for_times, plan_days,
};
use crate::functions::expression_planners::list_calls::replace_list_call;
use crate::functions::expression_planners::list_views::needs_list_cast;
use crate::functions::expression_planners::operator_names::list_operation;
use crate::functions::expression_planners::span_operations::plan_span_operation;
use crate::functions::expression_planners::times_of_day::unify_times_of_day;
use crate::functions::expression_planners::word_operators::{
    WordPredicate, negate_mask, plan_filter,
};
use crate::functions::mixed_dates::cast_leaf_dates;

pub(crate) use self::constant_folding::{fold_constant, is_constant, is_row_based};
pub(crate) use self::date_arithmetic::refine_unit;
pub(crate) use self::literal_lists::LiteralLists;
pub(crate) use self::operator_names::{
    DISTINCT, FILTER, NOT_DISTINCT, ON_LISTS, PREDICATES, SIGNED,
};

/// Plans a custom operator with which `sql::statement` has replaced a predicate or a clause.
/// Returns any other operation unchanged.
fn plan_custom_operator(
    expr: RawBinaryExpr,
    schema: &DFSchema,
) -> Result<PlannerResult<RawBinaryExpr>> {
    let BinaryOperator::Custom(word) = &expr.op else { return Ok(PlannerResult::Original(expr)) };
    let make_distinction = |op: Operator, left: Expr, right: Expr| {
        Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
    };
    let planned = match word.as_str() {
        FILTER => plan_filter(expr.left, expr.right, schema)?,
        SIGNED => make_signed_operand(expr.left, schema),
        ON_LISTS => replace_list_call(expr.left, schema),
        DISTINCT => make_distinction(Operator::IsDistinctFrom, expr.left, expr.right),
        NOT_DISTINCT => make_distinction(Operator::IsNotDistinctFrom, expr.left, expr.right),
        word => match WordPredicate::from_word(word) {
            Some(predicate) => predicate.plan(expr, schema),
            None => return Ok(PlannerResult::Original(expr)),
        },
    };
    Ok(PlannerResult::Planned(planned))
}

#[derive(Debug)]
pub(crate) struct ListOperators;

impl ExprPlanner for ListOperators {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let expr = match expr.op {
            // DuckDB's `//` is integer division for integers and `/` for floats, like DataFusion's
            // `/`.
            BinaryOperator::DuckIntegerDivide => {
                RawBinaryExpr { op: BinaryOperator::Divide, ..expr }
            }
            _ => expr,
        };
        if chain::is_too_deep(&expr.left) {
            return plan_err!(
                "an expression nests too many operators such as {} (the maximum is {}); split it into several expressions with WITH",
                expr.op,
                chain::MAX_DEPTH
            );
        }
        if chain::is_list_chain(&expr.left)
            && list_operation(&expr.op).is_some_and(|(op, _)| op.is_arithmetic())
            && let Some(call) = plan_operator(&expr, schema)
        {
            return Ok(PlannerResult::Planned(call));
        }
        let expr = shorten_left_side(type_empty_lists(expr, schema), schema);
        let expr = unify_times_of_day(cast_date_to_timestamp(expr, schema), schema);
        let expr = cast_literal_to_boolean(expr, schema);
        let expr = cast_concatenated_dates(expr, schema);
        let call = plan_operator(&expr, schema).or_else(|| plan_test(&expr, schema));
        let call = call.or_else(|| plan_quotient(&expr, schema));
        if let Some(call) = call.or_else(|| plan_span_operation(&expr, schema)) {
            return Ok(PlannerResult::Planned(call));
        }
        if is_concatenation(&expr, schema) {
            let call = super::list_fields::plan_concatenation(expr.left, expr.right);
            return Ok(PlannerResult::Planned(call));
        }
        if let Some(call) = plan_addition(&expr, schema) {
            return Ok(PlannerResult::Planned(call));
        }
        plan_custom_operator(expr, schema)
    }

    fn plan_substring(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        // Uses the `substr` that accepts unsigned integers. DataFusion plans `substring(x FROM 2)`
        // with its own `substr`, even if the session registers another.
        Ok(PlannerResult::Planned(takes_unsigned(substr()).call(args)))
    }

    fn plan_field_access(
        &self,
        access: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let RawFieldAccessExpr { field_access, mut expr } = access;
        let mut data_type = expr.get_type(schema);
        if let Ok(DataType::Dictionary(_, values)) = &data_type
            && values.is_string()
        {
            let values = values.as_ref().clone();
            expr = Expr::Cast(Cast::new(Box::new(expr), values.clone()));
            data_type = Ok(values);
        }
        if let Ok(DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) = data_type {
            if let Some(characters) = plan_characters(&expr, &field_access) {
                return Ok(PlannerResult::Planned(characters));
            }
            if !matches!(field_access, GetFieldAccess::NamedStructField { .. }) {
                return plan_err!(
                    "characters of a string can be selected only at literal positions, such as s[2], s[-1], s[2:4], s[2:] and s[-3:]; for other positions, write substr(s, i, n), in which i is the first position and n the number of characters"
                );
            }
        }
        let field_access = match (field_access, &data_type) {
            // For a map, DataFusion plans `get_field`, which fails unless the key is a constant,
            // and panics for a constant list or struct.
            (GetFieldAccess::ListIndex { key }, Ok(DataType::Map(..)))
                if is_row_based(&key) || key.get_type(schema).is_ok_and(|t| t.is_nested()) =>
            {
                let values = map_extract(expr, *key);
                return Ok(PlannerResult::Planned(array_element(values, lit(1_i64))));
            }
            (access, _) => access,
        };
        let is_list = data_type.is_ok_and(|t| list_depth(&t) > 0);
        if let GetFieldAccess::ListIndex { key } = &field_access
            && let Some(row) = find_nth_row(&expr, key, schema)
        {
            let field_access = GetFieldAccess::ListIndex { key: Box::new(row) };
            return Ok(PlannerResult::Original(RawFieldAccessExpr { field_access, expr }));
        }
        let field_access = match field_access {
            GetFieldAccess::ListIndex { key } if is_list => {
                let element = takes_unsigned(Arc::new(build_clipped_element()));
                return Ok(PlannerResult::Planned(element.call(vec![expr, *key])));
            }
            GetFieldAccess::ListRange { start, stop, stride } => {
                let slice = takes_unsigned(Arc::new(build_clipped_slice()));
                let args = vec![expr, *start, *stop, *stride];
                return Ok(PlannerResult::Planned(slice.call(args)));
            }
            other => other,
        };
        Ok(PlannerResult::Original(RawFieldAccessExpr { field_access, expr }))
    }
}

/// If `list` is a call of `array_agg`, and DataFusion can plan `list[index]` as `nth_value`,
/// returns the index as an Int64. The index must be a constant integer other than 0 that fits an
/// Int64: for any other integer, the element of the list is NULL.
fn find_nth_row(list: &Expr, index: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::AggregateFunction(call) = list else { return None };
    if call.func.name() != "array_agg" || call.params.distinct {
        return None;
    }
    let Expr::Literal(value, _) = fold_constant(index.clone(), schema)? else { return None };
    let is_long = value.data_type() == DataType::Int64;
    if !value.data_type().is_integer() && !matches!(value.data_type(), DataType::Decimal128(_, 0)) {
        return None;
    }
    match value.cast_to(&DataType::Int64).ok()? {
        ScalarValue::Int64(Some(row)) if row != 0 => {
            Some(if is_long { index.clone() } else { lit(row) })
        }
        _ => None,
    }
}

/// Casts a string literal that is compared with a boolean, such as 'true', to a boolean, as
/// PostgreSQL and DuckDB do.
fn cast_literal_to_boolean(expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    if !matches!(expr.op, Eq | NotEq | Lt | LtEq | Gt | GtEq) {
        return expr;
    }
    let is_text = |e: &Expr| matches!(e, Expr::Literal(v, _) if v.try_as_str().flatten().is_some());
    let is_boolean = |e: &Expr| e.get_type(schema).is_ok_and(|t| t == DataType::Boolean);
    let cast = |e: Expr| Expr::Cast(Cast::new(Box::new(e), DataType::Boolean));
    let RawBinaryExpr { op, left, right } = expr;
    if is_text(&right) && is_boolean(&left) {
        return RawBinaryExpr { op, left, right: cast(right) };
    }
    if is_text(&left) && is_boolean(&right) {
        return RawBinaryExpr { op, left: cast(left), right };
    }
    RawBinaryExpr { op, left, right }
}

/// Casts dates in `x || y` to timestamps as in the other operand, if one of the operands is a list.
/// DataFusion refuses to plan the concatenation of a list of dates and a timestamp with a zone.
fn cast_concatenated_dates(expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    let is_list = |e: &Expr| e.get_type(schema).is_ok_and(|t| list_depth(&t) > 0);
    if expr.op != BinaryOperator::StringConcat || !(is_list(&expr.left) || is_list(&expr.right)) {
        return expr;
    }
    let operands = cast_leaf_dates(&[expr.left.clone(), expr.right.clone()], schema);
    match operands.and_then(|operands| <[Expr; 2]>::try_from(operands).ok()) {
        Some([left, right]) => RawBinaryExpr { left, right, ..expr },
        None => expr,
    }
}

/// Whether the planners include [`ListOperators`], which plans LIKE, ILIKE and IN on lists.
pub(crate) fn plans_predicates(planners: &[Arc<dyn ExprPlanner>]) -> bool {
    // A planner has no name, so it is identified by its debug text.
    let ours = format!("{ListOperators:?}");
    planners.iter().any(|p| format!("{p:?}") == ours)
}

/// Whether an expression is `x || y` for lists of the same depth. The caller replaces DataFusion's
/// `array_concat`, whose results do not have the planned type if the element fields of the lists
/// differ in name.
fn is_concatenation(expr: &RawBinaryExpr, schema: &DFSchema) -> bool {
    if expr.op != BinaryOperator::StringConcat {
        return false;
    }
    match (expr.left.get_type(schema), expr.right.get_type(schema)) {
        (Ok(left), Ok(right)) => list_depth(&left) > 0 && list_depth(&left) == list_depth(&right),
        _ => false,
    }
}

/// Plans `list || value` and `value || list` if DataFusion's functions refuse the types and their
/// replacements in the session do not, as for a list of Int64 and a UInt64.
fn plan_addition(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    if expr.op != BinaryOperator::StringConcat {
        return None;
    }
    let depth = |e: &Expr| e.get_type(schema).ok().map(|t| list_depth(&t));
    let function = match depth(&expr.left)?.cmp(&depth(&expr.right)?) {
        Ordering::Greater => array_append_udf(),
        Ordering::Less => array_prepend_udf(),
        Ordering::Equal => return None,
    };
    let args = vec![expr.left.clone(), expr.right.clone()];
    if function.call(args.clone()).get_type(schema).is_ok() {
        return None;
    }
    let call = takes_unsigned(function).call(args);
    call.get_type(schema).is_ok().then_some(call)
}

/// Returns the call of a function that tests each string of a list, for an operator such as `~`.
/// Returns `None` for other operators, and if the left side is not a list or the right side is a
/// list.
fn plan_test(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    use BinaryOperator::{
        PGILikeMatch, PGLikeMatch, PGNotILikeMatch, PGNotLikeMatch, PGRegexIMatch, PGRegexMatch,
        PGRegexNotIMatch, PGRegexNotMatch, PGStartsWith,
    };
    let (name, flags, not) = match expr.op {
        PGRegexMatch => ("ragged_matches", None, false),
        PGRegexNotMatch => ("ragged_matches", None, true),
        PGRegexIMatch => ("ragged_matches", Some("i"), false),
        PGRegexNotIMatch => ("ragged_matches", Some("i"), true),
        PGLikeMatch => ("ragged_like", None, false),
        PGNotLikeMatch => ("ragged_like", None, true),
        PGILikeMatch => ("ragged_ilike", None, false),
        PGNotILikeMatch => ("ragged_ilike", None, true),
        PGStartsWith => ("ragged_starts_with", None, false),
        _ => return None,
    };
    let depth = |e: &Expr| e.get_type(schema).ok().map(|t| list_depth(&t));
    if depth(&expr.left)? == 0 || depth(&expr.right)? > 0 {
        return None;
    }
    let mut args = vec![expr.left.clone(), expr.right.clone()];
    args.extend(flags.map(lit));
    let mask = super::find_scalar(name)?.call(args);
    Some(if not { negate_mask(mask) } else { mask })
}

/// Gives `[]` in a comparison the type of the other operand, so that both have the same depth.
fn type_empty_lists(mut expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    let is_empty = |e: &Expr| match e {
        Expr::ScalarFunction(call) => call.name() == "make_array" && call.args.is_empty(),
        _ => false,
    };
    let like = |other: &Expr| match other.get_type(schema) {
        Ok(t @ (DataType::List(_) | DataType::LargeList(_))) => {
            ScalarValue::new_default(&t).ok().map(lit)
        }
        _ => None,
    };
    if list_operation(&expr.op).is_some_and(|(op, _)| op.is_comparison()) {
        let (left, right) = match (is_empty(&expr.left), is_empty(&expr.right)) {
            (true, false) => (like(&expr.right), None),
            (false, true) => (None, like(&expr.left)),
            _ => (None, None),
        };
        expr.left = left.unwrap_or(expr.left);
        expr.right = right.unwrap_or(expr.right);
    }
    expr
}

/// Minimum number of nested operators, as in `((a + b) + c) + d`, for which the planner casts their
/// result to the type that it already has. Outer operators then read the type of this cast instead
/// of computing the types of all inner operators.
const MIN_CAST_OPERATORS: usize = 16;

/// Makes the type of a long expression such as `a + b + c + ..` cheap to compute: the type of each
/// operator depends on its whole left side. A long left side with numbers becomes one call. Any
/// other long left side gets a cast to the type that it already has. The simplifier removes this
/// cast, and column names do not show it.
fn shorten_left_side(mut expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    if chain::is_long(&expr.left) {
        let left = std::mem::replace(&mut expr.left, lit(ScalarValue::Null));
        match chain::gather_operands(left, schema) {
            Ok(call) => {
                expr.left = call;
                return expr;
            }
            Err(left) => expr.left = *left,
        }
    } else if matches!(expr.left, Expr::BinaryExpr(_)) {
        return expr;
    }
    let arithmetic =
        |op: &BinaryOperator| list_operation(op).is_some_and(|(op, _)| op.is_arithmetic());
    if arithmetic(&expr.op)
        && is_chain(&expr.left, MIN_CAST_OPERATORS)
        && let Ok(known) = expr.left.get_type(schema)
    {
        let chain = std::mem::replace(&mut expr.left, lit(ScalarValue::Null));
        expr.left = Expr::Cast(Cast::new(Box::new(chain), known));
    }
    expr
}

/// Whether the left side of an expression nests `length` operators without a cast between them.
fn is_chain(expr: &Expr, length: usize) -> bool {
    let mut next = expr;
    for _ in 0..length {
        next = match next {
            Expr::BinaryExpr(binary) => &binary.left,
            Expr::ScalarFunction(call) if call.args.len() == 2 && super::is_ours(&call.func) => {
                &call.args[0]
            }
            _ => return false,
        };
    }
    true
}

fn plan_operator(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let (op, name) = list_operation(&expr.op)?;
    // Operators that return lists are planned as calls, so a `BinaryExpr` is never a list. Its type
    // is not computed, because that would take quadratic time for a long chain of operators.
    let is_single = |e: &Expr| matches!(e, Expr::BinaryExpr(_));
    let is_list = |e: &Expr| e.get_type(schema).is_ok_and(|t| list_depth(&t) > 0);
    if op.is_arithmetic() && chain::is_list_chain(&expr.left) && is_list(&expr.right) {
        let call = super::find_scalar(name)?.call(vec![expr.left.clone(), expr.right.clone()]);
        return Some(chain::join_lists(call));
    }
    if is_single(&expr.left) && (is_single(&expr.right) || !is_list(&expr.right)) {
        return None;
    }
    // DataFusion reports the error for an expression without a type (a parameter, an unknown
    // column).
    let left = expr.left.get_type(schema).ok()?;
    let right = expr.right.get_type(schema).ok()?;
    let lists = (list_depth(&left) > 0, list_depth(&right) > 0);
    let (left, right) = match lists {
        // Plans a call on a list view: the called function fails with an error that says which cast
        // to write.
        (false, false) if needs_list_cast(op, &left, &right) => {
            (expr.left.clone(), expr.right.clone())
        }
        (false, false) => return None,
        // Two lists of the same depth are compared as a whole, by DataFusion.
        (true, true) if op.is_comparison() && list_depth(&left) == list_depth(&right) => {
            return None;
        }
        _ if op.is_arithmetic()
            && let Some(days) = plan_days(op, expr, &left, &right, schema) =>
        {
            return Some(days);
        }
        _ if op.is_arithmetic()
            && let Some(pair) = cast_dates_for_hours(expr, &left, &right, schema)
                .or_else(|| cast_dates_for_times(expr, &left, &right)) =>
        {
            pair
        }
        (true, true) => (expr.left.clone(), expr.right.clone()),
        (true, false) => {
            (expr.left.clone(), narrow_constant(op, &expr.right, &left, false, schema))
        }
        (false, true) => {
            (narrow_constant(op, &expr.left, &right, true, schema), expr.right.clone())
        }
    };
    Some(chain::join_lists(super::find_scalar(name)?.call(vec![left, right])))
}
