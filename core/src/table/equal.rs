//! Comparison of tables.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};

use super::{Column, RaggedTable, Scalar};
use crate::error::Result;

const CHUNK: usize = 1 << 16;

/// How a comparison of tables treats NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NanComparison {
    /// NaN equals NaN, whatever their bits.
    Equal,
    /// NaN equals no value.
    Unequal,
}

impl RaggedTable {
    /// Returns whether both tables have the same columns on the same axes, lists, values and
    /// scalars.
    ///
    /// Numbers are compared by value across types (`1` of int8 equals `1.0` of float32, true
    /// equals 1). The order of columns, axis names and offset widths are ignored. A null value
    /// equals only a null value, a null list only a null list. `==` is stricter: it compares types
    /// and the order of columns, and NaN by its bits.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::{Float32Array, Int8Array};
    /// use serrate::table::{NanComparison, RaggedTable};
    /// let one = |values| RaggedTable::builder().lengths([1, 1])?.column("x", 1, values).build();
    /// let a = one(Arc::new(Int8Array::from(vec![1, 2])))?;
    /// let b = one(Arc::new(Float32Array::from(vec![1., 2.])))?;
    /// assert!(a.equals(&b, NanComparison::Unequal)? && a != b);
    /// let nan = one(Arc::new(Float32Array::from(vec![f32::NAN, 2.])))?;
    /// assert!(nan.equals(&nan, NanComparison::Equal)?);
    /// assert!(!nan.equals(&nan, NanComparison::Unequal)?);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If Arrow cannot convert the numbers.
    pub fn equals(&self, other: &Self, nan: NanComparison) -> Result<bool> {
        let same_axes = self.num_rows() == other.num_rows()
            && self.ndim() == other.ndim()
            && self.axes().iter().zip(other.axes()).all(|(a, b)| a.layout() == b.layout());
        if !same_axes
            || self.columns().len() != other.columns().len()
            || self.scalars().len() != other.scalars().len()
        {
            return Ok(false);
        }
        for column in self.columns() {
            let Ok(theirs) = other.column(column.name()) else { return Ok(false) };
            if column.axis() != theirs.axis()
                || column.list_nulls() != theirs.list_nulls()
                || !are_values_equal(column.values(), theirs.values(), nan)?
            {
                return Ok(false);
            }
        }
        for scalar in self.scalars() {
            let Ok(theirs) = other.scalar(scalar.name()) else { return Ok(false) };
            if !are_values_equal(scalar.value(), theirs.value(), nan)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Tables are equal if rows, lengths, columns (in order), scalars, validity and values are equal.
/// Axis names and the storage of an axis (uniform or by offsets) are ignored.
impl PartialEq for RaggedTable {
    fn eq(&self, other: &Self) -> bool {
        fn as_parts(t: &RaggedTable) -> (usize, bool, &[Column], &[Scalar]) {
            (t.rows, t.point, &t.columns, &t.scalars)
        }
        as_parts(self) == as_parts(other)
            && self.axes.len() == other.axes.len()
            && self.axes.iter().zip(&other.axes).all(|(a, b)| a.layout == b.layout)
    }
}

fn are_values_equal(a: &ArrayRef, b: &ArrayRef, nan: NanComparison) -> Result<bool> {
    if a.len() != b.len() || a.null_count() != b.null_count() {
        return Ok(false);
    }
    if a.data_type() == b.data_type() {
        return Ok(match a.data_type() {
            DataType::Float16 => are_floats_equal::<Float16Type>(a, b, nan, |x| x.is_nan()),
            DataType::Float32 => are_floats_equal::<Float32Type>(a, b, nan, |x| x.is_nan()),
            DataType::Float64 => are_floats_equal::<Float64Type>(a, b, nan, |x| x.is_nan()),
            _ => **a == **b,
        });
    }
    let number = |t: &DataType| t.is_integer() || t.is_floating() || *t == DataType::Boolean;
    if !number(a.data_type()) || !number(b.data_type()) {
        return Ok(false);
    }
    // Compare integers as decimals of 20 digits, which represent all integers of 64 bits. If one of
    // the columns has floats, compare as float64.
    let whole = |t: &DataType| !t.is_floating();
    let exact = whole(a.data_type()) && whole(b.data_type());
    for start in (0..a.len()).step_by(CHUNK) {
        let length = CHUNK.min(a.len() - start);
        let (a, b) = (a.slice(start, length), b.slice(start, length));
        let same = if exact {
            let wide = |x: &ArrayRef| -> Result<ArrayRef> {
                let x = match x.data_type() {
                    DataType::Boolean => cast(x, &DataType::UInt8)?,
                    _ => x.clone(),
                };
                Ok(cast(&x, &DataType::Decimal128(20, 0))?)
            };
            *wide(&a)? == *wide(&b)?
        } else {
            let (a, b) = (cast(&a, &DataType::Float64)?, cast(&b, &DataType::Float64)?);
            are_floats_equal::<Float64Type>(&a, &b, nan, |x| x.is_nan())
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

fn are_floats_equal<T: ArrowPrimitiveType>(
    a: &ArrayRef,
    b: &ArrayRef,
    nan: NanComparison,
    is_nan: impl Fn(T::Native) -> bool,
) -> bool {
    let (a, b) = (a.as_primitive::<T>(), b.as_primitive::<T>());
    let equal_nan = nan == NanComparison::Equal;
    a.iter().zip(b).all(|pair| match pair {
        (Some(x), Some(y)) => x == y || (equal_nan && is_nan(x) && is_nan(y)),
        (x, y) => x.is_none() && y.is_none(),
    })
}
