//! Plans a statement, after rewrites that need to know the columns of its tables.

use std::collections::BTreeMap;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::sqlparser::ast::{Query, Visit, VisitMut};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;

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
use crate::sql::statement::sql_parts::with_sql;
use crate::sql::statement::syntax_facts::SyntaxFacts;
use crate::sql::workarounds::types::times;

/// Plans a statement, and plans it again if DataFusion has taken columns of outer tables for
/// fields, as `t.a` in `SELECT (SELECT count(*) FROM u WHERE u.a = t.a) FROM t` if `u` has a column
/// `t`.
///
/// The names are qualified only for the second plan, because the columns of `u` must be looked up
/// to qualify them.
pub(super) async fn plan_with_outer_names(
    ctx: &SessionContext,
    state: &SessionState,
    mut statement: Statement,
    conditions: &[String],
) -> Result<LogicalPlan> {
    let facts = match is_plain(&statement) {
        true => SyntaxFacts::default(),
        false => find_facts(&statement),
    };
    // An outer table is a table of a query around another query.
    let may_have_outer = facts.has_nested_queries && facts.has_qualified_names;
    let has_outer = (may_have_outer || cfg!(debug_assertions))
        && with_sql!(&mut statement, sql => outer_tables::has_outer_names(state, sql))
            == Some(true);
    debug_assert!(may_have_outer || !has_outer, "{statement} has names of outer tables");
    if !has_outer {
        return Box::pin(rewrite_and_plan(ctx, state, statement, facts, conditions)).await;
    }
    let mut qualified = call_on_deep_stack(|| statement.clone());
    let planned = Box::pin(rewrite_and_plan(ctx, state, statement, facts, conditions)).await;
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
    let facts = find_facts(&qualified);
    match Box::pin(rewrite_and_plan(ctx, state, qualified, facts, conditions)).await {
        // The message contains the generated qualifier, which the statement does not have, so the
        // result of the first plan is returned.
        Err(e) if e.to_string().contains(OUTER) => planned,
        again => again,
    }
}

/// Rewrites and plans a query, and returns the names of its columns, or `None` if it cannot be
/// planned.
pub(super) async fn plan_rewritten_names(
    ctx: &SessionContext,
    state: &SessionState,
    query: Query,
) -> Option<Vec<String>> {
    let plan = Box::pin(plan_with_outer_names(ctx, state, to_statement(query), &[])).await.ok()?;
    Some(list_column_names(&plan))
}

fn find_facts(statement: &Statement) -> SyntaxFacts {
    with_sql!(statement, sql => SyntaxFacts::find_in(sql)).unwrap_or(SyntaxFacts::ALL)
}

/// Plans a statement, after rewrites that need to know the columns of its tables. `facts` are those
/// of the statement. `conditions` are the conditions in the original statement, which error
/// messages show.
async fn rewrite_and_plan(
    ctx: &SessionContext,
    state: &SessionState,
    mut statement: Statement,
    facts: SyntaxFacts,
    conditions: &[String],
) -> Result<LogicalPlan> {
    let is_plain = is_plain(&statement);
    // Debug builds rewrite plain queries, too, to check that this changes nothing.
    let unexpanded = match is_plain && !cfg!(debug_assertions) {
        true => BTreeMap::new(),
        false => {
            let plain = is_plain.then(|| statement.clone());
            let rewritten = rewrite_names_and_calls(ctx, state, &mut statement, facts);
            let unexpanded = Box::pin(rewritten).await?;
            debug_assert!(
                plain.is_none_or(|plain| plain == statement),
                "a rewrite changes {statement}, so the query is not plain"
            );
            unexpanded
        }
    };
    let random_alias = match facts.has_conditions || cfg!(debug_assertions) {
        true => with_sql!(&mut statement, sql => select_aliases::find_random_alias(state, sql))
            .flatten(),
        false => None,
    };
    debug_assert!(facts.has_conditions || random_alias.is_none(), "{statement} has a condition");
    let planned = Box::pin(plan_or_rename(state, statement, facts)).await;
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
    facts: SyntaxFacts,
) -> Result<BTreeMap<String, String>> {
    let facts = with_sql!(
        &mut *statement,
        sql => Box::pin(write_out_names(ctx, state, sql, facts)).await?
    );
    let has_calls = facts.is_none_or(|facts| facts.has_calls);
    let unexpanded = match has_calls || cfg!(debug_assertions) {
        true => find_unexpanded_calls(statement),
        false => BTreeMap::new(),
    };
    debug_assert!(has_calls || unexpanded.is_empty(), "{statement} has calls");
    unquote_partitions(statement);
    mark_nested_values(statement)?;
    Ok(unexpanded)
}

