//! Decoder of Parquet's RLE/bit-packed hybrid encoding.

use std::fmt;

use bytes::Bytes;

use super::bitmap::{BitPlane, count_ones, load_u64, make_low_mask};
#[cfg(target_arch = "x86_64")]
use crate::kernels::simd::Avx2;
use crate::kernels::simd::for_avx2;

#[derive(Debug)]
pub(super) struct DecodeFault(pub(super) String);

impl DecodeFault {
    pub(super) fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }
}

#[derive(Clone, Copy, Debug)]
enum EncodedRun {
    Repeated(u32),
    /// Bit-packed numbers; the field is the bit offset of the next number in the data.
    Packed(usize),
}

/// Decoder of Parquet's RLE/bit-packed hybrid: levels, indices or booleans, of 0 to 32 bits.
#[derive(Clone, Debug)]
pub(super) struct HybridDecoder {
    data: Bytes,
    /// Byte offset of the next RLE or bit-packed run.
    at: usize,
    width: usize,
    run: EncodedRun,
    /// Number of values left in the current run.
    left: usize,
}

impl HybridDecoder {
    pub(super) fn new(data: Bytes, width: usize) -> Self {
        // Numbers of width 0 take no data, so start with an endless run of zeros.
        let left = if width == 0 { usize::MAX } else { 0 };
        Self { data, at: 0, width, run: EncodedRun::Repeated(0), left }
    }

    /// Creates a decoder of data that is a single run of bit-packed numbers, without a header.
    pub(super) fn from_packed(data: Bytes, width: usize) -> Self {
        let left = data.len().saturating_mul(8) / width.max(1);
        Self { at: data.len(), data, width, run: EncodedRun::Packed(0), left }
    }

