//! Running operations along an axis: running sums, differences, shifts, filled gaps.
//!
//! The result has the lists of the input. Along the innermost axis, an operation runs over the
//! leaves of each list; along an outer axis (or axis 0), over the leaves at the same index of
//! successive elements: the running sums of `[[1, 2], [3], [5, 6]]` along the outer axis are
//! `[[1, 2], [4], [9, 8]]`. An element that is too short to have the index is skipped.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, MutableArrayData,
    PrimitiveArray, UInt64Array, make_array,
};
use arrow::buffer::{BooleanBuffer, MutableBuffer, NullBuffer};
use arrow::compute::kernels::numeric;
use arrow::compute::{cast, take};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::util::bit_util;

use super::allocate::allocate_values;
use super::argument_casts::cast_exactly;
use super::elementwise::for_each_length;
use super::native::{find_native_int, reinterpret_values};
use super::reduce::{AxisGroups, Reduction, group_along_axis};
use crate::array::nulls::replace_validity;
use crate::array::{Layout, RaggedArray, resolve_axis};
use crate::error::{Error, Result};

/// A running operation, which combines each value with all values before it: the sums of
/// `[1, 2, 3]` are `[1, 3, 6]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunningOp {
    /// Sum.
    Sum,
    /// Product.
    Prod,
    /// Minimum of the values so far; NaN from the first NaN on.
    Min,
    /// Maximum of the values so far; NaN from the first NaN on.
    Max,
}

impl RunningOp {
    /// Returns the name used in error messages: `cumsum`, ...
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::kernels::running::RunningOp;
    /// assert_eq!(RunningOp::Sum.name(), "cumsum");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "cumsum",
            Self::Prod => "cumprod",
            Self::Min => "cummin",
            Self::Max => "cummax",
        }
    }

    /// Returns the type of the result.
    ///
    /// Sums and products have the type that [`reduce`](super::reduce::reduce) gives; minimum and
    /// maximum have the type of the leaves, which must be numbers, booleans or times.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use arrow::datatypes::DataType;
    /// use serrate::kernels::running::{RunningOp, find_diff_type};
    /// assert_eq!(RunningOp::Sum.output_type(&DataType::Int16)?, DataType::Int64);
    /// assert_eq!(find_diff_type(&DataType::Int16)?, DataType::Int64);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If leaves of this type do not support the operation.
    pub fn output_type(self, leaf: &DataType) -> Result<DataType> {
        let how = match self {
            Self::Sum => Reduction::Sum,
            Self::Prod => Reduction::Prod,
            Self::Min | Self::Max if find_native_type(leaf).is_some() => Reduction::Max,
            _ => {
                return Err(Error::type_of(
                    self.name(),
                    "numbers, booleans or times (cast the values first)",
                    leaf,
                ));
            }
        };
        how.output_type(leaf).map_err(|e| match e {
            Error::Type { expected, found, .. } => {
                Error::Type { what: self.name().into(), expected, found }
            }
            other => other,
        })
    }
}

/// The primitive type in which running minimum and maximum compare, such as `Int64` for timestamps;
/// `None` for types such as strings.
fn find_native_type(leaf: &DataType) -> Option<DataType> {
    Some(match leaf {
        DataType::Dictionary(_, values) => return find_native_type(values),
        DataType::Boolean => DataType::Int8,
        DataType::Null => DataType::Int64,
        t if t.is_numeric() && !t.is_decimal() => t.clone(),
        t => find_native_int(t)?,
    })
}

/// Returns the [`RunningOp`] sum, product, minimum or maximum of every leaf and the leaves before it
/// along axis `axis` (negative axes count from the innermost).
///
/// A null leaf stays null and is skipped. NaN propagates to all later leaves. Integers give 64-bit
/// results; `Float32` stays `Float32`, computed in 64 bits.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, types::Int64Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::running::cumsum;
/// // [[1, 2, 3], [4]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let sums = |axis| -> serrate::Result<Vec<i64>> {
///     Ok(cumsum(&a, axis)?.leaves().as_primitive::<Int64Type>().values().to_vec())
/// };
/// assert_eq!(sums(-1)?, [1, 3, 6, 4]);
/// assert_eq!(sums(0)?, [1, 2, 3, 5]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array has no such axis, the leaves do not support the operation, or an integer overflows.
pub fn running(array: &RaggedArray, how: RunningOp, axis: i64) -> Result<RaggedArray> {
    let out = how.output_type(array.leaf_type())?;
    let leaves = match array.leaf_type() {
        DataType::Dictionary(_, values) => &cast(array.leaves(), values)?,
        _ => array.leaves(),
    };
    let array = array.with_leaves(leaves.clone())?;
    apply_in_lists(&array, axis, |leaves, lists| {
        let found = accumulate_lists(how, leaves, lists, axis, &out)?;
        if *found.data_type() == out { Ok(found) } else { Ok(cast(&found, &out)?) }
    })
}

