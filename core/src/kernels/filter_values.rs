//! Selects the values whose bit is set, with SIMD where the CPU has it.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    _mm512_loadu_epi8, _mm512_loadu_epi16, _mm512_loadu_epi32, _mm512_loadu_epi64,
    _mm512_maskz_compress_epi8, _mm512_maskz_compress_epi16, _mm512_maskz_compress_epi32,
    _mm512_maskz_compress_epi64, _mm512_storeu_epi8, _mm512_storeu_epi16, _mm512_storeu_epi32,
    _mm512_storeu_epi64,
};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, PrimitiveArray};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::compute::FilterBuilder;
use arrow::datatypes::{ArrowPrimitiveType, UInt8Type, UInt16Type, UInt32Type, UInt64Type};

use super::allocate::allocate_values;
use super::bits::{BitWords, RankedBitmap, align_words, count_ones};
use super::native::reinterpret_values;
#[cfg(target_arch = "x86_64")]
use crate::array::prefetch::prefetch_ahead;
use crate::array::prefetch::prefetch_value;
use crate::error::Result;

/// Returns the values whose bit in `keep` is set.
///
/// Reads the mask by words of 64 bits. If no bit is set, skips 64 values; if all are, copies them
/// at once; if few are, one by one. Other words need no branches: each value is stored at the next
/// output index, which advances only if the bit of the value is set.
pub(super) fn filter_values(values: &ArrayRef, keep: &BooleanBuffer) -> Result<ArrayRef> {
    if !is_fixed_width(values) {
        return filter_with_arrow(values, keep);
    }
    let words = align_words(keep);
    dispatch_width(values, &words, count_ones(&words))
}

pub(super) fn filter_values_by_rank(
    values: &ArrayRef,
    keep: &BooleanBuffer,
    rank: &RankedBitmap,
) -> Result<ArrayRef> {
    if !is_fixed_width(values) {
        return filter_with_arrow(values, keep);
    }
    dispatch_width(values, rank.words(), rank.total())
}

fn is_fixed_width(values: &ArrayRef) -> bool {
    matches!(values.data_type().primitive_width(), Some(1 | 2 | 4 | 8))
}

fn filter_with_arrow(values: &ArrayRef, keep: &BooleanBuffer) -> Result<ArrayRef> {
    let keep = BooleanArray::new(keep.clone(), None);
    Ok(FilterBuilder::new(&keep).optimize().build().filter(values)?)
}

fn dispatch_width(values: &ArrayRef, keep: &[u64], count: usize) -> Result<ArrayRef> {
    match values.data_type().primitive_width() {
        Some(1) => filter_primitive::<UInt8Type>(values, keep, count),
        Some(2) => filter_primitive::<UInt16Type>(values, keep, count),
        Some(4) => filter_primitive::<UInt32Type>(values, keep, count),
        _ => filter_primitive::<UInt64Type>(values, keep, count),
    }
}

fn filter_primitive<T: ArrowPrimitiveType<Native: MaskCompress>>(
    values: &ArrayRef,
    keep: &[u64],
    count: usize,
) -> Result<ArrayRef> {
    let same = reinterpret_values(values, &T::DATA_TYPE)?;
    let flat = same.as_primitive::<T>().values();
    let nulls = values.nulls().filter(|n| n.null_count() > 0);
    let nulls = nulls.map(|n| NullBuffer::new(compress_bits(n.inner(), keep, count)));
    let nulls = nulls.filter(|n| n.null_count() > 0);
    let out = dispatch_compress(flat, keep, count);
    let out: ArrayRef = Arc::new(PrimitiveArray::<T>::try_new(out.into(), nulls)?);
    reinterpret_values(&out, values.data_type())
}

/// If a word of the mask has fewer set bits, its values are copied one by one.
const FEW: u32 = 16;

