//! [`WideFloat`] and [`ScaledInteger`]: intermediate numbers between exact sums and floats.

/// A number of 64 significant bits and any exponent. The lowest bit is also set if the exact number
/// has lower nonzero bits ("rounding to odd"), so that rounding to 53 bits stays correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WideFloat {
    negative: bool,
    /// The significant bits, as an integer. It is 0, or its highest bit is set.
    whole: u64,
    /// Exponent of the lowest bit: the bit has the value `2^exponent`.
    exponent: i64,
}

impl WideFloat {
    const ZERO: Self = Self { negative: false, whole: 0, exponent: 0 };

    /// Returns the number `whole * 2^exponent`, negated if `negative` is true. If `more` is true,
    /// the exact number has nonzero bits below `whole`, and the lowest bit of the result is set. In
    /// this case, `whole` must have at least 63 bits, so that the lowest bit is below the 53 bits
    /// that a float keeps.
    fn new(negative: bool, whole: u128, exponent: i64, more: bool) -> Self {
        if whole == 0 {
            return Self::ZERO;
        }
        let normal = whole << whole.leading_zeros();
        let (high, low) = split_u128(normal);
        let odd = u64::from(low != 0 || more);
        let exponent = exponent + 64 - i64::from(whole.leading_zeros());
        Self { negative, whole: high | odd, exponent }
    }

    pub fn multiply_by(self, other: Self) -> Self {
        let whole = u128::from(self.whole) * u128::from(other.whole);
        let exponent = self.exponent + other.exponent;
        Self::new(self.negative != other.negative, whole, exponent, false)
    }

    /// Returns `self / other`; 0 if `other` is 0.
    pub fn divide_by(self, other: Self) -> Self {
        let (whole, by) = (u128::from(self.whole) << 63, u128::from(other.whole));
        let (Some(quotient), Some(rest)) = (whole.checked_div(by), whole.checked_rem(by)) else {
            return Self::ZERO;
        };
        let exponent = self.exponent - other.exponent - 63;
        Self::new(self.negative != other.negative, quotient, exponent, rest != 0)
    }

    pub fn root(self) -> Self {
        // Make the exponent even, because the exponent of the root is half of it.
        let shift = 64 - self.exponent.rem_euclid(2);
        let whole = u128::from(self.whole) << shift;
        let root = whole.isqrt();
        Self::new(false, root, (self.exponent - shift) / 2, root * root != whole)
    }

    /// Returns the nearest float, ties to even, and whether this float equals the number.
    pub fn round_to_float(self) -> (f64, bool) {
        if self.whole == 0 {
            return (0.0, true);
        }
        let cut = (SMALLEST_FLOAT_EXPONENT - self.exponent).max(11);
        let lowest = self.exponent + cut;
        let (mut bits, mut exact) = (0, false);
        // If more than 64 bits are cut, the number is less than half of the smallest subnormal, and
        // rounds to 0.
        if cut <= 64 {
            let (kept, rest) = split_u128(u128::from(self.whole) << (64 - cut));
            let half = 1 << 63;
            let up = rest > half || (rest == half && kept & 1 == 1);
            bits = kept + u64::from(up);
            exact = rest == 0;
        }
        // The highest bit of the significand, which a normal float does not store, adds 1 to the
        // exponent field in the sum below, so `doubled` is the field minus 1.
        let doubled = u64::try_from(lowest - SMALLEST_FLOAT_EXPONENT).unwrap_or(0);
        let infinite = f64::INFINITY.to_bits();
        if doubled > 2046 {
            (bits, exact) = (infinite, false);
        } else {
            bits += doubled << 52;
        }
        if bits >= infinite {
            (bits, exact) = (infinite, false);
        }
        let value = f64::from_bits(bits);
        (if self.negative { -value } else { value }, exact)
    }

    pub fn to_f64(self) -> f64 {
        self.round_to_float().0
    }
}

const SMALLEST_FLOAT_EXPONENT: i64 = -1074;

#[expect(clippy::cast_possible_truncation, reason = "the halves are wanted")]
pub(super) fn split_u128(wide: u128) -> (u64, u64) {
    ((wide >> 64) as u64, wide as u64)
}

/// An integer of any size times a power of 2.
#[derive(Clone, Debug)]
pub struct ScaledInteger {
    negative: bool,
    /// The integer in words of 64 bits (limbs), lowest first. The first and the last limb are
    /// nonzero.
    limbs: Vec<u64>,
    /// Exponent of the lowest bit of `limbs`: the bit has the value `2^exponent`.
    exponent: i64,
}

impl ScaledInteger {
    /// Returns the integer `n` as a [`ScaledInteger`].
    pub fn of(n: u64) -> Self {
        Self::new(false, vec![n], 0)
    }

