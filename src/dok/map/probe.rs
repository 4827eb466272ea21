//! The first bucket that may hold a key.

use super::table::{EMPTY, next, row_of};
#[cfg(target_arch = "x86_64")]
use super::table::{LINE, row_bits};

/// A way to go through buckets.
pub(super) trait Probe: Copy {
    /// The first bucket from `at` on with this tag, and its row; that of no row when there is none before
    /// the next empty one.
    fn candidate(self, buckets: &[u64], tag: u64, at: usize) -> Place;

    /// As [`candidate`](Self::candidate), from the beginning of a line and no further than to its end: whether
    /// the search has to go on.
    fn line(self, buckets: &[u64], tag: u64, home: usize) -> (Place, bool);
}

/// Where a key may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) bucket: usize,
    /// [`NONE`] where it is not.
    pub(super) row: usize,
}

impl Place {
    pub(super) const NONE: Self = Self { bucket: 0, row: NONE };
}

/// No row.
pub(super) const NONE: usize = usize::MAX;

/// Bucket by bucket.
#[derive(Clone, Copy)]
pub(super) struct OneByOne;

impl Probe for OneByOne {
    #[inline(always)]
    fn candidate(self, buckets: &[u64], tag: u64, mut at: usize) -> Place {
        loop {
            let bucket = buckets[at];
            if let Some(row) = row_of(bucket, tag) {
                return Place { bucket: at, row };
            }
            if bucket == EMPTY {
                return Place { bucket: at, row: NONE };
            }
            at = next(at, buckets.len());
        }
    }

    #[inline(always)]
    fn line(self, buckets: &[u64], tag: u64, home: usize) -> (Place, bool) {
        (self.candidate(buckets, tag, home), false)
    }
}

/// The buckets of a cache line at once: how far a key is from its home cannot be foreseen, and a wrong
/// guess costs as much as all the rest of a look-up. For functions compiled for AVX2 only.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct ByLine(());

#[cfg(target_arch = "x86_64")]
impl ByLine {
    /// # Safety
    /// The processor has AVX2, and whoever probes was compiled for it.
    #[inline(always)]
    pub(super) unsafe fn new() -> Self {
        Self(())
    }
}

/// The line that a bucket is in; `None` for the last one, which may be short.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn line_at(buckets: &[u64], at: usize) -> Option<&[u64; LINE]> {
    buckets.get(at / LINE * LINE..)?.first_chunk()
}

#[cfg(target_arch = "x86_64")]
impl Probe for ByLine {
    #[inline(always)]
    fn candidate(self, buckets: &[u64], tag: u64, mut at: usize) -> Place {
        loop {
            let Some(line) = line_at(buckets, at) else {
                return OneByOne.candidate(buckets, tag, at);
            };
            // SAFETY: whoever made this knows that the processor has the instructions.
            let (same, empty) = unsafe { lanes(line, tag) };
            let from = u32::MAX << (at % LINE);
            let (same, empty) = (same & from, empty & from);
            // Lanes that are not there come last.
            let (found, end) = (same.trailing_zeros(), empty.trailing_zeros());
            if found < end {
                let bucket = at / LINE * LINE + found as usize;
                return Place { bucket, row: row_bits(buckets[bucket]).wrapping_sub(1) };
            }
            if empty != 0 {
                return Place { bucket: at / LINE * LINE + end as usize, row: NONE };
            }
            at = next(at / LINE * LINE + (LINE - 1), buckets.len());
        }
    }

    #[inline(always)]
    fn line(self, buckets: &[u64], tag: u64, home: usize) -> (Place, bool) {
        let Some(line) = line_at(buckets, home) else {
            return OneByOne.line(buckets, tag, home);
        };
        // SAFETY: whoever made this knows that the processor has the instructions.
        let (same, empty) = unsafe { lanes(line, tag) };
        // Those before the first empty one.
        let same = same & (empty & empty.wrapping_neg()).wrapping_sub(1);
        let lane = same.trailing_zeros() as usize % LINE;
        // The row plus 1; 0 where no bucket has the tag. Nothing to be branched on: half of the keys may be there.
        let entry = row_bits(line[lane]) & usize::from(same != 0).wrapping_neg();
        let place = Place { bucket: home + lane, row: entry.wrapping_sub(1) };
        (place, (entry == 0) & (empty == 0))
    }
}

/// The buckets of a line that have a tag, and those that are empty, a bit for each.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn lanes(line: &[u64; LINE], tag: u64) -> (u32, u32) {
    use super::table::ROW_BITS;
    use std::arch::x86_64::{
        __m256i, _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_loadu_si256, _mm256_movemask_pd,
        _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_srli_epi64,
    };
    #[expect(clippy::cast_possible_wrap, reason = "ROW_BITS are a few dozen")]
    const SHIFT: i32 = ROW_BITS as i32;
    let tag = _mm256_set1_epi64x((tag >> ROW_BITS).cast_signed());
    let half = |at: usize| {
        // SAFETY: both halves lie within the line.
        let words = unsafe { _mm256_loadu_si256(line.as_ptr().add(at).cast::<__m256i>()) };
        let same = _mm256_cmpeq_epi64(_mm256_srli_epi64::<SHIFT>(words), tag);
        let empty = _mm256_cmpeq_epi64(words, _mm256_setzero_si256());
        let bits = |lanes| _mm256_movemask_pd(_mm256_castsi256_pd(lanes)).cast_unsigned();
        (bits(same), bits(empty))
    };
    let ((same, empty), (more_same, more_empty)) = (half(0), half(4));
    (same | more_same << 4, empty | more_empty << 4)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::super::table::{bucket, tag};
    use super::*;

    #[test]
    fn lines_are_gone_through_as_buckets_are() {
        if !crate::kernels::bits::has_avx2() {
            return;
        }
        // SAFETY: the processor has the instructions; compiled for others, the code is just slower.
        let by_line = unsafe { ByLine::new() };
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
                        // A removed one, here and there.
                        0 => 2 << super::super::table::ROW_BITS,
                        _ => bucket(random(8), row),
                    })
                    .collect();
                let last = buckets.len() - 1;
                buckets[last.min(5)] = EMPTY;
                for at in 0..len {
                    for hash in 0..9 {
                        let found = by_line.candidate(&buckets, tag(hash), at);
                        let expected = OneByOne.candidate(&buckets, tag(hash), at);
                        assert_eq!(found.row, expected.row, "{buckets:x?} {hash} from {at}");
                        assert!(found.row == NONE || found == expected);
                        if at % LINE > 0 {
                            continue;
                        }
                        // What a line does not answer is asked of all of them.
                        for (line, goes_on) in [
                            by_line.line(&buckets, tag(hash), at),
                            OneByOne.line(&buckets, tag(hash), at),
                        ] {
                            assert!(!goes_on || line.row == NONE);
                            assert!(goes_on || line.row == expected.row, "{buckets:x?} {hash}");
                            assert!(line.row == NONE || line == expected);
                        }
                    }
                }
            }
        }
    }
}
