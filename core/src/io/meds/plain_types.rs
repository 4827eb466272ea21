use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields};

use crate::table::promote_types;

/// Simplifies a type. Two types give the same result if they differ only in names of list elements,
/// nullability, kinds of lists, offset widths, or the use of views and dictionaries.
pub fn find_plain_type(t: &DataType) -> DataType {
    use DataType as T;
    match t {
        T::Utf8 | T::LargeUtf8 | T::Utf8View => T::Utf8,
        T::Binary | T::LargeBinary | T::BinaryView => T::Binary,
        T::Dictionary(_, values) => find_plain_type(values),
        T::Struct(fields) => {
            let plain = |f: &FieldRef| Field::new(f.name(), find_plain_type(f.data_type()), true);
            T::Struct(fields.iter().map(plain).collect())
        }
        T::Map(entries, _) => T::Map(make_plain_element("entries", entries), false),
        other => match list_element(other) {
            Some((item, _)) => T::List(make_plain_element("item", item)),
            None => other.clone(),
        },
    }
}

fn make_plain_element(name: &str, field: &FieldRef) -> FieldRef {
    Arc::new(Field::new(name, find_plain_type(field.data_type()), true))
}

/// Returns the common type of `a` and `b`, the types of one column in two files; `None` if there is
/// no common type. Values, elements of lists and fields of structs follow [`promote_types`]; lists
/// get the wider offsets.
pub fn unify_types(a: &DataType, b: &DataType) -> Option<DataType> {
    if let Some(promoted) = promote_types(a, b) {
        return Some(promoted);
    }
    if let (DataType::Struct(a), DataType::Struct(b)) = (a, b) {
        let same_names = a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.name() == b.name());
        let fields = a.iter().zip(b).map(|(a, b)| unify_elements(a, b));
        return same_names.then(|| fields.collect::<Option<Fields>>())?.map(DataType::Struct);
    }
    let ((a, wide), (b, also_wide)) = (list_element(a)?, list_element(b)?);
    let item = unify_elements(a, b)?;
    Some(if wide || also_wide { DataType::LargeList(item) } else { DataType::List(item) })
}

fn unify_elements(a: &FieldRef, b: &FieldRef) -> Option<FieldRef> {
    let unified = unify_types(a.data_type(), b.data_type())?;
    Some(Arc::new(Field::new(a.name(), unified, a.is_nullable() || b.is_nullable())))
}

/// Returns the element field of a list type, and whether its offsets have 64 bits; `None` for other
/// types.
fn list_element(t: &DataType) -> Option<(&FieldRef, bool)> {
    match t {
        DataType::List(f) | DataType::ListView(f) | DataType::FixedSizeList(f, _) => {
            Some((f, false))
        }
        DataType::LargeList(f) | DataType::LargeListView(f) => Some((f, true)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(name: &str, t: DataType) -> DataType {
        DataType::List(Arc::new(Field::new(name, t, true)))
    }

    fn large(name: &str, t: DataType) -> DataType {
        DataType::LargeList(Arc::new(Field::new(name, t, false)))
    }

    #[test]
    fn spellings_of_one_type_are_one() {
        let narrow = list("item", DataType::Utf8);
        assert_eq!(find_plain_type(&large("element", DataType::LargeUtf8)), narrow);
        assert_eq!(find_plain_type(&large("element", DataType::Utf8View)), narrow);
        assert_ne!(find_plain_type(&large("element", DataType::Binary)), narrow);
        let wide = unify_types(&narrow, &large("element", DataType::LargeUtf8)).unwrap();
        assert_eq!(
            wide,
            DataType::LargeList(Arc::new(Field::new("item", DataType::LargeUtf8, true)))
        );
        let deep = unify_types(&list("a", list("b", DataType::Int32)), &large("c", wide.clone()));
        assert_eq!(deep, None);
        let fields = |t| DataType::Struct(vec![Field::new("x", t, true)].into());
        assert_eq!(
            unify_types(&fields(DataType::Int8), &fields(DataType::Int32)),
            Some(fields(DataType::Int32))
        );
        assert_eq!(unify_types(&fields(DataType::Int8), &narrow), None);
    }
}
