//! Batches from padded tensors, with masks or sizes that are checked.

use std::sync::Arc;

use super::RaggedBatch;
use super::batch::check_dim;
use super::pad::unpad;
use super::structure::{Structure, count_samples, lengths_of, lengths_of_mask, sample};
use crate::array::Offsets;
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};
use crate::index::resolve;

/// Sample sizes as they are given.
struct Given {
    batch_shape: Vec<usize>,
    lengths: Vec<usize>,
    dtype: DType,
    /// Size of the last axis of the mask.
    mask_width: Option<usize>,
}

impl Given {
    /// From a mask, sizes, or both, which must agree.
    fn read(mask: Option<&DenseTensor>, sample_sizes: Option<&DenseTensor>) -> Result<Self> {
        let of_mask = match mask {
            Some(mask) => Some((lengths_of_mask(mask)?, mask.shape())),
            None => None,
        };
        let (batch_shape, lengths, dtype) = match (sample_sizes, &of_mask) {
            (Some(sizes), _) => (sizes.shape().to_vec(), lengths_of(sizes)?, sizes.dtype()),
            (None, Some((lengths, shape))) => {
                (shape[..shape.len() - 1].to_vec(), lengths.clone(), DType::I64)
            }
            (None, None) => {
                return Err(Error::invalid("a batch needs a mask, sample sizes, or both"));
            }
        };
        let mask_width = match of_mask {
            None => None,
            Some((counted, shape)) => {
                let batch = &shape[..shape.len() - 1];
                if batch != batch_shape {
                    return Err(Error::invalid(format!(
                        "a mask of shape {shape:?} beside sample sizes of shape {batch_shape:?}"
                    )));
                }
                if let Some(i) = (0..lengths.len()).find(|i| lengths[*i] != counted[*i]) {
                    return Err(Error::invalid(format!(
                        "{}: the mask has {} entries, the sample sizes say {}",
                        sample(&batch_shape, i),
                        counted[i],
                        lengths[i]
                    )));
                }
                shape.last().copied()
            }
        };
        Ok(Self { batch_shape, lengths, dtype, mask_width })
    }

    /// Checks that the tensor has the batch axes, and gives the non-uniform one and its size.
    fn check(
        &self,
        tensor: &DenseTensor,
        non_uniform_dim: Option<usize>,
    ) -> Result<(usize, usize)> {
        let batch = self.batch_shape.len();
        if batch == 0 {
            return Err(Error::invalid("a batch has one batch axis or more, not none"));
        }
        let dim = non_uniform_dim.unwrap_or(batch);
        check_dim(dim, batch, tensor.ndim())?;
        check_batch(tensor.shape(), &self.batch_shape)?;
        let width = tensor.shape()[dim];
        if let Some(mask) = self.mask_width.filter(|m| *m != width) {
            return Err(Error::invalid(format!(
                "a mask of {mask} places for a non-uniform axis of {width}"
            )));
        }
        Ok((dim, width))
    }
}

/// Refuses a tensor with other batch axes.
pub(super) fn check_batch(shape: &[usize], batch_shape: &[usize]) -> Result<()> {
    if shape.get(..batch_shape.len()) == Some(batch_shape) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a tensor of shape {shape:?} for batch axes of shape {batch_shape:?}"
    )))
}

