use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan};

use crate::array::{leaf_type, list_depth};
use crate::functions::{fold_constant, is_ours, is_row_based, replace_leaf};
use crate::sql::base::expression_parts::rewrite_parts;

/// Functions that round a constant to the type of float32 or float16 values.
const ROUNDING: [&str; 8] = [
    "ragged_between",
    "ragged_eq",
    "ragged_ne",
    "ragged_lt",
    "ragged_le",
    "ragged_gt",
    "ragged_ge",
    "ragged_isin",
];

/// Analyzer rule: compares float32 and float16 values of lists with doubles and decimals of columns
/// and subqueries as doubles.
///
/// The functions of [`ROUNDING`] round a constant to the type of the values, so that `x = 0.1` is
/// true for the float32 0.1. When the function runs, a scalar subquery is also a constant, and so
/// is a column that the optimizer has replaced with its only value. These must not be rounded,
/// because the answer must be the same as for a column of a table. If the other bound of
/// `ragged_between` is a literal, the rule itself rounds this literal. Decimal literals become
/// doubles, as operators such as `x = 0.1::DECIMAL(2, 1)` make them, so that the functions round
/// them as well.
pub(in crate::sql) fn compare_as_doubles(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_affected = |e: &Expr| match e {
        Expr::ScalarFunction(call) => ROUNDING.contains(&call.name()) && is_ours(&call.func),
        _ => false,
    };
    rewrite_parts(plan, is_affected, |e, columns| {
        Ok(match e {
            Expr::ScalarFunction(call) if ROUNDING.contains(&call.name()) => {
                cast_to_doubles(call, columns)
            }
            e => Transformed::no(e),
        })
    })
}

/// Casts the values that a call compares to doubles if it compares them with doubles that are not
/// literals.
fn cast_to_doubles(mut call: ScalarFunction, columns: &DFSchema) -> Transformed<Expr> {
    match find_doubles(&call, columns) {
        Some(replaced) => {
            for (at, double) in replaced {
                call.args[at] = double;
            }
            Transformed::yes(Expr::ScalarFunction(call))
        }
        None => Transformed::no(Expr::ScalarFunction(call)),
    }
}

/// Returns the arguments of `call` that must be replaced, each with its index: the list of float32
/// or float16 values, which is cast to doubles, and the literals that are compared with it, which
/// are rounded to the type of the values. If the list is compared only with literals, the list
/// stays unchanged, and only the decimals among the literals are replaced, with doubles. Returns
/// `None` if the call stays unchanged.
fn find_doubles(call: &ScalarFunction, columns: &DFSchema) -> Option<Vec<(usize, Expr)>> {
    let types = call.args.iter().map(|arg| arg.get_type(columns));
    let types = types.collect::<Result<Vec<_>>>().ok()?;
    let is_list = |at: usize| types.get(at).is_some_and(|t| list_depth(t) > 0);
    let (at, others) = match (call.name(), call.args.as_slice()) {
        ("ragged_isin", [_, _]) => (0, 1..2),
        // If the second argument is a list, such as a list of times, the bounds apply to it.
        ("ragged_between", [_, _, _]) => (0, 1..3),
        ("ragged_between", [_, _, _, _]) if !is_list(1) => (0, 1..3),
        ("ragged_between", [_, _, _, _, _]) => (1, 2..4),
        ("ragged_between", _) => return None,
        (_, [_, _]) if !is_list(1) => (0, 1..2),
        (_, [_, _]) if !is_list(0) => (1, 0..1),
        _ => return None,
    };
    let leaf = find_value_type(types.get(at)?);
    if !is_list(at) || !matches!(leaf, DataType::Float16 | DataType::Float32) {
        return None;
    }
    let mut has_double = false;
    let mut literals = Vec::new();
    for other in others {
        let given = find_value_type(types.get(other)?);
        let is_wider = given.is_floating() && given != leaf;
        match is_row_based(&call.args[other]) {
            false if is_wider || given.is_decimal() || given.is_string() => literals.push(other),
            true if is_wider || given.is_decimal() => has_double = true,
            _ => {}
        }
    }
    if !has_double {
        // The function rounds a literal double, but not a decimal.
        let decimals = literals.into_iter().filter(|other| types[*other].is_decimal());
        let doubles = decimals.map(|other| {
            let literal = fold_constant(call.args[other].clone(), columns)?;
            let double = literal.as_literal()?.cast_to(&DataType::Float64).ok()?;
            Some((other, Expr::Literal(double, None)))
        });
        let doubles = doubles.collect::<Option<Vec<_>>>()?;
        return (!doubles.is_empty()).then_some(doubles);
    }
    let doubles = replace_leaf(&types[at], &DataType::Float64);
    let values = Expr::Cast(Cast::new(Box::new(call.args[at].clone()), doubles));
    let mut replaced = vec![(at, values)];
    for other in literals {
        let literal = fold_constant(call.args[other].clone(), columns)?;
        let double = round_to_narrow(literal.as_literal()?, leaf)?;
        replaced.push((other, Expr::Literal(double, None)));
    }
    Some(replaced)
}

/// Returns the double with which values of the float type `narrow` are compared for the literal
/// number or string `literal`: the number rounded to `narrow`, or the number itself if it is finite
/// and beyond the range of `narrow`. Returns `None` for a string that is not a number or is beyond
/// the range of doubles.
pub(super) fn round_to_narrow(literal: &ScalarValue, narrow: &DataType) -> Option<ScalarValue> {
    let exact = literal.cast_to(&DataType::Float64).ok()?;
    let rounded = literal.cast_to(narrow).ok()?.cast_to(&DataType::Float64).ok()?;
    let is_infinite =
        |x: &ScalarValue| matches!(x, ScalarValue::Float64(Some(x)) if x.is_infinite());
    match is_infinite(&rounded) {
        true if is_beyond(literal, &DataType::Float64) => None,
        true => Some(exact),
        false => Some(rounded),
    }
}

/// Whether `literal` is a string with a number beyond the range of the float type `float`. The
/// strings `'inf'` and `'-inf'` are infinite and not beyond the range.
pub(super) fn is_beyond(literal: &ScalarValue, float: &DataType) -> bool {
    let text = literal.try_as_str().flatten();
    let has_digit = text.is_some_and(|text| text.bytes().any(|byte| byte.is_ascii_digit()));
    let cast = |value: &ScalarValue, to: &DataType| value.cast_to(to).ok();
    let double = || cast(&cast(literal, float)?, &DataType::Float64);
    has_digit && matches!(double(), Some(ScalarValue::Float64(Some(x))) if x.is_infinite())
}

/// Returns the type of the values of lists, also of those in a dictionary.
fn find_value_type(lists: &DataType) -> &DataType {
    match leaf_type(lists) {
        DataType::Dictionary(_, values) => values,
        leaf => leaf,
    }
}
