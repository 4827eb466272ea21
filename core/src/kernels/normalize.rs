//! Softmax, log-softmax and normalization along an axis.
//!
//! Null leaves stay null and are skipped. Along an outer axis, the elements of a list are lists
//! themselves; their leaves at the same index are normalized together: the 1 and the 3 of
//! `[[1, 2], [3]]`. The result shares the lists of the array. Floats keep their type and are
//! computed in 64 bits; integers become Float64.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};
use half::f16;

use super::allocate::allocate_values;
use super::elementwise::for_each_length;
use super::exp::compute_exp;
use super::shape::list_axis;
use crate::array::{Layout, RaggedArray};
use crate::error::{Error, Result};

/// Returns the type of the result for leaves of type `leaf`; `what` names the function in the
/// error.
///
/// ```
/// # use serrate_core as serrate;
/// # use arrow::datatypes::DataType;
/// use serrate::kernels::normalize::output_type;
/// assert_eq!(output_type("softmax", &DataType::Int32)?, DataType::Float64);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the leaves are not numbers.
#[doc(hidden)]
pub fn output_type(what: &str, leaf: &DataType) -> Result<DataType> {
    match leaf {
        t if t.is_floating() => Ok(t.clone()),
        t if t.is_integer() => Ok(DataType::Float64),
        other => Err(Error::type_of(
            what,
            "leaves that are numbers (cast other types to float64)",
            other,
        )),
    }
}

/// Computes `exp(x) / sum(exp(x))` over groups of leaves along `axis` (not 0; negative: from the
/// innermost).
///
/// Groups are as in [`reduce`](super::reduce::reduce). The largest value is subtracted first to
/// avoid overflow. A group with a NaN or only negative infinities becomes NaN, as in PyTorch. Null
/// leaves stay null and are skipped; null and empty lists stay as they are.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Float64Array, types::Float64Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::normalize::softmax;
/// // [[0, 0], [7]]
/// let leaves = Arc::new(Float64Array::from(vec![0., 0., 7.]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// let b = softmax(&a, -1)?;
/// assert_eq!(b.leaves().as_primitive::<Float64Type>().values(), &[0.5, 0.5, 1.0]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array has no such axis, `axis` is 0, or the leaves are not numbers.
pub fn softmax(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    apply_to_groups("softmax", array, axis, |values| {
        subtract_largest(values);
        compute_exp(values);
        let sum = sum_lanes(values);
        values.iter_mut().for_each(|v| *v /= sum);
    })
}

/// Returns the logarithm of the [`softmax`], accurate even if the softmax underflows.
///
/// Nulls are as in the softmax.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Float64Array, types::Float64Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::normalize::log_softmax;
/// let leaves = Arc::new(Float64Array::from(vec![0., 0., 5.]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// let found = log_softmax(&a, 1)?;
/// let found = found.leaves().as_primitive::<Float64Type>().values();
/// assert!((found[0] + 2f64.ln()).abs() < 1e-15 && found[2] == 0.);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`softmax`].
pub fn log_softmax(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    let mut powers = Vec::new();
    apply_to_groups("log_softmax", array, axis, |values| {
        subtract_largest(values);
        powers.clear();
        powers.extend_from_slice(values);
        compute_exp(&mut powers);
        let log = sum_lanes(&powers).ln();
        values.iter_mut().for_each(|v| *v -= log);
    })
}

