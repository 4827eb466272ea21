//! Parses SQL text and applies rewrites that no hook of DataFusion's planner supports.
//!
//! ```text
//! SQL text
//!  | `parse`              edits of the text: options of COPY and BATCHES, SUMMARIZE, other forms
//!  |                      checks: depth of nesting, numbers joined to names
//!  v                      DataFusion's parser
//! syntax tree
//!  | `prepare_statement`  formats, EXPLAIN; `SyntaxRewriter`: one walk over all expressions and queries
//!  | `plan_here`          1 anew         arguments of EXECUTE; plans views anew
//!  |                      2 clauses, repeated_targets   reject what the planner would ignore
//!  |                      3 outer_fields   `t.s.a` that could be a column of a table `s`
//!  |                        shadowed     names of WITH queries that hide others
//!  |                        unnamed_queries   subqueries in FROM with tables of repeated names
//!  |                      4 star_replaces   checks the names in `* REPLACE`: plans parts
//!  |                        merged       USING, NATURAL: plans parts to learn their columns
//!  |                      5 star_excludes, star_names   `*` with repeated names: plan parts, too
//!  |                        column_sets  `COLUMNS(*)`, `s.*` of structs: plans parts, too
//!  |                      6 position_columns  `_file`, `_row`: looks up tables in the catalog
//!  |                      7 lambda_bodies, times, predicates
//!  v                      DataFusion's planner, again with aliases if names clash (clashing_names,
//!                         alias_twins), and without them in HAVING (select_aliases);
//!                         again from 3 if a column is unknown (select_aliases), or if a name
//!                         may be a column of an outer table (outer_tables);
//!                         its errors get suggestions (hints, calls)
//! logical plan
//!  | `share_ctes`, `check_lists`, `set_headings`, `reset_to_default`, `add_table_rows`
//!  | analyzer and optimizer rules, DataFusion's and those of `sql::rules`
//!  v
//! physical plan           the nodes of `sql::sources` and `sql::exec`
//! ```

mod alias_twins;
pub(in crate::sql) mod anew;
mod by_name;
pub(in crate::sql) mod calls;
mod cast_arguments;
mod change_forms;
mod clashing_names;
pub(in crate::sql) mod clauses;
pub(in crate::sql) mod column_constraints;
mod column_sets;
mod constants;
mod copy_options;
pub(in crate::sql) mod copy_targets;
pub(in crate::sql) mod counterparts;
mod created_tables;
pub(in crate::sql) mod depth;
pub(in crate::sql) mod dialect;
mod distinct_on;
pub(in crate::sql) mod errors;
mod escapes;
pub(in crate::sql) mod expr_rewrites;
mod folding;
pub(in crate::sql) mod forms;
pub(in crate::sql) mod grouping;
pub(in crate::sql) mod headings;
pub(in crate::sql) mod hints;
pub(in crate::sql) mod intervals;
mod join_constraints;
mod joined_numbers;
pub(in crate::sql) mod lambda_bodies;
pub(in crate::sql) mod lateral_tables;
pub(in crate::sql) mod long_numbers;
pub(in crate::sql) mod merged;
mod misplaced_windows;
mod numbered_lambdas;
mod order_aliases;
pub(in crate::sql) mod order_all;
mod outer_fields;
mod outer_tables;
mod own_settings;
mod planned_parts;
pub(in crate::sql) mod position_columns;
pub(in crate::sql) mod predicates;
pub(in crate::sql) mod quantified;
mod recursion_types;
pub(in crate::sql) mod repeated_keys;
mod repeated_targets;
mod row_values;
pub(in crate::sql) mod scopes;
mod select_aliases;
mod select_names;
pub(in crate::sql) mod set_names;
pub(in crate::sql) mod shadowed;
#[cfg(feature = "cli")]
pub(in crate::sql) mod shorthand_docs;
pub(in crate::sql) mod shorthands;
mod star_excludes;
pub(in crate::sql) mod star_names;
mod star_replaces;
pub(in crate::sql) mod syntax_rewriter;
mod text_orders;
pub(in crate::sql) mod tuples;
mod unnamed_queries;
pub(in crate::sql) mod unnest_calls;
pub(in crate::sql) mod unnest_names;
pub(in crate::sql) mod unnest_planner;
pub(in crate::sql) mod windows;

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::plan_err;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{Query, Statement as SqlStatement, Visit, VisitMut};
use datafusion::logical_expr::{CreateView, DdlStatement, LogicalPlan, Statement as PlanStatement};
use datafusion::optimizer::Analyzer;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::parser::{CopyToSource, DFParserBuilder, Statement};

