//! Reads Parquet files as chunks of ragged tables.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ProjectionMask};
use parquet::basic::ConvertedType;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, RowGroupMetaData};

use super::LocalFile;
use super::dictionary_pages::check_dictionaries;
use super::lists::ColumnsReader;
use crate::array::record_batch::build_record_batch;
use crate::error::{Error, Result};
use crate::io::named_columns::find_named_columns;
use crate::io::reader_panics::contain_panics;
use crate::table::RaggedTable;

/// Options of [`ParquetTableReader`].
#[derive(Clone, Debug)]
pub struct ParquetReadOptions {
    /// Names of the columns to read, in any order; `None` for all. Columns are returned in file
    /// order.
    pub columns: Option<Vec<String>>,
    /// Rows to read, counted over the file; `None` for all. Row groups without them are not read.
    pub rows: Option<Range<usize>>,
    /// Number of leaves that a chunk should have on average, in the column with the most leaves.
    pub chunk_leaves: usize,
}

impl Default for ParquetReadOptions {
    fn default() -> Self {
        Self { columns: None, rows: None, chunk_leaves: 1 << 18 }
    }
}

impl ParquetReadOptions {
    pub(super) fn with_largest_chunks(mut self) -> Self {
        self.chunk_leaves = i32::MAX as usize;
        self
    }
}

/// Reads a Parquet file as chunks of a ragged table, in row order.
///
/// List columns of any depth become columns on axes; for lists of structs see
/// [`RaggedTable::try_from_batch`]. The [`lists`](super::lists) module reads the columns that it
/// supports, several at a time in different threads; the `parquet` crate reads the others.
///
/// ```
/// # use serrate_core as serrate;
/// # #[cfg(feature = "generate")] {
/// use serrate::io::parquet::{self, ParquetReadOptions, ParquetTableReader};
/// let table = serrate::generate::mimic_table(9, 1)?;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("t.parquet");
/// parquet::write(&path, &table, &Default::default())?;
///
/// let options = ParquetReadOptions {
///     columns: Some(vec!["code".into()]),
///     rows: Some(3..7),
///     ..Default::default()
/// };
/// let reader = ParquetTableReader::open(&path, &options)?;
/// assert_eq!((reader.rows(), reader.file_rows()), (3..7, 9));
/// let mut rows = 0;
/// for chunk in reader {
///     rows += chunk?.num_rows();
/// }
/// assert_eq!(rows, 4);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ParquetTableReader {
    path: PathBuf,
    columns: ColumnsReader<LocalFile>,
    /// Reads columns that the list decoder does not support; if the schema is empty, counts rows.
    others: Option<ParquetRecordBatchReader>,
    /// For every column of the schema, whether `others` reads it.
    is_other: Vec<bool>,
    /// Number of rows per chunk; `left` is the number of rows not read yet.
    batch: usize,
    left: usize,
    schema: SchemaRef,
    rows: Range<usize>,
    file_rows: usize,
}

impl ParquetTableReader {
    /// Opens a file and reads its footer.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::RaggedTable;
    /// # let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// # let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// use serrate::io::parquet::{self, ParquetReadOptions, ParquetTableReader};
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.parquet");
    /// parquet::write(&path, &table, &Default::default())?;
    /// let options = ParquetReadOptions { rows: Some(1..2), ..Default::default() };
    /// let reader = ParquetTableReader::open(&path, &options)?;
    /// assert_eq!((reader.rows(), reader.file_rows()), (1..2, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read, is not Parquet, or lacks a requested column or row, or if a
    /// requested column has intervals that no Arrow schema describes.
    pub fn open(path: impl AsRef<Path>, options: &ParquetReadOptions) -> Result<Self> {
        let path = path.as_ref();
        contain_panics(path, || Self::open_file(path.to_path_buf(), options))
    }

