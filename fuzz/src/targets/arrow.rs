//! Arrow IPC files and streams: the reader returns an error or valid batches. It accepts the same
//! bytes from a mapped file, from a file without mapping and from a pipe.

use std::io::Cursor;

use crate::{ENCODED, check_batch, check_table, place_file, read_within};
use arrow::array::RecordBatch;
use serrate::Result;
use serrate::io::arrow_ipc::{IpcReadOptions, IpcTableReader};
use serrate::table::RaggedTable;

fn read_batches(reader: Result<IpcTableReader>) -> Result<Vec<RecordBatch>> {
    let mut reader = reader?;
    std::iter::from_fn(|| reader.next_batch()).collect()
}

pub fn run(data: &[u8]) {
    let path = place_file("f.arrow", data);
    let mut read = Vec::new();
    for mmap in [false, true] {
        let options = IpcReadOptions { mmap, ..IpcReadOptions::default() };
        let found =
            read_within(data, ENCODED, || read_batches(IpcTableReader::open(&path, &options)));
        for batch in found.iter().flatten() {
            check_batch(batch);
            let table = RaggedTable::try_from_batch(batch);
            if let Ok(table) = table {
                check_table(&table);
            }
        }
        read.push(found.ok());
    }
    assert_eq!(read[0].is_some(), read[1].is_some(), "mapped and read");
    if !data.starts_with(b"ARROW1") {
        let pipe = Cursor::new(data.to_vec());
        let options = IpcReadOptions::default();
        let piped = || read_batches(IpcTableReader::from_stream(pipe, "pipe", &options));
        let piped = read_within(data, ENCODED, piped).ok();
        assert_eq!(piped.is_some(), read[0].is_some(), "piped and read");
    }
}
