//! Sums and means over the entries of each sample.

use std::ops::AddAssign;

use half::{bf16, f16};
use rayon::prelude::*;

use super::RaggedBatch;
use super::structure::multiply_saturating;
use crate::dense::{DType, DenseTensor, TensorElement};
use crate::error::{Error, Result};

/// Minimum number of elements of the result that one parallel task computes, so that the start of a
/// task takes less time than its work.
const AT_LEAST: usize = 1024;

trait SumElement: TensorElement {
    type Total: AddAssign + Copy + Default + Send;
    fn to_total(self) -> Self::Total;
    fn from_total(total: Self::Total) -> Option<Self>;
    fn total_to_f64(total: Self::Total) -> f64;
}

macro_rules! sum_integers {
    ($($native:ty => $total:ty;)*) => {$(
        impl SumElement for $native {
            type Total = $total;
            fn to_total(self) -> $total {
                self.into()
            }
            fn from_total(total: $total) -> Option<Self> {
                total.try_into().ok()
            }
            fn total_to_f64(total: $total) -> f64 {
                total as f64
            }
        }
    )*};
}

// No sum overflows: an i64 holds the sum of 2^47 16-bit values, and an i128 the sum of any number
// of wider values.
sum_integers! {
    u8 => i64;
    u16 => i64;
    i8 => i64;
    i16 => i64;
    u32 => i128;
    i32 => i128;
    u64 => i128;
    i64 => i128;
}

macro_rules! sum_floats {
    ($($native:ty, $narrow:expr;)*) => {$(
        impl SumElement for $native {
            type Total = f64;
            fn to_total(self) -> f64 {
                self.into()
            }
            fn from_total(total: f64) -> Option<Self> {
                let narrow: fn(f64) -> $native = $narrow;
                Some(narrow(total))
            }
            fn total_to_f64(total: f64) -> f64 {
                total
            }
        }
    )*};
}

sum_floats! {
    f16, f16::from_f64;
    bf16, bf16::from_f64;
    f32, to_f32;
    f64, |v| v;
}

#[expect(clippy::cast_possible_truncation, reason = "rounding is expected of float32 arithmetic")]
fn to_f32(v: f64) -> f32 {
    v as f32
}

/// Sums the entries of each sample, element by element. `make` converts the sum and the number of
/// entries of a sample to a result; if it returns `None`, the sum does not fit `R`, and this
/// function returns an error.
fn reduce_samples<T: SumElement, R: TensorElement>(
    batch: &RaggedBatch,
    make: impl Fn(T::Total, usize) -> Option<R> + Sync,
) -> Result<DenseTensor> {
    let values = batch.values().as_slice::<T>()?;
    let samples = batch.num_samples();
    let entry = multiply_saturating(batch.entry_shape());
    let mut shape = batch.batch_shape().to_vec();
    shape.extend_from_slice(batch.entry_shape());
    let mut out = vec![R::default(); samples.saturating_mul(entry)];
    let wrong = if entry == 0 {
        None
    } else {
        let one = |totals: &mut Vec<T::Total>, (i, out): (usize, &mut [R])| {
            let own = batch.offsets().range(i);
            let size = own.len();
            let own = &values[own.start * entry..own.end * entry];
            totals.clear();
            totals.resize(entry, T::Total::default());
            if let [total] = &mut totals[..] {
                own.iter().for_each(|v| *total += v.to_total());
            } else {
                for values in own.chunks_exact(entry) {
                    for (total, v) in totals.iter_mut().zip(values) {
                        *total += v.to_total();
                    }
                }
            }
            for (out, total) in out.iter_mut().zip(totals) {
                *out = make(*total, size)?;
            }
            Some(())
        };
        out.par_chunks_mut(entry)
            .enumerate()
            .with_min_len(AT_LEAST / entry.min(AT_LEAST))
            .map_init(Vec::new, |totals, chunk| (chunk.0, one(totals, chunk)))
            .find_first(|(_, done)| done.is_none())
            .map(|(i, _)| i)
    };
    match wrong {
        None => DenseTensor::from_vec(shape, out),
        Some(i) => Err(Error::invalid(format!(
            "the sum of the entries of {sample} does not fit {dtype}; convert the batch to a wider type first",
            sample = batch.structure().name_sample(i),
            dtype = batch.dtype()
        ))),
    }
}

