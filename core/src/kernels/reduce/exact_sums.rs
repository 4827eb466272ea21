//! Sums that are exact until they are read: the result does not depend on the order and grouping of
//! additions, and only the final sum must fit its type.
//!
//! [`ExactSums`] holds sums as integers of many 64-bit limbs. The unit of floats is the smallest
//! subnormal, 2^-1074. A serialized sum is a list of 64-bit words: none for 0; one for a float or a
//! 64-bit integer (its bits); else the index of the lowest nonzero limb, then all limbs up to the
//! highest, which has the sign. Most sums take 3 to 4 words, the longest 34.

mod real;
mod sums;

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, UInt64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};

use super::rounded::round_mean;
use super::{ReduceTarget, Reduction};
use crate::array::nulls::replace_validity;
use crate::array::{Layout, ListAxis, Offsets, RaggedArray};
use crate::error::{Error, Result};
pub use real::ScaledInteger;
pub use sums::{ExactSums, SumTerms};

/// How leaves are added exactly: as floats, or as signed or unsigned integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExactSumKind {
    /// Floats of any width, added as 64-bit floats.
    Float,
    /// Signed integers, booleans and durations, added as 64-bit integers.
    Signed,
    /// Unsigned integers, added as 64-bit integers.
    Unsigned,
}

/// The number to which [`ExactSumKind::read_sums`] converts a sum.
enum SumValue {
    Float(f64),
    Integer(i128),
}

/// Returns the axis of the words of serialized sums, and the axes above it. Returns an error if the
/// sums are not lists.
fn split_words(sums: &RaggedArray) -> Result<(&ListAxis, &[ListAxis])> {
    sums.axes().split_last().ok_or_else(|| {
        Error::invalid(format!(
            "the serialized sums are of type {}, but each must be a list of 64-bit words; give List(Int64)",
            sums.leaves().data_type()
        ))
    })
}

impl ExactSumKind {
    /// Returns the kind of sum for leaves of type `leaf`.
    pub fn of(leaf: &DataType) -> Self {
        match leaf {
            t if t.is_floating() => Self::Float,
            t if t.is_unsigned_integer() => Self::Unsigned,
            _ => Self::Signed,
        }
    }

    /// Returns the data type of a serialized sum, a list of 64-bit words.
    pub fn make_sum_type() -> DataType {
        DataType::new_list(DataType::Int64, true)
    }

    fn new_sums(self) -> ExactSums {
        let mut sums = ExactSums::new(match self {
            Self::Float => SumTerms::Floats,
            Self::Signed => SumTerms::Signed,
            Self::Unsigned => SumTerms::Unsigned,
        });
        sums.resize(1);
        sums
    }

