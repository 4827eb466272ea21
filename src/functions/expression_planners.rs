//! Expression planners that run before those of DataFusion: operators on lists, and lists of literals.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::functions::unicode::substr;
use datafusion::functions_nested::extract::array_element;
use datafusion::functions_nested::make_array::make_array;
use datafusion::functions_nested::map_extract::map_extract;
use datafusion::logical_expr::expr::{BinaryExpr, Cast, InList, Like, ScalarFunction};
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr,
};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::sqlparser::ast::BinaryOperator;
use datafusion::logical_expr::{Expr, ExprSchemable, GetFieldAccess, Operator, lit};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use super::chain;
use super::list_counts::array_length;
use super::lists::NestedListType;
use super::over_lists::map_over_lists;
use super::span_product::{is_span_product, plan_span_operation};
use super::text_positions::plan_characters;
use super::unsigned::{plan_quotient, signed_index, signed_operand, takes_unsigned};
use crate::array::{leaf_type, list_depth};
use crate::kernels::elementwise::{Op, OperandType, Types};
use crate::kernels::times::cast_time;
use crate::kernels::zones::may_change;

/// Plans `[1, 2, 3]` as a literal instead of a call of `make_array` if all elements are literals.
#[derive(Debug)]
pub(crate) struct LiteralLists;

impl ExprPlanner for LiteralLists {
    fn plan_array_literal(
        &self,
        exprs: Vec<Expr>,
        schema: &DFSchema,
    ) -> Result<PlannerResult<Vec<Expr>>> {
        let exprs = cast_strings_to_times(exprs, schema);
        let exprs = unify_clocks(&exprs, schema).unwrap_or(exprs);
        Ok(match fold_list(&exprs, schema) {
            Some(list) => PlannerResult::Planned(list),
            None => PlannerResult::Original(exprs),
        })
    }
}

/// Casts string literals in a list of dates, times or intervals, such as `[DATE '2020-01-01', '2020-01-02']`, to the
/// type of the other elements.
fn cast_strings_to_times(mut exprs: Vec<Expr>, schema: &DFSchema) -> Vec<Expr> {
    let is_string =
        |e: &Expr| matches!(e, Expr::Literal(v, _) if v.try_as_str().flatten().is_some());
    if !exprs.iter().any(is_string) {
        return exprs;
    }
    let others = exprs.iter().filter(|e| !is_string(e)).map(|e| e.get_type(schema));
    let Ok(types) = others.collect::<Result<Vec<_>>>() else { return exprs };
    let mut types = types.into_iter().filter(|t| !t.is_null());
    let Some(to) = types.next() else { return exprs };
    let is_time = to.is_temporal() || matches!(to, DataType::Interval(_));
    if is_time && types.all(|t| t == to) {
        for e in exprs.iter_mut().filter(|e| is_string(e)) {
            *e = Expr::Cast(Cast::new(Box::new(std::mem::take(e)), to.clone()));
        }
    }
    exprs
}

pub(crate) fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(..) => true,
        // A comparison does not count as constant, because the optimizer must first canonicalize its floats.
        Expr::BinaryExpr(b) => {
            b.op.negate().is_none() && is_constant(&b.left) && is_constant(&b.right)
        }
        Expr::Negative(e) => is_constant(e),
        Expr::Cast(c) => is_constant(&c.expr),
        _ => false,
    }
}

/// Whether the value of an expression may depend on the row, on a group or on a subquery.
pub(crate) fn is_row_based(expr: &Expr) -> bool {
    let depends = |e: &Expr| {
        matches!(
            e,
            Expr::Column(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::LambdaVariable(_)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
        )
    };
    expr.exists(|e| Ok(depends(e))).unwrap_or(true)
}

/// Evaluates an expression without columns. Returns `None` if it cannot be evaluated at planning, or
/// if its value is not [known](is_known_value) before the analyzer rules have run.
pub(crate) fn fold_constant(expr: Expr, schema: &DFSchema) -> Option<Expr> {
    is_known_value(&expr, schema).then(|| evaluate_constant(expr, schema))?
}

/// Like [`fold_constant`], for a call of a function that no analyzer rule replaces.
pub(super) fn fold_call(call: ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let is_known = call.args.iter().all(|arg| is_known_value(arg, schema));
    is_known.then(|| evaluate_constant(Expr::ScalarFunction(call), schema))?
}

/// Returns a list of constants as a literal. Returns `None` for an empty list, for elements that are
/// not known at planning, and for elements of several types, which analyzer rules cast to one type.
fn fold_list(items: &[Expr], schema: &DFSchema) -> Option<Expr> {
    if items.is_empty() || !items.iter().all(|item| is_known_value(item, schema)) {
        return None;
    }
    let types = items.iter().map(|item| item.get_type(schema).ok()).collect::<Option<Vec<_>>>()?;
    let leaves: Vec<&DataType> = types.iter().map(leaf_type).filter(|t| !t.is_null()).collect();
    let is_alike = leaves.iter().all(|t| Some(t) == leaves.first())
        || leaves.iter().all(|t| is_plain_number(t))
        || leaves.iter().all(|t| t.is_string());
    is_alike.then(|| evaluate_constant(make_array(items.to_vec()), schema))?
}

fn evaluate_constant(expr: Expr, schema: &DFSchema) -> Option<Expr> {
    let simplifier = ExprSimplifier::new(SimplifyContext::default());
    let expr = simplifier.coerce(expr, schema).ok()?;
    match simplifier.simplify(expr).ok()? {
        literal @ Expr::Literal(..) => Some(literal),
        _ => None,
    }
}

/// Whether DataFusion alone gives a constant the value that it has in a query. The planner evaluates
/// constants before the analyzer rules run, so it evaluates only operations that no rule changes.
/// Every other constant stays an expression, and the optimizer evaluates it after these rules.
fn is_known_value(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Literal(..) => true,
        Expr::Negative(of) => is_known_value(of, schema),
        Expr::Cast(cast) if is_spelled_interval(cast) => true,
        Expr::Cast(cast) => {
            is_known_value(&cast.expr, schema)
                && cast
                    .expr
                    .get_type(schema)
                    .is_ok_and(|t| is_plain_cast(&t, cast.field.data_type()))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            is_known_value(left, schema)
                && is_known_value(right, schema)
                && is_plain_operation(left, *op, right, schema)
        }
        _ => false,
    }
}

