//! Rewrites a statement with the columns of its tables, and plans it.

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::sqlparser::ast::{Query, Statement as SqlStatement, Visit, VisitMut};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{CopyToSource, Statement};

use crate::sql::base::deep_stack::call_on_deep_stack;
use crate::sql::sources::partition_folders::unquote_partitions;
use crate::sql::statement::alias_twins::{may_have_twins, rename_twin, restore_twin};
use crate::sql::statement::calls::{explain_calls, find_unexpanded_calls};
use crate::sql::statement::clashing_names::{is_clash, may_clash, name_computed};
use crate::sql::statement::errors::convert_internal_error;
use crate::sql::statement::hints::explain_error;
use crate::sql::statement::outer_fields::{OUTER, access_own_fields};
use crate::sql::statement::{
    column_sets, lambda_bodies, merged, outer_tables, position_columns, predicates,
    recursion_types, select_aliases, shadowed, star_excludes, star_names, star_replaces,
    unnamed_queries,
};
use crate::sql::workarounds::times;

/// Runs code on the part of a statement that sqlparser has parsed: an SQL statement, or the query of COPY, also
/// below EXPLAIN. The two have different types, which are both `VisitMut`.
macro_rules! with_sql {
    ($statement:expr, $sql:ident => $run:block) => {{
        let mut statement: &mut Statement = $statement;
        loop {
            match statement {
                Statement::Statement(inner) => {
                    let $sql = inner.as_mut();
                    $run
                    break;
                }
                Statement::CopyTo(copy) => {
                    if let CopyToSource::Query(query) = &mut copy.source {
                        let $sql = query.as_mut();
                        $run
                    }
                    break;
                }
                Statement::Explain(explain) => statement = explain.statement.as_mut(),
                Statement::CreateExternalTable(_) | Statement::Reset(_) => break,
            }
        }
    }};
}
pub(super) use with_sql;

/// Plans a statement, and plans it again if DataFusion has taken columns of outer tables for fields.
pub(super) async fn plan_named(
    ctx: &SessionContext,
    state: &SessionState,
    mut statement: Statement,
    conditions: &[String],
) -> Result<LogicalPlan> {
    let mut is_open = false;
    with_sql!(&mut statement, sql => { is_open = outer_tables::has_outer_names(state, sql); });
    let kept = is_open.then(|| call_on_deep_stack(|| statement.clone()));
    let planned = Box::pin(plan_prepared(ctx, state, statement, conditions)).await;
    let Some(mut statement) = kept else { return planned };
    if planned.as_ref().is_ok_and(|plan| !outer_tables::has_wrong_field(plan)) {
        return planned;
    }
    let mut is_changed = false;
    with_sql!(&mut statement, sql => {
        is_changed = Box::pin(outer_tables::name_outer_tables(state, sql)).await;
    });
    if !is_changed {
        return planned;
    }
    match Box::pin(plan_prepared(ctx, state, statement, conditions)).await {
        // Such a message has a name that the statement does not have.
        Err(e) if e.to_string().contains(OUTER) => planned,
        again => again,
    }
}

/// Rewrites and plans a query, and returns the names of its columns, or `None` if it cannot be planned.
pub(super) async fn plan_rewritten_names(
    ctx: &SessionContext,
    state: &SessionState,
    query: Query,
) -> Option<Vec<String>> {
    let statement = Statement::Statement(Box::new(SqlStatement::Query(Box::new(query))));
    let plan = Box::pin(plan_named(ctx, state, statement, &[])).await.ok()?;
    Some(plan.schema().fields().iter().map(|field| field.name().clone()).collect())
}

/// Rewrites a statement with the columns of its tables, and plans it. `conditions` are the
/// conditions in the original statement.
async fn plan_prepared(
    ctx: &SessionContext,
    state: &SessionState,
    mut statement: Statement,
    conditions: &[String],
) -> Result<LogicalPlan> {
    with_sql!(&mut statement, sql => { Box::pin(write_out_names(ctx, state, sql)).await?; });
    let unexpanded = find_unexpanded_calls(&statement);
    unquote_partitions(&mut statement);
    let mut clashes = false;
    with_sql!(&mut statement, sql => { clashes = may_clash(sql); });
    let has_twins = may_have_twins(&statement);
    let mut hides = false;
    with_sql!(&mut statement, sql => { hides = select_aliases::may_hide_aliases(sql); });
    let mut random = None;
    with_sql!(&mut statement, sql => { random = select_aliases::find_random_alias(state, sql); });
    let kept = (clashes || has_twins || hides).then(|| call_on_deep_stack(|| statement.clone()));
    let mut plan = state.statement_to_plan(statement).await;
    if let (Err(e), Some(mut statement)) = (&plan, kept) {
        if clashes && is_clash(e) {
            with_sql!(&mut statement, sql => { name_computed(sql); });
            plan = state.statement_to_plan(statement).await;
        } else if hides && select_aliases::is_ungrouped(e) {
            let mut is_replaced = false;
            with_sql!(&mut statement, sql => {
                is_replaced = select_aliases::replace_in_having(state, sql);
            });
            // The error of a second plan would not show the alias.
            if is_replaced && let Ok(replaced) = state.statement_to_plan(statement).await {
                plan = Ok(replaced);
            }
        } else if let Some(name) = rename_twin(&mut statement, e) {
            // The error of a second plan would show the generated name.
            if let Ok(renamed) = state.statement_to_plan(statement).await {
                plan = restore_twin(renamed, &name);
            }
        }
    }
    if plan.is_ok()
        && let Some(alias) = random
    {
        plan = plan_err!(
            "HAVING and QUALIFY cannot use the alias {alias}, because its function returns another value for each use; compute {alias} in a subquery in FROM, and write the condition after WHERE"
        );
    }
    plan.map_err(|e| {
        explain_calls(explain_error(convert_internal_error(e), conditions), state, &unexpanded)
    })
}

/// Rewrites names, stars and lambdas of a statement with the columns of its tables.
async fn write_out_names<S: Visit + VisitMut>(
    ctx: &SessionContext,
    state: &SessionState,
    sql: &mut S,
) -> Result<()> {
    access_own_fields(state, sql);
    shadowed::rename_inner(sql);
    unnamed_queries::name_ambiguous(sql)?;
    star_replaces::check_names(state, sql).await?;
    merged::write_out(state, sql).await?;
    star_excludes::write_out(state, sql).await?;
    column_sets::write_out(state, sql).await?;
    star_names::name_apart(state, sql).await?;
    position_columns::add_position_columns(ctx, sql).await?;
    lambda_bodies::rewrite_bodies(state, sql)?;
    times::cast_in_microseconds(state, sql);
    predicates::as_operators(state, sql);
    recursion_types::check_types(state, sql).await
}
