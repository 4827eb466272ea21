//! Plans a statement, after rewrites that need to know the columns of its tables.

use std::collections::BTreeMap;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::sqlparser::ast::{Query, Visit, VisitMut};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{CopyToSource, Statement};

use crate::sql::base::deep_stack::call_on_deep_stack;
use crate::sql::sources::partition_folders::unquote_partitions;
use crate::sql::statement::columns::{
    column_sets, merged, position_columns, star_excludes, star_names, star_replaces,
};
use crate::sql::statement::commands::nested_values::mark_nested_values;
use crate::sql::statement::errors::hints::explain_error;
use crate::sql::statement::errors::recursion_types;
use crate::sql::statement::errors::wording::convert_internal_error;
use crate::sql::statement::expressions::predicates;
use crate::sql::statement::functions::calls::{explain_calls, find_unexpanded_calls};
use crate::sql::statement::functions::lambda_bodies;
use crate::sql::statement::names::alias_twins::{may_have_twins, rename_twin, restore_twin};
use crate::sql::statement::names::clashing_names::{is_clash, may_clash, name_computed};
use crate::sql::statement::names::outer_fields::{OUTER, access_own_fields};
use crate::sql::statement::names::{outer_tables, select_aliases, shadowed, unnamed_queries};
use crate::sql::statement::plain_queries::is_plain;
use crate::sql::statement::planned_parts::{list_column_names, to_statement};
use crate::sql::workarounds::types::times;

/// Evaluates an expression with the part of a statement that sqlparser has parsed: an SQL
/// statement, or the query of COPY, also below EXPLAIN. The statement and the query have different
/// types, but both are `VisitMut`. Returns `None` for a statement without such a part, such as COPY
/// of a table.
macro_rules! with_sql {
    ($statement:expr, $sql:ident => $value:expr) => {{
        let mut statement: &mut Statement = $statement;
        loop {
            match statement {
                Statement::Statement(inner) => {
                    let $sql = inner.as_mut();
                    break Some($value);
                }
                Statement::CopyTo(copy) => {
                    if let CopyToSource::Query(query) = &mut copy.source {
                        let $sql = query.as_mut();
                        break Some($value);
                    }
                    break None;
                }
                Statement::Explain(explain) => statement = explain.statement.as_mut(),
                Statement::CreateExternalTable(_) | Statement::Reset(_) => break None,
            }
        }
    }};
}
pub(super) use with_sql;