/// Whether a cast reads an interval of numbers with whole names of units, such as `'40 days'`. An
/// analyzer rule completes other strings, such as `'5'` and `'1d'`.
fn is_spelled_interval(cast: &Cast) -> bool {
    const UNITS: [&str; 10] = [
        "year",
        "month",
        "week",
        "day",
        "hour",
        "minute",
        "second",
        "millisecond",
        "microsecond",
        "nanosecond",
    ];
    let Expr::Literal(ScalarValue::Utf8(Some(text)), _) = cast.expr.as_ref() else { return false };
    let words: Vec<&str> = text.split_whitespace().collect();
    let (parts, rest) = words.as_chunks::<2>();
    let is_part = |[number, unit]: &[&str; 2]| {
        let unit = unit.to_ascii_lowercase();
        number.parse::<f64>().is_ok() && UNITS.contains(&unit.strip_suffix('s').unwrap_or(&unit))
    };
    matches!(cast.field.data_type(), DataType::Interval(IntervalUnit::MonthDayNano))
        && !parts.is_empty()
        && rest.is_empty()
        && parts.iter().all(is_part)
}

/// Whether no analyzer rule changes a cast of a constant.
fn is_plain_cast(from: &DataType, to: &DataType) -> bool {
    use DataType::{Boolean, Date32, Date64, Int32, Timestamp};
    use TimeUnit::{Microsecond, Nanosecond};
    if list_depth(from) != list_depth(to) {
        return from.is_null();
    }
    let (from, to) = (leaf_type(from), leaf_type(to));
    match (from, to) {
        _ if from == to || from.is_null() => true,
        (text, Timestamp(Microsecond | Nanosecond, zone)) if text.is_string() => {
            !zone.as_deref().is_some_and(may_change)
        }
        (text, Boolean | Date32 | Date64) if text.is_string() => true,
        (text, to) if text.is_string() => {
            to.is_string() || is_plain_number(to) || to.is_decimal() || unit_of(to).is_some()
        }
        // A float is not cast to a decimal here, because a rule casts the digits of its text.
        (from, to) if from.is_integer() && (to.is_decimal() || to.is_string()) => true,
        (from, to) if is_plain_number(from) && is_plain_number(to) => true,
        (Date32, Int32) | (Int32, Date32) => true,
        (Date32, Timestamp(Microsecond, None)) | (Timestamp(_, None), Date32) => true,
        // A cast to a coarser unit rounds down, unlike Arrow's.
        (Timestamp(unit, zone), Timestamp(to, to_zone)) => zone == to_zone && to >= unit,
        (from, to) => unit_of(from).is_some() && unit_of(to) >= unit_of(from),
    }
}

/// Whether no analyzer rule changes an operation on constants.
fn is_plain_operation(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> bool {
    use DataType::{Date32, Interval, Timestamp};
    use IntervalUnit::MonthDayNano;
    use Operator::{
        BitwiseAnd, BitwiseOr, BitwiseShiftLeft, BitwiseShiftRight, Divide, Minus, Modulo,
        Multiply, Plus, StringConcat,
    };
    let (Ok(a), Ok(b)) = (left.get_type(schema), right.get_type(schema)) else { return false };
    // The sum of an unsigned and a signed integer is a decimal, whose digits a rule checks.
    let is_number = |t: &DataType| is_plain_number(t) && !t.is_unsigned_integer();
    match (op, &a, &b) {
        (StringConcat, a, b) => a.is_string() && b.is_string(),
        (Plus | Minus | Multiply | Divide | Modulo, a, b) if is_number(a) && is_number(b) => true,
        (BitwiseAnd | BitwiseOr | BitwiseShiftLeft | BitwiseShiftRight, a, b) => {
            a.is_signed_integer() && b.is_signed_integer()
        }
        (Plus | Minus, Interval(MonthDayNano), Interval(MonthDayNano)) => true,
        (Plus | Minus, time, Interval(MonthDayNano)) if is_fine_time(time) => true,
        (Plus, Interval(MonthDayNano), time) if is_fine_time(time) => true,
        (Minus, Timestamp(..), Timestamp(..)) => a == b,
        (Plus | Minus, Date32, Interval(MonthDayNano)) => !may_have_hours(right, &b, schema),
        (Plus, Interval(MonthDayNano), Date32) => !may_have_hours(left, &a, schema),
        _ => false,
    }
}

/// Whether values of a type are timestamps to which an interval is added as an instant: in
/// microseconds or nanoseconds, and without a zone whose clocks change.
fn is_fine_time(t: &DataType) -> bool {
    match t {
        DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, zone) => {
            !zone.as_deref().is_some_and(may_change)
        }
        _ => false,
    }
}

