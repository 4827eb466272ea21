//! `read_parquet('a.parquet')` and similar functions read files of a given format, whatever their
//! names.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{Array, Expr, FunctionArg, UnaryOperator, Value};

use crate::access;
use crate::sql::base::syntax::{split_argument, unquote_text};
use crate::sql::base::tokens::quote_text;
use crate::sql::from::distinct_names::refuse_repeated_option;
use crate::sql::sources::listing::list_table::list_table;
use crate::sql::sources::listing::{FileSet, find_named_kind};
use crate::sql::sources::urls::{describe_cause, make_missing_file_error, parse_path};

pub(super) const FORMATS: [&str; 9] =
    ["arrow", "avro", "csv", "json", "jsonl", "ndjson", "nrt", "parquet", "safetensors"];

pub(super) fn find_function_format(function: &str) -> Option<&'static str> {
    Some(match function {
        "read_parquet" | "parquet_scan" => "parquet",
        "read_csv" | "read_csv_auto" => "csv",
        "read_json" | "read_json_auto" => "json",
        "read_ndjson" | "read_ndjson_auto" => "ndjson",
        "read_nrt" => "nrt",
        "read_arrow" => "arrow",
        "read_safetensors" => "safetensors",
        _ => return None,
    })
}

/// A call such as `read_csv('a.csv')`. A rewrite turns it into a table name that
/// [`find_read_table`] parses.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadCall {
    function: String,
    paths: Vec<String>,
    /// The options of the call by the names that DataFusion uses, such as `format.has_header`.
    options: Vec<(String, String)>,
}

impl ReadCall {
    /// Parses the arguments: a string or a list of strings, then named options. Any other argument,
    /// and a call without a path, is an error.
    pub(super) fn from_arguments(function: &str, args: &[FunctionArg]) -> Result<Self> {
        let mut call = Self { function: function.into(), paths: vec![], options: vec![] };
        for arg in args {
            match split_argument(arg) {
                Some((None, value)) if call.paths.is_empty() => {
                    call.paths = parse_paths(function, value)?;
                }
                Some((Some(name), value)) => call.set_option(&name, value)?,
                _ => {
                    return plan_err!(
                        "{function}: {arg} is not a valid argument; pass paths as \
                 strings, then options as name => value"
                    );
                }
            }
        }
        if call.paths.is_empty() {
            return plan_err!(
                "{function} takes the path of a file or folder, a pattern, or a list of these, but none is given; write {function}('data/*.parquet')"
            );
        }
        Ok(call)
    }

    fn set_option(&mut self, name: &str, value: &Expr) -> Result<()> {
        let csv = find_function_format(&self.function) == Some("csv");
        let key = match name {
            "header" => "has_header",
            "delim" | "sep" | "delimiter" => "delimiter",
            "quote" => "quote",
            "escape" => "escape",
            "comment" => "comment",
            "nullstr" => "null_value",
            _ => "",
        };
        if !csv || key.is_empty() {
            let known = match csv {
                true => "the options are header, delim, quote, escape, comment and nullstr",
                false => "this function has no options, so remove it",
            };
            return plan_err!("{}: there is no option {name}; {known}", self.function);
        }
        let value = match value {
            Expr::Value(v) => match &v.value {
                Value::Boolean(on) => on.to_string(),
                // DuckDB's name of the tab.
                Value::SingleQuotedString(text) if key == "delimiter" && text == "\\t" => {
                    "\t".to_owned()
                }
                Value::SingleQuotedString(text) => text.clone(),
                other => {
                    return plan_err!(
                        "{}: the option {name} must be a string, true or false, not {other}",
                        self.function
                    );
                }
            },
            other => {
                return plan_err!(
                    "{}: the option {name} must be a string, true or false, not {other}",
                    self.function
                );
            }
        };
        let is_character = !["has_header", "null_value"].contains(&key);
        if is_character && !(value.len() == 1 && value.is_ascii()) {
            return plan_err!(
                "{}: the option {name} must be one ASCII character, not '{value}'; write one character, as in {name} => ';'",
                self.function
            );
        }
        let key = format!("format.{key}");
        if self.options.iter().any(|(given, _)| *given == key) {
            return refuse_repeated_option(&self.function, name);
        }
        self.options.push((key, value));
        Ok(())
    }