/// Returns the [`running`] sums.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Int32Array, Int64Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::running::cumsum;
/// // [[1, NULL, 2], [5]]
/// let leaves = Arc::new(Int32Array::from(vec![Some(1), None, Some(2), Some(5)]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let expected = Int64Array::from(vec![Some(1), None, Some(3), Some(5)]);
/// assert_eq!(cumsum(&a, 1)?.leaves().as_ref(), &expected);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`running`].
pub fn cumsum(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    running(array, RunningOp::Sum, axis)
}

/// Returns the [`running`] products.
///
/// A null leaf stays null and is skipped.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Int32Array, Int64Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::running::cumprod;
/// let leaves = Arc::new(Int32Array::from(vec![2, 3, 4, 5]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// assert_eq!(cumprod(&a, 1)?.leaves().as_ref(), &Int64Array::from(vec![2, 6, 24, 5]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`running`].
pub fn cumprod(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    running(array, RunningOp::Prod, axis)
}

fn accumulate_lists(
    how: RunningOp,
    leaves: &ArrayRef,
    lists: &Layout,
    axis: i64,
    out: &DataType,
) -> Result<ArrayRef> {
    let overflow = |leaf: usize| {
        let list = lists.list_of(leaf);
        Error::Overflow(format!("the {} of list {list} along axis {axis}", how.name()))
    };
    if matches!(how, RunningOp::Min | RunningOp::Max) {
        return scan_extremes(how == RunningOp::Max, leaves, lists);
    }
    let product = how == RunningOp::Prod;
    if out.is_floating() {
        let step = |acc: f64, v: f64| Some(if product { acc * v } else { acc + v });
        let start = if product { 1.0 } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, reason = "rounding to the type is wanted")]
        return match leaves.data_type() {
            DataType::Float64 => {
                let leaves = leaves.as_primitive::<Float64Type>();
                // The bits of a computed NaN depend on the CPU, so write the canonical NaN.
                let finish = |acc: f64| if acc.is_nan() { f64::NAN } else { acc };
                scan_lists::<_, Float64Type, _>(leaves, lists, start, step, finish)
            }
            _ => {
                let leaves = cast(leaves, &DataType::Float32)?;
                let leaves = leaves.as_primitive::<Float32Type>();
                let step = |acc: f64, v: f32| step(acc, v.into());
                let finish = |acc: f64| if acc.is_nan() { f32::NAN } else { acc as f32 };
                scan_lists::<_, Float32Type, _>(leaves, lists, start, step, finish)
            }
        }
        .map_err(overflow);
    }
    if *out == DataType::UInt64 {
        let leaves = cast(leaves, &DataType::UInt64)?;
        let step = |acc: u64, v: u64| if product { acc.checked_mul(v) } else { acc.checked_add(v) };
        let leaves = leaves.as_primitive::<UInt64Type>();
        let start = u64::from(product);
        return scan_lists::<_, UInt64Type, _>(leaves, lists, start, step, |acc| acc)
            .map_err(overflow);
    }
    // Signed integers, booleans and durations accumulate as 64-bit integers.
    let leaves = match leaves.data_type() {
        DataType::Duration(_) => reinterpret_values(leaves, &DataType::Int64)?,
        DataType::Boolean => cast(&cast(leaves, &DataType::Int8)?, &DataType::Int64)?,
        _ => cast(leaves, &DataType::Int64)?,
    };
    let step = |acc: i64, v: i64| if product { acc.checked_mul(v) } else { acc.checked_add(v) };
    let leaves = leaves.as_primitive::<Int64Type>();
    let found = scan_lists::<_, Int64Type, _>(leaves, lists, i64::from(product), step, |acc| acc);
    reinterpret_values(&found.map_err(overflow)?, out)
}

