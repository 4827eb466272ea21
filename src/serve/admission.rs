//! Limits the number of running queries, and queues the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use super::metrics::ServerMetrics;

/// Maximum number of waiting queries.
const MAX_WAITING: usize = 1024;

/// Lets at most `count` queries run at a time, each with a [`QueryPermit`]. Further queries wait
/// for a permit in the order of their arrival.
#[derive(Debug)]
pub(super) struct QueryAdmission {
    places: Arc<Semaphore>,
    count: usize,
    waiting: AtomicUsize,
    max_wait: Duration,
    metrics: Arc<ServerMetrics>,
}

/// The permission of one query to run. Dropping it lets the next waiting query run.
#[derive(Debug)]
pub(super) struct QueryPermit {
    _permit: OwnedSemaphorePermit,
    metrics: Arc<ServerMetrics>,
}

impl Drop for QueryPermit {
    fn drop(&mut self) {
        self.metrics.running.sub();
    }
}

/// Counts a query as waiting until this value is dropped, which also happens if the client
/// disconnects.
struct WaitingCount<'a>(&'a QueryAdmission);

impl Drop for WaitingCount<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
        self.0.metrics.queued.sub();
    }
}

impl QueryAdmission {
    pub(super) fn new(count: usize, max_wait: Duration, metrics: Arc<ServerMetrics>) -> Self {
        let places = Arc::new(Semaphore::new(count));
        Self { places, count, waiting: AtomicUsize::new(0), max_wait, metrics }
    }

    /// Waits until a query may run. Returns an error if the queue is full, or if the query has
    /// waited for the maximum time, the field `max_wait`.
    pub(super) async fn wait_for_turn(&self) -> Result<QueryPermit, Status> {
        match Arc::clone(&self.places).try_acquire_owned() {
            Ok(permit) => Ok(self.take_place(permit)),
            Err(_) => {
                match tokio::time::timeout(self.max_wait, self.wait_for_place(MAX_WAITING)).await {
                    Ok(entered) => entered,
                    Err(_) => {
                        self.metrics.rejected.add(1);
                        Err(Status::resource_exhausted(format!(
                            "the query waited {} s, because the server already ran as many queries as --max-queries allows ({}); try again later, or start the server with a higher --max-queries or --queue-timeout",
                            self.max_wait.as_secs(),
                            self.count
                        )))
                    }
                }
            }
        }
    }

    /// Waits, without a time limit, for a new permit for a query that has already run, and gave its
    /// permit back when it had to wait for its client.
    pub(super) async fn enter_again(&self) -> Result<QueryPermit, Status> {
        match Arc::clone(&self.places).try_acquire_owned() {
            Ok(permit) => Ok(self.take_place(permit)),
            Err(_) => self.wait_for_place(usize::MAX).await,
        }
    }

    async fn wait_for_place(&self, most: usize) -> Result<QueryPermit, Status> {
        let before = self.waiting.fetch_add(1, Ordering::SeqCst);
        self.metrics.queued.add(1);
        let _waiting = WaitingCount(self);
        if before >= most {
            self.metrics.rejected.add(1);
            return Err(Status::resource_exhausted(format!(
                "the server already runs as many queries as --max-queries allows ({}), and {most} more queries, the maximum, already wait; try again later",
                self.count
            )));
        }
        match Arc::clone(&self.places).acquire_owned().await {
            Ok(permit) => Ok(self.take_place(permit)),
            Err(_) => Err(Status::unavailable("the server is shutting down; connect again later")),
        }
    }

    fn take_place(&self, permit: OwnedSemaphorePermit) -> QueryPermit {
        self.metrics.running.add(1);
        QueryPermit { _permit: permit, metrics: Arc::clone(&self.metrics) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn queries_wait_for_a_place() {
        let metrics = Arc::new(ServerMetrics::default());
        let admission = QueryAdmission::new(1, Duration::from_millis(50), Arc::clone(&metrics));
        let first = admission.wait_for_turn().await.unwrap();
        let refused = admission.wait_for_turn().await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        assert_eq!((metrics.rejected.get(), metrics.queued.get()), (1, 0));
        drop(first);
        let _second = admission.wait_for_turn().await.unwrap();
        assert_eq!(metrics.running.get(), 1);
    }
}
