//! Sum, product and mean of numbers; minimum and maximum of types that compare as numbers.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};

use super::fold::{
    ExtremeFold, FloatProduct, Fold, FoldNumber, IntProduct, Largest, MinOrMax, OrderedNumber,
    Smallest, SumFold,
};
use super::groups::{LeafGroups, rank_valid};
use super::rounded::round_mean;
use super::{ReduceTask, Reduction, pick};
use crate::error::{Error, Result};
use crate::kernels::bits::RankedBitmap;
use crate::kernels::native::{find_native_int, reinterpret_values};

macro_rules! by_type {
    ($leaves:expr, $task:expr, $integer:ident, $float:ident) => {
        match $leaves.data_type() {
            DataType::Int8 => $integer::<Int8Type>($leaves, $task),
            DataType::Int16 => $integer::<Int16Type>($leaves, $task),
            DataType::Int32 => $integer::<Int32Type>($leaves, $task),
            DataType::Int64 => $integer::<Int64Type>($leaves, $task),
            DataType::UInt8 => $integer::<UInt8Type>($leaves, $task),
            DataType::UInt16 => $integer::<UInt16Type>($leaves, $task),
            DataType::UInt32 => $integer::<UInt32Type>($leaves, $task),
            DataType::UInt64 => $integer::<UInt64Type>($leaves, $task),
            DataType::Float32 => $float::<Float32Type>($leaves, $task),
            DataType::Float64 => $float::<Float64Type>($leaves, $task),
            other => {
                Err(Error::type_of($task.how.name(), "numbers (cast the values first)", other))
            }
        }
    };
}

pub(super) fn reduce_sum(leaves: &ArrayRef, task: &ReduceTask) -> Result<ArrayRef> {
    if let Some(flags) = leaves.as_boolean_opt() {
        return sum_booleans(flags, task);
    }
    let leaves = &to_summable(leaves)?;
    by_type!(leaves, task, compute_integer_sum, compute_float_sum)
}

pub(super) fn compute_product(leaves: &ArrayRef, task: &ReduceTask) -> Result<ArrayRef> {
    let leaves = &to_summable(leaves)?;
    macro_rules! integers {
        ($t:ty, $out:ty) => {{
            let folded =
                fold_groups::<IntProduct<<$t as ArrowPrimitiveType>::Native>, $t>(leaves, task)?;
            finish_groups::<$out, _>(task, &folded, |acc| acc.and_then(|a| a.try_into().ok()))
        }};
    }
    macro_rules! floats {
        ($t:ty, $round:expr) => {{
            let folded =
                fold_groups::<FloatProduct<<$t as ArrowPrimitiveType>::Native>, $t>(leaves, task)?;
            finish_groups::<$t, _>(task, &folded, |acc| Some($round(acc)))
        }};
    }
    match leaves.data_type() {
        DataType::Int8 => integers!(Int8Type, Int64Type),
        DataType::Int16 => integers!(Int16Type, Int64Type),
        DataType::Int32 => integers!(Int32Type, Int64Type),
        DataType::Int64 => integers!(Int64Type, Int64Type),
        DataType::UInt8 => integers!(UInt8Type, UInt64Type),
        DataType::UInt16 => integers!(UInt16Type, UInt64Type),
        DataType::UInt32 => integers!(UInt32Type, UInt64Type),
        DataType::UInt64 => integers!(UInt64Type, UInt64Type),
        DataType::Float32 => floats!(Float32Type, f32::round_to),
        DataType::Float64 => floats!(Float64Type, f64::round_to),
        other => Err(Error::type_of(task.how.name(), "numbers (cast the values first)", other)),
    }
}

pub(super) fn reduce_mean(leaves: &ArrayRef, task: &ReduceTask) -> Result<ArrayRef> {
    if let DataType::Duration(_) = leaves.data_type() {
        let numbers = reinterpret_values(leaves, &DataType::Int64)?;
        let finish = |sum: i128, n: usize| round_mean(sum, n as u64).unwrap_or_default();
        let means = compute_means::<SumFold<i64>, Int64Type, Int64Type>(&numbers, task, finish)?;
        return reinterpret_values(&means, leaves.data_type());
    }
    let leaves = &to_summable(leaves)?;
    by_type!(leaves, task, compute_integer_mean, compute_float_mean)
}

pub(super) fn compute_min_max(leaves: &ArrayRef, task: &ReduceTask) -> Result<ArrayRef> {
    match task.how {
        Reduction::Max => fold_extremes::<Largest>(leaves, task),
        _ => fold_extremes::<Smallest>(leaves, task),
    }
}

