//! Reads the columns that an UPDATE sets. DataFusion uses only the last part of each name: for
//! `SET s.a = 1`, it sets the column `a`. If a column is set twice, it uses the last value.

use std::collections::HashSet;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{
    AssignmentTarget, ObjectName, Statement as SqlStatement, Update,
};
use datafusion::sql::parser::Statement;

use crate::sql::statement::columns::lateral_tables::table_name;
use crate::sql::statement::folding::fold_name;
use crate::sql::statement::sql_parts::skip_prepare;

/// Replaces the name of each column that UPDATE sets with its unqualified, folded name: `t.A` in
/// `UPDATE t SET t.A = 1` becomes `a`.
///
/// # Errors
/// If a name is qualified by something other than the updated table, for example by a struct, or if
/// a column is set twice.
pub(in crate::sql::statement) fn write_out_targets(statement: &mut Statement) -> Result<()> {
    let Statement::Statement(inner) = statement else { return Ok(()) };
    match skip_prepare(inner) {
        SqlStatement::Update(update) => write_out_columns(update),
        _ => Ok(()),
    }
}

fn write_out_columns(update: &mut Update) -> Result<()> {
    let table = table_name(&update.table.relation).map(fold_name);
    let mut seen = HashSet::new();
    for assignment in &mut update.assignments {
        let AssignmentTarget::ColumnName(name) = &mut assignment.target else { continue };
        let (column, qualifier) = match name.0.as_slice() {
            [.., qualifier, column] => (column.as_ident(), qualifier.as_ident()),
            [column] => (column.as_ident(), None),
            [] => (None, None),
        };
        let Some(column) = column.cloned() else { continue };
        if let Some(qualifier) = qualifier
            && table.as_ref() != Some(&fold_name(qualifier))
        {
            return plan_err!(
                "UPDATE sets {name}, but {qualifier} is not the name of the updated table; write only the name of a column or, to change a field of a struct, the whole struct, as in SET s = {{'a': 1, 'b': s.b}}"
            );
        }
        let plain = fold_name(&column);
        if !seen.insert(plain.clone()) {
            return plan_err!("UPDATE sets the column '{column}' twice; write one value for it");
        }
        let mut column = column;
        column.value = plain;
        *name = ObjectName::from(column);
    }
    Ok(())
}
