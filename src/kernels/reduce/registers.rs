//! Blocks in the registers of AVX-512.

use std::arch::x86_64::{
    __m512, __m512d, __m512i, _CMP_UNORD_Q, _mm256_loadu_ps, _mm256_maskz_loadu_ps, _mm512_add_pd,
    _mm512_castps512_ps256, _mm512_cmp_pd_mask, _mm512_cmp_ps_mask, _mm512_cvtps_pd,
    _mm512_loadu_pd, _mm512_loadu_ps, _mm512_mask_add_epi8, _mm512_mask_add_pd, _mm512_mask_add_ps,
    _mm512_mask_loadu_pd, _mm512_mask_loadu_ps, _mm512_mask_mov_pd, _mm512_mask_mov_ps,
    _mm512_maskz_cvtps_pd, _mm512_maskz_loadu_pd, _mm512_maskz_mov_pd, _mm512_max_pd,
    _mm512_max_ps, _mm512_min_pd, _mm512_min_ps, _mm512_permute_ps, _mm512_permutexvar_ps,
    _mm512_set1_epi8, _mm512_set1_pd, _mm512_set1_ps, _mm512_setr_epi32, _mm512_setzero_pd,
    _mm512_setzero_si512, _mm512_shuffle_f32x4, _mm512_shuffle_f64x2, _mm512_shuffle_ps,
    _mm512_unpackhi_pd, _mm512_unpacklo_pd,
};
use std::marker::PhantomData;
use std::mem::transmute;

use super::block::{BLOCK, Block};
use super::fold::{Extreme, Fold, Total, Which};
use super::segments::LANES;
use crate::kernels::bits::Wide;

// SAFETY, of all that follows: a processor without the instructions has no `Wide`, which makes every block,
// and what is read are values of the array that is given. Bits of registers and of arrays of their
// numbers are the same.

/// An array of what is made of 0, 1, 2 and so on. (A loop over registers may put them into memory, and a
/// closure stays a call.)
macro_rules! each {
    (2, $i:ident => $made:expr) => {
        [each!(@ 0, $i => $made), each!(@ 1, $i => $made)]
    };
    (4, $i:ident => $made:expr) => {
        [each!(@ 0, $i => $made), each!(@ 1, $i => $made), each!(@ 2, $i => $made), each!(@ 3, $i => $made)]
    };
    (8, $i:ident => $made:expr) => {
        [
            each!(@ 0, $i => $made), each!(@ 1, $i => $made), each!(@ 2, $i => $made), each!(@ 3, $i => $made),
            each!(@ 4, $i => $made), each!(@ 5, $i => $made), each!(@ 6, $i => $made), each!(@ 7, $i => $made),
        ]
    };
    (@ $n:literal, $i:ident => $made:expr) => {{
        const $i: usize = $n;
        $made
    }};
}

/// The bits of one register's values, the lowest of what is left.
macro_rules! of_register {
    ($mask:ty, $bits:expr, $i:expr) => {{
        #[expect(clippy::cast_possible_truncation, reason = "the bits of one register are wanted")]
        let mask = ($bits >> ($i * <$mask>::BITS as usize)) as $mask;
        mask
    }};
}

/// The states of eight registers' numbers, each joined to one: neighbours first, then quarters
/// of registers.
macro_rules! joined_doubles {
    ($parts:expr, $join:expr) => {{
        let p = $parts;
        let pairs = each!(4, I => $join(
            _mm512_unpacklo_pd(p[2 * I], p[2 * I + 1]),
            _mm512_unpackhi_pd(p[2 * I], p[2 * I + 1]),
        ));
        let halves = each!(2, I => $join(
            _mm512_shuffle_f64x2::<0x88>(pairs[2 * I], pairs[2 * I + 1]),
            _mm512_shuffle_f64x2::<0xdd>(pairs[2 * I], pairs[2 * I + 1]),
        ));
        $join(
            _mm512_shuffle_f64x2::<0x88>(halves[0], halves[1]),
            _mm512_shuffle_f64x2::<0xdd>(halves[0], halves[1]),
        )
    }};
}

/// Bits for so many values, as far as a word has them.
#[inline(always)]
fn those(values: usize) -> u64 {
    if values < BLOCK { (1 << values) - 1 } else { u64::MAX }
}

/// Sums, of 64 bits each.
#[derive(Clone, Copy)]
pub(super) struct Sums([__m512d; 8]);

