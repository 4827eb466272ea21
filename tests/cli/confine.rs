//! `--root` and `--read-only`: every function, command and setting that takes a path is called with
//! a path that it must refuse.
//!
//! The test compares these calls with the lists of functions, formats, commands and settings that
//! the program prints, so that it fails until whatever is added to the program is called here too.

use std::collections::BTreeSet;

use super::*;

const YAML: &str = "predicates:
  lab: {code: {regex: '.*'}}
trigger: lab
windows:
  after: {start: trigger, end: start + 1d, start_inclusive: false, end_inclusive: true, index_timestamp: end}
";

/// Creates a folder `in`, to which `--root in` restricts the command, and a folder `out` with the
/// same files.
fn place_with_files() -> Place {
    let place = Place::new();
    for side in ["in", "out"] {
        fs::create_dir_all(place.path(side)).unwrap();
        let copies: Vec<String> = ["csv", "parquet", "nrt", "arrow", "json", "ndjson"]
            .iter()
            .map(|e| format!("COPY (SELECT 1 AS id, [1, 2] AS x) TO '{side}/x.{e}'"))
            .collect();
        let script = format!(
            "{};
             COPY (SELECT [1.0, 2.0] AS x) TO '{side}/x.safetensors' STORED AS SAFETENSORS;
             COPY (SELECT 1 AS i, 2.0 AS v) TO '{side}/m.safetensors' STORED AS DOK OPTIONS (keys 'i');
             COPY (SELECT 'a' AS code, 1 AS id) TO '{side}/codes.parquet';",
            copies.join(";")
        );
        place.ok(&["-c", &script]);
        let meds = format!("{side}/meds");
        place.ok(&["generate", "--patients", "20", "--to", "meds", "-o", &meds]);
        place.file(&format!("{side}/t.yaml"), YAML);
        place.file(&format!("{side}/q.sql"), "SELECT 1;");
        place.ok(&["cohort", &meds, &format!("{side}/t.yaml"), "-o", &format!("{side}/labels")]);
    }
    place
}

/// Returns paths of `name` in the folder `out`, which is outside the root `in`: relative, absolute
/// and through links.
fn ways_out(place: &Place, name: &str) -> Vec<String> {
    let absolute = place.path("out").join(name).display().to_string();
    let mut ways = vec![
        format!("out/{name}"),
        format!("in/../out/{name}"),
        format!("in/none/../../out/{name}"),
        absolute,
    ];
    #[cfg(unix)]
    {
        let link = place.path("in/link");
        if !link.exists() {
            std::os::unix::fs::symlink("../out", link).unwrap();
        }
        ways.push(format!("in/link/{name}"));
        // A link to the file itself; it is dangling if `name` is a file to write.
        if !name.contains(['*', '/']) && !name.is_empty() {
            let link = place.path(&format!("in/to-{name}"));
            if link.symlink_metadata().is_err() {
                std::os::unix::fs::symlink(format!("../out/{name}"), link).unwrap();
            }
            ways.push(format!("in/to-{name}"));
        }
    }
    ways
}

