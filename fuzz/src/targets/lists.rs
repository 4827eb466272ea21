//! Columns of lists in Parquet files: for any bytes, the reader returns an error or the array that
//! the `parquet` crate returns.

use std::cell::LazyCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use crate::{ENCODED, check_array, read_within};
use arrow::array::{Array, ArrayRef, AsArray};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::PageIndexPolicy;
use serrate::io::parquet::lists::{DecodedParts, ListsFile, is_supported, ranges, read_column};

/// Maximum number of values of a column chunk that is read, because a few bytes may encode any
/// number of equal values.
const LARGEST: i64 = 1 << 20;

pub fn run(data: &[u8]) {
    let reader = Arc::new(Bytes::copy_from_slice(data));
    for policy in [PageIndexPolicy::Skip, PageIndexPolicy::Optional] {
        let options = ArrowReaderOptions::new().with_page_index_policy(policy);
        let load = || {
            catch_unwind(AssertUnwindSafe(|| ArrowReaderMetadata::load(reader.as_ref(), options)))
        };
        let Ok(Ok(metadata)) = read_within(data, ENCODED, load) else { return };
        let parquet = metadata.metadata();
        let name = Path::new("f");
        let source = ListsFile { name, reader: &reader, metadata: parquet };
        for (root, field) in metadata.schema().fields().iter().enumerate() {
            if !is_supported(parquet, root, field) {
                continue;
            }
            for (group, of) in parquet.row_groups().iter().enumerate() {
                let small = of.columns().iter().all(|c| c.num_values() <= LARGEST);
                let Some(rows) = usize::try_from(of.num_rows()).ok().filter(|_| small) else {
                    continue;
                };
                // The stock reader skips pages by the rows that their headers declare, which may
                // differ from their levels, so it always reads all rows.
                let stock = LazyCell::new(|| read_stock(&reader, &metadata, group, root, rows));
                for rows in [0..rows, rows / 3..rows - rows / 3] {
                    let _ = ranges(name, parquet, group, root, rows.clone());
                    let mut found = [DecodedParts::Values, DecodedParts::Lists].map(|parts| {
                        let read = || read_column(&source, group, root, field, rows.clone(), parts);
                        let array = read_within(data, ENCODED, read).ok()?;
                        assert_eq!(array.len(), rows.len());
                        assert_eq!(array.data_type(), field.data_type());
                        check_array(&array);
                        Some(array)
                    });
                    let [values, lists] = [found[0].take(), found[1].take()];
                    let Some(values) = values else { continue };
                    let lists = lists.unwrap_or_else(|| panic!("lists without values are read"));
                    assert_lists(&values, &lists);
                    if let Some(stock) = &*stock {
                        assert_eq!(&values, &stock.slice(rows.start, rows.len()));
                    }
                }
            }
        }
    }
}

/// Panics if two arrays differ in lists or nulls.
fn assert_lists(a: &ArrayRef, b: &ArrayRef) {
    assert_eq!((a.len(), a.nulls()), (b.len(), b.nulls()));
    if let (Some(a), Some(b)) = (a.as_list_opt::<i32>(), b.as_list_opt::<i32>()) {
        assert_eq!(a.value_offsets(), b.value_offsets());
        assert_lists(a.values(), b.values());
    } else if let (Some(a), Some(b)) = (a.as_list_opt::<i64>(), b.as_list_opt::<i64>()) {
        assert_eq!(a.value_offsets(), b.value_offsets());
        assert_lists(a.values(), b.values());
    }
}

/// Reads all `rows` of a column of a row group with the `parquet` crate. Returns `None` if its
/// reader returns an error or panics.
fn read_stock(
    reader: &Bytes,
    metadata: &ArrowReaderMetadata,
    group: usize,
    root: usize,
    rows: usize,
) -> Option<ArrayRef> {
    let read = || {
        let mask = ProjectionMask::roots(metadata.parquet_schema(), [root]);
        let stock =
            ParquetRecordBatchReaderBuilder::new_with_metadata(reader.clone(), metadata.clone())
                .with_row_groups(vec![group])
                .with_projection(mask)
                .with_batch_size(rows.max(1))
                .build()
                .ok()?;
        let mut arrays = Vec::new();
        for batch in stock {
            arrays.push(batch.ok()?.column(0).clone());
        }
        match arrays.as_slice() {
            [one] if one.len() == rows => Some(one.clone()),
            _ => None,
        }
    };
    catch_unwind(AssertUnwindSafe(read)).ok().flatten()
}
