//! Combination of samples into one batch.

use std::sync::Arc;

use arrow::buffer::MutableBuffer;

use super::RaggedBatch;
use super::structure::{SampleStructure, check_bytes};
use crate::array::Offsets;
use crate::dense::{DType, DenseOptions, DenseTensor};
use crate::error::{Error, Result};

/// Samples in nested lists of any depth.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::NestedSamples;
/// use serrate::dense::DenseTensor;
/// let t = |n: usize| DenseTensor::from_vec([n], vec![1i64; n]);
/// let nested: NestedSamples = vec![vec![t(1)?, t(2)?], vec![t(0)?]].into();
/// assert_eq!(nested.tensors().count(), 3);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum NestedSamples {
    /// One sample.
    Tensor(DenseTensor),
    /// A list of samples, or a list of lists.
    List(Vec<NestedSamples>),
}

impl From<DenseTensor> for NestedSamples {
    fn from(tensor: DenseTensor) -> Self {
        Self::Tensor(tensor)
    }
}

impl<T: Into<NestedSamples>> From<Vec<T>> for NestedSamples {
    fn from(list: Vec<T>) -> Self {
        Self::List(list.into_iter().map(Into::into).collect())
    }
}

impl NestedSamples {
    /// Iterates over all samples, depth first: `[[a, b], [c]]` gives `a`, `b`, `c`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::batching::NestedSamples;
    /// use serrate::dense::DenseTensor;
    /// let t = |n: usize| DenseTensor::from_vec([n], vec![1i64; n]);
    /// let nested: NestedSamples = vec![vec![t(3)?, t(0)?], vec![t(1)?]].into();
    /// let sizes: Vec<usize> = nested.tensors().map(|t| t.shape()[0]).collect();
    /// assert_eq!(sizes, [3, 0, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn tensors(&self) -> Box<dyn Iterator<Item = &DenseTensor> + '_> {
        match self {
            Self::Tensor(tensor) => Box::new(std::iter::once(tensor)),
            Self::List(list) => Box::new(list.iter().flat_map(Self::tensors)),
        }
    }

    /// Returns the length of the lists of each level: `[[a, b, c], [d, e, f]]` gives `[2, 3]`.
    /// Returns an error if lists of a level differ in length.
    fn shape(&self) -> Result<Vec<usize>> {
        fn stack_level(
            samples: &NestedSamples,
            depth: usize,
            shape: &mut Vec<usize>,
            leaf: bool,
        ) -> Result<()> {
            let found = |what: String| {
                Err(Error::invalid(format!(
                    "level {depth} of data_list (level 0 is the outermost list) has {what}, but must have only samples or only lists of the same length; set flatten_batch_dims to combine the samples anyway"
                )))
            };
            match samples {
                NestedSamples::Tensor(_) if depth == shape.len() => Ok(()),
                NestedSamples::Tensor(_) => found("a sample next to lists".into()),
                NestedSamples::List(list) => {
                    match shape.get(depth) {
                        None if leaf => return found("a list next to samples".into()),
                        None => shape.push(list.len()),
                        Some(n) if *n == list.len() => {}
                        Some(n) => return found(format!("lists of length {n} and {}", list.len())),
                    }
                    Ok(())
                }
            }
        }
        let mut shape = Vec::new();
        let mut current = vec![self];
        let mut depth = 0;
        while !current.is_empty() {
            // A level whose first element is a sample is the innermost level, so all elements of
            // this level must be samples.
            let leaf = matches!(current[0], Self::Tensor(_));
            for samples in &current {
                stack_level(samples, depth, &mut shape, leaf)?;
            }
            let below = current.iter().flat_map(|s| match s {
                Self::List(list) => list.as_slice(),
                Self::Tensor(_) => &[],
            });
            current = below.collect();
            depth += 1;
        }
        Ok(shape)
    }
}

