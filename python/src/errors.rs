//! Converts errors of the crate to Python exceptions with the same messages.

use std::error::Error as StdError;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use serrate::Error;
use serrate::arrow::error::ArrowError;
use serrate::datafusion::error::DataFusionError;

/// A result whose error can be raised in Python.
pub(crate) trait OrRaise<T> {
    /// Converts the error to a Python exception.
    fn or_raise(self) -> PyResult<T>;
}

impl<T, E: Into<Error>> OrRaise<T> for Result<T, E> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|e| to_py_err(&e.into()))
    }
}

pub(crate) fn to_py_err(e: &Error) -> PyErr {
    make_exception(find_class(e), format_error_text(e))
}

/// Converts an error of a query to an error of an Arrow stream, whose consumer receives only a code and a
/// text. The code is ENOMEM if the query exceeded its memory limit.
pub(crate) fn to_stream_error(e: DataFusionError) -> ArrowError {
    let e = Error::from(e);
    let text = format_error_text(&e);
    match e.is_memory_limit() {
        true => ArrowError::MemoryError(escape_nul(&text)),
        false => make_stream_error(&text),
    }
}

pub(crate) fn make_stream_error(text: &str) -> ArrowError {
    ArrowError::ExternalError(escape_nul(text).into())
}

/// Escapes NUL characters, because the Arrow C stream interface panics if the text of an error has one.
fn escape_nul(text: &str) -> String {
    text.replace('\0', "\\0")
}

/// Returns an exception of the class `class` in `serrate._errors`.
pub(crate) fn make_exception(class: &str, text: String) -> PyErr {
    Python::attach(|py| {
        let made = py
            .import("serrate._errors")
            .and_then(|m| m.getattr(class))
            .and_then(|class| class.call1((text,)));
        made.map_or_else(|e| e, PyErr::from_value)
    })
}

/// Returns the exception for an invalid argument.
pub(crate) fn make_invalid_error(text: impl Into<String>) -> PyErr {
    make_exception("InvalidError", text.into())
}

/// Returns the exception for an argument of an unsupported type.
pub(crate) fn make_type_error(text: impl Into<String>) -> PyErr {
    make_exception("WrongTypeError", text.into())
}

/// Converts a value or type error to the exception that numpy raises for an index: an `IndexError` that is
/// also a `ValueError`. Returns other errors unchanged.
pub(crate) fn as_index_error(e: PyErr) -> PyErr {
    Python::attach(|py| {
        let bad = e.is_instance_of::<PyValueError>(py) || e.is_instance_of::<PyTypeError>(py);
        if bad { make_exception("InvalidIndexError", e.value(py).to_string()) } else { e }
    })
}

/// Returns the name of the Python exception class for an error, also if other errors wrap the
/// cause.
fn find_class(e: &Error) -> &'static str {
    if e.is_not_found() {
        return "NotFoundError";
    }
    if e.is_exists() {
        return "ExistsError";
    }
    if e.is_memory_limit() {
        return "TooLargeError";
    }
    if e.is_out_of_range() {
        return "OutOfRangeError";
    }
    match find_cause(e) {
        ErrorCause::Own(Error::NoSuchColumn { .. }) => "NoSuchColumnError",
        ErrorCause::Own(Error::NoSuchAxis { .. }) => "InvalidIndexError",
        ErrorCause::Own(Error::Type { .. }) => "WrongTypeError",
        ErrorCause::Own(Error::Overflow(_)) => "TooWideError",
        ErrorCause::Own(Error::Io { .. } | Error::Store { .. }) | ErrorCause::System => "FileError",
        _ if e.is_bad_file() => "BadFileError",
        ErrorCause::Own(_) | ErrorCause::Statement => "InvalidError",
        ErrorCause::Unknown => "Error",
    }
}

/// The innermost cause of an error.
enum ErrorCause<'a> {
    Own(&'a Error),
    /// An error of the operating system.
    System,
    /// An invalid statement, or values that a statement cannot process.
    Statement,
    /// An error of any other kind.
    Unknown,
}

