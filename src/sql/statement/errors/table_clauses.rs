//! Rejects clauses of tables and joins in FROM that the parser accepts and DataFusion's planner
//! ignores, and suggests an alternative.

use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sqlparser::ast::{
    FunctionArg, JoinConstraint, JoinOperator, TableAlias, TableFactor, TableSampleKind,
    TableWithJoins,
};
use datafusion::logical_expr::sqlparser::dialect::Dialect;
use datafusion::logical_expr::sqlparser::keywords::Keyword;
use datafusion::logical_expr::sqlparser::tokenizer::Token;

use crate::sql::base::tokens::{is_word, read_tokens};
use crate::sql::statement::columns::position_columns::is_marked;
use crate::sql::statement::errors::misplaced_windows::check_join;
use crate::sql::statement::errors::wording::{refuse_clause, refuse_syntax};

/// Returns an error for a join that the planner would plan as another join.
pub(super) fn check_joins(from: &TableWithJoins) -> Result<()> {
    if from.joins.iter().any(|join| join.global) {
        return Err(refuse_clause(
            "GLOBAL JOIN is not supported: a join reads all rows of both tables even without GLOBAL; remove GLOBAL",
        ));
    }
    let mut left = &from.relation;
    check_nested_joins(left)?;
    for join in &from.joins {
        check_join_condition(&join.join_operator, left)?;
        left = &join.relation;
        check_nested_joins(left)?;
    }
    Ok(())
}

fn check_nested_joins(table: &TableFactor) -> Result<()> {
    match table {
        TableFactor::NestedJoin { table_with_joins, .. } => check_joins(table_with_joins),
        _ => Ok(()),
    }
}

/// Returns an error for a join without ON, USING or NATURAL, because the planner would plan a cross
/// join. The parser reads an unknown kind of join, as in `a POSITIONAL JOIN b`, as an alias of the
/// table before it.
fn check_join_condition(join: &JoinOperator, left: &TableFactor) -> Result<()> {
    if matches!(join, JoinOperator::AsOf { .. }) {
        return Err(refuse_clause(
            "ASOF JOIN is not supported: nest the rows of a subject with ragged_nest and look values up with ragged_asof(x, time, at), or use meds_asof for labels",
        ));
    }
    let (JoinOperator::Join(condition)
    | JoinOperator::Inner(condition)
    | JoinOperator::Left(condition)
    | JoinOperator::LeftOuter(condition)
    | JoinOperator::Right(condition)
    | JoinOperator::RightOuter(condition)
    | JoinOperator::FullOuter(condition)
    | JoinOperator::Semi(condition)
    | JoinOperator::LeftSemi(condition)
    | JoinOperator::RightSemi(condition)
    | JoinOperator::Anti(condition)
    | JoinOperator::LeftAnti(condition)
    | JoinOperator::RightAnti(condition)) = join
    else {
        return Ok(());
    };
    if *condition != JoinConstraint::None {
        return check_join(condition);
    }
    let kind = match left {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
            if !alias.explicit =>
        {
            alias.name.value.to_uppercase()
        }
        _ => String::new(),
    };
    Err(refuse_clause(match kind.as_str() {
        "POSITIONAL" => {
            "POSITIONAL JOIN is not supported: add row_number() OVER () AS n to both tables in subqueries, and join the subqueries with USING (n)"
        }
        _ => {
            "the JOIN has no condition: write ON or USING after the table, or CROSS JOIN for all pairs of rows"
        }
    }))
}

/// Returns an error for clauses of a table in FROM that the planner ignores.
pub(in crate::sql) fn check_factor(factor: &TableFactor) -> Result<()> {
    let (alias, sample, ordinality) = match factor {
        TableFactor::Table { alias, sample, with_ordinality, .. } => {
            check_table(factor)?;
            (alias, sample.as_ref(), *with_ordinality)
        }
        TableFactor::Derived { alias, sample, .. } => (alias, sample.as_ref(), false),
        TableFactor::Function { name, args, alias, with_ordinality, .. } => {
            if let Some(named) = args.iter().find(|arg| !matches!(arg, FunctionArg::Unnamed(_))) {
                return Err(refuse_clause(format!(
                    "the named argument {named} of {name} is not supported: pass the arguments of {name} by position, without names"
                )));
            }
            (alias, None, *with_ordinality)
        }
        TableFactor::UNNEST { alias, .. } | TableFactor::NestedJoin { alias, .. } => {
            (alias, None, false)
        }
        TableFactor::Pivot { .. } => {
            return Err(refuse_clause(format!("PIVOT is not supported: {INSTEAD_OF_PIVOT}")));
        }
        TableFactor::Unpivot { .. } => {
            return Err(refuse_clause(format!("UNPIVOT is not supported: {INSTEAD_OF_UNPIVOT}")));
        }
        TableFactor::MatchRecognize { .. } => {
            return Err(refuse_clause(
                "MATCH_RECOGNIZE is not supported: use window functions such as lag(x) to read other rows",
            ));
        }
        _ => return Ok(()),
    };
    if let Some(
        TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample),
    ) = sample
    {
        return Err(refuse_clause(format!(
            "{} is not supported: use WHERE random() < 0.01 to select each row with that probability, or LIMIT to select the first rows",
            sample.to_string().trim()
        )));
    }
    if ordinality {
        return Err(refuse_clause(
            "WITH ORDINALITY is not supported: use row_number() OVER () to number rows, or positions => true in ragged_explode",
        ));
    }
    check_alias(alias.as_ref())
}