impl RaggedBatch {
    /// From a padded tensor `[batch axes.., data axes..]` and either or both of a mask
    /// `[batch axes.., max_sample_size]` (bool; each sample's entries are true, then come those that
    /// are not) and sample sizes `[batch axes..]` (integers). They say how many batch axes there are;
    /// the non-uniform axis is the one after them unless it is given. Entries are copied, filler is
    /// dropped; a tensor without any is shared.
    ///
    /// ```
    /// use serrate::batching::RaggedBatch;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2, 2], vec![1.5f32, 0.0, 2.5, 3.5])?;
    /// let sizes = DenseTensor::from_vec([2], vec![1i32, 2])?;
    /// let batch = RaggedBatch::try_new(&t, None, Some(&sizes), None)?;
    /// assert_eq!(batch.mask()?.to_string(), "bool[2, 2] [[true, false], [true, true]]");
    /// let wrong = DenseTensor::from_bools([2, 2], [true, true, true, true])?;
    /// let e = RaggedBatch::try_new(&t, Some(&wrong), Some(&sizes), None).unwrap_err();
    /// assert_eq!(e.to_string(), "sample 0: the mask has 2 entries, the sample sizes say 1");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Neither mask nor sizes; no batch axes; a non-uniform axis among them or beyond the last;
    /// shapes that differ; sizes that are negative, no integers or larger than the non-uniform axis; a
    /// mask with gaps; mask and sizes that disagree. The sample is named.
    pub fn try_new(
        tensor: &DenseTensor,
        mask: Option<&DenseTensor>,
        sample_sizes: Option<&DenseTensor>,
        non_uniform_dim: Option<usize>,
    ) -> Result<Self> {
        let given = Given::read(mask, sample_sizes)?;
        let (dim, width) = given.check(tensor, non_uniform_dim)?;
        Self::from_given(tensor, given, dim, width)
    }

    /// As [`try_new`](Self::try_new), of a tensor (and mask) that is longer along the non-uniform axis
    /// than the largest sample: [`max_sample_size`](Self::max_sample_size) becomes the size of that
    /// sample, 0 when there are none.
    ///
    /// # Errors
    /// As [`try_new`](Self::try_new).
    pub fn from_oversize_tensor(
        tensor: &DenseTensor,
        mask: Option<&DenseTensor>,
        sample_sizes: Option<&DenseTensor>,
        non_uniform_dim: Option<usize>,
    ) -> Result<Self> {
        let given = Given::read(mask, sample_sizes)?;
        let (dim, _) = given.check(tensor, non_uniform_dim)?;
        let largest = given.lengths.iter().copied().max().unwrap_or(0);
        Self::from_given(tensor, given, dim, largest)
    }

    fn from_given(tensor: &DenseTensor, given: Given, dim: usize, width: usize) -> Result<Self> {
        let batch = given.batch_shape.len();
        let room = tensor.shape()[dim];
        if let Some(i) = given.lengths.iter().position(|n| *n > room) {
            return Err(Error::invalid(format!(
                "{} has {} entries, more than the {room} of the non-uniform axis",
                sample(&given.batch_shape, i),
                given.lengths[i]
            )));
        }
        let offsets = Offsets::from_lengths(given.lengths.iter().copied())?;
        let values = unpad(tensor, &offsets, batch, dim)?;
        let structure = Structure::try_new(given.batch_shape, offsets, Some(width), given.dtype)?;
        Self::from_parts(Arc::new(structure), values, dim)
    }

    /// From a tensor that is all entries: every sample has the size of the non-uniform axis. Nothing
    /// is copied when that is the first data axis.
    ///
    /// # Errors
    /// No batch axes; a non-uniform axis among them or beyond the last.
    pub fn from_full_tensor(
        full_tensor: &DenseTensor,
        non_uniform_dim: usize,
        num_batch_dims: usize,
    ) -> Result<Self> {
        if num_batch_dims == 0 {
            return Err(Error::invalid("a batch has one batch axis or more, not none"));
        }
        check_dim(non_uniform_dim, num_batch_dims, full_tensor.ndim())?;
        let batch_shape = full_tensor.shape()[..num_batch_dims].to_vec();
        let width = full_tensor.shape()[non_uniform_dim];
        let samples = count_samples(&batch_shape)?;
        let lengths = vec![width; samples];
        let given = Given { batch_shape, lengths, dtype: DType::I64, mask_width: None };
        Self::from_given(full_tensor, given, non_uniform_dim, width)
    }

