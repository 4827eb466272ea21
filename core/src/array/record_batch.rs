//! Creation of record batches.

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

/// Creates a record batch of `rows` rows. The number of rows is given, because a batch without
/// columns also has rows, such as those that `count(*)` counts.
///
/// # Errors
/// If the columns do not match the schema, or a column does not have `rows` values.
pub fn build_record_batch(
    schema: SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &options)
}
