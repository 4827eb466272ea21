//! Converts ragged arrays to dense tensors: pads and truncates in one pass.

use std::ops::Range;

use arrow::array::Array;
use arrow::buffer::{Buffer, NullBuffer};

use super::dense_plan::{DensePlan, DenseSink};
use super::padding::PaddingBytes;
use super::{BlockContents, DType, DenseOptions, DenseTensor, Fill, TensorElement, TensorMemory};
use crate::array::{Layout, RaggedArray};
use crate::error::{Error, Result};

/// Converts a ragged array to a padded dense tensor of shape `[rows, sizes..]`.
///
/// `sizes` has one size for each axis *after* the rows. `None` takes the length of the longest list
/// of every axis ([`RaggedArray::max_shape`]), so nothing is truncated; a larger size pads, a
/// smaller size truncates. [`side`](crate::dense::PaddingSide) applies to lists at every level:
/// `Right` keeps the first elements of a list and pads after them, `Left` keeps the last elements
/// and pads before them.
///
/// Leaves are booleans, numbers, or dates and times (as the integers that store them). Null leaves
/// and padding get the fill value; [`mask`](super::mask::mask) and
/// [`validity_mask`](super::mask::validity_mask) distinguish them. If `sizes` is `None`, an axis
/// without elements has size 0.
///
/// The size in bytes is checked before allocation. Several threads write a large result, whose
/// memory is in huge pages. If the fill value is 0, padding is not written to new memory, because
/// the system has already set this memory to zero.
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Arc;
/// use arrow::array::UInt16Array;
/// use serrate::array::{Offsets, RaggedArray};
/// use serrate::dense::{DType, DenseOptions, PaddingSide};
/// use serrate::dense::densify::densify;
///
/// // [[1, 2, 3], [], [4]]
/// let leaves = Arc::new(UInt16Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([3, 0, 1])?.into()], leaves)?;
///
/// let t = densify(&a, None, &DenseOptions::default())?;
/// assert_eq!(t.shape(), [3, 3]);
/// assert_eq!(t.as_slice::<u16>()?, [1, 2, 3, 0, 0, 0, 4, 0, 0]);
///
/// let left = DenseOptions {
///     side: PaddingSide::Left,
///     fill: Some((-1).into()),
///     dtype: Some(DType::I64),
///     ..Default::default()
/// };
/// let t = densify(&a, Some(&[2]), &left)?;
/// assert_eq!(t.as_slice::<i64>()?, [2, 3, -1, -1, -1, 4]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the leaves have another type, the number of sizes is wrong, the result has more bytes than
/// [`DenseOptions::limit`], or the element type cannot represent the fill value or a value.
pub fn densify(
    array: &RaggedArray,
    sizes: Option<&[usize]>,
    options: &DenseOptions,
) -> Result<DenseTensor> {
    densify_named(array, sizes, options, "densify")
}

pub(crate) fn densify_named(
    array: &RaggedArray,
    sizes: Option<&[usize]>,
    options: &DenseOptions,
    what: &str,
) -> Result<DenseTensor> {
    let (dtype, plan) = make_plan(array, sizes, options, what)?;
    let leaves = LeafWriter::new(array, options, dtype, what)?;
    create_tensor(plan, dtype, leaves.fill(), options, |plan, padding, out| {
        leaves.write(plan, padding, out, options.parallel);
    })
}

/// Converts a ragged array like [`densify`], but writes to `out`.
///
/// Returns the shape.
///
/// `out` must have exactly the length of the result (see [`dense_bytes`]). Every byte is
/// overwritten, in native byte order; `out` need not be aligned. To reuse the memory of the
/// previous batch, a [`BufferPool`](crate::dense::BufferPool) is faster, because it clears only the
/// elements that held values.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::UInt8Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::dense::densify::densify_into;
/// // [[1, 2], [3]]
/// let leaves = Arc::new(UInt8Array::from(vec![1, 2, 3]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// let mut out = [9; 4];
/// assert_eq!(densify_into(&a, None, &Default::default(), &mut out)?, [2, 2]);
/// assert_eq!(out, [1, 2, 3, 0]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`densify`]; also if `out` does not have the length of the result.
pub fn densify_into(
    array: &RaggedArray,
    sizes: Option<&[usize]>,
    options: &DenseOptions,
    out: &mut [u8],
) -> Result<Vec<usize>> {
    densify_into_named(array, sizes, options, "densify", out)
}

