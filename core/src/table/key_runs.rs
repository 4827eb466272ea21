//! Finds runs, which are ranges of adjacent rows with equal values, in sorted key columns.

use std::cmp::Ordering;
use std::ops::Range;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, AsArray, DynComparator, OffsetSizeTrait, PrimitiveArray,
    downcast_primitive, make_comparator,
};
use arrow::compute::SortOptions;
use arrow::compute::kernels::cmp::distinct;
use arrow::datatypes::ArrowPrimitiveType;
use rayon::prelude::*;

use crate::error::{Error, Result};

/// Number of rows that one parallel task compares; for fewer rows, a task costs more than it saves.
const ROWS_PER_TASK: usize = 1 << 18;

pub(super) const ORDER: SortOptions = SortOptions { descending: false, nulls_first: true };

/// Runs of one key: ranges of rows in which this key and all previous keys have equal values.
#[derive(Debug)]
pub(super) struct KeyRuns<O> {
    pub(super) starts: Vec<O>,
    /// For each run of the previous key, if any, the index in `starts` of the first run in it.
    pub(super) first: Vec<O>,
}

/// A row that is out of order: the value of its key column number `key` is smaller than in the row
/// before.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnsortedRow {
    pub(super) key: usize,
    pub(super) row: usize,
}

/// Returns each key's runs, outermost first, or the first row out of order. `O` must hold the
/// number of rows.
pub(super) fn find_runs<O: OffsetSizeTrait + Send>(
    keys: &[ArrayRef],
) -> Result<std::result::Result<Vec<KeyRuns<O>>, UnsortedRow>> {
    let mut out: Vec<KeyRuns<O>> = Vec::with_capacity(keys.len());
    let mut descent: Option<UnsortedRow> = None;
    for (k, key) in keys.iter().enumerate() {
        let outer = out.last().map(|r| r.starts.as_slice());
        let (runs, row) = find_key_runs(key, outer)?;
        // If several keys have rows out of order, return the first of all these rows.
        if let Some(row) = row
            && descent.is_none_or(|d| row < d.row)
        {
            descent = Some(UnsortedRow { key: k, row });
        }
        out.push(runs);
    }
    Ok(match descent {
        None => Ok(out),
        Some(d) => Err(d),
    })
}

fn find_key_runs<O: OffsetSizeTrait + Send>(
    key: &ArrayRef,
    outer: Option<&[O]>,
) -> Result<(KeyRuns<O>, Option<usize>)> {
    if key.null_count() == 0 {
        macro_rules! typed {
            ($t:ty, $key:expr, $outer:expr) => {{
                let values: &PrimitiveArray<$t> = $key.as_primitive::<$t>();
                return Ok(find_primitive_runs::<$t, O>(values.values(), $outer));
            }};
        }
        downcast_primitive! {
            key.data_type() => (typed, key, outer),
            _ => {}
        }
    }
    find_other_runs(key, outer)
}

fn find_primitive_runs<T: ArrowPrimitiveType, O: OffsetSizeTrait + Send>(
    values: &[T::Native],
    outer: Option<&[O]>,
) -> (KeyRuns<O>, Option<usize>) {
    let n = values.len();
    let find = |rows: Range<usize>| {
        let mut out = Vec::new();
        find_changes(values, rows, &mut out);
        out
    };
    let changes = if n < 2 * ROWS_PER_TASK {
        find(1.min(n)..n)
    } else {
        let parts: Vec<Vec<O>> = (0..n.div_ceil(ROWS_PER_TASK))
            .into_par_iter()
            .map(|t| find((t * ROWS_PER_TASK).max(1)..((t + 1) * ROWS_PER_TASK).min(n)))
            .collect();
        parts.concat()
    };
    split_runs(n, &changes, outer, |i| values[i].is_lt(values[i - 1]))
}

fn find_changes<V: ArrowNativeTypeOp, O: OffsetSizeTrait>(
    values: &[V],
    rows: Range<usize>,
    out: &mut Vec<O>,
) {
    /// Number of rows per block; the compiler vectorizes the comparisons within a block.
    const BLOCK: usize = 16;
    let mut row = rows.start;
    while row + BLOCK <= rows.end {
        let current = &values[row..row + BLOCK];
        let previous = &values[row - 1..row - 1 + BLOCK];
        let mut differs = false;
        for (a, b) in current.iter().zip(previous) {
            differs |= a.is_ne(*b);
        }
        if differs {
            let mut bits = 0u32;
            for (j, (a, b)) in current.iter().zip(previous).enumerate() {
                bits |= u32::from(a.is_ne(*b)) << j;
            }
            while bits != 0 {
                out.push(O::usize_as(row + bits.trailing_zeros() as usize));
                bits &= bits - 1;
            }
        }
        row += BLOCK;
    }
    out.extend((row..rows.end).filter(|i| values[*i].is_ne(values[i - 1])).map(O::usize_as));
}

