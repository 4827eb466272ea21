//! Sums that are exact until they are read: in which order and in which parts numbers are added does
//! not show in the result, and whether a sum fits its type is decided by the whole sum alone.
//!
//! A sum on its way is a list of 64-bit words: none is 0; one is a number itself (the bits of a float,
//! or an integer); of more, the first says where the digits that follow begin, each of 32 bits in a
//! word of 64, the lowest first and the highest with the sign. The unit of floats is their smallest
//! one, 2^-1074. Most sums have few digits: 3 to 4 words, where a table of all digits has 67.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, UInt64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};

use super::{Reduction, Target};
use crate::array::{Layout, ListAxis, Offsets, RaggedArray};
use crate::error::{Error, Result};

/// The numbers that are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exact {
    /// Floats of 64 bits.
    Float,
    /// Integers of 64 bits, truth, durations.
    Signed,
    /// Integers of 64 bits without a sign.
    Unsigned,
}

impl Exact {
    /// How values of a type are added.
    pub(crate) fn of(leaf: &DataType) -> Self {
        match leaf {
            t if t.is_floating() => Self::Float,
            t if t.is_unsigned_integer() => Self::Unsigned,
            _ => Self::Signed,
        }
    }

    /// Type of the words of a sum.
    pub(crate) fn words() -> DataType {
        DataType::new_list(DataType::Int64, true)
    }

    /// Every leaf as a sum of itself: one more level, of words. A null leaf is 0.
    pub(crate) fn begin(self, array: &RaggedArray) -> Result<RaggedArray> {
        let leaves = array.leaves();
        let words: Vec<i64> = match self {
            Self::Float => {
                let leaves = cast(leaves, &DataType::Float64)?;
                let leaves = leaves.as_primitive::<Float64Type>();
                leaves.iter().map(|v| v.unwrap_or(0.0).to_bits().cast_signed()).collect()
            }
            Self::Unsigned => {
                let leaves = cast(leaves, &DataType::UInt64)?;
                let leaves = leaves.as_primitive::<UInt64Type>();
                leaves.iter().map(|v| v.unwrap_or(0).cast_signed()).collect()
            }
            Self::Signed => {
                let leaves = super::numbers::numbers(leaves)?;
                let leaves = cast(&leaves, &DataType::Int64)?;
                leaves.as_primitive::<Int64Type>().iter().map(|v| v.unwrap_or(0)).collect()
            }
        };
        let mut axes = array.axes().to_vec();
        axes.push(Layout::Uniform { size: 1, lists: words.len() }.into());
        RaggedArray::try_new(array.len(), axes, Arc::new(Int64Array::from(words)))
    }

