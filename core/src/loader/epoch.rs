//! [`Epoch`]: an iterator over batches of an epoch, built by the calling thread or a thread pool.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rayon::ThreadPool;

use super::batch::Batch;
use super::epoch_plan::EpochPlan;
use crate::error::{Error, Result};
use crate::locks::lock_mutex;

/// The batches of one epoch, in order.
///
/// A batch that cannot be built is returned as an error, and the iterator continues with the next.
/// If the caller drops each batch before it requests the next, at most
/// [`threads`](super::LoaderOptions::threads) + [`prefetch`](super::LoaderOptions::prefetch)
/// batches exist at a time. Dropping the iterator waits for the batches that are being built.
#[derive(Debug)]
pub struct Epoch {
    plan: Arc<EpochPlan>,
    next: usize,
    workers: Option<EpochWorkers>,
}

#[derive(Debug)]
struct EpochWorkers {
    pool: WorkerPool,
    /// Maximum number of batches that are being built or wait to be returned.
    in_flight: usize,
    /// Whether all threads build one batch together, tensor by tensor, instead of one batch each.
    together: bool,
    shared: Arc<EpochState>,
}

/// The thread pool that builds batches.
#[derive(Debug)]
pub(super) struct WorkerPool {
    pub(super) threads: Arc<ThreadPool>,
    /// Whether the caller passed the thread pool in the options. Such a pool may be busy with other
    /// work, so the thread that requests a batch may build the batch itself.
    pub(super) is_of_caller: bool,
}

/// If the first batch of an epoch has at least this many bytes, all threads build each batch
/// together. The first batch is then ready sooner, and fewer batches need memory at the same time;
/// the throughput is the same.
const LARGE_BATCH_BYTES: usize = 8 << 20;

#[derive(Debug)]
struct EpochState {
    plan: Arc<EpochPlan>,
    state: Mutex<EpochProgress>,
    changed: Condvar,
}

#[derive(Debug)]
struct EpochProgress {
    /// Index of the first batch that no thread has started to build. Threads start only batches
    /// before `limit`.
    unclaimed: usize,
    limit: usize,
    /// Index of the batch whose result is `done[0]`; `done[i]` is `None` until batch `first + i` is
    /// built.
    first: usize,
    done: VecDeque<Option<Result<Batch>>>,
    running: usize,
    /// Whether a job builds large batches one after the other, each with all threads.
    in_turn: bool,
    /// Number of skipped batches that are still being built.
    skipped: usize,
}

impl Epoch {
    pub(super) fn new(plan: EpochPlan, first: usize, pool: Option<WorkerPool>) -> Self {
        let plan = Arc::new(plan);
        let mut epoch = Self { plan, next: 0, workers: None };
        if let Some(pool) = pool {
            let options = &epoch.plan.inner.options;
            // In a pool of the caller, a thread that waits for tensors of a batch could start
            // another job of the pool. If this job waits for the batch, that is a deadlock, so
            // threads build batches together only in a pool of the loader. An error of
            // `draft_batch` is ignored here, because `make_batch` returns it.
            let together = !pool.is_of_caller
                && pool.threads.current_num_threads() > 1
                && first < epoch.plan.num_batches()
                && epoch
                    .plan
                    .draft_batch(first)
                    .is_ok_and(|draft| draft.bytes >= LARGE_BATCH_BYTES);
            let in_flight =
                if together { options.prefetch.saturating_add(1) } else { options.max_in_flight() };
            let shared = Arc::new(EpochState::new(Arc::clone(&epoch.plan), 0));
            epoch.workers = Some(EpochWorkers { pool, in_flight, together, shared });
        }
        epoch.skip_to(first)
    }

