//! Comparisons and arithmetic of decimals that overflow or lose digits in DataFusion.

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{InSubquery, ScalarFunction, SetComparison};
use datafusion::logical_expr::{
    Case, Cast, Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, Operator, Projection,
    Subquery, Union,
};

use super::decimal_literals::cast_digits;
use super::decimal_types::{
    convert_compared_to_doubles, convert_types_to_doubles, rounds_integers, to_written_decimal,
};
use super::decimal_values::rewrite_values;
use crate::array::leaf_type;
use crate::functions::{
    StockFact, check_precision, checks_precision, find_element_field, find_long_number, has_fact,
    make_decimal_of_digits, replace_element_type,
};
use crate::sql::base::compared_operands::{
    list_case_operands, list_compared_operands, searches_list,
};
use crate::sql::base::expression_parts::{find_columns_below, has_part, map_named};
use crate::sql::workarounds::types::times::take_branch_types;

/// `SELECT 1e30::DOUBLE > CAST(1.2 AS DECIMAL(12, 2))` fails without this rule.
///
/// Analyzer rule, before DataFusion's type coercion.
///
/// * Compares an integer with a float32 or float16 as doubles, also within lists and structs.
///   DataFusion converts the integer to the float type, which rounds it. The results of sums, CASE,
///   UNION and the like of an integer and a float16 are doubles, too, because the integer 70000
///   becomes infinite as a float16. Obsolete once the test
///   `stock_integers_are_still_rounded_to_float32` fails.
/// * Compares a float with a decimal as doubles. DataFusion 55 converts the float to a decimal,
///   which fails for NaN, infinity and 1e30, and rounds other values. The values of CASE,
///   `coalesce`, lists, UNION and USING are doubles, too, if some are floats and some decimals,
///   also within lists and structs. So are the elements of lists that `array_append`,
///   `array_concat`, `array_intersect` and the like combine. Obsolete once the test
///   `stock_floats_become_decimals` fails.
/// * Fixes the type of `round(x, 1)`. For a DECIMAL(12, 2), DataFusion returns a DECIMAL(12, 1) if
///   the 1 is a literal, else a DECIMAL(13, 2). Type coercion casts the 1 to INT and the optimizer
///   folds the cast, so the type changes twice. The rule makes a literal an INT at once, and casts
///   other results to the planned type. Obsolete once the test `stock_round_changes_type` fails.
/// * Casts literals such as 1.005 to decimals digit by digit, also where the planner adds the cast,
///   as in INSERT.
/// * Checks that results of decimal arithmetic fit their precision ([`check_precision`]).
pub(in crate::sql) fn stabilize_decimals(plan: LogicalPlan) -> Result<LogicalPlan> {
    // VALUES in an INSERT are not converted: the planner casts them to the table's types.
    let inserts = plan.exists(|node| Ok(matches!(node, LogicalPlan::Dml(_))))?;
    let plan = plan.transform_up_with_subqueries(|plan| {
        let plan = match plan {
            LogicalPlan::Union(mut union) => {
                let changed = take_branch_types(&mut union)?;
                let mut done = cast_union_to_doubles(union)?;
                done.transformed |= changed;
                return Ok(done);
            }
            LogicalPlan::Values(values) if !inserts => {
                let none = DFSchema::empty();
                return rewrite_values(values, |e| {
                    match e.exists(|part| Ok(may_change(part)))? {
                        true => rewrite_all(e, &none),
                        false => Ok(Transformed::no(e)),
                    }
                });
            }
            plan => plan,
        };
        let with_keys = match plan {
            LogicalPlan::Join(join) => join_as_doubles(join),
            plan => Transformed::no(plan),
        };
        if !has_part(&with_keys.data, may_change) {
            return Ok(with_keys);
        }
        let schema = find_columns_below(&with_keys.data)?;
        let changed = map_named(with_keys.data, |expr| rewrite_all(expr, &schema))?;
        // Nodes copy the types of their inputs, so the schemas above a changed node are computed
        // again.
        let mut changed = changed.map_data(LogicalPlan::recompute_schema)?;
        changed.transformed |= with_keys.transformed;
        Ok(changed)
    })?;
    match plan.transformed {
        true => Ok(plan
            .data
            .transform_up_with_subqueries(|node| match node {
                LogicalPlan::Union(mut union) => {
                    take_branch_types(&mut union)?;
                    Ok(Transformed::yes(LogicalPlan::Union(union)))
                }
                node => node.recompute_schema().map(Transformed::yes),
            })?
            .data),
        false => Ok(plan.data),
    }
}