/// Applies `step` to an accumulator (`start` in each new list) and each valid leaf, and returns
/// `finish` of each result. If `step` returns `None`, the error is the index of the first leaf of
/// the list in which this happened.
fn scan_lists<T: ArrowPrimitiveType, O: ArrowPrimitiveType, A: Copy>(
    leaves: &PrimitiveArray<T>,
    lists: &Layout,
    start: A,
    step: impl Fn(A, T::Native) -> Option<A>,
    finish: impl Fn(A) -> O::Native,
) -> Result<ArrayRef, usize> {
    let flat = leaves.values();
    let nulls = leaves.nulls().filter(|n| n.null_count() > 0);
    let mut out: Vec<O::Native> = allocate_values(flat.len());
    let (mut from, mut failed) = (0, None);
    // Collect results in a local array first: each push to a vector would wait for the previous one.
    let mut block = [O::Native::default(); 256];
    for_each_length(lists, |n| {
        let mut acc = start;
        for at in (from..from + n).step_by(block.len()) {
            let some = &flat[at..(at + block.len()).min(from + n)];
            for (i, v) in some.iter().enumerate() {
                if nulls.is_some_and(|nulls| nulls.is_null(at + i)) {
                    block[i] = O::Native::default();
                    continue;
                }
                match step(acc, *v) {
                    Some(next) => acc = next,
                    None => failed = failed.or(Some(from)),
                }
                block[i] = finish(acc);
            }
            out.extend_from_slice(&block[..some.len()]);
        }
        from += n;
    });
    match failed {
        Some(leaf) => Err(leaf),
        None => Ok(Arc::new(PrimitiveArray::<O>::new(out.into(), nulls.cloned()))),
    }
}

fn scan_extremes(max: bool, leaves: &ArrayRef, lists: &Layout) -> Result<ArrayRef> {
    fn scan_typed_extremes<T>(max: bool, leaves: &ArrayRef, lists: &Layout) -> Result<ArrayRef>
    where
        T: ArrowPrimitiveType,
    {
        let nan = |v: T::Native| v.partial_cmp(&v).is_none();
        let step = |acc: Option<T::Native>, v: T::Native| {
            Some(match acc {
                Some(a) if nan(a) || (!nan(v) && if max { a >= v } else { a <= v }) => Some(a),
                _ => Some(v),
            })
        };
        let name = if max { "cummax" } else { "cummin" };
        let leaves = leaves.as_primitive::<T>();
        let finish = |acc: Option<T::Native>| acc.unwrap_or_default();
        scan_lists::<T, T, _>(leaves, lists, None, step, finish).map_err(|leaf| {
            Error::invalid(format!(
                "internal error: {name} has no result for leaf {leaf}; please report it"
            ))
        })
    }
    let given = leaves.data_type();
    if given.is_null() {
        return Ok(Arc::clone(leaves));
    }
    let native = find_native_type(given).unwrap_or_else(|| given.clone());
    let same = match given {
        DataType::Boolean | DataType::Null => cast(leaves, &native)?,
        _ => reinterpret_values(leaves, &native)?,
    };
    let name = if max { "cummax" } else { "cummin" };
    macro_rules! by_type {
        ($($t:ident => $arrow:ty),*) => {
            match &native {
                $(DataType::$t => scan_typed_extremes::<$arrow>(max, &same, lists)?,)*
                other => {
                    return Err(Error::type_of(
                        name,
                        "numbers, booleans or times (cast the values first)",
                        other,
                    ));
                }
            }
        };
    }
    use arrow::datatypes::{Float16Type, Int8Type, Int16Type, Int32Type};
    let found = by_type!(
        Int8 => Int8Type, Int16 => Int16Type, Int32 => Int32Type, Int64 => Int64Type,
        UInt8 => UInt8Type, UInt16 => UInt16Type, UInt32 => UInt32Type, UInt64 => UInt64Type,
        Float16 => Float16Type, Float32 => Float32Type, Float64 => Float64Type
    );
    match given {
        DataType::Boolean | DataType::Null => Ok(cast(&found, given)?),
        _ => reinterpret_values(&found, given),
    }
}

