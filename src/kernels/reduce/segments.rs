//! Folds of contiguous leaves: one list, one state.

use std::ops::Range;

use arrow::array::OffsetSizeTrait;

#[cfg(target_arch = "x86_64")]
use super::block::{BLOCK, Block};
#[cfg(target_arch = "x86_64")]
use super::blocks::Blocks;
use super::fold::Fold;
use crate::array::Layout;
use crate::array::ahead::ask_ahead;
use crate::error::Result;
#[cfg(target_arch = "x86_64")]
use crate::kernels::bits::Wide;
use crate::kernels::bits::{Rank, Words};
use crate::with_offsets;

/// What was made of the groups of leaves.
pub(super) struct Folded<R> {
    pub(super) values: Vec<R>,
    /// 1 for each that has a leaf; there may be nothing when they need not be counted.
    pub(super) there: Vec<u8>,
}

impl<R: Copy + Default> Folded<R> {
    pub(super) fn of(groups: usize, counted: usize) -> Self {
        Self { values: vec![R::default(); groups], there: vec![0; counted] }
    }
}

/// States side by side.
pub(super) const LANES: usize = 8;

/// Bytes that come from memory together.
const LINE: usize = 64;

/// What `finish` makes of the state of every list of `layout` over its leaves, those that `valid` calls null
/// left out; with `COUNTED` also of how many they are.
pub(super) fn fold<F: Fold, R: Copy + Default, const COUNTED: bool>(
    flat: &[F::In],
    valid: Option<&Rank>,
    layout: &Layout,
    finish: impl Fn(F::Acc, usize) -> R,
) -> Result<Folded<R>> {
    let offsets = layout.to_offsets()?;
    Ok(with_offsets!(&offsets, o => dispatched::<F, _, R, COUNTED>(flat, valid, o, finish)))
}

/// With the widest registers that the processor has.
fn dispatched<F: Fold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool>(
    flat: &[F::In],
    valid: Option<&Rank>,
    offsets: &[O],
    finish: impl Fn(F::Acc, usize) -> R,
) -> Folded<R> {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn wide<F: Fold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool>(
            flat: &[F::In],
            valid: Option<&Rank>,
            offsets: &[O],
            finish: impl Fn(F::Acc, usize) -> R,
        ) -> Folded<R> {
            in_lanes::<F, O, R, COUNTED>(flat, valid, offsets, finish)
        }
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn widest<F: Fold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool>(
            wide: Wide,
            flat: &[F::In],
            valid: Option<&Rank>,
            offsets: &[O],
            finish: impl Fn(F::Acc, usize) -> R,
        ) -> Folded<R> {
            // Each of them has a loop of its own, here and below.
            match valid {
                None => {
                    let leaves = Blocks::<F, _>::new(wide, flat, All);
                    each_list::<_, O, R, COUNTED>(&leaves, offsets, finish)
                }
                Some(valid) => {
                    let leaves = Blocks::<F, _>::new(wide, flat, valid.bits());
                    each_list::<_, O, R, COUNTED>(&leaves, offsets, finish)
                }
            }
        }
        if let (true, Some(here)) = (F::Block::THERE, Wide::here()) {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { widest::<F, O, R, COUNTED>(here, flat, valid, offsets, finish) };
        }
        if F::LANED && crate::kernels::bits::has_avx2() {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { wide::<F, O, R, COUNTED>(flat, valid, offsets, finish) };
        }
    }
    in_lanes::<F, O, R, COUNTED>(flat, valid, offsets, finish)
}