/// Rewrites all parts of an expression, innermost first, as [`stabilize_decimals`] does.
fn rewrite_all(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let changed = expr.transform_up(|expr| rewrite_expr(expr, schema))?;
    let (data, transformed) = (changed.data, changed.transformed);
    let doubles = data.transform_up(|expr| Ok(drop_digits(expr)))?;
    let transformed = transformed || doubles.transformed;
    let doubles = check_results(doubles.data, schema)?;
    let transformed = transformed || doubles.transformed;
    Ok(Transformed::new_transformed(doubles.data, transformed))
}

/// Whether [`stabilize_decimals`] may change `part`, or an expression that has `part` as an
/// operand. If this is false for all expressions of a plan node, the rule skips the node, and does
/// not compute types for it.
fn may_change(part: &Expr) -> bool {
    match part {
        Expr::Cast(cast) => {
            matches!(*cast.expr, Expr::Literal(..))
                && leaf_type(cast.field.data_type()).is_decimal()
        }
        Expr::BinaryExpr(_)
        | Expr::Between(_)
        | Expr::InList(_)
        | Expr::InSubquery(_)
        | Expr::SetComparison(_)
        | Expr::Case(_) => true,
        Expr::ScalarFunction(call) => {
            let name = call.func.name();
            name == "round"
                || find_long_number(part).is_some()
                || has_fact(name, StockFact::ComparesArguments)
                || searches_list(name)
                || combines_elements(name)
                || returns_arguments(name)
        }
        _ => false,
    }
}

/// Whether a function returns one of its arguments and does not compare them (`coalesce`, but not
/// `greatest`), or returns a list of its arguments (`make_array`).
fn returns_arguments(function: &str) -> bool {
    let compares = has_fact(function, StockFact::ComparesArguments);
    function == "make_array" || (has_fact(function, StockFact::Chooses) && !compares)
}

/// Adds to decimal arithmetic a check that the result fits its type, unless an earlier pass has
/// added the check.
fn check_results(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_down_up(
        |expr| {
            let recursion = match checks_precision(&expr) {
                true => TreeNodeRecursion::Jump,
                false => TreeNodeRecursion::Continue,
            };
            Ok(Transformed::new(expr, false, recursion))
        },
        |expr| {
            Ok(match checks_precision(&expr) {
                true => Transformed::no(expr),
                false => check_precision(expr, schema),
            })
        },
    )
}

fn is_arithmetic(op: Operator) -> bool {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    matches!(op, Plus | Minus | Multiply | Divide | Modulo)
}

