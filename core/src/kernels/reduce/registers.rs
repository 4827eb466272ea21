//! Implementations of [`RegisterBlock`] in AVX-512 registers, and the reads of leaves into them.

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

use super::block::{BLOCK, RegisterBlock, prefetch_block};
use super::fold::{ExtremeFold, Fold, LANES, MinOrMax, SumFold};
use crate::kernels::bits::Validity;
use crate::kernels::simd::Avx512;

// The unsafe code of this module is sound because a block is created with an `Avx512` token, which
// exists only on CPUs with AVX-512 F/VL/DQ/BW, and loads stay within the given array or are masked
// outside it.

/// Evaluates `$made` for `$i` = 0, 1, 2, .. and collects 2, 4 or 8 values in an array. It is a
/// macro, because the compiler might keep the registers of a loop in memory, and might not inline a
/// closure.
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

/// Returns the bits of register `$i`, as a `$mask`. `$bits` has a bit for each of the 64 values of
/// a block, set for a value that is folded.
macro_rules! register_bits {
    ($mask:ty, $bits:expr, $i:expr) => {{
        #[expect(clippy::cast_possible_truncation, reason = "the bits of one register are wanted")]
        let mask = ($bits >> ($i * <$mask>::BITS as usize)) as $mask;
        mask
    }};
}

/// Combines the lanes of each of eight registers of doubles into one value: adjacent lanes first,
/// then 128-bit quarters. Below, the lanes of the first register are `a0 a1 ..`, and their result
/// is `a`.
/// ```text
/// p[0] = a0 a1 a2 a3 ..    unpacklo/unpackhi, combine    pairs[0] = a01 b01 a23 b23 ..
/// p[1] = b0 b1 b2 b3 ..
/// pairs[0], pairs[1]       shuffle, combine              halves[0] = a b c d, half of each
/// halves[0], halves[1]     shuffle, combine              a b c d e f g h
/// ```
macro_rules! fold_doubles {
    ($parts:expr, $combine:expr) => {{
        let p = $parts;
        let pairs = each!(4, I => $combine(
            _mm512_unpacklo_pd(p[2 * I], p[2 * I + 1]),
            _mm512_unpackhi_pd(p[2 * I], p[2 * I + 1]),
        ));
        let halves = each!(2, I => $combine(
            _mm512_shuffle_f64x2::<0x88>(pairs[2 * I], pairs[2 * I + 1]),
            _mm512_shuffle_f64x2::<0xdd>(pairs[2 * I], pairs[2 * I + 1]),
        ));
        $combine(
            _mm512_shuffle_f64x2::<0x88>(halves[0], halves[1]),
            _mm512_shuffle_f64x2::<0xdd>(halves[0], halves[1]),
        )
    }};
}

#[inline(always)]
fn mask_lowest(values: usize) -> u64 {
    if values < BLOCK { (1 << values) - 1 } else { u64::MAX }
}

#[derive(Clone, Copy)]
pub(super) struct SumRegisters([__m512d; 8]);

