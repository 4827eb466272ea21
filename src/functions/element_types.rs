//! The types of list elements.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};

/// Returns the element field of a list type; `None` for list views and for other types.
pub(crate) fn find_element_field(list: &DataType) -> Option<&FieldRef> {
    match list {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            Some(field)
        }
        _ => None,
    }
}

/// Returns the list type `list` with the element field `element`. Returns any other type unchanged.
pub(crate) fn replace_element_field(list: &DataType, element: FieldRef) -> DataType {
    match list {
        DataType::List(_) => DataType::List(element),
        DataType::LargeList(_) => DataType::LargeList(element),
        DataType::FixedSizeList(_, size) => DataType::FixedSizeList(element, *size),
        other => other.clone(),
    }
}

/// Returns the list type `list` with elements of the type `to`, or `None` if `list` is not a list
/// type.
pub(crate) fn replace_element_type(list: &DataType, to: DataType) -> Option<DataType> {
    let element = find_element_field(list)?.as_ref().clone().with_data_type(to);
    Some(replace_element_field(list, Arc::new(element)))
}

/// Returns the list type `lists` with `leaf` in place of the type of its innermost values.
pub(crate) fn replace_leaf(lists: &DataType, leaf: &DataType) -> DataType {
    find_element_field(lists)
        .and_then(|element| replace_element_type(lists, replace_leaf(element.data_type(), leaf)))
        .unwrap_or_else(|| leaf.clone())
}
