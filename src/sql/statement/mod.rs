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
//!  |                      6 positions    `_file`, `_row`: looks up tables in the catalog
//!  |                      7 lambdas, times, predicates
//!  v                      DataFusion's planner, again with aliases if names clash (clashing_names,
//!                         alias_twins);
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
mod joined_numbers;
pub(in crate::sql) mod lateral;
pub(in crate::sql) mod long_numbers;
pub(in crate::sql) mod merged;
mod misplaced_windows;
pub(in crate::sql) mod modifiers;
mod numbered_lambdas;
mod order_aliases;
pub(in crate::sql) mod order_all;
mod outer_fields;
mod outer_tables;
mod own_settings;
pub(in crate::sql) mod positions;
pub(in crate::sql) mod predicates;
pub(in crate::sql) mod quantified;
mod recursions;
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
mod text_orders;
pub(in crate::sql) mod tuples;
mod unnamed_queries;
pub(in crate::sql) mod unnest_names;
pub(in crate::sql) mod windows;

use std::any::Any;
use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    Expr as SqlExpr, Query, Select, SelectFlavor, SelectItem, SetExpr, Statement as SqlStatement,
    TableFactor, Visit, VisitMut, VisitorMut, WildcardAdditionalOptions,
};
use datafusion::logical_expr::sqlparser::dialect::Dialect as SqlDialect;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, Tokenizer};
use datafusion::logical_expr::{
    CreateView, DdlStatement, Expr, LogicalPlan, LogicalPlanBuilder, Statement as PlanStatement,
    col,
};
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::optimizer::{Analyzer, AnalyzerRule};
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::parser::{CopyToSource, CopyToStatement, DFParserBuilder, Statement};

use crate::access;
use crate::sql::rules::coerce_types;
use crate::sql::sources::dok::DokFormatFactory;
use crate::sql::sources::from::{check_distinct_names, rewrite_factor, summarize_text};
use crate::sql::sources::nrt::NrtFormatFactory;
use crate::sql::sources::parquet::ParquetFileFormatFactory;
use crate::sql::sources::partition_folders::unquote_partitions;
use crate::sql::sources::relation::as_unnest;
use crate::sql::sources::safetensors::SafetensorsFormatFactory;
#[cfg(feature = "cloud")]
use crate::sql::sources::stores::take_options;
use crate::sql::sources::training::BATCHES;
use crate::sql::sources::urls::{check_target, replace_paths};
use crate::sql::sources::whole::WholeFileFormatFactory;
use crate::sql::statement::alias_twins::{may_have_twins, rename_twin, restore_twin};
use crate::sql::statement::anew::{
    expand_execute, keep_prepared, keep_view, number_parameters, parse_prepare,
    prepares_without_types, refresh_views,
};
use crate::sql::statement::calls::{explain_calls, unexpanded_calls};
use crate::sql::statement::cast_arguments::{tell_casts_apart, tell_expansions_apart};
use crate::sql::statement::change_forms::{write_out_change, write_out_defaults};
use crate::sql::statement::clashing_names::{is_clash, may_clash, name_computed};
use crate::sql::statement::clauses::{find_other_forms, find_pivot, using_sample};
use crate::sql::statement::column_constraints::drop_nullable_keys;
use crate::sql::statement::constants::{double_casts, rewrite_constants, type_strings};
use crate::sql::statement::copy_options::known_options;
use crate::sql::statement::created_tables::{CreatedFromQuery, compute_rows, drop_temporary};
use crate::sql::statement::depth::{balance_chains, call_on_deep_stack, check_depth, run_deep};
use crate::sql::statement::dialect::parser_dialect;
use crate::sql::statement::errors::convert_internal_error;
use crate::sql::statement::escapes::use_backslash;
use crate::sql::statement::expr_rewrites::{name_outer_elements, read_comparisons, rewrite_expr};
use crate::sql::statement::forms::{known_forms, limit_to_fetched, semi_joins};
use crate::sql::statement::grouping::{
    cast_grouped_integers, group_constants_together, write_out_sets,
};
use crate::sql::statement::headings::set_headings;
use crate::sql::statement::hints::{check_lists, explain_error, find_conditions};
use crate::sql::statement::intervals::write_interval;
use crate::sql::statement::joined_numbers::check_numbers;
use crate::sql::statement::lateral::{
    join_after_comma, mark_query, name_outer_columns, select_queries_in_values, select_values,
};
use crate::sql::statement::merged::select_merged;
use crate::sql::statement::numbered_lambdas::write_out_positions;
use crate::sql::statement::order_aliases::order_by_columns;
use crate::sql::statement::outer_fields::{OUTER, access_outer_fields, access_own_fields};
use crate::sql::statement::own_settings::reset_to_default;
use crate::sql::statement::quantified::{find_in_lists, name_quantified, write_out_quantified};
use crate::sql::statement::row_values::{name_cast_rows, name_inserted_rows};
use crate::sql::statement::select_names::normalize_names;
use crate::sql::statement::set_names::{add_identifiers, name_apart, name_repeated};
use crate::sql::statement::shorthands::{expand_shorthand, name_shorthands};
use crate::sql::statement::text_orders::sort_texts_apart;
use crate::sql::statement::tuples::rewrite_tuples;
use crate::sql::statement::unnest_names::separate_names;
use crate::sql::statement::windows::write_out_windows;
use crate::sql::workarounds::lambdas;
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
    let Some(dialect) = parser_dialect(options.dialect) else {
        return plan_err!(
            "the SQL dialect {} is unknown; set datafusion.sql_parser.dialect to DuckDB or another dialect of DataFusion",
            options.dialect
        );
    };
    let text = batches_options(text, dialect.as_ref());
    let text = known_options(&text, dialect.as_ref())?;
    let text = known_forms(&text, dialect.as_ref());
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
                using_sample(&text)
                    .or_else(|| find_pivot(&text, dialect.as_ref()))
                    .or_else(|| find_other_forms(&text, dialect.as_ref()))
                    .unwrap_or_else(|| copy_options(&text, e))
            })?
            .into();
        for statement in &mut statements {
            prepare_statement(&state, statement)?;
        }
        Ok(statements)
    };
    call_on_deep_stack(parse)
}

