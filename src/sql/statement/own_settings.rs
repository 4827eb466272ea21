//! RESET of the settings `serrate.*`, which DataFusion does not find.

use datafusion::common::config::ExtensionOptions;
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlan, SetVariable, Statement};

use crate::config::SerrateOptions;

pub(super) fn reset_to_default(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Statement(Statement::ResetVariable(reset)) = &plan else { return Ok(plan) };
    let variable = reset.variable.to_ascii_lowercase();
    if !variable.starts_with("serrate.") {
        return Ok(plan);
    }
    let Some(entry) =
        SerrateOptions::default().entries().into_iter().find(|entry| entry.key == variable)
    else {
        return plan_err!("the setting {variable} is unknown; SHOW ALL lists the settings");
    };
    let value = entry.value.unwrap_or_default();
    Ok(LogicalPlan::Statement(Statement::SetVariable(SetVariable { variable, value })))
}
