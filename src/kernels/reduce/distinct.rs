//! How many different values there are.

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

use super::Task;
use super::groups::InLists;
use super::numbers::{native_int, ranks, reinterpret};
use super::segments::for_each_valid;
use crate::error::Result;
use crate::kernels::bits::Rank;
use crate::kernels::sort::plain_floats;

/// [`Reduction::Nunique`](super::Reduction::Nunique).
pub(super) fn nunique(leaves: &ArrayRef, task: &Task) -> Result<ArrayRef> {
    if let Some(leaves) = plain_floats(leaves)? {
        return nunique(&leaves, task);
    }
    let lists = task.groups.gathered(leaves)?;
    let counts = of_lists(&lists)?;
    Ok(Arc::new(Int64Array::try_new(counts.into(), task.groups.nulls().cloned())?))
}

fn of_lists(lists: &InLists) -> Result<Vec<i64>> {
    let leaves = &lists.leaves;
    Ok(match leaves.data_type() {
        DataType::Null => vec![0; lists.lists.layout().lists()],
        DataType::Boolean => stamped::<UInt8Type>(&cast(leaves, &DataType::UInt8)?, lists),
        DataType::Int8 => stamped::<UInt8Type>(&reinterpret(leaves, &DataType::UInt8)?, lists),
        DataType::UInt8 => stamped::<UInt8Type>(leaves, lists),
        DataType::Int16 => stamped::<UInt16Type>(&reinterpret(leaves, &DataType::UInt16)?, lists),
        DataType::UInt16 => stamped::<UInt16Type>(leaves, lists),
        DataType::UInt32 => sorted::<UInt32Type>(leaves, lists),
        DataType::UInt64 => sorted::<UInt64Type>(leaves, lists),
        DataType::Float16 => sorted::<Float32Type>(&cast(leaves, &DataType::Float32)?, lists),
        DataType::Float32 => sorted::<Float32Type>(leaves, lists),
        DataType::Float64 => sorted::<Float64Type>(leaves, lists),
        t if native_int(t) == Some(DataType::Int32) => {
            sorted::<Int32Type>(&reinterpret(leaves, &DataType::Int32)?, lists)
        }
        t if native_int(t) == Some(DataType::Int64) => {
            sorted::<Int64Type>(&reinterpret(leaves, &DataType::Int64)?, lists)
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(..) => {
            sorted::<UInt32Type>(&texts(leaves)?, lists)
        }
        _ => by_comparison(lists)?,
    })
}

/// Small numbers: the last list that each was seen in.
fn stamped<T>(leaves: &ArrayRef, lists: &InLists) -> Vec<i64>
where
    T: ArrowPrimitiveType<Native: Into<usize>>,
{
    let flat = leaves.as_primitive::<T>().values();
    let mut seen = vec![usize::MAX; 1 << (8 * size_of::<T::Native>())];
    each_list(lists, ranks(leaves).as_ref(), |list, values| {
        let mut found = 0;
        values.each(|i| {
            let last = &mut seen[flat[i].into()];
            found += i64::from(*last != list);
            *last = list;
        });
        found
    })
}

/// Other numbers: sorted, list by list. NaN is one value, and so is zero.
fn sorted<T: ArrowPrimitiveType>(leaves: &ArrayRef, lists: &InLists) -> Vec<i64> {
    let flat = leaves.as_primitive::<T>().values();
    let mut scratch: Vec<T::Native> = Vec::new();
    each_list(lists, ranks(leaves).as_ref(), |_, values| {
        scratch.clear();
        // Adding zero makes -0.0 to 0.0 and leaves all else.
        values.each(|i| scratch.push(flat[i].add_wrapping(T::Native::ZERO)));
        scratch.sort_unstable_by(|a, b| a.compare(*b));
        let nan = |v: T::Native| v.partial_cmp(&v).is_none();
        let differ = |w: &[T::Native]| w[0].is_ne(w[1]) && !(nan(w[0]) && nan(w[1]));
        // NaN of different bits lie at both ends.
        let ends = match (scratch.first(), scratch.last()) {
            (Some(a), Some(b)) => nan(*a) && nan(*b) && scratch.iter().any(|v| !nan(*v)),
            _ => false,
        };
        let changes = scratch.windows(2).filter(|w| differ(w)).count();
        let found = if scratch.is_empty() { 0 } else { changes + 1 - usize::from(ends) };
        i64::try_from(found).unwrap_or(i64::MAX)
    })
}

/// Numbers for texts and dictionaries: equal ones for equal values.
fn texts(leaves: &ArrayRef) -> Result<ArrayRef> {
    if let Some(dictionary) = leaves.as_any_dictionary_opt() {
        // Its values may contain one twice, or a null.
        let values = numbered(dictionary.values())?;
        return Ok(arrow::compute::take(&values, dictionary.keys(), None)?);
    }
    numbered(leaves)
}

fn numbered(values: &ArrayRef) -> Result<ArrayRef> {
    let text = match values.data_type() {
        DataType::LargeUtf8 => values.clone(),
        t if super::super::text::is_text(t) => cast(values, &DataType::LargeUtf8)?,
        // A dictionary of something else: compared as it is written.
        _ => {
            let order = arrow::compute::rank(values, None)?;
            let order = order.into_iter().enumerate();
            let number = |(i, n): (usize, u32)| values.is_valid(i).then_some(n);
            return Ok(Arc::new(order.map(number).collect::<UInt32Array>()));
        }
    };
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let text = text.as_string::<i64>();
    Ok(Arc::new(
        text.iter()
            .map(|t| {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                t.map(|t| *numbers.entry(t).or_insert(next))
            })
            .collect::<UInt32Array>(),
    ))
}

/// What only compares.
fn by_comparison(lists: &InLists) -> Result<Vec<i64>> {
    let leaves = &lists.leaves;
    let compare = make_comparator(leaves, leaves, SortOptions::default())?;
    let valid = lists.valid().map(|n| Rank::new(n.inner()));
    let mut scratch: Vec<usize> = Vec::new();
    Ok(each_list(lists, valid.as_ref(), |_, values| {
        scratch.clear();
        values.each(|i| scratch.push(i));
        scratch.sort_unstable_by(|a, b| compare(*a, *b));
        scratch.dedup_by(|a, b| compare(*a, *b).is_eq());
        i64::try_from(scratch.len()).unwrap_or(i64::MAX)
    }))
}

/// The places of one list that are not null.
struct Values<'a> {
    valid: Option<&'a Rank>,
    list: std::ops::Range<usize>,
}

impl Values<'_> {
    #[inline]
    fn each(&self, mut each: impl FnMut(usize)) {
        match self.valid {
            None => self.list.clone().for_each(each),
            Some(valid) => for_each_valid(valid, self.list.start, self.list.end, &mut each),
        }
    }
}

fn each_list(
    lists: &InLists,
    valid: Option<&Rank>,
    mut count: impl FnMut(usize, Values<'_>) -> i64,
) -> Vec<i64> {
    let layout = lists.lists.layout();
    (0..layout.lists())
        .map(|list| count(list, Values { valid, list: layout.range(list) }))
        .collect()
}
