//! Keeps the language of comments and the names of functions and types from falling back.
//!
//! Each rule counts what `CONTRIBUTING.md` advises against. `tests/style/limits.txt` has the count
//! of each rule; a count above its limit fails and prints the places, and so does a count below it:
//! lower the limit then. `SERRATE_BLESS=1 cargo test --test style` lowers limits and never raises them.
//!
//! Prose in documents and the examples in the help also have a maximum width.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders whose Rust files are read.
const ROOTS: [&str; 5] = ["src", "core/src", "tests", "benches", "examples"];
const LIMITS: &str = "tests/style/limits.txt";
/// The public items. A function that is `pub` and not in this file counts as private.
const PUBLIC_ITEMS: &str = "docs/public-api.txt";
/// At most so many places are printed for a rule.
const SHOWN: usize = 20;

/// First words of comment lines whose sentence lacks its subject.
const BARE_STARTS: [&str; 8] =
    ["Of ", "With ", "As ", "What ", "Where ", "Those ", "That of ", "Which "];

/// Phrases for which the field has a word, with that word.
const PHRASES: [(&str, &str); 19] = [
    ("asks ahead", "prefetches"),
    ("asked ahead", "prefetched"),
    ("asked for ahead", "prefetched"),
    ("ask for the line", "prefetch the line"),
    ("foresee", "predict"),
    ("foretold", "predicted"),
    ("lessened by", "reduced by"),
    ("laid over one another", "stacked"),
    ("written out", "literal, constant"),
    ("is had", "exists, is available"),
    ("for nothing", "without cost, in vain"),
    ("no more and no less", "exactly"),
    ("is told", "is given, receives"),
    ("those there are", "those that exist"),
    ("single value", "scalar"),
    ("truth value", "boolean"),
    ("beside ", "next to, compared with"),
    (" texts", "strings"),
    ("hollow", "without values"),
];

/// One-word names that are the vocabulary of Rust and of the field.
const ONE_WORD: [&str; 73] = [
    "add", "axes", "axis", "bounds", "build", "bytes", "call", "capacity", "clear", "clone",
    "close", "columns", "commit", "contains", "count", "create", "default", "deref", "div", "drop",
    "dtype", "empty", "eq", "evaluate", "exec", "exists", "extend", "fields", "filter", "finish",
    "flush", "fmt", "get", "hash", "index", "insert", "is_empty", "iter", "keys", "kind", "len",
    "lookup", "main", "map", "merge", "mul", "name", "names", "ndim", "neg", "new", "next",
    "nulls", "offsets", "open", "parse", "path", "plan", "poll", "pop", "push", "read", "remove",
    "reset", "rows", "run", "schema", "set", "shape", "size", "sub", "values", "write",
];

/// One-word participles that do not end in "ed".
const PARTICIPLES: [&str; 14] = [
    "bound", "built", "cut", "done", "drawn", "found", "given", "kept", "known", "made", "met",
    "put", "said", "taken",
];

/// Files and folders whose documents are read.
const DOCUMENTS: [&str; 12] = [
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "benches",
    "core",
    "docs",
    "examples",
    "fuzz",
    "python",
    "sql",
    "src",
    "tests",
];
/// Folders in `DOCUMENTS` that are not read: generated pages, and files that are not part of the sources.
const SKIPPED: [&str; 3] = ["docs/functions", "fuzz/corpus", "fuzz/target"];
const PROSE_WIDTH: usize = 100;
const HELP_WIDTH: usize = 80;
/// A line may be wider if a word with a link has more characters, because the word cannot be broken.
const LONG_LINK: usize = 60;
/// First words of functions whose name has no verb. `for_each_*` is allowed.
const PREPOSITIONS: [&str; 21] = [
    "of", "in", "by", "for", "at", "about", "on", "or", "over", "no", "too", "only", "any", "one",
    "own", "how", "per", "up", "below", "between", "with",
];

