//! Several processes that use one folder, processes that are killed or interrupted, full disks and
//! damaged files.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use super::*;

/// Returns the sorted names of the files and folders in a folder, including hidden ones.
pub(super) fn list_names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pub(super) fn spawn_command(place: &Place, args: &[&str]) -> Child {
    let mut command = place.command();
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[cfg(unix)]
pub(super) fn send_signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
}

pub(super) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a process has used the CPU for the time `work`. Waits twice that time if the system
/// does not report CPU time.
#[cfg(unix)]
fn wait_for_work(child: &Child, work: Duration) {
    let start = Instant::now();
    let stat = format!("/proc/{}/stat", child.id());
    let used = || {
        let text = fs::read_to_string(&stat).ok()?;
        // The name of the process in parentheses is followed by its state, ten numbers, and user
        // and system time in hundredths of a second.
        let times = text.rsplit_once(')')?.1.split_whitespace().skip(11).take(2);
        Some(times.map(|ticks| ticks.parse::<u64>().unwrap_or(0)).sum::<u64>())
    };
    wait_until("work of the process", || match used() {
        Some(ticks) => Duration::from_millis(10 * ticks) >= work,
        None => start.elapsed() >= 2 * work,
    });
}

const DOK: &str = "CREATE EXTERNAL TABLE m STORED AS DOK LOCATION 'm.safetensors';";

#[test]
fn concurrent_inserts_of_two_processes_all_take_effect() {
    const EACH: usize = 100;
    let place = Place::new();
    place.ok(&["-c", "CREATE EXTERNAL TABLE m (i BIGINT, v DOUBLE) STORED AS DOK LOCATION 'm.safetensors' OPTIONS (keys 'i'); INSERT INTO m VALUES (0, 1.0)"]);
    let script = |k: usize| {
        let inserts: Vec<String> = (1..=EACH)
            .map(|j| format!("INSERT INTO m VALUES ({}, 1.0);", k * 10_000 + j))
            .collect();
        format!("{DOK}\n{}", inserts.join("\n"))
    };
    place.file("1.sql", script(1)).file("2.sql", script(2));
    let children = [spawn_command(&place, &["1.sql"]), spawn_command(&place, &["2.sql"])];
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let count = place.ok(&["-f", "csv", "-c", &format!("{DOK} SELECT count(*) AS n FROM m")]);
    assert_eq!(count, format!("n\n{}\n", 2 * EACH + 1));
    assert_eq!(list_names(place.0.path()), ["1.sql", "2.sql", "m.safetensors"]);
}

