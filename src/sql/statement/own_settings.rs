//! RESET of the settings `serrate.*`, which DataFusion does not find.

use datafusion::common::config::ExtensionOptions;
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlan, SetVariable, Statement};

use crate::access;
use crate::config::{SerrateOptions, default_memory};

/// DataFusion's name of the setting [`OWN_MEMORY`].
const MEMORY: &str = "datafusion.runtime.memory_limit";
const OWN_MEMORY: &str = "serrate.memory_limit";

/// The setting for joins by one inequality. DataFusion 55 loses the rows of outer joins whose key is NULL.
const PIECEWISE: &str = "datafusion.optimizer.enable_piecewise_merge_join";

/// The setting that names the folder of spilled rows.
const TEMPORARY: &str = "datafusion.runtime.temp_directory";

pub(super) fn reset_to_default(plan: LogicalPlan) -> Result<LogicalPlan> {
    if let LogicalPlan::Statement(Statement::SetVariable(set)) = &plan
        && set.variable.eq_ignore_ascii_case(TEMPORARY)
    {
        access::check_write(&set.value).map_err(|e| crate::Error::io(&set.value, e))?;
    }
    if let LogicalPlan::Statement(Statement::SetVariable(set)) = &plan
        && set.variable.eq_ignore_ascii_case(MEMORY)
    {
        // DataFusion would give the session a separate memory pool, which does not count the memory of other
        // sessions.
        let (variable, value) = (OWN_MEMORY.to_owned(), set.value.clone());
        return Ok(LogicalPlan::Statement(Statement::SetVariable(SetVariable { variable, value })));
    }
    if let LogicalPlan::Statement(Statement::SetVariable(set)) = &plan
        && set.variable.eq_ignore_ascii_case(PIECEWISE)
        && !set.value.eq_ignore_ascii_case("false")
    {
        return plan_err!(
            "{PIECEWISE} = {} is not supported, because such joins lose rows (https://github.com/apache/datafusion/issues/24335); leave it false",
            set.value
        );
    }
    let LogicalPlan::Statement(Statement::ResetVariable(reset)) = &plan else { return Ok(plan) };
    let variable = reset.variable.to_ascii_lowercase();
    if [MEMORY, OWN_MEMORY].contains(&variable.as_str()) {
        let (variable, value) = (OWN_MEMORY.to_owned(), default_memory());
        return Ok(LogicalPlan::Statement(Statement::SetVariable(SetVariable { variable, value })));
    }
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
