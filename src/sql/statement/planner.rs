//! Parses the statements of a text, plans them and runs them.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::plan_err;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::Statement as SqlStatement;
use datafusion::logical_expr::{CreateView, DdlStatement, LogicalPlan, Statement as PlanStatement};
use datafusion::optimizer::Analyzer;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::parser::{CopyToSource, DFParserBuilder, Statement};

use crate::sql::base::deep_stack::{call_on_deep_stack, run_deep};
use crate::sql::checks::list_uses::check_lists;
use crate::sql::checks::number_times::refuse_number_times;
use crate::sql::from::distinct_names::check_distinct_names;
use crate::sql::from::path_tables::open_paths_with;
use crate::sql::from::text_rewrites::rewrite_summarize;
use crate::sql::rules::coerce_types;
#[cfg(feature = "cloud")]
use crate::sql::sources::stores::take_options;
use crate::sql::sources::urls::{check_target, make_target_url, replace_paths};
use crate::sql::statement::commands::change_forms::{write_out_change, write_out_defaults};
use crate::sql::statement::commands::column_constraints::drop_nullable_keys;
use crate::sql::statement::commands::copy_targets::{
    check_execution_options, check_extension, check_format, check_repeated_options, keep_existing,
};
use crate::sql::statement::commands::created_tables::{
    CreatedFromQuery, compute_rows, drop_temporary,
};
use crate::sql::statement::commands::listed_tables::write_out_show;
use crate::sql::statement::commands::own_settings::reset_to_default;
use crate::sql::statement::commands::replaced_kinds::refuse_other_kind;
use crate::sql::statement::commands::row_structs::name_inserted_rows;
use crate::sql::statement::commands::time_values::{
    WrittenCasts, check_written_times, refuse_number_rows,
};
use crate::sql::statement::commands::unlisted_columns::refuse_unlisted_columns;
use crate::sql::statement::commands::update_targets::write_out_targets;
use crate::sql::statement::commands::written_decimals::{
    cast_assigned_numbers, cast_inserted_numbers,
};
use crate::sql::statement::commands::written_tensors::check_written_tensors;
use crate::sql::statement::errors::clauses::{self, find_other_forms, refuse_using_sample};
use crate::sql::statement::errors::hints::WrittenTexts;
use crate::sql::statement::errors::misplaced_windows::find_window_alias;
use crate::sql::statement::errors::table_clauses::find_pivot;
use crate::sql::statement::keys::prepared_distinct::replace_distinct_on;
use crate::sql::statement::names::headings::set_headings;
use crate::sql::statement::names::select_aliases;
use crate::sql::statement::parsing::copy_options::{
    add_batches_options, list_known_options, suggest_options,
};
use crate::sql::statement::parsing::depth::check_depth;
use crate::sql::statement::parsing::dialect::find_parser_dialect;
use crate::sql::statement::parsing::forms::rewrite_known_forms;
use crate::sql::statement::parsing::implied_parentheses::add_parentheses;
use crate::sql::statement::parsing::joined_numbers::check_numbers;
use crate::sql::statement::plain_queries::{is_plain, is_simple};
use crate::sql::statement::plan_once::plan_with_outer_names;
use crate::sql::statement::replanned::{
    KeptStatement, expand_execute, is_prepare, keep_prepared, keep_view, number_parameters,
    parse_prepare, prepares_without_types, refresh_views,
};
use crate::sql::statement::sql_parts::with_sql;
use crate::sql::statement::syntax_rewriter::rewrite_statement;
use crate::sql::statement::{alias_rounds, by_name};
use crate::sql::workarounds::subqueries::shared_rows::share_ctes;
use crate::sql::workarounds::types::times;