macro_rules! sums {
    ($t:ty, $load:ident, $load_few:ident) => {
        impl Block<Total<$t>> for Sums {
            const THERE: bool = true;
            type Part = __m512d;

            #[inline(always)]
            fn none(_: Wide) -> Self {
                // SAFETY: as above.
                Self([unsafe { _mm512_setzero_pd() }; 8])
            }

            #[inline(always)]
            fn some(_: Wide, values: &[$t; BLOCK], bits: u64) -> Self {
                // SAFETY: as above.
                Self(each!(8, I => unsafe {
                    $load(of_register!(u8, bits, I), values.as_ptr().add(8 * I))
                }))
            }

            #[inline(always)]
            fn few(_: Wide, values: &[$t], bits: u64) -> Self {
                let bits = bits & those(values.len());
                // SAFETY: as above; nothing is read where the mask has no bit.
                Self(each!(8, I => unsafe {
                    $load_few(of_register!(u8, bits, I), values.as_ptr().wrapping_add(8 * I))
                }))
            }

            #[inline(always)]
            fn join(self, other: Self) -> Self {
                // SAFETY: as above.
                Self(each!(8, I => unsafe { _mm512_add_pd(self.0[I], other.0[I]) }))
            }

            #[inline(always)]
            fn part(self) -> __m512d {
                let v = self.0;
                // SAFETY: as above.
                unsafe {
                    let v = each!(4, I => _mm512_add_pd(v[I], v[I + 4]));
                    _mm512_add_pd(_mm512_add_pd(v[0], v[2]), _mm512_add_pd(v[1], v[3]))
                }
            }

            #[inline(always)]
            fn onto(part: __m512d, before: __m512d, more: bool) -> __m512d {
                // SAFETY: as above.
                unsafe { _mm512_mask_add_pd(part, if more { u8::MAX } else { 0 }, part, before) }
            }

            #[inline(always)]
            fn joined(parts: [__m512d; LANES]) -> [f64; LANES] {
                // SAFETY: as above.
                // Nothing but negative zeros is 0, as with what is added to 0.
                unsafe {
                    let sums = joined_doubles!(parts, _mm512_add_pd);
                    transmute(_mm512_add_pd(sums, _mm512_setzero_pd()))
                }
            }

            #[inline(always)]
            fn all(self) -> [f64; BLOCK] {
                // SAFETY: as above.
                unsafe { transmute(self.0) }
            }
        }
    };
}
sums!(f32, eight_singles, up_to_eight_singles);
sums!(f64, eight_doubles, _mm512_maskz_loadu_pd);

/// Those of eight values whose bit is set, else 0. The mask is that of the conversion, which reads memory
/// itself; of a load it would be a step more.
#[inline(always)]
unsafe fn eight_singles(mask: u8, values: *const f32) -> __m512d {
    // SAFETY: as above.
    unsafe { _mm512_maskz_cvtps_pd(mask, _mm256_loadu_ps(values)) }
}

#[inline(always)]
unsafe fn up_to_eight_singles(mask: u8, values: *const f32) -> __m512d {
    // SAFETY: as above.
    unsafe { _mm512_cvtps_pd(_mm256_maskz_loadu_ps(mask, values)) }
}

#[inline(always)]
unsafe fn eight_doubles(mask: u8, values: *const f64) -> __m512d {
    // SAFETY: as above.
    unsafe { _mm512_maskz_mov_pd(mask, _mm512_loadu_pd(values)) }
}

/// How many values there were at each place of a block, as far as a byte counts.
#[derive(Clone, Copy)]
pub(super) struct Tally(__m512i);

impl Tally {
    #[inline(always)]
    pub(super) fn none(_: Wide) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_setzero_si512() })
    }

    /// One more where a bit is set.
    #[inline(always)]
    pub(super) fn with(self, bits: u64) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_mask_add_epi8(self.0, bits, self.0, _mm512_set1_epi8(1)) })
    }

    #[inline(always)]
    pub(super) fn all(self) -> [u8; BLOCK] {
        // SAFETY: as above.
        unsafe { transmute(self.0) }
    }
}

/// Smallest or largest values, NaN where there is one.
#[derive(Clone, Copy)]
pub(super) struct Extremes<R, W>(R, PhantomData<W>);

/// Singles.
pub(super) type Singles<W> = Extremes<[__m512; 4], W>;
/// Doubles.
pub(super) type Doubles<W> = Extremes<[__m512d; 8], W>;