/// Finds the runs of a key that has nulls or a type that is not primitive, with Arrow's
/// comparisons. `outer` has the starts of the runs of the previous key, if any. Also returns the
/// first row that is out of order.
fn find_other_runs<O: OffsetSizeTrait>(
    key: &ArrayRef,
    outer: Option<&[O]>,
) -> Result<(KeyRuns<O>, Option<usize>)> {
    let n = key.len();
    let compare: DynComparator = make_comparator(key, key, ORDER)?;
    let changes: Vec<O> = if n < 2 || key.data_type().is_null() {
        Vec::new()
    } else {
        let differs = distinct(&key.slice(1, n - 1), &key.slice(0, n - 1))?;
        differs.values().set_indices().map(|i| O::usize_as(i + 1)).collect()
    };
    Ok(split_runs(n, &changes, outer, |i| compare(i, i - 1) == Ordering::Less))
}

/// Divides `n` rows into runs. A run starts at each row in `changes` and at each row in `outer`,
/// the starts of the runs of the previous key. Without `outer`, the first run starts at row 0. Also
/// returns the first row for which `descends` is true within a run of the previous key.
fn split_runs<O: OffsetSizeTrait>(
    n: usize,
    changes: &[O],
    outer: Option<&[O]>,
    descends: impl Fn(usize) -> bool,
) -> (KeyRuns<O>, Option<usize>) {
    let mut descent = None;
    let Some(outer) = outer else {
        let mut starts = Vec::with_capacity(changes.len() + 1);
        if n > 0 {
            starts.push(O::usize_as(0));
        }
        starts.extend_from_slice(changes);
        descent = changes.iter().map(|c| c.as_usize()).find(|i| descends(*i));
        return (KeyRuns { starts, first: Vec::new() }, descent);
    };
    let mut starts = Vec::with_capacity(changes.len() + outer.len());
    let mut first = Vec::with_capacity(outer.len());
    let mut next = changes.iter().copied().peekable();
    for (i, start) in outer.iter().enumerate() {
        first.push(O::usize_as(starts.len()));
        starts.push(*start);
        next.next_if_eq(start);
        let end = outer.get(i + 1);
        while let Some(change) = next.next_if(|c| end.is_none_or(|e| c < e)) {
            if descent.is_none() && descends(change.as_usize()) {
                descent = Some(change.as_usize());
            }
            starts.push(change);
        }
    }
    (KeyRuns { starts, first }, descent)
}

pub(super) fn describe_descent(keys: &[ArrayRef], names: &[&str], at: UnsortedRow) -> Error {
    let text = |row| {
        arrow::util::display::array_value_to_string(&keys[at.key], row)
            .ok()
            .filter(|_| keys[at.key].is_valid(row))
            .unwrap_or_else(|| "null".into())
    };
    let scope = match at.key {
        0 => String::new(),
        k => format!(" within one {}", names[k - 1]),
    };
    Error::invalid(format!(
        "the rows are not sorted by {keys}: row {row} has {key:?} = {value} after {previous}{scope}; sort the rows first, or let `nest` sort them (`UnsortedRows::Sort` in Rust, `sort=True` in Python)",
        keys = names.join(", "),
        row = at.row,
        key = names[at.key],
        value = text(at.row),
        previous = text(at.row - 1)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_found_in_blocks_and_at_their_borders() {
        for n in 0..70usize {
            for step in [1, 2, 3, 16, 17, 100] {
                let values: Vec<i32> = (0..n).map(|i| i32::try_from(i / step).unwrap()).collect();
                for start in 1..n.max(1) {
                    let mut found: Vec<i32> = Vec::new();
                    find_changes(&values, start..n, &mut found);
                    let expected: Vec<i32> = (start..n)
                        .filter(|i| values[*i] != values[i - 1])
                        .map(|i| i32::try_from(i).unwrap())
                        .collect();
                    assert_eq!(found, expected, "{n} {step} {start}");
                }
            }
        }
    }

    #[test]
    fn the_first_descent_counts_whichever_key_has_it() {
        let key =
            |v: Vec<i64>| -> ArrayRef { std::sync::Arc::new(arrow::array::Int64Array::from(v)) };
        let keys = [key(vec![1, 1, 1, 0]), key(vec![5, 5, 4, 9])];
        let at = find_runs::<i32>(&keys).unwrap().unwrap_err();
        assert_eq!((at.key, at.row), (1, 2));
        let text = describe_descent(&keys, &["a", "b"], at).to_string();
        assert!(text.contains("row 2 has \"b\" = 4 after 5 within one a"), "{text}");
    }
}
