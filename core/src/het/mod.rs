//! Tensors with axes whose size varies, such as a batch of sequences of different lengths.
//!
//! A [`HetTensor`] is a nested list of tensors that may differ in shape, stored without padding as
//! a [`RaggedArray`]. A result without holes and with one size per axis is a [`DenseTensor`].
//!
//! * Conversion: [`HetTensor::from_nested`], [`from_ragged`](HetTensor::from_ragged),
//!   [`unbind`](HetTensor::unbind), [`to_dense`](HetTensor::to_dense), `Display`.
//! * Structure: [`dim_types`](HetTensor::dim_types), [`shape`](HetTensor::shape),
//!   [`max_shape`](HetTensor::max_shape), [`uniform_shape`](HetTensor::uniform_shape).
//! * Selection: [`index`](HetTensor::index) on every axis; [`filter`](HetTensor::filter) by a mask
//!   of the same structure; [`unsqueeze`](HetTensor::unsqueeze), [`squeeze`](HetTensor::squeeze),
//!   [`cat`].
//! * Reduction: [`reduce`](HetTensor::reduce) over any axis ([`sum`](HetTensor::sum), `mean`, ..).
//! * Arithmetic: [`binary`](HetTensor::binary) with another tensor, a dense tensor or a number,
//!   broadcast as in NumPy; [`unary`](HetTensor::unary) functions; [`apply`](HetTensor::apply) for
//!   other functions.
//!
//! **Holes.** A hole is an element without a value: `x[:, :, 1]` has one element per list, and this
//! element is a hole if the list has no second element. Reductions skip holes, arithmetic with a
//! hole gives a hole, and dense results hold 0 instead. The [`RaggedArray`] stores holes as nulls.
//!
//! Gradients and devices are not supported; all values are in main memory.

mod cat;
mod dims;
mod index;
mod nested;
mod ops;
mod promote;
mod reduce;

use std::fmt;

use arrow::array::Array;

use crate::array::{Layout, ListAxis, RaggedArray};
use crate::dense::densify::densify;
use crate::dense::{DType, DenseOptions, DenseTensor};
use crate::error::{Error, Result};

pub use cat::cat;
pub use dims::DimType;
pub use nested::NestedTensors;
pub use ops::{HetOperand, NumberOperand};

/// A tensor with axes (dims) whose size varies.
///
/// An element without a value is a hole; see the [module](self).
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::DenseTensor;
/// use serrate::het::{HetTensor, NestedTensors};
/// use serrate::index::Index;
///
/// let row = |values: &[i64]| -> serrate::Result<NestedTensors> {
///     Ok(DenseTensor::from_vec([values.len()], values.to_vec())?.into())
/// };
/// let x = HetTensor::from_nested(&NestedTensors::List(vec![
///     NestedTensors::List(vec![row(&[1, 2])?, row(&[1])?, row(&[3, 4, 5])?]),
///     NestedTensors::List(vec![row(&[1, 3, 4])?, row(&[2])?, row(&[1, 2])?]),
/// ]))?;
/// assert_eq!((x.shape(), x.max_shape()), (vec![None, None, None], vec![2, 3, 3]));
/// assert_eq!(x.sum(Some(0))?.to_string(), "[tensor([2, 5, 4]), tensor([3]), tensor([4, 6, 5])]");
/// let first = x.index(&[Index::ALL, Index::ALL, 0.into()])?;
/// assert_eq!(first.to_string(), "tensor([[1, 1, 3], [1, 2, 1]])");
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct HetTensor {
    /// The array has one row, the whole tensor, so dim `k` of the tensor is axis `k + 1` of the
    /// array.
    array: RaggedArray,
}

/// Result of an operation: dense if no axis varies in size and no value is missing.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::DenseTensor;
/// use serrate::het::{HetTensor, HetValue, NestedTensors};
/// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
/// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
/// assert!(matches!(x.sum(Some(1))?, HetValue::Dense(_)));
/// assert!(matches!(x.add(1)?, HetValue::Het(_)));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum HetValue {
    /// A tensor with an axis that varies in size, or with holes (elements without a value).
    Het(HetTensor),
    /// A tensor without holes, in which no axis varies in size.
    Dense(DenseTensor),
}

impl HetTensor {
    /// Creates a tensor from a ragged array: rows are dim 0, each level of lists a further dim.
    ///
    /// Null leaves and null lists become holes. Copies nothing.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// use serrate::het::HetTensor;
    /// // [[1, 2], [3]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let array = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
    /// let x = HetTensor::from_ragged(&array)?;
    /// assert_eq!(x.max_shape(), [2, 2]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the leaves are neither numbers nor booleans.
    pub fn from_ragged(array: &RaggedArray) -> Result<Self> {
        let (rows, axes, leaves) = array.clone().into_parts();
        let mut all = vec![ListAxis::from(Layout::Uniform { size: rows, lists: 1 })];
        all.extend(axes);
        Self::from_boxed(RaggedArray::try_new(1, all, leaves)?)
    }