fn find_cause(e: &Error) -> ErrorCause<'_> {
    match e {
        Error::Arrow(inner) => find_arrow_cause(inner),
        Error::DataFusion(inner) => find_datafusion_cause(inner),
        own => ErrorCause::Own(own),
    }
}

fn find_arrow_cause(e: &ArrowError) -> ErrorCause<'_> {
    match e {
        ArrowError::ExternalError(inner) => find_any_cause(inner.as_ref()),
        ArrowError::IoError(..) => ErrorCause::System,
        _ => ErrorCause::Statement,
    }
}

fn find_any_cause<'a>(e: &'a (dyn StdError + Send + Sync + 'static)) -> ErrorCause<'a> {
    if let Some(e) = e.downcast_ref::<Error>() {
        return find_cause(e);
    }
    if let Some(e) = e.downcast_ref::<DataFusionError>() {
        return find_datafusion_cause(e);
    }
    match e.downcast_ref::<ArrowError>() {
        Some(e) => find_arrow_cause(e),
        None => ErrorCause::Unknown,
    }
}

fn find_datafusion_cause(e: &DataFusionError) -> ErrorCause<'_> {
    match e {
        DataFusionError::Diagnostic(_, inner) | DataFusionError::Context(_, inner) => {
            find_datafusion_cause(inner)
        }
        DataFusionError::Shared(inner) => find_datafusion_cause(inner),
        DataFusionError::External(inner) => find_any_cause(inner.as_ref()),
        DataFusionError::ArrowError(inner, _) => find_arrow_cause(inner),
        DataFusionError::IoError(_) => ErrorCause::System,
        DataFusionError::SQL(..)
        | DataFusionError::Plan(_)
        | DataFusionError::SchemaError(..)
        | DataFusionError::NotImplemented(_)
        | DataFusionError::Configuration(_)
        | DataFusionError::Execution(_) => ErrorCause::Statement,
        DataFusionError::Collection(all) => {
            all.first().map_or(ErrorCause::Unknown, find_datafusion_cause)
        }
        _ => ErrorCause::Unknown,
    }
}

/// Returns the message of an error, without prefixes that only name a rule of the planner.
fn format_error_text(e: &Error) -> String {
    match e {
        Error::DataFusion(inner) => format_datafusion_text(inner),
        Error::Arrow(inner) => format_arrow_text(inner),
        own => own.to_string(),
    }
}

fn format_arrow_text(e: &ArrowError) -> String {
    match e {
        ArrowError::ExternalError(inner) => format_any_text(inner.as_ref()),
        other => other.to_string(),
    }
}

fn format_any_text(e: &(dyn StdError + Send + Sync + 'static)) -> String {
    if let Some(e) = e.downcast_ref::<Error>() {
        return format_error_text(e);
    }
    if let Some(e) = e.downcast_ref::<DataFusionError>() {
        return format_datafusion_text(e);
    }
    e.downcast_ref::<ArrowError>().map_or_else(|| e.to_string(), format_arrow_text)
}

fn format_datafusion_text(e: &DataFusionError) -> String {
    match e {
        DataFusionError::Diagnostic(_, inner) => format_datafusion_text(inner),
        // A context without spaces is the name of an optimizer rule; other contexts are sentences to keep.
        DataFusionError::Context(rule, inner)
            if !rule.contains(' ') || rule.starts_with("Optimizer rule '") =>
        {
            format_datafusion_text(inner)
        }
        DataFusionError::Context(said, inner) => {
            format!("{said}: {}", format_datafusion_text(inner))
        }
        DataFusionError::Shared(inner) => format_datafusion_text(inner),
        DataFusionError::External(inner) => format_any_text(inner.as_ref()),
        DataFusionError::ArrowError(inner, _) => format_arrow_text(inner),
        DataFusionError::Collection(all) => {
            all.first().map_or_else(|| e.strip_backtrace(), format_datafusion_text)
        }
        other => other.strip_backtrace(),
    }
}
