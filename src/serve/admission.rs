//! The limit of running queries, and the queue of those that wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use super::metrics::Metrics;

/// Maximum number of queries that wait.
const QUEUE: usize = 1024;

/// Admits a number of queries at a time. The others wait in the order of their arrival.
#[derive(Debug)]
pub(super) struct Admission {
    places: Arc<Semaphore>,
    count: usize,
    waiting: AtomicUsize,
    patience: Duration,
    metrics: Arc<Metrics>,
}

/// The place of a running query, which it leaves when this value is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
    metrics: Arc<Metrics>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.metrics.running.sub();
    }
}

/// Counts a waiting query, also if the query is dropped while it waits.
struct Waiting<'a>(&'a Admission);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
        self.0.metrics.queued.sub();
    }
}

impl Admission {
    pub(super) fn new(count: usize, patience: Duration, metrics: Arc<Metrics>) -> Self {
        let places = Arc::new(Semaphore::new(count));
        Self { places, count, waiting: AtomicUsize::new(0), patience, metrics }
    }

    /// Waits for a place, for a limited time.
    pub(super) async fn wait_for_turn(&self) -> Result<Place, Status> {
        match Arc::clone(&self.places).try_acquire_owned() {
            Ok(permit) => Ok(self.take_place(permit)),
            Err(_) => match tokio::time::timeout(self.patience, self.wait_for_place(QUEUE)).await {
                Ok(entered) => entered,
                Err(_) => {
                    self.metrics.rejected.add(1);
                    Err(Status::resource_exhausted(format!(
                        "the query waited {} s for one of {} places; try again later, or start the server with a higher --max-queries or --queue-timeout",
                        self.patience.as_secs(),
                        self.count
                    )))
                }
            },
        }
    }

    /// Waits for a place without a limit, to continue a query that has run already.
    pub(super) async fn enter_again(&self) -> Result<Place, Status> {
        match Arc::clone(&self.places).try_acquire_owned() {
            Ok(permit) => Ok(self.take_place(permit)),
            Err(_) => self.wait_for_place(usize::MAX).await,
        }
    }

    async fn wait_for_place(&self, most: usize) -> Result<Place, Status> {
        let before = self.waiting.fetch_add(1, Ordering::SeqCst);
        self.metrics.queued.add(1);
        let _waiting = Waiting(self);
        if before >= most {
            self.metrics.rejected.add(1);
            return Err(Status::resource_exhausted(format!(
                "{} queries run and {most} wait; try again later",
                self.count
            )));
        }
        match Arc::clone(&self.places).acquire_owned().await {
            Ok(permit) => Ok(self.take_place(permit)),
            Err(_) => Err(Status::unavailable("the server stops; connect again later")),
        }
    }

    fn take_place(&self, permit: OwnedSemaphorePermit) -> Place {
        self.metrics.running.add(1);
        Place { _permit: permit, metrics: Arc::clone(&self.metrics) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn queries_wait_for_a_place() {
        let metrics = Arc::new(Metrics::default());
        let admission = Admission::new(1, Duration::from_millis(50), Arc::clone(&metrics));
        let first = admission.wait_for_turn().await.unwrap();
        let refused = admission.wait_for_turn().await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        assert_eq!((metrics.rejected.get(), metrics.queued.get()), (1, 0));
        drop(first);
        let _second = admission.wait_for_turn().await.unwrap();
        assert_eq!(metrics.running.get(), 1);
    }
}
