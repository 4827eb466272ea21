//! Folds of contiguous leaves: one list, one state.

use std::ops::Range;

use arrow::array::OffsetSizeTrait;

use super::fold::Fold;
use crate::array::{Layout, Offsets};
use crate::error::Result;
use crate::kernels::bits::{Rank, ask_ahead};

/// States side by side.
pub(super) const LANES: usize = 8;

/// Bytes that come from memory together.
const LINE: usize = 64;

/// What `finish` makes of the state of every list of `layout` over its leaves, those that `valid` calls
/// null left out.
pub(super) fn fold<F: Fold, R>(
    flat: &[F::In],
    valid: Option<&Rank>,
    layout: &Layout,
    finish: impl Fn(F::Acc) -> R,
) -> Result<Vec<R>> {
    Ok(match layout {
        Layout::Ragged(Offsets::I32(o)) => dispatched::<F, i32, R>(flat, valid, o, finish),
        Layout::Ragged(Offsets::I64(o)) => dispatched::<F, i64, R>(flat, valid, o, finish),
        uniform @ Layout::Uniform { .. } => match uniform.to_offsets()? {
            Offsets::I32(o) => dispatched::<F, i32, R>(flat, valid, &o, finish),
            Offsets::I64(o) => dispatched::<F, i64, R>(flat, valid, &o, finish),
        },
    })
}

/// With the widest registers that the processor has.
fn dispatched<F: Fold, O: OffsetSizeTrait, R>(
    flat: &[F::In],
    valid: Option<&Rank>,
    offsets: &[O],
    finish: impl Fn(F::Acc) -> R,
) -> Vec<R> {
    #[cfg(target_arch = "x86_64")]
    {
        use crate::kernels::bits::{has_avx2, has_avx512};

        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn wide<F: Fold, O: OffsetSizeTrait, R>(
            flat: &[F::In],
            valid: Option<&Rank>,
            offsets: &[O],
            finish: impl Fn(F::Acc) -> R,
        ) -> Vec<R> {
            lists::<F, O, R, 32>(flat, valid, offsets, finish)
        }
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn widest<F: Fold, O: OffsetSizeTrait, R>(
            flat: &[F::In],
            valid: Option<&Rank>,
            offsets: &[O],
            finish: impl Fn(F::Acc) -> R,
        ) -> Vec<R> {
            lists::<F, O, R, 64>(flat, valid, offsets, finish)
        }
        if F::FLOATS && has_avx512() {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { widest::<F, O, R>(flat, valid, offsets, finish) };
        }
        if F::LANED && has_avx2() {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { wide::<F, O, R>(flat, valid, offsets, finish) };
        }
    }
    lists::<F, O, R, 32>(flat, valid, offsets, finish)
}

/// `STRIDE` values are let in without asking how many there are, no more than a word has bits. A loop
/// that ends where its list ends is left at a place that the processor cannot foresee; reading on,
/// behind the list, takes less time.
#[inline(always)]
fn lists<F: Fold, O: OffsetSizeTrait, R, const STRIDE: usize>(
    flat: &[F::In],
    valid: Option<&Rank>,
    offsets: &[O],
    finish: impl Fn(F::Acc) -> R,
) -> Vec<R> {
    // Each of them has a loop of its own.
    match valid {
        None => each_list::<F, O, R, STRIDE>(flat, None, offsets, finish),
        Some(valid) => each_list::<F, O, R, STRIDE>(flat, Some(valid), offsets, finish),
    }
}

