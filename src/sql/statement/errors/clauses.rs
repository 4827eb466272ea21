//! Rejects clauses that the parser accepts and DataFusion's planner ignores, and suggests an
//! alternative.
//!
//! The planner ignores parts of some syntax trees. For example, it reads a whole table instead of a
//! sample. Clauses that the planner itself rejects are checked here only if the planner's error
//! says no more than the name of the clause.

use std::ops::ControlFlow;

use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    CreateTable, CreateView, Cte, CteAsMaterialized, DescribeAlias, Expr, GroupByExpr, Ident,
    LimitClause, MacroDefinition, ObjectType, OrderByKind, PipeOperator, Query, Select, SetExpr,
    SetOperator, SetQuantifier, Statement as SqlStatement, TableFactor, TopQuantity, UnaryOperator,
    Visit, Visitor, visit_relations,
};
use datafusion::logical_expr::sqlparser::dialect::Dialect;
use datafusion::sql::parser::Statement;

use crate::sql::base::syntax::{as_flow, as_result};
use crate::sql::base::tokens::read_tokens;
use crate::sql::statement::commands::column_constraints::{
    check_columns, check_entries, check_type,
};
use crate::sql::statement::errors::call_clauses::{check_call, check_table_star};
use crate::sql::statement::errors::change_clauses::check_change;
use crate::sql::statement::errors::misplaced_windows::check_clauses;
use crate::sql::statement::errors::other_statements::refuse_statement;
use crate::sql::statement::errors::rejected_forms::find_rejected_form;
use crate::sql::statement::errors::star_clauses::{check_star, find_star_form};
use crate::sql::statement::errors::table_clauses::{check_alias, check_factor, check_joins};
use crate::sql::statement::errors::wording::{refuse_clause, refuse_syntax};
use crate::sql::statement::folding::is_same_name;
use crate::sql::statement::sql_parts::visit_statement;

pub(in crate::sql) fn check_statement_clauses(
    state: &SessionState,
    statement: &Statement,
) -> Result<()> {
    match statement {
        Statement::Explain(explain) => check_statement_clauses(state, &explain.statement),
        Statement::CreateExternalTable(table) => {
            if table.unbounded {
                return plan_err!(
                    "CREATE UNBOUNDED EXTERNAL TABLE is not supported, because a table of files is read to its end; remove UNBOUNDED"
                );
            }
            check_columns(&table.columns, &table.constraints)
        }
        Statement::Statement(_) | Statement::CopyTo(_) | Statement::Reset(_) => {
            let mut clauses = ClauseChecker { state, joins: Vec::new() };
            as_result(visit_statement(statement, &mut clauses))
        }
    }
}

struct ClauseChecker<'a> {
    state: &'a SessionState,
    /// Whether each SELECT around the current position reads several tables, the innermost last. A
    /// query has the value of its SELECT, too, for its ORDER BY, which is not a part of the SELECT.
    joins: Vec<bool>,
}

