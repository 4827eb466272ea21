//! JSON and NDJSON of nested lists.
//!
//! Two forms hold the same table. **Columns**: an object with one member per column, a list of rows,
//! each nested down to the column's axis: `{"time": [[1, 2], [5]], "code": [[[7], []], [[8, 9]]]}`.
//! **Records**: a list of objects, one per row (`.json`), or one object per line (`.ndjson`):
//! `{"time": [1, 2], "code": [[7], []]}`. Both are read and written; the first character of a file
//! tells them apart.
//!
//! **Depth** comes from the values: all values of a column lie within the same number of lists; where
//! one does not, the error names its path, as `code[3][1]`. Empty lists and nulls go with any depth;
//! where there is nothing else, the deepest list decides, unless the schema declares a list type.
//! Columns must agree in their lengths on every axis they share.
//!
//! **Types** that the schema does not declare are those nested_ragged_tensors chooses: all truth
//! values become `bool`; with any float (a number with a fraction or an exponent: `1.0` is one, `1`
//! is not) all become `float32`; integers the smallest unsigned type that holds them when none is
//! negative, else the smallest signed one (`float32` where neither 64-bit type does). Beyond
//! it, columns of texts become `utf8`. Refused: floats beyond `float32`, infinities, integers beyond
//! 64 bits, columns without any value. A **declared** type takes what casts to it without loss of
//! range: integers from floats are cut towards zero (as numpy casts), times and dates are read from
//! ISO 8601 texts or from integers in their unit.
//!
//! **Missing values** are null, for lists and for values; a null list is not an empty one. A key that
//! a record lacks is null. JSON has no NaN: the texts `"NaN"`, `"Infinity"` and `"-Infinity"` are
//! written, and read as floats in columns of numbers (or of nothing else: declare `utf8` where such
//! texts are meant). Floats are written as the shortest number that reads back the same, times as ISO
//! 8601 texts (in UTC where they have a zone), durations as integers, decimals and other types as
//! texts.
//!
//! In the form of columns, the names `bounds` and `mask` are reserved, as in `.nrt` files.

mod parse;
mod read;
mod sink;
#[cfg(feature = "sql")]
mod text;
mod write;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use arrow::datatypes::DataType;
use serde_json::Value;

pub use read::NdjsonReader;
#[cfg(feature = "sql")]
pub(crate) use text::{lists_as_json, schema_of_texts};
pub use write::NdjsonWriter;

use super::atomic::AtomicFile;
use crate::error::{Error, Result};
use crate::table::RaggedTable;

/// Names that columns may not have in the form of columns.
const RESERVED: [&str; 2] = ["bounds", "mask"];

/// How to read JSON.
#[derive(Clone, Debug)]
pub struct JsonOptions {
    /// Types of columns: of the values, or with the lists around them, which fixes the depth.
    /// Columns not named here are inferred. In the form of records, a declared column that no
    /// record has is all null.
    pub schema: Vec<(String, DataType)>,
    /// Names for the axes, rows first.
    pub axes: Vec<String>,
    /// Rows per table of an [`NdjsonReader`].
    pub batch_rows: usize,
}

impl Default for JsonOptions {
    fn default() -> Self {
        Self { schema: Vec::new(), axes: Vec::new(), batch_rows: 8192 }
    }
}

impl JsonOptions {
    /// Declares the type of one more column.
    pub fn with_column(mut self, name: impl Into<String>, data_type: DataType) -> Self {
        self.schema.push((name.into(), data_type));
        self
    }

    fn declared(&self, name: &str) -> Option<&DataType> {
        self.schema.iter().find(|(n, _)| n == name).map(|(_, t)| t)
    }
}

/// How JSON lays out a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JsonForm {
    /// An object of columns.
    #[default]
    Columns,
    /// A list of records.
    Records,
}

/// How to write a JSON file.
#[derive(Clone, Debug, Default)]
pub struct JsonWriteOptions {
    /// Columns or records; NDJSON is always records.
    pub form: JsonForm,
    /// Replace a file that exists.
    pub overwrite: bool,
}

/// Whether a value is lists within lists, exactly `ndim` deep, around numbers or truth values.
///
/// An empty list is of any depth. The texts that stand for floats JSON lacks (`"NaN"`) are numbers;
/// null and other texts are not.
///
/// ```
/// use serde_json::json;
/// use serrate::io::json::is_ndim_list;
/// assert!(is_ndim_list(&json!([[1, 2], []]), 2)?);
/// assert!(!is_ndim_list(&json!([[1], 2]), 2)?);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// For a depth of 0.
pub fn is_ndim_list(value: &Value, ndim: usize) -> Result<bool> {
    fn number(value: &Value) -> bool {
        match value {
            Value::Bool(_) | Value::Number(_) => true,
            Value::String(text) => sink::special(text).is_some(),
            _ => false,
        }
    }
    fn nested(value: &Value, ndim: usize) -> bool {
        let Value::Array(list) = value else { return false };
        list.iter().all(|v| if ndim == 1 { number(v) } else { nested(v, ndim - 1) })
    }
    if ndim == 0 {
        return Err(Error::invalid("a list is at least one deep; the depth asked for is 0"));
    }
    Ok(nested(value, ndim))
}

/// Reads a JSON file, in either form.
///
/// # Errors
/// The file's, with its path; see [`RaggedTable::from_json_text`].
pub fn read_json(path: impl AsRef<Path>, options: &JsonOptions) -> Result<RaggedTable> {
    let path = path.as_ref();
    let text = std::fs::read(path).map_err(|e| Error::io(path, e))?;
    RaggedTable::from_json_text(&text, options).map_err(|e| Error::file(path, e.to_string()))
}

/// Writes a JSON file, whole or not at all.
pub fn write_json(
    path: impl AsRef<Path>,
    table: &RaggedTable,
    options: &JsonWriteOptions,
) -> Result<()> {
    let path = path.as_ref();
    let mut file = AtomicFile::create(path, options.overwrite)?;
    write::write_text(table, options.form, &mut file)
        .map_err(|e| Error::file(path, e.to_string()))?;
    file.commit()
}

/// Reads a file of one record per line as one table, types inferred over all of it.
///
/// [`NdjsonReader`] reads files larger than memory.
pub fn read_ndjson(path: impl AsRef<Path>, options: &JsonOptions) -> Result<RaggedTable> {
    let path = path.as_ref();
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    NdjsonReader::new(BufReader::with_capacity(1 << 18, file), options.clone())
        .read_all()
        .map_err(|e| Error::file(path, e.to_string()))
}

/// Writes a file of one record per line, whole or not at all.
pub fn write_ndjson(
    path: impl AsRef<Path>,
    table: &RaggedTable,
    options: &JsonWriteOptions,
) -> Result<()> {
    let path = path.as_ref();
    let mut writer = NdjsonWriter::new(AtomicFile::create(path, options.overwrite)?);
    writer.write(table).map_err(|e| Error::file(path, e.to_string()))?;
    writer.finish()?.commit()
}
