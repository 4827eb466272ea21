//! Supports RESET of the settings `serrate.*`, and checks SET of some settings of DataFusion.

use datafusion::common::config::ExtensionOptions;
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlan, SetVariable, Statement};

use crate::access;
use crate::config::{SerrateOptions, default_memory};

/// DataFusion's name of the setting [`OWN_MEMORY`].
const MEMORY: &str = "datafusion.runtime.memory_limit";
const OWN_MEMORY: &str = "serrate.memory_limit";

/// Settings that must stay false because of bugs of DataFusion 55, each with the effect of the
/// value true and the number of the issue in DataFusion's repository.
const REFUSED: [(&str, &str, u32); 2] = [
    ("datafusion.optimizer.enable_piecewise_merge_join", "piecewise merge joins lose rows", 24335),
    (
        "datafusion.optimizer.enable_window_topn",
        "a condition such as row_number() < 1 ends in an internal error",
        24404,
    ),
];

const TEMPORARY: &str = "datafusion.runtime.temp_directory";

pub(in crate::sql::statement) fn reset_to_default(plan: LogicalPlan) -> Result<LogicalPlan> {
    if let LogicalPlan::Statement(Statement::SetVariable(set)) = &plan
        && set.variable.eq_ignore_ascii_case(TEMPORARY)
    {
        access::check_write(&set.value).map_err(|e| crate::Error::io(&set.value, e))?;
    }
    if let LogicalPlan::Statement(Statement::SetVariable(set)) = &plan
        && set.variable.eq_ignore_ascii_case(MEMORY)
    {
        // `datafusion.runtime.memory_limit` would give the session another memory pool, which
        // ignores the memory of other sessions, so the value is set as `serrate.memory_limit`.
        let (variable, value) = (OWN_MEMORY.to_owned(), set.value.clone());
        return Ok(LogicalPlan::Statement(Statement::SetVariable(SetVariable { variable, value })));
    }
    if let LogicalPlan::Statement(Statement::SetVariable(set)) = &plan
        && let Some((setting, effect, issue)) =
            REFUSED.iter().find(|(setting, ..)| set.variable.eq_ignore_ascii_case(setting))
        && !set.value.eq_ignore_ascii_case("false")
    {
        return plan_err!(
            "{setting} = {} is not supported, because {effect} (https://github.com/apache/datafusion/issues/{issue}); leave it false",
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
