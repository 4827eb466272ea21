//! Runs every case of the conformance vectors, which record results of five Python libraries.
//!
//! The vectors are in `tests/vectors`, described by its README, or in the folder that the
//! environment variable `SERRATE_VECTORS` names. No case is skipped: an unknown system, operation,
//! argument or part of an expected result is a failure. Only the cases of systems in [`NOT_BUILT`]
//! are counted without being run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "conformance/batches.rs"]
mod batches;
#[path = "conformance/batching_helpers.rs"]
mod batching_helpers;
#[path = "conformance/dok.rs"]
mod dok;
#[path = "conformance/format.rs"]
mod format;
#[path = "conformance/hashmap.rs"]
mod hashmap;
#[path = "conformance/hettensor.rs"]
mod hettensor;
#[path = "conformance/json.rs"]
mod json;
#[path = "conformance/nrt.rs"]
mod nrt;
#[path = "conformance/ragged_batch.rs"]
mod ragged_batch;
#[path = "common/reference.rs"]
mod reference;
#[path = "conformance/unseen.rs"]
mod unseen;
#[path = "conformance/unseen_batches.rs"]
mod unseen_batches;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use format::{Case, Outcome, check_only};
use json::Json;

/// Systems that are not implemented. Their cases are counted and not run.
const NOT_BUILT: [&str; 0] = [];

/// Folders of the vectors without cases.
const DATA: [&str; 1] = ["nrt-files"];

fn find_vectors() -> PathBuf {
    match std::env::var_os("SERRATE_VECTORS") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors"),
    }
}

/// Numbers of cases of one operation. `differ` counts results that differ on purpose.
#[derive(Debug, Default)]
struct Count {
    cases: usize,
    passed: usize,
    differ: usize,
}

fn run(system: &str, case: &Case) -> Result<Outcome, String> {
    match system {
        "nrt" => nrt::run(case).map(|verdict| match verdict {
            nrt::Verdict::Passed => Outcome::Passed,
            nrt::Verdict::Differs(rule) => {
                let why = nrt::DIFFERENCES.iter().find(|(r, _)| *r == rule);
                Outcome::Differs(why.map_or("for no reason given", |(_, why)| why))
            }
        }),
        "dok" => dok::run(case),
        "hashmap" => hashmap::run(case),
        "hettensor" => hettensor::run(case),
        "ragged_batch" => ragged_batch::run(case),
        "batching_helpers" => batching_helpers::run(case),
        other => Err(format!("the system {other:?} is unknown")),
    }
}

/// Returns name and path of all files and folders in a folder, sorted.
fn list_entries(folder: &Path) -> Vec<(String, PathBuf)> {
    let list = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut entries: Vec<_> = list
        .map(|e| e.unwrap())
        .map(|e| (e.file_name().into_string().unwrap(), e.path()))
        .collect();
    entries.sort();
    entries
}

fn read_cases(
    root: &Path,
    system: &str,
    op: &str,
    path: &Path,
) -> Result<Vec<Result<Case, String>>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let file = Json::parse(&text)?;
    check_only(&file, "the file", &["system", "op", "doc", "cases"])?;
    for (member, expected) in [("system", system), ("op", op)] {
        if file.get(member).ok_or_else(|| format!("no {member}"))?.text()? != expected {
            return Err(format!("the {member} is not {expected:?}"));
        }
    }
    let cases = file.get("cases").ok_or("no cases")?.list()?;
    Ok(cases.iter().map(|c| Case::new(root, op, c)).collect())
}

#[test]
fn all_cases_of_the_vectors_pass_or_differ_on_purpose() {
    let root = find_vectors();
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let mut failures: Vec<String> = Vec::new();
    let mut differences: Vec<(&str, String)> = Vec::new();
    for (system, folder) in list_entries(&root) {
        if !folder.is_dir() {
            if system.ends_with(".json") {
                failures.push(format!("{system}: cases are in the folder of a system"));
            }
            continue;
        }
        if DATA.contains(&system.as_str()) {
            continue;
        }
        for (name, path) in list_entries(&folder) {
            let Some(op) = name.strip_suffix(".json") else {
                failures.push(format!("{system}/{name} is no file of cases"));
                continue;
            };
            let all = match read_cases(&root, &system, op, &path) {
                Ok(all) => all,
                Err(why) => {
                    failures.push(format!("{system}/{name}: {why}"));
                    continue;
                }
            };
            let count = counts.entry(format!("{system}/{op}")).or_default();
            for case in all {
                count.cases += 1;
                if NOT_BUILT.contains(&system.as_str()) {
                    continue;
                }
                let verdict = case.and_then(|c| {
                    let found = run(&system, &c);
                    found.map(|v| (c.name.clone(), v)).map_err(|why| format!("{}: {why}", c.name))
                });
                match verdict {
                    Ok((_, Outcome::Passed)) => count.passed += 1,
                    Ok((case, Outcome::Differs(why))) => {
                        count.differ += 1;
                        differences.push((why, format!("{system}/{op}: {case}")));
                    }
                    Err(why) => failures.push(format!("{system}/{op}: {why}")),
                }
            }
        }
    }
    let report = write_report(&root, &counts, &differences);
    // Written to standard output itself, because the test framework hides what a passing test
    // prints.
    std::io::stdout().write_all(report.as_bytes()).unwrap();
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
    let ran: usize = counts.values().map(|c| c.passed + c.differ).sum();
    assert!(ran > 0, "{}: no case was tested", root.display());
}

fn write_report(
    root: &Path,
    counts: &BTreeMap<String, Count>,
    differences: &[(&str, String)],
) -> String {
    let mut out = format!("\nvectors of {}\n", root.display());
    let mut waiting: BTreeMap<&str, usize> = BTreeMap::new();
    let mut total = Count::default();
    for (op, count) in counts {
        let system = op.split('/').next().unwrap_or_default();
        if NOT_BUILT.contains(&system) {
            *waiting.entry(system).or_default() += count.cases;
            continue;
        }
        let differ =
            if count.differ > 0 { format!(", {} differ", count.differ) } else { String::new() };
        writeln!(out, "  {op:32} {:4} of {:4}{differ}", count.passed, count.cases).unwrap();
        total.cases += count.cases;
        total.passed += count.passed;
        total.differ += count.differ;
    }
    writeln!(
        out,
        "  {} cases: {} passed, {} differ on purpose, {} failed",
        total.cases,
        total.passed,
        total.differ,
        total.cases - total.passed - total.differ
    )
    .unwrap();
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (why, case) in differences {
        reasons.entry(why).or_default().push(case);
    }
    for (why, cases) in reasons {
        writeln!(out, "  differs: {why} ({})", cases.join("; ")).unwrap();
    }
    for (system, cases) in waiting {
        writeln!(out, "  not built: {system}, {cases} cases").unwrap();
    }
    out
}
