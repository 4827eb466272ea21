//! How large the batches of a plan may be so that its sorts and aggregates can merge spilled rows.
//!
//! A merge of spilled rows reserves memory for two batches of each file, each twice: as a batch and
//! as sort keys. If the batches are large compared with the share of a sort or an aggregate, a
//! merge reads only two or three files, and the rows are written and read once for each level of
//! merges. If not even two batches fit, the merge fails.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::array::list_depth;
use crate::memory::memory_limit;

/// Number of spilled files that one merge should be able to read.
const MERGED_FILES: usize = 16;

/// Number of batches per file for which a merge reserves memory.
const RESERVED_BATCHES: usize = 4;

/// Minimum number of rows per batch. With fewer rows, the time per batch exceeds the time that
/// larger merges save.
const FEWEST_ROWS: usize = 256;

/// Minimum number of leaves (innermost list elements) per batch.
const FEWEST_LEAVES: usize = 4096;

/// Assumed number of bytes of a string.
const TEXT_BYTES: usize = 32;

/// Assumed number of bytes of a leaf (innermost list element).
const LEAF_BYTES: usize = 8;

/// Maximum size of the batches of a plan that may spill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpillBatches {
    pub(super) rows: usize,
    pub(super) leaves: usize,
}

impl SpillBatches {
    /// Returns the maximum size of the batches of `plan`, or `None` if nothing in it spills or the
    /// memory is not limited.
    pub(super) fn find_shares(plan: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        let (mut operators, mut row_bytes) = (0usize, 0usize);
        measure_operators(plan, &mut operators, &mut row_bytes);
        match memory_limit() {
            usize::MAX => None,
            limit => Self::divide_limit(limit, operators, row_bytes),
        }
    }

    fn divide_limit(limit: usize, operators: usize, row_bytes: usize) -> Option<Self> {
        let bytes = limit.checked_div(operators)? / (MERGED_FILES * RESERVED_BATCHES);
        Some(Self {
            rows: (bytes / row_bytes.max(1)).max(FEWEST_ROWS),
            leaves: (bytes / LEAF_BYTES).max(FEWEST_LEAVES),
        })
    }
}

/// Adds the number of sorts and aggregates of `plan`, each once per partition, to `operators`.
/// Raises `row_bytes` to the number of bytes of their largest rows, without lists.
fn measure_operators(plan: &Arc<dyn ExecutionPlan>, operators: &mut usize, row_bytes: &mut usize) {
    if is_spilling(plan) {
        *operators += plan.output_partitioning().partition_count();
        *row_bytes = (*row_bytes).max(estimate_row_bytes(&plan.schema()));
    }
    for child in plan.children() {
        measure_operators(child, operators, row_bytes);
    }
}

/// Whether a node writes rows to temporary files if the memory does not suffice.
pub(super) fn is_spilling(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let sort = plan.downcast_ref::<SortExec>();
    let aggregate = plan.downcast_ref::<AggregateExec>();
    sort.is_some_and(|sort| sort.fetch().is_none())
        || aggregate.is_some_and(|aggregate| !aggregate.group_expr().is_true_no_grouping())
}

fn estimate_row_bytes(schema: &Schema) -> usize {
    let count_bytes = |data_type: &DataType| match data_type {
        list if list_depth(list) > 0 => 0,
        other => other.primitive_width().unwrap_or(TEXT_BYTES),
    };
    schema.fields().iter().map(|field| count_bytes(field.data_type())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_small_only_if_shares_are() {
        let divide = |limit: usize, operators, row_bytes| {
            SpillBatches::divide_limit(limit, operators, row_bytes)
        };
        assert_eq!(divide(1 << 30, 0, 40), None);
        let large = divide(8 << 30, 12, 100).unwrap();
        assert!(large.rows > 100_000 && large.leaves > 1_000_000, "{large:?}");
        let small = divide(96 << 20, 12, 64).unwrap();
        assert_eq!(small, SpillBatches { rows: 2048, leaves: 16_384 });
        let least = divide(1 << 20, 12, 100).unwrap();
        assert_eq!(least, SpillBatches { rows: FEWEST_ROWS, leaves: FEWEST_LEAVES });
    }
}
