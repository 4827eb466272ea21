//! Slices and integer indices along any axis, by number or as a numpy index expression.

use arrow::array::UInt64Array;

use super::RowArg;
use super::gather::{lists_like, row_of_list, rows_of_lists, take_ranges, take_rows, with_axis};
use super::shape::list_axis;
use crate::array::{Layout, ListAxis, RaggedArray};
use crate::error::{Error, Result};

/// The elements `start..stop` by `step` of every list of axis `axis` (1.., negatives from the
/// innermost), as Python slices a list: negatives count from the end, what is out of range is cut
/// off, a negative step runs backwards, and what is not given goes to the end.
///
/// Each of the three is one number for all rows or one per row. Null lists stay null. Where every
/// list stays whole the result shares all buffers; with a step of 1 whole ranges are copied, not
/// single elements.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::{RowArg, index::slice};
/// // [[1, 2, 3], [], [4]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([3, 0, 1])?.into()], leaves)?;
/// let last_two = slice(&a, 1, &(-2).into(), &RowArg::NONE, &RowArg::NONE)?;
/// assert_eq!(last_two.lengths(1)?, [2, 0, 1]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// When the array has no such axis, for a step of 0, and when arguments per row are not as many as
/// the rows.
pub fn slice(
    array: &RaggedArray,
    axis: i64,
    start: &RowArg,
    stop: &RowArg,
    step: &RowArg,
) -> Result<RaggedArray> {
    let axis = list_axis(array, axis)?;
    for (what, arg) in [("start", start), ("stop", stop), ("step", step)] {
        arg.check(what, array.len())?;
    }
    let constant = start.is_constant() && stop.is_constant() && step.is_constant();
    let level = array.axis(axis)?;
    let layout = level.layout();
    let rows = if constant || axis == 1 { None } else { Some(rows_of_lists(array, axis)) };
    let row = |list: usize| rows.as_ref().map_or(list, |r| r[list]);
    let parts = |list: usize| {
        // One argument for all rows may be asked of any row, of which there may be none.
        let row = row(list);
        let step = step.get(row).unwrap_or(1);
        Part::new(start.get(row), stop.get(row), step, layout.length(list))
    };
    let zero = |row: usize, at: &str| (step.get(row) == Some(0)).then(|| at.to_owned());
    let refused = match step {
        RowArg::All(_) => zero(0, ""),
        RowArg::Each(_) => (0..array.len()).find_map(|r| zero(r, &format!(" (row {r})"))),
    };
    if let Some(place) = refused {
        return Err(Error::invalid(format!("a slice with a step of 0{place}; it goes nowhere")));
    }

    let lists = layout.lists();
    if (0..lists).all(|i| parts(i).is_whole(layout.length(i))) {
        return Ok(array.clone());
    }
    let new = match layout {
        Layout::Uniform { lists, .. } if constant => {
            Layout::Uniform { size: parts(0).count, lists: *lists }
        }
        _ => lists_like(layout, (0..lists).map(|i| parts(i).count))?,
    };
    let elements = array.inner(axis)?;
    let by_one = match step {
        RowArg::All(v) => v.unwrap_or(1) == 1,
        RowArg::Each(_) => (0..array.len()).all(|r| step.get(r).unwrap_or(1) == 1),
    };
    let below = if by_one {
        let range = |i: usize| {
            let start = layout.range(i).start + parts(i).first;
            start..start + parts(i).count
        };
        let ranges: Vec<_> = (0..lists).map(range).filter(|r| !r.is_empty()).collect();
        take_ranges(&elements, &ranges)?
    } else {
        let mut positions = Vec::with_capacity(new.children());
        for list in 0..lists {
            let base = layout.range(list).start as u64;
            positions.extend(parts(list).positions().map(|p| base + p));
        }
        take_rows(&elements, &UInt64Array::from(positions))?
    };
    with_axis(array, array.len(), axis, ListAxis::try_new(new, level.nulls().cloned())?, below)
}

/// The first `n` elements of every list of axis `axis`; all but the last `-n` when `n` is negative.
///
/// # Errors
/// As [`slice`](fn@slice).
pub fn head(array: &RaggedArray, axis: i64, n: &RowArg) -> Result<RaggedArray> {
    slice(array, axis, &RowArg::NONE, n, &RowArg::NONE)
}