/// Returns an error for clauses of a named table, such as `t FOR SYSTEM_TIME AS OF ..` and
/// `t PARTITION (p)`.
fn check_table(table: &TableFactor) -> Result<()> {
    let TableFactor::Table {
        args, with_hints, version, partitions, json_path, index_hints, ..
    } = table
    else {
        return Ok(());
    };
    if !with_hints.is_empty() || !index_hints.is_empty() {
        return Err(refuse_clause(
            "a hint on a table (WITH (..), USE INDEX ..) is not supported: remove it",
        ));
    }
    if let Some(version) = version {
        return Err(refuse_clause(format!(
            "{version} is not supported: tables have only their current version; remove the clause"
        )));
    }
    if !partitions.is_empty() && !is_marked(partitions) {
        return Err(refuse_clause(
            "the clause PARTITION (..) after a table is not supported: select the rows of a partition with a condition in WHERE",
        ));
    }
    if json_path.is_some() {
        return Err(refuse_clause(
            "a JSON path after a table in FROM is not supported: write the path after a column in SELECT",
        ));
    }
    if args.as_ref().is_some_and(|args| args.settings.is_some()) {
        return Err(refuse_clause(
            "the clause SETTINGS of a table function is not supported: run SET name = value before the query to change a setting",
        ));
    }
    Ok(())
}

/// Returns an error for column types in `AS t (a INT, b TEXT)`, because the planner uses only the
/// names.
pub(super) fn check_alias(alias: Option<&TableAlias>) -> Result<()> {
    let Some(alias) = alias else { return Ok(()) };
    for column in &alias.columns {
        if let Some(data_type) = &column.data_type {
            return Err(refuse_clause(format!(
                "the column type {data_type} of {} after AS {} is not supported: write only column names after AS, and use CAST in SELECT to change a type",
                column.name, alias.name
            )));
        }
    }
    match &alias.at {
        Some(at) => Err(refuse_clause(format!(
            "the clause AT {at} after AS {} is not supported: use positions => true in ragged_explode to number elements",
            alias.name
        ))),
        None => Ok(()),
    }
}

const INSTEAD_OF_PIVOT: &str = "write an aggregate for each value: SELECT sum(x) FILTER (WHERE k = 'a') AS a, ..; for lists within a row, write ragged_sum(ragged_group(x, k, ['a', 'b']), -1)";
const INSTEAD_OF_UNPIVOT: &str =
    "write UNION ALL: SELECT 'a' AS name, a AS value FROM t UNION ALL SELECT 'b', b FROM t";

/// If `text`, which the parser has rejected, has PIVOT or UNPIVOT, returns an error that says what
/// to write instead. Otherwise, returns `None`.
pub(in crate::sql) fn find_pivot(text: &str, dialect: &dyn Dialect) -> Option<DataFusionError> {
    let tokens = read_tokens(text, dialect)?;
    let found = tokens.windows(2).enumerate().find_map(|(at, pair)| {
        let [word, table] = pair else { return None };
        let (name, instead) = match &word.token {
            token if is_word(token, "pivot") => ("PIVOT", INSTEAD_OF_PIVOT),
            token if is_word(token, "unpivot") => ("UNPIVOT", INSTEAD_OF_UNPIVOT),
            _ => return None,
        };
        // PIVOT is a keyword only at the beginning of the text or of a query, and only before a
        // table: a name, a file or a query.
        let before = at.checked_sub(1).and_then(|before| tokens.get(before)).map(|t| &t.token);
        let begins = match before {
            None | Some(Token::SemiColon | Token::LParen | Token::RParen) => true,
            Some(token) => is_word(token, "as"),
        };
        let has_table = match &table.token {
            Token::Word(word) => {
                word.keyword == Keyword::NoKeyword || before != Some(&Token::RParen)
            }
            Token::SingleQuotedString(_) | Token::LParen => true,
            _ => false,
        };
        (begins && has_table).then_some((word.span.start, name, instead))
    });
    let (place, name, instead) = found?;
    Some(refuse_syntax(name, place, instead))
}
