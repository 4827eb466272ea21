//! Writes the table of a file as `.nrt` and reads it again. Both tables must be equal.

use crate::{FIXED, folder, read_within};
use serrate::io::nrt::{self, NrtFile, ReadOptions, WriteOptions};
use serrate::table::NanComparison;

pub fn run(data: &[u8]) {
    let open = || NrtFile::from_bytes("f", data.to_vec().into());
    let Ok(file) = read_within(data, FIXED, open) else { return };
    let Ok(table) = read_within(data, FIXED, || file.table()) else { return };
    let path = folder().join("written.nrt");
    let options = WriteOptions { overwrite: true, ..WriteOptions::default() };
    if nrt::write(&path, &table, &options).is_err() {
        // The format does not support some names, and tables without lists.
        return;
    }
    let read = NrtFile::open(&path, &ReadOptions::default()).and_then(|f| f.table());
    let read = read.unwrap_or_else(|e| panic!("{e}"));
    assert!(read.equals(&table, NanComparison::Equal).is_ok_and(|same| same), "{read} {table}");
}
