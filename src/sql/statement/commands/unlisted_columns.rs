use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{Insert, TableObject};
use datafusion::prelude::SessionContext;

use crate::sql::sources::listing::FilesTable;
use crate::sql::statement::columns::position_columns::to_table_reference;

/// Returns an error for an INSERT without a list of columns into a table over files that returns
/// its columns in another order than the statement declares them. A table returns its partition
/// columns last.
///
/// After `CREATE EXTERNAL TABLE t (k INT, x INT) .. PARTITIONED BY
/// (k)`, DataFusion inserts the 1 of `INSERT INTO t VALUES
/// (1, 10)` into `x`. In the declared order, however, `INSERT INTO t SELECT * FROM t` would
/// exchange the columns.
pub(in crate::sql) async fn refuse_unlisted_columns(
    ctx: &SessionContext,
    insert: &Insert,
) -> Result<()> {
    if insert.source.is_none() || !insert.columns.is_empty() {
        return Ok(());
    }
    let TableObject::TableName(name) = &insert.table else { return Ok(()) };
    let Some(reference) = to_table_reference(name) else { return Ok(()) };
    let Ok(provider) = ctx.table_provider(reference).await else { return Ok(()) };
    let Some(files) = provider.downcast_ref::<FilesTable>() else { return Ok(()) };
    match files.moved_columns() {
        [] => Ok(()),
        columns => plan_err!(
            "INSERT INTO {name} does not list the columns, whose order is ambiguous, because {name} declares partition columns before other columns, but returns them last; list the columns, as in INSERT INTO {name} ({}) .., or write INSERT INTO {name} BY NAME SELECT ..",
            columns.join(", ")
        ),
    }
}
