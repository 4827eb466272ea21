//! The sink of a plan of DataFusion's writers, to which our sinks pass converted rows.

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
