//! How often wanted values occur in lists, and whether they do.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, UInt8Type, UInt16Type, UInt32Type, UInt64Type};

use super::isin::isin;
use super::reduce::{Places, Reduction, places, reduce, reinterpret};
use super::reshape::flatten_all;
use crate::array::{Layout, ListAxis, RaggedArray};
use crate::error::Result;

/// How many leaves of every list of axis `axis`, or of every row, are one of `values`: `Int64`.
///
/// What is equal is said at [`isin`]; null leaves are equal to nothing. A null list gives null.
///
/// # Errors
/// As [`isin`], and when there is no such axis.
pub fn count_values(
    array: &RaggedArray,
    values: &ArrayRef,
    axis: Option<i64>,
) -> Result<RaggedArray> {
    reduce(&isin(array, values)?, Reduction::Sum, axis)
}

/// Whether any leaf of every list of axis `axis`, or of every row, is one of `values`.
///
/// What is equal is said at [`isin`]; null leaves are equal to nothing. A null list gives null. One
/// integer, or one text of a dictionary, is looked for in each list until it is found, and no mask is
/// made.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, AsArray, UInt16Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::occurrences::any_value;
/// // [[1, 2, 3], [4]]
/// let leaves = Arc::new(UInt16Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let two: ArrayRef = Arc::new(UInt16Array::from(vec![2]));
/// let found = any_value(&a, &two, None)?;
/// assert_eq!(found.leaves().as_boolean().iter().collect::<Vec<_>>(), [Some(true), Some(false)]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// As [`isin`], and when there is no such axis.
pub fn any_value(array: &RaggedArray, values: &ArrayRef, axis: Option<i64>) -> Result<RaggedArray> {
    let Some(wanted) = Needle::new(array.leaves(), values)? else {
        return reduce(&isin(array, values)?, Reduction::Any, axis);
    };
    let flat;
    let (array, axis) = match axis {
        Some(axis) => (array, axis),
        None if array.axes().is_empty() => return isin_of_rows(array, values),
        None => {
            flat = flatten_all(array)?;
            (&flat, -1)
        }
    };
    let lists = match places(array, axis)? {
        Places::Lists(lists) if array.axes().last().is_some_and(|l| *l.layout() == lists) => lists,
        _ => return reduce(&isin(array, values)?, Reduction::Any, Some(axis)),
    };
    let found = wanted.in_lists(array.leaves(), &lists)?;
    let (rows, mut axes, _) = array.clone().into_parts();
    let nulls = axes.pop().and_then(|level: ListAxis| level.nulls().cloned());
    RaggedArray::try_new(rows, axes, Arc::new(BooleanArray::new(found, nulls)))
}

fn isin_of_rows(array: &RaggedArray, values: &ArrayRef) -> Result<RaggedArray> {
    reduce(&isin(array, values)?, Reduction::Any, None)
}

/// One integer among integers.
struct Needle {
    bits: u64,
}

impl Needle {
    /// `None` when there is not exactly one value to look for, or leaves are not integers of any kind.
    fn new(leaves: &ArrayRef, values: &ArrayRef) -> Result<Option<Self>> {
        let t = leaves.data_type();
        if values.len() != 1 || values.logical_null_count() > 0 {
            return Ok(None);
        }
        if let Some(dictionary) = leaves.as_any_dictionary_opt() {
            // The one key that stands for the value.
            let found = RaggedArray::try_new(
                dictionary.values().len(),
                Vec::new(),
                dictionary.values().clone(),
            )?;
            let found = isin(&found, values)?;
            let found = super::gather::true_bits(found.leaves().as_boolean());
            return Ok(match found.count_set_bits() {
                1 => found.set_indices().next().map(|key| Self { bits: key as u64 }),
                _ => None,
            });
        }
        if !t.is_integer() {
            return Ok(None);
        }
        // In the type of the leaves, if it has the value.
        let options = arrow::compute::CastOptions { safe: true, ..Default::default() };
        if !values.data_type().is_integer() {
            return Ok(None);
        }
        let there = arrow::compute::cast_with_options(values, t, &options)?;
        if there.null_count() > 0 {
            return Ok(None);
        }
        Ok(Some(Self { bits: bits_of(&there)? }))
    }

    fn in_lists(&self, leaves: &ArrayRef, lists: &Layout) -> Result<BooleanBuffer> {
        let keys = leaves.as_any_dictionary_opt().map(|d| d.keys().slice(0, leaves.len()));
        let leaves = keys.as_ref().unwrap_or(leaves);
        let same = |t: &DataType| reinterpret(leaves, t);
        Ok(match leaves.data_type().primitive_width() {
            Some(1) => found::<UInt8Type>(&same(&DataType::UInt8)?, self.bits, lists),
            Some(2) => found::<UInt16Type>(&same(&DataType::UInt16)?, self.bits, lists),
            Some(4) => found::<UInt32Type>(&same(&DataType::UInt32)?, self.bits, lists),
            _ => found::<UInt64Type>(&same(&DataType::UInt64)?, self.bits, lists),
        })
    }
}

/// The bits of the first of some integers, those above its width unset.
fn bits_of(values: &ArrayRef) -> Result<u64> {
    fn first<T: ArrowPrimitiveType<Native: Into<u64>>>(values: &ArrayRef) -> u64 {
        values.as_primitive::<T>().values().first().map_or(0, |v| (*v).into())
    }
    let same = |t: &DataType| reinterpret(values, t);
    Ok(match values.data_type().primitive_width() {
        Some(1) => first::<UInt8Type>(&same(&DataType::UInt8)?),
        Some(2) => first::<UInt16Type>(&same(&DataType::UInt16)?),
        Some(4) => first::<UInt32Type>(&same(&DataType::UInt32)?),
        _ => first::<UInt64Type>(&same(&DataType::UInt64)?),
    })
}

/// Leaves that are looked at before it is asked whether one was found.
const STEP: usize = 128;

fn found<T>(leaves: &ArrayRef, bits: u64, lists: &Layout) -> BooleanBuffer
where
    T: ArrowPrimitiveType<Native: TryFrom<u64>>,
{
    let leaves = leaves.as_primitive::<T>();
    let (flat, nulls) = (leaves.values(), leaves.nulls());
    let Ok(wanted) = T::Native::try_from(bits) else {
        return BooleanBuffer::new_unset(lists.lists());
    };
    BooleanBuffer::collect_bool(lists.lists(), |list| {
        let range = lists.range(list);
        let mut at = range.start;
        for step in flat[range].chunks(STEP) {
            if step.iter().fold(false, |found, v| found | (*v == wanted)) {
                // What stands under a null is no value.
                let valid = |i: usize| nulls.is_none_or(|n| n.is_valid(at + i));
                if step.iter().enumerate().any(|(i, v)| *v == wanted && valid(i)) {
                    return true;
                }
            }
            at += step.len();
        }
        false
    })
}
