//! Quantiles of lists.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Float64Array, Int64Array};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type};

use super::groups::{GroupLists, rank_valid};
use super::numbers::to_summable;
use super::rounded::{interpolate_rounded, select_rounded_quantile};
use super::segments::for_each_valid;
use super::{ReduceTarget, ReduceTask, Reduction};
use crate::array::{ListAxis, Offsets, RaggedArray};
use crate::error::{Error, Result};
use crate::kernels::native::reinterpret_values;

/// Returns the `q` quantile along axis `axis`, or over all leaves of each row: the value that a
/// fraction `q` of the values does not exceed, interpolated linearly as in NumPy's `quantile`.
///
/// The result has the shape and type of a [`mean`](super::mean); quantiles of durations are
/// rounded, halves up. Null leaves do not count, NaN propagates, and an empty input gives null.
///
/// ```
/// # use serrate_core as serrate;
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
/// If `q` is not between 0 and 1, the leaves are neither numbers nor durations, or the array has no
/// such axis.
pub fn quantile(array: &RaggedArray, q: f64, axis: Option<i64>) -> Result<RaggedArray> {
    check_quantile(q)?;
    let out = Reduction::Median.output_type(array.leaf_type())?;
    let target = ReduceTarget::new(array, Reduction::Median, axis)?;
    let found = compute_quantile(target.leaves(), &target.task, q)?;
    target.wrap_result(cast(&found, &out)?)
}

/// Returns several quantiles at once.
///
/// The result has a new innermost axis with one quantile per entry of `qs`. A null list gives a
/// null list of quantiles; an empty list gives a list of nulls.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Float64Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::reduce::quantiles;
/// // [[1, 2, 3], [7]]
/// let leaves = Arc::new(Float64Array::from(vec![1., 2., 3., 7.]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let found = quantiles(&a, &[0.5, 1.], Some(1))?;
/// assert_eq!(found.lengths(1)?, [2, 2]);
/// assert_eq!(found.leaves().as_ref(), &Float64Array::from(vec![2., 3., 7., 7.]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`quantile`].
pub fn quantiles(array: &RaggedArray, qs: &[f64], axis: Option<i64>) -> Result<RaggedArray> {
    qs.iter().try_for_each(|q| check_quantile(*q))?;
    let out = Reduction::Median.output_type(array.leaf_type())?;
    let target = ReduceTarget::new(array, Reduction::Median, axis)?;
    let lists = target.task.groups.gather_leaves(target.leaves())?;
    let nulls = target.task.groups.nulls().cloned();
    let is_valid = |i: usize| nulls.as_ref().is_none_or(|n| n.is_valid(i));
    let mut valid = Vec::new();
    let found: ArrayRef = match lists.leaves.data_type() {
        DataType::Duration(_) => {
            let mut values: Vec<i64> = Vec::new();
            for_each_duration_list(&lists, |list, sorted| {
                if is_valid(list) {
                    sorted.sort_unstable();
                    let found = qs.iter().map(|q| read_sorted_duration(sorted, *q));
                    push_options(found, &mut values, &mut valid);
                }
            })?;
            Arc::new(Int64Array::try_new(values.into(), Some(NullBuffer::from(valid)))?)
        }
        _ => {
            let mut values: Vec<f64> = Vec::new();
            for_each_list(&lists, |list, sorted| {
                if is_valid(list) {
                    sorted.sort_unstable_by(f64::total_cmp);
                    let found = qs.iter().map(|q| read_sorted_quantile(sorted, *q));
                    push_options(found, &mut values, &mut valid);
                }
            })?;
            Arc::new(Float64Array::try_new(values.into(), Some(NullBuffer::from(valid)))?)
        }
    };
    let lengths = (0..target.task.groups.len()).map(|i| if is_valid(i) { qs.len() } else { 0 });
    let level = ListAxis::try_new(Offsets::from_lengths(lengths)?, nulls.clone())?;
    target.build_result(level, cast(&found, &out)?)
}

pub(in crate::kernels) fn check_quantile(q: f64) -> Result<()> {
    match (0.0..=1.0).contains(&q) {
        true => Ok(()),
        false => Err(Error::invalid(format!("the quantile is {q}; give a number between 0 and 1"))),
    }
}

fn push_options<V: Default>(
    found: impl Iterator<Item = Option<V>>,
    values: &mut Vec<V>,
    valid: &mut Vec<bool>,
) {
    for value in found {
        valid.push(value.is_some());
        values.push(value.unwrap_or_default());
    }
}

pub(super) fn compute_quantile(leaves: &ArrayRef, task: &ReduceTask, q: f64) -> Result<ArrayRef> {
    let lists = task.groups.gather_leaves(leaves)?;
    if let DataType::Duration(_) = leaves.data_type() {
        let mut found: Vec<Option<i64>> = Vec::with_capacity(task.groups.len());
        for_each_duration_list(&lists, |_, values| {
            found.push(select_rounded_quantile(values, q, false));
        })?;
        let nulls = task.groups.find_nulls_where(|i| found[i].is_some());
        let values = found.iter().map(|v| v.unwrap_or_default()).collect();
        let numbers: ArrayRef = Arc::new(Int64Array::try_new(values, nulls)?);
        return reinterpret_values(&numbers, leaves.data_type());
    }
    let mut found: Vec<Option<f64>> = Vec::with_capacity(task.groups.len());
    for_each_list(&lists, |_, values| found.push(select_quantile(values, q)))?;
    let nulls = task.groups.find_nulls_where(|i| found[i].is_some());
    let values = found.iter().map(|v| v.unwrap_or_default()).collect();
    Ok(Arc::new(Float64Array::try_new(values, nulls)?))
}

