use std::ops::Range;

use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;

use super::{Layout, Offsets, resolve_axis};
use crate::error::{Error, Result};

/// One level of lists of a [`RaggedArray`]: the layout (the length of each list) and the validity.
///
/// Null lists and empty lists differ only in validity.
///
/// ```
/// # use serrate_core as serrate;
/// use arrow::buffer::NullBuffer;
/// use serrate::array::{ListAxis, Offsets};
/// // [1, 2], NULL
/// let lists = Offsets::from_lengths([2, 0])?;
/// let axis = ListAxis::try_new(lists, Some(NullBuffer::from(vec![true, false])))?;
/// assert_eq!((axis.layout().children(), axis.nulls().unwrap().null_count()), (2, 1));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ListAxis {
    layout: Layout,
    nulls: Option<NullBuffer>,
}

impl ListAxis {
    /// Builds a level of lists from its parts.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::buffer::NullBuffer;
    /// use serrate::array::{ListAxis, Offsets};
    /// let nulls = NullBuffer::from(vec![true, false]);
    /// let axis = ListAxis::try_new(Offsets::from_lengths([2, 0])?, Some(nulls))?;
    /// assert!(axis.nulls().is_some_and(|nulls| nulls.is_null(1)));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the validity does not have one bit per list, or a null list has children.
    pub fn try_new(layout: impl Into<Layout>, nulls: Option<NullBuffer>) -> Result<Self> {
        let layout = layout.into();
        let nulls = nulls.filter(|n| n.null_count() > 0);
        if let Some(n) = &nulls {
            if n.len() != layout.lists() {
                return Err(Error::invalid(format!(
                    "the validity bitmap has {} bit(s) for {} list(s); give one bit per list",
                    n.len(),
                    layout.lists()
                )));
            }
            if let Some(i) = (0..n.len()).find(|i| n.is_null(*i) && layout.length(*i) > 0) {
                return Err(Error::invalid(format!(
                    "list {i} is null, but has {} element(s); make every null list empty",
                    layout.length(i)
                )));
            }
        }
        Ok(Self { layout, nulls })
    }

    /// Returns the layout of the lists, which determines the children of each list.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::buffer::NullBuffer;
    /// use serrate::array::{ListAxis, Offsets};
    /// let nulls = NullBuffer::from(vec![true, false]);
    /// let axis = ListAxis::try_new(Offsets::from_lengths([2, 0])?, Some(nulls))?;
    /// assert_eq!((axis.layout().lists(), axis.layout().children()), (2, 2));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the validity of the lists; `None` if no list is null.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::buffer::NullBuffer;
    /// use serrate::array::{ListAxis, Offsets};
    /// let nulls = NullBuffer::from(vec![true, false]);
    /// let axis = ListAxis::try_new(Offsets::from_lengths([2, 0])?, Some(nulls))?;
    /// assert!(axis.nulls().is_some_and(|nulls| nulls.is_null(1)));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn nulls(&self) -> Option<&NullBuffer> {
        self.nulls.as_ref()
    }

    fn slice(&self, offset: usize, length: usize) -> Self {
        Self {
            layout: self.layout.slice(offset, length),
            nulls: self
                .nulls
                .as_ref()
                .map(|n| n.slice(offset, length))
                .filter(|n| n.null_count() > 0),
        }
    }
}

impl From<Layout> for ListAxis {
    fn from(layout: Layout) -> Self {
        Self { layout, nulls: None }
    }
}

impl From<Offsets> for ListAxis {
    fn from(offsets: Offsets) -> Self {
        Layout::from(offsets).into()
    }
}

/// A column of nested lists: levels of lists over one flat array of leaves.
///
/// Axis 0 is the rows. `axis(k)` has the lists whose elements form axis `k`; each element is a list
/// of the next level or a leaf. A null list has no elements. Clones and slices share all buffers.
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Arc;
/// use arrow::array::Int32Array;
/// use serrate::array::{Offsets, RaggedArray};
///
/// // [[1, 2], [], [3]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
/// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([2, 0, 1])?.into()], leaves)?;
/// assert_eq!(a.shape(), [Some(3), None]);
/// assert_eq!(a.max_shape(), [3, 2]);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RaggedArray {
    rows: usize,
    axes: Vec<ListAxis>,
    leaves: ArrayRef,
}

impl RaggedArray {
    /// Builds an array from its parts, outermost level first.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// // [[1, 2], [], [3]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([2, 0, 1])?.into()], leaves)?;
    /// assert_eq!(a.shape(), [Some(3), None]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the number of lists of a level, or of leaves, is not the number of elements of the level
    /// above.
    pub fn try_new(rows: usize, axes: Vec<ListAxis>, leaves: ArrayRef) -> Result<Self> {
        let mut expected = rows;
        for (i, axis) in axes.iter().enumerate() {
            if axis.layout.lists() != expected {
                return Err(Error::invalid(format!(
                    "axis {} has {} list(s), but axis {i} has {expected} element(s); give one list per element",
                    i + 1,
                    axis.layout.lists()
                )));
            }
            expected = axis.layout.check_child_count(i + 1)?;
        }
        if leaves.len() != expected {
            return Err(Error::invalid(format!(
                "the number of leaves is {}, but the innermost axis has {expected} element(s); give one leaf per element",
                leaves.len()
            )));
        }
        Ok(Self { rows, axes, leaves })
    }

