//! [`ExactSums`]: the exact sums of many groups of numbers, rounded only when read as floats.
//!
//! A sum is an integer in two's complement, whose unit is the smallest subnormal, 2^-1074, for
//! floats and 2^-2148 for products of floats. All groups store the same range of limbs: those that
//! a number so far has needed, and one above, so that 2^63 numbers do not overflow. The limbs of a
//! group are adjacent. Most columns need two to four limbs.

use std::collections::HashMap;

use super::real::{ScaledInteger, WideFloat, add_limbs, add_wide, split_u128};

/// Type of the numbers that an exact sum adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumTerms {
    /// 64-bit floats.
    Floats,
    /// Products of two 64-bit floats.
    Products,
    /// 64-bit integers.
    Signed,
    /// Unsigned 64-bit integers.
    Unsigned,
}

impl SumTerms {
    fn unit_exponent(self) -> i64 {
        match self {
            Self::Floats => -1074,
            Self::Products => -2148,
            Self::Signed | Self::Unsigned => 0,
        }
    }

    fn max_term_bits(self) -> usize {
        match self {
            Self::Floats => 53,
            Self::Products => 106,
            Self::Signed | Self::Unsigned => 64,
        }
    }
}

/// Exact sums of groups of numbers, one sum per group. Groups are numbered from 0.
#[derive(Debug)]
pub struct ExactSums {
    terms: SumTerms,
    groups: usize,
    /// Index of the lowest limb that is stored. All sums have zeros in the limbs below it.
    first: usize,
    width: usize,
    limbs: Vec<u64>,
    /// Terms whose lowest bit is in `low..low + span` fit `limbs`.
    low: u32,
    span: u32,
    /// Counts of NaN, positive and negative infinities of each group that has any.
    special: HashMap<usize, [i64; 3]>,
    /// Scratch memory of [`add_run`](Self::add_run): the sum of the significands of each exponent.
    by_exponent: Vec<i64>,
}

/// Maximum number of values that [`ExactSums::add_run`] adds at once: a sum of 2^10 53-bit integers
/// fits i64.
const MAX_RUN: usize = 1 << 10;
/// From this number of values on, [`ExactSums::add_run`] first adds up the significands of each
/// exponent.
const LONG_RUN: usize = 256;
/// Index that [`split_float`] returns for infinities and NaN.
const SPECIAL: u32 = 0x7fe;

/// Returns `(index, significand)` such that the absolute value of the float is
/// `significand * 2^(index - 1074)`. The index is [`SPECIAL`] for NaN and infinities.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "an exponent has 11 bits")]
fn split_float(value: f64) -> (u32, u64) {
    let bits = value.to_bits();
    let exponent = bits >> 52 & 0x7ff;
    let normal = u64::from(exponent != 0);
    ((exponent - normal) as u32, bits & ((1 << 52) - 1) | normal << 52)
}

impl ExactSums {
    /// Creates sums without groups; [`resize`](Self::resize) adds groups.
    pub fn new(terms: SumTerms) -> Self {
        Self {
            terms,
            groups: 0,
            first: 0,
            width: 0,
            limbs: Vec::new(),
            low: 0,
            span: 0,
            special: HashMap::new(),
            by_exponent: Vec::new(),
        }
    }

    /// Increases the number of groups to at least `groups`; the sums of new groups are 0.
    pub fn resize(&mut self, groups: usize) {
        if groups > self.groups {
            self.groups = groups;
            self.limbs.resize(groups * self.width, 0);
        }
    }

    /// Returns the size of the allocated memory in bytes.
    pub fn size(&self) -> usize {
        size_of_val(&*self.by_exponent)
            + self.limbs.capacity() * size_of::<u64>()
            + self.special.capacity() * size_of::<(usize, [i64; 3])>()
    }

    /// Drops the sums of the first `groups` groups. The indices of later groups decrease by
    /// `groups`.
    pub fn remove_groups(&mut self, groups: usize) {
        let groups = groups.min(self.groups);
        self.groups -= groups;
        self.limbs.drain(..groups * self.width);
        let special = std::mem::take(&mut self.special);
        let behind = |(group, counts): (usize, _)| Some((group.checked_sub(groups)?, counts));
        self.special = special.into_iter().filter_map(behind).collect();
    }

    /// Sets every sum to 0.
    pub fn clear(&mut self) {
        self.limbs.fill(0);
        self.special.clear();
    }

