//! Counts violations of the style rules of `CONTRIBUTING.md` in comments, names, messages and
//! documents.
//!
//! `tests/style/limits.txt` has the allowed count of each rule. The test fails if a count is above
//! the limit, and prints the places. It also fails if a count is below the limit, so that the limit
//! is lowered. `SERRATE_BLESS=1 cargo test --test style` lowers limits and never raises them.
//!
//! The rule about phrases also reads documents, and string literals, most of which are messages.
//!
//! Further tests limit the width of prose in documents, and of examples in the help of the command.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "style/readers.rs"]
mod readers;

/// Folders whose Rust files are read.
const ROOTS: [&str; 8] =
    ["src", "core/src", "core/tests", "python/src", "fuzz", "tests", "benches", "examples"];
/// Folders in `ROOTS` whose functions and types are also read. Other folders have tests, whose
/// names are sentences, and their helpers.
const CRATES: [&str; 4] = ["src", "core/src", "python/src", "fuzz/src"];
/// Folders whose comments that begin with `#` are read, and the extension of their files.
const SCRIPTS: [(&str, &str); 6] = [
    ("sql/slt", "slt"),
    ("python/python", "py"),
    ("python/tests", "py"),
    ("python/examples", "py"),
    ("tests", "py"),
    ("benches", "py"),
];
/// Folders whose string literals and documentation of public functions are read.
const LIBRARIES: [&str; 2] = ["src", "core/src"];
const LIMITS: &str = "tests/style/limits.txt";
/// The file that lists the public items. A function that is `pub` and not in this file counts as
/// private.
const PUBLIC_ITEMS: &str = "docs/public-api.txt";
/// The greatest number of places that are printed for a rule.
const SHOWN: usize = 20;

/// First words of comment lines that begin a sentence without a subject.
const BARE_STARTS: [&str; 8] =
    ["Of ", "With ", "As ", "What ", "Where ", "Those ", "That of ", "Which "];

/// Phrases that are not technical terms, each with the term to use instead.
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

/// Names of one word that functions may have, because they are terms of Rust or of columnar data.
const ONE_WORD: [&str; 73] = [
    "add", "axes", "axis", "bounds", "build", "bytes", "call", "capacity", "clear", "clone",
    "close", "columns", "commit", "contains", "count", "create", "default", "deref", "div", "drop",
    "dtype", "empty", "eq", "evaluate", "exec", "exists", "extend", "fields", "filter", "finish",
    "flush", "fmt", "get", "hash", "index", "insert", "is_empty", "iter", "keys", "kind", "len",
    "lookup", "main", "map", "merge", "mul", "name", "names", "ndim", "neg", "new", "next",
    "nulls", "offsets", "open", "parse", "path", "plan", "poll", "pop", "push", "read", "remove",
    "reset", "rows", "run", "schema", "set", "shape", "size", "sub", "values", "write",
];

/// Participles that do not end in "ed", which functions may not have as names.
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
/// Folders in `DOCUMENTS` that are not read, because they have generated pages or build results.
const SKIPPED: [&str; 3] = ["docs/functions", "fuzz/corpus", "fuzz/target"];
const PROSE_WIDTH: usize = 100;
const HELP_WIDTH: usize = 80;
/// A line may exceed `PROSE_WIDTH` if it has a word with a link of more characters than this, which
/// cannot be broken.
const LONG_LINK: usize = 60;
/// Words that may not begin the name of a function, because the name has no verb. `for_each_*` and
/// builders (`with_*`) are allowed.
const PREPOSITIONS: [&str; 20] = [
    "of", "in", "by", "for", "at", "about", "on", "or", "over", "no", "too", "only", "any", "one",
    "own", "how", "per", "up", "below", "between",
];