macro_rules! sums {
    ($t:ty, $load:ident, $load_few:ident) => {
        impl RegisterBlock<SumFold<$t>> for SumRegisters {
            const AVAILABLE: bool = true;
            type Part = __m512d;

            #[inline(always)]
            fn empty(_: Avx512) -> Self {
                // SAFETY: the `Avx512` token proves that the CPU has AVX-512.
                Self([unsafe { _mm512_setzero_pd() }; 8])
            }

            #[inline(always)]
            fn load_full(_: Avx512, values: &[$t; BLOCK], bits: u64) -> Self {
                // SAFETY: the token proves AVX-512; each load reads 8 of the 64 values.
                Self(each!(8, I => unsafe {
                    $load(register_bits!(u8, bits, I), values.as_ptr().add(8 * I))
                }))
            }

            #[inline(always)]
            fn load_tail(_: Avx512, values: &[$t], bits: u64) -> Self {
                let bits = bits & mask_lowest(values.len());
                // SAFETY: the token proves AVX-512; lanes past `values.len()` are masked.
                Self(each!(8, I => unsafe {
                    $load_few(register_bits!(u8, bits, I), values.as_ptr().wrapping_add(8 * I))
                }))
            }

            #[inline(always)]
            fn combine(self, other: Self) -> Self {
                // SAFETY: a block exists only if an `Avx512` token was given, which proves AVX-512.
                Self(each!(8, I => unsafe { _mm512_add_pd(self.0[I], other.0[I]) }))
            }

            #[inline(always)]
            fn to_register(self) -> __m512d {
                let v = self.0;
                // SAFETY: a block exists only if an `Avx512` token was given, which proves AVX-512.
                unsafe {
                    let v = each!(4, I => _mm512_add_pd(v[I], v[I + 4]));
                    _mm512_add_pd(_mm512_add_pd(v[0], v[2]), _mm512_add_pd(v[1], v[3]))
                }
            }

            #[inline(always)]
            fn combine_if(part: __m512d, before: __m512d, more: bool) -> __m512d {
                // SAFETY: the registers come from a block, which exists only on CPUs with AVX-512.
                unsafe { _mm512_mask_add_pd(part, if more { u8::MAX } else { 0 }, part, before) }
            }

            #[inline(always)]
            fn reduce_lists(parts: [__m512d; LANES]) -> [f64; LANES] {
                // SAFETY: the registers come from a block, which exists only with an `Avx512`
                // token; a register and an array of its lanes have the same bits. Adding 0 turns a
                // sum of negative zeros into 0, as in a fold that starts at 0.
                unsafe {
                    let sums = fold_doubles!(parts, _mm512_add_pd);
                    transmute(_mm512_add_pd(sums, _mm512_setzero_pd()))
                }
            }

            #[inline(always)]
            fn to_lanes(self) -> [f64; BLOCK] {
                // SAFETY: registers and arrays of their lanes have the same size and bits.
                unsafe { transmute(self.0) }
            }
        }
    };
}
sums!(f32, load_8_singles, load_masked_8_singles);
sums!(f64, load_8_doubles, _mm512_maskz_loadu_pd);

/// Loads eight `f32` as doubles; lanes whose bit in `mask` is 0 become 0. All eight values must be
/// readable, because only the conversion is masked. An unmasked load is part of the instruction
/// that converts, whereas a masked load would be another instruction.
#[inline(always)]
unsafe fn load_8_singles(mask: u8, values: *const f32) -> __m512d {
    // SAFETY: the caller passes 8 readable values on a CPU with AVX-512.
    unsafe { _mm512_maskz_cvtps_pd(mask, _mm256_loadu_ps(values)) }
}

#[inline(always)]
unsafe fn load_masked_8_singles(mask: u8, values: *const f32) -> __m512d {
    // SAFETY: the caller masks lanes that cannot be read, on a CPU with AVX-512.
    unsafe { _mm512_cvtps_pd(_mm256_maskz_loadu_ps(mask, values)) }
}

#[inline(always)]
unsafe fn load_8_doubles(mask: u8, values: *const f64) -> __m512d {
    // SAFETY: the caller passes 8 readable values on a CPU with AVX-512.
    unsafe { _mm512_maskz_mov_pd(mask, _mm512_loadu_pd(values)) }
}

/// Number of valid values per lane, as `u8`: callers read and reset it after at most 255 lists.
#[derive(Clone, Copy)]
pub(super) struct LaneCounts(__m512i);

impl LaneCounts {
    #[inline(always)]
    pub(super) fn empty(_: Avx512) -> Self {
        // SAFETY: the `Avx512` token proves that the CPU has these instructions.
        Self(unsafe { _mm512_setzero_si512() })
    }

    #[inline(always)]
    pub(super) fn count_bits(self, bits: u64) -> Self {
        // SAFETY: `LaneCounts` exists only if an `Avx512` token was given, which proves AVX-512.
        Self(unsafe { _mm512_mask_add_epi8(self.0, bits, self.0, _mm512_set1_epi8(1)) })
    }

    #[inline(always)]
    pub(super) fn to_lanes(self) -> [u8; BLOCK] {
        // SAFETY: a register and an array of its lanes have the same size and bits.
        unsafe { transmute(self.0) }
    }
}

/// Minima or maxima (`W` selects which) of a block, one per lane; NaN if a value of the lane is
/// NaN.
#[derive(Clone, Copy)]
pub(super) struct ExtremeRegisters<R, W>(R, PhantomData<W>);

pub(super) type SingleExtremes<W> = ExtremeRegisters<[__m512; 4], W>;
pub(super) type DoubleExtremes<W> = ExtremeRegisters<[__m512d; 8], W>;

