//! Checks the layers of the source tree: which module may use which. The lists below declare all
//! uses. The tests fail if a source uses what is not declared, or if no source uses what is
//! declared.
#![allow(clippy::unwrap_used)]

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

#[path = "layers/plan_nodes.rs"]
mod plan_nodes;
#[path = "layers/source.rs"]
mod source;

use source::{Use, list_uses};

/// A top-level module of a crate, and the other modules that it uses.
type Layer = (&'static str, &'static [&'static str]);

/// The modules of the core crate. Each uses only modules that come before it.
const CORE: &[Layer] = &[
    ("error", &[]),
    ("access", &["error"]),
    ("memory", &["error"]),
    ("limit", &["error"]),
    ("locks", &[]),
    ("index", &["error"]),
    ("array", &["error"]),
    ("table", &["array", "error", "index"]),
    ("kernels", &["array", "error", "index", "limit", "table"]),
    ("dense", &["array", "error", "index", "kernels", "limit", "locks", "table"]),
    ("batching", &["array", "dense", "error", "index", "kernels", "limit", "table"]),
    ("het", &["array", "dense", "error", "index", "kernels", "limit", "table"]),
    ("dok", &["array", "dense", "error", "index", "kernels", "limit"]),
    ("io", &["access", "array", "dense", "dok", "error", "kernels", "locks", "memory", "table"]),
    ("generate", &["access", "array", "error", "io", "table"]),
    ("audit", &["access", "array", "error", "io", "table"]),
    ("loader", &["access", "array", "dense", "error", "io", "kernels", "locks", "table"]),
    // Items of these modules that only SQL needs.
    ("internal", &["array", "index", "io", "kernels", "loader", "locks"]),
];

/// The modules of the root package. Each uses only modules that come before it, and all modules of
/// the core.
const ROOT: &[Layer] = &[
    ("cohorts", &[]),
    ("config", &[]),
    ("secret", &[]),
    ("functions", &["config"]),
    ("expr_fn", &["functions"]),
    ("sql", &["cohorts", "config", "functions"]),
    ("cluster", &["config", "secret", "sql"]),
    ("serve", &["config", "secret", "sql"]),
    ("cli", &["cluster", "cohorts", "config", "functions", "serve", "sql"]),
    ("bin", &["cli"]),
];

/// Items at the top of a crate that are not modules, each with the module that defines it.
const NAMES: [(&str, &str); 3] =
    [("Error", "error"), ("Result", "error"), ("with_offsets", "array")];

/// Files of one folder that may use each other in a cycle, each list with its reason.
const CIRCLES: [(&str, &[&str]); 5] = [
    // A definition checks and computes calls, and a call refers to its definition. The name of a
    // call contains the names of nested calls, whose definitions are in the lists of `mod`, which
    // also have the aggregates.
    ("functions", &["aggregate", "args", "def", "mod", "naming"]),
    // A fold names the registers that hold its accumulators, and the functions of registers are
    // generic over folds.
    ("kernels/reduce", &["block", "fold", "registers"]),
    // A source creates its opener, and the opener holds the source.
    ("sql/sources/parquet/scan", &["lists_source", "opener"]),
    // A statement that reads a view or inserts by name is planned after that view or query, by the
    // same files.
    ("sql/statement", &["by_name", "planner", "replanned"]),
    // A subquery may contain subqueries in any of the clauses that these files plan.
    ("sql/workarounds/subqueries/correlated", &["bound", "expand", "lateral_joins", "outer_rows"]),
];

/// A source file: the path of its module, the path of the file for messages, and its text.
struct Source {
    module: Vec<String>,
    file: String,
    text: String,
    uses: OnceCell<Vec<Use>>,
}

impl Source {
    /// Returns the paths within the crate that the file uses. Only the first call parses the text.
    fn list_uses_once(&self) -> &[Use] {
        let read = || list_uses(&self.text, &self.module, &["crate"]).unwrap_or_default();
        self.uses.get_or_init(read)
    }
}

/// The users and the used modules, with the place where this use occurs first.
type Edges = BTreeMap<(String, String), String>;

#[test]
fn modules_of_the_core_use_only_declared_modules_below() {
    let sources = read_sources(Path::new("core/src"));
    let below: BTreeSet<&str> = BTreeSet::new();
    assert_eq!(check_layers(&sources, CORE, &below, &["crate"]), Vec::<String>::new());
}

#[test]
fn modules_of_the_root_use_only_declared_modules_below() {
    let sources = read_sources(Path::new("src"));
    let below = CORE.iter().map(|(module, _)| *module).collect();
    assert_eq!(check_layers(&sources, ROOT, &below, &["crate", "serrate"]), Vec::<String>::new());
}

#[test]
fn files_of_a_folder_use_each_other_without_cycles() {
    let mut sources = read_sources(Path::new("core/src"));
    sources.extend(read_sources(Path::new("src")));
    let folders: BTreeSet<&[String]> =
        sources.iter().flat_map(|s| (1..s.module.len()).map(move |n| &s.module[..n])).collect();
    for folder in folders {
        let mut edges = edges_within(&sources, folder);
        let name = folder.join("/");
        if let Some((_, files)) = CIRCLES.iter().find(|(of, _)| *of == name) {
            assert!(find_circle(&edges).is_some(), "{name} has no cycle; remove it from CIRCLES");
            let declared = |file: &String| files.contains(&file.as_str());
            edges.retain(|(from, to), _| !(declared(from) && declared(to)));
        }
        assert_eq!(find_circle(&edges), None, "in {name}");
    }
}

/// Compares the uses between top-level modules with the declared layers. Returns a line for each
/// error.
fn check_layers(
    sources: &[Source],
    layers: &[Layer],
    below: &BTreeSet<&str>,
    names: &[&str],
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut seen = Edges::new();
    for source in sources {
        // The file at the top of the crate re-exports items of every module.
        let Some(from) = source.module.first() else { continue };
        let found = match list_uses(&source.text, &source.module, names) {
            Ok(found) => found,
            Err(why) => {
                wrong.push(format!("{}: {why}", source.file));
                continue;
            }
        };
        for Use { path, line, .. } in found {
            let Some(name) = path.first() else { continue };
            let to = NAMES.iter().find(|(n, _)| n == name).map_or(name.as_str(), |(_, m)| *m);
            if to != from && !below.contains(to) {
                let place = format!("{}:{line}", source.file);
                seen.entry((from.clone(), to.into())).or_insert(place);
            }
        }
    }
    for ((from, to), place) in &seen {
        let declared = layers.iter().find(|(m, _)| m == from).map(|(_, uses)| *uses);
        if !declared.is_some_and(|uses| uses.contains(&to.as_str())) {
            wrong.push(format!(
                "{place}: {from} uses {to}, which tests/layers.rs does not declare; layers point one way: move what both need below {from}, or declare the edge if {to} is below it"
            ));
        }
    }
    for (i, (from, uses)) in layers.iter().enumerate() {
        for to in *uses {
            if !layers[..i].iter().any(|(m, _)| m == to) {
                wrong.push(format!(
                    "tests/layers.rs: {from} uses {to}, which is not listed before it"
                ));
            }
            if !seen.contains_key(&((*from).into(), (*to).into())) {
                wrong.push(format!(
                    "tests/layers.rs: {from} is declared to use {to}, but no source file does"
                ));
            }
        }
    }
    for source in sources {
        let Some(module) = source.module.first() else { continue };
        if !layers.iter().any(|(m, _)| m == module) {
            wrong.push(format!(
                "{}: tests/layers.rs does not list the module {module}",
                source.file
            ));
        }
    }
    wrong
}

/// Returns which children (files and folders) of one module use which others. The module's own file
/// may use all of them; its re-exports count as uses of the child that defines the item, and its
/// own items as uses of `mod`.
fn edges_within(sources: &[Source], module: &[String]) -> Edges {
    let depth = module.len();
    let within: Vec<&Source> = sources.iter().filter(|s| s.module.starts_with(module)).collect();
    let children: BTreeSet<&String> = within.iter().filter_map(|s| s.module.get(depth)).collect();
    // The items that the module's own file re-exports, each with the child that defines it.
    let mut exports = BTreeMap::new();
    for parent in within.iter().filter(|s| s.module.len() == depth) {
        for Use { path, exported, .. } in parent.list_uses_once() {
            if let (Some([child, .., name]), true) = (path.strip_prefix(module), *exported)
                && children.contains(child)
            {
                exports.insert(name.clone(), child.clone());
            }
        }
    }
    let mut edges = Edges::new();
    for source in within {
        let from = source.module.get(depth).map_or("mod", |child| child.as_str());
        for Use { path, line, exported } in source.list_uses_once() {
            let Some([name, ..]) = path.strip_prefix(module) else { continue };
            if from == "mod" && *exported {
                continue;
            }
            let to = match children.get(name) {
                Some(child) => child.as_str(),
                None => exports.get(name).map_or("mod", |child| child.as_str()),
            };
            if to != from {
                let place = format!("{}:{line}", source.file);
                edges.entry((from.into(), to.into())).or_insert(place);
            }
        }
    }
    edges
}

/// Returns the uses that form a cycle, with their places, or `None` if there is no cycle.
fn find_circle(edges: &Edges) -> Option<Vec<String>> {
    // Removes, until nothing changes, the uses whose user is not used by any other, or that end at
    // a module which uses nothing.
    let mut left: Vec<(&(String, String), &String)> = edges.iter().collect();
    loop {
        let from: BTreeSet<&String> = left.iter().map(|((from, _), _)| from).collect();
        let to: BTreeSet<&String> = left.iter().map(|((_, to), _)| to).collect();
        let before = left.len();
        left.retain(|((a, b), _)| from.contains(b) && to.contains(a));
        if left.len() == before {
            break;
        }
    }
    let circle: Vec<String> =
        left.iter().map(|((from, to), place)| format!("{place}: {from} uses {to}")).collect();
    (!circle.is_empty()).then_some(circle)
}

/// Reads all source files of a folder, sorted.
fn read_sources(folder: &Path) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let relative = path.strip_prefix(root.join(folder)).unwrap().with_extension("");
                let mut module: Vec<String> =
                    relative.iter().map(|s| s.to_str().unwrap().to_owned()).collect();
                if module.last().is_some_and(|last| last == "mod" || last == "lib") {
                    module.pop();
                }
                let file = path.strip_prefix(root).unwrap().display().to_string();
                let text = fs::read_to_string(&path).unwrap();
                sources.push(Source { module, file, text, uses: OnceCell::new() });
            }
        }
    }
    sources.sort_by(|a, b| a.file.cmp(&b.file));
    assert!(sources.len() > 1, "no source files in {}", folder.display());
    sources
}

