//! A Parquet file of a data set, read whole or in batches. Errors name file, column and row.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_schema};
use parquet::file::statistics::Statistics;

use super::plain_types::find_plain_type;
use crate::access;
use crate::array::exact_casts::{InexactCast, cast_exact, cast_microseconds};
use crate::array::nested_types::is_string_like;
use crate::array::nulls::find_validity;
use crate::error::{Error, Result};
use crate::io::hidden_names::is_hidden;
use crate::io::natural_order::make_natural_key;
use crate::io::parquet::{LocalFile, check_dictionaries, to_row_count};
use crate::io::reader_panics::contain_panics;

#[derive(Clone, Debug)]
pub(crate) struct MedsFile {
    path: PathBuf,
    metadata: ArrowReaderMetadata,
}

impl MedsFile {
    pub(crate) fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        let file = LocalFile::open(&path).map_err(|e| Error::io(&path, e))?;
        let metadata = contain_panics(&path, || {
            ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())
                .map_err(|e| Error::file(&path, e.to_string()))
        })?;
        Ok(Self { path, metadata })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// Returns the names of the columns and the types in which Parquet stores them, regardless of
    /// the Arrow types that the writer recorded. [`find_plain_type`] simplifies the types.
    #[allow(dead_code, reason = "only some features use it")]
    pub(crate) fn read_stored_types(&self) -> Result<Vec<(String, DataType)>> {
        let schema = parquet_to_arrow_schema(self.metadata.parquet_schema(), None)
            .map_err(|e| Error::file(&self.path, e.to_string()))?;
        let types =
            schema.fields().iter().map(|f| (f.name().clone(), find_plain_type(f.data_type())));
        Ok(types.collect())
    }

    pub(crate) fn rows(&self) -> Result<usize> {
        to_row_count(&self.path, self.metadata.metadata().file_metadata().num_rows())
    }

    /// Returns the least and the greatest value of a column in each row group that has rows, from
    /// the footer. Returns `None` if the footer lacks them, or if the column is not Int64.
    pub(crate) fn list_bounds(&self, column: &str) -> Option<Vec<(i64, i64)>> {
        let field = self.schema().field_with_name(column).ok()?;
        if *field.data_type() != DataType::Int64 {
            return None;
        }
        let metadata = self.metadata.metadata();
        let columns = metadata.file_metadata().schema_descr().columns();
        let at = columns.iter().position(|c| c.path().string() == column)?;
        let groups = metadata.row_groups().iter().filter(|group| group.num_rows() > 0);
        let bounds = groups.map(|group| match group.columns().get(at)?.statistics()? {
            Statistics::Int64(known) => Some((*known.min_opt()?, *known.max_opt()?)),
            _ => None,
        });
        bounds.collect()
    }

    /// Reads those `columns` that exist, in file order. The column that `dictionary` names is read
    /// as a dictionary, if it has text.
    pub(crate) fn read(&self, columns: &[&str], dictionary: Option<&str>) -> Result<RecordBatch> {
        contain_panics(&self.path, || self.read_all(columns, dictionary))
    }

    fn read_all(&self, columns: &[&str], dictionary: Option<&str>) -> Result<RecordBatch> {
        let metadata = dictionary
            .and_then(|d| self.find_dictionary_metadata(d))
            .unwrap_or_else(|| self.metadata.clone());
        let fail = |e: &dyn std::fmt::Display| Error::file(&self.path, e.to_string());
        // Read one batch: callers need whole columns, and concatenation of batches would copy them
        // again.
        let reader = self.open_reader(columns, metadata, self.rows()?)?;
        let schema = arrow::array::RecordBatchReader::schema(&reader);
        let mut batches =
            reader.collect::<std::result::Result<Vec<_>, _>>().map_err(|e| fail(&e))?;
        match (batches.pop(), batches.is_empty()) {
            (None, _) => Ok(RecordBatch::new_empty(schema)),
            (Some(one), true) => Ok(one),
            (Some(last), false) => {
                batches.push(last);
                concat_batches(&schema, &batches).map_err(|e| fail(&e))
            }
        }
    }

    /// Reads like [`read`](Self::read), in batches of at most `rows` rows.
    pub(crate) fn read_batches(
        &self,
        columns: &[&str],
        dictionary: Option<&str>,
        rows: usize,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
        let metadata = dictionary
            .and_then(|d| self.find_dictionary_metadata(d))
            .unwrap_or_else(|| self.metadata.clone());
        let path = self.path.clone();
        let mut reader = self.open_reader(columns, metadata, rows)?;
        Ok(std::iter::from_fn(move || {
            let next = contain_panics(&path, || {
                reader.next().transpose().map_err(|e| Error::file(&path, e.to_string()))
            });
            next.transpose()
        }))
    }

    fn open_reader(
        &self,
        columns: &[&str],
        metadata: ArrowReaderMetadata,
        rows: usize,
    ) -> Result<ParquetRecordBatchReader> {
        let file = LocalFile::open(&self.path).map_err(|e| Error::io(&self.path, e))?;
        let wanted = self
            .schema()
            .fields()
            .iter()
            .enumerate()
            .filter(|(_, f)| columns.contains(&f.name().as_str()))
            .map(|(i, _)| i);
        let mask = ProjectionMask::roots(metadata.parquet_schema(), wanted);
        let parquet = metadata.metadata();
        let groups = 0..parquet.num_row_groups();
        check_dictionaries(&file, parquet, groups, |leaf| mask.leaf_included(leaf))
            .map_err(|e| Error::file(&self.path, e.to_string()))?;
        ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
            .with_projection(mask)
            .with_batch_size(rows.max(1))
            .build()
            .map_err(|e| Error::file(&self.path, e.to_string()))
    }

    /// Returns the metadata of the file with the Arrow type of `column` changed from strings to a
    /// dictionary, so that a reader decodes it as one. A column of another type keeps its type.
    /// Returns `None` if the `parquet` crate cannot read the column as a dictionary.
    fn find_dictionary_metadata(&self, column: &str) -> Option<ArrowReaderMetadata> {
        let fields: Vec<Arc<Field>> = self
            .schema()
            .fields()
            .iter()
            .map(|f| match f.data_type() {
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if f.name() == column => {
                    Arc::new(f.as_ref().clone().with_data_type(make_code_type()))
                }
                _ => Arc::clone(f),
            })
            .collect();
        let schema = Schema::new_with_metadata(fields, self.schema().metadata().clone());
        let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
        ArrowReaderMetadata::try_new(Arc::clone(self.metadata.metadata()), options).ok()
    }

    /// Casts a column of this file. A value that does not fit exactly is an error.
    pub(crate) fn cast_column(
        &self,
        column: &str,
        values: &ArrayRef,
        to: &DataType,
    ) -> Result<ArrayRef> {
        cast_exact(values, to).map_err(|e| self.describe_inexact(column, values, &e))
    }

    /// Casts times to microseconds. A finer time that is not a whole number of microseconds is an
    /// error.
    pub(crate) fn cast_time(&self, column: &str, values: &ArrayRef) -> Result<ArrayRef> {
        let times =
            cast_microseconds(values).map_err(|e| self.describe_inexact(column, values, &e))?;
        Ok(Arc::new(times))
    }

    pub(crate) fn describe_inexact(
        &self,
        column: &str,
        values: &ArrayRef,
        e: &InexactCast,
    ) -> Error {
        match e {
            InexactCast::Type(expected) => {
                self.make_type_error(column, expected, values.data_type())
            }
            InexactCast::Value(row, message) => self.make_value_error(column, *row, message),
            InexactCast::Cast(e) => Error::file(&self.path, format!("column {column:?}: {e}")),
        }
    }

    pub(crate) fn require_column<'a>(
        &self,
        batch: &'a RecordBatch,
        column: &str,
    ) -> Result<&'a ArrayRef> {
        batch.column_by_name(column).ok_or_else(|| self.make_missing_column_error(column))
    }

    /// Returns an error if a column of a batch has a NULL. The batch begins at row `first_row` of
    /// the file.
    pub(crate) fn check_no_nulls(
        &self,
        column: &str,
        values: &ArrayRef,
        first_row: usize,
    ) -> Result<()> {
        let Some(nulls) = find_validity(values) else {
            return Ok(());
        };
        let row = nulls.iter().position(|valid| !valid).unwrap_or(0);
        Err(self.make_value_error(
            column,
            first_row.saturating_add(row),
            "the value is NULL, but MEDS requires a value; correct the row or remove it",
        ))
    }

    /// Returns an error if the file has no column `code`, or if it does not hold strings.
    pub(crate) fn check_code_column(&self) -> Result<()> {
        let code = self.schema().field_with_name("code");
        let code = code.map_err(|_| self.make_missing_column_error("code"))?;
        self.check_code_type(code.data_type())
    }

    fn check_code_type(&self, found: &DataType) -> Result<()> {
        match is_string_like(found) {
            true => Ok(()),
            false => {
                Err(self.make_type_error("code", "strings (cast the column in the file)", found))
            }
        }
    }

    /// Returns the column `code` as a dictionary. Returns an error if it is missing, does not hold
    /// strings, or has a NULL. The batch begins at row `first_row` of the file.
    pub(crate) fn cast_codes(&self, batch: &RecordBatch, first_row: usize) -> Result<ArrayRef> {
        let code = self.require_column(batch, "code")?;
        self.check_code_type(code.data_type())?;
        self.check_no_nulls("code", code, first_row)?;
        self.cast_column("code", code, &make_code_type())
    }

    pub(crate) fn make_missing_column_error(&self, column: &str) -> Error {
        let names: Vec<&str> = self.schema().fields().iter().map(|f| f.name().as_str()).collect();
        Error::file(
            &self.path,
            format!(
                "there is no column {column:?}, which is required; add it, or rename one of the columns {}",
                names.join(", ")
            ),
        )
    }

    pub(crate) fn make_type_error(&self, column: &str, expected: &str, found: &DataType) -> Error {
        Error::file(&self.path, format!("column {column:?}: expected {expected}, found {found}"))
    }

    pub(crate) fn make_value_error(&self, column: &str, row: usize, message: &str) -> Error {
        Error::file(&self.path, format!("column {column:?}, row {row}: {message}"))
    }
}

/// Returns paths without the ending, in natural order (2 before 10).
pub(crate) fn list_files_with_ending(folder: &Path, ending: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    if !access::exists(folder) {
        return Ok(names);
    }
    for entry in access::walk_folder(folder) {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type().is_file() && path.extension().is_some_and(|e| e == ending) {
            let relative = path.strip_prefix(folder).unwrap_or(path).with_extension("");
            if is_hidden(&relative) {
                continue;
            }
            let parts: Vec<_> = relative
                .components()
                .map(|c| c.as_os_str().to_string_lossy().into_owned())
                .collect();
            names.push(parts.join("/"));
        }
    }
    names.sort_by_cached_key(|name| make_natural_key(name));
    Ok(names)
}

/// Returns `Dictionary(UInt32, Utf8)`, the Arrow type that the column `code` has after it is read.
pub(crate) fn make_code_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8))
}
