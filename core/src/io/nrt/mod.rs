//! `.nrt` files: ragged tables in the format of Python's `nested_ragged_tensors`.
//!
//! An `.nrt` file is a safetensors file with one-dimensional tensors:
//!
//! | tensor | holds |
//! |---|---|
//! | `dim{d}/{key}` | the values of column `key` on axis `d`, flat |
//! | `dim{d}/bounds`, `d` >= 1 | for every element of axis `d - 1`, the end of its list on axis `d` (cumulative, no leading 0) |
//!
//! The format has no nulls, strings or axis names. Ids of rows are a column, `dim0/subject_id`.
//!
//! [`NrtFile`] reads rows and columns in place; [`NrtWriter`] writes tables of any size in chunks.
#![cfg_attr(
    feature = "object_store",
    doc = "[`NrtObject`] reads files in object stores and fetches only the byte ranges it needs."
)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod file;
mod layout;
mod list_bounds;
#[cfg(feature = "object_store")]
mod object;
mod schema;
mod tensor_names;
mod tensor_values;
mod writer;

use std::path::Path;

pub use file::NrtFile;
pub use layout::NrtColumn;
#[cfg(feature = "object_store")]
pub use object::{NrtObject, ObjectOptions};
pub use schema::NrtSchema;
pub use writer::NrtWriter;

use crate::error::Result;
use crate::table::RaggedTable;

/// Options for reading `.nrt` files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadOptions {
    /// Whether to map the file, so that values are used in place and only touched pages are read. A
    /// mapped file must not be written to while it is in use: checked values could change, and
    /// truncation makes the system kill the process. If false, parts are read as needed, and a
    /// truncated file is an error.
    pub mmap: bool,
    /// Whether every axis has 64-bit offsets (Arrow's `LargeList`). If false, offsets have 32 bits
    /// (`List`), and a read of more than 2^31 - 1 values at once is an error.
    pub large_lists: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { mmap: true, large_lists: false }
    }
}

/// Options for writing `.nrt` files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WriteOptions {
    /// Whether to replace an existing file, which is otherwise an error.
    pub overwrite: bool,
    /// Whether to omit the ids (`subject_id` on axis 0).
    pub plain: bool,
}

/// Writes a table as one `.nrt` file; [`NrtWriter`] describes how values are stored.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::UInt16Array;
/// # use serrate::table::RaggedTable;
/// use serrate::io::nrt::{self, NrtFile, WriteOptions};
/// let table = RaggedTable::builder()
///     .lengths([2, 0, 1])?
///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
///     .build()?;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("codes.nrt");
/// nrt::write(&path, &table, &WriteOptions::default())?;
/// assert_eq!(NrtFile::open(&path, &Default::default())?.table()?, table);
/// assert!(nrt::write(&path, &table, &WriteOptions::default()).is_err_and(|e| e.is_exists()));
/// nrt::write(&path, &table, &WriteOptions { overwrite: true, ..Default::default() })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the file exists and `overwrite` is false, a column has a reserved name or an unsupported type
/// (such as strings), a null cannot be written, the table has [scalars](RaggedTable::scalars), or
/// the file cannot be written. See [`NrtWriter::create`], [`NrtWriter::write`] and
/// [`NrtWriter::finish`].
pub fn write(path: impl AsRef<Path>, table: &RaggedTable, options: &WriteOptions) -> Result<()> {
    let mut writer = NrtWriter::create(path, &NrtSchema::of_table(table), options)?;
    writer.write(table)?;
    writer.finish()
}
