//! Ragged tables as Parquet files: one column of nested lists per table column, with one list level
//! per axis.

pub(crate) mod dictionary_pages;
// Hidden from the documentation, because only SQL, benchmarks and fuzz targets use this module.
#[doc(hidden)]
pub mod lists;
mod local;
mod reader;
pub(crate) mod stored_types;
mod writer;

use std::path::Path;

pub(crate) use dictionary_pages::{check_dictionaries, find_chunk_bytes};
pub(crate) use local::LocalFile;
pub(crate) use reader::to_row_count;
pub use reader::{ParquetReadOptions, ParquetTableReader};
pub use writer::{ParquetTableWriter, ParquetWriteOptions};

use crate::error::Result;
use crate::table::RaggedTable;

/// Writes a table as one Parquet file; see [`ParquetTableWriter`].
///
/// # Errors
/// If the file exists and `overwrite` is false, or it cannot be written.
///
/// ```
/// # use serrate_core as serrate;
/// # #[cfg(feature = "generate")] {
/// use serrate::io::parquet;
/// let table = serrate::generate::mimic_table(2, 1)?;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("t.parquet");
/// parquet::write(&path, &table, &Default::default())?;
/// assert_eq!(parquet::read(&path, &Default::default())?, table);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write(
    path: impl AsRef<Path>,
    table: &RaggedTable,
    options: &ParquetWriteOptions,
) -> Result<()> {
    let mut writer = ParquetTableWriter::create(path, &table.arrow_schema()?, options)?;
    writer.write(table)?;
    writer.finish()
}

/// Reads a Parquet file, or selected rows and columns, as one table.
///
/// ```
/// # use serrate_core as serrate;
/// # #[cfg(feature = "generate")] {
/// use serrate::io::parquet::{self, ParquetReadOptions};
/// let table = serrate::generate::mimic_table(3, 1)?;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("t.parquet");
/// parquet::write(&path, &table, &Default::default())?;
/// let columns = Some(vec!["code".into()]);
/// let options = ParquetReadOptions { columns, rows: Some(1..3), ..Default::default() };
/// let codes = parquet::read(&path, &options)?;
/// assert_eq!((codes.num_rows(), codes.columns().len()), (2, 1));
/// assert_eq!(codes.array("code")?, table.slice(1, 2)?.array("code")?);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the file cannot be read, or its list columns differ in their list lengths.
pub fn read(path: impl AsRef<Path>, options: &ParquetReadOptions) -> Result<RaggedTable> {
    let reader = ParquetTableReader::open(path, &options.clone().with_largest_chunks())?;
    RaggedTable::concat_parts(reader.schema(), reader)
}