#[inline(always)]
fn in_lanes<F: Fold, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool>(
    flat: &[F::In],
    valid: Option<&Rank>,
    offsets: &[O],
    finish: impl Fn(F::Acc, usize) -> R,
) -> Folded<R> {
    match (F::LANED, valid) {
        (false, _) => one_after_another::<F, O, R>(flat, valid, offsets, finish),
        (true, None) => {
            let leaves = Lanes::<F, _> { flat, there: All };
            each_list::<_, O, R, COUNTED>(&leaves, offsets, finish)
        }
        (true, Some(valid)) => {
            let leaves = Lanes::<F, _> { flat, there: valid.bits() };
            each_list::<_, O, R, COUNTED>(&leaves, offsets, finish)
        }
    }
}

/// How leaves are folded. A trait and no closure, which would be a function of its own and without the
/// instructions that its caller may use.
trait Leaves {
    type Fold: Fold;
    /// What is left of leaves, several states side by side.
    type Part: Copy;
    /// Whether none is missing.
    const ALL: bool;

    /// Of no leaves.
    fn none(&self) -> Self::Part;
    /// Of those from `at` on and before `end`, or of the first of them.
    fn part(&self, at: usize, end: usize) -> Taken<Self::Part>;
    /// `part` with what came before it, if `more` says that there was something.
    fn onto(part: Self::Part, before: Self::Part, more: bool) -> Self::Part;
    /// The state that each part makes.
    fn joined(parts: &[Self::Part; LANES]) -> [<Self::Fold as Fold>::Acc; LANES];
}

/// What was made of some leaves.
struct Taken<P> {
    part: P,
    /// How many of them are not null, if some may be.
    count: usize,
    /// Where the leaves end that were looked at, or later.
    upto: usize,
}

/// Lists whose states are finished together: what takes single values out of vectors stays out of the
/// loop that reads leaves.
const BATCH: usize = 8 * LANES;

/// As many leaves of a list as fit are taken at a time and added to those before them of the same list.
/// This loop does not branch on the length of a list, which the processor cannot foresee: the next place,
/// the next list and what is carried over are chosen, and what is made of a list is written again with
/// each part of it.
#[inline(always)]
fn each_list<L: Leaves, O: OffsetSizeTrait, R: Copy + Default, const COUNTED: bool>(
    leaves: &L,
    offsets: &[O],
    finish: impl Fn(<L::Fold as Fold>::Acc, usize) -> R,
) -> Folded<R> {
    let (base, lists) = (offsets[0].as_usize(), offsets.len() - 1);
    let mut out = Folded::of(lists, if COUNTED { lists } else { 0 });
    let (batches, rest) = offsets[1..].as_chunks::<BATCH>();
    // The last batch, with room for as many lists as the others have.
    let mut last = [offsets[lists]; BATCH];
    last[..rest.len()].copy_from_slice(rest);
    let mut parts = [leaves.none(); BATCH];
    let mut counts = [0; BATCH];
    let mut at = 0;
    for batch in 0..lists.div_ceil(BATCH) {
        let ends = if batch < batches.len() { &batches[batch] } else { &last };
        let done = batch * BATCH;
        let n = (lists - done).min(BATCH);
        let (mut part, mut count, mut more) = (leaves.none(), 0, false);
        let (mut list, begun) = (0, at);
        while list < n {
            let end = ends[list].as_usize() - base;
            let taken = leaves.part(at, end);
            part = L::onto(taken.part, part, more);
            parts[list] = part;
            if COUNTED && !L::ALL {
                count = taken.count + if more { count } else { 0 };
                counts[list] = count;
            }
            more = taken.upto < end;
            at = if more { taken.upto } else { end };
            list += usize::from(!more);
        }
        if COUNTED && L::ALL {
            let mut start = begun;
            for i in 0..BATCH {
                let end = ends[i].as_usize() - base;
                counts[i] = end - start;
                start = end;
            }
        }
        let mut found = [[L::Fold::START; LANES]; BATCH / LANES];
        for (found, parts) in found.iter_mut().zip(parts.as_chunks::<LANES>().0) {
            *found = L::joined(parts);
        }
        let found = found.as_flattened();
        let values = &mut out.values[done..done + n];
        for i in 0..n {
            values[i] = finish(found[i], counts[i]);
        }
        if COUNTED {
            let there = &mut out.there[done..done + n];
            for i in 0..n {
                there[i] = u8::from(counts[i] > 0);
            }
        }
    }
    out
}

