use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, GenericByteViewArray, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::{BinaryViewType, ByteViewType, DataType, SchemaRef, StringViewType};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::{TryStreamExt, stream};

use crate::sql::exec::cut_rows::cut_batch;
use crate::sql::exec::{display_name, pass_through, same_statistics};

/// A column of strings whose buffers have at most this number of bytes is not copied, because a
/// copy would save little.
const MAX_KEPT_BYTES: usize = 64 << 10;

/// Physical optimizer rule: below a sort, copies strings that are much shorter than their buffers.
///
/// Without this rule, a sort of strings of Parquet files, or of rows from other sorts, spills too
/// early or fails at the memory limit. Filters and merges of sorted rows do not copy strings: each
/// of their batches refers to the buffers of many input batches. The sort above reserves memory for
/// all these buffers again with each batch. This workaround is obsolete once the test
/// `stock_sorts_still_count_shared_buffers` fails.
pub(in crate::sql) fn compact_texts(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let Some(sort) = node.downcast_ref::<SortExec>() else {
            return Ok(Transformed::no(node));
        };
        if sort.fetch().is_some() || !has_views(&sort.input().schema()) {
            return Ok(Transformed::no(node));
        }
        let input: Arc<dyn ExecutionPlan> =
            Arc::new(CompactTextsExec::new(Arc::clone(sort.input())));
        let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
        Ok(Transformed::yes(node.replace_children(vec![input], keep)?))
    })?;
    Ok(plan.data)
}

fn has_views(schema: &SchemaRef) -> bool {
    let is_view =
        |data_type: &DataType| matches!(data_type, DataType::Utf8View | DataType::BinaryView);
    schema.fields().iter().any(|field| is_view(field.data_type()))
}

/// Returns the rows of its input in batches of at most the batch size of the session. Copies a
/// column of strings if the strings take less than half of the buffers to which the column refers.
#[derive(Debug)]
pub(in crate::sql) struct CompactTextsExec {
    input: Arc<dyn ExecutionPlan>,
}

impl CompactTextsExec {
    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        Self { input }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input)
    }

    #[cfg(feature = "cluster")]
    pub(in crate::sql) fn get_input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }
}

display_name!(CompactTextsExec);

impl ExecutionPlan for CompactTextsExec {
    pass_through!("CompactTextsExec", input);

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, Arc::clone(&context))?;
        let size = context.session_config().batch_size();
        let compact = rows
            .map_ok(move |batch| stream::iter(cut_batch(batch, size).map(compact_batch)))
            .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.input.schema(), compact)))
    }

    same_statistics!();
}

fn compact_batch(batch: RecordBatch) -> Result<RecordBatch> {
    let mut columns = batch.columns().to_vec();
    let mut is_changed = false;
    for column in &mut columns {
        let compact = match column.data_type() {
            DataType::Utf8View => compact_column(column.as_byte_view::<StringViewType>()),
            DataType::BinaryView => compact_column(column.as_byte_view::<BinaryViewType>()),
            _ => None,
        };
        if let Some(compact) = compact {
            *column = compact;
            is_changed = true;
        }
    }
    match is_changed {
        true => Ok(RecordBatch::try_new(batch.schema(), columns)?),
        false => Ok(batch),
    }
}

fn compact_column<T: ByteViewType>(strings: &GenericByteViewArray<T>) -> Option<ArrayRef> {
    let held: usize = strings.data_buffers().iter().map(Buffer::capacity).sum();
    let is_wasteful = held > MAX_KEPT_BYTES && held / 2 > strings.total_buffer_bytes_used();
    is_wasteful.then(|| Arc::new(strings.gc()) as ArrayRef)
}

#[cfg(test)]
mod tests {
    use arrow::array::StringViewArray;

    use super::*;

    #[test]
    fn only_strings_in_much_larger_buffers_are_copied() {
        let strings: StringViewArray =
            (0..1000).map(|i| (i % 7 > 0).then(|| format!("{i:0500}"))).collect();
        let strings = strings.gc();
        assert!(compact_column(&strings).is_none());
        let batch = RecordBatch::try_from_iter([("s", Arc::new(strings) as ArrayRef)]).unwrap();
        let part = batch.slice(500, 20);
        let compact = compact_batch(part.clone()).unwrap();
        assert_eq!(compact, part);
        assert!(compact.get_array_memory_size() < 20_000 && part.get_array_memory_size() > 400_000);
    }

    #[test]
    fn strings_of_a_part_of_a_batch_are_counted_once() {
        let strings: StringViewArray = (0..1000).map(|i| Some(format!("{i:0500}"))).collect();
        let batch = RecordBatch::try_from_iter([("s", Arc::new(strings) as ArrayRef)]).unwrap();
        let parts = cut_batch(batch.clone(), 300).map(|part| compact_batch(part).unwrap());
        let size: usize = parts.map(|part| part.get_array_memory_size()).sum();
        assert!(size < 2 * batch.get_array_memory_size(), "{size}");
    }
}
