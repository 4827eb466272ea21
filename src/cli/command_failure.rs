//! [`Failure`]: the message and exit code of a failed command.

use std::fmt;
use std::io;
use std::path::Path;

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;

use crate::error::Error;
use crate::sql::{describe_error, remove_store_words};

pub(super) type Outcome<T = ()> = Result<T, Failure>;

#[derive(Debug)]
pub(super) enum Failure {
    /// The arguments are wrong or incomplete: exit code 2.
    Usage(String),
    /// A query failed, or a file could not be read or written: exit code 1.
    Failed(String),
    /// The reader of standard output closed the pipe. Nothing is reported.
    Closed,
    Interrupted,
}

impl Failure {
    pub(super) fn from_message(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    pub(super) fn from_usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    pub(super) fn add_place(self, place: impl fmt::Display) -> Self {
        match self {
            Self::Failed(message) => Self::Failed(format!("{place}: {message}")),
            other => other,
        }
    }

    /// Replaces the path of the temporary file by the path of the output file in the message of a
    /// [`Self::Failed`]: the user knows only the output file. Other failures stay unchanged.
    pub(super) fn with_target_name(self, temporary: &Path, target: &Path) -> Self {
        match self {
            Self::Failed(message) => {
                let target = target.display().to_string();
                Self::Failed(message.replace(&temporary.display().to_string(), &target))
            }
            other => other,
        }
    }

    /// Prefixes the message of a [`Self::Failed`] with the name of the file, unless the message
    /// already contains this name. Other failures stay unchanged.
    pub(super) fn with_file_name(self, path: &Path) -> Self {
        let name = path.display().to_string();
        match self {
            Self::Failed(message) if !message.contains(&name) => {
                Self::Failed(format!("{name}: {message}"))
            }
            other => other,
        }
    }
}

impl From<DataFusionError> for Failure {
    fn from(e: DataFusionError) -> Self {
        match is_broken_pipe(&e) {
            true => Self::Closed,
            false => Self::Failed(describe_error(&e)),
        }
    }
}

impl From<ArrowError> for Failure {
    fn from(e: ArrowError) -> Self {
        match is_broken_pipe(&e) {
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
            // Replaces the library's message, which suggests options of COPY and of the Rust API.
            Error::Exists(path) => Self::Failed(format!(
                "{} already exists; to replace it, use --overwrite",
                path.display()
            )),
            e if is_broken_pipe(&e) => Self::Closed,
            e => Self::Failed(remove_store_words(&e.to_string())),
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

fn is_broken_pipe(e: &(dyn std::error::Error + 'static)) -> bool {
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