/// Calls `each` for every list, with a copy of its valid values, which `each` may reorder.
fn for_each_list(lists: &GroupLists, each: impl FnMut(usize, &mut Vec<f64>)) -> Result<()> {
    match lists.leaves.data_type() {
        DataType::Float64 => for_each_typed_list::<Float64Type, f64>(&lists.leaves, lists, each),
        DataType::Float32 => for_each_typed_list::<Float32Type, f64>(&lists.leaves, lists, each),
        _ => for_each_typed_list::<Float64Type, f64>(&widen_to_floats(&lists.leaves)?, lists, each),
    }
    Ok(())
}

/// Like [`for_each_list`], but for durations: passes them to `each` as integers in their unit.
fn for_each_duration_list(
    lists: &GroupLists,
    each: impl FnMut(usize, &mut Vec<i64>),
) -> Result<()> {
    let numbers = reinterpret_values(&lists.leaves, &DataType::Int64)?;
    for_each_typed_list::<Int64Type, i64>(&numbers, lists, each);
    Ok(())
}

pub(in crate::kernels) fn widen_to_floats(leaves: &ArrayRef) -> Result<ArrayRef> {
    Ok(cast(&to_summable(leaves)?, &DataType::Float64)?)
}

fn for_each_typed_list<T, V>(
    leaves: &ArrayRef,
    lists: &GroupLists,
    mut each: impl FnMut(usize, &mut Vec<V>),
) where
    T: ArrowPrimitiveType<Native: Into<V>>,
{
    let flat = leaves.as_primitive::<T>().values();
    let valid = rank_valid(leaves);
    let layout = lists.lists.layout();
    let mut values: Vec<V> = Vec::new();
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

/// Returns where the `q` quantile lies in `n` sorted values: the index of the value at or before
/// it, and the weight of the next value in the interpolation. `n` must not be 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a position in a list, between 0 and its length"
)]
pub(in crate::kernels) fn locate_quantile(n: usize, q: f64) -> (usize, f64) {
    let at = (n - 1) as f64 * q;
    let low = (at.floor() as usize).min(n - 1);
    (low, at - low as f64)
}

pub(in crate::kernels) fn interpolate_linear(low: f64, high: f64, share: f64) -> f64 {
    // Equal values are not interpolated, because the difference of equal infinities would be NaN.
    if share == 0.0 || low == high {
        return low;
    }
    // Interpolate from the nearer neighbor, as NumPy does, so that fractions of 0 and 1 give exact
    // results.
    let step = high - low;
    if step.is_infinite() {
        return low * (1.0 - share) + high * share;
    }
    if share >= 0.5 { high - step * (1.0 - share) } else { low + step * share }
}

/// Returns the `q` quantile of `values`, interpolated linearly; NaN if any value is NaN. Reorders
/// `values` without sorting them.
fn select_quantile(values: &mut [f64], q: f64) -> Option<f64> {
    if values.iter().any(|v| v.is_nan()) {
        return Some(f64::NAN);
    }
    select_ordered_quantile(values, q, false)
}

/// Returns the `q` quantile of `values`, interpolated linearly between two values; `None` if there
/// are no values. Compares values with `f64::total_cmp`, for which a positive NaN is the greatest,
/// or in the reverse order if `descending` is true. Does not sort `values`, but reorders them.
pub fn select_ordered_quantile(values: &mut [f64], q: f64, descending: bool) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let order = |a: &f64, b: &f64| match descending {
        true => b.total_cmp(a),
        false => a.total_cmp(b),
    };
    let (low, share) = locate_quantile(values.len(), q);
    let (_, first, behind) = values.select_nth_unstable_by(low, order);
    let first = *first;
    let next = behind.iter().copied().min_by(order).unwrap_or(first);
    Some(interpolate_linear(first, next, share))
}

fn read_sorted_quantile(values: &[f64], q: f64) -> Option<f64> {
    let (first, last) = (values.first()?, values.last()?);
    // The values are sorted by `f64::total_cmp`, so a NaN is first or last, depending on its sign.
    if first.is_nan() || last.is_nan() {
        return Some(f64::NAN);
    }
    let (low, share) = locate_quantile(values.len(), q);
    let next = values.get(low + 1).unwrap_or(&values[low]);
    Some(interpolate_linear(values[low], *next, share))
}

fn read_sorted_duration(values: &[i64], q: f64) -> Option<i64> {
    let last = values.last()?;
    let (low, share) = locate_quantile(values.len(), q);
    let next = values.get(low + 1).unwrap_or(last);
    Some(interpolate_rounded(values[low], *next, share))
}
