//! Integers as differences, bit-packed in small blocks.

use bytes::Bytes;

use super::bits::{load, low};
use super::hybrid::Fault;

/// Most numbers that a block may say it has.
const LARGEST_BLOCK: u64 = 1 << 24;

/// The integers of a page. Sums wrap around, in 64 bits: narrower integers are their lowest bits.
#[derive(Debug)]
pub(super) struct Delta {
    data: Bytes,
    at: usize,
    /// Numbers left in the page.
    left: u64,
    last: u64,
    /// The first number is not read yet.
    fresh: bool,
    /// Parts of a block, and numbers of each.
    parts: usize,
    part: usize,
    /// What each difference of the block is larger by.
    least: u64,
    /// Where the widths of the parts that are left stand.
    widths: std::ops::Range<usize>,
    /// Bit, width and numbers left of the current part.
    bit: usize,
    width: usize,
    here: usize,
}

impl Delta {
    pub(super) fn new(data: Bytes) -> Result<Self, Fault> {
        let mut out = Self {
            data,
            at: 0,
            left: 0,
            last: 0,
            fresh: true,
            parts: 0,
            part: 0,
            least: 0,
            widths: 0..0,
            bit: 0,
            width: 0,
            here: 0,
        };
        if out.data.is_empty() {
            return Ok(out);
        }
        let (block, parts) = (out.number()?, out.number()?);
        out.left = out.number()?;
        out.last = out.signed()?;
        let part = block.checked_div(parts).unwrap_or(0);
        if block > LARGEST_BLOCK || part == 0 || !part.is_multiple_of(8) || part * parts != block {
            return Err(Fault::new(format!("blocks of {block} integers in {parts} parts")));
        }
        let small = |n: u64| usize::try_from(n).map_err(Fault::new);
        (out.part, out.parts) = (small(part)?, small(parts)?);
        Ok(out)
    }

    fn number(&mut self) -> Result<u64, Fault> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.data.get(self.at).ok_or_else(|| self.ended())?;
            self.at += 1;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Fault::new("a number of more than 64 bits"))
    }

    /// Even numbers stand for zero and up, odd ones for those below.
    fn signed(&mut self) -> Result<u64, Fault> {
        self.number().map(|n| n >> 1 ^ (n & 1).wrapping_neg())
    }

    #[cold]
    fn ended(&self) -> Fault {
        Fault::new(format!("{} byte(s) of differences end before the last one", self.data.len()))
    }

    /// The next part, and the next block where it is the first of one.
    fn next_part(&mut self) -> Result<(), Fault> {
        if self.widths.is_empty() {
            self.least = self.signed()?;
            if self.parts > self.data.len() - self.at {
                return Err(self.ended());
            }
            self.widths = self.at..self.at + self.parts;
            self.at += self.parts;
        }
        self.width = usize::from(self.data[self.widths.start]);
        self.widths.start += 1;
        if self.width > 64 {
            return Err(Fault::new(format!("differences of {} bits", self.width)));
        }
        let bytes = self.part / 8 * self.width;
        // What lies behind the last number need not be there.
        let needed = self.part.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if (needed * self.width).div_ceil(8) > self.data.len() - self.at {
            return Err(self.ended());
        }
        (self.bit, self.here) = (self.at * 8, self.part);
        self.at = (self.at + bytes).min(self.data.len());
        Ok(())
    }

    /// Passes the next `n` integers to `take`.
    pub(super) fn read(&mut self, mut n: usize, mut take: impl FnMut(u64)) -> Result<(), Fault> {
        if n as u64 > self.left {
            return Err(Fault::new(format!(
                "{n} integer(s) are due, where the page has {} left",
                self.left
            )));
        }
        if self.fresh && n > 0 {
            self.fresh = false;
            take(self.last);
            self.left -= 1;
            n -= 1;
        }
        while n > 0 {
            if self.here == 0 {
                self.next_part()?;
            }
            let now = self.here.min(n);
            let mask = low(self.width);
            for _ in 0..now {
                let (byte, shift) = (self.bit / 8, self.bit % 8);
                let mut difference = load(&self.data, byte) >> shift;
                if shift + self.width > 64 {
                    difference |= load(&self.data, byte + 8) << (64 - shift);
                }
                let step = self.least.wrapping_add(difference & mask);
                self.last = self.last.wrapping_add(step);
                take(self.last);
                self.bit += self.width;
            }
            self.here -= now;
            self.left -= now as u64;
            n -= now;
        }
        Ok(())
    }
}
