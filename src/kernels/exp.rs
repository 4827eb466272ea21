//! The exponential function of many numbers at once.

/// `e` to the power of each value, within one unit in the last place of [`f64::exp`]: 0 and infinity where
/// that is, NaN of NaN.
///
/// The power is a whole number of twos and a remainder of at most half of `ln 2` (Cody and Waite, "Software
/// Manual for the Elementary Functions", 1980), whose series is added up to the 13th power. No step
/// depends on the value, so that a register of values takes it at once.
pub(super) fn exp(values: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn wide(values: &mut [f64]) {
            each(values);
        }
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn widest(values: &mut [f64]) {
            each(values);
        }
        if super::bits::has_avx512() {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { widest(values) };
        }
        if super::bits::has_avx2() {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { wide(values) };
        }
    }
    each(values);
}

#[inline(always)]
fn each(values: &mut [f64]) {
    for value in values {
        *value = one(*value);
    }
}

#[inline(always)]
fn one(x: f64) -> f64 {
    /// Added to a number and taken off again, it leaves the nearest whole one; before that it has the whole
    /// number in its lowest bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    /// `ln 2` in two parts, the first so short that a whole number of it is exact.
    const LN_2: (f64, f64) = (6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10);
    // Beyond both ends there is nothing but 0 and infinity.
    let at = if x > 710.0 { 710.0 } else { x };
    let at = if at < -746.0 { -746.0 } else { at };
    let twos = (at * std::f64::consts::LOG2_E + ROUND) - ROUND;
    let r = at - twos * LN_2.0 - twos * LN_2.1;
    let mut sum = 1.0 / 6_227_020_800.0;
    sum = sum * r + 1.0 / 479_001_600.0;
    sum = sum * r + 1.0 / 39_916_800.0;
    sum = sum * r + 1.0 / 3_628_800.0;
    sum = sum * r + 1.0 / 362_880.0;
    sum = sum * r + 1.0 / 40_320.0;
    sum = sum * r + 1.0 / 5_040.0;
    sum = sum * r + 1.0 / 720.0;
    sum = sum * r + 1.0 / 120.0;
    sum = sum * r + 1.0 / 24.0;
    sum = sum * r + 1.0 / 6.0;
    sum = sum * r + 0.5;
    sum = sum * r * r + r + 1.0;
    // In two steps, as 2 to that power may be no number where the result is one.
    let half = (twos * 0.5 + ROUND) - ROUND;
    let found = sum * two_to(half) * two_to(twos - half);
    if x.is_nan() { x } else { found }
}

/// 2 to the power of a whole number from -1022 to 1023.
#[inline(always)]
fn two_to(n: f64) -> f64 {
    const ROUND: f64 = 6_755_399_441_055_744.0;
    f64::from_bits((n + ROUND).to_bits().wrapping_add(1023) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_near_as_the_functions_of_the_system() {
        let mut values: Vec<f64> = (-760_000..=720_000).map(|i| f64::from(i) / 1000.0).collect();
        values.extend((-2000..2000).map(|i| f64::from(i) * 1e-9));
        let special = [0.0, -0.0, f64::MIN, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        values.extend(special);
        values.extend([709.782_712_893_384, 709.782_712_893_385, -745.133_219_101_941_1, -745.2]);
        let check = |found: &[f64]| {
            for (x, found) in values.iter().zip(found) {
                let expected = x.exp();
                let same = found == &expected || (found.is_nan() && expected.is_nan());
                let apart = found.to_bits().abs_diff(expected.to_bits());
                assert!(same || apart <= 1, "exp({x}): {found}, not {expected}");
            }
        };
        let mut found = values.clone();
        exp(&mut found);
        check(&found);
        let plain: Vec<f64> = values.iter().map(|x| one(*x)).collect();
        check(&plain);
        assert_eq!(one(0.0), 1.0);
        assert_eq!(one(f64::NEG_INFINITY), 0.0);
        assert_eq!(one(f64::INFINITY), f64::INFINITY);
    }
}