    /// Returns the plan of the epoch.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::table::RaggedTable;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// # let x = Arc::new(Int32Array::from_iter_values(1..7));
    /// # let table = RaggedTable::builder().lengths([2, 1, 3])?.column("x", 1, x).build()?;
    /// let loader = Loader::try_new([table], LoaderOptions::new(2))?; // 3 rows
    /// let epoch = loader.epoch(0)?;
    /// assert_eq!((epoch.plan().epoch(), epoch.plan().num_batches()), (0, 2));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn plan(&self) -> &EpochPlan {
        &self.plan
    }

    /// Returns the index of the next batch.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::table::RaggedTable;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// # let x = Arc::new(Int32Array::from_iter_values(1..7));
    /// # let table = RaggedTable::builder().lengths([2, 1, 3])?.column("x", 1, x).build()?;
    /// let loader = Loader::try_new([table], LoaderOptions::new(2))?; // 3 rows
    /// let mut epoch = loader.epoch(0)?;
    /// assert!(epoch.next().is_some());
    /// assert_eq!(epoch.position(), 1);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn position(&self) -> usize {
        self.next
    }

    /// Continues with batch `batch`.
    ///
    /// Skipping forward keeps prefetched batches, and does not build the batches before `batch`;
    /// skipping back builds batches again. If `batch` is past the end of the epoch, the iterator is
    /// empty.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::table::RaggedTable;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// let x = Arc::new(Int32Array::from_iter_values(1..7));
    /// let table = RaggedTable::builder().lengths([2, 1, 3])?.column("x", 1, x).build()?;
    /// let epoch = Loader::try_new([table], LoaderOptions::new(1))?.epoch(0)?.skip_to(2);
    /// assert_eq!((epoch.position(), epoch.plan().num_batches(), epoch.count()), (2, 3, 1));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn skip_to(mut self, batch: usize) -> Self {
        self.move_to(batch);
        self
    }

    fn move_to(&mut self, batch: usize) {
        let batch = batch.min(self.plan.num_batches());
        if batch == self.next {
            return;
        }
        self.next = batch;
        if let Some(workers) = &mut self.workers
            && !workers.shared.skip_to(batch)
        {
            workers.shared.stop_workers();
            workers.shared = Arc::new(EpochState::new(Arc::clone(&self.plan), batch));
        }
    }
}

impl Iterator for Epoch {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.next;
        if batch >= self.plan.num_batches() {
            return None;
        }
        self.next += 1;
        Some(match &self.workers {
            None => make_batch(&self.plan, batch, false),
            Some(workers) => workers.next_batch(batch),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.plan.num_batches() - self.next;
        (left, Some(left))
    }

    /// Skips `n` batches without building them, and returns the batch after them; `None` if the
    /// epoch has no such batch. Keeps prefetched batches that come later.
    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        self.move_to(self.next.saturating_add(n));
        self.next()
    }
}

impl ExactSizeIterator for Epoch {}

impl std::iter::FusedIterator for Epoch {}

impl Drop for Epoch {
    fn drop(&mut self) {
        if let Some(workers) = &self.workers {
            workers.shared.stop_workers();
        }
    }
}