    /// Sums laid over one another along axis 1: the innermost lists of `sums` are their words, and stay
    /// the innermost lists.
    pub(crate) fn lay_over(self, sums: &RaggedArray) -> Result<RaggedArray> {
        let Some((words, outer)) = sums.axes().split_last() else {
            return Err(Error::invalid("sums are lists of words"));
        };
        let layout = words.layout();
        let ids: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..layout.lists() as u64));
        let places = RaggedArray::try_new(sums.len(), outer.to_vec(), ids)?;
        let target = Target::new(&places, Reduction::Size, Some(1))?;
        let gathered = target.task.groups.gathered(target.leaves())?;
        let ids = gathered.leaves.as_primitive::<UInt64Type>().values();
        let flat = sums.leaves().as_primitive::<Int64Type>().values();
        let groups = gathered.lists.layout();
        let (mut out, mut lengths) = (Vec::new(), Vec::with_capacity(groups.lists()));
        let mut digits = Digits::new(self);
        for group in 0..groups.lists() {
            let before = out.len();
            let words = |id: &u64| {
                let list = usize::try_from(*id).unwrap_or(usize::MAX);
                &flat[layout.range(list)]
            };
            match &ids[groups.range(group)] {
                [one] => out.extend_from_slice(words(one)),
                many => {
                    many.iter().for_each(|id| digits.add(words(id)));
                    digits.write(&mut out);
                }
            }
            lengths.push(out.len() - before);
        }
        let level = ListAxis::try_new(Offsets::from_lengths(lengths)?, None)?;
        target.result_in(level, Arc::new(Int64Array::from(out)))
    }

    /// The sums as numbers: `Float64`, `Int64` or `UInt64`, without the level of words.
    ///
    /// # Errors
    /// An integer that does not fit 64 bits.
    pub(crate) fn sums(self, sums: &RaggedArray) -> Result<RaggedArray> {
        self.read(sums, |digits, words| match self {
            Self::Float => Ok(digits.float(words, 0)),
            _ => Err(digits.integer(words)),
        })
    }

    /// The sums divided by counts, one for each; null of none.
    pub(crate) fn means(self, sums: &RaggedArray, counts: &ArrayRef) -> Result<RaggedArray> {
        let counts = counts.as_primitive::<UInt64Type>().values();
        let mut next = counts.iter();
        #[expect(clippy::cast_precision_loss, reason = "a mean is a float")]
        let means = self.read(sums, |digits, words| {
            let n = next.next().copied().unwrap_or(0) as f64;
            Ok(match self {
                Self::Float => match digits.float(words, 0) {
                    // The mean of what is beyond the largest float may be none.
                    sum if sum.is_infinite() => digits.float(words, FAR) / n * 2f64.powi(128),
                    sum => sum / n,
                },
                _ => digits.integer(words) as f64 / n,
            })
        })?;
        let known = counts.iter().map(|n| *n > 0).collect::<arrow::buffer::NullBuffer>();
        let leaves = means.leaves().as_primitive::<Float64Type>().values().clone();
        means.with_leaves(Arc::new(Float64Array::try_new(leaves, Some(known))?))
    }

    /// One number of the words of every sum: a float, or else an integer.
    fn read(
        self,
        sums: &RaggedArray,
        mut number: impl FnMut(&mut Digits, &[i64]) -> std::result::Result<f64, i128>,
    ) -> Result<RaggedArray> {
        let Some((words, outer)) = sums.axes().split_last() else {
            return Err(Error::invalid("sums are lists of words"));
        };
        let flat = sums.leaves().as_primitive::<Int64Type>().values();
        let layout = words.layout();
        let (mut floats, mut integers) = (Vec::new(), Vec::new());
        let mut digits = Digits::new(self);
        for list in 0..layout.lists() {
            match number(&mut digits, &flat[layout.range(list)]) {
                Ok(float) => floats.push(float),
                Err(integer) => integers.push(integer),
            }
        }
        let too_large = |i: usize| Error::Overflow(format!("sum along axis 1, result {i}"));
        let integers = integers.into_iter().enumerate();
        let leaves: ArrayRef = match self {
            _ if layout.lists() == floats.len() => Arc::new(Float64Array::from(floats)),
            Self::Unsigned => {
                let fits = |(i, n)| u64::try_from(n).map_err(|_| too_large(i));
                Arc::new(UInt64Array::from(integers.map(fits).collect::<Result<Vec<_>>>()?))
            }
            _ => {
                let fits = |(i, n)| i64::try_from(n).map_err(|_| too_large(i));
                Arc::new(Int64Array::from(integers.map(fits).collect::<Result<Vec<_>>>()?))
            }
        };
        RaggedArray::try_new(sums.len(), outer.to_vec(), leaves)
    }
}

/// Digits of all floats, 2^-1074 to 2^1024, and room for sums of 2^64 of them.
const DIGITS: usize = 72;
/// Digits, of 128 bits in all, that a sum beyond the largest float is moved down by, to be divided.
const FAR: usize = 4;
/// Additions before carries are moved up: each adds less than 2^32 to a digit.
const ADDITIONS: u32 = 1 << 30;
const MASK: i64 = (1 << 32) - 1;

/// A sum of digits, and what is no number in it.
struct Digits {
    kind: Exact,
    digits: [i64; DIGITS],
    /// The digits that may be other than 0.
    low: usize,
    high: usize,
    additions: u32,
    nan: bool,
    infinite: [bool; 2],
}

impl Digits {
    fn new(kind: Exact) -> Self {
        Self {
            kind,
            digits: [0; DIGITS],
            low: DIGITS,
            high: 0,
            additions: 0,
            nan: false,
            infinite: [false; 2],
        }
    }

    fn clear(&mut self) {
        for digit in self.digits.iter_mut().take(self.high).skip(self.low) {
            *digit = 0;
        }
        (self.low, self.high, self.additions) = (DIGITS, 0, 0);
        (self.nan, self.infinite) = (false, [false; 2]);
    }

