//! Running sums, products, minima and maxima.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use super::along_axis::apply_in_lists;
use crate::array::{Layout, RaggedArray};
use crate::error::{Error, Result};
use crate::kernels::allocate::allocate_values;
use crate::kernels::elementwise::for_each_length;
use crate::kernels::native::{find_native_int, reinterpret_values};
use crate::kernels::reduce::Reduction;

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
    /// Sums and products have the type that [`reduce`](crate::kernels::reduce::reduce) gives;
    /// minimum and maximum have the type of the leaves, which must be numbers, booleans or times.
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

/// Returns the [`RunningOp`] sum, product, minimum or maximum of every leaf and the leaves before
/// it along axis `axis` (negative axes count from the innermost).
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
    // Collect results in a local array first: each push to a vector would wait for the previous
    // one.
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