use crate::sql::base::deep_stack::{call_on_deep_stack, run_deep};
use crate::sql::checks::lists::check_lists;
use crate::sql::from::distinct_names::check_distinct_names;
use crate::sql::from::text_rewrites::rewrite_summarize as summarize_text;
use crate::sql::rules::coerce_types;
use crate::sql::sources::partition_folders::unquote_partitions;
#[cfg(feature = "cloud")]
use crate::sql::sources::stores::take_options;
use crate::sql::sources::urls::{check_target, replace_paths};
use crate::sql::statement::alias_twins::{may_have_twins, rename_twin, restore_twin};
use crate::sql::statement::anew::{
    expand_execute, keep_prepared, keep_view, number_parameters, parse_prepare,
    prepares_without_types, refresh_views,
};
use crate::sql::statement::calls::{explain_calls, find_unexpanded_calls};
use crate::sql::statement::change_forms::{write_out_change, write_out_defaults};
use crate::sql::statement::clashing_names::{is_clash, may_clash, name_computed};
use crate::sql::statement::clauses::{find_other_forms, find_pivot, refuse_using_sample};
use crate::sql::statement::column_constraints::drop_nullable_keys;
use crate::sql::statement::copy_options::{
    add_batches_options, list_known_options, suggest_options,
};
use crate::sql::statement::copy_targets::{check_extension, check_format, keep_existing};
use crate::sql::statement::created_tables::{CreatedFromQuery, compute_rows, drop_temporary};
use crate::sql::statement::depth::check_depth;
use crate::sql::statement::dialect::find_parser_dialect;
use crate::sql::statement::errors::convert_internal_error;
use crate::sql::statement::forms::rewrite_known_forms;
use crate::sql::statement::headings::set_headings;
use crate::sql::statement::hints::{explain_error, find_conditions};
use crate::sql::statement::joined_numbers::check_numbers;
use crate::sql::statement::outer_fields::{OUTER, access_own_fields};
use crate::sql::statement::own_settings::reset_to_default;
use crate::sql::statement::row_values::name_inserted_rows;
use crate::sql::statement::syntax_rewriter::rewrite_statement;
use crate::sql::workarounds::shared_rows::share_ctes;
use crate::sql::workarounds::times;

/// Runs one SQL statement.
///
/// This function, or [`parse`] with [`plan`] or [`execute`], is the entry point. DataFusion's `ctx.sql` on
/// the same session uses the session's functions, operators, formats and rules, but plans the statement as
/// its parser returns it. It therefore lacks the following, which needs a rewrite before planning:
///
/// * `a IS DISTINCT FROM b AND c` is `(a IS DISTINCT FROM b) AND c`; `ctx.sql` compares `a` with `b AND c`.
/// * `TIMESTAMP` has microseconds and covers all years; `ctx.sql` plans nanoseconds, which end in 2262.
/// * A column that USING or NATURAL merges has a value even in rows that only one table has.
/// * `t.a` is a column of the table `t`, even next to or within `(SELECT a FROM t)` without an alias.
/// * `t.a` is a column of an outer table `t`, even if an inner table has an integer column `t`.
/// * `t.s.a` is a field of the column `t.s`; `ctx.sql` also reads it as a column of a table `s`.
/// * `LIKE`, `ILIKE`, `IN` and functions of scalars apply to the values of lists.
/// * `year(t)`, `list_min(x)`, `arg_max(x, y)` and other function names of DuckDB are accepted.
/// * FILTER (WHERE x > 3) selects values within lists for `ragged_mean(x)` and other reductions.
/// * Clauses that DataFusion's planner ignores (TABLESAMPLE, FOR UPDATE, ..) are errors.
/// * `FROM t` alone is a query; `ctx.sql` accepts it at the top and in parentheses, not in WITH.
/// * `x = ANY(list)` is NULL if a NULL among the elements may equal `x`.
/// * `f(a = 5)` passes a comparison, not an argument `a`; `len(x)` and `length(x)` count list elements.
/// * Lambdas may contain list literals: `lambda v: [v, 1]`.
/// * `_file` and `_row` are columns of `.nrt` tables in statements that name them; `*` omits them.
/// * `SUMMARIZE t` returns a row per column; `FROM ragged_nest('t', 'key')`, `ragged_explode` and
///   `ragged_axes` accept a query, table or file; `read_parquet('file')` and the like read files.
/// * `FETCH FIRST 3 ROWS ONLY` is `LIMIT 3`, and CREATE TEMP TABLE is CREATE TABLE.
/// * `x[2:]` and `x[:2]` are slices with one bound, with DuckDB's positions: from 1, and the end included.
/// * `ragged_lookup` and `ragged_bin` read tables, views and files of any format.
/// * `COPY .. TO 'x' (FORMAT csv, HEADER false)` works as in DuckDB.
/// * `STORED AS BATCHES (batch 64, ..)` works without the word OPTIONS.
/// * An unknown format after `STORED AS` is an error; DataFusion's COPY uses the file's extension.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ctx = serrate::sql::session();
/// let rows = serrate::sql::sql(&ctx, "WITH t AS (SELECT [4, 2] AS codes) FROM t").await?;
/// assert_eq!(rows.schema().fields().len(), 1);
/// let typo = serrate::sql::sql(&ctx, "COPY (SELECT 1) TO 'x.csv' STORED AS cvs").await;
/// assert!(typo.unwrap_err().to_string().contains("CSV"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the text is not valid SQL, or has no statement or several; otherwise same as [`execute`].
pub async fn sql(ctx: &SessionContext, text: &str) -> Result<DataFrame> {
    let mut statements = parse(ctx, text)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(statement), true) => execute(ctx, statement).await,
        (None, _) => plan_err!("the SQL text has no statement; write one"),
        (Some(_), false) => plan_err!(
            "the SQL text has {} statements, but serrate::sql::sql runs exactly one; split the text with serrate::sql::parse",
            statements.len().saturating_add(1)
        ),
    }
}

