use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::default_table_source::{DefaultTableSource, source_as_provider};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{DmlStatement, Expr, LogicalPlan, TableType, WriteOp, lit};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_plan::ExecutionPlan;

use crate::sql::mends::change_queries::{compute_queries, refusal_of, without_filters};
use crate::sql::mends::subqueries::query_of;

/// Analyzer rule: passes the conditions and new values of DELETE and UPDATE to the table as the statement
/// has them, and rejects statements whose conditions read more than the table itself.
///
/// DataFusion optimizes such a statement like a query and reads the conditions from the optimized plan. By
/// then, `WHERE i IN (SELECT ..)` has become a join and `WHERE false` an empty relation, so either
/// statement would change every row. The table computes uncorrelated subqueries before it changes rows.
#[derive(Debug)]
pub(crate) struct PlainChanges;

impl AnalyzerRule for PlainChanges {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        match plan {
            LogicalPlan::Dml(change) => Ok(LogicalPlan::Dml(capture_change(change)?)),
            // EXPLAIN ANALYZE executes its statement, so a DELETE or UPDATE in it is rewritten, too.
            LogicalPlan::Analyze(mut analyze) => {
                if let LogicalPlan::Dml(change) = analyze.input.as_ref() {
                    analyze.input = Arc::new(LogicalPlan::Dml(capture_change(change.clone())?));
                }
                Ok(LogicalPlan::Analyze(analyze))
            }
            plan => Ok(plan),
        }
    }

    fn name(&self) -> &str {
        "serrate_plain_changes"
    }
}

fn capture_change(change: DmlStatement) -> Result<DmlStatement> {
    let verb = match change.op {
        WriteOp::Delete => "DELETE",
        WriteOp::Update => "UPDATE",
        _ => return Ok(change),
    };
    let mut refused = None;
    let mut conditions = Vec::new();
    let mut values = Vec::new();
    change.input.apply(|node| {
        match node {
            LogicalPlan::Filter(filter) => conditions.push(filter.predicate.clone()),
            LogicalPlan::TableScan(scan) => conditions.extend(scan.filters.iter().cloned()),
            LogicalPlan::Projection(projection) if change.op == WriteOp::Update => {
                values.extend(projection.expr.iter().cloned());
            }
            LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {}
            LogicalPlan::Join(_) => refused = Some("a join"),
            LogicalPlan::Limit(_) => refused = Some("LIMIT"),
            LogicalPlan::Sort(_) => refused = Some("ORDER BY"),
            _ => refused = refused.or(Some("more than a condition on the table")),
        }
        let is_condition = matches!(node, LogicalPlan::Filter(_));
        node.apply_expressions(|e| {
            e.apply(|e| {
                if query_of(e).is_some() {
                    let reason = refusal_of(e);
                    refused =
                        if is_condition { reason } else { Some("a subquery in SET") }.or(refused);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    if let Some(what) = refused {
        return plan_err!(
            "{verb} with {what} is not supported, because DataFusion would lose its condition and change every row; use CREATE TABLE .. AS SELECT to create a new table with the rows to keep"
        );
    }
    let provider = source_as_provider(&change.target)?;
    if provider.is::<Captured>() {
        return Ok(change);
    }
    let filters = conditions.into_iter().flat_map(split_conjunction_owned).map(unqualified);
    let assignments = values.into_iter().filter_map(|value| match value {
        // The plan assigns unchanged columns to themselves. The table does not receive such assignments.
        Expr::Alias(alias) => match *alias.expr {
            Expr::Column(column) if column.name == alias.name => None,
            value => Some(unqualified(value).map(|value| (alias.name, value))),
        },
        _ => None,
    });
    let captured = Captured {
        filters: filters.collect::<Result<_>>()?,
        assignments: assignments.collect::<Result<_>>()?,
        inner: provider,
    };
    let target = Arc::new(DefaultTableSource::new(Arc::new(captured)));
    let input = Arc::new(without_filters(Arc::unwrap_or_clone(change.input))?);
    Ok(DmlStatement { target, input, ..change })
}

/// Removes the table qualifiers of columns, because a table provider expects unqualified names.
pub(in crate::sql) fn unqualified(expr: Expr) -> Result<Expr> {
    let expr = expr.transform(|e| match e {
        Expr::Column(column) if column.relation.is_some() => {
            Ok(Transformed::yes(Expr::Column(Column::new_unqualified(column.name))))
        }
        e => Ok(Transformed::no(e)),
    })?;
    Ok(expr.data)
}

/// Simplifies an expression as the optimizer does: folds constants, evaluates `now()`, binds named arguments.
pub(in crate::sql) fn simplify_expr(
    state: &dyn Session,
    expr: Expr,
    schema: &DFSchema,
) -> Result<Expr> {
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(schema.clone()))
        .with_config_options(Arc::new(state.config_options().clone()))
        .with_query_execution_start_time(state.execution_props().query_execution_start_time)
        .build();
    ExprSimplifier::new(context).simplify(expr)
}

/// Wraps the target table of DELETE or UPDATE, with the conditions and new values of the statement.
struct Captured {
    inner: Arc<dyn TableProvider>,
    filters: Vec<Expr>,
    assignments: Vec<(String, Expr)>,
}

impl fmt::Debug for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Captured {
    fn simplify_all(&self, state: &dyn Session, exprs: &[Expr]) -> Result<Vec<Expr>> {
        let schema = DFSchema::try_from(self.inner.schema())?;
        exprs.iter().map(|e| simplify_expr(state, e.clone(), &schema)).collect()
    }

    async fn filters(&self, state: &dyn Session) -> Result<Vec<Expr>> {
        let mut computed = Vec::with_capacity(self.filters.len());
        for filter in &self.filters {
            computed.push(compute_queries(state, filter.clone()).await?);
        }
        let all = self.simplify_all(state, &computed)?.into_iter();
        Ok(all.map(|e| if is_null(&e) { lit(false) } else { e }).collect())
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if value.is_null())
}

#[async_trait]
impl TableProvider for Captured {
    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }

    fn table_type(&self) -> TableType {
        self.inner.table_type()
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        self.inner.get_logical_plan()
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.inner.scan(state, projection, filters, limit).await
    }

    async fn delete_from(
        &self,
        state: &dyn Session,
        _filters: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let filters = self.filters(state).await?;
        self.inner.delete_from(state, filters).await
    }

    async fn update(
        &self,
        state: &dyn Session,
        _assignments: Vec<(String, Expr)>,
        _filters: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let filters = self.filters(state).await?;
        let values: Vec<Expr> = self.assignments.iter().map(|(_, value)| value.clone()).collect();
        let names = self.assignments.iter().map(|(name, _)| name.clone());
        let assignments = names.zip(self.simplify_all(state, &values)?).collect();
        self.inner.update(state, assignments, filters).await
    }
}
