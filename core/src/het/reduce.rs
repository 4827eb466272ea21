//! Reductions of a tensor along any dim.

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
    /// Reduces along dim `dim` (negative dims count from the end); `None` reduces all values to
    /// one.
    ///
    /// Holes (elements without a value) are skipped: a mean divides by the number of values. Along
    /// an outer dim, elements at the same position in all slices are combined: along dim 0, the sum
    /// of `[[1, 2], [3]]` is `[4, 2]`. If all elements at a position are holes, the result has a
    /// hole there.
    ///
    /// Types are as in [`kernels::reduce`](crate::kernels::reduce): sums and products of integers
    /// have 64 bits and report overflow; the mean of integers is float64 (the Python library
    /// HetTensor truncates it to an integer). Floats keep their type and are computed in 64 bits.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// use serrate::kernels::reduce::Reduction;
    /// let row = |values: &[i64]| DenseTensor::from_vec([values.len()], values.to_vec());
    /// let x = HetTensor::from_nested(&NestedTensors::List(vec![row(&[1, 2])?.into(), row(&[3])?.into()]))?;
    /// assert_eq!(x.reduce(Reduction::Sum, Some(1))?.to_string(), "tensor([3, 3])");
    /// assert_eq!(x.reduce(Reduction::Sum, Some(0))?.to_string(), "tensor([4, 2])");
    /// assert_eq!(x.reduce(Reduction::Mean, None)?.to_dense()?.as_slice::<f64>()?, [2.0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the dim does not exist, an integer overflows, or the minimum or maximum of an empty
    /// tensor is requested (the mean of an empty tensor is NaN, its sum 0).
    pub fn reduce(&self, how: Reduction, dim: Option<i64>) -> Result<HetValue> {
        let Some(dim) = dim else { return self.reduce_all(how).map(HetValue::Dense) };
        let axis = self.resolve_dim(dim)?;
        let at = i64::try_from(axis).unwrap_or(i64::MAX);
        let out = reduce(&self.array, how, Some(at))?;
        let counts = matches!(how, Reduction::Count | Reduction::Size | Reduction::Nunique);
        let innermost = axis == self.ndim();
        let empty = |list: usize| self.array.axes()[axis - 1].layout().length(list) == 0;
        // For a list without values, the kernel returns a result such as the sum 0: replace this
        // result with a hole. Counts stay 0.
        let may_have_empty = out.leaves().null_count() < out.leaves().len()
            && (self.array.leaves().null_count() > 0
                || (innermost && (0..self.array.axes()[axis - 1].layout().lists()).any(empty)));
        let out = if counts || !may_have_empty {
            out
        } else {
            let found = reduce(&self.array, Reduction::Count, Some(at))?;
            let found = found.leaves().as_primitive::<Int64Type>().clone();
            let exists = NullBuffer::new(BooleanBuffer::collect_bool(found.len(), |i| {
                found.is_valid(i) && found.value(i) > 0
            }));
            let leaves = out.leaves().to_data().into_builder();
            let nulls = NullBuffer::union(out.leaves().nulls(), Some(&exists));
            out.with_leaves(make_array(leaves.nulls(nulls).build()?))?
        };
        Self::from_boxed(self.restore_half(how, out)?)?.into_value()
    }

    fn reduce_all(&self, how: Reduction) -> Result<DenseTensor> {
        let array = if self.ndim() == 0 {
            // The kernel reduces only lists, so put the scalar of a tensor without dims in a list.
            crate::kernels::index::new_axis(&self.array, 1)?
        } else {
            self.array.clone()
        };
        let out = self.restore_half(how, reduce(&array, how, None)?)?;
        if out.leaves().null_count() > 0 {
            if how == Reduction::Mean {
                let nan = DenseTensor::from_vec([], vec![f64::NAN])?;
                return nan.cast(DType::from_arrow(out.leaf_type()).unwrap_or(DType::F64));
            }
            return Err(Error::invalid(format!(
                "cannot compute the {} of a tensor without values; check num_values() first",
                how.name()
            )));
        }
        DenseTensor::from_flat(out.leaves(), how.name())?.reshape([])
    }

    /// Casts sums, products and means of float16 back to float16: the kernel returns float32.
    fn restore_half(&self, how: Reduction, out: RaggedArray) -> Result<RaggedArray> {
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
            /// Same as [`reduce`](Self::reduce).
            pub fn $name(&self, dim: Option<i64>) -> Result<HetValue> {
                self.reduce($how, dim)
            }
        )*}
    };
}

reductions! {
    /// Returns the sum along a dim, or of all values. Skips holes (missing values). Along a dim, a
    /// list without values gives a hole. Without `dim`, an empty tensor gives 0.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!(x.sum(Some(0))?.to_string(), "tensor([4, 2])");
    /// assert_eq!(x.sum(None)?.to_string(), "tensor(6)");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    sum => Reduction::Sum;
    /// Returns the product along a dim, or of all values. Skips holes (missing values). Along a
    /// dim, a list without values gives a hole. Without `dim`, an empty tensor gives 1.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!(x.prod(Some(1))?.to_string(), "tensor([2, 3])");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    prod => Reduction::Prod;
    /// Returns the mean along a dim, or of all values. Skips holes (missing values). Along a dim, a
    /// list without values gives a hole. Without `dim`, an empty tensor gives NaN.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!(x.mean(Some(1))?.to_string(), "tensor([1.5, 3.0])");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    mean => Reduction::Mean;
    /// Returns the maximum along a dim, or of all values; NaN if a value is NaN. Skips holes
    /// (missing values). Along a dim, a list without values gives a hole. Without `dim`, an empty
    /// tensor is an error.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!(x.amax(Some(0))?.to_string(), "tensor([3, 2])");
    /// assert_eq!(x.amax(None)?.to_string(), "tensor(3)");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    amax => Reduction::Max;
    /// Returns the minimum along a dim, or of all values; NaN if a value is NaN. Skips holes
    /// (missing values). Along a dim, a list without values gives a hole. Without `dim`, an empty
    /// tensor is an error.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!(x.amin(Some(0))?.to_string(), "tensor([1, 2])");
    /// assert_eq!(x.amin(None)?.to_string(), "tensor(1)");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    amin => Reduction::Min;
}
