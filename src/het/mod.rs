//! Tensors of which some axes differ in size from place to place.
//!
//! A [`HetTensor`] is a nested list of tensors, of any nesting and any trailing shape, kept as a
//! [`RaggedArray`]: one flat buffer of values and offsets per axis, padding nowhere. It is indexed,
//! reduced and computed with like any tensor; where no axis differs in size any more, the result is
//! a [`DenseTensor`].
//!
//! * Building and taking apart: [`HetTensor::from_nested`], [`from_ragged`](HetTensor::from_ragged),
//!   [`unbind`](HetTensor::unbind), [`to_dense`](HetTensor::to_dense), `Display`.
//! * What it is: [`dim_types`](HetTensor::dim_types), [`shape`](HetTensor::shape),
//!   [`max_shape`](HetTensor::max_shape), [`uniform_shape`](HetTensor::uniform_shape).
//! * [`index`](HetTensor::index) on every axis; [`filter`](HetTensor::filter) by a mask of the same
//!   structure; [`unsqueeze`](HetTensor::unsqueeze), [`squeeze`](HetTensor::squeeze), [`cat`].
//! * [`reduce`](HetTensor::reduce) over any axis ([`sum`](HetTensor::sum), `mean`, `prod`, `amax`,
//!   `amin`), over what exists only.
//! * [`binary`](HetTensor::binary) with another one, a dense tensor or a number, sizes 1 and missing
//!   leading axes being repeated; [`unary`](HetTensor::unary) functions;
//!   [`apply`](HetTensor::apply) for anything else.
//!
//! **Holes.** `x[:, :, 1]` has a place for every list, but a value only where a list has a second
//! element. The other places are holes: they do not exist for reductions, make holes of what is
//! computed with them, and are 0 in a dense result. In the [`RaggedArray`] they are nulls.
//!
//! Gradients and devices are out of scope: values are plain memory, and nothing is recorded.

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
use crate::dense::{DType, DenseOptions, DenseTensor};
use crate::error::{Error, Result};
use crate::kernels::densify::densify;

pub use cat::cat;
pub use dims::DimType;
pub use nested::Nested;
pub use ops::{HetOperand, Scalar};

/// A tensor of which some axes differ in size from place to place.
///
/// ```
/// use serrate::dense::DenseTensor;
/// use serrate::het::{HetTensor, Nested};
/// use serrate::index::Index;
///
/// let row = |values: &[i64]| -> serrate::Result<Nested> {
///     Ok(DenseTensor::from_vec([values.len()], values.to_vec())?.into())
/// };
/// let x = HetTensor::from_nested(&Nested::List(vec![
///     Nested::List(vec![row(&[1, 2])?, row(&[1])?, row(&[3, 4, 5])?]),
///     Nested::List(vec![row(&[1, 3, 4])?, row(&[2])?, row(&[1, 2])?]),
/// ]))?;
/// assert_eq!((x.shape(), x.max_shape()), (vec![-1, -1, -1], vec![2, 3, 3]));
/// assert_eq!(x.sum(Some(0))?.to_string(), "[tensor([2, 5, 4]), tensor([3]), tensor([4, 6, 5])]");
/// let first = x.index(&[Index::ALL, Index::ALL, 0.into()])?;
/// assert_eq!(first.to_string(), "tensor([[1, 1, 3], [1, 2, 1]])");
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct HetTensor {
    /// One row that holds everything: axis `k + 1` is dim `k`.
    array: RaggedArray,
}

/// What an operation gives: a [`DenseTensor`] where no axis differs in size and nothing is missing,
/// else a [`HetTensor`].
#[derive(Clone, Debug, PartialEq)]
pub enum HetValue {
    /// Some axis differs in size, or there are holes.
    Het(HetTensor),
    /// A plain tensor.
    Dense(DenseTensor),
}

impl HetTensor {
    /// From lists: the rows are dim 0, each level of lists is a dim. Null leaves and null lists are
    /// holes. Nothing is copied.
    ///
    /// # Errors
    /// For leaves that are neither numbers nor booleans.
    pub fn from_ragged(array: &RaggedArray) -> Result<Self> {
        let (rows, axes, leaves) = array.clone().into_parts();
        let mut all = vec![ListAxis::from(Layout::Uniform { size: rows, lists: 1 })];
        all.extend(axes);
        Self::boxed(RaggedArray::try_new(1, all, leaves)?)
    }

    /// From a dense tensor, whose memory it shares (bfloat16 becomes float32, booleans are packed).
    ///
    /// # Errors
    /// None that a tensor could cause.
    pub fn from_dense(tensor: &DenseTensor) -> Result<Self> {
        let mut axes = Vec::with_capacity(tensor.ndim());
        let mut lists = 1usize;
        for size in tensor.shape() {
            axes.push(ListAxis::from(Layout::Uniform { size: *size, lists }));
            // No more than the elements there are, or 0.
            lists = lists.saturating_mul(*size);
        }
        Self::boxed(RaggedArray::try_new(1, axes, tensor.to_flat()?)?)
    }