/// Replaces each leaf with the leaf `n` elements before it along axis `axis` (after it for negative
/// `n`).
///
/// If there is no such leaf, takes the value of `fill` (a flat array of one value), or null without
/// `fill`. Along an outer axis, takes the leaf at the same index of the element that lies `n`
/// elements before.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Array, Int32Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::running::shift;
/// // [[1, 2, 3], [4]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let b = shift(&a, 1, None, -1)?;
/// let expected = Int32Array::from(vec![None, Some(1), Some(2), None]);
/// assert_eq!(b.leaves().as_ref(), &expected);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array has no such axis, or `fill` is not one value of the type of the leaves.
pub fn shift(
    array: &RaggedArray,
    n: i64,
    fill: Option<&ArrayRef>,
    axis: i64,
) -> Result<RaggedArray> {
    let fill = match fill {
        Some(fill) if fill.len() != 1 => {
            return Err(Error::invalid(format!(
                "shift: the fill has {} values; give exactly one value",
                fill.len()
            )));
        }
        Some(fill) => Some(cast_exactly("the fill of shift", fill, array.leaf_type())?),
        None => None,
    };
    let leaves = array.leaves();
    let distance = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
    let (found, has_source) = match group_along_axis(array, axis)? {
        AxisGroups::Lists(_) if distance == 0 || leaves.is_empty() => return Ok(array.clone()),
        AxisGroups::Lists(lists) => shift_lists(leaves, &lists, n < 0, distance)?,
        AxisGroups::Stacked(stacked) => {
            let from = stacked.shift_leaves(n)?;
            let has_source = BooleanBuffer::from_iter(from.iter().map(|i| i.is_some()));
            (take(leaves, &UInt64Array::from(from), None)?, has_source)
        }
    };
    let found = match fill {
        Some(fill) if fill.is_valid(0) => {
            let has_source = arrow::array::BooleanArray::new(has_source, None);
            let fill = arrow::array::Scalar::new(fill);
            arrow::compute::kernels::zip::zip(&has_source, &found, &fill)?
        }
        _ => found,
    };
    array.with_leaves(found)
}

/// Shifts all leaves towards the end, or the start if `back` is set; leaves that enter another list
/// become null. Also returns, for each leaf of the result, whether it comes from the same list.
fn shift_lists(
    leaves: &ArrayRef,
    lists: &Layout,
    back: bool,
    distance: usize,
) -> Result<(ArrayRef, BooleanBuffer)> {
    let same_list = mark_same_list(lists, back, distance, leaves.len());
    let moved = shift_values(leaves, back, distance.min(leaves.len()))?;
    if moved.data_type().is_null() {
        return Ok((moved, same_list));
    }
    let nulls = NullBuffer::union(moved.nulls(), Some(&NullBuffer::new(same_list.clone())));
    Ok((replace_validity(&moved, nulls)?, same_list))
}

/// Returns, for each leaf, whether the leaf `distance` leaves before it (after it if `back` is set)
/// is in the same list.
fn mark_same_list(lists: &Layout, back: bool, distance: usize, len: usize) -> BooleanBuffer {
    let mut bits = MutableBuffer::from_len_zeroed(len.div_ceil(8));
    bits.as_slice_mut().fill(u8::MAX);
    let mut start = 0;
    for_each_length(lists, |n| {
        let gone = n.min(distance);
        let first = if back { start + n - gone } else { start };
        (first..first + gone).for_each(|i| bit_util::unset_bit(bits.as_slice_mut(), i));
        start += n;
    });
    BooleanBuffer::new(bits.into(), 0, len)
}

