//! Variance and standard deviation.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type, Float64Type};

use super::fold::{Number, Total};
use super::groups::counts_of_lists;
use super::numbers::{numbers, ranks, ratio};
use super::segments::{self, for_each_valid};
use super::{Reduction, Task};
use crate::array::Layout;
use crate::error::{Error, Result};
use crate::kernels::bits::Rank;

/// [`Reduction::Var`] and [`Reduction::Std`]: in two passes over each list, the mean first.
pub(super) fn spread(leaves: &ArrayRef, task: &Task) -> Result<ArrayRef> {
    let (ddof, root) = match task.how {
        Reduction::Var { ddof } => (ddof, false),
        Reduction::Std { ddof } => (ddof, true),
        _ => return Err(Error::invalid(format!("{} is no spread", task.how.name()))),
    };
    let lists = task.groups.gathered(leaves)?;
    let leaves = match lists.leaves.data_type() {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => numbers(&lists.leaves)?,
        _ => cast(&numbers(&lists.leaves)?, &DataType::Float64)?,
    };
    let valid = ranks(&leaves);
    let layout = lists.lists.layout();
    let counts = counts_of_lists(layout, valid.as_ref());
    let squares = match leaves.data_type() {
        DataType::Float32 => {
            squares(leaves.as_primitive::<Float32Type>().values(), valid.as_ref(), layout, &counts)?
        }
        _ => {
            squares(leaves.as_primitive::<Float64Type>().values(), valid.as_ref(), layout, &counts)?
        }
    };
    let ddof = usize::try_from(ddof).unwrap_or(usize::MAX);
    let nulls = task.groups.nulls_where(|i| counts[i] > ddof);
    let values = squares.iter().zip(&counts).map(|(sum, n)| match n.checked_sub(ddof) {
        None | Some(0) => 0.0,
        Some(n) if root => ratio(*sum, n).sqrt(),
        Some(n) => ratio(*sum, n),
    });
    let found: ArrayRef = Arc::new(Float64Array::try_new(values.collect(), nulls)?);
    Ok(cast(&found, &task.how.output_type(leaves.data_type())?)?)
}

/// Sum of the squared distances from the mean, for every list.
fn squares<T: Number<Wide = f64>>(
    flat: &[T],
    valid: Option<&Rank>,
    layout: &Layout,
    counts: &[usize],
) -> Result<Vec<f64>> {
    let totals = segments::fold::<Total<T>, _>(flat, valid, layout, std::convert::identity)?;
    let each = totals.iter().zip(counts).enumerate();
    Ok(each
        .map(|(list, (total, n))| {
            let mean = ratio(*total, *n);
            let range = layout.range(list);
            let mut lanes = [0f64; 4];
            match valid {
                None => {
                    let (fours, rest) = flat[range].as_chunks::<4>();
                    for four in fours {
                        for (lane, v) in lanes.iter_mut().zip(four) {
                            let d = v.widen() - mean;
                            *lane += d * d;
                        }
                    }
                    for (lane, v) in lanes.iter_mut().zip(rest) {
                        let d = v.widen() - mean;
                        *lane += d * d;
                    }
                }
                Some(valid) => for_each_valid(valid, range.start, range.end, |i| {
                    let d = flat[i].widen() - mean;
                    lanes[i % 4] += d * d;
                }),
            }
            (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
        })
        .collect())
}
