use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;

use crate::sql::base::boxed_methods::boxed_method;

/// Wraps a planner. If planning fails, plans the query again without the statistics of files.
///
/// DataFusion 55 fails to estimate the rows of some conditions from the minimum and maximum of
/// their columns: `d - DATE '2024-01-01' > 3`, and `t::DATE > DATE '2023-12-31'` if `t` has values
/// from the last microsecond of that day to the next year. This workaround is obsolete once the
/// test `stock_estimates_of_conditions_still_fail` fails.
#[derive(Debug)]
pub(in crate::sql) struct StatisticsPlanner {
    pub(in crate::sql) inner: Arc<dyn QueryPlanner + Send + Sync>,
}

impl QueryPlanner for StatisticsPlanner {
    boxed_method!(StatisticsPlanner: create_physical_plan = plan_with_statistics);
}

impl StatisticsPlanner {
    async fn plan_with_statistics(
        &self,
        logical_plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planned = self.inner.create_physical_plan(logical_plan, session).await;
        let state = session.as_any().downcast_ref::<SessionState>();
        match (planned, state) {
            (Err(e), Some(state)) if state.config().collect_statistics() => {
                let mut state = state.clone();
                state.config_mut().options_mut().execution.collect_statistics = false;
                // If both attempts fail, returns the error of the first attempt.
                self.inner.create_physical_plan(logical_plan, &state).await.map_err(|_| e)
            }
            (planned, _) => planned,
        }
    }
}