/// Shifts leaves by `far` towards the end, or the start if `back` is set. The `far` leaves at the
/// other side get unspecified values.
fn shift_values(leaves: &ArrayRef, back: bool, far: usize) -> Result<ArrayRef> {
    let len = leaves.len();
    macro_rules! by_width {
        ($($width:literal => $t:ty),*) => {
            match leaves.data_type().primitive_width() {
                $(Some($width) if leaves.null_count() == 0 => {
                    let same = reinterpret_values(leaves, &<$t>::DATA_TYPE)?;
                    let flat = same.as_primitive::<$t>().values();
                    let mut out = allocate_values(len);
                    if back {
                        out.extend_from_slice(&flat[far..]);
                        out.resize(len, Default::default());
                    } else {
                        out.resize(far, Default::default());
                        out.extend_from_slice(&flat[..len - far]);
                    }
                    let out: ArrayRef = Arc::new(PrimitiveArray::<$t>::new(out.into(), None));
                    return reinterpret_values(&out, leaves.data_type());
                })*
                _ => {}
            }
        };
    }
    by_width!(1 => UInt8Type, 2 => UInt16Type, 4 => UInt32Type, 8 => UInt64Type);
    let data = leaves.to_data();
    let mut out = MutableArrayData::new(vec![&data], true, len);
    if back {
        out.try_extend(0, far, len)?;
        out.try_extend_nulls(far)?;
    } else {
        out.try_extend_nulls(far)?;
        out.try_extend(0, 0, len - far)?;
    }
    Ok(make_array(out.freeze()))
}

/// Returns every leaf minus the leaf `n` elements before it along axis `axis` (after it for a
/// negative `n`); null if there is no such leaf or one of the two is null.
///
/// Integers and booleans give `Int64`, with an error on overflow; floats keep their type; times
/// give durations.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Int32Array, Int64Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::running::diff;
/// // [[1, 4, 9], [7]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 4, 9, 7]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let expected = Int64Array::from(vec![None, Some(3), Some(5), None]);
/// assert_eq!(diff(&a, 1, 1)?.leaves().as_ref(), &expected);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array has no such axis, the leaves cannot be subtracted, or an integer overflows.
pub fn diff(array: &RaggedArray, n: i64, axis: i64) -> Result<RaggedArray> {
    find_diff_type(array.leaf_type())?;
    let leaves = match array.leaf_type() {
        DataType::Dictionary(_, values) => &cast(array.leaves(), values)?,
        _ => array.leaves(),
    };
    let integers = matches!(leaves.data_type(), DataType::Boolean | DataType::Null)
        || leaves.data_type().is_integer();
    let leaves = match leaves.data_type() {
        DataType::Boolean => cast(&cast(leaves, &DataType::Int8)?, &DataType::Int64)?,
        t if integers && *t != DataType::UInt64 => cast(leaves, &DataType::Int64)?,
        DataType::UInt64 => {
            return compute_unsigned_diff(&array.with_leaves(leaves.clone())?, n, axis);
        }
        _ => leaves.clone(),
    };
    let array = array.with_leaves(leaves)?;
    if let Some(found) = subtract_shifted(&array, n, axis)? {
        return array.with_leaves(found);
    }
    let before = shift(&array, n, None, axis)?;
    let found = numeric::sub(array.leaves(), before.leaves()).map_err(|e| match e {
        arrow::error::ArrowError::ArithmeticOverflow(e) => {
            let difference = e.trim_start_matches("Overflow happened on: ");
            Error::Overflow(format!("diff: {difference}"))
        }
        other => other.into(),
    })?;
    array.with_leaves(found)
}

/// Computes the leaves of [`diff`] on a fast path. Returns `None` unless the leaves are floats
/// without nulls, `axis` is the innermost axis, and |`n`| is between 1 and the number of leaves.
fn subtract_shifted(array: &RaggedArray, n: i64, axis: i64) -> Result<Option<ArrayRef>> {
    fn subtract_typed<T: ArrowPrimitiveType>(
        leaves: &ArrayRef,
        lists: &Layout,
        back: bool,
        distance: usize,
    ) -> Result<ArrayRef> {
        let flat: &[T::Native] = leaves.as_primitive::<T>().values();
        let mut out = allocate_values(flat.len());
        let (before, after) = (&flat[..flat.len() - distance], &flat[distance..]);
        if back {
            out.extend(before.iter().zip(after).map(|(v, other)| v.sub_wrapping(*other)));
            out.resize(flat.len(), T::Native::default());
        } else {
            out.resize(distance, T::Native::default());
            out.extend(after.iter().zip(before).map(|(v, other)| v.sub_wrapping(*other)));
        }
        let same_list = mark_same_list(lists, back, distance, flat.len());
        Ok(Arc::new(PrimitiveArray::<T>::try_new(out.into(), Some(NullBuffer::new(same_list)))?))
    }
    let leaves = array.leaves();
    let distance = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
    let innermost = resolve_axis(axis, array.ndim(), "the array")? == array.axes().len();
    if !innermost || distance == 0 || distance > leaves.len() || leaves.null_count() > 0 {
        return Ok(None);
    }
    let AxisGroups::Lists(lists) = group_along_axis(array, axis)? else { return Ok(None) };
    Ok(match leaves.data_type() {
        DataType::Float32 => Some(subtract_typed::<Float32Type>(leaves, &lists, n < 0, distance)?),
        DataType::Float64 => Some(subtract_typed::<Float64Type>(leaves, &lists, n < 0, distance)?),
        _ => None,
    })
}