/// Splits a text into its statements, ready for [`execute`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serrate::sql::{parse, session};
/// let ctx = session();
/// assert_eq!(parse(&ctx, "CREATE TABLE t AS SELECT [1, 2] AS x; SELECT x FROM t")?.len(), 2);
/// assert!(parse(&ctx, "SELECT [1, 2").is_err());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the text is not valid SQL, or names an unknown format.
pub fn parse(ctx: &SessionContext, text: &str) -> Result<Vec<Statement>> {
    // Borrows the state, because a copy would include the names of all functions.
    let state = ctx.state_ref();
    let state = state.read();
    let options = &state.config_options().sql_parser;
    let Some(dialect) = find_parser_dialect(options.dialect) else {
        return plan_err!(
            "the SQL dialect {} is unknown; set datafusion.sql_parser.dialect to DuckDB or another dialect of DataFusion",
            options.dialect
        );
    };
    let text = add_batches_options(text, dialect.as_ref());
    let text = list_known_options(&text, dialect.as_ref())?;
    let text = rewrite_known_forms(&text, dialect.as_ref());
    let text = summarize_text(&text, dialect.as_ref());
    check_depth(&text, dialect.as_ref(), options.recursion_limit.get())?;
    check_numbers(&text, dialect.as_ref())?;
    let parse = || {
        let parsed = DFParserBuilder::new(text.as_ref())
            .with_dialect(dialect.as_ref())
            // The parser counts several levels per level of `check_depth` and gets a higher limit.
            .with_recursion_limit(options.recursion_limit.get().saturating_mul(4))
            .build()?
            .parse_statements();
        let mut statements: Vec<Statement> = parsed
            .map_err(|e| {
                refuse_using_sample(&text)
                    .or_else(|| find_pivot(&text, dialect.as_ref()))
                    .or_else(|| find_other_forms(&text, dialect.as_ref()))
                    .unwrap_or_else(|| suggest_options(&text, e))
            })?
            .into();
        for statement in &mut statements {
            prepare_statement(&state, statement)?;
        }
        Ok(statements)
    };
    call_on_deep_stack(parse)
}

/// Plans a statement that [`parse`] returned, and executes it if it is DDL or changes the session.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serrate::sql::{execute, parse, session};
/// let ctx = session();
/// for statement in parse(&ctx, "CREATE TABLE t AS SELECT [1, 2] AS x; SELECT ragged_sum(x) FROM t")? {
///     execute(&ctx, statement).await?.collect().await?;
/// }
/// assert!(ctx.table_exist("t")?);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the statement cannot be planned, or is DDL or a change of the session that fails. Errors that occur
/// while the rows of a query are computed come from the returned [`DataFrame`].
pub async fn execute(ctx: &SessionContext, statement: Statement) -> Result<DataFrame> {
    let (plan, state) = plan_with_state(ctx, statement).await?;
    execute_plan(ctx, plan, state).await
}

