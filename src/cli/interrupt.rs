//! Ctrl-C: the first one stops what is running and lets it clean up, the second one ends the process.

use std::future::Future;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use super::error::{Failure, Outcome};

static PRESSED: AtomicBool = AtomicBool::new(false);
static NOTIFY: LazyLock<Notify> = LazyLock::new(Notify::new);

/// Starts to listen; needs a running tokio runtime.
pub(super) fn listen() {
    tokio::spawn(async {
        while tokio::signal::ctrl_c().await.is_ok() {
            if PRESSED.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
            NOTIFY.notify_waiters();
        }
    });
}

/// Forgets an earlier Ctrl-C: the shell goes on after a cancelled query.
pub(super) fn reset() {
    PRESSED.store(false, Ordering::SeqCst);
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
