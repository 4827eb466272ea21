//! Converts a panic to the error of one statement, so that the shell continues.

use std::any::Any;
use std::sync::Mutex;

use serrate_core::internal::{find_panic_text, lock_mutex};

use super::command_failure::Failure;

/// Location of the last panic, until [`to_failure`] takes it.
static PLACE: Mutex<Option<String>> = Mutex::new(None);

/// Installs a hook that stores the location of a panic in [`PLACE`]. The hook prints the panic only
/// if `RUST_BACKTRACE` is set.
pub(super) fn install_hook() {
    let print = std::panic::take_hook();
    let prints_panics = std::env::var_os("RUST_BACKTRACE").is_some_and(|v| v != "0");
    std::panic::set_hook(Box::new(move |info| {
        let place = info.location().map(ToString::to_string);
        *lock_mutex(&PLACE) = place;
        if prints_panics {
            print(info);
        }
    }));
}

pub(super) fn to_failure(panic: &(dyn Any + Send)) -> Failure {
    let place = lock_mutex(&PLACE).take();
    let place = place.unwrap_or_else(|| "an unknown location".into());
    Failure::from_message(format!(
        "stopped by an internal error at {place}: {}; please report it with the statement and the file",
        find_panic_text(panic)
    ))
}
