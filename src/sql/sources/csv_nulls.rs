//! Refuses values that the reader of a CSV file would read as NULL.

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::config::CsvOptions;
use datafusion::common::exec_err;
use datafusion::error::Result;
use regex::Regex;
use serrate_core::internal::json::convert_lists_to_json;

/// The strings that represent NULL in a CSV file that is written, and the columns whose values may
/// nevertheless be such strings.
#[derive(Clone, Debug)]
pub(in crate::sql) struct NullTexts {
    pattern: Regex,
    /// The options of the writer. They contain the formats of dates and times.
    options: CsvOptions,
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
        options: CsvOptions,
        quotes_strings: bool,
        partitions: Vec<String>,
    ) -> Self {
        Self { pattern, options, quotes_strings, partitions }
    }

    /// Returns an error for the first value in a batch that would be read as NULL.
    pub(in crate::sql) fn check_batch(&self, batch: &RecordBatch) -> Result<()> {
        let formats = FormatOptions::default()
            .with_date_format(self.options.date_format.as_deref())
            .with_datetime_format(self.options.datetime_format.as_deref())
            .with_timestamp_format(self.options.timestamp_format.as_deref())
            .with_timestamp_tz_format(self.options.timestamp_tz_format.as_deref())
            .with_time_format(self.options.time_format.as_deref());
        for (at, field) in batch.schema_ref().fields().iter().enumerate() {
            let name = field.name();
            let is_quoted = self.quotes_strings && is_written_as_string(field.data_type());
            if is_quoted || self.partitions.contains(name) {
                continue;
            }
            let texts = convert_lists_to_json(&batch.project(&[at])?)?;
            let column = texts.column(0);
            let formatter = ArrayFormatter::try_new(column.as_ref(), &formats)?;
            let nulls = column.logical_nulls();
            let is_valid = |row: &usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row));
            for row in (0..column.len()).filter(is_valid) {
                let text = formatter.value(row).try_to_string()?;
                let written = match column.data_type().is_string() {
                    true => self.trim_string(&text),
                    false => text.as_str(),
                };
                if self.pattern.is_match(written) {
                    return exec_err!(
                        "the column '{name}' has the value '{text}', which would be read as NULL, because it matches the option null_value or null_regex of the CSV files; change the option so that it matches no value, or write NULL in place of '{text}'"
                    );
                }
            }
        }
        Ok(())
    }

    /// Removes the white space that the writer removes from strings.
    fn trim_string<'a>(&self, text: &'a str) -> &'a str {
        let text = match self.options.ignore_leading_whitespace {
            Some(true) => text.trim_start(),
            _ => text,
        };
        match self.options.ignore_trailing_whitespace {
            Some(true) => text.trim_end(),
            _ => text,
        }
    }
}

/// Whether the values of a type are strings in a CSV file: lists and structs are written as JSON,
/// and bytes as hexadecimal digits.
fn is_written_as_string(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_written_as_string(values),
        other => other.is_string() || other.is_binary() || other.is_nested(),
    }
}
