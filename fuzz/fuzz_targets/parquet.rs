//! Columns of lists in Parquet files: whatever the bytes, an error or an array, never a panic.
#![no_main]

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::PageIndexPolicy;
use serrate::io::parquet::lists::{Parts, ListsFile, ranges, read_column, supported};

/// Entries and rows of a chunk; a few bytes may say that there are any number of equal ones.
const LARGEST: i64 = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let reader = Arc::new(Bytes::copy_from_slice(data));
    for policy in [PageIndexPolicy::Skip, PageIndexPolicy::Optional] {
        let options = ArrowReaderOptions::new().with_page_index_policy(policy);
        let Ok(metadata) = ArrowReaderMetadata::load(reader.as_ref(), options) else { return };
        let parquet = metadata.metadata();
        let name = Path::new("f");
        let source = ListsFile { name, reader: &reader, metadata: parquet };
        for (root, field) in metadata.schema().fields().iter().enumerate() {
            if !supported(parquet, root, field) {
                continue;
            }
            for (group, of) in parquet.row_groups().iter().enumerate() {
                let small = of.columns().iter().all(|c| c.num_values() <= LARGEST);
                let Some(rows) = usize::try_from(of.num_rows()).ok().filter(|_| small) else {
                    continue;
                };
                for rows in [0..rows, rows / 3..rows - rows / 3] {
                    let _ = ranges(name, parquet, group, root, rows.clone());
                    for parts in [Parts::Values, Parts::Lists] {
                        let read = read_column(&source, group, root, field, rows.clone(), parts);
                        if let Ok(array) = read {
                            assert_eq!(array.len(), rows.len());
                            assert_eq!(array.data_type(), field.data_type());
                        }
                    }
                }
            }
        }
    }
});
