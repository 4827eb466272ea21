//! Finds the common type of decimals and floats, also of lists and structs that contain these.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;

use crate::functions::{find_element_field, replace_element_type};

/// Returns doubles in place of `types` if they mix decimals with floats, or float16 with an integer
/// type whose values float16 cannot all represent: `[DECIMAL, FLOAT]` becomes `[DOUBLE, DOUBLE]`.
/// Does the same for the elements of lists and the fields of structs. Returns `None` if no type
/// changes.
pub(super) fn convert_types_to_doubles(types: &[DataType]) -> Option<Vec<DataType>> {
    convert_if(types, lose_values)
}

/// Does the same as [`convert_types_to_doubles`], but for values that are compared. Therefore it
/// also returns doubles if integers and float32 are mixed, because a float32 would round the
/// integers.
pub(super) fn convert_compared_to_doubles(types: &[DataType]) -> Option<Vec<DataType>> {
    convert_if(types, compare_as_doubles)
}

/// Whether the float type `float` cannot represent some values of `t`, an integer type.
pub(super) fn rounds_integers(float: &DataType, t: &DataType) -> bool {
    use DataType::{Float16, Float32, Int8, Int32, Int64, UInt8, UInt32, UInt64};
    match float {
        Float16 => t.is_integer() && !matches!(t, Int8 | UInt8),
        Float32 => matches!(t, Int32 | Int64 | UInt32 | UInt64),
        _ => false,
    }
}

/// Whether the common type that DataFusion chooses for `types` would lose values: it chooses a
/// decimal for decimals and floats, and float16 for float16 and any integers.
fn lose_values(types: &[&DataType]) -> bool {
    let has_half = types.iter().any(|t| **t == DataType::Float16);
    let rounds = has_half && types.iter().any(|t| rounds_integers(&DataType::Float16, t));
    rounds || mixes_decimals(types)
}

fn compare_as_doubles(types: &[&DataType]) -> bool {
    let rounds = types.iter().any(|float| types.iter().any(|t| rounds_integers(float, t)));
    rounds || mixes_decimals(types)
}

fn mixes_decimals(types: &[&DataType]) -> bool {
    types.iter().any(|t| t.is_decimal()) && types.iter().any(|t| t.is_floating())
}

/// Returns doubles in place of numeric `types` if `is_mixed` is true for them. Does the same for
/// the elements of lists, and for each field of structs. Returns `None` if no type changes.
fn convert_if(types: &[DataType], is_mixed: fn(&[&DataType]) -> bool) -> Option<Vec<DataType>> {
    let known: Vec<&DataType> = types.iter().filter(|t| !t.is_null()).collect();
    let replaced: Vec<DataType> = if known.iter().all(|t| t.is_numeric()) {
        is_mixed(&known).then(|| vec![DataType::Float64; known.len()])?
    } else if let Some(elements) =
        known.iter().map(|t| find_element_field(t)).collect::<Option<Vec<_>>>()
    {
        let of_elements: Vec<DataType> = elements.iter().map(|f| f.data_type().clone()).collect();
        let doubles = convert_if(&of_elements, is_mixed)?;
        let lists = known.iter().zip(doubles).map(|(list, to)| replace_element_type(list, to));
        lists.collect::<Option<_>>()?
    } else {
        convert_structs_if(&known, is_mixed)?
    };
    let mut replaced = replaced.into_iter();
    let all = types.iter().map(|t| if t.is_null() { Some(t.clone()) } else { replaced.next() });
    all.collect()
}

/// Does the same as [`convert_if`] for each field of struct types. Returns `None` if no field
/// changes, or if the structs differ in the names of their fields.
fn convert_structs_if(
    types: &[&DataType],
    is_mixed: fn(&[&DataType]) -> bool,
) -> Option<Vec<DataType>> {
    let fields = types.iter().map(|t| match t {
        DataType::Struct(fields) => Some(fields.to_vec()),
        _ => None,
    });
    let mut structs: Vec<Vec<FieldRef>> = fields.collect::<Option<_>>()?;
    let names = |fields: &[FieldRef]| fields.iter().map(|f| f.name().clone()).collect::<Vec<_>>();
    let first = names(structs.first()?);
    if structs.iter().any(|fields| names(fields) != first) {
        return None;
    }
    let mut changed = false;
    for at in 0..first.len() {
        let column: Vec<DataType> = structs.iter().map(|s| s[at].data_type().clone()).collect();
        let Some(doubles) = convert_if(&column, is_mixed) else { continue };
        for (fields, to) in structs.iter_mut().zip(doubles) {
            fields[at] = Arc::new(fields[at].as_ref().clone().with_data_type(to));
        }
        changed = true;
    }
    changed.then(|| structs.into_iter().map(|fields| DataType::Struct(fields.into())).collect())
}

/// Returns a decimal literal with the digits of the double literal `e`. Returns `None` if `e` has
/// more than 15 digits or is not a double literal.
pub(super) fn to_written_decimal(e: &Expr) -> Option<Expr> {
    let Expr::Literal(ScalarValue::Float64(Some(value)), _) = e else { return None };
    let text = value.to_string();
    let digits = text.trim_start_matches('-');
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let (whole, scale) = (whole.trim_start_matches('0'), i8::try_from(fraction.len()).ok()?);
    let precision = u8::try_from(whole.len() + fraction.len()).ok()?.max(1);
    if !value.is_finite() || precision > 15 {
        return None;
    }
    let text = ScalarValue::from(text);
    let decimal = text.cast_to(&DataType::Decimal128(precision, scale)).ok()?;
    (!decimal.is_null()).then_some(Expr::Literal(decimal, None))
}