/// Builds sources from pairs of path and text, for the tests of this file.
fn make_sources(of: &[(&str, &str)]) -> Vec<Source> {
    let source = |(file, text): &(&str, &str)| Source {
        module: file.split('/').filter(|s| *s != "mod").map(Into::into).collect(),
        file: format!("{file}.rs"),
        text: (*text).into(),
        uses: OnceCell::new(),
    };
    of.iter().map(source).collect()
}

#[test]
fn a_use_that_is_not_declared_is_an_error() {
    let layers: &[Layer] = &[("array", &[]), ("table", &["array"]), ("kernels", &["array"])];
    let rest = [("table/mod", "use crate::array::A;"), ("kernels/mod", "use crate::array::A;")];
    let checked = |array: &str| {
        let all = [&[("array/ragged", array)], &rest[..]].concat();
        check_layers(&make_sources(&all), layers, &BTreeSet::new(), &["crate"])
    };
    assert_eq!(checked("use std::fmt;\nuse super::offsets::Offsets;"), Vec::<String>::new());
    for upwards in [
        "\nuse crate::table::T;",
        "\nfn f() { crate::table::f() }",
        "\nuse crate::{array::B, table::{T, U}};",
        "\nuse super::super::table::T;",
        "\nmod m { use super::super::super::table::T; }",
        "\npub use crate::table as t;",
        "\nconst S: &str = r#\"\"#; use crate::table::T;",
    ] {
        let wrong = checked(upwards);
        assert_eq!(wrong.len(), 1, "{upwards}: {wrong:?}");
        assert!(wrong[0].starts_with("array/ragged.rs:2: array uses table, which"), "{wrong:?}");
    }
    for hidden in ["use crate as c;", "use crate::*;", "use crate::{self as c};"] {
        assert_eq!(checked(hidden).len(), 1, "{hidden}");
    }
    for none in [
        "// use crate::table::T;",
        "/* /* */ use crate::table::T; */",
        "/// [`T`](crate::table::T)\nstruct S;",
        "const S: &str = \"\\\"crate::table::T\";",
        "const S: &str = r#\"\"crate::table::T\"#;",
        "const C: char = '\"'; // crate::table::T \"",
        "#[cfg(test)]\nmod tests { fn f() { crate::table::f() } }",
        "#[cfg(all(test, feature = \"sql\"))]\nuse crate::table::T;",
        "pub(crate) fn f<'a>(a: &'a str) {}",
        "mod m { use super::super::offsets::Offsets; }",
    ] {
        assert_eq!(checked(none), Vec::<String>::new(), "{none}");
    }
}

