use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray,
    downcast_primitive_array, make_array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::DataType;

use crate::error::{Error, Result};

/// Returns the array `values` with the validity bitmap `nulls` instead of its own.
///
/// # Errors
/// If the validity and the values differ in length, or the type has no validity bitmap.
pub fn replace_validity(values: &ArrayRef, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let nulls = nulls.filter(|n| n.null_count() > 0);
    if let Some(nulls) = nulls.as_ref().filter(|n| n.len() != values.len()) {
        return Err(Error::invalid(format!(
            "the validity bitmap has {} bit(s) for {} value(s); give one bit per value",
            nulls.len(),
            values.len()
        )));
    }
    // Avoid `ArrayData` if possible: it recounts the nulls, which takes as long as summing the
    // values.
    Ok(downcast_primitive_array! {
        values => replace_nulls(values, nulls),
        DataType::Boolean => {
            Arc::new(BooleanArray::new(values.as_boolean().values().clone(), nulls))
        }
        _ => make_array(values.to_data().into_builder().nulls(nulls).build()?),
    })
}

fn replace_nulls<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    let values = PrimitiveArray::<T>::new(array.values().clone(), nulls);
    Arc::new(values.with_data_type(array.data_type().clone()))
}

/// Returns the validity of `values`, or `None` if no value is null. A dictionary key whose value is
/// null counts as null.
pub(crate) fn find_validity(values: &dyn Array) -> Option<NullBuffer> {
    values.logical_nulls().filter(|n| n.null_count() > 0)
}

/// Returns a bitmap whose bits are set where `mask` is true and not null.
pub fn find_true_bits(mask: &BooleanArray) -> BooleanBuffer {
    match mask.nulls() {
        Some(nulls) => mask.values() & nulls.inner(),
        None => mask.values().clone(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int32Array, NullArray, StringArray};

    use super::*;

    #[test]
    fn values_stay_and_nulls_are_those_given() {
        let given: [ArrayRef; 3] = [
            Arc::new(Int32Array::from(vec![Some(1), None, Some(3), Some(4)]).slice(1, 3)),
            Arc::new(BooleanArray::from(vec![true, false, true]).slice(0, 3)),
            Arc::new(StringArray::from(vec!["a", "b", "c", "d"]).slice(1, 3)),
        ];
        for values in &given {
            let out = replace_validity(values, Some(vec![true, false, true].into())).unwrap();
            out.to_data().validate_full().unwrap();
            assert_eq!(out.null_count(), 1);
            assert!(out.is_null(1));
            assert_eq!(*out.slice(2, 1), *values.slice(2, 1));
            assert_eq!(replace_validity(values, None).unwrap().null_count(), 0);
            let message =
                replace_validity(values, Some(vec![false].into())).unwrap_err().to_string();
            assert_eq!(
                message,
                "the validity bitmap has 1 bit(s) for 3 value(s); give one bit per value"
            );
        }
        let none: ArrayRef = Arc::new(NullArray::new(2));
        assert!(replace_validity(&none, Some(vec![true, false].into())).is_err());
    }
}