fn is_plain_number(t: &DataType) -> bool {
    t.is_integer() || t.is_floating()
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
            // DuckDB's `//` is integer division for integers and `/` for floats, like DataFusion's `/`.
            BinaryOperator::DuckIntegerDivide => {
                RawBinaryExpr { op: BinaryOperator::Divide, ..expr }
            }
            _ => expr,
        };
        if chain::is_too_deep(&expr.left) {
            return plan_err!(
                "an expression nests too many operators such as {} (the maximum is {}); split it into several expressions with WITH",
                expr.op,
                chain::DEEPEST
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
        let call = plan_operator(&expr, schema).or_else(|| plan_test(&expr, schema));
        let call = call.or_else(|| plan_quotient(&expr, schema));
        if let Some(call) = call.or_else(|| plan_span_operation(&expr, schema)) {
            return Ok(PlannerResult::Planned(call));
        }
        if is_concatenation(&expr, schema) {
            let lists = vec![expr.left, expr.right];
            return Ok(PlannerResult::Planned(super::list_fields::concat_lists(lists)));
        }
        match &expr.op {
            BinaryOperator::Custom(word) if word == FILTER => {
                plan_filter(expr.left, expr.right, schema).map(PlannerResult::Planned)
            }
            BinaryOperator::Custom(word) if word == SIGNED => {
                Ok(PlannerResult::Planned(signed_operand(expr.left, schema)))
            }
            BinaryOperator::Custom(word) if word == ON_LISTS => {
                Ok(PlannerResult::Planned(replace_list_call(expr.left, schema)))
            }
            BinaryOperator::Custom(_) if is_distinction(&expr.op) => {
                let RawBinaryExpr { op, left, right } = expr;
                let op = match op {
                    BinaryOperator::Custom(word) if word == DISTINCT => Operator::IsDistinctFrom,
                    _ => Operator::IsNotDistinctFrom,
                };
                let distinction = BinaryExpr::new(Box::new(left), op, Box::new(right));
                Ok(PlannerResult::Planned(Expr::BinaryExpr(distinction)))
            }
            BinaryOperator::Custom(word) => match WordPredicate::from_word(word) {
                Some(predicate) => Ok(PlannerResult::Planned(predicate.plan(expr, schema))),
                None => Ok(PlannerResult::Original(expr)),
            },
            _ => Ok(PlannerResult::Original(expr)),
        }
    }

    fn plan_substring(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        // DataFusion plans `substring(x FROM 2)` with its own `substr`, whatever is registered.
        Ok(PlannerResult::Planned(takes_unsigned(substr()).call(args)))
    }

    fn plan_field_access(
        &self,
        access: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let RawFieldAccessExpr { field_access, expr } = access;
        let signed = |index: Box<Expr>| Box::new(signed_index(*index, schema));
        let data_type = expr.get_type(schema);
        if let Ok(DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) = data_type
            && let Some(characters) = plan_characters(&expr, &field_access)
        {
            return Ok(PlannerResult::Planned(characters));
        }
        let field_access = match (field_access, &data_type) {
            // DataFusion plans `get_field`, which fails unless the key is a constant.
            (GetFieldAccess::ListIndex { key }, Ok(DataType::Map(..))) if is_row_based(&key) => {
                let values = map_extract(expr, *key);
                return Ok(PlannerResult::Planned(array_element(values, lit(1_i64))));
            }
            (access, _) => access,
        };
        let is_list = data_type.is_ok_and(|t| list_depth(&t) > 0);
        let field_access = match field_access {
            GetFieldAccess::ListIndex { key } if is_list => {
                GetFieldAccess::ListIndex { key: signed(key) }
            }
            GetFieldAccess::ListRange { start, stop, stride } => GetFieldAccess::ListRange {
                start: signed(start),
                stop: signed(stop),
                stride: signed(stride),
            },
            other => other,
        };
        Ok(PlannerResult::Original(RawFieldAccessExpr { field_access, expr }))
    }
}

