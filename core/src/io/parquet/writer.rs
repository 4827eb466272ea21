//! Writes tables as Parquet files, with row groups of limited numbers of leaves.

use std::io;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, FixedSizeListArray, OffsetSizeTrait, RecordBatch};
use arrow::datatypes::DataType::{self, FixedSizeList};
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use parquet::basic::{Compression, ConvertedType, Encoding, Type, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::stored_types::{to_stored, to_stored_schema};
use crate::array::record_batch::build_record_batch;
use crate::error::{Error, Result};
use crate::io::atomic::AtomicFile;
use crate::table::RaggedTable;

/// Maximum size in bytes of a column's dictionary in a row group; later values are PLAIN. Small,
/// because the dictionary of a column whose values all differ is stored in vain.
const DICTIONARY_BYTES: usize = 2 << 20;

/// Options of [`ParquetTableWriter`].
#[derive(Clone, Debug)]
pub struct ParquetWriteOptions {
    /// Whether to replace an existing file, which is otherwise an error.
    pub overwrite: bool,
    /// Maximum number of leaves of the longest column in a row group, unless one row has more;
    /// default 2^24. Small groups let several threads read one file, but repeat its dictionaries.
    pub row_group_leaves: usize,
    /// Compression level of zstd, 1 to 22.
    pub zstd_level: i32,
}

impl Default for ParquetWriteOptions {
    fn default() -> Self {
        Self { overwrite: false, row_group_leaves: 1 << 24, zstd_level: 3 }
    }
}

/// Writes the rows of several tables to one Parquet file.
///
/// Compression is zstd. Strings, floats and integers of up to 32 bits are dictionary-encoded;
/// 64-bit integers and times are delta-packed. The file has statistics, a page index, and the Arrow
/// schema with the axis names in its metadata. Elements of `arrow.fixed_shape_tensor` columns are
/// declared nullable, which pyarrow requires. Timestamps and times in seconds are written in
/// milliseconds, and `Date64` as `Date32`, because Parquet has neither. Memory holds only the
/// encoded current row group. The file appears when [`finish`](Self::finish) returns; if the writer
/// is dropped earlier, the file is removed.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// use serrate::RaggedTable;
/// use serrate::io::parquet::{ParquetTableReader, ParquetTableWriter};
/// let ages = Arc::new(Int32Array::from(vec![71, 38]));
/// let table = RaggedTable::builder().column("age", 0, ages).build()?;
/// let schema = table.arrow_schema()?;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("t.parquet");
/// let mut writer = ParquetTableWriter::create(&path, &schema, &Default::default())?;
/// writer.write(&table)?;
/// writer.write_batch(&table.to_batch()?)?;
/// assert_eq!(writer.num_rows(), 4);
/// writer.finish()?;
/// let mut reader = ParquetTableReader::open(&path, &Default::default())?;
/// assert_eq!((reader.rows(), reader.file_rows(), reader.schema().fields().len()), (0..4, 4, 1));
/// assert_eq!(reader.next_batch().unwrap()?.num_rows(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ParquetTableWriter {
    writer: ArrowWriter<AtomicFile>,
    /// The schema of the rows before they are converted to the types of the file.
    schema: SchemaRef,
    row_group_leaves: usize,
    /// Number of leaves in the current row group, in the column with the most leaves.
    leaves: usize,
    rows: u64,
}