/// Does the second part of [`execute`]: executes the plan of a statement if it is DDL or changes the session.
pub(crate) async fn execute_plan(
    ctx: &SessionContext,
    mut plan: LogicalPlan,
    state: SessionState,
) -> Result<DataFrame> {
    if let LogicalPlan::Ddl(DdlStatement::CreateView(view)) = &mut plan {
        analyze_view(&state, view)?;
    }
    if let LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)) = &mut plan {
        compute_rows(ctx, &state, table).await?;
    }
    // DataFusion would optimize the query of PREPARE without analysis, and could then panic.
    if let LogicalPlan::Statement(PlanStatement::Prepare(prepare)) = &mut plan {
        let (query, options) = (prepare.input.as_ref().clone(), state.config_options());
        if let Ok(analyzed) = state.analyzer().execute_and_check(query, options, |_, _| {}) {
            prepare.input = Arc::new(analyzed);
        }
    }
    match plan {
        LogicalPlan::Ddl(_) | LogicalPlan::Statement(_) => ctx.execute_logical_plan(plan).await,
        // `execute_logical_plan` would also return this DataFrame, but copy the session state once more.
        plan => Ok(DataFrame::new(state, plan)),
    }
}

/// Coerces the types in the query of CREATE VIEW as in any other query, because DataFusion would
/// coerce them before rules replace expressions. If DataFusion still rejects the query, because it
/// has a subquery that such a rule would replace, this function applies all analyzer rules.
fn analyze_view(state: &SessionState, view: &mut CreateView) -> Result<()> {
    let query = view.input.as_ref().clone();
    if let Ok(coerced) = coerce_types(query.clone()) {
        view.input = Arc::new(coerced);
    }
    let options = state.config_options();
    let stock = Analyzer::with_rules(vec![Arc::new(TypeCoercion::new())]);
    if stock.execute_and_check(view.input.as_ref().clone(), options, |_, _| {}).is_err() {
        view.input = Arc::new(state.analyzer().execute_and_check(query, options, |_, _| {})?);
    }
    Ok(())
}

/// Returns the plan of a statement that [`parse`] returned, for `ctx.execute_logical_plan`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serrate::sql::{parse, plan, session};
/// let ctx = session();
/// let statement = parse(&ctx, "SELECT [1, 2] AS x, 3 AS y")?.remove(0);
/// let plan = plan(&ctx, statement).await?;
/// assert_eq!(plan.schema().fields().len(), 2);
/// let rows = ctx.execute_logical_plan(plan).await?.collect().await?;
/// assert_eq!(rows[0].num_rows(), 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of DataFusion's planner. If a list is used as a scalar, they contain a suggestion.
pub async fn plan(ctx: &SessionContext, statement: Statement) -> Result<LogicalPlan> {
    Ok(plan_with_state(ctx, statement).await?.0)
}

/// Returns the plan of a statement, and the session state with which it was planned.
///
/// DataFusion's planner recurses once per level of the statement and does not check its stack everywhere,
/// so each step runs on a new stack if little remains.
async fn plan_with_state(
    ctx: &SessionContext,
    statement: Statement,
) -> Result<(LogicalPlan, SessionState)> {
    run_deep(async { plan_here(ctx, statement, &mut HashSet::new()).await }).await
}

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

/// Most levels of queries whose aliases are replaced. Without this limit, aliases that double in
/// each round would grow without end.
const ALIAS_ROUNDS: usize = 4;

