//! Scripts, command-line arguments, error messages, and the interactive shell.

use super::*;

#[test]
fn scripts_run_in_order_and_stop_at_the_first_failure() {
    let place = Place::new();
    place.file(
        "q.sql",
        "-- a comment; with a semicolon\nCREATE TABLE t AS SELECT 1 AS a;\n\nSELECT a FROM t;\n\nSELECT nothing\n  FROM t;\nSELECT 'never';\n",
    );
    let said = place.run(&["q.sql", "-f", "csv"]);
    assert_eq!((said.code, said.out.as_str()), (1, "a\n1\n"));
    assert!(said.err.starts_with("error: q.sql:6:8: "), "{}", said.err);
    assert!(said.err.ends_with("\n  SELECT nothing\n         ^\n"), "{}", said.err);
    assert!(!said.err.contains("backtrace"), "{}", said.err);

    place.file("setup.sql", "CREATE TABLE u AS SELECT 5 AS five;");
    assert_eq!(
        place.ok(&["setup.sql", "-c", "SELECT * FROM u", "-c", "SELECT 6 AS six", "-f", "csv"]),
        "five\n5\n\nsix\n6\n"
    );
}

/// Some of these queries fail if the analyzer does not run or the optimizer runs twice, as stock
/// DataFusion does for the queries in these statements.
#[test]
fn create_table_create_view_and_prepare_accept_any_query() {
    let table = "CREATE TABLE t AS SELECT 1 AS g, 'x' AS s, 2.0 AS f";
    for (sql, expected) in [
        (
            "CREATE TABLE u AS SELECT string_agg(s, '' ORDER BY f DESC) AS a,
                string_agg(DISTINCT s, '' ORDER BY s) FILTER (WHERE f > 1) AS b FROM t GROUP BY g;
            SELECT a, b FROM u",
            "a,b\nx,x\n",
        ),
        (
            "CREATE VIEW u AS SELECT g FROM t ORDER BY g IN (SELECT g FROM t); SELECT * FROM u",
            "g\n1\n",
        ),
        (
            "PREPARE p AS SELECT make_timestamp(2024, 1, 2, 3, 4, 5.678) AS x; EXECUTE p",
            "x\n2024-01-02T03:04:05.678\n",
        ),
    ] {
        let script = format!("{table}; {sql}");
        assert_eq!(Place::new().ok(&["-f", "csv", "-c", &script]), expected, "{sql}");
    }
}

#[test]
fn parse_errors_have_the_position_in_the_file() {
    let place = Place::new();
    place.file("q.sql", "SELECT 1;\n\n   SELEC 2;");
    let err = place.fails(1, &["q.sql"]);
    assert!(!err.contains("ParserError"), "{err}");
    assert!(err.starts_with("error: q.sql:3:4: SQL: ") && !err.contains("Line: 3"), "{err}");
    assert!(err.ends_with("\n  SELEC 2;\n  ^\n"), "{err}");
    place.file("open.sql", "SELECT 1;\nSELECT 'x");
    let err = place.fails(1, &["open.sql"]);
    assert!(err.contains("open.sql:2:8"), "{err}");
    assert!(err.ends_with("\n  SELECT 'x\n         ^\n"), "{err}");
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
    let said = place.run_with(&[], ".tables\n");
    let hint = "; .tables is a command of the shell, which serrate -i opens\n";
    assert!(said.code == 1 && said.err.contains(hint), "{}", said.err);
    assert_eq!(place.ok(&[]), "");
}

#[test]
fn a_script_may_begin_with_a_byte_order_mark() {
    let place = Place::new();
    place.file("q.sql", "\u{feff}SELECT 1 AS a; SELECT nothing");
    let said = place.run(&["q.sql", "-f", "csv"]);
    assert_eq!((said.code, said.out.as_str()), (1, "a\n1\n"));
    assert!(said.err.starts_with("error: q.sql:1:"), "{}", said.err);
}