impl ParquetTableWriter {
    /// Starts a file with the schema of [`RaggedTable::arrow_schema`], or a schema to which the
    /// batches of the tables can be converted, for example with `LargeList`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::RaggedTable;
    /// # let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// # let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// use serrate::io::parquet::{ParquetTableWriter, ParquetWriteOptions};
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.parquet");
    /// let options = ParquetWriteOptions { row_group_leaves: 1 << 20, ..Default::default() };
    /// let writer = ParquetTableWriter::create(&path, &table.arrow_schema()?, &options)?;
    /// assert_eq!(writer.num_rows(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be created or replaced, Parquet lacks a type, or `row_group_leaves` is 0.
    pub fn create(
        path: impl AsRef<Path>,
        schema: &SchemaRef,
        options: &ParquetWriteOptions,
    ) -> Result<Self> {
        if options.row_group_leaves == 0 {
            return Err(Error::invalid("row_group_leaves is 0; give at least 1"));
        }
        let stored = to_stored_schema(&make_tensors_nullable(schema))?;
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(options.zstd_level)?))
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_created_by(concat!("serrate ", env!("CARGO_PKG_VERSION")).into())
            .set_dictionary_page_size_limit(DICTIONARY_BYTES)
            .set_dictionary_enabled(false);
        for column in ArrowSchemaConverter::new().convert(&stored)?.columns() {
            let narrow = column.converted_type() != ConvertedType::DATE;
            properties = match column.physical_type() {
                // Strings repeat, and so do floats, because measurements have few digits: use a
                // dictionary.
                Type::BYTE_ARRAY | Type::FLOAT | Type::DOUBLE => {
                    properties.set_column_dictionary_enabled(column.path().clone(), true)
                }
                Type::INT32 if narrow => {
                    properties.set_column_dictionary_enabled(column.path().clone(), true)
                }
                Type::INT64 => properties
                    .set_column_encoding(column.path().clone(), Encoding::DELTA_BINARY_PACKED),
                _ => properties,
            };
        }
        let file = AtomicFile::create(path, options.overwrite)?;
        Ok(Self {
            writer: ArrowWriter::try_new(file, stored, Some(properties.build()))?,
            schema: make_tensors_nullable(schema),
            row_group_leaves: options.row_group_leaves,
            leaves: 0,
            rows: 0,
        })
    }

    /// Appends the rows of a table that has the columns and types of the schema.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::RaggedTable;
    /// # let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// # let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// use serrate::io::parquet::ParquetTableWriter;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.parquet");
    /// let schema = table.arrow_schema()?;
    /// let mut writer = ParquetTableWriter::create(&path, &schema, &Default::default())?;
    /// writer.write(&table)?;
    /// writer.write(&table.slice(0, 1)?)?;
    /// assert_eq!(writer.num_rows(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If a column is missing or has another type, or the file cannot be written.
    pub fn write(&mut self, table: &RaggedTable) -> Result<()> {
        self.write_batch(&table.to_batch_as(&self.schema)?)
    }

    /// Appends the rows of a batch with the schema of the file.
    ///
    /// Columns may differ in list lengths.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::RaggedTable;
    /// # let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// # let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// use serrate::io::parquet::ParquetTableWriter;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.parquet");
    /// let schema = table.arrow_schema()?;
    /// let mut writer = ParquetTableWriter::create(&path, &schema, &Default::default())?;
    /// writer.write_batch(&table.to_batch()?)?;
    /// assert_eq!(writer.num_rows(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the schema differs, a value does not fit its type in the file, or the file cannot be
    /// written.
    pub fn write_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let ends = compute_leaf_ends(batch);
        let batch = &to_stored(&self.declare_tensors(batch)?)?;
        let (mut row, mut before) = (0, 0);
        while row < batch.num_rows() {
            let room = self.row_group_leaves - self.leaves.min(self.row_group_leaves);
            let fits = ends[row..].partition_point(|end| end - before <= room);
            if fits == 0 && self.leaves > 0 {
                self.flush()?;
                continue;
            }
            // A row with more leaves than `row_group_leaves` gets its own row group.
            let next = row + fits.max(1);
            let written = self.writer.write(&batch.slice(row, next - row));
            written.map_err(|e| name_file(self.writer.inner().target(), e))?;
            self.leaves += ends[next - 1] - before;
            before = ends[next - 1];
            row = next;
            if self.leaves >= self.row_group_leaves {
                self.flush()?;
            }
        }
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    fn declare_tensors(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        if batch.num_columns() != self.schema.fields().len() {
            // The Parquet writer later returns an error for the wrong number of columns.
            return Ok(batch.clone());
        }
        let columns = batch
            .columns()
            .iter()
            .zip(self.schema.fields())
            .map(|(array, field)| match (array.data_type(), field.data_type()) {
                (FixedSizeList(a, n), FixedSizeList(b, m))
                    if is_tensor(field) && a != b && (a.data_type(), n) == (b.data_type(), m) =>
                {
                    let list = array.as_fixed_size_list();
                    Ok(Arc::new(FixedSizeListArray::try_new_with_length(
                        Arc::clone(b),
                        *m,
                        Arc::clone(list.values()),
                        list.nulls().cloned(),
                        list.len(),
                    )?) as ArrayRef)
                }
                _ => Ok(Arc::clone(array)),
            })
            .collect::<Result<Vec<_>>>()?;
        let types = columns.iter().zip(self.schema.fields());
        if types.into_iter().any(|(c, f)| c.data_type() != f.data_type()) {
            return Ok(batch.clone());
        }
        Ok(build_record_batch(SchemaRef::clone(&self.schema), columns, batch.num_rows())?)
    }

    fn flush(&mut self) -> Result<()> {
        let flushed = self.writer.flush();
        flushed.map_err(|e| name_file(self.writer.inner().target(), e))?;
        self.leaves = 0;
        Ok(())
    }

    /// Returns the number of rows written so far.
    pub fn num_rows(&self) -> u64 {
        self.rows
    }

    /// Completes the file, syncs it to disk and renames it to its final path.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::RaggedTable;
    /// # let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// # let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// use serrate::io::parquet::{self, ParquetTableWriter};
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.parquet");
    /// let schema = table.arrow_schema()?;
    /// let mut writer = ParquetTableWriter::create(&path, &schema, &Default::default())?;
    /// writer.write(&table)?;
    /// assert!(!path.exists());
    /// writer.finish()?;
    /// assert_eq!(parquet::read(&path, &Default::default())?.num_rows(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the disk is full, or a file with the final path has appeared since the start and
    /// [`ParquetWriteOptions::overwrite`] is false.
    pub fn finish(self) -> Result<()> {
        let target = self.writer.inner().target().to_path_buf();
        self.writer.into_inner().map_err(|e| name_file(&target, e))?.commit()
    }
}