#[test]
fn wrong_declarations_are_errors() {
    let all = make_sources(&[("a/mod", "use crate::b::B;"), ("b/mod", "use crate::a::A;")]);
    let check = |layers| check_layers(&all, layers, &BTreeSet::new(), &["crate"]);
    // A cycle cannot be declared.
    let wrong = check(&[("a", &["b"]), ("b", &["a"])]);
    assert_eq!(wrong, ["tests/layers.rs: a uses b, which is not listed before it"]);
    // A module that is not listed, and a declared use that no longer exists.
    let wrong = check(&[("b", &["a"])]).join("\n");
    assert!(
        wrong.contains("a.rs")
            || wrong.contains("a/mod.rs: tests/layers.rs does not list the module a"),
        "{wrong}"
    );
    let wrong = check(&[("c", &[]), ("a", &["b", "c"]), ("b", &["a"])]).join("\n");
    assert!(wrong.contains("a is declared to use c, but no source file does"), "{wrong}");
}

#[test]
fn cycles_within_a_module_are_found() {
    let module = ["kernels".to_owned()];
    let within = |texts: &[(&str, &str)]| find_circle(&edges_within(&make_sources(texts), &module));
    let parent = ("kernels/mod", "mod args;\npub use args::RowArg;\nuse self::pad::pad;");
    let args = ("kernels/args", "use super::pad::pad;");
    assert_eq!(within(&[parent, ("kernels/pad", "use crate::array::A;"), args]), None);
    // A cycle through a name that the module's own file re-exports, and one through its own items.
    let circle = within(&[parent, ("kernels/pad", "use super::RowArg;"), args]).unwrap();
    assert_eq!(circle, ["kernels/args.rs:1: args uses pad", "kernels/pad.rs:1: pad uses args"]);
    let circle = within(&[parent, ("kernels/pad", "use super::Own;"), args]).unwrap();
    assert_eq!(circle, ["kernels/mod.rs:3: mod uses pad", "kernels/pad.rs:1: pad uses mod"]);
    // A cycle in a folder, which counts as one file in its parent.
    let (a, b) = ("use super::b::B;", "use crate::kernels::reduce::a::A;");
    let below = [("kernels/reduce/a", a), ("kernels/reduce/b", b), ("kernels/pad", a)];
    assert_eq!(within(&below), None);
    let folder = ["kernels".to_owned(), "reduce".to_owned()];
    let circle = find_circle(&edges_within(&make_sources(&below), &folder)).unwrap();
    assert_eq!(circle, ["kernels/reduce/a.rs:1: a uses b", "kernels/reduce/b.rs:1: b uses a"]);
}

