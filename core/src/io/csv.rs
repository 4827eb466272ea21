//! Quotes the fields of CSV files so that NULL and an empty string differ.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::json::json_columns::{convert_lists_to_json, make_text_schema};

use crate::array::record_batch::build_record_batch;

/// How fields of a CSV file are quoted.
#[derive(Clone, Debug)]
pub struct CsvQuotes {
    /// Character between fields.
    pub delimiter: u8,
    /// Character around fields.
    pub quote: u8,
    /// Character before a quote or an escape character in a field; with `None`, quotes are doubled.
    pub escape: Option<u8>,
    /// Text that the writer writes for NULL.
    pub null: String,
}

impl Default for CsvQuotes {
    fn default() -> Self {
        Self { delimiter: b',', quote: b'"', escape: None, null: String::new() }
    }
}

impl CsvQuotes {
    /// Returns the schema of the result of [`quote_fields`] for a batch of schema `schema`: lists,
    /// structs, maps and bytes become strings, as do dictionaries whose values are strings. Column
    /// names are quoted where necessary.
    pub fn quote_schema(&self, schema: &Schema) -> SchemaRef {
        let texts = make_text_schema(schema);
        let fields = texts.fields().iter().map(|field| {
            let mut name = String::new();
            self.write_field(field.name(), &mut name);
            let kind = if is_text(field.data_type()) { &DataType::Utf8 } else { field.data_type() };
            Arc::new(Field::new(name, kind.clone(), field.is_nullable()))
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    fn write_field(&self, value: &str, field: &mut String) {
        let special = |b: u8| {
            let escaped = b == self.quote || Some(b) == self.escape;
            escaped || b == self.delimiter || b == b'\n' || b == b'\r'
        };
        if !value.is_empty() && value != self.null && !value.bytes().any(special) {
            field.push_str(value);
            return;
        }
        let quote = char::from(self.quote);
        let escape = self.escape.map_or(quote, char::from);
        field.push(quote);
        for c in value.chars() {
            if c == quote || c == escape {
                field.push(escape);
            }
            field.push(c);
        }
        field.push(quote);
    }
}

/// Prepares a batch for a CSV writer that does not quote: encodes lists, structs and maps as JSON
/// and bytes as hexadecimal digits, and quotes the strings that need quotes, such as `a,b`. Strings
/// that are empty or equal `quotes.null` are also quoted, to differ from NULL. If `quotes.null` is
/// empty and the batch has only one column, NULL is written as an empty string in quotes, because
/// readers skip empty lines.
pub fn quote_fields(batch: &RecordBatch, quotes: &CsvQuotes) -> Result<RecordBatch, ArrowError> {
    let schema = quotes.quote_schema(batch.schema_ref());
    let texts = convert_lists_to_json(batch)?;
    let alone = texts.num_columns() == 1 && quotes.null.is_empty();
    let columns = texts.columns().iter().map(|column| match is_text(column.data_type()) {
        true => quote_column(column, quotes, alone),
        false => Ok(Arc::clone(column)),
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    build_record_batch(schema, columns, batch.num_rows())
}

fn quote_column(
    column: &ArrayRef,
    quotes: &CsvQuotes,
    alone: bool,
) -> Result<ArrayRef, ArrowError> {
    let column = match is_bytes(column.data_type()) {
        true => write_bytes(column)?,
        false => cast(column, &DataType::Utf8)?,
    };
    let mut fields = StringBuilder::with_capacity(column.len(), column.len() * 16);
    let mut field = String::new();
    for value in column.as_string::<i32>() {
        match value {
            None if !alone => fields.append_null(),
            value => {
                field.clear();
                quotes.write_field(value.unwrap_or_default(), &mut field);
                fields.append_value(&field);
            }
        }
    }
    Ok(Arc::new(fields.finish()))
}

/// Writes bytes as hexadecimal digits, as Arrow's CSV writer does.
fn write_bytes(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(column.as_ref(), &options)?;
    let text = |row: usize| column.is_valid(row).then(|| formatter.value(row).to_string());
    Ok(Arc::new((0..column.len()).map(text).collect::<StringArray>()))
}

/// Returns whether any column has strings, bytes, lists, structs or maps. Batches with such a
/// column need [`quote_fields`].
pub fn has_text(schema: &Schema) -> bool {
    let texts = |f: &Arc<Field>| is_text(f.data_type()) || f.data_type().is_nested();
    schema.fields().iter().any(texts)
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_text(values),
        other => other.is_string() || is_bytes(other),
    }
}

fn is_bytes(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_bytes(values),
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{BinaryArray, DictionaryArray, Int32Array};
    use arrow::csv::{QuoteStyle, WriterBuilder};
    use arrow::datatypes::Int32Type;

    use super::*;

    fn write_text(batch: &RecordBatch, quotes: &CsvQuotes) -> String {
        let mut out = Vec::new();
        let builder = WriterBuilder::new().with_header(true).with_quote_style(QuoteStyle::Never);
        let builder = builder.with_delimiter(quotes.delimiter).with_null(quotes.null.clone());
        builder.build(&mut out).write(&quote_fields(batch, quotes).unwrap()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn null_and_empty_strings_differ() {
        let batch = RecordBatch::try_from_iter_with_nullable([
            (
                "a,b",
                Arc::new(StringArray::from(vec![Some(""), None, Some("x\"y"), Some("NA")]))
                    as ArrayRef,
                true,
            ),
            ("n", Arc::new(Int32Array::from(vec![None, Some(2), Some(3), Some(4)])), true),
            (
                "d",
                Arc::new(DictionaryArray::<Int32Type>::from_iter([
                    Some(""),
                    None,
                    Some("p;q"),
                    Some("r"),
                ])),
                true,
            ),
        ])
        .unwrap();
        let csv = write_text(&batch, &CsvQuotes::default());
        assert_eq!(csv, "\"a,b\",n,d\n\"\",,\"\"\n,2,\n\"x\"\"y\",3,p;q\nNA,4,r\n");
        let quotes =
            CsvQuotes { delimiter: b';', quote: b'\'', null: "NA".into(), ..Default::default() };
        assert_eq!(
            write_text(&batch, &quotes),
            "a,b;n;d\n'';NA;''\nNA;2;NA\nx\"y;3;'p;q'\n'NA';4;r\n"
        );
    }

    #[test]
    fn null_and_empty_bytes_differ() {
        let bytes = BinaryArray::from_opt_vec(vec![Some(&b""[..]), None, Some(&b"\xaa\x00"[..])]);
        let numbers = Int32Array::from(vec![1, 2, 3]);
        let columns: [(&str, ArrayRef); 2] = [("b", Arc::new(bytes)), ("n", Arc::new(numbers))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let csv = write_text(&batch, &CsvQuotes::default());
        assert_eq!(csv, "b,n\n\"\",1\n,2\naa00,3\n");
    }

    #[test]
    fn rows_of_one_column_are_never_empty() {
        let texts = StringArray::from(vec![None, Some(""), Some("x")]);
        let batch = RecordBatch::try_from_iter([("a", Arc::new(texts) as ArrayRef)]).unwrap();
        assert_eq!(write_text(&batch, &CsvQuotes::default()), "a\n\"\"\n\"\"\nx\n");
    }
}
