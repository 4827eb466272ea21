//! Ctrl-C and SIGTERM: the first one stops what is running and lets it clean up, the second one ends the
//! process.

use std::future::Future;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::error::{Failure, Outcome};

static PRESSED: AtomicBool = AtomicBool::new(false);
/// SIGTERM came: nothing new is begun, and the process ends.
static TERMINATED: AtomicBool = AtomicBool::new(false);
/// Standard input is read, which nothing but input ends, and which leaves nothing to clean up.
static READING: AtomicBool = AtomicBool::new(false);
static NOTIFY: LazyLock<Notify> = LazyLock::new(Notify::new);

/// How long work that was told to end by SIGTERM may take to clean up: less than service managers wait.
const GRACE: Duration = Duration::from_secs(8);

/// Starts to listen; needs a running tokio runtime.
pub(super) fn listen() {
    tokio::spawn(async {
        while tokio::signal::ctrl_c().await.is_ok() {
            press();
        }
    });
    #[cfg(unix)]
    tokio::spawn(async {
        use tokio::signal::unix::{SignalKind, signal};
        let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
        while terminate.recv().await.is_some() {
            TERMINATED.store(true, Ordering::SeqCst);
            if READING.load(Ordering::SeqCst) {
                std::process::exit(code().into());
            }
            press();
            std::thread::spawn(|| {
                std::thread::sleep(GRACE);
                std::process::exit(code().into());
            });
        }
    });
}

fn press() {
    if PRESSED.swap(true, Ordering::SeqCst) {
        std::process::exit(code().into());
    }
    NOTIFY.notify_waiters();
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
