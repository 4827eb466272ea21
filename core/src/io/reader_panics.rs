use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::error::{Error, Result};

/// Converts a panic of another crate's reader to an error: Arrow's and Parquet's readers panic on
/// invalid numbers in a file. Callers must not use the reader after an error.
pub(crate) fn contain_panics<T>(path: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|panic| {
        let reason = find_panic_text(panic.as_ref());
        Err(Error::file(
            path,
            format!(
                "the file is damaged, because a length, an offset or a type in it is invalid ({reason}); create it again"
            ),
        ))
    })
}

/// Returns the message of a panic, or `no message` if the panic carries no text.
pub fn find_panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_of_the_file() {
        let error =
            contain_panics::<()>(Path::new("x.arrow"), || panic!("{} of 3", 4)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("x.arrow") && text.contains("4 of 3"), "{text}");
        assert_eq!(contain_panics(Path::new("x"), || Ok(1)).unwrap(), 1);
    }
}
