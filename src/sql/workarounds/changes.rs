//! Plans DELETE, UPDATE and TRUNCATE of tables in memory.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::default_table_source::{DefaultTableSource, source_as_provider};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, plan_err};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::logical_expr::{
    DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder, TableScanBuilder, TableType, WriteOp, cast,
};
use datafusion::physical_plan::ExecutionPlan;

use crate::sql::base::boxed_methods::boxed_method;
use crate::sql::base::plan_nodes::rewrite_change;
use crate::sql::base::subquery_parts::find_query;
use crate::sql::exec::change_query::{ChangeQuery, NumberedRows, ROW};
use crate::sql::sources::dok::DokTable;
use crate::sql::sources::listing::FilesTable;
use crate::sql::sources::memory_tables::plan_memory_change;

/// `DELETE FROM t WHERE i IN (SELECT i FROM u)` deletes every row of `t` without this rule.
///
/// Analyzer rule: for DELETE and UPDATE, tables in memory and DOK tables (sparse tensors and
/// dictionaries) find the rows to change with a query, which is planned like any other query.
///
/// DataFusion optimizes such a statement like a query and passes the conditions of the optimized
/// plan to the table. By then, `WHERE i IN (SELECT ..)` is a join and `WHERE false` an empty
/// relation. The table would receive no condition, and change every row. For other kinds of tables,
/// which evaluate the conditions themselves, a statement with a subquery is an error.
pub(crate) fn plan_changes(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_change(plan, capture_change)
}

