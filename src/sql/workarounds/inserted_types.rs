//! Casts the rows of INSERT to the types of the columns of the table.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::logical_expr::{
    DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder, WriteOp, cast,
};

use crate::sql::base::plan_nodes::rewrite_change;

/// Analyzer rule: casts the columns of the query of an INSERT to the types of the table.
///
/// Without this rule, `INSERT INTO t SELECT CASE WHEN i > 1 THEN i ELSE 5000000000 END FROM t`
/// writes 64-bit integers to a column of 32-bit integers, and no later statement can read the
/// table.
///
/// DataFusion 55 plans these casts before it finds the common type of the branches of CASE and
/// UNION. Until then, a column has the type of the first branch, for which no cast is planned. This
/// workaround is obsolete once the test `stock_inserts_still_write_other_types` fails.
pub(in crate::sql) fn cast_inserted_columns(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_change(plan, |insert| Ok(cast_inserted_rows(&insert)?.unwrap_or(insert)))
}

/// Casts the rows of an INSERT to the types of the table. Returns `None` if the rows already have
/// these types, if they have another number of columns, and for other statements.
pub(in crate::sql) fn cast_inserted_rows(insert: &DmlStatement) -> Result<Option<DmlStatement>> {
    let table = insert.target.schema();
    let found = insert.input.schema();
    let mut pairs = found.fields().iter().zip(table.fields());
    let differ = pairs.any(|(column, target)| column.data_type() != target.data_type());
    let same_length = found.fields().len() == table.fields().len();
    if !matches!(insert.op, WriteOp::Insert(_)) || !differ || !same_length {
        return Ok(None);
    }
    let columns = found.columns().into_iter().zip(found.fields()).zip(table.fields());
    let columns = columns.map(|((column, field), target)| {
        let column = Expr::Column(column);
        match field.data_type() == target.data_type() {
            true => column,
            false => cast(column, target.data_type().clone()).alias(target.name()),
        }
    });
    let columns: Vec<Expr> = columns.collect();
    let input =
        LogicalPlanBuilder::from(insert.input.as_ref().clone()).project(columns)?.build()?;
    Ok(Some(DmlStatement { input: Arc::new(input), ..insert.clone() }))
}
