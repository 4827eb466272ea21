//! Refuses relations in which two columns have the same name.

use datafusion::common::{DFSchema, plan_err};
use datafusion::error::Result;

/// Returns an error if two columns have the same name, which a plan allows but a table does not.
pub(in crate::sql) fn check_distinct_names(function: &str, schema: &DFSchema) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    match schema.fields().iter().find(|f| !seen.insert(f.name())) {
        None => Ok(()),
        Some(twice) => plan_err!(
            "{function}: the query has two columns named {:?}; rename one of them with AS",
            twice.name()
        ),
    }
}