    /// Makes room for the bits `low..end` of a sum, and for one limb of carries above.
    #[cold]
    fn grow_window(&mut self, low: usize, end: usize) {
        // Always store limb 0 of sums of integers: `to_integer` and `add_integer` use it.
        let low = if self.terms.unit_exponent() == 0 { 0 } else { low };
        let (first, last) = match self.width {
            0 => (low / 64, (end - 1) / 64 + 2),
            w => ((low / 64).min(self.first), ((end - 1) / 64 + 2).max(self.first + w)),
        };
        let (width, below) = (last - first, self.first.saturating_sub(first));
        if self.width == 0 {
            self.limbs = vec![0; self.groups * width];
        } else if width > self.width {
            let mut limbs = Vec::with_capacity(self.groups * width);
            for sum in self.limbs.chunks_exact(self.width) {
                let sign = compute_sign_extension(sum);
                limbs.resize(limbs.len() + below, 0);
                limbs.extend_from_slice(sum);
                limbs.resize(limbs.len() + width - below - self.width, sign);
            }
            self.limbs = limbs;
        }
        (self.first, self.width) = (first, width);
        let low = 64 * first;
        let mut span = (64 * (width - 1) + 1).saturating_sub(self.terms.max_term_bits());
        if self.terms == SumTerms::Floats {
            span = span.min((SPECIAL as usize).saturating_sub(low));
        }
        self.low = u32::try_from(low).unwrap_or(u32::MAX);
        self.span = u32::try_from(span).unwrap_or(0);
    }

    /// Extends the limbs of all groups to hold a number whose lowest bit is at `position`.
    #[cold]
    fn grow_for(&mut self, position: u32) {
        let position = position as usize;
        self.grow_window(position, position + self.terms.max_term_bits());
    }

    /// Returns the limbs of a group, from the limb that contains bit `offset` to the highest. Bit 0
    /// is the lowest bit that is stored.
    #[inline]
    fn limbs_from(&mut self, group: usize, offset: u32) -> &mut [u64] {
        let start = group * self.width;
        let from = start + (offset / 64) as usize;
        self.limbs.get_mut(from..start + self.width).unwrap_or_default()
    }

    /// Adds a float to a group, which must exist (see [`resize`](Self::resize)).
    #[inline]
    pub fn add(&mut self, group: usize, value: f64) {
        let (position, digits) = split_float(value);
        let offset = position.wrapping_sub(self.low);
        if offset >= self.span {
            return self.add_outside(group, value);
        }
        let wide = u128::from(digits) << (offset % 64);
        add_wide(self.limbs_from(group, offset), wide, value.is_sign_negative());
    }

    #[cold]
    fn add_outside(&mut self, group: usize, value: f64) {
        if !value.is_finite() {
            self.count_special(group, value, 1);
        } else if value != 0.0 {
            self.grow_for(split_float(value).0);
            self.add(group, value);
        }
    }

    fn count_special(&mut self, group: usize, value: f64, by: i64) {
        let counts = self.special.entry(group).or_default();
        counts[if value.is_nan() { 0 } else { 1 + usize::from(value < 0.0) }] += by;
        if *counts == [0; 3] {
            self.special.remove(&group);
        }
    }

    /// Subtracts a float that was added to a group before.
    pub fn subtract_value(&mut self, group: usize, value: f64) {
        match value.is_finite() {
            true => self.add(group, -value),
            false => self.count_special(group, value, -1),
        }
    }

    /// Adds `x * y` to the sum of a group. Ignores the product if a factor is NaN or infinite;
    /// callers also keep the sums of the factors, and these sums record such factors.
    #[inline]
    pub fn add_product(&mut self, group: usize, x: f64, y: f64) {
        let ((p, a), (q, b)) = (split_float(x), split_float(y));
        let position = p + q;
        let offset = position.wrapping_sub(self.low);
        let wide = u128::from(a) * u128::from(b);
        if offset >= self.span || p == SPECIAL || q == SPECIAL {
            if wide != 0 && p != SPECIAL && q != SPECIAL {
                self.grow_for(position);
                self.add_product(group, x, y);
            }
            return;
        }
        let shift = offset % 64;
        let (_, top) = split_u128(wide >> 1 >> (127 - shift));
        let negative = x.is_sign_negative() != y.is_sign_negative();
        let (middle, low) = split_u128(wide << shift);
        add_limbs(self.limbs_from(group, offset), [low, middle, top], negative);
    }

