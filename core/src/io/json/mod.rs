//! Reads and writes JSON and NDJSON of nested lists.
//!
//! A table has two JSON forms. **Columns**: an object with one member per column, a list of rows,
//! each nested down to the column's axis: `{"time": [[1, 2], [5]], "code": [[[7], []], [[8, 9]]]}`.
//! **Records**: a list of objects, one per row (`.json`), or one object per line (`.ndjson`):
//! `{"time": [1, 2], "code": [[7], []]}`. Both are read and written; the first character of a file
//! distinguishes them.
//!
//! **Depth** is inferred: all values of a column must be nested in the same number of lists;
//! otherwise an error names the path of the deviating value, such as `code[3][1]`. Empty lists and
//! nulls fit any depth; if a column has nothing else, the deepest list determines the depth, unless
//! the schema declares a list type. Columns must have the same list lengths on each shared axis.
//!
//! **Undeclared types** are inferred as in `nested_ragged_tensors`: `bool` if all values are
//! booleans; `float32` if any value has a fraction or an exponent (`1.0`, not `1`); else the
//! smallest unsigned type, or signed type if an integer is negative (`float32` if the column has
//! both negative integers and integers beyond `int64`). Strings become `utf8`. Floats beyond
//! `float32`, infinities, integers beyond 64 bits, and columns without values are errors. A
//! **declared** type accepts values that cast to it: floats truncate to integers (as in NumPy),
//! times and dates are ISO 8601 strings or integers in their unit, durations are strings such as
//! `1d 03:00` or integers in their unit.
//!
//! **Missing values** are null, as are keys that a record lacks; a null list differs from an empty
//! one. JSON has no NaN or infinity: they are the strings `"NaN"`, `"Infinity"` and `"-Infinity"`.
//! A column of these strings, with or without numbers, is read as floats; declare `utf8` to keep
//! the strings. Floats are written as the shortest number that parses to the same value, times as
//! ISO 8601 strings (in UTC if they have a time zone), durations and intervals as strings such as
//! `4951d 03:00` and `1y 2mo 3d 04:00`, decimals and other types as strings.
//!
//! In the columns form, the names `bounds` and `mask` are reserved, as in `.nrt` files.

mod column_sink;
#[cfg(feature = "sql")]
pub(crate) mod json_columns;
mod parse;
mod read;
mod write;

use std::io::BufReader;
use std::path::Path;

use arrow::datatypes::DataType;

pub use read::NdjsonReader;
pub use write::NdjsonWriter;

use super::atomic::AtomicFile;
use crate::access;
use crate::error::{Error, Result};
use crate::memory::MemoryCharge;
use crate::table::RaggedTable;

const RESERVED: [&str; 2] = ["bounds", "mask"];

/// Options for reading JSON.
#[derive(Clone, Debug)]
pub struct JsonOptions {
    /// Declared types of columns: the type of the values, or a list type, which also sets the
    /// depth. The types of other columns are inferred. In the records form, a declared column
    /// without any value is null in all rows.
    pub schema: Vec<(String, DataType)>,
    /// Names of the axes, rows first.
    pub axes: Vec<String>,
    /// Maximum number of rows in each table that an [`NdjsonReader`] returns.
    pub batch_rows: usize,
}

impl Default for JsonOptions {
    fn default() -> Self {
        Self { schema: Vec::new(), axes: Vec::new(), batch_rows: 8192 }
    }
}

impl JsonOptions {
    /// Declares the type of one more column.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::datatypes::DataType;
    /// use serrate::RaggedTable;
    /// use serrate::io::json::JsonOptions;
    /// let options = JsonOptions::default().with_column("code", DataType::Int64);
    /// let table = RaggedTable::from_json_text(br#"{"code": [[1, 2], []]}"#, &options)?;
    /// assert_eq!(table.column("code")?.data_type(), &DataType::Int64);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn with_column(mut self, name: impl Into<String>, data_type: DataType) -> Self {
        self.schema.push((name.into(), data_type));
        self
    }

    fn find_declared_type(&self, name: &str) -> Option<&DataType> {
        self.schema.iter().find(|(n, _)| n == name).map(|(_, t)| t)
    }
}

/// Layout of a table in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JsonForm {
    /// An object with one member per column: the list of its values, one per row.
    #[default]
    Columns,
    /// A list with one object per row: the values of the row by column name.
    Records,
}

