//! Ctrl-C and SIGTERM: the first signal lets running work stop and clean up, the second ends the
//! process.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock};
use std::time::{Duration, Instant};

use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::SessionContext;
use futures::{StreamExt, stream};
use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, JoinHandle};

use crate::access;
use crate::sql::has_aborts;
use serrate_core::internal::remove_temporaries;

use super::command_failure::{Failure, Outcome};

/// Set by Ctrl-C and SIGTERM, until [`clear_interrupt`].
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Set by SIGTERM. The process then ends with exit code 143, even in the shell, where Ctrl-C only
/// cancels the statement.
static TERMINATED: AtomicBool = AtomicBool::new(false);
/// True while standard input is read. The read cannot be cancelled, so SIGTERM then exits the
/// process at once.
static READING_STDIN: AtomicBool = AtomicBool::new(false);
/// Wakes the futures that [`run_or_cancel`] runs when [`INTERRUPTED`] is set.
static INTERRUPT_NOTICE: LazyLock<Notify> = LazyLock::new(Notify::new);

/// Set while the interactive shell runs: Ctrl-C then cancels the statement, not the process.
static IN_SHELL: AtomicBool = AtomicBool::new(false);

/// The session whose temporary files [`remove_leftovers`] removes; see [`watch_session`].
static SESSION: OnceLock<SessionContext> = OnceLock::new();

/// Milliseconds from an interrupt to the forced exit of the process. In this time, running work
/// removes its temporary files and ends. The command `serve` sets a longer time with [`set_grace`].
/// Ctrl-C in the shell does not exit the process.
static GRACE: AtomicU64 = AtomicU64::new(800);

/// Maximum time to wait for the tasks of an interrupted statement. Most tasks end at once.
const TASK_END_LIMIT: Duration = Duration::from_millis(600);

/// Number of running tasks that statements have started.
static TASKS: AtomicUsize = AtomicUsize::new(0);

