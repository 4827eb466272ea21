//! Rewords errors of DataFusion and of object stores.

use std::fmt::Display;
#[cfg(feature = "cli")]
use std::io;
use std::sync::Arc;

#[cfg(feature = "cli")]
use arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::plan_datafusion_err;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::AnalyzerRule;
#[cfg(feature = "cli")]
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::Location;

use crate::sql::statement::functions::calls::explain_elements;

/// Start of DataFusion's internal errors. [`REPORT_REQUEST`] is the request for a bug report at
/// their end.
const INTERNAL_PREFIX: &str = "Internal error: ";
const REPORT_REQUEST: &str = "This issue was likely caused by a bug in DataFusion's code. Please help us to resolve this by filing a bug report in our issue tracker: https://github.com/apache/datafusion/issues";

/// Start of DataFusion's error about arguments of `coalesce` without a common type. The rest of the
/// message mentions structs, whatever the arguments are.
const NO_COMMON_TYPE: &str = "Fail to find the coerced type, errors: ";

/// Whether a message of DataFusion has the name of a list type.
pub(super) fn names_list_type(message: &str) -> bool {
    ["List(", "LargeList(", "FixedSizeList("].iter().any(|list| message.contains(list))
}

/// Returns the error that the syntax `name` at `place` is not supported. `instead` says what to
/// write.
pub(super) fn refuse_syntax(name: &str, place: Location, instead: &str) -> DataFusionError {
    refuse_clause(format!(
        "{name} at line {}, column {} is not supported: {instead}",
        place.line, place.column
    ))
}

pub(super) fn refuse_clause(message: impl Display) -> DataFusionError {
    plan_datafusion_err!("{message}")
}

/// Converts an internal error that DataFusion reports at planning to an error about the statement.
///
/// If types do not match (BETWEEN of a number and a boolean, `median` of a struct), DataFusion
/// reports an internal error with a request for a bug report, and repeats this text within other
/// messages.
pub(crate) fn convert_internal_error(e: DataFusionError) -> DataFusionError {
    use DataFusionError as E;
    match e {
        E::Internal(message) => E::Plan(strip_report_request(&message)),
        // For lists, the hints have more advice.
        E::Plan(message) | E::Execution(message)
            if message.contains(NO_COMMON_TYPE) && !names_list_type(&message) =>
        {
            E::Plan(
                "the arguments of a function such as coalesce have no common type; cast them to one type, as in coalesce(day, CAST(text AS DATE)) or coalesce(CAST(day AS VARCHAR), text)".into(),
            )
        }
        E::Plan(message) if message.contains(INTERNAL_PREFIX) => {
            E::Plan(strip_report_request(&message))
        }
        E::Plan(message) if message.starts_with("Failed to parse placeholder id") => E::Plan(
            "a parameter of the prepared statement has a name, as $name has, but EXECUTE gives arguments by position; write ? or $1, $2, .. in PREPARE".into(),
        ),
        E::Plan(message) => E::Plan(explain_types(&message).unwrap_or(message)),
        E::Execution(message) if message.contains(INTERNAL_PREFIX) => {
            E::Execution(strip_report_request(&message))
        }
        E::Configuration(message) => {
            E::Configuration(explain_namespace(&message).unwrap_or(message))
        }
        E::NotImplemented(message) => match explain_unsupported(&message) {
            Some(said) => E::Plan(said.into()),
            None => E::NotImplemented(message),
        },
        E::Context(context, inner) => E::Context(context, Box::new(convert_internal_error(*inner))),
        E::Diagnostic(diagnostic, inner) => {
            E::Diagnostic(diagnostic, Box::new(convert_internal_error(*inner)))
        }
        E::Collection(all) => E::Collection(all.into_iter().map(convert_internal_error).collect()),
        E::Shared(shared) => match Arc::try_unwrap(shared) {
            Ok(inner) => convert_internal_error(inner),
            Err(shared) => E::Shared(shared),
        },
        other => other,
    }
}

const UNPLANNED_OUTER_COLUMN: &str = "a correlated subquery or a LATERAL query uses columns of the query around it where this is not supported, such as below a FULL JOIN, or in a query with random(); join the tables in FROM instead, and filter or aggregate the joined rows";

