//! Makes CREATE TABLE .. AS keep the row order of its source, and makes the columns of the table
//! nullable.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    ColumnDef, ColumnOption, Statement as SqlStatement,
};
use datafusion::logical_expr::{CreateMemoryTable, DdlStatement, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::collect_partitioned;
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::parser::Statement;
use serrate_core::internal::find_repeated_name;

use crate::sql::exec::table_rows::TableRows;

/// Removes the word TEMPORARY from CREATE TABLE and CREATE VIEW: all tables and views in memory
/// belong to the session and vanish with it. Keeps GLOBAL, which the planner rejects.
pub(in crate::sql::statement) fn drop_temporary(statement: &mut SqlStatement) {
    match statement {
        SqlStatement::CreateTable(table) if table.temporary => {
            table.temporary = false;
            table.global = table.global.filter(|global| *global);
        }
        SqlStatement::CreateView(view) => view.temporary = false,
        _ => {}
    }
}

#[derive(Clone)]
pub(in crate::sql::statement) struct CreatedFromQuery {
    /// For each column that the statement declares, whether it is NOT NULL, as in
    /// `CREATE TABLE t (a INT NOT NULL) AS SELECT 1`; `None` if the statement declares no columns.
    /// DataFusion ignores NOT NULL.
    required: Option<Vec<bool>>,
}

impl CreatedFromQuery {
    /// Returns `None` unless the statement is CREATE TABLE .. AS with a query.
    pub(in crate::sql::statement) fn from_statement(statement: &Statement) -> Option<Self> {
        let Statement::Statement(inner) = statement else { return None };
        match inner.as_ref() {
            SqlStatement::CreateTable(table) if table.query.is_some() => {
                let is_required = |column: &ColumnDef| {
                    column.options.iter().any(|o| matches!(o.option, ColumnOption::NotNull))
                };
                let required: Vec<bool> = table.columns.iter().map(is_required).collect();
                Some(Self { required: (!required.is_empty()).then_some(required) })
            }
            _ => None,
        }
    }

    /// Adds the node [`TableRows`] above the query of CREATE TABLE .. AS. The node keeps the source
    /// order of the rows, and makes the columns nullable, except those that the statement declares
    /// NOT NULL.
    pub(in crate::sql::statement) fn add_table_rows(
        self,
        plan: LogicalPlan,
    ) -> Result<LogicalPlan> {
        let LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(mut table)) = plan else {
            return Ok(plan);
        };
        let input = Arc::unwrap_or_clone(table.input);
        table.input = Arc::new(TableRows::plan(input, self.required)?);
        Ok(LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)))
    }
}

/// Runs the query of CREATE TABLE .. AS, and replaces the query in the plan with a scan of the rows
/// that it returned.
///
/// DataFusion 55 optimizes the query twice before it runs it. The second optimization breaks some
/// plans: the schemas of the inputs of a UNION ALL without columns then differ, and `string_agg`
/// loses its ORDER BY keys. This workaround is obsolete once the test
/// `stock_created_tables_are_still_optimized_twice` fails.
pub(in crate::sql::statement) async fn compute_rows(
    ctx: &SessionContext,
    state: &SessionState,
    table: &mut CreateMemoryTable,
) -> Result<()> {
    let is_distinct = find_repeated_name(table.input.schema().fields()).is_none();
    // The plan stays unchanged where DataFusion reports an error or runs no query: two columns have
    // the same name, the table exists and is not replaced, or the table is temporary.
    let exists = ctx.table_exist(table.name.clone())?;
    if !is_distinct || exists && (table.if_not_exists || !table.or_replace) || table.temporary {
        return Ok(());
    }
    let query = DataFrame::new(state.clone(), table.input.as_ref().clone());
    let tasks = Arc::new(query.task_ctx());
    let plan = query.create_physical_plan().await?;
    let mut types = plan.schema();
    let partitions = collect_partitioned(plan, tasks).await?;
    // The table gets the types and the metadata of the first batch, which may differ from those of
    // the plan. For a UNION, the planner uses the types of the first input, but analyzer rules may
    // cast all inputs to other types, and make lists of its tensors. A function may return lists
    // whose element field has another name than the function declares.
    if let Some(batch) = partitions.iter().flatten().next() {
        types = batch.schema();
    }
    let planned = table.input.schema().inner();
    let fields = planned.fields().iter().zip(types.fields()).map(|(named, typed)| {
        let field = named.as_ref().clone().with_data_type(typed.data_type().clone());
        field.with_metadata(typed.metadata().clone())
    });
    let fields: Vec<Field> = fields.collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, planned.metadata().clone()));
    let rows = MemTable::try_new(schema, partitions)?;
    let scan = LogicalPlanBuilder::scan("rows", provider_as_source(Arc::new(rows)), None)?;
    table.input = Arc::new(scan.build()?);
    Ok(())
}