#[test]
fn concurrent_updates_of_two_processes_all_take_effect() {
    const EACH: usize = 50;
    let place = Place::new();
    place.ok(&["-c", "CREATE EXTERNAL TABLE m (i BIGINT, v DOUBLE) STORED AS DOK LOCATION 'm.safetensors' OPTIONS (keys 'i'); INSERT INTO m VALUES (0, 1.0)"]);
    // An update does not change the size of the file, so that a process cannot detect the other's
    // update by the size.
    let script = format!("{DOK}\n{}", "UPDATE m SET v = v + 1;\n".repeat(EACH));
    place.file("u.sql", script);
    for child in [spawn_command(&place, &["u.sql"]), spawn_command(&place, &["u.sql"])] {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let sum = place.ok(&["-f", "csv", "-c", &format!("{DOK} SELECT v FROM m")]);
    assert_eq!(sum, format!("v\n{}.0\n", 2 * EACH + 1));
}

/// The names of temporary folders of a process are random. Folders that the user has made are kept,
/// even if their name contains the id of the process.
#[cfg(unix)]
#[test]
fn folders_named_like_temporary_ones_are_kept() {
    let place = Place::new();
    let script = r#"for folder in ".serrate-$$-0.tmp" ".serrate-$$.tmp" .serrate-0123456789abcdef.tmp
        do mkdir "$folder" && echo precious > "$folder/out.csv"; done
        exec "$0" -c "COPY (SELECT 1 AS a) TO 'x.csv'""#;
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_serrate")]).current_dir(place.0.path());
    let output = shell.env("XDG_STATE_HOME", place.path("state")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (theirs, ours): (Vec<String>, Vec<String>) =
        list_names(place.0.path()).into_iter().partition(|name| name.starts_with(".serrate-"));
    assert_eq!((theirs.len(), ours), (3, vec!["x.csv".to_owned()]), "{theirs:?}");
    for name in theirs {
        let kept = fs::read_to_string(place.path(&name).join("out.csv")).unwrap();
        assert_eq!(kept, "precious\n", "{name}");
    }
}

#[test]
fn files_with_hidden_names_are_not_read() {
    let place = Place::new();
    let formats = ["csv", "ndjson", "json", "arrow", "parquet", "nrt"];
    for format in formats {
        let folder = format!("{format}-files");
        fs::create_dir_all(place.path(&format!("{folder}/.serrate-99-0.tmp"))).unwrap();
        fs::create_dir_all(place.path(&format!("{folder}/_old"))).unwrap();
        place.ok(&["-c", &format!("COPY (SELECT 1 AS a) TO '{folder}/a.{format}'")]);
        for hidden in [".serrate-99-0.tmp/b", ".b", "_b", "_old/b"] {
            let (from, to) =
                (format!("{folder}/a.{format}"), format!("{folder}/{hidden}.{format}"));
            fs::copy(place.path(&from), place.path(&to)).unwrap();
        }
        let count = |from: &str| {
            place.ok(&["-f", "csv", "-c", &format!("SELECT count(*) AS n FROM '{from}'")])
        };
        assert_eq!(count(&format!("{folder}/")), "n\n1\n", "{format}");
        assert_eq!(count(&format!("{folder}/*.{format}")), "n\n1\n", "{format}");
        // A file that the query names itself is read, even if its name is hidden.
        for named in ["_b", ".b", "_old/b"] {
            assert_eq!(count(&format!("{folder}/{named}.{format}")), "n\n1\n", "{format} {named}");
        }
        let declared = format!(
            "CREATE EXTERNAL TABLE t STORED AS {format} LOCATION '{folder}/'; SELECT count(*) AS n FROM t"
        );
        if format != "json" {
            assert_eq!(place.ok(&["-f", "csv", "-c", &declared]), "n\n1\n", "{format}");
        }
        if format != "csv" && format != "json" {
            place.ok(&["convert", &folder, &format!("{format}-all.parquet")]);
            assert_eq!(count(&format!("{format}-all.parquet")), "n\n1\n", "{format}");
        }
    }
}

#[cfg(unix)]
#[test]
fn the_next_writer_removes_temporary_files_of_killed_writers() {
    let place = Place::new();
    let endless = "SELECT value AS a FROM generate_series(0, 100000000000)";
    for (args, next) in [
        (
            vec!["-c".to_owned(), format!("COPY ({endless}) TO 'x.csv'")],
            "COPY (SELECT 1 AS a) TO 'x.csv'",
        ),
        (
            vec!["-c".to_owned(), format!("COPY ({endless}) TO 'x.parquet'")],
            "COPY (SELECT 1 AS a) TO 'x.parquet'",
        ),
        (
            vec!["-c".to_owned(), endless.to_owned(), "-o".to_owned(), "y.csv".to_owned()],
            "COPY (SELECT 1 AS a) TO 'y.csv'",
        ),
    ] {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut child = spawn_command(&place, &args);
        wait_until("a temporary file", || {
            list_names(place.0.path()).iter().any(|n| n.ends_with(".tmp"))
        });
        send_signal(&child, "-KILL");
        child.wait().unwrap();
        assert!(list_names(place.0.path()).iter().any(|n| n.starts_with(".serrate-")));
        place.ok(&["-c", next]);
        assert!(!list_names(place.0.path()).iter().any(|n| n.starts_with('.')), "{args:?}");
    }
    // Temporary files of a running process are kept.
    let mut living = spawn_command(&place, &["-c", &format!("COPY ({endless}) TO 'z.csv'")]);
    wait_until("a temporary file", || {
        list_names(place.0.path()).iter().any(|n| n.ends_with(".tmp"))
    });
    place.ok(&["-c", "COPY (SELECT 1 AS a) TO 'w.csv'"]);
    assert!(list_names(place.0.path()).iter().any(|n| n.ends_with(".tmp")));
    send_signal(&living, "-KILL");
    living.wait().unwrap();
}

#[cfg(unix)]
#[test]
fn all_shards_of_a_folder_appear_at_once() {
    let place = Place::new();
    fs::create_dir(place.path("there")).unwrap();
    place.file("there/kept.txt", "kept");
    for (out, more) in [
        ("new", vec!["--to", "nrt"]),
        ("there", vec!["--to", "nrt"]),
        ("meds", vec!["--to", "meds"]),
    ] {
        let args =
            [vec!["generate", "--patients", "20000", "--shards", "40", "-o", out], more].concat();
        for pause in [30, 60, 120, 240] {
            let mut child = spawn_command(&place, &args);
            std::thread::sleep(Duration::from_millis(pause));
            send_signal(&child, "-KILL");
            let ended = child.wait().unwrap();
            assert!(
                !ended.success(),
                "the process ended before the signal; generate more patients"
            );
            let folder = place.path(out);
            let visible = |n: &String| !n.starts_with('.') && n != "kept.txt";
            let shards = if folder.exists() { list_names(&folder) } else { Vec::new() };
            assert_eq!(shards.iter().filter(|n| visible(n)).count(), 0, "{out} {pause}");
        }
        let args =
            [vec!["generate", "--patients", "40", "--shards", "4", "-o", out], args[7..].to_vec()]
                .concat();
        place.ok(&args);
        assert!(!list_names(&place.path(out)).iter().any(|n| n.starts_with('.')), "{out}");
    }
    assert!(!list_names(place.0.path()).iter().any(|n| n.starts_with('.')));
    assert_eq!(list_names(&place.path("new")), ["0.nrt", "1.nrt", "2.nrt", "3.nrt"]);
    assert_eq!(fs::read(place.path("there/kept.txt")).unwrap(), b"kept");
}

/// A many-to-many join that takes longer than any test waits.
const JOIN: &str = "CREATE TABLE t AS SELECT value % 3 AS k FROM generate_series(1, 300000); \
                    SELECT count(*) FROM t a JOIN t b ON a.k = b.k;";

#[cfg(unix)]
#[test]
fn signals_end_a_join_at_once() {
    let place = Place::new();
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let mut child = spawn_command(&place, &["-c", JOIN]);
        wait_for_work(&child, Duration::from_secs(2));
        assert!(child.try_wait().unwrap().is_none());
        let start = Instant::now();
        send_signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(code), "{name}");
        assert!(start.elapsed() < Duration::from_secs(1), "{name}: {:?}", start.elapsed());
    }
}

