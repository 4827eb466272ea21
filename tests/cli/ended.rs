//! Processes that end during a write to a folder or a read of a mapped file.

use std::io::BufRead;
use std::os::unix::process::ExitStatusExt;

use super::processes::{list_names, send_signal, spawn_command, wait_until};
use super::*;

#[test]
fn the_next_writer_to_a_folder_removes_files_of_a_killed_one() {
    let place = Place::new();
    fs::create_dir(place.path("x")).unwrap();
    let endless = "COPY (SELECT value AS a FROM generate_series(0, 100000000000)) TO 'x/'";
    let mut child = spawn_command(&place, &["-c", &format!("{endless} STORED AS CSV")]);
    wait_until("a temporary file", || {
        list_names(&place.path("x")).iter().any(|name| name.ends_with(".tmp"))
    });
    send_signal(&child, "-KILL");
    child.wait().unwrap();
    let left = list_names(&place.path("x"));
    assert!(left.iter().all(|name| name.starts_with(".serrate-")), "{left:?}");
    place.ok(&["-c", "COPY (SELECT 1 AS a) TO 'x/' STORED AS CSV"]);
    let names = list_names(&place.path("x"));
    assert!(names.len() == 1 && names[0].ends_with(".csv"), "{names:?}");
}

#[test]
fn a_query_of_a_folder_completes_the_renames_of_a_killed_writer() {
    let place = Place::new();
    let count = "SELECT sum(a) AS s FROM 'x/'";
    let leave_commit = |value: u8| {
        // The writer was killed after it had recorded its commit, before the rename of the file.
        fs::create_dir_all(place.path("x/.serrate-a.tmp")).unwrap();
        fs::write(place.path("x/.serrate-a.lock"), "\"Spread\"").unwrap();
        fs::write(place.path("x/.serrate-a.tmp/b.csv"), format!("a\n{value}\n")).unwrap();
    };
    leave_commit(2);
    place.file("x/a.csv", "a\n1\n").file("x/b.csv", "a\n10\n");
    let err = place.fails(1, &["--read-only", "-c", count]);
    assert!(err.contains("an earlier process was interrupted"), "{err}");
    for (value, pattern) in [(2, "x/"), (3, "x/*.csv")] {
        leave_commit(value);
        let statement = format!("SELECT 40 + sum(a) AS s FROM '{pattern}'");
        let out = place.ok(&["-f", "csv", "-c", &statement]);
        assert!(out.contains(&format!("{}", 41 + value)), "{out}");
        assert_eq!(list_names(&place.path("x")), ["a.csv", "b.csv"]);
    }
    // The object store refuses files with such a name.
    fs::create_dir(place.path("x#1")).unwrap();
    place.file("x#1/a.csv", "a\n42\n");
    let out = place.ok(&["-f", "csv", "-c", "SELECT sum(a) AS s FROM 'x#1/'"]);
    assert!(out.contains("42"), "{out}");
}

#[test]
fn a_mapped_file_that_is_cut_ends_the_process_with_the_cause() {
    let place = Place::new();
    for (mmap, ends) in [("true", true), ("false", false)] {
        let rows = "SELECT value AS id FROM generate_series(1, 100000)";
        place.ok(&["-c", &format!("COPY ({rows}) TO 'cut-{mmap}.nrt'")]);
        let mut child = spawn_command(&place, &["-i", "-f", "csv"]);
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        writeln!(input, "SET serrate.mmap = {mmap};").unwrap();
        // The table has views of the map.
        writeln!(input, "CREATE TABLE t AS SELECT * FROM 'cut-{mmap}.nrt';").unwrap();
        writeln!(input, "SELECT 40 + 2 AS a;").unwrap();
        let mut line = String::new();
        while line.trim() != "42" {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "the shell has ended");
        }
        let file = fs::OpenOptions::new().write(true).open(place.path(&format!("cut-{mmap}.nrt")));
        file.unwrap().set_len(4096).unwrap();
        // The shell may have ended before it reads the statement.
        let _ = writeln!(input, "SELECT sum(id) AS s FROM t;");
        drop(input);
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        let ended = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&ended.stderr);
        if ends {
            assert_eq!(ended.status.signal(), Some(7), "{err}");
            assert!(err.contains("serrate.mmap = false"), "{err}");
        } else {
            assert!(ended.status.success() && rest.contains("5000050000"), "{rest} {err}");
        }
    }
}
