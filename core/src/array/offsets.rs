use std::any::Any;
use std::ops::Range;

use arrow::array::OffsetSizeTrait;
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::ArrowNativeType;

use crate::error::{Error, Result};

/// Offsets of the lists of one axis: `lists + 1` non-decreasing integers.
///
/// The first offset may exceed zero, as in a slice of a larger buffer: it is the index of child 0
/// in that buffer. Offsets keep the width of the Arrow array, so `List` and `LargeList` need no
/// copy.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::array::Offsets;
/// let o = Offsets::from_lengths([3, 0, 2])?;
/// assert_eq!((o.lists(), o.children()), (3, 5));
/// assert_eq!(o.range(2), 3..5);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Offsets {
    /// 32-bit offsets, as in an Arrow `List`.
    I32(OffsetBuffer<i32>),
    /// 64-bit offsets, as in an Arrow `LargeList`.
    I64(OffsetBuffer<i64>),
}

/// Runs `$body` with `$o` bound to the offsets as a typed slice (`&[i32]` or `&[i64]`).
macro_rules! with_offsets {
    ($offsets:expr, $o:ident => $body:expr) => {
        match $offsets {
            $crate::array::Offsets::I32(b) => {
                let $o: &[i32] = &b[..];
                $body
            }
            $crate::array::Offsets::I64(b) => {
                let $o: &[i64] = &b[..];
                $body
            }
        }
    };
}
pub(crate) use with_offsets;

impl Offsets {
    /// Returns offsets of zero lists.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Offsets;
    /// assert_eq!(Offsets::empty().lists(), 0);
    /// ```
    pub fn empty() -> Self {
        Self::I32(OffsetBuffer::new_empty())
    }

    /// Builds offsets from the length of each list; 32 bits wide if the total fits.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Offsets;
    /// let offsets = Offsets::from_lengths([2, 0, 1])?;
    /// assert_eq!((offsets.lists(), offsets.children()), (3, 3));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the total length exceeds 2^63 - 1; the message names the list at which this occurs.
    pub fn from_lengths(lengths: impl IntoIterator<Item = usize>) -> Result<Self> {
        let lengths = lengths.into_iter();
        let mut offsets = Vec::with_capacity(lengths.size_hint().0.saturating_add(1));
        let mut end = 0i64;
        offsets.push(end);
        for (position, n) in lengths.enumerate() {
            end = i64::try_from(n).ok().and_then(|n| end.checked_add(n)).ok_or_else(|| {
                Error::Offsets {
                    what: "lengths".into(),
                    position,
                    message: "the total length exceeds 2^63 - 1; give fewer or shorter lists"
                        .into(),
                }
            })?;
            offsets.push(end);
        }
        Ok(Self::from_numbers(offsets))
    }

    /// Builds offsets from the ends of the lists, as in `dim{d}/bounds` of an `.nrt` file.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Offsets;
    /// let offsets = Offsets::from_bounds([2, 2, 3], "dim1/bounds")?;
    /// assert_eq!(offsets, Offsets::from_lengths([2, 0, 1])?);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an end is negative or less than the previous end; `what` names the ends in the message.
    pub fn from_bounds(bounds: impl IntoIterator<Item = i64>, what: &str) -> Result<Self> {
        let bounds = bounds.into_iter();
        let mut offsets = Vec::with_capacity(bounds.size_hint().0.saturating_add(1));
        offsets.push(0i64);
        let mut previous = 0i64;
        for (position, end) in bounds.enumerate() {
            if end < previous {
                return Err(Error::Offsets {
                    what: what.into(),
                    position,
                    message: format!(
                        "the end {end} is less than the previous end {previous}; ends must not decrease"
                    ),
                });
            }
            offsets.push(end);
            previous = end;
        }
        Ok(Self::from_numbers(offsets))
    }

