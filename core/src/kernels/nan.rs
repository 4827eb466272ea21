//! Conversion of NaN to null, for formats that support only one of them.

use arrow::array::{Array, ArrayRef, Float16Array, Float32Array, Float64Array};
use arrow::buffer::NullBuffer;
use half::f16;

use super::flags::{ValuePredicate, collect_flags};
use crate::array::nulls::replace_validity;
use crate::error::Result;
use crate::table::{Column, RaggedTable};

/// Replaces NaN with null.
///
/// Arrays without NaN and arrays of other types are returned unchanged.
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Arc;
/// use arrow::array::{Array, ArrayRef, Float32Array};
/// use serrate::kernels::nan::nan_to_null;
/// let values: ArrayRef = Arc::new(Float32Array::from(vec![1.0, f32::NAN]));
/// let values = nan_to_null(&values)?;
/// assert!(values.is_valid(0) && values.is_null(1));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Never: the validity has one bit per value.
pub fn nan_to_null(values: &ArrayRef) -> Result<ArrayRef> {
    let any = values.as_any();
    let valid = if let Some(v) = any.downcast_ref::<Float32Array>() {
        collect_flags(v.values(), IsNumber)
    } else if let Some(v) = any.downcast_ref::<Float64Array>() {
        collect_flags(v.values(), IsNumber)
    } else if let Some(v) = any.downcast_ref::<Float16Array>() {
        collect_flags(v.values(), IsNumber)
    } else {
        return Ok(values.clone());
    };
    let valid = NullBuffer::new(valid);
    if valid.null_count() == 0 {
        return Ok(values.clone());
    }
    let nulls = NullBuffer::union(values.nulls(), Some(&valid));
    replace_validity(values, nulls)
}

impl RaggedTable {
    /// Replaces NaN with null in all columns, without copying values.
    ///
    /// The `.nrt` format (nested ragged tensors) stores nulls as NaN; by default, SQL replaces NaN
    /// when it reads such a file.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use serrate::arrow::array::{Array, Float32Array};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .column("weight", 0, Arc::new(Float32Array::from(vec![70.5, f32::NAN])))
    ///     .build()?;
    /// assert_eq!(table.nan_to_null()?.column("weight")?.values().null_count(), 1);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Never: the columns keep their names, axes and lengths.
    pub fn nan_to_null(&self) -> Result<Self> {
        let columns = self.columns().iter().map(|c| {
            let values = nan_to_null(c.values())?;
            let nullable = c.field().is_nullable() || values.null_count() > 0;
            let field = c.field().as_ref().clone().with_nullable(nullable);
            let column = Column::with_field(field.into(), c.axis(), values);
            Ok(column.with_list_nulls(c.list_nulls().to_vec()))
        });
        self.with_columns(columns.collect::<Result<_>>()?)
    }
}

#[derive(Clone, Copy)]
struct IsNumber;

macro_rules! is_number {
    ($($t:ty),*) => {$(
        impl ValuePredicate<$t> for IsNumber {
            #[inline(always)]
            fn holds(self, value: $t) -> bool {
                !value.is_nan()
            }
        }
    )*};
}
is_number!(f16, f32, f64);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn every_width_of_float_in_a_slice_with_nulls() {
        let arrays: [ArrayRef; 3] = [
            Arc::new(Float16Array::from(vec![
                Some(f16::NAN),
                Some(f16::NAN),
                None,
                Some(f16::from_f32(1.5)),
                Some(f16::NAN),
            ])),
            Arc::new(Float32Array::from(vec![
                Some(f32::NAN),
                Some(-f32::NAN),
                None,
                Some(1.5),
                Some(f32::NAN),
            ])),
            Arc::new(Float64Array::from(vec![
                Some(f64::NAN),
                Some(f64::NAN),
                None,
                Some(1.5),
                Some(f64::NAN),
            ])),
        ];
        for array in arrays {
            let part = nan_to_null(&array.slice(1, 3)).unwrap();
            let valid: Vec<bool> = (0..3).map(|i| part.is_valid(i)).collect();
            assert_eq!(valid, [false, false, true], "{}", array.data_type());
        }
    }

    #[test]
    fn what_has_no_nan_is_not_touched() {
        let values = Float32Array::from(vec![1.0, f32::INFINITY]);
        let at = values.values().as_ptr();
        let out = nan_to_null(&(Arc::new(values) as ArrayRef)).unwrap();
        assert!(out.nulls().is_none());
        let out = out.as_any().downcast_ref::<Float32Array>().unwrap();
        assert_eq!(out.values().as_ptr(), at);
    }
}
