//! Folds of contiguous leaves: one list, one state.

use std::ops::Range;

use arrow::array::OffsetSizeTrait;

use super::fold::Fold;
use crate::array::{Layout, Offsets};
use crate::error::Result;
use crate::kernels::bits::Rank;

/// States side by side.
pub(super) const LANES: usize = 8;

/// The state of every list of `layout` over its leaves, those that `valid` calls null left out.
pub(super) fn fold<F: Fold>(
    flat: &[F::In],
    valid: Option<&Rank>,
    layout: &Layout,
) -> Result<Vec<F::Acc>> {
    Ok(match layout {
        Layout::Ragged(Offsets::I32(o)) => dispatched::<F, i32>(flat, valid, o),
        Layout::Ragged(Offsets::I64(o)) => dispatched::<F, i64>(flat, valid, o),
        uniform @ Layout::Uniform { .. } => {
            return fold::<F>(flat, valid, &uniform.to_offsets()?.into());
        }
    })
}

/// With the widest registers that the processor has.
fn dispatched<F: Fold, O: OffsetSizeTrait>(
    flat: &[F::In],
    valid: Option<&Rank>,
    offsets: &[O],
) -> Vec<F::Acc> {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn wide<F: Fold, O: OffsetSizeTrait>(
            flat: &[F::In],
            valid: Option<&Rank>,
            offsets: &[O],
        ) -> Vec<F::Acc> {
            lists::<F, O>(flat, valid, offsets)
        }
        if F::LANED && crate::kernels::bits::has_avx2() {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { wide::<F, O>(flat, valid, offsets) };
        }
    }
    lists::<F, O>(flat, valid, offsets)
}

/// Lists whose states are kept side by side before they are joined: one loop makes vectors of them, and
/// another one value of each.
const BLOCK: usize = 64;

/// Values that are let in without asking how many there are: as many as a word has bits. A loop that ends
/// where its list ends is left at a place that the processor cannot foresee; reading on, behind the list,
/// takes less time.
const STRIDE: usize = 64;

/// The same for what is left of a short list.
const SHORT: usize = 16;

#[inline(always)]
fn lists<F: Fold, O: OffsetSizeTrait>(
    flat: &[F::In],
    valid: Option<&Rank>,
    offsets: &[O],
) -> Vec<F::Acc> {
    let base = offsets[0].as_usize();
    let mut out = Vec::with_capacity(offsets.len() - 1);
    let mut start = 0;
    if !F::LANED {
        out.extend(offsets[1..].iter().map(|end| {
            let list = start..end.as_usize() - base;
            start = list.end;
            one_by_one::<F>(F::START, flat, valid, list)
        }));
        return out;
    }
    let mut states = [[F::START; LANES]; BLOCK];
    for ends in offsets[1..].chunks(BLOCK) {
        for (state, end) in states.iter_mut().zip(ends) {
            let end = end.as_usize() - base;
            *state = list::<F>(flat, valid, start..end);
            start = end;
        }
        out.extend(states[..ends.len()].iter().map(joined::<F>));
    }
    out
}

#[inline]
fn one_by_one<F: Fold>(
    mut acc: F::Acc,
    flat: &[F::In],
    valid: Option<&Rank>,
    list: Range<usize>,
) -> F::Acc {
    match valid {
        None => flat[list].iter().for_each(|v| acc = F::push(acc, *v)),
        Some(valid) => {
            for_each_valid(valid, list.start, list.end, |i| acc = F::push(acc, flat[i]));
        }
    }
    acc
}

#[inline(always)]
fn list<F: Fold>(flat: &[F::In], valid: Option<&Rank>, list: Range<usize>) -> [F::Acc; LANES] {
    let Range { start: mut at, end } = list;
    let mut lanes = [F::START; LANES];
    while end - at > STRIDE {
        let Some(values) = flat[at..].first_chunk::<STRIDE>() else { break };
        match valid {
            None => {
                for chunk in values.as_chunks::<LANES>().0 {
                    for (lane, v) in lanes.iter_mut().zip(chunk) {
                        *lane = F::push(*lane, *v);
                    }
                }
            }
            Some(valid) => lanes = those::<F, STRIDE>(lanes, values, valid.word(at)),
        }
        at += STRIDE;
    }
    // The rest with what comes behind it, which counts nothing.
    let n = end - at;
    let here = if n < STRIDE { (1 << n) - 1 } else { u64::MAX };
    let bits = valid.map_or(here, |valid| here & valid.word(at));
    let behind = &flat[at..];
    if n <= SHORT
        && let Some(values) = behind.first_chunk::<SHORT>()
    {
        return those::<F, SHORT>(lanes, values, bits);
    }
    if let Some(values) = behind.first_chunk::<STRIDE>() {
        return those::<F, STRIDE>(lanes, values, bits);
    }
    // Too close to the last leaf of all.
    lanes[0] = one_by_one::<F>(lanes[0], flat, valid, at..end);
    lanes
}

/// Those of the values whose bit is set.
#[inline(always)]
fn those<F: Fold, const N: usize>(
    mut lanes: [F::Acc; LANES],
    values: &[F::In; N],
    mut bits: u64,
) -> [F::Acc; LANES] {
    for chunk in values.as_chunks::<LANES>().0 {
        lanes = chosen::<F>(lanes, chunk, bits);
        bits >>= LANES;
    }
    lanes
}

/// Those of eight values whose bit is set.
#[inline(always)]
pub(super) fn chosen<F: Fold>(
    mut lanes: [F::Acc; LANES],
    chunk: &[F::In; LANES],
    bits: u64,
) -> [F::Acc; LANES] {
    // As wide as most values, so that a comparison of lanes is as wide as they are; all the comparisons
    // before the choices, and with the bit itself, so that both become instructions on vectors.
    #[expect(clippy::cast_possible_truncation, reason = "eight bits are looked at")]
    let bits = bits as u32;
    let mut there = [0; LANES];
    for (i, there) in there.iter_mut().enumerate() {
        *there = bits & (1 << i);
    }
    // All are read, and then some of them are let in: a choice of two values needs no branch.
    let chunk: [F::In; LANES] = *chunk;
    let values: [F::In; LANES] =
        std::array::from_fn(|i| if there[i] == 1 << i { chunk[i] } else { F::NEUTRAL });
    for (lane, v) in lanes.iter_mut().zip(values) {
        *lane = F::push(*lane, v);
    }
    lanes
}

#[inline(always)]
fn joined<F: Fold>(lanes: &[F::Acc; LANES]) -> F::Acc {
    let [a, b, c, d, e, f, g, h] = *lanes;
    let (a, b, c, d) = (F::join(a, e), F::join(b, f), F::join(c, g), F::join(d, h));
    F::join(F::join(a, c), F::join(b, d))
}

/// Calls for every place that is not null.
#[inline(always)]
pub(super) fn for_each_valid(valid: &Rank, start: usize, end: usize, mut each: impl FnMut(usize)) {
    let mut at = start;
    while at < end {
        let n = (end - at).min(64);
        let mut word = valid.word(at) & (u64::MAX >> (64 - n));
        while word != 0 {
            each(at + word.trailing_zeros() as usize);
            word &= word - 1;
        }
        at += n;
    }
}
