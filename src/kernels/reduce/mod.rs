//! Sum, product, mean, minimum and maximum along an axis or of whole rows.
//!
//! Null leaves, and everything below null lists, do not count. A null list gives null. Nothing to
//! reduce gives 0 as a sum, 1 as a product and null otherwise. NaN propagates.
//!
//! | leaves | sum, product | mean | minimum, maximum |
//! |---|---|---|---|
//! | Int8..64, Boolean | Int64 | Float64 | as the leaves |
//! | UInt8..64 | UInt64 | Float64 | as the leaves |
//! | Float32 (and Float16) | Float32, computed in 64 bits | Float32 | as the leaves |
//! | Float64 | Float64 | Float64 | as the leaves |
//! | Duration | Duration (sum only) | - | as the leaves |
//! | dates, times, decimals, strings, ... | - | - | as the leaves |
//!
//! Integer results that do not fit 64 bits are an error.

mod fold;
mod outer;
mod segments;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, NullArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::downcast_primitive_array;

use super::reshape::leaf_lists;
use super::shape::list_axis;
use crate::array::RaggedArray;
use crate::error::{Error, Result};
use fold::{
    FloatExtreme, FloatMean, FloatProd, FloatSum, Fold, IntMean, IntProd, IntSum, Largest,
    Smallest, ValueExtreme,
};
use outer::Slots;

/// What to make of many values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Sum; 0 of nothing.
    Sum,
    /// Product; 1 of nothing.
    Prod,
    /// Arithmetic mean; null of nothing.
    Mean,
    /// Smallest value, NaN if there is one; null of nothing.
    Min,
    /// Largest value, NaN if there is one; null of nothing.
    Max,
}

impl Reduction {
    /// Name as in an error: `sum`, `mean`, ...
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Prod => "prod",
            Self::Mean => "mean",
            Self::Min => "min",
            Self::Max => "max",
        }
    }

    /// Type of the result over leaves of a type (see the [module](self) for the table).
    ///
    /// # Errors
    /// When such leaves cannot be reduced this way.
    pub fn output_type(self, leaf: &DataType) -> Result<DataType> {
        use DataType::{Boolean, Duration, Float16, Float32, Float64, Int64, Null, UInt64};
        if let DataType::Dictionary(_, values) = leaf {
            return self.output_type(values);
        }
        let integers = leaf.is_integer() || matches!(leaf, Boolean | Null);
        Ok(match (self, leaf) {
            (Self::Min | Self::Max, t) if !t.is_nested() => t.clone(),
            (Self::Mean, _) if integers => Float64,
            (Self::Sum | Self::Prod, _) if leaf.is_unsigned_integer() => UInt64,
            (Self::Sum | Self::Prod, _) if integers => Int64,
            (Self::Sum | Self::Prod | Self::Mean, Float16 | Float32) => Float32,
            (Self::Sum | Self::Prod | Self::Mean, Float64) => Float64,
            (Self::Sum, Duration(_)) => leaf.clone(),
            _ => {
                let expected = match self {
                    Self::Min | Self::Max => "flat values",
                    Self::Sum => "numbers, booleans or durations (cast decimals to float64)",
                    _ => "numbers or booleans (cast others to float64 or int64)",
                };
                return Err(Error::type_of(self.name(), expected, leaf));
            }
        })
    }
}

/// Reduces along axis `axis` (1.., negatives from the innermost), or every row to one value when it
/// is `None`.
///
/// * `None`: a flat array, one value per row, over all its leaves; null for a null row.
/// * The innermost axis: every innermost list becomes one value, null where it was null. Outer
///   levels are shared.
/// * An outer axis: the elements of each of its lists, lists themselves, are laid over one another
///   and reduced place by place. What an element does not have at a place does not count, so that
///   each resulting list is as long as the longest of its elements, on every deeper axis. A list
///   that is null gives a null one, an empty list an empty one.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Float32Array, types::Float32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::reduce::{Reduction, reduce};
/// // one row: [[1, 2, 3], [10]]
/// let axes = vec![Offsets::from_lengths([2])?.into(), Offsets::from_lengths([3, 1])?.into()];
/// let a = RaggedArray::try_new(1, axes, Arc::new(Float32Array::from(vec![1., 2., 3., 10.])))?;
/// let values = |axis| -> serrate::Result<Vec<f32>> {
///     let sums = reduce(&a, Reduction::Sum, axis)?;
///     Ok(sums.leaves().as_primitive::<Float32Type>().values().to_vec())
/// };
/// assert_eq!(values(None)?, [16.]);
/// assert_eq!(values(Some(-1))?, [6., 10.]);
/// assert_eq!(values(Some(1))?, [11., 2., 3.]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// When the array has no such axis or `axis` is 0, for leaves that cannot be reduced this way, and
/// when an integer result does not fit 64 bits.
pub fn reduce(array: &RaggedArray, how: Reduction, axis: Option<i64>) -> Result<RaggedArray> {
    let out = how.output_type(array.leaf_type())?;
    let flat;
    let (array, axis) = match axis {
        Some(axis) => (array, list_axis(array, axis)?),
        None => {
            let lists = leaf_lists(array)?
                .ok_or_else(|| Error::invalid("a reduction needs lists; the array is flat"))?;
            flat = RaggedArray::try_new(array.len(), vec![lists], array.leaves().clone())?;
            (&flat, 1)
        }
    };
    let leaves = plain(array.leaves(), how)?;
    if axis == array.axes().len() {
        let level = array.axis(axis)?;
        let over = Over::Lists { level, axis };
        let values = dispatch(&leaves, how, &out, &over)?;
        return RaggedArray::try_new(array.len(), array.axes()[..axis - 1].to_vec(), values);
    }
    let (axes, slots) = outer::overlay(array, axis)?;
    let values = dispatch(&leaves, how, &out, &Over::Slots { slots: &slots, axis })?;
    RaggedArray::try_new(array.len(), axes, values)
}

