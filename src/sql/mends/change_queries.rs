//! Computes the subqueries in the WHERE of DELETE and UPDATE before the table changes.

use arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Exists, InList, InSubquery};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::physical_plan::collect;

use crate::sql::mends::subqueries::{has_query, is_correlated, query_of};

/// Returns the reason why a subquery cannot be computed before the table changes, or `None` if it can.
pub(super) fn refusal_of(expr: &Expr) -> Option<&'static str> {
    let query = query_of(expr)?;
    let is_compared_by_value = || {
        let fields = query.subquery.schema().fields();
        fields.iter().all(|f| !f.data_type().is_floating() && !f.data_type().is_nested())
    };
    match expr {
        _ if is_correlated(query) => Some("a correlated subquery"),
        Expr::ScalarSubquery(_) | Expr::Exists(_) => None,
        Expr::InSubquery(_) if is_compared_by_value() => None,
        Expr::InSubquery(_) => Some("IN over a query of floats, lists or structs"),
        _ => Some("a quantified subquery"),
    }
}

/// Removes the filters with subqueries from the input of DELETE or UPDATE. The table itself
/// receives the conditions of these filters.
pub(super) fn without_filters(input: LogicalPlan) -> Result<LogicalPlan> {
    let input = input.transform_up(|node| match &node {
        LogicalPlan::Filter(filter) if has_query(&node)? => {
            Ok(Transformed::yes(filter.input.as_ref().clone()))
        }
        _ => Ok(Transformed::no(node)),
    })?;
    Ok(input.data)
}

/// Replaces the subqueries of a condition with their results.
pub(super) async fn compute_queries(state: &dyn Session, condition: Expr) -> Result<Expr> {
    let mut queries = Vec::new();
    condition.apply(|e| {
        if query_of(e).is_some() {
            queries.push(e.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut known = Vec::with_capacity(queries.len());
    for query in queries {
        let result = compute_query(state, &query).await?;
        known.push((query, result));
    }
    let condition = condition.transform_up(|e| {
        let Some((_, result)) = known.iter().find(|(query, _)| *query == e) else {
            return Ok(Transformed::no(e));
        };
        Ok(Transformed::yes(result.clone()))
    })?;
    Ok(condition.data)
}

async fn compute_query(state: &dyn Session, expr: &Expr) -> Result<Expr> {
    match expr {
        Expr::ScalarSubquery(query) => {
            let values = column_of(state, &query.subquery).await?;
            let rows: usize = values.iter().map(|column| column.len()).sum();
            if rows > 1 {
                return plan_err!(
                    "a scalar subquery returns more than one row; add LIMIT 1 or an aggregate"
                );
            }
            let value = match values.iter().find(|column| !column.is_empty()) {
                Some(column) => ScalarValue::try_from_array(column, 0)?,
                None => ScalarValue::try_new_null(query.subquery.schema().field(0).data_type())?,
            };
            Ok(Expr::Literal(value, None))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let mut list = Vec::new();
            for column in column_of(state, &subquery.subquery).await? {
                for row in 0..column.len() {
                    list.push(Expr::Literal(ScalarValue::try_from_array(&column, row)?, None));
                }
            }
            Ok(match list.is_empty() {
                true => lit(*negated),
                false => Expr::InList(InList::new(expr.clone(), list, *negated)),
            })
        }
        Expr::Exists(Exists { subquery, negated }) => {
            let plan = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone());
            let batches = run(state, &plan.limit(0, Some(1))?.build()?).await?;
            let found = batches.iter().any(|batch| batch.num_rows() > 0);
            Ok(lit(found != *negated))
        }
        other => Ok(other.clone()),
    }
}

async fn column_of(state: &dyn Session, query: &LogicalPlan) -> Result<Vec<ArrayRef>> {
    let batches = run(state, query).await?;
    Ok(batches.iter().filter_map(|batch| batch.columns().first().cloned()).collect())
}

async fn run(state: &dyn Session, plan: &LogicalPlan) -> Result<Vec<RecordBatch>> {
    let plan = state.create_physical_plan(plan).await?;
    collect(plan, state.task_ctx()).await
}
