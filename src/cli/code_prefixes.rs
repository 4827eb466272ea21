//! Finds the prefix of a code, such as `LAB` in `LAB//50912//mg/dL`, and counts codes by prefix.

use std::collections::HashMap;

/// Label of the entry that [`count_prefixes`] adds at the end for all prefixes without an entry of
/// their own.
pub(super) const OTHERS: &str = "others";

/// Returns the part of a code before its first `//` or, without `//`, its first `/`: `LAB` of
/// `LAB//50912`, and `ICD10CM` of `ICD10CM/E11`. Returns the whole code if it has neither, or if
/// that part is empty.
pub(super) fn find_code_prefix(code: &str) -> &str {
    let end = code.find("//").or_else(|| code.find('/')).filter(|end| *end > 0);
    end.map_or(code, |end| &code[..end])
}

/// Counts codes by prefix. Returns the `most` most frequent prefixes with their counts, by
/// descending count and, for equal counts, in byte order. If prefixes remain, an entry [`OTHERS`]
/// with the sum of their counts follows.
pub(super) fn count_prefixes<'a>(
    codes: impl Iterator<Item = (&'a str, u64)>,
    most: usize,
) -> Vec<(String, u64)> {
    let mut counts: HashMap<&str, u64> = HashMap::new();
    for (code, count) in codes {
        *counts.entry(find_code_prefix(code)).or_default() += count;
    }
    let mut counts: Vec<(String, u64)> =
        counts.into_iter().map(|(prefix, count)| (prefix.to_owned(), count)).collect();
    counts.sort_by(|(a, n), (b, m)| m.cmp(n).then_with(|| a.cmp(b)));
    // If exactly one prefix remains, it keeps its own entry, because replacing one entry with the
    // entry `OTHERS` would not make the list shorter.
    if counts.len() > most + 1 {
        let rest = counts.split_off(most);
        counts.push((OTHERS.into(), rest.iter().map(|(_, n)| n).sum()));
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_at_slashes() {
        let codes = ["LAB//1//x", "ICD10CM/E11", "MEDS_BIRTH", "//odd", "/x", ""];
        let prefixes: Vec<&str> = codes.into_iter().map(find_code_prefix).collect();
        assert_eq!(prefixes, ["LAB", "ICD10CM", "MEDS_BIRTH", "//odd", "/x", ""]);
    }

    #[test]
    fn rare_prefixes_are_counted_together() {
        let codes = [("A//1", 2), ("B", 5), ("A//2", 2), ("C", 4), ("D", 1), ("E", 1)];
        let of = |most| count_prefixes(codes.into_iter(), most);
        let pairs = |list: &[(&str, u64)]| -> Vec<(String, u64)> {
            list.iter().map(|(p, n)| ((*p).to_owned(), *n)).collect()
        };
        assert_eq!(of(2), pairs(&[("B", 5), ("A", 4), (OTHERS, 6)]));
        assert_eq!(of(4), pairs(&[("B", 5), ("A", 4), ("C", 4), ("D", 1), ("E", 1)]));
    }
}