#[test]
fn output_files_are_complete_and_not_overwritten_without_overwrite() {
    let place = Place::new();
    let said = place.run(&["-c", "SELECT 1 AS a", "-c", "SELECT nothing", "-o", "r.csv"]);
    assert_eq!(said.code, 1);
    // `-c #2:1:8` names the second option `-c`, then the line and the column in it.
    assert!(said.err.contains("-c #2:1:8: "), "{}", said.err);
    assert_eq!(fs::read_dir(place.0.path()).unwrap().count(), 0, "files remain in the folder");
    place.ok(&["-c", "SELECT 1 AS a", "-o", "r.csv"]);
    assert_eq!(fs::read_to_string(place.path("r.csv")).unwrap(), "a\n1\n");
    let err = place.fails(1, &["-c", "SELECT 2 AS a", "-o", "r.csv"]);
    assert!(err.contains("r.csv") && err.contains("overwrit"), "{err}");
    place.ok(&["-c", "SELECT 2 AS a", "-o", "r.csv", "--overwrite"]);
    assert_eq!(fs::read_to_string(place.path("r.csv")).unwrap(), "a\n2\n");
    let err = place.fails(1, &["-c", "SELECT 1", "-c", "SELECT 2", "-o", "r.json"]);
    assert!(err.contains("one result"), "{err}");
    for args in [&["-o", "two.csv"][..], &["-o", "two.txt", "-f", "csv"]] {
        let err = place.fails(1, &[&["-c", "SELECT 1; SELECT 2"], args].concat());
        assert!(
            err.contains("a CSV file holds only one result") && !place.exists(args[1]),
            "{err}"
        );
    }
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
fn copy_prints_the_number_of_rows_and_the_file() {
    let place = Place::new();
    let sql = "COPY (SELECT 1 AS a UNION ALL SELECT 2) TO 'x.parquet' STORED AS PARQUET";
    assert_eq!(place.ok(&["-c", sql]), "wrote 2 rows to x.parquet\n");
    let written = place.ok(&["-c", "COPY (SELECT 1 AS a) TO 'é [1].csv'"]);
    assert!(written.starts_with("wrote 1 row to /"), "{written}");
    assert!(written.ends_with("/é [1].csv\n"), "{written}");
    // In formats other than tables, notes go to standard error.
    let said =
        place.run(&["-f", "csv", "-c", "COPY (SELECT 1 AS a) TO 'y.csv'", "-c", "SELECT 3 AS b"]);
    assert_eq!((said.out.as_str(), said.err.as_str()), ("b\n3\n", "wrote 1 row to y.csv\n"));
}

#[test]
fn wrong_usage_exits_with_2_and_help_with_0() {
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
        // No blank line separates the description of an option from its default.
        let lines: Vec<&str> = help.lines().map(str::trim).collect();
        let is_apart = |pair: &&[&str]| pair[0].is_empty() && pair[1].starts_with("[default");
        assert_eq!(lines.windows(2).find(is_apart), None, "{help}");
    }
    let err =
        place.fails(2, &["generate", "--patients", "3", "--to", "meds-torch-data", "-o", "x"]);
    assert!(err.contains("meds-torch-data"), "{err}");
    let copy = "COPY (SELECT 1 AS a) TO 'x.parquet'";
    let err = place.fails(2, &["-c", copy, "--overwrite"]);
    assert!(err.contains("OPTIONS (overwrite true)"), "{err}");
    assert!(!place.exists("x.parquet"));
    for options in ["", " OPTIONS (overwrite true)"] {
        place.ok(&["-c", &format!("{copy}{options}")]);
    }
    assert!(place.ok(&["--version"]).starts_with("serrate "));
    let err = place.fails(1, &["inspekt"]);
    assert!(err.contains("inspekt") && err.contains("--help"), "{err}");
}

#[test]
fn a_script_may_have_the_name_of_a_command() {
    let place = Place::new();
    place.file("inspect", "SELECT 1 AS a");
    assert_eq!(place.ok(&["-f", "csv", "./inspect"]), "a\n1\n");
    assert_eq!(place.ok(&["-f", "csv", "--", "inspect"]), "a\n1\n");
}