#[cfg(unix)]
#[test]
fn in_the_shell_an_interrupt_ends_the_statement_and_not_the_shell() {
    let place = Place::new();
    let mut child = spawn_command(&place, &["-i", "-f", "csv"]);
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "CREATE TABLE kept AS SELECT 7 AS a;").unwrap();
    writeln!(input, "{JOIN}").unwrap();
    wait_for_work(&child, Duration::from_secs(2));
    send_signal(&child, "-INT");
    writeln!(input, "SELECT a + 1 AS b FROM kept;").unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && out.contains("b\n8\n"), "{out}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted"));
}

#[cfg(unix)]
#[test]
fn a_second_interrupt_ends_a_join_that_does_not_yield() {
    let place = Place::new();
    // The join forms more than 10^10 pairs of one batch, and the filter keeps none of them.
    let join = "CREATE TABLE t AS SELECT value AS v FROM generate_series(1, 3000000); \
        SELECT count(*) FROM t a JOIN t b ON a.v % 1 = b.v % 1 AND a.v + b.v < 0;";
    let mut child = spawn_command(&place, &["-i"]);
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{join}").unwrap();
    wait_for_work(&child, Duration::from_secs(3));
    assert!(child.try_wait().unwrap().is_none());
    let start = Instant::now();
    send_signal(&child, "-INT");
    std::thread::sleep(Duration::from_millis(300));
    if child.try_wait().unwrap().is_none() {
        send_signal(&child, "-INT");
    }
    drop(input);
    child.wait().unwrap();
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

#[test]
fn damaged_files_fail_one_statement_and_not_the_shell() {
    let place = Place::new();
    let check_errors = |bad: &str, what: &str| {
        let from = format!("SELECT * FROM '{bad}'");
        let err = place.fails(1, &["-c", &from]);
        assert!(err.contains(bad) && !err.contains("bug in DataFusion"), "{what}: {err}");
        place.fails(1, &["convert", bad, "out.parquet"]);
        place.fails(1, &["inspect", bad]);
        let input = format!("CREATE TABLE t AS SELECT 42 AS a;\n{from};\nSELECT a FROM t;\n");
        let said = place.run_with(&["-i", "-f", "csv"], &input);
        assert!(said.out.contains("a\n42\n"), "{what}: {} {}", said.out, said.err);
    };
    for (format, codec) in [("arrow", ""), ("parquet", " OPTIONS (compression 'uncompressed')")] {
        let good = format!("good.{format}");
        place.ok(&["-c", &format!(
            "COPY (SELECT value AS id, [value, 1] AS x FROM generate_series(1, 50)) TO '{good}'{codec}"
        )]);
        let bytes = fs::read(place.path(&good)).unwrap();
        let bad = format!("bad.{format}");
        for cut in [0, 1, 2, 7, bytes.len() / 2, bytes.len() - 1] {
            place.file(&bad, &bytes[..cut]);
            check_errors(&bad, &format!("cut at {cut}"));
        }
    }
    // The files have an offset outside the file, and a buffer that claims to hold 2 * 10^18 bytes.
    for name in ["offset-index.parquet", "uncompressed-length.arrow"] {
        fs::copy(data_path(&format!("damaged/{name}")), place.path(name)).unwrap();
        check_errors(name, name);
    }
}

#[test]
fn counts_too_large_for_any_machine_are_refused_at_the_start() {
    let place = Place::new();
    let cohort = data_path("synthea-meds-torch-data");
    let huge = "18446744073709551615";
    let batches = |more: &[&'static str]| {
        let args = ["batches", &cohort, "--batch", "4", "--len", "8", "-o", "out"];
        [args.as_slice(), more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let mut all = vec![batches(&["--threads", "4294967296"]), batches(&["--bucket", huge])];
    let cases: [&[&str]; 5] = [
        &["batches", &cohort, "--len", "8", "-o", "out", "--batch", huge],
        &["batches", &cohort, "--batch", "8", "-o", "out", "--len", huge],
        &["generate", "--to", "nrt", "-o", "g", "--shards", "2", "--patients", huge],
        &["generate", "--to", "nrt", "-o", "g", "--patients", "2", "--shards", huge],
        &["convert", &cohort, "c", "--to", "meds-torch-data", "--overwrite", "--jobs", huge],
    ];
    for args in cases {
        all.push(args.iter().map(|a| (*a).to_owned()).collect());
    }
    for args in all {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let start = Instant::now();
        let err = place.fails(2, &args);
        assert!(err.contains("invalid value"), "{args:?}: {err}");
        assert!(start.elapsed() < Duration::from_secs(2), "{args:?}");
    }
    assert!(list_names(place.0.path()).is_empty());
}

#[test]
fn copy_and_the_option_o_write_the_same_rows() {
    let place = Place::new();
    let meds = data_path("synthea-meds");
    let queries = [
        "SELECT value AS id, [value, NULL] AS x, {'a': [value], 'b': 'q\"'} AS s FROM generate_series(1, 5)".to_owned(),
        // Each shard has its own dictionary of codes.
        format!("SELECT subject_id, code FROM meds('{meds}')"),
        format!("SELECT subject_id, code[1][1] AS first FROM meds('{meds}')"),
    ];
    for query in &queries {
        for format in ["csv", "arrow"] {
            let (copied, shown) = (format!("copy.{format}"), format!("shown.{format}"));
            place.ok(&["-c", &format!("COPY ({query}) TO '{copied}' OPTIONS (overwrite true)")]);
            place.ok(&["-c", query, "-o", &shown, "--overwrite"]);
            // Sorts the lines, because partitions may return their rows in any order.
            let read = |name: &str| {
                let text = match format {
                    "csv" => fs::read_to_string(place.path(name)).unwrap(),
                    _ => place.ok(&["-f", "ndjson", "-c", &format!("FROM '{name}'")]),
                };
                let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
                lines.sort();
                lines
            };
            assert!(read(&copied) == read(&shown), "{query} {format}");
        }
    }
}

#[test]
fn copy_of_several_partitions_is_the_same_file_every_time() {
    let place = Place::new();
    place.ok(&["-c", "COPY (SELECT value AS id FROM generate_series(1, 200000)) TO 'in.parquet' OPTIONS (max_row_group_size 5000)"]);
    for format in ["csv", "json", "ndjson", "arrow"] {
        let mut first: Option<Vec<u8>> = None;
        for _ in 0..4 {
            let copy = format!(
                "SET datafusion.execution.target_partitions = 4; SET datafusion.optimizer.repartition_file_min_size = 1; SET datafusion.execution.batch_size = 512; \
                COPY (SELECT id, id % 7 AS k FROM 'in.parquet' WHERE id % 3 = 0) TO 'out.{format}' OPTIONS (overwrite true)"
            );
            place.ok(&["-c", &copy]);
            let bytes = fs::read(place.path(&format!("out.{format}"))).unwrap();
            assert!(first.get_or_insert_with(|| bytes.clone()) == &bytes, "{format}");
        }
        let sorted = format!(
            "SELECT bool_and(id = want) AS ok FROM (SELECT id, row_number() OVER () * 3 AS want FROM 'out.{format}')"
        );
        assert_eq!(
            place.ok(&[
                "-f",
                "csv",
                "-c",
                &format!("SET datafusion.execution.target_partitions = 1; {sorted}")
            ]),
            "ok\ntrue\n",
            "{format}"
        );
    }
}

/// Writes files that are larger than the file size limit of `on_full_disk`.
#[cfg(target_os = "linux")]
const LARGE: &str = "COPY (SELECT value AS id, value * 1.5 AS f, [value, 1] AS x FROM generate_series(1, 60000)) TO 'large.parquet'; \
    COPY (SELECT * FROM 'large.parquet') TO 'large.nrt'; COPY (SELECT id, f FROM 'large.parquet') TO 'flat.nrt'";

/// Runs the command under a file size limit of 128 KiB, which makes writes fail as on a full disk.
#[cfg(target_os = "linux")]
fn on_full_disk(place: &Place, args: &[&str]) -> std::process::Output {
    let own = place.command();
    let mut limited = Command::new("bash");
    // Beyond the limit of `ulimit -f`, the kernel sends SIGXFSZ, which would end the process. The
    // process ignores this signal, so `write` returns an error instead.
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 128; exec \"$0\" \"$@\""])
        .arg(own.get_program())
        .args(args);
    limited.current_dir(place.0.path()).stdin(Stdio::null()).output().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_the_old_file_and_nothing_else() {
    let place = Place::new();
    place.ok(&["-c", LARGE]);
    let mut cases: Vec<(String, Vec<String>)> = Vec::new();
    for ending in ["csv", "json", "ndjson", "arrow", "parquet", "nrt", "safetensors"] {
        let file = format!("out/copy.{ending}");
        let from = if ending == "safetensors" { "flat.nrt" } else { "large.parquet" };
        let copy = format!("COPY (SELECT * FROM '{from}') TO '{file}' OPTIONS (overwrite true)");
        cases.push((file, vec!["-c".into(), copy]));
    }
    for ending in ["csv", "json", "ndjson", "arrow", "md", "txt"] {
        let file = format!("out/shown.{ending}");
        let mut args = vec!["-c", "SELECT id, f FROM 'large.parquet'", "-o", &file, "--overwrite"];
        if matches!(ending, "md" | "txt") {
            args.extend(["--max-rows", "0"]);
        }
        cases.push((file.clone(), args.into_iter().map(str::to_owned).collect()));
    }
    for ending in ["json", "ndjson", "arrow", "parquet", "nrt"] {
        let file = format!("out/converted.{ending}");
        let from = if ending == "nrt" { "large.parquet" } else { "large.nrt" };
        let args = ["convert", from, &file, "--overwrite"];
        cases.push((file.clone(), args.into_iter().map(str::to_owned).collect()));
    }
    fs::create_dir(place.path("out")).unwrap();
    for (file, args) in &cases {
        place.file(file, "old");
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = on_full_disk(&place, &args);
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {err}");
        let first = err.lines().next().unwrap_or("");
        let name = file.trim_start_matches("out/");
        assert!(first.contains(name) && !err.contains("bug in DataFusion"), "{args:?}: {err}");
        assert!(err.contains("too large") || err.contains("disk may be full"), "{args:?}: {err}");
        assert_eq!(fs::read(place.path(file)).unwrap(), b"old", "{args:?}");
        assert_eq!(list_names(&place.path("out")), [name], "{args:?}");
        fs::remove_file(place.path(file)).unwrap();
    }
    // An error of the query is reported as such, not as a full disk.
    place.file("out/x.csv", "old");
    let copy = "COPY (SELECT 1 / (value - value) AS a FROM generate_series(1, 3)) TO 'out/x.csv' OPTIONS (overwrite true)";
    let err = place.fails(1, &["-c", copy]);
    assert!(err.contains("division by zero") && !err.contains("full"), "{err}");
}

/// Returns the paths of all files and folders below a folder, sorted, with the contents of the
/// files.
#[cfg(target_os = "linux")]
fn read_tree(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut tree = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.display().to_string();
            match path.is_dir() {
                true => {
                    tree.push((name, Vec::new()));
                    folders.push(path);
                }
                false => tree.push((name, fs::read(&path).unwrap())),
            }
        }
    }
    tree.sort();
    tree
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_folders_and_sparse_tensors_as_they_were() {
    let place = Place::new();
    place.ok(&["-c", LARGE]);
    place.ok(&["generate", "--patients", "60", "--to", "meds", "-o", "meds"]);
    fs::create_dir_all(place.path("out/t")).unwrap();
    place.file("out/t/a.csv", "id,f\n1,1.5\n");
    place.ok(&["-c", "CREATE EXTERNAL TABLE m (i BIGINT, v DOUBLE) STORED AS DOK LOCATION 'out/m.safetensors' OPTIONS (keys 'i'); INSERT INTO m VALUES (0, 1.0)"]);
    let mut cases: Vec<(&str, Vec<String>)> = Vec::new();
    for format in ["csv", "json", "arrow", "parquet"] {
        for partitioned in ["", " PARTITIONED BY (p)"] {
            // This setting writes one file to a folder, and the file is larger than the limit.
            let copy = format!(
                "SET datafusion.execution.minimum_parallel_output_files = 1; COPY (SELECT id % 2 AS p, * FROM 'large.parquet') TO 'out/new/f/' STORED AS {format}{partitioned}"
            );
            cases.push(("out/new/f", vec!["-c".into(), copy]));
        }
    }
    for (name, statement) in [
        (
            "out/t",
            "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'out/t/' OPTIONS (has_header true); INSERT INTO t SELECT id, f FROM 'large.parquet'",
        ),
        (
            "out/m.safetensors",
            "CREATE EXTERNAL TABLE m STORED AS DOK LOCATION 'out/m.safetensors'; INSERT INTO m SELECT id, f FROM 'large.parquet'",
        ),
        (
            "out/d.safetensors",
            "COPY (SELECT id AS i, f AS v FROM 'large.parquet') TO 'out/d.safetensors' STORED AS DOK OPTIONS (keys 'i')",
        ),
        (
            "out/b",
            "COPY (SELECT x, id FROM 'large.parquet') TO 'out/b' STORED AS BATCHES OPTIONS (batch 30000)",
        ),
    ] {
        cases.push((name, vec!["-c".into(), statement.into()]));
    }
    for (name, args) in [
        (
            "out/meds",
            ["generate", "--patients", "200", "--to", "meds", "-o", "out/meds"].as_slice(),
        ),
        ("out/b", ["batches", "meds", "--batch", "300", "--len", "1024", "-o", "out/b"].as_slice()),
        ("out/tensors", ["convert", "meds", "out/tensors", "--to", "meds-torch-data"].as_slice()),
        ("out/r.html", ["report", "meds", "-o", "out/r.html"].as_slice()),
    ] {
        cases.push((name, args.iter().map(|a| (*a).to_owned()).collect()));
    }
    let before = read_tree(&place.path("out"));
    for (name, args) in &cases {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = on_full_disk(&place, &args);
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {err}");
        let first = err.lines().next().unwrap_or("");
        assert!(first.contains(name) && !first.contains(".serrate-"), "{args:?}: {err}");
        assert!(
            !err.contains("bug in DataFusion") && !first.contains("External"),
            "{args:?}: {err}"
        );
        assert!(err.contains("too large") || err.contains("disk may be full"), "{args:?}: {err}");
        assert!(read_tree(&place.path("out")) == before, "{args:?}: the folder has changed");
    }
}

/// Joins that form 10^9 or more pairs of one batch and return no rows for minutes.
#[cfg(unix)]
const SILENT: [&str; 4] = [
    "SELECT count(*) FROM t a JOIN t b ON a.v % 1 = b.v % 1 AND a.v + b.v < 0",
    "SELECT count(*) FROM t a JOIN t b ON a.v + b.v < 0",
    "SELECT count(*) FROM t a WHERE a.v % 1 IN (SELECT v % 1 FROM t)",
    "SELECT count(*) FROM t a LEFT JOIN t b ON a.v % 1 = b.v % 1 AND a.v + b.v < 0",
];

#[cfg(unix)]
#[test]
fn one_interrupt_ends_joins_that_return_no_rows_for_minutes() {
    let place = Place::new();
    for join in SILENT {
        let mut child = spawn_command(&place, &["-i", "-f", "csv"]);
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "CREATE TABLE t AS SELECT value AS v FROM generate_series(1, 150000);")
            .unwrap();
        writeln!(input, "{join};").unwrap();
        writeln!(input, "SELECT max(v) AS last FROM t;").unwrap();
        drop(input);
        wait_for_work(&child, Duration::from_secs(3));
        assert!(
            child.try_wait().unwrap().is_none(),
            "{join}: ended before the signal; the join needs more rows"
        );
        let start = Instant::now();
        send_signal(&child, "-INT");
        let output = child.wait_with_output().unwrap();
        let took = start.elapsed();
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        // After the interrupt, the next statement of the script runs; the ended join occupies no
        // threads.
        assert!(
            err.contains("interrupted") && out.contains("last\n150000\n"),
            "{join}: {out} {err}"
        );
        assert!(took < Duration::from_secs(5), "{join}: {took:?}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_process_during_a_call_of_a_kernel() {
    let place = Place::new();
    // A call of a kernel on one batch cannot be interrupted, neither at execution nor at planning,
    // where constants are evaluated. The process ends without it.
    for slow in [
        "SELECT sum(ragged_sum(ragged_sort(ragged_pad(x, [25000000])))) FROM (SELECT [random()] AS x FROM generate_series(1, 8))",
        "SELECT ragged_sum(ragged_sort(ragged_pad([3.0, 1.0], [120000000])))",
    ] {
        let mut child = spawn_command(&place, &["-c", slow]);
        std::thread::sleep(Duration::from_millis(1500));
        assert!(
            child.try_wait().unwrap().is_none(),
            "{slow}: ended before the signal; the statement needs more rows"
        );
        let start = Instant::now();
        send_signal(&child, "-INT");
        assert_eq!(child.wait().unwrap().code(), Some(130), "{slow}");
        assert!(start.elapsed() < Duration::from_millis(1800), "{slow}: {:?}", start.elapsed());
    }
}

/// Flips each bit of small files in turn if `SERRATE_DAMAGE_ALL` is set, otherwise every 29th. A
/// query of such a file returns rows or fails with an error, within limits of time and memory.
#[cfg(target_os = "linux")]
#[test]
fn files_with_a_flipped_bit_give_rows_or_an_error_in_little_time_and_memory() {
    let place = Place::new();
    for ending in ["arrow", "parquet", "nrt", "ndjson"] {
        let rows = "SELECT value AS id, [value, 1] AS x FROM generate_series(1, 2)";
        place.ok(&["-c", &format!("COPY ({rows}) TO 'f.{ending}'")]);
    }
    let streamed =
        place.command().args(["-c", "SELECT 1 AS id, [1, 2] AS x", "-f", "arrow"]).output();
    place.file("g.arrow", streamed.unwrap().stdout);
    fs::copy(Path::new(&data_path("tiny-dok")).join("m.safetensors"), place.path("f.safetensors"))
        .unwrap();
    for name in ["f.arrow", "g.arrow", "f.parquet", "f.nrt", "f.ndjson", "f.safetensors"] {
        let good = fs::read(place.path(name)).unwrap();
        let mut script = String::new();
        fs::create_dir(place.path("bad")).unwrap();
        // 29 is odd, so that the samples cover all eight positions of a bit in its byte.
        let step = if std::env::var_os("SERRATE_DAMAGE_ALL").is_some() { 1 } else { 29 };
        for at in (0..good.len() * 8).step_by(step) {
            let mut bad = good.clone();
            bad[at / 8] ^= 1 << (at % 8);
            let file = format!("bad/{at}.{name}");
            place.file(&file, bad);
            script.push_str(&format!("SELECT * FROM '{file}';\n"));
        }
        script.push_str("SELECT 'reached' AS the_end;\n");
        place.file("flips.sql", &script);
        let statements = script.lines().count();
        // The limit of CPU time allows for the start of the process and a tenth of a second per
        // statement. Allocating gigabytes would take seconds. At the limit, the process is killed.
        let seconds = 2 + statements / 10;
        let limits = format!("ulimit -v 4000000 -t {seconds}; exec \"$0\" -i -f csv < flips.sql");
        let own = place.command();
        let output = Command::new("bash")
            .args(["-c", &limits])
            .arg(own.get_program())
            .current_dir(place.0.path())
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && out.ends_with("the_end\nreached\n"),
            "{name}: {:?} after at most {seconds} s for {statements} statements: {err}",
            output.status
        );
        assert!(
            !err.contains("bug in DataFusion") && !err.contains("internal error at"),
            "{name}: {err}"
        );
        fs::remove_dir_all(place.path("bad")).unwrap();
    }
}

/// Returns copies of a file with one changed byte, and its prefixes: of every byte if
/// `SERRATE_DAMAGE_ALL` is set, otherwise of every `sampled`th.
#[cfg(unix)]
fn damage_bytes(good: &[u8], sampled: usize) -> Vec<Vec<u8>> {
    let step = if std::env::var_os("SERRATE_DAMAGE_ALL").is_some() { 1 } else { sampled };
    let mut all = Vec::new();
    for at in (0..good.len()).step_by(step) {
        for flip in [0xff, 1 << (at % 8)] {
            let mut bytes = good.to_vec();
            bytes[at] ^= flip;
            all.push(bytes);
        }
        all.push(good[..at].to_vec());
    }
    all
}

/// Converts a damaged file or folder to `target`. The conversion must succeed, or fail with an
/// error that contains `part` and leave no `target`.
#[cfg(unix)]
fn convert_damaged(place: &Place, args: &[&str], part: &str, target: &str) {
    let output = place.command().arg("convert").args(args).arg(target).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => {}
        Some(1) => {
            assert!(err.contains(part), "{args:?}: {part:?} is not in {err}");
            assert!(!err.contains("internal error") && !err.contains("bug in"), "{args:?}: {err}");
            assert!(!place.exists(target), "{args:?}: {target} was written");
        }
        code => panic!("{args:?}: exit code {code:?}: {err}"),
    }
    let written = place.path(target);
    let removed =
        if written.is_dir() { fs::remove_dir_all(written) } else { fs::remove_file(written) };
    assert_eq!(removed.is_ok(), output.status.success(), "{args:?}: {err}");
}

