//! Decodes columns of nested lists of fixed-width values directly from the pages of a Parquet file.
//!
//! The `parquet` crate's reader supports all types, but processes one level and one value at a
//! time. Ragged tables are mostly lists of numbers; this module decodes 64 levels at a time.

mod bitmap;
mod column_cursor;
mod column_shape;
mod columns_reader;
mod delta;
mod hybrid;
mod level_window;
mod list_builder;
mod page_values;
mod pages;
mod stream;

use std::ops::Range;
use std::path::Path;

use arrow::array::ArrayRef;
use arrow::datatypes::Field;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::ChunkReader;

use column_shape::ColumnShape;
pub(super) use columns_reader::ColumnsReader;
use pages::ColumnChunk;

use crate::error::{Error, Result};

pub use pages::ListsFile;
pub use stream::{ColumnReader, is_indexed};

/// The parts of a column that are decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DecodedParts {
    /// Lists and values.
    #[default]
    Values,
    /// Lists and validity, for callers that only count. The values are not decoded; the result has
    /// zeros in their place.
    Lists,
}

/// Returns whether [`read_column`] can read the top-level column `root` of a file. `field` is the
/// Arrow field that the `parquet` crate derives for the column.
///
/// The decoder supports columns with 0 to 7 levels of `List` or `LargeList` whose values are
/// booleans, integers, floats, dates, times, timestamps or durations. All row groups must use only
/// the encodings PLAIN, dictionary, RLE, DELTA_BINARY_PACKED and BYTE_STREAM_SPLIT.
pub fn is_supported(metadata: &ParquetMetaData, root: usize, field: &Field) -> bool {
    ColumnShape::new(metadata, root, field).is_some()
}

/// Reads rows `rows` of row group `group`, column `root`, as one array of the type of `field`,
/// equal to the result of the `parquet` crate's reader.
///
/// Decodes only the levels of the pages before `rows`, to find where `rows` begin. With an offset
/// index in the footer, does not even read these pages. Does not read pages after `rows`.
///
/// ```
/// # use serrate_core as serrate;
/// # #[cfg(feature = "generate")] {
/// use std::{fs::File, path::Path, sync::Arc};
/// use arrow::array::Array;
/// use parquet::arrow::arrow_reader::ArrowReaderMetadata;
/// use serrate::io::parquet::lists::{DecodedParts, ListsFile, read_column, is_supported};
/// use serrate::io::parquet as io;
///
/// let table = serrate::generate::mimic_table(9, 1)?;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("t.parquet");
/// io::write(&path, &table, &Default::default())?;
///
/// let reader = Arc::new(File::open(&path)?);
/// let metadata = ArrowReaderMetadata::load(reader.as_ref(), Default::default())?;
/// let source = ListsFile { name: Path::new(&path), reader: &reader, metadata: metadata.metadata() };
/// let (root, field) = metadata.schema().fields().find("numeric_value").expect("a column");
/// assert!(is_supported(metadata.metadata(), root, field));
/// let lists = read_column(&source, 0, root, field, 2..7, DecodedParts::Lists)?;
/// assert_eq!((lists.len(), lists.data_type()), (5, field.data_type()));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the column is not [`is_supported`], the rows are outside the row group, or the file is
/// damaged.
pub fn read_column<R: ChunkReader + 'static>(
    source: &ListsFile<'_, R>,
    group: usize,
    root: usize,
    field: &Field,
    rows: Range<usize>,
    parts: DecodedParts,
) -> Result<ArrayRef> {
    let count = rows.len();
    ColumnReader::open(source, group, root, field, rows, parts)?.read(count)
}

/// Returns the ascending byte ranges that [`read_column`] reads: with an offset index in the
/// footer, the dictionary of the column and the pages with the rows; otherwise the whole chunk of
/// the column.
///
/// # Errors
/// If the row group or column does not exist, or an offset in the footer is invalid.
pub fn ranges(
    file: &Path,
    metadata: &ParquetMetaData,
    group: usize,
    root: usize,
    rows: Range<usize>,
) -> Result<Vec<Range<u64>>> {
    let schema = metadata.file_metadata().schema_descr();
    let column = (0..schema.num_columns()).find(|i| schema.get_column_root_idx(*i) == root);
    let chunk = ColumnChunk::new(file, metadata, group, column.unwrap_or(usize::MAX))?;
    chunk.check_rows(&rows)?;
    Ok(chunk.list_byte_ranges(&rows))
}

fn make_unsupported_column_error<R>(source: &ListsFile<'_, R>, field: &Field) -> Error {
    Error::file(
        source.name,
        format!(
            "column {:?} of type {} cannot be read by the list decoder, which reads only the types and encodings in the documentation of `lists::is_supported`; read it with the `parquet` crate",
            field.name(),
            field.data_type()
        ),
    )
}