    /// Adds a 64-bit integer, signed or unsigned, to the sum of one group.
    #[inline]
    pub fn add_integer(&mut self, group: usize, value: i128) {
        if self.span == 0 {
            self.grow_for(0);
        }
        add_wide(self.limbs_from(group, 0), value.unsigned_abs(), value < 0);
    }

    /// Adds floats to the sum of one group.
    pub fn add_run(&mut self, group: usize, values: &[f64]) {
        if values.len() < LONG_RUN {
            return values.iter().for_each(|v| self.add(group, *v));
        }
        let mut sums = std::mem::take(&mut self.by_exponent);
        sums.resize(1 << 11, 0);
        for run in values.chunks(MAX_RUN) {
            let mut special = false;
            for value in run {
                let (position, digits) = split_float(*value);
                special |= position == SPECIAL;
                let sign = value.to_bits().cast_signed() >> 63;
                // At most 2^10 significands of 53 bits are added here, so the sum fits 64 bits.
                if let Some(sum) = sums.get_mut(position as usize) {
                    *sum += (digits.cast_signed() ^ sign) - sign;
                }
            }
            if special {
                sums[SPECIAL as usize] = 0;
                let special = run.iter().filter(|v| !v.is_finite());
                special.for_each(|v| self.count_special(group, *v, 1));
            }
            for (block, sums) in sums.chunks_exact_mut(16).enumerate() {
                if sums.iter().fold(0, |any, sum| any | *sum) == 0 {
                    continue;
                }
                for (i, sum) in sums.iter_mut().enumerate().filter(|(_, sum)| **sum != 0) {
                    self.add_shifted(group, 16 * block + i, std::mem::take(sum));
                }
            }
        }
        self.by_exponent = sums;
    }

    /// Adds `value * 2^(position + unit)`, where `unit` is [`SumTerms::unit_exponent`].
    fn add_shifted(&mut self, group: usize, position: usize, value: i64) {
        let end = position + 64;
        if self.width == 0 || position < 64 * self.first || end > 64 * (self.first + self.width - 1)
        {
            self.grow_window(position, end);
        }
        let offset = u32::try_from(position - 64 * self.first).unwrap_or(0);
        let wide = u128::from(value.unsigned_abs()) << (offset % 64);
        add_wide(self.limbs_from(group, offset), wide, value < 0);
    }

    /// Returns the sum, NaN or an infinity, of a group that contains NaN or infinities. Returns
    /// `None` if all numbers of the group are finite.
    pub fn find_special(&self, group: usize) -> Option<f64> {
        match self.special.get(&group)? {
            [0, _, 0] => Some(f64::INFINITY),
            [0, 0, _] => Some(f64::NEG_INFINITY),
            _ => Some(f64::NAN),
        }
    }

    fn group_limbs(&self, group: usize) -> &[u64] {
        self.limbs.get(group * self.width..(group + 1) * self.width).unwrap_or_default()
    }

    /// Returns the exact sum of the finite numbers of a group; ignores NaN and infinities.
    pub fn to_scaled_integer(&self, group: usize) -> ScaledInteger {
        let exponent = i64::try_from(64 * self.first).unwrap_or(0) + self.terms.unit_exponent();
        ScaledInteger::from_signed(self.group_limbs(group).to_vec(), exponent)
    }

    /// Returns the float nearest to the sum of a group.
    pub fn to_f64(&self, group: usize) -> f64 {
        self.find_special(group)
            .unwrap_or_else(|| self.to_scaled_integer(group).to_wide_float().to_f64())
    }

    /// Returns the float nearest to the sum of a group divided by `count`.
    pub fn mean(&self, group: usize, count: u64) -> f64 {
        self.find_special(group)
            .unwrap_or_else(|| self.to_scaled_integer(group).divide_by(count.into()).to_f64())
    }

    /// Returns the sum of a group of integers; exact for up to 2^63 integers of 64 bits.
    pub fn to_integer(&self, group: usize) -> i128 {
        match self.group_limbs(group) {
            [low, high, ..] => (u128::from(*high) << 64 | u128::from(*low)).cast_signed(),
            _ => 0,
        }
    }

