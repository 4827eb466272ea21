//! Quantiles of sliding windows.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Float64Type, Int64Type};

use super::list_windows::ListWindows;
use crate::array::nulls::find_validity;
use crate::error::Result;
use crate::kernels::native::reinterpret_values;
use crate::kernels::reduce::quantile::{interpolate_linear, locate_quantile, widen_to_floats};
use crate::kernels::reduce::rounded::interpolate_rounded;

trait QuantileValue: Copy {
    const NAN: Option<Self>;

    fn order(self, other: Self) -> Ordering;
    fn is_nan(self) -> bool;
    fn interpolate(low: Self, high: Self, share: f64) -> Self;
}

impl QuantileValue for f64 {
    const NAN: Option<Self> = Some(Self::NAN);

    fn order(self, other: Self) -> Ordering {
        self.total_cmp(&other)
    }

    fn is_nan(self) -> bool {
        self.is_nan()
    }

    fn interpolate(low: Self, high: Self, share: f64) -> Self {
        interpolate_linear(low, high, share)
    }
}

/// For durations, which are integers in their unit. Quantiles are rounded to this unit.
impl QuantileValue for i64 {
    const NAN: Option<Self> = None;

    fn order(self, other: Self) -> Ordering {
        self.cmp(&other)
    }

    fn is_nan(self) -> bool {
        false
    }

    fn interpolate(low: Self, high: Self, share: f64) -> Self {
        interpolate_rounded(low, high, share)
    }
}

pub(super) fn compute_window_quantiles(
    windows: &ListWindows,
    leaves: &ArrayRef,
    q: f64,
) -> Result<ArrayRef> {
    let nulls = find_validity(leaves);
    if let DataType::Duration(_) = leaves.data_type() {
        let numbers = reinterpret_values(leaves, &DataType::Int64)?;
        let flat: &[i64] = numbers.as_primitive::<Int64Type>().values();
        let found = Int64Array::from(find_quantiles(windows, flat, nulls.as_ref(), q));
        return reinterpret_values(&(Arc::new(found) as ArrayRef), leaves.data_type());
    }
    let floats = widen_to_floats(leaves)?;
    let flat: &[f64] = floats.as_primitive::<Float64Type>().values();
    Ok(Arc::new(Float64Array::from(find_quantiles(windows, flat, nulls.as_ref(), q))))
}

/// Returns the `q` quantile of each window; `None` for a null window and for a window without valid
/// leaves. Ranks the leaves of each list once. A [`RankCounts`] contains the ranks of the leaves in
/// the current window; adding or removing a rank takes logarithmic time. If the windows of a list
/// move forward, each leaf is added and removed at most once.
fn find_quantiles<T: QuantileValue>(
    windows: &ListWindows,
    flat: &[T],
    nulls: Option<&NullBuffer>,
    q: f64,
) -> Vec<Option<T>> {
    let is_valid = |leaf: usize| nulls.is_none_or(|n| n.is_valid(leaf));
    let mut found: Vec<Option<T>> = Vec::with_capacity(windows.ranges.len());
    let mut window = RankCounts::default();
    let (mut by_value, mut ranks) = (Vec::new(), Vec::new());
    for (list, of_list) in &windows.lists {
        by_value.clear();
        by_value.extend(list.clone().filter(|leaf| is_valid(*leaf)));
        by_value.sort_unstable_by(|a, b| flat[*a].order(flat[*b]));
        ranks.clear();
        ranks.resize(list.len(), None);
        for (rank, leaf) in by_value.iter().enumerate() {
            ranks[leaf - list.start] = Some(rank);
        }
        window.reset_ranks(by_value.len());
        let mut within = list.start..list.start;
        let mut nans = 0usize;
        for at in of_list.clone() {
            let range = &windows.ranges[at];
            if windows.is_null(at) || range.is_empty() {
                found.push(None);
                continue;
            }
            move_range(&mut within, range, |leaf, enters| {
                let Some(rank) = ranks[leaf - list.start] else { return };
                window.change_rank(rank, enters);
                match (flat[leaf].is_nan(), enters) {
                    (true, true) => nans += 1,
                    (true, false) => nans -= 1,
                    _ => {}
                }
            });
            found.push(match (window.len, nans) {
                (0, _) => None,
                (len, 0) => {
                    let (low, share) = locate_quantile(len, q);
                    let first = flat[by_value[window.find_rank(low)]];
                    let next = match share > 0.0 && low + 1 < len {
                        true => flat[by_value[window.find_rank(low + 1)]],
                        false => first,
                    };
                    Some(T::interpolate(first, next, share))
                }
                _ => T::NAN,
            });
        }
    }
    found
}

/// Changes `within` to `to`. Calls `each` for every leaf that this adds (with true) or removes
/// (with false).
fn move_range(within: &mut Range<usize>, to: &Range<usize>, mut each: impl FnMut(usize, bool)) {
    if to.start >= within.end || to.end <= within.start {
        within.clone().for_each(|leaf| each(leaf, false));
        to.clone().for_each(|leaf| each(leaf, true));
    } else {
        (within.start..to.start).for_each(|leaf| each(leaf, false));
        (to.start..within.start).for_each(|leaf| each(leaf, true));
        (to.end..within.end).for_each(|leaf| each(leaf, false));
        (within.end..to.end).for_each(|leaf| each(leaf, true));
    }
    *within = to.clone();
}

/// The ranks of the leaves in a window, as a Fenwick tree, which finds the `k`-th smallest rank in
/// logarithmic time.
#[derive(Default)]
struct RankCounts {
    /// Entry `i` counts the ranks from `i + 1 - (lowest set bit of i + 1)` to `i`.
    tree: Vec<u32>,
    len: usize,
}

impl RankCounts {
    fn reset_ranks(&mut self, ranks: usize) {
        self.tree.clear();
        self.tree.resize(ranks, 0);
        self.len = 0;
    }

    fn change_rank(&mut self, rank: usize, enters: bool) {
        self.len = if enters { self.len + 1 } else { self.len - 1 };
        let mut at = rank + 1;
        while at <= self.tree.len() {
            let count = &mut self.tree[at - 1];
            *count = if enters { *count + 1 } else { *count - 1 };
            at += at & at.wrapping_neg();
        }
    }

    /// Returns the `k`-th smallest rank of the set, counted from 0. The set must have more than `k`
    /// ranks.
    fn find_rank(&self, k: usize) -> usize {
        let mut step = self.tree.len().checked_ilog2().map_or(0, |bits| 1usize << bits);
        let (mut at, mut left) = (0, k);
        while step > 0 {
            if let Some(count) = self.tree.get(at + step - 1)
                && *count as usize <= left
            {
                at += step;
                left -= *count as usize;
            }
            step /= 2;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_ranks_select_their_smallest() {
        for ranks in 1..20 {
            let mut set = RankCounts::default();
            set.reset_ranks(ranks);
            (0..ranks).step_by(3).for_each(|rank| set.change_rank(rank, true));
            for (k, rank) in (0..ranks).step_by(3).enumerate() {
                assert_eq!(set.find_rank(k), rank, "{ranks} {k}");
            }
            set.change_rank(0, false);
            assert_eq!(set.len, ranks.div_ceil(3) - 1);
            if set.len > 0 {
                assert_eq!(set.find_rank(0), 3);
            }
        }
    }
}