fn dispatch_compress<V: MaskCompress>(flat: &[V], keep: &[u64], count: usize) -> Vec<V> {
    #[cfg(target_arch = "x86_64")]
    {
        use super::simd::{has_avx2, has_avx512, has_vbmi2};

        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn compress_avx2<V: MaskCompress>(flat: &[V], keep: &[u64], count: usize) -> Vec<V> {
            compress_words(flat, keep, count)
        }
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn compress_avx512<V: MaskCompress>(
            flat: &[V],
            keep: &[u64],
            count: usize,
        ) -> Vec<V> {
            // SAFETY: the caller guarantees that the CPU supports the features enabled above.
            unsafe { compress_registers(flat, keep, count) }
        }
        #[target_feature(enable = "avx512vbmi2")]
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn compress_vbmi2<V: MaskCompress>(
            flat: &[V],
            keep: &[u64],
            count: usize,
        ) -> Vec<V> {
            // SAFETY: the caller guarantees that the CPU supports the features enabled above.
            unsafe { compress_registers(flat, keep, count) }
        }
        if size_of::<V>() >= 4 && has_avx512() {
            // SAFETY: `has_avx512` checked the features that 32-bit and 64-bit values need.
            return unsafe { compress_avx512(flat, keep, count) };
        }
        if size_of::<V>() < 4 && has_vbmi2() {
            // SAFETY: `has_vbmi2` checked that the CPU supports the features that the function
            // enables.
            return unsafe { compress_vbmi2(flat, keep, count) };
        }
        if has_avx2() {
            // SAFETY: `has_avx2` checked that the CPU supports the features that the function
            // enables.
            return unsafe { compress_avx2(flat, keep, count) };
        }
    }
    compress_words(flat, keep, count)
}

/// Filters with AVX-512 compress instructions. `count` bits of `keep` are set.
///
/// # Safety
/// The CPU must support compression of values of this width (see [`MaskCompress::compress_word`]).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn compress_registers<V: MaskCompress>(flat: &[V], keep: &[u64], count: usize) -> Vec<V> {
    // Reserve [`WORD`] more values: a compressing store writes a full register, beyond the selected
    // values.
    let mut out: Vec<V> = allocate_values(count + WORD);
    let (whole, rest) = flat.as_chunks::<WORD>();
    let mut found = [0u32; BLOCK];
    for (block, keep) in keep.chunks(BLOCK).enumerate() {
        let start = block * BLOCK;
        let found = find_nonzero_words(keep, &mut found);
        for i in 0..found.len() {
            prefetch_sparse(flat, start, keep, found, i);
            let at = found[i] as usize;
            let mut word = keep[at];
            let ones = word.count_ones();
            match whole.get(start + at) {
                Some(values) if ones >= FEW_MOVED && out.capacity() - out.len() >= WORD => {
                    for line in 0..WORD * size_of::<V>() / 64 {
                        prefetch_ahead(flat, (start + at) * WORD + line * (64 / size_of::<V>()));
                    }
                    // SAFETY: the condition of this match arm ensures that `out` has spare capacity
                    // for `WORD` values. `compress_word` initializes one value per set bit of
                    // `word`, and the length grows by the number of these bits.
                    unsafe {
                        V::compress_word(values, word, out.as_mut_ptr().add(out.len()));
                        out.set_len(out.len() + ones as usize);
                    }
                }
                values => {
                    let values = values.map_or(rest, |whole| whole);
                    while word != 0 {
                        if let Some(value) = values.get(word.trailing_zeros() as usize) {
                            out.push(*value);
                        }
                        word &= word - 1;
                    }
                }
            }
        }
    }
    out
}

/// Replaces [`FEW`] in AVX-512 code, which filters a whole word with a few instructions.
#[cfg(target_arch = "x86_64")]
const FEW_MOVED: u32 = 6;

/// Mask words per step: first the nonzero words among them are found, then their values are read.
const BLOCK: usize = 256;

/// Prefetch distance in nonzero mask words. The prefetcher of the CPU cannot predict which values a
/// sparse mask selects.
const AHEAD: usize = 16;

/// If fewer than half of the words of `keep` are nonzero, prefetches the first value of nonzero
/// word `i + AHEAD`. `found` has the indices of these words, and `start` is the first word of
/// `keep` in the whole mask.
#[inline(always)]
fn prefetch_sparse<V>(flat: &[V], start: usize, keep: &[u64], found: &[u32], i: usize) {
    if found.len() < keep.len() / 2
        && let Some(next) = found.get(i + AHEAD)
    {
        let next = *next as usize;
        prefetch_value(flat, (start + next) * 64 + keep[next].trailing_zeros() as usize);
    }
}

