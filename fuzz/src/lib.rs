//! Helpers of all fuzz targets: the memory limit, checks of tables, and temporary files.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::Ordering;

use arrow::array::{Array, RecordBatch};
use arrow::util::display::array_value_to_string;
use serrate::table::RaggedTable;

use counting::{LIMIT, LIVE};

#[path = "../../tests/common/counting.rs"]
mod counting;
pub mod rows;
pub mod targets;

/// Number of bytes that a reader may allocate for any length of its input, for buffers of fixed
/// sizes.
pub const FIXED: usize = 128 << 10;

/// Number of bytes that a reader of encoded or compressed files may allocate for any length of its
/// input, because a valid file may encode any number of equal values in a few bytes.
pub const ENCODED: usize = 256 << 20;

/// Runs a reader of `data`, and ends the process when the reader allocates more bytes than `fixed`
/// plus 16 times the length of `data`.
pub fn read_within<T>(data: &[u8], fixed: usize, read: impl FnOnce() -> T) -> T {
    leave_contained_panics();
    let most = 16 * data.len() + fixed;
    LIMIT.store(LIVE.load(Ordering::Relaxed) + most, Ordering::Relaxed);
    let read = read();
    LIMIT.store(usize::MAX, Ordering::Relaxed);
    read
}

/// Installs a panic hook that lets panics of other crates unwind, because the readers of this
/// project convert them to errors. Panics of this project end the process in the hook of libFuzzer.
/// So do panics that nothing catches.
pub fn leave_contained_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let end = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.location().is_some_and(|at| at.file().contains("/registry/")) {
                end(info);
            }
        }));
    });
}

/// Panics if an offset, length or value of an array is invalid.
pub fn check_array(array: &dyn Array) {
    array.to_data().validate_full().unwrap_or_else(|e| panic!("invalid array: {e}"));
    for row in 0..array.len().min(64) {
        let _ = array_value_to_string(array, row);
    }
}

/// Panics if a column of a batch is invalid.
pub fn check_batch(batch: &RecordBatch) {
    for column in batch.columns() {
        assert_eq!(column.len(), batch.num_rows());
        check_array(column);
    }
}

/// Panics if a column of a table is invalid: it must have as many values as its axis has elements,
/// and valid lists.
pub fn check_table(table: &RaggedTable) {
    for column in table.columns() {
        assert!(table.axis_len(column.axis()).is_ok_and(|len| len == column.values().len()));
        check_array(column.values());
        let array = table.array(column.name()).unwrap_or_else(|e| panic!("{e}"));
        if let Ok(array) = array.to_arrow() {
            assert_eq!(array.len(), table.num_rows());
            check_array(&array);
        }
    }
    for row in 0..table.num_rows().min(8) {
        let row = table.row(row).unwrap_or_else(|e| panic!("{e}"));
        for column in table.columns() {
            row.values(column.name()).unwrap_or_else(|e| panic!("{e}"));
        }
    }
    let _ = table.to_string();
}

/// Returns a folder of this process, for files of readers that take paths.
pub fn folder() -> PathBuf {
    thread_local!(static FOLDER: OnceCell<PathBuf> = const { OnceCell::new() });
    FOLDER.with(|folder| {
        let made = || {
            let path = std::env::temp_dir().join(format!("serrate-fuzz-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            path
        };
        folder.get_or_init(made).clone()
    })
}

/// Writes a file in [`folder`], and returns its path.
pub fn place_file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder().join(name);
    let parent = path.parent().unwrap_or_else(|| Path::new("."));
    let write = || fs::create_dir_all(parent).and_then(|()| fs::write(&path, bytes));
    write().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    path
}
