//! Keeps the digits of number literals that are used as decimals.

use std::ops::ControlFlow;

use datafusion::logical_expr::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, StructField, UnaryOperator, Value, VisitMut, VisitorMut,
};

use crate::functions::WITH_DIGITS;
use crate::sql::base::syntax::{to_plain_name, unquote_text};
use crate::sql::statement::folding::fold_name;

/// Rewrites literals in a statement:
///
/// * The number in `CAST(1.005 AS DECIMAL(10, 2))` becomes a string, because the double closest to
///   1.005 is less than 1.005. So does a number in a struct, or in a list with other expressions
///   than literals, that is cast to a type with decimals.
/// * In comparisons, BETWEEN and IN, and as the element for which `list_contains` and the like
///   search, a number of 16 to 38 digits becomes a custom operator of the number and its text, so
///   that the planner can compare all digits with a decimal.
pub(in crate::sql) fn keep_digits<S: VisitMut>(statement: &mut S) {
    let _ = statement.visit(&mut LongNumberRewriter);
}

/// The functions that search a list, their first argument, for an element, their second argument.
const SEARCHES: [&str; 10] = [
    "array_contains",
    "array_has",
    "array_indexof",
    "array_position",
    "array_positions",
    "list_contains",
    "list_has",
    "list_indexof",
    "list_position",
    "list_positions",
];

struct LongNumberRewriter;

impl VisitorMut for LongNumberRewriter {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Cast {
                expr,
                data_type: DataType::Decimal(_) | DataType::Numeric(_) | DataType::Dec(_),
                ..
            } => {
                if let Some(digits) = find_decimal(expr) {
                    **expr = Expr::value(Value::SingleQuotedString(digits));
                }
            }
            // The planner makes one literal of a list of literals, and casts it by the digits.
            Expr::Cast { kind, expr, data_type, .. } if !is_literal_list(expr) => {
                cast_parts(expr, data_type, kind);
            }
            Expr::BinaryOp { left, op, right } if is_comparison(op) => {
                mark_number(left);
                mark_number(right);
            }
            Expr::Between { expr, low, high, .. } => {
                mark_number(expr);
                mark_number(low);
                mark_number(high);
            }
            Expr::InList { expr, list, .. } => {
                mark_number(expr);
                list.iter_mut().for_each(mark_number);
            }
            Expr::Function(call) if is_search(call) => {
                let FunctionArguments::List(list) = &mut call.args else {
                    return ControlFlow::Continue(());
                };
                if let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(wanted))) =
                    list.args.get_mut(1)
                {
                    mark_number(wanted);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn is_literal_list(e: &Expr) -> bool {
    match e {
        Expr::Nested(inner) => is_literal_list(inner),
        Expr::Array(list) => list.elem.iter().all(|e| is_literal(e) || is_literal_list(e)),
        _ => false,
    }
}

fn is_literal(e: &Expr) -> bool {
    match e {
        Expr::Value(_) => true,
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => matches!(**expr, Expr::Value(_)),
        _ => false,
    }
}

/// Casts the numbers in the lists and structs of `value`, which is cast to the type `to`, to the
/// decimals that they become. The visitor then visits these casts.
fn cast_parts(value: &mut Expr, to: &DataType, kind: &CastKind) {
    match (value, to) {
        (Expr::Nested(inner), to) => cast_parts(inner, to, kind),
        (
            Expr::Array(list),
            DataType::Array(
                ArrayElemTypeDef::AngleBracket(item)
                | ArrayElemTypeDef::SquareBracket(item, _)
                | ArrayElemTypeDef::Parenthesis(item),
            ),
        ) => list.elem.iter_mut().for_each(|element| cast_part(element, item, kind)),
        (Expr::Dictionary(entries), DataType::Struct(fields, _)) => {
            for entry in entries {
                if let Some(of) = find_field_type(fields, &entry.key.value) {
                    cast_part(&mut entry.value, of, kind);
                }
            }
        }
        // Rows, such as `row(1.005)`, are calls of this function at this point.
        (Expr::Function(call), DataType::Struct(fields, _))
            if to_plain_name(&call.name).is_some_and(|name| name == "named_struct") =>
        {
            let FunctionArguments::List(list) = &mut call.args else { return };
            for pair in list.args.chunks_exact_mut(2) {
                if let [
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(name)),
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(value)),
                ] = pair
                    && let Some(of) = unquote_text(name).and_then(|n| find_field_type(fields, n))
                {
                    cast_part(value, of, kind);
                }
            }
        }
        _ => {}
    }
}

fn cast_part(value: &mut Expr, to: &DataType, kind: &CastKind) {
    let is_decimal = matches!(to, DataType::Decimal(_) | DataType::Numeric(_) | DataType::Dec(_));
    if !(is_decimal && find_decimal(value).is_some()) {
        return cast_parts(value, to, kind);
    }
    let number = std::mem::replace(value, Expr::value(Value::Null));
    *value = Expr::Cast {
        kind: kind.clone(),
        expr: Box::new(number),
        data_type: to.clone(),
        array: false,
        format: None,
    };
}

fn find_field_type<'a>(fields: &'a [StructField], name: &str) -> Option<&'a DataType> {
    let is_named =
        |field: &&StructField| field.field_name.as_ref().is_some_and(|own| fold_name(own) == name);
    fields.iter().find(is_named).map(|field| &field.field_type)
}

fn is_search(call: &Function) -> bool {
    to_plain_name(&call.name).is_some_and(|name| SEARCHES.contains(&name.as_str()))
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

fn mark_number(e: &mut Expr) {
    if let Some(digits) = find_digits(e) {
        let number = std::mem::replace(e, Expr::value(Value::Null));
        *e = Expr::BinaryOp {
            left: Box::new(number),
            op: BinaryOperator::Custom(WITH_DIGITS.to_owned()),
            right: Box::new(Expr::value(Value::SingleQuotedString(digits))),
        };
    }
}

/// Returns the text of a number literal with 16 to 38 digits that DataFusion would plan as a
/// double, or `None` for any other expression.
fn find_digits(e: &Expr) -> Option<String> {
    let (text, digits) = find_plain_double(e)?;
    (16..=38).contains(&digits).then_some(text)
}

/// Returns the text of a number literal that DataFusion would plan as a double, if it has at most
/// 38 digits, the maximum of decimals. Returns `None` for any other expression.
fn find_decimal(e: &Expr) -> Option<String> {
    let (text, digits) = find_plain_double(e)?;
    (digits <= 38).then_some(text)
}

/// Returns the text and the number of digits of a number that is planned as a double, such as
/// `1.005` or `-1.5`. Returns `None` for a number with an exponent, and for any other expression.
fn find_plain_double(e: &Expr) -> Option<(String, usize)> {
    let (minus, value) = match e {
        Expr::Value(value) => ("", &value.value),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match &**expr {
            Expr::Value(value) => ("-", &value.value),
            _ => return None,
        },
        Expr::Nested(inner) => return find_plain_double(inner),
        _ => return None,
    };
    let Value::Number(number, _) = value else { return None };
    let digits = number.trim_start_matches('0').bytes().filter(u8::is_ascii_digit).count();
    let is_plain = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    (is_plain && number.parse::<u64>().is_err()).then(|| (format!("{minus}{number}"), digits))
}
