//! Index expressions with NumPy's semantics, resolved against the sizes of axes.

pub(crate) mod broadcast_shape;
pub(crate) mod index_parser;

use std::ops::{Range, RangeFrom, RangeFull, RangeTo};

use broadcast_shape::derive_strides;

use crate::error::{Error, Result};

pub use index_parser::parse_index;

/// One comma-separated item of an index expression such as `2, 3:10`; the items apply to the axes
/// in order.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::index::{Index, parse_index};
/// let items = parse_index("2, 3:10, ..., [0, 2, -1]")?;
/// let same: [Index; 4] = [2.into(), (3..10).into(), Index::Rest, vec![0, 2, -1].into()];
/// assert_eq!(items, same);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Index {
    /// An integer: selects one element and drops the axis.
    At(i64),
    /// A slice `start:stop:step`: keeps the axis.
    Slice {
        /// Index to start at; `None` for the first element (the last if the step is negative).
        start: Option<i64>,
        /// Index to stop before; `None` to go on to the last element (the first if the step is
        /// negative).
        stop: Option<i64>,
        /// Distance between selected elements; `None` for 1. Must not be 0.
        step: Option<i64>,
    },
    /// Selects the elements at these indices (repeats allowed). If an index expression has an
    /// array, the arrays and integers ([`At`](Self::At)) of the expression are broadcast to one
    /// shape and paired, as in NumPy: `[0, 2], [1, 3]` selects the elements (0, 1) and (2, 3).
    Array(IndexArray<i64>),
    /// A boolean mask, which selects the elements where it is true. A mask of `k` axes (usually
    /// one) applies to the next `k` axes of the array, which must have the sizes of the mask.
    Mask(IndexArray<bool>),
    /// `...`: selects all of every axis that the other items do not use.
    Rest,
    /// `None`: inserts an axis of size 1.
    NewAxis,
}

impl Index {
    /// A whole axis: `:`.
    pub const ALL: Self = Self::Slice { start: None, stop: None, step: None };

    /// Returns whether the item always uses at least one axis of the array.
    ///
    /// `None` never uses an axis; `...` uses no axis if the other items use all axes.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::index::{Index, parse_index};
    /// let index = parse_index("..., None, 0, [2, 1]")?;
    /// let taken: Vec<bool> = index.iter().map(Index::takes_axis).collect();
    /// assert_eq!(taken, [false, false, true, true]);
    /// let Index::Array(array) = &index[3] else { panic!() };
    /// assert_eq!((array.values(), array.shape()), (&[2, 1][..], &[2][..]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn takes_axis(&self) -> bool {
        !matches!(self, Self::Rest | Self::NewAxis)
    }

    pub(crate) fn count_axes(&self) -> usize {
        match self {
            Self::Mask(mask) => mask.shape().len(),
            item => usize::from(item.takes_axis()),
        }
    }

    /// Extends an index to all axes: replaces [`Rest`](Self::Rest) with one `:` per axis that the
    /// other items do not use. Without a `Rest`, appends one `:` per such axis: `2` becomes
    /// `2, :, :` for 3 axes. If the other items use all axes, the `Rest` is kept, because NumPy
    /// orders the axes of the result differently if a `...` separates two index arrays. Returns an
    /// error for more items than axes, a second `...`, or a step of 0. `what` (such as
    /// `a table with 2 axes`) names the array in the error.
    pub(crate) fn expand_axes(index: &[Self], ndim: usize, what: &str) -> Result<Vec<Self>> {
        let given: usize = index.iter().map(Self::count_axes).sum();
        let Some(left) = ndim.checked_sub(given) else {
            return Err(Error::invalid(format!(
                "{given} indices are too many for {what}; give at most one per axis"
            )));
        };
        if index.iter().filter(|i| **i == Self::Rest).count() > 1 {
            return Err(Error::invalid("the index contains more than one `...`; use at most one"));
        }
        let mut out = Vec::with_capacity(ndim);
        for item in index {
            match item {
                Self::Rest if left > 0 => out.extend(std::iter::repeat_n(Self::ALL, left)),
                Self::Slice { step: Some(0), .. } => {
                    return Err(Error::invalid(
                        "a slice has a step of 0; use a positive or negative step",
                    ));
                }
                item => out.push(item.clone()),
            }
        }
        if !index.contains(&Self::Rest) {
            out.extend(std::iter::repeat_n(Self::ALL, left));
        }
        Ok(out)
    }
}

