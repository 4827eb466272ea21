//! The `serrate` command, run as its users run it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "cli/batches.rs"]
mod batches;

use std::fs;
use std::io::{BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serrate::arrow::array::Float32Array;
use serrate::arrow::array::{Array, AsArray, RecordBatch, UInt8Array, UInt16Array};
use serrate::arrow::compute::cast;
use serrate::arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type, UInt16Type};
use serrate::arrow::ipc::reader::{FileReader, StreamReader};
use serrate::io::nrt::{self, NrtFile, ReadOptions, WriteOptions};
use serrate::io::safetensors::dense;
use serrate::table::RaggedTable;
use tempfile::TempDir;

/// A folder to work in and what the command says there.
struct Place(TempDir);

struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> &Self {
        fs::write(self.path(name), text).unwrap();
        self
    }

    fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_serrate"));
        command.current_dir(self.0.path()).env("XDG_STATE_HOME", self.path("state"));
        command.env("LOCALAPPDATA", self.path("state"));
        command
    }

    fn run(&self, args: &[&str]) -> Said {
        self.run_with(args, "")
    }

    fn run_with(&self, args: &[&str], input: &str) -> Said {
        let mut child = self
            .command()
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A child that fails at once does not read its input.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        Said {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs what must succeed, gives standard output.
    fn ok(&self, args: &[&str]) -> String {
        let said = self.run(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.err);
        said.out
    }

    /// Runs what must fail with `code`, gives standard error.
    fn fails(&self, code: i32, args: &[&str]) -> String {
        let said = self.run(args);
        assert_eq!(said.code, code, "{args:?}: {}{}", said.out, said.err);
        assert!(!said.err.contains("backtrace") && !said.err.contains("panicked"), "{}", said.err);
        said.err
    }

    /// Three patients: lengths 2, 0, 1 on axis 1 and 3, 0, 2 on axis 2.
    fn patients(&self, name: &str) -> &Self {
        let table = RaggedTable::builder()
            .lengths([2, 0, 1])
            .unwrap()
            .lengths([3, 0, 2])
            .unwrap()
            .column("age", 0, Arc::new(UInt8Array::from(vec![71, 38, 50])))
            .column("t", 1, Arc::new(Float32Array::from(vec![f32::NAN, 1.5, 2.0])))
            .column("code", 2, Arc::new(UInt16Array::from(vec![7, 300, 9, 4, 5])))
            .build()
            .unwrap();
        nrt::write(self.path(name), &table, &WriteOptions::default()).unwrap();
        self
    }

    fn nrt(&self, name: &str) -> RaggedTable {
        NrtFile::open(self.path(name), &ReadOptions::default()).unwrap().table().unwrap()
    }
}

const RAGGED: &str = "SELECT * FROM (VALUES \
    (1, [[1, 2], NULL, []], 'NaN'::DOUBLE, 'a, \"b\"'), \
    (2, NULL, NULL, NULL)) AS t(id, lists, x, s) ORDER BY id";

#[test]
fn tables_are_aligned_and_tell_null_nan_and_empty_apart() {
    let out = Place::new().ok(&["-c", RAGGED]);
    assert_eq!(
        out,
        "\
┌────┬────────────────────┬──────┬────────┐
│ id ┆ lists              ┆    x ┆ s      │
╞════╪════════════════════╪══════╪════════╡
│  1 ┆ [[1, 2], NULL, []] ┆  NaN ┆ a, \"b\" │
│  2 ┆ NULL               ┆ NULL ┆ NULL   │
└────┴────────────────────┴──────┴────────┘
"
    );
}

#[test]
fn long_results_and_long_lists_are_cut_in_tables_only() {
    let place = Place::new();
    let sql = "SELECT i, range(1000) AS r FROM unnest(range(100)) AS t(i) ORDER BY i";
    let out = place.ok(&["-c", sql, "--max-rows", "3"]);
    assert!(out.contains("[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … 1,000 values]"), "{out}");
    assert!(out.ends_with("… 97 more rows\n"), "{out}");
    assert_eq!(out.lines().count(), 8);
    let all = place.ok(&["-c", sql, "--max-rows", "0", "--max-width", "0"]);
    assert!(all.contains("998, 999]") && all.lines().count() == 104);
    for format in ["csv", "ndjson", "markdown"] {
        let out = place.ok(&["-c", sql, "--max-rows", "3", "--format", format]);
        assert!(out.matches("999]").count() == 100 && !out.contains('…'), "{format}");
    }
    let types = place.ok(&["-c", "SELECT 1 AS a", "--types"]);
    assert!(types.contains("Int64"), "{types}");
}

#[test]
fn csv_has_lists_as_json_text() {
    let out = Place::new().ok(&["-c", RAGGED, "--format", "csv"]);
    assert_eq!(out, "id,lists,x,s\n1,\"[[1,2],null,[]]\",NaN,\"a, \"\"b\"\"\"\n2,,,\n");
    let empty = Place::new().ok(&["-c", "SELECT [1] AS l, 2 AS b WHERE false", "-f", "csv"]);
    assert_eq!(empty, "l,b\n");
}

#[test]
fn json_is_one_array_and_ndjson_one_object_per_line() {
    let place = Place::new();
    let out = place.ok(&["-c", RAGGED, "--format", "json"]);
    let rows: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(rows[0]["lists"], serde_json::json!([[1, 2], null, []]));
    assert_eq!(rows[1]["lists"], serde_json::Value::Null);
    assert!(rows[1].as_object().unwrap().contains_key("s"));
    let out = place.ok(&["-c", RAGGED, "--format", "ndjson"]);
    let lines: Vec<serde_json::Value> =
        out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(rows[0], lines[0]);
    let none = place.ok(&["-c", "SELECT 1 AS a WHERE false", "--format", "json"]);
    assert_eq!(none.trim(), "[]");
}

#[test]
fn arrow_is_a_stream_on_standard_output_and_a_file_in_a_file() {
    let place = Place::new();
    let output = place.command().args(["-c", RAGGED, "-f", "arrow"]).output().unwrap();
    let stream = StreamReader::try_new(output.stdout.as_slice(), None).unwrap();
    let batches: Vec<RecordBatch> = stream.map(Result::unwrap).collect();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
    assert!(batches[0].column(2).as_primitive::<Float64Type>().value(0).is_nan());
    place.ok(&["-c", RAGGED, "-o", "x.arrow"]);
    let file = FileReader::try_new(fs::File::open(place.path("x.arrow")).unwrap(), None).unwrap();
    assert_eq!(file.map(|b| b.unwrap().num_rows()).sum::<usize>(), 2);
}

#[test]
fn markdown_is_a_table_of_github() {
    let out = Place::new().ok(&["-c", "SELECT 1 AS n, 'x|y' AS s", "--format", "markdown"]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[1].starts_with("|--") && lines[2].contains("x\\|y"), "{out}");
}

#[test]
fn scripts_run_in_order_and_stop_at_the_first_failure() {
    let place = Place::new();
    place.file(
        "q.sql",
        "-- a comment; with a semicolon\nCREATE TABLE t AS SELECT 1 AS a;\n\nSELECT a FROM t;\n\nSELECT nothing\n  FROM t;\nSELECT 'never';\n",
    );
    let said = place.run(&["q.sql", "-f", "csv"]);
    assert_eq!((said.code, said.out.as_str()), (1, "a\n1\n"));
    assert!(said.err.starts_with("error: q.sql:6: "), "{}", said.err);
    assert!(said.err.contains("in: SELECT nothing FROM t"), "{}", said.err);
    assert!(!said.err.contains("backtrace"), "{}", said.err);

    place.file("setup.sql", "CREATE TABLE u AS SELECT 5 AS five;");
    assert_eq!(
        place.ok(&["setup.sql", "-c", "SELECT * FROM u", "-c", "SELECT 6 AS six", "-f", "csv"]),
        "five\n5\n\nsix\n6\n"
    );
}

#[test]
fn parse_errors_have_the_position_in_the_file() {
    let place = Place::new();
    place.file("q.sql", "SELECT 1;\n\n   SELEC 2;");
    let err = place.fails(1, &["q.sql"]);
    assert!(!err.contains("ParserError"), "{err}");
    assert!(err.contains("q.sql:3") && err.contains("Line: 3, Column: 4"), "{err}");
    place.file("open.sql", "SELECT 1;\nSELECT 'x");
    let err = place.fails(1, &["open.sql"]);
    assert!(err.contains("open.sql:2:8"), "{err}");
}

#[test]
fn a_script_may_come_from_standard_input() {
    let place = Place::new();
    let said = place.run_with(&["-f", "csv"], "SELECT 1 AS a;\nSELECT 2 AS b");
    assert_eq!((said.code, said.out.as_str()), (0, "a\n1\n\nb\n2\n"));
    let said = place.run_with(&["-", "-f", "csv"], "SELECT 3 AS c");
    assert_eq!(said.out, "c\n3\n");
    let said = place.run_with(&[], "SELECT 1;\nSELECT x;");
    assert_eq!(said.code, 1);
    assert!(said.err.contains("standard input:2"), "{}", said.err);
    assert_eq!(place.ok(&[]), "");
}

#[test]
fn output_files_appear_whole_and_are_not_overwritten() {
    let place = Place::new();
    let said = place.run(&["-c", "SELECT 1 AS a", "-c", "SELECT nothing", "-o", "r.csv"]);
    assert_eq!(said.code, 1);
    assert_eq!(fs::read_dir(place.0.path()).unwrap().count(), 0, "something was left behind");
    place.ok(&["-c", "SELECT 1 AS a", "-o", "r.csv"]);
    assert_eq!(fs::read_to_string(place.path("r.csv")).unwrap(), "a\n1\n");
    let err = place.fails(1, &["-c", "SELECT 2 AS a", "-o", "r.csv"]);
    assert!(err.contains("r.csv") && err.contains("overwrit"), "{err}");
    place.ok(&["-c", "SELECT 2 AS a", "-o", "r.csv", "--overwrite"]);
    assert_eq!(fs::read_to_string(place.path("r.csv")).unwrap(), "a\n2\n");
    let err = place.fails(1, &["-c", "SELECT 1", "-c", "SELECT 2", "-o", "r.json"]);
    assert!(err.contains("one result"), "{err}");
    let err = place.fails(1, &["-c", "CREATE TABLE t AS SELECT 1", "-o", "none.csv"]);
    assert!(err.contains("none.csv") && !place.exists("none.csv"), "{err}");
    let err = place.fails(1, &["-c", "SELECT 1", "-o", "no/such/folder.csv"]);
    assert!(err.contains("no/such/folder.csv"), "{err}");
}

#[test]
fn timing_is_one_line_per_statement_on_standard_error() {
    let said = Place::new().run(&["--timing", "-f", "csv", "-c", "SELECT 1; SELECT 2"]);
    let times: Vec<f64> =
        said.err.lines().map(|l| l.strip_prefix("elapsed_ms=").unwrap().parse().unwrap()).collect();
    assert!(times.len() == 2 && times.iter().all(|t| *t > 0.0), "{}", said.err);
    assert!(!said.out.contains("elapsed"));
}

#[test]
fn copy_says_what_it_wrote() {
    let place = Place::new();
    let sql = "COPY (SELECT 1 AS a UNION ALL SELECT 2) TO 'x.parquet' STORED AS PARQUET";
    assert_eq!(place.ok(&["-c", sql]), "wrote 2 rows to x.parquet\n");
    // Other formats keep their output clean.
    let said =
        place.run(&["-f", "csv", "-c", "COPY (SELECT 1 AS a) TO 'y.csv'", "-c", "SELECT 3 AS b"]);
    assert_eq!((said.out.as_str(), said.err.as_str()), ("b\n3\n", "wrote 1 row to y.csv\n"));
}

#[test]
fn wrong_usage_is_2_and_help_is_0() {
    let place = Place::new();
    for args in [
        &["--nonsense"][..],
        &["-c", "SELECT 1", "--format", "xml"],
        &["--overwrite", "-c", "SELECT 1"],
        &["inspect"],
        &["convert", "only.nrt"],
        &["densify", "x.nrt"],
        &["densify", "x.nrt", "-o", "y.safetensors", "--rows", "5..1"],
        &["densify", "x.nrt", "-o", "y.safetensors", "--side", "up"],
        &["generate", "-o", "x.nrt"],
        &["generate", "--patients", "3", "-o", "folder"],
        &["generate", "--patients", "3", "-o", "x.nrt", "--shards", "2"],
    ] {
        let err = place.fails(2, args);
        assert!(err.starts_with("error: ") && err.contains("--help"), "{args:?}: {err}");
    }
    assert_eq!(fs::read_dir(place.0.path()).unwrap().count(), 0);
    for command in [&[][..], &["inspect"], &["convert"], &["densify"], &["generate"]] {
        let args = [command, &["--help"]].concat();
        let help = place.ok(&args);
        assert!(help.contains("Examples:") && help.contains("Usage:"), "{help}");
    }
    assert!(place.ok(&["--version"]).starts_with("serrate "));
    let err = place.fails(1, &["inspekt"]);
    assert!(err.contains("inspekt") && err.contains("--help"), "{err}");
}

#[test]
fn a_script_may_be_called_like_a_command() {
    let place = Place::new();
    place.file("inspect", "SELECT 1 AS a");
    assert_eq!(place.ok(&["-f", "csv", "./inspect"]), "a\n1\n");
    assert_eq!(place.ok(&["-f", "csv", "--", "inspect"]), "a\n1\n");
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let place = Place::new();
    for format in ["csv", "ndjson", "json", "arrow"] {
        let sql = "SELECT i, repeat('x', 1000) AS s FROM unnest(range(100000)) AS t(i)";
        let mut child = place
            .command()
            .args(["-f", format, "-c", sql])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_exact(&mut [0; 16]).unwrap();
        drop(out);
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert!(child.wait().unwrap().success(), "{format}: {err}");
        assert_eq!(err, "", "{format}");
    }
}

#[test]
fn the_shell_runs_statements_over_lines_and_goes_on_after_errors() {
    let place = Place::new();
    place.file("more.sql", "SELECT 77 AS from_file;");
    let input = "\
SELECT 1
  AS one,
  ';' AS s;
SELECT nothing;
CREATE TABLE visits AS SELECT 5 AS five;
.tables
.schema visits
.format csv
SELECT * FROM visits;
.timing on
.timing maybe
.read more.sql
.help ragged_count
.nonsense
.help
.quit
SELECT 'after the end';
";
    let said = place.run_with(&["-i"], input);
    assert_eq!(said.code, 0, "{}", said.err);
    for expected in
        ["one", "visits", "five", "five\n5\n", "from_file\n77\n", ".schema TABLE", "ragged_count("]
    {
        assert!(said.out.contains(expected), "{expected}: {}", said.out);
    }
    assert!(!said.out.contains("after the end"));
    for expected in ["nothing", "elapsed_ms=", ".timing is on or off", "no command .nonsense"] {
        assert!(said.err.contains(expected), "{expected}: {}", said.err);
    }
    let history = fs::read_to_string(place.path("state/serrate/history")).unwrap();
    assert!(history.contains("visits") && !history.contains("after the end"), "{history}");
}

#[test]
fn help_knows_functions_and_their_neighbours() {
    let place = Place::new();
    let said = place.run_with(&["-i"], ".help array_length\n.help ragged_nonsense\n.help ragged\n");
    assert!(said.out.contains("array_length("), "{}", said.out);
    assert!(said.err.contains("no function \"ragged_nonsense\""), "{}", said.err);
    assert!(said.err.contains("ragged_count"), "{}", said.err);
}

#[test]
fn inspect_shows_axes_columns_and_the_cost_of_dense() {
    let place = Place::new();
    place.patients("x.nrt");
    let out = place.ok(&["inspect", "x.nrt"]);
    for expected in ["x.nrt: nrt", "3 rows", "│ code", "UInt16", "33.3%", "dense: "] {
        assert!(out.contains(expected), "{expected}: {out}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&place.ok(&["inspect", "x.nrt", "--json"])).unwrap();
    assert_eq!((json["rows"].as_u64(), json["files"].as_u64()), (Some(3), Some(1)));
    assert_eq!(json["bytes"].as_u64(), Some(fs::metadata(place.path("x.nrt")).unwrap().len()));
    let table = &json["tables"][0];
    let axis = &table["axes"][1];
    assert_eq!(
        (&axis["lists"], &axis["elements"], &axis["min"], &axis["median"], &axis["max"]),
        (&3.into(), &5.into(), &0.into(), &2.into(), &3.into())
    );
    // 5 codes in 3 x 2 x 3 cells.
    assert_eq!(axis["occupied"].as_f64(), Some(5.0 / 18.0));
    let columns = table["columns"].as_array().unwrap();
    let t = columns.iter().find(|c| c["name"] == "t").unwrap();
    assert_eq!((&t["nulls"], &t["nans"], &t["axis"]), (&0.into(), &1.into(), &1.into()));
    // age u8 [3], t f32 [3, 2], code u16 [3, 2, 3], masks [3, 2] and [3, 2, 3].
    assert_eq!(json["dense_bytes"].as_u64(), Some(3 + 24 + 36 + 6 + 18));
}

#[test]
fn inspect_takes_files_of_every_format_and_says_what_it_does_not_know() {
    let place = Place::new();
    place.patients("x.nrt");
    for name in ["x.parquet", "x.arrow", "x.json", "x.ndjson", "x.safetensors"] {
        place.ok(&["convert", "x.nrt", name]);
        let out = place.ok(&["inspect", name]);
        assert!(out.contains("code"), "{name}: {out}");
        let json: serde_json::Value =
            serde_json::from_str(&place.ok(&["inspect", name, "--json"])).unwrap();
        assert_eq!(json["bytes"].as_u64(), Some(fs::metadata(place.path(name)).unwrap().len()));
    }
    place.file("x.bin", "?").file("bad.nrt", "not a header").file("bad.parquet", "no");
    for (name, expected) in [
        ("x.bin", "the format is not clear"),
        ("none.nrt", "none.nrt"),
        ("bad.nrt", "bad.nrt"),
        ("bad.parquet", "bad.parquet"),
        (".", "several formats"),
    ] {
        let err = place.fails(1, &["inspect", name]);
        assert!(err.contains(expected), "{name}: {err}");
    }
}

#[test]
fn inspect_keeps_columns_apart_that_have_lists_of_their_own() {
    let place = Place::new();
    let sql = "COPY (SELECT * FROM (VALUES (1, [1, 2], [5]), (2, [3], [6, 7, 8])) AS t(id, a, b)) TO 'x.parquet'";
    place.ok(&["-c", sql]);
    let json: serde_json::Value =
        serde_json::from_str(&place.ok(&["inspect", "x.parquet", "--json"])).unwrap();
    let tables = json["tables"].as_array().unwrap();
    assert_eq!(tables.len(), 2);
    assert_eq!(tables[0]["axes"][0]["max"], 2);
    assert_eq!(tables[1]["axes"][0]["max"], 3);
    assert!(place.ok(&["inspect", "x.parquet"]).contains("table 2 of 2"));
}

#[test]
fn conversions_keep_every_value_through_every_format() {
    let place = Place::new();
    place.patients("x.nrt");
    let original = place.nrt("x.nrt");
    for middle in ["m.parquet", "m.arrow", "m.feather", "m.ndjson", "m.jsonl", "m.json"] {
        let out = place.ok(&["convert", "x.nrt", middle]);
        assert_eq!(out, format!("wrote 3 rows to {middle}\n"));
        place.ok(&["convert", middle, "back.nrt", "--overwrite"]);
        let back = place.nrt("back.nrt");
        assert_eq!(back.num_rows(), 3, "{middle}");
        for axis in 1..3 {
            assert_eq!(back.layout(axis).unwrap(), original.layout(axis).unwrap(), "{middle}");
        }
        assert_eq!(back.array("code").unwrap().leaves().len(), 5);
        let t = back.column("t").unwrap().values().clone();
        let t = cast(&t, &DataType::Float32).unwrap();
        let t = t.as_primitive::<Float32Type>().clone();
        assert!(t.value(0).is_nan() && t.value(1) == 1.5, "{middle}");
        if !middle.contains("json") {
            assert!(
                fs::read(place.path("x.nrt")).unwrap() == fs::read(place.path("back.nrt")).unwrap()
            );
        }
    }
}

#[test]
fn folders_become_folders_or_one_file_in_the_order_of_the_shards() {
    let place = Place::new();
    let shard = |name: &str, codes: Arc<dyn Array>| {
        let path = place.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let rows = codes.len();
        let table = RaggedTable::builder()
            .lengths(vec![1; rows])
            .unwrap()
            .column("code", 1, codes)
            .build()
            .unwrap();
        nrt::write(path, &table, &WriteOptions::default()).unwrap();
    };
    shard("in/train/2.nrt", Arc::new(UInt16Array::from(vec![300, 2])));
    shard("in/train/10.nrt", Arc::new(UInt8Array::from(vec![10])));
    shard("in/a.nrt", Arc::new(UInt8Array::from(vec![1])));
    fs::create_dir(place.path("in/metadata")).unwrap();
    fs::write(place.path("in/metadata/codes.parquet"), "not read").unwrap();

    assert_eq!(place.ok(&["convert", "in", "all.nrt"]), "wrote 4 rows to all.nrt\n");
    let all = place.nrt("all.nrt");
    let codes = all.column("code").unwrap().values().clone();
    assert_eq!(codes.as_primitive::<UInt16Type>().values(), &[1, 300, 2, 10]);

    let out = place.ok(&["convert", "in", "out", "--to", "parquet"]);
    assert_eq!(out, "wrote 4 rows to 3 files in out\n");
    for name in ["out/a.parquet", "out/train/2.parquet", "out/train/10.parquet"] {
        assert!(place.exists(name), "{name}");
    }
    // The width is that of all shards.
    let types = place.ok(&["inspect", "out/a.parquet"]);
    assert!(types.contains("UInt16"), "{types}");
    let err = place.fails(2, &["convert", "in", "out2"]);
    assert!(err.contains("--to"), "{err}");
    let err = place.fails(1, &["convert", "in", "out", "--to", "parquet"]);
    assert!(err.contains("exists"), "{err}");
    place.ok(&["convert", "in", "out", "--to", "parquet", "--force"]);

    shard("other/b.nrt", Arc::new(UInt8Array::from(vec![1])));
    fs::write(place.path("other/c.ndjson"), "{\"code\": [1]}\n").unwrap();
    let err = place.fails(1, &["convert", "other", "o.nrt"]);
    assert!(err.contains("several formats"), "{err}");
}

#[test]
fn shards_whose_columns_differ_are_refused_by_name() {
    let place = Place::new();
    fs::create_dir(place.path("in")).unwrap();
    place.file("in/1.ndjson", "{\"a\": [1]}\n").file("in/2.ndjson", "{\"b\": [1]}\n");
    let err = place.fails(1, &["convert", "in", "x.nrt"]);
    assert!(err.contains("2.ndjson") && err.contains("\"a\""), "{err}");
    assert!(!place.exists("x.nrt"));
    place.file("in/2.ndjson", "{\"a\": [\"text\"]}\n");
    let err = place.fails(1, &["convert", "in", "x.nrt"]);
    assert!(err.contains("2.ndjson") && err.contains("\"a\""), "{err}");
}

#[test]
fn nothing_is_overwritten_unasked() {
    let place = Place::new();
    place.patients("x.nrt").file("y.parquet", "precious").file("z.safetensors", "precious");
    place.file("g.nrt", "precious");
    for args in [
        &["convert", "x.nrt", "y.parquet"][..],
        &["convert", "x.nrt", "z.safetensors"],
        &["densify", "x.nrt", "-o", "z.safetensors"],
        &["generate", "--patients", "2", "-o", "g.nrt"],
    ] {
        let err = place.fails(1, args);
        assert!(err.contains("exists"), "{err}");
    }
    for name in ["y.parquet", "z.safetensors", "g.nrt"] {
        assert_eq!(fs::read(place.path(name)).unwrap(), b"precious");
    }
    place.ok(&["convert", "x.nrt", "y.parquet", "--overwrite"]);
    place.ok(&["densify", "x.nrt", "-o", "z.safetensors", "--overwrite"]);
    place.ok(&["generate", "--patients", "2", "-o", "g.nrt", "--overwrite"]);
    let err = place.fails(1, &["convert", "x.nrt", "./x.nrt", "--overwrite"]);
    assert!(err.contains("same time"), "{err}");
    assert_eq!(place.nrt("x.nrt").num_rows(), 3);
}

#[test]
fn densify_pads_cuts_and_masks() {
    let place = Place::new();
    place.patients("x.nrt");
    let out = place.ok(&["densify", "x.nrt", "-o", "all.safetensors"]);
    assert!(
        out.contains("code: int64 [3, 2, 3]") && out.ends_with("wrote 3 rows to all.safetensors\n"),
        "{out}"
    );
    let tensors = dense::read(place.path("all.safetensors"), false).unwrap();
    let names: Vec<&str> = tensors.iter().map(|(n, _)| n.as_str()).collect();
    for name in ["age", "t", "code", "dim1/mask", "dim2/mask"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let tensor = |file: &str, name: &str| {
        let all = dense::read(place.path(file), false).unwrap();
        all.into_iter().find(|(n, _)| n == name).unwrap().1
    };
    assert_eq!(
        tensor("all.safetensors", "code").as_slice::<i64>().unwrap()[..6],
        [7, 300, 9, 0, 0, 0]
    );

    place.ok(&[
        "densify",
        "x.nrt",
        "-o",
        "cut.safetensors",
        "--rows",
        "0..1",
        "--max-len",
        "1,2",
        "--side",
        "left",
        "--columns",
        "code",
        "--fill",
        "-1",
    ]);
    let code = tensor("cut.safetensors", "code");
    // The last event is empty, so it is all padding.
    assert_eq!((code.shape(), code.as_slice::<i64>().unwrap()), (&[1, 1, 2][..], &[-1, -1][..]));

    place.ok(&["convert", "x.nrt", "x.parquet"]);
    for input in ["x.nrt", "x.parquet"] {
        place.ok(&[
            "densify",
            input,
            "-o",
            "last.safetensors",
            "--rows",
            "1..",
            "--keep-types",
            "--columns",
            "age,code",
            "--overwrite",
        ]);
        let code = tensor("last.safetensors", "code");
        assert_eq!(
            (code.shape(), code.as_slice::<u16>().unwrap()),
            (&[2, 1, 2][..], &[0, 0, 4, 5][..])
        );
        let err = place.fails(1, &["densify", input, "-o", "e.safetensors", "--rows", "0..4"]);
        assert!(err.contains("0..4 of 3"), "{err}");
        let err = place.fails(1, &["densify", input, "-o", "e.safetensors", "--columns", "nope"]);
        assert!(err.contains("nope") && err.contains("age"), "{err}");
        let err = place.fails(1, &["densify", input, "-o", "e.safetensors", "--limit", "10"]);
        assert!(err.contains("limit of 10 bytes"), "{err}");
    }
    assert!(!place.exists("e.safetensors"));
}

#[test]
fn generate_is_reproducible_whatever_the_shards() {
    let place = Place::new();
    assert_eq!(
        place.ok(&["generate", "--patients", "40", "--seed", "7", "-o", "a.nrt"]),
        "wrote 40 rows to a.nrt\n"
    );
    let out = place.ok(&[
        "generate",
        "--patients",
        "40",
        "--seed",
        "7",
        "--to",
        "nrt",
        "--shards",
        "3",
        "-o",
        "shards",
    ]);
    assert_eq!(out, "wrote 40 rows to 3 files in shards\n");
    place.ok(&["convert", "shards", "b.nrt"]);
    place.ok(&["generate", "--patients", "40", "--seed", "8", "-o", "c.nrt"]);
    assert_eq!(place.nrt("a.nrt"), place.nrt("b.nrt"));
    assert_ne!(place.nrt("a.nrt"), place.nrt("c.nrt"));
    place.ok(&["generate", "--patients", "40", "--seed", "7", "-o", "a.parquet"]);
    place.ok(&["convert", "a.parquet", "d.nrt"]);
    assert_eq!(place.nrt("a.nrt"), place.nrt("d.nrt"));
    let out =
        place.ok(&["generate", "--patients", "40", "--seed", "7", "--to", "meds", "-o", "meds"]);
    assert_eq!(out, "wrote 40 patients to meds\n");
    let json: serde_json::Value =
        serde_json::from_str(&place.ok(&["inspect", "meds", "--json"])).unwrap();
    assert_eq!((json["format"].as_str(), json["rows"].as_u64()), (Some("MEDS"), Some(40)));
    let err = place.fails(1, &["generate", "--patients", "4", "--to", "meds", "-o", "meds"]);
    assert!(err.contains("exists"), "{err}");
    place.ok(&["generate", "--patients", "0", "-o", "none.nrt"]);
    assert_eq!(place.nrt("none.nrt").num_rows(), 0);
}

#[test]
fn what_a_format_cannot_hold_is_refused_by_name() {
    let place = Place::new();
    place.file("s.ndjson", "{\"name\": \"x\", \"codes\": [1]}\n");
    let err = place.fails(1, &["convert", "s.ndjson", "s.nrt"]);
    assert!(err.contains("name"), "{err}");
    assert!(!place.exists("s.nrt"));
    place.file("n.ndjson", "{\"codes\": [1, null]}\n");
    let err = place.fails(1, &["convert", "n.ndjson", "n.nrt"]);
    assert!(err.contains("codes"), "{err}");
    let err = place.fails(1, &["convert", "n.ndjson", "n.xyz"]);
    assert!(err.contains("the format is not clear"), "{err}");
}

#[test]
fn times_become_integers_in_nrt_and_a_note_says_which() {
    let place = Place::new();
    let sql = "COPY (SELECT [TIMESTAMP '1970-01-01T00:00:01', TIMESTAMP '1970-01-02T00:00:00'] AS time) TO 'x.parquet'";
    place.ok(&["-c", sql]);
    let said = place.run(&["convert", "x.parquet", "x.nrt"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("time is written as integers"), "{}", said.err);
    let table = place.nrt("x.nrt");
    let values =
        table.column("time").unwrap().values().as_primitive::<Int64Type>().values().clone();
    assert_eq!(values[1] / values[0], 86_400);
}

#[test]
fn results_of_nrt_files_are_shown() {
    let place = Place::new();
    place.patients("x.nrt");
    let out = place.ok(&["-c", "SELECT age, t, code FROM 'x.nrt'", "-f", "csv"]);
    // NaN of a file is NULL in SQL.
    assert_eq!(
        out,
        "age,t,code\n71,\"[null,1.5]\",\"[[7,300,9],[]]\"\n38,[],[]\n50,[2.0],\"[[4,5]]\"\n"
    );
    let copied = place.ok(&["-c", "COPY (SELECT age, code FROM 'x.nrt') TO 'y.nrt' STORED AS NRT"]);
    assert_eq!(copied, "wrote 3 rows to y.nrt\n");
    assert_eq!(place.nrt("y.nrt").array("code").unwrap().lengths(1).unwrap(), [2, 0, 1]);
}

/// A folder of the repository.
fn data(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn meds_becomes_tokens_with_the_vocabulary_beside_them() {
    let place = Place::new();
    let meds = data("tiny-meds");
    let said = place.run(&["convert", &meds, "one.nrt"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("codes to one.codes.parquet"), "{}", said.out);
    assert!(said.err.contains("time is written as integers: microseconds"), "{}", said.err);
    let one = place.nrt("one.nrt");
    assert!(one.column("code").unwrap().data_type().is_integer());
    assert_eq!((one.column("time").unwrap().axis(), one.column("code").unwrap().axis()), (1, 2));
    assert!(one.column("subject_id").unwrap().data_type() == &DataType::Int64);
    assert!(place.exists("one.codes.parquet"));

    place.ok(&["convert", &meds, "out", "--to", "nrt"]);
    for name in
        ["data/train/0.nrt", "data/train/1.nrt", "data/tuning/0.nrt", "metadata/codes.parquet"]
    {
        assert!(place.exists(&format!("out/{name}")), "{name}");
    }
    let rows: usize = ["held_out/0", "train/0", "train/1", "tuning/0"]
        .iter()
        .map(|n| place.nrt(&format!("out/data/{n}.nrt")).num_rows())
        .sum();
    assert_eq!(rows, one.num_rows());
    place.ok(&["convert", "out", "again.nrt"]);
    assert_eq!(
        fs::read(place.path("one.nrt")).unwrap(),
        fs::read(place.path("again.nrt")).unwrap()
    );
    // The tokens of another data set mean other codes: each file has its own beside it.
    let codes = fs::read(place.path("one.codes.parquet")).unwrap();
    place.ok(&["convert", &data("synthea-meds"), "two.nrt"]);
    assert!(place.exists("two.codes.parquet"));
    assert_eq!(fs::read(place.path("one.codes.parquet")).unwrap(), codes);
    let err = place.fails(1, &["convert", &meds, "one.nrt"]);
    assert!(err.contains("exists"), "{err}");
    place.ok(&["convert", &meds, "out", "--to", "nrt", "--overwrite"]);
    fs::copy(place.path("one.nrt"), place.path("out/data/older.nrt")).unwrap();
    let other = data("synthea-meds");
    let err = place.fails(1, &["convert", &other, "out", "--to", "nrt", "--overwrite"]);
    assert!(err.contains("older.nrt") || err.contains("data/"), "{err}");
    assert!(err.contains("other codes"), "{err}");
    place.ok(&["convert", "one.nrt", "plain.nrt", "--plain"]);
    assert!(place.nrt("plain.nrt").column("subject_id").is_err());
}

#[test]
fn inspect_counts_splits_shards_and_codes_of_meds_and_of_its_tensors() {
    let place = Place::new();
    let json =
        |args: &[&str]| -> serde_json::Value { serde_json::from_str(&place.ok(args)).unwrap() };
    let meds = data("synthea-meds");
    let report = json(&["inspect", &meds, "--json"]);
    let names = |list: &serde_json::Value| -> Vec<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|p| p["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&report["splits"]), ["held_out", "train", "tuning"]);
    assert_eq!(names(&report["shards"]), ["held_out/0", "train/0", "train/1", "tuning/0"]);
    // As SQL counts them.
    let sql = |question: &str| -> Vec<u64> {
        let out = place.ok(&["-f", "csv", "-c", &question.replace("MEDS", &meds)]);
        out.lines().skip(1).flat_map(|l| l.split(',').map(|n| n.parse().unwrap())).collect()
    };
    let long = "(SELECT * FROM 'MEDS/data/train/*.parquet')";
    let train = &report["splits"][1];
    let of = |names: [&str; 4]| names.map(|n| train[n].as_u64().unwrap()).to_vec();
    assert_eq!(
        of(["subjects", "events", "measurements", "statics"]),
        sql(&format!(
            "SELECT count(DISTINCT subject_id), count(DISTINCT (subject_id, time)) FILTER (WHERE time IS NOT NULL),
             count(time), count(*) - count(time) FROM {long}"
        ))
    );
    let longest = sql(&format!(
        "SELECT max(events), max(n), max(m) FROM (
           SELECT count(*) AS events, sum(n) AS n, max(n) AS m FROM (
             SELECT subject_id, count(*) AS n FROM {long} WHERE time IS NOT NULL
             GROUP BY subject_id, time) GROUP BY subject_id)"
    ));
    let keys = ["most_events", "most_measurements", "most_measurements_of_an_event"];
    assert_eq!(keys.map(|k| train[k].as_u64().unwrap()).to_vec(), longest);
    let [events, measurements, most] = longest[..] else { panic!("{longest:?}") };
    assert_eq!(train["padded_sm_bytes"], 20 * measurements * 17);
    assert_eq!(train["padded_sem_bytes"], 20 * events * (5 + 13 * most));
    // Codes, the most frequent first, with what they are called.
    let codes = report["codes"].as_array().unwrap();
    assert_eq!(report["distinct_codes"], codes.len());
    let count = |c: &serde_json::Value| {
        c["measurements"].as_u64().unwrap() + c["statics"].as_u64().unwrap()
    };
    assert!(codes.is_sorted_by(|a, b| count(a) >= count(b)));
    let weight = codes.iter().find(|c| c["code"] == "LAB//29463-7//kg").unwrap();
    let counted = sql(
        "SELECT count(*), count(numeric_value) FROM 'MEDS/data/**/*.parquet' WHERE code == 'LAB//29463-7//kg'",
    );
    assert_eq!([count(weight), weight["values"].as_u64().unwrap()].to_vec(), counted);
    let tiny = data("tiny-meds");
    let described = json(&["inspect", &tiny, "--json", "--codes", "100"]);
    let texts =
        described["codes"].as_array().unwrap().iter().filter(|c| c["description"].is_string());
    assert!(texts.count() > 0, "{described}");
    let out = place.ok(&["inspect", &meds, "--codes", "2"]);
    assert!(out.contains("the 2 most frequent of") && out.contains("padded SEM"), "{out}");
    assert!(!place.ok(&["inspect", &meds, "--codes", "0"]).contains("most frequent"));

    // Of the tensors, what they hold; and they are read as rows.
    let cohort = data("synthea-meds-torch-data");
    let report = json(&["inspect", &cohort, "--json"]);
    assert_eq!(report["format"], "meds-torch-data");
    assert_eq!(report["splits"][1], *train);
    place.ok(&["convert", &cohort, "cohort.parquet"]);
    place.ok(&["convert", &cohort, "cohort.nrt"]);
    let same = "SELECT count(*) FROM meds('COHORT') a JOIN 'cohort.parquet' b USING (subject_id)
                WHERE a.code_id = b.code_id AND a.static_code_id = b.static_code_id AND a.time = b.time";
    let out = place.ok(&["-f", "csv", "-c", &same.replace("COHORT", &cohort)]);
    assert_eq!(out, format!("count(*)\n{}\n", report["rows"]));
    assert_eq!(place.nrt("cohort.nrt").num_rows() as u64, report["rows"].as_u64().unwrap());
    place.ok(&["densify", &cohort, "-o", "cohort.safetensors", "--rows", "0..2"]);
    assert!(place.fails(2, &["inspect", "cohort.nrt", "--codes", "3"]).contains("--codes"));
}

#[test]
fn meds_is_inspected_densified_and_kept_whole_in_parquet() {
    let place = Place::new();
    let meds = data("synthea-meds");
    let json: serde_json::Value =
        serde_json::from_str(&place.ok(&["inspect", &meds, "--json"])).unwrap();
    assert_eq!((json["format"].as_str(), json["files"].as_u64()), (Some("MEDS"), Some(4)));
    let rows = json["rows"].as_u64().unwrap();
    assert!(rows > 0 && json["tables"].as_array().unwrap().len() == 2);
    assert!(place.ok(&["inspect", &meds]).contains("code_id"));
    place.ok(&["convert", &meds, "all.parquet"]);
    let whole: serde_json::Value =
        serde_json::from_str(&place.ok(&["inspect", "all.parquet", "--json"])).unwrap();
    assert_eq!(whole["rows"].as_u64(), Some(rows));
    assert_eq!(whole["tables"][0]["axes"], json["tables"][0]["axes"]);
    let out = place.ok(&[
        "densify",
        &meds,
        "-o",
        "b.safetensors",
        "--rows",
        "0..4",
        "--columns",
        "code,time_delta_days",
        "--max-len",
        "16,8",
    ]);
    assert!(out.contains("code: int64 [4, 16, 8]"), "{out}");
}

#[test]
fn nan_of_nrt_is_null_where_a_format_has_null_unless_kept() {
    let place = Place::new();
    place.patients("x.nrt");
    let first =
        |file: &str| place.ok(&["-c", &format!("SELECT t[1] AS t FROM '{file}' WHERE age = 71")]);
    for file in ["x.parquet", "x.arrow"] {
        place.ok(&["convert", "x.nrt", file]);
        assert!(first(file).contains("NULL"), "{file}: {}", first(file));
        place.ok(&["convert", "x.nrt", file, "--keep-nan", "--overwrite"]);
        assert!(first(file).contains("NaN"), "{file}: {}", first(file));
    }
    assert!(first("x.nrt").contains("NULL"));
    for file in ["x.json", "x.ndjson"] {
        place.ok(&["convert", "x.nrt", file]);
        let text = fs::read_to_string(place.path(file)).unwrap();
        assert!(text.contains("\"t\":[null,1.5]"), "{text}");
        assert!(first(file).contains("NULL"), "{file}: {}", first(file));
        place.ok(&["convert", "x.nrt", file, "--keep-nan", "--overwrite"]);
        let text = fs::read_to_string(place.path(file)).unwrap();
        assert!(text.contains("\"t\":[\"NaN\",1.5]"), "{text}");
    }
    // Formats without nulls say NaN either way.
    place.ok(&["convert", "x.nrt", "y.nrt"]);
    assert_eq!(fs::read(place.path("x.nrt")).unwrap(), fs::read(place.path("y.nrt")).unwrap());
    place.ok(&["convert", "x.nrt", "x.safetensors"]);
    let all = dense::read(place.path("x.safetensors"), false).unwrap();
    let t = &all.iter().find(|(n, _)| n == "t").unwrap().1;
    assert!(t.as_slice::<f32>().unwrap()[0].is_nan());
}

#[test]
fn columns_of_json_can_be_declared() {
    let place = Place::new();
    place.file("e.json", r#"[{"id": 1, "code": [], "at": "2024-01-02T03:04:05"}, {"id": 2, "code": [], "at": "2024-01-02T03:04:06"}]"#,
    );
    let err = place.fails(1, &["convert", "e.json", "e.nrt"]);
    assert!(err.contains("code"), "{err}");
    let code = ["--schema", "code=uint16[]"];
    let err = place.fails(1, &["convert", "e.json", "e.nrt", code[0], code[1]]);
    assert!(err.contains("--schema at=timestamp") && !place.exists("e.nrt"), "{err}");
    let both = [code[0], code[1], "--schema", "at=timestamp[s]"];
    place.ok(&[&["convert", "e.json", "e.nrt"][..], &both].concat());
    let table = place.nrt("e.nrt");
    assert_eq!(*table.column("code").unwrap().data_type(), DataType::UInt16);
    let at = table.column("at").unwrap().values().clone();
    assert_eq!(at.as_primitive::<Int64Type>().values(), &[1_704_164_645, 1_704_164_646]);
    place.ok(&[&["inspect", "e.json"][..], &both].concat());
    place.ok(&[&["densify", "e.json", "-o", "e.safetensors"][..], &both].concat());
    let err = place.fails(2, &["convert", "e.json", "f.nrt", "--schema", "code=uint7"]);
    assert!(err.contains("uint7") && err.contains("float64"), "{err}");
    let err = place.fails(2, &["convert", "e.nrt", "f.parquet", code[0], code[1]]);
    assert!(err.contains("--schema is for JSON"), "{err}");
    // What a declared type cannot hold is an error that says where.
    place.file("n.ndjson", "{\"code\": [1, 300]}\n");
    let err = place.fails(1, &["convert", "n.ndjson", "n.nrt", "--schema", "code=uint8"]);
    assert!(err.contains("n.ndjson") && err.contains("code"), "{err}");
}

#[test]
fn a_name_without_an_ending_is_a_folder() {
    let place = Place::new();
    place.patients("x.nrt");
    for out in ["out", "other/"] {
        let said = place.ok(&["convert", "x.nrt", out, "--to", "parquet"]);
        assert_eq!(said, format!("wrote 3 rows to 1 file in {out}\n"));
        assert!(place.path(out).join("x.parquet").is_file());
    }
    let err = place.fails(2, &["convert", "x.nrt", "out"]);
    assert!(err.contains("--to"), "{err}");
    place.ok(&["convert", "x.nrt", "x.pt", "--to", "nrt"]);
    assert!(place.path("x.pt").is_file());
    place.ok(&["generate", "--patients", "2", "--to", "nrt", "-o", "made/"]);
    assert!(place.path("made/0.nrt").is_file());
}

#[test]
fn what_fails_leaves_no_folders() {
    let place = Place::new();
    fs::create_dir(place.path("in")).unwrap();
    place.file("in/1.ndjson", "{\"a\": [1, null]}\n").file("in/2.ndjson", "{\"a\": [1]}\n");
    let err = place.fails(1, &["convert", "in", "new/deep/out", "--to", "nrt"]);
    assert!(err.contains("\"a\""), "{err}");
    assert!(!place.exists("new"));
    let err = place.fails(1, &["convert", "in", "new/one.nrt"]);
    assert!(err.contains("\"a\"") && !place.exists("new"), "{err}");
}

#[test]
fn numbers_of_patients_and_shards_at_the_edge() {
    let place = Place::new();
    let err =
        place.fails(2, &["generate", "--patients", "4", "--shards", "0", "--to", "nrt", "-o", "s"]);
    assert!(err.contains("--shards"), "{err}");
    place.ok(&["generate", "--patients", "0", "--to", "meds", "-o", "meds"]);
    assert!(place.ok(&["-c", "SELECT count(*) AS n FROM meds('meds')"]).contains(" 0 "));
    place.ok(&["convert", "meds", "none.nrt"]);
    assert_eq!(place.nrt("none.nrt").num_rows(), 0);
    place.ok(&["inspect", "meds"]);
}

#[test]
fn a_subject_in_two_shards_is_refused_by_name() {
    let place = Place::new();
    place.ok(&["generate", "--patients", "20", "--to", "meds", "-o", "meds"]);
    fs::copy(place.path("meds/data/tuning/0.parquet"), place.path("meds/data/held_out/1.parquet"))
        .unwrap();
    for args in [
        &["-c", "SELECT count(*) FROM meds('meds')"][..],
        &["-c", "SELECT count(*) FROM (SELECT code FROM meds('meds')) WHERE code IS NOT NULL"],
        &["convert", "meds", "x.nrt"],
        &["convert", "meds", "out", "--to", "nrt"],
        &["inspect", "meds"],
    ] {
        let err = place.fails(1, args);
        assert!(err.contains("subject ") && err.contains("MEDS has all of a subject"), "{err}");
        assert!(err.contains("tuning/0.parquet") && err.contains("held_out/1.parquet"), "{err}");
    }
    assert!(!place.exists("x.nrt"));
    let sql = "SET serrate.meds_shared_subjects = true; SELECT count(*) AS n FROM meds('meds')";
    assert!(place.ok(&["-c", sql]).contains(" 22 "));
}

#[test]
fn meds_becomes_a_cohort_that_is_checked_and_read_in_sql() {
    let place = Place::new();
    let meds = data("synthea-meds");
    let said = place.run(&["convert", &meds, "cohort", "--to", "meds-torch-data", "--normalize"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.contains("wrote 28 subjects, 1,992 events, 24,702 measurements"),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("400 codes; 52 measurements of 27 others were dropped"),
        "{}",
        said.out
    );
    assert!(place.exists("cohort/tokenization/schemas/train/1.parquet"));
    let again = place.run(&["convert", &meds, "cohort", "--to", "meds-torch-data"]);
    assert_eq!(again.code, 1);
    assert!(again.err.contains("--overwrite"), "{}", again.err);
    let to = ["convert", &meds, "cohort", "--to", "meds-torch-data", "--overwrite"];
    let said = place.run(&[&to[..], &["--unknown", "error"]].concat());
    assert_eq!(said.code, 1);
    assert!(said.err.contains("is not among the 400 codes"), "{}", said.err);
    let said = place.ok(&[&to[..], &["--unknown=zero", "--jobs=1"]].concat());
    assert!(said.contains("52 measurements of 27 others have the token 0"), "{said}");
    let said = place.run(&["convert", &meds, "x.parquet", "--unknown", "zero"]);
    assert_eq!(said.code, 2, "{}", said.err);

    let count = "SELECT count(*) AS n, sum(ragged_count(code_id)) AS codes FROM meds('cohort')";
    assert_eq!(place.ok(&["-c", count, "--format", "csv"]), "n,codes\n28,24754\n");
    let first = format!(
        "SELECT count(*) AS n FROM meds('cohort') a JOIN meds('{meds}') b ON a.subject_id = b.subject_id AND a.time = b.time AND a.static_code_id = b.static_code_id"
    );
    assert_eq!(place.ok(&["-c", &first, "--format", "csv"]), "n\n28\n");

    for folder in ["cohort", meds.as_str()] {
        let said = place.ok(&["check", folder]);
        assert!(said.contains("0 errors"), "{said}");
    }
    assert_eq!(place.run(&["check", &meds, "--strict"]).code, 1);
    fs::remove_file(place.path("cohort/data/tuning/0.nrt")).unwrap();
    let said = place.run(&["check", "cohort"]);
    assert_eq!(said.code, 1);
    assert!(
        said.out.contains("error: cohort/tokenization/schemas/tuning/0.parquet: [pair]"),
        "{}",
        said.out
    );
    let json = place.run(&["check", "cohort", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["findings"][0]["check"], "pair");
    assert_eq!(place.run(&["check", "nowhere"]).code, 1);
}
