//! `COPY .. TO 'x.safetensors'`: padded tensors for training.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{GetExt, Statistics, plan_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::sink::DataSink;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use object_store::{ObjectMeta, ObjectStore};

use crate::array::list_depth;
use crate::config::SerrateOptions;
use crate::dense::{DType, DenseOptions, DenseTensor, Side, TableDenseOptions};
use crate::io::safetensors::{SaveOptions, dense};
use crate::sql::order::ordered_sink;
use crate::sql::sources::output::{OutputOptions, local_target, make_folder, write_blocking};
use crate::table::RaggedTable;

const READING: &str = "safetensors files can be written by COPY but not read as tables (rows of a tensor have no types or names of their own); load them with `safetensors`, or keep the data as .nrt or Parquet as well";

/// Creates [`SafetensorsFormat`]; registered under the extension `safetensors`.
#[derive(Debug, Default)]
pub(crate) struct SafetensorsFormatFactory;

impl GetExt for SafetensorsFormatFactory {
    fn get_ext(&self) -> String {
        "safetensors".into()
    }
}

impl FileFormatFactory for SafetensorsFormatFactory {
    fn create(
        &self,
        _state: &dyn Session,
        options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        let output = OutputOptions::parse("SAFETENSORS", options, &["left", "keep_types"])?;
        Ok(Arc::new(SafetensorsFormat { output }))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(SafetensorsFormat::default())
    }
}

/// Dense safetensors as a target of COPY.
///
/// * Ragged columns are padded to the longest list of every level; the masks `dim1/mask`, `dim2/mask` are
///   true for elements. Flat columns have the shape `[rows]`.
/// * FixedSizeList columns, as `densify` returns them, are written without padding, in the shape of their
///   `arrow.fixed_shape_tensor`.
/// * Integers become int64, the type that embedding layers need; `OPTIONS (keep_types true)` keeps their
///   types.
/// * `OPTIONS (left true)` pads on the left; `OPTIONS (overwrite true)` replaces an existing file.
/// * Rows are in source order. All tensors together take at most `serrate.max_dense_bytes`.
#[derive(Clone, Debug, Default)]
pub(crate) struct SafetensorsFormat {
    output: OutputOptions,
}

#[async_trait]
impl FileFormat for SafetensorsFormat {
    fn get_ext(&self) -> String {
        "safetensors".into()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        if compression.is_compressed() {
            return plan_err!("safetensors files cannot be compressed; remove the compression");
        }
        Ok(self.get_ext())
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        None
    }

    async fn infer_schema(
        &self,
        _state: &dyn Session,
        _store: &Arc<dyn ObjectStore>,
        _objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        plan_err!("{READING}")
    }

    async fn infer_stats(
        &self,
        _state: &dyn Session,
        _store: &Arc<dyn ObjectStore>,
        _table_schema: SchemaRef,
        _object: &ObjectMeta,
    ) -> Result<Statistics> {
        plan_err!("{READING}")
    }

    async fn create_physical_plan(
        &self,
        _state: &dyn Session,
        _conf: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan_err!("{READING}")
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _state: &dyn Session,
        conf: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let sink = SafetensorsSink {
            target: local_target(&conf, "SAFETENSORS")?,
            schema: Arc::clone(conf.output_schema()),
            options: self.output.clone(),
        };
        ordered_sink(input, Arc::new(sink), order, ".safetensors", Some(&["subject_id", "id"]))
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        // Never opened, because `create_physical_plan` refuses such files.
        crate::sql::sources::nrt::NrtFormat::default().file_source(table_schema)
    }
}

#[derive(Debug)]
struct SafetensorsSink {
    target: PathBuf,
    schema: SchemaRef,
    options: OutputOptions,
}

impl DisplayAs for SafetensorsSink {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SafetensorsSink(file={})", self.target.display())
    }
}

#[async_trait]
impl DataSink for SafetensorsSink {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let limit = SerrateOptions::of(context.session_config().options()).max_dense_bytes;
        let (target, schema) = (self.target.clone(), Arc::clone(&self.schema));
        let options = self.options.clone();
        write_blocking(data, move |batches| {
            if !options.overwrite && target.exists() {
                return Err(crate::Error::Exists(target).into());
            }
            let batches = batches.collect::<Result<Vec<RecordBatch>>>()?;
            let whole = concat_batches(&schema, &batches)?;
            drop(batches);
            let tensors = to_tensors(&whole, &options, limit)?;
            let save = SaveOptions { overwrite: options.overwrite, ..SaveOptions::default() };
            make_folder(&target)?;
            dense::write(&target, tensors.iter().map(|(n, t)| (n.as_str(), t)), &save)?;
            Ok(u64::try_from(whole.num_rows()).unwrap_or(u64::MAX))
        })
        .await
    }
}

fn to_tensors(
    batch: &RecordBatch,
    options: &OutputOptions,
    limit: u64,
) -> Result<Vec<(String, DenseTensor)>> {
    let keep = options.has("keep_types");
    let (mut out, mut ragged) = (Vec::new(), Vec::new());
    let mut bytes = 0u64;
    for (i, (field, column)) in batch.schema_ref().fields().iter().zip(batch.columns()).enumerate()
    {
        if !matches!(field.data_type(), DataType::FixedSizeList(_, _)) {
            ragged.push(i);
            continue;
        }
        let mut tensor = fixed_tensor(field, column)?;
        if !keep && tensor.dtype().is_integer() {
            tensor = tensor.cast(DType::I64)?;
        }
        bytes = bytes.saturating_add(u64::try_from(tensor.nbytes()).unwrap_or(u64::MAX));
        out.push((field.name().clone(), tensor));
    }
    if !ragged.is_empty() {
        let table = RaggedTable::try_from_batch(&batch.project(&ragged)?)?;
        let dense = DenseOptions {
            side: if options.has("left") { Side::Left } else { Side::Right },
            limit: Some(limit.saturating_sub(bytes)),
            ..DenseOptions::default()
        };
        let all = TableDenseOptions { dense, tokens_as_i64: !keep, ..TableDenseOptions::default() };
        out.extend(table.to_dense_with(&all)?);
    }
    if out.is_empty() {
        return plan_err!("the query has no columns to write as tensors; select at least one");
    }
    Ok(out)
}

/// Returns a FixedSizeList column as a tensor `[rows, ..]` in the shape of its extension type.
fn fixed_tensor(field: &Field, column: &ArrayRef) -> Result<DenseTensor> {
    let tensor = DenseTensor::try_from_arrow(column).map_err(|e| {
        crate::Error::invalid(format!(
            "column {:?} cannot be written as a tensor: {e}",
            field.name()
        ))
    })?;
    let declared = field
        .metadata()
        .get("ARROW:extension:metadata")
        .filter(|_| field.extension_type_name() == Some("arrow.fixed_shape_tensor"))
        .and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok())
        .and_then(|meta| serde_json::from_value::<Vec<usize>>(meta.get("shape")?.clone()).ok());
    match declared {
        Some(shape) if list_depth(field.data_type()) == 1 => {
            let shape: Vec<usize> = std::iter::once(column.len()).chain(shape).collect();
            Ok(tensor.reshape(shape)?)
        }
        _ => Ok(tensor),
    }
}
