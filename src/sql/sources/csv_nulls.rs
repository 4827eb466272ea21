//! Refuses values that the reader of a CSV file would read as NULL.

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::exec_err;
use datafusion::error::Result;
use regex::Regex;

use crate::kernels::text::is_text;

/// The strings that represent NULL in a CSV file that is written, and the columns whose values may
/// nevertheless be such strings.
#[derive(Clone, Debug)]
pub(in crate::sql) struct NullTexts {
    pattern: Regex,
    /// Whether the writer quotes strings that match `pattern`, so that other readers can
    /// distinguish them from NULL. Such strings are then accepted. False for INSERT, because
    /// Serrate's reader, like DuckDB's, ignores the quotes.
    quotes_strings: bool,
    /// Columns of PARTITIONED BY, which are not in the file.
    partitions: Vec<String>,
}

impl NullTexts {
    pub(in crate::sql) fn new(
        pattern: Regex,
        quotes_strings: bool,
        partitions: Vec<String>,
    ) -> Self {
        Self { pattern, quotes_strings, partitions }
    }

    /// Returns an error for the first value in a batch that would be read as NULL.
    pub(in crate::sql) fn check_batch(&self, batch: &RecordBatch) -> Result<()> {
        for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            let (name, data_type) = (field.name(), field.data_type());
            // Lists and structs are written as JSON, and bytes as hexadecimal digits.
            let is_encoded = data_type.is_nested() || data_type.is_binary();
            let is_quoted = self.quotes_strings && is_text(data_type);
            if is_encoded || is_quoted || self.partitions.contains(name) {
                continue;
            }
            let texts = cast(column, &DataType::Utf8)?;
            let mut texts = texts.as_string::<i32>().iter().flatten();
            if let Some(text) = texts.find(|text| self.pattern.is_match(text)) {
                return exec_err!(
                    "the column '{name}' has the value '{text}', which would be read as NULL, because it matches the option null_value or null_regex of the CSV files; change the option so that it matches no value, or write NULL in place of '{text}'"
                );
            }
        }
        Ok(())
    }
}