pub(crate) fn densify_into_named(
    array: &RaggedArray,
    sizes: Option<&[usize]>,
    options: &DenseOptions,
    what: &str,
    out: &mut [u8],
) -> Result<Vec<usize>> {
    let (dtype, plan) = make_plan(array, sizes, options, what)?;
    check_out_len(&plan, dtype, what, out)?;
    let leaves = LeafWriter::new(array, options, dtype, what)?;
    leaves.write(&plan, PaddingBytes::from_fill(leaves.fill()), out, options.parallel);
    Ok(plan.shape().to_vec())
}

pub(crate) fn check_out_len(plan: &DensePlan, dtype: DType, what: &str, out: &[u8]) -> Result<()> {
    if out.len() == plan.bytes() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{what}: the output buffer has {} byte(s), but a {dtype} tensor of shape {:?} needs {}; give a buffer of exactly this size",
        out.len(),
        plan.shape(),
        plan.bytes()
    )))
}

/// Returns element type, shape and size in bytes of the result of [`densify`] without computing it.
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Arc;
/// use arrow::array::UInt16Array;
/// use serrate::array::{Offsets, RaggedArray};
/// use serrate::dense::{DType, DenseOptions};
/// use serrate::dense::densify::dense_bytes;
///
/// // [[1, 2, 3], [], [4]]
/// let leaves = Arc::new(UInt16Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([3, 0, 1])?.into()], leaves)?;
/// let (dtype, shape, bytes) = dense_bytes(&a, None, &DenseOptions::default())?;
/// assert_eq!((dtype, shape, bytes), (DType::U16, vec![3, 3], 18));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`densify`], except for errors that depend on values.
pub fn dense_bytes(
    array: &RaggedArray,
    sizes: Option<&[usize]>,
    options: &DenseOptions,
) -> Result<(DType, Vec<usize>, usize)> {
    let (dtype, plan) = make_plan(array, sizes, options, "densify")?;
    Ok((dtype, plan.shape().to_vec(), plan.bytes()))
}

/// Returns the size of a tensor in bytes; a `u128` because a `usize` may overflow.
pub(crate) fn count_bytes(shape: &[usize], dtype: DType) -> u128 {
    if shape.contains(&0) {
        return 0;
    }
    shape.iter().fold(dtype.size() as u128, |n, d| n.saturating_mul(*d as u128))
}

fn make_plan(
    array: &RaggedArray,
    sizes: Option<&[usize]>,
    options: &DenseOptions,
    what: &str,
) -> Result<(DType, DensePlan)> {
    let leaves = DType::of_leaves(array.leaf_type(), what)?;
    let dtype = options.dtype.unwrap_or(leaves);
    let layouts = array.axes().iter().map(|a| a.layout().clone()).collect();
    Ok((dtype, plan_axes(array.len(), layouts, sizes, dtype, options, what)?))
}

