//! Conversion of nested lists of tensors to and from [`HetTensor`].

use std::fmt;
use std::ops::Range;

use arrow::array::{Array, ArrayRef, new_empty_array, new_null_array};
use arrow::compute::{cast, concat};
use arrow::datatypes::DataType;

use super::HetTensor;
use super::promote::promote_dtypes;
use crate::array::{Layout, ListAxis, Offsets, RaggedArray};
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};
use crate::limit::check_size;

/// A nested list of tensors.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::DenseTensor;
/// use serrate::het::NestedTensors;
/// let values = DenseTensor::from_vec([2], vec![1, 2])?;
/// let nested = NestedTensors::List(vec![values.into(), NestedTensors::Hole]);
/// assert_eq!(nested.to_string(), "[tensor([1, 2]), -]");
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum NestedTensors {
    /// A tensor of any shape.
    Tensor(DenseTensor),
    /// A list of lists and tensors; `List(vec![])` is an empty list of any depth.
    List(Vec<NestedTensors>),
    /// An element without a value.
    Hole,
}

impl From<DenseTensor> for NestedTensors {
    fn from(tensor: DenseTensor) -> Self {
        Self::Tensor(tensor)
    }
}

impl From<Vec<NestedTensors>> for NestedTensors {
    fn from(list: Vec<NestedTensors>) -> Self {
        Self::List(list)
    }
}

/// Writes lists in brackets and holes as `-`, such as `[tensor([1, 2]), -, []]`.
impl fmt::Display for NestedTensors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hole => f.write_str("-"),
            Self::Tensor(tensor) => {
                f.write_str("tensor(")?;
                tensor.format_whole(f)?;
                f.write_str(")")
            }
            Self::List(list) => {
                f.write_str("[")?;
                for (i, part) in list.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    part.fmt(f)?;
                }
                f.write_str("]")
            }
        }
    }
}

impl HetTensor {
    /// Creates a tensor from a nested list of tensors.
    ///
    /// Every level of lists and every axis of the tensors becomes a dim, so their total number must
    /// be the same for all tensors.
    ///
    /// Empty lists are kept, even after the last value (the library HetTensor drops these). Types
    /// are promoted as in PyTorch (int64 with float32 gives float32); bfloat16 becomes float32.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |values: &[i64]| DenseTensor::from_vec([values.len()], values.to_vec());
    /// let nested = NestedTensors::List(vec![row(&[1, 2])?.into(), row(&[])?.into()]);
    /// let x = HetTensor::from_nested(&nested)?;
    /// assert_eq!((x.ndim(), x.max_shape(), x.num_values()), (2, vec![2, 2], 2));
    /// // The first element is a list of tensors, the second a tensor: the depths differ.
    /// let uneven = NestedTensors::List(vec![nested, row(&[3])?.into()]);
    /// assert!(HetTensor::from_nested(&uneven).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `nested` has no tensor, or tensors differ in their number of dims (levels of lists around
    /// the tensor plus its axes); the message names the position.
    pub fn from_nested(nested: &NestedTensors) -> Result<Self> {
        let mut found = NestedSummary::default();
        found.visit_nested(nested, 0, &mut Vec::new())?;
        let Some((depth, dtype)) = found.tensors else {
            return Err(Error::invalid(
                "the nested list contains no tensor, so its depth and type are unknown; add at least an empty tensor",
            ));
        };
        if found.lists > depth {
            return Err(Error::DepthVaries {
                path: "the nested list".into(),
                expected: format!("{depth} levels of lists and axes, as at the first tensor"),
                found: format!("{} levels of lists", found.lists),
            });
        }
        let mut build = ListBuilder {
            lengths: vec![Vec::new(); depth],
            valid: vec![Vec::new(); depth],
            parts: Vec::new(),
            leaf: dtype.to_arrow(),
        };
        build.add_nested(nested, 0)?;
        let mut axes = Vec::with_capacity(depth);
        for (lengths, valid) in build.lengths.into_iter().zip(build.valid) {
            let nulls = valid.contains(&false).then(|| valid.into_iter().collect());
            axes.push(ListAxis::try_new(Offsets::from_lengths(lengths)?, nulls)?);
        }
        let parts: Vec<&dyn Array> = build.parts.iter().map(AsRef::as_ref).collect();
        let leaves = if parts.is_empty() { new_empty_array(&build.leaf) } else { concat(&parts)? };
        Self::from_boxed(RaggedArray::try_new(1, axes, leaves)?)
    }

    /// Returns the nested list of tensors without a copy.
    ///
    /// A sublist of uniform shape is one tensor.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let nested = NestedTensors::List(vec![
    ///     DenseTensor::from_vec([2], vec![1i64, 2])?.into(),
    ///     DenseTensor::from_vec([1], vec![3i64])?.into(),
    /// ]);
    /// assert_eq!(HetTensor::from_nested(&nested)?.unbind()?, nested);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Never: all parts are within the bounds of the values.
    pub fn unbind(&self) -> Result<NestedTensors> {
        let values = DenseTensor::from_flat(self.array.leaves(), "a tensor")?;
        Unbinder { het: self, values }.build_nested(0, 0)
    }
}

#[derive(Default)]
struct NestedSummary {
    lists: usize,
    /// Number of dims of a tensor (levels of lists around it plus its axes), and the promoted type
    /// of all tensors so far; `None` before the first tensor.
    tensors: Option<(usize, DType)>,
}