fn rewrite_expr(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let changed = match &mut expr {
        Expr::BinaryExpr(binary) if is_arithmetic(binary.op) => {
            widen_halves(vec![&mut *binary.left, &mut *binary.right], schema)
        }
        Expr::InSubquery(InSubquery { expr, subquery, .. })
        | Expr::SetComparison(SetComparison { expr, subquery, .. }) => {
            convert_query_to_doubles(expr, subquery, schema)?
        }
        Expr::Case(case) => {
            let compared = as_doubles(list_case_operands(case), schema);
            let results = case.when_then_expr.iter_mut().map(|(_, then)| &mut **then);
            let results = results.chain(case.else_expr.as_deref_mut());
            as_one_type(results.collect(), schema) || compared
        }
        Expr::ScalarFunction(call) if returns_arguments(call.name()) => {
            as_one_type(call.args.iter_mut().collect(), schema)
        }
        Expr::ScalarFunction(call) if call.func.name() == "nullif" => {
            if let Some(case) = keep_integer(call, schema) {
                return Ok(Transformed::yes(case));
            }
            as_doubles(call.args.iter_mut().collect(), schema)
        }
        Expr::Cast(cast) => {
            let exact = cast_digits(&cast.expr, cast.field.data_type());
            if let Some(exact) = exact {
                return Ok(Transformed::yes(exact));
            }
            false
        }
        Expr::ScalarFunction(call) if searches_list(call.name()) => {
            search_as_doubles(&mut call.args, schema)
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if combines_elements(func.name()) => {
            combine_as_doubles(func.name(), args, schema)
        }
        Expr::ScalarFunction(call) if call.func.name() == "round" => {
            return keep_type(expr, schema);
        }
        other => as_doubles(list_compared_operands(other), schema),
    };
    Ok(Transformed::new_transformed(expr, changed))
}

/// Rewrites `nullif(i, x)` of an integer and a float to a CASE that returns the integer. DataFusion
/// converts the integer to a float, which is inexact for large integers.
fn keep_integer(call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let [value, other] = call.args.as_slice() else { return None };
    let is_integer = value.get_type(schema).ok()?.is_integer();
    let is_mixed = is_integer && other.get_type(schema).ok()?.is_floating();
    if !is_mixed || value.is_volatile() {
        return None;
    }
    let none = Expr::Literal(ScalarValue::try_from(value.get_type(schema).ok()?).ok()?, None);
    let (mut left, mut right) = (value.clone(), other.clone());
    as_doubles(vec![&mut left, &mut right], schema);
    let equal = (Box::new(left.eq(right)), Box::new(none));
    Some(Expr::Case(Case::new(None, vec![equal], Some(Box::new(value.clone())))))
}

/// Casts compared expressions to doubles if decimals are compared with floats, or integers with
/// floats of a type that would round the integers. Returns whether it cast them.
fn as_doubles(mut parts: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    if use_digits(&mut parts, schema) {
        return true;
    }
    // A lambda parameter has no type in this schema. If one is compared, nothing is cast.
    let types: Vec<DataType> = parts.iter().filter_map(|part| part.get_type(schema).ok()).collect();
    if types.len() != parts.len() {
        return false;
    }
    if types.iter().any(DataType::is_nested) {
        return match convert_compared_to_doubles(&types) {
            Some(doubles) => cast_all(parts.into_iter().zip(doubles), schema),
            None => false,
        };
    }
    let numbers = types.iter().all(|t| t.is_numeric() || t.is_null());
    let decimals =
        types.iter().any(DataType::is_decimal) && types.iter().any(DataType::is_floating);
    let integers = types.iter().any(|float| {
        let is_rounded = |(part, t): (&&mut Expr, &DataType)| is_rounded_to(float, part, t);
        parts.iter().zip(&types).any(is_rounded)
    });
    if !numbers || !(decimals || integers) {
        return false;
    }
    cast_all(parts.into_iter().map(|part| (part, DataType::Float64)), schema)
}

/// Casts expressions to doubles if float16 is mixed with integers that float16 may not represent.
/// Returns whether it cast them.
fn widen_halves(parts: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let types: Option<Vec<DataType>> = parts.iter().map(|e| e.get_type(schema).ok()).collect();
    let Some(types) = types else { return false };
    let numbers = types.iter().all(|t| t.is_numeric() || t.is_null());
    if !numbers || !types.contains(&DataType::Float16) {
        return false;
    }
    let half = DataType::Float16;
    if !parts.iter().zip(&types).any(|(part, t)| is_rounded_to(&half, part, t)) {
        return false;
    }
    cast_all(parts.into_iter().map(|part| (part, DataType::Float64)), schema)
}

/// Casts each expression to the type that is paired with it. Always returns true, which callers
/// return in turn to report the change.
fn cast_all<'a>(parts: impl Iterator<Item = (&'a mut Expr, DataType)>, schema: &DFSchema) -> bool {
    for (part, to) in parts {
        if part.get_type(schema).ok().as_ref() != Some(&to) {
            *part = Expr::Cast(Cast::new(Box::new(std::mem::take(part)), to));
        }
    }
    true
}