/// Plans the views of a statement anew, except those in `refreshed`, and then the statement.
async fn plan_here(
    ctx: &SessionContext,
    statement: Statement,
    refreshed: &mut HashSet<String>,
) -> Result<(LogicalPlan, SessionState)> {
    let state = ctx.state();
    let mut statement = expand_execute(&state, statement)?;
    refresh_views(ctx, &state, &statement, refreshed).await?;
    // The definition of a view is its statement before the rewrites of this function.
    let written = match &statement {
        Statement::Statement(inner) if matches!(**inner, SqlStatement::CreateView(_)) => {
            Some((inner.to_string(), statement.clone()))
        }
        _ => None,
    };
    number_parameters(&mut statement);
    let prepared = parse_prepare(&statement);
    let created = CreatedFromQuery::from_statement(&statement);
    let untyped = prepares_without_types(&statement);
    let conditions = find_conditions(&statement);
    by_name::list_columns(ctx, &mut statement, refreshed).await?;
    if let Statement::Statement(inner) = &mut statement {
        write_out_defaults(ctx, inner).await?;
        if let SqlStatement::Insert(insert) = inner.as_mut() {
            name_inserted_rows(ctx, insert).await;
        }
    }
    clauses::check_statement_clauses(&state, &statement)?;
    repeated_targets::check_targets(&statement)?;
    if let Statement::Statement(inner) = &mut statement
        && let SqlStatement::CreateTable(table) = inner.as_mut()
    {
        drop_nullable_keys(&mut table.columns, &mut table.constraints);
    }
    if let Statement::CreateExternalTable(table) = &mut statement {
        drop_nullable_keys(&mut table.columns, &mut table.constraints);
        times::columns_in_microseconds(&state, &mut table.columns);
    }
    let mut reuses = false;
    with_sql!(&mut statement, sql => { reuses = select_aliases::may_reuse(sql); });
    let mut kept = reuses.then(|| call_on_deep_stack(|| statement.clone()));
    let mut planned = Box::pin(plan_named(ctx, &state, statement, &conditions)).await;
    // Each round replaces aliases of one SELECT. A query that reads another query can be planned
    // only after the aliases of the other query are replaced.
    for _ in 0..ALIAS_ROUNDS {
        let (Err(e), Some(statement)) = (&planned, &mut kept) else { break };
        if !select_aliases::is_unknown_column(e) {
            break;
        }
        let mut is_replaced = false;
        with_sql!(statement, sql => {
            is_replaced = Box::pin(select_aliases::replace_in_statement(ctx, &state, sql)).await;
        });
        if !is_replaced {
            break;
        }
        let again = call_on_deep_stack(|| statement.clone());
        planned = Box::pin(plan_named(ctx, &state, again, &conditions)).await;
    }
    let plan = planned?;
    let mut plan = share_ctes(&state, plan)?;
    if let LogicalPlan::Ddl(DdlStatement::CreateView(view)) = &mut plan
        && let Some((definition, created)) = written
    {
        keep_view(&state, &view.name, &definition, created);
        view.definition = Some(definition);
    }
    // Drops the types of parameters if one was not inferred, as in `LIMIT $1`; EXECUTE needs none.
    if let LogicalPlan::Statement(PlanStatement::Prepare(prepare)) = &mut plan
        && untyped
        && prepare.input.get_parameter_names()?.len() != prepare.fields.len()
    {
        prepare.fields.clear();
    }
    if let Some(prepared) = prepared {
        keep_prepared(&state, prepared);
    }
    check_lists(&plan)?;
    let mut plan = replace_paths(&state, reset_to_default(set_headings(plan)?)?);
    if let Some(created) = created {
        plan = created.add_table_rows(plan)?;
    }
    if let LogicalPlan::Copy(copy) = &plan {
        check_target(&ListingTableUrl::parse(&copy.output_url)?)?;
        check_distinct_names("COPY", copy.input.schema())?;
    }
    Ok((plan, state))
}

/// Plans a statement, and plans it again if DataFusion has taken columns of outer tables for fields.
async fn plan_named(
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
async fn plan_rewritten_names(
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

fn prepare_statement(state: &SessionState, statement: &mut Statement) -> Result<()> {
    match statement {
        Statement::Statement(statement) => {
            write_out_change(statement)?;
            drop_temporary(statement);
            rewrite_statement(statement)?;
        }
        Statement::CopyTo(copy) => {
            if let Some(format) = &copy.stored_as {
                check_format(state, format)?;
                check_extension(copy, format)?;
            }
            #[cfg(feature = "cloud")]
            take_options(state, std::slice::from_ref(&copy.target), &mut copy.options)?;
            keep_existing(state, copy)?;
            if let CopyToSource::Query(query) = &mut copy.source {
                rewrite_statement(query)?;
            }
        }
        Statement::CreateExternalTable(table) => {
            check_format(state, &table.file_type)?;
            #[cfg(feature = "cloud")]
            take_options(state, &table.locations, &mut table.options)?;
        }
        Statement::Explain(explain) => {
            if let Statement::Statement(inner) = explain.statement.as_mut() {
                write_out_change(inner)?;
            }
            // Planning DELETE, UPDATE or TRUNCATE changes tables in memory, so EXPLAIN would, too.
            if let Statement::Statement(inner) = explain.statement.as_ref()
                && matches!(
                    inner.as_ref(),
                    SqlStatement::Delete(_) | SqlStatement::Update(_) | SqlStatement::Truncate(_)
                )
            {
                return plan_err!(
                    "EXPLAIN of DELETE, UPDATE and TRUNCATE is not supported; write EXPLAIN SELECT with the same condition, or remove EXPLAIN to run the statement"
                );
            }
            prepare_statement(state, &mut explain.statement)?;
        }
        Statement::Reset(_) => {}
    }
    Ok(())
}