    /// Digits from `first` up to `end` are looked at from now on.
    fn touch(&mut self, first: usize, end: usize) {
        self.low = self.low.min(first);
        self.high = self.high.max(end.min(DIGITS));
        self.additions += 1;
        if self.additions >= ADDITIONS {
            self.carry();
        }
    }

    /// Adds what a list of words is.
    fn add(&mut self, words: &[i64]) {
        match (words, self.kind) {
            ([], _) => {}
            ([word], Exact::Float) => self.add_float(f64::from_bits(word.cast_unsigned())),
            ([word], Exact::Signed) => {
                self.add_parts(0, u128::from(word.unsigned_abs()), *word < 0);
            }
            ([word], Exact::Unsigned) => {
                self.add_parts(0, u128::from(word.cast_unsigned()), false);
            }
            ([first, digits @ ..], _) => {
                let first = usize::try_from(*first).unwrap_or(0).min(DIGITS);
                self.touch(first, first + digits.len());
                for (to, digit) in self.digits[first..].iter_mut().zip(digits) {
                    *to += digit;
                }
            }
        }
    }

    fn add_float(&mut self, value: f64) {
        if !value.is_finite() {
            self.nan |= value.is_nan();
            self.infinite[usize::from(value < 0.0)] |= value.is_infinite();
            return;
        }
        let bits = value.to_bits();
        let (exponent, fraction) = (bits >> 52 & 0x7ff, bits & ((1 << 52) - 1));
        let (shift, whole) = match exponent {
            0 => (0, fraction),
            e => (e - 1, fraction | 1 << 52),
        };
        let first = usize::try_from(shift / 32).unwrap_or(0);
        self.add_parts(first, u128::from(whole) << (shift % 32), value.is_sign_negative());
    }

    /// Adds or subtracts up to 96 bits from a digit on.
    #[expect(clippy::cast_possible_truncation, reason = "32 bits are taken at a time")]
    fn add_parts(&mut self, first: usize, whole: u128, negative: bool) {
        self.touch(first, first + 3);
        for (i, digit) in self.digits[first..].iter_mut().take(3).enumerate() {
            let part = (whole >> (32 * i)) as i64 & MASK;
            *digit += if negative { -part } else { part };
        }
    }

    /// Digits of 32 bits; the highest keeps the sign.
    fn carry(&mut self) {
        self.additions = 0;
        let mut carry = 0;
        for digit in self.digits.iter_mut().take(self.high).skip(self.low) {
            let whole = *digit + carry;
            (*digit, carry) = (whole & MASK, whole >> 32);
        }
        if carry != 0 && self.high < DIGITS {
            self.digits[self.high] = carry;
            self.high += 1;
        }
        // A sign above nothing but ones goes into the digit below.
        while self.high > self.low + 1
            && self.digits[self.high - 1] == -1
            && self.digits[self.high - 2] >> 31 == 1
        {
            self.high -= 1;
            self.digits[self.high] = 0;
            self.digits[self.high - 1] -= 1 << 32;
        }
        while self.high > self.low && self.digits[self.high - 1] == 0 {
            self.high -= 1;
        }
        while self.high > self.low && self.digits[self.low] == 0 {
            self.low += 1;
        }
    }

    fn special(&self) -> Option<f64> {
        match self.infinite {
            _ if self.nan => Some(f64::NAN),
            [true, true] => Some(f64::NAN),
            [true, false] => Some(f64::INFINITY),
            [false, true] => Some(f64::NEG_INFINITY),
            [false, false] => None,
        }
    }

    /// Writes the words of the sum, as few as they can be, and forgets it.
    fn write(&mut self, out: &mut Vec<i64>) {
        if let Some(special) = self.special() {
            out.push(special.to_bits().cast_signed());
            return self.clear();
        }
        self.carry();
        let one = match self.kind {
            Exact::Float => match self.rounded(0) {
                (value, true) => Some(value.to_bits().cast_signed()),
                _ => None,
            },
            Exact::Signed => i64::try_from(self.whole()).ok(),
            Exact::Unsigned => u64::try_from(self.whole()).ok().map(u64::cast_signed),
        };
        match one {
            _ if self.low >= self.high => {}
            Some(word) => out.push(word),
            None => {
                out.push(i64::try_from(self.low).unwrap_or(0));
                out.extend_from_slice(&self.digits[self.low..self.high]);
            }
        }
        self.clear();
    }