fn find_faults() -> BTreeMap<&'static str, Vec<String>> {
    let mut found: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for rule in [
        "bare sentence starts",
        "phrases",
        "one-word private functions",
        "participles as names",
        "prepositions before names",
        "types of one name",
    ] {
        found.insert(rule, Vec::new());
    }
    let mut files = Vec::new();
    for root in ROOTS {
        collect_files(Path::new(root), "rs", &mut files);
    }
    files.sort();
    let public = read_public_functions();
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    assert!(files.len() > 100, "found {} Rust files below the working folder", files.len());
    for file in files {
        if file.ends_with("tests/style.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let place = |line: usize| format!("{}:{}", file.display(), line + 1);
        let mut before = "";
        for (number, line) in text.lines().enumerate() {
            let Some(comment) = comment_of(line) else {
                before = "";
                continue;
            };
            if negates_noun(before, comment) {
                let entry = format!("{}: \"is no\" -> \"is not a\"", place(number));
                found.get_mut("phrases").unwrap().push(entry);
            }
            before = comment;
            if BARE_STARTS.iter().any(|start| comment.starts_with(start)) {
                found
                    .get_mut("bare sentence starts")
                    .unwrap()
                    .push(format!("{}: {comment}", place(number)));
            }
            for (phrase, better) in PHRASES {
                if comment.to_lowercase().contains(phrase) {
                    let entry = format!("{}: {phrase:?} -> {better:?}", place(number));
                    found.get_mut("phrases").unwrap().push(entry);
                }
            }
        }
        // Names of test functions are sentences, and integration tests have helpers of their own.
        if !(file.starts_with("src") || file.starts_with("core/src")) {
            continue;
        }
        for (number, name) in declared_types(&text) {
            types.entry(name).or_default().push(place(number));
        }
        for (number, name) in private_functions(&text, &public) {
            let first = name.split('_').next().unwrap_or_default();
            if PREPOSITIONS.contains(&first) && !name.starts_with("for_each") {
                let entry = format!("{}: {name}", place(number));
                found.get_mut("prepositions before names").unwrap().push(entry);
            }
            if name.contains('_') || ONE_WORD.contains(&name.as_str()) {
                continue;
            }
            let entry = format!("{}: {name}", place(number));
            if name.ends_with("ed") || PARTICIPLES.contains(&name.as_str()) {
                found.get_mut("participles as names").unwrap().push(entry.clone());
            }
            found.get_mut("one-word private functions").unwrap().push(entry);
        }
    }
    for (name, places) in types.iter().filter(|(_, places)| places.len() > 1) {
        let entry = format!("{name}: {}", places.join(", "));
        found.get_mut("types of one name").unwrap().push(entry);
    }
    found
}

fn collect_files(folder: &Path, extension: &str, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if hidden || SKIPPED.iter().any(|skipped| path.ends_with(skipped)) {
            continue;
        }
        if path.is_dir() {
            collect_files(&path, extension, files);
        } else if path.extension().is_some_and(|e| e == extension) {
            files.push(path);
        }
    }
}

/// Returns number and text of the lines of a document that are prose: not in tables, blocks of code,
/// comments and generated parts.
fn prose_lines(text: &str) -> Vec<(usize, &str)> {
    let mut lines = Vec::new();
    let (mut in_code, mut is_generated) = (false, false);
    for (number, line) in text.lines().enumerate() {
        let start = line.trim_start();
        if start.starts_with("```") {
            in_code = !in_code;
        } else if start.starts_with("<!--") && !in_code {
            // A generated part ends at the comment `end of ..`, or at the end of the document.
            is_generated = !start.starts_with("<!-- end of")
                && (is_generated || start.contains("SERRATE_BLESS") || start == "<!-- rules -->");
        } else if !in_code && !is_generated && !start.starts_with('|') {
            lines.push((number, line));
        }
    }
    lines
}

fn has_long_link(line: &str) -> bool {
    let is_link = |word: &str| word.contains("://") || word.contains("](");
    line.split_whitespace().any(|word| word.chars().count() > LONG_LINK && is_link(word))
}

/// Returns number and text of the lines that the constant `EXAMPLES` of a file prints.
fn example_lines(source: &str) -> Vec<(usize, String)> {
    let mut lines = source.lines().enumerate();
    if !lines.any(|(_, line)| line.starts_with("const EXAMPLES: &str = \"\\")) {
        return Vec::new();
    }
    let mut printed = Vec::new();
    for (number, line) in lines {
        let last = line.ends_with("\";");
        let line = if last { &line[..line.len() - 2] } else { line };
        printed.push((number, line.replace("\\\"", "\"").replace("\\\\", "\\")));
        if last {
            break;
        }
    }
    printed
}

/// The text of a line that is a comment and nothing else.
fn comment_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line
        .strip_prefix("///")
        .or_else(|| line.strip_prefix("//!"))
        .or_else(|| line.strip_prefix("//"))?;
    Some(text.trim_start())
}

/// Whether a line of a comment says "X is no list" instead of "X is not a list". `before` is the line
/// of the comment above. "There is no list" and "is no longer a list" are allowed.
fn negates_noun(before: &str, comment: &str) -> bool {
    let words: Vec<&str> = comment.split_whitespace().collect();
    words.windows(2).enumerate().any(|(at, pair)| {
        let subject = match at.checked_sub(1) {
            Some(previous) => words[previous],
            None => before.split_whitespace().next_back().unwrap_or_default(),
        };
        ["is", "are"].contains(&pair[0])
            && pair[1] == "no"
            && !subject.eq_ignore_ascii_case("there")
            && !words.get(at + 2).is_some_and(|next| next.starts_with("longer"))
    })
}

