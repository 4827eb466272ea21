//! Tests of the functions that read comments, names and literals from source text.

use super::*;

#[test]
fn prose_lines_omit_tables_code_and_generated_parts() {
    let text = "\
# Title
| a | b |
```sh
ls
```
words
<!-- rules -->
generated
<!-- end of rules -->
more
<!-- SERRATE_BLESS=1 cargo test writes this -->
generated
";
    let lines: Vec<&str> = prose_lines(text).into_iter().map(|(_, line)| line).collect();
    assert_eq!(lines, ["# Title", "words", "more"]);
    assert!(has_long_link(&format!("see [x](https://{}.org)", "a".repeat(LONG_LINK))));
    assert!(!has_long_link("see [x](https://a.org)"));
}

#[test]
fn examples_are_read_as_they_are_printed() {
    let source =
        "use a;\nconst EXAMPLES: &str = \"\\\nExamples:\n  a \\\"b\\\"\";\nconst B: u8 = 1;\n";
    let lines: Vec<String> = example_lines(source).into_iter().map(|(_, line)| line).collect();
    assert_eq!(lines, ["Examples:", "  a \"b\""]);
}

#[test]
fn private_functions_omit_public_trait_and_python_functions() {
    let text = "\
pub fn open() {}
pub async fn hidden() {}
pub const fn shared() {}
fn taken() {}
pub(crate) const fn joined(x: u8) -> u8 {
    x
}
impl Read for File {
    fn read() {}
}
impl<T> File<T> {
    fn head() {}
}
trait Shape {
    fn sides();
}
#[cfg(test)]
mod tests {
    fn helper() {}
}
unsafe fn last() {}
pub(in crate::sql) fn deep() {}
#[pymethods]
#[allow(non_snake_case)]
impl Table {
    fn Shown() {}
}
#[pyfunction]
#[pyo3(signature = (x))]
fn also_shown() {}
impl Table {
    fn inner() {}
}
";
    let public: BTreeSet<String> = ["open", "taken"].map(str::to_owned).into();
    let found = private_functions(text, &public);
    let names: Vec<String> = found.into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["hidden", "shared", "taken", "joined", "head", "last", "deep", "inner"]);
}

#[test]
fn declared_types_omit_associated_types() {
    let text = "\
pub struct Open {
    x: u8,
}
#[derive(Clone)]
pub(in crate::sql) enum Kind<'a> {
    Of(&'a str),
}
type Pair<T> = (T, T);
impl<T> Shape for Open {
    type Side = u8;
    fn sides() {
        struct Local(u8);
    }
}
pub(crate) trait Shape: Sized {
    type Side;
}
macro_rules! build {
    () => {
        struct Built;
    };
}
type Last = u8;
#[pyclass(frozen)]
struct Table;
#[cfg(test)]
mod tests {
    struct Helper;
}
";
    let names: Vec<String> = declared_types(text).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["Open", "Kind", "Pair", "Local", "Shape", "Last"]);
}

#[test]
fn absent_paths_omit_existing_and_foreign_paths() {
    assert!(
        absent_paths("See `sql::order::source_order` and `kernels::reduce::reduce`.").is_empty()
    );
    assert!(absent_paths("See `std::mem::swap`, `Vec::new` and `x::y`.").is_empty());
    assert_eq!(absent_paths("See `sql::no_such_module`."), ["sql::no_such_module"]);
}

#[test]
fn string_literals_omit_comments_and_tests() {
    let text = "\
// \"in a comment\"
let a = ('\"', \"one line\", \"word\");
let b = \"two \\
         \\\"lines\\\" here\";
#[cfg(test)]
mod tests {
    let c = \"in tests\";
}
";
    let literals: Vec<&str> = string_literals(text).into_iter().map(|(_, l)| l).collect();
    assert_eq!(literals, ["one line", "two \\", "         \\\"lines\\\" here"]);
}

#[test]
fn public_functions_are_read_with_their_documentation() {
    let text = "\
/// A table.
pub struct Table<T>(T);
impl<T: Fn(u8) -> u8> Table<T> {
    /// Returns, for each row, a number.
    #[must_use]
    pub const fn rows(&self) {}
    #[doc(hidden)]
    pub fn secret(&self) {}
    fn inner(&self) {}
}
/// The rows.
pub fn count_rows() {}
";
    let items = documented_items(text);
    assert_eq!(items.types, [("Table".to_owned(), "A table.\n".to_owned())]);
    let found: Vec<(&str, bool)> =
        items.functions.iter().map(|f| (f.path.as_str(), is_third_person(&f.docs))).collect();
    assert_eq!(found, [("Table::rows", true), ("count_rows", false)]);
    assert_eq!(implementing_type("impl fmt::Display for Table {").as_deref(), Some("Table"));
}

#[test]
fn limits_only_decrease() {
    assert_eq!(lower_limit(Some(3), 5), 3);
    assert_eq!(lower_limit(Some(3), 2), 2);
    assert_eq!(lower_limit(None, 7), 7);
}

#[test]
fn negates_noun_allows_there_is_no() {
    assert!(negates_noun("", "`None` if `e` is no constant."));
    assert!(negates_noun("The values", "are no lists."));
    assert!(!negates_noun("an error if there", "are no axes."));
    assert!(!negates_noun("", "There is no list, and it is not a list."));
    assert!(!negates_noun("", "It is no longer a list."));
}

#[test]
fn comments_are_read_from_lines_without_code() {
    assert_eq!(comment_of("    /// Of lists."), Some("Of lists."));
    assert_eq!(comment_of("//! What"), Some("What"));
    assert_eq!(comment_of("let x = 1; // Of"), None);
    assert_eq!(script_comment_of("    # Of lists."), Some("Of lists."));
    assert_eq!(script_comment_of("x = 1  # Of"), None);
    assert_eq!(script_comment_of("#!/usr/bin/env python3"), None);
}
