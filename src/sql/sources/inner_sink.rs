//! Finds the sink in the plan of one of DataFusion's writers. Serrate's sinks convert rows and pass
//! them to this sink.

use std::sync::Arc;

use datafusion::common::internal_err;
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;

pub(in crate::sql) fn find_sink(plan: &Arc<dyn ExecutionPlan>) -> Result<&dyn DataSink> {
    match plan.downcast_ref::<DataSinkExec>() {
        Some(plan) => Ok(plan.sink()),
        None => internal_err!(
            "internal error: {} has no sink, so it cannot be written; please report it",
            plan.name()
        ),
    }
}
