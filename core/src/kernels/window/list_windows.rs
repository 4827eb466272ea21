use std::ops::Range;

use arrow::array::ArrayRef;
use arrow::buffer::NullBuffer;

use crate::array::nulls::find_validity;
use crate::kernels::bits::RankedBitmap;

pub(super) struct ListWindows {
    /// For each list, the range of its leaves and the range of its windows in `ranges`.
    pub(super) lists: Vec<(Range<usize>, Range<usize>)>,
    /// The range of leaves of each window.
    pub(super) ranges: Vec<Range<usize>>,
    pub(super) nulls: Option<NullBuffer>,
}

impl ListWindows {
    /// Returns the validity of the results: null for a window with fewer than `least` valid leaves.
    pub(super) fn find_nulls(&self, leaves: &ArrayRef, least: usize) -> Option<NullBuffer> {
        let counts = self.count_values(find_validity(leaves).as_ref());
        let enough = NullBuffer::from_iter(counts.iter().map(|n| *n >= least));
        Some(enough).filter(|n| n.null_count() > 0)
    }

    pub(super) fn is_null(&self, window: usize) -> bool {
        self.nulls.as_ref().is_some_and(|n| n.is_null(window))
    }

    pub(super) fn count_values(&self, valid: Option<&NullBuffer>) -> Vec<usize> {
        match valid.map(|n| RankedBitmap::new(n.inner())) {
            None => self.ranges.iter().map(Range::len).collect(),
            Some(rank) => self.ranges.iter().map(|r| count_set(&rank, r)).collect(),
        }
    }
}

pub(super) fn count_set(rank: &RankedBitmap, range: &Range<usize>) -> usize {
    rank.count_before(range.end) - rank.count_before(range.start)
}