/// Options for writing a JSON file.
#[derive(Clone, Debug, Default)]
pub struct JsonWriteOptions {
    /// Columns or records; NDJSON is always records.
    pub form: JsonForm,
    /// Whether to replace an existing file. If not, an existing file is an error.
    pub overwrite: bool,
}

/// Reads a JSON file in the columns or the records form.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::json::{JsonOptions, read_json};
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("patients.json");
/// std::fs::write(&path, r#"[{"age": 71, "code": [1, 2]}, {"age": 38, "code": [3]}]"#)?;
/// let table = read_json(&path, &JsonOptions::default())?;
/// assert_eq!((table.num_rows(), table.array("code")?.lengths(1)?), (2, vec![2, 1]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the file cannot be read or parsed; see [`RaggedTable::from_json_text`].
pub fn read_json(path: impl AsRef<Path>, options: &JsonOptions) -> Result<RaggedTable> {
    let path = path.as_ref();
    let length = access::metadata(path).map_err(|e| Error::io(path, e))?.len();
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let what = format!("reading the JSON document {}", path.display());
    // Reserve memory for the text and for the values parsed from it.
    let _charge = MemoryCharge::take(&what, length.saturating_mul(2))?;
    let text = access::read(path).map_err(|e| Error::io(path, e))?;
    RaggedTable::from_json_text(&text, options).map_err(|e| Error::file(path, e.to_string()))
}

/// Writes a JSON file.
///
/// The file appears only when it is complete.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::RaggedTable;
/// use serrate::io::json::{JsonForm, JsonOptions, JsonWriteOptions, write_json};
/// let text = br#"{"age": [71, 38], "code": [[1, 2], [3]]}"#;
/// let table = RaggedTable::from_json_text(text, &JsonOptions::default())?;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("patients.json");
/// let options = JsonWriteOptions { form: JsonForm::Records, ..Default::default() };
/// write_json(&path, &table, &options)?;
/// let written = std::fs::read_to_string(&path)?;
/// assert_eq!(written.lines().next(), Some(r#"[{"age":71,"code":[1,2]},"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the file exists and `overwrite` is false, the file cannot be written, a column is a struct,
/// map, union or run-end encoding, or the table has [scalars](RaggedTable::scalars), which these
/// forms of JSON cannot hold.
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

/// Reads a file of one record per line as one table, with types inferred from the whole file.
///
/// [`NdjsonReader`] reads files larger than memory.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::json::{JsonOptions, read_ndjson};
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("patients.ndjson");
/// std::fs::write(&path, "{\"age\": 71, \"code\": [1, 2]}\n{\"age\": 38}\n")?;
/// let table = read_ndjson(&path, &JsonOptions::default())?;
/// // The second record lacks the code, so its list is null.
/// assert_eq!((table.num_rows(), table.array("code")?.lengths(1)?), (2, vec![2, 0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the file cannot be opened, or for the reasons of [`NdjsonReader::read_all`]. The message has
/// the path.
pub fn read_ndjson(path: impl AsRef<Path>, options: &JsonOptions) -> Result<RaggedTable> {
    let path = path.as_ref();
    let file = access::open(path).map_err(|e| Error::io(path, e))?;
    NdjsonReader::new(BufReader::with_capacity(1 << 18, file), options.clone())
        .read_all()
        .map_err(|e| Error::file(path, e.to_string()))
}

/// Writes a file of one record per line.
///
/// The file appears only when it is complete.
///
/// ```
/// # use serrate_core as serrate;
/// use arrow::datatypes::DataType;
/// use serrate::RaggedTable;
/// use serrate::io::json::{JsonOptions, NdjsonReader, read_json, read_ndjson, write_json, write_ndjson};
/// let options = JsonOptions::default().with_column("code", DataType::UInt16);
/// let table = RaggedTable::from_json_text(br#"{"age": [71, 38], "code": [[1, 2], [3]]}"#, &options)?;
/// let dir = tempfile::tempdir()?;
/// let (columns, rows) = (dir.path().join("t.json"), dir.path().join("t.ndjson"));
/// write_json(&columns, &table, &Default::default())?;
/// write_ndjson(&rows, &table, &Default::default())?;
/// assert_eq!(read_json(&columns, &options)?.num_rows(), 2);
/// assert_eq!(read_ndjson(&rows, &options)?.num_rows(), 2);
/// let lines = &b"{\"x\": 1}\n{\"x\": 2}\n"[..];
/// assert_eq!(NdjsonReader::new(lines, JsonOptions::default()).read_all()?.num_rows(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Same as [`write_json`].
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
