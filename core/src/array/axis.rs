//! Layouts: the lists of an axis, ragged or uniform.

use std::ops::Range;

use arrow::datatypes::ArrowNativeType;

use super::Offsets;
use crate::error::{Error, Result};
use crate::with_offsets;

/// The lists of an axis.
///
/// Each element of the parent axis is a list; its children are elements of this axis.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::array::{Layout, Offsets};
/// let ragged = Layout::from(Offsets::from_lengths([2, 0, 3])?);
/// let uniform = Layout::Uniform { size: 2, lists: 3 };
/// assert_eq!((ragged.is_ragged(), uniform.is_ragged()), (true, false));
/// assert_eq!((ragged.lists(), ragged.children(), ragged.max_length()), (3, 5, 3));
/// assert_eq!((ragged.length(2), ragged.range(2), uniform.ranges(1..3)), (3, 2..5, 2..6));
/// assert_eq!((ragged.list_of(2), ragged.list_of(5)), (2, 3));
/// assert_eq!(ragged.first_difference(&uniform), Some(1));
/// assert_eq!(uniform.slice(1, 2).to_offsets()?, Offsets::from_lengths([2, 2])?);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Layout {
    /// Lists of any length.
    Ragged(Offsets),
    /// `lists` lists of `size` children each (an Arrow `FixedSizeList`).
    Uniform {
        /// Number of children in each list.
        size: usize,
        /// Number of lists.
        lists: usize,
    },
}

impl Layout {
    /// Returns the number of lists: the length of the parent axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Layout;
    /// let pairs = Layout::Uniform { size: 2, lists: 3 };
    /// assert_eq!(pairs.lists(), 3);
    /// ```
    #[inline]
    pub fn lists(&self) -> usize {
        match self {
            Self::Ragged(o) => o.lists(),
            Self::Uniform { lists, .. } => *lists,
        }
    }

    /// Returns the number of children: the length of this axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Layout;
    /// let pairs = Layout::Uniform { size: 2, lists: 3 };
    /// assert_eq!(pairs.children(), 6);
    /// ```
    #[inline]
    pub fn children(&self) -> usize {
        match self {
            Self::Ragged(o) => o.children(),
            Self::Uniform { size, lists } => size * lists,
        }
    }

    /// Returns an error that names axis `axis` if a `usize` cannot hold the number of children.
    pub(crate) fn check_child_count(&self, axis: usize) -> Result<usize> {
        match self {
            Self::Uniform { size, lists } if size.checked_mul(*lists).is_none() => {
                Err(Error::invalid(format!(
                    "axis {axis} has {lists} lists of {size} elements each, and the number of all elements does not fit in 64 bits; use fewer or shorter lists"
                )))
            }
            layout => Ok(layout.children()),
        }
    }

    /// Returns the range of children in list `i`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Layout;
    /// let pairs = Layout::Uniform { size: 2, lists: 3 };
    /// assert_eq!(pairs.range(1), 2..4);
    /// ```
    #[inline]
    pub fn range(&self, i: usize) -> Range<usize> {
        match self {
            Self::Ragged(o) => o.range(i),
            Self::Uniform { size, .. } => i * size..(i + 1) * size,
        }
    }

    /// Returns the range of children in a range of lists.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Layout;
    /// let pairs = Layout::Uniform { size: 2, lists: 3 };
    /// assert_eq!(pairs.ranges(1..3), 2..6);
    /// ```
    #[inline]
    pub fn ranges(&self, lists: Range<usize>) -> Range<usize> {
        match self {
            Self::Ragged(o) => o.ranges(lists),
            Self::Uniform { size, .. } => lists.start * size..lists.end * size,
        }
    }

    /// Returns the length of list `i`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Layout;
    /// let pairs = Layout::Uniform { size: 2, lists: 3 };
    /// assert_eq!(pairs.length(1), 2);
    /// ```
    #[inline]
    pub fn length(&self, i: usize) -> usize {
        match self {
            Self::Ragged(o) => o.length(i),
            Self::Uniform { size, .. } => *size,
        }
    }

    /// Returns the index of the list that contains `child`; [`lists`](Self::lists) if no list does.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Layout;
    /// let pairs = Layout::Uniform { size: 2, lists: 3 };
    /// assert_eq!((pairs.list_of(3), pairs.list_of(6)), (1, 3));
    /// ```
    pub fn list_of(&self, child: usize) -> usize {
        if child >= self.children() {
            return self.lists();
        }
        match self {
            Self::Ragged(o) => with_offsets!(o, o => {
                let base = o[0].as_usize();
                o[1..].partition_point(|end| end.as_usize() - base <= child)
            }),
            Self::Uniform { size, .. } => child / size,
        }
    }

    /// Returns the length of the longest list; 0 if there are no lists.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Layout;
    /// let pairs = Layout::Uniform { size: 2, lists: 3 };
    /// assert_eq!(pairs.max_length(), 2);
    /// ```
    pub fn max_length(&self) -> usize {
        match self {
            Self::Ragged(o) => o.max_length(),
            Self::Uniform { lists: 0, .. } => 0,
            Self::Uniform { size, .. } => *size,
        }
    }