macro_rules! extremes {
    ($t:ty, $n:tt $r:ty, of $mask:ty, $block:ident, $set:ident, $load:ident, $mov:ident,
     $load_few:ident, $best:ident) => {
        impl<W: MinOrMax> RegisterBlock<ExtremeFold<$t, W>> for $block<W> {
            const AVAILABLE: bool = true;
            type Part = $r;

            #[inline(always)]
            fn empty(_: Avx512) -> Self {
                // SAFETY: the `Avx512` token proves that the CPU has AVX-512.
                Self([unsafe { $set(ExtremeFold::<$t, W>::NEUTRAL) }; $n], PhantomData)
            }

            #[inline(always)]
            fn load_full(token: Avx512, values: &[$t; BLOCK], bits: u64) -> Self {
                let neutral = Self::empty(token).0[0];
                // SAFETY: the token proves AVX-512; each load reads `BLOCK / n` of the 64 values.
                let found = each!($n, I => unsafe {
                    let values = $load(values.as_ptr().add(BLOCK / $n * I));
                    $mov(neutral, register_bits!($mask, bits, I), values)
                });
                Self(found, PhantomData)
            }

            #[inline(always)]
            fn load_tail(token: Avx512, values: &[$t], bits: u64) -> Self {
                let (neutral, bits) = (Self::empty(token).0[0], bits & mask_lowest(values.len()));
                // SAFETY: the token proves AVX-512; lanes past `values.len()` are masked.
                let found = each!($n, I => unsafe {
                    let values = values.as_ptr().wrapping_add(BLOCK / $n * I);
                    $load_few(neutral, register_bits!($mask, bits, I), values)
                });
                Self(found, PhantomData)
            }

            #[inline(always)]
            fn combine(self, other: Self) -> Self {
                // SAFETY: a block exists only if an `Avx512` token was given, which proves AVX-512.
                let best = each!($n, I => unsafe { $best::<W>(self.0[I], other.0[I]) });
                Self(best, PhantomData)
            }

            #[inline(always)]
            fn to_register(self) -> $r {
                // SAFETY: a block exists only if an `Avx512` token was given, which proves AVX-512.
                unsafe { self.fold_registers() }
            }

            #[inline(always)]
            fn combine_if(part: $r, before: $r, more: bool) -> $r {
                // SAFETY: the registers come from a block, which exists only on CPUs with AVX-512.
                unsafe {
                    let neutral = $set(ExtremeFold::<$t, W>::NEUTRAL);
                    let before = $mov(neutral, if more { <$mask>::MAX } else { 0 }, before);
                    $best::<W>(part, before)
                }
            }

            #[inline(always)]
            fn reduce_lists(parts: [$r; LANES]) -> [$t; LANES] {
                // SAFETY: the registers come from a block, which exists only on CPUs with AVX-512.
                unsafe { Self::fold_lists(parts) }
            }

            #[inline(always)]
            fn to_lanes(self) -> [$t; BLOCK] {
                // SAFETY: registers and arrays of their lanes have the same size and bits.
                unsafe { transmute(self.0) }
            }
        }
    };
}
extremes!(
    f32, 4 __m512, of u16, SingleExtremes, _mm512_set1_ps, _mm512_loadu_ps, _mm512_mask_mov_ps, _mm512_mask_loadu_ps, best_singles
);
extremes!(
    f64, 8 __m512d, of u8, DoubleExtremes, _mm512_set1_pd, _mm512_loadu_pd, _mm512_mask_mov_pd, _mm512_mask_loadu_pd, best_doubles
);

impl<W: MinOrMax> SingleExtremes<W> {
    #[inline(always)]
    unsafe fn fold_registers(self) -> __m512 {
        let [a, b, c, d] = self.0;
        // SAFETY: the caller runs on a CPU with AVX-512.
        unsafe { best_singles::<W>(best_singles::<W>(a, b), best_singles::<W>(c, d)) }
    }

