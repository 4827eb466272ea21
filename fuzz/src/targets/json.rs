//! JSON and NDJSON: the reader returns an error or a valid table, which is equal after it is
//! written and read again.

use crate::{FIXED, check_table, read_within};
use arrow::datatypes::DataType;
use serrate::Result;
use serrate::io::json::{JsonForm, JsonOptions, NdjsonReader, NdjsonWriter};
use serrate::table::RaggedTable;

pub fn run(data: &[u8]) {
    // A digit and a comma are 2 bytes of text, and 8 bytes of a column. A column that grows exists
    // twice while it is copied. Therefore, the reader may allocate 32 times the size of the text.
    let fixed = FIXED + 16 * data.len();
    let typed = [("a", DataType::Int64), ("b", DataType::Float32), ("c", DataType::Utf8)]
        .into_iter()
        .fold(JsonOptions::default(), |options, (name, of)| options.with_column(name, of));
    for options in [JsonOptions::default(), typed] {
        let read = || RaggedTable::from_json_text(data, &options);
        if let Ok(table) = read_within(data, fixed, read) {
            check_table(&table);
            for form in [JsonForm::Columns, JsonForm::Records] {
                let _ = table.to_json(form);
            }
        }
        let lines = JsonOptions { batch_rows: 3, ..options.clone() };
        let read = || NdjsonReader::new(data, lines).collect::<Result<Vec<_>>>();
        let tables = read_within(data, fixed, read);
        let whole = read_within(data, fixed, || NdjsonReader::new(data, options).read_all());
        for table in tables.iter().flatten().chain(&whole) {
            check_table(table);
        }
        if let Ok(table) = whole {
            check_rewritten(&table);
        }
    }
}

/// Panics if a table differs after it is written as NDJSON and read again.
fn check_rewritten(table: &RaggedTable) {
    let mut out = NdjsonWriter::new(Vec::new());
    let Ok(text) = out.write(table).and_then(|()| out.finish()) else { return };
    let options = table.columns().iter().fold(JsonOptions::default(), |options, column| {
        options.with_column(column.name(), column.values().data_type().clone())
    });
    let read = NdjsonReader::new(text.as_slice(), options).read_all();
    let text = String::from_utf8_lossy(&text);
    let read = read.unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!(read.num_rows(), table.num_rows(), "{text}");
}