    fn open_file(path: PathBuf, options: &ParquetReadOptions) -> Result<Self> {
        let fail = |e: parquet::errors::ParquetError| Error::file(&path, e.to_string());
        let file = LocalFile::open(&path).map_err(|e| Error::io(&path, e))?;
        // The page index lets the reader skip pages without requested rows.
        let policy = match options.rows {
            None => PageIndexPolicy::Skip,
            Some(_) => PageIndexPolicy::Optional,
        };
        let metadata = ArrowReaderMetadata::load(
            &file,
            ArrowReaderOptions::new().with_page_index_policy(policy),
        )
        .map_err(fail)?;
        let file_rows = to_row_count(&path, metadata.metadata().file_metadata().num_rows())?;
        let rows = options.rows.clone().unwrap_or(0..file_rows);
        if rows.start > rows.end || rows.end > file_rows {
            return Err(Error::file(
                &path,
                format!(
                    "rows {}..{} were requested, but the file has {file_rows} row(s); request rows within this range",
                    rows.start, rows.end
                ),
            ));
        }
        let roots = select_columns(&path, &metadata, options.columns.as_deref())?;
        refuse_intervals(&path, &metadata, &roots)?;
        let mask = ProjectionMask::roots(metadata.parquet_schema(), roots.iter().copied());

        let selected = select_groups(&path, metadata.metadata(), &rows, &mask)?;
        let batch = usize::try_from(options.chunk_leaves as u128 / selected.leaves_per_row)
            .unwrap_or(usize::MAX)
            .clamp(1, rows.len().max(1));

        let schema = Arc::new(metadata.schema().project(&roots)?);
        let parquet = Arc::clone(metadata.metadata());
        let mut columns = ColumnsReader::new(Arc::new(file.clone()), parquet, selected.spans);
        let is_other: Vec<bool> = roots
            .iter()
            .zip(schema.fields())
            .map(|(root, field)| !columns.add(*root, field))
            .collect();
        let others = if is_other.contains(&true) || is_other.is_empty() {
            let others = roots
                .iter()
                .zip(&is_other)
                .filter(|(_, is_other)| **is_other)
                .map(|(root, _)| *root);
            let mask = ProjectionMask::roots(metadata.parquet_schema(), others);
            let groups = selected.groups.iter().copied();
            check_dictionaries(&file, metadata.metadata(), groups, |leaf| mask.leaf_included(leaf))
                .map_err(fail)?;
            let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
                .with_projection(mask)
                .with_row_groups(selected.groups)
                .with_batch_size(batch);
            if options.rows.is_some() {
                builder = builder.with_row_selection(RowSelection::from(selected.selectors));
            }
            Some(builder.build().map_err(fail)?)
        } else {
            None
        };
        let left = rows.len();
        Ok(Self { path, columns, others, is_other, batch, left, schema, rows, file_rows })
    }

    /// Returns the range of rows that are read, counted over the whole file.
    pub fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// Returns the number of rows of the whole file.
    pub fn file_rows(&self) -> usize {
        self.file_rows
    }

    /// Returns the schema of the batches, which has the requested columns.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::RaggedTable;
    /// # let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// # let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// use serrate::io::parquet::{self, ParquetTableReader};
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.parquet");
    /// parquet::write(&path, &table, &Default::default())?;
    /// let reader = ParquetTableReader::open(&path, &Default::default())?;
    /// assert_eq!(reader.schema().field(0).name(), "age");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    /// Reads the next chunk as a record batch; `None` after the last.
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
    /// use serrate::io::parquet::{self, ParquetTableReader};
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.parquet");
    /// # parquet::write(&path, &table, &Default::default())?;
    /// let mut reader = ParquetTableReader::open(&path, &Default::default())?;
    /// assert_eq!(reader.next_batch().unwrap()?.num_rows(), 2);
    /// assert!(reader.next_batch().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn next_batch(&mut self) -> Option<Result<RecordBatch>> {
        if self.left == 0 {
            return None;
        }
        let path = self.path.clone();
        let batch = contain_panics(&path, || self.read_batch());
        if batch.is_err() {
            self.left = 0;
        }
        batch.transpose()
    }

    fn read_batch(&mut self) -> Result<Option<RecordBatch>> {
        let others = match &mut self.others {
            None => None,
            Some(reader) => match reader.next() {
                None => {
                    return Err(Error::file(
                        &self.path,
                        format!(
                            "the footer counts {} row(s) more than the pages have, so the file is damaged; create it again",
                            self.left
                        ),
                    ));
                }
                Some(batch) => Some(batch.map_err(|e| Error::file(&self.path, e.to_string()))?),
            },
        };
        // Read as many rows as `others` did, so that all columns have the same length.
        let rows = others.as_ref().map_or(self.batch, RecordBatch::num_rows).min(self.left);
        self.left -= rows;
        let mut ours = self.columns.next(&self.path, rows)?.into_iter();
        let mut others = others.iter().flat_map(RecordBatch::columns).cloned();
        let columns = self
            .is_other
            .iter()
            .filter_map(|is_other| if *is_other { others.next() } else { ours.next() });
        let schema = SchemaRef::clone(&self.schema);
        build_record_batch(schema, columns.collect(), rows)
            .map(Some)
            .map_err(|e| Error::file(&self.path, e.to_string()))
    }
}