/// Casts the first two arguments of a function such as `array_has`, a list and the value or list
/// that is searched in it, to doubles if they mix decimals and floats, or integers and floats of a
/// type that rounds these integers. Returns whether it cast them.
fn search_as_doubles(args: &mut [Expr], schema: &DFSchema) -> bool {
    let [list, wanted, ..] = args else { return false };
    let types = (list.get_type(schema), wanted.get_type(schema));
    let (Ok(of_list), Ok(of_wanted)) = types else { return false };
    if find_element_field(&of_wanted).is_some()
        && let Some(doubles) = convert_compared_to_doubles(&[of_list.clone(), of_wanted.clone()])
    {
        return cast_all([list, wanted].into_iter().zip(doubles), schema);
    }
    let Some(element) = find_element_field(&of_list) else { return false };
    let of_element = element.data_type().clone();
    if let Some((digits, of_both)) = match_digits(wanted, &of_element)
        && let Some(to_list) = replace_element_type(&of_list, of_both.clone())
    {
        *wanted = digits;
        return cast_all([(list, to_list), (wanted, of_both)].into_iter(), schema);
    }
    if of_wanted.is_integer()
        && of_element.is_floating()
        && !is_rounded_to(&of_element, wanted, &of_wanted)
    {
        return false;
    }
    let doubles = convert_compared_to_doubles(&[of_element, of_wanted]);
    let Some([to_element, to_wanted]) = doubles.as_deref() else { return false };
    let Some(to_list) = replace_element_type(&of_list, to_element.clone()) else { return false };
    cast_all([(list, to_list), (wanted, to_wanted.clone())].into_iter(), schema)
}

/// Returns a literal of 16 to 38 digits as a decimal, and the decimal type that holds it and values
/// of the decimal type `other`. Returns `None` if no type holds both.
fn match_digits(literal: &Expr, other: &DataType) -> Option<(Expr, DataType)> {
    let (_, digits) = find_long_number(literal)?;
    let (decimal, before, after) = make_decimal_of_digits(digits)?;
    let (DataType::Decimal32(precision, scale)
    | DataType::Decimal64(precision, scale)
    | DataType::Decimal128(precision, scale)) = other
    else {
        return None;
    };
    let fraction = usize::try_from(*scale).unwrap_or(0);
    let whole = usize::from(*precision).saturating_sub(fraction).max(before);
    let fraction = fraction.max(after);
    let total = u8::try_from(whole + fraction).ok().filter(|total| *total <= 38)?;
    Some((decimal, DataType::Decimal128(total, i8::try_from(fraction).ok()?)))
}

/// Functions that return the elements of all their arguments, which are lists.
const JOINING: [&str; 4] = ["array_concat", "array_except", "array_intersect", "array_union"];

/// Functions that change a list, with the position of the list among the arguments and the
/// positions of the values that they add, remove or replace.
static CHANGING: [(&str, usize, Range<usize>); 8] = [
    ("array_append", 0, 1..2),
    ("array_prepend", 1, 0..1),
    ("array_remove", 0, 1..2),
    ("array_remove_all", 0, 1..2),
    ("array_remove_n", 0, 1..2),
    ("array_replace", 0, 1..3),
    ("array_replace_all", 0, 1..3),
    ("array_replace_n", 0, 1..3),
];

