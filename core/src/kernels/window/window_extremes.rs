use std::collections::VecDeque;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;

use super::list_windows::ListWindows;
use crate::array::nulls::find_validity;
use crate::error::Result;
use crate::kernels::group::key_codes::rank_values;
use crate::kernels::sort::order_keys;

/// Returns the index of the first smallest or largest leaf of each window, or of its first NaN;
/// `None` without valid leaves. A queue, ordered by value, has the leaves that may be the result of
/// this or a later window. If the windows of a list move forward, each leaf enters the queue once;
/// if a window moves back, the queue is emptied and filled again.
pub(super) fn find_extremes(
    windows: &ListWindows,
    leaves: &ArrayRef,
    largest: bool,
) -> Result<Vec<Option<usize>>> {
    let keys = make_comparison_keys(leaves, largest)?;
    let nulls = find_validity(leaves);
    let mut found = Vec::with_capacity(windows.ranges.len());
    let mut queue: VecDeque<usize> = VecDeque::new();
    for (_, of_list) in &windows.lists {
        let (mut start, mut end) = (0, 0);
        queue.clear();
        for window in of_list.clone() {
            let range = &windows.ranges[window];
            if windows.is_null(window) || range.is_empty() {
                found.push(None);
                continue;
            }
            if range.start < start || range.end < end || range.start >= end {
                queue.clear();
                end = range.start;
            }
            start = range.start;
            for leaf in end..range.end {
                if nulls.as_ref().is_some_and(|n| n.is_null(leaf)) {
                    continue;
                }
                while queue.back().is_some_and(|last| keys[*last] < keys[leaf]) {
                    queue.pop_back();
                }
                queue.push_back(leaf);
            }
            end = range.end.max(end);
            while queue.front().is_some_and(|first| *first < start) {
                queue.pop_front();
            }
            found.push(queue.front().copied());
        }
    }
    Ok(found)
}

/// Returns a key for each leaf. If `largest` is set, greater leaves have greater keys; otherwise
/// greater leaves have smaller keys. In both cases, NaN has the greatest key.
fn make_comparison_keys(leaves: &ArrayRef, largest: bool) -> Result<Vec<u64>> {
    let mut keys = match (leaves.data_type(), order_keys(leaves)?) {
        (DataType::Null, _) => vec![0; leaves.len()],
        (_, Some(keys)) => keys,
        (_, None) => rank_values(leaves)?.0.values().iter().map(|rank| u64::from(*rank)).collect(),
    };
    if !largest {
        let nan = match leaves.data_type() {
            DataType::Float16 | DataType::Float32 => Some(u64::from(u32::MAX)),
            DataType::Float64 => Some(u64::MAX),
            _ => None,
        };
        // The search finds the largest key. To find the smallest leaf, invert all keys except the
        // key of NaN, so that they compare in reverse. No float has the key 0, so only NaN gets the
        // key `u64::MAX`.
        keys.iter_mut().for_each(|key| *key = if nan == Some(*key) { u64::MAX } else { !*key });
    }
    Ok(keys)
}