fn fold_extremes<W: MinOrMax>(leaves: &ArrayRef, task: &ReduceTask) -> Result<ArrayRef> {
    fn fold_native<W: MinOrMax, T: ArrowPrimitiveType<Native: OrderedNumber>>(
        leaves: &ArrayRef,
        task: &ReduceTask,
    ) -> Result<ArrayRef> {
        let valid = rank_valid(leaves);
        let flat = leaves.as_primitive::<T>().values();
        // The result of a group without a valid leaf is null, and the value stored for the null
        // is 0.
        let (found, nulls) = match (&task.groups, &valid) {
            // Every group along an outer axis has a leaf, and no leaf is null, so no result is
            // null.
            (LeafGroups::Stacked(stacked), None) => (
                stacked.fold::<ExtremeFold<T::Native, W>, _>(
                    flat,
                    None,
                    OrderedNumber::one_zero,
                )?,
                None,
            ),
            (groups, valid) => groups.fold_counted::<ExtremeFold<T::Native, W>, _>(
                flat,
                valid.as_ref(),
                |v, _| v.one_zero(),
            )?,
        };
        Ok(Arc::new(PrimitiveArray::<T>::try_new(found.into(), nulls)?))
    }
    let given = leaves.data_type();
    let same = |t: &DataType| reinterpret_values(leaves, t);
    Ok(match given {
        DataType::Int8 => fold_native::<W, Int8Type>(leaves, task)?,
        DataType::Int16 => fold_native::<W, Int16Type>(leaves, task)?,
        DataType::Int32 => fold_native::<W, Int32Type>(leaves, task)?,
        DataType::Int64 => fold_native::<W, Int64Type>(leaves, task)?,
        DataType::UInt8 => fold_native::<W, UInt8Type>(leaves, task)?,
        DataType::UInt16 => fold_native::<W, UInt16Type>(leaves, task)?,
        DataType::UInt32 => fold_native::<W, UInt32Type>(leaves, task)?,
        DataType::UInt64 => fold_native::<W, UInt64Type>(leaves, task)?,
        DataType::Float32 => fold_native::<W, Float32Type>(leaves, task)?,
        DataType::Float64 => fold_native::<W, Float64Type>(leaves, task)?,
        DataType::Float16 => {
            let widened = cast(leaves, &DataType::Float32)?;
            cast(&fold_native::<W, Float32Type>(&widened, task)?, given)?
        }
        DataType::Boolean => {
            let widened = cast(leaves, &DataType::UInt8)?;
            cast(&fold_native::<W, UInt8Type>(&widened, task)?, given)?
        }
        // Dates, times and decimals are stored as integers with the same order; fold the integers.
        t if find_native_int(t) == Some(DataType::Int32) => reinterpret_values(
            &fold_native::<W, Int32Type>(&same(&DataType::Int32)?, task)?,
            given,
        )?,
        t if find_native_int(t) == Some(DataType::Int64) => reinterpret_values(
            &fold_native::<W, Int64Type>(&same(&DataType::Int64)?, task)?,
            given,
        )?,
        _ => return pick::find_extreme_by_comparison::<W>(leaves, task),
    })
}

/// Converts leaves to a type that can be summed: booleans to 0 and 1, untyped nulls to Int64,
/// durations to integers, half floats to Float32. Integers are widened to 64 bits if their sum
/// might otherwise overflow.
pub(super) fn to_summable(leaves: &ArrayRef) -> Result<ArrayRef> {
    let t = leaves.data_type();
    let many = leaves.len() > 1 << 31;
    Ok(match t {
        DataType::Boolean => cast(leaves, &DataType::Int8)?,
        DataType::Null => cast(leaves, &DataType::Int64)?,
        DataType::Duration(_) => reinterpret_values(leaves, &DataType::Int64)?,
        DataType::Float16 => cast(leaves, &DataType::Float32)?,
        t if many && t.is_unsigned_integer() => cast(leaves, &DataType::UInt64)?,
        t if many && t.is_integer() => cast(leaves, &DataType::Int64)?,
        _ => leaves.clone(),
    })
}

fn fold_groups<F: Fold<Input = T::Native>, T: ArrowPrimitiveType>(
    leaves: &ArrayRef,
    task: &ReduceTask,
) -> Result<Vec<F::Accumulator>> {
    task.groups.fold::<F>(leaves.as_primitive::<T>().values(), rank_valid(leaves).as_ref())
}

fn finish_groups<T: ArrowPrimitiveType, A: Copy>(
    task: &ReduceTask,
    states: &[A],
    finish: impl Fn(A) -> Option<T::Native>,
) -> Result<ArrayRef> {
    let mut too_large = None;
    let values = states.iter().enumerate().map(|(i, acc)| {
        finish(*acc).unwrap_or_else(|| {
            too_large.get_or_insert(i);
            T::Native::default()
        })
    });
    let values: Vec<T::Native> = values.collect();
    match too_large {
        Some(i) => Err(Error::Overflow(task.describe_result(i))),
        None => {
            Ok(Arc::new(PrimitiveArray::<T>::try_new(values.into(), task.groups.nulls().cloned())?))
        }
    }
}