fn combines_elements(function: &str) -> bool {
    JOINING.contains(&function) || CHANGING.iter().any(|(name, ..)| *name == function)
}

/// Casts the lists and values of a call for which [`combines_elements`] is true to doubles if some
/// have decimals and some floats. Next to decimals, literals such as 0.0 are not cast. Returns
/// whether it cast an argument.
fn combine_as_doubles(function: &str, args: &mut [Expr], schema: &DFSchema) -> bool {
    let Some((_, at, values)) = CHANGING.iter().find(|(name, ..)| *name == function) else {
        let types: Option<Vec<DataType>> = args.iter().map(|e| e.get_type(schema).ok()).collect();
        let doubles = types.and_then(|types| convert_types_to_doubles(&types));
        return doubles.is_some_and(|to| cast_all(args.iter_mut().zip(to), schema));
    };
    let (Some(list), Some(given)) = (args.get(*at), args.get(values.clone())) else { return false };
    let Ok(of_list) = list.get_type(schema) else { return false };
    let Some(element) = find_element_field(&of_list) else { return false };
    let is_written = |e: &Expr| {
        !e.get_type(schema).is_ok_and(|t| t.is_floating()) || to_written_decimal(e).is_some()
    };
    if element.data_type().is_decimal() && given.iter().all(is_written) {
        return false;
    }
    let of_values = given.iter().map(|e| e.get_type(schema).ok());
    let types: Option<Vec<DataType>> =
        std::iter::once(Some(element.data_type().clone())).chain(of_values).collect();
    let doubles = types.and_then(|types| convert_types_to_doubles(&types));
    let Some([to_element, to_values @ ..]) = doubles.as_deref() else { return false };
    let Some(to_list) = replace_element_type(&of_list, to_element.clone()) else { return false };
    cast_all(std::iter::once((&mut args[*at], to_list)), schema);
    cast_all(args[values.clone()].iter_mut().zip(to_values.iter().cloned()), schema)
}

/// Casts two equated join keys to doubles if one is a decimal and the other a float, or one is an
/// integer and the other a float that rounds integers. Does the same for keys that are lists.
fn join_as_doubles(mut join: Join) -> Transformed<LogicalPlan> {
    let mut changed = false;
    for (left, right) in &mut join.on {
        let types = (left.get_type(join.left.schema()), right.get_type(join.right.schema()));
        let (Ok(of_left), Ok(of_right)) = types else { continue };
        let Some(doubles) = convert_compared_to_doubles(&[of_left, of_right]) else { continue };
        let [to_left, to_right] = doubles.as_slice() else { continue };
        cast_all(std::iter::once((left, to_left.clone())), join.left.schema());
        cast_all(std::iter::once((right, to_right.clone())), join.right.schema());
        changed = true;
    }
    Transformed::new_transformed(LogicalPlan::Join(join), changed)
}

/// Whether the float type `float` may not represent the value of the expression `e`, whose type is
/// `t`. True only if `t` is an integer type.
fn is_rounded_to(float: &DataType, e: &Expr, t: &DataType) -> bool {
    let digits = match float {
        DataType::Float16 => 11,
        DataType::Float32 => f32::MANTISSA_DIGITS,
        _ => return false,
    };
    let is_exact = |value: &ScalarValue| match value.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(Some(n))) => n.unsigned_abs() <= 1 << digits,
        _ => value.is_null(),
    };
    match e {
        Expr::Literal(value, _) if t.is_integer() => !is_exact(value),
        _ => rounds_integers(float, t),
    }
}

