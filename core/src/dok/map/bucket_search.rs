//! Search for the first bucket that has the tag of a key (some bits of the hash of the key), with
//! and without SIMD.

use super::index_table::{EMPTY, match_row, next_bucket};
#[cfg(target_arch = "x86_64")]
use super::index_table::{LINE, unpack_row};
#[cfg(target_arch = "x86_64")]
use crate::kernels::simd::Avx2;

pub(super) trait BucketProbe: Copy {
    /// Returns the first bucket with the tag `tag` from bucket `at` on. The search continues with
    /// bucket 0 after the last bucket, and ends at an empty bucket: then the returned row is
    /// [`NO_ROW`].
    fn find_candidate(self, buckets: &[u64], tag: u64, at: usize) -> BucketCandidate;

    /// Searches like [`find_candidate`](Self::find_candidate), but starts at `home`, the first
    /// bucket of a cache line, and may stop at the end of this line; the boolean is true if the
    /// next line must be searched.
    fn probe_line(self, buckets: &[u64], tag: u64, home: usize) -> (BucketCandidate, bool);
}

/// Result of a search: a bucket with the tag of the key (bits of its hash), and the row of the
/// bucket. The key in this row may still differ from the searched key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BucketCandidate {
    pub(super) bucket: usize,
    /// The row that the bucket refers to; [`NO_ROW`] if the tag of no bucket matches.
    pub(super) row: usize,
}

impl BucketCandidate {
    pub(super) const NO_ROW: Self = Self { bucket: 0, row: NO_ROW };
}

pub(super) const NO_ROW: usize = usize::MAX;

#[derive(Clone, Copy)]
pub(super) struct ScalarProbe;

impl BucketProbe for ScalarProbe {
    #[inline(always)]
    fn find_candidate(self, buckets: &[u64], tag: u64, mut at: usize) -> BucketCandidate {
        loop {
            let bucket = buckets[at];
            if let Some(row) = match_row(bucket, tag) {
                return BucketCandidate { bucket: at, row };
            }
            if bucket == EMPTY {
                return BucketCandidate { bucket: at, row: NO_ROW };
            }
            at = next_bucket(at, buckets.len());
        }
    }

    #[inline(always)]
    fn probe_line(self, buckets: &[u64], tag: u64, home: usize) -> (BucketCandidate, bool) {
        (self.find_candidate(buckets, tag, home), false)
    }
}

/// Compares a whole cache line of buckets at once. A loop over the buckets takes twice as long,
/// because the CPU mispredicts when the loop ends.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Avx2Probe(pub(super) Avx2);

/// Returns the cache line of buckets around bucket `at`; `None` if the table ends within the line.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn find_containing_line(buckets: &[u64], at: usize) -> Option<&[u64; LINE]> {
    buckets.get(at / LINE * LINE..)?.first_chunk()
}

#[cfg(target_arch = "x86_64")]
impl BucketProbe for Avx2Probe {
    #[inline(always)]
    fn find_candidate(self, buckets: &[u64], tag: u64, mut at: usize) -> BucketCandidate {
        loop {
            let Some(line) = find_containing_line(buckets, at) else {
                return ScalarProbe.find_candidate(buckets, tag, at);
            };
            let (same, empty) = compare_lanes(self.0, line, tag);
            let from = u32::MAX << (at % LINE);
            let (same, empty) = (same & from, empty & from);
            // If no bucket matches, `trailing_zeros` is 32, which is greater than every lane
            // number.
            let (found, end) = (same.trailing_zeros(), empty.trailing_zeros());
            if found < end {
                let bucket = at / LINE * LINE + found as usize;
                return BucketCandidate {
                    bucket,
                    row: unpack_row(buckets[bucket]).wrapping_sub(1),
                };
            }
            if empty != 0 {
                return BucketCandidate { bucket: at / LINE * LINE + end as usize, row: NO_ROW };
            }
            at = next_bucket(at / LINE * LINE + (LINE - 1), buckets.len());
        }
    }

    #[inline(always)]
    fn probe_line(self, buckets: &[u64], tag: u64, home: usize) -> (BucketCandidate, bool) {
        let Some(line) = find_containing_line(buckets, home) else {
            return ScalarProbe.probe_line(buckets, tag, home);
        };
        let (same, empty) = compare_lanes(self.0, line, tag);
        // Keep only the matches before the first empty bucket, because a search ends there.
        let same = same & (empty & empty.wrapping_neg()).wrapping_sub(1);
        let lane = same.trailing_zeros() as usize % LINE;
        // 1 plus the index of the matching row, or 0 without a match. Computed without a branch,
        // which would often be mispredicted.
        let entry = unpack_row(line[lane]) & usize::from(same != 0).wrapping_neg();
        let place = BucketCandidate { bucket: home + lane, row: entry.wrapping_sub(1) };
        (place, (entry == 0) & (empty == 0))
    }
}

/// Returns two bit masks for the buckets of a cache line: of those with the tag `tag`, and of the
/// empty ones.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn compare_lanes(token: Avx2, line: &[u64; LINE], tag: u64) -> (u32, u32) {
    use super::index_table::ROW_BITS;
    #[expect(clippy::cast_possible_wrap, reason = "ROW_BITS are a few dozen")]
    const SHIFT: i32 = ROW_BITS as i32;
    token.find_words::<SHIFT>(line, tag >> ROW_BITS)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::super::index_table::{hash_tag, pack_bucket};
    use super::*;

    #[test]
    fn lines_are_gone_through_as_buckets_are() {
        let Some(token) = Avx2::try_new() else { return };
        let by_line = Avx2Probe(token);
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for len in [1, 2, 7, 8, 9, 15, 16, 17, 40, 100] {
            for full in [0u64, 3, 6, 9] {
                let mut buckets: Vec<u64> = (0..len)
                    .map(|row| match random(10) {
                        n if n >= full => EMPTY,
                        0 => 2 << super::super::index_table::ROW_BITS,
                        _ => pack_bucket(random(8), row),
                    })
                    .collect();
                let last = buckets.len() - 1;
                buckets[last.min(5)] = EMPTY;
                for at in 0..len {
                    for hash in 0..9 {
                        let found = by_line.find_candidate(&buckets, hash_tag(hash), at);
                        let expected = ScalarProbe.find_candidate(&buckets, hash_tag(hash), at);
                        assert_eq!(found.row, expected.row, "{buckets:x?} {hash} from {at}");
                        assert!(found.row == NO_ROW || found == expected);
                        if at % LINE > 0 {
                            continue;
                        }
                        for (line, goes_on) in [
                            by_line.probe_line(&buckets, hash_tag(hash), at),
                            ScalarProbe.probe_line(&buckets, hash_tag(hash), at),
                        ] {
                            assert!(!goes_on || line.row == NO_ROW);
                            assert!(goes_on || line.row == expected.row, "{buckets:x?} {hash}");
                            assert!(line.row == NO_ROW || line == expected);
                        }
                    }
                }
            }
        }
    }
}