/// Returns the names of the functions in [`PUBLIC_ITEMS`], without their modules.
fn read_public_functions() -> BTreeSet<String> {
    let text = fs::read_to_string(PUBLIC_ITEMS).unwrap();
    let names = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once("fn ")?;
        let path: String =
            rest.chars().take_while(|c| c.is_alphanumeric() || ['_', ':'].contains(c)).collect();
        path.rsplit("::").next().map(str::to_owned)
    });
    let names: BTreeSet<String> = names.collect();
    assert!(names.len() > 300, "found {} functions in {PUBLIC_ITEMS}", names.len());
    names
}

/// Returns line and name of each function that is neither in `public`, nor a method of a trait, nor
/// of a test module. Relies on the indentation that rustfmt gives.
fn private_functions(text: &str, public: &BTreeSet<String>) -> Vec<(usize, String)> {
    let mut functions = Vec::new();
    // Indentation of the block that is being skipped.
    let mut skipped: Option<usize> = None;
    // The next module is one of tests.
    let mut test_next = false;
    for (number, line) in text.lines().enumerate() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if let Some(level) = skipped {
            if indent == level && code.starts_with('}') {
                skipped = None;
            }
            continue;
        }
        let item = code.strip_prefix("unsafe ").unwrap_or(code);
        let is_trait_impl =
            item.starts_with("impl") && item.contains(" for ") && !item.contains("for<");
        let is_trait = ["trait ", "pub trait ", "pub(crate) trait ", "pub(super) trait "]
            .iter()
            .any(|start| item.starts_with(start));
        // The methods that a macro defines are those of a trait.
        let is_macro = item.starts_with("macro_rules!");
        let is_test = test_next && item.starts_with("mod ");
        test_next = code == "#[cfg(test)]" || (test_next && code.starts_with("#["));
        if (is_trait_impl || is_trait || is_test || is_macro)
            && !code.ends_with('}')
            && !code.ends_with(';')
        {
            skipped = Some(indent);
            continue;
        }
        let is_public = code.starts_with("pub ");
        let mut words = code.split_whitespace().peekable();
        while words.peek().is_some_and(|w| {
            // `pub(in crate::sql)` is two words.
            w.starts_with("pub")
                || w.starts_with("crate::")
                || ["const", "async", "unsafe", "extern", "\"C\""].contains(w)
        }) {
            words.next();
        }
        if words.next() == Some("fn")
            && let Some(rest) = words.next()
        {
            let name: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if !(is_public && public.contains(&name)) {
                functions.push((number, name));
            }
        }
    }
    functions
}

/// Returns line and name of each type and trait, except those of test modules and macros, and
/// associated types. Relies on the indentation that rustfmt gives.
fn declared_types(text: &str) -> Vec<(usize, String)> {
    let mut types = Vec::new();
    // Indentation of the block that is being skipped.
    let mut skipped: Option<usize> = None;
    // Indentation of the `impl` block or trait around the line.
    let mut around: Option<usize> = None;
    // The next module is one of tests.
    let mut test_next = false;
    for (number, line) in text.lines().enumerate() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        for level in [&mut skipped, &mut around] {
            if *level == Some(indent) && code.starts_with('}') {
                *level = None;
            }
        }
        if skipped.is_some() {
            continue;
        }
        let is_test = test_next && code.starts_with("mod ");
        test_next = code == "#[cfg(test)]" || (test_next && code.starts_with("#["));
        let opens = !code.ends_with('}') && !code.ends_with(';');
        if (is_test || code.starts_with("macro_rules!")) && opens {
            skipped = Some(indent);
            continue;
        }
        let mut words = code.split_whitespace().peekable();
        while words.peek().is_some_and(|w| {
            // `pub(in crate::sql)` is two words.
            w.starts_with("pub") || w.starts_with("crate::") || *w == "unsafe"
        }) {
            words.next();
        }
        let Some(keyword) = words.next() else { continue };
        let is_type = ["struct", "enum", "trait", "union"].contains(&keyword)
            || (keyword == "type" && around.is_none());
        if is_type && let Some(rest) = words.next() {
            let name: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            types.push((number, name));
        }
        if (keyword == "trait" || keyword.starts_with("impl")) && opens && around.is_none() {
            around = Some(indent);
        }
    }
    types
}

fn read_limits() -> BTreeMap<String, usize> {
    let text = fs::read_to_string(LIMITS).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.rsplit_once(": "))
        .map(|(rule, count)| (rule.to_string(), count.parse().unwrap()))
        .collect()
}

