//! The command on a terminal of 80 columns, emulated with `script` of util-linux.

use std::time::Duration;

use super::*;

/// Runs the command on a terminal, types each of `keys` after a pause, and returns what the
/// terminal shows. Returns `None` if the program `script` does not exist.
fn on_terminal(place: &Place, args: &str, keys: &[&str]) -> Option<String> {
    let own = place.command();
    let program = own.get_program().to_string_lossy().into_owned();
    let line = format!("stty cols 80 rows 24; exec {program} {args}");
    let mut command = Command::new("script");
    command.args(["-qefc", &line, "/dev/null"]).current_dir(place.0.path());
    command.env("XDG_STATE_HOME", place.path("state")).env("TERM", "xterm").env_remove("COLUMNS");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut input = child.stdin.take().unwrap();
    for key in keys {
        std::thread::sleep(Duration::from_millis(1200));
        input.write_all(key.as_bytes()).unwrap();
        input.flush().unwrap();
    }
    let output = child.wait_with_output().unwrap();
    drop(input);
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn slow_queries_show_their_progress_on_a_terminal_only() {
    let place = Place::new();
    let endless = "SELECT count(*) AS n FROM generate_series(1, 100000000000)";
    place.file("slow.sql", endless);
    // The empty strings are pauses; then Ctrl-C interrupts the query.
    let Some(shown) = on_terminal(&place, "slow.sql", &["", "", "", "\x03"]) else { return };
    assert!(shown.contains(" rows ") && shown.contains("interrupted"), "{shown:?}");
    // The terminal prints ^C where the cursor is: at the start of the progress bar, or anywhere in
    // the bar while it is redrawn. The command then returns to the first column and clears the
    // line.
    let (bar, after) = shown.split_once("^C").unwrap();
    let (cleared, _) = after.split_once("interrupted").unwrap();
    assert!(!bar.contains('\n') && cleared.ends_with("\r\u{1b}[2K"), "{shown:?}");
    assert!(!cleared.contains('\n'), "{shown:?}");
    let Some(shown) = on_terminal(&place, "-c 'SELECT 1 AS a'", &[]) else { return };
    assert!(!shown.contains("rows"), "{shown:?}");
}

#[test]
fn the_shell_continues_lines_and_completes_columns() {
    let place = Place::new();
    place.file("x.csv", "patient_weight,patient_height\n70,180\n");
    let keys = [
        "SELECT 1 AS one,\r",
        "2 AS two;\r",
        "FROM 'x.csv' SELECT patient_w\t;\r",
        "SELECT nope;\r",
        ".quit\r",
    ];
    let Some(shown) = on_terminal(&place, "", &keys) else { return };
    assert!(shown.contains("    ...> "), "{shown:?}");
    assert!(shown.contains("│   1 ┆   2 │"), "{shown:?}");
    assert!(shown.contains("│ patient_weight │"), "{shown:?}");
    assert!(shown.contains("SELECT nope;\r\n         ^"), "{shown:?}");
}

#[test]
fn long_errors_wrap_between_words() {
    let place = Place::new();
    let Some(shown) = on_terminal(&place, "-o x.parquet -c 'SELECT 1 AS a'", &[]) else { return };
    assert!(shown.contains("--format"), "{shown:?}");
    assert!(shown.lines().all(|line| line.trim_end().chars().count() <= 80), "{shown:?}");
}

#[test]
fn arrow_is_not_written_to_a_terminal() {
    let place = Place::new();
    let Some(shown) = on_terminal(&place, "-f arrow -c 'SELECT 1 AS a'", &[]) else { return };
    assert!(shown.contains("Arrow IPC is binary"), "{shown:?}");
}

#[test]
fn help_on_table_functions_shows_columns_and_an_example() {
    let place = Place::new();
    for (name, expected) in [
        ("meds", "static_numeric_value"),
        ("meds_asof", "FROM meds_asof("),
        ("meds_features", "'sum_sqd'"),
        ("meds_cohort", "FROM meds_cohort("),
        ("ragged_nest", "FROM ragged_nest("),
        ("summarize", "SUMMARIZE SELECT"),
    ] {
        let said = place.run_with(&["-i"], &format!(".help {name}\n"));
        assert!(said.out.contains(expected), "{name}: {} {}", said.out, said.err);
    }
}

#[test]
fn help_says_where_commands_and_statements_are_described() {
    let place = Place::new();
    for (name, expected) in [
        ("output", "did you mean .help .output?"),
        ("convert", "serrate convert --help describes the command"),
        ("COPY", "it is a statement, which docs/sql.md describes"),
    ] {
        let said = place.run_with(&["-i"], &format!(".help {name}\n"));
        assert!(said.err.contains(expected), "{name}: {} {}", said.out, said.err);
    }
    let said = place.run_with(&["-i"], ".help mode\n");
    assert!(said.out.contains("mode(") && said.err.is_empty(), "{} {}", said.out, said.err);
    assert!(place.fails(2, &["help"]).contains("write serrate --help"));
    assert!(place.fails(2, &["help", "convert"]).contains("write serrate convert --help"));
}
