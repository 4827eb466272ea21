//! Counts the elements that remain, and the padding, if all lists are cut or padded to the same
//! length.

use crate::table::LengthHistogram;

/// Maximum number of powers of two among the lengths that [`list_cuts`] returns.
const MAX_CUTS: usize = 13;

/// Counts of what remains if all lists are truncated or padded to `length` elements.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LengthCut {
    pub(super) length: usize,
    /// Number of elements that remain in all lists together.
    pub(super) kept: u64,
    /// Number of lists with more than `length` elements.
    pub(super) cut_lists: u64,
    pub(super) lists: u64,
    pub(super) elements: u64,
}

impl LengthCut {
    fn new(lengths: &LengthHistogram, length: usize) -> Self {
        let mut cut = Self {
            length,
            kept: 0,
            cut_lists: 0,
            lists: lengths.lists(),
            elements: lengths.total(),
        };
        for (n, lists) in lengths.counts() {
            cut.kept += lists.saturating_mul(n.min(length) as u64);
            cut.cut_lists += if n > length { lists } else { 0 };
        }
        cut
    }

    /// Returns the share of the elements that remain; 1 if there are no elements.
    pub(super) fn retained_share(&self) -> f64 {
        if self.elements == 0 { 1.0 } else { self.kept as f64 / self.elements as f64 }
    }

    /// Returns the share of the lists with more than `length` elements; 0 if there are no lists.
    pub(super) fn cut_share(&self) -> f64 {
        if self.lists == 0 { 0.0 } else { self.cut_lists as f64 / self.lists as f64 }
    }

    pub(super) fn compute_tensor_size(&self) -> u128 {
        u128::from(self.lists) * self.length as u128
    }

    pub(super) fn padding_share(&self) -> f64 {
        match self.compute_tensor_size() {
            0 => 0.0,
            cells => cells.saturating_sub(u128::from(self.kept)) as f64 / cells as f64,
        }
    }
}

/// Returns the cuts to show, by ascending length: the powers of two below the length of the longest
/// list, and this length itself. For lengths from 3 to 8, the cuts are 2, 4 and 8. Omits powers of
/// two up to half of the 5 % quantile, because they would cut almost all lists. Of the remaining
/// powers of two, keeps the [`MAX_CUTS`] largest. Returns an empty vector if there are no elements.
pub(super) fn list_cuts(lengths: &LengthHistogram) -> Vec<LengthCut> {
    let (Some(longest), Some(low)) = (lengths.max().filter(|n| *n > 0), lengths.quantile(0.05))
    else {
        return Vec::new();
    };
    let powers = (0..usize::BITS - 1).map(|bits| 1usize << bits);
    let mut cuts: Vec<usize> =
        powers.skip_while(|p| p.saturating_mul(2) <= low).take_while(|p| *p < longest).collect();
    let first = cuts.len().saturating_sub(MAX_CUTS);
    cuts.drain(..first);
    cuts.push(longest);
    cuts.into_iter().map(|length| LengthCut::new(lengths, length)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_count_what_they_lose() {
        let lengths: LengthHistogram = [3, 0, 5, 8].into_iter().collect();
        let cuts = list_cuts(&lengths);
        assert_eq!(cuts.iter().map(|c| c.length).collect::<Vec<_>>(), [1, 2, 4, 8]);
        let four = &cuts[2];
        assert_eq!((four.kept, four.cut_lists, four.compute_tensor_size()), (3 + 4 + 4, 2, 16));
        assert_eq!(four.retained_share(), 11.0 / 16.0);
        assert_eq!((four.cut_share(), four.padding_share()), (0.5, 5.0 / 16.0));
        let all = &cuts[3];
        assert_eq!((all.retained_share(), all.cut_share(), all.padding_share()), (1.0, 0.0, 0.5));
        assert_eq!(list_cuts(&LengthHistogram::default()), []);
        assert_eq!(list_cuts(&[0, 0].into_iter().collect()), []);
        let huge: LengthHistogram = [1 << 40, 7].into_iter().collect();
        assert!(list_cuts(&huge).len() <= MAX_CUTS + 1);
    }
}