/// Returns the new limit of a rule: never above the old one. A new rule starts at its count.
fn lower_limit(limit: Option<usize>, count: usize) -> usize {
    limit.map_or(count, |limit| limit.min(count))
}

#[test]
fn comments_and_names_keep_to_the_style() {
    let found = find_faults();
    if std::env::var_os("SERRATE_BLESS").is_some() {
        let (mut text, before) = (String::new(), read_limits());
        for (rule, places) in &found {
            writeln!(text, "{rule}: {}", lower_limit(before.get(*rule).copied(), places.len()))
                .unwrap();
        }
        fs::write(LIMITS, text).unwrap();
    }
    if let Some(rule) = std::env::var_os("SERRATE_STYLE") {
        // Prints every place that violates one rule.
        for place in &found[rule.to_str().unwrap()] {
            println!("{place}");
        }
    }
    let limits = read_limits();
    let mut faults = String::new();
    for (rule, places) in &found {
        let limit = limits.get(*rule).copied().unwrap_or(0);
        if places.len() > limit {
            writeln!(
                faults,
                "{rule}: {} where {limit} are allowed. Some of the places:",
                places.len()
            )
            .unwrap();
            for place in places.iter().take(SHOWN) {
                writeln!(faults, "  {place}").unwrap();
            }
        } else if places.len() < limit {
            writeln!(
                faults,
                "{rule}: {} where {limit} are allowed. Lower the limit in {LIMITS}.",
                places.len()
            )
            .unwrap();
        }
    }
    assert!(
        faults.is_empty(),
        "{faults}CONTRIBUTING.md has the style; SERRATE_BLESS=1 lowers limits and never raises them."
    );
}

#[test]
fn prose_of_documents_fits_into_100_columns() {
    let mut files = Vec::new();
    for root in DOCUMENTS {
        match Path::new(root) {
            path if path.is_file() => files.push(path.to_path_buf()),
            folder => collect_files(folder, "md", &mut files),
        }
    }
    files.sort();
    assert!(files.len() > 30, "found {} documents below the working folder", files.len());
    let mut faults = String::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in prose_lines(&text) {
            let width = line.chars().count();
            if width > PROSE_WIDTH && !has_long_link(line) {
                writeln!(faults, "{}:{}: {width} columns", file.display(), number + 1).unwrap();
            }
        }
    }
    assert!(faults.is_empty(), "prose has at most {PROSE_WIDTH} columns; wrap\n{faults}");
}

#[test]
fn examples_of_the_help_fit_into_80_columns() {
    let mut files = Vec::new();
    collect_files(Path::new("src/cli"), "rs", &mut files);
    files.sort();
    let (mut faults, mut found) = (String::new(), 0);
    for file in files {
        let lines = example_lines(&fs::read_to_string(&file).unwrap());
        found += usize::from(!lines.is_empty());
        for (number, line) in lines {
            let width = line.chars().count();
            if width > HELP_WIDTH {
                writeln!(faults, "{}:{}: {width} columns", file.display(), number + 1).unwrap();
            }
        }
    }
    assert!(found >= 10, "found {found} constants EXAMPLES in src/cli");
    assert!(faults.is_empty(), "the help has at most {HELP_WIDTH} columns; shorten\n{faults}");
}

#[test]
fn prose_is_told_from_tables_code_and_generated_parts() {
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
fn private_functions_are_told_from_others() {
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
";
    let public: BTreeSet<String> = ["open", "taken"].map(str::to_owned).into();
    let found = private_functions(text, &public);
    let names: Vec<String> = found.into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["hidden", "shared", "taken", "joined", "head", "last", "deep"]);
}

#[test]
fn types_are_told_from_associated_types() {
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
#[cfg(test)]
mod tests {
    struct Helper;
}
";
    let names: Vec<String> = declared_types(text).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["Open", "Kind", "Pair", "Local", "Shape", "Last"]);
}

#[test]
fn limits_only_decrease() {
    assert_eq!(lower_limit(Some(3), 5), 3);
    assert_eq!(lower_limit(Some(3), 2), 2);
    assert_eq!(lower_limit(None, 7), 7);
}

#[test]
fn negated_nouns_are_told_from_missing_things() {
    assert!(negates_noun("", "`None` if `e` is no constant."));
    assert!(negates_noun("The values", "are no lists."));
    assert!(!negates_noun("an error if there", "are no axes."));
    assert!(!negates_noun("", "There is no list, and it is not a list."));
    assert!(!negates_noun("", "It is no longer a list."));
}

#[test]
fn comments_are_told_from_code() {
    assert_eq!(comment_of("    /// Of lists."), Some("Of lists."));
    assert_eq!(comment_of("//! What"), Some("What"));
    assert_eq!(comment_of("let x = 1; // Of"), None);
}
