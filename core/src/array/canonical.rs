//! Canonical floats have one zero (0.0) and one NaN, so that their bits can be compared and hashed.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, make_array};
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};
use half::f16;

use super::nested_types::holds_type;
use crate::error::Result;

/// Returns whether values of a type are, or contain, floats.
pub fn holds_float(t: &DataType) -> bool {
    holds_type(t, DataType::is_floating)
}

/// Replaces -0.0 with 0.0 and every NaN with the positive quiet NaN, in lists and structs, too.
/// Nulls stay null.
///
/// The sign matters for sorting: x86 CPUs set the sign bit of the NaN of 0.0 / 0.0, and a NaN with
/// this bit sorts below all numbers in the total order of IEEE 754.
pub fn to_canonical_floats(values: &ArrayRef) -> Result<ArrayRef> {
    macro_rules! canonical {
        ($t:ty, $float:ty) => {{
            let one = |v: $float| if v.is_nan() { <$float>::NAN } else { v + <$float>::from(0i8) };
            Arc::new(values.as_primitive::<$t>().unary::<_, $t>(one)) as ArrayRef
        }};
    }
    Ok(match values.data_type() {
        DataType::Float16 => canonical!(Float16Type, f16),
        DataType::Float32 => canonical!(Float32Type, f32),
        DataType::Float64 => canonical!(Float64Type, f64),
        t if !holds_float(t) => Arc::clone(values),
        _ => {
            let data = values.to_data();
            let children: Result<Vec<_>> = data
                .child_data()
                .iter()
                .map(|child| Ok(to_canonical_floats(&make_array(child.clone()))?.to_data()))
                .collect();
            make_array(data.into_builder().child_data(children?).build()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float32Array, ListArray, StructArray};
    use arrow::datatypes::{Field, Fields};

    use super::*;

    fn bits(values: &ArrayRef) -> Vec<Option<u32>> {
        values.as_primitive::<Float32Type>().iter().map(|v| v.map(f32::to_bits)).collect()
    }

    #[test]
    fn leaves_of_sliced_lists_and_structs_are_canonical() {
        let rows = vec![
            Some(vec![Some(9.0)]),
            Some(vec![Some(-0.0), None, Some(-f32::NAN)]),
            None,
            Some(vec![Some(f32::from_bits(0x7fc0_1234)), Some(-2.5)]),
        ];
        let lists = ListArray::from_iter_primitive::<Float32Type, _, _>(rows).slice(1, 3);
        let fields = Fields::from(vec![Field::new("x", lists.data_type().clone(), true)]);
        let structs: ArrayRef =
            Arc::new(StructArray::new(fields, vec![Arc::new(lists.clone())], None));
        let found = to_canonical_floats(&structs).unwrap();
        assert_eq!(found.data_type(), structs.data_type());
        let found = found.as_struct().column(0).as_list::<i32>().clone();
        let nan = f32::NAN.to_bits();
        assert_eq!(bits(&found.value(0)), [Some(0), None, Some(nan)]);
        assert!(found.is_null(1));
        assert_eq!(bits(&found.value(2)), [Some(nan), Some((-2.5f32).to_bits())]);
    }

    #[test]
    fn other_types_are_returned_as_they_are() {
        let floats: ArrayRef = Arc::new(Float32Array::from(vec![1.0]));
        assert!(holds_float(floats.data_type()));
        let texts: ArrayRef = Arc::new(arrow::array::StringArray::from(vec!["-0.0"]));
        assert!(!holds_float(texts.data_type()));
        assert!(Arc::ptr_eq(&to_canonical_floats(&texts).unwrap(), &texts));
    }
}
