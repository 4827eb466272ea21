//! Lists padded or cut to given lengths, staying lists.

use arrow::array::{Array, ArrayRef, MutableArrayData, UInt32Array, make_array, new_empty_array};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::DataType;

use super::RowArg;
use super::args::exact;
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
    let limit = DenseOptions { limit: options.limit, ..Default::default() };
    let check = |bytes: u128, elements: u128, axis: usize| {
        limit.check_bytes(
            bytes,
            || format!("padding to {elements} elements on axis {axis}"),
            || "give smaller sizes, take fewer rows at a time, or raise the limit".into(),
        )
    };
    // Bytes of the levels so far.
    let mut made = 0u128;
    for (k, (level, size)) in array.axes().iter().zip(sizes).enumerate() {
        let lists = runs.iter().fold(0u128, |n, r| n.saturating_add(r.len as u128));
        let own = size_of::<Length>() + OFFSET;
        check(made.saturating_add(lists.saturating_mul(own as u128)), lists, k)?;
        let lengths = lengths(level, &runs, size, options, k + 1)?;
        made = made.saturating_add(lists.saturating_mul(OFFSET as u128));
        let count = Count::of(&lengths);
        let below = match array.axes().get(k + 1) {
            Some(_) => count.total().saturating_mul(OFFSET as u128),
            None => leaf_bytes(array.leaves(), fill.as_ref(), &count),
        };
        // A run for every list in one piece, and two more where it is cut or gets new children.
        let pieces = (runs.len() as u128).saturating_add(count.changed.saturating_mul(2));
        let working = lists
            .saturating_mul(size_of::<Length>() as u128)
            .saturating_add(pieces.saturating_mul(size_of::<Run>() as u128));
        check(made.saturating_add(below).saturating_add(working), count.total(), k + 1)?;
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
    cut: bool,
}

impl Length {
    /// The new ones; they fit once the total was checked.
    fn added(self) -> usize {
        usize::try_from(self.new).unwrap_or(usize::MAX)
    }
}

/// Bytes of an offset, at most.
const OFFSET: usize = 8;

/// What becomes of all lists of a level.
struct Count {
    kept: u128,
    new: u128,
    /// Lists whose children are no longer in one piece with those of the next.
    changed: u128,
}

impl Count {
    fn of(lengths: &[Length]) -> Self {
        let mut count = Self { kept: 0, new: 0, changed: 0 };
        for length in lengths {
            count.kept = count.kept.saturating_add(length.kept as u128);
            count.new = count.new.saturating_add(u128::from(length.new));
            count.changed += u128::from(length.new > 0 || length.cut);
        }
        count
    }

    fn total(&self) -> u128 {
        self.kept.saturating_add(self.new)
    }
}

/// Bytes of padded leaves, about: kept texts are taken to be of average length.
fn leaf_bytes(leaves: &ArrayRef, fill: Option<&ArrayRef>, count: &Count) -> u128 {
    let total = count.total();
    let validity = if fill.is_none() || leaves.is_nullable() { total.div_ceil(8) } else { 0 };
    let values = match leaves.data_type() {
        DataType::Boolean => total.div_ceil(8),
        DataType::Dictionary(keys, _) => {
            total.saturating_mul(keys.primitive_width().unwrap_or(OFFSET) as u128)
        }
        other => match other.primitive_width() {
            Some(width) => total.saturating_mul(width as u128),
            None => {
                let new = fill.map_or(OFFSET, |f| f.get_buffer_memory_size());
                let all = leaves.get_buffer_memory_size() as u128;
                let kept = all.saturating_mul(count.kept).div_ceil((leaves.len() as u128).max(1));
                count.new.saturating_mul(new as u128).saturating_add(kept)
            }
        },
    };
    values.saturating_add(validity)
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
            let new = Length { kept: 0, new: size.unwrap_or(0), cut: false };
            out.resize(out.len() + run.len, new);
            continue;
        };
        for list in first..first + run.len {
            let len = level.layout().length(list);
            out.push(match size {
                Some(_) if level.nulls().is_some_and(|n| n.is_null(list)) => {
                    Length { kept: 0, new: 0, cut: false }
                }
                None => Length { kept: len, new: 0, cut: false },
                Some(n) => match n.checked_sub(len as u64) {
                    Some(new) => Length { kept: len, new, cut: false },
                    // Shorter than a length, so that it is a `usize`.
                    None if options.truncate => {
                        Length { kept: usize::try_from(n).unwrap_or(len), new: 0, cut: true }
                    }
                    None => Length { kept: len, new: 0, cut: false },
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
    exact("pad: the fill value", fill, array.leaf_type())
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