#[test]
fn a_command_may_begin_with_a_comment() {
    let place = Place::new();
    assert_eq!(place.ok(&["-f", "csv", "-c", "-- one\nSELECT 1 AS a"]), "a\n1\n");
    // The comment before a statement is the title of its table. A blank line separates a table from
    // the next title.
    let out = place.ok(&["-c", "-- one\nSELECT 1 AS a;\n-- two\nSELECT 2 AS b"]);
    assert!(out.starts_with("one\n┌") && out.contains("┘\n\ntwo\n┌"), "{out}");
    // A statement that prints nothing has no title.
    let out = place.ok(&["-c", "-- a view\nCREATE VIEW v AS SELECT 1 AS a;\nFROM v"]);
    assert!(out.starts_with("┌"), "{out}");
    let copy = "-- a file\nCOPY (SELECT 1 AS a) TO 'a.parquet'";
    assert_eq!(place.ok(&["-c", copy]), "a file\nwrote 1 row to a.parquet\n");
    let out = place.ok(&["-f", "line", "-c", "-- one\nSELECT 1 AS a;\n-- two\nSELECT 2 AS b"]);
    assert_eq!(out, "one\na = 1\n\ntwo\nb = 2\n");
}

#[test]
fn errors_show_the_line_and_the_column() {
    let place = Place::new();
    place.file("x.csv", "abc,d\n1,2\n");
    for (sql, expected) in [
        (
            "SELECT abc FROM 'x.csv' WHERE d = abd",
            "'x.csv' WHERE d = abd\n                                    ^",
        ),
        ("SELECT 1;\nSELECT\n  list_mode(abc) FROM 'x.csv'", ":3:3: "),
        ("SELECT abs(1, 2)", "SELECT abs(1, 2)\n         ^"),
        ("SELECT * FROM nothing", "SELECT * FROM nothing\n                ^"),
        ("FROM 'x.csv' WHERE abc = )", "WHERE abc = )\n                           ^"),
        ("SELECT (1", "SELECT (1\n           ^"),
        ("FROM 'x.csv' WHERE [abc] > 1", "WHERE [abc] > 1\n               ^"),
        ("SELECT [[1]] || 2", "SELECT [[1]] || 2\n               ^"),
        ("SELECT TIMESTAMP 'noon'", "SELECT TIMESTAMP 'noon'\n                   ^"),
        ("SELECT 1, to_days([1, 2])", "SELECT 1, to_days([1, 2])\n            ^"),
        ("FROM 'nosuch.csv'", "FROM 'nosuch.csv'\n       ^"),
        ("FROM 'x.csv' USING SAMPLE 9", "USING SAMPLE 9\n               ^"),
    ] {
        let err = place.fails(1, &["-c", sql]);
        assert!(err.contains(expected), "{sql}: {err}");
    }
    // A line that fits the width is not shortened.
    let sql = "SELECT 2.5::INT, 1.005::DECIMAL(10,2), '1.5'::INT";
    let err = place.fails(1, &["-c", sql]);
    assert!(err.contains(&format!("\n  {sql}\n")), "{err}");
    // In the shell, an error has a line number only if the statement has several lines.
    let said = place.run_with(&["-i"], "SELECT nope;\nSELECT 1,\n  nope;\n");
    assert!(said.err.contains("error: No field named nope"), "{}", said.err);
    assert!(said.err.contains("error: line 2: "), "{}", said.err);
    assert!(!said.err.contains("line:"), "{}", said.err);
}

