//! `--schema KEY=TYPE`: declares the types of JSON columns whose values do not determine them.

use std::str::FromStr;

use arrow::datatypes::{DataType, TimeUnit};
use clap::Args;

use crate::array::list_of;

#[derive(Args, Clone, Debug, Default)]
pub(in crate::cli) struct DeclaredTypes {
    /// Type of a JSON column: `code=uint16`, `note=text`, `time=timestamp` (from ISO 8601 strings).
    /// Append `[]` per level of lists if all lists are empty: `code=uint16[][]`. May be given more
    /// than once [default: by the values].
    #[arg(long, value_name = "KEY=TYPE", value_parser = parse_declaration)]
    pub(in crate::cli) schema: Vec<(String, DataType)>,
}

const TYPES: &str = "bool, int8 to int64, uint8 to uint64, float16 to float64, text, date, timestamp (timestamp[s], [ms], [us], [ns]), with [] appended for each level of lists";

fn parse_declaration(text: &str) -> Result<(String, DataType), String> {
    match text.rsplit_once('=') {
        Some((key, name)) if !key.is_empty() => {
            let data_type = parse_type(name.trim());
            let data_type = data_type
                .ok_or_else(|| format!("there is no type {name:?}; use one of {TYPES}"))?;
            Ok((key.to_owned(), data_type))
        }
        _ => Err(format!(
            "{text:?} does not declare the type of a key; write KEY=TYPE, such as code=uint16, where TYPE is one of {TYPES}"
        )),
    }
}

/// Parses a type name of numpy (`int64`), SQL (`bigint`) or Arrow, with `[]` for each level of
/// lists (`int64[][]`). Returns `None` for an unknown name.
fn parse_type(name: &str) -> Option<DataType> {
    if let Some(item) = name.strip_suffix("[]") {
        return Some(list_of(1, parse_type(item.trim_end())?));
    }
    Some(match name.to_ascii_lowercase().as_str() {
        "bool" | "boolean" => DataType::Boolean,
        "int8" => DataType::Int8,
        "int16" => DataType::Int16,
        "int32" | "int" => DataType::Int32,
        "int64" | "bigint" => DataType::Int64,
        "uint8" => DataType::UInt8,
        "uint16" => DataType::UInt16,
        "uint32" => DataType::UInt32,
        "uint64" => DataType::UInt64,
        "float16" | "half" => DataType::Float16,
        "float32" | "float" => DataType::Float32,
        "float64" | "double" => DataType::Float64,
        "text" | "string" | "str" | "utf8" => DataType::Utf8,
        "date" => DataType::Date32,
        "timestamp" | "timestamp[us]" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "timestamp[s]" => DataType::Timestamp(TimeUnit::Second, None),
        "timestamp[ms]" => DataType::Timestamp(TimeUnit::Millisecond, None),
        "timestamp[ns]" => DataType::Timestamp(TimeUnit::Nanosecond, None),
        _ => return DataType::from_str(name).ok(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_by_any_of_their_names() {
        let cases = [
            ("code=uint16", "code", DataType::UInt16),
            ("a=b=Float64", "a=b", DataType::Float64),
            ("code=uint16[][]", "code", list_of(2, DataType::UInt16)),
            ("code=List(UInt16)", "code", list_of(1, DataType::UInt16)),
            ("t=timestamp[s]", "t", DataType::Timestamp(TimeUnit::Second, None)),
            ("t=timestamp []", "t", list_of(1, DataType::Timestamp(TimeUnit::Microsecond, None))),
            ("note=text", "note", DataType::Utf8),
        ];
        for (text, key, data_type) in cases {
            assert_eq!(parse_declaration(text), Ok((key.to_owned(), data_type)), "{text}");
        }
        for wrong in ["code", "=uint8", "code=", "code=uint7", "code=[]"] {
            assert!(parse_declaration(wrong).unwrap_err().contains("float64"), "{wrong}");
        }
    }
}
