//! Tests of SQL functions and operators: the records (statements of sqllogictest with their
//! results) in `sql/slt` and its templates, the examples of the documentation, and laws that hold
//! for every function. With `SERRATE_BLESS=1`, the tests rewrite the recorded results.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::arrow::util::pretty::pretty_format_batches_with_options;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use serrate::datafusion;
use sqllogictest::{
    AsyncDB, DBOutput, DefaultColumnType, Runner, default_column_validator, default_normalizer,
    default_validator,
};

#[path = "slt/answers.rs"]
mod answers;
#[path = "slt/cuts.rs"]
mod cuts;
#[path = "slt/laws.rs"]
mod laws;
#[path = "slt/shared.rs"]
mod shared;
#[path = "common/templates.rs"]
mod templates;

use templates::{RecordTemplate, list_records, read_scripts};

fn root_path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn is_blessing() -> bool {
    std::env::var_os("SERRATE_BLESS").is_some()
}

fn shown_format() -> FormatOptions<'static> {
    FormatOptions::new().with_null("NULL").with_display_error(false)
}

pub(crate) async fn run(ctx: &SessionContext, sql: &str) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let frame = ctx.sql(sql).await?;
    let schema = Arc::new(frame.schema().as_arrow().clone());
    Ok((schema, frame.collect().await?))
}

struct Session(SessionContext);

#[async_trait]
impl AsyncDB for Session {
    type Error = DataFusionError;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>> {
        let (schema, batches) = run(&self.0, sql).await?;
        if schema.fields().is_empty() {
            return Ok(DBOutput::StatementComplete(0));
        }
        let types = schema.fields().iter().map(|f| match f.data_type() {
            t if t.is_integer() => DefaultColumnType::Integer,
            t if t.is_floating() => DefaultColumnType::FloatingPoint,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DefaultColumnType::Text,
            _ => DefaultColumnType::Any,
        });
        let mut rows = Vec::new();
        let options = shown_format();
        for batch in &batches {
            let columns: Vec<_> = batch
                .columns()
                .iter()
                .map(|c| ArrayFormatter::try_new(c, &options))
                .collect::<Result<_, _>>()?;
            for row in 0..batch.num_rows() {
                rows.push(columns.iter().map(|c| c.value(row).to_string()).collect());
            }
        }
        Ok(DBOutput::Rows { types: types.collect(), rows })
    }

    async fn shutdown(&mut self) {}
}

/// Reads the card of a function, which has statements that show the function, with their output.
pub(crate) fn read_card(name: &str) -> String {
    fs::read_to_string(root_path(&format!("src/functions/examples/{name}.txt"))).unwrap_or_default()
}

/// Returns the names of the functions of all templates.
fn templated_functions() -> Vec<String> {
    let templates = list_records(&root_path("sql/slt/templates"));
    let functions = templates.iter().flat_map(|path| RecordTemplate::read(path).functions());
    functions.map(|(name, _)| name).collect()
}

/// Creates records for functions that have none. A function is added to the template of its
/// section; if the section has no template, a file with the statements of its card is written.
/// `write_records` then fills in the results.
fn create_records() {
    let templated = templated_functions();
    for f in serrate::functions::all_scalar() {
        let path = root_path(&format!("sql/slt/{}.slt", f.name()));
        if path.exists() || templated.iter().any(|name| name == f.name()) {
            continue;
        }
        let section = f.documentation().unwrap().doc_section.label.to_lowercase();
        let template = root_path(&format!("sql/slt/templates/{section}.slt"));
        if template.exists() {
            answers::add_function(&template, f.name());
            continue;
        }
        let mut record = format!("# The function {}.\n", f.name());
        for sql in split_statements(&read_card(f.name())) {
            record.push_str(&format!("\nquery ?\n{}\n----\n", sql.trim().trim_end_matches(';')));
        }
        fs::write(path, record).unwrap();
    }
}

/// Writes the results of the records in files whose name contains `only`.
async fn write_records(only: &str) {
    create_records();
    let folder = root_path("sql/slt");
    for file in list_records(&folder).iter().filter(|f| f.to_string_lossy().contains(only)) {
        let mut runner = Runner::new(|| async { Ok(Session(serrate::sql::session())) });
        runner
            .update_test_file(
                file,
                " ",
                default_validator,
                default_normalizer,
                default_column_validator,
            )
            .await
            .unwrap();
    }
    for template in list_records(&folder.join("templates")) {
        answers::write_answers(&template, only).await;
    }
}

/// Number of threads that run records.
const THREADS: usize = 2;

/// Runs every [`THREADS`]-th script, beginning with number `first`, if its name contains `only`.
/// Returns the failures.
async fn run_records(only: &str, first: usize) -> Vec<String> {
    let mut failures = Vec::new();
    let scripts = read_scripts(&root_path("sql/slt")).into_iter().skip(first).step_by(THREADS);
    for script in scripts.filter(|script| script.name.contains(only)) {
        let mut runner = Runner::new(|| async { Ok(Session(serrate::sql::session())) });
        if let Err(e) = runner.run_multi_async(script.records).await {
            failures.push(format!("{}: {}", script.name, e.display(false)));
        }
    }
    failures
}