fn find_faults() -> BTreeMap<&'static str, Vec<String>> {
    let mut found: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for rule in [
        "bare sentence starts",
        "nouns with `of` as names",
        "phrases",
        "one-word private functions",
        "one-word types",
        "paths of absent modules",
        "participles as names",
        "prepositions before names",
        "public functions without an example",
        "summaries not in the third person",
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
    let public_paths = read_public_paths();
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut type_docs: BTreeMap<String, String> = BTreeMap::new();
    let mut without_example = Vec::new();
    assert!(files.len() > 100, "found {} Rust files below the working folder", files.len());
    for file in files {
        if file.ends_with("tests/style.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let place = |line: usize| format!("{}:{}", file.display(), line + 1);
        find_comment_faults(&file, &text, comment_of, &mut found);
        if !CRATES.iter().any(|root| file.starts_with(root)) {
            continue;
        }
        if LIBRARIES.iter().any(|root| file.starts_with(root)) {
            for (number, literal) in string_literals(&text) {
                find_phrases("", literal, &place(number), &mut found);
            }
            let items = documented_items(&text);
            for item in items.functions.into_iter().filter(|f| public_paths.contains(&f.path)) {
                let entry = format!("{}: {}", place(item.line), item.path);
                if !is_third_person(&item.docs) {
                    found.get_mut("summaries not in the third person").unwrap().push(entry.clone());
                }
                if !item.docs.contains("```") {
                    without_example.push((item.path, entry));
                }
            }
            for (name, docs) in items.types {
                type_docs.entry(name).or_default().push_str(&docs);
            }
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
            let entry = format!("{}: {name}", place(number));
            // `name_of` has no verb. `is_of` is a predicate, and is allowed.
            if name.strip_suffix("_of").is_some_and(|noun| noun != "is" && !noun.contains('_')) {
                found.get_mut("nouns with `of` as names").unwrap().push(entry.clone());
            }
            if name.contains('_') || ONE_WORD.contains(&name.as_str()) {
                continue;
            }
            if name.ends_with("ed") || PARTICIPLES.contains(&name.as_str()) {
                found.get_mut("participles as names").unwrap().push(entry.clone());
            }
            found.get_mut("one-word private functions").unwrap().push(entry);
        }
    }
    for (name, places) in &types {
        if name.chars().filter(char::is_ascii_uppercase).count() == 1 {
            let entry = format!("{}: {name}", places.join(", "));
            found.get_mut("one-word types").unwrap().push(entry);
        }
    }
    for (name, places) in types.iter().filter(|(_, places)| places.len() > 1) {
        let entry = format!("{name}: {}", places.join(", "));
        found.get_mut("types of one name").unwrap().push(entry);
    }
    // A method needs no example if an example of its type calls the method.
    for (path, entry) in without_example {
        let docs = path.rsplit_once("::").and_then(|(owner, _)| type_docs.get(owner));
        let name = path.rsplit("::").next().unwrap_or_default();
        if !docs.is_some_and(|docs| docs.contains("```") && docs.contains(&format!(".{name}("))) {
            found.get_mut("public functions without an example").unwrap().push(entry);
        }
    }
    for file in list_documents() {
        let text = fs::read_to_string(&file).unwrap();
        let mut before = "";
        for (number, line) in prose_lines(&text) {
            let place = format!("{}:{}", file.display(), number + 1);
            find_phrases(before, line, &place, &mut found);
            for path in absent_paths(line) {
                found.get_mut("paths of absent modules").unwrap().push(format!("{place}: {path}"));
            }
            before = line;
        }
    }
    for (root, extension) in SCRIPTS {
        let mut files = Vec::new();
        collect_files(Path::new(root), extension, &mut files);
        files.sort();
        assert!(!files.is_empty(), "found no {extension} file in {root}");
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            find_comment_faults(&file, &text, script_comment_of, &mut found);
        }
    }
    found
}

/// Adds the violations in the comments of a file to `found`. `comment_of` returns the comment of a
/// line.
fn find_comment_faults(
    file: &Path,
    text: &str,
    comment_of: fn(&str) -> Option<&str>,
    found: &mut BTreeMap<&'static str, Vec<String>>,
) {
    let place = |line: usize| format!("{}:{}", file.display(), line + 1);
    let mut before = "";
    for (number, line) in text.lines().enumerate() {
        let Some(comment) = comment_of(line) else {
            before = "";
            continue;
        };
        find_phrases(before, comment, &place(number), found);
        for path in absent_paths(comment) {
            found
                .get_mut("paths of absent modules")
                .unwrap()
                .push(format!("{}: {path}", place(number)));
        }
        before = comment;
        if BARE_STARTS.iter().any(|start| comment.starts_with(start)) {
            let entry = format!("{}: {comment}", place(number));
            found.get_mut("bare sentence starts").unwrap().push(entry);
        }
    }
}