/// Listens for signals on a thread with its own runtime, because all threads of the main runtime
/// may be busy.
pub(super) fn listen_to_signals() -> Outcome {
    let failed = |e: std::io::Error| {
        Failure::from_message(format!(
            "cannot listen for signals such as Ctrl-C; check the limits on processes and files: {e}"
        ))
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(move || runtime.block_on(handle_signals())).map_err(failed)?;
    Ok(())
}

async fn handle_signals() {
    let interrupts = async {
        while tokio::signal::ctrl_c().await.is_ok() {
            request_stop();
        }
    };
    #[cfg(unix)]
    {
        let terminations = async {
            use tokio::signal::unix::{SignalKind, signal};
            let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
            while terminate.recv().await.is_some() {
                TERMINATED.store(true, Ordering::SeqCst);
                if READING_STDIN.load(Ordering::SeqCst) {
                    exit_now();
                }
                request_stop();
            }
        };
        tokio::join!(interrupts, terminations);
    }
    #[cfg(not(unix))]
    interrupts.await;
}

/// Tells the running work to stop. A second signal ends the process at once. If the work continues
/// after [`GRACE`], the process ends as well, except after Ctrl-C in the shell, where the tables in
/// memory would be lost.
fn request_stop() {
    if INTERRUPTED.swap(true, Ordering::SeqCst) {
        exit_now();
    }
    INTERRUPT_NOTICE.notify_waiters();
    if is_terminated() || !IN_SHELL.load(Ordering::SeqCst) {
        std::thread::spawn(|| {
            std::thread::sleep(Duration::from_millis(GRACE.load(Ordering::SeqCst)));
            exit_now();
        });
    }
}

/// Remembers the session of the command. If the process ends during a query, [`remove_leftovers`]
/// removes the temporary files of this session.
pub(super) fn watch_session(context: &SessionContext) {
    // Ignores the error that a session is already set, because a command sets only one session.
    let _ = SESSION.set(context.clone());
}

/// Removes the temporary files of writers and of spilling operators that are still running.
pub(super) fn remove_leftovers() {
    remove_temporaries();
    let Some(context) = SESSION.get() else { return };
    for folder in context.runtime_env().disk_manager.temp_dir_paths() {
        let _ = access::remove_spilled(&folder);
    }
}

fn exit_now() -> ! {
    remove_leftovers();
    std::process::exit(exit_code().into())
}

#[cfg(feature = "serve")]
pub(super) fn set_grace(time: Duration) {
    GRACE.store(u64::try_from(time.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
}

#[cfg(feature = "serve")]
pub(super) async fn wait_for_interrupt() {
    // A pending future never completes, so only an interrupt ends the wait.
    let _ = run_or_cancel(std::future::pending::<Outcome>()).await;
}

pub(super) fn enter_shell() {
    IN_SHELL.store(true, Ordering::SeqCst);
}

pub(super) fn exit_code() -> u8 {
    if is_terminated() { 143 } else { 130 }
}

pub(super) fn is_terminated() -> bool {
    TERMINATED.load(Ordering::SeqCst)
}

/// Clears an earlier Ctrl-C, so that the shell accepts the next statement after a cancelled query.
/// An earlier SIGTERM stays set, because it ends the shell.
pub(super) fn clear_interrupt() {
    INTERRUPTED.store(is_terminated(), Ordering::SeqCst);
}

/// Calls `read`, which reads standard input. SIGTERM ends the process at once during the call.
pub(super) fn read_stdin<T>(read: impl FnOnce() -> T) -> T {
    READING_STDIN.store(true, Ordering::SeqCst);
    let result = read();
    READING_STDIN.store(false, Ordering::SeqCst);
    result
}

/// Returns an error if there was an interrupt. Loops over blocking work call this function in each
/// pass, because an interrupt cannot cancel such work.
pub(super) fn check_interrupt() -> Outcome {
    match INTERRUPTED.load(Ordering::SeqCst) {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}

/// Runs a future until it completes. An interrupt drops the future and returns an error.
pub(super) async fn run_or_cancel<T>(work: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let interrupted = INTERRUPT_NOTICE.notified();
    tokio::pin!(interrupted);
    // Registers for the signal before `check_interrupt` reads the flag, so that no signal in
    // between is lost.
    interrupted.as_mut().enable();
    check_interrupt()?;
    tokio::select! {
        result = work => result,
        () = interrupted => Err(Failure::Interrupted),
    }
}

/// Counts a running task: adds 1 to [`TASKS`] when this guard is created, and subtracts 1 when it
/// is dropped.
struct TaskGuard;

impl TaskGuard {
    fn new() -> Self {
        TASKS.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        TASKS.fetch_sub(1, Ordering::SeqCst);
    }
}

struct WorkerTask<T> {
    handle: JoinHandle<T>,
    abort: AbortHandle,
}

impl<T: Send + 'static> WorkerTask<T> {
    fn spawn_work(work: impl Future<Output = T> + Send + 'static) -> Self {
        let guard = TaskGuard::new();
        let handle = tokio::spawn(async move {
            let _guard = guard;
            work.await
        });
        Self { abort: handle.abort_handle(), handle }
    }

    /// Waits for the task and returns its result. If the task panicked, panics with the same
    /// payload.
    async fn join_work(&mut self) -> T {
        match (&mut self.handle).await {
            Ok(result) => result,
            Err(e) => match e.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The task was aborted because the runtime shuts down, so it has no result. The
                // runtime drops this future next.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

impl<T> Drop for WorkerTask<T> {
    fn drop(&mut self) {
        self.abort.abort();
    }
}

/// Runs `work` on another thread and returns its result, so that the calling thread notices an
/// interrupt during a long computation.
pub(super) async fn run_on_worker<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    WorkerTask::spawn_work(work).join_work().await
}

/// Returns a stream of the batches of `input`, polled on another thread as in [`run_on_worker`].
pub(super) fn stream_on_worker(mut input: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let schema = input.schema();
    let (sender, receiver) = mpsc::channel(1);
    let task = WorkerTask::spawn_work(async move {
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
                task.join_work().await;
                None
            }
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

/// Waits until all tasks of an interrupted statement have ended, so that their temporary files are
/// removed, and until its uploads are aborted. Waits for [`TASK_END_LIMIT`] at most.
pub(super) async fn wait_for_tasks() {
    let start = Instant::now();
    while (TASKS.load(Ordering::SeqCst) > 0 || has_aborts()) && start.elapsed() < TASK_END_LIMIT {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