fn one_after_another<F: Fold, O: OffsetSizeTrait, R: Copy + Default>(
    flat: &[F::In],
    valid: Option<&Rank>,
    offsets: &[O],
    finish: impl Fn(F::Acc, usize) -> R,
) -> Folded<R> {
    let (base, lists) = (offsets[0].as_usize(), offsets.len() - 1);
    let mut out = Folded::of(lists, lists);
    let (mut start, mut before) = (0, 0);
    for (list, end) in offsets[1..].iter().enumerate() {
        let leaves = start..end.as_usize() - base;
        start = leaves.end;
        let upto = valid.map_or(leaves.end, |valid| valid.rank(leaves.end));
        let count = upto - before;
        before = upto;
        out.values[list] = finish(one_by_one::<F>(F::START, flat, valid, leaves), count);
        out.there[list] = u8::from(count > 0);
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

/// Which values there are. A type and no `Option`, so that each has a loop of its own.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(super) trait There: Copy {
    /// Whether all are.
    const ALL: bool;

    /// Bits of the values from one of them up to `end`, as far as a word has them.
    fn word(self, at: usize, end: usize) -> u64;
    /// Places before which [`word_within`](Self::word_within) may be asked.
    fn reach(self) -> usize;
    /// As [`word`](Self::word).
    ///
    /// # Safety
    /// `at` is before [`reach`](Self::reach).
    unsafe fn word_within(self, at: usize, end: usize) -> u64;
}

/// All of them.
#[derive(Clone, Copy)]
pub(super) struct All;

impl There for All {
    const ALL: bool = true;

    #[inline(always)]
    fn word(self, at: usize, end: usize) -> u64 {
        let n = end - at;
        if n < 64 { (1 << n) - 1 } else { u64::MAX }
    }

    #[inline(always)]
    fn reach(self) -> usize {
        usize::MAX
    }

    #[inline(always)]
    unsafe fn word_within(self, at: usize, end: usize) -> u64 {
        self.word(at, end)
    }
}

/// Those that are not null.
impl There for Words<'_> {
    const ALL: bool = false;

    #[inline(always)]
    fn word(self, at: usize, end: usize) -> u64 {
        All.word(at, end) & self.at(at)
    }

    #[inline(always)]
    fn reach(self) -> usize {
        Words::reach(self)
    }

    #[inline(always)]
    unsafe fn word_within(self, at: usize, end: usize) -> u64 {
        // SAFETY: as the caller says.
        All.word(at, end) & unsafe { self.at_within(at) }
    }
}

/// Asks ahead for all that is read at `at`: a line for each list would leave some out where all lists are of
/// the same length, and nothing else foresees those.
#[inline(always)]
pub(super) fn ask_for<T, const WIDTH: usize>(flat: &[T], at: usize) {
    for line in 0..(WIDTH * size_of::<T>()).div_ceil(LINE) {
        ask_ahead(flat, at + line * (LINE / size_of::<T>()));
    }
}

/// Leaves for registers of any kind.
struct Lanes<'a, F: Fold, T: There> {
    flat: &'a [F::In],
    there: T,
}

/// Values that are let in together, as many as a block of wide registers has and in the same order, so
/// that sums of floats are the same bits on every processor.
const STRIDE: usize = 64;

/// Most lists are no longer than half of that.
const HALF: usize = STRIDE / 2;

