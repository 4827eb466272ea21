//! Lists padded or cut to given lengths, staying lists.

use arrow::array::{Array, ArrayRef, MutableArrayData, UInt32Array, make_array, new_empty_array};
use arrow::buffer::NullBuffer;
use arrow::compute::{CastOptions, cast_with_options, take};

use super::RowArg;
use super::gather::lists_like;
use crate::array::{ListAxis, RaggedArray};
use crate::dense::{DenseOptions, Side};
use crate::error::{Error, Result};

/// How [`pad`] pads and cuts.
#[derive(Clone, Debug)]
pub struct PadOptions {
    /// Side of the padding, and of the cut where a list is too long.
    pub side: Side,
    /// One value that new leaves have; null when `None`. It is cast to the type of the leaves.
    pub fill: Option<ArrayRef>,
    /// Whether longer lists are cut; else they stay as long as they are.
    pub truncate: bool,
    /// Most bytes of the result, about; more is refused before anything is allocated.
    pub limit: Option<u64>,
}

impl Default for PadOptions {
    fn default() -> Self {
        Self {
            side: Side::Right,
            fill: None,
            truncate: true,
            limit: Some(DenseOptions::DEFAULT_LIMIT),
        }
    }
}

/// Elements of one axis that are together: from `source` on in the input, or new.
struct Run {
    source: Option<usize>,
    len: usize,
    /// Row of all of them (0 when sizes are the same for all rows).
    row: usize,
}

/// Every list as long as told: padded with new elements, or cut.
///
/// `sizes` has one entry per axis after the rows: a number for all rows, or one per row that holds
/// for all lists in it; not given (or null) leaves the lists of that axis as they are. A new leaf is
/// the fill value; a new list is empty, or as long as its own axis is told. Null lists stay null.
/// Leaves of any type; the result is ragged, also where all lists have one length.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, AsArray, Int32Array, types::Int32Type};
/// use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::pad::{PadOptions, pad};
///
/// // [[1, 2, 3], [], [4]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([3, 0, 1])?.into()], leaves)?;
/// let fill: ArrayRef = Arc::new(Int32Array::from(vec![-1]));
/// let b = pad(&a, &[2.into()], &PadOptions { fill: Some(fill), ..Default::default() })?;
/// assert_eq!(b.leaves().as_primitive::<Int32Type>().values(), &[1, 2, -1, -1, 4, -1]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// A wrong number of sizes, a negative size, a fill that is not one value of the leaves' type, more
/// bytes than the limit.
pub fn pad(array: &RaggedArray, sizes: &[RowArg], options: &PadOptions) -> Result<RaggedArray> {
    if sizes.len() != array.axes().len() {
        return Err(Error::invalid(format!(
            "pad: {} size(s) for {} axes of lists; give one per axis after the rows",
            sizes.len(),
            array.axes().len()
        )));
    }
    for size in sizes {
        size.check("pad", array.len())?;
    }
    let fill = options.fill.as_ref().map(|f| fill_value(f, array)).transpose()?;
    if sizes.iter().all(|s| matches!(s, RowArg::All(None))) {
        return Ok(array.clone());
    }

    let by_row = sizes.iter().any(|s| !s.is_constant());
    let mut runs: Vec<Run> = if by_row {
        (0..array.len()).map(|row| Run { source: Some(row), len: 1, row }).collect()
    } else {
        vec![Run { source: Some(0), len: array.len(), row: 0 }]
    };
    let mut axes = Vec::with_capacity(array.axes().len());
    for (k, (level, size)) in array.axes().iter().zip(sizes).enumerate() {
        let innermost = k + 1 == array.axes().len();
        // Bytes per child: its offset, or its leaf (at least a byte).
        let width = if innermost { array.leaf_type().primitive_width().unwrap_or(1) } else { 8 };
        let lengths = lengths(level, &runs, size, options, k + 1)?;
        let children = lengths.iter().fold(0u128, |n, l| n.saturating_add(l.total()));
        let check = DenseOptions { limit: options.limit, ..Default::default() };
        check.check_bytes(
            children.saturating_mul(width as u128),
            || format!("padding to {children} elements on axis {}", k + 1),
            || "give smaller sizes, take fewer rows at a time, or raise the limit".into(),
        )?;
        axes.push(padded_level(level, &runs, &lengths)?);
        runs = children_runs(level, &runs, &lengths, options.side);
    }
    let leaves = padded_leaves(array.leaves(), &runs, fill.as_ref())?;
    RaggedArray::try_new(array.len(), axes, leaves)
}

/// What becomes of one list.
#[derive(Clone, Copy)]
struct Length {
    kept: usize,
    new: u64,
}

impl Length {
    fn total(self) -> u128 {
        self.kept as u128 + u128::from(self.new)
    }

    /// The new ones; they fit once the total was checked.
    fn added(self) -> usize {
        usize::try_from(self.new).unwrap_or(usize::MAX)
    }
}