impl From<i64> for Index {
    fn from(at: i64) -> Self {
        Self::At(at)
    }
}

impl From<Range<i64>> for Index {
    fn from(r: Range<i64>) -> Self {
        Self::Slice { start: Some(r.start), stop: Some(r.end), step: None }
    }
}

impl From<RangeFrom<i64>> for Index {
    fn from(r: RangeFrom<i64>) -> Self {
        Self::Slice { start: Some(r.start), stop: None, step: None }
    }
}

impl From<RangeTo<i64>> for Index {
    fn from(r: RangeTo<i64>) -> Self {
        Self::Slice { start: None, stop: Some(r.end), step: None }
    }
}

impl From<RangeFull> for Index {
    fn from(_: RangeFull) -> Self {
        Self::ALL
    }
}

impl From<Vec<i64>> for Index {
    fn from(positions: Vec<i64>) -> Self {
        Self::Array(positions.into())
    }
}

impl From<Vec<bool>> for Index {
    fn from(mask: Vec<bool>) -> Self {
        Self::Mask(mask.into())
    }
}

/// An array of indices or booleans, of any number of axes.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::index::IndexArray;
/// assert_eq!(IndexArray::from(vec![0, 2, -1]).shape(), [3]);
/// assert!(IndexArray::try_new([2, 2], vec![true, false, true]).is_err());
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IndexArray<T> {
    shape: Vec<usize>,
    values: Vec<T>,
}

impl<T> IndexArray<T> {
    /// Builds an index array from a shape and its values in row-major order.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::index::{Index, IndexArray};
    /// let order = IndexArray::try_new([2, 2], vec![0, 1, 1, 0])?;
    /// let t = DenseTensor::from_vec([2], vec![5, 6])?;
    /// assert_eq!(t.index(&[Index::Array(order)])?.to_string(), "int32[2, 2] [[5, 6], [6, 5]]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the number of values differs from the number of elements of the shape.
    pub fn try_new(shape: impl Into<Vec<usize>>, values: Vec<T>) -> Result<Self> {
        let shape = shape.into();
        let elements = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        if elements != Some(values.len()) {
            return Err(Error::invalid(format!(
                "an index array of shape {shape:?} has {} value(s); give as many values as the product of the sizes in the shape",
                values.len()
            )));
        }
        Ok(Self { shape, values })
    }

    /// Returns the size of every axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::index::IndexArray;
    /// let mask = IndexArray::try_new([1, 2], vec![true, false])?;
    /// assert_eq!(mask.shape(), [1, 2]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the values, row-major.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::index::IndexArray;
    /// let mask = IndexArray::try_new([1, 2], vec![true, false])?;
    /// assert_eq!(mask.values(), [true, false]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Returns the values of an array with one axis. Returns an error for an array with another
    /// number of axes, which cannot index a ragged axis.
    pub(crate) fn as_flat(&self) -> Result<&[T]> {
        if self.shape.len() == 1 {
            return Ok(&self.values);
        }
        Err(Error::invalid(format!(
            "an index array of shape {:?} cannot index a ragged axis; use an array of one dimension",
            self.shape
        )))
    }
}

impl IndexArray<bool> {
    /// Returns the number of true elements, and their coordinates per axis, in row-major order.
    pub(crate) fn find_true_coordinates(&self) -> (usize, Vec<Vec<usize>>) {
        let true_at: Vec<usize> = (0..self.values.len()).filter(|i| self.values[*i]).collect();
        let axes = self.shape.iter().zip(derive_strides(&self.shape));
        let axes = axes.map(|(size, stride)| true_at.iter().map(|at| at / stride % size).collect());
        (true_at.len(), axes.collect())
    }
}

impl<T> From<Vec<T>> for IndexArray<T> {
    fn from(values: Vec<T>) -> Self {
        Self { shape: vec![values.len()], values }
    }
}

pub(crate) fn list_true_positions(mask: &[bool]) -> Vec<i64> {
    (0i64..).zip(mask).filter(|(_, m)| **m).map(|(i, _)| i).collect()
}

/// Returns the position of an index on an axis of `size` elements. A negative index counts from the
/// end: -1 gives `size - 1`. Returns `None` if `index` is out of range.
pub(crate) fn resolve_position(index: i64, size: usize) -> Option<usize> {
    if index < 0 {
        // Subtract as `usize`, because a size may exceed `i64::MAX`.
        return size.checked_sub(usize::try_from(index.unsigned_abs()).ok()?);
    }
    usize::try_from(index).ok().filter(|i| *i < size)
}

