//! Reads and writes a [`Dictionary`], a map from key columns to a value column, as a safetensors
//! file.
//!
//! A file has one tensor per column, `keys/<name>` or `values/<name>`, with one element per entry.
//! A string column holds indices (uint32) of distinct strings; their bytes are concatenated in
//! `.../bytes` (uint8), with end offsets in `.../ends` (int64). The metadata has `format`
//! (`serrate.dictionary`) and `columns`, a JSON list of names and Arrow types with the value column
//! last.

#![deny(clippy::indexing_slicing)]

use std::path::Path;
use std::sync::Arc;

use arrow::array::StringArray;
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field};
use serde::{Deserialize, Serialize};

use crate::dense::DenseTensor;
use crate::dok::{ColumnParts, Dictionary, MapOptions};
use crate::error::{Error, Result};
use crate::io::safetensors::{FileAccess, SafetensorsFile, SaveOptions, dense};

/// Value of `format` in the metadata of a dictionary file.
pub const FORMAT: &str = "serrate.dictionary";

/// Parses the name of an Arrow type such as `Int64`. A deeply nested type is an error, because it
/// would exhaust the stack of Arrow's parser.
pub(crate) fn parse_type(text: &str) -> Result<DataType> {
    const MAX_NESTED: usize = 32;
    if text.bytes().filter(|b| *b == b'(').count() > MAX_NESTED {
        let start: String = text.chars().take(40).collect();
        return Err(Error::invalid(format!(
            "the type {start:?}.. is nested too deeply, in more than 32 parentheses; use a flatter type"
        )));
    }
    text.parse().map_err(|e| {
        Error::invalid(format!(
            "{text:?} is not an Arrow type; write one such as Int64 or Utf8: {e}"
        ))
    })
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredColumn {
    name: String,
    r#type: String,
}

fn format_tensor_name(name: &str, i: usize, count: usize) -> String {
    format!("{}/{name}", if i.saturating_add(1) == count { "values" } else { "keys" })
}

/// Writes a dictionary; the file appears only when it is complete.
///
/// Entries are in insertion order.
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, Int64Array};
/// use arrow::datatypes::{DataType, Field};
/// use serrate::dok::{Dictionary, MapOptions};
/// use serrate::io::dictionary;
/// use serrate::io::safetensors::SaveOptions;
/// let field = |name: &str| Arc::new(Field::new(name, DataType::Int64, false));
/// let mut d = Dictionary::new(vec![field("subject_id")], field("visits"), MapOptions::default())?;
/// let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
/// d.set(&[ids.clone()], &ids)?;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("visits.safetensors");
/// dictionary::write(&path, &d, &SaveOptions::default())?;
/// assert_eq!(dictionary::read(&path)?.get(&[ids.clone()])?.as_ref(), ids.as_ref());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the file cannot be written, if it exists and `overwrite` is false, if a column has a type
/// that a dictionary file does not support, or if two columns would have the same tensor name.
pub fn write(path: impl AsRef<Path>, dictionary: &Dictionary, options: &SaveOptions) -> Result<()> {
    let path = path.as_ref();
    let parts = dictionary.parts()?;
    let mut tensors = Vec::new();
    let mut declared = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        let name = format_tensor_name(part.field.name(), i, parts.len());
        let data_type = part.field.data_type();
        if data_type.to_string().parse::<DataType>().ok().as_ref() != Some(data_type) {
            return Err(Error::file(
                path,
                format!(
                    "column {:?} has the type {data_type}, which a dictionary file does not support; cast the column to numbers or strings",
                    part.field.name()
                ),
            ));
        }
        declared.push(DeclaredColumn {
            name: part.field.name().clone(),
            r#type: data_type.to_string(),
        });
        if let Some(texts) = &part.texts {
            let ends: Vec<i64> =
                texts.value_offsets().iter().skip(1).map(|o| i64::from(*o)).collect();
            let bytes = texts.values().as_slice().to_vec();
            tensors.push((format!("{name}/ends"), DenseTensor::from_vec([ends.len()], ends)?));
            tensors.push((format!("{name}/bytes"), DenseTensor::from_vec([bytes.len()], bytes)?));
        }
        tensors.push((name, part.values.clone()));
    }
    let columns = serde_json::to_string(&declared).map_err(|e| {
        Error::file(
            path,
            format!("the column names cannot be encoded as JSON; rename the columns: {e}"),
        )
    })?;
    let mut options = options.clone();
    options.metadata.insert("format".into(), FORMAT.into());
    options.metadata.insert("columns".into(), columns);
    dense::write(path, tensors.iter().map(|(name, t)| (name.as_str(), t)), &options)
}

/// Returns whether the metadata of a file marks it as a dictionary.
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Arc;
/// use arrow::datatypes::{DataType, Field};
/// use serrate::dok::{Dictionary, MapOptions};
/// use serrate::io::dictionary;
/// use serrate::io::safetensors::{FileAccess, SafetensorsFile, SaveOptions};
/// let field = |name: &str| Arc::new(Field::new(name, DataType::Int64, false));
/// let d = Dictionary::new(vec![field("subject_id")], field("visits"), MapOptions::default())?;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("visits.safetensors");
/// dictionary::write(&path, &d, &SaveOptions::default())?;
/// assert!(dictionary::is_dictionary(&path)?);
/// let file = SafetensorsFile::open(&path, FileAccess::Map)?;
/// assert!(dictionary::read_file(&file, MapOptions::default())?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the file is not a safetensors file.
pub fn is_dictionary(path: impl AsRef<Path>) -> Result<bool> {
    let file = SafetensorsFile::open(path, FileAccess::Map)?;
    Ok(file.header().metadata().get("format").is_some_and(|f| f == FORMAT))
}

