use super::simd::{for_avx2, return_avx512};

/// Replaces `x` with `e^x`, within one unit in the last place of [`f64::exp`]; exact for results of
/// 0, infinity and NaN. Splits the argument into a multiple of `ln 2` and a remainder of at most
/// half of `ln 2` (Cody and Waite, "Software Manual for the Elementary Functions", 1980), whose
/// exponential is a Taylor series of degree 13. No step branches on values, so the loop vectorizes.
pub(super) fn compute_exp(values: &mut [f64]) {
    return_avx512!(if true, token: fn[](values: &mut [f64]) = apply_exp(values));
    for_avx2!(fn[](values: &mut [f64]) = apply_exp(values));
}

#[inline(always)]
fn apply_exp(values: &mut [f64]) {
    for value in values {
        *value = compute_one_exp(*value);
    }
}

#[inline(always)]
fn compute_one_exp(x: f64) -> f64 {
    /// 1.5 * 2^52. Adding this number rounds a float to an integer in the lowest bits of the sum.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    /// `ln 2` as a sum of two numbers. The first has so few bits that its product with each
    /// integer that occurs here is exact.
    const LN_2: (f64, f64) = (6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10);
    // Limit the argument to -746 to 710, because the result is 0 below this range and infinity
    // above it.
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
    // Multiply `sum` by `2^twos` in two steps: the power may overflow or underflow, although the
    // result fits.
    let half = (twos * 0.5 + ROUND) - ROUND;
    let found = sum * compute_power_of_two(half) * compute_power_of_two(twos - half);
    if x.is_nan() { x } else { found }
}

/// Returns 2 to the power of an integer from -1022 to 1023.
#[inline(always)]
fn compute_power_of_two(n: f64) -> f64 {
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
        compute_exp(&mut found);
        check(&found);
        let plain: Vec<f64> = values.iter().map(|x| compute_one_exp(*x)).collect();
        check(&plain);
        assert_eq!(compute_one_exp(0.0), 1.0);
        assert_eq!(compute_one_exp(f64::NEG_INFINITY), 0.0);
        assert_eq!(compute_one_exp(f64::INFINITY), f64::INFINITY);
    }
}
