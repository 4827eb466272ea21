//! Folds of lists that lie over one another and follow each other in memory.
//!
//! The lists of a run are gone through once for every 32 places of the result, whose states stay in
//! registers meanwhile; most lists have no more than that, and those that have are noted on the way.

use arrow::array::OffsetSizeTrait;

use super::fold::Fold;
use super::segments::{LANES, chosen, last_few};
use crate::array::Offsets;
use crate::kernels::bits::{Rank, ask_ahead};

/// Lists in runs: those of one run start at the same place of the result.
pub(super) struct Runs<'a> {
    pub(super) offsets: Offsets,
    /// For each list the place of its first leaf in the result, in ascending order.
    pub(super) starts: &'a [usize],
    /// Number of places in the result.
    pub(super) slots: usize,
}

/// States of so many places are kept in registers.
const WIDTH: usize = 32;

type States<A> = [[A; LANES]; WIDTH / LANES];

impl Runs<'_> {
    /// What `finish` makes of the state of every place, null leaves left out.
    pub(super) fn fold<F: Fold, R>(
        &self,
        flat: &[F::In],
        valid: Option<&Rank>,
        finish: impl Fn(F::Acc) -> R,
    ) -> Vec<R> {
        let (starts, slots) = (self.starts, self.slots);
        match &self.offsets {
            Offsets::I32(o) => dispatched::<F, i32, R>((o, starts, slots), flat, valid, finish),
            Offsets::I64(o) => dispatched::<F, i64, R>((o, starts, slots), flat, valid, finish),
        }
    }

    /// How many leaves that are not null fall on every place.
    pub(super) fn counts(&self, valid: &Rank) -> Vec<usize> {
        let (starts, slots) = (self.starts, self.slots);
        match &self.offsets {
            Offsets::I32(o) => counts_dispatched((o, starts, slots), valid),
            Offsets::I64(o) => counts_dispatched((o, starts, slots), valid),
        }
    }
}

/// Offsets, starts and the number of places.
type Parts<'a, O> = (&'a [O], &'a [usize], usize);

fn dispatched<F: Fold, O: OffsetSizeTrait, R>(
    parts: Parts<'_, O>,
    flat: &[F::In],
    valid: Option<&Rank>,
    finish: impl Fn(F::Acc) -> R,
) -> Vec<R> {
    #[cfg(target_arch = "x86_64")]
    {
        use crate::kernels::bits::{has_avx2, has_avx512};

        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn wide<F: Fold, O: OffsetSizeTrait, R>(
            parts: Parts<'_, O>,
            flat: &[F::In],
            valid: Option<&Rank>,
            finish: impl Fn(F::Acc) -> R,
        ) -> Vec<R> {
            folded::<F, O, R>(parts, flat, valid, finish)
        }
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn widest<F: Fold, O: OffsetSizeTrait, R>(
            parts: Parts<'_, O>,
            flat: &[F::In],
            valid: Option<&Rank>,
            finish: impl Fn(F::Acc) -> R,
        ) -> Vec<R> {
            folded::<F, O, R>(parts, flat, valid, finish)
        }
        if F::FLOATS && has_avx512() {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { widest::<F, O, R>(parts, flat, valid, finish) };
        }
        if has_avx2() {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { wide::<F, O, R>(parts, flat, valid, finish) };
        }
    }
    folded::<F, O, R>(parts, flat, valid, finish)
}

#[inline(always)]
fn folded<F: Fold, O: OffsetSizeTrait, R>(
    parts: Parts<'_, O>,
    flat: &[F::In],
    valid: Option<&Rank>,
    finish: impl Fn(F::Acc) -> R,
) -> Vec<R> {
    columns(parts, &Leaves::<F> { flat, valid }, finish)
}

/// What is done with 32 places of a list. A trait and no closure, which would be a function of its own
/// and without the instructions that its caller may use.
trait Over {
    type State: Copy;
    /// The state of a place that nothing lies over.
    const NOTHING: Self::State;

    /// `states` with what lies from `at` on and before `end`.
    fn over(&self, states: States<Self::State>, at: usize, end: usize) -> States<Self::State>;
}

/// Leaves to be folded.
struct Leaves<'a, F: Fold> {
    flat: &'a [F::In],
    valid: Option<&'a Rank>,
}

