use std::path::Path;

/// Returns whether a name is hidden: it begins with `.` (temporary files) or with `_` (`_SUCCESS`,
/// `_metadata`), unless it names a partition folder such as `_day=3`.
pub fn is_hidden_name(name: &str) -> bool {
    name.starts_with('.') || name.starts_with('_') && !name.contains('=')
}

/// Returns whether any component of a path, relative to the listed folder, is hidden.
pub fn is_hidden(relative: &Path) -> bool {
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
