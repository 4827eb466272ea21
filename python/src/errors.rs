//! Errors of the crate as Python exceptions, with the crate's texts.

use std::io::ErrorKind;

use pyo3::prelude::*;
use serrate::Error;
use serrate::arrow::error::ArrowError;
use serrate::datafusion::error::DataFusionError;

/// Result whose error is raised in Python.
pub(crate) trait OrRaise<T> {
    /// The error as the exception that Python sees.
    fn or_raise(self) -> PyResult<T>;
}

impl<T, E: Into<Error>> OrRaise<T> for Result<T, E> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|e| raised(&e.into()))
    }
}

/// The exception for an error.
pub(crate) fn raised(e: &Error) -> PyErr {
    let (class, text) = described(e);
    exception(class, text)
}

/// An exception of `serrate._errors` by the name of its class.
pub(crate) fn exception(class: &str, text: String) -> PyErr {
    Python::attach(|py| {
        let made = py
            .import("serrate._errors")
            .and_then(|m| m.getattr(class))
            .and_then(|class| class.call1((text,)));
        made.map_or_else(|e| e, PyErr::from_value)
    })
}

/// An argument that makes no sense.
pub(crate) fn invalid(text: impl Into<String>) -> PyErr {
    exception("InvalidError", text.into())
}

/// An argument of a type that is not taken.
pub(crate) fn wrong_type(text: impl Into<String>) -> PyErr {
    exception("WrongTypeError", text.into())
}

fn described(e: &Error) -> (&'static str, String) {
    let class = match e {
        Error::Io { source, .. } => of_kind(source.kind()),
        Error::File { path, .. } if !path.exists() => "NotFoundError",
        Error::Exists(_) => "ExistsError",
        Error::TooLarge { .. } => "TooLargeError",
        Error::OutOfRange { .. }
        | Error::OutOfRangeIn { .. }
        | Error::OutOfRangeAt { .. }
        | Error::NoSuchEntry { .. } => "OutOfRangeError",
        Error::NoSuchColumn { .. } => "NoSuchColumnError",
        Error::Type { .. } => "WrongTypeError",
        Error::Overflow(_) => "TooWideError",
        Error::Arrow(e) => return of_arrow(e),
        Error::DataFusion(e) => return of_datafusion(e),
        _ => "InvalidError",
    };
    (class, e.to_string())
}

fn of_kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "NotFoundError",
        ErrorKind::AlreadyExists => "ExistsError",
        ErrorKind::OutOfMemory => "TooLargeError",
        _ => "FileError",
    }
}

fn of_arrow(e: &ArrowError) -> (&'static str, String) {
    match e {
        ArrowError::ExternalError(inner) => of_any(inner.as_ref()),
        ArrowError::MemoryError(_) => ("TooLargeError", e.to_string()),
        ArrowError::IoError(_, source) => (of_kind(source.kind()), e.to_string()),
        _ => ("InvalidError", e.to_string()),
    }
}

fn of_any(e: &(dyn std::error::Error + Send + Sync + 'static)) -> (&'static str, String) {
    if let Some(e) = e.downcast_ref::<Error>() {
        return described(e);
    }
    if let Some(e) = e.downcast_ref::<DataFusionError>() {
        return of_datafusion(e);
    }
    if let Some(e) = e.downcast_ref::<ArrowError>() {
        return of_arrow(e);
    }
    ("Error", e.to_string())
}

fn of_datafusion(e: &DataFusionError) -> (&'static str, String) {
    let text = || e.strip_backtrace();
    match e {
        DataFusionError::Diagnostic(_, inner) => of_datafusion(inner),
        // Names of optimizer rules; what else is said there is a sentence.
        DataFusionError::Context(rule, inner) if !rule.contains(' ') => of_datafusion(inner),
        DataFusionError::Context(said, inner) => {
            let (class, text) = of_datafusion(inner);
            (class, format!("{said}: {text}"))
        }
        DataFusionError::Shared(inner) => of_datafusion(inner),
        DataFusionError::External(inner) => of_any(inner.as_ref()),
        DataFusionError::ArrowError(inner, _) => of_arrow(inner),
        DataFusionError::ResourcesExhausted(_) => ("TooLargeError", text()),
        DataFusionError::IoError(source) => (of_kind(source.kind()), text()),
        DataFusionError::ObjectStore(_) if text().contains("not found") => {
            ("NotFoundError", text())
        }
        DataFusionError::Plan(said) if said.contains("the file does not exist") => {
            ("NotFoundError", text())
        }
        DataFusionError::SQL(..)
        | DataFusionError::Plan(_)
        | DataFusionError::SchemaError(..)
        | DataFusionError::NotImplemented(_)
        | DataFusionError::Configuration(_) => ("InvalidError", text()),
        DataFusionError::Execution(_) => ("InvalidError", text()),
        DataFusionError::Collection(all) => match all.first() {
            Some(first) => of_datafusion(first),
            None => ("Error", text()),
        },
        _ => ("Error", text()),
    }
}
