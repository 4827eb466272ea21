use datafusion::error::{DataFusionError, Result};

/// Runs work that may wait for a disk, or that takes long, on a thread for blocking work.
pub(in crate::sql) async fn run_blocking<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> std::result::Result<T, E> + Send + 'static,
) -> Result<T>
where
    DataFusionError: From<E>,
{
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))??)
}