#[cfg(unix)]
#[test]
fn damaged_files_are_errors_of_convert() {
    let place = Place::new();
    for (ending, target) in [
        ("nrt", "x.parquet"),
        ("parquet", "x.ndjson"),
        ("arrow", "x.ndjson"),
        ("json", "x.parquet"),
        ("ndjson", "x.parquet"),
    ] {
        let rows = "SELECT value AS id, [value, 1] AS x FROM generate_series(1, 3)";
        let good = format!("good.{ending}");
        place.ok(&["-c", &format!("COPY ({rows}) TO '{good}'")]);
        for bytes in damage_bytes(&fs::read(place.path(&good)).unwrap(), 193) {
            let file = format!("bad.{ending}");
            place.file(&file, bytes);
            convert_damaged(&place, &[&file], &file, target);
        }
    }
    let names = ["data/train/0.parquet", "metadata/codes.parquet"];
    for damaged in names {
        let read = |name: &str| fs::read(data_path(&format!("tiny-meds/{name}"))).unwrap();
        for bytes in damage_bytes(&read(damaged), 421) {
            for name in names {
                fs::create_dir_all(place.path(&format!("meds/{name}")).parent().unwrap()).unwrap();
                place.file(&format!("meds/{name}"), read(name));
            }
            place.file(&format!("meds/{damaged}"), bytes);
            convert_damaged(&place, &["meds", "--to", "meds-torch-data"], "meds", "tensors");
        }
    }
}