/// Plans a statement, and plans it once more with other names if DataFusion refuses its names.
///
/// Renames only after an error, because a statement that can be planned must keep the names of its
/// columns.
async fn plan_or_rename(
    state: &SessionState,
    mut statement: Statement,
    facts: SyntaxFacts,
) -> Result<LogicalPlan> {
    let clashes = with_sql!(&mut statement, sql => may_clash(sql)) == Some(true);
    let has_twins = may_have_twins(&statement);
    let hides_aliases = (facts.has_conditions || cfg!(debug_assertions))
        && with_sql!(&mut statement, sql => select_aliases::may_hide_aliases(sql)) == Some(true);
    debug_assert!(facts.has_conditions || !hides_aliases, "{statement} has a condition");
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

/// Applies a rewrite if a statement has what the rewrite concerns. Builds with debug assertions
/// apply it always, and fail if it changes a statement for which it would be skipped.
macro_rules! rewrite_if {
    ($is_needed:expr, $sql:ident, $rewrite:expr) => {{
        let is_needed = $is_needed;
        if is_needed || cfg!(debug_assertions) {
            #[cfg(debug_assertions)]
            let before = (!is_needed).then(|| $sql.clone());
            $rewrite;
            #[cfg(debug_assertions)]
            assert!(
                before.is_none_or(|before| before == *$sql),
                "{} changes a statement for which it is skipped; correct SyntaxFacts",
                stringify!($rewrite)
            );
        }
    }};
}

/// Rewrites names, stars and lambdas of a statement. These rewrites look up the columns of its
/// tables. `facts` are those of the statement. Returns the facts of the statement before the last
/// rewrites, which add no calls to a statement without calls.
async fn write_out_names<S: Clone + PartialEq + Visit + VisitMut>(
    ctx: &SessionContext,
    state: &SessionState,
    sql: &mut S,
    facts: SyntaxFacts,
) -> Result<SyntaxFacts> {
    let has_stars = facts.has_stars || facts.has_merging_joins;
    rewrite_if!(facts.has_fields, sql, access_own_fields(state, sql));
    rewrite_if!(facts.has_with, sql, shadowed::rename_inner(sql));
    rewrite_if!(facts.has_unnamed_queries, sql, unnamed_queries::name_ambiguous(sql)?);
    rewrite_if!(has_stars, sql, star_replaces::check_names(state, sql).await?);
    rewrite_if!(facts.has_merging_joins, sql, merged::write_out(state, sql).await?);
    rewrite_if!(has_stars, sql, star_excludes::write_out(state, sql).await?);
    rewrite_if!(has_stars, sql, column_sets::write_out(state, sql).await?);
    rewrite_if!(has_stars, sql, star_names::name_apart(state, sql).await?);
    // These rewrites may have added names and calls.
    let facts = match facts.has_fields || facts.has_with || facts.has_unnamed_queries || has_stars {
        true => SyntaxFacts::find_in(&*sql),
        false => facts,
    };
    let has_positions = facts.has_positions || facts.has_merging_joins;
    rewrite_if!(has_positions, sql, position_columns::add_position_columns(ctx, sql).await?);
    rewrite_if!(facts.has_lambdas, sql, lambda_bodies::rewrite_bodies(state, sql)?);
    rewrite_if!(facts.has_casts, sql, times::cast_in_microseconds(state, sql));
    let has_predicates =
        facts.has_calls || facts.has_casts || facts.has_long_numbers || facts.has_predicates;
    rewrite_if!(has_predicates, sql, predicates::as_operators(state, sql));
    rewrite_if!(facts.has_with, sql, recursion_types::check_types(state, sql).await?);
    Ok(facts)
}
