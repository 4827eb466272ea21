//! Which names in a folder are data.

use std::path::Path;

/// Whether a name in a folder is not listed as data: it begins with `.` (what is being written, among
/// others) or `_` (`_SUCCESS`, `_metadata`), and is no partition such as `_day=3`.
pub(crate) fn is_hidden_name(name: &str) -> bool {
    name.starts_with('.') || name.starts_with('_') && !name.contains('=')
}

/// Whether one of the names of a path is hidden: of a path below the folder that is listed.
pub(crate) fn is_hidden(relative: &Path) -> bool {
    relative.components().any(|c| is_hidden_name(&c.as_os_str().to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_begin_with_a_dot_or_an_underscore_are_hidden() {
        for name in [".a.csv", "_a.csv", "_SUCCESS", "x/.serrate-1.tmp/a.csv", "_old/a.csv"] {
            assert!(is_hidden(Path::new(name)), "{name}");
        }
        for name in ["a.csv", "a._b", "_day=3/a.csv", "x/y.z"] {
            assert!(!is_hidden(Path::new(name)), "{name}");
        }
    }
}