/// Adds the phrases of [`PHRASES`] in a line of prose or in a message to `found`. `before` is the
/// line above, whose last word decides whether "no" is allowed.
fn find_phrases(
    before: &str,
    line: &str,
    place: &str,
    found: &mut BTreeMap<&'static str, Vec<String>>,
) {
    let phrases = found.get_mut("phrases").unwrap();
    if negates_noun(before, line) {
        phrases.push(format!("{place}: \"is no\" -> \"is not a\""));
    }
    for (phrase, better) in PHRASES {
        if line.to_lowercase().contains(phrase) {
            phrases.push(format!("{place}: {phrase:?} -> {better:?}"));
        }
    }
}

/// Returns the module paths in backquotes, such as `sql::order`, that begin with a module of this
/// crate, but name no existing module or item.
fn absent_paths(line: &str) -> Vec<&str> {
    let quoted = line.split('`').skip(1).step_by(2);
    let paths = quoted.filter(|text| {
        text.contains("::")
            && text.split("::").all(|name| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
            })
    });
    paths.filter(|path| !leads_to_item(path.strip_prefix("crate::").unwrap_or(path))).collect()
}

/// Returns whether a module path, from the root of a crate or from `sql`, names an existing module
/// or item. Returns true for paths that begin with another crate.
fn leads_to_item(path: &str) -> bool {
    let names: Vec<&str> = path.split("::").collect();
    let mut is_ours = false;
    for root in ["src", "core/src", "src/sql"].map(Path::new) {
        let mut folder = root.to_path_buf();
        for (at, name) in names.iter().enumerate() {
            let below = folder.join(name);
            let file = [below.with_extension("rs"), below.join("mod.rs")];
            let Some(file) = file.into_iter().find(|file| file.is_file()) else {
                let text = fs::read_to_string(folder.with_extension("rs"))
                    .or_else(|_| fs::read_to_string(folder.join("mod.rs")));
                if at > 0 && text.is_ok_and(|text| contains_word(&text, name)) {
                    return true;
                }
                break;
            };
            is_ours = true;
            if at + 1 == names.len() {
                return true;
            }
            folder = if file.ends_with("mod.rs") { below } else { file.with_extension("") };
        }
    }
    !is_ours
}

fn contains_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word)
}

/// Returns the line numbers and texts of string literals in the code above the test module of a
/// file, one entry per line of a literal. Omits texts without a space, which are not messages.
fn string_literals(text: &str) -> Vec<(usize, &str)> {
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut literals = Vec::new();
    let mut is_open = false;
    for (number, line) in code.lines().enumerate() {
        if !is_open && line.trim_start().starts_with("//") {
            continue;
        }
        let (mut start, mut is_escaped) = (0, false);
        for (at, c) in line.char_indices() {
            let is_quote = c == '"' && !is_escaped && (is_open || !line[..at].ends_with('\''));
            is_escaped = c == '\\' && !is_escaped;
            if !is_quote {
                continue;
            }
            if is_open {
                literals.push((number, &line[start..at]));
            }
            is_open = !is_open;
            start = at + 1;
        }
        if is_open {
            literals.push((number, &line[start..]));
        }
    }
    literals.retain(|(_, literal)| literal.contains(' '));
    literals
}

/// A function in the source of a library.
struct DocumentedFunction {
    line: usize,
    /// `Type::name` for a method, `name` for a free function.
    path: String,
    docs: String,
}

struct DocumentedItems {
    functions: Vec<DocumentedFunction>,
    /// The names of structs and enums, with their documentation.
    types: Vec<(String, String)>,
}

