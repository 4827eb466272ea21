//! Ctrl-C and SIGTERM: the first one stops what is running and lets it clean up, the second one ends the
//! process.

use std::future::Future;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};
use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, JoinHandle};

use super::error::{Failure, Outcome};

static PRESSED: AtomicBool = AtomicBool::new(false);
/// SIGTERM came: nothing new is begun, and the process ends.
static TERMINATED: AtomicBool = AtomicBool::new(false);
/// Standard input is read, which nothing but input ends, and which leaves nothing to clean up.
static READING: AtomicBool = AtomicBool::new(false);
static NOTIFY: LazyLock<Notify> = LazyLock::new(Notify::new);

/// The shell runs, which an interrupt does not end.
static SHELL: AtomicBool = AtomicBool::new(false);

/// How long work that was told to end may take to clean up.
const GRACE: Duration = Duration::from_secs(2);

/// How long an interrupted statement is waited for, which mostly ends at once.
const SOON: Duration = Duration::from_millis(700);
/// Tasks of statements that are not gone yet.
static TASKS: AtomicUsize = AtomicUsize::new(0);

/// Starts to listen, on a thread with a runtime of its own: the workers of the other one may all be busy.
pub(super) fn listen() -> Outcome {
    let failed = |e: std::io::Error| Failure::message(format!("cannot listen to signals: {e}"));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(move || runtime.block_on(hear())).map_err(failed)?;
    Ok(())
}

async fn hear() {
    let interrupts = async {
        while tokio::signal::ctrl_c().await.is_ok() {
            press();
        }
    };
    #[cfg(unix)]
    {
        let terminations = async {
            use tokio::signal::unix::{SignalKind, signal};
            let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
            while terminate.recv().await.is_some() {
                TERMINATED.store(true, Ordering::SeqCst);
                if READING.load(Ordering::SeqCst) {
                    std::process::exit(code().into());
                }
                press();
            }
        };
        tokio::join!(interrupts, terminations);
    }
    #[cfg(not(unix))]
    interrupts.await;
}

/// Tells what is running to end. The second time, or when it has not ended in time, the process ends; in
/// the shell, where there are tables to lose, an interrupt waits for the second one.
fn press() {
    if PRESSED.swap(true, Ordering::SeqCst) {
        std::process::exit(code().into());
    }
    NOTIFY.notify_waiters();
    if terminated() || !SHELL.load(Ordering::SeqCst) {
        std::thread::spawn(|| {
            std::thread::sleep(GRACE);
            std::process::exit(code().into());
        });
    }
}

/// From here on, interrupts end statements and not the process.
pub(super) fn enter_shell() {
    SHELL.store(true, Ordering::SeqCst);
}

/// The exit code of a process that was interrupted, or terminated.
pub(super) fn code() -> u8 {
    if terminated() { 143 } else { 130 }
}

/// Whether it is SIGTERM that ends the process.
pub(super) fn terminated() -> bool {
    TERMINATED.load(Ordering::SeqCst)
}

/// Forgets an earlier Ctrl-C: the shell goes on after a cancelled query.
pub(super) fn reset() {
    PRESSED.store(terminated(), Ordering::SeqCst);
}

/// Reads standard input, which SIGTERM ends at once.
pub(super) fn reading<T>(read: impl FnOnce() -> T) -> T {
    READING.store(true, Ordering::SeqCst);
    let result = read();
    READING.store(false, Ordering::SeqCst);
    result
}

/// For loops over blocking work: fails once Ctrl-C was pressed.
pub(super) fn check() -> Outcome {
    match PRESSED.load(Ordering::SeqCst) {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}

/// Runs a future until it ends or Ctrl-C drops it.
pub(super) async fn or_cancel<T>(work: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let pressed = NOTIFY.notified();
    tokio::pin!(pressed);
    // Registered before the flag is read, so that a press in between is not lost.
    pressed.as_mut().enable();
    check()?;
    tokio::select! {
        result = work => result,
        () = pressed => Err(Failure::Interrupted),
    }
}

/// Counts a task for as long as it is there.
struct Counted;

impl Counted {
    fn new() -> Self {
        TASKS.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        TASKS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A task that ends with whoever waits for it.
struct Task<T> {
    handle: JoinHandle<T>,
    abort: AbortHandle,
}

impl<T: Send + 'static> Task<T> {
    fn spawn(work: impl Future<Output = T> + Send + 'static) -> Self {
        let counted = Counted::new();
        let handle = tokio::spawn(async move {
            let _counted = counted;
            work.await
        });
        Self { abort: handle.abort_handle(), handle }
    }

    /// Returns the result of the task. A panic of the task continues in the caller.
    async fn join(&mut self) -> T {
        match (&mut self.handle).await {
            Ok(given) => given,
            Err(e) => match e.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime ends.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.abort.abort();
    }
}

/// Runs work on another thread, so that an interrupt does not wait for it to yield.
pub(super) async fn on_worker<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    Task::spawn(work).join().await
}

/// The batches of a stream that is polled on another thread, as [`on_worker`].
pub(super) fn stream_on_worker(mut input: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let schema = input.schema();
    let (sender, receiver) = mpsc::channel(1);
    let task = Task::spawn(async move {
        while let Some(batch) = input.next().await {
            if sender.send(batch).await.is_err() {
                break;
            }
        }
    });
    let batches = stream::unfold((receiver, task), |(mut receiver, mut task)| async move {
        match receiver.recv().await {
            Some(batch) => Some((batch, (receiver, task))),
            None => {
                task.join().await;
                None
            }
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

/// Waits for the tasks of an interrupted statement to be gone, with the files that they had begun; not for
/// long, and not for one that does not yield.
pub(super) async fn settle() {
    let start = Instant::now();
    while TASKS.load(Ordering::SeqCst) > 0 && start.elapsed() < SOON {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