impl<F: Fold, T: There> Leaves for Lanes<'_, F, T> {
    type Fold = F;
    type Part = [F::Acc; LANES];
    const ALL: bool = T::ALL;

    #[inline(always)]
    fn none(&self) -> [F::Acc; LANES] {
        [F::START; LANES]
    }

    #[inline(always)]
    fn joined(parts: &[[F::Acc; LANES]; LANES]) -> [F::Acc; LANES] {
        joined_eight::<F>(parts)
    }

    #[inline(always)]
    fn part(&self, at: usize, end: usize) -> Taken<[F::Acc; LANES]> {
        let (flat, mut at) = (self.flat, at);
        let mut before = None;
        // Longer lists without nulls have a loop of their own, whose end is foreseen wrongly once for each.
        while T::ALL && end - at > STRIDE {
            let Some(values) = flat[at..].first_chunk::<STRIDE>() else { break };
            ask_for::<F::In, STRIDE>(flat, at);
            let mut states = [[F::START; LANES]; STRIDE / LANES];
            for (states, chunk) in states.iter_mut().zip(values.as_chunks::<LANES>().0) {
                for i in 0..LANES {
                    states[i] = F::push(states[i], chunk[i]);
                }
            }
            let [a, b, c, d, e, f, g, h] = states;
            let part = quarters::<F>([a, b, c, d], Some([e, f, g, h]));
            before = Some(Self::onto(part, before.unwrap_or(part), before.is_some()));
            at += STRIDE;
        }
        ask_for::<F::In, HALF>(flat, at);
        // With what comes behind the list, which counts nothing.
        let bits = self.there.word(at, end.min(at + STRIDE));
        let (part, upto) = if end - at <= HALF {
            let few;
            let values = match flat[at..].first_chunk::<HALF>() {
                Some(values) => values,
                None => {
                    few = last_few::<F, HALF>(&flat[at..end]);
                    &few
                }
            };
            (quarters::<F>(those::<F>(values, bits), None), at + HALF)
        } else {
            ask_for::<F::In, HALF>(flat, at + HALF);
            let few;
            let values = match flat[at..].first_chunk::<STRIDE>() {
                Some(values) => values,
                None => {
                    few = last_few::<F, STRIDE>(&flat[at..end]);
                    &few
                }
            };
            let (low, high) = values.split_at(HALF);
            let (low, high) = match (low.first_chunk::<HALF>(), high.first_chunk::<HALF>()) {
                (Some(low), Some(high)) => (low, high),
                _ => return Taken { part: self.none(), count: 0, upto: end },
            };
            let (low, high) = (those::<F>(low, bits), those::<F>(high, bits >> HALF));
            (quarters::<F>(low, Some(high)), at + STRIDE)
        };
        let part = Self::onto(part, before.unwrap_or(part), before.is_some());
        Taken { part, count: bits.count_ones() as usize, upto }
    }

    #[inline(always)]
    fn onto(part: Self::Part, before: Self::Part, more: bool) -> Self::Part {
        let mut all = [F::START; LANES];
        for i in 0..LANES {
            all[i] = F::join(if more { before[i] } else { F::START }, part[i]);
        }
        all
    }
}

#[cfg(target_arch = "x86_64")]
impl<F: Fold, T: There> Leaves for Blocks<'_, F, T> {
    type Fold = F;
    type Part = <F::Block as Block<F>>::Part;
    const ALL: bool = T::ALL;

    #[inline(always)]
    fn none(&self) -> Self::Part {
        F::Block::none(self.wide).part()
    }

    #[inline(always)]
    fn joined(parts: &[Self::Part; LANES]) -> [F::Acc; LANES] {
        F::Block::joined(*parts)
    }

    #[inline(always)]
    fn part(&self, at: usize, end: usize) -> Taken<Self::Part> {
        let (states, bits) = self.states(at, end);
        Taken { part: states.part(), count: bits.count_ones() as usize, upto: at + BLOCK }
    }

    #[inline(always)]
    fn onto(part: Self::Part, before: Self::Part, more: bool) -> Self::Part {
        F::Block::onto(part, before, more)
    }
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

