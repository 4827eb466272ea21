//! Rewords errors of DataFusion's planner and adds suggestions, as for a list used as a scalar.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::common::utils::datafusion_strsim::levenshtein;
use datafusion::common::{Column, SchemaError, TableReference};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::sqlparser::ast::{Expr, Select, Visitor};
use datafusion::sql::parser::Statement;

use crate::functions::{OTHER_LISTS, find_list_function};
use crate::sql::checks::elements::explain_element;
use crate::sql::statement::errors::wording::names_list_type;
use crate::sql::statement::sql_parts::visit_statement;

/// Rewords an error of DataFusion's planner that does not say what to write instead, and adds a
/// suggestion. For a list that is used as a scalar, the suggestion is the same as in
/// [`check_lists`](crate::sql::checks::list_uses::check_lists). Returns other errors unchanged.
/// `conditions` has the text of each WHERE, HAVING and QUALIFY in the original statement.
pub(in crate::sql) fn explain_error(e: DataFusionError, conditions: &[String]) -> DataFusionError {
    match e {
        DataFusionError::Diagnostic(diagnostic, inner) => {
            DataFusionError::Diagnostic(diagnostic, Box::new(explain_error(*inner, conditions)))
        }
        DataFusionError::Plan(message) => {
            DataFusionError::Plan(reword_error(&message, conditions).unwrap_or(message))
        }
        DataFusionError::SchemaError(error, backtrace) => {
            let error = remove_calls(*error);
            let explained = explain_twins(&error)
                .or_else(|| explain_ambiguous(&error))
                .or_else(|| explain_unnamed_elements(&error));
            match explained.or_else(|| remove_far_suggestion(&error)) {
                Some(message) => DataFusionError::Plan(message),
                None => DataFusionError::SchemaError(Box::new(error), backtrace),
            }
        }
        DataFusionError::Configuration(message) if message.starts_with(NO_FORMAT) => {
            DataFusionError::Plan(
                "the name of the file has no extension, so its format is unknown; write COPY .. TO 'FILE' (FORMAT csv), or another format".into(),
            )
        }
        DataFusionError::NotImplemented(message) => match explain_unplanned(&message) {
            Some(said) => DataFusionError::Plan(said),
            None => DataFusionError::NotImplemented(message),
        },
        DataFusionError::Collection(all) => DataFusionError::Collection(
            all.into_iter().map(|e| explain_error(e, conditions)).collect(),
        ),
        other => other,
    }
}

/// Start of DataFusion's error for a COPY that names no format.
const NO_FORMAT: &str = "Format not explicitly set";

/// Types of DuckDB that DataFusion has under another name, or not at all, each with the type to
/// write instead.
const TYPES: [(&str, &str); 21] = [
    ("UTINYINT", "TINYINT UNSIGNED"),
    ("USMALLINT", "SMALLINT UNSIGNED"),
    ("UINTEGER", "INT UNSIGNED"),
    ("UBIGINT", "BIGINT UNSIGNED"),
    ("HUGEINT", "DECIMAL(38, 0)"),
    ("UHUGEINT", "DECIMAL(38, 0)"),
    ("DEC", "DECIMAL"),
    ("INT1", "TINYINT"),
    ("SHORT", "SMALLINT"),
    ("LONG", "BIGINT"),
    ("BPCHAR", "VARCHAR"),
    ("UUID", "VARCHAR"),
    ("JSON", "VARCHAR"),
    ("ENUM", "VARCHAR"),
    ("BIT", "VARCHAR"),
    ("DATETIME", "TIMESTAMP"),
    ("TIMESTAMP_S", "TIMESTAMP(0)"),
    ("TIMESTAMP_MS", "TIMESTAMP(3)"),
    ("TIMESTAMP_NS", "TIMESTAMP(9)"),
    ("MAP", "a list of structs, as in STRUCT(k VARCHAR, v INT)[]"),
    ("BLOB", "BYTEA for the bytes of a string without escapes, or a literal such as x'41'"),
];

/// Starts of DataFusion's messages about what it does not plan, each with a message that says what
/// to write instead.
const UNPLANNED: [(&str, &str); 5] = [
    (
        "ORDER BY ALL is not supported for non-column expressions",
        "ORDER BY ALL does not know the columns of this SELECT; write ORDER BY 1, 2, .. with the positions of the columns",
    ),
    (
        "Unsupported binary operator: Overlaps",
        "OVERLAPS is not supported; write a < d AND c < b for the periods from a to b and from c to d",
    ),
    (
        "Unsupported binary operator: Assignment",
        "arguments of EXECUTE have no names; write their values in the order of $1, $2, .., as in EXECUTE p(1, 2)",
    ),
    (
        "If not exists not supported",
        "CREATE VIEW IF NOT EXISTS is not supported; write CREATE OR REPLACE VIEW, which replaces an existing view",
    ),
    (
        "Unsupported SQL statement: CREATE TYPE",
        "CREATE TYPE is not supported; write the type itself for each column, such as VARCHAR for an ENUM",
    ),
];