/// Divides values by the `p`-norm of their group along axis `axis`, like
/// `torch.nn.functional.normalize`: the divisor is `max(norm, eps)`, which avoids division by zero.
///
/// `p` may be infinite (the largest absolute value) or 0 (the number of nonzero values). Nulls are
/// as in [`softmax`].
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Float64Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::normalize::normalize;
/// // [[3, 4], [0]]
/// let leaves = Arc::new(Float64Array::from(vec![3., 4., 0.]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// let found = normalize(&a, 1, 2., 1e-12)?;
/// assert_eq!(found.leaves().as_ref(), &Float64Array::from(vec![0.6, 0.8, 0.]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`softmax`]; also if `p` is negative or NaN.
pub fn normalize(array: &RaggedArray, axis: i64, p: f64, eps: f64) -> Result<RaggedArray> {
    if p.is_nan() || p < 0.0 {
        return Err(Error::invalid(format!(
            "normalize: the order of the norm is {p}; give 0 or more"
        )));
    }
    apply_to_groups("normalize", array, axis, |values| {
        let (mut norm, mut eps) = (compute_norm(values, p), eps);
        let largest = if norm.is_infinite() { compute_norm(values, f64::INFINITY) } else { norm };
        if largest < norm {
            // The powers of finite values overflow: first divide by the largest absolute value.
            values.iter_mut().for_each(|v| *v /= largest);
            (norm, eps) = (compute_norm(values, p), eps / largest);
        }
        // Do not use `f64::max`, which would replace a NaN norm by `eps`.
        let divisor = if norm < eps { eps } else { norm };
        values.iter_mut().for_each(|v| *v /= divisor);
    })
}

fn compute_norm(values: &[f64], p: f64) -> f64 {
    if p == 0.0 {
        let count = values.iter().filter(|v| **v != 0.0).count();
        #[expect(clippy::cast_precision_loss, reason = "a count as a number")]
        return count as f64;
    }
    if p.is_infinite() {
        return values.iter().map(|v| v.abs()).fold(0.0, choose_larger_or_nan);
    }
    if p == 1.0 {
        return values.iter().map(|v| v.abs()).sum();
    }
    if p == 2.0 {
        return values.iter().map(|v| v * v).sum::<f64>().sqrt();
    }
    values.iter().map(|v| v.abs().powf(p)).sum::<f64>().powf(p.recip())
}

fn choose_larger_or_nan(m: f64, v: f64) -> f64 {
    if v > m || v.is_nan() { v } else { m }
}

/// Subtracts the largest value from all values. If any value is NaN, all values become NaN.
fn subtract_largest(values: &mut [f64]) {
    // Eight maxima shorten the dependency chain. NaN stays, because no value compares greater.
    let mut lanes = [f64::NEG_INFINITY; 8];
    let (eights, rest) = values.as_chunks::<8>();
    for eight in eights {
        for i in 0..8 {
            lanes[i] = choose_larger_or_nan(lanes[i], eight[i]);
        }
    }
    let max = rest.iter().chain(&lanes).fold(f64::NEG_INFINITY, |m, v| choose_larger_or_nan(m, *v));
    values.iter_mut().for_each(|v| *v -= max);
}

fn sum_lanes(values: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let (eights, rest) = values.as_chunks::<8>();
    for eight in eights {
        for i in 0..8 {
            lanes[i] += eight[i];
        }
    }
    lanes.iter().chain(rest).sum()
}

enum NormalizeGroups {
    /// Every list of the innermost axis is a group; its leaves are adjacent.
    Lists(Layout),
    /// Groups along an outer axis. `order` has the leaf indices by group, `ends` each group's end
    /// in it.
    Slots { order: Vec<usize>, ends: Vec<usize> },
}

impl NormalizeGroups {
    fn new(array: &RaggedArray, axis: usize) -> Result<Self> {
        let level = array.axis(axis)?.layout();
        if axis == array.axes().len() {
            return Ok(Self::Lists(level.clone()));
        }
        // `on[i]` is the slot of element `i` of the current level: on axis `axis` the index of its
        // list. On deeper axes, elements at the same index of lists that share a slot also share a
        // slot. Leaves of one slot are a group.
        let mut on: Vec<usize> = Vec::with_capacity(level.children());
        for list in 0..level.lists() {
            on.resize(on.len() + level.length(list), list);
        }
        let mut slots = level.lists();
        for level in &array.axes()[axis..] {
            let layout = level.layout();
            let mut starts = vec![0usize; slots + 1];
            for (list, on) in on.iter().enumerate() {
                starts[on + 1] = starts[on + 1].max(layout.length(list));
            }
            for i in 0..slots {
                starts[i + 1] += starts[i];
            }
            let mut next = Vec::with_capacity(layout.children());
            for (list, on) in on.iter().enumerate() {
                next.extend(starts[*on]..starts[*on] + layout.length(list));
            }
            on = next;
            slots = starts[slots];
        }
        // Sort the leaves by slot with a counting sort. The slot of a leaf is the index of its
        // group.
        let mut ends = vec![0usize; slots];
        for slot in &on {
            ends[*slot] += 1;
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += std::mem::replace(end, sum);
        }
        let mut order = vec![0; on.len()];
        for (leaf, slot) in on.iter().enumerate() {
            order[ends[*slot]] = leaf;
            ends[*slot] += 1;
        }
        Ok(Self::Slots { order, ends })
    }
}