/// The last `n` elements of every list of axis `axis`; all but the first `-n` when `n` is negative.
///
/// # Errors
/// As [`slice`](fn@slice).
pub fn tail(array: &RaggedArray, axis: i64, n: &RowArg) -> Result<RaggedArray> {
    // `-0` is the beginning, not the end.
    let start = |n: i64| if n == 0 { i64::MAX } else { n.checked_neg().unwrap_or(i64::MAX) };
    let start = match n {
        RowArg::All(n) => RowArg::All(n.map(start)),
        RowArg::Each(n) => RowArg::Each(n.unary(start)),
    };
    slice(array, axis, &start, &RowArg::NONE, &RowArg::NONE)
}

/// The element at `index` of every list of axis `axis`; the axis goes. A null list gives null.
///
/// # Errors
/// When the index is out of range for a list that is not null, naming list and row; otherwise as
/// [`slice`](fn@slice).
pub fn pick(array: &RaggedArray, axis: i64, index: i64) -> Result<RaggedArray> {
    let axis = list_axis(array, axis)?;
    let level = array.axis(axis)?;
    let layout = level.layout();
    let positions = (0..layout.lists()).map(|list| {
        if level.nulls().is_some_and(|n| n.is_null(list)) {
            return Ok(None);
        }
        let range = layout.range(list);
        match resolve(index, range.len()) {
            Some(i) => Ok(Some((range.start + i) as u64)),
            None => Err(Error::OutOfRangeIn {
                row: row_of_list(array, axis, list),
                axis,
                index,
                size: range.len(),
            }),
        }
    });
    let positions: UInt64Array = positions.collect::<Result<_>>()?;
    let (_, below, leaves) = take_rows(&array.inner(axis)?, &positions)?.into_parts();
    let mut axes = array.axes()[..axis - 1].to_vec();
    axes.extend(below);
    RaggedArray::try_new(array.len(), axes, leaves)
}

/// A position, negative from the end; `None` when out of range.
pub(crate) fn resolve(index: i64, size: usize) -> Option<usize> {
    let n = i64::try_from(size).unwrap_or(i64::MAX);
    let index = if index < 0 { index.checked_add(n)? } else { index };
    usize::try_from(index).ok().filter(|i| *i < size)
}

/// What a slice takes of one list.
#[derive(Clone, Copy, Debug)]
struct Part {
    first: usize,
    count: usize,
    step: i64,
}

impl Part {
    /// Python's rules; a step of 0 takes nothing.
    fn new(start: Option<i64>, stop: Option<i64>, step: i64, size: usize) -> Self {
        let n = i64::try_from(size).unwrap_or(i64::MAX);
        // Where a forward slice may start and stop: 0..=n. A backward one stands on the elements
        // themselves, from n - 1 down to before the first.
        let (low, high) = if step < 0 { (-1, n - 1) } else { (0, n) };
        let clip = |at: i64| if at < 0 { (at + n).max(low) } else { at.min(high) };
        let (from, to) = if step < 0 { (high, low) } else { (low, high) };
        let (start, stop) = (start.map_or(from, clip), stop.map_or(to, clip));
        let distance = if step < 0 { start - stop } else { stop - start };
        let by = step.unsigned_abs();
        let count = match u64::try_from(distance) {
            Ok(d) if d > 0 && by > 0 => usize::try_from((d - 1) / by + 1).unwrap_or(0),
            _ => 0,
        };
        let first = if count == 0 { 0 } else { usize::try_from(start).unwrap_or(0) };
        Self { first, count, step }
    }

    fn is_whole(&self, size: usize) -> bool {
        self.count == size && (self.step == 1 || size < 2)
    }

    fn positions(self) -> impl Iterator<Item = u64> {
        let first = self.first as u64;
        // Every position is within the list: the product cannot leave it.
        (0..self.count as u64).map(move |i| {
            let by = i * self.step.unsigned_abs();
            if self.step < 0 { first - by } else { first + by }
        })
    }
}

/// One item of an index expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Index {
    /// One element; the axis goes.
    At(i64),
    /// Some elements; the axis stays.
    Slice {
        /// First element; `None` for the beginning (the end when running backwards).
        start: Option<i64>,
        /// Element to stop before; `None` for the end (the beginning when running backwards).
        stop: Option<i64>,
        /// Distance; `None` for 1, never 0.
        step: Option<i64>,
    },
    /// `...`: as many whole axes as the other items leave over.
    Rest,
}

impl Index {
    /// A whole axis: `:`.
    pub const ALL: Self = Self::Slice { start: None, stop: None, step: None };
}