/// Rewords DataFusion's message about a type that it does not have, or about an expression that it
/// does not plan; this message contains a dump of the syntax tree. Returns `None` for other
/// messages.
fn explain_unplanned(message: &str) -> Option<String> {
    if let Some(found) = message.strip_prefix("Unsupported SQL type ") {
        let named = found.split('(').next().unwrap_or(found).trim();
        let (_, known) = TYPES.iter().find(|(name, _)| name.eq_ignore_ascii_case(named))?;
        return Some(format!("the type {} is not supported; write {known}", found.trim()));
    }
    if let Some((_, instead)) = UNPLANNED.iter().find(|(start, _)| message.starts_with(start)) {
        return Some((*instead).to_owned());
    }
    if let Some(node) = message.strip_prefix("Dot access not supported for non-string expr: ") {
        let name = node.split_once("value: \"").and_then(|(_, rest)| rest.split('"').next());
        return Some(match name.filter(|_| node.starts_with("Function(")) {
            Some(name) => format!(
                "a call after a dot is not supported; write {name}(x) instead of x.{name}()"
            ),
            None => "the part after a dot is not the name of a field; write a name, as in (x).name"
                .to_owned(),
        });
    }
    let node = message.strip_prefix("Unsupported ast node in sqltorel: ")?;
    let kind = node.split(|c: char| !c.is_alphanumeric()).next().unwrap_or(node);
    Some(match kind {
        "Lambda" => "a lambda is not a value; pass it to a function that applies it, as in ragged_map(x, lambda v: v * 2)".to_owned(),
        kind => format!("an expression of the kind {kind} is not supported; docs/sql.md describes the expressions that are"),
    })
}

/// Returns the message of an error about an unknown column, without the column that DataFusion
/// suggests, if the two names are not similar. DataFusion suggests `code` for `nope`, because half
/// of the letters agree. Returns `None` for other errors.
fn remove_far_suggestion(error: &SchemaError) -> Option<String> {
    let SchemaError::FieldNotFound { field, valid_fields } = error else { return None };
    let message = error.to_string();
    let (before, rest) = message.split_once(". Did you mean '")?;
    let (suggested, after) = rest.split_once("'?")?;
    let wanted = field.name.to_lowercase();
    let allowed = (wanted.chars().count() / 3).max(1);
    let is_near = valid_fields.iter().any(|valid| {
        let name = valid.name.to_lowercase();
        valid.quoted_flat_name() == suggested
            && (levenshtein(&wanted, &name) <= allowed
                || name.starts_with(&wanted)
                || wanted.starts_with(&name))
    });
    (!is_near).then(|| format!("{before}.{after}"))
}

/// Removes the table name of a call, a file or an unnamed query in FROM from column names:
/// `"meds()".code` and `"x.parquet".code` become `code`. Lists each column once: for GROUP BY and
/// ORDER BY, DataFusion lists the columns of the table and those of SELECT.
fn remove_calls(error: SchemaError) -> SchemaError {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let plain = |column: Column| match &column.relation {
                Some(table)
                    if table.table().ends_with("()")
                        || table.table().contains(['.', '/'])
                        || table.table().starts_with("__serrate") =>
                {
                    Column::new_unqualified(column.name)
                }
                _ => column,
            };
            let mut seen = HashSet::new();
            let plain = valid_fields.into_iter().map(plain);
            let valid_fields = plain.filter(|column| seen.insert(column.flat_name())).collect();
            SchemaError::FieldNotFound { field, valid_fields }
        }
        other => other,
    }
}

/// Texts of a statement, as the user has written them, for error messages.
#[derive(Default)]
pub(in crate::sql) struct WrittenTexts {
    /// Each WHERE, HAVING and QUALIFY.
    pub(in crate::sql) conditions: Vec<String>,
    /// Names in double quotes, without the quotes, that are used as values.
    quoted_names: Vec<String>,
}

impl WrittenTexts {
    pub(in crate::sql) fn from_statement(statement: &Statement) -> Self {
        let mut found = Self::default();
        let _ = visit_statement(statement, &mut found);
        found
    }

