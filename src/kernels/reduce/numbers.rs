//! Sum, product and mean of numbers, minimum and maximum of what has an order in a register.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray, make_array,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};

use super::fold::{
    Extreme, FloatProduct, Fold, IntProduct, Largest, Number, Ordered, Smallest, Total, Which,
};
use super::groups::Groups;
use super::{Reduction, Task, pick};
use crate::error::{Error, Result};
use crate::kernels::bits::Rank;

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
            other => Err(Error::type_of($task.how.name(), "numbers", other)),
        }
    };
}

/// [`Reduction::Sum`].
pub(super) fn sum(leaves: &ArrayRef, task: &Task) -> Result<ArrayRef> {
    if let Some(flags) = leaves.as_boolean_opt() {
        return sum_of_flags(flags, task);
    }
    let leaves = &numbers(leaves)?;
    by_type!(leaves, task, integer_sum, float_sum)
}

/// [`Reduction::Prod`].
pub(super) fn prod(leaves: &ArrayRef, task: &Task) -> Result<ArrayRef> {
    let leaves = &numbers(leaves)?;
    macro_rules! integers {
        ($t:ty, $out:ty) => {{
            let found = states::<IntProduct<<$t as ArrowPrimitiveType>::Native>, $t>(leaves, task)?;
            finished::<$out, _>(task, &found, |acc| acc.and_then(|a| a.try_into().ok()))
        }};
    }
    macro_rules! floats {
        ($t:ty, $round:expr) => {{
            let found =
                states::<FloatProduct<<$t as ArrowPrimitiveType>::Native>, $t>(leaves, task)?;
            finished::<$t, _>(task, &found, |acc| Some($round(acc)))
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
        other => Err(Error::type_of(task.how.name(), "numbers", other)),
    }
}

/// [`Reduction::Mean`].
pub(super) fn mean(leaves: &ArrayRef, task: &Task) -> Result<ArrayRef> {
    let leaves = &numbers(leaves)?;
    by_type!(leaves, task, integer_mean, float_mean)
}

/// [`Reduction::Min`] and [`Reduction::Max`].
pub(super) fn extreme(leaves: &ArrayRef, task: &Task) -> Result<ArrayRef> {
    match task.how {
        Reduction::Max => extreme_of::<Largest>(leaves, task),
        _ => extreme_of::<Smallest>(leaves, task),
    }
}

fn extreme_of<W: Which>(leaves: &ArrayRef, task: &Task) -> Result<ArrayRef> {
    fn native<W: Which, T: ArrowPrimitiveType<Native: Ordered>>(
        leaves: &ArrayRef,
        task: &Task,
    ) -> Result<ArrayRef> {
        let valid = ranks(leaves);
        let flat = leaves.as_primitive::<T>().values();
        // What nothing was found for is zero under its null, as anywhere else.
        let (found, nulls) = match (&task.groups, &valid) {
            // No place is there but for a leaf.
            (Groups::Overlay(overlay), None) => {
                (overlay.fold::<Extreme<T::Native, W>, _>(flat, None, Ordered::one_zero)?, None)
            }
            (groups, valid) => {
                groups.fold_counted::<Extreme<T::Native, W>, _>(flat, valid.as_ref(), |v, _| {
                    v.one_zero()
                })?
            }
        };
        Ok(Arc::new(PrimitiveArray::<T>::try_new(found.into(), nulls)?))
    }
    let given = leaves.data_type();
    let same = |t: &DataType| reinterpret(leaves, t);
    Ok(match given {
        DataType::Int8 => native::<W, Int8Type>(leaves, task)?,
        DataType::Int16 => native::<W, Int16Type>(leaves, task)?,
        DataType::Int32 => native::<W, Int32Type>(leaves, task)?,
        DataType::Int64 => native::<W, Int64Type>(leaves, task)?,
        DataType::UInt8 => native::<W, UInt8Type>(leaves, task)?,
        DataType::UInt16 => native::<W, UInt16Type>(leaves, task)?,
        DataType::UInt32 => native::<W, UInt32Type>(leaves, task)?,
        DataType::UInt64 => native::<W, UInt64Type>(leaves, task)?,
        DataType::Float32 => native::<W, Float32Type>(leaves, task)?,
        DataType::Float64 => native::<W, Float64Type>(leaves, task)?,
        DataType::Float16 => {
            let wide = cast(leaves, &DataType::Float32)?;
            cast(&native::<W, Float32Type>(&wide, task)?, given)?
        }
        DataType::Boolean => {
            let wide = cast(leaves, &DataType::UInt8)?;
            cast(&native::<W, UInt8Type>(&wide, task)?, given)?
        }
        // Dates, times and decimals are integers in order.
        t if native_int(t) == Some(DataType::Int32) => {
            reinterpret(&native::<W, Int32Type>(&same(&DataType::Int32)?, task)?, given)?
        }
        t if native_int(t) == Some(DataType::Int64) => {
            reinterpret(&native::<W, Int64Type>(&same(&DataType::Int64)?, task)?, given)?
        }
        _ => return pick::extreme_by_comparison::<W>(leaves, task),
    })
}

/// The integer that a type is, when its order is that of the integer.
pub(in crate::kernels) fn native_int(t: &DataType) -> Option<DataType> {
    use DataType::{
        Date32, Date64, Decimal32, Decimal64, Duration, Int32, Int64, Time32, Time64, Timestamp,
    };
    match t {
        Int32 | Date32 | Time32(_) | Decimal32(..) => Some(Int32),
        Int64 | Date64 | Time64(_) | Timestamp(..) | Duration(_) | Decimal64(..) => Some(Int64),
        _ => None,
    }
}

/// The same numbers under another type of the same width.
pub(in crate::kernels) fn reinterpret(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if values.data_type() == to {
        return Ok(values.clone());
    }
    let data = values.to_data().into_builder().data_type(to.clone());
    let width = values.data_type().primitive_width();
    if width.is_none() || width != to.primitive_width() {
        return Ok(make_array(data.build()?));
    }
    // SAFETY: bytes of valid numbers are valid ones of any type of that width. What checks an array counts
    // its nulls anew, which takes as long as a sum.
    Ok(make_array(unsafe { data.build_unchecked() }))
}

/// Leaves as numbers that are added: truth as 0 and 1, nothing as nothing, durations as integers; half
/// floats, and more integers than 64 bits are sure to hold the sum of, in a wider type.
pub(super) fn numbers(leaves: &ArrayRef) -> Result<ArrayRef> {
    let t = leaves.data_type();
    let many = leaves.len() > 1 << 31;
    Ok(match t {
        DataType::Boolean => cast(leaves, &DataType::Int8)?,
        DataType::Null => cast(leaves, &DataType::Int64)?,
        DataType::Duration(_) => reinterpret(leaves, &DataType::Int64)?,
        DataType::Float16 => cast(leaves, &DataType::Float32)?,
        t if many && t.is_unsigned_integer() => cast(leaves, &DataType::UInt64)?,
        t if many && t.is_integer() => cast(leaves, &DataType::Int64)?,
        _ => leaves.clone(),
    })
}

/// The places of leaves that are not null, counted; `None` when all are.
pub(super) fn ranks(leaves: &ArrayRef) -> Option<Rank> {
    leaves.nulls().filter(|n| n.null_count() > 0).map(|n| Rank::new(n.inner()))
}

fn states<F: Fold<In = T::Native>, T: ArrowPrimitiveType>(
    leaves: &ArrayRef,
    task: &Task,
) -> Result<Vec<F::Acc>> {
    task.groups.fold::<F>(leaves.as_primitive::<T>().values(), ranks(leaves).as_ref())
}

/// States of every group as results, which groups of nothing have too.
fn finished<T: ArrowPrimitiveType, A: Copy>(
    task: &Task,
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
        Some(i) => Err(Error::Overflow(task.place(i))),
        None => {
            Ok(Arc::new(PrimitiveArray::<T>::try_new(values.into(), task.groups.nulls().cloned())?))
        }
    }
}

fn integer_sum<T>(leaves: &ArrayRef, task: &Task) -> Result<ArrayRef>
where
    T: ArrowPrimitiveType<Native: Number>,
    <T::Native as Number>::Wide: TryInto<i64> + TryInto<u64>,
{
    let found = states::<Total<T::Native>, T>(leaves, task)?;
    match leaves.data_type().is_unsigned_integer() {
        true => finished::<UInt64Type, _>(task, &found, |acc| acc.try_into().ok()),
        false => finished::<Int64Type, _>(task, &found, |acc| acc.try_into().ok()),
    }
}

fn sum_of_flags(flags: &BooleanArray, task: &Task) -> Result<ArrayRef> {
    if let Groups::Lists(_) = &task.groups {
        // Bits are counted, 64 at a time.
        let set = Rank::new(&crate::kernels::gather::true_bits(flags));
        let counts = task.groups.counts(Some(&set));
        return finished::<Int64Type, _>(task, &counts, |n| i64::try_from(n).ok());
    }
    let leaves: ArrayRef = Arc::new(flags.clone());
    integer_sum::<Int8Type>(&cast(&leaves, &DataType::Int8)?, task)
}

/// Rounding of what was computed in 64 bits. NaN has one form: which of several comes out of a sum depends
/// on the order in which the processor takes its operands.
trait Round: Number {
    fn round_to(value: f64) -> Self;
}

impl Round for f32 {
    #[expect(clippy::cast_possible_truncation, reason = "rounding to the result's width is wanted")]
    #[inline(always)]
    fn round_to(value: f64) -> Self {
        if value.is_nan() { Self::NAN } else { value as Self }
    }
}

impl Round for f64 {
    #[inline(always)]
    fn round_to(value: f64) -> Self {
        if value.is_nan() { Self::NAN } else { value }
    }
}

fn float_sum<T>(leaves: &ArrayRef, task: &Task) -> Result<ArrayRef>
where
    T: ArrowPrimitiveType<Native: Round + Number<Wide = f64>>,
{
    let (flat, valid) = (leaves.as_primitive::<T>().values(), ranks(leaves));
    let round = T::Native::round_to;
    let found = task.groups.fold_to::<Total<T::Native>, _>(flat, valid.as_ref(), round)?;
    Ok(Arc::new(PrimitiveArray::<T>::try_new(found.into(), task.groups.nulls().cloned())?))
}

/// Totals over counts.
fn means<F: Fold<In = V::Native>, V: ArrowPrimitiveType, T: ArrowPrimitiveType>(
    leaves: &ArrayRef,
    task: &Task,
    finish: impl Fn(F::Acc, usize) -> T::Native,
) -> Result<ArrayRef> {
    let (flat, valid) = (leaves.as_primitive::<V>().values(), ranks(leaves));
    let (values, nulls) = task.groups.fold_counted::<F, _>(flat, valid.as_ref(), finish)?;
    Ok(Arc::new(PrimitiveArray::<T>::try_new(values.into(), nulls)?))
}

#[expect(clippy::cast_precision_loss, reason = "a mean is a float")]
#[inline(always)]
pub(super) fn ratio(total: f64, count: usize) -> f64 {
    total / count as f64
}

fn integer_mean<T>(leaves: &ArrayRef, task: &Task) -> Result<ArrayRef>
where
    T: ArrowPrimitiveType<Native: Number>,
    <T::Native as Number>::Wide: Into<i128>,
{
    #[expect(clippy::cast_precision_loss, reason = "a mean is a float")]
    let finish = |t: <T::Native as Number>::Wide, n| ratio(t.into() as f64, n);
    means::<Total<T::Native>, T, Float64Type>(leaves, task, finish)
}

fn float_mean<T>(leaves: &ArrayRef, task: &Task) -> Result<ArrayRef>
where
    T: ArrowPrimitiveType<Native: Round + Number<Wide = f64>>,
{
    let finish = |t, n| T::Native::round_to(ratio(t, n));
    means::<Total<T::Native>, T, T>(leaves, task, finish)
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
            let bits = reinterpret(&part, &DataType::UInt32).unwrap();
            bits.to_data().validate_full().unwrap();
            let all = UInt32Array::from(vec![Some(1), None, Some(u32::MAX), Some(7)]);
            assert_eq!(*bits, all.slice(start, 4 - start));
            assert_eq!(*reinterpret(&bits, &DataType::Date32).unwrap(), *part);
        }
        let dates: ArrayRef = Arc::new(dates);
        assert!(reinterpret(&dates, &DataType::Int64).is_err());
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        assert!(reinterpret(&texts, &DataType::Int32).is_err());
    }
}