/// A slice of an axis: `count` elements from index `first` on, at a distance of `step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AxisSpan {
    pub(crate) first: usize,
    pub(crate) count: usize,
    pub(crate) step: i64,
}

impl AxisSpan {
    /// Resolves a slice `start:stop:step` of an axis of `size` elements by Python's rules: `::2`
    /// selects the elements 0, 2 and 4 of 5. A step of 0 selects nothing.
    pub(crate) fn new(start: Option<i64>, stop: Option<i64>, step: i64, size: usize) -> Self {
        let n = i64::try_from(size).unwrap_or(i64::MAX);
        // Clamp `start` and `stop` to `0..=n`, or to `-1..n` for a negative step, where -1 is the
        // position before the first element.
        let (low, high) = if step < 0 { (-1, n - 1) } else { (0, n) };
        let clip = |at: i64| if at < 0 { (at + n).max(low) } else { at.min(high) };
        let (from, to) = if step < 0 { (high, low) } else { (low, high) };
        let (start, stop) = (start.map_or(from, clip), stop.map_or(to, clip));
        let distance = if step < 0 { start - stop } else { stop - start };
        let step_size = step.unsigned_abs();
        let count = match u64::try_from(distance) {
            Ok(d) if d > 0 && step_size > 0 => {
                usize::try_from((d - 1) / step_size + 1).unwrap_or(0)
            }
            _ => 0,
        };
        let first = if count == 0 { 0 } else { usize::try_from(start).unwrap_or(0) };
        Self { first, count, step }
    }

    pub(crate) fn is_whole(self, size: usize) -> bool {
        self.count == size && (self.step == 1 || size < 2)
    }

    /// Returns the selected indices as a range; `None` if they are not adjacent and ascending.
    pub(crate) fn range(self) -> Option<Range<usize>> {
        (self.step == 1 || self.count < 2).then(|| self.first..self.first + self.count)
    }

    /// Returns the index on the axis of the `i`-th selected element; `i` must be less than
    /// `self.count`.
    pub(crate) fn to_index(self, i: usize) -> usize {
        // For `i < count`, the element is on the axis, so neither the product nor the result wraps.
        let distance =
            usize::try_from(self.step.unsigned_abs()).unwrap_or(usize::MAX).wrapping_mul(i);
        if self.step < 0 {
            self.first.wrapping_sub(distance)
        } else {
            self.first.wrapping_add(distance)
        }
    }

    pub(crate) fn positions(self) -> impl Iterator<Item = usize> {
        (0..self.count).map(move |i| self.to_index(i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_expanded_for_every_axis() {
        let all = |index: &str, ndim| {
            Index::expand_axes(&parse_index(index).unwrap(), ndim, "two axes")
                .map_err(|e| e.to_string())
        };
        assert_eq!(all("1", 3).unwrap(), [1.into(), Index::ALL, Index::ALL]);
        assert_eq!(all("..., 1, None", 2).unwrap(), [Index::ALL, 1.into(), Index::NewAxis]);
        assert_eq!(all("0, ..., 1", 2).unwrap(), [0.into(), Index::Rest, 1.into()]);
        assert_eq!(
            all("0, 0, 0", 2).unwrap_err(),
            "3 indices are too many for two axes; give at most one per axis"
        );
        let twice = Index::expand_axes(&[Index::Rest, Index::Rest], 2, "two axes");
        assert!(twice.unwrap_err().to_string().contains("at most one"));
        let zero = [Index::Slice { start: None, stop: None, step: Some(0) }];
        assert!(Index::expand_axes(&zero, 1, "one axis").is_err());
    }

    #[test]
    fn spans_are_pythons() {
        let taken = |start, stop, step, size| -> Vec<usize> {
            AxisSpan::new(start, stop, step, size).positions().collect()
        };
        assert_eq!(taken(None, None, -1, 3), [2, 1, 0]);
        assert_eq!(taken(Some(-2), None, 1, 3), [1, 2]);
        assert_eq!(taken(Some(5), Some(-9), -2, 5), [4, 2, 0]);
        assert_eq!(taken(Some(1), Some(i64::MAX), i64::MAX, 3), [1]);
        assert!(taken(Some(3), Some(1), 1, 5).is_empty() && taken(None, None, 2, 0).is_empty());
        assert_eq!(AxisSpan::new(Some(1), Some(3), 1, 5).range(), Some(1..3));
        assert_eq!(AxisSpan::new(None, None, -1, 2).range(), None);
    }
}
