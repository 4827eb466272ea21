//! Columns of lists around values of fixed width, straight from the pages of a Parquet file.
//!
//! The reader of the `parquet` crate serves every column there is, level by level and value by value.
//! Lists of numbers are most of what ragged tables hold, and their levels follow a pattern: 64 of
//! them are looked at together here.

mod shape;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::Field;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::ChunkReader;

use shape::Shape;

use crate::error::{Error, Result};

/// An open Parquet file.
#[derive(Debug)]
pub struct Source<'a, R> {
    /// Its name in errors.
    pub name: &'a Path,
    /// Its bytes: of a local file, in memory, or ranges that were fetched before (see [`ranges`]).
    pub reader: &'a Arc<R>,
    /// Its footer; with an offset index in it, only pages with rows asked for are read.
    pub metadata: &'a ParquetMetaData,
}

/// What is made of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Parts {
    /// Lists and values.
    #[default]
    Values,
    /// Lists, nulls of lists and nulls of values; the values themselves are zeros that nothing was
    /// spent on. An array of the same type, for whoever counts.
    Lists,
}

/// Whether the top-level column `root` of a file is one that [`read_column`] reads as the type of
/// `field`, the field that the `parquet` crate gives it.
///
/// Those are `List` and `LargeList` of any depth up to 7, or none, around booleans, integers, floats,
/// dates, times, timestamps and durations.
pub fn supported(metadata: &ParquetMetaData, root: usize, field: &Field) -> bool {
    Shape::new(metadata, root, field).is_some()
}

/// Rows `rows` of row group `group`, column `root`, as one array of exactly the type of `field`: what
/// the reader of the `parquet` crate makes of them.
///
/// # Errors
/// A column that is not [`supported`], rows outside the row group, a damaged file.
pub fn read_column<R: ChunkReader + 'static>(
    source: &Source<'_, R>,
    group: usize,
    root: usize,
    field: &Field,
    rows: Range<usize>,
    parts: Parts,
) -> Result<ArrayRef> {
    let _ = (Shape::new(source.metadata, root, field), parts);
    stock::read_column(source, group, root, rows)
}

/// Ranges of bytes, ascending, that [`read_column`] reads of a file: the whole chunk of the column, or,
/// where the footer has an offset index, its dictionary and the pages with those rows.
///
/// # Errors
/// No such row group or column, and places that lie outside any file.
pub fn ranges(
    source: &Path,
    metadata: &ParquetMetaData,
    group: usize,
    root: usize,
    rows: Range<usize>,
) -> Result<Vec<Range<u64>>> {
    let _ = rows;
    let schema = metadata.file_metadata().schema_descr();
    let column = (0..schema.num_columns()).find(|i| schema.get_column_root_idx(*i) == root);
    let chunk = column.and_then(|c| metadata.row_groups().get(group)?.columns().get(c));
    let Some(chunk) = chunk else {
        return Err(Error::file(source, format!("no column {root} in row group {group}")));
    };
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let start = u64::try_from(start).ok();
    let end = start.zip(u64::try_from(chunk.compressed_size()).ok());
    let end = end.and_then(|(start, size)| Some(start..start.checked_add(size)?));
    match end {
        Some(range) => Ok(vec![range]),
        None => Err(Error::file(source, "a column chunk outside the file")),
    }
}

mod stock {
    use parquet::arrow::ProjectionMask;
    use parquet::arrow::arrow_reader::{
        ArrowReaderMetadata, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
    };
    use parquet::file::reader::Length;

    use super::*;

    struct Shared<R>(Arc<R>);

    impl<R: ChunkReader> Length for Shared<R> {
        fn len(&self) -> u64 {
            self.0.len()
        }
    }

    impl<R: ChunkReader> ChunkReader for Shared<R> {
        type T = R::T;

        fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
            self.0.get_read(start)
        }

        fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<bytes::Bytes> {
            self.0.get_bytes(start, length)
        }
    }

    pub(super) fn read_column<R: ChunkReader + 'static>(
        source: &Source<'_, R>,
        group: usize,
        root: usize,
        rows: Range<usize>,
    ) -> Result<ArrayRef> {
        let metadata =
            ArrowReaderMetadata::try_new(Arc::new(source.metadata.clone()), Default::default())?;
        let mask = ProjectionMask::roots(metadata.parquet_schema(), [root]);
        let selection = RowSelection::from(vec![
            RowSelector::skip(rows.start),
            RowSelector::select(rows.len()),
        ]);
        let mut reader = ParquetRecordBatchReaderBuilder::new_with_metadata(
            Shared(Arc::clone(source.reader)),
            metadata,
        )
        .with_projection(mask)
        .with_row_groups(vec![group])
        .with_batch_size(rows.len().max(1))
        .with_row_selection(selection)
        .build()?;
        match reader.next() {
            Some(batch) => Ok(Arc::clone(batch?.column(0))),
            None => Err(Error::file(source.name, format!("no row group {group}"))),
        }
    }
}
