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
