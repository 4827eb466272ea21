//! Ragged tables as Arrow IPC files and streams.
//!
//! [`IpcTableWriter`] and [`IpcTableReader`] stream chunks of rows; [`write()`] and [`read`] handle
//! a whole table at once. An uncompressed file is read in place with a memory map.

mod mapped_file;
pub(crate) mod message_check;
mod read_options;
mod reader;
pub(crate) mod writer;

use std::path::Path;

pub use read_options::IpcReadOptions;
pub use reader::IpcTableReader;
pub use writer::{IpcCompression, IpcForm, IpcTableWriter, IpcWriteOptions};

use crate::error::Result;
use crate::table::RaggedTable;

/// Writes a table as one Arrow IPC file of one batch; see [`IpcTableWriter`].
///
/// # Errors
/// If the file exists and `overwrite` is false, or it cannot be written.
///
/// ```
/// # use serrate_core as serrate;
/// # #[cfg(feature = "generate")] {
/// use serrate::io::arrow_ipc;
/// let table = serrate::generate::mimic_table(2, 1)?;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("t.arrow");
/// arrow_ipc::write(&path, &table, &Default::default())?;
/// assert_eq!(arrow_ipc::read(&path, &Default::default())?, table);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write(path: impl AsRef<Path>, table: &RaggedTable, options: &IpcWriteOptions) -> Result<()> {
    let mut writer = IpcTableWriter::create(path, &table.arrow_schema()?, options)?;
    writer.write(table)?;
    writer.finish()
}

/// Reads an Arrow IPC file or stream as one table.
///
/// If a file has only one batch, the table shares the buffers of the batch.
///
/// ```
/// # use serrate_core as serrate;
/// # #[cfg(feature = "generate")] {
/// use serrate::io::arrow_ipc::{self, IpcReadOptions};
/// let table = serrate::generate::mimic_table(2, 1)?;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("t.arrow");
/// arrow_ipc::write(&path, &table, &Default::default())?;
/// let options = IpcReadOptions { columns: Some(vec!["code".into()]), ..Default::default() };
/// let codes = arrow_ipc::read(&path, &options)?;
/// assert_eq!(codes.names().collect::<Vec<_>>(), ["code"]);
/// assert_eq!(codes.array("code")?, table.array("code")?);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the file cannot be read, or list columns of the file differ in list lengths.
pub fn read(path: impl AsRef<Path>, options: &IpcReadOptions) -> Result<RaggedTable> {
    let reader = IpcTableReader::open(path, options)?;
    RaggedTable::concat_parts(reader.schema(), reader)
}