impl Visitor for ClauseChecker<'_> {
    type Break = DataFusionError;

    fn pre_visit_statement(&mut self, statement: &SqlStatement) -> ControlFlow<DataFusionError> {
        as_flow(check_statement(statement))
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<DataFusionError> {
        self.joins.push(match query.body.as_ref() {
            SetExpr::Select(select) => reads_several_tables(select),
            _ => true,
        });
        as_flow(check_query(query))
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<DataFusionError> {
        self.joins.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<DataFusionError> {
        self.joins.push(reads_several_tables(select));
        as_flow(check_select(select))
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<DataFusionError> {
        self.joins.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<DataFusionError> {
        as_flow(check_factor(factor))
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<DataFusionError> {
        as_flow(match expr {
            Expr::Function(call) => match self.joins.last() {
                Some(false) => check_call(self.state, call),
                _ => check_call(self.state, call).and_then(|()| check_table_star(call)),
            },
            Expr::Dictionary(entries) => check_entries(entries),
            Expr::Cast { data_type, .. } => check_type(data_type),
            Expr::Collate { collation, .. } => Err(refuse_clause(format!(
                "COLLATE {collation} is not supported: strings compare by code point; use lower(x) to ignore case"
            ))),
            Expr::Trim { trim_characters: Some(characters), .. } if characters.len() > 1 => {
                plan_err!(
                    "TRIM takes its characters as one string, but {} strings are given; use trim(x, 'ab') to remove the characters a and b",
                    characters.len()
                )
            }
            _ => Ok(()),
        })
    }
}

fn check_statement(statement: &SqlStatement) -> Result<()> {
    match statement {
        SqlStatement::CreateTable(CreateTable { columns, constraints, .. }) => {
            check_columns(columns, constraints)
        }
        SqlStatement::CreateView(view) => check_view(view),
        SqlStatement::Drop { object_type, cascade, restrict, purge, temporary, table, .. } => {
            let other = [
                // The planner supports CASCADE only in DROP SCHEMA and ignores it in other
                // statements.
                ("CASCADE", *cascade && *object_type != ObjectType::Schema),
                ("RESTRICT", *restrict),
                ("PURGE", *purge),
                ("TEMPORARY", *temporary),
                ("ON", table.is_some()),
            ];
            match find_clause(&other) {
                Some(clause) => Err(refuse_clause(format!(
                    "the clause {clause} of DROP {object_type} is not supported: DROP removes only the named object, and does not check which objects depend on it; remove {clause}"
                ))),
                None => Ok(()),
            }
        }
        SqlStatement::CreateSchema { schema_name, if_not_exists, .. } => {
            refuse_all_but_name(statement, "SCHEMA", *if_not_exists, schema_name)
        }
        SqlStatement::CreateDatabase { db_name, if_not_exists, .. } => {
            refuse_all_but_name(statement, "DATABASE", *if_not_exists, db_name)
        }
        SqlStatement::Explain { .. } | SqlStatement::ExplainTable { .. } => {
            check_explain(statement)
        }
        SqlStatement::CreateMacro { name, definition, .. } => {
            Err(refuse_clause(match definition {
                MacroDefinition::Expr(expr) => format!(
                    "CREATE MACRO {name} is not supported: write its expression, {expr}, instead of {name}(..)"
                ),
                MacroDefinition::Table(_) => format!(
                    "CREATE MACRO {name} is not supported: write CREATE VIEW {name} AS SELECT .., which has no parameters, or PREPARE {name} AS SELECT .. with $1 and EXECUTE {name}(..)"
                ),
            }))
        }
        SqlStatement::AttachDatabase { .. } | SqlStatement::AttachDuckDBDatabase { .. } => {
            Err(refuse_clause(
                "ATTACH is not supported: files are read as tables, not as databases; write the file in FROM, as in FROM 'x.parquet'",
            ))
        }
        SqlStatement::Pragma { name, .. } => Err(refuse_clause(format!(
            "PRAGMA {name} is not supported: write SET name = value to change a setting, and SHOW ALL for all settings"
        ))),
        other => check_change(other).and_then(|()| refuse_statement(other)),
    }
}

/// Returns an error for clauses of EXPLAIN and DESCRIBE that the planner ignores.
fn check_explain(statement: &SqlStatement) -> Result<()> {
    match statement {
        SqlStatement::Explain {
            describe_alias,
            analyze,
            verbose,
            query_plan,
            estimate,
            format,
            options,
            ..
        } => {
            let describes = *describe_alias != DescribeAlias::Explain;
            let other = [
                ("EXPLAIN QUERY PLAN", *query_plan),
                ("EXPLAIN ESTIMATE", *estimate),
                ("EXPLAIN (..)", options.is_some()),
                ("DESCRIBE ANALYZE", describes && *analyze),
                ("DESCRIBE VERBOSE", describes && *verbose),
                ("DESCRIBE FORMAT", describes && format.is_some()),
            ];
            match find_clause(&other) {
                Some(clause) => Err(refuse_clause(format!(
                    "{clause} is not supported: write EXPLAIN, EXPLAIN VERBOSE or EXPLAIN ANALYZE"
                ))),
                None => Ok(()),
            }
        }
        SqlStatement::ExplainTable { hive_format: Some(detail), table_name, .. } => {
            Err(refuse_clause(format!(
                "DESCRIBE {detail} is not supported: write DESCRIBE {table_name} for the columns, or SUMMARIZE {table_name} for their values"
            )))
        }
        _ => Ok(()),
    }
}

/// Returns the name of the first of `clauses` that a statement has, or `None` if it has none of
/// them. The `bool` of each clause is whether the statement has it.
fn find_clause(clauses: &[(&'static str, bool)]) -> Option<&'static str> {
    clauses.iter().find(|(_, is_written)| *is_written).map(|(clause, _)| *clause)
}

/// Returns an error for `CREATE OR ALTER VIEW`, `CREATE SECURE VIEW` and the options of MySQL.
fn check_view(view: &CreateView) -> Result<()> {
    if view.or_alter {
        return Err(refuse_clause(
            "the statement CREATE OR ALTER VIEW is not supported: write CREATE OR REPLACE VIEW to replace an existing view",
        ));
    }
    let clause = match &view.params {
        None if view.secure => "SECURE",
        None => return Ok(()),
        Some(params) if params.algorithm.is_some() => "ALGORITHM",
        Some(params) if params.definer.is_some() => "DEFINER",
        Some(_) => "SQL SECURITY",
    };
    Err(refuse_clause(format!(
        "the clause {clause} of CREATE VIEW is not supported: Serrate has no users, and plans a view anew in each query that uses it; remove the clause"
    )))
}

/// Returns an error if CREATE SCHEMA or CREATE DATABASE contains more than a name.
fn refuse_all_but_name(
    statement: &SqlStatement,
    what: &str,
    if_not_exists: bool,
    name: &impl ToString,
) -> Result<()> {
    let name = name.to_string();
    let exists = if if_not_exists { "IF NOT EXISTS " } else { "" };
    let plain = format!("CREATE {what} {exists}{name}");
    let written = statement.to_string();
    let rest = match name.split_once("AUTHORIZATION") {
        Some((_, user)) => format!("AUTHORIZATION{user}"),
        None if written == plain => return Ok(()),
        None => written.strip_prefix(&plain).unwrap_or(&written).trim().to_owned(),
    };
    Err(refuse_clause(format!(
        "the clause {rest} in CREATE {what} is not supported: write only the name of the new schema or database"
    )))
}

fn check_query(query: &Query) -> Result<()> {
    let Query {
        with,
        body,
        order_by,
        limit_clause,
        locks,
        for_clause,
        settings,
        format_clause,
        ..
    } = query;
    if let Some(lock) = locks.first() {
        return Err(refuse_clause(format!(
            "{lock} is not supported: a statement reads its tables as they are when it begins, without locks; remove the clause"
        )));
    }
    if let Some(clause) = for_clause {
        return Err(refuse_clause(format!(
            "{clause} is not supported: write COPY (..) TO 'file' STORED AS .. to choose the format of the results"
        )));
    }
    limit_clause.as_ref().map_or(Ok(()), check_limit)?;
    if settings.is_some() {
        return Err(refuse_clause(
            "the clause SETTINGS of a query is not supported: run SET name = value before the query to change a setting",
        ));
    }
    if let Some(clause) = format_clause {
        return Err(refuse_clause(format!(
            "{clause} is not supported: write COPY (..) TO 'file' STORED AS .. for a file format, or run `serrate -f` to choose a display format"
        )));
    }
    if let Some(with) = with {
        with.cte_tables.iter().try_for_each(|cte| check_cte(cte, with.recursive))?;
    }
    if let Some(order) = order_by
        && matches!(order.kind, OrderByKind::All(_))
        && !matches!(body.as_ref(), SetExpr::Select(_))
    {
        return Err(refuse_clause(
            "the clause ORDER BY ALL of UNION, INTERSECT, EXCEPT or VALUES is not supported: write ORDER BY 1, 2, .. with the positions of the columns",
        ));
    }
    if !matches!(body.as_ref(), SetExpr::Select(_)) {
        check_into(body)?;
    }
    query.pipe_operators.iter().try_for_each(check_pipe)
}

/// Returns an error for `LIMIT 1 BY k`, and for a negative number of rows.
fn check_limit(clause: &LimitClause) -> Result<()> {
    let LimitClause::LimitOffset { limit, offset, limit_by } = clause else { return Ok(()) };
    if !limit_by.is_empty() {
        let limit = limit.as_ref().map_or_else(String::new, ToString::to_string);
        return Err(refuse_clause(format!(
            "the clause LIMIT {limit} BY {} is not supported: write QUALIFY row_number() OVER (PARTITION BY .. ORDER BY ..) <= n for the first n rows per group",
            join_all(limit_by)
        )));
    }
    let offset = offset.as_ref().map(|offset| &offset.value);
    for (clause, rows) in [("LIMIT", limit.as_ref()), ("OFFSET", offset)] {
        if let Some(column @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_))) = rows {
            return plan_err!(
                "{clause} {column} names a column, but the number of rows must not depend on the rows; write a number, or QUALIFY row_number() OVER (ORDER BY x) <= {column} for a condition on each row"
            );
        }
        if let Some(Expr::Subquery(query)) = rows {
            return plan_err!(
                "{clause} ({query}) is not supported: write a number, or QUALIFY row_number() OVER (ORDER BY x) <= ({query})"
            );
        }
        if let Some(rows @ Expr::UnaryOp { op: UnaryOperator::Minus, expr }) = rows
            && matches!(**expr, Expr::Value(_))
        {
            return plan_err!(
                "{clause} {rows} is not valid: the number of rows must be 0 or more; remove {clause} \
                 to return all rows"
            );
        }
    }
    Ok(())
}

fn check_cte(cte: &Cte, is_recursive: bool) -> Result<()> {
    let Cte { alias, from, materialized, query, .. } = cte;
    if is_recursive
        && let SetExpr::SetOperation { left, .. } = query.body.as_ref()
        && matches!(left.as_ref(), SetExpr::SetOperation { .. })
        && reads_table(left, &alias.name)
    {
        return Err(refuse_clause(format!(
            "the recursive query {name} reads itself in more than one branch, which is not supported: write one branch after the last UNION, as in SELECT n + step FROM {name}, (VALUES (1), (2)) AS steps (step)",
            name = alias.name
        )));
    }
    if is_recursive && reads_table(&query.body, &alias.name) {
        check_recursion(query, &alias.name)?;
    }
    if *materialized == Some(CteAsMaterialized::Materialized) {
        return Err(refuse_clause(format!(
            "the clause AS MATERIALIZED of the CTE {} is not supported: a CTE is computed again wherever it is used; use CREATE TABLE .. AS SELECT to store its rows",
            alias.name
        )));
    }
    if let Some(from) = from {
        return Err(refuse_clause(format!(
            "the clause FROM {from} after the CTE {} is not supported: remove it",
            alias.name
        )));
    }
    check_alias(Some(alias))
}

/// Returns an error for clauses of a UNION that reads itself, because the planner ignores them.
fn check_recursion(query: &Query, name: &Ident) -> Result<()> {
    let SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, .. } = query.body.as_ref()
    else {
        return Ok(());
    };
    let by_name = matches!(
        set_quantifier,
        SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName
    );
    let clauses = [
        ("BY NAME", by_name),
        ("WITH", query.with.is_some()),
        ("ORDER BY", query.order_by.is_some()),
        ("LIMIT or OFFSET", query.limit_clause.is_some()),
        ("|>", !query.pipe_operators.is_empty()),
    ];
    let Some(clause) = find_clause(&clauses) else { return Ok(()) };
    let instead = match clause {
        "BY NAME" => "write UNION ALL, and the columns in the order of the first SELECT".to_owned(),
        "WITH" => format!(
            "write its queries before {name}, as in WITH RECURSIVE a AS (..), {name} AS (..)"
        ),
        "LIMIT or OFFSET" => format!(
            "write a condition in the SELECT after UNION to end the recursion, as in WHERE n < 9, or LIMIT where the rows are read, as in FROM {name} LIMIT 9"
        ),
        clause => {
            format!("write it where the rows are read, as in SELECT .. FROM {name} {clause} ..")
        }
    };
    Err(refuse_clause(format!(
        "the clause {clause} of the recursive query {name} is not supported: {instead}"
    )))
}

/// Returns an error for `|> AGGREGATE sum(x) DESC`, whose sort order the planner ignores.
fn check_pipe(pipe: &PipeOperator) -> Result<()> {
    let PipeOperator::Aggregate { full_table_exprs, group_by_expr } = pipe else { return Ok(()) };
    let is_ordered = full_table_exprs
        .iter()
        .chain(group_by_expr)
        .any(|e| e.order_by.asc.is_some() || e.order_by.nulls_first.is_some());
    if is_ordered {
        return Err(refuse_clause(
            "a sort order (ASC, DESC, NULLS FIRST or NULLS LAST) within |> AGGREGATE is not supported: write |> ORDER BY after |> AGGREGATE to sort the rows",
        ));
    }
    Ok(())
}

fn check_into(body: &SetExpr) -> Result<()> {
    match body {
        SetExpr::Select(select) if select.into.is_some() => Err(refuse_clause(
            "the clause INTO of a SELECT within UNION, INTERSECT or EXCEPT is not supported: write CREATE TABLE .. AS before the whole query to store its rows",
        )),
        SetExpr::SetOperation { left, right, .. } => {
            check_into(left)?;
            check_into(right)
        }
        _ => Ok(()),
    }
}

fn check_select(select: &Select) -> Result<()> {
    if !select.optimizer_hints.is_empty() {
        return Err(refuse_clause(
            "the optimizer hint of a SELECT is not supported: remove the hint, and change settings with SET",
        ));
    }
    if let Some(modifiers) = &select.select_modifiers
        && modifiers.is_any_set()
    {
        return Err(refuse_clause(format!(
            "the modifier {modifiers} of SELECT is not supported: remove it"
        )));
    }
    check_rows(select)?;
    if select.exclude.is_some() {
        return Err(refuse_clause(
            "the clause EXCLUDE after the columns of SELECT is not supported: write EXCLUDE after the star, as in SELECT * EXCLUDE (a), b",
        ));
    }
    if select.prewhere.is_some() {
        return Err(refuse_clause(
            "PREWHERE is not supported: write WHERE instead of PREWHERE; conditions are pushed into the scan automatically",
        ));
    }
    if !select.connect_by.is_empty() {
        return Err(refuse_clause(
            "the clauses START WITH and CONNECT BY are not supported: write a recursive query with WITH RECURSIVE",
        ));
    }
    if select.value_table_mode.is_some() {
        return Err(refuse_clause(
            "the clauses AS STRUCT and AS VALUE of SELECT are not supported: instead of AS STRUCT a, write SELECT named_struct('a', a); instead of AS VALUE a, write SELECT a",
        ));
    }
    let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) = &select.group_by;
    if let Some(modifier) = modifiers.first() {
        return Err(refuse_clause(format!(
            "the clause GROUP BY .. {modifier} is not supported: write GROUP BY ROLLUP (a, b), CUBE (a, b) or GROUPING SETS ((a), ())"
        )));
    }
    select.projection.iter().try_for_each(check_star)?;
    check_clauses(select)?;
    select.from.iter().try_for_each(check_joins)
}

/// Returns an error for clauses of other systems that limit, sort or expand the rows of a SELECT.
fn check_rows(select: &Select) -> Result<()> {
    if let Some(top) = &select.top {
        let instead = match &top.quantity {
            Some(TopQuantity::Constant(rows)) if !top.percent && !top.with_ties => {
                format!("LIMIT {rows} at the end of the query, after ORDER BY")
            }
            _ if top.percent => {
                "QUALIFY percent_rank() OVER (ORDER BY x) < 0.1 to get the first tenth of the rows"
                    .to_owned()
            }
            _ => "LIMIT n at the end of the query, after ORDER BY".to_owned(),
        };
        return Err(refuse_clause(format!("{top} after SELECT is not supported: write {instead}")));
    }
    let orders =
        [("SORT BY", join_all(&select.sort_by)), ("CLUSTER BY", join_all(&select.cluster_by))];
    if let Some((clause, keys)) = orders.into_iter().find(|(_, keys)| !keys.is_empty()) {
        return Err(refuse_clause(format!(
            "{clause} {keys} is not supported: write ORDER BY {keys} at the end of the query, which sorts all rows"
        )));
    }
    if !select.lateral_views.is_empty() {
        return Err(refuse_clause(
            "LATERAL VIEW is not supported: write unnest(x) in SELECT, or a further table in FROM, as in FROM t, unnest(t.x) AS u (e)",
        ));
    }
    Ok(())
}

fn reads_several_tables(select: &Select) -> bool {
    match select.from.as_slice() {
        [] => false,
        [one] => !one.joins.is_empty() || matches!(one.relation, TableFactor::NestedJoin { .. }),
        _ => true,
    }
}

fn join_all(items: &[impl ToString]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// If `text`, which the parser has rejected, has USING SAMPLE, returns an error that says what to
/// write instead. Otherwise, returns `None`.
pub(in crate::sql) fn refuse_using_sample(text: &str) -> Option<DataFusionError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    words
        .windows(2)
        .any(|pair| pair[0].eq_ignore_ascii_case("using") && pair[1].eq_ignore_ascii_case("sample"))
        .then(|| {
            refuse_clause(
                "USING SAMPLE is not supported: use WHERE random() < 0.01 to select each row with that probability, or LIMIT to select the first rows"
            )
        })
}

/// If `text`, which the parser has rejected, has syntax of DuckDB that Serrate does not support,
/// returns an error that says what to write instead. Otherwise, returns `None`.
pub(in crate::sql) fn find_other_forms(
    text: &str,
    dialect: &dyn Dialect,
) -> Option<DataFusionError> {
    let tokens = read_tokens(text, dialect)?;
    let written: Vec<String> =
        tokens.iter().map(|token| token.token.to_string().to_ascii_uppercase()).collect();
    let written: Vec<&str> = written.iter().map(String::as_str).collect();
    let is_number = |text: &str| text.parse::<f64>().is_ok();
    let ends = |rest: &[&str]| rest.first().is_none_or(|t| [")", ";", "OFFSET"].contains(t));
    let find = |at: usize| match written.get(at..)? {
        ["LIMIT", number, "%", rest @ ..] if is_number(number) && ends(rest) => Some((
            "LIMIT with a percentage",
            "write QUALIFY percent_rank() OVER (ORDER BY x) < 0.1 to get the first tenth of the rows",
        )),
        ["LIMIT", number, "PERCENT", ..] if is_number(number) => Some((
            "LIMIT with a percentage",
            "write QUALIFY percent_rank() OVER (ORDER BY x) < 0.1 to get the first tenth of the rows",
        )),
        ["POSITIONAL", "JOIN", ..] => Some((
            "POSITIONAL JOIN",
            "number the rows of both tables in subqueries, as in SELECT *, row_number() OVER () AS n FROM t, and join them with USING (n)",
        )),
        ["ASOF", "JOIN" | "LEFT" | "RIGHT" | "INNER" | "FULL", ..] => Some((
            "ASOF JOIN",
            "write SELECT DISTINCT ON (a.id) .. FROM a JOIN b ON a.k = b.k AND a.t >= b.t ORDER BY a.id, b.t DESC for the latest row of b, or ragged_asof(x, time, at) for lists",
        )),
        // `rewrite_known_forms` may have quoted the name of the argument.
        ["AT", "(", "VERSION" | "\"VERSION\"" | "TIMESTAMP" | "\"TIMESTAMP\"", "=>", ..] => Some((
            "AT (VERSION | TIMESTAMP => ..)",
            "tables and files have no versions; read the file or table with the rows that you need",
        )),
        ["TABLESAMPLE", _, "(", ..] => Some((
            "TABLESAMPLE",
            "write WHERE random() < 0.01 to select each row with that probability, or LIMIT to select the first rows",
        )),
        ["EXCLUDE", "CURRENT", "ROW", ..]
        | ["EXCLUDE", "NO", "OTHERS", ..]
        | ["EXCLUDE", "GROUP" | "TIES", ")", ..] => Some((
            "EXCLUDE in a window frame",
            "write two windows, one whose frame ends at 1 PRECEDING and one whose frame starts at 1 FOLLOWING, and combine their results",
        )),
        ["GLOB", pattern, ..] if pattern.starts_with('\'') => Some((
            "GLOB",
            "write LIKE with % for any characters and _ for one character, as in s LIKE 'a%'",
        )),
        ["^@", ..] => Some((
            "the operator ^@",
            "write starts_with(s, 'a'), or ragged_starts_with(s, 'a') for a list of strings",
        )),
        ["FILTER", "(", word, ..]
            if *word != "WHERE"
                && at.checked_sub(1).and_then(|at| written.get(at)) == Some(&")") =>
        {
            Some(("FILTER without WHERE", "write the condition as in FILTER (WHERE x > 1)"))
        }
        _ => find_star_form(&written, at).or_else(|| find_rejected_form(&written, at)),
    };
    let (at, (name, instead)) = (0..written.len()).find_map(|at| Some((at, find(at)?)))?;
    let place = tokens.get(at)?.span.start;
    Some(refuse_syntax(name, place, instead))
}

pub(in crate::sql) fn reads_table(part: &impl Visit, name: &Ident) -> bool {
    visit_relations(part, |relation| match relation.0.as_slice() {
        [part] if part.as_ident().is_some_and(|own| is_same_name(own, name)) => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}
