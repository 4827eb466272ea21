//! Parquet files: reading the whole file, and some of its columns and rows, returns an error or
//! valid tables.

use crate::rows::as_parquet;
use crate::{ENCODED, check_batch, check_table, place_file, read_within};
use serrate::io::parquet::{ParquetReadOptions, ParquetTableReader};
use serrate::table::RaggedTable;

pub fn run(data: &[u8]) {
    let Some(data) = as_parquet(data, &["a", "b", "c", "d"]) else { return };
    let path = place_file("f.parquet", &data);
    let open = |options: &ParquetReadOptions| {
        read_within(&data, ENCODED, || ParquetTableReader::open(&path, options))
    };
    let Ok(reader) = open(&ParquetReadOptions::default()) else { return };
    let rows = reader.file_rows();
    if rows > 1 << 20 {
        return;
    }
    for rows in [None, Some(rows / 3..rows - rows / 3)] {
        let options = ParquetReadOptions { rows, chunk_leaves: 64, ..Default::default() };
        let Ok(mut reader) = open(&options) else { continue };
        let expected = reader.rows().len();
        let mut found = 0;
        let whole = loop {
            match read_within(&data, ENCODED, || reader.next_batch()) {
                None => break true,
                Some(Err(_)) => break false,
                Some(Ok(batch)) => {
                    check_batch(&batch);
                    found += batch.num_rows();
                    if let Ok(table) = RaggedTable::try_from_batch(&batch) {
                        check_table(&table);
                    }
                }
            }
        };
        assert!(!whole || found == expected, "{found} of {expected} rows");
    }
}