/// Returns a clearer message for the errors that EXISTS or IN cannot be planned as a value, that a
/// recursive query cannot be planned, that an argument of a window function is not a literal, that
/// there are no operators on JSON, that `unnest` or a window function is misplaced, and that a
/// subquery uses outer columns where DataFusion cannot plan them. Returns `None` for other
/// messages.
fn explain_unsupported(message: &str) -> Option<&'static str> {
    if message.starts_with("Multiple recursive references to the same CTE") {
        return Some(
            "the part of a recursive query after UNION reads the query more than once, which is not supported; read it once in FROM, and compute the rest from that row or from other tables",
        );
    }
    if message.starts_with("Recursive CTEs are not enabled") {
        return Some(
            "WITH RECURSIVE is turned off by a setting; run SET datafusion.execution.enable_recursive_ctes = true",
        );
    }
    if message.starts_with("There is only support Literal types for field at idx") {
        return Some(
            "an argument of a window function depends on the row, but must be a literal, such as the 4 in ntile(4); write a literal, or compute the value from row_number() and count(*) OVER (..)",
        );
    }
    if message.starts_with("Operator ->") {
        return Some(
            "JSON in strings cannot be read, so that the operators -> and ->> are not supported; read JSON files with FROM 'x.json', and fields of a struct with s.a or s['a']",
        );
    }
    if message.starts_with("Unnest should be rewritten to LogicalPlan::Unnest") {
        return Some(
            "unnest is not supported in WHERE, ON, ORDER BY and aggregates; unnest the list in a subquery in FROM, as in SELECT e FROM (SELECT unnest(x) AS e FROM t) WHERE e > 2",
        );
    }
    if message.starts_with("Physical plan does not support undecorrelated Subquery") {
        return Some(UNPLANNED_OUTER_COLUMN);
    }
    let of = message.strip_prefix("Physical plan does not support logical expression ")?;
    if of.starts_with("OuterReferenceColumn(") {
        return Some(UNPLANNED_OUTER_COLUMN);
    }
    if of.starts_with("WindowFunction(") {
        return Some(
            "a window function or its alias is a key of GROUP BY or a part of another function, but windows are computed after them; compute it in a subquery in FROM, as in SELECT n, count(*) FROM (SELECT ntile(4) OVER (ORDER BY x) AS n FROM t) GROUP BY n",
        );
    }
    if of.starts_with("Exists(") {
        return Some(
            "EXISTS (SELECT ..) as a value is not supported here; write it as a condition of WHERE, or write (SELECT count(*) > 0 FROM ..) for the value",
        );
    }
    of.starts_with("InSubquery(").then_some(
        "x IN (SELECT y FROM t) as a value is not supported here; write it as a condition of WHERE, or write (SELECT count(*) > 0 FROM t WHERE y = x) for the value",
    )
}

/// Adds what to write to DataFusion's messages about types that do not fit together. Returns `None`
/// for other messages, and for those that say what to write already.
fn explain_types(message: &str) -> Option<String> {
    if let Some(said) = explain_elements(message) {
        return Some(said);
    }
    let converts = message.starts_with("Cannot automatically convert ");
    if converts && message.ends_with(" to Null") {
        return Some(
            "a column of the first SELECT of a recursive query is NULL or a parameter without a type; write its type, as in CAST(NULL AS INT), $1::INT or PREPARE p(INT) AS ..".to_owned(),
        );
    }
    if message.starts_with("Cannot infer common string type for string concat operation ") {
        return Some(format!("{message}; write concat(a, b), or cast one side to VARCHAR"));
    }
    let compares = message.starts_with("Cannot infer common argument type for comparison ")
        || message.starts_with("Cannot coerce arithmetic expression ");
    let is_complete = message.contains(';') || message.contains("List(");
    let is_of_time = message.starts_with("Cannot coerce arithmetic expression ")
        && (message.contains("Timestamp(") || message.contains("Date32"));
    let advice = match is_of_time {
        true => {
            "write a number as an interval, as in n * INTERVAL '1 day', and cast a string, as in CAST(s AS TIMESTAMP)"
        }
        false => {
            "cast one side, as in CAST(s AS DOUBLE) for a string or CAST(b AS INT) for a boolean"
        }
    };
    (compares && !is_complete).then(|| format!("{message}; {advice}"))
}

