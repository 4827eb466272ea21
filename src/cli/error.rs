//! How the command fails: a message and an exit code.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;

use super::interrupt;
use crate::error::Error;

/// Result of a step of the command.
pub(super) type Outcome<T = ()> = Result<T, Failure>;

/// Why the command stops.
#[derive(Debug)]
pub(super) enum Failure {
    /// The arguments make no sense together: exit code 2.
    Usage(String),
    /// A query or a file failed: exit code 1.
    Failed(String),
    /// The reader of standard output went away: nobody is left to tell.
    Closed,
    /// Ctrl-C, or SIGTERM.
    Interrupted,
}

impl Failure {
    pub(super) fn message(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// The same failure with the place it happened at in front.
    pub(super) fn at(self, place: impl fmt::Display) -> Self {
        match self {
            Self::Failed(message) => Self::Failed(format!("{place}: {message}")),
            other => other,
        }
    }

    /// The same failure with the name that a file was to have, for the one it has meanwhile.
    pub(super) fn renamed(self, temporary: &Path, target: &Path) -> Self {
        match self {
            Self::Failed(message) => {
                let target = target.display().to_string();
                Self::Failed(message.replace(&temporary.display().to_string(), &target))
            }
            other => other,
        }
    }

    /// Says what happened on stderr; the exit code of the process.
    /// An error of a file, which says its name.
    pub(super) fn of_file(self, path: &Path) -> Self {
        let name = path.display().to_string();
        match self {
            Self::Failed(message) if !message.contains(&name) => {
                Self::Failed(format!("{name}: {message}"))
            }
            other => other,
        }
    }

    pub(super) fn report(&self) -> ExitCode {
        match self {
            Self::Closed => ExitCode::SUCCESS,
            Self::Interrupted => {
                let what = if interrupt::terminated() { "terminated" } else { "interrupted" };
                eprintln!("{what}");
                ExitCode::from(interrupt::code())
            }
            Self::Failed(message) => {
                eprintln!("error: {message}");
                ExitCode::from(1)
            }
            Self::Usage(message) => {
                eprintln!("error: {message}\n\nFor more information, try '--help'.");
                ExitCode::from(2)
            }
        }
    }
}

impl From<DataFusionError> for Failure {
    fn from(e: DataFusionError) -> Self {
        match broken_pipe(&e) {
            true => Self::Closed,
            false => Self::Failed(readable(&e)),
        }
    }
}

impl From<ArrowError> for Failure {
    fn from(e: ArrowError) -> Self {
        match broken_pipe(&e) {
            true => Self::Closed,
            false => Self::Failed(e.to_string()),
        }
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        match e {
            Error::DataFusion(e) => (*e).into(),
            Error::Arrow(e) => e.into(),
            e if broken_pipe(&e) => Self::Closed,
            e => Self::Failed(e.to_string()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Failed(e.to_string()),
        }
    }
}

/// A message without backtrace and without the wrappers that name DataFusion's own modules.
fn readable(e: &DataFusionError) -> String {
    match e {
        DataFusionError::Diagnostic(_, inner) => readable(inner),
        // Names of optimizer rules; what else is said there is a sentence.
        DataFusionError::Context(rule, inner) if !rule.contains(' ') => readable(inner),
        DataFusionError::Shared(inner) => readable(inner),
        DataFusionError::ExecutionJoin(e) if e.is_panic() => {
            format!("stopped by an internal error: {e}")
        }
        DataFusionError::External(inner) => match inner.downcast_ref::<DataFusionError>() {
            Some(inner) => readable(inner),
            None => inner.to_string(),
        },
        DataFusionError::Collection(all) => all.iter().map(readable).collect::<Vec<_>>().join("; "),
        DataFusionError::SQL(e, _) => match e.as_ref() {
            ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
                format!("SQL: {message}")
            }
            ParserError::RecursionLimitExceeded => "SQL: nested too deeply".into(),
        },
        other => other.strip_backtrace().trim_end().to_owned(),
    }
}

fn broken_pipe(e: &(dyn std::error::Error + 'static)) -> bool {
    let mut current = Some(e);
    while let Some(e) = current {
        let io = e.downcast_ref::<io::Error>().or_else(|| match e.downcast_ref::<ArrowError>() {
            Some(ArrowError::IoError(_, io)) => Some(io),
            _ => None,
        });
        if io.is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe) {
            return true;
        }
        current = e.source();
    }
    false
}