/// Returns the public functions, methods, structs and enums of a file with their documentation,
/// except functions with `#[doc(hidden)]`. The file must be formatted by rustfmt.
fn documented_items(text: &str) -> DocumentedItems {
    let mut items = DocumentedItems { functions: Vec::new(), types: Vec::new() };
    let (mut docs, mut is_hidden) = (String::new(), false);
    let mut owner: Option<String> = None;
    for (number, line) in text.lines().enumerate() {
        let code = line.trim_start();
        if let Some(text) = code.strip_prefix("///") {
            docs.push_str(text.trim_start());
            docs.push('\n');
            continue;
        }
        if code.starts_with("#[") {
            is_hidden |= code.contains("hidden");
            continue;
        }
        if line.starts_with("impl") {
            owner = implementing_type(line);
        } else if line.starts_with('}') {
            owner = None;
        }
        let mut words = code.split_whitespace();
        if words.next() == Some("pub") {
            let mut words = words.skip_while(|w| ["const", "async", "unsafe"].contains(w));
            let keyword = words.next().unwrap_or_default();
            let name: String = words
                .next()
                .unwrap_or_default()
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            if ["struct", "enum"].contains(&keyword) {
                items.types.push((name, docs.clone()));
            } else if keyword == "fn" && !is_hidden {
                let path = match &owner {
                    Some(owner) => format!("{owner}::{name}"),
                    None => name,
                };
                items.functions.push(DocumentedFunction { line: number, path, docs: docs.clone() });
            }
        }
        docs.clear();
        is_hidden = false;
    }
    items
}