/// Casts the date in date ± duration to a timestamp, as DuckDB does, because DataFusion refuses it.
/// Refines the timestamp or date in a sum with a span whose digits its type cannot represent.
fn cast_date_to_timestamp(expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    let op = match expr.op {
        BinaryOperator::Plus => Operator::Plus,
        BinaryOperator::Minus => Operator::Minus,
        _ => return expr,
    };
    let is_date = |t: &DataType| matches!(t, DataType::Date32 | DataType::Date64);
    let is_span = |t: &DataType| matches!(t, DataType::Duration(_) | DataType::Interval(_));
    let Ok(right) = expr.right.get_type(schema) else { return expr };
    // Checks the right side first: the type of a long left side `a + b + c + ..` takes time to compute.
    if !is_date(&right) && !is_span(&right) && !matches!(right, DataType::Timestamp(..)) {
        return expr;
    }
    let Ok(left) = expr.left.get_type(schema) else { return expr };
    let time = |e: Expr, unit| Expr::Cast(Cast::new(Box::new(e), DataType::Timestamp(unit, None)));
    match (op, &left, &right) {
        (_, date, DataType::Duration(unit)) if is_date(date) => {
            RawBinaryExpr { left: time(expr.left, *unit), ..expr }
        }
        (Operator::Plus, DataType::Duration(unit), date) if is_date(date) => {
            RawBinaryExpr { right: time(expr.right, *unit), ..expr }
        }
        _ if is_span(&left) || is_span(&right) => {
            match refine_unit(&expr.left, op, &expr.right, schema) {
                Some((left, right)) => RawBinaryExpr { left, right, ..expr },
                None => expr,
            }
        }
        _ => expr,
    }
}

/// Casts a string literal that is compared with a boolean, such as 'true', to a boolean, as PostgreSQL and DuckDB do.
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

/// Casts times of day (`TIME`) of two units to one unit before they are compared: to the coarser
/// unit if the finer side is a constant that fits it exactly, otherwise to the finer unit.
/// DataFusion has no common type for them, and fails before the analyzer rules run.
fn unify_times_of_day(expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
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
    let Some(of_right) = unit_of(&right) else { return expr };
    let Ok(left) = expr.left.get_type(schema) else { return expr };
    let Some(of_left) = unit_of(&left) else { return expr };
    let cast = |e: Expr, to: DataType| Expr::Cast(Cast::new(Box::new(e), to));
    match of_left.cmp(&of_right) {
        Ordering::Less => match exact_constant(&expr.right, &left) {
            Some(right) => RawBinaryExpr { right, ..expr },
            None => RawBinaryExpr { left: cast(expr.left, right), ..expr },
        },
        Ordering::Greater => match exact_constant(&expr.left, &right) {
            Some(left) => RawBinaryExpr { left, ..expr },
            None => RawBinaryExpr { right: cast(expr.right, left), ..expr },
        },
        Ordering::Equal => expr,
    }
}

fn is_distinction(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::Custom(word) if [DISTINCT, NOT_DISTINCT].contains(&word.as_str()))
}

/// Returns the unit of a time of day; `None` for other types.
fn unit_of(t: &DataType) -> Option<TimeUnit> {
    match t {
        DataType::Time32(unit) | DataType::Time64(unit) => Some(*unit),
        _ => None,
    }
}

/// Returns a constant as a literal of type `to`; `None` if `e` is no constant or not exact in `to`.
fn exact_constant(e: &Expr, to: &DataType) -> Option<Expr> {
    let Expr::Literal(value, _) =
        is_constant(e).then(|| fold_constant(e.clone(), &DFSchema::empty()))??
    else {
        return None;
    };
    let cast = value.cast_to(to).ok()?;
    (cast.cast_to(&value.data_type()).ok()? == value).then_some(Expr::Literal(cast, None))
}

/// Whether the planners include [`ListOperators`], which plans LIKE, ILIKE and IN on lists.
pub(crate) fn plans_predicates(planners: &[Arc<dyn ExprPlanner>]) -> bool {
    // A planner can be identified only by its debug text.
    let ours = format!("{ListOperators:?}");
    planners.iter().any(|p| format!("{p:?}") == ours)
}

/// Predicates, with or without `NOT`, for which the parser has no binary operators. In statements,
/// custom operators of these names replace them; the right side of `IN` becomes `make_array`.
pub(crate) const PREDICATES: [&str; 3] = ["LIKE", "ILIKE", "IN"];

/// Custom operators that replace predicates for which DataFusion's planner has no hook.
pub(crate) const DISTINCT: &str = "IS DISTINCT FROM";
pub(crate) const NOT_DISTINCT: &str = "IS NOT DISTINCT FROM";

/// Custom operator in `call ON LISTS NULL`: applies the call to the values of its lists.
pub(crate) const ON_LISTS: &str = "ON LISTS";

/// Custom operator that replaces a unary minus. The left side is the operand, and the right side is ignored.
pub(crate) const SIGNED: &str = "SIGNED";

/// Custom operator in `call FILTER mask`, for `ragged_mean(x) FILTER (WHERE mask)`.
pub(crate) const FILTER: &str = "FILTER";

