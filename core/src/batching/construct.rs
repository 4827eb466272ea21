//! Construction of batches from padded tensors, with a check of masks and sizes.

use std::sync::Arc;

use super::RaggedBatch;
use super::pad::remove_padding;
use super::ragged_batch::check_dim;
use super::structure::{
    SampleStructure, count_mask_lengths, count_samples, name_sample, read_lengths,
};
use crate::array::Offsets;
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};
use crate::index::resolve_position;
use crate::limit::check_size;

/// The non-uniform axis of a padded tensor, along which samples differ in size: its index and its
/// padded size.
struct NonUniformAxis {
    dim: usize,
    size: usize,
}

struct SampleSizes {
    batch_shape: Vec<usize>,
    lengths: Vec<usize>,
    dtype: DType,
    mask_width: Option<usize>,
}

impl SampleSizes {
    /// Reads the sizes of samples from a mask, or from a tensor of sizes. If both are given,
    /// returns an error if they give a sample different sizes.
    fn read(mask: Option<&DenseTensor>, sample_sizes: Option<&DenseTensor>) -> Result<Self> {
        let of_mask = match mask {
            Some(mask) => Some((count_mask_lengths(mask)?, mask.shape())),
            None => None,
        };
        let (batch_shape, lengths, dtype) = match (sample_sizes, &of_mask) {
            (Some(sizes), _) => (sizes.shape().to_vec(), read_lengths(sizes)?, sizes.dtype()),
            (None, Some((lengths, shape))) => {
                (shape[..shape.len() - 1].to_vec(), lengths.clone(), DType::I64)
            }
            (None, None) => {
                return Err(Error::invalid(
                    "neither mask nor sample_sizes is given; give at least one of them to make a batch",
                ));
            }
        };
        let mask_width = match of_mask {
            None => None,
            Some((counted, shape)) => {
                let batch = &shape[..shape.len() - 1];
                if batch != batch_shape {
                    return Err(Error::invalid(format!(
                        "a mask of shape {shape:?} does not match sample_sizes of shape {batch_shape:?}; give a mask with the axes of sample_sizes and one more axis at the end"
                    )));
                }
                if let Some(i) = (0..lengths.len()).find(|i| lengths[*i] != counted[*i]) {
                    return Err(Error::invalid(format!(
                        "{sample} has the size {size} in sample_sizes, but the number of its entries in mask is {in_mask}; correct one of the two, or give only one of these arguments",
                        sample = name_sample(&batch_shape, i),
                        in_mask = counted[i],
                        size = lengths[i]
                    )));
                }
                shape.last().copied()
            }
        };
        Ok(Self { batch_shape, lengths, dtype, mask_width })
    }

    /// Returns the non-uniform axis of `tensor`: axis `non_uniform_dim`, or the first data axis if
    /// it is `None`. Checks that there is a batch axis, that `tensor` begins with the batch axes,
    /// that the non-uniform axis is a data axis, and that the last axis of the mask, if there is a
    /// mask, has the size of the non-uniform axis.
    fn check_tensor(
        &self,
        tensor: &DenseTensor,
        non_uniform_dim: Option<usize>,
    ) -> Result<NonUniformAxis> {
        let batch = self.batch_shape.len();
        if batch == 0 {
            return Err(Error::invalid(
                "there are no batch axes; give sample_sizes with at least 1 axis, or a mask with at least 2 axes",
            ));
        }
        let dim = non_uniform_dim.unwrap_or(batch);
        check_dim(dim, batch, tensor.ndim())?;
        check_batch_axes(tensor.shape(), &self.batch_shape)?;
        let width = tensor.shape()[dim];
        if let Some(mask) = self.mask_width.filter(|m| *m != width) {
            return Err(Error::invalid(format!(
                "the last axis of the mask has the size {mask}, but the non-uniform axis of the tensor has the size {width}; give a mask whose last axis has the size {width}"
            )));
        }
        Ok(NonUniformAxis { dim, size: width })
    }
}

pub(super) fn check_batch_axes(shape: &[usize], batch_shape: &[usize]) -> Result<()> {
    if shape.get(..batch_shape.len()) == Some(batch_shape) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the tensor has the shape {shape:?}, but its first axes must be the batch axes, of shape {batch_shape:?}; reshape the tensor"
    )))
}