    /// The float nearest to the sum of some words, of a sum 2^32 to the power of `down` smaller.
    fn float(&mut self, words: &[i64], down: usize) -> f64 {
        self.add(words);
        let found = match self.special() {
            Some(special) => special,
            None => {
                self.carry();
                self.rounded(down).0
            }
        };
        self.clear();
        found
    }

    fn integer(&mut self, words: &[i64]) -> i128 {
        self.add(words);
        self.carry();
        let whole = self.whole();
        self.clear();
        whole
    }

    /// The integer that carried digits are. 2^63 integers of 64 bits fit 128.
    fn whole(&self) -> i128 {
        let digits = self.digits.iter().take(self.high).rev();
        digits.fold(0i128, |all, digit| (all << 32).wrapping_add(i128::from(*digit)))
    }

    /// The float nearest to carried digits, the even one of two, and whether it is the sum itself.
    fn rounded(&self, down: usize) -> (f64, bool) {
        let mut digits = self.digits;
        let negative = self.high > self.low && digits[self.high - 1] < 0;
        if negative {
            let mut carry = 0;
            for digit in digits.iter_mut().take(self.high).skip(self.low) {
                let whole = carry - *digit;
                (*digit, carry) = (whole & MASK, whole >> 32);
            }
            if let Some(above) = digits.get_mut(self.high) {
                *above = carry;
            }
        }
        let Some(top) = digits.iter().rposition(|d| *d != 0) else { return (0.0, true) };
        // The highest bits, and whether anything is below them.
        let bit = 32 * top + 63 - digits[top].leading_zeros() as usize;
        let bits_from = |from: usize| -> u64 {
            let at = |i: usize| digits.get(i).map_or(0, |d| u128::from(d.cast_unsigned()));
            let (digit, shift) = (from / 32, from % 32);
            let wide = at(digit) | at(digit + 1) << 32 | at(digit + 2) << 64;
            #[expect(clippy::cast_possible_truncation, reason = "the lowest bits are wanted")]
            let bits = (wide >> shift) as u64;
            bits
        };
        let down = 32 * down;
        // Bits below the smallest float are cut off: of what is moved down, there is much above them.
        let lowest = (bit + 1).saturating_sub(53).max(down);
        let mut whole = bits_from(lowest);
        let mut exact = true;
        if lowest > 0 {
            let half = bits_from(lowest - 1) & 1 == 1;
            let below = (lowest - 1) / 32;
            let rest = digits.iter().take(below).any(|d| *d != 0)
                || digits[below] & ((1 << ((lowest - 1) % 32)) - 1) != 0;
            exact = !half && !rest;
            if half && (rest || whole & 1 == 1) {
                whole += 1;
            }
        }
        // The bits of a float are its fraction and, above it, how often it is doubled: what the rounding
        // carries goes there by itself.
        let doubled = (lowest - down) as u64;
        let bits = match doubled {
            _ if whole >> 52 == 0 => whole,
            d => (d << 52).saturating_add(whole),
        };
        let infinite = f64::INFINITY.to_bits();
        let bits = if doubled > 2046 || bits >= infinite { infinite } else { bits };
        exact &= bits != infinite;
        let value = f64::from_bits(bits);
        (if negative { -value } else { value }, exact)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn words(kind: Exact, values: &[i64]) -> Vec<i64> {
        let mut digits = Digits::new(kind);
        values.iter().for_each(|v| digits.add(&[*v]));
        let mut out = Vec::new();
        digits.write(&mut out);
        out
    }

    fn sum(values: &[f64]) -> f64 {
        let values: Vec<i64> = values.iter().map(|v| v.to_bits().cast_signed()).collect();
        Digits::new(Exact::Float).float(&words(Exact::Float, &values), 0)
    }

    #[test]
    fn sums_are_the_nearest_floats() {
        assert_eq!(sum(&[]).to_bits(), 0);
        assert_eq!(sum(&[-0.0, -0.0]).to_bits(), 0);
        assert_eq!(sum(&[0.1; 10]), 1.0);
        assert_eq!(sum(&[1e308, 1e308, -1e308]), 1e308);
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum(&[-f64::MAX, -f64::MAX]), f64::NEG_INFINITY);
        assert_eq!(sum(&[1e300, 5e-324, -1e300]), 5e-324);
        assert_eq!(sum(&[5e-324, 5e-324, -1.5e-323]), -5e-324);
        assert_eq!(sum(&[f64::MIN_POSITIVE, -5e-324]), f64::MIN_POSITIVE.next_down());
        // Ties go to the even neighbour, and whatever lies below decides.
        assert_eq!(sum(&[9_007_199_254_740_992.0, 1.0]), 9_007_199_254_740_992.0);
        assert_eq!(sum(&[9_007_199_254_740_992.0, 1.0, 5e-324]), 9_007_199_254_740_994.0);
        assert_eq!(sum(&[9_007_199_254_740_994.0, 1.0]), 9_007_199_254_740_996.0);
        assert_eq!(sum(&[-9_007_199_254_740_992.0, -1.0, -5e-324]), -9_007_199_254_740_994.0);
        assert_eq!(sum(&[f64::INFINITY, 1.0]), f64::INFINITY);
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
        assert!(sum(&[f64::NAN, f64::INFINITY]).is_nan());
        let (max, ulp) = (f64::MAX, 2f64.powi(971));
        assert_eq!(sum(&[max, ulp / 4.0]), max);
        assert_eq!(sum(&[max, ulp / 2.0]), f64::INFINITY);
    }