#[test]
fn errors_for_wrong_calls_suggest_a_function_or_its_arguments() {
    let place = Place::new();
    for (call, expected) in [
        ("list_mode(1)", "write ragged_mode(x)"),
        ("n_unique(1)", "ragged_nunique(x)"),
        ("strptime('a', 'b')", "to_timestamp"),
        ("ragged_maen([1])", "did you mean ragged_mean?"),
        ("argsort([1])", "did you mean ragged_argsort?"),
        ("lag(1)", "lag is a window function"),
        ("frobnicate(1)", "there is no function frobnicate; docs/functions"),
        ("year()", "year cannot be called with these arguments: 0 given, in year(); write year(x)"),
        ("list_min([1], 2)", "list_min cannot be called with these arguments: 2 given"),
        ("abs(1, 2)", "abs does not accept arguments of the types (Int64, Int64); use abs("),
        ("date_trunc(now())", "use date_trunc("),
        (
            "date_trunc('fortnight', DATE '2020-01-01')",
            "quarter, year, decade, century, millennium",
        ),
        ("ragged_sum()", "ragged_sum is called without arguments; use ragged_sum(x"),
        ("ragged_sum([1], 1, 2)", "ragged_sum takes 1 to 2 arguments, but found 3"),
        ("substr('a')", "write substr(s, 2)"),
    ] {
        let err = place.fails(1, &["-c", &format!("SELECT {call}")]);
        assert!(err.contains(expected), "{call}: {err}");
        assert!(!err.contains("Invalid function") && !err.contains("No function matches"), "{err}");
    }
    // The error lists all unknown names, each with its own suggestion.
    let err = place.fails(1, &["-c", "SELECT strptime('a'), list_aggregate([1], 'sum'), foo"]);
    for expected in [
        "-c:1:8: there is no function strptime; write to_timestamp(s, '%Y-%m-%d')::TIMESTAMP for rows",
        "also: there is no function list_aggregate; write the reduction of the list",
        "also: No field named foo.\n",
    ] {
        assert!(err.contains(expected), "{err}");
    }
    let err = place.fails(1, &["-c", "PIVOT t ON k USING sum(v)"]);
    assert!(err.contains("-c:1:1: PIVOT is not supported: write an aggregate"), "{err}");
    // If there are several options `-c`, the error says in which of them it is.
    let err = place.fails(1, &["-c", "SELECT 1", "-c", "SELECT nope"]);
    assert!(err.contains("error: -c #2:1:8: No field named nope"), "{err}");
    let err = place.fails(1, &["-c", "SELECT ragged_sum([1]) FILTER (WHERE true)"]);
    assert!(err.contains("use CASE WHEN true THEN ragged_sum(..) END"), "{err}");
    let said = place.run_with(&["-i"], ".help list_mean\n.help ragged_days\n");
    assert!(said.err.contains("write ragged_mean(..)"), "{}", said.err);
    assert!(said.err.contains("write extract(epoch FROM ragged_diff(time))"), "{}", said.err);
    let said = place.run_with(&["-i"], ".help strptime\n.help ragged_maen\n");
    assert!(said.err.contains("write to_timestamp"), "{}", said.err);
    assert!(said.err.contains("did you mean ragged_mean?"), "{}", said.err);
}

/// When this test fails, `describe_arrow_error` need not mention tensors with a size of 0.
#[test]
fn tensors_without_values_cannot_be_sorted() {
    let place = Place::new();
    let from = "FROM (VALUES ([1, 2], 1), ([3], 0)) AS t(x, id)";
    for sql in [
        format!("SELECT densify(x, [0]) AS d, id {from} ORDER BY id"),
        format!("SELECT densify(x, [0]) AS d, count(*) {from} GROUP BY d"),
    ] {
        let err = place.fails(1, &["-c", &sql]);
        assert!(err.contains("give sizes of 1 or more"), "{err}");
    }
    let out = place.ok(&["-c", &format!("SELECT densify(x, [0]) AS d, id {from}"), "-f", "csv"]);
    assert_eq!(out, "d,id\n[],1\n[],0\n");
}

#[test]
fn the_shell_sets_modes_widths_and_output_files() {
    let place = Place::new();
    let input = "\
CREATE TABLE subjects AS SELECT 1 AS id, 'abcdefghij' AS text;
CREATE TABLE visits AS SELECT 1 AS id;
.tables sub%
\\x
FROM subjects;
\\x
.mode box
.width 0 5
FROM subjects;
.width
.mode jsonlines
FROM subjects;
.mode nonsense
.output r.csv
FROM subjects;
.output
FROM subjects;
.mode table
.output r.csv
.output r.csv overwrite
SELECT 2 AS two;
.maxrows 1
.output
FROM unnest(range(3)) AS t(i);
";
    let said = place.run_with(&["-i"], input);
    for expected in [
        "subjects\nmode line\n",
        "  id = 1\ntext = abcdefghij\n",
        "mode table\n",
        "┆ abcd… │",
        "{\"id\":1,\"text\":\"abcdefghij\"}\n{\"id\":1,",
        "… 2 more rows (3 in all)",
    ] {
        assert!(said.out.contains(expected), "{expected}: {}", said.out);
    }
    assert!(!said.out.contains("visits") && !said.out.contains("two"), "{}", said.out);
    for expected in ["no mode \"nonsense\"; the modes are table, line, csv", "r.csv", "exist"] {
        assert!(said.err.contains(expected), "{expected}: {}", said.err);
    }
    assert_eq!(fs::read_to_string(place.path("r.csv")).unwrap(), "two\n2\n");
    let help = place.run_with(&["-i"], ".help\n").out;
    for command in [".mode NAME", "\\x", ".width N", ".output", ".tables [PATTERN]"] {
        assert!(help.contains(command), "{command}: {help}");
    }
}

