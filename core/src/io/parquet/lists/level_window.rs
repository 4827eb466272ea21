//! [`LevelWindow`]: up to 4096 levels as bit planes, so that one operation tests 64 levels.
//!
//! Example: a column of nullable lists of nullable integers with the rows `[7, 8]`, `[]`, `[null]`.
//! Definition levels: 0 null list, 1 empty list, 2 null element, 3 valid element.
//!
//! ```text
//! entry            0 1 2 3    bit i of a word belongs to entry i
//! value            7 8 - null
//! repetition       0 1 0 0
//! definition       3 3 1 2    planes of the definition levels:
//!   plane 0        1 1 1 0      bit 0 of each level
//!   plane 1        1 1 0 1      bit 1 of each level
//! rows             1 0 1 1    repetition < 1: a row begins
//! begun            1 0 1 1    repetition < max_rep: an innermost list begins
//! slots            1 1 0 1    definition >= 2: an element
//! valid            1 1 0 0    definition >= 3: an element that is not null
//! ```

use super::bitmap::{BitPlane, WORDS, count_ones, find_nth_bit, make_low_mask};
use super::column_shape::ColumnShape;
use super::hybrid::{DecodeFault, GatherBits, HybridDecoder, PortableBits};
#[cfg(target_arch = "x86_64")]
use crate::kernels::simd::Avx2;
use crate::kernels::simd::for_avx2;

/// Maximum number of entries (pairs of levels) of a window.
pub(super) const ENTRIES: usize = WORDS * 64;

/// Levels of up to four bits: bit `i` of plane `b` is bit `b` of level `i`.
#[derive(Debug)]
pub(super) struct BitPlanes {
    planes: [BitPlane; 4],
    bits: usize,
}

impl BitPlanes {
    fn new(max: u8) -> Self {
        Self { planes: [[0; WORDS + 1]; 4], bits: 8 - max.leading_zeros() as usize }
    }

    #[inline(always)]
    fn refill_planes(
        &mut self,
        from: &mut HybridDecoder,
        n: usize,
        picks: impl GatherBits,
    ) -> Result<(), DecodeFault> {
        let words = n.div_ceil(64) + 1;
        for plane in &mut self.planes[..self.bits] {
            plane[..words].fill(0);
        }
        from.decode_levels(&mut self.planes, n, picks)
    }

