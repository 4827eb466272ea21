use std::path::Path;

use arrow::datatypes::SchemaRef;

use crate::error::{Error, Result};

/// Options of [`IpcTableReader`](super::IpcTableReader).
#[derive(Clone, Debug)]
pub struct IpcReadOptions {
    /// Names of the columns to read, in any order; `None` for all. Columns are returned in file order.
    pub columns: Option<Vec<String>>,
    /// Whether to map a file and use its buffers in place, instead of reading it. The file must not
    /// change in place: a changed value is undefined behavior, and truncation kills the process. A
    /// replacement by rename, as writers of this crate do, is safe. Streams are never mapped.
    pub mmap: bool,
}

impl Default for IpcReadOptions {
    fn default() -> Self {
        Self { columns: None, mmap: true }
    }
}

/// Returns the indices of `columns` in `schema`, ascending and without duplicates. If a column is
/// missing, returns an error that names the file `path`.
pub(super) fn select_columns(
    path: &Path,
    schema: &SchemaRef,
    columns: &[String],
) -> Result<Vec<usize>> {
    let mut indices = columns
        .iter()
        .map(|name| {
            schema.index_of(name).map_err(|_| {
                let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
                Error::file(
                    path,
                    format!("there is no column {name:?}; the columns are {}", names.join(", ")),
                )
            })
        })
        .collect::<Result<Vec<_>>>()?;
    indices.sort_unstable();
    indices.dedup();
    Ok(indices)
}