/// Returns the type of the [`diff`] of leaves.
///
/// ```
/// # use serrate_core as serrate;
/// # use arrow::datatypes::DataType;
/// use serrate::kernels::running::find_diff_type;
/// assert_eq!(find_diff_type(&DataType::UInt8)?, DataType::Int64);
/// assert!(find_diff_type(&DataType::Utf8).is_err());
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If leaves of this type cannot be subtracted.
#[doc(hidden)]
pub fn find_diff_type(leaf: &DataType) -> Result<DataType> {
    Ok(match leaf {
        DataType::Dictionary(_, values) => return find_diff_type(values),
        DataType::Boolean | DataType::Null => DataType::Int64,
        t if t.is_integer() => DataType::Int64,
        t if t.is_floating() || t.is_decimal() || t.is_temporal() => {
            let none = arrow::array::new_empty_array(t);
            let found = numeric::sub(&none, &none);
            found
                .map_err(|_| Error::type_of("diff", "numbers or times (cast the values first)", t))?
                .data_type()
                .clone()
        }
        t => return Err(Error::type_of("diff", "numbers or times (cast the values first)", t)),
    })
}

/// Computes [`diff`] of unsigned integers in 128 bits, because they may exceed `Int64`. Returns an
/// error if a difference does not fit `Int64`.
fn compute_unsigned_diff(array: &RaggedArray, n: i64, axis: i64) -> Result<RaggedArray> {
    let before = shift(array, n, None, axis)?;
    let (a, b) = (array.leaves().as_primitive::<UInt64Type>(), before.leaves());
    let b = b.as_primitive::<UInt64Type>();
    let found: PrimitiveArray<Int64Type> = arrow::compute::try_binary(a, b, |a, b| {
        i64::try_from(i128::from(a) - i128::from(b))
            .map_err(|_| arrow::error::ArrowError::ArithmeticOverflow(format!("{a} - {b}")))
    })
    .map_err(|e| match e {
        arrow::error::ArrowError::ArithmeticOverflow(e) => Error::Overflow(format!("diff: {e}")),
        other => other.into(),
    })?;
    array.with_leaves(Arc::new(found))
}

/// Replaces each null leaf with the last valid leaf before it along axis `axis`; nulls before the
/// first valid leaf stay null.
///
/// NaN is a valid value. Shares all buffers if no leaf is null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::running::forward_fill;
/// // [[NULL, 1, NULL], [NULL]]
/// let leaves = Arc::new(Int32Array::from(vec![None, Some(1), None, None]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let expected = Int32Array::from(vec![None, Some(1), Some(1), None]);
/// assert_eq!(forward_fill(&a, 1)?.leaves().as_ref(), &expected);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array has no such axis.
pub fn forward_fill(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    fill_gaps(array, axis, false)
}

/// Replaces nulls with the next valid leaf along `axis`; nulls after the last valid leaf stay null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::running::backward_fill;
/// // [[NULL, 1, NULL], [2]]
/// let leaves = Arc::new(Int32Array::from(vec![None, Some(1), None, Some(2)]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let expected = Int32Array::from(vec![Some(1), Some(1), None, Some(2)]);
/// assert_eq!(backward_fill(&a, 1)?.leaves().as_ref(), &expected);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array has no such axis.
pub fn backward_fill(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    fill_gaps(array, axis, true)
}

