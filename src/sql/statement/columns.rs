//! What a column may say of itself in CREATE TABLE.

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{
    ColumnDef, ColumnOption, ConstraintCharacteristics, TableConstraint,
};

/// Refuses options and constraints of columns that DataFusion reads and does not keep.
///
/// A key that is not enforced is a promise: DataFusion plans GROUP BY by it, and rows that break it make
/// wrong groups. So a key is taken only where a statement says that it promises.
pub(in crate::sql) fn check_columns(
    columns: &[ColumnDef],
    constraints: &[TableConstraint],
) -> Result<()> {
    for column in columns {
        for option in &column.options {
            match &option.option {
                ColumnOption::Null | ColumnOption::NotNull | ColumnOption::Default(_) => {}
                // The planner refuses these two.
                ColumnOption::ForeignKey(_) | ColumnOption::Check(_) => {}
                ColumnOption::PrimaryKey(key) => promised("PRIMARY KEY", key.characteristics)?,
                ColumnOption::Unique(key) => promised("UNIQUE", key.characteristics)?,
                other => {
                    return plan_err!(
                        "{other} of the column {} is not supported: a column has a type, NOT NULL and DEFAULT",
                        column.name
                    );
                }
            }
        }
    }
    for constraint in constraints {
        match constraint {
            TableConstraint::PrimaryKey(key) => promised("PRIMARY KEY", key.characteristics)?,
            TableConstraint::Unique(key) => promised("UNIQUE", key.characteristics)?,
            // The planner refuses the others.
            _ => {}
        }
    }
    Ok(())
}

fn promised(key: &str, said: Option<ConstraintCharacteristics>) -> Result<()> {
    match said {
        Some(ConstraintCharacteristics {
            enforced: Some(false),
            deferrable: None,
            initially: None,
        }) => Ok(()),
        _ => plan_err!(
            "{key} is not supported as it stands: rows are not looked at when they come in; leave it out, or write {key} NOT ENFORCED to promise it"
        ),
    }
}