/// [`reduce`] to the [`Sum`](Reduction::Sum).
pub fn sum(array: &RaggedArray, axis: Option<i64>) -> Result<RaggedArray> {
    reduce(array, Reduction::Sum, axis)
}

/// [`reduce`] to the [`Prod`](Reduction::Prod)uct.
pub fn prod(array: &RaggedArray, axis: Option<i64>) -> Result<RaggedArray> {
    reduce(array, Reduction::Prod, axis)
}

/// [`reduce`] to the [`Mean`](Reduction::Mean).
pub fn mean(array: &RaggedArray, axis: Option<i64>) -> Result<RaggedArray> {
    reduce(array, Reduction::Mean, axis)
}

/// [`reduce`] to the [`Min`](Reduction::Min)imum.
pub fn min(array: &RaggedArray, axis: Option<i64>) -> Result<RaggedArray> {
    reduce(array, Reduction::Min, axis)
}

/// [`reduce`] to the [`Max`](Reduction::Max)imum.
pub fn max(array: &RaggedArray, axis: Option<i64>) -> Result<RaggedArray> {
    reduce(array, Reduction::Max, axis)
}

/// Which leaves go together.
enum Over<'a> {
    /// Those of each list of the innermost axis.
    Lists { level: &'a crate::array::ListAxis, axis: usize },
    /// Those of one place in the result.
    Slots { slots: &'a Slots, axis: usize },
}

impl Over<'_> {
    fn fold<F: Fold>(
        &self,
        how: Reduction,
        values: &PrimitiveArray<F::In>,
    ) -> Result<PrimitiveArray<F::Out>> {
        match self {
            Self::Lists { level, axis } => segments::fold::<F>(how, values, level, *axis),
            Self::Slots { slots, axis } => slots.fold::<F>(how, values, *axis),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Lists { level, .. } => level.layout().lists(),
            Self::Slots { slots, .. } => slots.len(),
        }
    }
}

/// Leaves in a type that reductions know: dictionaries unpacked, booleans as numbers where they are
/// added, durations as integers.
fn plain(leaves: &ArrayRef, how: Reduction) -> Result<ArrayRef> {
    let extreme = matches!(how, Reduction::Min | Reduction::Max);
    Ok(match leaves.data_type() {
        DataType::Dictionary(_, values) => return plain(&cast(leaves, values)?, how),
        DataType::Boolean if !extreme => cast(leaves, &DataType::Int8)?,
        DataType::Null | DataType::Duration(_) if !extreme => cast(leaves, &DataType::Int64)?,
        _ => leaves.clone(),
    })
}

fn dispatch(
    leaves: &ArrayRef,
    how: Reduction,
    out: &DataType,
    over: &Over<'_>,
) -> Result<ArrayRef> {
    macro_rules! with {
        ($fold:ident, $($t:ty),*) => {
            match leaves.data_type() {
                $(t if *t == <$t as ArrowPrimitiveType>::DATA_TYPE => {
                    Arc::new(over.fold::<$fold<$t>>(how, leaves.as_primitive::<$t>())?) as ArrayRef
                })*
                other => return Err(Error::type_of(how.name(), "numbers", other)),
            }
        };
    }
    macro_rules! numbers {
        ($int:ident, $float:ident) => {
            if leaves.data_type().is_floating() {
                with!($float, Float16Type, Float32Type, Float64Type)
            } else {
                with!(
                    $int, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
                    UInt32Type, UInt64Type
                )
            }
        };
    }
    let values = match how {
        Reduction::Sum => numbers!(IntSum, FloatSum),
        Reduction::Prod => numbers!(IntProd, FloatProd),
        Reduction::Mean => numbers!(IntMean, FloatMean),
        Reduction::Min => return extreme::<Smallest>(leaves, how, over),
        Reduction::Max => return extreme::<Largest>(leaves, how, over),
    };
    if values.data_type() == out { Ok(values) } else { Ok(cast(&values, out)?) }
}

fn extreme<W: fold::Which>(leaves: &ArrayRef, how: Reduction, over: &Over<'_>) -> Result<ArrayRef> {
    fn values<W: fold::Which, T: ArrowPrimitiveType>(
        values: &PrimitiveArray<T>,
        how: Reduction,
        over: &Over<'_>,
    ) -> Result<ArrayRef> {
        let out = over.fold::<ValueExtreme<T, W>>(how, values)?;
        Ok(Arc::new(out.with_data_type(values.data_type().clone())))
    }
    fn floats<W: fold::Which, T: fold::FloatType>(
        values: &PrimitiveArray<T>,
        how: Reduction,
        over: &Over<'_>,
    ) -> Result<ArrayRef>
    where
        T::Native: fold::Float,
    {
        Ok(Arc::new(over.fold::<FloatExtreme<T, W>>(how, values)?))
    }
    match leaves.data_type() {
        DataType::Null => Ok(Arc::new(NullArray::new(over.len()))),
        DataType::Float16 => floats::<W, _>(leaves.as_primitive::<Float16Type>(), how, over),
        DataType::Float32 => floats::<W, _>(leaves.as_primitive::<Float32Type>(), how, over),
        DataType::Float64 => floats::<W, _>(leaves.as_primitive::<Float64Type>(), how, over),
        _ => downcast_primitive_array!(
            leaves => values::<W, _>(leaves, how, over),
            _ => match over {
                Over::Lists { level, .. } => segments::extreme_by_comparison::<W>(leaves, level),
                Over::Slots { slots, .. } => slots.extreme_by_comparison::<W>(leaves),
            },
        ),
    }
}