#[inline(always)]
#[expect(
    clippy::needless_range_loop,
    reason = "the compiler might not inline the closures of a zip"
)]
fn compress_words<V: Copy + Default>(flat: &[V], keep: &[u64], count: usize) -> Vec<V> {
    let mut out: Vec<V> = allocate_values(count);
    let mut buffer = [V::default(); 64];
    let (whole, rest) = flat.as_chunks::<64>();
    let mut found = [0u32; BLOCK];
    for (block, keep) in keep.chunks(BLOCK).enumerate() {
        let start = block * BLOCK;
        let found = find_nonzero_words(keep, &mut found);
        for i in 0..found.len() {
            prefetch_sparse(flat, start, keep, found, i);
            let at = found[i] as usize;
            let mut word = keep[at];
            let Some(values) = whole.get(start + at) else {
                while word != 0 {
                    out.extend(rest.get(word.trailing_zeros() as usize));
                    word &= word - 1;
                }
                continue;
            };
            let ones = word.count_ones();
            if ones == 64 {
                out.extend_from_slice(values);
            } else if ones >= FEW {
                let mut next = 0;
                for i in 0..64 {
                    // `next`, the number of stored values, is less than 64; `& 63` avoids a bounds
                    // check.
                    buffer[next & 63] = values[i];
                    next += usize::from(word >> i & 1 == 1);
                }
                out.extend_from_slice(&buffer[..next.min(64)]);
            } else {
                while word != 0 {
                    out.push(values[word.trailing_zeros() as usize & 63]);
                    word &= word - 1;
                }
            }
        }
    }
    out
}

/// Writes the indices of the nonzero words to the start of `found` and returns them. The loop has
/// no branch.
#[inline(always)]
fn find_nonzero_words<'a>(words: &[u64], found: &'a mut [u32; BLOCK]) -> &'a [u32] {
    let (mut next, mut at) = (0, 0u32);
    for word in words {
        // There are at most [`BLOCK`] words; the modulo avoids a bounds check.
        found[next % BLOCK] = at;
        next += usize::from(*word != 0);
        at += 1;
    }
    &found[..next]
}

fn compress_bits(bits: &BooleanBuffer, keep: &[u64], count: usize) -> BooleanBuffer {
    let bits = RankedBitmap::new(bits);
    let bits = bits.bits();
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn compress_bits_bmi2(bits: BitWords<'_>, keep: &[u64], count: usize) -> Vec<u64> {
            // SAFETY: this function enables BMI2, so its callers ensure that the CPU supports BMI2.
            unsafe { compress_bitmap::<true>(bits, keep, count) }
        }
        if super::simd::has_avx2() {
            // SAFETY: `has_avx2` checked that the CPU supports the features that the function
            // enables.
            let words = unsafe { compress_bits_bmi2(bits, keep, count) };
            return BooleanBuffer::new(Buffer::from_vec(words), 0, count);
        }
    }
    // SAFETY: only `compress_bitmap::<true>` needs a CPU feature (BMI2).
    let words = unsafe { compress_bitmap::<false>(bits, keep, count) };
    BooleanBuffer::new(Buffer::from_vec(words), 0, count)
}

/// Packs the bits of `bits` at the set bits of `mask`: `0b1010` and `0b0110` give `0b01`.
///
/// # Safety
/// The CPU must support BMI2 if `WIDE` is set.
#[inline(always)]
unsafe fn extract_bits<const WIDE: bool>(bits: u64, mask: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if WIDE {
        // SAFETY: if `WIDE` is true, the caller ensures that the CPU supports BMI2.
        return unsafe { std::arch::x86_64::_pext_u64(bits, mask) };
    }
    let (mut out, mut next, mut mask) = (0, 0, mask);
    while mask != 0 {
        out |= (bits >> mask.trailing_zeros() & 1) << next;
        next += 1;
        mask &= mask - 1;
    }
    out
}

/// Returns the bits of `bits` at the set bits of `keep`, packed into words; the bits of each word
/// are in little-endian order. `count` bits of `keep` are set.
///
/// # Safety
/// The CPU must support BMI2 if `WIDE` is set.
#[inline(always)]
unsafe fn compress_bitmap<const WIDE: bool>(
    bits: BitWords<'_>,
    keep: &[u64],
    count: usize,
) -> Vec<u64> {
    let mut out = Vec::with_capacity(count.div_ceil(64) + 1);
    let (mut word, mut filled) = (0u64, 0);
    for (block, keep) in keep.chunks(BLOCK).enumerate() {
        let mut found = [0u32; BLOCK];
        for at in find_nonzero_words(keep, &mut found) {
            let at = *at as usize;
            let n = keep[at].count_ones();
            // SAFETY: if `WIDE` is true, the caller ensures that the CPU supports BMI2.
            let found = unsafe {
                extract_bits::<WIDE>(bits.load_bits((block * BLOCK + at) * 64), keep[at])
            };
            word |= found << filled;
            if filled + n >= 64 {
                out.push(word.to_le());
                // Start the next word with the bits of `found` that did not fit (none if `word` was
                // empty).
                word = if filled == 0 { 0 } else { found >> (64 - filled) };
                filled = filled + n - 64;
            } else {
                filled += n;
            }
        }
    }
    out.push(word.to_le());
    out
}