/// Runs one SQL statement.
///
/// This function, or [`parse`] with [`plan`] or [`execute`], is the entry point. DataFusion's
/// `ctx.sql` on the same session uses the session's functions, operators, formats and rules, but
/// plans the statement as its parser returns it. It therefore lacks the following, which needs a
/// rewrite before planning:
///
/// * `a IS DISTINCT FROM b AND c` is `(a IS DISTINCT FROM b) AND c`; `ctx.sql` compares `a` with
///   `b AND c`.
/// * `TIMESTAMP` has microseconds and covers all years; `ctx.sql` plans nanoseconds, which end
///   in 2262.
/// * A column that USING or NATURAL merges has a value even in rows that only one table has.
/// * `t.a` is a column of the table `t`, even next to or within `(SELECT a FROM t)` without an
///   alias.
/// * `t.a` is a column of an outer table `t`, even if an inner table has an integer column `t`.
/// * `t.s.a` is a field of the column `t.s`; `ctx.sql` also reads it as a column of a table `s`.
/// * `LIKE`, `ILIKE`, `IN` and functions of scalars apply to the values of lists.
/// * `year(t)`, `list_min(x)`, `arg_max(x, y)` and other function names of DuckDB are accepted.
/// * FILTER (WHERE x > 3) selects values within lists for `ragged_mean(x)` and other reductions.
/// * Clauses that DataFusion's planner ignores (TABLESAMPLE, FOR UPDATE, ..) are errors.
/// * `FROM t` alone is a query; `ctx.sql` accepts it at the top and in parentheses, not in WITH.
/// * `x = ANY(list)` is NULL if a NULL among the elements may equal `x`.
/// * `f(a = 5)` passes a comparison, not an argument `a`; `len(x)` and `length(x)` count list
///   elements.
/// * Lambdas may contain list literals: `lambda v: [v, 1]`.
/// * `_file` and `_row` are columns of `.nrt` tables in statements that name them; `*` omits them.
/// * `SUMMARIZE t` returns a row per column; `FROM ragged_nest('t', 'key')`, `ragged_explode` and
///   `ragged_axes` accept a query, table or file; `read_parquet('file')` and the like read files.
/// * `FETCH FIRST 3 ROWS ONLY` is `LIMIT 3`, and CREATE TEMP TABLE is CREATE TABLE.
/// * `x[2:]` and `x[:2]` are slices with one bound, with DuckDB's positions: from 1, and the end
///   included.
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
    // Borrows the state: a clone would copy the names of all functions.
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
    let text = rewrite_summarize(&text, dialect.as_ref());
    let most_nested = options.recursion_limit.get();
    check_depth(&text, dialect.as_ref(), most_nested)?;
    check_numbers(&text, dialect.as_ref())?;
    let build_parser = |text: &str| {
        DFParserBuilder::new(text)
            .with_dialect(dialect.as_ref())
            // The parser counts several levels where `check_depth` counts one, so the parser gets a
            // higher limit.
            .with_recursion_limit(most_nested.saturating_mul(4))
            .build()
    };
    let parse = || {
        let parsed = match build_parser(text.as_ref())?.parse_statements() {
            Err(e) => match add_parentheses(&text, dialect.as_ref()) {
                Some(enclosed) => {
                    check_depth(&enclosed, dialect.as_ref(), most_nested)?;
                    // Returns the first error, whose position refers to the text of the user, not
                    // to the text with the added parentheses.
                    build_parser(&enclosed)?.parse_statements().map_err(|_| e)
                }
                None => Err(e),
            },
            parsed => parsed,
        };
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
/// If the statement cannot be planned, or is DDL or a change of the session that fails. Errors that
/// occur while the rows of a query are computed come from the returned [`DataFrame`].
pub async fn execute(ctx: &SessionContext, statement: Statement) -> Result<DataFrame> {
    let (plan, state) = plan_with_state(ctx, statement).await?;
    execute_plan(ctx, plan, state).await
}

/// Executes the plan of a statement if it is DDL or changes the session. [`execute`] calls this
/// after planning. The rows of a query are not computed here.
pub(crate) async fn execute_plan(
    ctx: &SessionContext,
    mut plan: LogicalPlan,
    state: SessionState,
) -> Result<DataFrame> {
    refuse_other_kind(ctx, &plan).await?;
    if let LogicalPlan::Ddl(DdlStatement::CreateView(view)) = &mut plan {
        analyze_view(&state, view)?;
    }
    if let LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)) = &mut plan {
        compute_rows(ctx, &state, table).await?;
    }
    // DataFusion would optimize the query of PREPARE without analysis, and could then panic, so the
    // query is analyzed here.
    if let LogicalPlan::Statement(PlanStatement::Prepare(prepare)) = &mut plan {
        let (query, options) = (prepare.input.as_ref().clone(), state.config_options());
        if let Ok(analyzed) = state.analyzer().execute_and_check(query, options, |_, _| {}) {
            // DataFusion reports an error if the numbers of parameters and of declared types
            // differ, but it does not find the parameters in the analyzed plan of a DELETE or
            // UPDATE. The types are therefore dropped.
            let count = prepare.input.get_parameter_names()?.len();
            if count == prepare.fields.len() && analyzed.get_parameter_names()?.len() != count {
                prepare.fields.clear();
            }
            prepare.input = Arc::new(analyzed);
        }
        let query = prepare.input.as_ref().clone();
        prepare.input = Arc::new(replace_distinct_on(&state, query)?);
    }
    match plan {
        LogicalPlan::Ddl(_) | LogicalPlan::Statement(_) => ctx.execute_logical_plan(plan).await,
        // `execute_logical_plan` would also return this DataFrame, but copy the session state once
        // more.
        plan => Ok(DataFrame::new(state, plan)),
    }
}