    fn new(negative: bool, mut limbs: Vec<u64>, mut exponent: i64) -> Self {
        while limbs.last() == Some(&0) {
            limbs.pop();
        }
        let zeros = limbs.iter().take_while(|limb| **limb == 0).count();
        limbs.drain(..zeros);
        exponent += count_bits(zeros);
        Self { negative, limbs, exponent }
    }

    pub(super) fn from_signed(mut limbs: Vec<u64>, exponent: i64) -> Self {
        let negative = limbs.last().is_some_and(|top| top.cast_signed() < 0);
        if negative {
            let mut carry = true;
            for limb in &mut limbs {
                (*limb, carry) = (!*limb).overflowing_add(u64::from(carry));
            }
        }
        Self::new(negative, limbs, exponent)
    }

    /// Returns whether the number is 0.
    pub fn is_zero(&self) -> bool {
        self.limbs.is_empty()
    }

    /// Returns `a * b - c * d` exactly. The exponents of the two products must differ by a multiple
    /// of 64.
    pub fn compute_determinant([a, b]: [&Self; 2], [c, d]: [&Self; 2]) -> Self {
        let products = [(a, b, false), (c, d, true)];
        let products = products.map(|(a, b, minus)| ScaledProduct { a, b, minus });
        let nonzero = || products.iter().filter(|p| !p.a.is_zero() && !p.b.is_zero());
        let Some(lowest) = nonzero().map(ScaledProduct::exponent).min() else {
            return Self::new(false, Vec::new(), 0);
        };
        let limb_of = |exponent: i64| usize::try_from((exponent - lowest) / 64).unwrap_or(0);
        let len =
            nonzero().map(|p| limb_of(p.exponent()) + p.a.limbs.len() + p.b.limbs.len()).max();
        let mut limbs = vec![0; len.unwrap_or(0) + 1];
        for ScaledProduct { a, b, minus } in nonzero() {
            let at = limb_of(a.exponent + b.exponent);
            let negative = *minus != (a.negative != b.negative);
            for (i, x) in a.limbs.iter().enumerate() {
                for (j, y) in b.limbs.iter().enumerate() {
                    add_wide(&mut limbs[at + i + j..], u128::from(*x) * u128::from(*y), negative);
                }
            }
        }
        Self::from_signed(limbs, lowest)
    }

    /// Returns the number divided by an integer, rounded to odd (see [`WideFloat`]); 0 for
    /// divisor 0.
    pub fn divide_by(&self, by: u128) -> WideFloat {
        let at = |back: usize| self.limbs.len().checked_sub(back).map_or(0, |i| self.limbs[i]);
        let (top, next) = (u128::from(at(1)) << 64 | u128::from(at(2)), at(3));
        if top == 0 || by == 0 {
            return WideFloat::ZERO;
        }
        let shift = top.leading_zeros();
        let (filled, cut) = split_u128(u128::from(next) << shift);
        let top = top << shift | u128::from(filled);
        let more = cut != 0 || self.limbs.iter().rev().skip(3).any(|limb| *limb != 0);
        let exponent = self.exponent + count_bits(self.limbs.len()) - 128 - i64::from(shift);
        if by >> 64 == 0 {
            return WideFloat::new(self.negative, top / by, exponent, more || top % by != 0);
        }
        // The divisor has more than 64 bits: shift it left until bit 127 is set, and divide bit by
        // bit.
        let lift = by.leading_zeros();
        let by = by << lift;
        let (mut quotient, mut rest, mut carry) = (0, top, false);
        for _ in 0..66 {
            quotient <<= 1;
            if carry || rest >= by {
                rest = rest.wrapping_sub(by);
                quotient |= 1;
            }
            carry = rest >> 127 == 1;
            rest <<= 1;
        }
        let more = more || carry || rest != 0;
        WideFloat::new(self.negative, quotient, exponent + i64::from(lift) - 65, more)
    }

    /// Rounds the number to a [`WideFloat`].
    pub fn to_wide_float(&self) -> WideFloat {
        self.divide_by(1)
    }
}

struct ScaledProduct<'a> {
    a: &'a ScaledInteger,
    b: &'a ScaledInteger,
    minus: bool,
}

impl ScaledProduct<'_> {
    fn exponent(&self) -> i64 {
        self.a.exponent + self.b.exponent
    }
}

fn count_bits(limbs: usize) -> i64 {
    i64::try_from(limbs).map_or(i64::MAX, |limbs| limbs.saturating_mul(64))
}

/// Adds `value` to `limbs`, or subtracts it if `negative` is true. Does not branch on the sign,
/// because such a branch would often be mispredicted.
#[inline]
pub(super) fn add_limbs<const N: usize>(limbs: &mut [u64], value: [u64; N], negative: bool) {
    let Some((here, above)) = limbs.split_first_chunk_mut::<N>() else { return };
    let flip = 0u64.wrapping_sub(u64::from(negative));
    let mut carry = negative;
    for (limb, value) in here.iter_mut().zip(value) {
        (*limb, carry) = limb.carrying_add(value ^ flip, carry);
    }
    if carry != negative {
        propagate_carry(above, negative);
    }
}