    /// Combines the lanes of each of eight registers into one value: first 128-bit quarters, then
    /// single lanes.
    #[inline(always)]
    unsafe fn fold_lists(p: [__m512; LANES]) -> [f32; LANES] {
        // SAFETY: the caller guarantees AVX-512. Half of a register has the size of eight `f32`.
        unsafe {
            let pairs = each!(4, I => combine_quarters::<W>(p[2 * I], p[2 * I + 1]));
            let [a, e] = each!(2, I => combine_quarters::<W>(pairs[2 * I], pairs[2 * I + 1]));
            let (x, y) = (_mm512_shuffle_ps::<0x88>(a, e), _mm512_shuffle_ps::<0xdd>(a, e));
            let all = best_singles::<W>(x, y);
            let all = best_singles::<W>(all, _mm512_permute_ps::<0xb1>(all));
            // Lane 0 of quarter `q` has the result of list `q`; lane 2 has the result of list
            // `q + 4`.
            let order = _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 0, 0, 0, 0, 0, 0, 0);
            transmute(_mm512_castps512_ps256(_mm512_permutexvar_ps(order, all)))
        }
    }
}

/// Combines neighboring 128-bit quarters: returns two quarters from `a`, then two from `b`.
#[inline(always)]
unsafe fn combine_quarters<W: MinOrMax>(a: __m512, b: __m512) -> __m512 {
    // SAFETY: the caller runs on a CPU with AVX-512.
    unsafe {
        best_singles::<W>(_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b))
    }
}

impl<W: MinOrMax> DoubleExtremes<W> {
    #[inline(always)]
    unsafe fn fold_registers(self) -> __m512d {
        let v = self.0;
        // SAFETY: the caller runs on a CPU with AVX-512.
        unsafe {
            let v = each!(4, I => best_doubles::<W>(v[I], v[I + 4]));
            best_doubles::<W>(best_doubles::<W>(v[0], v[2]), best_doubles::<W>(v[1], v[3]))
        }
    }

    #[inline(always)]
    unsafe fn fold_lists(parts: [__m512d; LANES]) -> [f64; LANES] {
        // SAFETY: the caller runs on a CPU with AVX-512; a register is eight `f64`.
        unsafe { transmute(fold_doubles!(parts, best_doubles::<W>)) }
    }
}

/// Defines a function for the minimum or maximum by lane. If one of the two values is NaN, the
/// function returns their sum, which is NaN; `$max` or `$min` alone would return the second value.
macro_rules! best {
    ($name:ident, $r:ty, $max:ident, $min:ident, $compare:ident, $add:ident) => {
        #[inline(always)]
        unsafe fn $name<W: MinOrMax>(a: $r, b: $r) -> $r {
            // SAFETY: the caller runs on a CPU with AVX-512.
            unsafe {
                let best = if W::MAX { $max(a, b) } else { $min(a, b) };
                $add(best, $compare::<_CMP_UNORD_Q>(a, b), a, b)
            }
        }
    };
}
best!(best_singles, __m512, _mm512_max_ps, _mm512_min_ps, _mm512_cmp_ps_mask, _mm512_mask_add_ps);
best!(best_doubles, __m512d, _mm512_max_pd, _mm512_min_pd, _mm512_cmp_pd_mask, _mm512_mask_add_pd);

pub(super) struct LeafBlocks<'a, F: Fold, T: Validity> {
    pub(super) token: Avx512,
    flat: &'a [F::Input],
    validity: T,
    /// From any index below this one, [`BLOCK`] leaves and their validity can be read without
    /// bounds checks.
    whole: usize,
}

impl<'a, F: Fold, T: Validity> LeafBlocks<'a, F, T> {
    #[inline(always)]
    pub(super) fn new(token: Avx512, flat: &'a [F::Input], validity: T) -> Self {
        let whole = (flat.len() + 1).saturating_sub(BLOCK).min(validity.reach());
        Self { token, flat, validity, whole }
    }

    /// Loads up to [`BLOCK`] leaves from `at`, and their validity; lanes at or after `end` are
    /// masked. Contains no function call: even a rare call would make the surrounding loop spill
    /// all registers.
    #[inline(always)]
    pub(super) fn fold_block(&self, at: usize, end: usize) -> (F::RegisterBlock, u64) {
        prefetch_block::<F::Input, BLOCK>(self.flat, at);
        if at < self.whole {
            // SAFETY: `at < self.whole`, so 64 leaves and their bits can be read. (Bounds checks
            // would take a quarter of the time on short lists.)
            let (values, bits) = unsafe {
                let values = self.flat.as_ptr().add(at).cast::<[F::Input; BLOCK]>();
                (&*values, self.validity.load_valid_within(at, end))
            };
            return (F::RegisterBlock::load_full(self.token, values, bits), bits);
        }
        let bits = self.validity.load_valid(at, end);
        (F::RegisterBlock::load_tail(self.token, &self.flat[at..], bits), bits)
    }
}
