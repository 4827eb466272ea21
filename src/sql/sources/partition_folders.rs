//! Plans the folders such as `k=1/`, one per value of a partition column, that COPY and INSERT
//! write.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::common::{exec_datafusion_err, exec_err, plan_err};
use datafusion::datasource::physical_plan::FileSinkConfig;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::parser::Statement;
use futures::StreamExt;
use futures::future::BoxFuture;
use object_store::path::PathPart;
use serrate_core::internal::{build_record_batch, cast_strictly, find_repeated};

use crate::access;
use crate::sql::sources::inner_sink::{PassRows, find_sink, wrap_sink};

/// Value in a folder name that represents NULL, as Hive, Spark, pyarrow and DuckDB write it.
pub(in crate::sql) const NULL_NAME: &str = "__HIVE_DEFAULT_PARTITION__";

/// Number of bytes of the longest name that file systems allow.
const LONGEST_NAME: usize = 255;

/// Removes the quotes that the parser keeps around names in PARTITIONED BY.
pub(in crate::sql) fn unquote_partitions(statement: &mut Statement) {
    let names = match statement {
        Statement::CopyTo(copy) => &mut copy.partitioned_by,
        Statement::CreateExternalTable(table) => &mut table.table_partition_cols,
        Statement::Explain(explain) => return unquote_partitions(&mut explain.statement),
        Statement::Statement(_) | Statement::Reset(_) => return,
    };
    for name in names {
        let inner = name.strip_prefix('"').and_then(|inner| inner.strip_suffix('"'));
        if let Some(inner) = inner {
            *name = inner.replace("\"\"", "\"");
        }
    }
}

/// Plans the writer of a table with `plan_writer`. If the table has partition columns, the writer
/// receives folder names in place of the values of these columns.
///
/// # Errors
/// If the values of a partition column cannot be folder names, or if all columns are partition
/// columns, so that none is left for the files.
pub(in crate::sql) async fn plan_folders<'a>(
    input: Arc<dyn ExecutionPlan>,
    conf: FileSinkConfig,
    order: Option<LexRequirement>,
    plan_writer: impl FnOnce(
        Arc<dyn ExecutionPlan>,
        FileSinkConfig,
        Option<LexRequirement>,
    ) -> BoxFuture<'a, Result<Arc<dyn ExecutionPlan>>>
    + Send,
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = Arc::clone(conf.output_schema());
    let Some(folders) = PartitionFolders::try_new(&conf)? else {
        return plan_writer(input, conf, order).await;
    };
    let writer = plan_writer(folders.build_empty_node(), folders.conf.clone(), None).await?;
    wrap_sink(input, schema, order, writer, folders)
}

/// The partition columns of a writer, whose values become folder names. DataFusion's writer writes
/// NULL as 0 or '' (test `stock_null_is_still_written_to_the_folder_of_zero`), so it receives the
/// names instead of the values.
#[derive(Clone, Debug)]
struct PartitionFolders {
    columns: Vec<String>,
    /// Whether the files contain the partition columns, too. They then contain the values, not the
    /// folder names.
    kept: bool,
    /// The configuration of a writer that receives names of folders instead of values.
    conf: FileSinkConfig,
}

impl PartitionFolders {
    /// Returns the partition columns of a writer, or `None` if it has none.
    fn try_new(conf: &FileSinkConfig) -> Result<Option<Self>> {
        if conf.table_partition_cols.is_empty() {
            return Ok(None);
        }
        let columns: Vec<String> =
            conf.table_partition_cols.iter().map(|(name, _)| name.clone()).collect();
        let kept = conf.keep_partition_by_columns;
        let schema = conf.output_schema();
        check_column_names(&columns)?;
        for name in &columns {
            let field = schema.field_with_name(name)?;
            if !is_nameable(field.data_type()) {
                return plan_err!(
                    "PARTITIONED BY ({name}) is not supported for the type {}, whose values cannot be folder names; partition by a number, a text, a date or a time",
                    field.data_type()
                );
            }
        }
        if !kept && schema.fields().iter().all(|f| columns.contains(f.name())) {
            return plan_err!(
                "PARTITIONED BY ({}) leaves no column for the files; omit at least one column from it",
                columns.join(", ")
            );
        }
        let mut conf = conf.clone();
        if !kept {
            conf.output_schema = names_schema(schema, &columns);
        }
        Ok(Some(Self { columns, kept, conf }))
    }

    /// Whether the folders are in the file system.
    fn is_local(&self) -> bool {
        self.conf.table_paths.iter().all(|url| url.scheme() == "file")
    }

