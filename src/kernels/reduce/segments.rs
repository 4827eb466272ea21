//! Folds of contiguous leaves: one list, one state.

use arrow::array::OffsetSizeTrait;

use super::fold::Fold;
use crate::array::{Layout, Offsets};
use crate::error::Result;
use crate::kernels::bits::Rank;

/// States side by side.
const LANES: usize = 8;

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

#[inline(always)]
fn lists<F: Fold, O: OffsetSizeTrait>(
    flat: &[F::In],
    valid: Option<&Rank>,
    offsets: &[O],
) -> Vec<F::Acc> {
    let base = offsets[0].as_usize();
    let mut out = Vec::with_capacity(offsets.len() - 1);
    let mut start = 0;
    match valid {
        None => {
            for end in &offsets[1..] {
                let end = end.as_usize() - base;
                out.push(list::<F>(flat, start, end));
                start = end;
            }
        }
        Some(valid) => {
            for end in &offsets[1..] {
                let end = end.as_usize() - base;
                out.push(list_with_nulls::<F>(flat, valid, start, end));
                start = end;
            }
        }
    }
    out
}

#[inline(always)]
fn list<F: Fold>(flat: &[F::In], start: usize, end: usize) -> F::Acc {
    let values = &flat[start..end];
    if !F::LANED {
        return values.iter().fold(F::START, |acc, v| F::push(acc, *v));
    }
    let mut lanes = [F::START; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, v) in lanes.iter_mut().zip(chunk) {
            *lane = F::push(*lane, *v);
        }
    }
    // The last few with what comes behind them, which counts nothing: no loop, no branch.
    let chunk = eight::<F>(flat, end - rest.len());
    for (i, lane) in lanes.iter_mut().enumerate() {
        *lane = F::push(*lane, if i < rest.len() { chunk[i] } else { F::NEUTRAL });
    }
    joined::<F>(lanes)
}

#[inline(always)]
fn list_with_nulls<F: Fold>(flat: &[F::In], valid: &Rank, start: usize, end: usize) -> F::Acc {
    if !F::LANED {
        let mut acc = F::START;
        for_each_valid(valid, start, end, |i| acc = F::push(acc, flat[i]));
        return acc;
    }
    let mut lanes = [F::START; LANES];
    let mut at = start;
    while at < end {
        let n = (end - at).min(64);
        let mut word = valid.word(at) & (u64::MAX >> (64 - n));
        let mut place = at;
        while word != 0 {
            let chunk = eight::<F>(flat, place);
            for (i, lane) in lanes.iter_mut().enumerate() {
                let there = word >> i & 1 == 1;
                *lane = F::push(*lane, if there { chunk[i] } else { F::NEUTRAL });
            }
            word >>= LANES;
            place += LANES;
        }
        at += n;
    }
    joined::<F>(lanes)
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

/// Eight values from `at` on, what is behind the last one neutral.
#[inline(always)]
fn eight<F: Fold>(flat: &[F::In], at: usize) -> [F::In; LANES] {
    match flat.get(at..).and_then(|v| v.first_chunk::<LANES>()) {
        Some(chunk) => *chunk,
        None => last_eight::<F>(flat, at),
    }
}

#[cold]
#[inline(never)]
fn last_eight<F: Fold>(flat: &[F::In], at: usize) -> [F::In; LANES] {
    std::array::from_fn(|i| flat.get(at + i).copied().unwrap_or(F::NEUTRAL))
}

#[inline(always)]
fn joined<F: Fold>(lanes: [F::Acc; LANES]) -> F::Acc {
    let [a, b, c, d, e, f, g, h] = lanes;
    let (a, b, c, d) = (F::join(a, e), F::join(b, f), F::join(c, g), F::join(d, h));
    F::join(F::join(a, c), F::join(b, d))
}