fn compute_integer_sum<T>(leaves: &ArrayRef, task: &ReduceTask) -> Result<ArrayRef>
where
    T: ArrowPrimitiveType<Native: FoldNumber>,
    <T::Native as FoldNumber>::Wide: TryInto<i64> + TryInto<u64>,
{
    let folded = fold_groups::<SumFold<T::Native>, T>(leaves, task)?;
    match leaves.data_type().is_unsigned_integer() {
        true => finish_groups::<UInt64Type, _>(task, &folded, |acc| acc.try_into().ok()),
        false => finish_groups::<Int64Type, _>(task, &folded, |acc| acc.try_into().ok()),
    }
}

fn sum_booleans(flags: &BooleanArray, task: &ReduceTask) -> Result<ArrayRef> {
    if let LeafGroups::Lists(_) = &task.groups {
        let set = RankedBitmap::new(&crate::array::nulls::find_true_bits(flags));
        let counts = task.groups.count_group_values(Some(&set));
        return finish_groups::<Int64Type, _>(task, &counts, |n| i64::try_from(n).ok());
    }
    let leaves: ArrayRef = Arc::new(flags.clone());
    compute_integer_sum::<Int8Type>(&cast(&leaves, &DataType::Int8)?, task)
}

/// Rounds a result from `f64` to the type of the leaves. Replaces every NaN with the same NaN,
/// because the bits of a computed NaN depend on the machine code.
trait RoundResult: FoldNumber {
    fn round_to(value: f64) -> Self;
}

impl RoundResult for f32 {
    #[expect(clippy::cast_possible_truncation, reason = "rounding to the result's width is wanted")]
    #[inline(always)]
    fn round_to(value: f64) -> Self {
        if value.is_nan() { Self::NAN } else { value as Self }
    }
}

impl RoundResult for f64 {
    #[inline(always)]
    fn round_to(value: f64) -> Self {
        if value.is_nan() { Self::NAN } else { value }
    }
}

fn compute_float_sum<T>(leaves: &ArrayRef, task: &ReduceTask) -> Result<ArrayRef>
where
    T: ArrowPrimitiveType<Native: RoundResult + FoldNumber<Wide = f64>>,
{
    let (flat, valid) = (leaves.as_primitive::<T>().values(), rank_valid(leaves));
    let round = T::Native::round_to;
    let folded = task.groups.fold_to::<SumFold<T::Native>, _>(flat, valid.as_ref(), round)?;
    Ok(Arc::new(PrimitiveArray::<T>::try_new(folded.into(), task.groups.nulls().cloned())?))
}

fn compute_means<F: Fold<Input = V::Native>, V: ArrowPrimitiveType, T: ArrowPrimitiveType>(
    leaves: &ArrayRef,
    task: &ReduceTask,
    finish: impl Fn(F::Accumulator, usize) -> T::Native,
) -> Result<ArrayRef> {
    let (flat, valid) = (leaves.as_primitive::<V>().values(), rank_valid(leaves));
    let (values, nulls) = task.groups.fold_counted::<F, _>(flat, valid.as_ref(), finish)?;
    Ok(Arc::new(PrimitiveArray::<T>::try_new(values.into(), nulls)?))
}

#[expect(clippy::cast_precision_loss, reason = "a mean is a float")]
#[inline(always)]
pub(super) fn divide_by_count(total: f64, count: usize) -> f64 {
    total / count as f64
}

fn compute_integer_mean<T>(leaves: &ArrayRef, task: &ReduceTask) -> Result<ArrayRef>
where
    T: ArrowPrimitiveType<Native: FoldNumber>,
    <T::Native as FoldNumber>::Wide: Into<i128>,
{
    #[expect(clippy::cast_precision_loss, reason = "a mean is a float")]
    let finish = |t: <T::Native as FoldNumber>::Wide, n| divide_by_count(t.into() as f64, n);
    compute_means::<SumFold<T::Native>, T, Float64Type>(leaves, task, finish)
}

fn compute_float_mean<T>(leaves: &ArrayRef, task: &ReduceTask) -> Result<ArrayRef>
where
    T: ArrowPrimitiveType<Native: RoundResult + FoldNumber<Wide = f64>>,
{
    let finish = |t, n| T::Native::round_to(divide_by_count(t, n));
    compute_means::<SumFold<T::Native>, T, T>(leaves, task, finish)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Date32Array, StringArray, UInt32Array};

    use super::*;

    #[test]
    fn numbers_under_another_type_are_valid_and_keep_their_nulls() {
        let dates = Date32Array::from(vec![Some(1), None, Some(-1), Some(7)]);
        for start in [0, 1, 4] {
            let part: ArrayRef = Arc::new(dates.slice(start, 4 - start));
            let bits = reinterpret_values(&part, &DataType::UInt32).unwrap();
            bits.to_data().validate_full().unwrap();
            let all = UInt32Array::from(vec![Some(1), None, Some(u32::MAX), Some(7)]);
            assert_eq!(*bits, all.slice(start, 4 - start));
            assert_eq!(*reinterpret_values(&bits, &DataType::Date32).unwrap(), *part);
        }
        let dates: ArrayRef = Arc::new(dates);
        assert!(reinterpret_values(&dates, &DataType::Int64).is_err());
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        assert!(reinterpret_values(&texts, &DataType::Int32).is_err());
    }
}