/// Turns literals of 16 to 38 digits, which a double cannot represent, into decimals, if the values
/// that they are compared with are decimals and perhaps integers, and one decimal type holds all
/// values. Returns whether it changed the literals.
fn use_digits(parts: &mut [&mut Expr], schema: &DFSchema) -> bool {
    if !parts.iter().any(|part| find_long_number(part).is_some()) {
        return false;
    }
    // The largest numbers of digits that any value has before and after the decimal point.
    let (mut whole, mut fraction) = (0, 0);
    let mut has_decimal = false;
    for part in parts.iter() {
        let written = parse_number(part);
        if find_long_number(part).is_some() && written.is_none() {
            return false;
        }
        let (before, after) = match written {
            Some((_, before, after)) => (before, after),
            None => match part.get_type(schema) {
                Ok(DataType::Null) => (0, 0),
                Ok(t) if t.is_integer() => (20, 0),
                Ok(
                    DataType::Decimal32(precision, scale)
                    | DataType::Decimal64(precision, scale)
                    | DataType::Decimal128(precision, scale),
                ) => {
                    has_decimal = true;
                    let after = usize::try_from(scale).unwrap_or(0);
                    (usize::from(precision).saturating_sub(after), after)
                }
                _ => return false,
            },
        };
        (whole, fraction) = (whole.max(before), fraction.max(after));
    }
    if !has_decimal || whole + fraction > 38 {
        return false;
    }
    for part in parts {
        if let Some((decimal, ..)) = parse_number(part) {
            **part = decimal;
        }
    }
    true
}

/// Returns a double literal of the statement as a decimal literal with the same digits, and the
/// number of its digits before and after the point. Returns `None` for any other expression.
fn parse_number(e: &Expr) -> Option<(Expr, usize, usize)> {
    if let Some((_, digits)) = find_long_number(e) {
        return make_decimal_of_digits(digits);
    }
    let decimal = to_written_decimal(e)?;
    let Expr::Literal(ScalarValue::Decimal128(_, precision, scale), _) = &decimal else {
        return None;
    };
    let after = usize::try_from(*scale).ok()?;
    let before = usize::from(*precision).saturating_sub(after);
    Some((decimal, before, after))
}

/// Replaces the call that stands for a literal of many digits with the double that DataFusion plans
/// for such a literal. `sql::statement::expressions::long_numbers` has made the call to keep all
/// digits.
fn drop_digits(e: Expr) -> Transformed<Expr> {
    match find_long_number(&e).map(|(double, _)| double.clone()) {
        Some(double) => Transformed::yes(double),
        None => Transformed::no(e),
    }
}

/// Casts the results of CASE, or the arguments of a function such as `coalesce`, to one type if
/// some are decimals and some floats. If all floats are literals of at most 15 digits, such as 0.0,
/// these become decimals; otherwise all become doubles. Returns whether it changed an expression.
fn as_one_type(mut parts: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let is_floating = |e: &Expr| e.get_type(schema).is_ok_and(|t| t.is_floating());
    if parts.iter().any(|e| e.get_type(schema).is_ok_and(|t| t.is_nested())) {
        let types: Option<Vec<DataType>> = parts.iter().map(|e| e.get_type(schema).ok()).collect();
        let doubles = types.and_then(|types| convert_types_to_doubles(&types));
        return doubles.is_some_and(|to| cast_all(parts.into_iter().zip(to), schema));
    }
    if !parts.iter().any(|e| e.get_type(schema).is_ok_and(|t| t.is_decimal())) {
        return widen_halves(parts, schema);
    }
    let floats = parts.iter().filter(|e| is_floating(e));
    if floats.clone().all(|e| to_written_decimal(e).is_some()) {
        let mut changed = false;
        for part in &mut parts {
            if is_floating(part)
                && let Some(decimal) = to_written_decimal(part)
            {
                (**part, changed) = (decimal, true);
            }
        }
        return changed;
    }
    as_doubles(parts, schema)
}

