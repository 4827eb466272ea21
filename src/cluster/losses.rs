//! Errors of connections to workers, as opposed to errors of a query.
//!
//! An error that another worker sends keeps its kind and text, but not its type. So these errors
//! are recognized by a kind of I/O errors that nothing else in a query returns: operations on files
//! do not fail with it.

use std::io::Error;

use datafusion::error::DataFusionError;

use crate::sql::LOST_WORKER;

/// Returns an error that says in `sentence` that a worker is lost or cannot be reached.
pub(super) fn make_loss(sentence: String) -> DataFusionError {
    DataFusionError::IoError(Error::new(LOST_WORKER, sentence))
}

/// Whether this process or another worker has lost a worker, or cannot reach it.
pub(super) fn is_lost(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::External(e) => e.is::<tonic::Status>(),
        root => find_sentence(root).is_some(),
    }
}

/// Returns the sentence of an error of [`make_loss`], or `None` for any other error.
pub(super) fn find_sentence(error: &DataFusionError) -> Option<String> {
    match error {
        DataFusionError::IoError(e) if e.kind() == LOST_WORKER => Some(e.to_string()),
        _ => None,
    }
}

/// Returns an error that the session still recognizes as a loss after a worker has sent it. Other
/// errors stay unchanged.
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
        // The words may be in the data of a query.
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