/// Sends the signal `name` to a process, waits for its end, and returns its exit code and the time
/// that it took to end.
#[cfg(unix)]
fn end_process(child: &mut Child, name: &str) -> (Option<i32>, Duration) {
    let start = Instant::now();
    send_signal(child, name);
    let code = child.wait().unwrap().code();
    (code, start.elapsed())
}

#[cfg(unix)]
#[test]
fn terminated_writers_leave_nothing() {
    let place = Place::new();
    let endless = "SELECT value AS id, [value, 1] AS x FROM generate_series(0, 100000000000)";
    place.ok(&["generate", "--patients", "40", "--to", "meds", "-o", "meds"]);
    place.ok(&["-c", "COPY (SELECT value AS id, [value] AS x FROM generate_series(1, 1000000)) TO 'large.parquet'"]);
    let mut cases: Vec<Vec<String>> = Vec::new();
    for ending in ["csv", "ndjson", "arrow", "parquet", "nrt"] {
        let copy = format!("COPY ({endless}) TO 'out/x.{ending}'");
        cases.push(vec!["-c".into(), copy]);
    }
    for args in [
        ["-c", endless, "-o", "out/x.csv"].as_slice(),
        &["convert", "large.parquet", "out/x.nrt"],
        &["convert", "large.parquet", "out/x.ndjson"],
        &["generate", "--patients", "5000000", "-o", "out/x.nrt"],
        &["generate", "--patients", "5000000", "--to", "meds", "-o", "out/meds"],
        &["batches", "meds", "--batch", "4", "--len", "64", "--epochs", "100000", "-o", "out/b"],
    ] {
        cases.push(args.iter().map(|a| (*a).to_owned()).collect());
    }
    for (i, args) in cases.iter().enumerate() {
        fs::create_dir_all(place.path("out")).unwrap();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut child = spawn_command(&place, &args);
        let is_temporary = |n: &String| n.starts_with(".serrate-");
        wait_until(&format!("a temporary file of {args:?}"), || {
            let at = |folder: &str| list_names(&place.path(folder)).iter().any(is_temporary);
            at("out") || at("") || child.try_wait().unwrap().is_some()
        });
        std::thread::sleep(Duration::from_millis(100));
        let (name, expected) = if i % 2 == 0 { ("-TERM", 143) } else { ("-INT", 130) };
        let (code, time) = end_process(&mut child, name);
        assert_eq!(code, Some(expected), "{args:?}");
        assert!(time < Duration::from_millis(1200), "{args:?} {name}: {time:?}");
        assert_eq!(list_names(&place.path("out")), Vec::<String>::new(), "{args:?}");
        assert!(!list_names(place.0.path()).iter().any(is_temporary), "{args:?}");
    }
}

