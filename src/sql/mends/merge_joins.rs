use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::SortMergeJoinExec;
use datafusion::physical_plan::joins::utils::JoinFilter;

/// Physical optimizer rule: declares the columns in the condition of a sort-merge join nullable.
///
/// If `datafusion.optimizer.prefer_hash_join` is off, an outer join also evaluates its condition for rows
/// without a match, with NULL in the columns of the other side. The statement fails if the tables declare
/// those columns non-nullable. Obsolete once the test `stock_merge_joins_still_fail` fails.
#[derive(Debug, Default)]
pub(in crate::sql) struct MergeJoinFilters;

impl PhysicalOptimizerRule for MergeJoinFilters {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan.transform_up(|node| {
            let Some(join) = node.downcast_ref::<SortMergeJoinExec>() else {
                return Ok(Transformed::no(node));
            };
            let Some(filter) = join.filter() else { return Ok(Transformed::no(node)) };
            let fields = filter.schema().fields().iter();
            let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
            let schema = Schema::new(fields.collect::<Vec<_>>());
            let filter = JoinFilter::new(
                Arc::clone(filter.expression()),
                filter.column_indices().to_vec(),
                Arc::new(schema),
            );
            let join = SortMergeJoinExec::try_new(
                Arc::clone(join.left()),
                Arc::clone(join.right()),
                join.on().to_vec(),
                Some(filter),
                join.join_type(),
                join.sort_options().to_vec(),
                join.null_equality(),
            )?;
            Ok(Transformed::yes(Arc::new(join) as Arc<dyn ExecutionPlan>))
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "serrate_merge_join_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
