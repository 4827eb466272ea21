//! Recognizes errors of connections to workers, as opposed to errors of a query.
//!
//! An error that a worker passes on keeps its message, but loses its Rust type. An I/O error also
//! keeps its kind. Therefore, lost connections are I/O errors of the kind `LOST_WORKER`, which
//! nothing else in a query returns: operations on files do not fail with this kind.

use std::io::Error;

use datafusion::error::DataFusionError;

use crate::sql::LOST_WORKER;

/// Returns an error that says in `sentence` that a worker is lost or cannot be reached.
pub(super) fn make_loss(sentence: String) -> DataFusionError {
    DataFusionError::IoError(Error::new(LOST_WORKER, sentence))
}

/// Whether `error` says that this process, or the worker that sent the error, lost a worker or
/// cannot reach one.
pub(super) fn is_lost(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::External(e) => e.is::<tonic::Status>(),
        root => find_sentence(root).is_some(),
    }
}

/// Returns the sentence that [`make_loss`] has put into `error`, or `None` for any other error.
pub(super) fn find_sentence(error: &DataFusionError) -> Option<String> {
    match error {
        DataFusionError::IoError(e) if e.kind() == LOST_WORKER => Some(e.to_string()),
        _ => None,
    }
}

/// Converts an error about a lost worker to the form of [`make_loss`], which [`is_lost`] recognizes
/// even after the worker that runs this code has sent the error to the session. Other errors stay
/// unchanged.
pub(super) fn keep_loss(error: DataFusionError) -> DataFusionError {
    match is_lost(&error) {
        true => make_loss(error.strip_backtrace()),
        false => error,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::common::exec_datafusion_err;

    use super::*;

    #[test]
    fn only_errors_of_connections_are_losses() {
        let sentence = "worker a:7100 cannot be reached".to_owned();
        let loss = make_loss(sentence.clone()).context("in a task");
        assert!(is_lost(&DataFusionError::Shared(Arc::new(loss))));
        let status = DataFusionError::External(Box::new(tonic::Status::unavailable("gone")));
        assert!(is_lost(&status));
        let kept = keep_loss(status);
        assert!(find_sentence(&kept).is_some_and(|text| text.contains("gone")), "{kept:?}");
        // An error of another kind with the text of `sentence` is not a loss: the text may come
        // from the data of a query.
        for other in [
            exec_datafusion_err!("{sentence}"),
            DataFusionError::IoError(Error::other(sentence.clone())),
            DataFusionError::External(sentence.into()),
        ] {
            let text = other.to_string();
            assert!(!is_lost(&other), "{other:?}");
            assert_eq!(keep_loss(other).to_string(), text);
        }
    }
}