/// Adds a suggestion to a parser error about options of COPY that use the syntax of another engine.
fn copy_options(text: &str, e: DataFusionError) -> DataFusionError {
    let message = match e.find_root() {
        DataFusionError::SQL(e, _) => e.to_string(),
        _ => return e,
    };
    let copies = text.split_whitespace().any(|word| word.eq_ignore_ascii_case("COPY"));
    // The parser reports `found: (` for options written as `(FORMAT csv, HEADER)` or `WITH (HEADER)`.
    if !copies || !message.contains("found: (") {
        return e;
    }
    let message = message.trim_start_matches("sql parser error: ");
    plan_datafusion_err!(
        "{message}; write the options of COPY as in COPY .. TO 'x.csv' OPTIONS (format.has_header true), and choose the format by the file extension or as in COPY .. TO 'x' STORED AS CSV"
    )
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
            is_replaced = Box::pin(select_aliases::replace(&state, sql)).await;
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

/// Rewrites a statement with the columns of its tables, and plans it. `conditions` are the
/// conditions in the original statement.
async fn plan_prepared(
    ctx: &SessionContext,
    state: &SessionState,
    mut statement: Statement,
    conditions: &[String],
) -> Result<LogicalPlan> {
    with_sql!(&mut statement, sql => { Box::pin(write_out_names(ctx, state, sql)).await?; });
    let unexpanded = unexpanded_calls(&statement);
    unquote_partitions(&mut statement);
    let mut clashes = false;
    with_sql!(&mut statement, sql => { clashes = may_clash(sql); });
    let has_twins = may_have_twins(&statement);
    let kept = (clashes || has_twins).then(|| call_on_deep_stack(|| statement.clone()));
    let mut plan = state.statement_to_plan(statement).await;
    if let (Err(e), Some(mut statement)) = (&plan, kept) {
        if clashes && is_clash(e) {
            with_sql!(&mut statement, sql => { name_computed(sql); });
            plan = state.statement_to_plan(statement).await;
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
    positions::add_position_columns(ctx, sql).await?;
    lambdas::rewrite_bodies(state, sql)?;
    times::cast_in_microseconds(state, sql);
    predicates::as_operators(state, sql);
    recursions::check_types(state, sql).await
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

/// Whether the writer of a format itself returns an error for an existing file, unless `overwrite` is set.
fn is_careful(state: &SessionState, format: &str) -> bool {
    let Some(factory) = state.get_file_format_factory(format) else { return false };
    let factory: &dyn Any = factory.as_ref();
    factory.is::<NrtFormatFactory>()
        || factory.is::<DokFormatFactory>()
        || factory.is::<SafetensorsFormatFactory>()
        || factory.is::<ParquetFileFormatFactory>()
        || factory.is::<WholeFileFormatFactory>()
}

/// Returns an error if COPY would replace an existing file in a format that DataFusion writes, unless
/// `OPTIONS (overwrite true)` is given. Removes that option, which DataFusion does not accept.
fn keep_existing(state: &SessionState, copy: &mut CopyToStatement) -> Result<()> {
    let path = copy.target.strip_prefix("file://").unwrap_or(&copy.target);
    if path.contains("://") {
        // `UploadPlanner` checks for an existing object.
        return Ok(());
    }
    let path = std::path::Path::new(path);
    let extension = path.extension().map(|e| e.to_string_lossy().into_owned());
    if copy.stored_as.as_ref().is_some_and(|f| f.eq_ignore_ascii_case(BATCHES)) {
        // BATCHES writes a folder, even without a trailing slash, and checks for existing files itself.
        return Ok(());
    }
    let format = copy.stored_as.clone().or(extension).unwrap_or_default().to_ascii_lowercase();
    let is_ours = |key: &str| {
        key.eq_ignore_ascii_case("overwrite") || key.eq_ignore_ascii_case("format.overwrite")
    };
    // Whether the options are for DataFusion's Parquet writer, which replaces existing files.
    let stock = format == "parquet" && copy.options.iter().any(|(key, _)| !is_ours(key));
    if is_careful(state, &format) && !access::is_dir(path) && !stock {
        return Ok(());
    }
    let mut overwrite = false;
    copy.options.retain(|(key, value)| {
        let ours = is_ours(key);
        overwrite |= ours && value.to_string().trim_matches('\'').eq_ignore_ascii_case("true");
        !ours
    });
    if access::is_file(path) && !overwrite {
        return Err(crate::Error::Exists(path.into()).into());
    }
    if access::is_dir(path) && overwrite {
        return plan_err!(
            "the option overwrite of COPY replaces one file, but {} is a folder, to which COPY adds files; remove the folder first, or omit the option to keep the files in the folder",
            path.display()
        );
    }
    Ok(())
}

fn check_format(state: &SessionState, format: &str) -> Result<()> {
    if state.get_file_format_factory(format).is_some()
        || state.table_factories().contains_key(&format.to_uppercase())
    {
        return Ok(());
    }
    plan_err!("the format {format} is unknown; STORED AS accepts {}", known_formats(state))
}

/// Returns an error if COPY writes one file and its name has the extension of another format: a reader
/// chooses the format by the extension.
fn check_extension(copy: &CopyToStatement, format: &str) -> Result<()> {
    let written = of_extension(format);
    let path = std::path::Path::new(&copy.target);
    let named = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    let named = named.filter(|_| copy.partitioned_by.is_empty() && !copy.target.ends_with('/'));
    match named {
        // An extension that no format has, such as `.bak`, is accepted.
        Some(named) if of_extension(&named).is_some_and(|of| written.is_some_and(|w| w != of)) => {
            plan_err!(
                "COPY writes the format {format} to {}, but its name has the extension .{named} of another format; use the extension .{}, or remove STORED AS {format}",
                copy.target,
                written.unwrap_or_default()
            )
        }
        _ => Ok(()),
    }
}

/// Returns the usual extension of files in a format that is named by STORED AS or by an extension.
fn of_extension(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        "nrt" => "nrt",
        "parquet" => "parquet",
        "csv" => "csv",
        "arrow" | "ipc" | "feather" | "arrows" => "arrow",
        "json" | "ndjson" | "jsonl" => "json",
        "safetensors" | "dok" => "safetensors",
        _ => return None,
    })
}

/// Returns the names of the formats that STORED AS accepts, separated by commas.
pub(in crate::sql) fn known_formats(state: &SessionState) -> String {
    let mut known: Vec<&str> = state
        .table_factories()
        .keys()
        .map(String::as_str)
        .filter(|name| state.get_file_format_factory(name).is_some())
        .collect();
    known.sort_unstable();
    known.join(", ")
}

/// Inserts OPTIONS between `STORED AS BATCHES` and its parenthesis.
fn batches_options<'a>(text: &'a str, dialect: &dyn SqlDialect) -> Cow<'a, str> {
    if !text.to_ascii_lowercase().contains(BATCHES) {
        return Cow::Borrowed(text);
    }
    // An invalid text stays unchanged. The parser reports the error later.
    let Ok(tokens) = Tokenizer::new(dialect, text).tokenize_with_location() else {
        return Cow::Borrowed(text);
    };
    let tokens: Vec<_> =
        tokens.iter().filter(|t| !matches!(t.token, Token::Whitespace(_))).collect();
    let word = |token: &Token, word: &str| matches!(token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word));
    let mut places = Vec::new();
    for four in tokens.windows(4) {
        if let [stored, alias, batches, open] = four
            && word(&stored.token, "stored")
            && word(&alias.token, "as")
            && word(&batches.token, BATCHES)
            && open.token == Token::LParen
        {
            places.push((open.span.start.line, open.span.start.column));
        }
    }
    if places.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + places.len() * 8);
    for (line, number) in text.split_inclusive('\n').zip(1u64..) {
        for (c, column) in line.chars().zip(1u64..) {
            if places.contains(&(number, column)) {
                out.push_str(" OPTIONS ");
            }
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Rewrites syntax that the parser or planner does not support.
struct SyntaxRewriter;

impl VisitorMut for SyntaxRewriter {
    type Break = DataFusionError;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<DataFusionError> {
        if matches!(select.flavor, SelectFlavor::FromFirstNoSelect) && select.projection.is_empty()
        {
            select.projection.push(SelectItem::Wildcard(WildcardAdditionalOptions::default()));
            select.flavor = SelectFlavor::FromFirst;
        }
        if let Err(e) = normalize_names(select) {
            return ControlFlow::Break(e);
        }
        select.from.iter_mut().for_each(semi_joins);
        join_after_comma(&mut select.from);
        cast_grouped_integers(select);
        if let Err(e) = write_out_sets(select) {
            return ControlFlow::Break(e);
        }
        if let Some(condition) = &mut select.selection {
            find_in_lists(condition);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<DataFusionError> {
        group_constants_together(select);
        as_flow(separate_names(select))
    }

    fn pre_visit_table_factor(
        &mut self,
        relation: &mut TableFactor,
    ) -> ControlFlow<DataFusionError> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = relation {
            semi_joins(table_with_joins);
        }
        if let Some(unnest) = as_unnest(relation) {
            *relation = unnest;
        }
        name_outer_elements(relation);
        name_outer_columns(relation);
        as_flow(
            select_merged(relation)
                .and_then(|()| rewrite_factor(relation))
                .and_then(|()| select_values(relation)),
        )
    }

    fn post_visit_table_factor(
        &mut self,
        relation: &mut TableFactor,
    ) -> ControlFlow<DataFusionError> {
        as_flow(mark_query(relation))
    }

    fn pre_visit_expr(&mut self, expr: &mut SqlExpr) -> ControlFlow<DataFusionError> {
        balance_chains(expr);
        repeated_keys::drop_in_call(expr);
        write_out_quantified(expr);
        read_comparisons(expr);
        expand_shorthand(expr);
        write_interval(expr);
        use_backslash(expr);
        name_cast_rows(expr);
        as_flow(
            rewrite_tuples(expr)
                .and_then(|()| write_out_positions(expr))
                .and_then(|()| rewrite_expr(expr)),
        )
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        order_all::number_columns(query);
        let checked = distinct_on::check_unnest(query);
        distinct_on::number_rows(query);
        as_flow(
            checked
                .and_then(|()| limit_to_fetched(query))
                .and_then(|()| select_queries_in_values(query))
                .and_then(|()| name_columns(query)),
        )
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        repeated_keys::drop_in_query(query);
        if let Err(e) = write_out_windows(query) {
            return ControlFlow::Break(e);
        }
        tell_expansions_apart(query);
        ControlFlow::Continue(())
    }
}

/// Gives result columns unique names: their expressions as the statement has them.
fn name_columns(query: &mut Query) -> Result<()> {
    order_by_columns(query)?;
    let mut ordered = HashSet::new();
    add_identifiers(&query.order_by, &mut ordered);
    let mut bodies = vec![query.body.as_ref()];
    while let Some(body) = bodies.pop() {
        match body {
            SetExpr::Query(inner) => {
                add_identifiers(&inner.order_by, &mut ordered);
                bodies.push(inner.body.as_ref());
            }
            SetExpr::SetOperation { left, right, .. } => bodies.extend([&**left, &**right]),
            _ => {}
        }
    }
    let mut bodies = vec![query.body.as_mut()];
    while let Some(body) = bodies.pop() {
        match body {
            SetExpr::Select(select) => {
                select.projection.iter_mut().for_each(name_quantified);
                rewrite_constants(select)?;
                name_repeated(select, &ordered);
                sort_texts_apart(select);
            }
            SetExpr::Query(inner) => bodies.push(inner.body.as_mut()),
            SetExpr::SetOperation { left, right, .. } => {
                bodies.extend([left.as_mut(), right.as_mut()]);
            }
            _ => {}
        }
    }
    name_shorthands(query);
    double_casts(query);
    type_strings(query);
    if let Query { body, order_by, .. } = query
        && let SetExpr::Select(select) = body.as_mut()
    {
        tell_casts_apart(select, order_by.as_mut());
    }
    let mut bodies = vec![query.body.as_mut()];
    while let Some(body) = bodies.pop() {
        name_apart(body, &ordered);
        if let SetExpr::SetOperation { left, right, .. } = body {
            for input in [left.as_mut(), right.as_mut()] {
                if let SetExpr::Select(select) = input {
                    tell_casts_apart(select, None);
                }
                bodies.push(input);
            }
        }
    }
    Ok(())
}

fn as_flow(done: Result<()>) -> ControlFlow<DataFusionError> {
    match done {
        Ok(()) => ControlFlow::Continue(()),
        Err(e) => ControlFlow::Break(e),
    }
}

fn rewrite_statement<S: VisitMut + ?Sized>(statement: &mut S) -> Result<()> {
    access_outer_fields(statement);
    match statement.visit(&mut SyntaxRewriter) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(e) => Err(e),
    }
}

/// Rewrites syntax that the planner does not support, in a query that a relation planner receives.
pub(in crate::sql) fn rewrite_query(query: &mut Query) -> Result<()> {
    rewrite_statement(query)
}

/// Analyzer rule for statements of `ctx.sql`: makes `FROM t` select all columns. The planner converts `FROM
/// t` to a projection without expressions, which nothing else creates in this dialect.
#[derive(Debug)]
pub(in crate::sql) struct FromAlone;

impl AnalyzerRule for FromAlone {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let alone = |plan: &LogicalPlan| {
            matches!(plan, LogicalPlan::Projection(p)
                if p.expr.is_empty() && !p.input.schema().fields().is_empty())
        };
        if !plan.exists(|node| Ok(alone(node)))? {
            return Ok(plan);
        }
        let plan = plan.transform_up(|node| match node {
            LogicalPlan::Projection(projection)
                if projection.expr.is_empty() && !projection.input.schema().fields().is_empty() =>
            {
                let all: Vec<Expr> =
                    projection.input.schema().columns().into_iter().map(col).collect();
                LogicalPlanBuilder::from(projection.input)
                    .project(all)?
                    .build()
                    .map(Transformed::yes)
            }
            other => other.recompute_schema().map(Transformed::yes),
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "serrate_from_alone"
    }
}
