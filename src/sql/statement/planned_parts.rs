//! Plans a part of a statement alone, such as a subquery, with the CTEs that are visible in it.

use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::logical_expr::sqlparser::ast::{Cte, Query, Statement as SqlStatement, With};
use datafusion::sql::parser::Statement;

use crate::sql::statement::scopes::CteScopes;

/// Plans a query and returns the names of its columns, or `None` if it cannot be planned.
pub(in crate::sql) async fn plan_names(state: &SessionState, query: Query) -> Option<Vec<String>> {
    let plan = plan_alone(state, query).await?;
    Some(list_column_names(&plan))
}

/// Plans a query, or returns `None` if it cannot be planned.
pub(in crate::sql) async fn plan_alone(state: &SessionState, query: Query) -> Option<LogicalPlan> {
    state.statement_to_plan(to_statement(query)).await.ok()
}

pub(in crate::sql) fn to_statement(query: Query) -> Statement {
    Statement::Statement(Box::new(SqlStatement::Query(Box::new(query))))
}

pub(in crate::sql) fn list_column_names<C: FromIterator<String>>(plan: &LogicalPlan) -> C {
    plan.schema().fields().iter().map(|field| field.name().clone()).collect()
}

/// Adds to a query the CTEs that are visible at its position, so that it can be planned alone.
pub(in crate::sql) fn add_queries(query: Query, scopes: &CteScopes<Cte>) -> Query {
    add_ctes(query, scopes.iter_visible(), scopes.is_recursive())
}

/// Adds a WITH clause with the CTEs `visible` to a query; WITH RECURSIVE if `recursive` is true. Of
/// several CTEs with the same name, adds only the last, which hides the others.
pub(in crate::sql) fn add_ctes<'a>(
    mut query: Query,
    visible: impl Iterator<Item = &'a Cte>,
    recursive: bool,
) -> Query {
    let mut ctes: Vec<Cte> = Vec::new();
    for cte in visible {
        ctes.retain(|known| known.alias.name.value != cte.alias.name.value);
        ctes.push(cte.clone());
    }
    if !ctes.is_empty() {
        let with_token = AttachedToken::empty();
        query.with = Some(With { with_token, recursive, cte_tables: ctes });
    }
    query
}
