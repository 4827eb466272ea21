//! Types and sizes of the dims of a tensor.

use std::collections::HashMap;
use std::fmt;

use arrow::array::Array;

use super::HetTensor;
use crate::array::{Layout, ListAxis};

/// Whether the slices along a dim differ in shape.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::het::DimType;
/// assert_eq!(format!("{} {}", DimType::Batch, DimType::Het), "batch het");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DimType {
    /// All slices along the dim have the same shape.
    Batch,
    /// Slices along the dim differ in shape.
    Het,
}

impl fmt::Display for DimType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Batch => "batch",
            Self::Het => "het",
        })
    }
}

impl HetTensor {
    /// Returns the type of each dim, as defined by the Python library HetTensor: a dim is `Batch`
    /// if all slices along it have values at the same coordinates, else `Het`.
    ///
    /// The outer dim of `[[1, 2], [3]]` is therefore `Het`, although it has a fixed size, because
    /// its slices differ. [`uniform_shape`](Self::uniform_shape) considers only sizes.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{DimType, HetTensor, NestedTensors};
    /// let z = HetTensor::from_nested(&NestedTensors::List(vec![
    ///     DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 5, 6])?.into(),
    ///     DenseTensor::from_vec([1, 3], vec![7, 8, 9])?.into(),
    /// ]))?;
    /// assert_eq!(z.dim_types(), [DimType::Het, DimType::Het, DimType::Batch]);
    /// assert_eq!(z.shape(), [None, None, Some(3)]);
    /// assert_eq!(z.uniform_shape(), [Some(2), None, Some(3)]);
    /// assert_eq!(z.max_shape(), [2, 2, 3]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn dim_types(&self) -> Vec<DimType> {
        let leaves = self.array.leaves();
        // The loop goes from the innermost axis outwards, starting with one id per leaf: 1 for a
        // value, 0 for a null. Two lists get the same id if their elements have the same ids. Nulls
        // at the end of a list do not count, so `[5, 6, NULL]` and `[7, 8]` get the same id.
        let mut below = SliceStructure::Same;
        if leaves.null_count() > 0 {
            below = SliceStructure::Each(
                (0..leaves.len()).map(|i| u32::from(leaves.is_valid(i))).collect(),
            );
        }
        let mut types = Vec::with_capacity(self.ndim());
        for axis in self.array.axes().iter().rev() {
            let (kind, next) = below.classify_axis(axis);
            types.push(kind);
            below = next;
        }
        types.reverse();
        types
    }

    /// Returns the size of every dim, or `None` for a [`Het`](DimType::Het) dim, for which the
    /// library HetTensor has -1.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!(x.shape(), [None, None]);
    /// let even = HetTensor::from_dense(&DenseTensor::from_vec([1, 2], vec![1, 2])?)?;
    /// assert_eq!(even.shape(), [Some(1), Some(2)]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn shape(&self) -> Vec<Option<usize>> {
        let sizes = self.max_shape().into_iter().zip(self.dim_types());
        sizes.map(|(size, kind)| (kind == DimType::Batch).then_some(size)).collect()
    }

    /// Returns the largest size of every dim, which is the shape of the padded tensor.
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
    pub fn max_shape(&self) -> Vec<usize> {
        self.array.axes().iter().map(|axis| axis.layout().max_length()).collect()
    }

    /// Returns the size of every dim; `None` for a dim whose lists differ in length, or one of
    /// whose lists is null.
    ///
    /// Dim 0 is a single list, so its size is always known; [`shape`](Self::shape) returns `None`
    /// for dim 0 if its slices differ in shape.
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
    /// assert_eq!(x.uniform_shape(), [Some(2), None]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn uniform_shape(&self) -> Vec<Option<usize>> {
        let size = |axis: &ListAxis| match axis.layout() {
            Layout::Ragged(_) => None,
            Layout::Uniform { size, .. } => Some(*size),
        };
        self.array.axes().iter().map(size).collect()
    }
}

/// Tells which elements of an axis have the same structure: values at the same coordinates within
/// the element. `[5, NULL, 6]` and `[7, NULL, 8]` have the same structure, `[5, 6]` and `[7]` not.
enum SliceStructure {
    /// All elements have values at the same coordinates, and each has at least one value.
    Same,
    /// One id per element; equal ids mean values at the same coordinates, and 0 means no values.
    Each(Vec<u32>),
}

impl SliceStructure {
    /// Returns the type of the dim of `axis`, and the structure of the lists of `axis`. `self` is
    /// the structure of the elements of these lists.
    fn classify_axis(&self, axis: &ListAxis) -> (DimType, Self) {
        let layout = axis.layout();
        let lists = layout.lists();
        if let (Self::Same, Layout::Uniform { size: 1.., .. }, None) = (self, layout, axis.nulls())
        {
            return (DimType::Batch, Self::Same);
        }
        let longest = layout.max_length();
        let mut numbers: HashMap<&[u32], u32> = HashMap::new();
        let ones;
        let children: &[u32] = match self {
            Self::Same => {
                // All elements have the id 1, so the ids of a list of length `n` are the first `n`
                // of `ones`.
                ones = vec![1; longest];
                &ones
            }
            Self::Each(numbers) => numbers,
        };
        let (mut same, mut any) = (true, false);
        let mut out = Vec::with_capacity(lists);
        for list in 0..lists {
            let range = match self {
                Self::Same => 0..layout.length(list),
                Self::Each(_) => layout.range(list),
            };
            let inner = &children[range];
            let filled = inner.iter().rposition(|n| *n != 0).map_or(0, |last| last + 1);
            if filled == 0 {
                out.push(0);
                continue;
            }
            any = true;
            same &= inner.len() == longest && inner.iter().all(|n| *n == inner[0]);
            let next = u32::try_from(numbers.len() + 1).unwrap_or(u32::MAX);
            out.push(*numbers.entry(&inner[..filled]).or_insert(next));
        }
        if !any {
            same = axis.nulls().is_none() && (0..lists).all(|i| layout.length(i) == longest);
        }
        (if same { DimType::Batch } else { DimType::Het }, Self::Each(out))
    }
}