/// Converts an error of the `parquet` crate. If its cause is an error of the system, such as a full
/// disk, the result names `path`.
fn name_file(path: &Path, error: ParquetError) -> Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(cause) => Error::io(path, *cause),
            Err(cause) => ParquetError::External(cause).into(),
        },
        other => other.into(),
    }
}

fn is_tensor(field: &Field) -> bool {
    let name = field.metadata().get("ARROW:extension:name");
    name.is_some_and(|n| n == "arrow.fixed_shape_tensor")
}

/// Declares the elements of fixed-shape tensor columns nullable, because pyarrow otherwise reads
/// these fixed-size lists as lists of variable length.
fn make_tensors_nullable(schema: &SchemaRef) -> SchemaRef {
    let fields: Vec<FieldRef> = schema
        .fields()
        .iter()
        .map(|field| match field.data_type() {
            FixedSizeList(item, n) if is_tensor(field) && !item.is_nullable() => {
                let item = Arc::new(item.as_ref().clone().with_nullable(true));
                Arc::new(field.as_ref().clone().with_data_type(FixedSizeList(item, *n)))
            }
            _ => Arc::clone(field),
        })
        .collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Returns one number per row `i`: the number of leaves in the rows `0..=i` of the column that has
/// the most leaves there, but at least `i + 1`. Counts leaves in structs and maps, too.
fn compute_leaf_ends(batch: &RecordBatch) -> Vec<usize> {
    let rows: Vec<usize> = (1..=batch.num_rows()).collect();
    let mut out = rows.clone();
    for column in batch.columns().iter().filter(|c| c.data_type().is_nested()) {
        count_leaves(column, rows.clone(), &mut out);
    }
    out
}

/// Replaces `most[i]` by the number of leaves in the first `ends[i]` elements of `array`, if that
/// number is greater. These elements belong to the rows up to and including row `i`.
fn count_leaves(array: &ArrayRef, ends: Vec<usize>, most: &mut [usize]) {
    match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            count_list_leaves(list.offsets(), list.values(), ends, most);
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            count_list_leaves(list.offsets(), list.values(), ends, most);
        }
        DataType::Map(_, _) => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            count_list_leaves(map.offsets(), &entries, ends, most);
        }
        FixedSizeList(_, _) => {
            let list = array.as_fixed_size_list();
            let size = usize::try_from(list.value_length()).unwrap_or(0);
            let ends = ends.into_iter().map(|end| end * size).collect();
            count_leaves(list.values(), ends, most);
        }
        DataType::Struct(_) => {
            for child in array.as_struct().columns() {
                count_leaves(child, ends.clone(), most);
            }
        }
        _ => {
            for (most, end) in most.iter_mut().zip(ends) {
                *most = (*most).max(end);
            }
        }
    }
}

fn count_list_leaves<O: OffsetSizeTrait>(
    offsets: &[O],
    values: &ArrayRef,
    ends: Vec<usize>,
    most: &mut [usize],
) {
    let (first, last) = (offsets[0].as_usize(), offsets[offsets.len() - 1].as_usize());
    let ends = ends.into_iter().map(|end| offsets[end].as_usize() - first).collect();
    count_leaves(&values.slice(first, last - first), ends, most);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int32Array, Int64Array};

    use super::*;
    use crate::table::RaggedTable;

    #[test]
    fn ends_count_the_leaves_of_the_longest_column() {
        let table = RaggedTable::builder()
            .lengths([2, 0, 1])
            .unwrap()
            .lengths([3, 4, 5])
            .unwrap()
            .column("id", 0, Arc::new(Int64Array::from(vec![1, 2, 3])))
            .column("t", 1, Arc::new(Int64Array::from(vec![1, 2, 3])))
            .column("x", 2, Arc::new(Int32Array::from_iter_values(0..12)))
            .build()
            .unwrap();
        let batch = table.to_batch().unwrap();
        assert_eq!(compute_leaf_ends(&batch), [7, 7, 12]);
        assert_eq!(compute_leaf_ends(&batch.slice(1, 2)), [1, 5]);
        assert_eq!(compute_leaf_ends(&batch.project(&[0]).unwrap()), [1, 2, 3]);
    }
}