#[test]
fn the_shell_describes_its_commands_and_empty_lists() {
    let place = Place::new();
    let input = ".tables\n.help \\x\n.help .width\n.help .nope\nCREATE TABLE a AS SELECT 1 AS b;\n.tables x%\n.help time_bucket\n";
    let said = place.run_with(&["-i"], input);
    for expected in [
        "\\x                   switch between a table",
        ".width N ..          greatest widths",
        "TIMESTAMP '2020-03-04 10:00');\n  -- 2020-03-02T00:00:00\n",
    ] {
        assert!(said.out.contains(expected), "{expected}: {}", said.out);
    }
    for expected in [
        "there are no tables; FROM 'x.parquet' reads a file",
        "there is no command .nope",
        "no table matches x%",
    ] {
        assert!(said.err.contains(expected), "{expected}: {}", said.err);
    }
}

#[test]
fn a_closed_pipe_on_standard_output_is_not_an_error() {
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
    for expected in [
        "nothing",
        "elapsed_ms=",
        ".timing requires on or off, as in .timing on",
        "no command .nonsense",
    ] {
        assert!(said.err.contains(expected), "{expected}: {}", said.err);
    }
    let history = fs::read_to_string(place.path("state/serrate/history")).unwrap();
    assert!(history.contains("visits") && !history.contains("after the end"), "{history}");
}

#[test]
fn help_describes_functions_and_suggests_similar_names() {
    let place = Place::new();
    let said = place.run_with(
        &["-i"],
        ".help array_length\n.help ragged_nonsense\n.help ragged\n.help lengt\n",
    );
    assert!(said.out.contains("array_length("), "{}", said.out);
    assert!(said.err.contains("no function \"ragged_nonsense\""), "{}", said.err);
    assert!(
        said.err.contains("ragged_add") && said.err.contains("more; .functions"),
        "{}",
        said.err
    );
    assert!(said.err.contains("ragged_lengths"), "{}", said.err);
    let said = place
        .run_with(&["-i"], ".help ragged_maen\n.help ragged_searchsorted\n.help ragged_mean\n");
    let hint = "no function \"ragged_maen\"; did you mean ";
    let hint = said.err.lines().find_map(|l| l.split_once(hint)).map(|(_, names)| names);
    assert!(hint.is_some_and(|names| names.contains("ragged_mean")), "{}", said.err);
    let wide: Vec<&str> = said.out.lines().filter(|l| l.chars().count() > 80).collect();
    assert!(wide.iter().all(|l| l.contains("SELECT") || l.ends_with("function)")), "{wide:#?}");
}

#[test]
fn exists_and_in_subqueries_are_values() {
    let place = Place::new();
    let out = place.ok(&[
        "-f",
        "csv",
        "-c",
        "SELECT EXISTS (SELECT 1) AS x, a IN (SELECT 1) AS y, a IN (SELECT NULL) AS z FROM (VALUES (1)) t(a)",
    ]);
    assert!(out.contains("x,y,z\ntrue,true,\n"), "{out}");
}