fn capture_change(change: DmlStatement) -> Result<DmlStatement> {
    let verb = match change.op {
        WriteOp::Delete => "DELETE",
        WriteOp::Update => "UPDATE",
        WriteOp::Truncate => return plan_truncate(change),
        _ => return Ok(change),
    };
    let provider = source_as_provider(&change.target)?;
    if provider.is::<ChangeTarget>() {
        return Ok(change);
    }
    check_changeable(verb, &provider)?;
    let finds_rows = provider.is::<MemTable>() || provider.is::<DokTable>();
    let mut refused = None;
    let mut scan = None;
    change.input.apply(|node| {
        match node {
            LogicalPlan::Filter(_) | LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
            }
            LogicalPlan::TableScan(_) => scan = Some(node.clone()),
            LogicalPlan::Join(_) => refused = Some("a join"),
            LogicalPlan::Limit(_) => refused = Some("LIMIT"),
            LogicalPlan::Sort(_) => refused = Some("ORDER BY"),
            _ => refused = refused.or(Some("more than a condition on the table")),
        }
        node.apply_expressions(|e| {
            if !finds_rows && e.exists(|e| Ok(find_query(e).is_some()))? {
                refused = refused.or(Some("a subquery"));
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    let (None, Some(scan)) = (refused, scan) else {
        let what = refused.unwrap_or("more than a condition on the table");
        return plan_err!(
            "{verb} with {what} is not supported, because DataFusion would lose the condition of the statement and change every row; use CREATE TABLE .. AS SELECT to create a new table with the rows that you want"
        );
    };
    if !finds_rows {
        return Ok(change);
    }
    let captured = ChangeTarget { inner: provider, input: change.input };
    let target = Arc::new(DefaultTableSource::new(Arc::new(captured)));
    Ok(DmlStatement { target, input: Arc::new(scan), ..change })
}

/// Returns an error for views and for tables of files that only INSERT and COPY write.
fn check_changeable(verb: &str, provider: &Arc<dyn TableProvider>) -> Result<()> {
    if provider.table_type() == TableType::View {
        return plan_err!(
            "{verb} is not supported for a view; change the tables that its query reads"
        );
    }
    if provider.is::<FilesTable>() {
        return plan_err!(
            "{verb} is not supported for a table of files, which are not changed in place; write the rows that you want to new files with COPY (SELECT ..) TO .., or create a table in memory with CREATE TABLE .. AS SELECT"
        );
    }
    Ok(())
}

/// Plans TRUNCATE of a table in memory, which DataFusion refuses, as DELETE of all rows.
fn plan_truncate(change: DmlStatement) -> Result<DmlStatement> {
    let provider = source_as_provider(&change.target)?;
    check_changeable("TRUNCATE", &provider)?;
    if !provider.is::<MemTable>() {
        return Ok(change);
    }
    let name = change.table_name.clone();
    let scan = LogicalPlanBuilder::scan(name, Arc::clone(&change.target), None)?.build()?;
    capture_change(DmlStatement { op: WriteOp::Delete, input: Arc::new(scan), ..change })
}

/// The target table of DELETE or UPDATE, and the plan of the statement before any rule changed it.
struct ChangeTarget {
    inner: Arc<dyn TableProvider>,
    input: Arc<LogicalPlan>,
}

impl fmt::Debug for ChangeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl ChangeTarget {
    /// Plans the query for the rows to change. For UPDATE, `set` has the columns to set with their
    /// new values, and the query also returns these values. For DELETE, `set` is `None`.
    async fn plan_query(
        &self,
        state: &dyn Session,
        set: Option<&[(String, Expr)]>,
    ) -> Result<ChangeQuery> {
        let rows = NumberedRows::new(&self.inner.schema());
        let table = Arc::new(DefaultTableSource::new(Arc::new(rows.to_table()?)));
        let from = match (set, self.input.as_ref()) {
            (Some(_), LogicalPlan::Projection(projection)) => projection.input.as_ref().clone(),
            _ => self.input.as_ref().clone(),
        };
        let from = from.transform_up(|node| match node {
            LogicalPlan::TableScan(scan) => {
                let scan = TableScanBuilder::new(scan.table_name, table.clone()).build()?;
                Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
            }
            node => Ok(Transformed::yes(node.recompute_schema()?)),
        })?;
        let from = from.data;
        let (qualifier, row) = from.schema().qualified_field_with_unqualified_name(ROW)?;
        let mut columns = vec![Expr::Column(Column::from((qualifier, row)))];
        let values = set.into_iter().flatten();
        columns.extend(values.map(|(name, value)| self.cast_value(name, value).alias(name)));
        let query = LogicalPlanBuilder::from(from).project(columns)?.build()?;
        Ok(ChangeQuery { plan: state.create_physical_plan(&query).await?, rows })
    }

    /// Returns the new value of a column, cast to the type of the column.
    ///
    /// DataFusion has planned a cast only if the type of the value differs before type coercion:
    /// `CASE WHEN a > 1 THEN i ELSE 5000000000 END` has the type of `i` until then.
    fn cast_value(&self, column: &str, value: &Expr) -> Expr {
        let schema = self.inner.schema();
        let Ok(field) = schema.field_with_name(column) else { return value.clone() };
        match value {
            Expr::Cast(known) if known.field.data_type() == field.data_type() => value.clone(),
            _ => cast(value.clone(), field.data_type().clone()),
        }
    }

    fn list_assignments(&self) -> Vec<(String, Expr)> {
        let LogicalPlan::Projection(projection) = self.input.as_ref() else { return Vec::new() };
        let set = projection.expr.iter().filter_map(|value| match value {
            // Skips the columns that UPDATE does not set: the plan assigns to each of them its own
            // value.
            Expr::Alias(alias) => match alias.expr.as_ref() {
                Expr::Column(column) if column.name == alias.name => None,
                value => Some((alias.name.clone(), value.clone())),
            },
            _ => None,
        });
        set.collect()
    }

    fn plan_change(
        &self,
        query: ChangeQuery,
        set: Option<&[String]>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match self.inner.downcast_ref::<DokTable>() {
            Some(table) => table.plan_change(query, set),
            None => plan_memory_change(Arc::clone(&self.inner), query, set),
        }
    }
}

impl TableProvider for ChangeTarget {
    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }

    fn table_type(&self) -> TableType {
        self.inner.table_type()
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        self.inner.get_logical_plan()
    }

    boxed_method!(ChangeTarget: scan = plan_scan);

    boxed_method!(ChangeTarget: delete_from = plan_delete);

    boxed_method!(ChangeTarget: update = plan_update);
}

impl ChangeTarget {
    async fn plan_scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.inner.scan(state, projection, filters, limit).await
    }

    async fn plan_delete(
        &self,
        state: &dyn Session,
        _filters: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let query = self.plan_query(state, None).await?;
        self.plan_change(query, None)
    }

    async fn plan_update(
        &self,
        state: &dyn Session,
        _assignments: Vec<(String, Expr)>,
        _filters: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let set = self.list_assignments();
        let query = self.plan_query(state, Some(&set)).await?;
        let names: Vec<String> = set.into_iter().map(|(name, _)| name).collect();
        self.plan_change(query, Some(&names))
    }
}
