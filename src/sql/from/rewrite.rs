//! Rewrites the first argument of table functions such as `ragged_nest('query')` to a query, and
//! `read_parquet(..)` to a table name.

use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, LimitClause, ObjectName, Query, TableAlias,
    TableFactor, Value,
};

use super::read_functions::{self, FORMATS};
use crate::sql::base::syntax::{has_expr, to_plain_name, unquote_text};
use crate::sql::base::tokens::{begins_query, quote_text};

pub(super) const OVER_QUERIES: [&str; 4] =
    ["ragged_nest", "ragged_explode", "ragged_axes", "summarize"];

/// A function that parses a query in quotes. Callers pass it, because this folder may not use the
/// modules of `sql::statement`.
pub(crate) type QueryParser = fn(&str) -> Result<Query>;

/// Replaces the first argument of `ragged_nest('query', ..)`, a query string or a name, by a
/// subquery, and a call such as `read_parquet('file')` by a table name. Invalid queries are errors.
pub(crate) fn rewrite_factor(relation: &mut TableFactor, parse: QueryParser) -> Result<()> {
    let TableFactor::Table { name, args: Some(args), alias, .. } = relation else {
        return Ok(());
    };
    let Some(function) = to_plain_name(name) else { return Ok(()) };
    if OVER_QUERIES.contains(&function.as_str()) {
        if let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(first))) = args.args.first_mut()
            && let Some(query) = find_query(&function, first, parse)?
        {
            *first = Expr::Subquery(Box::new(query));
        }
        return Ok(());
    }
    if read_functions::find_function_format(&function).is_none() {
        return Ok(());
    }
    // The call becomes the name of a table, which is resolved like FROM 'file'.
    let call = read_functions::ReadCall::from_arguments(&function, &args.args)?;
    let called = Ident::with_quote('"', call.to_string());
    alias.get_or_insert_with(|| TableAlias {
        explicit: true,
        name: Ident::new(function),
        columns: vec![],
        at: None,
    });
    *name = ObjectName::from(vec![called]);
    if let TableFactor::Table { args, .. } = relation {
        *args = None;
    }
    Ok(())
}

/// Returns an error if a query in quotes has a parameter `?`. The number of a `?` depends on its
/// place in the statement, which is not known for a query in a string.
fn refuse_unnumbered(function: &str, query: &Query) -> Result<()> {
    let unnumbered = Value::Placeholder("?".to_owned());
    match has_expr(query, |e| matches!(e, Expr::Value(value) if value.value == unnumbered)) {
        true => plan_err!(
            "{function}: the query in quotes has a parameter ?, whose number is not known; write $1, $2, .. instead, or write the query in parentheses"
        ),
        false => Ok(()),
    }
}

/// Returns the query for an argument that is a string or a name, or `None` for any other argument.
fn find_query(function: &str, argument: &Expr, parse: QueryParser) -> Result<Option<Query>> {
    let from = match argument {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Function(_) => {
            argument.to_string()
        }
        argument => match unquote_text(argument) {
            Some(text) if is_query(text) => {
                let query = parse(text).map_err(|e| {
                    DataFusionError::Plan(format!(
                        "{function}: the string is not a valid query; correct it: {}",
                        e.strip_backtrace()
                    ))
                })?;
                refuse_unnumbered(function, &query)?;
                return Ok(Some(query));
            }
            Some(text) => from_name(text),
            None => return Ok(None),
        },
    };
    parse(&format!("SELECT * FROM {from}")).map(Some).map_err(|e| {
        DataFusionError::Plan(format!(
            "{function}: {from} is not a query, table or file; give a query as a string, or the name of a table or file: {}",
            e.strip_backtrace()
        ))
    })
}

/// Returns `text` if it is a query. Otherwise `text` is the name of a table or file, and the result
/// is the query `SELECT * FROM ..` of it.
pub(crate) fn find_query_text(text: &str) -> String {
    match is_query(text) {
        true => text.to_owned(),
        false => format!("SELECT * FROM {}", from_name(text)),
    }
}

fn is_query(text: &str) -> bool {
    let text = text.trim_start();
    if text.starts_with('(') {
        return true;
    }
    let word: String = text.chars().take_while(|c| c.is_ascii_alphabetic()).collect();
    text[word.len()..].starts_with(char::is_whitespace) && begins_query(&word)
}

/// Returns a name in the syntax of FROM: a call unchanged, a file in quotes, a table without
/// quotes.
fn from_name(text: &str) -> String {
    let plain = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
            && !part.starts_with(|c: char| c.is_ascii_digit())
    };
    let file = text
        .rsplit_once('.')
        .is_some_and(|(_, end)| FORMATS.iter().any(|f| f.eq_ignore_ascii_case(end)));
    let call =
        text.ends_with(')') && text.split_once('(').is_some_and(|(name, _)| plain(name.trim()));
    if call || (text.split('.').all(plain) && !file) {
        return text.to_owned();
    }
    quote_text(text)
}

pub(crate) fn build_largest_limit() -> Option<LimitClause> {
    let all = Value::Number(i64::MAX.to_string(), false);
    Some(LimitClause::LimitOffset { limit: Some(Expr::value(all)), offset: None, limit_by: vec![] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_queries_and_files() {
        for query in ["SELECT 1", " from t", "(SELECT 1)", "WITH a AS (SELECT 1) FROM a"] {
            assert!(is_query(query), "{query}");
        }
        for name in ["selected", "t", "x.parquet", "from.csv"] {
            assert!(!is_query(name), "{name}");
        }
        assert_eq!(from_name("t"), "t");
        assert_eq!(from_name("s.t"), "s.t");
        assert_eq!(from_name("meds('dir')"), "meds('dir')");
        assert_eq!(from_name("x.parquet"), "'x.parquet'");
        assert_eq!(from_name("it's/x"), "'it''s/x'");
        assert_eq!(from_name("a b"), "'a b'");
    }
}