#[cfg(target_arch = "x86_64")]
const WORD: usize = 64;

/// AVX-512 compress instructions, which move the values with mask bit 1 to the front of a register.
trait MaskCompress: Copy + Default {
    /// Stores the values whose bit is 1 without gaps from `to` on, then unspecified values.
    ///
    /// # Safety
    /// `to` must have capacity for [`WORD`] values. The CPU must support AVX-512 F/VL/DQ/BW, and
    /// VBMI2 for types narrower than 32 bits.
    #[cfg(target_arch = "x86_64")]
    unsafe fn compress_word(values: &[Self; WORD], bits: u64, to: *mut Self);
}

macro_rules! compress {
    ($t:ty, $mask:ty, $load:ident, $compress:ident, $store:ident) => {
        impl MaskCompress for $t {
            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn compress_word(values: &[Self; WORD], bits: u64, to: *mut Self) {
                const LANES: usize = <$mask>::BITS as usize;
                let mut at = 0;
                for i in 0..WORD / LANES {
                    #[allow(clippy::cast_possible_truncation, reason = "one register's bits")]
                    let mask = (bits >> (i * LANES)) as $mask;
                    // SAFETY: reads stay within `values`. Before each store, no more values were
                    // written than read, so the full-width store stays within `WORD` values.
                    unsafe {
                        let some = $load(values.as_ptr().add(i * LANES).cast());
                        $store(to.add(at).cast(), $compress(mask, some));
                    }
                    at += mask.count_ones() as usize;
                }
            }
        }
    };
}
compress!(u8, u64, _mm512_loadu_epi8, _mm512_maskz_compress_epi8, _mm512_storeu_epi8);
compress!(u16, u32, _mm512_loadu_epi16, _mm512_maskz_compress_epi16, _mm512_storeu_epi16);
compress!(u32, u16, _mm512_loadu_epi32, _mm512_maskz_compress_epi32, _mm512_storeu_epi32);
compress!(u64, u8, _mm512_loadu_epi64, _mm512_maskz_compress_epi64, _mm512_storeu_epi64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mixture_of_words() {
        let bit = |i: usize, of: usize| match (i / 64 + of) % 5 {
            _ if i > 20_000 => i % 1000 < 2,
            0 => false,
            1 => true,
            2 => i % 17 == 3,
            3 => !i.is_multiple_of(3),
            _ => (i * 2_654_435_761) >> 7 & 1 == 1,
        };
        // The last length has more mask words than `BLOCK`, so that the mask is processed in
        // several steps.
        for n in [0usize, 1, 63, 64, 65, 640, 1000, 1279, 40_000] {
            for of in 0..5 {
                let keep: Vec<bool> = (0..n + 3).map(|i| bit(i, of)).collect();
                let keep = BooleanBuffer::from(keep).slice(3, n);
                let bits: BooleanBuffer = (0..n).map(|i| bit(i, of + 2)).collect();
                let expected: Vec<bool> =
                    (0..n).filter(|i| keep.value(*i)).map(|i| bits.value(i)).collect();
                let found = compress_bits(&bits, &align_words(&keep), expected.len());
                assert_eq!(found.iter().collect::<Vec<_>>(), expected);
                // SAFETY: only `compress_bitmap::<true>` needs a CPU feature (BMI2).
                let slow = unsafe {
                    compress_bitmap::<false>(
                        RankedBitmap::new(&bits).bits(),
                        &align_words(&keep),
                        expected.len(),
                    )
                };
                let slow = BooleanBuffer::new(Buffer::from_vec(slow), 0, expected.len());
                assert_eq!(found, slow);
                // Checks values of one width; each width has its own compress instructions.
                fn moved<V: MaskCompress + PartialEq + std::fmt::Debug + From<u8>>(
                    keep: &BooleanBuffer,
                ) {
                    let value = |i: usize| V::from(u8::try_from(i * 7 % 251).unwrap());
                    let values: Vec<V> = (0..keep.len()).map(value).collect();
                    let kept = (0..keep.len()).filter(|i| keep.value(*i)).map(value);
                    let wanted: Vec<V> = kept.collect();
                    assert_eq!(
                        dispatch_compress(&values, &align_words(keep), wanted.len()),
                        wanted
                    );
                    assert_eq!(compress_words(&values, &align_words(keep), wanted.len()), wanted);
                }
                moved::<u8>(&keep);
                moved::<u16>(&keep);
                moved::<u32>(&keep);
                moved::<u64>(&keep);
            }
        }
    }
}