/// Commands that only read end as fast as writers, and leave no spilled rows.
#[cfg(unix)]
#[test]
fn terminated_readers_leave_nothing() {
    let place = Place::new();
    fs::create_dir(place.path("tmp")).unwrap();
    // `check` and `inspect` must still run when the signal comes. A development build is slower and
    // needs fewer patients for that.
    let patients = if cfg!(debug_assertions) { "600" } else { "4000" };
    place.ok(&["generate", "--patients", patients, "--to", "meds", "-o", "meds"]);
    let sort = "SET datafusion.execution.target_partitions = 1; SET serrate.memory_limit = '12MB'; \
        SET datafusion.execution.sort_spill_reservation_bytes = 1000000; \
        SELECT value, repeat('x', 200) AS s FROM generate_series(1, 200000000) ORDER BY value % 1000003, value";
    for (args, spills) in [
        (vec!["-c", sort], true),
        (vec!["check", "meds"], false),
        (vec!["inspect", "meds"], false),
        (vec!["-c", "SELECT count(*) FROM generate_series(1, 100000000000)"], false),
    ] {
        let mut command = place.command();
        command.args(&args).env("TMPDIR", place.path("tmp"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        if spills {
            wait_until("a spilled file", || {
                let folders = fs::read_dir(place.path("tmp")).unwrap();
                folders
                    .flatten()
                    .any(|f| fs::read_dir(f.path()).is_ok_and(|mut e| e.next().is_some()))
            });
        } else {
            std::thread::sleep(Duration::from_millis(400));
        }
        assert!(child.try_wait().unwrap().is_none(), "{args:?}");
        let (code, time) = end_process(&mut child, "-TERM");
        assert_eq!(code, Some(143), "{args:?}");
        assert!(time < Duration::from_millis(1200), "{args:?}: {time:?}");
        assert_eq!(list_names(&place.path("tmp")), Vec::<String>::new(), "{args:?}");
    }
}