    /// Builds the offsets of `n` lists from `n + 1` integers.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::buffer::ScalarBuffer;
    /// use serrate::array::Offsets;
    /// let offsets = Offsets::try_new::<i32>(ScalarBuffer::from(vec![0, 2, 2, 3]))?;
    /// assert_eq!(offsets, Offsets::from_lengths([2, 0, 1])?);
    /// assert!(Offsets::try_new::<i32>(ScalarBuffer::from(vec![2, 0])).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are no integers, the first is negative, or they decrease.
    pub fn try_new<O: OffsetSizeTrait>(offsets: impl Into<ScalarBuffer<O>>) -> Result<Self> {
        let offsets: ScalarBuffer<O> = offsets.into();
        let wrong = |position, message: String| Error::Offsets {
            what: "offsets".into(),
            position,
            message,
        };
        let Some(first) = offsets.first() else {
            return Err(wrong(0, "there are no offsets; give at least one offset".into()));
        };
        if *first < O::zero() {
            return Err(wrong(
                0,
                format!(
                    "the first offset is {first:?}, which is negative; give offsets that start at 0 or more"
                ),
            ));
        }
        if let Some(i) = offsets.windows(2).position(|w| w[1] < w[0]) {
            let message = format!(
                "the offset {:?} is less than the previous offset {:?}; offsets must not decrease",
                offsets[i + 1],
                offsets[i]
            );
            return Err(wrong(i + 1, message));
        }
        Ok(Self::from(OffsetBuffer::new(offsets)))
    }

    /// Stores non-decreasing offsets in 32 bits if the last one fits, else in 64 bits.
    fn from_numbers(offsets: Vec<i64>) -> Self {
        let fits = offsets.last().is_none_or(|last| i32::try_from(*last).is_ok());
        if fits {
            #[expect(clippy::cast_possible_truncation, reason = "the largest fits")]
            let narrow: Vec<i32> = offsets.iter().map(|o| *o as i32).collect();
            Self::I32(OffsetBuffer::new(narrow.into()))
        } else {
            Self::I64(OffsetBuffer::new(offsets.into()))
        }
    }

    /// Returns the number of lists.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Offsets;
    /// let offsets = Offsets::from_lengths([2, 0, 1])?;
    /// assert_eq!(offsets.lists(), 3);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    #[inline]
    pub fn lists(&self) -> usize {
        with_offsets!(self, o => o.len() - 1)
    }

    /// Returns the first offset: the index of child 0 in the buffer of children.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Offsets;
    /// let offsets = Offsets::from_lengths([2, 0, 1])?;
    /// assert_eq!(offsets.slice(1, 2).base(), 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    #[inline]
    pub fn base(&self) -> usize {
        self.at(0)
    }

    /// Returns the number of children of all lists.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Offsets;
    /// let offsets = Offsets::from_lengths([2, 0, 1])?;
    /// assert_eq!(offsets.slice(1, 2).children(), 1);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    #[inline]
    pub fn children(&self) -> usize {
        self.at(self.lists()) - self.base()
    }

    /// Returns the `i`-th offset as stored, without subtracting [`base`](Self::base).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Offsets;
    /// let offsets = Offsets::from_lengths([2, 0, 1])?;
    /// assert_eq!((offsets.at(1), offsets.slice(1, 2).at(1)), (2, 2));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    #[inline]
    pub fn at(&self, i: usize) -> usize {
        with_offsets!(self, o => o[i].as_usize())
    }

    /// Returns the range of children in list `i`; child 0 is the first child of list 0.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Offsets;
    /// let offsets = Offsets::from_lengths([2, 0, 1])?;
    /// assert_eq!((offsets.range(2), offsets.slice(1, 2).range(1)), (2..3, 0..1));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    #[inline]
    pub fn range(&self, i: usize) -> Range<usize> {
        let base = self.base();
        self.at(i) - base..self.at(i + 1) - base
    }

