//! Folds of lists that lie over one another and follow each other in memory.
//!
//! The lists of a run are gone through once for as many places of the result as have room in registers,
//! where their states stay meanwhile; most lists have no more places than that, and those that have are
//! noted on the way.

use arrow::array::OffsetSizeTrait;

#[cfg(target_arch = "x86_64")]
use super::block::{BLOCK, Block};
#[cfg(target_arch = "x86_64")]
use super::blocks::Blocks;
use super::fold::Fold;
#[cfg(target_arch = "x86_64")]
use super::registers::Tally;
use super::segments::{All, Folded, LANES, There, ask_for, chosen, last_few};
use crate::array::Offsets;
#[cfg(target_arch = "x86_64")]
use crate::kernels::bits::Wide;
use crate::kernels::bits::{Rank, Words};
use crate::with_offsets;

/// Lists in runs: those of one run start at the same place of the result.
pub(super) struct Runs {
    pub(super) offsets: Offsets,
    pub(super) ends: Vec<Run>,
}

/// Where a run ends.
pub(super) struct Run {
    /// The number of lists up to there.
    pub(super) lists: usize,
    /// The number of places in the result up to there.
    pub(super) places: usize,
}

impl Runs {
    /// What `finish` makes of the state of every place, null leaves left out, and with `COUNTED` of how many
    /// they are.
    pub(super) fn fold<F: Fold, R: Copy + Default, const COUNTED: bool>(
        &self,
        flat: &[F::In],
        valid: Option<&Rank>,
        finish: impl Fn(F::Acc, usize) -> R,
    ) -> Folded<R> {
        with_offsets!(&self.offsets, o => {
            dispatched::<F, _, R, COUNTED>((o, &self.ends), flat, valid, finish)
        })
    }

    /// How many leaves that are not null fall on every place.
    pub(super) fn counts(&self, valid: &Rank) -> Vec<usize> {
        with_offsets!(&self.offsets, o => counts_dispatched((o, &self.ends), valid))
    }
}

/// Offsets and the ends of runs.
type Parts<'a, O> = (&'a [O], &'a [Run]);

fn dispatched<F: Fold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool>(
    parts: Parts<'_, O>,
    flat: &[F::In],
    valid: Option<&Rank>,
    finish: impl Fn(F::Acc, usize) -> R,
) -> Folded<R> {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn wide<F: Fold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool>(
            parts: Parts<'_, O>,
            flat: &[F::In],
            valid: Option<&Rank>,
            finish: impl Fn(F::Acc, usize) -> R,
        ) -> Folded<R> {
            in_lanes::<F, O, R, COUNTED>(parts, flat, valid, finish)
        }
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn widest<F: Fold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool>(
            wide: Wide,
            parts: Parts<'_, O>,
            flat: &[F::In],
            valid: Option<&Rank>,
            finish: impl Fn(F::Acc, usize) -> R,
        ) -> Folded<R> {
            // Each of them has a loop of its own.
            match valid {
                None => {
                    let leaves = Blocks::<F, _>::new(wide, flat, All);
                    columns::<_, O, R, COUNTED>(parts, &leaves, finish)
                }
                Some(valid) => {
                    let leaves = Blocks::<F, _>::new(wide, flat, valid.bits());
                    columns::<_, O, R, COUNTED>(parts, &leaves, finish)
                }
            }
        }
        if let (true, Some(here)) = (F::Block::THERE, Wide::here()) {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { widest::<F, O, R, COUNTED>(here, parts, flat, valid, finish) };
        }
        if crate::kernels::bits::has_avx2() {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { wide::<F, O, R, COUNTED>(parts, flat, valid, finish) };
        }
    }
    in_lanes::<F, O, R, COUNTED>(parts, flat, valid, finish)
}

/// Where there are no wide registers.
#[inline(always)]
pub(super) fn in_lanes<F: Fold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool>(
    parts: Parts<'_, O>,
    flat: &[F::In],
    valid: Option<&Rank>,
    finish: impl Fn(F::Acc, usize) -> R,
) -> Folded<R> {
    match valid {
        None => {
            let leaves = Lanes::<F, _> { flat, there: All };
            columns::<_, O, R, COUNTED>(parts, &leaves, finish)
        }
        Some(valid) => {
            let leaves = Lanes::<F, _> { flat, there: valid.bits() };
            columns::<_, O, R, COUNTED>(parts, &leaves, finish)
        }
    }
}

