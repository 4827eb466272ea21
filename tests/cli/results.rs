//! Results of queries in every output format.

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
fn column_names_are_shown_on_one_line_with_newlines_escaped() {
    let out = Place::new().ok(&["-c", "SELECT 1 AS \"it's \\ \"\"x\"\"\", 2 AS \"a\nb\""]);
    assert!(out.contains(r#"│ it's \ "x" ┆ a\nb │"#), "{out}");
}

#[test]
fn only_the_format_table_omits_rows_and_elements() {
    let place = Place::new();
    let sql = "SELECT i, range(1000) AS r FROM unnest(range(100)) AS t(i) ORDER BY i";
    let out = place.ok(&["-c", sql, "--max-rows", "3"]);
    assert!(out.contains("[0, 1, 2, 3, 4, 5, 6, 7, 8, … 991 more values]"), "{out}");
    assert!(out.ends_with("… 97 more rows (100 in all)\n"), "{out}");
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
fn json_has_each_name_once() {
    let place = Place::new();
    let sql = "SELECT * FROM (SELECT 1 AS a) x, (SELECT 2 AS a) y";
    for format in ["json", "ndjson"] {
        let e = place.fails(1, &["-c", sql, "--format", format]);
        assert!(e.contains("two columns named \"a\""), "{e}");
    }
    assert_eq!(place.ok(&["-c", sql, "--format", "csv"]), "a,a\n1,2\n");
}

#[test]
fn arrow_is_a_stream_on_standard_output_and_the_file_format_in_a_file() {
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

/// Each batch would have its own dictionary. For lists, DuckDB decodes the keys of a batch with the
/// dictionary of another.
#[test]
fn arrow_streams_and_files_have_no_dictionaries() {
    let place = Place::new();
    let sql = format!("SELECT subject_id, code FROM meds('{}')", data_path("synthea-meds"));
    let output = place.command().args(["-c", &sql, "-f", "arrow"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stream = StreamReader::try_new(output.stdout.as_slice(), None).unwrap();
    place.ok(&["-c", &sql, "-o", "x.arrow"]);
    let file = FileReader::try_new(fs::File::open(place.path("x.arrow")).unwrap(), None).unwrap();
    assert_eq!(stream.schema().fields(), file.schema().fields());
    let DataType::List(events) = stream.schema().field(1).data_type().clone() else {
        panic!("{:?}", stream.schema())
    };
    let DataType::List(codes) = events.data_type() else { panic!("{events:?}") };
    assert_eq!(codes.data_type(), &DataType::Utf8);
    let read = |batches: &mut dyn Iterator<Item = RecordBatch>| {
        let mut texts: Vec<String> = Vec::new();
        for batch in batches {
            let events = batch.column(1).as_list::<i32>().values().clone();
            let codes = events.as_list::<i32>().values().clone();
            texts.extend(codes.as_string::<i32>().iter().flatten().map(str::to_owned));
        }
        texts
    };
    let streamed = read(&mut stream.map(Result::unwrap));
    assert_eq!(streamed.len(), 24_754);
    assert_eq!(streamed, read(&mut file.map(Result::unwrap)));
}

#[test]
fn markdown_is_a_table_in_the_syntax_of_github() {
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
    // SQL reads NaN of an `.nrt` file as NULL.
    assert_eq!(
        out,
        "age,t,code\n71,\"[null,1.5]\",\"[[7,300,9],[]]\"\n38,[],[]\n50,[2.0],\"[[4,5]]\"\n"
    );
    let copied = place.ok(&["-c", "COPY (SELECT age, code FROM 'x.nrt') TO 'y.nrt' STORED AS NRT"]);
    assert_eq!(copied, "wrote 3 rows to y.nrt\n");
    assert_eq!(place.nrt("y.nrt").array("code").unwrap().lengths(1).unwrap(), [2, 0, 1]);
}

#[test]
fn a_query_that_fails_prints_no_header() {
    let said = Place::new().run(&[
        "-f",
        "csv",
        "-c",
        "SELECT concat('x', i)::INT AS a FROM unnest(range(1)) AS t(i)",
    ]);
    assert_eq!((said.code, said.out.as_str()), (1, ""), "{}", said.err);
}

#[test]
fn tables_fit_the_terminal() {
    let place = Place::new();
    let meds = data_path("synthea-meds");
    let run = |columns: &str, sql: &str| {
        let output = place.command().env("COLUMNS", columns).args(["-c", sql]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for sql in [
        format!("SELECT * FROM meds('{meds}') LIMIT 3"),
        format!("SUMMARIZE SELECT * FROM meds('{meds}')"),
        format!("SELECT subject_id, time, code, numeric_value FROM meds('{meds}')"),
    ] {
        for width in [40, 80, 100, 120, 200] {
            let out = run(&width.to_string(), &sql);
            let widest = out.lines().map(|l| l.chars().count()).max().unwrap();
            assert!(widest <= width, "{width}: {out}");
        }
    }
    // Tables that are too wide omit columns in the middle. A line below counts and names those.
    let out = run("80", &format!("SELECT * FROM meds('{meds}') LIMIT 3"));
    for expected in
        ["│ subject_id ┆ time ", "┆ … ┆", "┆ static_numeric_", "more columns (9 in all): "]
    {
        assert!(out.contains(expected), "{expected}: {out}");
    }
    // Four columns of lists fit into 80 columns.
    let sql = format!("SELECT subject_id, time, code, numeric_value FROM meds('{meds}') LIMIT 3");
    let out = run("80", &sql);
    assert!(!out.contains("more column") && out.contains("┆ numeric_value"), "{out}");
    // Column names and titles wrap, too. The names get the width that the values do not need.
    let out =
        run("60", "-- one two three four five six seven eight nine ten eleven twelve\nSELECT 1");
    assert!(
        out.starts_with("one two three four five six seven eight nine ten eleven\ntwelve\n┌"),
        "{out}"
    );
    // The title joins the lines of a comment; an empty line ends a paragraph.
    let out =
        run("40", "-- one two three four five six\n-- seven eight nine ten\n--\n-- end\nSELECT 1");
    assert!(out.starts_with("one two three four five six seven eight\nnine ten\nend\n┌"), "{out}");
    let out =
        run("60", "SELECT concat('aaaaaaaaaa', 'bbbbbbbbbb', 'cccccccccc', 'dddddddddd') = 'x'");
    assert!(out.lines().count() <= 6, "{out}");
    // In the output of SUMMARIZE, the share of NULL and the mean are among the columns that are not
    // omitted.
    let out = run("80", &format!("SUMMARIZE SELECT * FROM meds('{meds}')"));
    let header = out.lines().nth(1).unwrap();
    assert!(header.contains("┆ null_percentage ┆") && header.contains("┆ avg"), "{out}");
    // The names of settings are shown whole, so that they can be copied.
    let out = run("80", "SHOW ALL");
    assert!(out.contains("│ datafusion.catalog.create_default_catalog_and_schema "), "{out}");
    let mut names = out.lines().filter(|l| l.starts_with('│')).filter_map(|l| l.split('┆').next());
    assert!(names.all(|name| !name.contains('…')), "{out}");
    // Other formats do not depend on the width of the terminal.
    let csv =
        place.command().env("COLUMNS", "40").args(["-f", "csv", "-c", &sql]).output().unwrap();
    assert!(!String::from_utf8_lossy(&csv.stdout).contains('…'));
}

#[test]
fn line_mode_has_a_line_per_value() {
    let place = Place::new();
    let out = place.ok(&["-c", RAGGED, "-f", "line"]);
    assert_eq!(
        out,
        "   id = 1\nlists = [[1, 2], NULL, []]\n    x = NaN\n    s = a, \"b\"\n\n   id = 2\nlists = NULL\n    x = NULL\n    s = NULL\n"
    );
    let long = "SELECT range(100) AS r FROM unnest(range(50)) AS t(i)";
    let output =
        place.command().env("COLUMNS", "60").args(["-f", "line", "-c", long]).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.ends_with("… 10 more rows (50 in all)\n") && out.contains("more values]"), "{out}");
    assert!(out.lines().all(|l| l.chars().count() <= 60), "{out}");
    assert!(place.ok(&["-f", "line", "-c", long]).contains("98, 99]"));
    assert_eq!(place.ok(&["-f", "line", "-c", "SELECT 1 AS a WHERE false"]), "no rows\n");
}

#[test]
fn csv_distinguishes_null_from_the_empty_string() {
    let place = Place::new();
    let sql = "SELECT * FROM (VALUES (1, '', 'a', ['']), (2, NULL, '\"', NULL), (NULL, 'b,', '', [])) AS t(n, s, \"x,y\", l) ORDER BY n NULLS LAST";
    let expected = "n,s,\"x,y\",l\n1,\"\",a,\"[\"\"\"\"]\"\n2,,\"\"\"\",\n,\"b,\",\"\",[]\n";
    assert_eq!(place.ok(&["-f", "csv", "-c", sql]), expected);
    place.ok(&["-c", &format!("COPY ({sql}) TO 'x.csv'")]);
    assert_eq!(fs::read_to_string(place.path("x.csv")).unwrap(), expected);
    // All values but the empty string, which is read as NULL, are read as they were written.
    let back = place.ok(&["-f", "csv", "-c", "SELECT n, s, \"x,y\", l FROM 'x.csv'"]);
    assert_eq!(back, expected.replace("\"\",a,", ",a,").replace("\"\",[]", ",[]"));
    for (options, text) in
        [("DELIMITER ';', NULLSTR 'NA'", "a;b\n'';NA\n"), ("HEADER false", "'',\n")]
    {
        let copy =
            format!("COPY (SELECT '' AS a, NULL::VARCHAR AS b) TO 'o.csv' ({options}, OVERWRITE)");
        place.ok(&["-c", &copy]);
        let written = fs::read_to_string(place.path("o.csv")).unwrap();
        assert_eq!(written.replace('"', "'"), text, "{options}");
    }
    // A row with one NULL is not written as an empty line, which readers would skip.
    let one = "COPY (SELECT * FROM (VALUES ('a'), (NULL)) AS t(s)) TO 'one.csv'";
    place.ok(&["-c", one]);
    let count =
        place.ok(&["-f", "csv", "-c", "SELECT count(*) AS n, count(s) AS s FROM 'one.csv'"]);
    assert_eq!(count, "n,s\n2,1\n");
    let numbers = place.ok(&["-f", "csv", "-c", "SELECT * FROM (VALUES (1), (NULL)) AS t(n)"]);
    assert_eq!(numbers.lines().count(), 3, "{numbers}");
}

#[test]
fn copy_takes_options_of_duckdb() {
    let place = Place::new();
    let query = "SELECT value AS id, value % 2 AS k FROM generate_series(1, 4)";
    for (target, options) in [
        ("a", "FORMAT parquet"),
        ("b.parquet", "FORMAT 'PARQUET', COMPRESSION zstd, ROW_GROUP_SIZE 2"),
        ("c.csv", "HEADER, DELIMITER '\\t'"),
        ("d.json", "FORMAT json"),
        ("e", "FORMAT parquet, PARTITION_BY (k)"),
        ("f.nrt", "FORMAT nrt, OVERWRITE true"),
    ] {
        place.ok(&["-c", &format!("COPY ({query}) TO '{target}' ({options})")]);
        assert!(place.exists(target), "{target}");
    }
    assert_eq!(fs::read_to_string(place.path("c.csv")).unwrap().lines().next(), Some("id\tk"));
    assert!(place.exists("e/k=0") && place.exists("e/k=1"));
    let sum = place.ok(&["-f", "csv", "-c", "SELECT sum(id) AS s FROM read_parquet('a')"]);
    assert_eq!(sum, "s\n10\n");
    let copy = format!("COPY ({query}) TO 'g.csv' (FORCE_QUOTE (id))");
    assert!(place.fails(1, &["-c", &copy]).contains("FORCE_QUOTE of COPY is not supported"));
    let copy = format!("COPY ({query}) TO 'g.csv' (NONSENSE 3)");
    assert!(place.fails(1, &["-c", &copy]).to_lowercase().contains("nonsense"));
    assert!(!place.exists("g.csv"));
}

#[test]
fn intervals_have_one_text_form_in_all_formats() {
    let place = Place::new();
    let sql = "SELECT b - a AS one, [b - a] AS lists, INTERVAL '1 month 3 days 2 hours' AS i \
        FROM (VALUES (TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-02 03:00:00')) AS t(a, b)";
    let out = place.ok(&["-c", sql, "-f", "line"]);
    assert_eq!(out, "  one = 1d 03:00\nlists = [1d 03:00]\n    i = 1mo 3d 02:00\n");
    let csv = "one,lists,i\n1d 03:00,\"[\"\"1d 03:00\"\"]\",1mo 3d 02:00\n";
    assert_eq!(place.ok(&["-c", sql, "-f", "csv"]), csv);
    let json = "{\"one\":\"1d 03:00\",\"lists\":[\"1d 03:00\"],\"i\":\"1mo 3d 02:00\"}\n";
    assert_eq!(place.ok(&["-c", sql, "-f", "ndjson"]), json);
    for (file, text) in [("d.csv", csv), ("d.json", json)] {
        place.ok(&["-c", &format!("COPY ({sql}) TO '{file}'")]);
        assert_eq!(fs::read_to_string(place.path(file)).unwrap(), text);
        let read = format!(
            "SELECT one::INTERVAL = INTERVAL '27 hours' AS a, i::INTERVAL = INTERVAL '1 month 74 hours' AS b FROM '{file}'"
        );
        assert_eq!(place.ok(&["-c", &read, "-f", "csv"]), "a,b\ntrue,true\n");
    }
    // An interval that is NULL and the only column is quoted, like a string, so that its line is
    // not empty.
    assert_eq!(place.ok(&["-c", "SELECT NULL::INTERVAL AS i", "-f", "csv"]), "i\n\"\"\n");
    let partitioned = format!(
        "COPY (SELECT 1 AS k, * FROM ({sql})) TO 'parts/' STORED AS CSV PARTITIONED BY (k)"
    );
    place.ok(&["-c", &partitioned]);
    let read = place.ok(&["-c", "SELECT one, i FROM 'parts/'", "-f", "csv"]);
    assert_eq!(read, "one,i\n1d 03:00,1mo 3d 02:00\n");
}

#[test]
fn float32_values_are_shown_with_their_shortest_digits() {
    let place = Place::new();
    let sql = "SELECT arrow_cast(v, 'Float32') AS f FROM (VALUES (0.1), (30.4)) AS t(v)";
    for format in ["table", "line", "csv", "json", "markdown"] {
        let out = place.ok(&["-f", format, "-c", sql]);
        assert!(out.contains("0.1") && out.contains("30.4") && !out.contains("000000"), "{out}");
        let out = place.ok(&["-f", format, "-c", &format!("SUMMARIZE {sql}")]);
        assert!(out.contains("0.1") && !out.contains("000000"), "{out}");
    }
}

#[test]
fn an_output_named_as_standard_output_is_refused() {
    let place = Place::new();
    let err = place.fails(2, &["-c", "SELECT 1", "-f", "csv", "-o", "-"]);
    assert!(err.contains("omit -o - to print results on standard output"), "{err}");
    assert!(!place.0.path().join("-").exists());
}
