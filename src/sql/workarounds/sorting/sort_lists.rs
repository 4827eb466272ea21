//! Makes ORDER BY with LIMIT return the right rows if a sort key is a list or struct.
//!
//! DataFusion's TopK orders rows by their encoded form, in which NULLS FIRST / LAST and ASC / DESC
//! place a NULL within a list or struct. But before it keeps a row of a later batch, it compares
//! the row with the lowest-ranked row so far, with NULL in lists as the least value, so results
//! depend on batches. This workaround is obsolete once `order_by_lists_does_not_depend_on_batches`
//! passes without this file.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;

/// `SELECT id FROM t ORDER BY x, id LIMIT 5` over lists with NULL elements depends on the batches
/// of `t` without this rule.
///
/// Physical optimizer rule: moves the limit of a sort by lists or structs into a node above the
/// sort.
pub(crate) fn split_list_sorts(
    plan: Arc<dyn ExecutionPlan>,
    _: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|plan| {
        let Some(sort) = plan.downcast_ref::<SortExec>() else {
            return Ok(Transformed::no(plan));
        };
        let schema = sort.input().schema();
        let mut nested = false;
        for by in sort.expr() {
            nested |= by.expr.data_type(&schema)?.is_nested();
        }
        match sort.fetch() {
            Some(fetch) if nested => {
                let whole = Arc::new(sort.with_fetch(None));
                Ok(Transformed::yes(Arc::new(LocalLimitExec::new(whole, fetch))))
            }
            _ => Ok(Transformed::no(plan)),
        }
    })
    .map(|found| found.data)
}