    /// Sets bit `i` of `out` if level `i` is at least `least`, otherwise clears it.
    #[inline(always)]
    fn mark_at_least(&self, least: u8, out: &mut [u64]) {
        out.fill(if least >> self.bits == 0 { u64::MAX } else { 0 });
        if least >> self.bits != 0 {
            return;
        }
        // Compare from the lowest bit up: a bit that differs from `least` overrides the lower bits.
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

/// Entries of a page: a pair of a repetition and a definition level per value, per null, and per
/// list without elements. Mask bits past the last entry are unspecified.
#[derive(Debug)]
pub(super) struct LevelWindow {
    rep: BitPlanes,
    def: BitPlanes,
    /// Number of consumed entries; `n` is the number of all entries.
    pub(super) at: usize,
    pub(super) n: usize,
    /// Masks of the entries that begin a row (`rows`) or an innermost list (`begun`).
    pub(super) rows: [u64; WORDS],
    pub(super) begun: [u64; WORDS],
    /// Mask of the entries that are elements of innermost lists, or rows if there are no lists.
    pub(super) slots: [u64; WORDS],
    /// Mask of the entries in `slots` that are not null.
    pub(super) valid: [u64; WORDS],
}

impl LevelWindow {
    pub(super) fn new(shape: &ColumnShape) -> Self {
        let none = [0; WORDS];
        Self {
            rep: BitPlanes::new(shape.max_rep),
            def: BitPlanes::new(shape.max_def),
            at: 0,
            n: 0,
            rows: none,
            begun: none,
            slots: none,
            valid: none,
        }
    }

    pub(super) fn refill_window(
        &mut self,
        rep: &mut HybridDecoder,
        def: &mut HybridDecoder,
        n: usize,
        shape: &ColumnShape,
    ) -> Result<(), DecodeFault> {
        let window = self;
        for_avx2!(
            fn[](
                window: &mut LevelWindow,
                rep: &mut HybridDecoder,
                def: &mut HybridDecoder,
                n: usize,
                shape: &ColumnShape,
            ) -> Result<(), DecodeFault> = window.refill_inline(rep, def, n, shape, Avx2::new()),
            else window.refill_inline(rep, def, n, shape, PortableBits)
        )
    }

    #[inline(always)]
    fn refill_inline(
        &mut self,
        rep: &mut HybridDecoder,
        def: &mut HybridDecoder,
        n: usize,
        shape: &ColumnShape,
        picks: impl GatherBits,
    ) -> Result<(), DecodeFault> {
        self.rep.refill_planes(rep, n, picks)?;
        self.def.refill_planes(def, n, picks)?;
        (self.at, self.n) = (0, n);
        let words = n.div_ceil(64);
        let mut most = [0; WORDS];
        for (levels, max) in [(&self.rep, shape.max_rep), (&self.def, shape.max_def)] {
            levels.mark_at_least(max + 1, &mut most[..words]);
            if self.has_entry(&most) {
                return Err(self.make_level_error(shape));
            }
        }
        self.def.mark_at_least(shape.max_def, &mut self.valid[..words]);
        self.def.mark_at_least(shape.element_level(), &mut self.slots[..words]);
        self.rep.mark_at_least(1, &mut self.rows[..words]);
        self.rep.mark_at_least(shape.max_rep, &mut self.begun[..words]);
        #[expect(clippy::needless_range_loop, reason = "indexes four arrays")]
        for i in 0..words {
            self.rows[i] = !self.rows[i];
            self.begun[i] = !self.begun[i];
            most[i] = !self.begun[i] & !self.slots[i];
        }
        if shape.max_rep > 0 && self.has_entry(&most) {
            return Err(make_low_definition_error());
        }
        Ok(())
    }

    #[inline(always)]
    fn has_entry(&self, bits: &[u64; WORDS]) -> bool {
        let (whole, rest) = (self.n / 64, self.n % 64);
        let mut any = if rest > 0 { bits[whole] & make_low_mask(rest) } else { 0 };
        for word in &bits[..whole] {
            any |= word;
        }
        any != 0
    }

    /// Consumes entries of the next `rows` rows, up to the end of the current word (64 entries),
    /// and subtracts the rows that begin in it from `rows`. Returns the index of the word, the mask
    /// of the consumed entries, and whether all `rows` rows end in the word.
    #[inline(always)]
    pub(super) fn next_segment(&mut self, rows: &mut usize) -> (usize, u64, bool) {
        let (word, used) = (self.at / 64, self.at % 64);
        let mut now = make_low_mask(self.n - word * 64) & !make_low_mask(used);
        let starts = self.rows[word] & now;
        let begun_rows = count_ones(starts);
        let ended = begun_rows > *rows;
        let end = if ended { find_nth_bit(starts, *rows) } else { 64 };
        now &= make_low_mask(end);
        *rows -= begun_rows.min(*rows);
        self.at = (word * 64 + end).min(self.n);
        (word, now, ended)
    }

    #[inline(always)]
    pub(super) fn read_levels(&self, word: usize, i: usize) -> (u8, u8) {
        (self.rep.get(word, i), self.def.get(word, i))
    }

    #[cold]
    fn make_level_error(&self, shape: &ColumnShape) -> DecodeFault {
        let largest =
            |levels: &BitPlanes| (0..self.n).map(|i| levels.get(i / 64, i % 64)).max().unwrap_or(0);
        DecodeFault::new(format!(
            "the page has repetition levels up to {} and definition levels up to {}, but the schema allows only {} and {}, so the file is damaged; create it again",
            largest(&self.rep),
            largest(&self.def),
            shape.max_rep,
            shape.max_def
        ))
    }
}

#[cold]
pub(super) fn make_low_definition_error() -> DecodeFault {
    DecodeFault::new(
        "the repetition level of an entry continues a list, but the definition level of the entry is too low for an element of this list, so the file is damaged; create it again",
    )
}