    /// Returns a node without rows. It is the input of the writer's plan: only the sink of this
    /// plan is used.
    fn build_empty_node(&self) -> Arc<dyn ExecutionPlan> {
        Arc::new(EmptyExec::new(Arc::clone(self.conf.output_schema())))
    }

    fn to_named(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
        for (field, column) in batch.schema().fields().iter().zip(&mut columns) {
            if self.columns.contains(field.name()) {
                let names = self.to_names(field.name(), column)?;
                if !self.kept {
                    *column = names;
                }
            }
        }
        let schema = match self.kept {
            true => batch.schema(),
            false => names_schema(&batch.schema(), &self.columns),
        };
        Ok(build_record_batch(schema, columns, batch.num_rows())?)
    }

    fn to_names(&self, name: &str, column: &ArrayRef) -> Result<ArrayRef> {
        if self.kept && column.logical_null_count() > 0 {
            return exec_err!(
                "the column '{name}' of PARTITIONED BY is NULL in some rows, but rows with NULL cannot be written with the option execution.keep_partition_by_columns; remove the option or these rows"
            );
        }
        let texts = cast_strictly(column, &DataType::Utf8).map_err(|e| {
            exec_datafusion_err!(
                "the column '{name}' of PARTITIONED BY has a value that cannot be the name of a folder; cast the column to a string: {e}"
            )
        })?;
        let texts = texts.as_string::<i32>();
        if texts.iter().any(|text| text == Some(NULL_NAME)) {
            return exec_err!(
                "the column '{name}' of PARTITIONED BY has the text '{NULL_NAME}', which names the folder of the rows with NULL; replace this text"
            );
        }
        let is_too_long = |text: &&str| is_long_folder(name, text);
        if self.is_local()
            && let Some(text) = texts.iter().flatten().find(is_too_long)
        {
            return exec_err!(
                "the column '{name}' of PARTITIONED BY has a text of {} bytes, but the name of a folder, which is name=text with special characters encoded, has at most {LONGEST_NAME} bytes; partition by a part of the text",
                text.len()
            );
        }
        if texts.null_count() == 0 {
            return Ok(Arc::new(texts.clone()));
        }
        let named = texts.iter().map(|text| Some(text.unwrap_or(NULL_NAME)));
        Ok(Arc::new(named.collect::<StringArray>()))
    }
}

/// Returns an error if the columns of PARTITIONED BY are repeated, or if the names of their folders
/// could not be read back.
fn check_column_names(columns: &[String]) -> Result<()> {
    if let Some(name) = find_repeated(columns) {
        return plan_err!(
            "PARTITIONED BY ({}) names the column '{name}' twice; name it once",
            columns.join(", ")
        );
    }
    let unreadable = columns.iter().find(|name| name.contains('=') || name.starts_with('.'));
    match unreadable {
        None => Ok(()),
        Some(name) => plan_err!(
            "PARTITIONED BY ({name}) is not supported, because the column of a folder name=value ends at the first '=', and folders that begin with '.' are hidden; give the column another name"
        ),
    }
}

/// Whether the name of the folder for `text` is longer than file systems allow.
fn is_long_folder(column: &str, text: &str) -> bool {
    // Percent-encoding writes at most 3 bytes for each byte.
    if column.len().saturating_add(text.len()) < LONGEST_NAME / 3 {
        return false;
    }
    let part = PathPart::from(format!("{column}={text}"));
    let encoded: &str = part.as_ref();
    encoded.len() > LONGEST_NAME
}

/// Whether every value of a type can be written as the name of a folder and read back from that
/// name.
fn is_nameable(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_nameable(values),
        DataType::Null
        | DataType::Boolean
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Date32
        | DataType::Date64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Timestamp(_, _) => true,
        other => other.is_numeric(),
    }
}

fn names_schema(schema: &SchemaRef, columns: &[String]) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| match columns.contains(field.name()) {
        true => Arc::new(Field::new(field.name(), DataType::Utf8, false)),
        false => Arc::clone(field),
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// On the way to the sink, replaces the values of the partition columns with folder names.
#[async_trait]
impl PassRows for PartitionFolders {
    async fn pass_rows(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let folders = self.clone();
        let schema = Arc::clone(folders.conf.output_schema());
        let named = data.map(move |batch| folders.to_named(&batch?));
        let named = Box::pin(RecordBatchStreamAdapter::new(schema, named));
        let rows = find_sink(plan)?.write_all(named, context).await?;
        if rows == 0
            && let [url] = self.conf.table_paths.as_slice()
            && url.scheme() == "file"
            && let Ok(folder) = url.get_url().to_file_path()
        {
            access::create_dir_all(&folder).map_err(|e| crate::Error::io(&folder, e))?;
        }
        Ok(rows)
    }
}
