use std::path::Path;

use arrow::datatypes::SchemaRef;

use crate::error::{Error, Result};

/// Returns the indices of `columns` in `schema`, ascending and without duplicates. If a column is
/// missing, returns an error that names the file `path`.
pub(super) fn find_named_columns(
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
