//! Runs Rust code for Python: without holding the interpreter, on threads of this process, interruptible by
//! Ctrl-C, and with panics converted to exceptions.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pyo3::intern;
use pyo3::prelude::*;
use rayon::ThreadPool;
use tokio::runtime::{Builder, Runtime};

use crate::errors::{OrRaise, make_exception, make_invalid_error};

/// Time between two checks for signals, such as Ctrl-C, while a call waits for a result.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Stack size of each thread that plans and runs queries: deeply nested expressions recurse deeply.
const STACK: usize = 64 << 20;

/// Id of the process that loaded the module. A process forked from it has none of its threads.
static HOME: OnceLock<u32> = OnceLock::new();

pub(crate) fn remember_process() {
    HOME.get_or_init(std::process::id);
}

/// Returns whether this process was forked from the process that loaded the module.
pub(crate) fn is_forked() -> bool {
    HOME.get().is_some_and(|home| *home != std::process::id())
}

/// Returns whether several threads may make one result: false in a forked process, which has none of the
/// threads of the parent, and in a process that `multiprocessing` started, such as a worker of a DataLoader,
/// because the other workers run in parallel.
pub(crate) fn may_share_work(py: Python<'_>) -> PyResult<bool> {
    if is_forked() {
        return Ok(false);
    }
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    let process = modules.call_method1(intern!(py, "get"), ("multiprocessing.process",))?;
    Ok(process.is_none() || process.call_method0(intern!(py, "parent_process"))?.is_none())
}

#[derive(Clone)]
pub(crate) struct ThreadPools {
    process: u32,
    runtime: Arc<Runtime>,
    /// Pool for parallel kernels in a forked process, whose global pool may belong to the parent.
    pool: Option<Arc<ThreadPool>>,
}

static THREADS: Mutex<Option<ThreadPools>> = Mutex::new(None);

/// Returns the threads of this process, which are started on first use.
///
/// In a forked process, queries run on one thread of a separate pool: parallel kernels use the pool of the
/// calling thread instead of the global pool, whose threads exist only in the parent.
pub(crate) fn start_threads() -> PyResult<ThreadPools> {
    let process = std::process::id();
    let mut known = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.as_ref().filter(|t| t.process == process) {
        return Ok(found.clone());
    }
    let failed =
        |e: String| make_invalid_error(format!("the threads for queries cannot be started: {e}"));
    let forked = is_forked();
    let mut builder =
        if forked { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    let runtime = builder
        .thread_stack_size(STACK)
        .thread_name("serrate")
        .enable_all()
        .build()
        .map_err(|e| failed(e.to_string()))?;
    let pool = match forked {
        true => {
            let pool = rayon::ThreadPoolBuilder::new().stack_size(STACK).build();
            Some(Arc::new(pool.map_err(|e| failed(e.to_string()))?))
        }
        false => None,
    };
    let threads = ThreadPools { process, runtime: Arc::new(runtime), pool };
    if let Some(parents) = known.replace(threads.clone()) {
        // The threads of the parent do not exist in this process and cannot be joined, so leak the runtime.
        std::mem::forget(parents);
    }
    Ok(threads)
}

impl ThreadPools {
    /// Waits for a future. Returns an error if a signal handler or `watch` raises an exception.
    fn await_future<T: Send>(
        &self,
        future: impl Future<Output = T> + Send,
        watch: &mut impl FnMut(Python<'_>, Duration) -> PyResult<()>,
    ) -> PyResult<T> {
        if let Some(pool) = &self.pool {
            // This runs on a thread of the pool, which cannot handle signals and must not wait for the
            // interpreter, because the caller may hold it.
            return Ok(pool.install(|| self.runtime.block_on(future)));
        }
        let started = Instant::now();
        self.runtime.block_on(async {
            tokio::pin!(future);
            loop {
                match tokio::time::timeout(SIGNAL_CHECK_INTERVAL, &mut future).await {
                    Ok(done) => return Ok(done),
                    Err(_) => Python::attach(|py| {
                        py.check_signals()?;
                        watch(py, started.elapsed())
                    })?,
                }
            }
        })
    }

    /// Runs a future on the threads and waits for it; Ctrl-C aborts it. The caller must not hold the
    /// interpreter.
    pub(crate) fn finish<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> PyResult<T> {
        self.finish_watched(future, |_, _| Ok(()))
    }

    /// Runs a future like [`finish`](Self::finish), and regularly calls `watch` with the elapsed time.
    pub(crate) fn finish_watched<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
        mut watch: impl FnMut(Python<'_>, Duration) -> PyResult<()>,
    ) -> PyResult<T> {
        let task = self.runtime.spawn(future);
        let abort = task.abort_handle();
        match self.await_future(task, &mut watch) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(e)) if e.is_panic() => Err(to_panic_error(e.into_panic().as_ref())),
            Ok(Err(e)) => Err(make_exception("Error", e.to_string())),
            Err(interrupt) => {
                abort.abort();
                Err(interrupt)
            }
        }
    }

    /// Waits for a future on the calling thread.
    pub(crate) fn next<T: Send>(&self, future: impl Future<Output = T> + Send) -> PyResult<T> {
        self.await_future(future, &mut |_, _| Ok(()))
    }

    pub(crate) fn spawn_task(
        &self,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> tokio::task::AbortHandle {
        self.runtime.spawn(future).abort_handle()
    }
}

pub(crate) fn to_panic_error(panic: &(dyn Any + Send)) -> PyErr {
    make_exception("Error", format_panic(panic))
}

pub(crate) fn format_panic(panic: &(dyn Any + Send)) -> String {
    format!(
        "serrate stopped because of an internal error; please report this bug: {}",
        find_panic_text(panic)
    )
}

fn find_panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".into())
}

