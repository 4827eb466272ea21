//! Runs of rows: ascending ranges that neither touch nor overlap.

use std::ops::Range;

use arrow::array::{Array, BooleanArray, BooleanBufferBuilder};

pub(in crate::sql) fn intersect_runs(a: &[Range<usize>], b: &[Range<usize>]) -> Vec<Range<usize>> {
    let (mut i, mut j) = (0, 0);
    let mut out = Vec::new();
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let both = x.start.max(y.start)..x.end.min(y.end);
        if !both.is_empty() {
            out.push(both);
        }
        if x.end <= y.end { i += 1 } else { j += 1 }
    }
    out
}

/// Returns the row ranges `runs` with all gaps of at most `gap` rows filled: for a gap of 1,
/// `[0..2, 3..5]` becomes `[0..5]`.
pub(in crate::sql) fn fill_gaps(runs: &[Range<usize>], gap: usize) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::with_capacity(runs.len());
    for run in runs {
        match out.last_mut() {
            Some(last) if run.start.saturating_sub(last.end) <= gap => last.end = run.end,
            _ => out.push(run.clone()),
        }
    }
    out
}

pub(in crate::sql) fn count_run_rows(runs: &[Range<usize>]) -> usize {
    runs.iter().map(Range::len).sum()
}

pub(in crate::sql) fn take_first_rows(runs: Vec<Range<usize>>, rows: usize) -> Vec<Range<usize>> {
    let mut left = rows;
    let mut out = Vec::with_capacity(runs.len());
    for run in runs {
        let taken = run.len().min(left);
        if taken == 0 {
            break;
        }
        left -= taken;
        out.push(run.start..run.start + taken);
    }
    out
}

/// Returns the rows of the ranges `spans` whose bit in `bits` is true. The first bit belongs to the
/// first row of the first range, and there are no bits for rows between the ranges.
pub(in crate::sql) fn find_selected_runs(
    spans: &[Range<usize>],
    bits: &BooleanArray,
) -> Vec<Range<usize>> {
    let set = match bits.nulls() {
        None => bits.values().clone(),
        Some(nulls) => bits.values() & nulls.inner(),
    };
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut before = 0;
    for span in spans {
        for (from, to) in set.slice(before, span.len()).set_slices() {
            out.push(span.start + from..span.start + to);
        }
        before += span.len();
    }
    out
}

/// Returns a mask with one bit per row of the row ranges `spans`, which is set if the row is also
/// in `runs`. Each range of `runs` lies within one of `spans`.
pub(in crate::sql) fn mask_runs(spans: &[Range<usize>], runs: &[Range<usize>]) -> BooleanArray {
    let mut bits = BooleanBufferBuilder::new(count_run_rows(spans));
    let mut runs = runs.iter().peekable();
    for span in spans {
        let mut at = span.start;
        while let Some(run) = runs.next_if(|r| r.start < span.end) {
            bits.append_n(run.start.saturating_sub(at), false);
            bits.append_n(run.len(), true);
            at = run.end;
        }
        bits.append_n(span.end.saturating_sub(at), false);
    }
    BooleanArray::new(bits.finish(), None)
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_cut_filled_and_counted() {
        assert_eq!(intersect_runs(&[0..10, 20..30], &[5..25]), [5..10, 20..25]);
        assert_eq!(intersect_runs(&[0..10], &[]), Vec::<Range<usize>>::new());
        assert_eq!(intersect_runs(&[0..5, 6..8], &[0..1, 2..3, 4..7]), [0..1, 2..3, 4..5, 6..7]);
        assert_eq!(fill_gaps(&[0..1, 3..4, 9..10], 2), [0..4, 9..10]);
        assert_eq!(fill_gaps(&[0..1, 3..4], 0), [0..1, 3..4]);
        assert_eq!(count_run_rows(&[0..1, 3..5]), 3);
        assert_eq!(take_first_rows(vec![0..1, 3..5, 8..9], 2), [0..1, 3..4]);
        assert_eq!(take_first_rows(vec![0..1], 0), Vec::<Range<usize>>::new());
    }

    #[test]
    fn bits_become_runs_and_runs_bits() {
        let spans = [3..6, 10..12];
        let bits = BooleanArray::from(vec![Some(true), Some(true), None, Some(true), Some(false)]);
        let runs = find_selected_runs(&spans, &bits);
        assert_eq!(runs, [3..5, 10..11]);
        let back = mask_runs(&spans, &runs);
        assert_eq!(back, BooleanArray::from(vec![true, true, false, true, false]));
    }
}