/// Reads a dictionary file into memory.
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Arc;
/// use arrow::datatypes::{DataType, Field};
/// use serrate::dok::{Dictionary, MapOptions};
/// use serrate::io::dictionary;
/// use serrate::io::safetensors::SaveOptions;
/// let field = |name: &str| Arc::new(Field::new(name, DataType::Int64, false));
/// let d = Dictionary::new(vec![field("subject_id")], field("visits"), MapOptions::default())?;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("visits.safetensors");
/// dictionary::write(&path, &d, &SaveOptions::default())?;
/// assert_eq!(dictionary::read(&path)?.len(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the file is not a dictionary, its tensors do not match the columns in its metadata, two
/// columns differ in length, or a key occurs twice.
pub fn read(path: impl AsRef<Path>) -> Result<Dictionary> {
    read_file(&SafetensorsFile::open(path, FileAccess::Map)?, MapOptions::default())
}

/// Reads a dictionary from an open file, like [`read`].
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Arc;
/// use arrow::datatypes::{DataType, Field};
/// use serrate::dok::{Dictionary, MapOptions};
/// use serrate::io::dictionary;
/// use serrate::io::safetensors::{FileAccess, SafetensorsFile};
/// # let field = |name: &str| Arc::new(Field::new(name, DataType::Int64, false));
/// # let d = Dictionary::new(vec![field("subject_id")], field("visits"), MapOptions::default())?;
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("visits.safetensors");
/// dictionary::write(&path, &d, &Default::default())?;
/// let file = SafetensorsFile::open(&path, FileAccess::Map)?;
/// let read = dictionary::read_file(&file, MapOptions::default())?;
/// assert_eq!(read.schema(), d.schema());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Same as [`read`].
pub fn read_file(file: &SafetensorsFile, options: MapOptions) -> Result<Dictionary> {
    let wrong = |message: String| Error::file(file.path(), message);
    let metadata = file.header().metadata();
    if metadata.get("format").is_none_or(|f| f != FORMAT) {
        return Err(wrong(format!(
            "the metadata has the format {:?} instead of {FORMAT:?}, so the file is not a dictionary; give another file",
            metadata.get("format").map_or("", String::as_str)
        )));
    }
    let columns =
        metadata.get("columns").ok_or_else(|| wrong("the metadata has no \"columns\", the list of the columns of a dictionary; create the file again".into()))?;
    let declared: Vec<DeclaredColumn> = serde_json::from_str(columns).map_err(|e| {
        wrong(format!("the metadata entry \"columns\" is {columns:?}, not a list of columns; create the file again: {e}"))
    })?;
    let mut parts = Vec::with_capacity(declared.len());
    let mut rows: Option<usize> = None;
    let mut known = Vec::new();
    for (i, column) in declared.iter().enumerate() {
        let name = format_tensor_name(&column.name, i, declared.len());
        let data_type = parse_type(&column.r#type).map_err(|e| wrong(e.to_string()))?;
        let values = dense::read_one(file, file.tensor(&name)?)?;
        if values.ndim() != 1 {
            return Err(wrong(format!(
                "tensor {name:?} has the shape {:?}, but a column of a dictionary must have one dimension; create the file again",
                values.shape()
            )));
        }
        if let Some(rows) = rows.filter(|rows| *rows != values.num_elements()) {
            return Err(wrong(format!(
                "tensor {name:?} has {} value(s), but the columns before it have {rows}; create the file again, with the same number of values in all columns",
                values.num_elements()
            )));
        }
        rows = Some(values.num_elements());
        let (bytes, ends) = (format!("{name}/bytes"), format!("{name}/ends"));
        let texts = match (file.header().get(&bytes), file.header().get(&ends)) {
            (Some(bytes), Some(ends)) => {
                let bytes = dense::read_one(file, bytes)?;
                let ends = dense::read_one(file, ends)?;
                Some(
                    build_strings(&bytes, &ends)
                        .map_err(|e| wrong(format!("tensor {name:?}: {e}")))?,
                )
            }
            _ => None,
        };
        known.extend([name, bytes, ends]);
        parts.push(ColumnParts {
            field: Arc::new(Field::new(&column.name, data_type, false)),
            values,
            texts,
        });
    }
    if let Some(other) = file.tensors().iter().find(|t| !known.iter().any(|k| k == t.name())) {
        return Err(wrong(format!(
            "tensor {:?} belongs to no column in the metadata entry \"columns\"; create the file again",
            other.name()
        )));
    }
    Dictionary::from_parts(parts, options).map_err(|e| wrong(e.to_string()))
}

fn build_strings(bytes: &DenseTensor, ends: &DenseTensor) -> Result<StringArray> {
    let mut offsets = vec![0i32];
    for (i, end) in ends.as_slice::<i64>()?.iter().enumerate() {
        let last = offsets.last().copied().unwrap_or(0);
        let offset = i32::try_from(*end).ok().filter(|offset| last <= *offset).ok_or_else(|| {
            Error::invalid(format!(
                "string {i} ends at byte {end}, but must end at a byte from {last} to 2^31 - 1, so the file is damaged; create it again"
            ))
        })?;
        offsets.push(offset);
    }
    let last = offsets.last().copied().and_then(|l| usize::try_from(l).ok());
    if last != Some(bytes.as_slice::<u8>()?.len()) {
        return Err(Error::invalid(format!(
            "the last string ends at byte {}, but the strings have {} bytes in total, so the file is damaged; create it again",
            last.unwrap_or_default(),
            bytes.as_slice::<u8>()?.len()
        )));
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    Ok(StringArray::try_new(offsets, bytes.buffer().clone(), None)?)
}