/// Creates the plan of a dense tensor with `rows` rows and one axis per level of lists. Returns an
/// error if the size of the tensor exceeds the limit of `options`.
pub(crate) fn plan_axes(
    rows: usize,
    layouts: Vec<Layout>,
    sizes: Option<&[usize]>,
    dtype: DType,
    options: &DenseOptions,
    what: &str,
) -> Result<DensePlan> {
    let axes = layouts.len();
    let mut shape = vec![rows];
    match sizes {
        Some(sizes) if sizes.len() != axes => {
            return Err(Error::invalid(format!(
                "{what}: {} size(s) {sizes:?} are given for {axes} level(s) of lists; give one size per level",
                sizes.len()
            )));
        }
        Some(sizes) => shape.extend_from_slice(sizes),
        None => shape.extend(layouts.iter().map(Layout::max_length)),
    }
    options.check_bytes(
        count_bytes(&shape, dtype),
        || format!("{what}: a {dtype} tensor of shape {shape:?}"),
        || {
            let longest: Vec<_> = layouts.iter().map(Layout::max_length).collect();
            format!(
                "give smaller sizes (the longest lists are {longest:?} on the axes after the \
                 rows), take fewer rows at a time, or raise the limit"
            )
        },
    )?;
    Ok(DensePlan::new(layouts, shape, dtype.size(), options.side))
}

/// Creates a tensor: takes memory for it, and calls `write` with the plan, what to do with the
/// padding, and the memory of the tensor.
pub(crate) fn create_tensor(
    plan: DensePlan,
    dtype: DType,
    fill: &[u8],
    options: &DenseOptions,
    write: impl FnOnce(&DensePlan, PaddingBytes, &mut [u8]),
) -> Result<DenseTensor> {
    let zero = fill.iter().all(|b| *b == 0);
    let mut memory = match &options.pool {
        Some(pool) => pool.take_memory(plan.bytes())?,
        None => TensorMemory::new_zeroed(plan.bytes())?,
    };
    // If `fill` is zero, also clear the bytes of the block after this tensor, because a later,
    // longer tensor in this block expects zeros there.
    let (block, contents) = memory.take_contents();
    let written = || match plan.is_sparse() {
        true => PaddingBytes::from_fill(fill).prefer_ahead(),
        false => PaddingBytes::from_fill(fill),
    };
    let padding = match contents {
        _ if !zero => written(),
        BlockContents::Zero => PaddingBytes::Leave,
        BlockContents::Values(before) => {
            before.walk_lists(&ClearSink, PaddingBytes::Leave, block, options.parallel);
            PaddingBytes::Leave
        }
        BlockContents::Unknown => {
            block[plan.bytes()..].fill(0);
            written()
        }
    };
    write(&plan, padding, &mut block[..plan.bytes()]);
    let shape = plan.shape().to_vec();
    memory.set_contents(|| if zero { BlockContents::Values(plan) } else { BlockContents::Unknown });
    DenseTensor::try_new_trusted(dtype, shape, memory.into_buffer())
}

struct ClearSink;

impl DenseSink for ClearSink {
    fn values(&self, _: Range<usize>, out: &mut [u8]) {
        out.fill(0);
    }
}

struct CopySink<'a> {
    bytes: &'a [u8],
    size: usize,
}

impl DenseSink for CopySink<'_> {
    fn values(&self, leaves: Range<usize>, out: &mut [u8]) {
        out.copy_from_slice(&self.bytes[leaves.start * self.size..leaves.end * self.size]);
    }
}

struct WidenSink<'a, T> {
    values: &'a [T],
}

impl<T: TensorElement + Into<i64>> DenseSink for WidenSink<'_, T> {
    fn values(&self, leaves: Range<usize>, out: &mut [u8]) {
        for (out, v) in out.as_chunks_mut().0.iter_mut().zip(&self.values[leaves]) {
            let wide: i64 = (*v).into();
            *out = wide.to_ne_bytes();
        }
    }
}

struct NullFillSink<'a, S> {
    inner: S,
    nulls: &'a NullBuffer,
    fill: &'a [u8],
}

impl<S: DenseSink> DenseSink for NullFillSink<'_, S> {
    fn values(&self, leaves: Range<usize>, out: &mut [u8]) {
        let first = leaves.start;
        self.inner.values(leaves.clone(), out);
        for i in leaves.filter(|i| self.nulls.is_null(*i)) {
            let at = (i - first) * self.fill.len();
            out[at..at + self.fill.len()].copy_from_slice(self.fill);
        }
    }
}

