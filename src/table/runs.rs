//! Where the values of sorted key columns change.

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

/// Rows compared by one task; fewer are not worth a second thread.
const ROWS_PER_TASK: usize = 1 << 18;

/// Order of key values: ascending, nulls first.
pub(super) const ORDER: SortOptions = SortOptions { descending: false, nulls_first: true };

/// The runs of one key within those of the keys before it.
#[derive(Debug)]
pub(super) struct Runs<O> {
    /// First row of every run.
    pub(super) starts: Vec<O>,
    /// For every run of the key before: which of these runs is its first.
    pub(super) first: Vec<O>,
}

/// A row whose key is smaller than that of the row before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Descent {
    /// Which key.
    pub(super) key: usize,
    /// Which row.
    pub(super) row: usize,
}

/// The runs of every key, outermost first, or the first place where the keys are not in order.
///
/// One pass over each column. `O` must hold the number of rows.
pub(super) fn runs<O: OffsetSizeTrait + Send>(
    keys: &[ArrayRef],
) -> Result<std::result::Result<Vec<Runs<O>>, Descent>> {
    let mut out: Vec<Runs<O>> = Vec::with_capacity(keys.len());
    let mut descent: Option<Descent> = None;
    for (k, key) in keys.iter().enumerate() {
        let outer = out.last().map(|r| r.starts.as_slice());
        let (runs, row) = runs_of(key, outer)?;
        // The first row that is out of order, by whichever key.
        if let Some(row) = row
            && descent.is_none_or(|d| row < d.row)
        {
            descent = Some(Descent { key: k, row });
        }
        out.push(runs);
    }
    Ok(match descent {
        None => Ok(out),
        Some(d) => Err(d),
    })
}

fn runs_of<O: OffsetSizeTrait + Send>(
    key: &ArrayRef,
    outer: Option<&[O]>,
) -> Result<(Runs<O>, Option<usize>)> {
    if key.null_count() == 0 {
        macro_rules! typed {
            ($t:ty, $key:expr, $outer:expr) => {{
                let values: &PrimitiveArray<$t> = $key.as_primitive::<$t>();
                return Ok(typed_runs::<$t, O>(values.values(), $outer));
            }};
        }
        downcast_primitive! {
            key.data_type() => (typed, key, outer),
            _ => {}
        }
    }
    other_runs(key, outer)
}

fn typed_runs<T: ArrowPrimitiveType, O: OffsetSizeTrait + Send>(
    values: &[T::Native],
    outer: Option<&[O]>,
) -> (Runs<O>, Option<usize>) {
    let n = values.len();
    let find = |rows: Range<usize>| {
        let mut out = Vec::new();
        changes(values, rows, &mut out);
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
    within(n, &changes, outer, |i| values[i].is_lt(values[i - 1]))
}

/// Rows of `rows` whose value differs from that of the row before.
fn changes<V: ArrowNativeTypeOp, O: OffsetSizeTrait>(
    values: &[V],
    rows: Range<usize>,
    out: &mut Vec<O>,
) {
    /// Rows looked at together: the compiler compares them with vector instructions.
    const BLOCK: usize = 16;
    let mut row = rows.start;
    while row + BLOCK <= rows.end {
        let these = &values[row..row + BLOCK];
        let before = &values[row - 1..row - 1 + BLOCK];
        let mut differs = false;
        for (a, b) in these.iter().zip(before) {
            differs |= a.is_ne(*b);
        }
        if differs {
            let mut bits = 0u32;
            for (j, (a, b)) in these.iter().zip(before).enumerate() {
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

/// Any other type, or nulls: compared by Arrow.
fn other_runs<O: OffsetSizeTrait>(
    key: &ArrayRef,
    outer: Option<&[O]>,
) -> Result<(Runs<O>, Option<usize>)> {
    let n = key.len();
    let compare: DynComparator = make_comparator(key, key, ORDER)?;
    let changes: Vec<O> = if n < 2 || key.data_type().is_null() {
        Vec::new()
    } else {
        let differs = distinct(&key.slice(1, n - 1), &key.slice(0, n - 1))?;
        differs.values().set_indices().map(|i| O::usize_as(i + 1)).collect()
    };
    Ok(within(n, &changes, outer, |i| compare(i, i - 1) == Ordering::Less))
}

/// Runs that begin where the key changes or an outer run begins, and the first row that descends
/// within an outer run.
fn within<O: OffsetSizeTrait>(
    n: usize,
    changes: &[O],
    outer: Option<&[O]>,
    descends: impl Fn(usize) -> bool,
) -> (Runs<O>, Option<usize>) {
    let mut descent = None;
    let Some(outer) = outer else {
        let mut starts = Vec::with_capacity(changes.len() + 1);
        if n > 0 {
            starts.push(O::usize_as(0));
        }
        starts.extend_from_slice(changes);
        descent = changes.iter().map(|c| c.as_usize()).find(|i| descends(*i));
        return (Runs { starts, first: Vec::new() }, descent);
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
    (Runs { starts, first }, descent)
}

/// What is wrong where the keys descend.
pub(super) fn descent_error(keys: &[ArrayRef], names: &[&str], at: Descent) -> Error {
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
        "the rows are not sorted by {}: row {} has {:?} = {} after {}{scope}; sort them first or ask for a stable sort",
        names.join(", "),
        at.row,
        names[at.key],
        text(at.row),
        text(at.row - 1),
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
                    changes(&values, start..n, &mut found);
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
        let at = runs::<i32>(&keys).unwrap().unwrap_err();
        assert_eq!((at.key, at.row), (1, 2));
        let text = descent_error(&keys, &["a", "b"], at).to_string();
        assert!(text.contains("row 2 has \"b\" = 4 after 5 within one a"), "{text}");
    }
}