/// Plans `call FILTER mask`: the reduction uses only the values for which the mask is true.
fn plan_filter(call: Expr, mask: Expr, schema: &DFSchema) -> Result<Expr> {
    // Removes the alias expression in which DataFusion wraps a call that uses an alias of a function.
    let plain = match call {
        Expr::Alias(alias) => *alias.expr,
        plain => plain,
    };
    let (Expr::ScalarFunction(mut function), Some(filter)) =
        (plain, super::find_scalar("ragged_filter"))
    else {
        return plan_err!(
            "FILTER (WHERE ..) follows an expression that is not a call of a scalar function; write it after a call such as ragged_sum(x)"
        );
    };
    let name = function.name().to_owned();
    let found = mask.get_type(schema)?;
    if list_depth(&found) == 0 || *leaf_type(&found) != DataType::Boolean {
        let shown = mask.schema_name();
        return plan_err!(
            "{name}(..) FILTER (WHERE ..) requires a mask, which is a list of booleans, as in FILTER (WHERE x > 3), but the condition is one {found} per row, and {name} reduces the list within each row. To remove the rows for which the condition is not true, use WHERE; to return NULL for them, use CASE WHEN {shown} THEN {name}(..) END"
        );
    }
    let Some(list) = function.args.first_mut() else {
        return plan_err!("{name}() FILTER (WHERE ..) has no list to filter; pass a list");
    };
    *list = filter.call(vec![std::mem::replace(list, lit(ScalarValue::Null)), mask]);
    Ok(Expr::ScalarFunction(function))
}

/// String tests of DataFusion, each with the function of Serrate that tests every string of a list.
const TESTS: [(&str, &str); 2] =
    [("starts_with", "ragged_starts_with"), ("regexp_like", "ragged_matches")];

/// Functions that return one or all of their arguments.
const CHOOSING: [&str; 5] = ["coalesce", "greatest", "least", "make_array", "nullif"];

/// Casts times of day (`TIME`) of several units to the finest unit. DataFusion has no common type for them. Returns `None`
/// if there is only one unit, or if a value is not a time of day.
fn unify_clocks(values: &[Expr], schema: &DFSchema) -> Option<Vec<Expr>> {
    let first = values.first()?.get_type(schema).ok()?;
    if !first.is_null() && unit_of(&first).is_none() {
        return None;
    }
    let types = values.iter().map(|e| e.get_type(schema).ok()).collect::<Option<Vec<_>>>()?;
    let finest = types.iter().max_by_key(|t| unit_of(t))?.clone();
    let is_clock = |t: &DataType| t.is_null() || unit_of(t).is_some();
    let is_kept = |t: &DataType| t.is_null() || *t == finest;
    if !types.iter().all(is_clock) || types.iter().all(is_kept) {
        return None;
    }
    let cast = |(e, t): (&Expr, &DataType)| match is_kept(t) {
        true => e.clone(),
        false => Expr::Cast(Cast::new(Box::new(e.clone()), finest.clone())),
    };
    Some(values.iter().zip(&types).map(cast).collect())
}

/// Casts the times of day in lists and values to the finest of their units. Other values, such as positions, stay
/// unchanged. Returns `None` if there is at most one unit.
fn unify_elements(values: &[&Expr], schema: &DFSchema) -> Option<Vec<Expr>> {
    let types = values.iter().map(|e| e.get_type(schema).ok()).collect::<Option<Vec<_>>>()?;
    let clocks = types.iter().map(leaf_type).filter(|t| unit_of(t).is_some());
    let finest = clocks.max_by_key(|t| unit_of(t))?.clone();
    let is_coarser = |t: &DataType| unit_of(leaf_type(t)).is_some() && *leaf_type(t) != finest;
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

fn replace_list_call(call: Expr, schema: &DFSchema) -> Expr {
    let plain = match &call {
        Expr::Alias(alias) => alias.expr.as_ref(),
        plain => plain,
    };
    let Expr::ScalarFunction(function) = plain else { return call };
    let replaced = match super::is_ours(&function.func) {
        true => Some(fold_to_literals(function.clone(), schema)),
        false if CHOOSING.contains(&function.name()) => {
            unify_clocks(&function.args, schema).map(|args| {
                Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&function.func), args))
            })
        }
        false if function.name().starts_with("array_") => {
            let args: Vec<&Expr> = function.args.iter().collect();
            unify_elements(&args, schema).map(|args| {
                Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&function.func), args))
            })
        }
        false => None,
    };
    if let Some(plain) = replaced {
        return match call {
            Expr::Alias(mut alias) => {
                *alias.expr = plain;
                Expr::Alias(alias)
            }
            _ => plain,
        };
    }
    let is_list = |e: &Expr| e.get_type(schema).is_ok_and(|t| list_depth(&t) > 0);
    if function.name() == "character_length"
        && let [list] = function.args.as_slice()
        && is_list(list)
    {
        return array_length(list.clone());
    }
    if let Some(lists) = plan_concat(function, schema) {
        return lists;
    }
    let ours = TESTS.iter().find(|(name, _)| *name == function.name()).map(|(_, ours)| *ours);
    match ours.and_then(super::find_scalar) {
        Some(test) if function.args.first().is_some_and(is_list) => {
            test.call(function.args.clone())
        }
        _ => map_over_lists(function, schema).unwrap_or(call),
    }
}