    /// Adds how text is quoted to the error that a name in double quotes is not a column. Returns
    /// other errors unchanged.
    pub(in crate::sql) fn explain_quotes(&self, e: DataFusionError) -> DataFusionError {
        if self.quoted_names.is_empty() {
            return e;
        }
        match e {
            DataFusionError::Diagnostic(diagnostic, inner) => {
                DataFusionError::Diagnostic(diagnostic, Box::new(self.explain_quotes(*inner)))
            }
            DataFusionError::Plan(message) => {
                DataFusionError::Plan(self.add_quotes(&message).unwrap_or(message))
            }
            DataFusionError::SchemaError(error, backtrace) => {
                match self.add_quotes(&error.to_string()) {
                    Some(message) => DataFusionError::Plan(message),
                    None => DataFusionError::SchemaError(error, backtrace),
                }
            }
            DataFusionError::Collection(all) => DataFusionError::Collection(
                all.into_iter().map(|e| self.explain_quotes(e)).collect(),
            ),
            other => other,
        }
    }

    fn add_quotes(&self, message: &str) -> Option<String> {
        let rest = message.strip_prefix("No field named ")?;
        // A suggested column on the first line explains the error better.
        let is_unknown = |name: &&String| {
            let shown = Column::new_unqualified(name.as_str()).quoted_flat_name();
            let rest = rest.strip_prefix(shown.as_str());
            rest.is_some_and(|rest| rest == "." || rest.starts_with(".\n"))
        };
        let name = self.quoted_names.iter().find(is_unknown)?;
        let text = name.replace('\'', "''");
        Some(format!("{message}\nDouble quotes enclose a name; write text as '{text}'."))
    }
}

impl Visitor for WrittenTexts {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let all = [&select.selection, &select.having, &select.qualify];
        self.conditions.extend(all.into_iter().flatten().map(ToString::to_string));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && name.quote_style == Some('"')
        {
            self.quoted_names.push(name.value.clone());
        }
        ControlFlow::Continue(())
    }
}

fn reword_error(message: &str, conditions: &[String]) -> Option<String> {
    let is_list = |t: &str| {
        ["List(", "LargeList(", "FixedSizeList("].iter().any(|l| t.starts_with(l))
            && t.contains("Boolean")
    };
    if let Some(rest) = message.strip_prefix("Cannot create filter with non-boolean predicate '") {
        let (predicate, found) = rest.rsplit_once("' returning ")?;
        return is_list(found).then(|| {
            // The planner's message shows the condition with function calls in place of operators.
            // If the statement has only one condition, the new message shows the condition as it is
            // written in the statement.
            let written = match conditions {
                [one] => one.as_str(),
                _ => predicate,
            };
            format!(
                "WHERE, HAVING and QUALIFY need one boolean per row, but {written} is a list of booleans; use ragged_any({written}) or ragged_all(..)"
            )
        });
    }
    let explained = explain_call(message).or_else(|| explain_bits(message));
    let explained = explained.or_else(|| explain_nested_window(message));
    if let Some(text) = explained.or_else(|| explain_repeated(message)) {
        return Some(text);
    }
    if let Some(extension) = message.strip_prefix("There is no registered file format with ext ") {
        return Some(format!(
            "the extension .{extension} does not name a format; write COPY .. TO 'FILE' (FORMAT csv), or another format"
        ));
    }
    let unsorted = "Column in ORDER BY must be in GROUP BY or an aggregate function: While expanding wildcard, column \"";
    if let Some(rest) = message.strip_prefix(unsorted) {
        let (column, _) = rest.split_once("\" must appear")?;
        return Some(format!(
            "ORDER BY sorts groups by the column {column}, which is not a key of GROUP BY, so that a group may have several values of it; add the column to GROUP BY (GROUP BY ALL groups by the columns of SELECT), or sort by an aggregate such as min({column})"
        ));
    }
    if let Some(text) = explain_ungrouped(message) {
        return Some(text);
    }
    if message.starts_with("Aggregate functions are not allowed in the WHERE clause") {
        return Some("WHERE has an aggregate; write HAVING for a condition on groups, and compute an aggregate of an outer query in a subquery in FROM, as in SELECT g, (SELECT max(u.x) FROM u WHERE u.y < q.m) FROM (SELECT g, max(x) AS m FROM t GROUP BY g) q".into());
    }
    if message.starts_with("SELECT list is empty after resolving * expressions") {
        return Some("SELECT has no columns, because EXCLUDE names all columns of the star; leave a column out of EXCLUDE, or write SELECT count(*) for the number of rows".into());
    }
    if let Some(text) = explain_statement(message) {
        return Some(text);
    }
    if message.starts_with("Column count doesn't match insert query") {
        return Some("the query of INSERT has another number of columns than the table; write the columns that it fills, as in INSERT INTO t (a, b) SELECT .., or INSERT INTO t BY NAME SELECT ..".into());
    }
    let not = "Unary operator 'NOT' requires a boolean expression, got ";
    if let Some(found) = message.strip_prefix(not) {
        return is_list(found).then(|| {
            "NOT negates one boolean, but its operand is a list of booleans; use ragged_not(..) to negate each value, or NOT ragged_any(..) to test that none is true".into()
        });
    }
    message
        .starts_with("Unary operator '-' only supports")
        .then(|| format!("{message}; use ragged_neg(..) to negate each value of a list"))
}