/// Returns the name of the type of `impl<T> Type<T> {` or `impl Trait for Type {`.
fn implementing_type(line: &str) -> Option<String> {
    let mut rest = line.strip_prefix("impl")?;
    if rest.starts_with('<') {
        let mut depth = 0;
        let end = rest.char_indices().find(|&(at, c)| {
            match c {
                '<' => depth += 1,
                // The `>` of `->` does not close a bracket.
                '>' if !rest[..at].ends_with('-') => depth -= 1,
                _ => {}
            }
            depth == 0
        })?;
        rest = &rest[end.0 + 1..];
    }
    let rest = rest.rsplit(" for ").next()?.trim_start();
    Some(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
}

/// Returns whether documentation begins with a verb in the third person, such as "Returns". Returns
/// true for empty documentation, which the lint `missing_docs` reports.
fn is_third_person(docs: &str) -> bool {
    docs.split_whitespace().next().is_none_or(|word| {
        let word = word.trim_end_matches(',');
        word.starts_with(char::is_uppercase)
            && word.ends_with('s')
            && word.chars().all(char::is_alphabetic)
    })
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

/// Returns the numbers and texts of the lines of a document that are prose: outside tables, code
/// blocks, comments and generated parts.
fn prose_lines(text: &str) -> Vec<(usize, &str)> {
    let mut lines = Vec::new();
    let (mut in_code, mut is_generated) = (false, false);
    for (number, line) in text.lines().enumerate() {
        let start = line.trim_start();
        if start.starts_with("```") {
            in_code = !in_code;
        } else if start.starts_with("<!--") && !in_code {
            // A generated part ends at the comment `<!-- end of .. -->`, or at the end of the
            // document.
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

/// Returns the numbers and texts of the lines of the constant `EXAMPLES` of a file, as they are
/// printed.
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

/// Returns the comment of a line of Rust, or `None` if the line has code.
fn comment_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line
        .strip_prefix("///")
        .or_else(|| line.strip_prefix("//!"))
        .or_else(|| line.strip_prefix("//"))?;
    Some(text.trim_start())
}

/// Returns the comment of a line of Python or of an `.slt` file, or `None` if the line has code.
fn script_comment_of(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("# ")
}

/// Returns whether a line of a comment says "X is no list" instead of "X is not a list". `before`
/// is the comment line above. "There is no list" and "is no longer a list" are allowed.
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

/// Returns the names of the functions in [`PUBLIC_ITEMS`], without modules and types.
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

/// Returns the functions in [`PUBLIC_ITEMS`]: `Type::name` of methods, `name` of free functions.
fn read_public_paths() -> BTreeSet<String> {
    let text = fs::read_to_string(PUBLIC_ITEMS).unwrap();
    let mut owner = String::new();
    let mut paths = BTreeSet::new();
    let last_name = |path: &str| {
        let path: String =
            path.chars().take_while(|c| c.is_alphanumeric() || ['_', ':'].contains(c)).collect();
        path.rsplit("::").next().unwrap_or_default().to_owned()
    };
    for line in text.lines() {
        let is_item = !line.starts_with(' ');
        if let Some((_, rest)) = line.split_once("fn ") {
            let name = last_name(rest);
            paths.insert(if is_item { name } else { format!("{owner}::{name}") });
        } else if is_item {
            owner = line.split_once(' ').map(|(_, path)| last_name(path)).unwrap_or_default();
        }
    }
    assert!(paths.len() > 600, "found {} functions in {PUBLIC_ITEMS}", paths.len());
    paths
}

/// Returns the line and name of each function of a file, except public ones (those in `public`),
/// methods of traits, functions of test modules, and functions that Python shows. The file must be
/// formatted by rustfmt.
fn private_functions(text: &str, public: &BTreeSet<String>) -> Vec<(usize, String)> {
    let mut functions = Vec::new();
    // The indentation of the block that is being skipped, or `None`.
    let mut skipped: Option<usize> = None;
    // Whether the next module is a test module.
    let mut test_next = false;
    // Whether the next function, or the methods of the next block, are exported to Python.
    let mut python_next = false;
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
        // Macros define methods of traits, so their functions are skipped.
        let is_macro = item.starts_with("macro_rules!");
        let is_test = test_next && item.starts_with("mod ");
        test_next = code == "#[cfg(test)]" || (test_next && code.starts_with("#["));
        let is_python = python_next && !code.starts_with("#[");
        python_next = is_python_attribute(code) || (python_next && code.starts_with("#["));
        let is_python_impl = is_python && item.starts_with("impl");
        if (is_trait_impl || is_trait || is_test || is_macro || is_python_impl)
            && !code.ends_with('}')
            && !code.ends_with(';')
        {
            skipped = Some(indent);
            continue;
        }
        let is_public = code.starts_with("pub ");
        let mut words = code.split_whitespace().peekable();
        while words.peek().is_some_and(|w| {
            // `pub(in crate::sql)` has two words.
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
            if !(is_python || (is_public && public.contains(&name))) {
                functions.push((number, name));
            }
        }
    }
    functions
}

/// Returns whether a line is an attribute that exports the item below it to Python, under its name.
fn is_python_attribute(code: &str) -> bool {
    ["#[pyclass", "#[pyfunction]", "#[pymethods]", "#[pymodule_init]"]
        .iter()
        .any(|start| code.starts_with(start))
}

/// Returns the line and name of each type and trait, except those in test modules and macros,
/// associated types, and Python classes, which have the names of the types that they wrap. The file
/// must be formatted by rustfmt.
fn declared_types(text: &str) -> Vec<(usize, String)> {
    let mut types = Vec::new();
    // The indentation of the block that is being skipped, or `None`.
    let mut skipped: Option<usize> = None;
    // The indentation of the `impl` block or trait around the line, or `None`.
    let mut around: Option<usize> = None;
    // Whether the next module is a test module.
    let mut test_next = false;
    // Whether the next type is a Python class.
    let mut python_next = false;
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
        let is_python = python_next && !code.starts_with("#[");
        python_next = is_python_attribute(code) || (python_next && code.starts_with("#["));
        let opens = !code.ends_with('}') && !code.ends_with(';');
        if (is_test || code.starts_with("macro_rules!")) && opens {
            skipped = Some(indent);
            continue;
        }
        let mut words = code.split_whitespace().peekable();
        while words.peek().is_some_and(|w| {
            // `pub(in crate::sql)` has two words.
            w.starts_with("pub") || w.starts_with("crate::") || *w == "unsafe"
        }) {
            words.next();
        }
        let Some(keyword) = words.next() else { continue };
        let is_type = ["struct", "enum", "trait", "union"].contains(&keyword)
            || (keyword == "type" && around.is_none());
        if is_type
            && !is_python
            && let Some(rest) = words.next()
        {
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

/// Returns the new limit of a rule: the smaller of the old limit and the count, or the count if the
/// rule is new and has no limit.
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
        // `SERRATE_STYLE=RULE` prints every place that violates the rule.
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

fn list_documents() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for root in DOCUMENTS {
        match Path::new(root) {
            path if path.is_file() => files.push(path.to_path_buf()),
            folder => collect_files(folder, "md", &mut files),
        }
    }
    files.sort();
    assert!(files.len() > 30, "found {} documents below the working folder", files.len());
    files
}

#[test]
fn prose_of_documents_fits_into_100_columns() {
    let mut faults = String::new();
    for file in list_documents() {
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