    #[test]
    fn order_and_cuts_do_not_show() {
        let rng = &mut ChaCha8Rng::seed_from_u64(5);
        for _ in 0..300 {
            let n = rng.random_range(1..40);
            let mut values: Vec<f64> = (0..n)
                .map(|_| f64::from_bits(rng.random()))
                .map(|v| if v.is_finite() { v } else { 1.5 })
                .collect();
            if rng.random_range(0..3) == 0 {
                // What cancels to almost nothing.
                let more: Vec<f64> = values.iter().map(|v| -v).collect();
                values.extend(more);
                values.push(rng.random_range(-1.0..1.0));
            }
            let whole = sum(&values);
            for _ in 0..3 {
                for i in (1..values.len()).rev() {
                    values.swap(i, rng.random_range(0..=i));
                }
                let cut = rng.random_range(0..=values.len());
                let mut digits = Digits::new(Exact::Float);
                for part in [&values[..cut], &values[cut..]] {
                    let bits: Vec<i64> = part.iter().map(|v| v.to_bits().cast_signed()).collect();
                    digits.add(&words(Exact::Float, &bits));
                }
                let mut both = Vec::new();
                digits.write(&mut both);
                let found = Digits::new(Exact::Float).float(&both, 0);
                assert_eq!(found.to_bits(), whole.to_bits(), "{values:?}");
            }
        }
    }

    #[test]
    fn small_sums_are_what_integers_say() {
        let rng = &mut ChaCha8Rng::seed_from_u64(6);
        for _ in 0..1000 {
            let n = rng.random_range(0..20);
            let values: Vec<i64> =
                (0..n).map(|_| rng.random::<i64>() >> rng.random_range(0..63)).collect();
            let whole: i128 = values.iter().map(|v| i128::from(*v)).sum();
            let found = Digits::new(Exact::Signed).integer(&words(Exact::Signed, &values));
            assert_eq!(found, whole);
            // Each is a float here, and so is the sum, rounded once.
            let floats: Vec<f64> = values.iter().map(|v| (*v >> 12) as f64).collect();
            let exact: i128 = values.iter().map(|v| i128::from(*v >> 12)).sum();
            assert_eq!(sum(&floats), exact as f64, "{values:?}");
            let unsigned: i128 = values.iter().map(|v| i128::from(v.cast_unsigned())).sum();
            let found = Digits::new(Exact::Unsigned).integer(&words(Exact::Unsigned, &values));
            assert_eq!(found, unsigned);
        }
    }

    #[test]
    fn a_sum_of_few_digits_has_few_words() {
        let bits = |v: f64| v.to_bits().cast_signed();
        assert_eq!(words(Exact::Float, &[bits(1.5), bits(2.25)]), [bits(3.75)]);
        assert_eq!(words(Exact::Float, &[bits(1.5), bits(-1.5)]), [0i64; 0]);
        assert!(words(Exact::Float, &[bits(0.1), bits(0.2)]).len() <= 4);
        assert_eq!(words(Exact::Signed, &[i64::MIN, -1, 1]), [i64::MIN]);
        assert_eq!(words(Exact::Signed, &[i64::MIN, -1]).len(), 4);
    }
}