    fn next_run(&mut self) -> Result<(), DecodeFault> {
        while self.left == 0 {
            let header = self.read_header()?;
            let count = usize::try_from(header >> 1).unwrap_or(usize::MAX);
            let rest = self.data.len() - self.at;
            if header & 1 == 1 {
                self.run = EncodedRun::Packed(self.at * 8);
                let bytes = count.saturating_mul(self.width);
                if bytes <= rest {
                    self.left = count * 8;
                    self.at += bytes;
                } else {
                    // Data may end within the last group of 8 numbers: count those that it has.
                    self.left = rest.saturating_mul(8) / self.width;
                    self.at = self.data.len();
                }
            } else {
                let bytes = self.width.div_ceil(8);
                if bytes > rest {
                    return Err(self.make_end_error());
                }
                let value = match bytes {
                    1 => u64::from(self.data[self.at]),
                    _ => load_u64(&self.data, self.at) & make_low_mask(8 * bytes),
                };
                if value > make_low_mask(self.width) {
                    return Err(DecodeFault::new(format!(
                        "a run repeats the number {value}, which does not fit {} bit(s), so the file is damaged; create it again",
                        self.width
                    )));
                }
                self.run = EncodedRun::Repeated(to_u32(value));
                self.left = count;
                self.at += bytes;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn read_header(&mut self) -> Result<u64, DecodeFault> {
        match self.data.get(self.at) {
            Some(byte) if *byte < 0x80 => {
                self.at += 1;
                Ok(u64::from(*byte))
            }
            _ => self.read_long_header(),
        }
    }

    fn read_long_header(&mut self) -> Result<u64, DecodeFault> {
        let mut header = 0;
        for shift in (0..35).step_by(7) {
            let byte = *self.data.get(self.at).ok_or_else(|| self.make_end_error())?;
            self.at += 1;
            header |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(header);
            }
        }
        Err(DecodeFault::new(
            "the header of a run is longer than the maximum of 35 bits, so the file is damaged; create it again",
        ))
    }

    #[cold]
    fn make_end_error(&self) -> DecodeFault {
        DecodeFault::new(format!(
            "{} byte(s) of runs end before the last number, so the file is damaged; create it again",
            self.data.len()
        ))
    }

    /// Decodes the next `n` levels, of up to 4 bits, into zeroed `planes`: plane `b` gets bit `b`.
    #[inline(always)]
    pub(super) fn decode_levels<P: GatherBits>(
        &mut self,
        planes: &mut [BitPlane; 4],
        n: usize,
        picks: P,
    ) -> Result<(), DecodeFault> {
        let [a, b, c, d] = planes;
        match self.width {
            0 => Ok(()),
            1 => self.fill_planes([a], n, picks),
            2 => self.fill_planes([a, b], n, picks),
            3 => self.fill_planes([a, b, c], n, picks),
            _ => self.fill_planes([a, b, c, d], n, picks),
        }
    }

    #[inline(always)]
    fn fill_planes<const W: usize, P: GatherBits>(
        &mut self,
        mut planes: [&mut BitPlane; W],
        n: usize,
        picks: P,
    ) -> Result<(), DecodeFault> {
        let mut filled = 0;
        while filled < n {
            if self.left == 0 {
                self.next_run()?;
            }
            let in_run = self.left.min(n - filled);
            self.left -= in_run;
            let end = filled + in_run;
            match &mut self.run {
                EncodedRun::Repeated(value) => {
                    while filled < end {
                        let step = (end - filled).min(64);
                        let bits = make_low_mask(step);
                        for (b, plane) in planes.iter_mut().enumerate() {
                            let set = u64::from(*value >> b & 1).wrapping_neg();
                            set_bits(plane, filled, bits & set);
                        }
                        filled += step;
                    }
                }
                EncodedRun::Packed(bit) => {
                    while filled < end {
                        let word = load_u64(&self.data, *bit / 8) >> (*bit % 8);
                        // The shift drops up to 7 of the 64 loaded bits: at least 57 are valid.
                        let step = (end - filled).min(57 / W);
                        for (b, plane) in planes.iter_mut().enumerate() {
                            set_bits(
                                plane,
                                filled,
                                picks.gather_every::<W>(word >> b) & make_low_mask(step),
                            );
                        }
                        *bit += step * W;
                        filled += step;
                    }
                }
            }
        }
        Ok(())
    }

    /// Consumes the next `n` levels, of up to four bits, and returns the number of zeros among
    /// them.
    pub(super) fn count_zeros(&mut self, n: usize) -> Result<usize, DecodeFault> {
        let levels = self;
        for_avx2!(
            fn[](levels: &mut HybridDecoder, n: usize) -> Result<usize, DecodeFault>
                = levels.count_zeros_inline(n)
        )
    }

    #[inline(always)]
    fn count_zeros_inline(&mut self, n: usize) -> Result<usize, DecodeFault> {
        match self.width {
            0 | 1 => self.count_zeros_width::<1>(n),
            2 => self.count_zeros_width::<2>(n),
            3 => self.count_zeros_width::<3>(n),
            _ => self.count_zeros_width::<4>(n),
        }
    }

    #[inline(always)]
    fn count_zeros_width<const W: usize>(&mut self, mut n: usize) -> Result<usize, DecodeFault> {
        let mut zeros = 0;
        while n > 0 {
            if self.left == 0 {
                self.next_run()?;
            }
            let in_run = self.left.min(n);
            self.left -= in_run;
            n -= in_run;
            match &mut self.run {
                EncodedRun::Repeated(value) => zeros += if *value == 0 { in_run } else { 0 },
                EncodedRun::Packed(bit) => {
                    let mut left = in_run;
                    while left > 0 {
                        let word = load_u64(&self.data, *bit / 8) >> (*bit % 8);
                        let step = left.min(57 / W);
                        let any = (1..W).fold(word, |any, b| any | word >> b);
                        zeros += count_ones(!any & EVERY[W - 1] & make_low_mask(step * W));
                        *bit += step * W;
                        left -= step;
                    }
                }
            }
        }
        Ok(zeros)
    }

    pub(super) fn skip_values(&mut self, mut n: usize) -> Result<(), DecodeFault> {
        while n > 0 {
            if self.left == 0 {
                self.next_run()?;
            }
            let in_run = self.left.min(n);
            if let EncodedRun::Packed(bit) = &mut self.run {
                *bit += in_run * self.width;
            }
            self.left -= in_run;
            n -= in_run;
        }
        Ok(())
    }

    pub(super) fn read(&mut self, mut out: &mut [u32]) -> Result<(), DecodeFault> {
        while !out.is_empty() {
            if self.left == 0 {
                self.next_run()?;
            }
            let in_run = self.left.min(out.len());
            let (now, later) = out.split_at_mut(in_run);
            match &mut self.run {
                EncodedRun::Repeated(value) => now.fill(*value),
                EncodedRun::Packed(bit) => {
                    unpack_numbers(&self.data, *bit, self.width, now);
                    *bit += in_run * self.width;
                }
            }
            self.left -= in_run;
            out = later;
        }
        Ok(())
    }
}

/// Sets bit `at + i` for each set bit `i` of `bits`. Writes two words to avoid a branch.
#[inline(always)]
fn set_bits(plane: &mut BitPlane, at: usize, bits: u64) {
    let (word, shift) = (at / 64, at % 64);
    if let Some([this, next]) = plane.get_mut(word..word + 2) {
        *this |= bits << shift;
        *next |= bits >> 1 >> (63 - shift);
    }
}

/// In `EVERY[W - 1]`, every `W`-th bit is set, from bit 0 on.
const EVERY: [u64; 4] =
    [u64::MAX, 0x5555_5555_5555_5555, 0x9249_2492_4924_9249, 0x1111_1111_1111_1111];

pub(super) trait GatherBits: Copy {
    /// Packs every `W`-th bit, from bit 0 on; at least the lowest `57 / W` bits are valid.
    fn gather_every<const W: usize>(self, word: u64) -> u64;
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PortableBits;

impl GatherBits for PortableBits {
    #[inline(always)]
    fn gather_every<const W: usize>(self, word: u64) -> u64 {
        gather_every::<W>(word)
    }
}

/// Uses the instruction `pext`, which takes as long as one of the four or five steps of
/// [`PortableBits`].
#[cfg(target_arch = "x86_64")]
impl GatherBits for Avx2 {
    #[inline(always)]
    fn gather_every<const W: usize>(self, word: u64) -> u64 {
        self.gather_bits(word, EVERY[W - 1])
    }
}

#[inline(always)]
fn gather_every<const W: usize>(x: u64) -> u64 {
    match W {
        1 => x,
        2 => {
            let mut x = x & 0x5555_5555_5555_5555;
            x = (x | x >> 1) & 0x3333_3333_3333_3333;
            x = (x | x >> 2) & 0x0F0F_0F0F_0F0F_0F0F;
            x = (x | x >> 4) & 0x00FF_00FF_00FF_00FF;
            x = (x | x >> 8) & 0x0000_FFFF_0000_FFFF;
            (x | x >> 16) & 0xFFFF_FFFF
        }
        3 => {
            let mut x = x & 0x1249_2492_4924_9249;
            x = (x | x >> 2) & 0x10C3_0C30_C30C_30C3;
            x = (x | x >> 4) & 0x100F_00F0_0F00_F00F;
            x = (x | x >> 8) & 0x001F_0000_FF00_00FF;
            x = (x | x >> 16) & 0x001F_0000_0000_FFFF;
            (x | x >> 32) & 0x001F_FFFF
        }
        _ => {
            let mut x = x & 0x1111_1111_1111_1111;
            x = (x | x >> 3) & 0x0303_0303_0303_0303;
            x = (x | x >> 6) & 0x000F_000F_000F_000F;
            x = (x | x >> 12) & 0x0000_00FF_0000_00FF;
            (x | x >> 24) & 0xFFFF
        }
    }
}

/// Unpacks bit-packed numbers that start at bit `bit`; `data` must contain all of them.
fn unpack_numbers(data: &[u8], mut bit: usize, width: usize, out: &mut [u32]) {
    // Unpack one by one the values before the first value that starts at a byte boundary.
    let ragged = out.iter().enumerate().position(|(i, _)| (bit + i * width).is_multiple_of(8));
    let (head, body) = out.split_at_mut(ragged.unwrap_or(out.len()));
    bit = unpack_one_by_one(data, bit, width, head);
    let data = &data[(bit / 8).min(data.len())..];
    macro_rules! widths {
        ($($w:literal)*) => {
            match width {
                $($w => unpack_eights::<$w>(data, body),)*
                _ => _ = unpack_one_by_one(data, 0, width, body),
            }
        };
    }
    widths!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20);
}

/// Unpacks one number at a time; returns the bit index after the last number.
fn unpack_one_by_one(data: &[u8], mut bit: usize, width: usize, out: &mut [u32]) -> usize {
    for value in out {
        *value = to_u32(load_u64(data, bit / 8) >> (bit % 8) & make_low_mask(width));
        bit += width;
    }
    bit
}

/// Unpacks eight numbers of `W` (at most 24) bits at a time, from a byte boundary on.
fn unpack_eights<const W: usize>(data: &[u8], out: &mut [u32]) {
    let (eights, rest) = out.as_chunks_mut::<8>();
    let mut at = 0;
    for eight in eights {
        // Numbers are read by four-byte loads, so three bytes past the group must be readable.
        match data.get(at..at + W + 3) {
            Some(bytes) =>
            {
                #[expect(clippy::needless_range_loop, reason = "positions are constants")]
                for i in 0..8 {
                    let (byte, shift) = (i * W / 8, i * W % 8);
                    let four = [bytes[byte], bytes[byte + 1], bytes[byte + 2], bytes[byte + 3]];
                    eight[i] = u32::from_le_bytes(four) >> shift & to_u32(make_low_mask(W));
                }
            }
            None => _ = unpack_one_by_one(data, at * 8, W, eight),
        }
        at += W;
    }
    unpack_one_by_one(data, at * 8, W, rest);
}

#[expect(clippy::cast_possible_truncation, reason = "a number of up to 32 bits")]
#[inline(always)]
fn to_u32(value: u64) -> u32 {
    value as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_is_picked() {
        let mut word = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..500 {
            word = word.wrapping_mul(0xD129_42C2_97F6_8D53) ^ word >> 29;
            check::<1>(word);
            check::<2>(word);
            check::<3>(word);
            check::<4>(word);
        }
    }

    fn check<const W: usize>(word: u64) {
        let n = 57 / W;
        let expected = (0..n).map(|i| (word >> (i * W) & 1) << i).sum::<u64>();
        assert_eq!(PortableBits.gather_every::<W>(word) & make_low_mask(n), expected);
        #[cfg(target_arch = "x86_64")]
        if let Some(picks) = Avx2::try_new() {
            assert_eq!(picks.gather_every::<W>(word) & make_low_mask(n), expected);
        }
    }

    #[test]
    fn zeros_are_counted_as_they_are_read() {
        let mut state = 7u64;
        for width in 1..=4usize {
            for round in 0..20 {
                let mut bytes = Vec::new();
                for run in 0..6 {
                    state = state.wrapping_mul(0xD129_42C2_97F6_8D53).wrapping_add(99);
                    if (state >> 60).is_multiple_of(2) {
                        bytes.extend([u8::try_from(state >> 40 & 63).unwrap() << 1, run % 2]);
                    } else {
                        let groups = u8::try_from(state >> 40 & 15).unwrap();
                        bytes.push(groups << 1 | 1);
                        for i in 0..u32::from(groups) * u32::try_from(width).unwrap() {
                            let bits = state.rotate_left(i * 7) & state.rotate_right(9);
                            bytes.push(bits.to_le_bytes()[0]);
                        }
                    }
                }
                bytes.extend([100 << 1, 0]);
                let mut all = vec![0; 100];
                HybridDecoder::new(Bytes::from(bytes.clone()), width).read(&mut all).unwrap();
                for (skipped, n) in [(0, 100), (3, 50), (round, 64), (99, 1), (50, 0)] {
                    let mut runs = HybridDecoder::new(Bytes::from(bytes.clone()), width);
                    runs.skip_values(skipped).unwrap();
                    let expected = all[skipped..skipped + n].iter().filter(|v| **v == 0).count();
                    assert_eq!(
                        runs.count_zeros(n).unwrap(),
                        expected,
                        "{width} bits, {skipped}, {n}"
                    );
                    // `count_zeros` has consumed the counted numbers, so the next one follows them.
                    let mut next = [9];
                    runs.read(&mut next).unwrap();
                    assert!(skipped + n >= 100 || next[0] == all[skipped + n]);
                }
            }
        }
        assert_eq!(HybridDecoder::new(Bytes::new(), 0).count_zeros(17).unwrap(), 17);
    }

    #[test]
    fn numbers_of_every_width_come_back() {
        for width in 1..=32usize {
            let n = 203;
            let number = |i: usize| {
                to_u32((i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20 & make_low_mask(width))
            };
            // The data is a run of three equal numbers and a run of bit-packed numbers.
            let mut bytes = vec![3 << 1];
            bytes.extend(&number(0).to_le_bytes()[..width.div_ceil(8)]);
            let groups = u8::try_from(n / 8 + 1).unwrap();
            bytes.push(groups << 1 | 1);
            let mut packed = vec![0u8; usize::from(groups) * width];
            for i in 0..n {
                for b in (0..width).filter(|b| number(i) >> b & 1 == 1) {
                    packed[(i * width + b) / 8] |= 1 << ((i * width + b) % 8);
                }
            }
            bytes.extend(packed);
            let expected: Vec<u32> = [number(0); 3].into_iter().chain((0..n).map(number)).collect();
            for step in [1, 5, 8, 64, 500] {
                let mut runs = HybridDecoder::new(Bytes::from(bytes.clone()), width);
                let mut got = vec![0; expected.len()];
                for out in got.chunks_mut(step) {
                    runs.read(out).unwrap();
                }
                assert_eq!(got, expected, "{width} bits, {step} at a time");
                let mut runs = HybridDecoder::new(Bytes::from(bytes.clone()), width);
                runs.skip_values(step.min(100)).unwrap();
                let mut one = [0];
                runs.read(&mut one).unwrap();
                assert_eq!(one[0], expected[step.min(100)]);
            }
        }
    }
}