/// Reads an index expression as numpy writes it between brackets: items separated by commas, each an
/// integer, a slice `start:stop:step` with any part left out, or (once) `...`.
///
/// ```
/// use serrate::kernels::index::{Index, parse_index};
/// let items = parse_index("2:5, -1, ::2")?;
/// assert_eq!(items[1], Index::At(-1));
/// assert_eq!(items[2], Index::Slice { start: None, stop: None, step: Some(2) });
/// assert!(parse_index("1:x").unwrap_err().to_string().contains("position 2"));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// For anything else, with the position of it in the text (counted in characters from 0), and for a
/// step of 0.
pub fn parse_index(text: &str) -> Result<Vec<Index>> {
    let wrong = |position: usize, message: String| {
        Error::invalid(format!("index expression {text:?}, position {position}: {message}"))
    };
    let mut items = Vec::new();
    let mut position = 0;
    let whole = text.trim();
    if whole.is_empty() {
        return Err(wrong(0, "nothing there; write for instance 0, 2:5 or ::2, -1".into()));
    }
    let pieces: Vec<&str> = text.split(',').collect();
    for (i, piece) in pieces.iter().enumerate() {
        let last = i + 1 == pieces.len();
        let trimmed = piece.trim();
        if trimmed == "..." {
            if items.contains(&Index::Rest) {
                return Err(wrong(position, "a second ...; there can be one".into()));
            }
            items.push(Index::Rest);
        } else if trimmed.is_empty() {
            // A trailing comma is numpy's, too.
            if !last {
                return Err(wrong(position, "expected an integer or a slice before the ,".into()));
            }
        } else {
            items.push(parse_item(piece, position, &wrong)?);
        }
        position += piece.chars().count() + 1;
    }
    Ok(items)
}

fn parse_item(
    piece: &str,
    mut position: usize,
    wrong: &dyn Fn(usize, String) -> Error,
) -> Result<Index> {
    let mut parts = [None; 3];
    let mut count = 0;
    for part in piece.split(':') {
        let number = part.trim();
        let at = position + part.chars().take_while(|c| c.is_whitespace()).count();
        let Some(slot) = parts.get_mut(count) else {
            return Err(wrong(at, "a slice has at most start:stop:step".into()));
        };
        if !number.is_empty() {
            let n: i64 = number.parse().map_err(|e: std::num::ParseIntError| match e.kind() {
                std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                    wrong(at, format!("{number} does not fit 64 bits"))
                }
                _ => wrong(at, format!("expected an integer, a slice or ..., found {number:?}")),
            })?;
            if count == 2 && n == 0 {
                return Err(wrong(at, "a step of 0 goes nowhere".into()));
            }
            *slot = Some(n);
        }
        count += 1;
        position += part.chars().count() + 1;
    }
    Ok(match (count, parts) {
        (1, [Some(n), ..]) => Index::At(n),
        (_, [start, stop, step]) => Index::Slice { start, stop, step },
    })
}

/// Indexes axis 1 by the first item, the next axis by the next, as numpy does with `x[:, ...]`: an
/// integer takes an element out of every list and drops the axis, a slice keeps it. Axes without an
/// item stay whole.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, types::Int32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::index::{get, parse_index};
/// // [[1, 2, 3], [4]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let last = get(&a, &parse_index("-1")?)?;
/// assert_eq!(last.leaves().as_primitive::<Int32Type>().values(), &[3, 4]);
/// let error = get(&a, &parse_index("2")?).unwrap_err();
/// assert_eq!(error.to_string(), "index 2 is out of range for axis 1 of size 1 in row 1");
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// When there are more items than axes, or an integer is out of range for some list that is not
/// null. Axes in messages are those of `array`.
pub fn get(array: &RaggedArray, index: &[Index]) -> Result<RaggedArray> {
    let lists = array.ndim() - 1;
    let given = index.iter().filter(|i| **i != Index::Rest).count();
    if given > lists {
        return Err(Error::invalid(format!(
            "{given} indices for an array with {lists} axes of lists (the first index is axis 1)"
        )));
    }
    if index.len() > given + 1 {
        return Err(Error::invalid("an index has at most one ..."));
    }
    let mut out = array.clone();
    // Axis of `array` the next item is for, and how many before it are gone.
    let (mut axis, mut dropped) = (1usize, 0usize);
    for item in index {
        let now = i64::try_from(axis - dropped).unwrap_or(i64::MAX);
        match item {
            Index::Rest => axis += lists - given,
            Index::Slice { start, stop, step } => {
                if *item != Index::ALL {
                    out = slice(&out, now, &(*start).into(), &(*stop).into(), &(*step).into())?;
                }
                axis += 1;
            }
            Index::At(i) => {
                out = pick(&out, now, *i).map_err(|e| match e {
                    Error::OutOfRangeIn { row, index, size, .. } => {
                        Error::OutOfRangeIn { row, axis, index, size }
                    }
                    other => other,
                })?;
                axis += 1;
                dropped += 1;
            }
        }
    }
    Ok(out)
}
