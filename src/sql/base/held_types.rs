//! Finds a type within another type.

use arrow::datatypes::DataType;

/// Whether `is` holds for the type `t`, or for a type within `t`: of an element, a field or a
/// dictionary value.
pub(in crate::sql) fn holds_type(t: &DataType, is: fn(&DataType) -> bool) -> bool {
    is(t)
        || match t {
            DataType::List(f)
            | DataType::LargeList(f)
            | DataType::FixedSizeList(f, _)
            | DataType::ListView(f)
            | DataType::LargeListView(f)
            | DataType::Map(f, _) => holds_type(f.data_type(), is),
            DataType::Struct(fields) => fields.iter().any(|f| holds_type(f.data_type(), is)),
            DataType::Union(fields, _) => fields.iter().any(|(_, f)| holds_type(f.data_type(), is)),
            DataType::Dictionary(_, values) => holds_type(values, is),
            DataType::RunEndEncoded(_, values) => holds_type(values.data_type(), is),
            _ => false,
        }
}
