//! Converts errors of statements to gRPC status codes.

use std::any::Any;
use std::io;

use datafusion::error::DataFusionError;
use serrate_core::internal::find_panic_text;
use tonic::{Code, Status};

use crate::error::Error;
use crate::sql::{LOST_WORKER, describe_error};

/// Maximum number of characters of a message. Messages are sent in HTTP headers, whose size clients
/// limit.
const MAX_CHARACTERS: usize = 2000;

/// Returns the status of a failed statement: a code for the kind of error, and the text that the
/// command would print.
pub(super) fn to_status(e: &DataFusionError) -> Status {
    let text = describe_error(e);
    Status::new(find_code(e, &text), shorten_text(&text))
}

pub(super) fn convert_panic(panic: &(dyn Any + Send)) -> Status {
    let text = find_panic_text(panic);
    Status::internal(shorten_text(&format!(
        "stopped by an internal error: {text}; please report it with the statement"
    )))
}

pub(super) const NO_TRANSACTIONS: &str = "transactions are not supported, because each statement commits by itself; send the statement without a transaction";

pub(super) fn to_invalid(text: impl AsRef<str>) -> Status {
    Status::invalid_argument(shorten_text(text.as_ref()))
}

fn shorten_text(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn find_code(e: &DataFusionError, text: &str) -> Code {
    // Planners and object stores wrap the error for a refused path in an error of their own, so
    // only the text shows that a path was refused.
    if text.contains("--root restricts") || text.contains("--read-only refuses") {
        return Code::PermissionDenied;
    }
    let mut current: Option<&(dyn std::error::Error + 'static)> = Some(e);
    let mut code = None;
    while let Some(cause) = current {
        code = code.or_else(|| find_status_code(cause));
        current = cause.source();
    }
    code.unwrap_or(Code::InvalidArgument)
}

/// Returns the code for `e`, one error in a chain of causes. Returns `None` if `e` does not
/// determine the code, so that the cause of `e` must.
fn find_status_code(e: &(dyn std::error::Error + 'static)) -> Option<Code> {
    if let Some(e) = e.downcast_ref::<io::Error>() {
        return Some(match e.kind() {
            io::ErrorKind::NotFound => Code::NotFound,
            io::ErrorKind::PermissionDenied => Code::PermissionDenied,
            io::ErrorKind::StorageFull => Code::ResourceExhausted,
            _ => Code::Unknown,
        });
    }
    if let Some(e) = e.downcast_ref::<object_store::Error>() {
        return matches!(e, object_store::Error::NotFound { .. }).then_some(Code::NotFound);
    }
    if let Some(e) = e.downcast_ref::<Error>() {
        return match e {
            Error::Exists(_) => Some(Code::AlreadyExists),
            e if e.is_memory_limit() => Some(Code::ResourceExhausted),
            _ => None,
        };
    }
    match e.downcast_ref::<DataFusionError>()? {
        DataFusionError::ResourcesExhausted(_) => Some(Code::ResourceExhausted),
        DataFusionError::IoError(e) if e.kind() == LOST_WORKER => Some(Code::Unavailable),
        DataFusionError::Plan(text) if is_missing_table(text) => Some(Code::NotFound),
        DataFusionError::Internal(_) => Some(Code::Internal),
        DataFusionError::ExecutionJoin(e) if e.is_panic() => Some(Code::Internal),
        DataFusionError::ExecutionJoin(e) if e.is_cancelled() => Some(Code::Cancelled),
        DataFusionError::NotImplemented(_) => Some(Code::Unimplemented),
        // A Collection or a Shared only wraps other errors of DataFusion, which determine the code.
        DataFusionError::Collection(all) => all.first().and_then(|e| find_status_code(e)),
        DataFusionError::Shared(e) => find_status_code(e.as_ref()),
        _ => None,
    }
}

fn is_missing_table(text: &str) -> bool {
    text.starts_with("table '") && text.contains("' not found")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_errors_have_codes() {
        let code = |e: DataFusionError| to_status(&e).code();
        let lost = "a worker was lost while the statement ran (x); run the statement again";
        let loss = || DataFusionError::IoError(io::Error::new(LOST_WORKER, lost));
        assert_eq!(to_status(&loss()).message(), lost);
        for loss in [loss(), loss().context("in a task"), DataFusionError::Shared(loss().into())] {
            assert_eq!(code(loss), Code::Unavailable);
        }
        // The text alone does not show that a worker was lost, because a query may have such a text
        // in its data.
        assert_eq!(code(DataFusionError::Execution(lost.into())), Code::InvalidArgument);
        let io = |kind| DataFusionError::IoError(io::Error::new(kind, "x"));
        assert_eq!(code(DataFusionError::Plan("no".into())), Code::InvalidArgument);
        assert_eq!(code(DataFusionError::Plan("table 't' not found".into())), Code::NotFound);
        assert_eq!(code(DataFusionError::ResourcesExhausted("x".into())), Code::ResourceExhausted);
        assert_eq!(code(io(io::ErrorKind::NotFound)), Code::NotFound);
        assert_eq!(code(io(io::ErrorKind::PermissionDenied)), Code::PermissionDenied);
        let nested = Error::io("p", io::Error::from(io::ErrorKind::PermissionDenied));
        assert_eq!(code(nested.into()), Code::PermissionDenied);
    }

    #[test]
    fn long_messages_are_cut() {
        let said = to_status(&DataFusionError::Plan("é".repeat(5000)));
        assert_eq!(said.message().chars().count(), MAX_CHARACTERS + 1);
    }
}
