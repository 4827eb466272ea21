//! How much memory a constant takes when it is repeated for the rows of a batch.

use arrow::array::{Array, ArrayData};
use datafusion::scalar::ScalarValue;

/// Number of bytes that DataFusion allocates for each list element when it repeats a list: it
/// gathers the elements by 64-bit indexes.
const INDEX_BYTES: usize = size_of::<u64>();

/// Estimates the bytes per row that DataFusion allocates to repeat a constant. Returns 0 for values
/// of a few bytes, such as numbers and times.
pub(crate) fn count_repeated_bytes(value: &ScalarValue) -> usize {
    match value {
        ScalarValue::Binary(Some(bytes))
        | ScalarValue::BinaryView(Some(bytes))
        | ScalarValue::LargeBinary(Some(bytes))
        | ScalarValue::FixedSizeBinary(_, Some(bytes)) => bytes.len(),
        ScalarValue::Dictionary(_, value) => count_repeated_bytes(value),
        value if value.data_type().is_nested() => {
            value.to_array().map_or(0, |array| count_data_bytes(&array.to_data()))
        }
        value => value.try_as_str().flatten().map_or(0, str::len),
    }
}

fn count_data_bytes(data: &ArrayData) -> usize {
    let values = data.get_slice_memory_size().unwrap_or_else(|_| data.get_array_memory_size());
    values.saturating_add(count_elements(data).saturating_mul(INDEX_BYTES))
}

/// Counts the elements of lists at all depths, and the values of the fields of structs.
fn count_elements(data: &ArrayData) -> usize {
    let below = |child: &ArrayData| child.len().saturating_add(count_elements(child));
    data.child_data().iter().map(below).fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, FixedSizeListArray, ListArray};
    use arrow::datatypes::{Field, Int64Type};

    use super::*;

    #[test]
    fn lists_and_strings_have_bytes_per_element() {
        assert_eq!(count_repeated_bytes(&ScalarValue::from(7i64)), 0);
        assert_eq!(count_repeated_bytes(&ScalarValue::from("abc")), 3);
        assert_eq!(count_repeated_bytes(&ScalarValue::Utf8(None)), 0);
        let rows = vec![Some(vec![Some(1); 9]), Some(vec![Some(2); 1000])];
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows));
        let short = count_repeated_bytes(&ScalarValue::try_from_array(&lists, 0).unwrap());
        let long = count_repeated_bytes(&ScalarValue::try_from_array(&lists, 1).unwrap());
        assert!((144..1000).contains(&short) && (16_000..17_000).contains(&long), "{short} {long}");
        // A boolean takes one bit, but the index with which DataFusion copies it takes 64 bits.
        let flags: ArrayRef = Arc::new(arrow::array::BooleanArray::from(vec![true; 800]));
        let item = Arc::new(Field::new_list_field(flags.data_type().clone(), true));
        let tensor = FixedSizeListArray::new(item, 800, flags, None);
        let tensor = count_repeated_bytes(&ScalarValue::FixedSizeList(Arc::new(tensor)));
        assert!((6400..7000).contains(&tensor), "{tensor}");
    }
}
