use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan};

use super::narrow_floats::{is_beyond, round_to_narrow};
use crate::functions::{find_element_field, replace_element_type};
use crate::sql::base::compared_operands::{list_compared_operands, searches_list};
use crate::sql::base::expression_parts::rewrite_parts;

/// Analyzer rule, before type coercion: compares float32 and float16 values with a string literal
/// such as `'1e300'` as doubles if the number in the string is beyond their range.
///
/// Type coercion casts the string to the type of the values. In this type, `'1e300'` becomes
/// infinity, so that infinite values would equal it. A number beyond the range of doubles, such as
/// `'1e400'`, is an error. Other strings stay unchanged, because `x = '0.1'` must be true for the
/// float32 0.1.
pub(in crate::sql) fn compare_large_texts(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_parts(plan, has_large_text, |mut e, columns| {
        let changed = match &mut e {
            Expr::ScalarFunction(call) if searches_list(call.name()) => {
                convert_search(&mut call.args, columns)?
            }
            e => convert_compared(list_compared_operands(e), columns)?,
        };
        Ok(Transformed::new_transformed(e, changed))
    })
}

/// Whether `e` is a literal string, or a literal list of strings, with a number that is at least as
/// large in magnitude as the largest float16.
fn has_large_text(e: &Expr) -> bool {
    find_texts(e).iter().any(|text| {
        let number = text.try_as_str().flatten().and_then(|text| text.trim().parse::<f64>().ok());
        number.is_some_and(|x| x.abs() >= 65504.0)
    })
}

/// Returns the strings in a literal string or in a literal list of strings; none for other
/// expressions.
fn find_texts(e: &Expr) -> Vec<ScalarValue> {
    let Expr::Literal(value, _) = e else { return vec![] };
    if value.data_type().is_string() {
        return vec![value.clone()];
    }
    let is_list = find_element_field(&value.data_type()).is_some_and(|f| f.data_type().is_string());
    if !is_list || value.is_null() {
        return vec![];
    }
    let lists = value.to_array().and_then(|list| ScalarValue::convert_array_to_scalar_vec(&list));
    lists.map_or_else(|_| vec![], |lists| lists.into_iter().flatten().flatten().collect())
}

/// Converts the expressions that are compared with each other to doubles if some are floats and one
/// is a string with a number beyond the range of their type. Returns whether it changed them.
fn convert_compared(parts: Vec<&mut Expr>, schema: &DFSchema) -> Result<bool> {
    let is_text = |e: &Expr| matches!(e, Expr::Literal(v, _) if v.data_type().is_string());
    let mut float: Option<DataType> = None;
    for part in parts.iter().filter(|part| !is_text(part)) {
        match part.get_type(schema) {
            Ok(t) if t.is_floating() => {
                float = match float {
                    Some(wider) if wider.primitive_width() >= t.primitive_width() => Some(wider),
                    _ => Some(t),
                }
            }
            Ok(t) if t.is_integer() || t.is_null() => {}
            _ => return Ok(false),
        }
    }
    let Some(float) = float else { return Ok(false) };
    let texts: Vec<ScalarValue> = parts.iter().flat_map(|part| find_texts(part)).collect();
    if !needs_doubles(&texts, &float)? {
        return Ok(false);
    }
    for part in parts {
        match part {
            Expr::Literal(value, _) if value.data_type().is_string() => {
                if let Some(double) = round_to_narrow(value, &float) {
                    *value = double;
                }
            }
            _ => *part = cast_to(part, DataType::Float64),
        }
    }
    Ok(true)
}

/// Does the same as [`convert_compared`] for the first two arguments of a function such as
/// `array_has`, a list and the value or list that is searched in it.
fn convert_search(args: &mut [Expr], schema: &DFSchema) -> Result<bool> {
    let [list, wanted, ..] = args else { return Ok(false) };
    let (Ok(of_list), Ok(of_wanted)) = (list.get_type(schema), wanted.get_type(schema)) else {
        return Ok(false);
    };
    let leaf =
        |t: &DataType| find_element_field(t).map_or_else(|| t.clone(), |f| f.data_type().clone());
    let (texts, other, other_type) = match (leaf(&of_list), leaf(&of_wanted)) {
        (float, text) if float.is_floating() && text.is_string() => (wanted, list, of_list),
        (text, float) if float.is_floating() && text.is_string() => (list, wanted, of_wanted),
        _ => return Ok(false),
    };
    let float = leaf(&other_type);
    let numbers = find_texts(texts);
    if !needs_doubles(&numbers, &float)? {
        return Ok(false);
    }
    let doubles: Option<Vec<ScalarValue>> =
        numbers.iter().map(|text| round_to_narrow(text, &float)).collect();
    let Some(doubles) = doubles else { return Ok(false) };
    let is_list = matches!(texts, Expr::Literal(value, _) if !value.data_type().is_string());
    let changed = match (is_list, doubles.as_slice()) {
        (true, doubles) => {
            ScalarValue::List(ScalarValue::new_list_nullable(doubles, &DataType::Float64))
        }
        (false, [double]) => double.clone(),
        _ => return Ok(false),
    };
    let to = replace_element_type(&other_type, DataType::Float64).unwrap_or(DataType::Float64);
    *other = cast_to(other, to);
    *texts = Expr::Literal(changed, None);
    Ok(true)
}

/// Whether one of the numbers in `texts` is beyond the range of `float`, and all strings are
/// numbers or NULL.
fn needs_doubles(texts: &[ScalarValue], float: &DataType) -> Result<bool> {
    if let Some(text) = texts.iter().find(|text| is_beyond(text, &DataType::Float64)) {
        return plan_err!(
            "the number in the string '{}' is beyond the range of Float64; write 'inf' or '-inf' to compare with infinity",
            text
        );
    }
    Ok(texts.iter().any(|text| is_beyond(text, float))
        && texts.iter().all(|text| round_to_narrow(text, float).is_some()))
}

fn cast_to(e: &mut Expr, to: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(std::mem::take(e)), to))
}