impl RaggedBatch {
    /// Creates a batch from a padded tensor and the size of each sample.
    ///
    /// The tensor has the axes `[batch axes.., data axes..]`. The sizes are a mask
    /// `[batch axes.., max_sample_size]` (bool; entries are true and come first), integers
    /// `[batch axes..]`, or both. The batch axes are all axes of the integers, or all axes of the
    /// mask but its last. The non-uniform axis (along which samples differ in size) is the first
    /// data axis by default. Copies the entries, but not the padding. A tensor without padding is
    /// shared if the non-uniform axis is the first data axis. A sample of size 0 has no entries.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 2], vec![1.5f32, 0.0, 2.5, 3.5])?;
    /// let sizes = DenseTensor::from_vec([2], vec![1i32, 2])?;
    /// let batch = RaggedBatch::try_new(&t, None, Some(&sizes), None)?;
    /// assert_eq!(batch.mask()?.to_string(), "bool[2, 2] [[true, false], [true, true]]");
    /// let wrong = DenseTensor::from_bools([2, 2], [true, true, true, true])?;
    /// let e = RaggedBatch::try_new(&t, Some(&wrong), Some(&sizes), None).unwrap_err();
    /// assert_eq!(e.to_string(), "sample 0 has the size 1 in sample_sizes, but the number of its entries in mask is 2; correct one of the two, or give only one of these arguments");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If neither mask nor sizes are given; if there are no batch axes; if the non-uniform axis is
    /// a batch axis or does not exist; if the shapes of tensor, mask and sizes do not match; if
    /// sizes are negative, not integers, or larger than the non-uniform axis; if the mask of a
    /// sample is true after it is false, or its number of entries is not the size of the sample.
    /// The message names the sample.
    pub fn try_new(
        tensor: &DenseTensor,
        mask: Option<&DenseTensor>,
        sample_sizes: Option<&DenseTensor>,
        non_uniform_dim: Option<usize>,
    ) -> Result<Self> {
        let given = SampleSizes::read(mask, sample_sizes)?;
        let axis = given.check_tensor(tensor, non_uniform_dim)?;
        Self::from_sizes(tensor, given, axis.dim, axis.size)
    }

    /// Creates a batch like [`try_new`](Self::try_new), but shortens the non-uniform axis to the
    /// size of the largest sample.
    ///
    /// [`max_sample_size`](Self::max_sample_size) becomes the size of the largest sample, even if
    /// the non-uniform axis of the tensor (and the last axis of the mask) is longer. It is 0 if no
    /// sample has entries.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 4], vec![1, 0, 0, 0, 2, 3, 0, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![1i64, 2])?;
    /// let batch = RaggedBatch::from_oversize_tensor(&t, None, Some(&sizes), None)?;
    /// assert_eq!(batch.tensor()?.to_string(), "int32[2, 2] [[1, 0], [2, 3]]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`try_new`](Self::try_new).
    pub fn from_oversize_tensor(
        tensor: &DenseTensor,
        mask: Option<&DenseTensor>,
        sample_sizes: Option<&DenseTensor>,
        non_uniform_dim: Option<usize>,
    ) -> Result<Self> {
        let given = SampleSizes::read(mask, sample_sizes)?;
        let dim = given.check_tensor(tensor, non_uniform_dim)?.dim;
        let largest = given.lengths.iter().copied().max().unwrap_or(0);
        Self::from_sizes(tensor, given, dim, largest)
    }

    fn from_sizes(
        tensor: &DenseTensor,
        given: SampleSizes,
        dim: usize,
        width: usize,
    ) -> Result<Self> {
        let batch = given.batch_shape.len();
        let room = tensor.shape()[dim];
        if let Some(i) = given.lengths.iter().position(|n| *n > room) {
            return Err(Error::invalid(format!(
                "{sample} has {entries} entries, but the non-uniform axis of the tensor has room for only {room} per sample; give at most {room} in sample_sizes",
                sample = name_sample(&given.batch_shape, i),
                entries = given.lengths[i]
            )));
        }
        let offsets = Offsets::from_lengths(given.lengths.iter().copied())?;
        let values = remove_padding(tensor, &offsets, batch, dim)?;
        let structure =
            SampleStructure::try_new(given.batch_shape, offsets, Some(width), given.dtype)?;
        Self::from_parts(Arc::new(structure), values, dim)
    }

    /// Creates a batch from a tensor without padding: the number of entries of every sample is the
    /// size of the non-uniform axis, which may be 0.
    ///
    /// Copies nothing if the non-uniform axis is the first data axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 5, 6])?;
    /// let batch = RaggedBatch::from_full_tensor(&t, 1, 1)?;
    /// assert_eq!(batch.sample_sizes()?.as_slice::<i64>()?, [3, 3]);
    /// assert_eq!(batch.tensor()?, &t);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are no batch axes, or the non-uniform axis is a batch axis or does not exist.
    pub fn from_full_tensor(
        full_tensor: &DenseTensor,
        non_uniform_dim: usize,
        num_batch_dims: usize,
    ) -> Result<Self> {
        if num_batch_dims == 0 {
            return Err(Error::invalid("num_batch_dims is 0; give at least 1 batch axis"));
        }
        check_dim(non_uniform_dim, num_batch_dims, full_tensor.ndim())?;
        let batch_shape = full_tensor.shape()[..num_batch_dims].to_vec();
        let width = full_tensor.shape()[non_uniform_dim];
        let samples = count_samples(&batch_shape)?;
        let lengths = vec![width; samples];
        let given = SampleSizes { batch_shape, lengths, dtype: DType::I64, mask_width: None };
        Self::from_sizes(full_tensor, given, non_uniform_dim, width)
    }

