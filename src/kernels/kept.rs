//! The values that a bit map keeps.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, PrimitiveArray};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::compute::FilterBuilder;
use arrow::datatypes::{ArrowPrimitiveType, UInt8Type, UInt16Type, UInt32Type, UInt64Type};

use super::bits::{Rank, Words, ones, words};
use super::compress::Compress;
#[cfg(target_arch = "x86_64")]
use super::compress::WORD;
use super::reduce::reinterpret;
use super::room::with_room;
use crate::array::ahead::ask;
#[cfg(target_arch = "x86_64")]
use crate::array::ahead::ask_ahead;
use crate::error::Result;

/// The values whose bit is set.
///
/// Values of fixed width are looked at 64 at a time: none and all at once, few one by one, and else all
/// of them without a branch, each written where the next one kept belongs.
pub(super) fn kept(values: &ArrayRef, keep: &BooleanBuffer) -> Result<ArrayRef> {
    if !fixed(values) {
        return filtered(values, keep);
    }
    let words = words(keep);
    by_width(values, &words, ones(&words))
}

/// As [`kept`], by bits that were counted.
pub(super) fn kept_of(values: &ArrayRef, keep: &BooleanBuffer, rank: &Rank) -> Result<ArrayRef> {
    if !fixed(values) {
        return filtered(values, keep);
    }
    by_width(values, rank.words(), rank.total())
}

fn fixed(values: &ArrayRef) -> bool {
    matches!(values.data_type().primitive_width(), Some(1 | 2 | 4 | 8))
}

fn filtered(values: &ArrayRef, keep: &BooleanBuffer) -> Result<ArrayRef> {
    let keep = BooleanArray::new(keep.clone(), None);
    Ok(FilterBuilder::new(&keep).optimize().build().filter(values)?)
}

fn by_width(values: &ArrayRef, keep: &[u64], count: usize) -> Result<ArrayRef> {
    match values.data_type().primitive_width() {
        Some(1) => typed::<UInt8Type>(values, keep, count),
        Some(2) => typed::<UInt16Type>(values, keep, count),
        Some(4) => typed::<UInt32Type>(values, keep, count),
        _ => typed::<UInt64Type>(values, keep, count),
    }
}

fn typed<T: ArrowPrimitiveType<Native: Compress>>(
    values: &ArrayRef,
    keep: &[u64],
    count: usize,
) -> Result<ArrayRef> {
    let same = reinterpret(values, &T::DATA_TYPE)?;
    let flat = same.as_primitive::<T>().values();
    let nulls = values.nulls().filter(|n| n.null_count() > 0);
    let nulls = nulls.map(|n| NullBuffer::new(kept_bits(n.inner(), keep, count)));
    let nulls = nulls.filter(|n| n.null_count() > 0);
    let out = compressed(flat, keep, count);
    let out: ArrayRef = Arc::new(PrimitiveArray::<T>::try_new(out.into(), nulls)?);
    reinterpret(&out, values.data_type())
}

/// A word with fewer bits than this is gone through bit by bit.
const FEW: u32 = 16;

/// With the instructions for bits that the processor has.
fn compressed<V: Compress>(flat: &[V], keep: &[u64], count: usize) -> Vec<V> {
    #[cfg(target_arch = "x86_64")]
    {
        use super::bits::{has_avx2, has_avx512, has_vbmi2};

        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn wide<V: Compress>(flat: &[V], keep: &[u64], count: usize) -> Vec<V> {
            by_words(flat, keep, count)
        }
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn widest<V: Compress>(flat: &[V], keep: &[u64], count: usize) -> Vec<V> {
            // SAFETY: as the caller says.
            unsafe { in_registers(flat, keep, count) }
        }
        #[target_feature(enable = "avx512vbmi2")]
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn small<V: Compress>(flat: &[V], keep: &[u64], count: usize) -> Vec<V> {
            // SAFETY: as the caller says.
            unsafe { in_registers(flat, keep, count) }
        }
        if size_of::<V>() >= 4 && has_avx512() {
            // SAFETY: the processor has what the function was compiled for, which is all such values need.
            return unsafe { widest(flat, keep, count) };
        }
        if size_of::<V>() < 4 && has_vbmi2() {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { small(flat, keep, count) };
        }
        if has_avx2() {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { wide(flat, keep, count) };
        }
    }
    by_words(flat, keep, count)
}