/// Rewords the error about a setting such as `foo.bar`, whose first word is unknown to DataFusion.
/// Returns `None` for any other message.
fn explain_namespace(message: &str) -> Option<String> {
    // DataFusion has another message for a setting whose name has no point, such as `threads`.
    if let Some(name) = message.strip_prefix("could not find config namespace for key \"") {
        let name = name.split('"').next()?;
        let instead = match name {
            "memory_limit" | "max_memory" => "write serrate.memory_limit",
            "threads" | "worker_threads" => "write datafusion.execution.target_partitions",
            "all" => "name the setting that RESET restores",
            _ => "SHOW ALL lists the settings",
        };
        return Some(format!("there is no setting {name}; {instead}"));
    }
    let name = message.strip_prefix("Could not find config namespace \"")?.split('"').next()?;
    Some(match name {
        "cluster" => "the settings cluster.* apply only to a session with worker processes, and this session has none; give their addresses with --workers".to_owned(),
        name => format!("there is no setting {name}.*; SHOW ALL lists the settings"),
    })
}

fn strip_report_request(message: &str) -> String {
    let text = message.replace(INTERNAL_PREFIX, "").replace(REPORT_REQUEST, "");
    let lines = text.lines().map(|line| line.trim_start_matches(". ").trim_end());
    let kept_lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    kept_lines.join("\n")
}

/// Kind of the I/O errors of a query that has lost one of its worker processes. No operation on
/// files fails with this kind, so it identifies these errors.
#[cfg(feature = "cli")]
pub(crate) const LOST_WORKER: io::ErrorKind = io::ErrorKind::HostUnreachable;

/// Returns the message of an error without backtrace, and without the words that name DataFusion's
/// modules.
#[cfg(feature = "cli")]
pub(crate) fn describe_error(e: &DataFusionError) -> String {
    if e.strip_backtrace().contains("DictionaryKeyOverflowError") {
        return NARROW_KEYS.to_owned();
    }
    match e {
        DataFusionError::Diagnostic(_, inner) => describe_error(inner),
        // Drops a context that is only the name of an optimizer rule (a word without spaces), or of
        // the table of UPDATE or DELETE.
        DataFusionError::Context(rule, inner)
            if !rule.contains(' ')
                || rule.starts_with("Optimizer rule '")
                || rule.contains(" operation on table '") =>
        {
            describe_error(inner)
        }
        DataFusionError::Shared(inner) => describe_error(inner),
        DataFusionError::ExecutionJoin(e) if e.is_panic() => {
            format!("stopped by an internal error: {e}; please report it with the statement")
        }
        DataFusionError::External(inner) => match inner.downcast_ref::<DataFusionError>() {
            Some(inner) => describe_error(inner),
            None => match inner.downcast_ref::<crate::Error>() {
                // Replaces the library's own message, which also suggests options of the Rust API.
                Some(crate::Error::Exists(path)) => format!(
                    "{} already exists; to replace it, write COPY .. TO 'FILE' (OVERWRITE), or OPTIONS (overwrite true) after STORED AS",
                    path.display()
                ),
                _ => remove_store_words(&inner.to_string()),
            },
        },
        DataFusionError::Collection(all) => describe_errors(all),
        DataFusionError::IoError(e) if e.kind() == LOST_WORKER => e.to_string(),
        DataFusionError::ObjectStore(e) => match e.as_ref() {
            // `source` says which store failed, and why. The words before it name only the client.
            object_store::Error::Generic { source, .. } => source.to_string(),
            e => e.to_string(),
        },
        DataFusionError::SQL(e, _) => match e.as_ref() {
            ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
                format!("SQL: {message}")
            }
            ParserError::RecursionLimitExceeded => {
                "SQL: the statement is nested too deeply; move parts of it into WITH queries".into()
            }
        },
        DataFusionError::ArrowError(inner, _) => describe_arrow_error(inner),
        other => {
            let message = other.strip_backtrace();
            // Removes prefixes that name a step of DataFusion instead of the cause of the error.
            let steps = [
                "Error during planning: ",
                "Schema error: ",
                "Execution error: ",
                "Invalid or Unsupported Configuration: ",
            ];
            let plain = steps
                .iter()
                .fold(message.as_str(), |text, step| text.strip_prefix(step).unwrap_or(text));
            // DataFusion's list of parts lacks those that Serrate truncates itself.
            let more = match plain.starts_with("Unsupported date_trunc granularity: ") {
                true => ", decade, century, millennium",
                false => "",
            };
            format!("{}{more}", remove_store_words(plain.trim_end()))
        }
    }
}