impl EpochWorkers {
    fn next_batch(&self, batch: usize) -> Result<Batch> {
        let shared = &self.shared;
        let mut state = shared.lock_state();
        // Skipped batches that are still being built hold memory, so prefetch fewer other batches.
        let ahead = self.in_flight.saturating_sub(state.skipped).max(1);
        let end = shared.plan.num_batches().min(batch.saturating_add(ahead));
        let added = end.saturating_sub(state.limit);
        state.limit = end.max(state.limit);
        if self.together {
            let start = !state.in_turn && state.unclaimed < state.limit;
            state.in_turn |= start;
            drop(state);
            if start {
                let shared = Arc::clone(shared);
                self.pool.threads.spawn_fifo(move || while shared.make_next(true) {});
            }
        } else {
            drop(state);
            for _ in 0..added {
                let shared = Arc::clone(shared);
                self.pool.threads.spawn_fifo(move || _ = shared.make_next(false));
            }
        }
        // If the caller passed the pool, or this thread belongs to the pool, all other threads may
        // be busy. This thread then builds the batch, unless another thread already builds it.
        let help = self.pool.is_of_caller || self.pool.threads.current_thread_index().is_some();
        let mut state = shared.lock_state();
        loop {
            if let Some(result) = state.done.front_mut().and_then(Option::take) {
                state.done.pop_front();
                state.first += 1;
                return result;
            }
            if help && state.unclaimed == batch {
                drop(state);
                shared.make_next(false);
                state = shared.lock_state();
                continue;
            }
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl EpochState {
    fn new(plan: Arc<EpochPlan>, first: usize) -> Self {
        let (done, running, skipped, in_turn) = (VecDeque::new(), 0, 0, false);
        let state = EpochProgress {
            unclaimed: first,
            limit: first,
            first,
            done,
            running,
            in_turn,
            skipped,
        };
        Self { plan, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock_state(&self) -> MutexGuard<'_, EpochProgress> {
        // No code panics between two changes of the state that belong together, so the state is
        // consistent even if a panic has poisoned the lock.
        lock_mutex(&self.state)
    }

    /// Builds the next batch (if `together`, with all threads); returns `false` if no batch before
    /// `limit` is left.
    fn make_next(&self, together: bool) -> bool {
        let mut state = self.lock_state();
        let batch = state.unclaimed;
        if batch >= state.limit {
            if together {
                state.in_turn = false;
            }
            return false;
        }
        state.unclaimed += 1;
        state.running += 1;
        drop(state);
        let result = make_batch(&self.plan, batch, together);
        let mut state = self.lock_state();
        state.running -= 1;
        let unwanted = match batch.checked_sub(state.first) {
            Some(position) => {
                while state.done.len() <= position {
                    state.done.push_back(None);
                }
                state.done[position].replace(result)
            }
            None => {
                state.skipped -= 1;
                Some(result)
            }
        };
        drop(state);
        drop(unwanted);
        self.changed.notify_all();
        true
    }

    /// Discards the batches before `batch`; returns `false` if the epoch already passed `batch`.
    fn skip_to(&self, batch: usize) -> bool {
        let mut state = self.lock_state();
        let Some(n) = batch.checked_sub(state.first) else { return false };
        let claimed = batch.min(state.unclaimed) - state.first;
        let have = n.min(state.done.len());
        let made: Vec<_> = state.done.drain(..have).flatten().collect();
        state.skipped += claimed - made.len();
        state.first = batch;
        // A job that was spawned to build a skipped batch builds a later batch instead. It ends if
        // no batch before `limit` is left.
        state.unclaimed = state.unclaimed.max(batch);
        state.limit = state.limit.max(batch);
        drop(state);
        drop(made);
        true
    }

    /// Prevents threads from starting further batches, and waits until the batches that they are
    /// building are complete.
    fn stop_workers(&self) {
        let mut state = self.lock_state();
        state.limit = 0;
        while state.running > 0 {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let done = std::mem::take(&mut state.done);
        drop(state);
        drop(done);
    }
}

/// Builds a batch with [`EpochPlan::make_batch`] and converts a panic to an error.
fn make_batch(plan: &EpochPlan, batch: usize, together: bool) -> Result<Batch> {
    catch_unwind(AssertUnwindSafe(|| {
        #[cfg(test)]
        if let Some(before) = plan.inner.before {
            before(batch);
        }
        plan.make_batch(batch, together)
    }))
    .unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<&str>()
            .map(|s| (*s).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        Err(Error::invalid(format!(
            "batch {batch}: a thread panicked while it built the batch; please report this bug: {message}"
        )))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::thread::sleep;
    use std::time::Duration;

    use arrow::array::UInt16Array;

    use super::LARGE_BATCH_BYTES;
    use crate::dense::AxisSize;
    use crate::loader::{Loader, LoaderOptions};
    use crate::table::RaggedTable;

    fn loader(n: u16, options: LoaderOptions) -> Loader {
        let table = RaggedTable::builder()
            .lengths(vec![1; n.into()])
            .unwrap()
            .column("code", 1, Arc::new(UInt16Array::from_iter_values(0..n)))
            .build()
            .unwrap();
        Loader::try_new([table], options).unwrap()
    }

    #[test]
    fn nothing_is_started_after_the_epoch_is_left() {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        for (threads, prefetch) in [(1, 6), (2, 0), (2, 6)] {
            for taken in 1..4 {
                STARTED.store(0, Ordering::SeqCst);
                let options = LoaderOptions::new(1).threads(threads).prefetch(prefetch);
                let loader = loader(40, options).set_fault(|_| {
                    STARTED.fetch_add(1, Ordering::SeqCst);
                    sleep(Duration::from_millis(5));
                });
                let mut epoch = loader.epoch(0).unwrap();
                assert_eq!(epoch.by_ref().take(taken).map(Result::unwrap).count(), taken);
                drop(epoch);
                let started = STARTED.load(Ordering::SeqCst);
                assert!(started < taken + threads + prefetch, "{started}");
                sleep(Duration::from_millis(40));
                assert_eq!(STARTED.load(Ordering::SeqCst), started);
            }
        }
    }

    #[test]
    fn skipped_batches_are_not_made() {
        static MADE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
        for (threads, prefetch) in [(1, 0), (1, 2), (3, 2)] {
            let options = LoaderOptions::new(1).threads(threads).prefetch(prefetch);
            let loader = loader(60, options).set_fault(|batch| MADE.lock().unwrap().push(batch));
            let in_flight = threads + prefetch;
            let made = || {
                let mut made = std::mem::take(&mut *MADE.lock().unwrap());
                made.sort_unstable();
                made
            };
            assert_eq!(loader.epoch(0).unwrap().nth(30).unwrap().unwrap().number(), 30);
            assert!(made().iter().all(|b| (30..30 + in_flight).contains(b)));
            let mut epoch = loader.epoch_from(0, 7).unwrap();
            assert_eq!(epoch.next().unwrap().unwrap().number(), 7);
            assert_eq!(epoch.nth(42).unwrap().unwrap().number(), 50);
            let mut epoch = epoch.skip_to(59);
            assert_eq!(epoch.next().unwrap().unwrap().number(), 59);
            assert!(epoch.next().is_none() && epoch.nth(3).is_none());
            drop(epoch);
            let ranges = [7..7 + in_flight, 50..60];
            let made = made();
            assert!(made.iter().all(|b| ranges.iter().any(|r| r.contains(b))), "{made:?}");
            assert!(made.contains(&7) && made.contains(&50) && made.contains(&59));
        }
    }

    #[test]
    fn what_was_made_ahead_is_kept_by_skips() {
        static MADE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
        for (threads, prefetch) in [(1, 6), (2, 6)] {
            let options = LoaderOptions::new(1).threads(threads).prefetch(prefetch);
            let loader = loader(40, options).set_fault(|batch| {
                MADE.lock().unwrap().push(batch);
                if batch.is_multiple_of(4) {
                    sleep(Duration::from_millis(3));
                }
            });
            let mut numbers = Vec::new();
            for batch in loader.epoch(0).unwrap().step_by(3) {
                numbers.push(batch.unwrap().number());
                sleep(Duration::from_millis(1));
            }
            assert_eq!(numbers, (0..40).step_by(3).collect::<Vec<_>>());
            let mut made = std::mem::take(&mut *MADE.lock().unwrap());
            let all = made.len();
            made.sort_unstable();
            made.dedup();
            assert_eq!(made.len(), all, "some were made twice");
        }
    }

    /// Number of calls of the test hook that are running, and the largest number so far.
    static NOW: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);

    #[test]
    fn large_batches_are_made_one_after_the_other() {
        // `hook` runs before a batch is built, so `MOST` is the largest number of batches that
        // threads begin to build at the same time.
        let hook = |_| {
            let now = NOW.fetch_add(1, Ordering::SeqCst) + 1;
            MOST.fetch_max(now, Ordering::SeqCst);
            sleep(Duration::from_millis(20));
            NOW.fetch_sub(1, Ordering::SeqCst);
        };
        for (size, at_once) in [(LARGE_BATCH_BYTES, 1), (1, 2)] {
            MOST.store(0, Ordering::SeqCst);
            let options = LoaderOptions::new(1)
                .sizes([AxisSize::Exactly(size)])
                .masks([])
                .threads(2)
                .prefetch(3);
            let batches = loader(6, options).set_fault(hook).epoch(0).unwrap();
            assert_eq!(batches.map(Result::unwrap).count(), 6);
            assert_eq!(MOST.load(Ordering::SeqCst), at_once, "{size}");
        }
    }

    #[test]
    fn an_epoch_is_shared_by_jobs_of_the_pool_that_makes_it() {
        let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap());
        for _ in 0..20 {
            let options = LoaderOptions::new(1)
                .sizes([AxisSize::Exactly(LARGE_BATCH_BYTES / 2)])
                .pool(Arc::clone(&pool))
                .prefetch(1);
            let epoch = Arc::new(Mutex::new(loader(12, options).epoch(0).unwrap()));
            let (done, wait) = std::sync::mpsc::channel();
            for _ in 0..12 {
                let (epoch, done) = (Arc::clone(&epoch), done.clone());
                pool.spawn(move || {
                    let batch = epoch.lock().unwrap().next();
                    done.send(batch.unwrap().is_ok()).unwrap();
                });
            }
            for _ in 0..12 {
                assert!(wait.recv_timeout(Duration::from_secs(30)).expect("a deadlock"));
            }
        }
    }

    #[test]
    fn a_panic_is_an_error_in_its_place() {
        let table = RaggedTable::builder()
            .lengths([1; 10])
            .unwrap()
            .column("code", 1, Arc::new(UInt16Array::from_iter_values(0..10)))
            .build()
            .unwrap();
        for (threads, prefetch) in [(1, 0), (1, 1), (2, 0), (3, 2)] {
            let options = LoaderOptions::new(2).threads(threads).prefetch(prefetch);
            let loader = Loader::try_new([table.clone()], options).unwrap();
            let loader = loader.set_fault(|batch| assert!(batch != 2, "batch {batch} is bad"));
            let all: Vec<_> = loader.epoch(0).unwrap().collect();
            assert_eq!(all.len(), 5);
            for (i, batch) in all.iter().enumerate() {
                match batch {
                    Ok(b) => assert_eq!((i != 2, b.number()), (true, i)),
                    Err(e) => {
                        assert_eq!(i, 2);
                        assert!(e.to_string().contains("batch 2 is bad"), "{e}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_thread_of_the_pool_may_iterate() {
        let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap());
        let table = RaggedTable::builder()
            .lengths([1; 10])
            .unwrap()
            .column("code", 1, Arc::new(UInt16Array::from_iter_values(0..10)))
            .build()
            .unwrap();
        let options = LoaderOptions::new(3).pool(Arc::clone(&pool)).prefetch(1);
        let loader = Loader::try_new([table], options).unwrap();
        let n = pool.install(|| loader.epoch(0).unwrap().map(|b| b.unwrap().len()).sum::<usize>());
        assert_eq!(n, 10);
    }
}