#[test]
fn help_and_functions_of_the_shell_include_table_functions() {
    let place = Place::new();
    let input = ".help meds\n.help ragged_axes\n.help vocab()\n.help generate_series\n.functions meds\n.functions ragged_nest\n";
    let said = place.run_with(&["-i"], input);
    assert_eq!(said.err.lines().filter(|l| l.contains("error")).count(), 0, "{}", said.err);
    for expected in [
        "meds('DIR')    (table function)",
        "ragged_axes(query)    (table function)",
        "vocab('codes.parquet')",
        "generate_series is a table function, too: FROM generate_series(..)",
        "meds_asof      Health records as of labels\n",
        "ragged_nest      Nests rows into lists\n",
    ] {
        assert!(said.out.contains(expected), "{expected}: {}", said.out);
    }
    assert!(!said.out.contains("no documentation"), "{}", said.out);
    let said =
        place.run_with(&["-i"], ".help ragged_expl\n.help summ\n.schema meds\n.schema vocab\n");
    for expected in
        ["ragged_explode", "summarize", ".schema meds('DIR')", ".schema vocab('codes.parquet')"]
    {
        assert!(said.err.contains(expected), "{expected}: {}", said.err);
    }
    let meds = data_path("synthea-meds");
    let said = place.run_with(&["-i"], &format!(".schema meds('{meds}')\n"));
    assert!(said.out.contains("numeric_value"), "{} {}", said.out, said.err);
}

/// Runs every script of `sql/` on the data in the repository twice. The second run overwrites the
/// files of the first and prints the same.
#[cfg(unix)]
#[test]
fn the_scripts_of_the_repository_run() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut scripts: Vec<PathBuf> = fs::read_dir(root.join("sql"))
        .unwrap()
        .map(|f| f.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "sql"))
        .collect();
    scripts.sort();
    assert!(scripts.len() >= 6, "{scripts:?}");
    for script in scripts {
        let place = Place::new();
        std::os::unix::fs::symlink(root.join("tests"), place.path("tests")).unwrap();
        let name = script.display().to_string();
        let first = place.run(&[&name, "-f", "csv"]);
        assert_eq!(first.code, 0, "{name}: {}", first.err);
        let written = fs::read_dir(place.path("out")).unwrap().count();
        assert!(written > 0, "{name} wrote nothing");
        let second = place.run(&[&name, "-f", "csv"]);
        assert_eq!((second.code, second.out), (0, first.out), "{name}: {}", second.err);
    }
}

/// So deeply nested statements succeed or return an error. They must not overflow the stack, which
/// would end the process and, in the shell, lose its tables.
#[test]
fn deep_statements_leave_the_command_running() {
    let place = Place::new();
    for deep in [
        format!("SELECT 1{}", "::int".repeat(20_000)),
        format!("SELECT 1{}", "::int".repeat(2_000)),
        format!("SELECT {}", vec!["1"; 2_000].join(" + ")),
        format!("SELECT {}1{}", "(".repeat(20_000), ")".repeat(20_000)),
        format!("SELECT {}1{}", "CASE WHEN true THEN ".repeat(20_000), " END".repeat(20_000)),
        format!("SELECT 1{}", " IS NULL".repeat(20_000)),
        format!("SELECT 1 AS a{}", " UNION ALL SELECT 1".repeat(300)),
    ] {
        let said = place.run_with(&["-f", "csv"], &deep);
        assert!([0, 1].contains(&said.code), "{}: {}", said.code, said.err);
        assert!(said.code == 0 || said.err.starts_with("error: "), "{}", said.err);
        assert!(!said.err.contains("overflow"), "{}", said.err);
    }
}

#[test]
fn the_last_statement_of_a_pipe_needs_no_semicolon() {
    let place = Place::new();
    let said = place.run_with(&["-i", "-f", "csv"], "SELECT 1 AS a;\nSELECT 2 AS b");
    assert_eq!(said.out, "a\n1\n\nb\n2\n");
    let said = place.run_with(&["-i", "-f", "csv"], "SELECT\n3\nAS c\n;\n.mode line\n");
    assert_eq!(said.out, "c\n3\n");
}