    /// Creates a float32 batch of `num_dims` axes without entries.
    ///
    /// Every axis has size 0, except for the axes of `batch_shape`. There is one batch axis unless
    /// `num_batch_dims` or `batch_shape` is given.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// assert_eq!(RaggedBatch::empty(3, 1, None, None)?.shape(), [0, 0, 0]);
    /// assert_eq!(RaggedBatch::empty(4, 2, None, Some(&[2, 3]))?.shape(), [2, 3, 0, 0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If both `num_batch_dims` and `batch_shape` are given, if there is no batch axis or no data
    /// axis, or if the non-uniform axis is a batch axis or does not exist.
    pub fn empty(
        num_dims: usize,
        non_uniform_dim: usize,
        num_batch_dims: Option<usize>,
        batch_shape: Option<&[usize]>,
    ) -> Result<Self> {
        let batch_shape = match (num_batch_dims, batch_shape) {
            (Some(_), Some(_)) => {
                return Err(Error::invalid(
                    "both num_batch_dims and batch_shape are given; give only one of them",
                ));
            }
            (Some(n), None) => {
                check_size("the batch axes", n, 64)?;
                vec![0; n]
            }
            (None, Some(shape)) => shape.to_vec(),
            (None, None) => vec![0],
        };
        let batch = batch_shape.len();
        if batch == 0 || batch >= num_dims {
            return Err(Error::invalid(format!(
                "num_dims is {num_dims}, and the number of batch axes is {batch}; give at least one batch axis, and a num_dims above the number of batch axes"
            )));
        }
        check_dim(non_uniform_dim, batch, num_dims)?;
        check_size("an empty batch", num_dims, 64)?;
        let samples = count_samples(&batch_shape)?;
        let offsets = Offsets::from_lengths(std::iter::repeat_n(0, samples))?;
        let structure = SampleStructure::try_new(batch_shape, offsets, Some(0), DType::I64)?;
        let values = DenseTensor::from_vec(vec![0; num_dims - batch], Vec::<f32>::new())?;
        Self::from_parts(Arc::new(structure), values, non_uniform_dim)
    }

    /// Returns a batch of other data with the same sample sizes.
    ///
    /// The padded tensor may have any type and data axes. Its batch axes and its size along the
    /// non-uniform axis must be those of this batch. `non_uniform_dim` is the non-uniform axis of
    /// `tensor`, by default the same axis as in this batch; a negative axis counts from the end.
    /// The result shares sizes and mask with this batch, so the same samples have no entries.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let codes = DenseTensor::from_vec([2, 2], vec![1, 2, 3, 0])?;
    /// let sizes = DenseTensor::from_vec([2], vec![2i64, 1])?;
    /// let codes = RaggedBatch::try_new(&codes, None, Some(&sizes), None)?;
    /// let values = DenseTensor::from_vec([2, 2], vec![0.5, 1.5, 2.5, 0.0])?;
    /// let values = codes.create_with_sample_sizes_like_self(&values, None)?;
    /// assert_eq!(values.values().as_slice::<f64>()?, [0.5, 1.5, 2.5]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the batch axes or the size of the non-uniform axis differ, or the axis does not exist.
    pub fn create_with_sample_sizes_like_self(
        &self,
        tensor: &DenseTensor,
        non_uniform_dim: Option<i64>,
    ) -> Result<Self> {
        let batch = self.num_batch_dims();
        let dim =
            match non_uniform_dim {
                None => self.non_uniform_dim(),
                Some(dim) => resolve_position(dim, tensor.ndim()).ok_or_else(|| {
                    Error::NoSuchAxis { what: "the tensor".into(), axis: dim, ndim: tensor.ndim() }
                })?,
            };
        check_batch_axes(tensor.shape(), self.batch_shape())?;
        check_dim(dim, batch, tensor.ndim())?;
        if tensor.shape()[dim] != self.max_sample_size() {
            return Err(Error::invalid(format!(
                "the tensor has the padded size {} along axis {dim}, but the longest sample of the batch has {} elements; pad or cut the tensor along this axis to that size",
                tensor.shape()[dim],
                self.max_sample_size()
            )));
        }
        let values = remove_padding(tensor, self.offsets(), batch, dim)?;
        Self::from_parts(Arc::clone(self.structure()), values, dim)
    }

    /// Replaces the data with a padded tensor, whose batch axes and size along the non-uniform axis
    /// must be those of this batch.
    ///
    /// The type and all other axes may differ. Samples without entries stay empty.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let mut batch = RaggedBatch::from_full_tensor(&DenseTensor::from_vec([1, 2], vec![1, 2])?, 1, 1)?;
    /// batch.set_tensor(&DenseTensor::from_vec([1, 2], vec![0.5, 1.5])?)?;
    /// assert_eq!(batch.values().as_slice::<f64>()?, [0.5, 1.5]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`create_with_sample_sizes_like_self`](Self::create_with_sample_sizes_like_self);
    /// the batch is unchanged after an error.
    pub fn set_tensor(&mut self, tensor: &DenseTensor) -> Result<()> {
        *self = self.create_with_sample_sizes_like_self(tensor, None)?;
        Ok(())
    }
}