    /// A batch of `num_dims` axes without entries, of float32: of size 0 along every axis, or along
    /// every axis after the batch axes when these are given. One batch axis unless their number or
    /// their shape says otherwise.
    ///
    /// ```
    /// use serrate::batching::RaggedBatch;
    /// assert_eq!(RaggedBatch::empty(3, 1, None, None)?.shape(), [0, 0, 0]);
    /// assert_eq!(RaggedBatch::empty(4, 2, None, Some(&[2, 3]))?.shape(), [2, 3, 0, 0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Both number and shape of the batch axes; no batch axes, or no others; a non-uniform axis among
    /// them or beyond the last.
    pub fn empty(
        num_dims: usize,
        non_uniform_dim: usize,
        num_batch_dims: Option<usize>,
        batch_shape: Option<&[usize]>,
    ) -> Result<Self> {
        let batch_shape = match (num_batch_dims, batch_shape) {
            (Some(_), Some(_)) => {
                return Err(Error::invalid(
                    "give the number of batch axes or their shape, not both",
                ));
            }
            // More batch axes than axes are refused below, before there is memory for them.
            (Some(n), None) => vec![0; n.min(num_dims)],
            (None, Some(shape)) => shape.to_vec(),
            (None, None) => vec![0],
        };
        let batch = batch_shape.len();
        if batch == 0 || batch >= num_dims {
            return Err(Error::invalid(format!(
                "{batch} batch axes of {num_dims} axes; there is one or more, and one or more others"
            )));
        }
        check_dim(non_uniform_dim, batch, num_dims)?;
        let samples = count_samples(&batch_shape)?;
        let offsets = Offsets::from_lengths(std::iter::repeat_n(0, samples))?;
        let structure = Structure::try_new(batch_shape, offsets, Some(0), DType::I64)?;
        let values = DenseTensor::from_vec(vec![0; num_dims - batch], Vec::<f32>::new())?;
        Self::from_parts(Arc::new(structure), values, non_uniform_dim)
    }

    /// Other data for the same samples: a padded tensor of any type and any data axes, whose batch
    /// axes and size along the non-uniform axis (this batch's own unless given, negatives from the
    /// last) are those of this batch. Sizes and mask are shared.
    ///
    /// # Errors
    /// Other batch axes, another size of the non-uniform axis, or no such axis.
    pub fn create_with_sample_sizes_like_self(
        &self,
        tensor: &DenseTensor,
        non_uniform_dim: Option<i64>,
    ) -> Result<Self> {
        let batch = self.num_batch_dims();
        let dim = match non_uniform_dim {
            None => self.non_uniform_dim(),
            Some(dim) => resolve(dim, tensor.ndim()).ok_or_else(|| Error::NoSuchAxis {
                what: "the tensor".into(),
                axis: dim,
                ndim: tensor.ndim(),
            })?,
        };
        check_batch(tensor.shape(), self.batch_shape())?;
        check_dim(dim, batch, tensor.ndim())?;
        if tensor.shape()[dim] != self.max_sample_size() {
            return Err(Error::invalid(format!(
                "a tensor of {} along the non-uniform axis {dim} for a batch of {}",
                tensor.shape()[dim],
                self.max_sample_size()
            )));
        }
        let values = unpad(tensor, self.offsets(), batch, dim)?;
        Self::from_parts(Arc::clone(self.structure()), values, dim)
    }

    /// Replaces the data by that of a padded tensor, of any type and any data axes, that has the same
    /// batch axes and the same size along the same non-uniform axis.
    ///
    /// # Errors
    /// As [`create_with_sample_sizes_like_self`](Self::create_with_sample_sizes_like_self); the batch
    /// is as it was then.
    pub fn set_tensor(&mut self, tensor: &DenseTensor) -> Result<()> {
        *self = self.create_with_sample_sizes_like_self(tensor, None)?;
        Ok(())
    }
}