/// Runs `f` without holding the interpreter. If `f` uses several threads, they belong to this
/// process, not to the process that it was forked from.
pub(crate) fn run_detached<T: Send>(
    py: Python<'_>,
    f: impl FnOnce() -> serrate::Result<T> + Send,
) -> PyResult<T> {
    let pool = if is_forked() { start_threads()?.pool } else { None };
    let done = py.detach(|| {
        let guarded = || catch_unwind(AssertUnwindSafe(f));
        match pool {
            Some(pool) => pool.install(guarded),
            None => guarded(),
        }
    });
    done.map_err(|panic| to_panic_error(panic.as_ref()))?.or_raise()
}

/// Runs `f` like [`run_detached`], but on another thread. If a signal handler raises an exception,
/// as that of Ctrl-C does, sets the flag that `f` gets, and returns the exception once `f` has
/// returned.
pub(crate) fn run_stoppable<T: Send>(
    py: Python<'_>,
    f: impl FnOnce(&AtomicBool) -> serrate::Result<T> + Send,
) -> PyResult<T> {
    let pool = if is_forked() { start_threads()?.pool } else { None };
    let flag = AtomicBool::new(false);
    let stopped = &flag;
    let (sender, receiver) = mpsc::channel();
    let run = move || {
        let guarded = || catch_unwind(AssertUnwindSafe(|| f(stopped)));
        let done = match pool {
            Some(pool) => pool.install(guarded),
            None => guarded(),
        };
        // The receiver waits for this result.
        let _ = sender.send(done);
    };
    let wait = move || {
        let mut interrupt = None;
        loop {
            match receiver.recv_timeout(SIGNAL_CHECK_INTERVAL) {
                Ok(done) => return (Some(done), interrupt),
                Err(RecvTimeoutError::Disconnected) => return (None, interrupt),
                Err(RecvTimeoutError::Timeout) if interrupt.is_none() => {
                    interrupt = Python::attach(|py| py.check_signals()).err();
                    stopped.store(interrupt.is_some(), Ordering::Relaxed);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    };
    let (done, interrupt) = py.detach(move || {
        std::thread::scope(|scope| {
            scope.spawn(run);
            wait()
        })
    });
    match (interrupt, done) {
        (Some(interrupt), _) => Err(interrupt),
        (None, Some(Ok(done))) => done.or_raise(),
        (None, Some(Err(panic))) => Err(to_panic_error(panic.as_ref())),
        (None, None) => Err(make_exception("Error", "the call ended without a result".into())),
    }
}

/// Runs a single-threaded `f` on the calling thread without holding the interpreter.
pub(crate) fn run_alone<T: Send>(
    py: Python<'_>,
    f: impl FnOnce() -> serrate::Result<T> + Send,
) -> PyResult<T> {
    py.detach(|| run_here(f))
}

/// Runs a short, single-threaded `f` on the calling thread, holding the interpreter.
pub(crate) fn run_here<T>(f: impl FnOnce() -> serrate::Result<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|panic| to_panic_error(panic.as_ref()))?.or_raise()
}
