//! Results in every format.

use super::*;

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
fn names_are_shown_as_they_are_on_one_line() {
    let out = Place::new().ok(&["-c", "SELECT 1 AS \"it's \\ \"\"x\"\"\", 2 AS \"a\nb\""]);
    assert!(out.contains(r#"│ it's \ "x" ┆ a\nb │"#), "{out}");
}

#[test]
fn long_results_and_long_lists_are_cut_in_tables_only() {
    let place = Place::new();
    let sql = "SELECT i, range(1000) AS r FROM unnest(range(100)) AS t(i) ORDER BY i";
    let out = place.ok(&["-c", sql, "--max-rows", "3"]);
    assert!(out.contains("[0, 1, 2, 3, 4, 5, 6, 7, 8, … 991 more values]"), "{out}");
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
fn results_of_nrt_files_are_shown() {
    let place = Place::new();
    place.patients("x.nrt");
    let out = place.ok(&["-c", "SELECT age, t, code FROM 'x.nrt'", "-f", "csv"]);
    // NaN of an `.nrt` file is NULL in SQL.
    assert_eq!(
        out,
        "age,t,code\n71,\"[null,1.5]\",\"[[7,300,9],[]]\"\n38,[],[]\n50,[2.0],\"[[4,5]]\"\n"
    );
    let copied = place.ok(&["-c", "COPY (SELECT age, code FROM 'x.nrt') TO 'y.nrt' STORED AS NRT"]);
    assert_eq!(copied, "wrote 3 rows to y.nrt\n");
    assert_eq!(place.nrt("y.nrt").array("code").unwrap().lengths(1).unwrap(), [2, 0, 1]);
}
