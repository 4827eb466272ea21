//! [`RowWindows`]: the windows of a row along axis 1.

use std::ops::Range;

use super::loader_source::LoaderSource;
use super::options::{LoaderOptions, WindowSampling};
use super::random::scale_below;

/// The possible windows of a row, and the rule that chooses one of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowWindows {
    /// Maximum number of elements of a window, not counting prepended facts.
    len: usize,
    sampling: WindowSampling,
    /// Whether the last stepped window of a row starts earlier instead of being shorter.
    full: bool,
    /// Number of prepended facts beyond the maximum length of a window; 0 if all facts fit.
    over: usize,
}

impl RowWindows {
    /// Returns the windows of a row; `None` if the options do not limit the length. The maximum
    /// length in the options includes prepended facts.
    pub(super) fn from_row(
        source: &LoaderSource,
        options: &LoaderOptions,
        row: usize,
    ) -> Option<Self> {
        let (most, mut sampling) = options.window?;
        let before = source.count_events_before(row);
        let len = most.saturating_sub(before);
        if let (WindowSampling::Step { stride }, Some(overlap)) = (&mut sampling, options.overlap) {
            *stride = len.saturating_sub(overlap);
        }
        let over = before.saturating_sub(most);
        Some(Self { len, sampling, full: options.full_windows, over })
    }

    /// Returns whether stepping through a row would never reach its end, because windows are empty
    /// or the stride is 0.
    pub(super) fn is_stuck(&self) -> bool {
        self.len == 0 || matches!(self.sampling, WindowSampling::Step { stride: 0 })
    }

    /// Returns the number of windows, up to the first that reaches the end of a row of `len`
    /// elements. No window is empty, except the only window of an empty row.
    pub(super) fn count_steps(&self, len: usize) -> usize {
        let WindowSampling::Step { stride } = self.sampling else { return 1 };
        let stride = stride.max(1);
        if len <= self.len {
            return 1;
        }
        let reach = (len - self.len).div_ceil(stride) + 1;
        if self.full {
            return reach;
        }
        reach.min((len - 1) / stride + 1)
    }

    /// Returns the elements of window number `step` of a row of `len` elements. `random` returns 64
    /// random bits; it is called only if the options choose random windows.
    pub(super) fn place_window(
        &self,
        len: usize,
        step: usize,
        random: impl FnOnce() -> u64,
    ) -> Range<usize> {
        let slack = len.saturating_sub(self.len);
        let start = match self.sampling {
            WindowSampling::FromStart if self.over > 0 => return 0..len.saturating_sub(self.over),
            WindowSampling::FromStart => 0,
            WindowSampling::ToEnd => slack,
            WindowSampling::Step { stride } if self.full => slack.min(step.saturating_mul(stride)),
            WindowSampling::Step { stride } => len.min(step.saturating_mul(stride)),
            WindowSampling::Random => {
                usize::try_from(scale_below(random(), slack as u64 + 1)).unwrap_or_default()
            }
            WindowSampling::BalancedRandom if slack > 0 && self.len > 0 => {
                // The first possible start is `self.len - 1` elements before the row.
                let starts = (len as u64).saturating_add(self.len as u64 - 1);
                let start = usize::try_from(scale_below(random(), starts)).unwrap_or_default();
                let end = start.saturating_add(1).min(len);
                return start.saturating_sub(self.len - 1)..end;
            }
            WindowSampling::BalancedRandom => 0,
        };
        start..len.min(start.saturating_add(self.len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(len: usize, stride: usize, full: bool) -> RowWindows {
        RowWindows { len, sampling: WindowSampling::Step { stride }, full, over: 0 }
    }

    #[test]
    fn windows_reach_the_end_and_none_is_empty() {
        for len in 0..40usize {
            for window in 1..8 {
                for stride in 1..12 {
                    let windows = steps(window, stride, false);
                    let n = windows.count_steps(len);
                    let ends: Vec<_> =
                        (0..n).map(|k| windows.place_window(len, k, || 0).end).collect();
                    assert!(n >= 1);
                    assert!(n == 1 || (n - 1) * stride < len, "{len} {window} {stride}");
                    assert!(ends[..n - 1].iter().all(|e| *e < len));
                    assert!(ends[n - 1] == len || n * stride >= len, "{len} {window} {stride}");
                }
            }
        }
        assert_eq!(steps(4, 4, false).count_steps(10), 3);
        assert_eq!(steps(4, 4, false).count_steps(8), 2);
        assert_eq!(steps(2, 5, false).count_steps(10), 2);
    }

    #[test]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "the numbers are small"
    )]
    fn balanced_windows_hold_every_element_as_often() {
        for len in 0..12usize {
            for window in 1..8usize {
                let windows = RowWindows {
                    len: window,
                    sampling: WindowSampling::BalancedRandom,
                    full: false,
                    over: 0,
                };
                if len <= window {
                    assert_eq!(windows.place_window(len, 0, || panic!("nothing is drawn")), 0..len);
                    continue;
                }
                let starts = len + window - 1;
                let mut held = vec![0; len];
                for start in 0..starts {
                    // Take the middle of the range of random numbers for which `place_window`
                    // chooses `start`.
                    let random = ((2 * start as u128 + 1) << 63) / starts as u128;
                    let range = windows.place_window(len, 0, || random as u64);
                    let signed = start as i64 - (window as i64 - 1);
                    let (first, last) = (signed.max(0), (signed + window as i64).min(len as i64));
                    assert_eq!(range, first as usize..last as usize, "{len} {window} {start}");
                    range.for_each(|i| held[i] += 1);
                }
                assert!(held.iter().all(|n| *n == window), "{len} {window}: {held:?}");
            }
        }
        let none =
            RowWindows { len: 0, sampling: WindowSampling::BalancedRandom, full: true, over: 3 };
        assert_eq!(none.place_window(5, 0, || 7), 0..0);
    }

    #[test]
    fn full_windows_end_where_the_row_does() {
        for len in 0..40usize {
            for window in 1..8 {
                for stride in 1..12 {
                    let windows = steps(window, stride, true);
                    let found: Vec<_> = (0..windows.count_steps(len))
                        .map(|k| windows.place_window(len, k, || 0))
                        .collect();
                    let mut expected = vec![];
                    let mut end = window;
                    while end < len {
                        expected.push(end - window..end);
                        end += stride;
                    }
                    expected.push(len.saturating_sub(window)..len);
                    assert_eq!(found, expected, "{len} {window} {stride}");
                }
            }
        }
    }
}