impl<F: Fold> Over for Leaves<'_, F> {
    type State = F::Acc;
    const NOTHING: F::Acc = F::START;

    #[inline(always)]
    fn over(&self, mut states: States<F::Acc>, at: usize, end: usize) -> States<F::Acc> {
        for line in 0..WIDTH * size_of::<F::In>() / 64 {
            ask_ahead(self.flat, at + line * (64 / size_of::<F::In>()));
        }
        let here = below(end - at);
        let bits = match self.valid {
            None => here,
            Some(valid) => here & valid.word(at),
        };
        let few;
        let values = match self.flat[at..].first_chunk::<WIDTH>() {
            Some(values) => values,
            None => {
                few = last_few::<F, WIDTH>(&self.flat[at..end]);
                &few
            }
        };
        if let [a, b, c, d] = values.as_chunks::<LANES>().0 {
            states[0] = chosen::<F>(states[0], a, bits);
            states[1] = chosen::<F>(states[1], b, bits >> LANES);
            states[2] = chosen::<F>(states[2], c, bits >> (2 * LANES));
            states[3] = chosen::<F>(states[3], d, bits >> (3 * LANES));
        }
        states
    }
}

/// Leaves to be counted.
struct Tally<'a>(&'a Rank);

impl Over for Tally<'_> {
    type State = u32;
    const NOTHING: u32 = 0;

    #[inline(always)]
    fn over(&self, mut counts: States<u32>, at: usize, end: usize) -> States<u32> {
        #[expect(clippy::cast_possible_truncation, reason = "as many bits as there are places")]
        let bits = (below(end - at) & self.0.word(at)) as u32;
        for (eighth, counts) in counts.iter_mut().enumerate() {
            let bits = bits >> (eighth * LANES);
            for (i, count) in counts.iter_mut().enumerate() {
                *count += bits >> i & 1;
            }
        }
        counts
    }
}

/// As many bits as there are values, as far as a word has them.
#[inline(always)]
fn below(n: usize) -> u64 {
    if n < 64 { (1 << n) - 1 } else { u64::MAX }
}

fn counts_dispatched<O: OffsetSizeTrait>(parts: Parts<'_, O>, valid: &Rank) -> Vec<usize> {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn wide<O: OffsetSizeTrait>(parts: Parts<'_, O>, valid: &Rank) -> Vec<usize> {
            counted(parts, valid)
        }
        if crate::kernels::bits::has_avx2() {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { wide(parts, valid) };
        }
    }
    counted(parts, valid)
}

#[inline(always)]
fn counted<O: OffsetSizeTrait>(parts: Parts<'_, O>, valid: &Rank) -> Vec<usize> {
    columns(parts, &Tally(valid), |n| usize::try_from(n).unwrap_or(usize::MAX))
}

#[inline(always)]
fn columns<V: Over, O: OffsetSizeTrait, R>(
    (offsets, starts, slots): Parts<'_, O>,
    values: &V,
    finish: impl Fn(V::State) -> R,
) -> Vec<R> {
    let mut out: Vec<R> = Vec::with_capacity(slots);
    // Lists that are longer than what was looked at: where they go on and where they end.
    let mut longer: Vec<(usize, usize)> = Vec::new();
    let base = offsets[0].as_usize();
    let (mut ends, mut from) = (&offsets[1..], 0);
    for run in starts.chunk_by(|a, b| a == b) {
        let Some((here, rest)) = ends.split_at_checked(run.len()) else { break };
        ends = rest;
        longer.resize(run.len().max(longer.len()), (0, 0));
        let (mut states, mut count) = ([[V::NOTHING; LANES]; WIDTH / LANES], 0);
        for end in here {
            let end = end.as_usize() - base;
            states = values.over(states, from, end);
            longer[count] = (from + WIDTH, end);
            count += usize::from(end - from > WIDTH);
            from = end;
        }
        let first = starts.len() - rest.len();
        let mut left = starts.get(first).map_or(slots, |next| *next) - run[0];
        loop {
            let n = left.min(WIDTH);
            out.extend(states.as_flattened()[..n].iter().map(|s| finish(*s)));
            left -= n;
            if left == 0 {
                break;
            }
            states = [[V::NOTHING; LANES]; WIDTH / LANES];
            let mut kept = 0;
            for i in 0..count {
                let (at, end) = longer[i];
                states = values.over(states, at, end);
                longer[kept] = (at + WIDTH, end);
                kept += usize::from(end - at > WIDTH);
            }
            count = kept;
        }
    }
    out
}