/// Plans a statement, and plans it again if DataFusion has taken columns of outer tables for fields, as `t.a` in
/// `SELECT (SELECT count(*) FROM u WHERE u.a = t.a) FROM t` if `u` has a column `t`.
///
/// The names are qualified only for the second plan, because the columns of `u` must be looked up
/// to qualify them.
pub(super) async fn plan_named(
    ctx: &SessionContext,
    state: &SessionState,
    mut statement: Statement,
    conditions: &[String],
) -> Result<LogicalPlan> {
    let has_outer = !is_plain(&statement)
        && with_sql!(&mut statement, sql => outer_tables::has_outer_names(state, sql))
            == Some(true);
    if !has_outer {
        return Box::pin(plan_prepared(ctx, state, statement, conditions)).await;
    }
    let mut qualified = call_on_deep_stack(|| statement.clone());
    let planned = Box::pin(plan_prepared(ctx, state, statement, conditions)).await;
    if planned.as_ref().is_ok_and(|plan| !outer_tables::has_wrong_field(plan)) {
        return planned;
    }
    let is_qualified = with_sql!(
        &mut qualified,
        sql => Box::pin(outer_tables::name_outer_tables(state, sql)).await
    ) == Some(true);
    if !is_qualified {
        return planned;
    }
    match Box::pin(plan_prepared(ctx, state, qualified, conditions)).await {
        // The message contains the generated qualifier, which the statement does not have, so the
        // result of the first plan is returned.
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
    let plan = Box::pin(plan_named(ctx, state, to_statement(query), &[])).await.ok()?;
    Some(list_column_names(&plan))
}

/// Plans a statement, after rewrites that need to know the columns of its tables. `conditions` are
/// the conditions in the original statement, which error messages show.
async fn plan_prepared(
    ctx: &SessionContext,
    state: &SessionState,
    mut statement: Statement,
    conditions: &[String],
) -> Result<LogicalPlan> {
    let is_plain = is_plain(&statement);
    // Debug builds rewrite plain queries, too, to check that this changes nothing.
    let unexpanded = match is_plain && !cfg!(debug_assertions) {
        true => BTreeMap::new(),
        false => {
            let plain = is_plain.then(|| statement.clone());
            let unexpanded = Box::pin(rewrite_names_and_calls(ctx, state, &mut statement)).await?;
            debug_assert!(
                plain.is_none_or(|plain| plain == statement),
                "a rewrite changes {statement}, so the query is not plain"
            );
            unexpanded
        }
    };
    let random_alias = match is_plain {
        true => None,
        false => with_sql!(&mut statement, sql => select_aliases::find_random_alias(state, sql))
            .flatten(),
    };
    let planned = Box::pin(plan_or_rename(state, statement)).await;
    let planned = planned.and_then(|plan| match random_alias {
        None => Ok(plan),
        Some(alias) => plan_err!(
            "HAVING and QUALIFY cannot use the alias {alias}, because its expression returns another value each time it is computed; compute {alias} in a subquery in FROM, and write the condition after WHERE"
        ),
    });
    planned.map_err(|e| {
        explain_calls(explain_error(convert_internal_error(e), conditions), state, &unexpanded)
    })
}

/// Rewrites the parts of a statement that DataFusion would plan otherwise or not at all. Returns
/// the calls of short forms that are not expanded, for error messages.
async fn rewrite_names_and_calls(
    ctx: &SessionContext,
    state: &SessionState,
    statement: &mut Statement,
) -> Result<BTreeMap<String, String>> {
    with_sql!(&mut *statement, sql => Box::pin(write_out_names(ctx, state, sql)).await?);
    let unexpanded = find_unexpanded_calls(statement);
    unquote_partitions(statement);
    mark_nested_values(statement)?;
    Ok(unexpanded)
}

/// Plans a statement, and plans it once more with other names if DataFusion refuses its names.
///
/// Renames only after an error, because a statement that can be planned must keep the names of its
/// columns.
async fn plan_or_rename(state: &SessionState, mut statement: Statement) -> Result<LogicalPlan> {
    let clashes = with_sql!(&mut statement, sql => may_clash(sql)) == Some(true);
    let has_twins = may_have_twins(&statement);
    let hides_aliases =
        with_sql!(&mut statement, sql => select_aliases::may_hide_aliases(sql)) == Some(true);
    if !(clashes || has_twins || hides_aliases) {
        return state.statement_to_plan(statement).await;
    }
    let mut renamed = call_on_deep_stack(|| statement.clone());
    let refused = match state.statement_to_plan(statement).await {
        Ok(plan) => return Ok(plan),
        Err(e) => e,
    };
    // In `SELECT *, a::VARCHAR FROM t`, DataFusion gives two columns the name `a`, so computed
    // columns get aliases.
    if clashes && is_clash(&refused) {
        with_sql!(&mut renamed, sql => name_computed(sql));
        return state.statement_to_plan(renamed).await;
    }
    // In `SELECT k, sum(a) AS a FROM t GROUP BY k HAVING a > 5`, `a` is the alias, but DataFusion
    // takes it for the column.
    if hides_aliases && select_aliases::is_ungrouped(&refused) {
        let is_replaced = with_sql!(&mut renamed, sql => select_aliases::replace_in_having(state, sql))
            == Some(true);
        if !is_replaced {
            return Err(refused);
        }
        // Returns the first error, because the error of the second plan would not show the alias.
        return state.statement_to_plan(renamed).await.map_err(|_| refused);
    }
    // In `SELECT z, -z AS z FROM t`, a column and an alias have the same name, so the alias gets
    // another name in the plan.
    if let Some(name) = rename_twin(&mut renamed, &refused) {
        return match state.statement_to_plan(renamed).await {
            Ok(plan) => restore_twin(plan, &name),
            // Returns the first error, because the error of the second plan would show the
            // generated name.
            Err(_) => Err(refused),
        };
    }
    Err(refused)
}

/// Rewrites names, stars and lambdas of a statement. These rewrites look up the columns of its
/// tables.
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
