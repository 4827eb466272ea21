//! Builds a batch: copies values from the shards to its tensors.

use std::sync::Arc;

use arrow::buffer::Buffer;
use rayon::prelude::*;

use super::batch::Batch;
use super::batch_draft::BatchDraft;
use super::epoch_plan::EpochPlan;
use super::item_values::WorkBuffers;
use super::padded_grid::PaddedGrid;
use super::slot_writes::{
    FiniteCopier, NumberFlags, ValueCopier, WriteOnes, write_finite, write_is_number,
};
use super::state::LoaderState;
use super::tensor_output::{TensorContent, TensorOutput};
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};

impl EpochPlan {
    /// Builds a batch; if `together` is set, all threads of the current pool build it. Returns an
    /// error if the batch is too large (see [`draft_batch`](Self::draft_batch)) or a tensor cannot
    /// be built.
    pub(super) fn make_batch(&self, batch: usize, together: bool) -> Result<Batch> {
        let inner = &self.inner;
        let draft = self.draft_batch(batch)?;
        let tensor = |output: &TensorOutput, work: &mut WorkBuffers| {
            let tensor = match &draft.select_lists(output.facts).grid {
                Some(grid) => output.make_padded(inner, &draft, grid, work, together),
                None => output.make_packed(inner, &draft, work),
            };
            let tensor = tensor.map_err(|e| match e {
                Error::Invalid(m) => {
                    Error::invalid(format!("batch {batch}, tensor {:?}: {m}", output.name))
                }
                e => e,
            });
            tensor.map(|tensor| (Arc::clone(&output.name), tensor))
        };
        let outputs = &inner.outputs;
        let tensors: Vec<_> = if together {
            let each = outputs.par_iter().with_max_len(1);
            each.map(|output| tensor(output, &mut WorkBuffers::default())).collect()
        } else {
            let mut work = WorkBuffers::default();
            outputs.iter().map(|output| tensor(output, &mut work)).collect()
        };
        // If several tensors fail, return the error of the first of them in the order of the
        // tensors.
        let tensors = tensors.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(Batch {
            number: batch,
            form: inner.options.form,
            items: draft.items,
            tensors,
            axes: draft.axes,
            occupied: draft.occupied,
        })
    }
}

impl TensorOutput {
    fn is_finite(&self, inner: &LoaderState) -> bool {
        matches!(self.what, TensorContent::Column(column) if self.select_source(inner).columns[column].finite)
            || self.what == TensorContent::Spread
    }

    fn make_padded(
        &self,
        inner: &LoaderState,
        draft: &BatchDraft,
        grid: &Arc<PaddedGrid>,
        work: &mut WorkBuffers,
        together: bool,
    ) -> Result<DenseTensor> {
        let shape = grid.shape(self.axis).to_vec();
        // `draft_batch` checked the size of the batch, so the byte counts of its tensors do not
        // overflow.
        let slots = grid.view_slots(self.axis, self.size());
        let largest = match self.facts {
            true => slots.bytes().saturating_mul(2),
            false => {
                let largest = &inner.largest_shape[..=self.axis];
                largest.iter().fold(self.size(), |n, d| n.saturating_mul(*d))
            }
        };
        if self.what == TensorContent::Leading {
            let row = shape.get(1).copied().unwrap_or(0);
            let mut bytes = vec![0u8; slots.bytes()];
            for (item, out) in bytes.chunks_exact_mut(row.max(1)).enumerate() {
                let before = draft.select_frame(self.facts).count_facts_before(1, item);
                out[..before.min(row)].fill(1);
            }
            return DenseTensor::try_new_trusted(self.dtype, shape, Buffer::from_vec(bytes));
        }
        let mut memory = self.shelf.take_block(slots.bytes(), largest)?;
        let out = memory.clear_for_grid(grid, together);
        if self.what == TensorContent::Mask {
            slots.write_all(out, &mut WriteOnes);
            return DenseTensor::try_new_trusted(self.dtype, shape, memory.into_buffer(Some(grid)));
        }
        let is_finite = self.is_finite(inner);
        let rows = out.chunks_exact_mut(slots.item_bytes().max(1)).enumerate();
        for (item, out) in rows.take(draft.items.len()) {
            let first = draft.select_frame(self.facts).locate_elements(self.axis, item).start;
            let values = self.values(inner, draft, item, work)?;
            match (self.what, self.size()) {
                (TensorContent::Number(_), _) => {
                    slots.write_item(item, out, &mut NumberFlags { values, first })
                }
                (_, 4) if is_finite => {
                    slots.write_item(item, out, &mut FiniteCopier { values, first })
                }
                (_, 1) => slots.write_item(item, out, &mut ValueCopier::<1> { values, first }),
                (_, 2) => slots.write_item(item, out, &mut ValueCopier::<2> { values, first }),
                (_, 4) => slots.write_item(item, out, &mut ValueCopier::<4> { values, first }),
                _ => slots.write_item(item, out, &mut ValueCopier::<8> { values, first }),
            }
        }
        DenseTensor::try_new_trusted(self.dtype, shape, memory.into_buffer(Some(grid)))
    }

    fn make_packed(
        &self,
        inner: &LoaderState,
        draft: &BatchDraft,
        work: &mut WorkBuffers,
    ) -> Result<DenseTensor> {
        let frame = draft.select_frame(self.facts);
        let copied = |offsets: &[u32]| {
            // `BatchFrame` limits offsets to 31 bits, so the signed offsets are not negative.
            let signed = offsets.iter().map(|o| o.cast_signed()).collect::<Vec<_>>();
            DenseTensor::from_vec([signed.len()], signed)
        };
        match self.what {
            TensorContent::CuSeqlens => return copied(&frame.rows[self.axis]),
            TensorContent::Offsets => return copied(&frame.offsets[self.axis - 1]),
            _ => {}
        }
        let (n, size) = (frame.count_elements(self.axis), self.size());
        let mut memory = self.shelf.take_block(n * size, n * size + n * size / 4)?;
        let mut rest = memory.as_uninit_slice();
        let is_finite = self.is_finite(inner);
        for item in 0..draft.items.len() {
            let (out, after) =
                rest.split_at_mut(frame.locate_elements(self.axis, item).len() * size);
            rest = after;
            match self.what {
                TensorContent::PositionIds if self.dtype == DType::I32 => {
                    for (i, out) in (0i32..).zip(out.as_chunks_mut().0) {
                        *out = i.to_ne_bytes();
                    }
                }
                TensorContent::PositionIds => {
                    for (i, out) in (0i64..).zip(out.as_chunks_mut().0) {
                        *out = i.to_ne_bytes();
                    }
                }
                TensorContent::Number(_) => {
                    write_is_number(self.values(inner, draft, item, work)?, out)
                }
                _ if is_finite => write_finite(self.values(inner, draft, item, work)?, out),
                _ => out.copy_from_slice(self.values(inner, draft, item, work)?),
            }
        }
        DenseTensor::try_new_trusted(self.dtype, vec![n], memory.into_buffer(None))
    }
}