    /// Appends the sum of a group to `out`, serialized as 64-bit words in the shortest of the forms
    /// that the module `exact_sums` describes.
    pub fn write_words(&self, group: usize, out: &mut Vec<i64>) {
        if let Some(special) = self.find_special(group) {
            return out.push(special.to_bits().cast_signed());
        }
        let sum = self.group_limbs(group);
        let Some(low) = sum.iter().position(|limb| *limb != 0) else { return };
        let one = match self.terms {
            SumTerms::Floats => to_exact_float(&self.to_scaled_integer(group).to_wide_float()),
            SumTerms::Products => None,
            SumTerms::Signed => i64::try_from(self.to_integer(group)).ok(),
            SumTerms::Unsigned => u64::try_from(self.to_integer(group)).ok().map(u64::cast_signed),
        };
        if let Some(one) = one {
            return out.push(one);
        }
        let sign = compute_sign_extension(sum);
        // High limbs that only repeat the sign of the limb below are not written.
        let mut end = sum.len();
        while end > low + 1 && sum[end - 1] == sign && (sum[end - 2] ^ sign) >> 63 == 0 {
            end -= 1;
        }
        out.push(i64::try_from(self.first + low).unwrap_or(0));
        out.extend(sum[low..end].iter().map(|limb| limb.cast_signed()));
    }

    /// Adds `words`, a sum that [`write_words`](Self::write_words) wrote, to the sum of a group.
    pub fn add_words(&mut self, group: usize, words: &[i64]) {
        match (words, self.terms) {
            ([], _) => {}
            ([word], SumTerms::Floats) => self.add(group, f64::from_bits(word.cast_unsigned())),
            ([_], SumTerms::Products) => {}
            ([word], SumTerms::Signed) => self.add_integer(group, i128::from(*word)),
            ([word], SumTerms::Unsigned) => {
                self.add_integer(group, i128::from(word.cast_unsigned()));
            }
            ([first, limbs @ ..], _) => {
                // Limit the indices of limbs, so that invalid words do not allocate much memory. No
                // product of floats needs higher limbs.
                let first = usize::try_from(*first).unwrap_or(0).min(68);
                let (low, end) = (64 * first, 64 * (first + limbs.len().min(70)));
                if self.width == 0
                    || first < self.first
                    || first + limbs.len() > self.first + self.width - 1
                {
                    self.grow_window(low, end);
                }
                let from = u32::try_from(low - 64 * self.first).unwrap_or(0);
                let sign = limbs.last().map_or(0, |top| (*top >> 63).cast_unsigned());
                let words = limbs.iter().map(|limb| limb.cast_unsigned());
                let words = words.chain(std::iter::repeat(sign));
                let mut carry = false;
                for (to, word) in self.limbs_from(group, from).iter_mut().zip(words) {
                    let (sum, a) = to.overflowing_add(word);
                    let (sum, b) = sum.overflowing_add(u64::from(carry));
                    (*to, carry) = (sum, a | b);
                }
            }
        }
    }
}

/// Returns the bits of the float that equals `number`; `None` if no float does.
fn to_exact_float(number: &WideFloat) -> Option<i64> {
    let (value, exact) = number.round_to_float();
    exact.then(|| value.to_bits().cast_signed())
}

