//! `serrate cohort` and the table function `meds_cohort`.

use serrate::io::meds::{LabelKind, Labels};

use super::*;

const TASK: &str = "\
predicates:
  admission:
    code: { regex: \"^ADMISSION//.*\" }
  discharge:
    code: { regex: \"^DISCHARGE//.*\" }
  death:
    code: DEATH
  end_of_stay:
    expr: or(discharge, death)
trigger: admission
windows:
  input:
    start: null
    end: trigger + 24h
    start_inclusive: true
    end_inclusive: true
    has:
      _ANY_EVENT: (2, None)
    index_timestamp: end
  target:
    start: input.end
    end: start -> end_of_stay
    start_inclusive: false
    end_inclusive: true
    label: death
";

fn list_configs() -> Vec<(String, String)> {
    let folder = data_path("cohorts/configs");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|f| f.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert_eq!(names.len(), 13, "{names:?}");
    names.into_iter().map(|n| (n.clone(), format!("{folder}/{n}.yaml"))).collect()
}

fn format_from(config: &str) -> String {
    format!("meds_cohort('{}', '{config}')", data_path("cohorts/meds"))
}

fn parse_records(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_configuration_that_does_not_exist_is_named() {
    let err = Place::new().fails(1, &["-c", &format!("FROM {}", format_from("nosuch.yaml"))]);
    assert!(err.contains("nosuch.yaml: the file does not exist; name the YAML file"), "{err}");
    assert!(!err.contains("os error"), "{err}");
}

/// `tests/interop/aces_cohorts.py` has recorded the cohorts that ACES extracts.
#[test]
fn cohorts_equal_those_of_aces() {
    let place = Place::new();
    for (name, config) in list_configs() {
        let query = format!("SELECT * FROM {} ORDER BY subject_id, trigger", format_from(&config));
        let ours = place.ok(&["-f", "ndjson", "-c", &query]);
        let answer =
            fs::read_to_string(data_path(&format!("cohorts/answers/{name}.ndjson"))).unwrap();
        let (ours, theirs) = (parse_records(&ours), parse_records(&answer));
        assert!(!theirs.is_empty(), "{name}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs, "{name}");
        }
        assert_eq!(ours.len(), theirs.len(), "{name}");
    }
}

#[test]
fn cohorts_do_not_depend_on_partitions_and_batches() {
    let place = Place::new();
    for (name, config) in list_configs() {
        let query = format!("SELECT * FROM {} ORDER BY subject_id, trigger", format_from(&config));
        let mut results = Vec::new();
        for (partitions, size) in [(1, 8192), (4, 8192), (3, 7)] {
            let set = format!(
                "SET datafusion.execution.target_partitions = {partitions}; SET datafusion.execution.batch_size = {size}; {query}"
            );
            results.push(place.ok(&["-f", "csv", "-c", &set]));
        }
        assert_eq!(results[0], results[1], "{name}");
        assert_eq!(results[0], results[2], "{name}");
    }
    let config = data_path("cohorts/configs/imminent_mortality.yaml");
    let count = format!(
        "SELECT count(*) AS n FROM {0}; SELECT count(*) AS n FROM (SELECT trigger FROM {0} LIMIT 5)",
        format_from(&config)
    );
    assert_eq!(place.ok(&["-f", "csv", "-c", &count]), "n\n170\n\nn\n5\n");
}

#[test]
fn written_labels_are_read_by_the_loader_and_by_sql() {
    let place = Place::new();
    let meds = data_path("cohorts/meds");
    let config = data_path("cohorts/configs/readmission_risk.yaml");
    let out = place.ok(&["cohort", &meds, &config, "-o", "labels.parquet"]);
    assert!(out.contains("wrote 46 labels to labels.parquet"), "{out}");
    let labels = Labels::read(place.path("labels.parquet")).unwrap();
    assert_eq!((labels.len(), labels.kinds().collect::<Vec<_>>()), (46, vec![LabelKind::Boolean]));

    place.ok(&["cohort", &meds, &config, "-o", "labels"]);
    assert!(place.exists("labels/train/0.parquet") && place.exists("labels/held_out/0.parquet"));
    let folder = Labels::read(place.path("labels")).unwrap();
    assert_eq!(folder, labels);

    // The labels are the rows of `meds_cohort`, and `meds_asof` and `serrate batches` accept them.
    let of = |from: &str| {
        place.ok(&["-f", "csv", "-c", &format!("SELECT count(*) AS n, sum(CAST(boolean_value AS INT)) AS positive, min(prediction_time) AS first FROM ({from})")])
    };
    let rows = format!(
        "SELECT label > 0 AS boolean_value, index_timestamp AS prediction_time FROM {}",
        format_from(&config)
    );
    assert_eq!(of("FROM 'labels.parquet'"), of(&rows));
    assert_eq!(of("FROM 'labels.parquet'"), of(&format!("FROM meds_asof('{meds}', 'labels')")));
    place.ok(&[
        "batches", &meds, "--labels", "labels", "--batch", "8", "--len", "16", "-o", "batches",
    ]);
    assert!(place.exists("batches"));

    let err = place.fails(1, &["cohort", &meds, &config, "-o", "labels.parquet"]);
    assert!(err.contains("exists"), "{err}");
    place.ok(&["cohort", &meds, &config, "-o", "labels.parquet", "--overwrite"]);
    let only_triggers = data_path("cohorts/configs/triggers_only.yaml");
    let err = place.fails(1, &["cohort", &meds, &only_triggers, "-o", "l.parquet"]);
    assert!(err.contains("triggers_only.yaml") && err.contains("index_timestamp"), "{err}");
    let err = place.fails(2, &["cohort", &meds, &config, "-o", "l.csv"]);
    assert!(err.contains(".csv"), "{err}");
    let err = place.fails(2, &["cohort", &config, &meds]);
    assert!(err.contains("DATA CONFIG"), "{err}");
}

#[test]
fn counts_decrease_with_each_criterion_down_to_the_rows_of_the_cohort() {
    let place = Place::new();
    for (name, config) in list_configs() {
        let out = place.ok(&["cohort", &data_path("cohorts/meds"), &config]);
        assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
        let count =
            format!("SELECT count(*), count(DISTINCT subject_id) FROM {}", format_from(&config));
        let count = place.ok(&["-f", "csv", "-c", &count]);
        let (rows, subjects) = count.lines().nth(1).unwrap().split_once(',').unwrap();
        let last: Vec<&str> = out.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(last[last.len() - 2..], [subjects, rows], "{name}: {out}");
        // A further criterion never increases the counts of rows and subjects.
        let column = |line: &str| -> Vec<u64> {
            line.split_whitespace().rev().take(2).map_while(|n| n.parse().ok()).collect()
        };
        let counts: Vec<Vec<u64>> = out.lines().skip(1).map(column).collect();
        for pair in counts.windows(2).filter(|pair| pair[0].len() == pair[1].len()) {
            assert!(pair[0].iter().zip(&pair[1]).all(|(a, b)| a >= b), "{name}: {out}");
        }
    }
}

#[test]
fn explain_shows_the_windows_of_a_task_and_its_query() {
    let place = Place::new();
    place.file("task.yaml", TASK);
    let out = place.ok(&["cohort", "nowhere", "task.yaml", "--explain"]);
    assert_eq!(
        out,
        "predicates
  admission = /^ADMISSION//.*/
  discharge = /^DISCHARGE//.*/
  death = DEATH
  end_of_stay = or(discharge, death)
  _ANY_EVENT: any event
trigger: admission
  input.end = trigger + 24h, counts in (trigger, input.end)
    input.start = end <- _RECORD_START, counts in [input.start, input.end]
        _ANY_EVENT: at least 2
        prediction time: end of the window
    target.end = start -> end_of_stay, counts in (input.end, target.end]
        label: death > 0
query:
  SELECT subject_id,
         index_timestamp AS prediction_time,
         label > 0 AS boolean_value
  FROM meds_cohort('nowhere',
                   'task.yaml')
"
    );
    // Lines that are wider than the terminal continue below, further to the right.
    let args = ["cohort", "nowhere", "task.yaml", "--explain"];
    let output = place.command().env("COLUMNS", "60").args(args).output().unwrap();
    let narrow = String::from_utf8(output.stdout).unwrap();
    assert!(narrow.contains("counts in (input.end,\n          target.end]\n"), "{narrow}");
    assert!(narrow.lines().all(|line| line.len() <= 60), "{narrow}");
    let plan = format!(
        "EXPLAIN SELECT label FROM meds_cohort('{}', 'task.yaml')",
        data_path("cohorts/meds")
    );
    let plan = place.ok(&["-f", "csv", "-c", &plan]);
    assert!(plan.contains("MedsCohort: ") && plan.contains("projection=[label]"), "{plan}");
}

#[test]
fn predicates_of_another_file_replace_those_of_the_configuration() {
    let place = Place::new();
    let open =
        TASK.replace("    code: DEATH\n", "    ???\n").replace("death:\n    ???", "death: ???");
    place.file("open.yaml", &open).file("task.yaml", TASK).file(
        "codes.yaml",
        "predicates:\n  death: { code: DEATH }\n  unused: { code: 5 }\npatient_demographics:\n",
    );
    let meds = data_path("cohorts/meds");
    let rows = |call: &str| {
        place.ok(&[
            "-f",
            "csv",
            "-c",
            &format!("FROM meds_cohort('{meds}', {call}) ORDER BY subject_id, trigger"),
        ])
    };
    assert_eq!(rows("'open.yaml', predicates => 'codes.yaml'"), rows("'task.yaml'"));
    let err = place.fails(1, &["cohort", &meds, "open.yaml"]);
    assert!(err.contains("open.yaml: line 6: predicates.death: expected a mapping"), "{err}");
    place.ok(&["cohort", &meds, "open.yaml", "--predicates", "codes.yaml", "-o", "l.parquet"]);
}

#[test]
fn predicates_that_match_no_code_of_the_data_are_named() {
    let place = Place::new();
    place.file("wrong.yaml", TASK.replace("code: DEATH", "code: DAETH"));
    place.file("right.yaml", TASK);
    let meds = data_path("cohorts/meds");
    let said = place.run(&["cohort", &meds, "wrong.yaml"]);
    let note = "note: no code of the data matches predicates.death; check the spelling\n";
    assert_eq!((said.code, said.err.as_str()), (0, note));
    let said = place.run(&["cohort", &meds, "right.yaml"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
}

#[test]
fn the_end_of_a_window_is_the_later_of_its_two_ends() {
    let place = Place::new();
    let task = "predicates: { a: { code: DISCHARGE//HOME } }
trigger: a
windows:
  input: { start: end - 2d, end: trigger, start_inclusive: true, end_inclusive: true, index_timestamp: end }
";
    place.file("task.yaml", task);
    let meds = data_path("cohorts/meds");
    let query = format!(
        "SELECT count(*) AS n, count_if(index_timestamp == trigger) AS same,
           count_if(\"input.start_summary\"['timestamp_at_start'] == trigger - INTERVAL '2 days') AS before
         FROM meds_cohort('{meds}', 'task.yaml')"
    );
    let found = place.ok(&["-f", "csv", "-c", &query]);
    let numbers: Vec<&str> = found.lines().nth(1).unwrap().split(',').collect();
    assert!(numbers[0] != "0" && numbers.iter().all(|n| *n == numbers[0]), "{found}");
    let said = place.run(&["cohort", &meds, "task.yaml"]);
    assert!(said.code == 0 && said.err.contains("ACES 0.7.3"), "{}", said.err);
}

#[test]
fn cohorts_are_extracted_from_tensorized_data_too() {
    let place = Place::new();
    let task = "predicates:
  visit: { code: { regex: '^VISIT_START//' } }
  lab: { code: { regex: '^LAB//' } }
trigger: visit
windows:
  next: { start: trigger, end: start -> visit, start_inclusive: false, end_inclusive: false, has: { lab: '(1, None)' }, label: lab, index_timestamp: start }
";
    place.file("task.yaml", task);
    let rows = |folder: &str| {
        let folder = data_path(folder);
        place.ok(&["-f", "csv", "-c", &format!("SELECT subject_id, trigger, label FROM meds_cohort('{folder}', 'task.yaml') ORDER BY 1, 2")])
    };
    let found = rows("synthea-meds");
    assert_eq!(found.lines().count(), 23, "{found}");
    assert_eq!(found, rows("synthea-meds-torch-data"));
}

#[test]
fn errors_of_a_configuration_name_their_line() {
    let place = Place::new();
    let meds = data_path("cohorts/meds");
    for (old, new, expected) in [
        (
            "_ANY_EVENT: (2, None)",
            "_ANY_EVENT: 3",
            "line 18: windows.input.has._ANY_EVENT: expected \"(min, max)\", found 3",
        ),
        (
            "_ANY_EVENT: (2, None)",
            "death: '3'",
            "line 18: windows.input.has.death: expected \"(min, max)\", found \"3\"",
        ),
        ("_ANY_EVENT: (2, None)", "death: (a, 2)", "found \"(a, 2)\""),
        ("_ANY_EVENT: (2, None)", "death: (1, 2, 3)", "expected \"(min, max)\""),
        (
            "_ANY_EVENT: (2, None)",
            "death: (None, None)",
            "windows.input.has.death: one of min and max",
        ),
        ("_ANY_EVENT: (2, None)", "death: (2, 1)", "min exceeds max"),
        (
            "_ANY_EVENT: (2, None)",
            "stroke: (2, None)",
            "windows.input.has.stroke: there is no predicate \"stroke\"; the predicates are admission, discharge",
        ),
        (
            "    label: death",
            "    label: _ANY_EVENT",
            "windows.target.label: _ANY_EVENT cannot be a label",
        ),
        (
            "    label: death",
            "    label: stroke",
            "line 25: windows.target.label: there is no predicate",
        ),
        (
            "    label: death",
            "    label: death\n    index_timestamp: end",
            "windows.target.index_timestamp: an earlier window has the key index_timestamp",
        ),
        ("    label: death", "    labels: death", "windows.target.labels: unknown key"),
        (
            "index_timestamp: end",
            "index_timestamp: middle",
            "expected `start` or `end`, the side of the window that is the prediction time, found \"middle\"",
        ),
        (
            "trigger: admission",
            "trigger: arrival",
            "line 10: trigger: there is no predicate \"arrival\"",
        ),
        ("trigger: admission", "triggers: admission", "triggers: unknown key"),
        ("trigger: admission\n", "", "trigger: the key is missing"),
        ("end: trigger + 24h", "end: trigger + 24", "windows.input.end: expected a length of time"),
        ("end: trigger + 24h", "end: trigger + 1 month", "expected a length of time"),
        ("end: trigger + 24h", "end: trigger + 400000000 weeks", "at most 2^63 - 1 microseconds"),
        (
            "end: trigger + 24h",
            "end: arrival",
            "windows.input.end: expected \"trigger\" or an end of another window",
        ),
        (
            "end: trigger + 24h",
            "end: gap.end",
            "there is no window \"gap\"; the windows are input, target",
        ),
        ("end: trigger + 24h", "end: target.end", "circle"),
        ("end: trigger + 24h", "end: start + 24h", "refer to each other"),
        ("end: trigger + 24h", "end: null", "whole record"),
        ("end: trigger + 24h", "end: 24", "windows.input.end: expected a text such as"),
        ("start: null\n", "start: end + 1h\n", "windows.input: `start: end + 1h` is after the end"),
        (
            "start: null\n",
            "start: end\n",
            "windows.input.has: start and end of the window are the same time",
        ),
        ("start: null\n", "start: trigger\n", "neither start nor end refers to the other end"),
        ("end: start -> end_of_stay", "end: start <- end_of_stay", "is before the start"),
        (
            "end: start -> end_of_stay",
            "end: start -> stroke",
            "windows.target.end: there is no predicate \"stroke\"",
        ),
        ("    start_inclusive: true\n", "", "windows.input.start_inclusive: the key is missing"),
        (
            "    start_inclusive: true\n",
            "    start_inclusive: yes\n",
            "expected true or false, found \"yes\"",
        ),
        ("    code: DEATH", "    code: 5", "predicates.death.code: expected a code"),
        (
            "    code: DEATH",
            "    code: { regex: '(' }",
            "predicates.death.code.regex: the regular expression",
        ),
        ("    code: DEATH", "    code: { regex: '' }", "expected a regular expression"),
        ("    code: DEATH", "    code: { any: [] }", "expected a list of one or more codes"),
        (
            "    code: DEATH",
            "    code: { like: 'D%' }",
            "unknown key; the keys of codes are regex and any",
        ),
        (
            "    code: DEATH",
            "    code: { any: [a], regex: a }",
            "exactly one key, regex or any, found 2 keys",
        ),
        ("    code: DEATH", "    value_min: 5", "predicates.death: a predicate needs the key code"),
        (
            "    code: DEATH",
            "    code: DEATH\n    value_min: low",
            "predicates.death.value_min: expected a number, found \"low\"",
        ),
        (
            "    code: DEATH",
            "    code: DEATH\n    unit: [a]",
            "predicates.death.unit: expected a text, a number or a boolean",
        ),
        ("    code: DEATH", "    code: DEATH\n    unitt: ICU", "unitt"),
        (
            "    code: DEATH",
            "    code: DEATH\n    unit: 5",
            "predicates.death.unit: the value is 5, but column \"unit\" of the data holds",
        ),
        (
            "    code: DEATH",
            "    code: DEATH\n    static: true",
            "windows.target.label: the predicate death is static",
        ),
        (
            "    code: DEATH",
            "    code: DEATH\n    code: DEAD",
            "line 8: key \"code\" is also in line 7",
        ),
        ("    code: DEATH", "    code: !d DEATH", "line 7: tags"),
        ("    code: DEATH", "    code: [DEATH", "not valid YAML"),
        (
            "or(discharge, death)",
            "not(death)",
            "predicates.end_of_stay.expr: expected \"and(a, b, ..)\"",
        ),
        ("or(discharge, death)", "or(death)", "with two predicates or more"),
        (
            "or(discharge, death)",
            "or(death, stroke)",
            "predicates.end_of_stay.expr: there is no predicate \"stroke\"",
        ),
        ("or(discharge, death)", "or(death, end_of_stay)", "depends on itself"),
        ("or(discharge, death)", "or(death, _ANY_EVENT)", "_ANY_EVENT cannot be part"),
        ("predicates:", "predicates: &p\n  <<: 5", "<<: expected a mapping"),
        (
            "trigger: admission",
            "trigger: admission\npatient_demographics: { death: { code: SEX } }",
            "is also defined as predicates.death",
        ),
        ("trigger: admission", "trigger: admission\n---\na: b", "more than one document"),
        (TASK, "", "the file is empty"),
        (TASK, "- a\n- b", "configuration: expected a mapping of names to values, found a list"),
    ] {
        let text = TASK.replacen(old, new, 1);
        assert_ne!(text, TASK, "{old}");
        place.file("task.yaml", text);
        let err = place.fails(1, &["cohort", &meds, "task.yaml"]);
        assert!(err.contains(expected), "{new}: {err}");
        let in_sql = place.fails(1, &["-c", &format!("FROM meds_cohort('{meds}', 'task.yaml')")]);
        assert!(in_sql.contains(expected), "{new}: {in_sql}");
    }
    for (call, expected) in [
        ("meds_cohort('x')", "takes 2 paths as strings"),
        ("meds_cohort('x', 5)", "must be a string"),
        ("meds_cohort('x', 'y', criteria => 'z')", "no option criteria"),
        ("meds_cohort('x', 'missing.yaml')", "missing.yaml"),
    ] {
        let err = place.fails(1, &["-c", &format!("FROM {call}")]);
        assert!(err.contains(expected), "{call}: {err}");
    }
}

/// The end of the window exceeds the range of timestamps. The sum must not wrap around to another
/// time.
#[test]
fn times_that_overflow_are_an_error() {
    let place = Place::new();
    let late = "COPY (SELECT CAST(1 AS BIGINT) AS subject_id, arrow_cast(9223372036854775000, 'Timestamp(Microsecond, None)') AS time, 'A' AS code, CAST(NULL AS REAL) AS numeric_value) TO 'meds/data/0.parquet'";
    fs::create_dir_all(place.path("meds/data")).unwrap();
    place.ok(&["-c", late]);
    place.file(
        "task.yaml",
        "predicates: { a: { code: A } }\ntrigger: a\nwindows:\n  w: { start: trigger, end: start + 1h, start_inclusive: true, end_inclusive: true }\n",
    );
    let err = place.fails(1, &["cohort", "meds", "task.yaml"]);
    assert!(err.contains("w.end of subject 1 is outside the range of timestamps"), "{err}");
}
