//! The sample sizes of a batch (batch axes, offsets, mask), which derived batches share.

use std::sync::OnceLock;

use arrow::buffer::MutableBuffer;

use crate::array::Offsets;
use crate::dense::{DType, DenseOptions, DenseTensor, TensorElement, count_shape_elements};
use crate::error::{Error, Result};

#[derive(Clone, Debug)]
pub(super) struct SampleStructure {
    batch_shape: Vec<usize>,
    /// Offsets into the entries. The first offset is 0, and sample `i` has the entries
    /// `offsets[i]..offsets[i + 1]`.
    offsets: Offsets,
    /// Size of the non-uniform axis of the padded tensor (the axis along which samples differ in
    /// size); at least the size of the largest sample.
    width: usize,
    /// Integer type of the sizes from which the batch was created, and of the tensor
    /// `sample_sizes`.
    sizes_dtype: DType,
    mask: OnceLock<DenseTensor>,
    sample_sizes: OnceLock<DenseTensor>,
}

impl SampleStructure {
    /// Creates a structure with `width`, by default the size of the largest sample. Returns an
    /// error if there are no batch axes, their sizes do not multiply to the number of samples, or a
    /// sample exceeds `width`.
    pub(super) fn try_new(
        batch_shape: Vec<usize>,
        offsets: Offsets,
        width: Option<usize>,
        sizes_dtype: DType,
    ) -> Result<Self> {
        if batch_shape.is_empty() {
            return Err(Error::invalid("the result would have no batch axes; keep at least one"));
        }
        if count_shape_elements(&batch_shape) != Some(offsets.lists()) {
            return Err(Error::invalid(format!(
                "{} samples do not fit batch axes of shape {batch_shape:?}; give sizes whose product is the number of samples",
                offsets.lists()
            )));
        }
        let largest = offsets.max_length();
        let width = width.unwrap_or(largest);
        if largest > width {
            let i = offsets.lengths().position(|n| n > width).unwrap_or(0);
            return Err(Error::invalid(format!(
                "{sample} has {entries} entries, more than the size {width} of the non-uniform axis, which holds the entries of each sample; give a size that fits the largest sample",
                sample = name_sample(&batch_shape, i),
                entries = offsets.length(i)
            )));
        }
        Ok(Self {
            batch_shape,
            offsets: offsets.rebased(),
            width,
            sizes_dtype,
            mask: OnceLock::new(),
            sample_sizes: OnceLock::new(),
        })
    }

    pub(super) fn batch_shape(&self) -> &[usize] {
        &self.batch_shape
    }