/// Calls that open, list or change files, or test whether they exist, without the checks of the
/// module `access`.
const UNCHECKED: [&str; 24] = [
    "File::open(",
    "File::create",
    "File::options(",
    "OpenOptions::new(",
    "fs::canonicalize(",
    "fs::copy(",
    "fs::create_dir",
    "fs::hard_link(",
    "fs::metadata(",
    "fs::read",
    "fs::remove_",
    "fs::rename(",
    "fs::symlink_metadata(",
    "fs::write(",
    "WalkDir::new(",
    "tempfile_in(",
    "tempdir",
    ".canonicalize()",
    ".exists()",
    ".try_exists()",
    ".read_dir()",
    ".read_link()",
    ".is_dir()",
    ".is_file()",
];

/// Files that may contain these calls: `access` itself, and writers that use only names in a folder
/// which they have checked, and that remove only folders which they have created.
const CHECKED: [&str; 4] = [
    "core/src/access.rs",
    "core/src/io/atomic.rs",
    "core/src/io/lease.rs",
    "src/cli/files/new_folders.rs",
];

/// Returns whether a line contains a call, other than as the end of a longer name, such as
/// `AtomicFile::create` for `File::create`.
fn has_call(code: &str, call: &str) -> bool {
    code.match_indices(call).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        call.starts_with('.') || !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

#[test]
fn files_are_opened_only_with_the_checks_of_access() {
    let mut wrong = Vec::new();
    for folder in ["core/src", "src", "python/src"] {
        for source in read_sources(Path::new(folder)) {
            if CHECKED.contains(&source.file.as_str()) {
                continue;
            }
            let own = source.text.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
            for (i, line) in own.lines().enumerate() {
                // These calls read the known type of a directory entry or of metadata, not the file
                // system.
                let code = line.replace("file_type().is_", "").replace("metadata.is_", "");
                let found = UNCHECKED.iter().find(|call| has_call(&code, call));
                if let Some(call) = found.filter(|_| !code.trim_start().starts_with("//")) {
                    wrong.push(format!(
                        "{}:{}: {call} bypasses --root and --read-only; call the function of `access`",
                        source.file,
                        i + 1
                    ));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
