//! [`RaggedBatch`]: what it stores, and what it says of itself.

use std::sync::{Arc, OnceLock};

use super::pad::pad;
use super::structure::{Structure, once};
use crate::array::Offsets;
use crate::dense::{DType, DenseOptions, DenseTensor};
use crate::error::{Error, Result};

/// Samples of different size as one batch.
///
/// The batch has the shape `[batch axes.., data axes..]`, where one of the data axes, the
/// *non-uniform* one, has another size in every sample. An element of a sample along that axis is an
/// *entry*. Stored are the entries of all samples one after the other, `[entries, other data axes..]`
/// ([`values`](Self::values)), and where each sample ends ([`offsets`](Self::offsets)): no padding.
///
/// What a padded batch consists of is made when it is asked for, and kept: [`tensor`](Self::tensor),
/// [`mask`](Self::mask), [`sample_sizes`](Self::sample_sizes). Places of the tensor after the entries
/// of a sample are *filler*: zeros, or what [`with_padded_set_to`](Self::with_padded_set_to) says.
/// The tensor may be wider than the largest sample ([`max_sample_size`](Self::max_sample_size)), as
/// the one it came from was.
///
/// Clones, other batch axes and data of the same sample sizes share buffers, offsets and masks.
///
/// ```
/// use serrate::batching::RaggedBatch;
/// use serrate::dense::DenseTensor;
/// let padded = DenseTensor::from_vec([2, 2, 2], vec![1, 2, 3, 4, 5, 6, 0, 0])?;
/// let mask = DenseTensor::from_bools([2, 2], [true, true, true, false])?;
/// let batch = RaggedBatch::try_new(&padded, Some(&mask), None, None)?;
/// assert_eq!((batch.shape(), batch.total_num_entries()), (vec![2, 2, 2], 3));
/// assert_eq!(batch.values().to_string(), "int32[3, 2] [[1, 2], [3, 4], [5, 6]]");
/// assert_eq!(batch.tensor()?, &padded);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RaggedBatch {
    structure: Arc<Structure>,
    /// `[entries, data axes but the non-uniform one..]`.
    values: DenseTensor,
    non_uniform_dim: usize,
    /// One element of the type of the values; zero when `None`.
    filler: Option<DenseTensor>,
    tensor: OnceLock<DenseTensor>,
}

impl RaggedBatch {
    /// From its parts: entries of the structure, with the non-uniform axis at `non_uniform_dim` of
    /// the padded tensor.
    pub(super) fn from_parts(
        structure: Arc<Structure>,
        values: DenseTensor,
        non_uniform_dim: usize,
    ) -> Result<Self> {
        let entries = structure.offsets().children();
        if values.shape().first() != Some(&entries) {
            return Err(Error::invalid(format!(
                "values of shape {:?} for {entries} entries",
                values.shape()
            )));
        }
        let batch = structure.batch_shape().len();
        check_dim(non_uniform_dim, batch, batch + values.ndim())?;
        Ok(Self { structure, values, non_uniform_dim, filler: None, tensor: OnceLock::new() })
    }

    /// The same batch with another filler, a tensor of one element.
    pub(super) fn with_filler(mut self, filler: Option<DenseTensor>) -> Self {
        let zero = |f: &DenseTensor| f.as_bytes().iter().all(|b| *b == 0);
        self.filler = filler.filter(|f| !zero(f));
        self.tensor = OnceLock::new();
        self
    }

    /// Other values for the same samples; the filler stays when it is of their type.
    pub(super) fn with_values(&self, values: DenseTensor, non_uniform_dim: usize) -> Result<Self> {
        let filler = self.filler.clone().filter(|f| f.dtype() == values.dtype());
        let structure = Arc::clone(&self.structure);
        Ok(Self::from_parts(structure, values, non_uniform_dim)?.with_filler(filler))
    }

    /// The same samples under another structure.
    pub(super) fn with_structure(
        &self,
        structure: Structure,
        values: DenseTensor,
        non_uniform_dim: usize,
    ) -> Result<Self> {
        let made = Self::from_parts(Arc::new(structure), values, non_uniform_dim)?;
        Ok(made.with_filler(self.filler.clone()))
    }

    pub(super) fn structure(&self) -> &Arc<Structure> {
        &self.structure
    }

    pub(super) fn filler(&self) -> Option<&DenseTensor> {
        self.filler.as_ref()
    }

    /// The entries of all samples: `[entries, data axes but the non-uniform one..]`. No padding.
    pub fn values(&self) -> &DenseTensor {
        &self.values
    }

    /// Where samples begin and end in the [`values`](Self::values): one list per sample, row-major
    /// over the batch axes, counted from zero.
    pub fn offsets(&self) -> &Offsets {
        self.structure.offsets()
    }

    /// The padded tensor: `[batch axes.., data axes..]`, [`max_sample_size`](Self::max_sample_size)
    /// long along the non-uniform axis. Made in one pass when first asked for, and kept.
    ///
    /// # Errors
    /// When it needs more than [`DenseOptions::DEFAULT_LIMIT`] bytes; [`padded`](Self::padded) takes
    /// another limit.
    pub fn tensor(&self) -> Result<&DenseTensor> {
        once(&self.tensor, || self.padded(&DenseOptions::default()))
    }