/// Replaces arguments such as `CAST('2020-01-01' AS DATE)` with literals, because some arguments must be literals.
fn fold_to_literals(mut call: ScalarFunction, schema: &DFSchema) -> Expr {
    for arg in &mut call.args {
        if !matches!(arg, Expr::Literal(..))
            && is_constant(arg)
            && let Some(literal) = fold_constant(arg.clone(), schema)
        {
            *arg = literal;
        }
    }
    Expr::ScalarFunction(call)
}

/// Plans `concat` of lists and NULL as the concatenation of the lists, as in DuckDB.
/// DataFusion would concatenate the lists as strings.
fn plan_concat(call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let types = call.args.iter().map(|arg| arg.get_type(schema));
    let types = types.collect::<Result<Vec<_>>>().ok()?;
    let are_lists = types.iter().all(|t| t.is_null() || list_depth(t) > 0)
        && types.iter().any(|t| !t.is_null());
    let lists = call.args.iter().zip(&types).filter(|(_, t)| !t.is_null());
    let lists: Vec<Expr> = lists.map(|(arg, _)| arg.clone()).collect();
    (call.name() == "concat" && are_lists).then(|| super::list_fields::concat_lists(lists))
}

/// Whether an expression is `x || y` for lists of the same depth. DataFusion would plan its own
/// `array_concat`, whose results do not have the planned type if fields of lists differ in name.
fn is_concatenation(expr: &RawBinaryExpr, schema: &DFSchema) -> bool {
    if expr.op != BinaryOperator::StringConcat {
        return false;
    }
    match (expr.left.get_type(schema), expr.right.get_type(schema)) {
        (Ok(left), Ok(right)) => list_depth(&left) > 0 && list_depth(&left) == list_depth(&right),
        _ => false,
    }
}

#[derive(Clone, Copy)]
enum PredicateOperator {
    Like,
    ILike,
    In,
}

#[derive(Clone, Copy)]
struct WordPredicate {
    test: PredicateOperator,
    negated: bool,
}

impl WordPredicate {
    fn from_word(word: &str) -> Option<Self> {
        let (negated, word) = match word.strip_prefix("NOT ") {
            Some(word) => (true, word),
            None => (false, word),
        };
        let [like, ilike, isin] = PREDICATES;
        let test = match word {
            w if w == like => PredicateOperator::Like,
            w if w == ilike => PredicateOperator::ILike,
            w if w == isin => PredicateOperator::In,
            _ => return None,
        };
        Some(Self { test, negated })
    }

    /// Plans the predicate for each value if the left side is a list, else as DataFusion's own expression.
    fn plan(self, expr: RawBinaryExpr, schema: &DFSchema) -> Expr {
        let RawBinaryExpr { left, right, .. } = expr;
        let is_list = |e: &Expr| e.get_type(schema).is_ok_and(|t| list_depth(&t) > 0);
        let name = match self.test {
            PredicateOperator::In => {
                let items = match right {
                    Expr::ScalarFunction(call) => call.args,
                    other => vec![other],
                };
                if is_list(&left)
                    && !items.iter().any(is_list)
                    && let Some(mask) = plan_in(&left, &items, schema)
                {
                    return if self.negated { negate_mask(mask) } else { mask };
                }
                return Expr::InList(InList::new(Box::new(left), items, self.negated));
            }
            PredicateOperator::Like => "ragged_like",
            PredicateOperator::ILike => "ragged_ilike",
        };
        if is_list(&left)
            && !is_list(&right)
            && let Some(test) = super::find_scalar(name)
        {
            let mask = test.call(vec![left, right]);
            return if self.negated { negate_mask(mask) } else { mask };
        }
        let whatever_case = matches!(self.test, PredicateOperator::ILike);
        let (left, right) = (Box::new(left), Box::new(right));
        Expr::Like(Like::new(self.negated, left, right, None, whatever_case))
    }
}

/// Plans `IN` on a list as one membership test if all `items` are constants, else as comparisons.
fn plan_in(left: &Expr, items: &[Expr], schema: &DFSchema) -> Option<Expr> {
    if items.iter().all(is_constant) {
        let list = fold_list(items, schema).unwrap_or_else(|| make_array(items.to_vec()));
        return Some(super::find_scalar("ragged_isin")?.call(vec![left.clone(), list]));
    }
    let (equal, or) = (super::find_scalar("ragged_eq")?, super::find_scalar("ragged_or")?);
    let leaves = left.get_type(schema).ok()?;
    let each = items.iter().map(|item| {
        let item = narrow_constant(Op::Eq, item, &leaves, false, schema);
        equal.call(vec![left.clone(), item])
    });
    each.reduce(|a, b| or.call(vec![a, b]))
}

fn negate_mask(mask: Expr) -> Expr {
    match super::find_scalar("ragged_not") {
        Some(not) => not.call(vec![mask]),
        None => mask,
    }
}

/// Returns the call of a function that tests each string of a list, for an operator such as `~`. Returns `None` for
/// other operators, and if the left side is not a list or the right side is a list.
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

/// Gives `[]` in a comparison the type of the other side, so that two lists of the same depth are compared.
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

