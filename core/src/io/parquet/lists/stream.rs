use std::fmt;
use std::ops::Range;

use arrow::array::ArrayRef;
use arrow::datatypes::Field;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::ChunkReader;

use super::column_cursor::RowReader;
use super::column_shape::ColumnShape;
use super::{DecodedParts, ListsFile, make_unsupported_column_error};
use crate::error::{Error, Result};

/// Reads rows of one column of a row group in several steps.
///
/// Reads each page only once. Repeated calls of [`read_column`](super::read_column) would read
/// pages again: the page with the first row or, without an offset index, all pages up to it.
pub struct ColumnReader<R: ChunkReader> {
    reader: RowReader<R>,
    field: Field,
    rows: Range<usize>,
    values: usize,
    all: usize,
}

impl<R: ChunkReader> fmt::Debug for ColumnReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColumnReader").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<R: ChunkReader + 'static> ColumnReader<R> {
    /// Opens a reader at the first of `rows`. The reader reads the bytes that
    /// [`ranges`](super::ranges) returns.
    ///
    /// # Errors
    /// See [`read_column`](super::read_column).
    pub fn open(
        source: &ListsFile<'_, R>,
        group: usize,
        root: usize,
        field: &Field,
        rows: Range<usize>,
        parts: DecodedParts,
    ) -> Result<Self> {
        let Some(shape) = ColumnShape::new(source.metadata, root, field) else {
            return Err(make_unsupported_column_error(source, field));
        };
        let mut reader = RowReader::new(shape, parts);
        reader.open(source, group, &rows)?;
        let values = reader.estimate_values(source, group, rows.len())?;
        Ok(Self { reader, field: field.clone(), all: rows.len(), rows, values })
    }

    /// Returns the range of rows of the row group that are still to be read.
    pub fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// Skips the next `rows` rows.
    ///
    /// # Errors
    /// If fewer rows are left, or the file is damaged.
    pub fn skip_rows(&mut self, rows: usize) -> Result<()> {
        self.advance_rows(rows)?;
        self.reader.skip_rows(rows)
    }

    /// Reads the next `rows` rows as one array.
    ///
    /// # Errors
    /// If fewer rows are left, or the file is damaged.
    pub fn read(&mut self, rows: usize) -> Result<ArrayRef> {
        self.advance_rows(rows)?;
        let share = self.values as u128 * rows as u128 / self.all.max(1) as u128;
        self.reader.reserve(usize::try_from(share).unwrap_or(0));
        self.reader.append_rows(rows)?;
        self.reader.finish(self.field.data_type())
    }

    fn advance_rows(&mut self, rows: usize) -> Result<()> {
        if rows > self.rows.len() {
            return Err(Error::invalid(format!(
                "{rows} row(s) of column {:?} were requested, but only {} are left; request fewer rows",
                self.field.name(),
                self.rows.len()
            )));
        }
        self.rows.start += rows;
        Ok(())
    }
}

/// Returns whether a column of a row group has an offset index, with which a reader can start at
/// any page.
pub fn is_indexed(metadata: &ParquetMetaData, group: usize, root: usize) -> bool {
    let schema = metadata.file_metadata().schema_descr();
    let mut leaves = (0..schema.num_columns()).filter(|i| schema.get_column_root_idx(*i) == root);
    leaves.all(|leaf| {
        let index = metadata.offset_index().and_then(|i| i.get(group)?.get(leaf));
        index.is_some_and(|index| !index.page_locations().is_empty())
    })
}

#[cfg(feature = "generate")]
#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use arrow::array::Array;
    use parquet::arrow::parquet_to_arrow_schema;
    use parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};

    use super::super::read_column;
    use super::*;
    use crate::io::parquet::{ParquetTableWriter, ParquetWriteOptions};

    #[test]
    fn parts_of_rows_are_those_of_all_rows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.parquet");
        let table = crate::generate::mimic_table(300, 3).unwrap();
        let schema = table.arrow_schema().unwrap();
        let mut writer =
            ParquetTableWriter::create(&path, &schema, &ParquetWriteOptions::default()).unwrap();
        writer.write(&table).unwrap();
        writer.finish().unwrap();
        let file = Arc::new(std::fs::File::open(&path).unwrap());
        for policy in [PageIndexPolicy::Required, PageIndexPolicy::Skip] {
            let metadata = ParquetMetaDataReader::new()
                .with_page_index_policy(policy)
                .parse_and_finish(file.as_ref())
                .unwrap();
            let footer = metadata.file_metadata();
            let schema =
                parquet_to_arrow_schema(footer.schema_descr(), footer.key_value_metadata());
            let schema = schema.unwrap();
            let source = ListsFile { name: Path::new("x"), reader: &file, metadata: &metadata };
            for (root, field) in schema.fields().iter().enumerate() {
                assert_eq!(is_indexed(&metadata, 0, root), policy == PageIndexPolicy::Required);
                if !super::super::is_supported(&metadata, root, field) {
                    continue;
                }
                for parts in [DecodedParts::Values, DecodedParts::Lists] {
                    let all = read_column(&source, 0, root, field, 0..300, parts).unwrap();
                    for rows in [0..300usize, 7..290] {
                        let mut reader =
                            ColumnReader::open(&source, 0, root, field, rows.clone(), parts)
                                .unwrap();
                        for (skip, read) in [(0, 1), (0, 9), (5, 30), (90, 0), (0, 60), (1, 67)] {
                            reader.skip_rows(skip).unwrap();
                            let from = reader.rows().start;
                            let some = reader.read(read).unwrap();
                            assert_eq!(some.as_ref(), all.slice(from, read).as_ref());
                        }
                        let left = reader.rows();
                        assert_eq!(left.start, rows.start + 263);
                        assert!(reader.read(left.len() + 1).is_err());
                        assert!(reader.skip_rows(usize::MAX).is_err());
                        let last = reader.read(left.len()).unwrap();
                        assert_eq!(last.as_ref(), all.slice(left.start, left.len()).as_ref());
                    }
                }
            }
        }
    }
}