    /// Returns the range of children in a range of lists; child 0 is the first child of list 0.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Offsets;
    /// let offsets = Offsets::from_lengths([2, 0, 1])?;
    /// assert_eq!(offsets.ranges(0..2), 0..2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    #[inline]
    pub fn ranges(&self, lists: Range<usize>) -> Range<usize> {
        let base = self.base();
        self.at(lists.start) - base..self.at(lists.end) - base
    }

    /// Returns the length of list `i`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Offsets;
    /// let offsets = Offsets::from_lengths([2, 0, 1])?;
    /// assert_eq!(offsets.length(0), 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    #[inline]
    pub fn length(&self, i: usize) -> usize {
        self.at(i + 1) - self.at(i)
    }

    /// Returns the length of every list.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Offsets;
    /// let offsets = Offsets::from_lengths([2, 0, 1])?;
    /// assert_eq!(offsets.lengths().collect::<Vec<_>>(), [2, 0, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    #[inline]
    pub fn lengths(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        (0..self.lists()).map(|i| self.length(i))
    }

    /// Returns the length of the longest list; 0 if there are no lists.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Offsets;
    /// let offsets = Offsets::from_lengths([2, 0, 1])?;
    /// assert_eq!(offsets.max_length(), 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn max_length(&self) -> usize {
        fn find_longest<O: OffsetSizeTrait>(o: &[O]) -> usize {
            o.windows(2).map(|w| w[1] - w[0]).max().map_or(0, |n| n.as_usize())
        }
        with_offsets!(self, o => find_longest(o))
    }

    /// Returns the `length` lists from list `offset` on, sharing the buffer.
    ///
    /// # Panics
    /// When `offset + length` is greater than [`lists`](Self::lists).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Offsets;
    /// let offsets = Offsets::from_lengths([2, 0, 1])?;
    /// assert_eq!(offsets.slice(1, 2).lengths().collect::<Vec<_>>(), [0, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn slice(&self, offset: usize, length: usize) -> Self {
        match self {
            Self::I32(o) => Self::I32(o.slice(offset, length)),
            Self::I64(o) => Self::I64(o.slice(offset, length)),
        }
    }

    /// Returns the same lists with offsets from zero; copies only offsets that start elsewhere.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::buffer::ScalarBuffer;
    /// use serrate::array::Offsets;
    /// let o = Offsets::try_new::<i32>(ScalarBuffer::from(vec![4, 6, 6, 9]))?;
    /// assert_eq!((o.base(), o.at(1), o.ranges(1..3), o.length(2)), (4, 6, 2..5, 3));
    /// assert_eq!((o.max_length(), o.lengths().collect::<Vec<_>>()), (3, vec![2, 0, 3]));
    /// let from_zero = o.rebased();
    /// assert_eq!((from_zero.base(), o.first_difference(&from_zero)), (0, None));
    /// assert!(!o.ptr_eq(&from_zero));
    /// assert_eq!(o.to_i32()?[..], [0, 2, 2, 5]);
    /// assert_eq!(o.to_i64()[..], [0, 2, 2, 5]);
    /// assert_eq!(Offsets::empty().lists(), 0);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn rebased(&self) -> Self {
        match self {
            _ if self.base() == 0 => self.clone(),
            Self::I32(o) => Self::I32(o.clone().subtract(o[0])),
            Self::I64(o) => Self::I64(o.clone().subtract(o[0])),
        }
    }

    /// Converts to 32-bit offsets from 0, as an Arrow `List` needs; copies only if needed.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Offsets;
    /// let offsets = Offsets::from_lengths([2, 0, 1])?;
    /// assert_eq!(offsets.slice(1, 2).to_i32()?[..], [0, 0, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the lists have more than 2^31 - 1 children in total; use [`to_i64`](Self::to_i64) then.
    pub fn to_i32(&self) -> Result<OffsetBuffer<i32>> {
        match self.rebased() {
            Self::I32(o) => Ok(o),
            Self::I64(o) => {
                let narrow: Option<Vec<i32>> = o.iter().map(|x| i32::try_from(*x).ok()).collect();
                let narrow = narrow.ok_or_else(|| {
                    Error::invalid(format!(
                        "{} values in {} lists exceed the 32-bit offsets of List; use LargeList or fewer rows at a time",
                        self.children(),
                        self.lists()
                    ))
                })?;
                Ok(OffsetBuffer::new(narrow.into()))
            }
        }
    }

    /// Converts to 64-bit offsets from 0, as an Arrow `LargeList` needs; copies only if needed.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Offsets;
    /// let offsets = Offsets::from_lengths([2, 0, 1])?;
    /// assert_eq!(offsets.slice(1, 2).to_i64()[..], [0, 0, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn to_i64(&self) -> OffsetBuffer<i64> {
        match self.rebased() {
            Self::I64(o) => o,
            Self::I32(o) => OffsetBuffer::new(o.iter().map(|x| i64::from(*x)).collect()),
        }
    }

    /// Returns whether both offsets share the same memory.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Offsets;
    /// let offsets = Offsets::from_lengths([2, 0, 1])?;
    /// assert!(offsets.ptr_eq(&offsets.clone()));
    /// assert!(!offsets.ptr_eq(&Offsets::from_lengths([2, 0, 1])?));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn ptr_eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::I32(a), Self::I32(b)) => a.ptr_eq(b),
            (Self::I64(a), Self::I64(b)) => a.ptr_eq(b),
            _ => false,
        }
    }

    /// Returns the index of the first list whose length differs, or of the first list that only one
    /// of the two offsets has; `None` for equal offsets.
    ///
    /// Offsets that share a buffer are not compared, because they are equal.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Offsets;
    /// let offsets = Offsets::from_lengths([2, 0, 1])?;
    /// assert_eq!(offsets.first_difference(&Offsets::from_lengths([2, 1, 0])?), Some(1));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn first_difference(&self, other: &Self) -> Option<usize> {
        if self.ptr_eq(other) {
            return None;
        }
        // Equal offsets of the same width are the common case; comparing their bytes is fastest.
        match (self, other) {
            (Self::I32(a), Self::I32(b)) if a[..] == b[..] => return None,
            (Self::I64(a), Self::I64(b)) if a[..] == b[..] => return None,
            _ => {}
        }
        fn find_difference<A: OffsetSizeTrait, B: OffsetSizeTrait>(
            a: &[A],
            b: &[B],
        ) -> Option<usize> {
            let (x, y) = (a[0].as_usize(), b[0].as_usize());
            a.iter()
                .zip(b)
                .position(|(a, b)| a.as_usize() - x != b.as_usize() - y)
                .map(|i| i - 1)
                .or_else(|| (a.len() != b.len()).then(|| a.len().min(b.len()) - 1))
        }
        with_offsets!(self, a => with_offsets!(other, b => find_difference(a, b)))
    }
}

impl<O: OffsetSizeTrait> From<OffsetBuffer<O>> for Offsets {
    fn from(offsets: OffsetBuffer<O>) -> Self {
        let any: &dyn Any = &offsets;
        if let Some(offsets) = any.downcast_ref::<OffsetBuffer<i32>>() {
            return Self::I32(offsets.clone());
        }
        match any.downcast_ref::<OffsetBuffer<i64>>() {
            Some(offsets) => Self::I64(offsets.clone()),
            // Never runs: Arrow implements the sealed `OffsetSizeTrait` only for i32 and i64.
            None => Self::I64(OffsetBuffer::from_lengths(offsets.lengths())),
        }
    }
}

/// Offsets are equal if their lists have the same lengths, whatever their width and first offset.
impl PartialEq for Offsets {
    fn eq(&self, other: &Self) -> bool {
        self.first_difference(other).is_none()
    }
}