impl NestedSummary {
    fn visit_nested(
        &mut self,
        nested: &NestedTensors,
        level: usize,
        path: &mut Vec<usize>,
    ) -> Result<()> {
        match nested {
            NestedTensors::Hole => self.lists = self.lists.max(level),
            NestedTensors::List(list) => {
                self.lists = self.lists.max(level + 1);
                for (i, part) in list.iter().enumerate() {
                    path.push(i);
                    self.visit_nested(part, level + 1, path)?;
                    path.pop();
                }
            }
            NestedTensors::Tensor(tensor) => {
                let depth = level + tensor.ndim();
                self.tensors = Some(match self.tensors {
                    Some((expected, _)) if expected != depth => {
                        let at: String = path.iter().map(|i| format!("[{i}]")).collect();
                        return Err(Error::DepthVaries {
                            path: format!("the tensor {at}"),
                            expected: format!("{expected} levels of lists and axes"),
                            found: format!("{depth}"),
                        });
                    }
                    Some((depth, dtype)) => (depth, promote_dtypes(dtype, tensor.dtype())),
                    None => (depth, promote_dtypes(tensor.dtype(), tensor.dtype())),
                });
            }
        }
        Ok(())
    }
}

struct ListBuilder {
    lengths: Vec<Vec<usize>>,
    valid: Vec<Vec<bool>>,
    parts: Vec<ArrayRef>,
    leaf: DataType,
}

impl ListBuilder {
    fn add_nested(&mut self, nested: &NestedTensors, level: usize) -> Result<()> {
        match nested {
            NestedTensors::Hole if level == self.lengths.len() => {
                self.parts.push(new_null_array(&self.leaf, 1));
            }
            NestedTensors::Hole => {
                self.lengths[level].push(0);
                self.valid[level].push(false);
            }
            NestedTensors::List(list) => {
                self.lengths[level].push(list.len());
                self.valid[level].push(true);
                for part in list {
                    self.add_nested(part, level + 1)?;
                }
            }
            NestedTensors::Tensor(tensor) => {
                let mut lists = 1usize;
                for (axis, size) in tensor.shape().iter().enumerate() {
                    let lengths = &mut self.lengths[level + axis];
                    // A tensor without elements may have huge axes, as in the shape
                    // `[1 << 40, 0]`. Check the number of lists before memory is allocated for
                    // their lengths.
                    let total = lengths.len().saturating_add(lists);
                    check_size(&format!("axis {} of a nested list", level + axis), total, 64)?;
                    lengths.resize(lengths.len() + lists, *size);
                    let valid = &mut self.valid[level + axis];
                    valid.resize(valid.len() + lists, true);
                    lists = lists.saturating_mul(*size);
                }
                let flat = tensor.to_flat()?;
                let same = *flat.data_type() == self.leaf;
                self.parts.push(if same { flat } else { cast(&flat, &self.leaf)? });
            }
        }
        Ok(())
    }
}

struct Unbinder<'a> {
    het: &'a HetTensor,
    values: DenseTensor,
}

impl Unbinder<'_> {
    /// Returns element `at` of level `level` (0 is the outermost lists). A list without holes in
    /// which no axis varies in size becomes one tensor; any other list becomes a
    /// [`NestedTensors::List`]. Below the last level of lists, an element is a scalar. A null
    /// becomes a hole.
    fn build_nested(&self, level: usize, at: usize) -> Result<NestedTensors> {
        let array = &self.het.array;
        let Some(axis) = array.axes().get(level) else {
            if array.leaves().is_null(at) {
                return Ok(NestedTensors::Hole);
            }
            return Ok(NestedTensors::Tensor(self.values.slice(at, 1)?.reshape([])?));
        };
        if axis.nulls().is_some_and(|n| n.is_null(at)) {
            return Ok(NestedTensors::Hole);
        }
        if let Some((shape, leaves)) = self.find_block(level, at) {
            return Ok(NestedTensors::Tensor(
                self.values.slice(leaves.start, leaves.len())?.reshape(shape)?,
            ));
        }
        let parts = axis.layout().range(at).map(|child| self.build_nested(level + 1, child));
        parts.collect::<Result<_>>().map(NestedTensors::List)
    }

    /// Returns the dense shape and leaf range of list `at` of level `level`; `None` if the list is
    /// ragged or has holes.
    fn find_block(&self, level: usize, at: usize) -> Option<(Vec<usize>, Range<usize>)> {
        let array = &self.het.array;
        let mut window = at..at + 1;
        let mut shape = Vec::new();
        for axis in &array.axes()[level..] {
            let layout = axis.layout();
            let size = match layout {
                // The sizes of the axes below an empty list are undefined, so there is no dense
                // shape.
                _ if window.is_empty() => return None,
                Layout::Uniform { size, .. } => *size,
                Layout::Ragged(_) => layout.length(window.start),
            };
            let same = window.clone().all(|list| {
                layout.length(list) == size && axis.nulls().is_none_or(|n| n.is_valid(list))
            });
            if !same {
                return None;
            }
            shape.push(size);
            window = layout.ranges(window);
        }
        let nulls = array.leaves().nulls();
        let whole = nulls.is_none_or(|n| window.clone().all(|i| n.is_valid(i)));
        whole.then_some((shape, window))
    }
}
