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
            one_by_one::<F>(flat, valid, list)
        }));
        return out;
    }
    let mut states = [[F::START; LANES]; BLOCK];
    for ends in offsets[1..].chunks(BLOCK) {
        for (state, end) in states.iter_mut().zip(ends) {
            let end = end.as_usize() - base;
            // Eight values can be read from any place before this one.
            let near = end.min(flat.len().saturating_sub(LANES)).max(start);
            *state = match valid {
                None => list::<F>(flat, start, near),
                Some(valid) => list_with_nulls::<F>(flat, valid, start, near),
            };
            if near < end {
                let last = one_by_one::<F>(flat, valid, near..end);
                state[0] = F::join(state[0], last);
            }
            start = end;
        }
        out.extend(states[..ends.len()].iter().map(joined::<F>));
    }
    out
}

fn one_by_one<F: Fold>(flat: &[F::In], valid: Option<&Rank>, list: Range<usize>) -> F::Acc {
    let mut acc = F::START;
    match valid {
        None => flat[list].iter().for_each(|v| acc = F::push(acc, *v)),
        Some(valid) => {
            for_each_valid(valid, list.start, list.end, |i| acc = F::push(acc, flat[i]));
        }
    }
    acc
}

#[inline(always)]
fn list<F: Fold>(flat: &[F::In], start: usize, end: usize) -> [F::Acc; LANES] {
    let mut lanes = [F::START; LANES];
    let (chunks, rest) = flat[start..end].as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, v) in lanes.iter_mut().zip(chunk) {
            *lane = F::push(*lane, *v);
        }
    }
    // The last few with what comes behind them, which counts nothing: no loop, no branch.
    eight::<F>(lanes, flat, end - rest.len(), (1u64 << rest.len()) - 1)
}

#[inline(always)]
fn list_with_nulls<F: Fold>(
    flat: &[F::In],
    valid: &Rank,
    start: usize,
    end: usize,
) -> [F::Acc; LANES] {
    let mut lanes = [F::START; LANES];
    let mut at = start;
    while at < end {
        let n = (end - at).min(64);
        let mut word = valid.word(at) & (u64::MAX >> (64 - n));
        let mut place = at;
        while word != 0 {
            lanes = eight::<F>(lanes, flat, place, word);
            word >>= LANES;
            place += LANES;
        }
        at += n;
    }
    lanes
}

/// The eight values from `at` on, those whose bit is unset left out; where there are not eight, none.
#[inline(always)]
fn eight<F: Fold>(lanes: [F::Acc; LANES], flat: &[F::In], at: usize, bits: u64) -> [F::Acc; LANES] {
    match flat.get(at..).and_then(|v| v.first_chunk::<LANES>()) {
        Some(chunk) => chosen::<F>(lanes, chunk, bits),
        None => lanes,
    }
}

/// Those of eight values whose bit is set.
#[inline(always)]
pub(super) fn chosen<F: Fold>(
    mut lanes: [F::Acc; LANES],
    chunk: &[F::In; LANES],
    bits: u64,
) -> [F::Acc; LANES] {
    // As wide as most values, so that a comparison of lanes is as wide as they are.
    #[expect(clippy::cast_possible_truncation, reason = "eight bits are looked at")]
    let bits = bits as u32;
    // All are read, and then some of them are let in: a choice of two values needs no branch.
    let chunk: [F::In; LANES] = *chunk;
    let mut values = [F::NEUTRAL; LANES];
    for i in 0..LANES {
        values[i] = if bits & (1 << i) != 0 { chunk[i] } else { F::NEUTRAL };
    }
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