/// The function, format, setting or clause that takes the path, the call with `{}` in place of the
/// path, and the file of the folder `out` to which the path points.
type Call = (&'static str, &'static str, &'static str);

/// SQL statements that read a path.
const READS: &[Call] = &[
    ("FROM", "FROM '{}'", "x.csv"),
    ("FROM", "FROM '{}'", "x.parquet"),
    ("FROM", "FROM '{}'", "x.nrt"),
    ("FROM", "FROM '{}'", "x.arrow"),
    ("FROM", "FROM '{}'", "x.json"),
    ("FROM", "FROM '{}'", "x.ndjson"),
    ("FROM", "FROM '{}'", "m.safetensors"),
    ("FROM", "FROM '{}'", "x*.csv"),
    ("FROM", "FROM '{}'", "x.[c]sv"),
    ("FROM", "FROM '{}/'", "meds/data/train"),
    ("FROM", "SELECT * FROM 'in/x.csv' JOIN '{}' USING (id)", "x.parquet"),
    ("FROM", "DESCRIBE '{}'", "x.parquet"),
    ("FROM", "CREATE TABLE t AS FROM '{}'", "x.parquet"),
    ("FROM", "CREATE VIEW v AS FROM '{}'", "x.parquet"),
    ("FROM", "COPY (FROM '{}') TO 'in/made.csv'", "x.parquet"),
    ("FROM", "EXPLAIN FROM '{}'", "x.parquet"),
    ("FROM", "SELECT (SELECT count(*) FROM '{}')", "x.parquet"),
    ("FROM", ".schema '{}'", "x.parquet"),
    ("read_parquet", "FROM read_parquet('{}')", "x.parquet"),
    ("read_parquet", "FROM read_parquet(['in/x.parquet', '{}'])", "x.parquet"),
    ("parquet_scan", "FROM parquet_scan('{}')", "x.parquet"),
    ("read_csv", "FROM read_csv('{}')", "x.csv"),
    ("read_csv_auto", "FROM read_csv_auto('{}')", "x.csv"),
    ("read_json", "FROM read_json('{}')", "x.json"),
    ("read_json_auto", "FROM read_json_auto('{}')", "x.json"),
    ("read_ndjson", "FROM read_ndjson('{}')", "x.ndjson"),
    ("read_ndjson_auto", "FROM read_ndjson_auto('{}')", "x.ndjson"),
    ("read_nrt", "FROM read_nrt('{}')", "x.nrt"),
    ("read_arrow", "FROM read_arrow('{}')", "x.arrow"),
    ("read_safetensors", "FROM read_safetensors('{}')", "m.safetensors"),
    ("meds", "FROM meds('{}')", "meds"),
    ("meds_asof", "FROM meds_asof('{}', 'in/labels')", "meds"),
    ("meds_asof", "FROM meds_asof('in/meds', '{}')", "labels"),
    ("meds_features", "FROM meds_features('{}', 'in/labels')", "meds"),
    ("meds_features", "FROM meds_features('in/meds', '{}')", "labels"),
    ("meds_features", "FROM meds_features('in/meds', 'in/labels', vocabulary => '{}')", "meds"),
    ("meds_cohort", "FROM meds_cohort('{}', 'in/t.yaml')", "meds"),
    ("meds_cohort", "FROM meds_cohort('in/meds', '{}')", "t.yaml"),
    ("meds_cohort", "FROM meds_cohort('in/meds', 'in/t.yaml', predicates => '{}')", "t.yaml"),
    ("vocab", "FROM vocab('{}')", "codes.parquet"),
    ("vocab", "FROM vocab('{}')", "meds"),
    ("ragged_nest", "FROM ragged_nest('{}', 'id')", "x.parquet"),
    ("ragged_explode", "FROM ragged_explode('{}')", "x.parquet"),
    ("ragged_axes", "FROM ragged_axes('{}')", "x.nrt"),
    ("summarize", "FROM summarize('{}')", "x.parquet"),
    ("summarize", "SUMMARIZE '{}'", "x.parquet"),
    ("ragged_encode", "SELECT ragged_encode(['a'], '{}')", "codes.parquet"),
    ("ragged_encode", "SELECT ragged_encode(['a'], '{}')", "meds"),
    ("ragged_decode", "SELECT ragged_decode([1], '{}')", "codes.parquet"),
    ("ragged_lookup", "SELECT ragged_lookup(['a'], '{}', 'code', 'id')", "codes.parquet"),
    ("ragged_bin", "SELECT ragged_bin([1.0], ['a'], '{}', 'code', 'id')", "codes.parquet"),
    (
        "descendants",
        "SELECT * FROM meds('in/meds') WHERE ragged_any(ragged_isin(code, descendants('a', '{}')))",
        "meds",
    ),
    ("descendants", "SELECT descendants('a', '{}')", "codes.parquet"),
    ("serrate.codes", "SET serrate.codes = '{}'; SELECT descendants('a')", "meds"),
    ("dok_get", "SELECT dok_get('{}', 1)", "m.safetensors"),
    ("dok_contains", "SELECT dok_contains('{}', 1)", "m.safetensors"),
    (".read", ".read {}", "q.sql"),
    ("ARROW", "CREATE EXTERNAL TABLE t1 STORED AS ARROW LOCATION '{}'", "x.arrow"),
    ("CSV", "CREATE EXTERNAL TABLE t1 STORED AS CSV LOCATION '{}'", "x.csv"),
    ("JSON", "CREATE EXTERNAL TABLE t1 STORED AS JSON LOCATION '{}'", "x.ndjson"),
    ("JSONL", "CREATE EXTERNAL TABLE t1 STORED AS JSONL LOCATION '{}'", "x.ndjson"),
    ("NDJSON", "CREATE EXTERNAL TABLE t1 STORED AS NDJSON LOCATION '{}'", "x.ndjson"),
    ("NRT", "CREATE EXTERNAL TABLE t1 STORED AS NRT LOCATION '{}'", "x.nrt"),
    ("PARQUET", "CREATE EXTERNAL TABLE t1 STORED AS PARQUET LOCATION '{}'", "x.parquet"),
    ("DOK", "CREATE EXTERNAL TABLE t1 STORED AS DOK LOCATION '{}'", "m.safetensors"),
];

/// SQL statements that write to a path. The first string is the format or the setting.
const WRITES: &[Call] = &[
    ("ARROW", "COPY (SELECT 1 AS a) TO '{}' STORED AS ARROW", "new.arrow"),
    ("CSV", "COPY (SELECT 1 AS a) TO '{}' STORED AS CSV", "new.csv"),
    ("CSV", "COPY (SELECT 1 AS a) TO '{}'", "new.csv"),
    ("CSV", "COPY (SELECT 1 AS a) TO '{}' OPTIONS (overwrite true)", "x.csv"),
    ("CSV", "COPY (SELECT 1 AS a, 2 AS b) TO '{}/' STORED AS CSV PARTITIONED BY (b)", "new"),
    ("JSON", "COPY (SELECT 1 AS a) TO '{}' STORED AS JSON", "new.json"),
    ("JSONL", "COPY (SELECT 1 AS a) TO '{}' STORED AS JSONL", "new.jsonl"),
    ("NDJSON", "COPY (SELECT 1 AS a) TO '{}' STORED AS NDJSON", "new.ndjson"),
    ("NRT", "COPY (SELECT 1 AS a) TO '{}' STORED AS NRT", "new.nrt"),
    ("PARQUET", "COPY (SELECT 1 AS a) TO '{}' STORED AS PARQUET", "new.parquet"),
    ("PARQUET", "COPY (SELECT 1 AS a) TO '{}/' STORED AS PARQUET", "new"),
    (
        "PARQUET",
        "COPY (SELECT 1 AS a, 2 AS b) TO '{}/' STORED AS PARQUET PARTITIONED BY (b)",
        "new",
    ),
    ("PARQUET", "COPY (SELECT 1 AS a) TO '{}' OPTIONS (compression 'zstd(3)')", "new.parquet"),
    ("SAFETENSORS", "COPY (SELECT [1.0] AS a) TO '{}' STORED AS SAFETENSORS", "new.safetensors"),
    ("BATCHES", "COPY (SELECT [1.0] AS a) TO '{}' STORED AS BATCHES OPTIONS (batch 1)", "new"),
    (
        "DOK",
        "COPY (SELECT 1 AS i, 2.0 AS v) TO '{}' STORED AS DOK OPTIONS (keys 'i')",
        "new.safetensors",
    ),
    (
        "DOK",
        "CREATE EXTERNAL TABLE t2 (i BIGINT, v DOUBLE) STORED AS DOK LOCATION '{}' OPTIONS (keys 'i')",
        "new.safetensors",
    ),
    ("temp_directory", "SET datafusion.runtime.temp_directory = '{}'", "new"),
    (".output", ".output {}", "new.csv"),
];

/// Arguments of `serrate` that contain a path to read or to write.
const COMMANDS: &[(&str, &[&str], &str)] = &[
    ("query FILE.sql", &["{}"], "q.sql"),
    ("query --output", &["-c", "SELECT 1", "-o", "{}"], "new.csv"),
    ("inspect FILE|DIR", &["inspect", "{}"], "x.nrt"),
    ("inspect FILE|DIR", &["inspect", "{}"], "meds"),
    ("report FILE|DIR", &["report", "{}", "-o", "in/r.html"], "meds"),
    ("report --labels", &["report", "in/meds", "--labels", "{}", "-o", "in/r.html"], "labels"),
    ("report --output", &["report", "in/meds", "-o", "{}"], "r.html"),
    ("check DIR", &["check", "{}"], "meds"),
    ("check --labels", &["check", "in/meds", "--labels", "{}"], "labels"),
    ("convert IN", &["convert", "{}", "in/c.nrt"], "x.parquet"),
    ("convert IN", &["convert", "{}", "in/c.nrt"], "meds"),
    ("convert OUT", &["convert", "in/x.parquet", "{}"], "new.nrt"),
    ("convert OUT", &["convert", "in/meds", "{}", "--to", "meds-torch-data"], "new"),
    ("densify IN", &["densify", "{}", "-o", "in/d.safetensors"], "x.nrt"),
    ("densify --output", &["densify", "in/x.nrt", "-o", "{}"], "new.safetensors"),
    ("batches IN", &["batches", "{}", "--batch", "4", "--len", "8", "-o", "in/b"], "meds"),
    (
        "batches --labels",
        &["batches", "in/meds", "--batch", "4", "--len", "8", "--labels", "{}", "-o", "in/b"],
        "labels",
    ),
    ("batches --output", &["batches", "in/meds", "--batch", "4", "--len", "8", "-o", "{}"], "new"),
    ("features DATA", &["features", "{}", "--labels", "in/labels", "-o", "in/f.parquet"], "meds"),
    (
        "features --labels",
        &["features", "in/meds", "--labels", "{}", "-o", "in/f.parquet"],
        "labels",
    ),
    (
        "features --vocabulary",
        &[
            "features",
            "in/meds",
            "--labels",
            "in/labels",
            "--vocabulary",
            "{}",
            "-o",
            "in/f.parquet",
        ],
        "codes.parquet",
    ),
    (
        "features --output",
        &["features", "in/meds", "--labels", "in/labels", "-o", "{}"],
        "new.parquet",
    ),
    ("cohort DATA", &["cohort", "{}", "in/t.yaml", "-o", "in/l"], "meds"),
    ("cohort CONFIG", &["cohort", "in/meds", "{}", "-o", "in/l"], "t.yaml"),
    (
        "cohort --predicates",
        &["cohort", "in/meds", "in/t.yaml", "--predicates", "{}", "-o", "in/l"],
        "t.yaml",
    ),
    ("cohort --output", &["cohort", "in/meds", "in/t.yaml", "-o", "{}"], "new"),
    ("generate --output", &["generate", "--patients", "3", "-o", "{}"], "new.nrt"),
];

/// Arguments of `serrate` that write a file or folder inside the root.
const WRITERS: &[&[&str]] = &[
    &["-c", "SELECT 1", "-o", "in/new.csv"],
    &["report", "in/meds", "-o", "in/new.html"],
    &["convert", "in/x.parquet", "in/new.nrt"],
    &["convert", "in/meds", "in/new", "--to", "meds-torch-data"],
    &["densify", "in/x.nrt", "-o", "in/new.safetensors"],
    &["batches", "in/meds", "--batch", "4", "--len", "8", "-o", "in/new"],
    &["features", "in/meds", "--labels", "in/labels", "-o", "in/new.parquet"],
    &["cohort", "in/meds", "in/t.yaml", "-o", "in/new"],
    &["generate", "--patients", "3", "-o", "in/new.nrt"],
];

/// Runs the statements in one shell, checks that each of them fails, and returns the error of each.
fn errors_of(place: &Place, flags: &[&str], statements: &[String]) -> Vec<String> {
    let mut script = String::new();
    for statement in statements {
        let end = if statement.starts_with('.') { "\n" } else { ";\n" };
        script.push_str(&statement.replace("; ", ";\n"));
        script.push_str(end);
    }
    let said = place.run_with(&[flags, &["-i"]].concat(), &script);
    let lines = format!("\n{}", said.err);
    let errors: Vec<String> = lines.split("\nerror: ").skip(1).map(str::to_owned).collect();
    assert_eq!(errors.len(), statements.len(), "{}\n{}", said.out, said.err);
    errors
}

fn is_outside(error: &str) -> bool {
    error.contains("outside the folder in,") && error.contains("--root")
}

/// Returns the paths of all files and folders in `place`, with the contents of the files.
fn read_contents(place: &Place) -> BTreeSet<(PathBuf, Vec<u8>)> {
    let mut found = BTreeSet::new();
    let mut folders = vec![place.0.path().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            }
            let bytes = if kind.is_file() { fs::read(entry.path()).unwrap() } else { Vec::new() };
            found.insert((entry.path(), bytes));
        }
    }
    found
}