struct LeafWriter {
    values: DenseTensor,
    dtype: DType,
    nulls: Option<NullBuffer>,
    fill: DenseTensor,
}

impl LeafWriter {
    fn new(array: &RaggedArray, options: &DenseOptions, dtype: DType, what: &str) -> Result<Self> {
        let named = |e: Error| match e {
            Error::Invalid(m) => Error::invalid(format!("{what}: {m}")),
            Error::Arrow(e) => Error::invalid(format!(
                "{what}: the values cannot be converted to {dtype} ({e}); choose another type"
            )),
            e => e,
        };
        let fill = options.fill.unwrap_or(Fill::Bool(false));
        let fill = fill.to_tensor(dtype).map_err(named)?;
        let nulls = array.leaves().nulls().filter(|n| n.null_count() > 0).cloned();
        let mut values = DenseTensor::from_flat(array.leaves(), what)?;
        if values.dtype() != dtype && !is_widening(values.dtype(), dtype) {
            if let Some(nulls) = &nulls {
                values = zero_nulls(&values, nulls)?;
            }
            values = values.cast(dtype).map_err(named)?;
        }
        Ok(Self { values, dtype, nulls, fill })
    }

    fn fill(&self) -> &[u8] {
        self.fill.as_bytes()
    }

    fn write(&self, plan: &DensePlan, padding: PaddingBytes, out: &mut [u8], parallel: bool) {
        fn widen_leaves<T: TensorElement + Into<i64>>(leaves: &LeafWriter) -> WidenSink<'_, T> {
            // The caller has checked that the leaves have the type `T`, so `view` does not return
            // `None`.
            WidenSink { values: T::view(leaves.values.buffer()).unwrap_or_default() }
        }
        if self.values.dtype() == self.dtype {
            let copied = CopySink { bytes: self.values.as_bytes(), size: self.dtype.size() };
            return self.walk_plan(plan, copied, padding, out, parallel);
        }
        match self.values.dtype() {
            DType::U8 | DType::Bool => {
                self.walk_plan(plan, widen_leaves::<u8>(self), padding, out, parallel);
            }
            DType::U16 => self.walk_plan(plan, widen_leaves::<u16>(self), padding, out, parallel),
            DType::U32 => self.walk_plan(plan, widen_leaves::<u32>(self), padding, out, parallel),
            DType::I8 => self.walk_plan(plan, widen_leaves::<i8>(self), padding, out, parallel),
            DType::I16 => self.walk_plan(plan, widen_leaves::<i16>(self), padding, out, parallel),
            _ => self.walk_plan(plan, widen_leaves::<i32>(self), padding, out, parallel),
        }
    }

    fn walk_plan<S: DenseSink>(
        &self,
        plan: &DensePlan,
        inner: S,
        padding: PaddingBytes,
        out: &mut [u8],
        parallel: bool,
    ) {
        match &self.nulls {
            None => plan.walk_lists(&inner, padding, out, parallel),
            Some(nulls) => {
                let sink = NullFillSink { inner, nulls, fill: self.fill() };
                plan.walk_lists(&sink, padding, out, parallel);
            }
        }
    }
}

fn is_widening(from: DType, to: DType) -> bool {
    to == DType::I64
        && matches!(
            from,
            DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::I8 | DType::I16 | DType::I32
        )
}

/// Sets the stored values of nulls to zero, so that converting them to another type cannot fail.
fn zero_nulls(values: &DenseTensor, nulls: &NullBuffer) -> Result<DenseTensor> {
    let size = values.dtype().size();
    let mut bytes = values.as_bytes().to_vec();
    for (i, element) in bytes.chunks_exact_mut(size).enumerate() {
        if nulls.is_null(i) {
            element.fill(0);
        }
    }
    DenseTensor::try_new(values.dtype(), values.shape(), Buffer::from_vec(bytes))
}
