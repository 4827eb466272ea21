//! Reads the values that one item (a window of a row) has in one tensor.

use super::batch_draft::BatchDraft;
use super::items::BatchItem;
use super::loader_source::{LoaderSource, RowScratch, SourceColumn, resize_buffer};
use super::state::LoaderState;
use super::tensor_output::{TensorContent, TensorOutput};
use crate::error::{Error, Result};

#[derive(Debug, Default)]
pub(super) struct WorkBuffers {
    pub(super) scratch: RowScratch,
    /// Buffer for the values of one item: first the values of the static facts that are prepended
    /// to the item, then the values of its elements.
    pub(super) combined: Vec<u8>,
}

impl TensorOutput {
    pub(super) fn select_source<'a>(&self, inner: &'a LoaderState) -> &'a LoaderSource {
        match (&inner.source.facts, self.facts) {
            (Some(facts), true) => &facts.source,
            _ => &inner.source,
        }
    }

    /// Returns the values of an item as bytes in the type of the tensor. For the boolean tensor
    /// [`TensorContent::Number`], returns float32 values instead, which the caller tests for NaN.
    /// Returns an error if a value does not fit the type of the tensor.
    pub(super) fn values<'a>(
        &self,
        inner: &'a LoaderState,
        draft: &BatchDraft,
        item: usize,
        work: &'a mut WorkBuffers,
    ) -> Result<&'a [u8]> {
        let (source, frame) = (self.select_source(inner), draft.select_frame(self.facts));
        let Some(source_item) = draft.items.get(item) else { return Ok(&[]) };
        let range = frame.find_shard_range(self.axis, item);
        let before = frame.count_facts_before(self.axis, item);
        let shard = &source.shards[source_item.shard];
        let misfit = || {
            Error::invalid(format!(
                "a value of tensor {:?} does not fit the type {} of the tensor; correct the value, or cast the column first",
                self.name, self.dtype
            ))
        };
        match self.what {
            TensorContent::Valid(column) => {
                Ok(shard.values[column].read_validity(range, &mut work.scratch))
            }
            TensorContent::Column(column) | TensorContent::Number(column) => {
                let (values, column) = (&shard.values[column], &source.columns[column]);
                if before == 0 {
                    let bytes = values.read_value_bytes(range, &column.null, &mut work.scratch);
                    return bytes.ok_or_else(misfit);
                }
                let size = column.dtype.size();
                let combined = resize_buffer(&mut work.combined, (before + range.len()) * size);
                let (first, rest) = combined.split_at_mut(before * size);
                copy_fact_values(inner, column, source_item, before, first, &mut work.scratch)
                    .ok_or_else(misfit)?;
                let bytes = values.read_value_bytes(range, &column.null, &mut work.scratch);
                rest.copy_from_slice(bytes.ok_or_else(misfit)?);
                Ok(combined)
            }
            TensorContent::Fact => {
                let combined = resize_buffer(&mut work.combined, before + range.len());
                combined[..before].fill(1);
                combined[before..].fill(0);
                Ok(combined)
            }
            TensorContent::Spread => {
                let combined = resize_buffer(&mut work.combined, (before + range.len()) * 4);
                let (first, rest) = combined.split_at_mut(before * 4);
                first.fill(0);
                if let (Some(line), Some(span)) = (&shard.timeline, draft.spans.get(item)) {
                    line.write_values(span, &range, rest);
                }
                Ok(combined)
            }
            TensorContent::FirstEvent | TensorContent::EndEvent | TensorContent::Windows => {
                let number = match self.what {
                    TensorContent::FirstEvent => draft.locate_events(item).start,
                    TensorContent::EndEvent => draft.locate_events(item).end,
                    _ => draft.windows.get(item).copied().unwrap_or(1),
                };
                let number = i64::try_from(number).unwrap_or(i64::MAX);
                let combined = resize_buffer(&mut work.combined, 8);
                combined.copy_from_slice(&number.to_ne_bytes());
                Ok(combined)
            }
            TensorContent::Target(target) => {
                let base = draft.bases.get(item).copied().unwrap_or(0);
                let values = &inner.targets[target].values;
                values
                    .read_value_bytes(base..base + 1, &[0; 8], &mut work.scratch)
                    .ok_or_else(misfit)
            }
            TensorContent::TargetValid(target) => {
                let base = draft.bases.get(item).copied().unwrap_or(0);
                Ok(inner.targets[target].values.read_validity(base..base + 1, &mut work.scratch))
            }
            TensorContent::Mask
            | TensorContent::Leading
            | TensorContent::CuSeqlens
            | TensorContent::Offsets
            | TensorContent::PositionIds => Ok(&[]),
        }
    }
}

/// Copies the values of the first `count` static facts of an item to `out`; zeros if `column` has
/// no values of facts. Returns `None` if a value does not fit the type of the column.
fn copy_fact_values(
    inner: &LoaderState,
    column: &SourceColumn,
    item: &BatchItem,
    count: usize,
    out: &mut [u8],
    scratch: &mut RowScratch,
) -> Option<()> {
    let (Some(facts), Some(fact)) = (&inner.source.facts, column.fact) else {
        out.fill(0);
        return Some(());
    };
    let shard = &facts.source.shards[item.shard];
    let start = shard.layouts[0].range(item.row).start;
    let null = &facts.source.columns[fact].null;
    let bytes = shard.values[fact].read_value_bytes(start..start + count, null, scratch)?;
    out.copy_from_slice(bytes);
    Some(())
}
