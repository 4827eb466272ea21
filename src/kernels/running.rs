//! Along an axis, what came so far: running sums, differences, shifts, filled gaps.
//!
//! All of these keep the lists of the array, and share them: the result has a value for every leaf.
//! Along the innermost axis they go through each list; along an outer axis (axis 0 among them) through
//! the leaves at one place of its elements, as a reduction along that axis would: what an element does
//! not have at a place is passed over.

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

use super::args::exact;
use super::elementwise::each_length;
use super::reduce::{Places, Reduction, places};
use super::room::with_room;
use crate::array::nulls::with_nulls;
use crate::array::{Layout, RaggedArray, resolve_axis};
use crate::error::{Error, Result};

/// What a running operation makes of the values so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Running {
    /// Their sum.
    Sum,
    /// Their product.
    Prod,
    /// The smallest of them, NaN from the first NaN on.
    Min,
    /// The largest of them, NaN from the first NaN on.
    Max,
}

impl Running {
    /// Name as in an error: `cumsum`, ...
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "cumsum",
            Self::Prod => "cumprod",
            Self::Min => "cummin",
            Self::Max => "cummax",
        }
    }

    /// Type of the result over leaves of a type: sums and products as those of
    /// [`reduce`](super::reduce::reduce), minimum and maximum as the leaves, which are numbers or times.
    ///
    /// # Errors
    /// When such leaves have none.
    pub fn output_type(self, leaf: &DataType) -> Result<DataType> {
        let how = match self {
            Self::Sum => Reduction::Sum,
            Self::Prod => Reduction::Prod,
            Self::Min | Self::Max if register(leaf).is_some() => Reduction::Max,
            _ => return Err(Error::type_of(self.name(), "numbers, truth or times", leaf)),
        };
        how.output_type(leaf).map_err(|e| match e {
            Error::Type { expected, found, .. } => {
                Error::Type { what: self.name().into(), expected, found }
            }
            other => other,
        })
    }
}

/// The type that values are compared in; `None` for what is no number and no time.
fn register(leaf: &DataType) -> Option<DataType> {
    Some(match leaf {
        DataType::Dictionary(_, values) => return register(values),
        DataType::Boolean => DataType::Int8,
        DataType::Null => DataType::Int64,
        t if t.is_numeric() && !t.is_decimal() => t.clone(),
        t => super::reduce::native_int(t)?,
    })
}

/// The [`Running`] sum, product, minimum or maximum of every leaf and those before it along axis
/// `axis`, negatives from the innermost.
///
/// A null leaf stays null and is passed over. NaN makes NaN of all that follows in its list. Integers
/// give 64 bits and refuse to overflow; `Float32` stays, computed in 64 bits.
///
/// ```
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
/// When there is no such axis, for leaves without such a result, and on integer overflow.
pub fn running(array: &RaggedArray, how: Running, axis: i64) -> Result<RaggedArray> {
    let out = how.output_type(array.leaf_type())?;
    let leaves = match array.leaf_type() {
        DataType::Dictionary(_, values) => &cast(array.leaves(), values)?,
        _ => array.leaves(),
    };
    let array = array.with_leaves(leaves.clone())?;
    in_lists(&array, axis, |leaves, lists| {
        let found = cumulated(how, leaves, lists, axis, &out)?;
        if *found.data_type() == out { Ok(found) } else { Ok(cast(&found, &out)?) }
    })
}

/// [`running`] sums.
///
/// # Errors
/// As [`running`].
pub fn cumsum(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    running(array, Running::Sum, axis)
}

/// [`running`] products.
///
/// # Errors
/// As [`running`].
pub fn cumprod(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    running(array, Running::Prod, axis)
}

