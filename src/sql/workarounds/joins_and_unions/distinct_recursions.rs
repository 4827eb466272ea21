use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;

use crate::sql::exec::new_rows::{NewRowsExec, SeenRows};

/// Physical optimizer rule: drops repeated rows of WITH RECURSIVE .. UNION with [`NewRowsExec`].
///
/// DataFusion 55 keeps a row if its group has a higher number than all groups before it, but its
/// hash table numbers groups out of order if two keys have the same hash, as NULL and an empty list
/// do. So `VALUES (NULL), ([]), ([3])` loses `[3]`. DataFusion also keeps both of two NaN of
/// different signs, and both of two intervals of the same length in different units (1 month and 30
/// days). This workaround is obsolete once the test `stock_recursive_unions_still_lose_rows` fails.
pub(in crate::sql) fn drop_repeated_rows(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let Some(query) = node.downcast_ref::<RecursiveQueryExec>() else {
            return Ok(Transformed::no(node));
        };
        if !query.is_distinct() {
            return Ok(Transformed::no(node));
        }
        let seen = Arc::new(SeenRows::default());
        let [first, next] =
            [(query.static_term(), true), (query.recursive_term(), false)].map(|(term, starts)| {
                let (term, seen) = (Arc::clone(term), Arc::clone(&seen));
                Arc::new(NewRowsExec::new(term, seen, starts)) as Arc<dyn ExecutionPlan>
            });
        let name = query.name().to_owned();
        let query = RecursiveQueryExec::try_new(name, query.schema(), first, next, false)?;
        Ok(Transformed::yes(Arc::new(query) as _))
    })?;
    Ok(plan.data)
}