    /// Returns the number of rows.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// // [[1, 2], [], [3]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([2, 0, 1])?.into()], leaves)?;
    /// assert_eq!(a.len(), 3);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Returns whether there are no rows.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// // [[1, 2], [], [3]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([2, 0, 1])?.into()], leaves)?;
    /// assert!(!a.is_empty());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the number of axes, rows included; 1 for a flat array.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// // [[1, 2], [], [3]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([2, 0, 1])?.into()], leaves)?;
    /// assert_eq!(a.ndim(), 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn ndim(&self) -> usize {
        self.axes.len() + 1
    }

    /// Returns the levels of lists, outermost first; `axes()[k - 1]` is axis `k`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// // [[1, 2], [], [3]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([2, 0, 1])?.into()], leaves)?;
    /// assert_eq!(a.axes()[0].layout().lists(), 3);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn axes(&self) -> &[ListAxis] {
        &self.axes
    }

    /// Returns the level of lists whose elements form axis `axis` (1 or more).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// // [[1, 2], [], [3]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([2, 0, 1])?.into()], leaves)?;
    /// assert_eq!(a.axis(1)?.layout().max_length(), 2);
    /// assert!(a.axis(2).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchAxis`] for axis 0, which has no lists, and when the array has no such axis.
    pub fn axis(&self, axis: usize) -> Result<&ListAxis> {
        axis.checked_sub(1).and_then(|i| self.axes.get(i)).ok_or_else(|| Error::NoSuchAxis {
            what: "the array".into(),
            axis: i64::try_from(axis).unwrap_or(i64::MAX),
            ndim: self.ndim(),
        })
    }

    /// Returns the flat leaves.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// // [[1, 2], [], [3]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([2, 0, 1])?.into()], leaves)?;
    /// assert_eq!(a.leaves().len(), 3);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn leaves(&self) -> &ArrayRef {
        &self.leaves
    }

    /// Returns the type of the leaves.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use arrow::datatypes::DataType;
    /// use serrate::array::{Offsets, RaggedArray};
    /// // [[1, 2], [], [3]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([2, 0, 1])?.into()], leaves)?;
    /// assert_eq!(a.leaf_type(), &DataType::Int32);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn leaf_type(&self) -> &DataType {
        self.leaves.data_type()
    }

    /// Returns the number of elements of an axis: rows for axis 0, leaves for the innermost.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// // [[1, 2], [], [3]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([2, 0, 1])?.into()], leaves)?;
    /// assert_eq!((a.axis_len(0)?, a.axis_len(1)?), (3, 3));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchAxis`] when the array has no such axis.
    pub fn axis_len(&self, axis: usize) -> Result<usize> {
        if axis == 0 { Ok(self.rows) } else { Ok(self.axis(axis)?.layout.children()) }
    }

    /// Returns the size of every axis; `None` for an axis that is stored with offsets
    /// ([`Layout::Ragged`]).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// // [[1, 2], [], [3]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([2, 0, 1])?.into()], leaves)?;
    /// assert_eq!(a.shape(), [Some(3), None]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn shape(&self) -> Vec<Option<usize>> {
        std::iter::once(Some(self.rows))
            .chain(self.axes.iter().map(|a| match a.layout {
                Layout::Ragged(_) => None,
                Layout::Uniform { size, .. } => Some(size),
            }))
            .collect()
    }

    /// Returns the shape after padding: the number of rows, then the length of the longest list of
    /// each axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// // [[[1], [2, 3]], [[4]]]
    /// let axes = vec![Offsets::from_lengths([2, 1])?.into(), Offsets::from_lengths([1, 2, 1])?.into()];
    /// let a = RaggedArray::try_new(2, axes, Arc::new(Int32Array::from(vec![1, 2, 3, 4])))?;
    /// assert_eq!(a.max_shape(), [2, 2, 2]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn max_shape(&self) -> Vec<usize> {
        std::iter::once(self.rows).chain(self.axes.iter().map(|a| a.layout.max_length())).collect()
    }

    /// Returns the number of bytes of values, validity and offsets that this array uses.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// // [[1, 2], [], [3]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([2, 0, 1])?.into()], leaves)?;
    /// assert!(a.nbytes() >= 3 * 4 + 4 * 4); // 3 values and 4 offsets
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn nbytes(&self) -> usize {
        let lists = self
            .axes
            .iter()
            .map(|a| a.layout.count_bytes() + a.nulls.as_ref().map_or(0, |n| n.len().div_ceil(8)));
        lists.sum::<usize>() + self.leaves.to_data().get_slice_memory_size().unwrap_or(0)
    }

    /// Returns the length of each list of `axis`, 0 for a null list.
    ///
    /// A negative `axis` counts from the innermost axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// // [[[1], [2, 3]], [[4]]]
    /// let axes = vec![Offsets::from_lengths([2, 1])?.into(), Offsets::from_lengths([1, 2, 1])?.into()];
    /// let a = RaggedArray::try_new(2, axes, Arc::new(Int32Array::from(vec![1, 2, 3, 4])))?;
    /// assert_eq!(a.lengths(1)?, [2, 1]);
    /// assert_eq!(a.lengths(-1)?, [1, 2, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchAxis`] for axis 0, which has no lists, and when the array has no such axis.
    pub fn lengths(&self, axis: i64) -> Result<Vec<usize>> {
        let axis = resolve_axis(axis, self.ndim(), "the array")?;
        let layout = self.axis(axis)?.layout();
        Ok((0..layout.lists()).map(|i| layout.length(i)).collect())
    }

    /// Returns the `length` rows from row `offset` on, sharing all buffers; O(number of axes).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// // [[1, 2], [], [3]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([2, 0, 1])?.into()], leaves)?;
    /// assert_eq!(a.slice(1, 2)?.max_shape(), [2, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the range is outside the rows.
    pub fn slice(&self, offset: usize, length: usize) -> Result<Self> {
        if offset.checked_add(length).is_none_or(|end| end > self.rows) {
            return Err(Error::OutOfRange {
                axis: 0,
                index: i64::try_from(offset.saturating_add(length)).unwrap_or(i64::MAX),
                size: self.rows,
            });
        }
        let mut window: Range<usize> = offset..offset + length;
        let mut axes = Vec::with_capacity(self.axes.len());
        for axis in &self.axes {
            axes.push(axis.slice(window.start, window.len()));
            window = axis.layout.ranges(window);
        }
        let leaves = self.leaves.slice(window.start, window.len());
        Ok(Self { rows: length, axes, leaves })
    }

    /// Replaces the leaves with an array of the same length and keeps the lists.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{BooleanArray, Int32Array};
    /// use serrate::array::{Offsets, RaggedArray};
    /// let axes = vec![Offsets::from_lengths([2, 1])?.into()];
    /// let a = RaggedArray::try_new(2, axes, Arc::new(Int32Array::from(vec![1, 2, 3])))?;
    /// let mask = a.with_leaves(Arc::new(BooleanArray::from(vec![true, false, true])))?;
    /// assert_eq!(mask.lengths(1)?, a.lengths(1)?);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the number of leaves differs.
    pub fn with_leaves(&self, leaves: ArrayRef) -> Result<Self> {
        Self::try_new(self.rows, self.axes.clone(), leaves)
    }

    /// Splits the array into the number of rows, the levels of lists and the leaves.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use arrow::datatypes::DataType;
    /// use serrate::array::{Offsets, RaggedArray};
    /// let axes = vec![Offsets::from_lengths([2, 1])?.into()];
    /// let a = RaggedArray::try_new(2, axes, Arc::new(Int32Array::from(vec![1, 2, 3])))?;
    /// assert_eq!((a.is_empty(), a.axes().len(), a.axis_len(1)?), (false, 1, 3));
    /// assert_eq!(a.leaf_type(), &DataType::Int32);
    /// let (rows, axes, leaves) = a.clone().into_parts();
    /// assert_eq!(RaggedArray::try_new(rows, axes, leaves)?, a);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn into_parts(self) -> (usize, Vec<ListAxis>, ArrayRef) {
        (self.rows, self.axes, self.leaves)
    }

    /// Drops all levels of lists above axis `axis`: the elements of this axis become the rows.
    ///
    /// Copies nothing.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// // [[[1], [2, 3]], [[4]]]
    /// let axes = vec![Offsets::from_lengths([2, 1])?.into(), Offsets::from_lengths([1, 2, 1])?.into()];
    /// let a = RaggedArray::try_new(2, axes, Arc::new(Int32Array::from(vec![1, 2, 3, 4])))?;
    /// assert_eq!(a.inner(1)?.lengths(1)?, [1, 2, 1]);
    /// assert_eq!(a.inner(2)?.len(), 4);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchAxis`] when the array has no such axis.
    pub fn inner(&self, axis: usize) -> Result<Self> {
        let rows = self.axis_len(axis)?;
        Ok(Self { rows, axes: self.axes[axis..].to_vec(), leaves: self.leaves.clone() })
    }
}

/// Arrays are equal if they have the same rows, list lengths, validity and leaves. An axis with
/// [`Layout::Uniform`] can equal an axis with [`Layout::Ragged`]. NaN equals only NaN with the same
/// bits, as in Arrow.
impl PartialEq for RaggedArray {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows
            && self.axes.len() == other.axes.len()
            && self
                .axes
                .iter()
                .zip(&other.axes)
                .all(|(a, b)| a.layout == b.layout && a.nulls == b.nulls)
            && *self.leaves == *other.leaves
    }
}