fn explain_call(message: &str) -> Option<String> {
    let Some((_, call)) =
        message.split_once("No function matches the given name and argument types '")
    else {
        return explain_coercion(message);
    };
    let call = call.split_once("'. You might").map_or(call, |(call, _)| call);
    let (name, types) = call.split_once('(')?;
    let is_list = names_list_type(types);
    if let Some(text) = explain_element(name, types.strip_suffix(')').unwrap_or(types)) {
        return Some(text);
    }
    let is_explained = message.contains(OTHER_LISTS);
    if is_explained || !is_list || name.starts_with("ragged_") || name.starts_with("array_") {
        return None;
    }
    Some(match find_list_function(name) {
        Some(ours) => format!(
            "{name} takes scalars, but its argument is a list ({call}); use {ours}(..) for lists"
        ),
        None => format!(
            "{name} does not accept lists with these types of values ({call}); check the number and the order of the arguments, or cast the values, as in ragged_cast(x, 'DOUBLE')"
        ),
    })
}

/// Rewords DataFusion's messages about a statement or clause that it does not support. Returns
/// `None` for other messages.
fn explain_statement(message: &str) -> Option<String> {
    if let Some(counts) = message.strip_prefix("Source table contains ") {
        let (columns, rest) = counts.split_once(" columns but only ")?;
        let (names, _) = rest.split_once(" names given")?;
        return Some(format!(
            "the number of column names in parentheses is {names}, but the table, view or query has {columns} columns; write a name for each column, as in AS t(a, b)"
        ));
    }
    if let Some(name) = message.strip_suffix("' is not a variable which can be viewed with 'SHOW'")
    {
        let name = name.trim_start_matches('\'');
        return Some(format!(
            "there is no setting {name}; write DESCRIBE {name} for the columns of a table, SHOW TABLES for all tables, or SHOW ALL for all settings"
        ));
    }
    message.starts_with("Check constraints are not currently supported").then(|| {
        "CHECK is not supported, because INSERT does not check it; remove it, and select the rows that violate the condition with WHERE".to_owned()
    })
}

/// Rewords DataFusion's message that SELECT, HAVING, QUALIFY or DISTINCT ON has a column that is
/// not a key of GROUP BY. Returns `None` for other messages.
fn explain_ungrouped(message: &str) -> Option<String> {
    let (clause, rest) = message.strip_prefix("Column in ")?.split_once(" must be in GROUP BY")?;
    let (_, rest) = rest.split_once("While expanding wildcard, column \"")?;
    let (column, _) = rest.split_once("\" must appear")?;
    Some(format!(
        "{clause} has the column {column}, which is not a key of GROUP BY, so that a group may have several values of it; add the column to GROUP BY (GROUP BY ALL groups by the columns of SELECT), or use an aggregate such as min({column})"
    ))
}

/// Rewords DataFusion's message about a window function within another window function or an
/// aggregate. Returns `None` for other messages.
fn explain_nested_window(message: &str) -> Option<String> {
    let nested = message.strip_prefix("Window function calls cannot be nested: '");
    let aggregated =
        message.strip_prefix("Aggregate function calls cannot contain window function calls: '");
    let (inner, outer) = nested.or(aggregated)?.split_once("' is nested inside '")?;
    let [inner, outer] = [inner, outer].map(|call| call.split_once('(').map(|(name, _)| name));
    let (inner, outer) = (inner?, outer?);
    Some(match nested {
        Some(_) => format!(
            "the window function {outer}(..) OVER (..) contains the window function {inner}(..) or its alias, but both would be computed at once; compute {inner} in a subquery in FROM, as in SELECT sum(r) OVER () FROM (SELECT rank() OVER (ORDER BY x) AS r FROM t)"
        ),
        None => format!(
            "the aggregate {outer}(..) contains the window function {inner}(..), but windows are computed after aggregates; compute {inner} in a subquery in FROM, as in SELECT max(r) FROM (SELECT rank() OVER (ORDER BY x) AS r FROM t)"
        ),
    })
}