    /// Creates a tensor that shares the memory of a dense tensor; copies only bfloat16 and
    /// booleans.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::HetTensor;
    /// let x = HetTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![1, 2, 3, 4])?)?;
    /// assert!(x.is_dense());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an axis has too many lists for `usize`; only a tensor without elements can have so many.
    pub fn from_dense(tensor: &DenseTensor) -> Result<Self> {
        let mut axes = Vec::with_capacity(tensor.ndim());
        let mut lists = 1usize;
        for size in tensor.shape() {
            axes.push(ListAxis::from(Layout::Uniform { size: *size, lists }));
            // If the number of lists exceeds a `usize`, the product saturates, and
            // `RaggedArray::try_new` returns an error.
            lists = lists.saturating_mul(*size);
        }
        Self::from_boxed(RaggedArray::try_new(1, axes, tensor.to_flat()?)?)
    }

    /// Creates a tensor from an array whose only row is the whole tensor. An axis whose lists all
    /// have the same length becomes [`Layout::Uniform`].
    fn from_boxed(array: RaggedArray) -> Result<Self> {
        if DType::from_arrow(array.leaf_type()).is_none() {
            return Err(Error::type_of(
                "an array to convert to a HetTensor",
                "numbers or booleans as leaves (cast the leaves first)",
                array.leaf_type(),
            ));
        }
        let (rows, mut axes, leaves) = array.into_parts();
        for axis in &mut axes {
            let layout = axis.layout();
            let lists = layout.lists();
            let size = if lists == 0 { 0 } else { layout.length(0) };
            let same = layout.is_ragged()
                && axis.nulls().is_none()
                && (0..lists).all(|i| layout.length(i) == size);
            if same {
                *axis = Layout::Uniform { size, lists }.into();
            }
        }
        Ok(Self { array: RaggedArray::try_new(rows, axes, leaves)? })
    }

    /// Returns the array whose rows are dim 0 and whose nulls are the holes.
    ///
    /// Copies nothing.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// use serrate::het::HetTensor;
    /// // [[1, 2], [3]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let array = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
    /// let x = HetTensor::from_ragged(&array)?;
    /// assert_eq!(x.to_ragged()?.max_shape(), [2, 2]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the tensor has no dims.
    pub fn to_ragged(&self) -> Result<RaggedArray> {
        self.array.inner(1)
    }

    /// Returns the number of dims.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// use serrate::het::HetTensor;
    /// // [[1, 2], [3]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let array = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
    /// let x = HetTensor::from_ragged(&array)?;
    /// assert_eq!(x.ndim(), 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn ndim(&self) -> usize {
        self.array.axes().len()
    }

    /// Returns the type of the values.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::{DType, DenseTensor};
    /// use serrate::het::HetTensor;
    /// let x = HetTensor::from_dense(&DenseTensor::from_vec([2], vec![1u8, 2])?)?;
    /// assert_eq!(x.dtype(), DType::U8);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn dtype(&self) -> DType {
        // The constructor checked that the leaf type has a `DType`, so the default is never used.
        DType::from_arrow(self.array.leaf_type()).unwrap_or(DType::F64)
    }

    /// Returns the number of bytes of values, validity and offsets that this tensor uses.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::HetTensor;
    /// let x = HetTensor::from_dense(&DenseTensor::from_vec([2], vec![1i32, 2])?)?;
    /// assert!(x.nbytes() >= 2 * 4);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn nbytes(&self) -> usize {
        self.array.nbytes()
    }

    /// Returns the number of values; holes (elements without a value) do not count.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// use serrate::het::HetTensor;
    /// // [[1, 2], [3]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let array = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
    /// let x = HetTensor::from_ragged(&array)?;
    /// assert_eq!(x.num_values(), 3);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn num_values(&self) -> usize {
        self.array.leaves().len() - self.array.leaves().null_count()
    }

    /// Returns whether there are holes (elements without a value).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// use serrate::het::HetTensor;
    /// // [[1, 2], [3]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let array = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
    /// let x = HetTensor::from_ragged(&array)?;
    /// assert!(!x.has_holes());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn has_holes(&self) -> bool {
        self.array.leaves().null_count() > 0
            || self.array.axes().iter().any(|axis| axis.nulls().is_some())
    }

    /// Returns the tensor padded to [`max_shape`](Self::max_shape), with 0 or the fill of
    /// `options`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// use serrate::het::HetTensor;
    /// // [[1, 2], [3]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let array = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
    /// let x = HetTensor::from_ragged(&array)?;
    /// assert_eq!(x.to_dense(&Default::default())?.as_slice::<i32>()?, [1, 2, 3, 0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the tensor exceeds the limit of `options`, or the type cannot represent the fill.
    pub fn to_dense(&self, options: &DenseOptions) -> Result<DenseTensor> {
        if self.is_dense() {
            return self.to_uniform()?.cast(options.dtype.unwrap_or(self.dtype()));
        }
        let tensor = densify(&self.array, None, options)?;
        let shape = tensor.shape().get(1..).unwrap_or_default().to_vec();
        tensor.reshape(shape)
    }

    /// Returns whether no axis varies in size and no value is missing.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// use serrate::het::HetTensor;
    /// // [[1, 2], [3]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let array = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
    /// let x = HetTensor::from_ragged(&array)?;
    /// assert!(!x.is_dense());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn is_dense(&self) -> bool {
        !self.has_holes() && self.array.axes().iter().all(|axis| !axis.layout().is_ragged())
    }

    /// Returns a [`DenseTensor`] if the tensor [is dense](Self::is_dense), else this tensor.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// use serrate::dense::{DType, DenseTensor};
    /// use serrate::het::HetTensor;
    /// let leaves = Arc::new(Int32Array::from(vec![Some(1), Some(2), None]));
    /// let array = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
    /// let x = HetTensor::from_ragged(&array)?;
    /// assert_eq!((x.ndim(), x.dtype(), x.num_values()), (2, DType::I32, 2));
    /// assert_eq!((x.has_holes(), x.is_dense(), x.to_ragged()?), (true, false, array));
    /// assert!(x.into_value()?.dense().is_none());
    /// let even = HetTensor::from_dense(&DenseTensor::from_vec([1, 2], vec![1, 2])?)?.into_value()?;
    /// assert_eq!(even.dense().unwrap().shape(), [1, 2]);
    /// assert_eq!((even.dtype(), even.into_het()?.ndim()), (DType::I32, 2));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Never: a dense tensor has as many values as its shape requires.
    pub fn into_value(self) -> Result<HetValue> {
        Ok(if self.is_dense() { HetValue::Dense(self.to_uniform()?) } else { HetValue::Het(self) })
    }

    fn to_uniform(&self) -> Result<DenseTensor> {
        DenseTensor::from_flat(self.array.leaves(), "a tensor")?.reshape(self.max_shape())
    }

    fn resolve_dim(&self, dim: i64) -> Result<usize> {
        Ok(crate::array::resolve_axis(dim, self.ndim(), "the tensor")? + 1)
    }
}

