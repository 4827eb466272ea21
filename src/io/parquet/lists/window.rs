//! A few thousand levels at a time, as bits: what is asked of each is asked of 64 together.

use super::bits::{low, nth, ones};
#[cfg(target_arch = "x86_64")]
use super::hybrid::Bmi2;
use super::hybrid::{Anywhere, Fault, Hybrid, Picks};
use super::shape::Shape;
#[cfg(target_arch = "x86_64")]
use crate::kernels::bits::has_avx2;

const WORDS: usize = 64;

/// Most entries of a window.
pub(super) const ENTRIES: usize = WORDS * 64;

/// One bit of every level; a word more than there are, so that all may be written in two.
pub(super) type Plane = [u64; WORDS + 1];

/// Levels of up to four bits: bit `i` of plane `b` is bit `b` of level `i`.
#[derive(Debug)]
pub(super) struct Levels {
    planes: [Plane; 4],
    bits: usize,
}

impl Levels {
    fn new(max: u8) -> Self {
        Self { planes: [[0; WORDS + 1]; 4], bits: 8 - max.leading_zeros() as usize }
    }

    #[inline(always)]
    fn refill(&mut self, from: &mut Hybrid, n: usize, picks: impl Picks) -> Result<(), Fault> {
        let words = n.div_ceil(64) + 1;
        for plane in &mut self.planes[..self.bits] {
            plane[..words].fill(0);
        }
        from.levels(&mut self.planes, n, picks)
    }

    /// Where the level is `least` or more.
    #[inline(always)]
    fn at_least(&self, least: u8, out: &mut [u64]) {
        out.fill(if least >> self.bits == 0 { u64::MAX } else { 0 });
        if least >> self.bits != 0 {
            return;
        }
        // A larger bit decides where the two differ in it; smaller ones where they do not.
        for (b, plane) in self.planes[..self.bits].iter().enumerate() {
            if least >> b & 1 == 1 {
                for i in 0..out.len() {
                    out[i] &= plane[i];
                }
            } else {
                for i in 0..out.len() {
                    out[i] |= plane[i];
                }
            }
        }
    }

    #[inline(always)]
    fn get(&self, word: usize, i: usize) -> u8 {
        let bit = |b: usize| u8::from(self.planes[b][word] >> i & 1 == 1) << b;
        bit(0) | bit(1) | bit(2) | bit(3)
    }
}

/// Entries of a page: one per value, null, and list without elements. Bits stand for entries; those
/// past the last one mean nothing.
#[derive(Debug)]
pub(super) struct Window {
    rep: Levels,
    def: Levels,
    /// Entries that were used, of all there are.
    pub(super) at: usize,
    pub(super) n: usize,
    /// A row begins.
    pub(super) rows: [u64; WORDS],
    /// A list begins.
    pub(super) begun: [u64; WORDS],
    /// It is an element of an innermost list, or a row where there are no lists.
    pub(super) slots: [u64; WORDS],
    /// It is a value that is not null.
    pub(super) valid: [u64; WORDS],
}

impl Window {
    pub(super) fn new(shape: &Shape) -> Self {
        let none = [0; WORDS];
        Self {
            rep: Levels::new(shape.max_rep),
            def: Levels::new(shape.max_def),
            at: 0,
            n: 0,
            rows: none,
            begun: none,
            slots: none,
            valid: none,
        }
    }

    /// The next `n` entries of a page.
    pub(super) fn refill(
        &mut self,
        rep: &mut Hybrid,
        def: &mut Hybrid,
        n: usize,
        shape: &Shape,
    ) -> Result<(), Fault> {
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            fn wide(
                window: &mut Window,
                rep: &mut Hybrid,
                def: &mut Hybrid,
                n: usize,
                shape: &Shape,
            ) -> Result<(), Fault> {
                window.refill_any(rep, def, n, shape, Bmi2::new())
            }
            if has_avx2() {
                // SAFETY: the processor has what the function was compiled for.
                return unsafe { wide(self, rep, def, n, shape) };
            }
        }
        self.refill_any(rep, def, n, shape, Anywhere)
    }

    #[inline(always)]
    fn refill_any(
        &mut self,
        rep: &mut Hybrid,
        def: &mut Hybrid,
        n: usize,
        shape: &Shape,
        picks: impl Picks,
    ) -> Result<(), Fault> {
        self.rep.refill(rep, n, picks)?;
        self.def.refill(def, n, picks)?;
        (self.at, self.n) = (0, n);
        let words = n.div_ceil(64);
        let mut most = [0; WORDS];
        for (levels, max) in [(&self.rep, shape.max_rep), (&self.def, shape.max_def)] {
            levels.at_least(max + 1, &mut most[..words]);
            if self.any(&most) {
                return Err(self.too_large(shape));
            }
        }
        self.def.at_least(shape.max_def, &mut self.valid[..words]);
        self.def.at_least(shape.slot(), &mut self.slots[..words]);
        self.rep.at_least(1, &mut self.rows[..words]);
        self.rep.at_least(shape.max_rep, &mut self.begun[..words]);
        #[expect(clippy::needless_range_loop, reason = "of four arrays")]
        for i in 0..words {
            self.rows[i] = !self.rows[i];
            self.begun[i] = !self.begun[i];
            most[i] = !self.begun[i] & !self.slots[i];
        }
        if shape.max_rep > 0 && self.any(&most) {
            return Err(Fault::new("a list goes on with an entry that is no element"));
        }
        Ok(())
    }

    /// Whether a bit of an entry is set.
    #[inline(always)]
    fn any(&self, bits: &[u64; WORDS]) -> bool {
        let (whole, rest) = (self.n / 64, self.n % 64);
        let mut any = if rest > 0 { bits[whole] & low(rest) } else { 0 };
        for word in &bits[..whole] {
            any |= word;
        }
        any != 0
    }

    /// The entries of the next word that belong to `rows` rows, which begin here or go on; and whether
    /// another row begins after them.
    #[inline(always)]
    pub(super) fn step(&mut self, rows: &mut usize) -> (usize, u64, bool) {
        let (word, used) = (self.at / 64, self.at % 64);
        let mut now = low(self.n - word * 64) & !low(used);
        let starts = self.rows[word] & now;
        let here = ones(starts);
        let ended = here > *rows;
        let end = if ended { nth(starts, *rows) } else { 64 };
        now &= low(end);
        *rows -= here.min(*rows);
        self.at = (word * 64 + end).min(self.n);
        (word, now, ended)
    }

    /// Repetition and definition level of an entry.
    #[inline(always)]
    pub(super) fn levels(&self, word: usize, i: usize) -> (u8, u8) {
        (self.rep.get(word, i), self.def.get(word, i))
    }

    #[cold]
    fn too_large(&self, shape: &Shape) -> Fault {
        let largest =
            |levels: &Levels| (0..self.n).map(|i| levels.get(i / 64, i % 64)).max().unwrap_or(0);
        Fault::new(format!(
            "repetition level {} and definition level {}, where the schema has levels up to {} and {}",
            largest(&self.rep),
            largest(&self.def),
            shape.max_rep,
            shape.max_def
        ))
    }
}