trait NormalizedFloat: ArrowPrimitiveType {
    fn widen(value: Self::Native) -> f64;
    fn narrow(value: f64) -> Self::Native;
}

macro_rules! float {
    ($($t:ty: $wide:expr, $narrow:expr;)*) => {$(
        impl NormalizedFloat for $t {
            fn widen(value: Self::Native) -> f64 {
                $wide(value)
            }
            fn narrow(value: f64) -> Self::Native {
                // The bits of a computed NaN depend on the CPU, so write the canonical NaN.
                $narrow(if value.is_nan() { f64::NAN } else { value })
            }
        }
    )*};
}

float! {
    Float16Type: f64::from, f16::from_f64;
    Float32Type: f64::from, to_f32;
    Float64Type: std::convert::identity, std::convert::identity;
}

#[expect(clippy::cast_possible_truncation, reason = "rounding to the leaves' width is wanted")]
fn to_f32(value: f64) -> f32 {
    value as f32
}

fn apply_to_groups(
    what: &str,
    array: &RaggedArray,
    axis: i64,
    work: impl FnMut(&mut [f64]),
) -> Result<RaggedArray> {
    fn apply_typed<T: NormalizedFloat>(
        leaves: &PrimitiveArray<T>,
        groups: &NormalizeGroups,
        mut work: impl FnMut(&mut [f64]),
    ) -> ArrayRef {
        let nulls = leaves.nulls().filter(|n| n.null_count() > 0);
        let valid = |i: &usize| nulls.is_none_or(|n| n.is_valid(*i));
        let from = leaves.values();
        let mut wide: Vec<f64> = Vec::new();
        let out = match groups {
            NormalizeGroups::Lists(lists) => {
                let mut out = allocate_values(from.len());
                let mut start = 0;
                for_each_length(lists, |n| {
                    let list = start..start + n;
                    start += n;
                    wide.clear();
                    if nulls.is_none() {
                        wide.extend(from[list].iter().map(|v| T::widen(*v)));
                        work(&mut wide);
                        out.extend(wide.iter().map(|v| T::narrow(*v)));
                        return;
                    }
                    wide.extend(list.clone().filter(valid).map(|i| T::widen(from[i])));
                    work(&mut wide);
                    let mut next = wide.iter();
                    out.extend(list.map(|i| match valid(&i).then(|| next.next()).flatten() {
                        Some(v) => T::narrow(*v),
                        None => T::Native::default(),
                    }));
                });
                out
            }
            NormalizeGroups::Slots { order, ends } => {
                let mut out = vec![T::Native::default(); from.len()];
                let mut start = 0;
                for end in ends {
                    let valid_leaves = || order[start..*end].iter().copied().filter(valid);
                    wide.clear();
                    wide.extend(valid_leaves().map(|i| T::widen(from[i])));
                    work(&mut wide);
                    valid_leaves().zip(&wide).for_each(|(i, v)| out[i] = T::narrow(*v));
                    start = *end;
                }
                out
            }
        };
        Arc::new(PrimitiveArray::<T>::new(out.into(), nulls.cloned()))
    }
    let axis = list_axis(array, axis)?;
    let to = output_type(what, array.leaf_type())?;
    let groups = NormalizeGroups::new(array, axis)?;
    let leaves = cast(array.leaves(), &to)?;
    let out = match to {
        DataType::Float16 => apply_typed(leaves.as_primitive::<Float16Type>(), &groups, work),
        DataType::Float32 => apply_typed(leaves.as_primitive::<Float32Type>(), &groups, work),
        _ => apply_typed(leaves.as_primitive::<Float64Type>(), &groups, work),
    };
    array.with_leaves(out)
}
