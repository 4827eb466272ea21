//! Medians and other quantiles.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Float64Array};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type, Float64Type};

use super::groups::InLists;
use super::numbers::{numbers, ranks};
use super::segments::for_each_valid;
use super::{Reduction, Target, Task};
use crate::array::{ListAxis, Offsets, RaggedArray};
use crate::error::{Error, Result};

/// The `q`-th quantile along axis `axis`, or over all leaves of each row: the value that a share of `q`
/// of the others does not exceed, as numpy's `quantile` finds it: linear between the two neighbours.
///
/// The result has the shape and type of a [`mean`](super::mean). Null leaves do not count; NaN makes
/// NaN; of nothing it is null. `q = 0.5` is the median.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, types::Float64Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::reduce::quantile;
/// // [[1, 2, 4, 8], [5]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 4, 8, 5]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([4, 1])?.into()], leaves)?;
/// let found = quantile(&a, 0.25, None)?;
/// assert_eq!(found.leaves().as_primitive::<Float64Type>().values(), &[1.75, 5.]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// When `q` is not between 0 and 1, the leaves are no numbers, or there is no such axis.
pub fn quantile(array: &RaggedArray, q: f64, axis: Option<i64>) -> Result<RaggedArray> {
    check(q)?;
    let out = Reduction::Median.output_type(array.leaf_type())?;
    let target = Target::new(array, Reduction::Median, axis)?;
    let found = one(target.leaves(), &target.task, q)?;
    target.result(cast(&found, &out)?)
}

/// Several quantiles at once: one more axis, the innermost, has one value for each of `qs`.
///
/// The list of quantiles of a null list is null; of a list without values all of them are null.
///
/// # Errors
/// As [`quantile`].
pub fn quantiles(array: &RaggedArray, qs: &[f64], axis: Option<i64>) -> Result<RaggedArray> {
    qs.iter().try_for_each(|q| check(*q))?;
    let out = Reduction::Median.output_type(array.leaf_type())?;
    let target = Target::new(array, Reduction::Median, axis)?;
    let lists = target.task.groups.gathered(target.leaves())?;
    let nulls = target.task.groups.nulls().cloned();
    let (mut values, mut valid) = (Vec::new(), Vec::new());
    each_list(&lists, |list, sorted| {
        if nulls.as_ref().is_some_and(|n| n.is_null(list)) {
            return;
        }
        sorted.sort_unstable_by(f64::total_cmp);
        for q in qs {
            let found = in_sorted(sorted, *q);
            valid.push(found.is_some());
            values.push(found.unwrap_or_default());
        }
    })?;
    let found: ArrayRef =
        Arc::new(Float64Array::try_new(values.into(), Some(NullBuffer::from(valid)))?);
    let there = |i: usize| nulls.as_ref().is_none_or(|n| n.is_valid(i));
    let lengths = (0..target.task.groups.len()).map(|i| if there(i) { qs.len() } else { 0 });
    let level = ListAxis::try_new(Offsets::from_lengths(lengths)?, nulls.clone())?;
    target.result_in(level, cast(&found, &out)?)
}

fn check(q: f64) -> Result<()> {
    match (0.0..=1.0).contains(&q) {
        true => Ok(()),
        false => Err(Error::invalid(format!("a quantile is between 0 and 1, not {q}"))),
    }
}

/// [`Reduction::Median`] and [`quantile`], as `Float64`.
pub(super) fn one(leaves: &ArrayRef, task: &Task, q: f64) -> Result<ArrayRef> {
    let lists = task.groups.gathered(leaves)?;
    let mut found: Vec<Option<f64>> = Vec::with_capacity(task.groups.len());
    each_list(&lists, |_, values| found.push(selected(values, q)))?;
    let nulls = task.groups.nulls_where(|i| found[i].is_some());
    let values = found.iter().map(|v| v.unwrap_or_default()).collect();
    Ok(Arc::new(Float64Array::try_new(values, nulls)?))
}

/// The values of every list that are not null, in memory that may be rearranged.
fn each_list(lists: &InLists, each: impl FnMut(usize, &mut Vec<f64>)) -> Result<()> {
    match lists.leaves.data_type() {
        DataType::Float64 => typed::<Float64Type>(&lists.leaves, lists, each),
        DataType::Float32 => typed::<Float32Type>(&lists.leaves, lists, each),
        _ => {
            let wide = cast(&numbers(&lists.leaves)?, &DataType::Float64)?;
            typed::<Float64Type>(&wide, lists, each)
        }
    }
    Ok(())
}

fn typed<T>(leaves: &ArrayRef, lists: &InLists, mut each: impl FnMut(usize, &mut Vec<f64>))
where
    T: ArrowPrimitiveType<Native: Into<f64>>,
{
    let flat = leaves.as_primitive::<T>().values();
    let valid = ranks(leaves);
    let layout = lists.lists.layout();
    let mut values: Vec<f64> = Vec::new();
    for list in 0..layout.lists() {
        let range = layout.range(list);
        values.clear();
        match &valid {
            None => values.extend(flat[range].iter().map(|v| (*v).into())),
            Some(valid) => {
                for_each_valid(valid, range.start, range.end, |i| values.push(flat[i].into()));
            }
        }
        each(list, &mut values);
    }
}

/// Between which two places a quantile lies, and how far from the first.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a place in a list, between 0 and its length"
)]
fn place(n: usize, q: f64) -> (usize, f64) {
    let at = (n - 1) as f64 * q;
    let low = (at.floor() as usize).min(n - 1);
    (low, at - low as f64)
}

fn between(low: f64, high: f64, share: f64) -> f64 {
    // Equal ones are the answer, infinite or not.
    if share == 0.0 || low == high {
        return low;
    }
    // From the nearer one, as numpy does, so that both ends are met exactly.
    let step = high - low;
    if step.is_infinite() {
        return low * (1.0 - share) + high * share;
    }
    if share >= 0.5 { high - step * (1.0 - share) } else { low + step * share }
}

/// Without sorting more than needed.
fn selected(values: &mut [f64], q: f64) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    if values.iter().any(|v| v.is_nan()) {
        return Some(f64::NAN);
    }
    let (low, share) = place(values.len(), q);
    let (_, first, behind) = values.select_nth_unstable_by(low, f64::total_cmp);
    let first = *first;
    let next = behind.iter().copied().min_by(f64::total_cmp).unwrap_or(first);
    Some(between(first, next, share))
}

fn in_sorted(values: &[f64], q: f64) -> Option<f64> {
    let (first, last) = (values.first()?, values.last()?);
    // In their total order NaN is at one of the ends.
    if first.is_nan() || last.is_nan() {
        return Some(f64::NAN);
    }
    let (low, share) = place(values.len(), q);
    let next = values.get(low + 1).unwrap_or(&values[low]);
    Some(between(values[low], *next, share))
}
