//! Rejects an UPDATE that sets a column twice, for which DataFusion would use the last value.

use std::collections::HashSet;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{AssignmentTarget, Statement as SqlStatement};
use datafusion::sql::parser::Statement;

pub(in crate::sql::statement) fn check_targets(statement: &Statement) -> Result<()> {
    let Statement::Statement(inner) = statement else { return Ok(()) };
    let SqlStatement::Update(update) = inner.as_ref() else { return Ok(()) };
    let mut seen = HashSet::new();
    for assignment in &update.assignments {
        let AssignmentTarget::ColumnName(name) = &assignment.target else { continue };
        let Some(column) = name.0.last().and_then(|part| part.as_ident()) else { continue };
        let plain = match column.quote_style {
            Some(_) => column.value.clone(),
            None => column.value.to_lowercase(),
        };
        if !seen.insert(plain) {
            return plan_err!("UPDATE sets the column '{column}' twice; write one value for it");
        }
    }
    Ok(())
}
