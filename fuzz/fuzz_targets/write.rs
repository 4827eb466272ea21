//! What was read can be written, and reads the same again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serrate::io::nrt::{self, NrtFile, ReadOptions, WriteOptions};

fuzz_target!(|data: &[u8]| {
    let Ok(Ok(table)) = NrtFile::from_bytes("f", data.to_vec().into()).map(|f| f.table()) else {
        return;
    };
    let path = std::env::temp_dir().join(format!("serrate-fuzz-{}.nrt", std::process::id()));
    let options = WriteOptions { overwrite: true, ..WriteOptions::default() };
    if nrt::write(&path, &table, &options).is_err() {
        // Names that the format does not have, or axes of rows alone.
        return;
    }
    let read = NrtFile::open(&path, &ReadOptions::default()).and_then(|f| f.table());
    let read = read.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(read.num_rows(), table.num_rows());
    assert_eq!(read.columns().len(), table.columns().len());
});