/// Rewords DataFusion's message about the types in a call such as `array_has(list, value)`, if the
/// value cannot be an element of the list. Returns `None` for other messages.
fn explain_coercion(message: &str) -> Option<String> {
    let (_, call) = message.split_once("to satisfy a call to '")?;
    let (name, rest) = call.split_once("' function: coercion from ")?;
    let (types, _) = rest.split_once(" to the signature")?;
    explain_element(name, types)
}

/// Rewords DataFusion's message that two columns of a SELECT have the same alias. Returns `None`
/// for other messages.
fn explain_repeated(message: &str) -> Option<String> {
    let (_, pair) = message.split_once(" require unique expression names but the expression \"")?;
    let (first, rest) = pair.split_once("\" at position ")?;
    let (before, rest) = rest.split_once(" and \"")?;
    let (_, rest) = rest.rsplit_once("\" at position ")?;
    let (after, _) = rest.split_once(' ')?;
    let [before, after] = [before, after].map(|number| number.parse::<usize>().ok());
    let [before, after] = [before?.checked_add(1)?, after?.checked_add(1)?];
    let name = first.rsplit_once(" AS ").map_or(first, |(_, alias)| alias);
    Some(format!(
        "the columns {before} and {after} of a SELECT have the same name {name}; give one of them another alias, as in SELECT .. AS {name}, .. AS other"
    ))
}

/// Returns a message for DataFusion's error that a SELECT has a column and an alias with the same
/// name, and `None` for other errors.
fn explain_twins(error: &SchemaError) -> Option<String> {
    let SchemaError::AmbiguousReference { field } = error else { return None };
    field.relation.as_ref()?;
    let (column, name) = (field.quoted_flat_name(), &field.name);
    Some(format!(
        "a SELECT has the column {column} and another column with the name {name}; give one of them another alias, as in SELECT .. AS other"
    ))
}

/// Adds how the elements get a name to DataFusion's error that a name is not a column, if the name
/// is the alias of `unnest` in FROM. Returns `None` for other errors.
fn explain_unnamed_elements(error: &SchemaError) -> Option<String> {
    let SchemaError::FieldNotFound { field, valid_fields } = error else { return None };
    let is_unnest = |valid: &Column| {
        let table = valid.relation.as_ref().map(TableReference::table);
        table == Some(field.name.as_str()) && valid.name.starts_with("UNNEST(")
    };
    (field.relation.is_none() && valid_fields.iter().any(is_unnest)).then(|| {
        let table = field.quoted_flat_name();
        format!(
            "{error}\n{table} is the table of unnest; to name its column, write unnest(..) AS {table}(value)."
        )
    })
}

/// Adds to DataFusion's error that a name is a column of several tables how to name one of them.
/// Returns `None` for other errors.
fn explain_ambiguous(error: &SchemaError) -> Option<String> {
    let SchemaError::AmbiguousReference { field } = error else { return None };
    Some(format!(
        "{error}; several tables have this column: write the table before it, as in t.{}, or join the tables with USING",
        Column::new_unqualified(field.name.as_str()).quoted_flat_name()
    ))
}

fn explain_bits(message: &str) -> Option<String> {
    let types = message.strip_prefix("Cannot infer common type for bitwise operation ")?;
    let is_list = names_list_type(types);
    // Short forms such as `to_days(n)` expand to `n | 0`, which fails unless `n` is an integer.
    if is_list && types.contains(" | ") {
        return Some(format!(
            "the operator | and functions of whole numbers, such as to_days and make_timestamp, take scalar integers, but an operand is a list ({types}); use ragged_map(x, lambda v: to_days(v)) or ragged_map(x, lambda v: v | 1) to apply them to each value"
        ));
    }
    is_list.then(|| match types.contains("BIT_XOR") {
        true => "^ is the exclusive or of two integers, but an operand is a list; use ragged_pow(x, 2) for the power of each value, or ragged_xor(a, b) for the exclusive or of two masks".to_owned(),
        false => format!("bitwise operators take scalar integers, but an operand is a list ({types}); use ragged_map(x, lambda v: v & 1) to apply them to each value"),
    })
}