#[inline]
pub(super) fn add_wide(limbs: &mut [u64], value: u128, negative: bool) {
    let (high, low) = split_u128(value);
    add_limbs(limbs, [low, high], negative);
}

#[cold]
fn propagate_carry(limbs: &mut [u64], negative: bool) {
    for limb in limbs {
        let (value, carry) = match negative {
            true => limb.overflowing_sub(1),
            false => limb.overflowing_add(1),
        };
        *limb = value;
        if !carry {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn make_integer(n: i128) -> ScaledInteger {
        let (high, low) = split_u128(n.cast_unsigned());
        ScaledInteger::from_signed(vec![low, high], 0)
    }

    fn draw_integer(rng: &mut ChaCha8Rng) -> i128 {
        rng.random::<i128>() >> rng.random_range(0..127)
    }

    #[test]
    fn integers_are_rounded_to_the_nearest_even() {
        let rng = &mut ChaCha8Rng::seed_from_u64(41);
        for _ in 0..2000 {
            let n = draw_integer(rng);
            assert_eq!(make_integer(n).to_wide_float().to_f64(), n as f64, "{n}");
        }
    }

    #[test]
    fn differences_of_products_are_whole() {
        let rng = &mut ChaCha8Rng::seed_from_u64(42);
        for _ in 0..2000 {
            let [a, b, c, d] = std::array::from_fn(|_| draw_integer(rng) >> 65);
            let found = ScaledInteger::compute_determinant(
                [&make_integer(a), &make_integer(b)],
                [&make_integer(c), &make_integer(d)],
            );
            assert_eq!(found.to_wide_float().to_f64(), (a * b - c * d) as f64, "{a} {b} {c} {d}");
            let same = ScaledInteger::compute_determinant(
                [&make_integer(a), &make_integer(b)],
                [&make_integer(b), &make_integer(a)],
            );
            assert!(same.is_zero());
        }
    }

    /// Checks both division algorithms: for divisors below 2^64 and for larger divisors.
    #[test]
    fn quotients_are_rounded_once() {
        let rng = &mut ChaCha8Rng::seed_from_u64(43);
        for _ in 0..2000 {
            let n = draw_integer(rng) >> 30;
            let by = u128::from(rng.random::<u64>() >> rng.random_range(0..60)).max(1);
            let small = make_integer(n).divide_by(by).to_f64();
            for shift in [64, 13] {
                // Dividend and divisor are multiplied by the same power of 2, so the quotient stays
                // the same.
                let scaled = ScaledInteger::compute_determinant(
                    [&make_integer(n), &make_integer(1 << shift)],
                    [&make_integer(0), &make_integer(0)],
                );
                assert_eq!(scaled.divide_by(by << shift).to_f64(), small, "{n} / {by}");
            }
            let exact = i128::try_from(by).unwrap();
            if n % exact == 0 {
                assert_eq!(small, (n / exact) as f64);
            } else {
                // Quotient and expected value are both rounded, so their last bits may differ.
                let error = (small - n as f64 / exact as f64).abs();
                assert!(error <= small.abs() * 2f64.powi(-51), "{n} / {by}");
            }
        }
    }

    #[test]
    fn roots_of_squares_are_floats() {
        let rng = &mut ChaCha8Rng::seed_from_u64(44);
        for _ in 0..2000 {
            let n = i128::from(rng.random::<u64>() >> rng.random_range(11..62));
            let root = ScaledInteger::compute_determinant(
                [&make_integer(n), &make_integer(n)],
                [&make_integer(0), &make_integer(0)],
            );
            assert_eq!(root.divide_by(1).root().to_f64(), n as f64);
        }
    }

    #[test]
    fn ends_of_the_range() {
        let of =
            |whole: u64, exponent| WideFloat::new(false, whole.into(), exponent, false).to_f64();
        assert_eq!(of(1, -1074), 5e-324);
        assert_eq!(of(1, -1075), 0.0);
        assert_eq!(of(3, -1076), 5e-324);
        assert_eq!(of(3, -1075), 1e-323);
        assert_eq!(of(1, -1076), 0.0);
        assert_eq!(of(1, -5000), 0.0);
        assert_eq!(of(1, 1023), 2f64.powi(1023));
        assert_eq!(of(1, 1024), f64::INFINITY);
        assert_eq!(of((1 << 53) - 1, 971), f64::MAX);
        assert_eq!(of((1 << 54) - 1, 970), f64::INFINITY);
        assert_eq!(of(1, 5000), f64::INFINITY);
        assert_eq!(of((1 << 53) - 1, -1075), f64::MIN_POSITIVE);
    }
}
