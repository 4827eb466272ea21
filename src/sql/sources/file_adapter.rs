//! Adapts the batches of a file to the schema of its table.

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use std::sync::Arc;

use datafusion::common::exec_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr_adapter::{BatchAdapter, BatchAdapterFactory};
use object_store::path::Path;

use crate::sql::sources::exact_casts::find_unheld;
use crate::sql::sources::exact_file_casts::ExactCasts;
use crate::sql::sources::urls::format_location;

/// Converts batches of one file to columns of a table as a Parquet scan does: finds columns by
/// name, casts them without loss, and fills a column that the file lacks with NULL.
pub(in crate::sql) struct FileAdapter {
    file: Path,
    /// The columns of the table that the scan returns.
    wanted: SchemaRef,
    adapter: BatchAdapter,
}

impl FileAdapter {
    /// Creates an adapter from batches of the schema `read` to batches of the schema `wanted`.
    ///
    /// # Errors
    /// If a type cannot be cast, or the file lacks a column that cannot be NULL.
    pub(in crate::sql) fn try_new(
        file: &Path,
        wanted: &SchemaRef,
        read: &SchemaRef,
    ) -> Result<Self> {
        let adapter = new_adapter_factory(wanted).make_adapter(read);
        let adapter = adapter.map_err(|e| name_file(file, &e))?;
        Ok(Self { file: file.clone(), wanted: Arc::clone(wanted), adapter })
    }

    pub(in crate::sql) fn adapt_batch(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        self.adapter.adapt_batch(batch).map_err(|e| self.name_column(batch, &e))
    }

    /// Adds the names of the file and column to `error`, which names only the value. Casts one
    /// column at a time to find the one that fails. If none fails, adds only the name of the file.
    fn name_column(&self, batch: &RecordBatch, error: &DataFusionError) -> DataFusionError {
        if let Some(message) = find_unheld(&error.strip_backtrace()) {
            return exec_datafusion_err!("{}: {message}", format_location(&self.file));
        }
        if error.strip_backtrace().contains("the column '") {
            return name_file(&self.file, error);
        }
        for field in self.wanted.fields() {
            let one = Arc::new(Schema::new(vec![Arc::clone(field)]));
            let adapter = new_adapter_factory(&one).make_adapter(&batch.schema());
            if let Err(e) = adapter.and_then(|a| a.adapt_batch(batch)) {
                return exec_datafusion_err!(
                    "{}: the column '{}' cannot be converted to {}, its type in the table; declare another type: {}",
                    format_location(&self.file),
                    field.name(),
                    field.data_type(),
                    e.strip_backtrace()
                );
            }
        }
        name_file(&self.file, error)
    }
}

fn new_adapter_factory(wanted: &SchemaRef) -> BatchAdapterFactory {
    BatchAdapterFactory::new(Arc::clone(wanted))
        .with_adapter_factory(ExactCasts::new_shared_factory())
}

pub(in crate::sql) fn describe_repeated_column(file: &Path, name: &str) -> String {
    format!(
        "{}: the file has several columns named '{name}', which a table cannot tell apart; write the file with other names",
        format_location(file)
    )
}

fn name_file(file: &Path, error: &DataFusionError) -> DataFusionError {
    exec_datafusion_err!("{}: {}", format_location(file), error.strip_backtrace())
}
