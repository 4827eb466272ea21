//! The first bucket that may hold a key.

#[cfg(target_arch = "x86_64")]
use super::table::LINE;
use super::table::{EMPTY, next, row_of};

/// A way to go through buckets.
pub(super) trait Probe: Copy {
    /// The first bucket from `at` on with this tag, and its row; [`NONE`] when there is none before the
    /// next empty one.
    fn candidate(self, buckets: &[u64], tag: u64, at: usize) -> (usize, usize);
}

/// No row.
pub(super) const NONE: usize = usize::MAX;

/// Bucket by bucket.
#[derive(Clone, Copy)]
pub(super) struct OneByOne;

impl Probe for OneByOne {
    #[inline(always)]
    fn candidate(self, buckets: &[u64], tag: u64, mut at: usize) -> (usize, usize) {
        loop {
            let bucket = buckets[at];
            if let Some(row) = row_of(bucket, tag) {
                return (at, row);
            }
            if bucket == EMPTY {
                return (at, NONE);
            }
            at = next(at, buckets.len());
        }
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

#[cfg(target_arch = "x86_64")]
impl Probe for ByLine {
    #[inline(always)]
    fn candidate(self, buckets: &[u64], tag: u64, mut at: usize) -> (usize, usize) {
        loop {
            let Some((line, [])) = buckets
                .get(at / LINE * LINE..at / LINE * LINE + LINE)
                .map(<[u64]>::as_chunks::<LINE>)
            else {
                // The last line may be short.
                return OneByOne.candidate(buckets, tag, at);
            };
            // SAFETY: whoever made this knows that the processor has the instructions.
            let (same, empty) = unsafe { lanes(&line[0], tag) };
            let from = u32::MAX << (at % LINE);
            let (same, empty) = (same & from, empty & from);
            // Lanes that are not there come last.
            let (found, end) = (same.trailing_zeros(), empty.trailing_zeros());
            if found < end {
                let place = at / LINE * LINE + found as usize;
                return match row_of(buckets[place], tag) {
                    Some(row) => (place, row),
                    // A removed key with that tag.
                    None => OneByOne.candidate(buckets, tag, next(place, buckets.len())),
                };
            }
            if empty != 0 {
                return (at / LINE * LINE + end as usize, NONE);
            }
            at = next(at / LINE * LINE + (LINE - 1), buckets.len());
        }
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
                        0 => 1 << super::super::table::ROW_BITS,
                        _ => bucket(random(4), row),
                    })
                    .collect();
                let last = buckets.len() - 1;
                buckets[last.min(5)] = EMPTY;
                for at in 0..len {
                    for hash in 0..5 {
                        let found = by_line.candidate(&buckets, tag(hash), at);
                        let expected = OneByOne.candidate(&buckets, tag(hash), at);
                        assert_eq!(found.1, expected.1, "{buckets:x?} {hash} from {at}");
                        assert!(found.1 == NONE || found.0 == expected.0);
                    }
                }
            }
        }
    }
}