/// A register of values is moved in one step, wherever in a word they are.
///
/// # Safety
/// The processor moves values of this width by masks.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn in_registers<V: Compress>(flat: &[V], keep: &[u64], count: usize) -> Vec<V> {
    // What a register writes behind the values kept needs room, too.
    let mut out: Vec<V> = with_room(count + WORD);
    let (whole, rest) = flat.as_chunks::<WORD>();
    let mut found = [0u32; BLOCK];
    for (block, keep) in keep.chunks(BLOCK).enumerate() {
        let start = block * BLOCK;
        let found = set_words(keep, &mut found);
        for i in 0..found.len() {
            ask_sparse(flat, start, keep, found, i);
            let at = found[i] as usize;
            let mut word = keep[at];
            let ones = word.count_ones();
            match whole.get(start + at) {
                Some(values) if ones >= FEW_MOVED && out.capacity() - out.len() >= WORD => {
                    for line in 0..WORD * size_of::<V>() / 64 {
                        ask_ahead(flat, (start + at) * WORD + line * (64 / size_of::<V>()));
                    }
                    // SAFETY: there is room for a word of values, and as many as bits are set are made.
                    unsafe {
                        V::compress(values, word, out.as_mut_ptr().add(out.len()));
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

/// As [`FEW`], where a word takes no longer than some steps.
#[cfg(target_arch = "x86_64")]
const FEW_MOVED: u32 = 6;

/// Words that are looked through for bits before values are fetched.
const BLOCK: usize = 256;

/// Words ahead of the one whose values are fetched. Where few bits are set, every value is somewhere else
/// in memory, and the processor does not foresee where.
const AHEAD: usize = 16;

/// Asks for the first value of a word [`AHEAD`] of word `i` of those that have any, where most have none.
#[inline(always)]
fn ask_sparse<V>(flat: &[V], start: usize, keep: &[u64], found: &[u32], i: usize) {
    if found.len() < keep.len() / 2
        && let Some(next) = found.get(i + AHEAD)
    {
        let next = *next as usize;
        ask(flat, (start + next) * 64 + keep[next].trailing_zeros() as usize);
    }
}

#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "a zip stays a call for every word, as closures do")]
fn by_words<V: Copy + Default>(flat: &[V], keep: &[u64], count: usize) -> Vec<V> {
    let mut out: Vec<V> = with_room(count);
    let mut room = [V::default(); 64];
    let (whole, rest) = flat.as_chunks::<64>();
    let mut found = [0u32; BLOCK];
    for (block, keep) in keep.chunks(BLOCK).enumerate() {
        let start = block * BLOCK;
        let found = set_words(keep, &mut found);
        for i in 0..found.len() {
            ask_sparse(flat, start, keep, found, i);
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
                    // Never behind the value that is looked at, so never out of the room.
                    room[next & 63] = values[i];
                    next += usize::from(word >> i & 1 == 1);
                }
                out.extend_from_slice(&room[..next.min(64)]);
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

/// Places of the words that are not zero, without a branch.
#[inline(always)]
fn set_words<'a>(words: &[u64], found: &'a mut [u32; BLOCK]) -> &'a [u32] {
    let (mut next, mut at) = (0, 0u32);
    for word in words {
        // No more words than there are places.
        found[next % BLOCK] = at;
        next += usize::from(*word != 0);
        at += 1;
    }
    &found[..next]
}

/// The bits whose bit in `keep` is set, `count` of them.
fn kept_bits(bits: &BooleanBuffer, keep: &[u64], count: usize) -> BooleanBuffer {
    let bits = Rank::new(bits);
    let bits = bits.bits();
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn wide(bits: Words<'_>, keep: &[u64], count: usize) -> Vec<u64> {
            // SAFETY: this is compiled for BMI2, and runs where it is.
            unsafe { packed::<true>(bits, keep, count) }
        }
        if super::bits::has_avx2() {
            // SAFETY: the processor has what the function was compiled for.
            let words = unsafe { wide(bits, keep, count) };
            return BooleanBuffer::new(Buffer::from_vec(words), 0, count);
        }
    }
    // SAFETY: without BMI2 nothing is asked of the processor.
    let words = unsafe { packed::<false>(bits, keep, count) };
    BooleanBuffer::new(Buffer::from_vec(words), 0, count)
}

/// The bits at the set places of a mask, moved together.
///
/// # Safety
/// With `WIDE`, the processor has BMI2.
#[inline(always)]
unsafe fn extracted<const WIDE: bool>(bits: u64, mask: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if WIDE {
        // SAFETY: the processor has BMI2, as the caller says.
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

/// # Safety
/// As [`extracted`].
#[inline(always)]
unsafe fn packed<const WIDE: bool>(bits: Words<'_>, keep: &[u64], count: usize) -> Vec<u64> {
    let mut out = Vec::with_capacity(count.div_ceil(64) + 1);
    let (mut word, mut filled) = (0u64, 0);
    for (block, keep) in keep.chunks(BLOCK).enumerate() {
        let mut found = [0u32; BLOCK];
        for at in set_words(keep, &mut found) {
            let at = *at as usize;
            let n = keep[at].count_ones();
            // SAFETY: as the caller says.
            let found = unsafe { extracted::<WIDE>(bits.at((block * BLOCK + at) * 64), keep[at]) };
            word |= found << filled;
            if filled + n >= 64 {
                out.push(word.to_le());
                // What did not fit; nothing when the word was empty before.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mixture_of_words() {
        let bit = |i: usize, of: usize| match (i / 64 + of) % 5 {
            // Sparse in the end.
            _ if i > 20_000 => i % 1000 < 2,
            0 => false,
            1 => true,
            2 => i % 17 == 3,
            3 => !i.is_multiple_of(3),
            _ => (i * 2_654_435_761) >> 7 & 1 == 1,
        };
        // The last one has more words than are looked through at once.
        for n in [0usize, 1, 63, 64, 65, 640, 1000, 1279, 40_000] {
            for of in 0..5 {
                let keep: Vec<bool> = (0..n + 3).map(|i| bit(i, of)).collect();
                let keep = BooleanBuffer::from(keep).slice(3, n);
                let bits: BooleanBuffer = (0..n).map(|i| bit(i, of + 2)).collect();
                let expected: Vec<bool> =
                    (0..n).filter(|i| keep.value(*i)).map(|i| bits.value(i)).collect();
                let found = kept_bits(&bits, &words(&keep), expected.len());
                assert_eq!(found.iter().collect::<Vec<_>>(), expected);
                // SAFETY: without BMI2 nothing is asked of the processor.
                let slow = unsafe {
                    packed::<false>(Rank::new(&bits).bits(), &words(&keep), expected.len())
                };
                let slow = BooleanBuffer::new(Buffer::from_vec(slow), 0, expected.len());
                assert_eq!(found, slow);
                // Each width is moved by other instructions.
                fn moved<V: Compress + PartialEq + std::fmt::Debug + From<u8>>(
                    keep: &BooleanBuffer,
                ) {
                    let value = |i: usize| V::from(u8::try_from(i * 7 % 251).unwrap());
                    let values: Vec<V> = (0..keep.len()).map(value).collect();
                    let kept = (0..keep.len()).filter(|i| keep.value(*i)).map(value);
                    let wanted: Vec<V> = kept.collect();
                    assert_eq!(compressed(&values, &words(keep), wanted.len()), wanted);
                    assert_eq!(by_words(&values, &words(keep), wanted.len()), wanted);
                }
                moved::<u8>(&keep);
                moved::<u16>(&keep);
                moved::<u32>(&keep);
                moved::<u64>(&keep);
            }
        }
    }
}
