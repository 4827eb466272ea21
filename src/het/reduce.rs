//! One value of many, along any axis.

use arrow::array::{Array, AsArray, make_array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};

use super::{HetTensor, HetValue};
use crate::array::RaggedArray;
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};
use crate::kernels::reduce::{Reduction, reduce};

impl HetTensor {
    /// Reduces along dim `dim` (negatives from the last), or everything to one value when it is
    /// `None`.
    ///
    /// Only what exists counts: along an outer dim the slices are laid over one another, and the
    /// result has a place wherever one of them has one; a mean divides by how many there are. A place
    /// of which nothing exists (an empty list, only holes) is a hole.
    ///
    /// Types are those of [`kernels::reduce`](crate::kernels::reduce): sums and products of integers
    /// have 64 bits and refuse overflow, the mean of integers is float64 (the library HetTensor cuts
    /// it to an integer). Floats keep their type, computing in 64 bits.
    ///
    /// # Errors
    /// When there is no such dim, on integer overflow, and for the largest or smallest of nothing at
    /// all (the mean of nothing is NaN, the sum 0).
    pub fn reduce(&self, how: Reduction, dim: Option<i64>) -> Result<HetValue> {
        let Some(dim) = dim else { return self.reduce_all(how).map(HetValue::Dense) };
        let axis = self.axis_of(dim)?;
        let at = i64::try_from(axis).unwrap_or(i64::MAX);
        let out = reduce(&self.array, how, Some(at))?;
        let counts = matches!(how, Reduction::Count | Reduction::Size | Reduction::Nunique);
        let innermost = axis == self.ndim();
        let empty = |list: usize| self.array.axes()[axis - 1].layout().length(list) == 0;
        // Where nothing may have been reduced to a value all the same.
        let doubtful = out.leaves().null_count() < out.leaves().len()
            && (self.array.leaves().null_count() > 0
                || (innermost && (0..self.array.axes()[axis - 1].layout().lists()).any(empty)));
        let out = if counts || !doubtful {
            out
        } else {
            let found = reduce(&self.array, Reduction::Count, Some(at))?;
            let found = found.leaves().as_primitive::<Int64Type>().clone();
            let there = NullBuffer::new(BooleanBuffer::collect_bool(found.len(), |i| {
                found.is_valid(i) && found.value(i) > 0
            }));
            let leaves = out.leaves().to_data().into_builder();
            let nulls = NullBuffer::union(out.leaves().nulls(), Some(&there));
            out.with_leaves(make_array(leaves.nulls(nulls).build()?))?
        };
        Self::boxed(self.narrowed(how, out)?)?.into_value()
    }

    fn reduce_all(&self, how: Reduction) -> Result<DenseTensor> {
        let array = if self.ndim() == 0 {
            // A value is a list of one.
            crate::kernels::index::new_axis(&self.array, 1)?
        } else {
            self.array.clone()
        };
        let out = self.narrowed(how, reduce(&array, how, None)?)?;
        if out.leaves().null_count() > 0 {
            if how == Reduction::Mean {
                let nan = DenseTensor::from_vec([], vec![f64::NAN])?;
                return nan.cast(DType::from_arrow(out.leaf_type()).unwrap_or(DType::F64));
            }
            return Err(Error::invalid(format!("{} of nothing at all", how.name())));
        }
        DenseTensor::from_flat(out.leaves(), how.name())?.reshape([])
    }

    /// Half precision stays half.
    fn narrowed(&self, how: Reduction, out: RaggedArray) -> Result<RaggedArray> {
        let float = matches!(how, Reduction::Sum | Reduction::Prod | Reduction::Mean);
        if float && self.dtype() == DType::F16 {
            let leaves = cast(out.leaves(), &DataType::Float16)?;
            return out.with_leaves(leaves);
        }
        Ok(out)
    }
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident => $how:expr;)*) => {
        impl HetTensor {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// As [`reduce`](Self::reduce).
            pub fn $name(&self, dim: Option<i64>) -> Result<HetValue> {
                self.reduce($how, dim)
            }
        )*}
    };
}

reductions! {
    /// The sum along a dim, or of everything.
    sum => Reduction::Sum;
    /// The product along a dim, or of everything.
    prod => Reduction::Prod;
    /// The mean along a dim, or of everything.
    mean => Reduction::Mean;
    /// The largest value along a dim, or of everything; NaN if there is one.
    amax => Reduction::Max;
    /// The smallest value along a dim, or of everything; NaN if there is one.
    amin => Reduction::Min;
}
