//! Batches of samples of different sizes, and operations on all samples of a batch at once.
//!
//! * [`RaggedBatch`]: data with one non-uniform axis (along which samples differ in size), one or
//!   more batch axes before it, and any data axes, stored without padding. The padded
//!   [`tensor`](RaggedBatch::tensor), the [`mask`](RaggedBatch::mask) and
//!   [`sample_sizes`](RaggedBatch::sample_sizes) are cached.
//! * [`AnyBatch`]: a dense tensor or a ragged batch; most operations accept either.
//! * Access by index: [`batched_indexing_access`], [`batched_inverse_indexing_access`],
//!   [`batched_indexing_write`], [`batched_index_mapping`]; by mask: [`batched_bool_indexing`],
//!   [`batched_bool_indexing_write`], [`apply_mask_to_tensor`], [`get_compact_lists`],
//!   [`get_compact_from_named_tuple`]; conversion between indices and masks:
//!   [`get_indices_from_mask`], [`get_mask_from_indices`].
//! * [`combine_data`] combines samples into a batch; [`sum_over_targets`] and
//!   [`average_over_targets`] reduce; [`squeeze_except_batch_and_sample`] drops axes of size 1.
//!
//! Tensors have no nulls. A sample may have no entries, and a batch no samples; operations that
//! change, repeat or reorder axes keep the entries of each sample, so a sample without entries
//! stays without entries.
//!
//! The names are those of the Python package `accvlab.batching_helpers`, whose batches are padded;
//! the batches here store no padding. Devices, gradients and complex numbers are not supported.
//!
//! ```
//! # use serrate_core as serrate;
//! use serrate::batching::{RaggedBatch, batched_indexing_access, IndexOptions};
//! use serrate::dense::DenseTensor;
//!
//! // two samples of 2 and 1 scores, padded to 3
//! let padded = DenseTensor::from_vec([2, 3], vec![0.5f32, 0.25, 9.0, 0.75, 9.0, 9.0])?;
//! let sizes = DenseTensor::from_vec([2], vec![2i64, 1])?;
//! let scores = RaggedBatch::try_new(&padded, None, Some(&sizes), None)?;
//! assert_eq!(scores.values().to_string(), "float32[3] [0.5, 0.25, 0.75]");
//!
//! let order = RaggedBatch::from_packed(
//!     DenseTensor::from_vec([3], vec![1i64, 0, 0])?,
//!     &DenseTensor::from_vec([3], vec![0i32, 2, 3])?,
//! )?;
//! let sorted = batched_indexing_access(&scores, &order, 0.0, None, &IndexOptions::default())?;
//! assert_eq!(sorted.tensor()?.to_string(), "float32[2, 2] [[0.25, 0.5], [0.75, 0.0]]");
//! # Ok::<(), serrate::Error>(())
//! ```

mod any;
mod apply;
mod batch_access;
mod combine;
mod construct;
mod convert;
mod entry_copies;
mod gather;
mod indexing;
mod masking;
mod masks;
mod pad;
mod ragged_batch;
mod reduce;
mod reshape;
mod structure;

pub use crate::kernels::scatter::DuplicateWrites;
pub use any::AnyBatch;
pub use apply::ApplyOutput;
pub use combine::{NestedSamples, combine_data};
pub use convert::PackedBatch;
pub use indexing::{
    BeyondSample, IndexOptions, batched_index_mapping, batched_indexing_access,
    batched_indexing_write, batched_inverse_indexing_access,
};
pub use masking::{
    BatchField, CompactField, CompactFields, apply_mask_to_tensor, batched_bool_indexing,
    batched_bool_indexing_write, get_compact_from_named_tuple, get_compact_lists,
};
pub use masks::{get_indices_from_mask, get_mask_from_indices};
pub use ragged_batch::RaggedBatch;
pub use reduce::{NonFiniteMeans, average_over_targets, sum_over_targets};
pub use reshape::{SampleRepeats, squeeze_except_batch_and_sample};