    pub(super) fn offsets(&self) -> &Offsets {
        &self.offsets
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn sizes_dtype(&self) -> DType {
        self.sizes_dtype
    }

    pub(super) fn replace_batch_shape(&self, batch_shape: Vec<usize>) -> Result<Self> {
        let (width, dtype) = (Some(self.width), self.sizes_dtype);
        Self::try_new(batch_shape, self.offsets.clone(), width, dtype)
    }

    pub(super) fn name_sample(&self, i: usize) -> String {
        name_sample(&self.batch_shape, i)
    }

    pub(super) fn check_same_sizes(&self, other: &Self, what: &str) -> Result<()> {
        if self.batch_shape != other.batch_shape {
            return Err(Error::invalid(format!(
                "{what} have different batch shapes, {own:?} and {theirs:?}; give both the same batch shape",
                own = self.batch_shape,
                theirs = other.batch_shape
            )));
        }
        match self.offsets.first_difference(&other.offsets) {
            None => Ok(()),
            Some(i) => Err(Error::invalid(format!(
                "{what} differ in size: the number of entries of {sample} is {own} in the first of the two and {theirs} in the second; give both the same sample sizes",
                sample = self.name_sample(i),
                own = self.offsets.length(i),
                theirs = other.offsets.length(i)
            ))),
        }
    }

    pub(super) fn sample_sizes(&self) -> Result<&DenseTensor> {
        get_or_compute(&self.sample_sizes, || {
            let sizes: Vec<i64> =
                self.offsets.lengths().map(|n| i64::try_from(n).unwrap_or(i64::MAX)).collect();
            DenseTensor::from_vec(self.batch_shape.clone(), sizes)?.cast(self.sizes_dtype)
        })
    }

    pub(super) fn mask(&self) -> Result<&DenseTensor> {
        get_or_compute(&self.mask, || {
            let mut shape = self.batch_shape.clone();
            shape.push(self.width);
            let bytes = check_bytes(&shape, DType::Bool, &DenseOptions::default(), "a mask")?;
            let mut mask = MutableBuffer::with_capacity(bytes);
            for n in self.offsets.lengths() {
                mask.extend_from_slice(&vec![1u8; n]);
                mask.extend_zeros(self.width - n);
            }
            DenseTensor::try_new_trusted(DType::Bool, shape, mask.into())
        })
    }
}

pub(super) fn get_or_compute(
    cell: &OnceLock<DenseTensor>,
    make: impl FnOnce() -> Result<DenseTensor>,
) -> Result<&DenseTensor> {
    if let Some(made) = cell.get() {
        return Ok(made);
    }
    let made = make()?;
    // If another thread has stored an equal tensor in `cell` in the meantime, return this tensor.
    Ok(cell.get_or_init(|| made))
}

/// Returns the number of bytes of a tensor, or an error if it exceeds the limit of `options`.
/// `what` names the tensor in the message.
pub(super) fn check_bytes(
    shape: &[usize],
    dtype: DType,
    options: &DenseOptions,
    what: &str,
) -> Result<usize> {
    let bytes = match count_shape_elements(shape) {
        Some(n) => (n as u128).saturating_mul(dtype.size() as u128),
        None => u128::MAX,
    };
    options.check_bytes(
        bytes,
        || format!("{what} of shape {shape:?}"),
        || "shorten the samples, or work on `values` without padding".into(),
    )
}

/// Returns the number of samples: the product of the sizes in `batch_shape`. Returns an error if a
/// tensor with one int64 per sample exceeds [`DenseOptions::DEFAULT_LIMIT`].
pub(super) fn count_samples(batch_shape: &[usize]) -> Result<usize> {
    let options = DenseOptions::default();
    check_bytes(batch_shape, DType::I64, &options, "sample sizes").map(|bytes| bytes / 8)
}

pub(super) fn multiply_saturating(shape: &[usize]) -> usize {
    count_shape_elements(shape).unwrap_or(usize::MAX)
}

/// Names sample `i` in errors: by its index, or by its coordinates if there are several batch axes.
pub(super) fn name_sample(batch_shape: &[usize], i: usize) -> String {
    match batch_shape.len() {
        0 | 1 => format!("sample {i}"),
        _ => format!("sample {:?}", unravel_position(batch_shape, i)),
    }
}

pub(super) fn unravel_position(batch_shape: &[usize], mut i: usize) -> Vec<usize> {
    let mut place = vec![0; batch_shape.len()];
    for (place, size) in place.iter_mut().zip(batch_shape).rev() {
        let size = (*size).max(1);
        *place = i % size;
        i /= size;
    }
    place
}

/// Reads sample sizes of any integer type. Returns an error for other types and negative sizes.
pub(super) fn read_lengths(sizes: &DenseTensor) -> Result<Vec<usize>> {
    fn convert_sizes<T: TensorElement + TryInto<usize>>(sizes: &DenseTensor) -> Result<Vec<usize>> {
        let one = |(i, n): (usize, &T)| {
            (*n).try_into().map_err(|_| {
                Error::invalid(format!(
                    "{sample} has the invalid size {n:?} in sample_sizes; give sizes of 0 or more",
                    sample = name_sample(sizes.shape(), i)
                ))
            })
        };
        sizes.as_slice::<T>()?.iter().enumerate().map(one).collect()
    }
    match sizes.dtype() {
        DType::U8 => convert_sizes::<u8>(sizes),
        DType::U16 => convert_sizes::<u16>(sizes),
        DType::U32 => convert_sizes::<u32>(sizes),
        DType::U64 => convert_sizes::<u64>(sizes),
        DType::I8 => convert_sizes::<i8>(sizes),
        DType::I16 => convert_sizes::<i16>(sizes),
        DType::I32 => convert_sizes::<i32>(sizes),
        DType::I64 => convert_sizes::<i64>(sizes),
        other => Err(Error::invalid(format!(
            "sample_sizes has the type {other}, which is not an integer type; cast it to int64"
        ))),
    }
}

/// Counts the true entries of each sample of a mask. In each sample, they must precede the false
/// entries. Returns an error if the mask has no axes, is not bool, or has a true entry after a
/// false one.
pub(super) fn count_mask_lengths(mask: &DenseTensor) -> Result<Vec<usize>> {
    if mask.dtype() != DType::Bool {
        return Err(Error::invalid(format!(
            "the mask has the type {}; cast it to bool",
            mask.dtype()
        )));
    }
    let Some((width, batch)) = mask.shape().split_last() else {
        return Err(Error::invalid(
            "the mask has no axes; give a mask with the batch axes and the non-uniform axis",
        ));
    };
    let samples = count_samples(batch)?;
    let all = mask.as_bytes();
    (0..samples)
        .map(|i| {
            let row = &all[i * width..(i + 1) * width];
            let n = row.iter().position(|b| *b == 0).unwrap_or(*width);
            match row[n..].iter().position(|b| *b != 0) {
                None => Ok(n),
                Some(j) => Err(Error::invalid(format!(
                    "the mask of {sample} is true at entry {later} after it is false at entry {n}; put all true values of a sample before its false values",
                    sample = name_sample(batch, i),
                    later = n + j
                ))),
            }
        })
        .collect()
}
