//! Runs the `serrate` command as users run it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "cli/batches.rs"]
mod batches;
#[path = "cli/cohort.rs"]
mod cohort;
#[path = "cli/confine.rs"]
mod confine;
#[path = "cli/convert.rs"]
mod convert;
#[path = "cli/dates.rs"]
mod dates;
#[cfg(target_os = "linux")]
#[path = "cli/ended.rs"]
mod ended;
#[path = "cli/features.rs"]
mod features;
#[cfg(unix)]
#[path = "cli/guide.rs"]
mod guide;
#[path = "cli/inspect.rs"]
mod inspect;
#[path = "cli/layouts.rs"]
mod layouts;
#[path = "cli/meds.rs"]
mod meds;
#[cfg(target_os = "linux")]
#[path = "cli/memory.rs"]
mod memory;
#[path = "cli/processes.rs"]
mod processes;
#[path = "cli/report.rs"]
mod report;
#[path = "cli/results.rs"]
mod results;
#[path = "cli/scripts.rs"]
mod scripts;
#[cfg(target_os = "linux")]
#[path = "cli/terminal.rs"]
mod terminal;

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
use serrate::io::safetensors::{FileAccess, dense};
use serrate::table::RaggedTable;
use tempfile::TempDir;

/// A temporary folder in which the tests run the command.
struct Place(TempDir);

/// Exit code and output of a run of the command.
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
        command.env("LOCALAPPDATA", self.path("state")).env("LC_ALL", "C.UTF-8");
        command.env_remove("COLUMNS").env_remove("RUST_BACKTRACE");
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
        // A command that fails at once does not read its input, so that writing to it may fail.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        Said {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs the command, which must succeed, and returns its standard output.
    fn ok(&self, args: &[&str]) -> String {
        let said = self.run(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.err);
        said.out
    }

    /// Runs the command, which must end with the exit code `code` without a panic, and returns its
    /// standard error.
    fn fails(&self, code: i32, args: &[&str]) -> String {
        let said = self.run(args);
        assert_eq!(said.code, code, "{args:?}: {}{}", said.out, said.err);
        assert!(!said.err.contains("backtrace") && !said.err.contains("panicked"), "{}", said.err);
        said.err
    }

    /// Writes an `.nrt` file of three patients. Lists of axis 1 have the lengths 2, 0 and 1, those
    /// of axis 2 the lengths 3, 0 and 2.
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

/// Returns the path of the file or folder `name` in `tests/data`.
fn data_path(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}