fn cumulated(
    how: Running,
    leaves: &ArrayRef,
    lists: &Layout,
    axis: i64,
    out: &DataType,
) -> Result<ArrayRef> {
    let overflow = |leaf: usize| {
        let list = lists.list_of(leaf);
        Error::Overflow(format!("{} along axis {axis}, list {list}", how.name()))
    };
    if matches!(how, Running::Min | Running::Max) {
        return extremes(how == Running::Max, leaves, lists);
    }
    let product = how == Running::Prod;
    if out.is_floating() {
        let step = |acc: f64, v: f64| Some(if product { acc * v } else { acc + v });
        let start = if product { 1.0 } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, reason = "rounding to the type is wanted")]
        return match leaves.data_type() {
            DataType::Float64 => {
                let leaves = leaves.as_primitive::<Float64Type>();
                // NaN has one form: which of two comes out of a sum is up to the processor.
                let finish = |acc: f64| if acc.is_nan() { f64::NAN } else { acc };
                scanned::<_, Float64Type, _>(leaves, lists, start, step, finish)
            }
            _ => {
                let leaves = cast(leaves, &DataType::Float32)?;
                let leaves = leaves.as_primitive::<Float32Type>();
                let step = |acc: f64, v: f32| step(acc, v.into());
                let finish = |acc: f64| if acc.is_nan() { f32::NAN } else { acc as f32 };
                scanned::<_, Float32Type, _>(leaves, lists, start, step, finish)
            }
        }
        .map_err(overflow);
    }
    if *out == DataType::UInt64 {
        let leaves = cast(leaves, &DataType::UInt64)?;
        let step = |acc: u64, v: u64| if product { acc.checked_mul(v) } else { acc.checked_add(v) };
        let leaves = leaves.as_primitive::<UInt64Type>();
        let start = u64::from(product);
        return scanned::<_, UInt64Type, _>(leaves, lists, start, step, |acc| acc)
            .map_err(overflow);
    }
    // Signed integers, truth, durations; a sum may leave 64 bits only where it is looked at.
    let leaves = match leaves.data_type() {
        DataType::Duration(_) => super::reduce::reinterpret(leaves, &DataType::Int64)?,
        DataType::Boolean => cast(&cast(leaves, &DataType::Int8)?, &DataType::Int64)?,
        _ => cast(leaves, &DataType::Int64)?,
    };
    let step = |acc: i64, v: i64| if product { acc.checked_mul(v) } else { acc.checked_add(v) };
    let leaves = leaves.as_primitive::<Int64Type>();
    let found = scanned::<_, Int64Type, _>(leaves, lists, i64::from(product), step, |acc| acc);
    super::reduce::reinterpret(&found.map_err(overflow)?, out)
}

