//! Tests of a type and of the types within it.

use arrow::datatypes::DataType;

/// Returns whether values of a type are strings: Utf8, LargeUtf8, Utf8View, or a dictionary of
/// these.
pub(crate) fn is_string_like(t: &DataType) -> bool {
    match t {
        DataType::Dictionary(_, values) => is_string_like(values),
        t => t.is_string(),
    }
}

/// Returns whether `is` holds for a type, or for a type within it: of an element, a field or a
/// value of a dictionary.
///
/// ```
/// # use serrate_core as serrate;
/// use arrow::datatypes::DataType;
/// use serrate::internal::holds_type;
/// let lists = DataType::new_list(DataType::Float64, true);
/// assert!(holds_type(&lists, DataType::is_floating));
/// assert!(!holds_type(&lists, DataType::is_string));
/// ```
pub fn holds_type(t: &DataType, is: fn(&DataType) -> bool) -> bool {
    use DataType::{
        Dictionary, FixedSizeList, LargeList, LargeListView, List, ListView, Map, RunEndEncoded,
        Struct, Union,
    };
    is(t)
        || match t {
            List(f) | LargeList(f) | ListView(f) | LargeListView(f) | FixedSizeList(f, _) => {
                holds_type(f.data_type(), is)
            }
            Map(f, _) | RunEndEncoded(_, f) => holds_type(f.data_type(), is),
            Dictionary(_, values) => holds_type(values, is),
            Struct(fields) => fields.iter().any(|f| holds_type(f.data_type(), is)),
            Union(fields, _) => fields.iter().any(|(_, f)| holds_type(f.data_type(), is)),
            _ => false,
        }
}