impl HetValue {
    /// Returns the dense tensor; `None` if an axis varies in size or there is a hole.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// let sums = x.sum(Some(1))?;
    /// assert_eq!(sums.dense().unwrap().as_slice::<i64>()?, [3, 3]);
    /// assert!(x.add(1)?.dense().is_none());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn dense(&self) -> Option<&DenseTensor> {
        match self {
            Self::Dense(tensor) => Some(tensor),
            Self::Het(_) => None,
        }
    }

    /// Returns the tensor as a [`HetTensor`]; a dense tensor is converted.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// let next = x.add(1)?.into_het()?;
    /// assert_eq!(next.num_values(), 3);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`HetTensor::from_dense`].
    pub fn into_het(self) -> Result<HetTensor> {
        match self {
            Self::Het(het) => Ok(het),
            Self::Dense(tensor) => HetTensor::from_dense(&tensor),
        }
    }

    /// Returns a dense tensor, padded with zeros if needed.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |values: &[i64]| DenseTensor::from_vec([values.len()], values.to_vec());
    /// let x = HetTensor::from_nested(&NestedTensors::List(vec![row(&[1, 2])?.into(), row(&[3])?.into()]))?;
    /// let padded = x.into_value()?.to_dense()?;
    /// assert_eq!(padded.to_string(), "int64[2, 2] [[1, 2], [3, 0]]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`HetTensor::to_dense`].
    pub fn to_dense(&self) -> Result<DenseTensor> {
        match self {
            Self::Het(het) => het.to_dense(&DenseOptions::default()),
            Self::Dense(tensor) => Ok(tensor.clone()),
        }
    }

    /// Returns the type of the values.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::{DType, DenseTensor};
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!((x.add(1)?.dtype(), x.gt(2)?.dtype()), (DType::I64, DType::Bool));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn dtype(&self) -> DType {
        match self {
            Self::Het(het) => het.dtype(),
            Self::Dense(tensor) => tensor.dtype(),
        }
    }
}

/// Writes nested lists, in which a sublist of uniform shape is one tensor:
/// `[[tensor([1, 2]), tensor([3])], tensor([[4, 5, 6]])]`.
impl fmt::Display for HetTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.unbind().map_err(|_| fmt::Error)?.fmt(f)
    }
}

/// Writes a [`HetTensor`] as nested lists, and a dense tensor as one tensor.
impl fmt::Display for HetValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Het(het) => het.fmt(f),
            Self::Dense(tensor) => NestedTensors::Tensor(tensor.clone()).fmt(f),
        }
    }
}
