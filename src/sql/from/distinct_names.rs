//! Refuses relations in which two columns have the same name, and calls in which two options have.

use datafusion::common::{DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::FunctionArg;
use serrate_core::internal::{find_repeated, find_repeated_name};

use crate::sql::base::syntax::split_argument;

/// Returns an error if two columns have the same name, which a plan allows but a table does not.
pub(in crate::sql) fn check_distinct_names(function: &str, schema: &DFSchema) -> Result<()> {
    match find_repeated_name(schema.fields()) {
        None => Ok(()),
        Some(twice) => plan_err!(
            "{function}: the query has two columns named {twice:?}; rename one of them with AS"
        ),
    }
}

/// Returns an error if a call has two arguments of the same name, because only one of them would
/// have an effect.
pub(super) fn check_distinct_options(function: &str, args: &[FunctionArg]) -> Result<()> {
    let names: Vec<String> = args.iter().filter_map(|arg| split_argument(arg)?.0).collect();
    match find_repeated(&names) {
        None => Ok(()),
        Some(name) => refuse_repeated_option(function, name),
    }
}

pub(super) fn refuse_repeated_option(function: &str, name: &str) -> Result<()> {
    plan_err!("{function}: the option {name} is given twice; write it once")
}
