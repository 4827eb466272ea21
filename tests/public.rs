//! Records the public interface. `docs/public-api.txt` lists every item that a user of `serrate`
//! can name, so that a review shows each change. `SERRATE_BLESS=1 cargo test --test public` writes
//! the file.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

#[path = "public/describe.rs"]
mod describe;
#[path = "public/tree.rs"]
mod tree;

use tree::{Definition, Tree};

const RECORD: &str = "docs/public-api.txt";

const PREFACE: &str = "\
# Every public item of the crate `serrate` with all features, by path: fields, variants, methods and
# traits that are implemented by hand below their type. Items that are `#[doc(hidden)]` are not part
# of the interface. `name! ..` is an item or method that this macro makes.
# SERRATE_BLESS=1 cargo test --test public writes this file.
";

/// Returns the public definitions of the root package, each with all paths by which a user can name
/// it.
fn find_public(tree: &Tree) -> BTreeMap<Definition, Vec<String>> {
    let mut found = BTreeMap::new();
    tree.collect_public("serrate", "serrate", &mut found);
    for paths in found.values_mut() {
        // The longest path is that of the defining module; the others are re-exports.
        paths.sort_by_key(|path: &String| (usize::MAX - path.matches("::").count(), path.clone()));
        paths.dedup();
    }
    found
}

fn write_record(tree: &Tree) -> String {
    let public = find_public(tree);
    let mut entries: Vec<(String, String)> = public
        .iter()
        .map(|(definition, paths)| {
            let mut text = describe::entry(tree, definition, &paths[0]);
            for path in &paths[1..] {
                let _ = writeln!(text, "  also {path}");
            }
            (paths[0].clone(), text)
        })
        .collect();
    entries.sort();
    let entries: Vec<String> = entries.into_iter().map(|(_, text)| text).collect();
    format!("{PREFACE}\n{}", entries.concat())
}

#[test]
fn the_public_interface_is_recorded() {
    let tree = Tree::read(&[("serrate", "src/lib.rs"), ("serrate_core", "core/src/lib.rs")]);
    let now = write_record(&tree);
    if std::env::var_os("SERRATE_BLESS").is_some() {
        fs::write(RECORD, &now).unwrap();
    }
    let recorded = fs::read_to_string(RECORD).unwrap_or_default();
    let lost: Vec<&str> = recorded.lines().filter(|l| !now.lines().any(|n| n == *l)).collect();
    let new: Vec<&str> = now.lines().filter(|n| !recorded.lines().any(|l| l == *n)).collect();
    assert!(
        now == recorded,
        "the public interface differs from {RECORD}\nno longer there:\n{}\nnew:\n{}\nif this is meant, SERRATE_BLESS=1 cargo test --test public, and a line in CHANGELOG.md",
        lost.join("\n"),
        new.join("\n")
    );
}

#[test]
fn no_two_public_types_share_a_name() {
    let tree = Tree::read(&[("serrate", "src/lib.rs"), ("serrate_core", "core/src/lib.rs")]);
    let mut names: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    let public = find_public(&tree);
    for (definition, paths) in &public {
        if tree.is_type(definition) {
            names.entry(&definition.name).or_default().push(&paths[0]);
        }
    }
    assert!(names.len() > 50, "only {} public types were found", names.len());
    names.retain(|_, paths| paths.len() > 1);
    assert!(names.is_empty(), "one name, several public types: {names:#?}");
}

/// The small crate below makes items public in each way that the code knows.
#[test]
fn items_are_found_on_every_public_path() {
    let tree = Tree::of(&[
        ("serrate", "pub use serrate_core::{a, b::hidden_away as shown}; pub use serrate_core::a::T;"),
        ("serrate_core", "pub mod a; mod b;"),
        (
            "serrate_core::a",
            "mod inner; pub use inner::*; pub(crate) fn no() {} #[doc(hidden)] pub fn not_either() {}
             compile_error!(\"no\");
             /// A type.
             #[derive(Clone)] pub struct T { pub x: u8, y: u8 }
             impl T { pub fn len(&self) -> usize { 0 } fn private(&self) {} }
             impl std::fmt::Display for T { fn fmt(&self) {} }",
        ),
        ("serrate_core::a::inner", "pub enum E { A, B(u8) } mod m { impl super::E { pub fn f(
            a: u8,
        ) {} } }"),
        ("serrate_core::b", "pub fn hidden_away<'a>(x: &'a str) -> &'a str { x }"),
    ]);
    let record = write_record(&tree);
    let expected = "enum serrate::a::E
  A
  B(u8)
  fn f(a: u8)
struct serrate::a::T
  derive Clone
  x: u8
  fn len(&self) -> usize
  impl std::fmt::Display for T
  also serrate::T
fn serrate::shown<'a>(x: &'a str) -> &'a str
";
    assert_eq!(record, format!("{PREFACE}\n{expected}"));
}