/// Returns the value of every limb above the highest limb of `sum`: all bits set for a negative
/// sum, else 0.
fn compute_sign_extension(sum: &[u64]) -> u64 {
    sum.last().map_or(0, |top| (top.cast_signed() >> 63).cast_unsigned())
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Draws a finite float. `kind` selects whether the floats have all possible exponents, few or
    /// one.
    fn draw_float(rng: &mut ChaCha8Rng, kind: u32) -> f64 {
        match kind {
            0 => Some(f64::from_bits(rng.random())).filter(|v| v.is_finite()).unwrap_or(1.5),
            1 => f64::from(rng.random_range(-99..99i8)) * 5e-324,
            2 => rng.random_range(-1e3..1e3),
            _ => 1e9 + rng.random_range(0.0..1e-3),
        }
    }

    fn collect_words(sums: &ExactSums, group: usize) -> Vec<i64> {
        let mut out = Vec::new();
        sums.write_words(group, &mut out);
        out
    }

    #[test]
    fn what_is_taken_away_leaves_no_trace() {
        let rng = &mut ChaCha8Rng::seed_from_u64(31);
        for trial in 0..200 {
            let (mut all, mut kept) =
                (ExactSums::new(SumTerms::Floats), ExactSums::new(SumTerms::Floats));
            let (mut products, mut kept_products) =
                (ExactSums::new(SumTerms::Products), ExactSums::new(SumTerms::Products));
            for sums in [&mut all, &mut kept, &mut products, &mut kept_products] {
                sums.resize(3);
            }
            for _ in 0..rng.random_range(0..30) {
                let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0];
                let x = match rng.random_range(0..12usize) {
                    at @ 0..4 => special[at],
                    _ => draw_float(rng, trial % 4),
                };
                let (y, group) = (draw_float(rng, trial % 4), rng.random_range(0..3));
                all.add(group, x);
                products.add_product(group, x, y);
                if rng.random_range(0..2) == 0 {
                    all.subtract_value(group, x);
                    products.add_product(group, -x, y);
                } else {
                    kept.add(group, x);
                    kept_products.add_product(group, x, y);
                }
            }
            for group in 0..3 {
                assert_eq!(collect_words(&all, group), collect_words(&kept, group));
                assert_eq!(collect_words(&products, group), collect_words(&kept_products, group));
                assert_eq!(all.to_f64(group).to_bits(), kept.to_f64(group).to_bits());
            }
        }
    }

    #[test]
    fn words_without_low_limbs_are_integers() {
        for (terms, sign) in
            [(SumTerms::Signed, 1), (SumTerms::Signed, -1), (SumTerms::Unsigned, 1)]
        {
            let mut part = ExactSums::new(terms);
            part.resize(1);
            for _ in 0..4 {
                part.add_integer(0, sign << 62);
            }
            let mut sums = ExactSums::new(terms);
            sums.resize(1);
            sums.add_words(0, &collect_words(&part, 0));
            assert_eq!(sums.to_integer(0), sign << 64);
            sums.add_integer(0, 5);
            assert_eq!(sums.to_integer(0), (sign << 64) + 5);
            assert_eq!(sums.to_f64(0), 2f64.powi(64) * sign as f64);
        }
    }

    #[test]
    fn runs_groups_and_words_are_one_sum() {
        let rng = &mut ChaCha8Rng::seed_from_u64(32);
        for trial in 0..40u32 {
            let n = [0, 5, 300, 3000][trial as usize % 4];
            let mut values: Vec<f64> = (0..n).map(|_| draw_float(rng, trial / 4 % 4)).collect();
            if trial % 7 == 3 {
                values.push(f64::INFINITY);
            }
            let mut run = ExactSums::new(SumTerms::Floats);
            run.resize(2);
            run.add_run(1, &values);
            let mut each = ExactSums::new(SumTerms::Floats);
            let mut merged = ExactSums::new(SumTerms::Floats);
            merged.resize(1);
            each.resize(7);
            for (i, value) in values.iter().enumerate() {
                each.add(i % 7, *value);
            }
            for group in 0..7 {
                merged.add_words(0, &collect_words(&each, group));
            }
            assert_eq!(collect_words(&run, 1), collect_words(&merged, 0));
            assert!(collect_words(&run, 0).is_empty());
            let behind: Vec<_> = (3..7).map(|group| collect_words(&each, group)).collect();
            each.remove_groups(3);
            let moved: Vec<_> = (0..4).map(|group| collect_words(&each, group)).collect();
            assert_eq!(behind, moved);
            each.resize(6);
            assert!(collect_words(&each, 5).is_empty());
        }
    }

    #[test]
    fn products_are_what_integers_say() {
        let rng = &mut ChaCha8Rng::seed_from_u64(33);
        for _ in 0..500 {
            let mut sums = ExactSums::new(SumTerms::Products);
            sums.resize(1);
            let mut expected = 0i128;
            let scale = 2f64.powi(rng.random_range(-40..40));
            for _ in 0..rng.random_range(1..20) {
                let mut integer = || rng.random::<i64>() >> rng.random_range(11..60);
                let (x, y) = (integer(), integer());
                expected += i128::from(x) * i128::from(y);
                sums.add_product(0, x as f64 * scale, y as f64 / scale);
            }
            assert_eq!(sums.to_f64(0), expected as f64);
            let n = rng.random_range(1..99u32);
            let divided =
                sums.to_scaled_integer(0).divide_by(u128::from(n) << rng.random_range(0..100));
            assert_eq!(divided.round_to_float().0 == 0.0, expected == 0);
        }
    }

    #[test]
    fn bytes_in_use_are_few() {
        let mut sums = ExactSums::new(SumTerms::Floats);
        sums.resize(1000);
        (0..1000).for_each(|group| sums.add(group, 0.1 * group as f64));
        assert!(sums.size() <= 1000 * 32, "{}", sums.size());
        assert_eq!(sums.to_f64(7), 0.1 * 7.0);
    }
}
