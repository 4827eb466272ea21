//! Runs blocking work outside the threads that poll queries.

use datafusion::error::{DataFusionError, Result};

/// Runs work that takes long, or that may wait for a disk, on one of tokio's threads for blocking
/// work.
pub(in crate::sql) async fn run_blocking<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> std::result::Result<T, E> + Send + 'static,
) -> Result<T>
where
    DataFusionError: From<E>,
{
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))??)
}