macro_rules! extremes {
    ($t:ty, $n:tt $r:ty, of $mask:ty, $block:ident, $set:ident, $load:ident, $mov:ident,
     $load_few:ident, $best:ident) => {
        impl<W: Which> Block<Extreme<$t, W>> for $block<W> {
            const THERE: bool = true;
            type Part = $r;

            #[inline(always)]
            fn none(_: Wide) -> Self {
                // SAFETY: as above.
                Self([unsafe { $set(Extreme::<$t, W>::NEUTRAL) }; $n], PhantomData)
            }

            #[inline(always)]
            fn some(wide: Wide, values: &[$t; BLOCK], bits: u64) -> Self {
                let neutral = Self::none(wide).0[0];
                // SAFETY: as above.
                let found = each!($n, I => unsafe {
                    let values = $load(values.as_ptr().add(BLOCK / $n * I));
                    $mov(neutral, of_register!($mask, bits, I), values)
                });
                Self(found, PhantomData)
            }

            #[inline(always)]
            fn few(wide: Wide, values: &[$t], bits: u64) -> Self {
                let (neutral, bits) = (Self::none(wide).0[0], bits & those(values.len()));
                // SAFETY: as above; nothing is read where the mask has no bit.
                let found = each!($n, I => unsafe {
                    let values = values.as_ptr().wrapping_add(BLOCK / $n * I);
                    $load_few(neutral, of_register!($mask, bits, I), values)
                });
                Self(found, PhantomData)
            }

            #[inline(always)]
            fn join(self, other: Self) -> Self {
                // SAFETY: as above.
                let best = each!($n, I => unsafe { $best::<W>(self.0[I], other.0[I]) });
                Self(best, PhantomData)
            }

            #[inline(always)]
            fn part(self) -> $r {
                // SAFETY: as above.
                unsafe { self.one() }
            }

            #[inline(always)]
            fn onto(part: $r, before: $r, more: bool) -> $r {
                // SAFETY: as above.
                unsafe {
                    let neutral = $set(Extreme::<$t, W>::NEUTRAL);
                    let before = $mov(neutral, if more { <$mask>::MAX } else { 0 }, before);
                    $best::<W>(part, before)
                }
            }

            #[inline(always)]
            fn joined(parts: [$r; LANES]) -> [$t; LANES] {
                // SAFETY: as above.
                unsafe { Self::states(parts) }
            }

            #[inline(always)]
            fn all(self) -> [$t; BLOCK] {
                // SAFETY: as above.
                unsafe { transmute(self.0) }
            }
        }
    };
}
extremes!(
    f32, 4 __m512, of u16, Singles, _mm512_set1_ps, _mm512_loadu_ps, _mm512_mask_mov_ps, _mm512_mask_loadu_ps, singles
);
extremes!(
    f64, 8 __m512d, of u8, Doubles, _mm512_set1_pd, _mm512_loadu_pd, _mm512_mask_mov_pd, _mm512_mask_loadu_pd, doubles
);

impl<W: Which> Singles<W> {
    #[inline(always)]
    unsafe fn one(self) -> __m512 {
        let [a, b, c, d] = self.0;
        // SAFETY: as above.
        unsafe { singles::<W>(singles::<W>(a, b), singles::<W>(c, d)) }
    }

    /// Quarters of registers are laid beside those of their neighbours until each has one of its own, then
    /// single numbers are.
    #[inline(always)]
    unsafe fn states(p: [__m512; LANES]) -> [f32; LANES] {
        // SAFETY: as above.
        unsafe {
            let pairs = each!(4, I => quarters::<W>(p[2 * I], p[2 * I + 1]));
            let [a, e] = each!(2, I => quarters::<W>(pairs[2 * I], pairs[2 * I + 1]));
            let (x, y) = (_mm512_shuffle_ps::<0x88>(a, e), _mm512_shuffle_ps::<0xdd>(a, e));
            let all = singles::<W>(x, y);
            let all = singles::<W>(all, _mm512_permute_ps::<0xb1>(all));
            // The first four are now first in each quarter, the others third.
            let order = _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 0, 0, 0, 0, 0, 0, 0);
            transmute(_mm512_castps512_ps256(_mm512_permutexvar_ps(order, all)))
        }
    }
}

/// The quarters of two registers, joined to two of each.
#[inline(always)]
unsafe fn quarters<W: Which>(a: __m512, b: __m512) -> __m512 {
    // SAFETY: as above.
    unsafe { singles::<W>(_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b)) }
}

impl<W: Which> Doubles<W> {
    #[inline(always)]
    unsafe fn one(self) -> __m512d {
        let v = self.0;
        // SAFETY: as above.
        unsafe {
            let v = each!(4, I => doubles::<W>(v[I], v[I + 4]));
            doubles::<W>(doubles::<W>(v[0], v[2]), doubles::<W>(v[1], v[3]))
        }
    }

    #[inline(always)]
    unsafe fn states(parts: [__m512d; LANES]) -> [f64; LANES] {
        // SAFETY: as above.
        unsafe { transmute(joined_doubles!(parts, doubles::<W>)) }
    }
}

/// The better ones of two registers' numbers; the sum of both where one is NaN, which is NaN. (The
/// processor's own maximum is its second operand then.)
macro_rules! best {
    ($name:ident, $r:ty, $max:ident, $min:ident, $compare:ident, $add:ident) => {
        #[inline(always)]
        unsafe fn $name<W: Which>(a: $r, b: $r) -> $r {
            // SAFETY: as above.
            unsafe {
                let best = if W::MAX { $max(a, b) } else { $min(a, b) };
                $add(best, $compare::<_CMP_UNORD_Q>(a, b), a, b)
            }
        }
    };
}
best!(singles, __m512, _mm512_max_ps, _mm512_min_ps, _mm512_cmp_ps_mask, _mm512_mask_add_ps);
best!(doubles, __m512d, _mm512_max_pd, _mm512_min_pd, _mm512_cmp_pd_mask, _mm512_mask_add_pd);