#[inline(always)]
fn each_list<F: Fold, O: OffsetSizeTrait, R, const STRIDE: usize>(
    flat: &[F::In],
    valid: Option<&Rank>,
    offsets: &[O],
    finish: impl Fn(F::Acc) -> R,
) -> Vec<R> {
    let base = offsets[0].as_usize();
    let mut out = Vec::with_capacity(offsets.len() - 1);
    let mut start = 0;
    if !F::LANED {
        out.extend(offsets[1..].iter().map(|end| {
            let list = start..end.as_usize() - base;
            start = list.end;
            finish(one_by_one::<F>(F::START, flat, valid, list))
        }));
        return out;
    }
    // The states of eight lists are joined together: halves of them, then quarters, then eighths.
    let mut states = [[F::START; LANES]; LANES];
    let (eights, rest) = offsets[1..].as_chunks::<LANES>();
    for ends in eights {
        for i in 0..LANES {
            let end = ends[i].as_usize() - base;
            states[i] = list::<F, STRIDE>(flat, valid, start..end);
            start = end;
        }
        let found = joined_eight::<F>(&states);
        out.extend(found.iter().map(|acc| finish(*acc)));
    }
    for end in rest {
        let end = end.as_usize() - base;
        let state = list::<F, STRIDE>(flat, valid, start..end);
        start = end;
        out.push(finish(joined::<F>(&state)));
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
fn list<F: Fold, const STRIDE: usize>(
    flat: &[F::In],
    valid: Option<&Rank>,
    list: Range<usize>,
) -> [F::Acc; LANES] {
    let Range { start: mut at, end } = list;
    let mut lanes = [F::START; LANES];
    ask_ahead(flat, at);
    while end - at > STRIDE {
        let Some(values) = flat[at..].first_chunk::<STRIDE>() else { break };
        match valid {
            None => {
                for chunk in values.as_chunks::<LANES>().0 {
                    for i in 0..LANES {
                        lanes[i] = F::push(lanes[i], chunk[i]);
                    }
                }
            }
            Some(valid) => match valid.word(at) {
                0 => {}
                bits => lanes = those::<F, STRIDE>(lanes, values, bits),
            },
        }
        for line in 0..STRIDE * size_of::<F::In>() / LINE {
            ask_ahead(flat, at + (line + 1) * (LINE / size_of::<F::In>()));
        }
        at += STRIDE;
    }
    // The rest with what comes behind it, which counts nothing.
    let n = end - at;
    let here = if n < 64 { (1 << n) - 1 } else { u64::MAX };
    let bits = match valid {
        None => here,
        Some(valid) => here & valid.word(at),
    };
    if let Some(values) = flat[at..].first_chunk::<STRIDE>() {
        return those::<F, STRIDE>(lanes, values, bits);
    }
    those::<F, STRIDE>(lanes, &last_few::<F, STRIDE>(&flat[at..end]), bits)
}

/// The last leaves of all, as many as are read elsewhere.
#[cold]
#[inline(never)]
pub(super) fn last_few<F: Fold, const N: usize>(values: &[F::In]) -> [F::In; N] {
    let mut few = [F::NEUTRAL; N];
    for (few, v) in few.iter_mut().zip(values) {
        *few = *v;
    }
    few
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
///
/// What runs per leaf here calls nothing but what is marked as inlined always: no closures and none of
/// the standard library's adapters, which are functions of their own in a build without optimisation
/// across units.
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
    let there = [
        bits & 1,
        bits & 1 << 1,
        bits & 1 << 2,
        bits & 1 << 3,
        bits & 1 << 4,
        bits & 1 << 5,
        bits & 1 << 6,
        bits & 1 << 7,
    ];
    // All are read, and then some of them are let in: a choice of two values needs no branch.
    let chunk: [F::In; LANES] = *chunk;
    let values = [
        if there[0] == 1 { chunk[0] } else { F::NEUTRAL },
        if there[1] == 1 << 1 { chunk[1] } else { F::NEUTRAL },
        if there[2] == 1 << 2 { chunk[2] } else { F::NEUTRAL },
        if there[3] == 1 << 3 { chunk[3] } else { F::NEUTRAL },
        if there[4] == 1 << 4 { chunk[4] } else { F::NEUTRAL },
        if there[5] == 1 << 5 { chunk[5] } else { F::NEUTRAL },
        if there[6] == 1 << 6 { chunk[6] } else { F::NEUTRAL },
        if there[7] == 1 << 7 { chunk[7] } else { F::NEUTRAL },
    ];
    for i in 0..LANES {
        lanes[i] = F::push(lanes[i], values[i]);
    }
    lanes
}

#[inline(always)]
fn joined<F: Fold>(lanes: &[F::Acc; LANES]) -> F::Acc {
    let [a, b, c, d, e, f, g, h] = *lanes;
    let (a, b, c, d) = (F::join(a, e), F::join(b, f), F::join(c, g), F::join(d, h));
    F::join(F::join(a, c), F::join(b, d))
}

/// [`joined`] of eight lists, in instructions on vectors.
#[inline(always)]
fn joined_eight<F: Fold>(lists: &[[F::Acc; LANES]; LANES]) -> [F::Acc; LANES] {
    let [a, b, c, d, e, f, g, h] = lists;
    let (ab, cd) = (halves::<F, 4>(a, b), halves::<F, 4>(c, d));
    let (ef, gh) = (halves::<F, 4>(e, f), halves::<F, 4>(g, h));
    let (abcd, efgh) = (halves::<F, 2>(&ab, &cd), halves::<F, 2>(&ef, &gh));
    halves::<F, 1>(&abcd, &efgh)
}

/// Groups of `2 * HALF` states, of `a` and then of `b`, each as one of `HALF`: its halves joined.
#[inline(always)]
fn halves<F: Fold, const HALF: usize>(a: &[F::Acc; LANES], b: &[F::Acc; LANES]) -> [F::Acc; LANES] {
    let ([a, b, c, d, e, f, g, h], [p, q, r, s, t, u, v, w]) = (*a, *b);
    let (x, y) = match HALF {
        4 => ([a, b, c, d, p, q, r, s], [e, f, g, h, t, u, v, w]),
        2 => ([a, b, e, f, p, q, t, u], [c, d, g, h, r, s, v, w]),
        _ => ([a, c, e, g, p, r, t, v], [b, d, f, h, q, s, u, w]),
    };
    let [a, b, c, d, e, f, g, h] = x;
    let [p, q, r, s, t, u, v, w] = y;
    [
        F::join(a, p),
        F::join(b, q),
        F::join(c, r),
        F::join(d, s),
        F::join(e, t),
        F::join(f, u),
        F::join(g, v),
        F::join(h, w),
    ]
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