/// The states of those values whose bit is set, eight and eight.
#[inline(always)]
fn those<F: Fold>(values: &[F::In; HALF], bits: u64) -> [[F::Acc; LANES]; HALF / LANES] {
    let none = [F::START; LANES];
    let [a, b, c, d] = values.as_chunks::<LANES>().0 else { return [none; HALF / LANES] };
    [
        chosen::<F>(none, a, bits),
        chosen::<F>(none, b, bits >> LANES),
        chosen::<F>(none, c, bits >> (2 * LANES)),
        chosen::<F>(none, d, bits >> (3 * LANES)),
    ]
}

/// The states of a block as eight: in the order in which the registers of a block are joined.
#[inline(always)]
fn quarters<F: Fold>(
    low: [[F::Acc; LANES]; 4],
    high: Option<[[F::Acc; LANES]; 4]>,
) -> [F::Acc; LANES] {
    let [mut a, mut b, mut c, mut d] = low;
    if let Some([e, f, g, h]) = high {
        for i in 0..LANES {
            (a[i], b[i]) = (F::join(a[i], e[i]), F::join(b[i], f[i]));
            (c[i], d[i]) = (F::join(c[i], g[i]), F::join(d[i], h[i]));
        }
    }
    for i in 0..LANES {
        a[i] = F::join(F::join(a[i], c[i]), F::join(b[i], d[i]));
    }
    a
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

/// The states of eight lists, joined together: neighbours, then neighbours of what that makes.
#[inline(always)]
fn joined_eight<F: Fold>(lists: &[[F::Acc; LANES]; LANES]) -> [F::Acc; LANES] {
    let [a, b, c, d, e, f, g, h] = lists;
    let (ab, cd) = (neighbours::<F>(a, b), neighbours::<F>(c, d));
    let (ef, gh) = (neighbours::<F>(e, f), neighbours::<F>(g, h));
    let (abcd, efgh) = (neighbours::<F>(&ab, &cd), neighbours::<F>(&ef, &gh));
    neighbours::<F>(&abcd, &efgh)
}

/// Pairs of states, of `a` and then of `b`, each joined to one.
#[inline(always)]
fn neighbours<F: Fold>(a: &[F::Acc; LANES], b: &[F::Acc; LANES]) -> [F::Acc; LANES] {
    let ([a, b, c, d, e, f, g, h], [p, q, r, s, t, u, v, w]) = (*a, *b);
    [
        F::join(a, b),
        F::join(c, d),
        F::join(e, f),
        F::join(g, h),
        F::join(p, q),
        F::join(r, s),
        F::join(t, u),
        F::join(v, w),
    ]
}

/// Calls for every place that is not null.
#[inline(always)]
pub(super) fn for_each_valid(valid: &Rank, start: usize, end: usize, mut each: impl FnMut(usize)) {
    let (valid, mut at) = (valid.bits(), start);
    while at < end {
        let n = (end - at).min(64);
        let mut word = valid.at(at) & (u64::MAX >> (64 - n));
        while word != 0 {
            each(at + word.trailing_zeros() as usize);
            word &= word - 1;
        }
        at += n;
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use arrow::buffer::BooleanBuffer;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::fold::{Extreme, Largest, Number, Ordered, Smallest, Total};
    use super::super::runs::{self, Run, Runs};
    use super::*;
    use crate::array::Offsets;

    /// Lists around the widths of registers and words, longer ones, empty ones, in runs of any number.
    fn shapes(rng: &mut ChaCha8Rng) -> (Vec<i32>, Vec<Run>) {
        let (mut offsets, mut runs) = (vec![rng.random_range(0..5)], Vec::new());
        let (mut lists, mut places) = (0, 0);
        // More lists than are finished together, at times.
        let many = if rng.random_range(0..10) == 0 { 600 } else { 20 };
        for _ in 0..rng.random_range(0..6) {
            let mut longest = 0;
            for _ in 0..rng.random_range(0..many) {
                let around = [0, 1, 8, 16, 31, 33, 64, 65, 128, 200, 700][rng.random_range(0..11)];
                let n: i32 = around + rng.random_range(0..3);
                offsets.push(offsets[offsets.len() - 1] + n);
                longest = longest.max(n);
                lists += 1;
            }
            places += usize::try_from(longest).unwrap();
            runs.push(Run { lists, places });
        }
        (offsets, runs)
    }

    /// Whether every way there is makes what the plain one makes.
    fn all_ways<F: Fold>(
        rng: &mut ChaCha8Rng,
        finish: impl Fn(F::Acc) -> F::Acc,
        value: impl Fn(&mut ChaCha8Rng) -> F::In,
    ) where
        F::Acc: Debug,
    {
        for _ in 0..60 {
            let (offsets, ends) = shapes(rng);
            let leaves = usize::try_from(offsets[offsets.len() - 1] - offsets[0]).unwrap();
            // Now and then one value everywhere: a list of nothing but negative zeros is one.
            let one = value(rng);
            let same = rng.random_range(0..4) == 0;
            let flat: Vec<F::In> =
                (0..leaves).map(|_| if same { one } else { value(rng) }).collect();
            let holes = rng.random_range(0.0..1.0f64);
            // Now and then behind bits of others, and before some.
            let before = [0, 0, 64, 5, 77][rng.random_range(0..5)];
            let there: BooleanBuffer =
                (0..before + leaves + 9).map(|_| rng.random_range(0.0..1.0f64) > holes).collect();
            let there = there.slice(before, leaves);
            let rank = Rank::new(&there);
            let base = offsets[0];
            let range = |i: usize| {
                let at = |o: i32| usize::try_from(o - base).unwrap();
                at(offsets[i])..at(offsets[i + 1])
            };
            for valid in [None, Some(&rank)] {
                let holds = |i: &usize| valid.is_none() || there.value(*i);
                let made = |leaves: Vec<usize>| {
                    let acc = leaves.iter().fold(F::START, |acc, i| F::push(acc, flat[*i]));
                    (format!("{:?}", finish(acc)), leaves.len())
                };
                let shown = |found: Folded<(F::Acc, usize)>| {
                    let there = found.values.iter().map(|(_, n)| u8::from(*n > 0));
                    assert_eq!(found.there, there.collect::<Vec<_>>());
                    let values = found.values.iter().map(|(acc, n)| (format!("{acc:?}"), *n));
                    values.collect::<Vec<_>>()
                };
                let lists = (0..offsets.len() - 1).map(|i| made(range(i).filter(holds).collect()));
                let lists: Vec<_> = lists.collect();
                let pair = |acc, n| (finish(acc), n);
                let found = dispatched::<F, _, _, true>(&flat, valid, &offsets, pair);
                assert_eq!(shown(found), lists);
                let found = in_lanes::<F, _, _, true>(&flat, valid, &offsets, pair);
                assert_eq!(shown(found), lists);
                // The lists of a run, over one another.
                let (mut first, mut done, mut places) = (0, 0, Vec::new());
                for run in &ends {
                    for place in 0..run.places - done {
                        let over = (first..run.lists).filter_map(|i| range(i).nth(place));
                        places.push(made(over.filter(holds).collect()));
                    }
                    (first, done) = (run.lists, run.places);
                }
                let runs = Runs {
                    offsets: Offsets::I32(arrow::buffer::OffsetBuffer::new(offsets.clone().into())),
                    ends: ends.iter().map(|r| Run { lists: r.lists, places: r.places }).collect(),
                };
                assert_eq!(shown(runs.fold::<F, _, true>(&flat, valid, pair)), places);
                let parts = (&offsets[..], &runs.ends[..]);
                let found = runs::in_lanes::<F, _, _, true>(parts, &flat, valid, pair);
                assert_eq!(shown(found), places);
                if let Some(valid) = valid {
                    let counts: Vec<usize> = places.iter().map(|(_, n)| *n).collect();
                    assert_eq!(runs.counts(valid), counts);
                }
            }
        }
    }

    #[test]
    fn sums_of_floats_are_the_same_bits_in_registers_of_every_width() {
        fn bits<T: Number<Wide = f64>>(
            flat: &[T],
            valid: Option<&Rank>,
            offsets: &[i32],
        ) -> [Vec<u64>; 2] {
            let finish = |sum: f64, _| sum.to_bits();
            [
                dispatched::<Total<T>, _, _, true>(flat, valid, offsets, finish).values,
                in_lanes::<Total<T>, _, _, true>(flat, valid, offsets, finish).values,
            ]
        }
        let rng = &mut ChaCha8Rng::seed_from_u64(4);
        for round in 0..100 {
            let (offsets, _) = shapes(rng);
            let base = offsets[0];
            let leaves = usize::try_from(offsets[offsets.len() - 1] - base).unwrap();
            let flat: Vec<f64> = (0..leaves).map(|_| rng.random_range(-1e3..1e3)).collect();
            let singles: Vec<f32> = flat.iter().map(|v| *v as f32).collect();
            let there: BooleanBuffer = (0..leaves).map(|_| rng.random()).collect();
            let rank = Rank::new(&there);
            for valid in [None, Some(&rank)] {
                let [a, b] = bits(&flat, valid, &offsets);
                assert_eq!(a, b, "{round}");
                let [c, d] = bits(&singles, valid, &offsets);
                assert_eq!(c, d, "{round}");
                // Each list by itself, at the beginning of memory and behind others.
                for list in 0..offsets.len() - 1 {
                    let at = |o: i32| usize::try_from(o - base).unwrap();
                    let (start, end) = (at(offsets[list]), at(offsets[list + 1]));
                    let alone = there.slice(start, end - start);
                    let alone = valid.map(|_| Rank::new(&alone));
                    let ends = [0, i32::try_from(end - start).unwrap()];
                    let [one, other] = bits(&flat[start..end], alone.as_ref(), &ends);
                    assert_eq!((one[0], other[0]), (a[list], a[list]), "{round}");
                }
            }
        }
    }

    #[test]
    fn registers_of_every_width_make_the_same() {
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        // Small integers, whose sums are the same in any order, and what compares in its own way.
        let number = |rng: &mut ChaCha8Rng| match rng.random_range(0..40) {
            0 => f32::NAN,
            1 => -f32::NAN,
            2 => f32::INFINITY,
            3 => f32::NEG_INFINITY,
            4..9 => -0.0,
            _ => rng.random_range(-50..50i8).into(),
        };
        let whole = |rng: &mut ChaCha8Rng| match rng.random_range(0..4) {
            0 => -0.0,
            _ => f32::from(rng.random_range(-50..50i8)),
        };
        fn same<T>(value: T) -> T {
            value
        }
        all_ways::<Total<f32>>(rng, same, whole);
        all_ways::<Total<f64>>(rng, same, |rng| whole(rng).into());
        all_ways::<Total<i16>>(rng, same, |rng| rng.random());
        all_ways::<Total<u64>>(rng, same, |rng| rng.random());
        all_ways::<Extreme<u8, Largest>>(rng, Ordered::one_zero, |rng| rng.random());
        all_ways::<Extreme<i64, Smallest>>(rng, Ordered::one_zero, |rng| rng.random());
        all_ways::<Extreme<f32, Largest>>(rng, Ordered::one_zero, number);
        all_ways::<Extreme<f32, Smallest>>(rng, Ordered::one_zero, number);
        all_ways::<Extreme<f64, Largest>>(rng, Ordered::one_zero, |rng| number(rng).into());
        all_ways::<Extreme<f64, Smallest>>(rng, Ordered::one_zero, |rng| number(rng).into());
    }
}
