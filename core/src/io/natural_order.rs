/// Returns a key that sorts files by folder, and numbers in names by value: `x-9` before `x-10`.
///
/// Readers of several files use this order, unless their documentation names another order. The
/// "source order" of rows is the order of their files, then their order in the file.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::internal::make_natural_key;
/// let mut names = ["b/1.nrt", "a/10.nrt", "a/2.nrt"];
/// names.sort_by_cached_key(|n| make_natural_key(n));
/// assert_eq!(names, ["a/2.nrt", "a/10.nrt", "b/1.nrt"]);
/// ```
pub fn make_natural_key(path: &str) -> Vec<(Vec<(String, u128)>, String)> {
    path.split(['/', std::path::MAIN_SEPARATOR])
        .map(|name| {
            let mut parts = Vec::new();
            let mut rest = name;
            while !rest.is_empty() {
                let digit = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
                let (text, number) = rest.split_at(digit);
                let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
                // The key is the number plus 1, or 0 without a number, so `x` sorts before `x0`.
                let value = number[..end].parse::<u128>().map_or(0, |n| n.saturating_add(1));
                parts.push((text.to_owned(), value));
                rest = &number[end..];
            }
            (parts, name.to_owned())
        })
        .collect()
}

/// Returns a key that compares names as strings, folder by folder: `shard-10` before `shard-9`.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::internal::make_text_key;
/// let mut names = ["b/1.nrt", "a/2.nrt", "a/10.nrt"];
/// names.sort_by_cached_key(|n| make_text_key(n));
/// assert_eq!(names, ["a/10.nrt", "a/2.nrt", "b/1.nrt"]);
/// ```
pub fn make_text_key(path: &str) -> Vec<String> {
    path.split(['/', std::path::MAIN_SEPARATOR]).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_natural_order() {
        let mut names = ["b/1", "a/10", "a/2", "a", "shard-10", "shard-9", "a/x"];
        names.sort_by_cached_key(|n| make_natural_key(n));
        assert_eq!(names, ["a", "a/2", "a/10", "a/x", "b/1", "shard-9", "shard-10"]);
    }
}