/// What is done with some places of a list. A trait and no closure, which would be a function of its own
/// and without the instructions that its caller may use.
trait Over<const COUNTED: bool> {
    type State: Copy;
    /// What is kept of [`WIDTH`](Self::WIDTH) places.
    type Places: Copy;
    type States: AsRef<[Self::State]>;
    type Count: Copy + Into<u32>;
    type Counts: AsRef<[Self::Count]>;
    const WIDTH: usize;

    /// Places that nothing lies over.
    fn none(&self) -> Self::Places;
    /// `places` with what lies from `at` on and before `end`.
    fn over(&self, places: Self::Places, at: usize, end: usize) -> Self::Places;
    fn states(places: Self::Places) -> Self::States;
    /// How many leaves lie over every place, when they are counted; from now on none.
    fn counts(&self, places: &mut Self::Places) -> Self::Counts;
}

/// Lists whose leaves are counted together: more of them a byte does not hold.
const COUNTABLE: usize = u8::MAX as usize;

/// Places whose states are kept in registers of any kind.
const LANED: usize = 4 * LANES;

/// One more where a bit is set.
#[inline(always)]
fn counted(mut counts: [u32; LANED], bits: u64) -> [u32; LANED] {
    #[expect(clippy::cast_possible_truncation, reason = "as many bits as there are places")]
    let bits = bits as u32;
    for (i, count) in counts.iter_mut().enumerate() {
        *count += bits >> i & 1;
    }
    counts
}

/// Leaves for registers of any kind.
struct Lanes<'a, F: Fold, T: There> {
    flat: &'a [F::In],
    there: T,
}

impl<F: Fold, T: There, const COUNTED: bool> Over<COUNTED> for Lanes<'_, F, T> {
    type State = F::Acc;
    type Places = ([[F::Acc; LANES]; LANED / LANES], [u32; LANED]);
    type States = [F::Acc; LANED];
    type Count = u32;
    type Counts = [u32; LANED];
    const WIDTH: usize = LANED;

    #[inline(always)]
    fn none(&self) -> Self::Places {
        ([[F::START; LANES]; LANED / LANES], [0; LANED])
    }

    #[inline(always)]
    fn over(&self, (mut states, counts): Self::Places, at: usize, end: usize) -> Self::Places {
        ask_for::<F::In, LANED>(self.flat, at);
        let bits = self.there.word(at, end);
        let few;
        let values = match self.flat[at..].first_chunk::<LANED>() {
            Some(values) => values,
            None => {
                few = last_few::<F, LANED>(&self.flat[at..end]);
                &few
            }
        };
        if let [a, b, c, d] = values.as_chunks::<LANES>().0 {
            states[0] = chosen::<F>(states[0], a, bits);
            states[1] = chosen::<F>(states[1], b, bits >> LANES);
            states[2] = chosen::<F>(states[2], c, bits >> (2 * LANES));
            states[3] = chosen::<F>(states[3], d, bits >> (3 * LANES));
        }
        (states, if COUNTED { counted(counts, bits) } else { counts })
    }

    #[inline(always)]
    fn states((states, _): Self::Places) -> [F::Acc; LANED] {
        let mut all = [F::START; LANED];
        all.copy_from_slice(states.as_flattened());
        all
    }

    #[inline(always)]
    fn counts(&self, (_, counts): &mut Self::Places) -> [u32; LANED] {
        std::mem::replace(counts, [0; LANED])
    }
}

#[cfg(target_arch = "x86_64")]
impl<F: Fold, T: There, const COUNTED: bool> Over<COUNTED> for Blocks<'_, F, T> {
    type State = F::Acc;
    type Places = (F::Block, Tally);
    type States = [F::Acc; BLOCK];
    type Count = u8;
    type Counts = [u8; BLOCK];
    const WIDTH: usize = BLOCK;

    #[inline(always)]
    fn none(&self) -> Self::Places {
        (F::Block::none(self.wide), Tally::none(self.wide))
    }

    #[inline(always)]
    fn over(&self, (states, counts): (F::Block, Tally), at: usize, end: usize) -> Self::Places {
        let (more, bits) = Blocks::states(self, at, end);
        let states = states.join(more);
        (states, if COUNTED { counts.with(bits) } else { counts })
    }

    #[inline(always)]
    fn states((states, _): Self::Places) -> [F::Acc; BLOCK] {
        states.all()
    }

    #[inline(always)]
    fn counts(&self, (_, counts): &mut Self::Places) -> [u8; BLOCK] {
        std::mem::replace(counts, Tally::none(self.wide)).all()
    }
}

