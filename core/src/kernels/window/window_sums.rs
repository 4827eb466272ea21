//! Exact sums and means of windows, computed from running sums of integers. The floats of a list
//! are converted to integers: multiples of the lowest bit that is set in any of the floats. The
//! sums fit 128 bits unless the magnitudes of the floats differ by a factor of more than about
//! 2^70. In that case, and for NaN or infinities, each window is summed alone.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, UInt64Array};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};

use super::list_windows::ListWindows;
use crate::array::nulls::find_validity;
use crate::error::{Error, Result};
use crate::kernels::native::reinterpret_values;
use crate::kernels::reduce::exact_sums::{ExactSums, SumTerms};
use crate::kernels::reduce::rounded::round_mean;

pub(super) struct WindowSums<'a> {
    windows: &'a ListWindows,
    leaves: &'a ArrayRef,
    valid: Option<NullBuffer>,
}

impl<'a> WindowSums<'a> {
    pub(super) fn new(windows: &'a ListWindows, leaves: &'a ArrayRef) -> Self {
        Self { windows, leaves, valid: find_validity(leaves) }
    }

    pub(super) fn compute_window_sums(&self, out: &DataType) -> Result<ArrayRef> {
        let nulls = self.windows.nulls.clone();
        if out.is_floating() {
            let sums = self.compute_float_sums()?;
            return Ok(Arc::new(Float64Array::try_new(sums.into(), nulls)?));
        }
        // Use 0 for a null window: its result is null, so a sum beyond 64 bits is not an error.
        let known = |(i, sum): (usize, i128)| (i, if self.windows.is_null(i) { 0 } else { sum });
        let sums = self.compute_integer_sums()?.into_iter().enumerate().map(known);
        let too_large = |i: usize| Error::Overflow(format!("the sum of window {i}"));
        if out.is_unsigned_integer() {
            let sums = sums.map(|(i, n)| u64::try_from(n).map_err(|_| too_large(i)));
            let sums = sums.collect::<Result<Vec<_>>>()?;
            return Ok(Arc::new(UInt64Array::try_new(sums.into(), nulls)?));
        }
        let sums = sums.map(|(i, n)| i64::try_from(n).map_err(|_| too_large(i)));
        let sums: ArrayRef =
            Arc::new(Int64Array::try_new(sums.collect::<Result<Vec<_>>>()?.into(), nulls)?);
        match out {
            DataType::Duration(_) => reinterpret_values(&sums, out),
            _ => Ok(sums),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a mean is a float")]
    pub(super) fn compute_window_means(&self, out: &DataType) -> Result<ArrayRef> {
        if let DataType::Duration(_) = out {
            return self.compute_duration_means(out);
        }
        let sums = match self.leaves.data_type().is_floating() && out.is_floating() {
            true => self.compute_float_sums()?,
            false => self.compute_integer_sums()?.into_iter().map(|n| n as f64).collect(),
        };
        let counts = self.windows.count_values(self.valid.as_ref());
        let mut means = Vec::with_capacity(sums.len());
        for (window, (sum, n)) in sums.iter().zip(&counts).enumerate() {
            let is_known = *n > 0 && !self.windows.is_null(window);
            means.push(match sum.is_infinite() {
                _ if !is_known => None,
                true => Some(self.compute_exact_mean(window, *n)?),
                false => Some(*sum / *n as f64),
            });
        }
        Ok(Arc::new(Float64Array::from(means)))
    }

    fn compute_duration_means(&self, out: &DataType) -> Result<ArrayRef> {
        let counts = self.windows.count_values(self.valid.as_ref());
        let sums = self.compute_integer_sums()?.into_iter().zip(counts).enumerate();
        let means = sums.map(|(window, (sum, n))| match self.windows.is_null(window) {
            true => None,
            false => round_mean(sum, n as u64),
        });
        let means: ArrayRef = Arc::new(means.collect::<Int64Array>());
        reinterpret_values(&means, out)
    }

    /// Computes the mean of a window whose `count` valid floats have a sum that is too large for a
    /// float.
    fn compute_exact_mean(&self, window: usize, count: usize) -> Result<f64> {
        let range = self.windows.ranges[window].clone();
        let wide = cast(&self.leaves.slice(range.start, range.len()), &DataType::Float64)?;
        let mut exact = ExactSums::new(SumTerms::Floats);
        exact.resize(1);
        wide.as_primitive::<Float64Type>().iter().flatten().for_each(|v| exact.add(0, v));
        Ok(exact.mean(0, count as u64))
    }

    fn compute_integer_sums(&self) -> Result<Vec<i128>> {
        if self.leaves.data_type().is_unsigned_integer() {
            let wide = cast(self.leaves, &DataType::UInt64)?;
            let flat = wide.as_primitive::<UInt64Type>().values();
            return Ok(self.add_integers(|i| i128::from(flat[i])));
        }
        let wide = match self.leaves.data_type() {
            DataType::Duration(_) => reinterpret_values(self.leaves, &DataType::Int64)?,
            _ => cast(self.leaves, &DataType::Int64)?,
        };
        let flat = wide.as_primitive::<Int64Type>().values();
        Ok(self.add_integers(|i| i128::from(flat[i])))
    }

    fn add_integers(&self, value: impl Fn(usize) -> i128) -> Vec<i128> {
        let mut sums = Vec::with_capacity(self.windows.ranges.len());
        let mut running = Vec::new();
        for (leaves, of_list) in &self.windows.lists {
            self.add_running(&mut running, leaves.clone(), &value);
            let at = |leaf: usize| running.get(leaf - leaves.start).copied().unwrap_or_default();
            let ranges = self.windows.ranges[of_list.clone()].iter();
            sums.extend(ranges.map(|r| at(r.end) - at(r.start)));
        }
        sums
    }

    /// Replaces `running` with the sum before each leaf, and the total. Null leaves count as 0.
    fn add_running(
        &self,
        running: &mut Vec<i128>,
        leaves: Range<usize>,
        value: impl Fn(usize) -> i128,
    ) {
        running.clear();
        let mut sum = 0;
        running.push(sum);
        for leaf in leaves {
            if self.is_valid(leaf) {
                sum += value(leaf);
            }
            running.push(sum);
        }
    }

    #[inline]
    fn is_valid(&self, leaf: usize) -> bool {
        self.valid.as_ref().is_none_or(|n| n.is_valid(leaf))
    }

    fn compute_float_sums(&self) -> Result<Vec<f64>> {
        let wide = cast(self.leaves, &DataType::Float64)?;
        let flat: &[f64] = wide.as_primitive::<Float64Type>().values();
        let mut sums = Vec::with_capacity(self.windows.ranges.len());
        let mut running = Vec::new();
        let mut exact = ExactSums::new(SumTerms::Floats);
        exact.resize(1);
        for (leaves, of_list) in &self.windows.lists {
            let ranges = &self.windows.ranges[of_list.clone()];
            let valid = leaves.clone().filter(|leaf| self.is_valid(*leaf)).map(|leaf| flat[leaf]);
            if let Some(unit) = FixedUnit::find_common_unit(valid) {
                self.add_running(&mut running, leaves.clone(), |leaf| unit.to_integer(flat[leaf]));
                let at =
                    |leaf: usize| running.get(leaf - leaves.start).copied().unwrap_or_default();
                sums.extend(ranges.iter().map(|r| unit.to_float(at(r.end) - at(r.start))));
                continue;
            }
            for range in ranges {
                let valid = range.clone().filter(|leaf| self.is_valid(*leaf));
                valid.for_each(|leaf| exact.add(0, flat[leaf]));
                sums.push(exact.to_f64(0));
                exact.clear();
            }
        }
        Ok(sums)
    }
}

/// A power of two that divides all floats of a list, so that they are integers in this unit.
#[derive(Clone, Copy, Debug)]
struct FixedUnit {
    exponent: i32,
}

/// Maximum number of bits of a running sum, without the sign.
const SUM_BITS: i32 = 126;

impl FixedUnit {
    /// Returns the lowest bit that is set in any of the values, as a unit. Returns `None` if a
    /// value is not finite or a running sum might exceed [`SUM_BITS`].
    fn find_common_unit(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (mut low, mut high) = (i32::MAX, i32::MIN);
        let mut count = 0usize;
        for value in values {
            if !value.is_finite() {
                return None;
            }
            count += 1;
            let (exponent, digits) = split_float(value);
            if digits != 0 {
                low = low.min(exponent + digits.trailing_zeros().cast_signed());
                high = high.max(exponent + 64 - digits.leading_zeros().cast_signed());
            }
        }
        if high == i32::MIN {
            return Some(Self { exponent: 0 });
        }
        let carry = usize::BITS.cast_signed() - count.leading_zeros().cast_signed();
        (high - low + carry <= SUM_BITS).then_some(Self { exponent: low })
    }

    #[inline]
    fn to_integer(self, value: f64) -> i128 {
        let (exponent, digits) = split_float(value);
        if digits == 0 {
            return 0;
        }
        let shift = exponent - self.exponent;
        let digits = i128::from(digits);
        let whole = if shift >= 0 { digits << shift } else { digits >> -shift };
        if value.is_sign_negative() { -whole } else { whole }
    }

    #[expect(clippy::cast_precision_loss, reason = "the sum is rounded once, here")]
    fn to_float(self, sum: i128) -> f64 {
        // Convert through `i64` if possible, which takes one instruction. The product with a power
        // of two is exact, also if it is subnormal, because the sum then has at most 53 bits.
        let rounded = i64::try_from(sum).map_or_else(|_| sum as f64, |sum| sum as f64);
        rounded * compute_power_of_two(self.exponent)
    }
}

/// Returns `(exponent, significand)`: the absolute value of the finite float is
/// `significand * 2^exponent`.
#[inline]
fn split_float(value: f64) -> (i32, u64) {
    let bits = value.to_bits();
    let biased = i32::try_from(bits >> 52 & 0x7ff).unwrap_or(0);
    let digits = bits & ((1 << 52) - 1);
    match biased {
        0 => (-1074, digits),
        _ => (biased - 1075, digits | 1 << 52),
    }
}

/// Returns `2^exponent`. The exponent is from -1074 to 1023.
fn compute_power_of_two(exponent: i32) -> f64 {
    let bits = match u64::try_from(exponent + 1023) {
        Ok(biased) if biased > 0 => biased << 52,
        _ => 1u64 << (exponent + 1074).clamp(0, 52),
    };
    f64::from_bits(bits)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn integers_add_to_the_exact_sum() {
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        for _ in 0..2000 {
            let exponent = rng.random_range(-1074..960);
            let values: Vec<f64> = (0..rng.random_range(1..20))
                .map(|_| {
                    let scale = compute_power_of_two(exponent + rng.random_range(0..50));
                    rng.random_range(-9.0..9.0f64) * scale
                })
                .collect();
            let Some(unit) = FixedUnit::find_common_unit(values.iter().copied()) else { continue };
            let sum: i128 = values.iter().map(|v| unit.to_integer(*v)).sum();
            let mut exact = ExactSums::new(SumTerms::Floats);
            exact.resize(1);
            values.iter().for_each(|v| exact.add(0, *v));
            assert_eq!(
                unit.to_float(sum).to_bits(),
                (exact.to_f64(0) + 0.0).to_bits(),
                "{values:?}"
            );
        }
        assert!(FixedUnit::find_common_unit([1e30, 1e-30].into_iter()).is_none());
        assert!(FixedUnit::find_common_unit([f64::NAN].into_iter()).is_none());
        assert_eq!(compute_power_of_two(-1074), 5e-324);
        assert_eq!(compute_power_of_two(3), 8.0);
    }
}