impl Iterator for ParquetTableReader {
    type Item = Result<RaggedTable>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.next_batch()?;
        Some(batch.and_then(|b| RaggedTable::try_from_batch(&b)))
    }
}

/// Returns an error if a requested column has intervals, because the `parquet` crate would drop
/// their months. It keeps the months if the file has an Arrow schema.
fn refuse_intervals(path: &Path, metadata: &ArrowReaderMetadata, roots: &[usize]) -> Result<()> {
    let file = metadata.metadata().file_metadata();
    let (schema, entries) = (file.schema_descr(), file.key_value_metadata());
    let has_units =
        entries.is_some_and(|entries| entries.iter().any(|e| e.key == ARROW_SCHEMA_META_KEY));
    let is_dropped = |leaf: &usize| {
        schema.column(*leaf).converted_type() == ConvertedType::INTERVAL
            && roots.contains(&schema.get_column_root_idx(*leaf))
    };
    match (0..schema.num_columns()).find(is_dropped).filter(|_| !has_units) {
        None => Ok(()),
        Some(leaf) => Err(Error::file(
            path,
            format!(
                "column {:?} has intervals, whose months this reader would drop; leave out the column, or read the file with SQL, as in SELECT * FROM 'x.parquet'",
                schema.get_column_root(leaf).name()
            ),
        )),
    }
}

/// Returns the indices of `columns` in the file, ascending; all indices if `columns` is `None`. A
/// missing column is an error.
fn select_columns(
    path: &Path,
    metadata: &ArrowReaderMetadata,
    columns: Option<&[String]>,
) -> Result<Vec<usize>> {
    let schema = metadata.schema();
    match columns {
        Some(columns) => find_named_columns(path, schema, columns),
        None => Ok((0..schema.fields().len()).collect()),
    }
}

/// Converts the number of rows in the footer of the file `path`. A negative number is an error.
pub(crate) fn to_row_count(path: &Path, rows: i64) -> Result<usize> {
    usize::try_from(rows).map_err(|_| {
        Error::file(
            path,
            format!("the footer declares {rows} rows, which is negative, so the file is damaged; create it again"),
        )
    })
}

/// The row groups with requested rows.
struct SelectedGroups {
    groups: Vec<usize>,
    /// Selects the requested rows among the rows of these groups.
    selectors: Vec<RowSelector>,
    /// Each of these row groups with the range of its requested rows.
    spans: Vec<(usize, Range<usize>)>,
    /// Average number of leaves per row in the column with the most leaves; at least 1.
    leaves_per_row: u128,
}

fn select_groups(
    path: &Path,
    metadata: &ParquetMetaData,
    rows: &Range<usize>,
    mask: &ProjectionMask,
) -> Result<SelectedGroups> {
    let (mut groups, mut selectors, mut spans) = (Vec::new(), Vec::new(), Vec::new());
    let (mut leaves, mut group_rows) = (0u128, 0u128);
    let mut start = 0usize;
    for (i, group) in metadata.row_groups().iter().enumerate() {
        let length = to_row_count(path, group.num_rows())?;
        let end = start.saturating_add(length);
        let (from, to) = (rows.start.max(start), rows.end.min(end));
        if from < to {
            groups.push(i);
            spans.push((i, from - start..to - start));
            selectors.push(RowSelector::skip(from - start));
            selectors.push(RowSelector::select(to - from));
            selectors.push(RowSelector::skip(end - to));
            leaves += compute_max_leaves(group, mask);
            group_rows += length as u128;
        }
        start = end;
    }
    let leaves_per_row = leaves.div_ceil(group_rows.max(1)).max(1);
    Ok(SelectedGroups { groups, selectors, spans, leaves_per_row })
}

fn compute_max_leaves(group: &RowGroupMetaData, mask: &ProjectionMask) -> u128 {
    let columns = group.columns().iter().enumerate().filter(|(i, _)| mask.leaf_included(*i));
    columns.map(|(_, c)| u128::try_from(c.num_values()).unwrap_or(0)).max().unwrap_or(0)
}