fn block_on<T>(run: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run)
}

#[test]
fn all_records_have_the_recorded_results() {
    let only = &std::env::var("SERRATE_SLT").unwrap_or_default();
    if is_blessing() {
        return block_on(write_records(only));
    }
    let failures: Vec<String> = std::thread::scope(|scope| {
        let run = |first| scope.spawn(move || block_on(run_records(only, first)));
        let runs: Vec<_> = (0..THREADS).map(run).collect();
        runs.into_iter().flat_map(|run| run.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Returns the statements of an example, without the lines of their output.
fn split_statements(example: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    for line in example.lines().filter(|l| !l.starts_with(['+', '|'])) {
        let current = out.last_mut().unwrap();
        current.push_str(line);
        if line.trim_end().ends_with(';') {
            out.push(String::new());
        } else if !line.trim().is_empty() {
            current.push('\n');
        }
    }
    out.retain(|s| !s.trim().is_empty());
    out
}

#[tokio::test]
async fn examples_give_the_output_they_show() {
    let ctx = serrate::sql::session();
    let mut failures = Vec::new();
    let mut names = Vec::new();
    for f in serrate::functions::all_scalar() {
        assert!(f.documentation().is_some(), "{}", f.name());
        names.push(f.name().to_string());
    }
    for f in serrate::functions::all_aggregate() {
        assert!(f.documentation().is_some(), "{}", f.name());
        assert!(f.name().ends_with("_agg"), "{}", f.name());
        names.push(f.name().to_string());
    }
    for f in serrate::functions::all_higher_order() {
        assert!(f.documentation().is_some(), "{}", f.name());
        names.push(f.name().to_string());
    }
    let templated = templated_functions();
    for name in names {
        let slt = root_path(&format!("sql/slt/{name}.slt"));
        if !slt.exists() && !templated.contains(&name) {
            failures
                .push(format!("{name} has no records in {} and is in no template", slt.display()));
        }
        let path = root_path(&format!("src/functions/examples/{name}.txt"));
        let example = read_card(&name);
        if example.is_empty() {
            failures.push(format!("{name} has no card {}", path.display()));
        }
        let mut parts = Vec::new();
        for sql in split_statements(&example) {
            let frame = serrate::sql::sql(&ctx, &sql).await;
            let output = match async { frame?.collect().await }.await {
                Ok(batches) => pretty_format_batches_with_options(&batches, &shown_format())
                    .unwrap()
                    .to_string(),
                Err(e) => format!("| {e}"),
            };
            if output.starts_with("| ") {
                failures.push(format!("{name}: {sql}\n{output}"));
            }
            parts.push(format!("{sql}\n{output}\n"));
        }
        let now = parts.join("\n");
        if now != example {
            if is_blessing() {
                fs::write(&path, &now).unwrap();
            } else {
                failures.push(format!("{name}: the example shows\n{example}\nbut gives\n{now}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// The documentation is compiled in, so that with `SERRATE_BLESS=1` this test must run after a
/// build with the new examples.
#[test]
fn documentation_is_up_to_date() {
    let folder = root_path("docs/functions");
    let pages = serrate::functions::documentation();
    if is_blessing() {
        fs::create_dir_all(&folder).unwrap();
        for (name, page) in &pages {
            fs::write(folder.join(name), page).unwrap();
        }
    }
    for (name, page) in &pages {
        let written = fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert!(
            *page == written,
            "docs/functions/{name} is out of date; run SERRATE_BLESS=1 cargo test --test slt"
        );
    }
    let files = fs::read_dir(&folder).unwrap().count();
    assert_eq!(files, pages.len(), "docs/functions has files that are not generated");
}

/// The files that contain the name `ragged_mode`, which stands for any function. Its definition and
/// its card are written by hand, and `SERRATE_BLESS=1 cargo test` writes most of the others, so
/// that a further list in which every function must be named makes this test fail. `calls.rs` names
/// it because it suggests it in place of `mode`, and `scripts.rs` tests that.
const NAMED_IN: [&str; 13] = [
    "docs/functions/README.md",
    "docs/functions/reductions.md",
    "docs/public-api.txt",
    "sql/slt/ragged_mode.slt",
    "sql/slt/templates/reductions.slt",
    "src/expr_fn.rs",
    "src/functions/examples/ragged_mode.txt",
    "src/functions/reduce.rs",
    "src/sql/statement/functions/calls.rs",
    "src/sql/statement/functions/counterparts.rs",
    "tests/cli/scripts.rs",
    "tests/slt.rs",
    "tests/sql/daily_names.rs",
];

#[test]
fn a_function_takes_a_kernel_a_definition_and_a_card() {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> =
        ["benches", "core", "docs", "examples", "python", "sql", "src", "tests"]
            .map(root_path)
            .to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if fs::read_to_string(&path).is_ok_and(|text| text.contains("ragged_mode")) {
                found.push(path.strip_prefix(root_path("")).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    assert_eq!(found, NAMED_IN);
}
