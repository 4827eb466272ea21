//! Pads or truncates lists to given lengths; the result stays ragged.

use arrow::array::{Array, ArrayRef, MutableArrayData, UInt32Array, make_array, new_empty_array};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::DataType;

use super::RowArg;
use super::argument_casts::cast_exactly;
use crate::array::{ListAxis, RaggedArray, make_lists_like};
use crate::error::{Error, Result};
use crate::kernels::side::PaddingSide;
use crate::limit::{DEFAULT_LIMIT, check_bytes};

/// Options of [`pad`].
#[derive(Clone, Debug)]
pub struct PadOptions {
    /// The side on which lists are padded or truncated.
    pub side: PaddingSide,
    /// Value of new leaves: an array of length 1, which is cast to the type of the leaves; null if
    /// `None`.
    pub fill: Option<ArrayRef>,
    /// Whether to truncate lists that are longer than the size to pad to; otherwise these keep
    /// their length.
    pub truncate: bool,
    /// Approximate maximum size of the result in bytes, checked in advance; no limit if `None`.
    pub limit: Option<u64>,
}

impl Default for PadOptions {
    fn default() -> Self {
        Self { side: PaddingSide::Right, fill: None, truncate: true, limit: Some(DEFAULT_LIMIT) }
    }
}

/// Adjacent elements of the result: copies of the elements of the array from index `source` on, or
/// new elements if `source` is `None`.
struct ElementRun {
    source: Option<usize>,
    len: usize,
    /// Row of the array that contains the elements; 0 if the sizes to pad to are the same for all
    /// rows.
    row: usize,
}

/// Pads or truncates every list to a given length.
///
/// `sizes` has one entry per axis after the rows: a number for all rows, or one per row that
/// applies to all of its lists; a missing or null size leaves the lists of that axis unchanged. New
/// leaves have the fill value. New lists have the size given for their axis; without a size, they
/// are empty. Null lists stay null. Leaves may have any type; the result is ragged even if all
/// lists have the same length.
///
/// ```
/// # use serrate_core as serrate;
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
/// If the number of sizes is wrong, a size is negative, the fill is not one value of the type of
/// the leaves, or the result exceeds [`PadOptions::limit`].
pub fn pad(array: &RaggedArray, sizes: &[RowArg], options: &PadOptions) -> Result<RaggedArray> {
    if sizes.len() != array.axes().len() {
        return Err(Error::invalid(format!(
            "pad: {} size(s) are given for {} level(s) of lists; give one size per level",
            sizes.len(),
            array.axes().len()
        )));
    }
    for size in sizes {
        size.check_rows("pad", array.len())?;
    }
    let fill = options.fill.as_ref().map(|f| convert_fill(f, array)).transpose()?;
    if sizes.iter().all(|s| matches!(s, RowArg::All(None))) {
        return Ok(array.clone());
    }

    let by_row = sizes.iter().any(|s| !s.is_constant());
    let mut runs: Vec<ElementRun> = if by_row {
        (0..array.len()).map(|row| ElementRun { source: Some(row), len: 1, row }).collect()
    } else {
        vec![ElementRun { source: Some(0), len: array.len(), row: 0 }]
    };
    let mut axes = Vec::with_capacity(array.axes().len());
    let check = |bytes: u128, elements: u128, axis: usize| {
        check_bytes(
            options.limit,
            bytes,
            || format!("padding to {elements} elements on axis {axis}"),
            || "give smaller sizes, take fewer rows at a time, or raise the limit".into(),
        )
    };
    // Size in bytes of the offsets of all levels built so far. The offsets count towards the limit.
    let mut made = 0u128;
    for (k, (level, size)) in array.axes().iter().zip(sizes).enumerate() {
        let lists = runs.iter().fold(0u128, |n, r| n.saturating_add(r.len as u128));
        let own = size_of::<PaddedLength>() + OFFSET;
        check(made.saturating_add(lists.saturating_mul(own as u128)), lists, k)?;
        let lengths = compute_lengths(level, &runs, size, options, k + 1)?;
        made = made.saturating_add(lists.saturating_mul(OFFSET as u128));
        let count = LevelTotals::from_lengths(&lengths);
        let below = match array.axes().get(k + 1) {
            Some(_) => count.sum_counts().saturating_mul(OFFSET as u128),
            None => estimate_leaf_bytes(array.leaves(), fill.as_ref(), &count),
        };
        // Maximum number of [`ElementRun`]s: each padded or truncated list adds at most two.
        let pieces = (runs.len() as u128).saturating_add(count.changed.saturating_mul(2));
        let working = lists
            .saturating_mul(size_of::<PaddedLength>() as u128)
            .saturating_add(pieces.saturating_mul(size_of::<ElementRun>() as u128));
        check(made.saturating_add(below).saturating_add(working), count.sum_counts(), k + 1)?;
        axes.push(pad_level(level, &runs, &lengths)?);
        runs = list_child_runs(level, &runs, &lengths, options.side);
    }
    let leaves = pad_leaves(array.leaves(), &runs, fill.as_ref())?;
    RaggedArray::try_new(array.len(), axes, leaves)
}

