//! Checks that every plan node and source can be sent to workers, or has a reason why it cannot.

use std::collections::BTreeSet;
use std::path::Path;

use crate::{Source, make_sources, read_sources};

/// Nodes and sources that `src/sql/portable.rs` converts to plain values, so that they can be sent
/// to workers.
const TRAVELS: [&str; 12] = [
    "BatchSizeExec",
    "DeepStackExec",
    "GuardedSource",
    "ListsSource",
    "MedsSource",
    "MergedOrderExec",
    "NrtSource",
    "PacedExec",
    "PlainOrderExec",
    "SourceOrderExec",
    "UnorderedExec",
    "YieldingExec",
];

/// Nodes that occur only in plans for several workers. `src/cluster/codec.rs` encodes those of them
/// that run on workers.
const DIVIDED: [&str; 6] = [
    "ClusterExec",
    "GuardExec",
    "RowsInOrderExec",
    "SubqueriesFirstExec",
    "TaskMergeExec",
    "TaskRowsExec",
];

/// Returns the names of the types that implement plan nodes or sources. A generic type is listed by
/// the names of its aliases, if it has any.
fn list_nodes(sources: &[Source]) -> BTreeSet<String> {
    let lines = || sources.iter().flat_map(|source| source.text.lines());
    let mut found = BTreeSet::new();
    for line in lines().filter(|line| line.starts_with("impl ") || line.starts_with("impl<")) {
        let Some((head, rest)) = line.split_once(" for ") else { continue };
        let kind = head.rsplit([' ', ':']).next().unwrap_or_default();
        if !["ExecutionPlan", "DataSource", "FileSource"].contains(&kind) {
            continue;
        }
        let name = rest.split([' ', '<']).next().unwrap_or_default();
        let start = format!("= {name}<");
        let aliases = lines().filter(|line| line.contains(&start)).filter_map(|line| {
            let (_, rest) = line.split_once("type ")?;
            rest.split([' ', '<']).next()
        });
        let mut names: BTreeSet<String> = aliases.map(str::to_owned).collect();
        if names.is_empty() {
            names.insert(name.to_owned());
        }
        found.append(&mut names);
    }
    found
}

/// Returns the names in the constant `STAYS`. They are the only string literals in it without
/// spaces.
fn list_staying(source: &str) -> Vec<String> {
    let (_, list) = source.split_once("const STAYS: ").unwrap();
    let (list, _) = list.split_once("\n];").unwrap();
    let literals = list.split('"').skip(1).step_by(2);
    literals.filter(|text| !text.contains(' ')).map(str::to_owned).collect()
}

#[test]
fn every_node_and_source_can_be_sent_to_workers_or_has_a_reason() {
    let sources = read_sources(Path::new("src"));
    let portable = sources.iter().find(|source| source.file == "src/sql/portable.rs").unwrap();
    let staying = list_staying(&portable.text);
    assert!(staying.len() > 10, "{staying:?}");
    let known = TRAVELS.iter().chain(&DIVIDED).map(|name| (*name).to_owned());
    let known: BTreeSet<String> = known.chain(staying.iter().cloned()).collect();
    assert_eq!(
        known.len(),
        TRAVELS.len() + DIVIDED.len() + staying.len(),
        "a name is in two of the lists"
    );
    assert_eq!(list_nodes(&sources), known);
}

#[test]
fn generic_sources_are_listed_by_their_aliases() {
    let text = "impl<R: Read> FileSource for Scan<R> {\n\
        impl datafusion::physical_plan::ExecutionPlan for PlainExec {\n\
        impl DisplayAs for OtherExec {\n    impl ExecutionPlan for TestExec {";
    let aliases = "pub(crate) type CsvScan = Scan<CsvReader>;\ntype JsonScan = Scan<JsonReader>;";
    let names = list_nodes(&make_sources(&[("sql/scan", text), ("sql/csv", aliases)]));
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["CsvScan", "JsonScan", "PlainExec"]);
    assert_eq!(list_nodes(&make_sources(&[("sql/scan", text)])).len(), 2);
    let staying = "const STAYS: [(&str, &str); 1] = [\n    (\"AExec\", \"a reason\"),\n];";
    assert_eq!(list_staying(staying), ["AExec"]);
}