#[test]
fn output_of_the_shell_writes_only_the_formats_that_it_prints() {
    let place = Place::new();
    let said = place.run_with(&["-i"], ".output r.parquet\nSELECT 1 AS a;\n");
    assert!(said.err.contains("write r.parquet with COPY"), "{}", said.err);
    assert!(!place.path("r.parquet").exists());
    // After `.mode`, the output file may have any extension but that of another format.
    let input =
        ".output r.dat\n.mode csv\n.output r.parquet\n.output r.dat\nSELECT 1 AS a;\n.output\n";
    let said = place.run_with(&["-i"], input);
    assert!(said.err.contains("write r.dat with COPY"), "{}", said.err);
    assert!(said.err.contains("write r.parquet with COPY"), "{}", said.err);
    assert_eq!(fs::read_to_string(place.path("r.dat")).unwrap(), "a\n1\n");
    assert!(!place.path("r.parquet").exists());
    // The errors suggest commands of the shell, not options of the command line.
    let input = ".output r.csv\nSELECT 1 AS a;\nSELECT 2 AS b;\n.output\n.output r.csv\n";
    let said = place.run_with(&["-i"], input);
    for expected in ["with .output FILE", ".ndjson", "write .output r.csv overwrite"] {
        assert!(said.err.contains(expected), "{expected}: {}", said.err);
    }
    assert!(!said.err.contains("--"), "{}", said.err);
    let formatted = "COPY (SELECT '' AS e, NULL::VARCHAR AS n, DATE '2020-01-02' AS d) TO 'x.csv' (DATEFORMAT '%d.%m.%Y')";
    place.ok(&["-c", formatted]);
    assert_eq!(std::fs::read_to_string(place.path("x.csv")).unwrap(), "e,n,d\n\"\",,02.01.2020\n");
}

#[test]
fn leaving_line_mode_returns_to_the_previous_format() {
    let place = Place::new();
    let said =
        place.run_with(&["-i"], ".mode csv\n\\x\n\\x\n\\x off\n\\x on\n\\x off\nSELECT 7 AS n;\n");
    assert!(said.out.ends_with("n\n7\n"), "{}", said.out);
    assert_eq!(said.out.matches("mode csv").count(), 3, "{}", said.out);
    assert_eq!(said.out.matches("mode line").count(), 2, "{}", said.out);
}

#[test]
fn help_shows_what_short_forms_stand_for() {
    let place = Place::new();
    let said = place.run_with(&["-i"], ".help year\n.help max_by\n.help strftime\n");
    for expected in
        ["year(x)", "stands for date_part('year', x)", "first_value(x ORDER BY y DESC, x)"]
    {
        assert!(said.out.contains(expected), "{expected}: {}", said.out);
    }
    // The list of functions has the short forms, too.
    let said = place.run_with(&["-i"], ".functions YEAR\n.functions nonsense\n");
    for name in ["year ", "dayofyear ", "to_years "] {
        let line = said.out.lines().find(|line| line.starts_with(name));
        assert!(line.is_some_and(|line| line.len() > 30), "{name}: {}", said.out);
    }
    assert!(said.err.contains("no function matches nonsense"), "{}", said.err);
    let input = ".help datediff\n.help time_bucket\n.help date_trunc\n.functions datediff\n";
    let said = place.run_with(&["-i"], input);
    for expected in [
        "date_diff('day', start, end)    (function)",
        "aliases: datediff",
        "time_bucket(width, time [, origin])    (short form)",
        "time_bucket(x, y, z) stands for date_bin(x, y, z) for a",
        "time_bucket(x, y, z) stands for date_bin(x, y, date_trunc('month', CAST(z AS",
        "time_bucket(x, y) stands for date_bin(x, y, TIMESTAMP '2000-01-03') for a",
        "- quarter / QUARTER\n",
        "datediff  Counts how often",
    ] {
        assert!(said.out.contains(expected), "{expected}: {}", said.out);
    }
    assert!(!said.out.contains("FROM date_diff"), "{}", said.out);
}

#[test]
fn the_shell_describes_the_functions_that_read_files() {
    let place = Place::new();
    let said = place.run_with(&["-i"], ".help read_csv\n.help read_parquet\n.functions read_\n");
    for expected in [
        "read_csv('FILE' [, header => true] [, delim => ','] ",
        "\n  nullstr            the text of NULL\n",
        "read_parquet('FILE')    (table function)",
        "\nread_safetensors  safetensors files, whatever their names\n",
    ] {
        assert!(said.out.contains(expected), "{expected}: {}", said.out);
    }
    assert_eq!(said.err, "");
}
