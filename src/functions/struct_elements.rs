//! Finds a common type for a list of structs and a single struct, in calls that append the struct
//! to the list or search for it in the list.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;

use super::common_decimal::find_common_decimal;
use super::element_types::{find_element_field, replace_element_type};

/// Returns the types to which the arguments of `array_append`, `array_prepend` or `array_has` must
/// be cast, if they are a list of structs and a struct whose fields have the same names, but other
/// types of numbers. Returns `None` for other calls, and if two fields have no common type.
///
/// DataFusion casts the list to the type of the struct, but not the struct to the type of the list;
/// no upstream issue was found. Remove once the test `stock_structs_are_still_not_widened` in
/// `tests/sql/over_lists.rs` fails.
pub(super) fn widen_structs(function: &str, types: &[DataType]) -> Option<Vec<DataType>> {
    let at = match (function, types) {
        ("array_append" | "array_has", [_, _]) => 0,
        ("array_prepend", [_, _]) => 1,
        _ => return None,
    };
    let (list, value) = (types.get(at)?, types.get(1 - at)?);
    let element = find_element_field(list)?.data_type();
    let (DataType::Struct(elements), DataType::Struct(fields)) = (element, value) else {
        return None;
    };
    let common = DataType::Struct(unify_fields(elements, fields)?);
    let list = replace_element_type(list, common.clone())?;
    Some(if at == 0 { vec![list, common] } else { vec![common, list] })
}

/// Returns the fields `left`, each with the common type of this field and of the field with the
/// same name in `right`. Returns `None` if such a field or type is missing for any of them.
fn unify_fields(left: &Fields, right: &Fields) -> Option<Fields> {
    if left.len() != right.len() {
        return None;
    }
    let unified = left.iter().map(|field| {
        let (_, other) = right.find(field.name())?;
        unify_field(field, other)
    });
    unified.collect()
}

fn unify_field(left: &FieldRef, right: &FieldRef) -> Option<FieldRef> {
    let common = find_common_type(left.data_type(), right.data_type())?;
    let has_null = |field: &FieldRef| field.is_nullable() || field.data_type().is_null();
    Some(Arc::new(Field::new(left.name(), common, has_null(left) || has_null(right))))
}

/// Returns the type to which two types can be cast without a change of values, except that integers
/// next to floats become doubles.
fn find_common_type(left: &DataType, right: &DataType) -> Option<DataType> {
    match (left, right) {
        (left, right) if left == right => Some(left.clone()),
        (DataType::Null, other) | (other, DataType::Null) => Some(other.clone()),
        (DataType::Struct(left), DataType::Struct(right)) => {
            unify_fields(left, right).map(DataType::Struct)
        }
        (DataType::List(left), DataType::List(right)) => {
            unify_field(left, right).map(DataType::List)
        }
        (DataType::LargeList(left), DataType::LargeList(right)) => {
            unify_field(left, right).map(DataType::LargeList)
        }
        (left, right)
            if (left.is_integer() && right.is_integer())
                || (left.is_floating() && right.is_floating())
                || (left.is_string() && right.is_string()) =>
        {
            type_union_coercion(left, right)
        }
        // A double cannot represent all digits of a decimal, so there is no common type.
        (left, right)
            if (left.is_decimal() && right.is_floating())
                || (left.is_floating() && right.is_decimal()) =>
        {
            None
        }
        (left, right) if left.is_numeric() && right.is_numeric() => {
            find_common_decimal(&[left, right])
        }
        _ => None,
    }
}