/// Leaves that are counted and not read.
struct Counted<'a>(Words<'a>);

impl Over<true> for Counted<'_> {
    type State = ();
    type Places = [u32; LANED];
    type States = [(); LANED];
    type Count = u32;
    type Counts = [u32; LANED];
    const WIDTH: usize = LANED;

    #[inline(always)]
    fn none(&self) -> [u32; LANED] {
        [0; LANED]
    }

    #[inline(always)]
    fn over(&self, counts: [u32; LANED], at: usize, end: usize) -> [u32; LANED] {
        counted(counts, self.0.word(at, end))
    }

    #[inline(always)]
    fn states(_: [u32; LANED]) -> [(); LANED] {
        [(); LANED]
    }

    #[inline(always)]
    fn counts(&self, counts: &mut [u32; LANED]) -> [u32; LANED] {
        std::mem::replace(counts, [0; LANED])
    }
}

fn counts_dispatched<O: OffsetSizeTrait>(parts: Parts<'_, O>, valid: &Rank) -> Vec<usize> {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn wide<O: OffsetSizeTrait>(parts: Parts<'_, O>, valid: &Rank) -> Vec<usize> {
            columns::<_, O, usize, true>(parts, &Counted(valid.bits()), |(), n| n).values
        }
        if crate::kernels::bits::has_avx2() {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { wide(parts, valid) };
        }
    }
    columns::<_, O, usize, true>(parts, &Counted(valid.bits()), |(), n| n).values
}

#[inline(always)]
fn columns<V: Over<COUNTED>, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool>(
    (offsets, runs): Parts<'_, O>,
    leaves: &V,
    finish: impl Fn(V::State, usize) -> R,
) -> Folded<R> {
    let places = runs.last().map_or(0, |run| run.places);
    let mut out = Folded::of(places, if COUNTED { places } else { 0 });
    // Lists that are longer than what was looked at: where they go on and where they end.
    let mut longer: Vec<(usize, usize)> = Vec::new();
    let base = offsets[0].as_usize();
    let mut ends = &offsets[1..];
    let (mut first, mut from, mut done) = (0, 0, 0);
    for run in runs {
        let Some((here, rest)) = ends.split_at_checked(run.lists - first) else { break };
        (first, ends) = (run.lists, rest);
        let mut left = run.places - done;
        if left == 0 {
            // Its lists, if there are any, are empty.
            continue;
        }
        longer.resize(here.len().max(longer.len()), (0, 0));
        let (mut places, mut counts) = (leaves.none(), [0u32; WIDEST]);
        let mut count = 0;
        for here in here.chunks(COUNTABLE) {
            for end in here {
                let end = end.as_usize() - base;
                places = leaves.over(places, from, end);
                longer[count] = (from + V::WIDTH, end);
                count += usize::from(end - from > V::WIDTH);
                from = end;
            }
            if COUNTED {
                add(&mut counts, leaves.counts(&mut places).as_ref());
            }
        }
        loop {
            let n = left.min(V::WIDTH);
            let found = V::states(places);
            let (found, counted) = (&found.as_ref()[..n], &counts[..n]);
            let values = &mut out.values[done..done + n];
            for i in 0..n {
                values[i] = finish(found[i], usize::try_from(counted[i]).unwrap_or(usize::MAX));
            }
            if COUNTED {
                let there = &mut out.there[done..done + n];
                for i in 0..n {
                    there[i] = u8::from(counted[i] > 0);
                }
            }
            done += n;
            left -= n;
            if left == 0 {
                break;
            }
            (places, counts) = (leaves.none(), [0; WIDEST]);
            let (mut at, mut kept) = (0, 0);
            while at < count {
                let upto = count.min(at + COUNTABLE);
                while at < upto {
                    let (from, end) = longer[at];
                    places = leaves.over(places, from, end);
                    longer[kept] = (from + V::WIDTH, end);
                    kept += usize::from(end - from > V::WIDTH);
                    at += 1;
                }
                if COUNTED {
                    add(&mut counts, leaves.counts(&mut places).as_ref());
                }
            }
            count = kept;
        }
    }
    out
}

/// Places that are looked at together, at most.
const WIDEST: usize = 64;

#[inline(always)]
fn add<C: Copy + Into<u32>>(counts: &mut [u32; WIDEST], more: &[C]) {
    for i in 0..more.len().min(WIDEST) {
        counts[i] += more[i].into();
    }
}
