use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, TableType};
use datafusion::prelude::SessionContext;

/// Returns an error for CREATE OR REPLACE VIEW if a table has the name, and for CREATE OR REPLACE
/// TABLE if a view has it, as DuckDB does. DataFusion would drop the table with its rows, or the
/// view.
pub(in crate::sql::statement) async fn refuse_other_kind(
    ctx: &SessionContext,
    plan: &LogicalPlan,
) -> Result<()> {
    let LogicalPlan::Ddl(ddl) = plan else { return Ok(()) };
    let (name, replaces, is_view) = match ddl {
        DdlStatement::CreateView(view) => (&view.name, view.or_replace, true),
        DdlStatement::CreateMemoryTable(table) => (&table.name, table.or_replace, false),
        DdlStatement::CreateExternalTable(table) => (&table.name, table.or_replace, false),
        _ => return Ok(()),
    };
    if !replaces || !ctx.table_exist(name.clone())? {
        return Ok(());
    }
    let Ok(known) = ctx.table_provider(name.clone()).await else { return Ok(()) };
    match (is_view, known.table_type() == TableType::View) {
        (true, false) => plan_err!(
            "CREATE OR REPLACE VIEW {name} would drop the table {name}; write DROP TABLE {name} first, or use another name"
        ),
        (false, true) => plan_err!(
            "CREATE OR REPLACE TABLE {name} would drop the view {name}; write DROP VIEW {name} first, or use another name"
        ),
        _ => Ok(()),
    }
}