fn fill_gaps(array: &RaggedArray, axis: i64, back: bool) -> Result<RaggedArray> {
    let groups = group_along_axis(array, axis)?;
    let nulls = array.leaves().logical_nulls().filter(|n| n.null_count() > 0);
    let Some(nulls) = nulls.filter(|_| !array.leaf_type().is_null()) else {
        return Ok(array.clone());
    };
    if let AxisGroups::Stacked(_) = groups {
        return apply_in_lists(array, axis, |leaves, lists| {
            let nulls = leaves.logical_nulls().filter(|n| n.null_count() > 0);
            nulls.map_or_else(|| Ok(leaves.clone()), |n| fill_lists(leaves, &n, lists, back))
        });
    }
    let AxisGroups::Lists(lists) = groups else { return Ok(array.clone()) };
    array.with_leaves(fill_lists(array.leaves(), &nulls, &lists, back)?)
}

fn fill_lists(
    leaves: &ArrayRef,
    nulls: &NullBuffer,
    lists: &Layout,
    back: bool,
) -> Result<ArrayRef> {
    let mut valid = MutableBuffer::from(nulls.inner().sliced().as_slice().to_vec());
    for_each_gap(nulls, lists, back, |nulls, _| {
        nulls.for_each(|i| bit_util::set_bit(valid.as_slice_mut(), i));
    });
    let valid = NullBuffer::new(BooleanBuffer::new(valid.into(), 0, leaves.len()));
    let valid = Some(valid).filter(|n| n.null_count() > 0);
    macro_rules! by_width {
        ($($width:literal => $t:ty),*) => {
            match leaves.data_type().primitive_width() {
                $(Some($width) => {
                    let same = reinterpret_values(leaves, &<$t>::DATA_TYPE)?;
                    let mut out = allocate_values(leaves.len());
                    out.extend_from_slice(same.as_primitive::<$t>().values());
                    for_each_gap(nulls, lists, back, |nulls, source| {
                        let value = out[source];
                        out[nulls].fill(value);
                    });
                    let out: ArrayRef = Arc::new(PrimitiveArray::<$t>::try_new(out.into(), valid)?);
                    reinterpret_values(&out, leaves.data_type())
                })*
                _ => {
                    let mut sources: Vec<u64> = (0..leaves.len() as u64).collect();
                    for_each_gap(nulls, lists, back, |nulls, source| {
                        sources[nulls].fill(source as u64);
                    });
                    Ok(take(leaves, &UInt64Array::from(sources), None)?)
                }
            }
        };
    }
    by_width!(1 => UInt8Type, 2 => UInt16Type, 4 => UInt32Type, 8 => UInt64Type)
}

/// Calls `each` for each run of nulls in a list, with the indices of the run and the index of the
/// leaf before it (after it if `back` is set), if this leaf is in the same list.
fn for_each_gap(
    nulls: &NullBuffer,
    lists: &Layout,
    back: bool,
    mut each: impl FnMut(Range<usize>, usize),
) {
    let gaps = !nulls.inner();
    let mut list = 0;
    let mut range = if lists.lists() > 0 { lists.range(0) } else { 0..0 };
    for (start, end) in gaps.set_slices() {
        let mut at = start;
        while at < end {
            while range.end <= at {
                list += 1;
                range = lists.range(list);
            }
            let stop = end.min(range.end);
            let source = match back {
                false => at.checked_sub(1).filter(|before| *before >= range.start),
                true => Some(stop).filter(|after| *after < range.end),
            };
            if let Some(source) = source {
                each(at..stop, source);
            }
            at = stop;
        }
    }
}

/// Applies `work` to the leaves and to the lists in which an operation runs along `axis`. For an
/// outer axis, each of these lists has the leaves at the same index of successive elements.
fn apply_in_lists(
    array: &RaggedArray,
    axis: i64,
    work: impl FnOnce(&ArrayRef, &Layout) -> Result<ArrayRef>,
) -> Result<RaggedArray> {
    match group_along_axis(array, axis)? {
        AxisGroups::Lists(lists) => array.with_leaves(work(array.leaves(), &lists)?),
        AxisGroups::Stacked(stacked) => {
            let (order, lists) = stacked.order_by_slot()?;
            let found = work(&take(array.leaves(), &order, None)?, &lists)?;
            // Restore the order of the array: `found[i]` is the result of leaf `order[i]`.
            let mut back = vec![0u64; order.len()];
            for (to, from) in order.values().iter().enumerate() {
                back[usize::try_from(*from).unwrap_or(usize::MAX)] = to as u64;
            }
            array.with_leaves(take(&found, &UInt64Array::from(back), None)?)
        }
    }
}