/// Prepares the query of CREATE VIEW for DataFusion, which coerces its types without Serrate's
/// analyzer rules. Applies the rules that replace expressions, and then coerces the types. If
/// DataFusion's coercion still fails, because the query has a subquery that another rule would
/// replace, applies all analyzer rules.
fn analyze_view(state: &SessionState, view: &mut CreateView) -> Result<()> {
    let query = view.input.as_ref().clone();
    let options = state.config_options();
    if let Ok(coerced) = coerce_types(query.clone(), options) {
        view.input = Arc::new(coerced);
    }
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
/// Returns the errors of DataFusion's planner. If a list is used as a scalar, they contain a
/// suggestion.
pub async fn plan(ctx: &SessionContext, statement: Statement) -> Result<LogicalPlan> {
    Ok(plan_with_state(ctx, statement).await?.0)
}

/// Returns the plan of a statement, and the session state with which it was planned.
///
/// DataFusion's planner recurses once per level of the statement and does not check its stack
/// everywhere, so each step runs on a new stack if little remains.
async fn plan_with_state(
    ctx: &SessionContext,
    statement: Statement,
) -> Result<(LogicalPlan, SessionState)> {
    run_deep(async { plan_with_views(ctx, statement, &mut HashSet::new()).await }).await
}

/// Plans a statement, and before it the views that it reads, with the current tables. Skips the
/// views in `refreshed`, and adds the others to it. Opens the file paths in FROM.
pub(super) async fn plan_with_views(
    ctx: &SessionContext,
    statement: Statement,
    refreshed: &mut HashSet<String>,
) -> Result<(LogicalPlan, SessionState)> {
    let state = Arc::new(ctx.state());
    let planned = Box::pin(plan_statement(ctx, &state, statement, refreshed));
    let plan = open_paths_with(&state, planned).await?;
    Ok((plan, Arc::unwrap_or_clone(state)))
}

/// Plans a statement and completes its plan: with the steps that the header of `sql::statement`
/// lists from `plan_with_views` on.
async fn plan_statement(
    ctx: &SessionContext,
    state: &SessionState,
    statement: Statement,
    refreshed: &mut HashSet<String>,
) -> Result<LogicalPlan> {
    let mut statement = expand_execute(state, statement)?;
    write_out_show(&mut statement)?;
    refresh_views(ctx, state, &statement, refreshed).await?;
    let written = WrittenStatement::read(&mut statement);
    complete_change(ctx, &mut statement, refreshed).await?;
    clauses::check_statement_clauses(state, &statement)?;
    write_out_targets(&mut statement)?;
    adapt_created_columns(state, &mut statement);
    let planned = Box::pin(plan_with_aliases(ctx, state, statement, &written.texts.conditions));
    let plan = planned.await.map_err(|e| written.texts.explain_quotes(e))?;
    let plan = share_ctes(state, plan)?;
    let plan = written.complete_plan(state, plan)?;
    if let LogicalPlan::Copy(copy) = &plan {
        check_target(&ListingTableUrl::parse(&copy.output_url)?)?;
        check_distinct_names("COPY", copy.input.schema())?;
    }
    Ok(plan)
}

/// The parts of a statement, as the user has written them, on which its plan depends. They are read
/// before the rewrites, which change the statement.
struct WrittenStatement {
    /// CREATE VIEW with its text, which is the definition of the view; `None` for other statements.
    view: Option<(String, Statement)>,
    /// PREPARE with the name of the prepared statement; `None` for other statements.
    prepared: Option<(String, KeptStatement)>,
    /// Whether the statement is PREPARE without types of parameters.
    lacks_types: bool,
    created: Option<CreatedFromQuery>,
    texts: WrittenTexts,
    casts: WrittenCasts,
}

impl WrittenStatement {
    /// Reads the parts of a statement, and replaces the parameters `?` of PREPARE by `$1`, `$2`, ..
    /// The text of a view keeps its `?`.
    fn read(statement: &mut Statement) -> Self {
        let view = match &*statement {
            Statement::Statement(inner) if matches!(**inner, SqlStatement::CreateView(_)) => {
                Some((inner.to_string(), statement.clone()))
            }
            _ => None,
        };
        if is_prepare(statement) {
            number_parameters(statement);
        }
        Self {
            view,
            prepared: parse_prepare(statement),
            lacks_types: prepares_without_types(statement),
            created: CreatedFromQuery::from_statement(statement),
            texts: WrittenTexts::from_statement(statement),
            casts: match by_name::find_insert(statement) {
                Some(insert) => WrittenCasts::from_insert(insert),
                None => WrittenCasts::from_update(statement),
            },
        }
    }

    /// Adds to a plan what DataFusion's planner does not read from the statement. Keeps the
    /// statements of CREATE VIEW and PREPARE, because these are planned again at each use of the
    /// view or the prepared statement.
    fn complete_plan(self, state: &SessionState, mut plan: LogicalPlan) -> Result<LogicalPlan> {
        if let LogicalPlan::Ddl(DdlStatement::CreateView(view)) = &mut plan
            && let Some((definition, created)) = self.view
        {
            keep_view(state, view, &definition, created);
            view.definition = Some(definition);
        }
        // Drops the types of parameters if one was not inferred, as in `LIMIT $1`; EXECUTE needs
        // none.
        if let LogicalPlan::Statement(PlanStatement::Prepare(prepare)) = &mut plan
            && self.lacks_types
            && prepare.input.get_parameter_names()?.len() != prepare.fields.len()
        {
            prepare.fields.clear();
        }
        if let Some(prepared) = self.prepared {
            keep_prepared(state, prepared);
        }
        check_lists(&plan)?;
        check_written_times(&plan, &self.casts)?;
        check_written_tensors(&plan)?;
        refuse_number_times(&plan)?;
        let plan = replace_paths(state, reset_to_default(set_headings(plan)?)?);
        match self.created {
            Some(created) => created.add_table_rows(plan),
            None => Ok(plan),
        }
    }
}

/// Writes out what an INSERT or UPDATE takes from its table: the columns of `BY NAME`, DEFAULT
/// VALUES, the types of decimals, and the names of the fields of structs.
///
/// # Errors
/// If the order of the inserted columns is ambiguous; see [`refuse_unlisted_columns`].
async fn complete_change(
    ctx: &SessionContext,
    statement: &mut Statement,
    refreshed: &mut HashSet<String>,
) -> Result<()> {
    by_name::list_columns(ctx, statement, refreshed).await?;
    if let Some(insert) = by_name::find_insert(statement) {
        refuse_unlisted_columns(ctx, insert).await?;
    }
    if let Statement::Statement(inner) = statement {
        write_out_defaults(ctx, inner).await?;
    }
    if let Some(insert) = by_name::find_insert(statement) {
        refuse_number_rows(ctx, insert).await?;
        cast_inserted_numbers(ctx, insert).await;
    }
    let Statement::Statement(inner) = statement else { return Ok(()) };
    match inner.as_mut() {
        SqlStatement::Insert(insert) => name_inserted_rows(ctx, insert).await,
        SqlStatement::Update(update) => cast_assigned_numbers(ctx, update).await,
        _ => {}
    }
    Ok(())
}

/// Gives the columns of CREATE TABLE and CREATE EXTERNAL TABLE the keys and types that Serrate
/// supports.
fn adapt_created_columns(state: &SessionState, statement: &mut Statement) {
    match statement {
        Statement::Statement(inner) => {
            if let SqlStatement::CreateTable(table) = inner.as_mut() {
                drop_nullable_keys(&mut table.columns, &mut table.constraints);
            }
        }
        Statement::CreateExternalTable(table) => {
            drop_nullable_keys(&mut table.columns, &mut table.constraints);
            times::set_column_microseconds(state, &mut table.columns);
        }
        _ => {}
    }
}

/// Maximum number of rounds in which aliases are replaced, one for each level of nested queries.
/// Without this limit, aliases that double in each round would grow without end.
const ALIAS_ROUNDS: usize = 4;

/// Plans a statement. If this fails because a column is unknown, replaces the aliases that a SELECT
/// uses in later columns or in WHERE, and plans again: `b` in
/// `SELECT a + 1 AS b, b * 2 AS c FROM t`.
///
/// Each round replaces the aliases in the SELECTs whose FROM can be planned. A query that reads
/// another query can be planned only after the aliases of the other query are replaced.
async fn plan_with_aliases(
    ctx: &SessionContext,
    state: &SessionState,
    mut statement: Statement,
    conditions: &[String],
) -> Result<LogicalPlan> {
    let reuses_alias = !is_plain(&statement)
        && with_sql!(&mut statement, sql => select_aliases::may_reuse(sql)) == Some(true);
    if !reuses_alias {
        return Box::pin(plan_with_outer_names(ctx, state, statement, conditions)).await;
    }
    let mut replaced = call_on_deep_stack(|| statement.clone());
    let mut planned = Box::pin(plan_with_outer_names(ctx, state, statement, conditions)).await;
    for _ in 0..ALIAS_ROUNDS {
        if !planned.as_ref().is_err_and(select_aliases::is_unknown_column) {
            break;
        }
        let is_replaced = with_sql!(
            &mut replaced,
            sql => Box::pin(alias_rounds::replace_in_statement(ctx, state, sql)).await
        ) == Some(true);
        if !is_replaced {
            break;
        }
        let again = call_on_deep_stack(|| replaced.clone());
        planned = Box::pin(plan_with_outer_names(ctx, state, again, conditions)).await;
    }
    planned.map_err(|e| {
        let found = with_sql!(&mut replaced, sql => find_window_alias(&*sql, &e));
        found.flatten().unwrap_or(e)
    })
}

fn prepare_statement(state: &SessionState, statement: &mut Statement) -> Result<()> {
    match statement {
        Statement::Statement(statement) => {
            write_out_change(statement)?;
            drop_temporary(statement);
            let is_simple = is_simple(statement);
            if !is_simple || cfg!(debug_assertions) {
                let before = is_simple.then(|| statement.clone());
                rewrite_statement(statement)?;
                debug_assert!(
                    before.is_none_or(|before| before == *statement),
                    "a rewrite changes {statement}, so the query is not simple"
                );
            }
        }
        Statement::CopyTo(copy) => {
            if let Some(format) = &copy.stored_as {
                // The statement may name the format in the option FORMAT instead of STORED AS.
                check_format(state, format, "COPY writes")?;
                check_extension(copy, format)?;
            }
            check_repeated_options(&copy.options)?;
            check_execution_options(&copy.options, &copy.partitioned_by)?;
            #[cfg(feature = "cloud")]
            take_options(state, std::slice::from_ref(&copy.target), &mut copy.options)?;
            keep_existing(state, copy)?;
            if let Some(url) = make_target_url(&copy.target)? {
                copy.target = url;
            }
            if let CopyToSource::Query(query) = &mut copy.source {
                rewrite_statement(query)?;
            }
        }
        Statement::CreateExternalTable(table) => {
            check_format(state, &table.file_type, "STORED AS accepts")?;
            check_repeated_options(&table.options)?;
            check_execution_options(&table.options, &[])?;
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