    /// Returns the `length` lists from list `offset` on, without a copy.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Layout;
    /// let pairs = Layout::Uniform { size: 2, lists: 3 };
    /// assert_eq!(pairs.slice(1, 2).children(), 4);
    /// ```
    pub fn slice(&self, offset: usize, length: usize) -> Self {
        match self {
            Self::Ragged(o) => Self::Ragged(o.slice(offset, length)),
            Self::Uniform { size, .. } => Self::Uniform { size: *size, lists: length },
        }
    }

    pub(crate) fn count_bytes(&self) -> usize {
        match self {
            Self::Ragged(Offsets::I32(o)) => o.len() * size_of::<i32>(),
            Self::Ragged(Offsets::I64(o)) => o.len() * size_of::<i64>(),
            Self::Uniform { .. } => 0,
        }
    }

    /// Converts to offsets; the offsets of uniform lists are multiples of the size.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::{Layout, Offsets};
    /// let pairs = Layout::Uniform { size: 2, lists: 3 };
    /// assert_eq!(pairs.to_offsets()?, Offsets::from_lengths([2, 2, 2])?);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the number of children exceeds 2^63 - 1.
    pub fn to_offsets(&self) -> Result<Offsets> {
        match self {
            Self::Ragged(o) => Ok(o.clone()),
            Self::Uniform { size, lists } => {
                Offsets::from_lengths(std::iter::repeat_n(*size, *lists))
            }
        }
    }

    /// Returns whether lists may differ in length.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Layout;
    /// let pairs = Layout::Uniform { size: 2, lists: 3 };
    /// assert!(!pairs.is_ragged());
    /// ```
    pub fn is_ragged(&self) -> bool {
        matches!(self, Self::Ragged(_))
    }

    /// Returns the index of the first list whose length differs, or of the first list that only one
    /// layout has; `None` for equal layouts.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::{Layout, Offsets};
    /// let pairs = Layout::Uniform { size: 2, lists: 3 };
    /// let ragged = Layout::from(Offsets::from_lengths([2, 3, 2])?);
    /// assert_eq!(pairs.first_difference(&ragged), Some(1));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn first_difference(&self, other: &Self) -> Option<usize> {
        match (self, other) {
            (Self::Ragged(a), Self::Ragged(b)) => a.first_difference(b),
            _ => {
                let (a, b) = (self.lists(), other.lists());
                (0..a.min(b))
                    .find(|i| self.length(*i) != other.length(*i))
                    .or_else(|| (a != b).then(|| a.min(b)))
            }
        }
    }
}

/// Layouts are equal if every list has the same length, whether ragged or uniform.
impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        self.first_difference(other).is_none()
    }
}

impl From<Offsets> for Layout {
    fn from(offsets: Offsets) -> Self {
        Self::Ragged(offsets)
    }
}

/// Returns ragged lists of the given lengths. Their offsets have 64 bits if the offsets of `like`
/// have 64 bits, or if 32 bits do not suffice.
pub(crate) fn make_lists_like(
    like: &Layout,
    lengths: impl IntoIterator<Item = usize>,
) -> Result<Layout> {
    let offsets = Offsets::from_lengths(lengths)?;
    Ok(Layout::Ragged(match like {
        Layout::Ragged(Offsets::I64(_)) => Offsets::I64(offsets.to_i64()),
        _ => offsets,
    }))
}

/// Resolves the index of an axis in an array with `ndim` axes.
///
/// A negative index counts from the innermost axis.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::array::resolve_axis;
/// assert_eq!(resolve_axis(-1, 3, "code")?, 2);
/// assert!(resolve_axis(3, 3, "code").is_err());
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If there is no such axis; `what` names the array in the message.
pub fn resolve_axis(axis: i64, ndim: usize, what: &str) -> Result<usize> {
    let n = i64::try_from(ndim).unwrap_or(i64::MAX);
    let resolved = if axis < 0 { axis.saturating_add(n) } else { axis };
    usize::try_from(resolved).ok().filter(|a| *a < ndim).ok_or_else(|| Error::NoSuchAxis {
        what: what.into(),
        axis,
        ndim,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_know_their_list() {
        let ragged = Layout::from(Offsets::from_lengths([1, 0, 2, 0, 3, 0]).unwrap());
        let lists: Vec<usize> = (0..7).map(|c| ragged.list_of(c)).collect();
        assert_eq!(lists, [0, 2, 2, 4, 4, 4, 6]);
        assert_eq!(ragged.slice(2, 3).list_of(2), 2);
        let uniform = Layout::Uniform { size: 2, lists: 3 };
        assert_eq!((uniform.list_of(3), uniform.list_of(6)), (1, 3));
        assert_eq!(Layout::Uniform { size: 0, lists: 4 }.list_of(0), 4);
    }

    #[test]
    fn uniform_lists_have_at_most_as_many_children_as_can_be_counted() {
        let leaves = arrow::array::new_empty_array(&arrow::datatypes::DataType::Int8);
        for (size, lists) in [(1 << 63, 2), (usize::MAX, usize::MAX)] {
            let axes = vec![Layout::Uniform { size, lists }.into()];
            let e = super::super::RaggedArray::try_new(lists, axes, leaves.clone()).unwrap_err();
            assert!(e.to_string().contains("does not fit in 64 bits"), "{e}");
        }
    }
}