/// Evaluates `$body` with `$T` bound to the Rust type of `$dtype`; booleans are read as u8.
macro_rules! with_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::Bool | DType::U8 => {
                type $T = u8;
                $body
            }
            DType::U16 => {
                type $T = u16;
                $body
            }
            DType::U32 => {
                type $T = u32;
                $body
            }
            DType::U64 => {
                type $T = u64;
                $body
            }
            DType::I8 => {
                type $T = i8;
                $body
            }
            DType::I16 => {
                type $T = i16;
                $body
            }
            DType::I32 => {
                type $T = i32;
                $body
            }
            DType::I64 => {
                type $T = i64;
                $body
            }
            DType::F16 => {
                type $T = f16;
                $body
            }
            DType::BF16 => {
                type $T = bf16;
                $body
            }
            DType::F32 => {
                type $T = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
        }
    };
}

/// Returns the sum of the entries of each sample, of shape
/// `[batch axes.., data axes except the non-uniform one..]` and of the type of the data.
///
/// A sample without entries gives 0. The sum of booleans is true if any of them is true. Floats are
/// summed in 64 bits.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::{RaggedBatch, sum_over_targets};
/// use serrate::dense::DenseTensor;
/// let t = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 100])?;
/// let sizes = DenseTensor::from_vec([2], vec![2i64, 1])?;
/// let batch = RaggedBatch::try_new(&t, None, Some(&sizes), None)?;
/// assert_eq!(sum_over_targets(&batch)?.to_string(), "int32[2] [3, 3]");
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If a sum of integers does not fit their type; the message names the sample.
pub fn sum_over_targets(data: &RaggedBatch) -> Result<DenseTensor> {
    if data.dtype() == DType::Bool {
        let any = reduce_samples::<u8, u8>(data, |total, _| Some(u8::from(total > 0)))?;
        return any.cast(DType::Bool);
    }
    with_type!(data.dtype(), T => reduce_samples::<T, T>(data, |total, _| T::from_total(total)))
}

/// How [`average_over_targets`] returns means that are NaN or infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonFiniteMeans {
    /// NaN and infinity stay.
    Keep,
    /// NaN and infinity become 0.
    Zero,
}

/// Returns the mean of the entries of each sample, of shape
/// `[batch axes.., data axes except the non-uniform one..]`.
///
/// The type is the type of the data if it is a float, else float32. A sample without entries gives
/// NaN, or 0 with [`NonFiniteMeans::Zero`]. Entries are added in 64 or more bits.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::{NonFiniteMeans, RaggedBatch, average_over_targets};
/// use serrate::dense::DenseTensor;
/// let t = DenseTensor::from_vec([2, 2], vec![1, 2, 100, 100])?;
/// let sizes = DenseTensor::from_vec([2], vec![2i64, 0])?;
/// let batch = RaggedBatch::try_new(&t, None, Some(&sizes), None)?;
/// let means = average_over_targets(&batch, NonFiniteMeans::Keep)?;
/// assert_eq!(means.to_string(), "float32[2] [1.5, NaN]");
/// let means = average_over_targets(&batch, NonFiniteMeans::Zero)?;
/// assert_eq!(means.to_string(), "float32[2] [1.5, 0.0]");
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Never: every mean is a float.
pub fn average_over_targets(data: &RaggedBatch, non_finite: NonFiniteMeans) -> Result<DenseTensor> {
    fn compute_mean<T: SumElement, R: SumElement<Total = f64>>(
        data: &RaggedBatch,
        non_finite: NonFiniteMeans,
    ) -> Result<DenseTensor> {
        reduce_samples::<T, R>(data, |total, size| {
            let mean = R::from_total(T::total_to_f64(total) / size as f64)?;
            Some(match non_finite {
                NonFiniteMeans::Zero if !mean.to_total().is_finite() => R::default(),
                _ => mean,
            })
        })
    }
    match data.dtype() {
        DType::F16 => compute_mean::<f16, f16>(data, non_finite),
        DType::BF16 => compute_mean::<bf16, bf16>(data, non_finite),
        DType::F64 => compute_mean::<f64, f64>(data, non_finite),
        dtype => with_type!(dtype, T => compute_mean::<T, f32>(data, non_finite)),
    }
}