/// One state after the other, list by list; the error is the first place where there is none.
fn scanned<T: ArrowPrimitiveType, O: ArrowPrimitiveType, A: Copy>(
    leaves: &PrimitiveArray<T>,
    lists: &Layout,
    start: A,
    step: impl Fn(A, T::Native) -> Option<A>,
    finish: impl Fn(A) -> O::Native,
) -> Result<ArrayRef, usize> {
    let flat = leaves.values();
    let nulls = leaves.nulls().filter(|n| n.null_count() > 0);
    let mut out: Vec<O::Native> = with_room(flat.len());
    let (mut from, mut failed) = (0, None);
    // Values are put together here: a vector's own length is in memory, and each of them would wait for it.
    let mut block = [O::Native::default(); 256];
    each_length(lists, |n| {
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

fn extremes(max: bool, leaves: &ArrayRef, lists: &Layout) -> Result<ArrayRef> {
    fn typed<T>(max: bool, leaves: &ArrayRef, lists: &Layout) -> Result<ArrayRef>
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
        let leaves = leaves.as_primitive::<T>();
        let finish = |acc: Option<T::Native>| acc.unwrap_or_default();
        scanned::<T, T, _>(leaves, lists, None, step, finish)
            .map_err(|leaf| Error::invalid(format!("no extreme at leaf {leaf}")))
    }
    let given = leaves.data_type();
    if given.is_null() {
        return Ok(Arc::clone(leaves));
    }
    let native = register(given).unwrap_or_else(|| given.clone());
    let same = match given {
        DataType::Boolean | DataType::Null => cast(leaves, &native)?,
        _ => super::reduce::reinterpret(leaves, &native)?,
    };
    macro_rules! by_type {
        ($($t:ident => $arrow:ty),*) => {
            match &native {
                $(DataType::$t => typed::<$arrow>(max, &same, lists)?,)*
                other => return Err(Error::type_of("cummin", "numbers, truth or times", other)),
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
        _ => super::reduce::reinterpret(&found, given),
    }
}

/// Every leaf is the one `n` places before it along axis `axis` (behind it for a negative `n`); where
/// there is none, `fill`, a flat array of one value, or null.
///
/// Along an outer axis the place is that of the element: what the element `n` before does not have at
/// a place is `fill`, too.
///
/// ```
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
/// When there is no such axis, or `fill` is not one value of the type of the leaves.
pub fn shift(
    array: &RaggedArray,
    n: i64,
    fill: Option<&ArrayRef>,
    axis: i64,
) -> Result<RaggedArray> {
    let fill = match fill {
        Some(fill) if fill.len() != 1 => {
            return Err(Error::invalid(format!("shift: a fill of {} values", fill.len())));
        }
        Some(fill) => Some(exact("the fill of shift", fill, array.leaf_type())?),
        None => None,
    };
    let leaves = array.leaves();
    let distance = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
    let (found, there) = match places(array, axis)? {
        Places::Lists(_) if distance == 0 || leaves.is_empty() => return Ok(array.clone()),
        Places::Lists(lists) => moved(leaves, &lists, n < 0, distance)?,
        Places::Overlay(overlay) => {
            let from = overlay.shifted(n)?;
            let there = BooleanBuffer::from_iter(from.iter().map(|i| i.is_some()));
            (take(leaves, &UInt64Array::from(from), None)?, there)
        }
    };
    let found = match fill {
        Some(fill) if fill.is_valid(0) => {
            let there = arrow::array::BooleanArray::new(there, None);
            let fill = arrow::array::Scalar::new(fill);
            arrow::compute::kernels::zip::zip(&there, &found, &fill)?
        }
        _ => found,
    };
    array.with_leaves(found)
}

/// All leaves moved at once, as if they were one list; then what came from another list is cleared.
fn moved(
    leaves: &ArrayRef,
    lists: &Layout,
    back: bool,
    distance: usize,
) -> Result<(ArrayRef, BooleanBuffer)> {
    let there = not_moved_in(lists, back, distance, leaves.len());
    let moved = moved_values(leaves, back, distance.min(leaves.len()))?;
    if moved.data_type().is_null() {
        return Ok((moved, there));
    }
    let nulls = NullBuffer::union(moved.nulls(), Some(&NullBuffer::new(there.clone())));
    Ok((with_nulls(&moved, nulls)?, there))
}

/// Where a leaf `distance` places before (behind with `back`) is one of the same list.
fn not_moved_in(lists: &Layout, back: bool, distance: usize, len: usize) -> BooleanBuffer {
    let mut bits = MutableBuffer::from_len_zeroed(len.div_ceil(8));
    bits.as_slice_mut().fill(u8::MAX);
    let mut start = 0;
    each_length(lists, |n| {
        let gone = n.min(distance);
        let first = if back { start + n - gone } else { start };
        (first..first + gone).for_each(|i| bit_util::unset_bit(bits.as_slice_mut(), i));
        start += n;
    });
    BooleanBuffer::new(bits.into(), 0, len)
}

/// The leaves, each `far` places on (or back); null where there is none.
fn moved_values(leaves: &ArrayRef, back: bool, far: usize) -> Result<ArrayRef> {
    let len = leaves.len();
    macro_rules! by_width {
        ($($width:literal => $t:ty),*) => {
            match leaves.data_type().primitive_width() {
                $(Some($width) if leaves.null_count() == 0 => {
                    let same = super::reduce::reinterpret(leaves, &<$t>::DATA_TYPE)?;
                    let flat = same.as_primitive::<$t>().values();
                    let mut out = with_room(len);
                    if back {
                        out.extend_from_slice(&flat[far..]);
                        out.resize(len, Default::default());
                    } else {
                        out.resize(far, Default::default());
                        out.extend_from_slice(&flat[..len - far]);
                    }
                    let out: ArrayRef = Arc::new(PrimitiveArray::<$t>::new(out.into(), None));
                    return super::reduce::reinterpret(&out, leaves.data_type());
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

/// Every leaf less the one `n` places before it along axis `axis` (behind it for a negative `n`); null
/// where there is none, so that the lists stay as they are.
///
/// Integers and truth give `Int64` and refuse to overflow, floats stay what they are, times give
/// durations. NULL less anything is null.
///
/// # Errors
/// When there is no such axis, for leaves that have no difference, and on integer overflow.
pub fn diff(array: &RaggedArray, n: i64, axis: i64) -> Result<RaggedArray> {
    diff_type(array.leaf_type())?;
    let leaves = match array.leaf_type() {
        DataType::Dictionary(_, values) => &cast(array.leaves(), values)?,
        _ => array.leaves(),
    };
    let integers = matches!(leaves.data_type(), DataType::Boolean | DataType::Null)
        || leaves.data_type().is_integer();
    let leaves = match leaves.data_type() {
        DataType::Boolean => cast(&cast(leaves, &DataType::Int8)?, &DataType::Int64)?,
        t if integers && *t != DataType::UInt64 => cast(leaves, &DataType::Int64)?,
        DataType::UInt64 => return diff_of_unsigned(&array.with_leaves(leaves.clone())?, n, axis),
        _ => leaves.clone(),
    };
    let array = array.with_leaves(leaves)?;
    if let Some(found) = less_neighbours(&array, n, axis)? {
        return array.with_leaves(found);
    }
    let before = shift(&array, n, None, axis)?;
    let found = numeric::sub(array.leaves(), before.leaves()).map_err(|e| match e {
        arrow::error::ArrowError::ArithmeticOverflow(_) => Error::Overflow("diff".into()),
        other => other.into(),
    })?;
    array.with_leaves(found)
}

/// Floats less those `n` places before them, in one pass over all lists as if they were one; `None` where
/// that is not enough.
fn less_neighbours(array: &RaggedArray, n: i64, axis: i64) -> Result<Option<ArrayRef>> {
    fn typed<T: ArrowPrimitiveType>(
        leaves: &ArrayRef,
        lists: &Layout,
        back: bool,
        distance: usize,
    ) -> Result<ArrayRef> {
        let flat: &[T::Native] = leaves.as_primitive::<T>().values();
        let mut out = with_room(flat.len());
        let (before, behind) = (&flat[..flat.len() - distance], &flat[distance..]);
        if back {
            out.extend(before.iter().zip(behind).map(|(v, other)| v.sub_wrapping(*other)));
            out.resize(flat.len(), T::Native::default());
        } else {
            out.resize(distance, T::Native::default());
            out.extend(behind.iter().zip(before).map(|(v, other)| v.sub_wrapping(*other)));
        }
        let there = not_moved_in(lists, back, distance, flat.len());
        Ok(Arc::new(PrimitiveArray::<T>::try_new(out.into(), Some(NullBuffer::new(there)))?))
    }
    let leaves = array.leaves();
    let distance = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
    let innermost = resolve_axis(axis, array.ndim(), "the array")? == array.axes().len();
    if !innermost || distance == 0 || distance > leaves.len() || leaves.null_count() > 0 {
        return Ok(None);
    }
    let Places::Lists(lists) = places(array, axis)? else { return Ok(None) };
    Ok(match leaves.data_type() {
        DataType::Float32 => Some(typed::<Float32Type>(leaves, &lists, n < 0, distance)?),
        DataType::Float64 => Some(typed::<Float64Type>(leaves, &lists, n < 0, distance)?),
        _ => None,
    })
}

/// Type of the [`diff`]erences of leaves of a type.
///
/// # Errors
/// When they have none.
pub fn diff_type(leaf: &DataType) -> Result<DataType> {
    Ok(match leaf {
        DataType::Dictionary(_, values) => return diff_type(values),
        DataType::Boolean | DataType::Null => DataType::Int64,
        t if t.is_integer() => DataType::Int64,
        t if t.is_floating() || t.is_decimal() || t.is_temporal() => {
            let none = arrow::array::new_empty_array(t);
            let found = numeric::sub(&none, &none);
            found.map_err(|_| Error::type_of("diff", "numbers or times", t))?.data_type().clone()
        }
        t => return Err(Error::type_of("diff", "numbers or times", t)),
    })
}

/// Differences of what may be too large for a signed integer while they are not.
fn diff_of_unsigned(array: &RaggedArray, n: i64, axis: i64) -> Result<RaggedArray> {
    let before = shift(array, n, None, axis)?;
    let (a, b) = (array.leaves().as_primitive::<UInt64Type>(), before.leaves());
    let b = b.as_primitive::<UInt64Type>();
    let found: PrimitiveArray<Int64Type> = arrow::compute::try_binary(a, b, |a, b| {
        i64::try_from(i128::from(a) - i128::from(b))
            .map_err(|_| arrow::error::ArrowError::ArithmeticOverflow(String::new()))
    })
    .map_err(|_| Error::Overflow("diff".into()))?;
    array.with_leaves(Arc::new(found))
}

/// Null leaves take the value of the last leaf before them along axis `axis` that is not null; those
/// before all others stay null. NaN is a value.
///
/// Without null leaves everything is shared.
///
/// # Errors
/// When there is no such axis.
pub fn forward_fill(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    filled(array, axis, false)
}

/// Null leaves take the value of the next leaf behind them along axis `axis` that is not null; those
/// behind all others stay null.
///
/// # Errors
/// When there is no such axis.
pub fn backward_fill(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    filled(array, axis, true)
}

fn filled(array: &RaggedArray, axis: i64, back: bool) -> Result<RaggedArray> {
    let places = places(array, axis)?;
    let nulls = array.leaves().logical_nulls().filter(|n| n.null_count() > 0);
    let Some(nulls) = nulls.filter(|_| !array.leaf_type().is_null()) else {
        return Ok(array.clone());
    };
    if let Places::Overlay(_) = places {
        return in_lists(array, axis, |leaves, lists| {
            let nulls = leaves.logical_nulls().filter(|n| n.null_count() > 0);
            nulls.map_or_else(|| Ok(leaves.clone()), |n| fill_lists(leaves, &n, lists, back))
        });
    }
    let Places::Lists(lists) = places else { return Ok(array.clone()) };
    array.with_leaves(fill_lists(array.leaves(), &nulls, &lists, back)?)
}

/// Only nulls are looked at, and what stands beside them.
fn fill_lists(
    leaves: &ArrayRef,
    nulls: &NullBuffer,
    lists: &Layout,
    back: bool,
) -> Result<ArrayRef> {
    let mut valid = MutableBuffer::from(nulls.inner().sliced().as_slice().to_vec());
    each_filled(nulls, lists, back, |nulls, _| {
        nulls.for_each(|i| bit_util::set_bit(valid.as_slice_mut(), i));
    });
    let valid = NullBuffer::new(BooleanBuffer::new(valid.into(), 0, leaves.len()));
    let valid = Some(valid).filter(|n| n.null_count() > 0);
    macro_rules! by_width {
        ($($width:literal => $t:ty),*) => {
            match leaves.data_type().primitive_width() {
                $(Some($width) => {
                    let same = super::reduce::reinterpret(leaves, &<$t>::DATA_TYPE)?;
                    let mut out = with_room(leaves.len());
                    out.extend_from_slice(same.as_primitive::<$t>().values());
                    each_filled(nulls, lists, back, |nulls, source| {
                        let value = out[source];
                        out[nulls].fill(value);
                    });
                    let out: ArrayRef = Arc::new(PrimitiveArray::<$t>::try_new(out.into(), valid)?);
                    super::reduce::reinterpret(&out, leaves.data_type())
                })*
                _ => {
                    let mut places: Vec<u64> = (0..leaves.len() as u64).collect();
                    each_filled(nulls, lists, back, |nulls, source| {
                        places[nulls].fill(source as u64);
                    });
                    Ok(take(leaves, &UInt64Array::from(places), None)?)
                }
            }
        };
    }
    by_width!(1 => UInt8Type, 2 => UInt16Type, 4 => UInt32Type, 8 => UInt64Type)
}

/// Nulls that follow each other, and the place that they take their value from.
fn each_filled(
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
                true => Some(stop).filter(|behind| *behind < range.end),
            };
            if let Some(source) = source {
                each(at..stop, source);
            }
            at = stop;
        }
    }
}

/// An operation on the leaves of contiguous lists that gives as many, along any axis.
fn in_lists(
    array: &RaggedArray,
    axis: i64,
    work: impl FnOnce(&ArrayRef, &Layout) -> Result<ArrayRef>,
) -> Result<RaggedArray> {
    match places(array, axis)? {
        Places::Lists(lists) => array.with_leaves(work(array.leaves(), &lists)?),
        Places::Overlay(overlay) => {
            let (order, lists) = overlay.in_order()?;
            let found = work(&take(array.leaves(), &order, None)?, &lists)?;
            // Back to where they came from.
            let mut back = vec![0u64; order.len()];
            for (to, from) in order.values().iter().enumerate() {
                back[usize::try_from(*from).unwrap_or(usize::MAX)] = to as u64;
            }
            array.with_leaves(take(&found, &UInt64Array::from(back), None)?)
        }
    }
}