#[test]
fn statements_refuse_paths_outside_the_root() {
    let place = place_with_files();
    let mut statements = Vec::new();
    for (_, call, name) in READS.iter().chain(WRITES) {
        statements.extend(ways_out(&place, name).iter().map(|way| call.replace("{}", way)));
    }
    let before = read_contents(&place);
    let errors = errors_of(&place, &["--root", "in"], &statements);
    let wrong: Vec<_> = statements.iter().zip(errors).filter(|(_, e)| !is_outside(e)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(read_contents(&place), before);
    // If the files are inside the root, the statements give the same output as without `--root`.
    let inside: Vec<String> =
        READS.iter().map(|(_, call, name)| call.replace("{}", &format!("in/{name}"))).collect();
    let script = inside.join(";\n").replace("; ", ";\n") + ";\n";
    let free = place.run_with(&["-i"], &script);
    fs::remove_file(place.path("in/made.csv")).unwrap();
    let held = place.run_with(&["--root", "in", "-i"], &script);
    assert_eq!(held.err, free.err);
    assert!(!held.err.contains("outside"), "{}", held.err);
}

#[test]
fn commands_refuse_paths_outside_the_root() {
    let place = place_with_files();
    let before: Vec<_> = COMMANDS.iter().map(|(_, _, name)| ways_out(&place, name)).collect();
    let unchanged = read_contents(&place);
    let mut wrong = Vec::new();
    for ((_, args, _), ways) in COMMANDS.iter().zip(before) {
        for way in ways {
            let args: Vec<&str> = args.iter().map(|a| if *a == "{}" { &*way } else { a }).collect();
            let said = place.run(&[args.as_slice(), &["--root", "in"]].concat());
            if said.code != 1 || !is_outside(&said.err) {
                wrong.push(format!("{args:?}: {} {}{}", said.code, said.out, said.err));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(read_contents(&place), unchanged);
}

#[test]
fn urls_are_outside_the_root() {
    let place = place_with_files();
    let out = place.path("out/x.csv").display().to_string();
    let statements: Vec<String> = [
        "FROM 's3://bucket/x.csv'".to_owned(),
        "FROM 'https://example.com/x.csv'".to_owned(),
        "COPY (SELECT 1 AS a) TO 's3://bucket/x.csv'".to_owned(),
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 's3://bucket/x.csv'".to_owned(),
        format!("FROM 'file://{out}'"),
        format!("SELECT ragged_lookup(['a'], 'file://{out}', 'code', 'id')"),
        format!("COPY (SELECT 1 AS a) TO 'file://{out}' OPTIONS (overwrite true)"),
    ]
    .to_vec();
    for (statement, error) in
        statements.iter().zip(errors_of(&place, &["--root", "in"], &statements))
    {
        assert!(error.contains("--root"), "{statement}: {error}");
    }
}

#[cfg(unix)]
#[test]
fn links_in_folders_are_followed_only_to_targets_inside_the_root() {
    use std::os::unix::fs::symlink;
    let place = place_with_files();
    fs::create_dir(place.path("in/mixed")).unwrap();
    symlink("../x.csv", place.path("in/mixed/a.csv")).unwrap();
    assert_eq!(
        place.ok(&["--root", "in", "-f", "csv", "-c", "SELECT id FROM 'in/mixed/'"]),
        "id\n1\n"
    );
    symlink("../../out/x.csv", place.path("in/mixed/b.csv")).unwrap();
    for from in ["in/mixed/", "in/mixed/*.csv"] {
        let error = place.fails(1, &["--root", "in", "-c", &format!("SELECT id FROM '{from}'")]);
        assert!(error.contains("outside the folder in"), "{from}: {error}");
    }
    // A link within a data set may not lead to a folder outside the root either.
    symlink("../../../out/meds/data", place.path("in/meds/data/more")).unwrap();
    for args in
        [vec!["-c", "FROM meds('in/meds')"], vec!["check", "in/meds"], vec!["inspect", "in/meds"]]
    {
        let said = place.run(&[args.as_slice(), &["--root", "in"]].concat());
        assert!(
            said.err.contains("outside the folder in")
                || said.out.contains("outside the folder in"),
            "{args:?}: {} {}",
            said.out,
            said.err
        );
    }
}

#[test]
fn with_read_only_nothing_is_written() {
    let place = place_with_files();
    let new = |name: &str| format!("in/{name}");
    let mut statements: Vec<String> =
        WRITES.iter().map(|(_, call, name)| call.replace("{}", &new(name))).collect();
    let changes = [
        "INSERT INTO d VALUES (2, 3.0)",
        "UPDATE d SET v = 4.0",
        "DELETE FROM d",
        "TRUNCATE TABLE d",
        "INSERT INTO c VALUES (2)",
        "INSERT INTO p VALUES (2)",
    ];
    statements.extend(changes.map(str::to_owned));
    place.ok(&[
        "-c",
        "COPY (SELECT 1 AS a) TO 'in/plain/a.csv'; COPY (SELECT 1 AS a) TO 'in/plain2/a.parquet'",
    ]);
    place.file(
        "tables.sql",
        "CREATE EXTERNAL TABLE d STORED AS DOK LOCATION 'in/m.safetensors';
         CREATE EXTERNAL TABLE c STORED AS CSV LOCATION 'in/plain/';
         CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION 'in/plain2/';",
    );
    let before = read_contents(&place);
    let errors = errors_of(&place, &["--read-only", "tables.sql"], &statements);
    let wrong: Vec<_> =
        statements.iter().zip(errors).filter(|(_, e)| !e.contains("--read-only refuses")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    for args in WRITERS {
        let error = place.fails(1, &[*args, &["--read-only"]].concat());
        assert!(error.contains("--read-only refuses"), "{args:?}: {error}");
    }
    assert_eq!(read_contents(&place), before);
    // Files can still be read, and tables in memory can change.
    let memory = "CREATE TABLE t AS FROM 'in/x.parquet'; INSERT INTO t SELECT id + 1, x FROM t; SELECT count(*) AS n FROM t";
    let said = place.ok(&["--read-only", "-f", "csv", "-c", memory]);
    assert!(said.ends_with("n\n2\n"), "{said}");
    place.ok(&["check", "in/meds", "--read-only"]);
    // No statement switches `--read-only` off.
    let set = place.fails(1, &["--read-only", "-c", "SET serrate.read_only = false"]);
    assert!(set.contains("there is no setting"), "{set}");
    assert_eq!(read_contents(&place), before);
}

/// Returns the words after `mark` up to the end of the line, separated by commas, such as the
/// formats that an error lists.
fn words_after<'a>(text: &'a str, mark: &str) -> BTreeSet<&'a str> {
    let (_, rest) = text.split_once(mark).unwrap();
    let line = rest.lines().next().unwrap();
    line.split(", ").map(|word| word.trim()).collect()
}

#[test]
fn the_statements_above_call_every_format_and_function_with_a_path() {
    let place = Place::new();
    let called: BTreeSet<&str> = READS.iter().map(|(what, ..)| *what).collect();
    let written: BTreeSet<&str> = WRITES.iter().map(|(what, ..)| *what).collect();
    let refused = place.fails(1, &["-c", "CREATE EXTERNAL TABLE t STORED AS NONE LOCATION 'x'"]);
    let formats = words_after(&refused, "STORED AS accepts ");
    assert!(formats.len() > 5, "{refused}");
    assert_eq!(
        written.iter().copied().filter(|w| formats.contains(w)).collect::<BTreeSet<_>>(),
        formats
    );
    // `BATCHES` is only written, and `SAFETENSORS` files are read only with `FROM`, not as an
    // external table.
    let only_written = ["BATCHES", "SAFETENSORS"];
    for format in formats {
        assert!(
            called.contains(format) || only_written.contains(&format),
            "no statement reads a file of {format}"
        );
    }
    let context = serrate::sql::session();
    let state = context.state();
    for name in state.table_functions().keys() {
        // These two table functions take numbers and no path.
        let free = ["generate_series", "range"].contains(&name.as_str());
        assert!(
            free || called.contains(name.as_str()),
            "no statement calls the table function {name}"
        );
    }
    // `.functions` also lists the table functions that the planner handles in FROM itself. They are
    // not in DataFusion's registry.
    let listed = place.run_with(&["-i"], ".functions\n").out;
    let mut unknown: Vec<&str> = Vec::new();
    for line in listed.lines() {
        let name = line.split_whitespace().next().unwrap_or("");
        let known = state.scalar_functions().contains_key(name)
            || state.aggregate_functions().contains_key(name)
            || state.window_functions().contains_key(name)
            || state.higher_order_functions().contains_key(name)
            || state.table_functions().contains_key(name)
            || line.starts_with(' ');
        if !known && !called.contains(name) {
            unknown.push(name);
        }
    }
    // The planner replaces short forms by expressions of the functions above.
    let requests: String = unknown.iter().map(|name| format!(".help {name}\n")).collect();
    let help = place.run_with(&["-i"], &requests).out;
    let kinds = ["(short form)", "(function)", "(table function)"];
    let is_heading = |line: &&str| kinds.iter().any(|kind| line.ends_with(kind));
    let headings: Vec<&str> = help.lines().filter(is_heading).collect();
    assert_eq!(headings.len(), unknown.len(), "{help}");
    for (name, heading) in unknown.iter().zip(headings) {
        let is_short = heading.ends_with("(short form)");
        assert!(is_short, "no statement calls the table function {name}");
    }
    let takes_path = |what: &str| {
        ["file", "folder", "path", ".parquet", "directory"].iter().any(|word| what.contains(word))
    };
    let (mut found, mut uncalled) = (0, Vec::new());
    for (name, function) in state.scalar_functions() {
        let arguments = function.documentation().and_then(|d| d.arguments.clone());
        if arguments.unwrap_or_default().iter().any(|(_, what)| takes_path(what)) {
            found += 1;
            if !called.contains(function.name()) && !called.contains(name.as_str()) {
                uncalled.push(name.clone());
            }
        }
    }
    assert!(found >= 5, "{found}");
    assert_eq!(
        uncalled,
        Vec::<String>::new(),
        "functions with an argument that may be a path, which no statement calls"
    );
}

#[test]
fn the_calls_above_use_every_setting_and_argument_with_a_path() {
    let place = Place::new();
    let settings =
        place.ok(&["--format", "csv", "-c", "SELECT name FROM information_schema.df_settings"]);
    // `READS` sets the first one. The last two are read only when a session is built, so `SET` has
    // no effect.
    let known =
        ["serrate.codes", "datafusion.runtime.temp_directory", "datafusion.catalog.location"];
    for name in settings.lines() {
        let last = name.rsplit('.').next().unwrap_or(name);
        let path = ["path", "location", "codes", "folder"].iter().any(|w| last.contains(w))
            || last.ends_with("directory") && !last.contains("ignore") && !last.contains("size");
        assert!(!path || known.contains(&name), "setting {name}");
    }
    let called: BTreeSet<&str> = COMMANDS.iter().map(|(what, ..)| *what).collect();
    let help = place.ok(&["--help"]);
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let commands = list.lines().take_while(|l| !l.trim().is_empty());
    let commands: Vec<&str> = commands
        .filter(|l| l.starts_with("  ") && !l.starts_with("   "))
        .filter_map(|l| l.split_whitespace().next())
        .collect();
    assert!(commands.len() >= 9, "{commands:?}");
    let is_path = |value: &str| {
        ["FILE", "DIR", "IN", "OUT", "DATA", "CONFIG", "LABELS", "PATH"]
            .iter()
            .any(|word| value.split(['|', '.']).any(|part| part == *word))
    };
    let mut uncalled = Vec::new();
    for command in std::iter::once("query").chain(commands) {
        // The tests in `tests/cluster` check the paths in plans that a worker receives, and
        // `tests/serve` checks the server.
        if ["worker", "serve"].contains(&command) {
            continue;
        }
        let help = match command {
            "query" => help.clone(),
            command => place.ok(&[command, "--help"]),
        };
        for line in help.lines().map(str::trim) {
            let Some((before, rest)) = line.split_once('<').or_else(|| line.split_once('[')) else {
                continue;
            };
            let value = rest.split(['>', ']']).next().unwrap_or("");
            let flag = before.split_whitespace().find(|w| w.starts_with("--"));
            if !is_path(value)
                || before.contains(|c: char| c.is_ascii_alphabetic()) && flag.is_none()
            {
                continue;
            }
            // The operator chooses the root itself and the files that are read before the root
            // applies.
            if flag.is_some_and(|f| ["--root", "--token-file", "--worker-ca"].contains(&f)) {
                continue;
            }
            let what = format!("{command} {}", flag.unwrap_or(value));
            if !called.contains(what.as_str()) {
                uncalled.push(format!("{what}: {line}"));
            }
        }
    }
    assert_eq!(uncalled, Vec::<String>::new());
    // Shell commands with a FILE argument.
    let shell = place.run_with(&["-i"], ".help\n").out;
    for line in shell.lines().filter(|l| l.contains("FILE") && l.starts_with('.')) {
        let name = line.split_whitespace().next().unwrap();
        let all = || READS.iter().chain(WRITES);
        assert!(all().any(|(what, ..)| *what == name), "{line}");
    }
}

#[test]
fn a_root_must_be_a_folder() {
    let place = place_with_files();
    for root in ["none", "in/x.csv"] {
        let error = place.fails(2, &["--root", root, "-c", "SELECT 1"]);
        assert!(error.contains("--root") && error.contains(root), "{error}");
    }
}