/// If a column of a union has decimals in some inputs and floats in others, casts it to doubles.
fn cast_union_to_doubles(mut union: Union) -> Result<Transformed<LogicalPlan>> {
    let doubles_of = |column: usize| {
        let types = union.inputs.iter().map(|i| i.schema().fields().get(column));
        let types = types.map(|field| field.map(|f| f.data_type().clone()));
        convert_types_to_doubles(&types.collect::<Option<Vec<_>>>()?)
    };
    // For each column, its new types in all inputs, or `None` if it stays unchanged.
    let doubles: Vec<Option<Vec<DataType>>> =
        (0..union.schema.fields().len()).map(doubles_of).collect();
    if doubles.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    for (at, input) in union.inputs.iter_mut().enumerate() {
        let exprs = input.schema().iter().zip(&doubles).map(|(named, doubles)| {
            let column = Expr::Column(Column::from(named));
            match doubles.as_ref().and_then(|types| types.get(at)) {
                Some(to) if to != named.1.data_type() => {
                    Expr::Cast(Cast::new(Box::new(column), to.clone()))
                        .alias_qualified(named.0.cloned(), named.1.name())
                }
                _ => column,
            }
        });
        let exprs: Vec<Expr> = exprs.collect();
        *input = Arc::new(LogicalPlan::Projection(Projection::try_new(exprs, Arc::clone(input))?));
    }
    let fields = union.schema.iter().zip(&doubles).map(|((table, field), doubles)| {
        let to = doubles.iter().flatten().find(|t| !t.is_null());
        let field = match to {
            Some(to) => Arc::new(field.as_ref().clone().with_data_type(to.clone())),
            None => Arc::clone(field),
        };
        (table.cloned(), field)
    });
    let metadata = union.schema.metadata().clone();
    union.schema = Arc::new(DFSchema::new_with_metadata(fields.collect(), metadata)?);
    Ok(Transformed::yes(LogicalPlan::Union(union)))
}

/// Casts `value` and the column of `query`, with which `value` is compared, to doubles if one is a
/// decimal and the other a float, or one is an integer and the other a float that rounds integers.
/// Returns whether it cast them.
fn convert_query_to_doubles(
    value: &mut Expr,
    query: &mut Subquery,
    schema: &DFSchema,
) -> Result<bool> {
    let rows = query.subquery.schema();
    let (Ok(of_value), [field]) = (value.get_type(schema), &rows.fields()[..]) else {
        return Ok(false);
    };
    let Some(doubles) = convert_compared_to_doubles(&[of_value, field.data_type().clone()]) else {
        return Ok(false);
    };
    let [to_value, to_column] = doubles.as_slice() else { return Ok(false) };
    cast_all(std::iter::once((value, to_value.clone())), schema);
    let columns = rows.iter().map(|(table, field)| {
        let column = Expr::Column(Column::new(table.cloned(), field.name()));
        let cast = Expr::Cast(Cast::new(Box::new(column), to_column.clone()));
        cast.alias_qualified(table.cloned(), field.name())
    });
    let columns: Vec<Expr> = columns.collect();
    let plan = LogicalPlanBuilder::from(query.subquery.as_ref().clone()).project(columns)?;
    *query = query.with_plan(Arc::new(plan.build()?));
    Ok(true)
}

/// Changes `round(x, n)` so that its type stays the same when the optimizer rewrites `n`.
fn keep_type(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::ScalarFunction(ScalarFunction { args, .. }) = &mut expr else {
        return Ok(Transformed::no(expr));
    };
    let [value, places] = args.as_mut_slice() else { return Ok(Transformed::no(expr)) };
    if !value.get_type(schema).is_ok_and(|t| t.is_decimal()) {
        return Ok(Transformed::no(expr));
    }
    if let Expr::Literal(literal, _) = places {
        let changed = literal.data_type().is_integer() && literal.data_type() != DataType::Int32;
        if changed && let Ok(int) = literal.cast_to(&DataType::Int32) {
            *places = Expr::Literal(int, None);
        }
        return Ok(Transformed::new_transformed(expr, changed));
    }
    let data_type = expr.get_type(schema)?;
    Ok(Transformed::yes(Expr::Cast(Cast::new(Box::new(expr), data_type))))
}
