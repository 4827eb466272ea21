use std::ops::Range;

use arrow::buffer::NullBuffer;

use super::instants::WindowBounds;
use crate::array::Layout;
use crate::kernels::bits::RankedBitmap;

/// Returns the range of elements of every window, empty for null windows. `lists` has the lists of
/// elements, and `times` the validity of their times: null times are last in each list. `needles`
/// has the lists of windows, and `nulls` the validity of the windows. Each search begins at the
/// previous window, because successive windows are often close to each other.
pub(super) fn find_ranges(
    bounds: &WindowBounds,
    lists: &Layout,
    times: Option<&NullBuffer>,
    needles: &Layout,
    nulls: Option<&NullBuffer>,
) -> Vec<Range<usize>> {
    let mut found = Vec::with_capacity(needles.children());
    let times = times.map(|n| RankedBitmap::new(n.inner()));
    for list in 0..lists.lists() {
        let mut list_range = lists.range(list);
        if let Some(valid) = &times {
            let valid = valid.count_before(list_range.end) - valid.count_before(list_range.start);
            list_range.end = list_range.start + valid;
        }
        let (mut start, mut end) = (list_range.start, list_range.start);
        for at in needles.range(list) {
            if nulls.is_some_and(|n| n.is_null(at)) {
                found.push(start..start);
                continue;
            }
            start = find_end(&list_range, start, bounds.precedes_window(at));
            end = find_end(&list_range, end, bounds.reaches_window(at));
            found.push(start..end.max(start));
        }
    }
    found
}

/// Returns the first element of `list` for which `before` is false, or the end of `list`. Searches
/// from the guess `near` forward in growing steps, or before `near` by binary search.
#[inline]
fn find_end(list: &Range<usize>, near: usize, before: impl Fn(usize) -> bool) -> usize {
    if near > list.start && !before(near - 1) {
        return find_partition(list.start..near - 1, before);
    }
    let mut low = near;
    let mut step = 1;
    while low < list.end {
        let probe = (low + step - 1).min(list.end - 1);
        if !before(probe) {
            return find_partition(low..probe, before);
        }
        low = probe + 1;
        step *= 2;
    }
    list.end
}

fn find_partition(range: Range<usize>, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let mid = low + (high - low) / 2;
        if before(mid) { low = mid + 1 } else { high = mid }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_found_from_anywhere() {
        for end in 3..20 {
            for cut in 3..=end {
                for near in 3..=end {
                    assert_eq!(find_end(&(3..end), near, |i| i < cut), cut, "{end} {near}");
                }
            }
        }
    }
}
