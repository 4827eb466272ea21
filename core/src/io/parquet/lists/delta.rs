use bytes::Bytes;

use super::bitmap::{load_u64, make_low_mask};
use super::hybrid::DecodeFault;

/// Maximum number of integers per block that a page may declare; a larger number is an error.
const LARGEST_BLOCK: u64 = 1 << 24;

/// Decoder of DELTA_BINARY_PACKED integers. Sums wrap at 64 bits; narrower types take the low bits.
#[derive(Debug)]
pub(super) struct DeltaDecoder {
    data: Bytes,
    at: usize,
    /// Number of integers left in the page.
    left: u64,
    last: u64,
    /// Whether the first integer has not been returned yet.
    fresh: bool,
    /// Number of miniblocks per block; `part` is the number of integers per miniblock.
    parts: usize,
    part: usize,
    /// The smallest difference of the current block, which is added to each stored difference.
    least: u64,
    /// Byte offsets of the bit widths of the remaining miniblocks.
    widths: std::ops::Range<usize>,
    /// Bit offset of the next difference, of `width` bits; `here` are left in the miniblock.
    bit: usize,
    width: usize,
    here: usize,
}

impl DeltaDecoder {
    pub(super) fn new(data: Bytes) -> Result<Self, DecodeFault> {
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
        let (block, parts) = (out.read_varint()?, out.read_varint()?);
        out.left = out.read_varint()?;
        out.last = out.read_zigzag()?;
        let part = block.checked_div(parts).unwrap_or(0);
        if block > LARGEST_BLOCK || part == 0 || !part.is_multiple_of(8) || part * parts != block {
            return Err(DecodeFault::new(format!(
                "a page with delta encoding is damaged: it declares blocks of {block} integers in {parts} miniblocks, but a block has at most {LARGEST_BLOCK} integers, and a miniblock a multiple of 8; create the file again"
            )));
        }
        let small = |n: u64| usize::try_from(n).map_err(DecodeFault::new);
        (out.part, out.parts) = (small(part)?, small(parts)?);
        Ok(out)
    }

    fn read_varint(&mut self) -> Result<u64, DecodeFault> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.data.get(self.at).ok_or_else(|| self.make_end_error())?;
            self.at += 1;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(DecodeFault::new(
            "a varint has more than 64 bits, the maximum, so the file is damaged; create it again",
        ))
    }

    fn read_zigzag(&mut self) -> Result<u64, DecodeFault> {
        self.read_varint().map(|n| n >> 1 ^ (n & 1).wrapping_neg())
    }

    #[cold]
    fn make_end_error(&self) -> DecodeFault {
        DecodeFault::new(format!(
            "{} byte(s) of differences end before the last integer, so the file is damaged; create it again",
            self.data.len()
        ))
    }

    fn start_miniblock(&mut self) -> Result<(), DecodeFault> {
        if self.widths.is_empty() {
            self.least = self.read_zigzag()?;
            if self.parts > self.data.len() - self.at {
                return Err(self.make_end_error());
            }
            self.widths = self.at..self.at + self.parts;
            self.at += self.parts;
        }
        self.width = usize::from(self.data[self.widths.start]);
        self.widths.start += 1;
        if self.width > 64 {
            return Err(DecodeFault::new(format!(
                "a miniblock of the encoding DELTA_BINARY_PACKED declares differences of {} bits, but at most 64 bits are allowed; create the file again",
                self.width
            )));
        }
        let bytes = self.part / 8 * self.width;
        // An encoder may omit the rest of the last miniblock: require only integers that are left.
        let needed = self.part.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if (needed * self.width).div_ceil(8) > self.data.len() - self.at {
            return Err(self.make_end_error());
        }
        (self.bit, self.here) = (self.at * 8, self.part);
        self.at = (self.at + bytes).min(self.data.len());
        Ok(())
    }

    pub(super) fn read(
        &mut self,
        mut n: usize,
        mut take: impl FnMut(u64),
    ) -> Result<(), DecodeFault> {
        if n as u64 > self.left {
            return Err(DecodeFault::new(format!(
                "{n} integer(s) are expected, but the page has only {} left, so the file is damaged; create it again",
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
                self.start_miniblock()?;
            }
            let now = self.here.min(n);
            let mask = make_low_mask(self.width);
            for _ in 0..now {
                let (byte, shift) = (self.bit / 8, self.bit % 8);
                let mut difference = load_u64(&self.data, byte) >> shift;
                if shift + self.width > 64 {
                    difference |= load_u64(&self.data, byte + 8) << (64 - shift);
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