fn lengths(
    level: &ListAxis,
    runs: &[Run],
    size: &RowArg,
    options: &PadOptions,
    axis: usize,
) -> Result<Vec<Length>> {
    let mut out = Vec::with_capacity(runs.iter().map(|r| r.len).sum());
    for run in runs {
        let size = match size.get(run.row) {
            None => None,
            Some(n) => Some(u64::try_from(n).map_err(|_| {
                Error::invalid(format!(
                    "pad: size {n} of axis {axis} in row {} is negative",
                    run.row
                ))
            })?),
        };
        let Some(first) = run.source else {
            let new = Length { kept: 0, new: size.unwrap_or(0) };
            out.resize(out.len() + run.len, new);
            continue;
        };
        for list in first..first + run.len {
            let len = level.layout().length(list);
            out.push(match size {
                Some(_) if level.nulls().is_some_and(|n| n.is_null(list)) => {
                    Length { kept: 0, new: 0 }
                }
                None => Length { kept: len, new: 0 },
                Some(n) => match n.checked_sub(len as u64) {
                    Some(new) => Length { kept: len, new },
                    // Shorter than a length, so that it is a `usize`.
                    None if options.truncate => {
                        Length { kept: usize::try_from(n).unwrap_or(len), new: 0 }
                    }
                    None => Length { kept: len, new: 0 },
                },
            });
        }
    }
    Ok(out)
}

fn padded_level(level: &ListAxis, runs: &[Run], lengths: &[Length]) -> Result<ListAxis> {
    let total = |l: &Length| l.kept.saturating_add(l.added());
    let layout = lists_like(level.layout(), lengths.iter().map(total))?;
    let nulls = level.nulls().map(|n| {
        let valid = |i: Option<usize>| i.is_none_or(|i| n.is_valid(i));
        runs.iter()
            .flat_map(|r| (0..r.len).map(|k| r.source.map(|first| first + k)))
            .map(valid)
            .collect::<NullBuffer>()
    });
    ListAxis::try_new(layout, nulls)
}

/// The children of lists, as runs on the next axis.
fn children_runs(level: &ListAxis, runs: &[Run], lengths: &[Length], side: Side) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::with_capacity(runs.len());
    let mut push = |source: Option<usize>, len: usize, row: usize| match out.last_mut() {
        _ if len == 0 => {}
        Some(last)
            if last.row == row
                && match (last.source, source) {
                    (Some(a), Some(b)) => a + last.len == b,
                    (None, None) => true,
                    _ => false,
                } =>
        {
            last.len += len;
        }
        _ => out.push(Run { source, len, row }),
    };
    let mut lengths = lengths.iter();
    for run in runs {
        for (k, length) in lengths.by_ref().take(run.len).enumerate() {
            let (kept, new) = (length.kept, length.added());
            let Some(first) = run.source else {
                push(None, new, run.row);
                continue;
            };
            let children = level.layout().range(first + k);
            match side {
                Side::Right => {
                    push(Some(children.start), kept, run.row);
                    push(None, new, run.row);
                }
                Side::Left => {
                    push(None, new, run.row);
                    push(Some(children.end - kept), kept, run.row);
                }
            }
        }
    }
    out
}

/// The fill as one value of the leaves' type.
fn fill_value(fill: &ArrayRef, array: &RaggedArray) -> Result<ArrayRef> {
    if fill.len() != 1 {
        return Err(Error::invalid(format!("pad: {} fill values, one is needed", fill.len())));
    }
    if fill.data_type() == array.leaf_type() {
        return Ok(fill.clone());
    }
    let refuse = |why: String| {
        Error::invalid(format!("pad: the fill value is no value of {}{why}", array.leaf_type()))
    };
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let cast = |from: &ArrayRef, to| {
        cast_with_options(from, to, &options).map_err(|e| refuse(format!(": {e}")))
    };
    let value = cast(fill, array.leaf_type())?;
    // 0.5 casts to the integer 0, which is another value; 0.1 as a float32 is as near as can be.
    if !array.leaf_type().is_floating() && *cast(&value, fill.data_type())? != **fill {
        return Err(refuse(String::new()));
    }
    Ok(value)
}

fn padded_leaves(leaves: &ArrayRef, runs: &[Run], fill: Option<&ArrayRef>) -> Result<ArrayRef> {
    /// Fill values that are copied at once.
    const PIECE: usize = 1024;
    let total: usize = runs.iter().map(|r| r.len).sum();
    let longest = runs.iter().filter(|r| r.source.is_none()).map(|r| r.len).max().unwrap_or(0);
    if total == 0 {
        return Ok(new_empty_array(leaves.data_type()));
    }
    let piece = match fill {
        Some(f) if longest > 0 => {
            let zeros = UInt32Array::from(vec![0; longest.min(PIECE)]);
            Some(take(f, &zeros, None)?.to_data())
        }
        _ => None,
    };
    let data = leaves.to_data();
    let sources: Vec<_> = std::iter::once(&data).chain(&piece).collect();
    let mut out = MutableArrayData::new(sources, piece.is_none() && longest > 0, total);
    for run in runs {
        match (run.source, &piece) {
            (Some(first), _) => out.try_extend(0, first, first + run.len)?,
            (None, None) => out.try_extend_nulls(run.len)?,
            (None, Some(piece)) => {
                let mut left = run.len;
                while left > 0 {
                    let n = left.min(piece.len());
                    out.try_extend(1, 0, n)?;
                    left -= n;
                }
            }
        }
    }
    Ok(make_array(out.freeze()))
}