#[derive(Clone, Copy)]
struct PaddedLength {
    kept: usize,
    new: u64,
    cut: bool,
}

impl PaddedLength {
    /// Returns the number of new elements. It fits a `usize`, because the size of the result was
    /// checked.
    fn new_elements(self) -> usize {
        usize::try_from(self.new).unwrap_or(usize::MAX)
    }
}

const OFFSET: usize = 8;

struct LevelTotals {
    kept: u128,
    new: u128,
    /// Number of padded or truncated lists, which interrupt the copied [`ElementRun`]s.
    changed: u128,
}

impl LevelTotals {
    fn from_lengths(lengths: &[PaddedLength]) -> Self {
        let mut count = Self { kept: 0, new: 0, changed: 0 };
        for length in lengths {
            count.kept = count.kept.saturating_add(length.kept as u128);
            count.new = count.new.saturating_add(u128::from(length.new));
            count.changed += u128::from(length.new > 0 || length.cut);
        }
        count
    }

    fn sum_counts(&self) -> u128 {
        self.kept.saturating_add(self.new)
    }
}

/// Estimates the size of the leaves of the result in bytes. For strings, assumes that the leaves
/// that truncation keeps have the average size.
fn estimate_leaf_bytes(leaves: &ArrayRef, fill: Option<&ArrayRef>, count: &LevelTotals) -> u128 {
    let total = count.sum_counts();
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

fn compute_lengths(
    level: &ListAxis,
    runs: &[ElementRun],
    size: &RowArg,
    options: &PadOptions,
    axis: usize,
) -> Result<Vec<PaddedLength>> {
    let mut out = Vec::with_capacity(runs.iter().map(|r| r.len).sum());
    for run in runs {
        let size = match size.get(run.row) {
            None => None,
            Some(n) => Some(u64::try_from(n).map_err(|_| {
                Error::invalid(format!(
                    "pad: size {n} of axis {axis} in row {} is negative; give 0 or more, or NULL for lists that keep their length",
                    run.row
                ))
            })?),
        };
        let Some(first) = run.source else {
            let new = PaddedLength { kept: 0, new: size.unwrap_or(0), cut: false };
            out.resize(out.len() + run.len, new);
            continue;
        };
        for list in first..first + run.len {
            let len = level.layout().length(list);
            out.push(match size {
                Some(_) if level.nulls().is_some_and(|n| n.is_null(list)) => {
                    PaddedLength { kept: 0, new: 0, cut: false }
                }
                None => PaddedLength { kept: len, new: 0, cut: false },
                Some(n) => match n.checked_sub(len as u64) {
                    Some(new) => PaddedLength { kept: len, new, cut: false },
                    // Truncate the list to `n` elements; `n` is less than `len`, so it fits a
                    // `usize`.
                    None if options.truncate => {
                        PaddedLength { kept: usize::try_from(n).unwrap_or(len), new: 0, cut: true }
                    }
                    None => PaddedLength { kept: len, new: 0, cut: false },
                },
            });
        }
    }
    Ok(out)
}

fn pad_level(level: &ListAxis, runs: &[ElementRun], lengths: &[PaddedLength]) -> Result<ListAxis> {
    let total = |l: &PaddedLength| l.kept.saturating_add(l.new_elements());
    let layout = make_lists_like(level.layout(), lengths.iter().map(total))?;
    let nulls = level.nulls().map(|n| {
        let valid = |i: Option<usize>| i.is_none_or(|i| n.is_valid(i));
        runs.iter()
            .flat_map(|r| (0..r.len).map(|k| r.source.map(|first| first + k)))
            .map(valid)
            .collect::<NullBuffer>()
    });
    ListAxis::try_new(layout, nulls)
}

fn list_child_runs(
    level: &ListAxis,
    runs: &[ElementRun],
    lengths: &[PaddedLength],
    side: PaddingSide,
) -> Vec<ElementRun> {
    let mut out: Vec<ElementRun> = Vec::with_capacity(runs.len());
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
        _ => out.push(ElementRun { source, len, row }),
    };
    let mut lengths = lengths.iter();
    for run in runs {
        for (k, length) in lengths.by_ref().take(run.len).enumerate() {
            let (kept, new) = (length.kept, length.new_elements());
            let Some(first) = run.source else {
                push(None, new, run.row);
                continue;
            };
            let children = level.layout().range(first + k);
            match side {
                PaddingSide::Right => {
                    push(Some(children.start), kept, run.row);
                    push(None, new, run.row);
                }
                PaddingSide::Left => {
                    push(None, new, run.row);
                    push(Some(children.end - kept), kept, run.row);
                }
            }
        }
    }
    out
}

fn convert_fill(fill: &ArrayRef, array: &RaggedArray) -> Result<ArrayRef> {
    if fill.len() != 1 {
        return Err(Error::invalid(format!(
            "pad: the fill has {} values; give exactly one",
            fill.len()
        )));
    }
    cast_exactly("pad: the fill value", fill, array.leaf_type())
}

fn pad_leaves(leaves: &ArrayRef, runs: &[ElementRun], fill: Option<&ArrayRef>) -> Result<ArrayRef> {
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