    /// Converts each leaf to a serialized sum of exactly one word, although a sum of 0 could have
    /// none. A null leaf becomes 0.
    pub fn serialize_leaves(self, array: &RaggedArray) -> Result<RaggedArray> {
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
                let leaves = super::numbers::to_summable(leaves)?;
                let leaves = cast(&leaves, &DataType::Int64)?;
                leaves.as_primitive::<Int64Type>().iter().map(|v| v.unwrap_or(0)).collect()
            }
        };
        let mut axes = array.axes().to_vec();
        axes.push(Layout::Uniform { size: 1, lists: words.len() }.into());
        RaggedArray::try_new(array.len(), axes, Arc::new(Int64Array::from(words)))
    }

    /// Adds up serialized sums along axis 1, like [`reduce`](super::reduce): if the elements of
    /// axis 1 are lists of sums, adds the sums at the same index of these lists. Each innermost
    /// list has the words of one sum.
    ///
    /// # Errors
    /// If the sums are not lists.
    pub fn add_along_lists(self, sums: &RaggedArray) -> Result<RaggedArray> {
        let (words, outer) = split_words(sums)?;
        let layout = words.layout();
        let ids: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..layout.lists() as u64));
        let array = RaggedArray::try_new(sums.len(), outer.to_vec(), ids)?;
        let target = ReduceTarget::new(&array, Reduction::Size, Some(1))?;
        let gathered = target.task.groups.gather_leaves(target.leaves())?;
        let ids = gathered.leaves.as_primitive::<UInt64Type>().values();
        let flat = sums.leaves().as_primitive::<Int64Type>().values();
        let groups = gathered.lists.layout();
        let (mut out, mut lengths) = (Vec::new(), Vec::with_capacity(groups.lists()));
        let mut scratch = self.new_sums();
        for group in 0..groups.lists() {
            let before = out.len();
            let words = |id: &u64| {
                let list = usize::try_from(*id).unwrap_or(usize::MAX);
                &flat[layout.range(list)]
            };
            match &ids[groups.range(group)] {
                [one] => out.extend_from_slice(words(one)),
                many => {
                    many.iter().for_each(|id| scratch.add_words(0, words(id)));
                    scratch.write_words(0, &mut out);
                    scratch.clear();
                }
            }
            lengths.push(out.len() - before);
        }
        let level = ListAxis::try_new(Offsets::from_lengths(lengths)?, None)?;
        target.build_result(level, Arc::new(Int64Array::from(out)))
    }

    /// Converts serialized sums to numbers of type `Float64`, `Int64` or `UInt64`, one per sum.
    ///
    /// # Errors
    /// If the sums are not lists, or an integer sum does not fit 64 bits.
    pub fn to_numbers(self, sums: &RaggedArray) -> Result<RaggedArray> {
        self.read_sums(sums, |sum| match self {
            Self::Float => SumValue::Float(sum.to_f64(0)),
            _ => SumValue::Integer(sum.to_integer(0)),
        })
    }

    /// Divides each serialized sum by its count in `counts`, and rounds the quotient to a
    /// `Float64`; null if the count is 0. Returns an error if the sums are not lists.
    pub fn means(self, sums: &RaggedArray, counts: &ArrayRef) -> Result<RaggedArray> {
        let counts = counts.as_primitive::<UInt64Type>().values();
        let mut next = counts.iter();
        let means = self.read_sums(sums, |sum| {
            SumValue::Float(sum.mean(0, next.next().copied().unwrap_or(0)))
        })?;
        let known = counts.iter().map(|n| *n > 0).collect::<arrow::buffer::NullBuffer>();
        let leaves = means.leaves().as_primitive::<Float64Type>().values().clone();
        means.with_leaves(Arc::new(Float64Array::try_new(leaves, Some(known))?))
    }

    /// Divides each serialized sum of integers by its count in `counts`, and rounds to an integer,
    /// halves away from zero. A count of 0 gives null. Returns an error if the sums are not lists.
    pub fn compute_rounded_means(
        self,
        sums: &RaggedArray,
        counts: &ArrayRef,
    ) -> Result<RaggedArray> {
        let counts = counts.as_primitive::<UInt64Type>().values();
        let mut next = counts.iter();
        let means = self.read_sums(sums, |sum| {
            let count = next.next().copied().unwrap_or(0);
            SumValue::Integer(round_mean(sum.to_integer(0), count).unwrap_or_default().into())
        })?;
        let known = counts.iter().map(|n| *n > 0).collect::<arrow::buffer::NullBuffer>();
        // If there are no sums, `read_sums` returns an empty array of floats, so cast to integers.
        let leaves = cast(means.leaves(), &DataType::Int64)?;
        means.with_leaves(replace_validity(&leaves, Some(known))?)
    }

    /// Converts serialized sums to numbers by `to_number`, which returns only floats or only
    /// integers. Returns an error for sums that are not lists, or an integer that does not fit 64
    /// bits.
    fn read_sums(
        self,
        sums: &RaggedArray,
        mut to_number: impl FnMut(&ExactSums) -> SumValue,
    ) -> Result<RaggedArray> {
        let (words, outer) = split_words(sums)?;
        let flat = sums.leaves().as_primitive::<Int64Type>().values();
        let layout = words.layout();
        let (mut floats, mut integers) = (Vec::new(), Vec::new());
        let mut scratch = self.new_sums();
        for list in 0..layout.lists() {
            scratch.add_words(0, &flat[layout.range(list)]);
            match to_number(&scratch) {
                SumValue::Float(float) => floats.push(float),
                SumValue::Integer(integer) => integers.push(integer),
            }
            scratch.clear();
        }
        let too_large = |i: usize| Error::Overflow(format!("element {i} of the sums along axis 1"));
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

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn compute_words(kind: ExactSumKind, values: &[i64]) -> Vec<i64> {
        let mut sum = kind.new_sums();
        values.iter().for_each(|v| sum.add_words(0, &[*v]));
        let mut out = Vec::new();
        sum.write_words(0, &mut out);
        out
    }

    fn read_words(kind: ExactSumKind, words: &[i64]) -> ExactSums {
        let mut sum = kind.new_sums();
        sum.add_words(0, words);
        sum
    }

    fn sum_floats(values: &[f64]) -> f64 {
        let values: Vec<i64> = values.iter().map(|v| v.to_bits().cast_signed()).collect();
        read_words(ExactSumKind::Float, &compute_words(ExactSumKind::Float, &values)).to_f64(0)
    }

    #[test]
    fn sums_are_the_nearest_floats() {
        assert_eq!(sum_floats(&[]).to_bits(), 0);
        assert_eq!(sum_floats(&[-0.0, -0.0]).to_bits(), 0);
        assert_eq!(sum_floats(&[0.1; 10]), 1.0);
        assert_eq!(sum_floats(&[1e308, 1e308, -1e308]), 1e308);
        assert_eq!(sum_floats(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum_floats(&[-f64::MAX, -f64::MAX]), f64::NEG_INFINITY);
        assert_eq!(sum_floats(&[1e300, 5e-324, -1e300]), 5e-324);
        assert_eq!(sum_floats(&[5e-324, 5e-324, -1.5e-323]), -5e-324);
        assert_eq!(sum_floats(&[f64::MIN_POSITIVE, -5e-324]), f64::MIN_POSITIVE.next_down());
        // The sum is a tie, halfway between two floats, and rounds to even; any lower bit breaks
        // the tie.
        assert_eq!(sum_floats(&[9_007_199_254_740_992.0, 1.0]), 9_007_199_254_740_992.0);
        assert_eq!(sum_floats(&[9_007_199_254_740_992.0, 1.0, 5e-324]), 9_007_199_254_740_994.0);
        assert_eq!(sum_floats(&[9_007_199_254_740_994.0, 1.0]), 9_007_199_254_740_996.0);
        assert_eq!(
            sum_floats(&[-9_007_199_254_740_992.0, -1.0, -5e-324]),
            -9_007_199_254_740_994.0
        );
        assert_eq!(sum_floats(&[f64::INFINITY, 1.0]), f64::INFINITY);
        assert!(sum_floats(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
        assert!(sum_floats(&[f64::NAN, f64::INFINITY]).is_nan());
        let (max, ulp) = (f64::MAX, 2f64.powi(971));
        assert_eq!(sum_floats(&[max, ulp / 4.0]), max);
        assert_eq!(sum_floats(&[max, ulp / 2.0]), f64::INFINITY);
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
                let more: Vec<f64> = values.iter().map(|v| -v).collect();
                values.extend(more);
                values.push(rng.random_range(-1.0..1.0));
            }
            let whole = sum_floats(&values);
            for _ in 0..3 {
                for i in (1..values.len()).rev() {
                    values.swap(i, rng.random_range(0..=i));
                }
                let cut = rng.random_range(0..=values.len());
                let mut whole_sum = ExactSumKind::Float.new_sums();
                for part in [&values[..cut], &values[cut..]] {
                    let bits: Vec<i64> = part.iter().map(|v| v.to_bits().cast_signed()).collect();
                    whole_sum.add_words(0, &compute_words(ExactSumKind::Float, &bits));
                }
                let mut both = Vec::new();
                whole_sum.write_words(0, &mut both);
                let found = read_words(ExactSumKind::Float, &both).to_f64(0);
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
            let found =
                read_words(ExactSumKind::Signed, &compute_words(ExactSumKind::Signed, &values))
                    .to_integer(0);
            assert_eq!(found, whole);
            // Values without their lowest 12 bits are exact as floats, so only the sum is rounded.
            let floats: Vec<f64> = values.iter().map(|v| (*v >> 12) as f64).collect();
            let exact: i128 = values.iter().map(|v| i128::from(*v >> 12)).sum();
            assert_eq!(sum_floats(&floats), exact as f64, "{values:?}");
            let unsigned: i128 = values.iter().map(|v| i128::from(v.cast_unsigned())).sum();
            let found =
                read_words(ExactSumKind::Unsigned, &compute_words(ExactSumKind::Unsigned, &values))
                    .to_integer(0);
            assert_eq!(found, unsigned);
        }
    }

    #[test]
    fn a_sum_of_few_digits_has_few_words() {
        let bits = |v: f64| v.to_bits().cast_signed();
        assert_eq!(compute_words(ExactSumKind::Float, &[bits(1.5), bits(2.25)]), [bits(3.75)]);
        assert_eq!(compute_words(ExactSumKind::Float, &[bits(1.5), bits(-1.5)]), [0i64; 0]);
        assert!(compute_words(ExactSumKind::Float, &[bits(0.1), bits(0.2)]).len() <= 4);
        assert_eq!(compute_words(ExactSumKind::Signed, &[i64::MIN, -1, 1]), [i64::MIN]);
        assert_eq!(compute_words(ExactSumKind::Signed, &[i64::MIN, -1]).len(), 3);
    }
}