/// Combines samples `[size, ..]`, which may differ only in their first axis, into one batch.
///
/// The first axis of the samples becomes the non-uniform axis of the batch, right after the batch
/// axes.
///
/// If `flatten_batch_dims` is set, samples are collected depth first from lists of any nesting, and
/// the batch has one batch axis. Otherwise each nesting level is a batch axis, and all lists of a
/// level must have the same length. All samples are converted to the type of the first sample, or,
/// if flattened, of the first sample with elements. A sample without elements has no entries; its
/// other axes are ignored. The result shares the sizes of `other_with_same_sample_sizes`, if given.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::batching::combine_data;
/// use serrate::dense::DenseTensor;
/// let samples = vec![
///     DenseTensor::from_vec([2], vec![1, 2])?,
///     DenseTensor::from_vec([0], Vec::<i32>::new())?,
///     DenseTensor::from_vec([1], vec![3])?,
/// ];
/// let batch = combine_data(&samples.into(), None, true)?;
/// assert_eq!(batch.tensor()?.to_string(), "int32[3, 2] [[1, 2], [0, 0], [3, 0]]");
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If there are no samples; if a sample has no axes, or samples differ in axes other than the
/// first; if lists differ in length or depth, unless flattened; if sample sizes differ from those
/// of `other_with_same_sample_sizes` (the message names the sample); if values do not fit the type.
pub fn combine_data(
    data_list: &NestedSamples,
    other_with_same_sample_sizes: Option<&RaggedBatch>,
    flatten_batch_dims: bool,
) -> Result<RaggedBatch> {
    let tensors: Vec<&DenseTensor> = data_list.tensors().collect();
    let (NestedSamples::List(_), Some(first)) = (data_list, tensors.first()) else {
        let found = match data_list {
            NestedSamples::Tensor(_) => "a single tensor",
            NestedSamples::List(_) => "a list without tensors",
        };
        return Err(Error::invalid(format!(
            "data_list is {found}; give a list of at least one tensor, one per sample"
        )));
    };
    let filled = tensors.iter().find(|t| t.num_elements() > 0);
    let dtype = if flatten_batch_dims { filled.unwrap_or(first).dtype() } else { first.dtype() };
    let entry_shape = filled.unwrap_or(first).shape().get(1..).unwrap_or_default().to_vec();
    let batch_shape = if flatten_batch_dims { vec![tensors.len()] } else { data_list.shape()? };
    let mut lengths = Vec::with_capacity(tensors.len());
    for (i, tensor) in tensors.iter().enumerate() {
        match tensor.shape() {
            [] => {
                return Err(Error::invalid(format!(
                    "sample {i} is a tensor without axes; give a tensor whose first axis has one element per entry"
                )));
            }
            [size, rest @ ..] if rest == entry_shape => lengths.push(*size),
            _ if tensor.num_elements() == 0 => lengths.push(0),
            shape => {
                return Err(Error::invalid(format!(
                    "sample {i} has the shape {shape:?}, but all axes after its first must have the sizes {entry_shape:?}, as in the other samples; reshape the sample"
                )));
            }
        }
    }
    let offsets = Offsets::from_lengths(lengths)?;
    let structure = match other_with_same_sample_sizes {
        None => Arc::new(SampleStructure::try_new(batch_shape, offsets, None, DType::I64)?),
        Some(other) => {
            let own = SampleStructure::try_new(batch_shape, offsets, None, DType::I64)?;
            own.check_same_sizes(other.structure(), "data_list and other_with_same_sample_sizes")?;
            Arc::clone(other.structure())
        }
    };
    let mut shape = vec![structure.offsets().children()];
    shape.extend_from_slice(&entry_shape);
    let options = DenseOptions { limit: None, ..Default::default() };
    let bytes = check_bytes(&shape, dtype, &options, "combined samples")?;
    let mut out = MutableBuffer::with_capacity(bytes);
    for tensor in tensors.iter().filter(|t| t.num_elements() > 0) {
        out.extend_from_slice(tensor.cast(dtype)?.as_bytes());
    }
    let values = DenseTensor::try_new_trusted(dtype, shape, out.into())?;
    let dim = structure.batch_shape().len();
    RaggedBatch::from_parts(structure, values, dim)
}
