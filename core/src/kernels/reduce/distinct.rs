//! Counts the distinct values of lists.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Int64Array, UInt32Array, make_comparator,
};
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{
    ArrowNativeTypeOp, DataType, Float32Type, Float64Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};

use super::ReduceTask;
use super::groups::{GroupLists, rank_valid};
use super::segments::for_each_valid;
use crate::error::Result;
use crate::kernels::bits::RankedBitmap;
use crate::kernels::native::{find_native_int, reinterpret_values};
use crate::kernels::sort::unpack_float_dictionary;

pub(super) fn reduce_nunique(leaves: &ArrayRef, task: &ReduceTask) -> Result<ArrayRef> {
    if let Some(leaves) = unpack_float_dictionary(leaves)? {
        return reduce_nunique(&leaves, task);
    }
    let lists = task.groups.gather_leaves(leaves)?;
    let counts = count_distinct(&lists)?;
    Ok(Arc::new(Int64Array::try_new(counts.into(), task.groups.nulls().cloned())?))
}

fn count_distinct(lists: &GroupLists) -> Result<Vec<i64>> {
    let leaves = &lists.leaves;
    Ok(match leaves.data_type() {
        DataType::Null => vec![0; lists.lists.layout().lists()],
        DataType::Boolean => count_by_table::<UInt8Type>(&cast(leaves, &DataType::UInt8)?, lists),
        DataType::Int8 => {
            count_by_table::<UInt8Type>(&reinterpret_values(leaves, &DataType::UInt8)?, lists)
        }
        DataType::UInt8 => count_by_table::<UInt8Type>(leaves, lists),
        DataType::Int16 => {
            count_by_table::<UInt16Type>(&reinterpret_values(leaves, &DataType::UInt16)?, lists)
        }
        DataType::UInt16 => count_by_table::<UInt16Type>(leaves, lists),
        DataType::UInt32 => count_by_sorting::<UInt32Type>(leaves, lists),
        DataType::UInt64 => count_by_sorting::<UInt64Type>(leaves, lists),
        DataType::Float16 => {
            count_by_sorting::<Float32Type>(&cast(leaves, &DataType::Float32)?, lists)
        }
        DataType::Float32 => count_by_sorting::<Float32Type>(leaves, lists),
        DataType::Float64 => count_by_sorting::<Float64Type>(leaves, lists),
        t if find_native_int(t) == Some(DataType::Int32) => {
            count_by_sorting::<Int32Type>(&reinterpret_values(leaves, &DataType::Int32)?, lists)
        }
        t if find_native_int(t) == Some(DataType::Int64) => {
            count_by_sorting::<Int64Type>(&reinterpret_values(leaves, &DataType::Int64)?, lists)
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(..) => {
            count_by_sorting::<UInt32Type>(&number_values(leaves)?, lists)
        }
        _ => count_by_comparison(lists)?,
    })
}

/// Counts the distinct values of each list, for integers of 8 or 16 bits. A table maps each integer
/// to the last list in which it was found.
fn count_by_table<T>(leaves: &ArrayRef, lists: &GroupLists) -> Vec<i64>
where
    T: ArrowPrimitiveType<Native: Into<usize>>,
{
    let flat = leaves.as_primitive::<T>().values();
    let mut seen = vec![usize::MAX; 1 << (8 * size_of::<T::Native>())];
    count_lists(lists, rank_valid(leaves).as_ref(), |list, values| {
        let mut found = 0;
        values.for_each(|i| {
            let last = &mut seen[flat[i].into()];
            found += i64::from(*last != list);
            *last = list;
        });
        found
    })
}

/// Counts the distinct values of each list by sorting it. All NaN are one value, and so are both
/// zeros.
fn count_by_sorting<T: ArrowPrimitiveType>(leaves: &ArrayRef, lists: &GroupLists) -> Vec<i64> {
    let flat = leaves.as_primitive::<T>().values();
    let mut scratch: Vec<T::Native> = Vec::new();
    count_lists(lists, rank_valid(leaves).as_ref(), |_, values| {
        scratch.clear();
        // Adding zero turns -0.0 into 0.0 and changes nothing else.
        values.for_each(|i| scratch.push(flat[i].add_wrapping(T::Native::ZERO)));
        scratch.sort_unstable_by(|a, b| a.compare(*b));
        let nan = |v: T::Native| v.partial_cmp(&v).is_none();
        let differ = |w: &[T::Native]| w[0].is_ne(w[1]) && !(nan(w[0]) && nan(w[1]));
        // Negative NaN sort to the start and positive NaN to the end. If there are both, `changes`
        // counts NaN twice, and `ends` corrects this.
        let ends = match (scratch.first(), scratch.last()) {
            (Some(a), Some(b)) => nan(*a) && nan(*b) && scratch.iter().any(|v| !nan(*v)),
            _ => false,
        };
        let changes = scratch.windows(2).filter(|w| differ(w)).count();
        let found = if scratch.is_empty() { 0 } else { changes + 1 - usize::from(ends) };
        i64::try_from(found).unwrap_or(i64::MAX)
    })
}

/// Numbers the values of a dictionary or strings: equal values get equal integers, null stays null.
fn number_values(leaves: &ArrayRef) -> Result<ArrayRef> {
    if let Some(dictionary) = leaves.as_any_dictionary_opt() {
        // Counting distinct keys would be wrong: several keys may have equal values or refer to
        // null.
        let values = number_strings(dictionary.values())?;
        return Ok(arrow::compute::take(&values, dictionary.keys(), None)?);
    }
    number_strings(leaves)
}

fn number_strings(values: &ArrayRef) -> Result<ArrayRef> {
    let strings = match values.data_type() {
        DataType::LargeUtf8 => values.clone(),
        t if super::super::text::is_text(t) => cast(values, &DataType::LargeUtf8)?,
        // Values that are not strings are numbered by their rank among all values.
        _ => {
            let order = arrow::compute::rank(values, None)?;
            let order = order.into_iter().enumerate();
            let number = |(i, n): (usize, u32)| values.is_valid(i).then_some(n);
            return Ok(Arc::new(order.map(number).collect::<UInt32Array>()));
        }
    };
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let strings = strings.as_string::<i64>();
    Ok(Arc::new(
        strings
            .iter()
            .map(|t| {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                t.map(|t| *numbers.entry(t).or_insert(next))
            })
            .collect::<UInt32Array>(),
    ))
}

fn count_by_comparison(lists: &GroupLists) -> Result<Vec<i64>> {
    let leaves = &lists.leaves;
    let compare = make_comparator(leaves, leaves, SortOptions::default())?;
    let valid = lists.valid().map(|n| RankedBitmap::new(n.inner()));
    let mut scratch: Vec<usize> = Vec::new();
    Ok(count_lists(lists, valid.as_ref(), |_, values| {
        scratch.clear();
        values.for_each(|i| scratch.push(i));
        scratch.sort_unstable_by(|a, b| compare(*a, *b));
        scratch.dedup_by(|a, b| compare(*a, *b).is_eq());
        i64::try_from(scratch.len()).unwrap_or(i64::MAX)
    }))
}

pub(super) struct ValidLeaves<'a> {
    pub(super) valid: Option<&'a RankedBitmap>,
    pub(super) list: std::ops::Range<usize>,
}

impl ValidLeaves<'_> {
    #[inline]
    pub(super) fn for_each(&self, mut each: impl FnMut(usize)) {
        match self.valid {
            None => self.list.clone().for_each(each),
            Some(valid) => for_each_valid(valid, self.list.start, self.list.end, &mut each),
        }
    }
}

fn count_lists(
    lists: &GroupLists,
    valid: Option<&RankedBitmap>,
    mut count: impl FnMut(usize, ValidLeaves<'_>) -> i64,
) -> Vec<i64> {
    let layout = lists.lists.layout();
    (0..layout.lists())
        .map(|list| count(list, ValidLeaves { valid, list: layout.range(list) }))
        .collect()
}
