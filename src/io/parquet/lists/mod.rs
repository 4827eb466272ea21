//! Columns of lists around values of fixed width, straight from the pages of a Parquet file.
//!
//! The reader of the `parquet` crate serves every column there is, level by level and value by value.
//! Lists of numbers are most of what ragged tables hold, and their levels follow a pattern: 64 of
//! them are looked at together here.

mod bits;
mod columns;
mod cursor;
mod delta;
mod hybrid;
#[expect(clippy::module_inception, reason = "lists are what this file makes")]
mod lists;
mod pages;
mod shape;
mod stream;
mod values;
mod window;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::Field;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::ChunkReader;

pub(super) use columns::Columns;
use cursor::Reader;
use pages::Chunk;
use shape::Shape;

use crate::error::{Error, Result};

pub use stream::{ColumnReader, indexed};

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
/// dates, times, timestamps and durations, whose row groups name no other encodings than PLAIN,
/// dictionaries, RLE, DELTA_BINARY_PACKED and BYTE_STREAM_SPLIT.
pub fn supported(metadata: &ParquetMetaData, root: usize, field: &Field) -> bool {
    Shape::new(metadata, root, field).is_some()
}

/// Rows `rows` of row group `group`, column `root`, as one array of exactly the type of `field`: what
/// the reader of the `parquet` crate makes of them.
///
/// Pages before the rows are passed over by their levels, without decoding values, and pages after them
/// are not read; with an offset index in the footer, neither are those before.
///
/// ```
/// use std::{path::Path, sync::Arc};
/// use arrow::array::Array;
/// use parquet::arrow::arrow_reader::ArrowReaderMetadata;
/// use serrate::io::parquet::{self as io, LocalFile, lists::{Parts, Source, read_column, supported}};
///
/// let table = serrate::generate::mimic_table(9, 1)?;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("t.parquet");
/// io::write(&path, &table, &Default::default())?;
///
/// let reader = Arc::new(LocalFile::open(&path)?);
/// let metadata = ArrowReaderMetadata::load(reader.as_ref(), Default::default())?;
/// let source = Source { name: Path::new(&path), reader: &reader, metadata: metadata.metadata() };
/// let (root, field) = metadata.schema().fields().find("numeric_value").expect("a column");
/// assert!(supported(metadata.metadata(), root, field));
/// let lists = read_column(&source, 0, root, field, 2..7, Parts::Lists)?;
/// assert_eq!((lists.len(), lists.data_type()), (5, field.data_type()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    let Some(shape) = Shape::new(source.metadata, root, field) else {
        return Err(unsupported(source, field));
    };
    let mut reader = Reader::new(shape, parts);
    reader.open(source, group, &rows)?;
    let values = reader.expected(source, group, rows.len())?;
    reader.reserve(values);
    reader.append(rows.len())?;
    reader.finish(field.data_type())
}

/// Ranges of bytes, ascending, that [`read_column`] reads of a file: the whole chunk of the column, or,
/// where the footer has an offset index, its dictionary and the pages with those rows.
///
/// # Errors
/// No such row group or column, and places that lie outside any file.
pub fn ranges(
    file: &Path,
    metadata: &ParquetMetaData,
    group: usize,
    root: usize,
    rows: Range<usize>,
) -> Result<Vec<Range<u64>>> {
    let schema = metadata.file_metadata().schema_descr();
    let column = (0..schema.num_columns()).find(|i| schema.get_column_root_idx(*i) == root);
    let chunk = Chunk::new(file, metadata, group, column.unwrap_or(usize::MAX))?;
    chunk.check_rows(&rows)?;
    Ok(chunk.ranges_of(&rows))
}

/// What is said of a column that is not [`supported`].
fn unsupported<R>(source: &Source<'_, R>, field: &Field) -> Error {
    Error::file(
        source.name,
        format!(
            "column {:?} of type {} is not one of lists around values of fixed width; check `supported` first",
            field.name(),
            field.data_type()
        ),
    )
}