/// Minimum number of nested operators, as in `((a + b) + c) + d`, whose result the planner casts to its own type. An
/// operator outside the cast then need not compute the types of all operators inside.
const KNOWN: usize = 16;

/// Shortens the computation of types in long expressions such as `a + b + c`, because the type of each operator
/// depends on its whole left side. A long left side with numbers becomes one call. Any other long left side gets a
/// cast to its own type, which the simplifier removes, and which column names do not show.
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
        && is_chain(&expr.left, KNOWN)
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
    // A `BinaryExpr` is never a list, because operators that return lists are planned as calls. To
    // compute the type of a long `BinaryExpr` would take quadratic time.
    let is_single = |e: &Expr| matches!(e, Expr::BinaryExpr(_));
    let is_list = |e: &Expr| e.get_type(schema).is_ok_and(|t| list_depth(&t) > 0);
    if op.is_arithmetic() && chain::is_list_chain(&expr.left) && is_list(&expr.right) {
        let call = super::find_scalar(name)?.call(vec![expr.left.clone(), expr.right.clone()]);
        return Some(chain::join_lists(call));
    }
    if is_single(&expr.left) && (is_single(&expr.right) || !is_list(&expr.right)) {
        return None;
    }
    // DataFusion reports the error for an expression without a type (a parameter, an unknown column).
    let left = expr.left.get_type(schema).ok()?;
    let right = expr.right.get_type(schema).ok()?;
    let lists = (list_depth(&left) > 0, list_depth(&right) > 0);
    let (left, right) = match lists {
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
            && let Some(pair) = dates_with_hours(expr, &left, &right, schema)
                .or_else(|| dates_with_times(expr, &left, &right)) =>
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

/// Plans arithmetic on dates and numbers of days as for scalars, if at least one operand is a list: the difference of
/// two dates is a number of days, and a date plus or minus an integer is a date. Returns `None` for other operands.
fn plan_days(
    op: Op,
    expr: &RawBinaryExpr,
    left: &DataType,
    right: &DataType,
    schema: &DFSchema,
) -> Option<Expr> {
    let cast = |e: &Expr, t: &DataType, leaf| {
        Expr::Cast(Cast::new(Box::new(e.clone()), NestedListType::from_type(t).plain_leaf(leaf)))
    };
    let is_date = |t: &DataType| *leaf_type(t) == DataType::Date32;
    let is_number = |t: &DataType| leaf_type(t).is_integer();
    let (_, name) = list_operation(&expr.op)?;
    let call = |leaf: DataType| {
        let operands = vec![cast(&expr.left, left, leaf.clone()), cast(&expr.right, right, leaf)];
        super::find_scalar(name).map(|function| function.call(operands))
    };
    if op == Op::Sub && is_date(left) && is_date(right) {
        return call(DataType::Int64);
    }
    let moves = is_date(left) && is_number(right) && matches!(op, Op::Add | Op::Sub)
        || is_number(left) && is_date(right) && op == Op::Add;
    if !moves {
        return None;
    }
    let days = call(DataType::Int32)?;
    let days_type = days.get_type(schema).ok()?;
    Some(cast(&days, &days_type, DataType::Date32))
}

/// If one operand has dates and the other has timestamps or durations, casts the dates to timestamps. At least one
/// operand is a list. Returns both operands, or `None` for other operands.
fn dates_with_times(
    expr: &RawBinaryExpr,
    left: &DataType,
    right: &DataType,
) -> Option<(Expr, Expr)> {
    let times_like = |t: &DataType| match leaf_type(t) {
        DataType::Timestamp(unit, zone) => Some(DataType::Timestamp(*unit, zone.clone())),
        DataType::Duration(unit) => Some(DataType::Timestamp(*unit, None)),
        _ => None,
    };
    let is_date = |t: &DataType| matches!(leaf_type(t), DataType::Date32 | DataType::Date64);
    let cast = |e: &Expr, t: &DataType, times| {
        Expr::Cast(Cast::new(Box::new(e.clone()), NestedListType::from_type(t).plain_leaf(times)))
    };
    match (times_like(left), times_like(right)) {
        (_, Some(times)) if is_date(left) => {
            Some((cast(&expr.left, left, times), expr.right.clone()))
        }
        (Some(times), _) if is_date(right) => {
            Some((expr.left.clone(), cast(&expr.right, right, times)))
        }
        _ => None,
    }
}

/// Like [`dates_with_times`], for dates and intervals that may have hours.
fn dates_with_hours(
    expr: &RawBinaryExpr,
    left: &DataType,
    right: &DataType,
    schema: &DFSchema,
) -> Option<(Expr, Expr)> {
    let to_times = |e: &Expr, t: &DataType| {
        let times = DataType::Timestamp(TimeUnit::Microsecond, None);
        Expr::Cast(Cast::new(Box::new(e.clone()), NestedListType::from_type(t).plain_leaf(times)))
    };
    let is_date = |t: &DataType| matches!(leaf_type(t), DataType::Date32 | DataType::Date64);
    if is_date(left) && may_have_hours(&expr.right, leaf_type(right), schema) {
        Some((to_times(&expr.left, left), expr.right.clone()))
    } else if is_date(right) && may_have_hours(&expr.left, leaf_type(left), schema) {
        Some((expr.left.clone(), to_times(&expr.right, right)))
    } else {
        None
    }
}

/// Whether an expression of type `t` is an interval that may have hours or smaller units. Returns
/// `false` for a literal without them, and for sums and integer multiples of such intervals.
fn may_have_hours(expr: &Expr, t: &DataType, schema: &DFSchema) -> bool {
    const NANOSECONDS_PER_DAY: i64 = 86_400_000_000_000;
    if !matches!(t, DataType::Interval(IntervalUnit::DayTime | IntervalUnit::MonthDayNano)) {
        return false;
    }
    let is_known = |e: &Expr| match e.get_type(schema) {
        // Type coercion casts unsigned integers to decimals without fraction. It may already have
        // run on the expression, because the query of a view is analyzed again.
        Ok(t) if t.is_integer() || matches!(t, DataType::Decimal128(_, 0)) => true,
        Ok(t) => matches!(t, DataType::Interval(_)) && !may_have_hours(e, &t, schema),
        Err(_) => false,
    };
    match expr {
        Expr::Literal(value, _) => {
            match value.cast_to(&DataType::Interval(IntervalUnit::MonthDayNano)) {
                Ok(ScalarValue::IntervalMonthDayNano(value)) => {
                    value.is_some_and(|v| v.nanoseconds % NANOSECONDS_PER_DAY != 0)
                }
                _ => true,
            }
        }
        Expr::BinaryExpr(sum) => !(is_known(&sum.left) && is_known(&sum.right)),
        Expr::Negative(of) => !is_known(of),
        Expr::Alias(alias) => !is_known(&alias.expr),
        Expr::ScalarFunction(call) if is_span_product(call) => !call.args.iter().all(is_known),
        _ => true,
    }
}

/// If an interval with hours is added to a date or subtracted from it, casts the date to a timestamp. If an interval
/// is added to a timestamp in seconds or milliseconds, casts the timestamp to microseconds. If a duration of a finer
/// unit is added to a timestamp, casts the timestamp to this unit. Arrow would drop the digits that the type of the
/// date or timestamp cannot represent. Returns both operands, or `None` for other operands.
pub(crate) fn refine_unit(
    left: &Expr,
    op: Operator,
    right: &Expr,
    schema: &DFSchema,
) -> Option<(Expr, Expr)> {
    use TimeUnit::{Microsecond, Millisecond, Second};
    let finer = |instant: &Expr, interval: &Expr| {
        let spans = interval.get_type(schema).ok()?;
        let to = match instant.get_type(schema).ok()? {
            DataType::Date32 | DataType::Date64 if may_have_hours(interval, &spans, schema) => {
                DataType::Timestamp(Microsecond, None)
            }
            DataType::Timestamp(unit, zone) => match spans {
                DataType::Interval(_) if matches!(unit, Second | Millisecond) => {
                    DataType::Timestamp(Microsecond, zone)
                }
                DataType::Duration(span) if span > unit => DataType::Timestamp(span, zone),
                _ => return None,
            },
            _ => return None,
        };
        Some(Expr::Cast(Cast::new(Box::new(instant.clone()), to)))
    };
    match (finer(left, right), op) {
        (Some(left), _) => Some((left, right.clone())),
        (None, Operator::Plus) => Some((left.clone(), finer(right, left)?)),
        (None, _) => None,
    }
}

fn list_operation(op: &BinaryOperator) -> Option<(Op, &'static str)> {
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

/// Casts a constant to the leaf type of a list if the value fits. Returns other expressions unchanged.
fn narrow_constant(op: Op, scalar: &Expr, list: &DataType, first: bool, schema: &DFSchema) -> Expr {
    let narrow = || {
        let constant =
            is_constant(scalar).then(|| fold_constant(scalar.clone(), schema)).flatten()?;
        let Expr::Literal(value, metadata) = constant else { return None };
        let one = value.to_array_of_size(1).ok()?;
        let (leaf, literal) = (OperandType::Leaves(leaf_type(list)), OperandType::Literal(&one));
        let (left, right) = if first { (literal, leaf) } else { (leaf, literal) };
        let types = Types::new(op, left, right).ok()?;
        let to = if first { types.left() } else { types.right() };
        let leaf = leaf_type(list);
        let is_widened = to != leaf && leaf.is_floating() && value.data_type().is_integer();
        if op.is_comparison() && is_widened {
            // An integer stays an integer: a float literal would be rounded to the type of the leaves.
            return None;
        }
        if to.is_decimal() && !value.data_type().is_numeric() {
            // Only a number becomes a literal of type decimal. Strings and times stay unchanged:
            // the comparison itself converts them to decimals (times to exact seconds).
            return None;
        }
        let value = match cast_time(&one, to) {
            Some(exact) => ScalarValue::try_from_array(&exact.ok()?, 0).ok()?,
            None => value.cast_to(to).ok()?,
        };
        Some(Expr::Literal(value, metadata))
    };
    narrow().unwrap_or_else(|| scalar.clone())
}