    /// From one row that holds everything, axes of one size known as such.
    fn boxed(array: RaggedArray) -> Result<Self> {
        if DType::from_arrow(array.leaf_type()).is_none() {
            return Err(Error::type_of("a tensor", "numbers or booleans", array.leaf_type()));
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

    /// As an array whose rows are dim 0; holes are nulls. Nothing is copied.
    ///
    /// # Errors
    /// When there are no dims.
    pub fn to_ragged(&self) -> Result<RaggedArray> {
        self.array.inner(1)
    }

    /// Number of dims.
    pub fn ndim(&self) -> usize {
        self.array.axes().len()
    }

    /// Type of the values.
    pub fn dtype(&self) -> DType {
        // Checked when it was made.
        DType::from_arrow(self.array.leaf_type()).unwrap_or(DType::F64)
    }

    /// Number of values there are.
    pub fn num_values(&self) -> usize {
        self.array.leaves().len() - self.array.leaves().null_count()
    }

    /// Whether places without a value are among the places there are.
    pub fn has_holes(&self) -> bool {
        self.array.leaves().null_count() > 0
            || self.array.axes().iter().any(|axis| axis.nulls().is_some())
    }

    /// The padded tensor of shape [`max_shape`](Self::max_shape): 0 (or the fill of `options`) where
    /// there is no value.
    ///
    /// # Errors
    /// As [`densify`]: more bytes than the limit, a fill that the type does not have.
    pub fn to_dense(&self, options: &DenseOptions) -> Result<DenseTensor> {
        if self.is_dense() {
            return self.plain()?.cast(options.dtype.unwrap_or(self.dtype()));
        }
        let tensor = densify(&self.array, None, options)?;
        let shape = tensor.shape().get(1..).unwrap_or_default().to_vec();
        tensor.reshape(shape)
    }

    /// Whether no axis differs in size and nothing is missing.
    pub fn is_dense(&self) -> bool {
        !self.has_holes() && self.array.axes().iter().all(|axis| !axis.layout().is_ragged())
    }

    /// A dense tensor where it is one, else itself.
    ///
    /// # Errors
    /// None that a tensor could cause.
    pub fn into_value(self) -> Result<HetValue> {
        Ok(if self.is_dense() { HetValue::Dense(self.plain()?) } else { HetValue::Het(self) })
    }

    /// The values as they are in the shape they have.
    fn plain(&self) -> Result<DenseTensor> {
        DenseTensor::from_flat(self.array.leaves(), "a tensor")?.reshape(self.max_shape())
    }

    /// Dim `dim`, negatives from the last, as axis of the array inside.
    fn axis_of(&self, dim: i64) -> Result<usize> {
        Ok(crate::array::resolve_axis(dim, self.ndim(), "the tensor")? + 1)
    }
}

impl HetValue {
    /// The dense tensor; `None` when there is an axis that differs in size, or a hole.
    pub fn dense(&self) -> Option<&DenseTensor> {
        match self {
            Self::Dense(tensor) => Some(tensor),
            Self::Het(_) => None,
        }
    }

    /// As a [`HetTensor`], whatever it is.
    ///
    /// # Errors
    /// None that a tensor could cause.
    pub fn into_het(self) -> Result<HetTensor> {
        match self {
            Self::Het(het) => Ok(het),
            Self::Dense(tensor) => HetTensor::from_dense(&tensor),
        }
    }

    /// Padded with zeros where it is not dense.
    ///
    /// # Errors
    /// As [`HetTensor::to_dense`].
    pub fn to_dense(&self) -> Result<DenseTensor> {
        match self {
            Self::Het(het) => het.to_dense(&DenseOptions::default()),
            Self::Dense(tensor) => Ok(tensor.clone()),
        }
    }

    /// Type of the values.
    pub fn dtype(&self) -> DType {
        match self {
            Self::Het(het) => het.dtype(),
            Self::Dense(tensor) => tensor.dtype(),
        }
    }
}

/// As nested lists, uniform blocks as tensors: `[[tensor([1, 2]), tensor([3])], tensor([[4, 5, 6]])]`.
impl fmt::Display for HetTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.unbind().map_err(|_| fmt::Error)?.fmt(f)
    }
}

/// As [`HetTensor`]; a dense one as one tensor.
impl fmt::Display for HetValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Het(het) => het.fmt(f),
            Self::Dense(tensor) => Nested::Tensor(tensor.clone()).fmt(f),
        }
    }
}
