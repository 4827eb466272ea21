//! Checks the claim of hash partitioning: rows with equal keys are in one partition.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::UnKnownColumn;
use datafusion::physical_expr::{Partitioning, PhysicalExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use serrate::datafusion;

use super::{describe, values_of};

/// Returns whether a node is a partial aggregation with grouping sets. It claims the hash
/// partitions of its input although its keys may be NULL. That is harmless, because DataFusion
/// always repartitions its rows.
fn is_partial_grouping_set(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.downcast_ref::<AggregateExec>().is_some_and(|aggregate| {
        *aggregate.mode() == AggregateMode::Partial && aggregate.group_expr().has_grouping_set()
    })
}

/// The partition in which each key has occurred.
#[derive(Debug)]
pub struct Homes {
    node: String,
    keys: Vec<Arc<dyn PhysicalExpr>>,
    converter: RowConverter,
    seen: HashMap<OwnedRow, usize>,
}

impl Homes {
    /// Returns the check for a node, or `None` if the node does not claim hash partitioning or a
    /// key has a type that `RowConverter` does not support.
    pub fn of(node: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        let Partitioning::Hash(keys, 2..) = node.output_partitioning() else { return None };
        if keys.iter().any(|key| key.is::<UnKnownColumn>()) || is_partial_grouping_set(node) {
            return None;
        }
        let schema = node.schema();
        let fields = keys.iter().map(|key| key.data_type(&schema).ok().map(SortField::new));
        let converter = RowConverter::new(fields.collect::<Option<_>>()?).ok()?;
        Some(Self { node: describe(node), keys: keys.clone(), converter, seen: HashMap::new() })
    }

    pub fn check(&mut self, batch: &RecordBatch, partition: usize) -> Result<()> {
        let keys = self.keys.iter().map(|key| values_of(key, batch));
        let rows = self.converter.convert_columns(&keys.collect::<Result<Vec<_>>>()?)?;
        for row in &rows {
            let home = *self.seen.entry(row.owned()).or_insert(partition);
            if home != partition {
                return internal_err!(
                    "claims: {} has equal keys in partitions {home} and {partition}",
                    self.node
                );
            }
        }
        Ok(())
    }
}