    /// Parses a table name such as `read_csv('a.csv', 'header' => 'true')`; `None` for any other
    /// name.
    fn parse(name: &str) -> Option<Self> {
        let (function, rest) = name.split_once('(')?;
        find_function_format(function)?;
        let mut texts = Vec::new();
        let mut rest = rest.strip_suffix(')')?;
        while let Some(from) = rest.strip_prefix('\'') {
            let mut text = String::new();
            let mut chars = from.char_indices().peekable();
            let end = loop {
                match chars.next()? {
                    (_, '\'') if chars.next_if(|(_, c)| *c == '\'').is_some() => text.push('\''),
                    (at, '\'') => break at,
                    (_, c) => text.push(c),
                }
            };
            texts.push(text);
            let after = &from[end + 1..];
            rest = after.strip_prefix(", ").unwrap_or(after);
            if let Some(value) = rest.strip_prefix(" => ") {
                // A string before ` => ` is the name of an option. A NUL marks it, so that the next
                // string becomes the value of this option.
                let name = texts.pop()?;
                texts.push(format!("\0{name}"));
                rest = value;
            }
        }
        if !rest.is_empty() {
            return None;
        }
        let mut call = Self { function: function.into(), paths: vec![], options: vec![] };
        let mut texts = texts.into_iter();
        while let Some(text) = texts.next() {
            match text.strip_prefix('\0') {
                Some(name) => call.options.push((name.into(), texts.next()?)),
                None => call.paths.push(text),
            }
        }
        Some(call)
    }
}

impl fmt::Display for ReadCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths = self.paths.iter().map(|path| quote_text(path));
        let options = self
            .options
            .iter()
            .map(|(name, value)| format!("{} => {}", quote_text(name), quote_text(value)));
        let all: Vec<String> = paths.chain(options).collect();
        write!(f, "{}({})", self.function, all.join(", "))
    }
}

fn parse_paths(function: &str, value: &Expr) -> Result<Vec<String>> {
    let one = |value: &Expr| match unquote_text(value) {
        Some(text) => Ok(text.to_owned()),
        None => plan_err!("{function}: {value} is not a path; paths must be string literals"),
    };
    match value {
        Expr::Array(Array { elem, .. }) if !elem.is_empty() => elem.iter().map(one).collect(),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => parse_paths(function, expr),
        value => Ok(vec![one(value)?]),
    }
}

/// Returns the table for a name such as `read_csv('a.csv')`, with which
/// [`rewrite_factor`](super::rewrite::rewrite_factor) replaces a call. Returns `None` for any other
/// name.
pub(crate) async fn find_read_table(
    state: &SessionState,
    name: &str,
) -> Result<Option<Arc<dyn TableProvider>>> {
    let Some(call) = ReadCall::parse(name) else { return Ok(None) };
    let ending = find_function_format(&call.function).unwrap_or_default();
    let Some(factory) = state.get_file_format_factory(ending) else {
        return plan_err!(
            "{name}: this session has no format named {ending}; register the format with the session"
        );
    };
    let options: HashMap<String, String> = call.options.iter().cloned().collect();
    let paths = call.paths.iter().map(|path| parse_path(path)).collect::<Result<Vec<_>>>()?;
    let shown = ReadCall {
        paths: call.paths.iter().map(|path| access::hide_secrets(path).into_owned()).collect(),
        function: call.function.clone(),
        options: call.options.clone(),
    };
    let explain =
        |e: DataFusionError| DataFusionError::Plan(format!("{shown}: {}", describe_cause(&e)));
    let kind = find_named_kind(state, &paths, ending, &options).await.map_err(explain)?;
    let format = factory.create(state, &options)?;
    // The extension of a named file does not matter; in a folder, the extension selects files.
    let files = FileSet::new(paths.clone(), Some(kind));
    let listed = files.list_files(state).await.map_err(explain)?;
    if listed.is_empty() {
        return Err(make_missing_file_error(&call.paths.join(", ")));
    }
    let table = list_table(state, paths, files, &listed, format, ending).await.map_err(explain)?;
    Ok(Some(Arc::new(table)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_as_they_were_written() {
        let call = ReadCall {
            function: "read_csv".into(),
            paths: vec!["it's, a (path)".into(), "b".into()],
            options: vec![("format.delimiter".into(), "'".into())],
        };
        let text = call.to_string();
        assert_eq!(text, "read_csv('it''s, a (path)', 'b', 'format.delimiter' => '''')");
        assert_eq!(ReadCall::parse(&text), Some(call));
        for other in ["t", "read_csv", "read_csv('a'", "read_csv(a)", "vocab('a')", "read_nrt('a)"]
        {
            assert_eq!(ReadCall::parse(other), None, "{other}");
        }
    }
}
