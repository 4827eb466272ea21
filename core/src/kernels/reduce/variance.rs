use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type, Float64Type};

use super::fold::{FoldNumber, LANES, SumFold};
use super::groups::{compute_counts_of_lists, rank_valid};
use super::numbers::{divide_by_count, to_summable};
use super::segments::{self, for_each_valid};
use super::{ReduceTask, Reduction};
use crate::array::Layout;
use crate::error::{Error, Result};
use crate::kernels::bits::RankedBitmap;
use crate::kernels::simd::for_avx2;

pub(super) fn reduce_variance(leaves: &ArrayRef, task: &ReduceTask) -> Result<ArrayRef> {
    let (ddof, root) = match task.how {
        Reduction::Var { ddof } => (ddof, false),
        Reduction::Std { ddof } => (ddof, true),
        _ => {
            return Err(Error::invalid(format!(
                "internal error: {} is not a variance or standard deviation; please report it",
                task.how.name()
            )));
        }
    };
    let lists = task.groups.gather_leaves(leaves)?;
    let leaves = match lists.leaves.data_type() {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => to_summable(&lists.leaves)?,
        _ => cast(&to_summable(&lists.leaves)?, &DataType::Float64)?,
    };
    let valid = rank_valid(&leaves);
    let layout = lists.lists.layout();
    let counts = compute_counts_of_lists(layout, valid.as_ref());
    let squares = match leaves.data_type() {
        DataType::Float32 => sum_squares(
            leaves.as_primitive::<Float32Type>().values(),
            valid.as_ref(),
            layout,
            &counts,
        )?,
        _ => sum_squares(
            leaves.as_primitive::<Float64Type>().values(),
            valid.as_ref(),
            layout,
            &counts,
        )?,
    };
    let ddof = usize::try_from(ddof).unwrap_or(usize::MAX);
    let nulls = task.groups.find_nulls_where(|i| counts[i] > ddof);
    let values = squares.iter().zip(&counts).map(|(sum, n)| match n.checked_sub(ddof) {
        None | Some(0) => 0.0,
        _ if sum.is_nan() => f64::NAN,
        Some(n) if root => divide_by_count(*sum, n).sqrt(),
        Some(n) => divide_by_count(*sum, n),
    });
    let found: ArrayRef = Arc::new(Float64Array::try_new(values.collect(), nulls)?);
    Ok(cast(&found, &task.how.output_type(leaves.data_type())?)?)
}

fn sum_squares<T: FoldNumber<Wide = f64>>(
    flat: &[T],
    valid: Option<&RankedBitmap>,
    layout: &Layout,
    counts: &[usize],
) -> Result<Vec<f64>> {
    let mean = |total, n| if n > 0 { divide_by_count(total, n) } else { 0.0 };
    let mut found =
        segments::fold_segments::<SumFold<T>, _, true>(flat, valid, layout, mean)?.values;
    for (list, mean) in found.iter_mut().enumerate().filter(|(_, mean)| !mean.is_finite()) {
        let range = layout.range(list);
        *mean = compute_scaled_mean(flat, valid, range, counts[list]).unwrap_or(*mean);
    }
    let lengths: Vec<usize> = match valid {
        None => counts.to_vec(),
        Some(_) => (0..layout.lists()).map(|list| layout.length(list)).collect(),
    };
    dispatch_squares(flat, valid, &lengths, &mut found);
    Ok(found)
}

/// Computes the mean of a list with `count` valid leaves whose sum overflows. Returns `None` if a
/// leaf is not finite.
fn compute_scaled_mean<T: FoldNumber<Wide = f64>>(
    flat: &[T],
    valid: Option<&RankedBitmap>,
    list: Range<usize>,
    count: usize,
) -> Option<f64> {
    // A sum of values times 2^-64 cannot overflow, because no list has 2^64 values.
    const DOWN: f64 = 1.0 / 18_446_744_073_709_551_616.0;
    let (mut sum, mut finite) = (0.0, true);
    let mut add = |i: usize| {
        let value: f64 = flat[i].widen();
        finite &= value.is_finite();
        sum += value * DOWN;
    };
    match valid {
        None => list.for_each(&mut add),
        Some(valid) => for_each_valid(valid, list.start, list.end, &mut add),
    }
    finite.then(|| divide_by_count(sum, count) / DOWN)
}

fn dispatch_squares<T: FoldNumber<Wide = f64>>(
    flat: &[T],
    valid: Option<&RankedBitmap>,
    lengths: &[usize],
    means: &mut [f64],
) {
    for_avx2!(
        fn[T: FoldNumber<Wide = f64>](
            flat: &[T], valid: Option<&RankedBitmap>, lengths: &[usize], means: &mut [f64],
        ) = replace_means(flat, valid, lengths, means)
    );
}

/// Replaces each mean, one per list, with the sum of the squared distances of valid leaves from it.
#[inline(always)]
fn replace_means<T: FoldNumber<Wide = f64>>(
    flat: &[T],
    valid: Option<&RankedBitmap>,
    lengths: &[usize],
    means: &mut [f64],
) {
    let mut start = 0;
    for list in 0..means.len().min(lengths.len()) {
        let (mean, end) = (means[list], start + lengths[list]);
        let mut lanes = [0f64; LANES];
        match valid {
            None => {
                let (chunks, rest) = flat[start..end].as_chunks::<LANES>();
                for chunk in chunks {
                    for i in 0..LANES {
                        let d = chunk[i].widen() - mean;
                        lanes[i] += d * d;
                    }
                }
                for i in 0..rest.len() {
                    let d = rest[i].widen() - mean;
                    lanes[i] += d * d;
                }
            }
            Some(valid) => for_each_valid(valid, start, end, |i| {
                let d = flat[i].widen() - mean;
                lanes[(i - start) % LANES] += d * d;
            }),
        }
        let [a, b, c, d, e, f, g, h] = lanes;
        means[list] = ((a + e) + (b + f)) + ((c + g) + (d + h));
        start = end;
    }
}