    /// As [`tensor`](Self::tensor), made anew, with a limit of bytes and threads as options say; they
    /// may name another filler, too. Nothing is kept.
    ///
    /// # Errors
    /// More bytes than the limit; a filler that is no value of the type; padding on the left, or
    /// another type, which this does not do.
    pub fn padded(&self, options: &DenseOptions) -> Result<DenseTensor> {
        pad(self, options)
    }

    /// Which places of the non-uniform axis are entries and not filler: a `Bool` tensor of shape
    /// `[batch axes.., max_sample_size]`. Made when first asked for, and shared by all batches that
    /// were made from one another without a change of sample sizes.
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor).
    pub fn mask(&self) -> Result<&DenseTensor> {
        self.structure.mask()
    }

    /// Entries of every sample: integers of shape `[batch axes..]`, of the type in which they were
    /// given, else int64.
    ///
    /// # Errors
    /// When a size does not fit the type.
    pub fn sample_sizes(&self) -> Result<&DenseTensor> {
        self.structure.sample_sizes()
    }

    /// The axis of the tensor along which samples differ in size.
    pub fn non_uniform_dim(&self) -> usize {
        self.non_uniform_dim
    }

    /// Number of batch axes, one or more.
    pub fn num_batch_dims(&self) -> usize {
        self.structure.batch_shape().len()
    }

    /// Size of every batch axis.
    pub fn batch_shape(&self) -> &[usize] {
        self.structure.batch_shape()
    }

    /// Size of every data axis but the non-uniform one: the shape of an entry.
    pub fn entry_shape(&self) -> &[usize] {
        &self.values.shape()[1..]
    }

    /// Number of samples, over all batch axes.
    pub fn total_num_samples_in_batch(&self) -> usize {
        self.offsets().lists()
    }

    /// Number of entries of all samples.
    pub fn total_num_entries(&self) -> usize {
        self.offsets().children()
    }

    /// Size of the non-uniform axis of the padded tensor. Every sample fits; there may be none as
    /// large.
    pub fn max_sample_size(&self) -> usize {
        self.structure.width()
    }

    /// Shape of the padded tensor, which is not made for it.
    pub fn shape(&self) -> Vec<usize> {
        let mut shape = self.batch_shape().to_vec();
        shape.extend_from_slice(self.entry_shape());
        shape.insert(self.non_uniform_dim, self.max_sample_size());
        shape
    }

    /// Size of one axis of the padded tensor; negatives count from the last.
    ///
    /// # Errors
    /// When there is no such axis.
    pub fn size(&self, dim: i64) -> Result<usize> {
        let shape = self.shape();
        let axis = crate::index::resolve(dim, shape.len());
        axis.map(|a| shape[a]).ok_or_else(|| Error::NoSuchAxis {
            what: "the batch".into(),
            axis: dim,
            ndim: shape.len(),
        })
    }

    /// Number of axes of the padded tensor.
    pub fn dim(&self) -> usize {
        self.batch_shape().len() + self.values.ndim()
    }

    /// Type of the elements.
    pub fn dtype(&self) -> DType {
        self.values.dtype()
    }

    /// Bytes of the entries, without padding and offsets.
    pub fn nbytes(&self) -> usize {
        self.values.nbytes()
    }

    /// A batch with values of its own; sample sizes and mask are shared.
    pub fn as_self_with_cloned_data(&self) -> Result<Self> {
        let copy = arrow::buffer::Buffer::from_slice_ref(self.values.as_bytes());
        let shape = self.values.shape().to_vec();
        let values = DenseTensor::try_new_trusted(self.dtype(), shape, copy)?;
        self.with_values(values, self.non_uniform_dim)
    }

    /// The values, to be written to and put back; none are left.
    pub(super) fn take_values(&mut self) -> DenseTensor {
        self.tensor = OnceLock::new();
        let none = DenseTensor::none(self.values.dtype());
        std::mem::replace(&mut self.values, none)
    }

    /// Number of data axes before and elements after the non-uniform one: an entry is
    /// `[before.., after..]`.
    pub(super) fn around(&self) -> (&[usize], &[usize]) {
        self.entry_shape().split_at(self.non_uniform_dim - self.num_batch_dims())
    }
}

/// The same samples: batch axes, sizes, width, non-uniform axis, type and values (NaN differs from
/// NaN). Filler and the type of the sample sizes do not matter.
impl PartialEq for RaggedBatch {
    fn eq(&self, other: &Self) -> bool {
        self.batch_shape() == other.batch_shape()
            && self.non_uniform_dim == other.non_uniform_dim
            && self.max_sample_size() == other.max_sample_size()
            && self.offsets() == other.offsets()
            && self.values == other.values
    }
}

/// Refuses a non-uniform axis among the batch axes or after the last.
pub(super) fn check_dim(dim: usize, batch_dims: usize, ndim: usize) -> Result<()> {
    if (batch_dims..ndim).contains(&dim) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the non-uniform axis is one of the axes {batch_dims}..{ndim}, after the batch axes, not {dim}"
    )))
}