/// The message for a dictionary with too many values. Some functions of Arrow return this error,
/// and others panic with its name.
#[cfg(feature = "cli")]
const NARROW_KEYS: &str = "a dictionary has more values than its keys can number; cast the column to VARCHAR, or to 'Dictionary(Int32, Utf8)' with arrow_cast";

/// Removes the prefixes with which libraries mark an error of an object store. The cause after them
/// begins with the URL of the bucket.
#[cfg(feature = "cli")]
pub(crate) fn remove_store_words(message: &str) -> String {
    let stores = ["S3", "GCS", "Azure", "MicrosoftAzure", "HTTP"];
    let message = message.replace("Object Store error: ", "");
    stores.iter().fold(message, |text, store| text.replace(&format!("Generic {store} error: "), ""))
}

/// Number of errors of one statement whose messages are shown.
#[cfg(feature = "cli")]
const SHOWN_ERRORS: usize = 3;

/// Formats the errors of one statement in order, without repeated lines and repeated errors.
#[cfg(feature = "cli")]
fn describe_errors(errors: &[DataFusionError]) -> String {
    let mut messages: Vec<String> = Vec::new();
    for error in errors {
        let message = describe_error(error);
        if !messages.contains(&message) {
            messages.push(message);
        }
    }
    // If only one error of one line is left, shows it instead of the note "and 1 more error", which
    // takes a line as well.
    let count = match messages.get(SHOWN_ERRORS..) {
        Some([last]) if !last.contains('\n') => messages.len(),
        _ => messages.len().min(SHOWN_ERRORS),
    };
    let (shown, more) = messages.split_at(count);
    let mut lines: Vec<String> = Vec::new();
    for (number, message) in shown.iter().enumerate() {
        for (at, line) in message.lines().enumerate() {
            let line = match (number, at) {
                (1.., 0) => format!("also: {line}"),
                _ => line.to_owned(),
            };
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    match more.len() {
        0 => {}
        1 => lines.push("and 1 more error".to_owned()),
        count => lines.push(format!("and {count} more errors")),
    }
    lines.join("\n")
}

/// Formats an Arrow error without its kind. For an invalid time, adds an example of a valid time,
/// and for tensors without values, what to write.
#[cfg(feature = "cli")]
fn describe_arrow_error(e: &ArrowError) -> String {
    let message = match e {
        ArrowError::ParseError(message)
        | ArrowError::CastError(message)
        | ArrowError::ComputeError(message)
        | ArrowError::ArithmeticOverflow(message)
        | ArrowError::InvalidArgumentError(message) => message.clone(),
        ArrowError::DivideByZero => {
            "division by zero; write nullif(x, 0) for the divisor x to get NULL".to_owned()
        }
        ArrowError::DictionaryKeyOverflowError => NARROW_KEYS.to_owned(),
        other => other.to_string(),
    };
    if message.starts_with("Error parsing timestamp from") {
        return format!("{message}; write a time such as '2024-01-31 10:00:00'");
    }
    // Arrow's `take` loses the number of rows of a list of fixed size 0. The error does not name
    // the column, so it may have another cause.
    if message == "all columns in a record batch must have the same length" {
        return format!(
            "{message}; if a column has tensors with a size of 0, as of densify(x, [0]), which cannot be sorted, grouped or joined, give sizes of 1 or more"
        );
    }
    message
}

/// Wraps an analyzer rule, and applies [`convert_internal_error`] to its errors.
#[derive(Debug)]
pub(in crate::sql) struct OfStatement(pub(in crate::sql) Arc<dyn AnalyzerRule + Send + Sync>);

impl AnalyzerRule for OfStatement {
    fn analyze(
        &self,
        plan: LogicalPlan,
        config: &ConfigOptions,
    ) -> datafusion::error::Result<LogicalPlan> {
        self.0.analyze(plan, config).map_err(convert_internal_error)
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "cli")]
    #[test]
    fn several_errors_are_told_one_after_the_other() {
        let plan = |text: &str| DataFusionError::Plan(text.into());
        let missing = |name: &str| plan(&format!("No field named {name}.\nValid fields are x."));
        let said = |all: Vec<DataFusionError>| describe_error(&DataFusionError::Collection(all));
        assert_eq!(
            said(vec![missing("a"), plan("there is no function f; write g(x)"), missing("b")]),
            "No field named a.\nValid fields are x.\nalso: there is no function f; write g(x)\nalso: No field named b."
        );
        assert_eq!(
            said(vec![missing("a"), missing("a")]),
            "No field named a.\nValid fields are x."
        );
        let many = ["a", "b", "c", "d", "e"].map(plan);
        assert_eq!(said(many.into()), "a\nalso: b\nalso: c\nand 2 more errors");
        let four = ["a", "b", "c", "d"].map(plan);
        assert_eq!(said(four.into()), "a\nalso: b\nalso: c\nalso: d");
        let four = ["a", "b", "c", "d\nValid fields are x."].map(plan);
        assert_eq!(said(four.into()), "a\nalso: b\nalso: c\nand 1 more error");
    }

    #[cfg(feature = "cli")]
    #[test]
    fn words_that_name_a_step_or_a_library_go() {
        for (e, said) in [
            (DataFusionError::Configuration("'lots' is not a size".into()), "'lots' is not a size"),
            (
                DataFusionError::Execution(
                    "Object Store error: Generic S3 error: s3://b: no route".into(),
                ),
                "s3://b: no route",
            ),
            (DataFusionError::Plan("no table t".into()), "no table t"),
        ] {
            assert_eq!(describe_error(&e), said);
        }
    }

    #[test]
    fn unsupported_recursions_are_explained() {
        let said = |text: &str| {
            convert_internal_error(DataFusionError::NotImplemented(text.into())).to_string()
        };
        let several = said("Multiple recursive references to the same CTE are not supported");
        assert!(several.contains("more than once"), "{several}");
        let off = said("Recursive CTEs are not enabled");
        assert!(off.contains("SET datafusion.execution.enable_recursive_ctes"), "{off}");
        let window = said(
            "Physical plan does not support logical expression WindowFunction(WindowFunction { .. })",
        );
        assert!(window.contains("SELECT n, count(*) FROM (SELECT ntile(4)"), "{window}");
        for text in ["logical expression OuterReferenceColumn(Field", "undecorrelated Subquery"] {
            let outer = said(&format!("Physical plan does not support {text}"));
            assert!(outer.contains("below a FULL JOIN"), "{outer}");
        }
    }

    #[test]
    fn names_of_parameters_are_explained() {
        let message = "Failed to parse placeholder id: invalid digit found in string";
        let named = convert_internal_error(DataFusionError::Plan(message.into())).to_string();
        assert!(named.contains("write ? or $1, $2"), "{named}");
    }

    #[test]
    fn types_that_do_not_fit_are_explained() {
        let said =
            |text: &str| convert_internal_error(DataFusionError::Plan(text.into())).to_string();
        for (message, expected) in [
            (
                "Failed to unify argument types of make_array: [Date32, Utf8]",
                "no common type: [Date32, Utf8]; cast them to one type",
            ),
            ("Cannot automatically convert Int64 to Null", "$1::INT"),
            ("Cannot automatically convert Int64 to Utf8", "convert Int64 to Utf8"),
            (
                "Cannot coerce arithmetic expression Utf8 + Int64 to valid types",
                "to valid types; cast one side",
            ),
        ] {
            let explained = said(message);
            assert!(explained.contains(expected), "{explained}");
        }
    }

    #[test]
    fn settings_without_a_group_are_explained() {
        let said = |name: &str| {
            let e = ConfigOptions::default().set(name, "1").unwrap_err();
            convert_internal_error(e).to_string()
        };
        let workers = said("cluster.bytes_per_task");
        assert!(workers.contains("with --workers"), "{workers}");
        let threads = said("threads");
        assert!(threads.contains("write datafusion.execution.target_partitions"), "{threads}");
        let unknown = said("nothing.at_all");
        assert!(unknown.contains("no setting nothing.*; SHOW ALL"), "{unknown}");
    }

    #[test]
    fn words_around_internal_errors_go() {
        let e = convert_internal_error(DataFusionError::Internal("Failed to coerce types".into()));
        assert_eq!(e.to_string(), "Error during planning: Failed to coerce types");
        let within = format!(
            "Internal error: f fails.\n{REPORT_REQUEST}. No function matches\n\tCandidates:"
        );
        let e = convert_internal_error(DataFusionError::Plan(within));
        let said = "Error during planning: f fails.\nNo function matches\n\tCandidates:";
        assert_eq!(e.to_string(), said);
    }
}
