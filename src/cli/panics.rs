//! Panics: errors of one statement, without the noise.

use std::any::Any;
use std::sync::{Mutex, PoisonError};

use super::error::Failure;
use crate::io::contain::panic_text;

/// Where the last panic was.
static PLACE: Mutex<Option<String>> = Mutex::new(None);

/// Keeps the place of a panic instead of printing it: who catches it says what happened. With
/// `RUST_BACKTRACE` set it is printed as well.
pub(super) fn silence() {
    let print = std::panic::take_hook();
    let loud = std::env::var_os("RUST_BACKTRACE").is_some_and(|v| v != "0");
    std::panic::set_hook(Box::new(move |info| {
        let place = info.location().map(ToString::to_string);
        *PLACE.lock().unwrap_or_else(PoisonError::into_inner) = place;
        if loud {
            print(info);
        }
    }));
}

/// What is reported of a panic.
pub(super) fn failure(panic: &(dyn Any + Send)) -> Failure {
    let place = PLACE.lock().unwrap_or_else(PoisonError::into_inner).take();
    let place = place.unwrap_or_else(|| "an unknown place".into());
    Failure::message(format!(
        "stopped by an internal error at {place}: {}; please report it with the statement and the file",
        panic_text(panic)
    ))
}
