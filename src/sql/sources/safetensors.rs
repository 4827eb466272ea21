//! `COPY .. TO 'x.safetensors'`: writes the columns of a query as padded tensors, for training.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field};
use datafusion::common::plan_err;
use datafusion::datasource::physical_plan::FileSinkConfig;
use datafusion::error::Result;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;

use crate::access;
use crate::array::list_depth;
use crate::dense::{DType, DenseOptions, DenseTensor, PaddingSide, TableDenseOptions};
use crate::io::safetensors::{SaveOptions, dense};
use crate::sql::order::build_ordered_sink;
use crate::sql::sources::file_output::{
    OutputOptions, collect_rows, find_local_target, make_folder,
};
use crate::sql::sources::target_sink::TargetSink;
use crate::sql::sources::write_only::{WrittenFactory, WrittenFormat};
use crate::table::RaggedTable;

const READING: &str = "safetensors files can be written by COPY but not read as tables; load them with the Python package safetensors, or write the data as .nrt or Parquet too";

/// Creates [`SafetensorsFormat`]; registered under the extension `safetensors`.
pub(crate) type SafetensorsFormatFactory = WrittenFactory<SafetensorsFormat>;

/// Dense safetensors as a target of COPY.
///
/// * Ragged columns are padded to the longest list of every level; the masks `dim1/mask`,
///   `dim2/mask` are true for elements. Flat columns have the shape `[rows]`.
/// * FixedSizeList columns, as from `densify`, keep the shape of their `arrow.fixed_shape_tensor`.
/// * Integers become int64, as embedding layers need; `OPTIONS (keep_types true)` keeps their
///   types.
/// * `OPTIONS (left true)` pads on the left; `OPTIONS (overwrite true)` replaces an existing file.
/// * Rows keep the order of the files or tables that the query reads.
/// * All tensors together take at most `serrate.max_dense_bytes`.
#[derive(Clone, Debug, Default)]
pub(crate) struct SafetensorsFormat {
    output: OutputOptions,
}

impl WrittenFormat for SafetensorsFormat {
    const NAME: &'static str = "safetensors";
    const READING: &'static str = READING;
    const COMPRESSING: &'static str =
        "safetensors files cannot be compressed; remove the compression";

    fn parse(options: &HashMap<String, String>) -> Result<Self> {
        let output = OutputOptions::parse("SAFETENSORS", options, &["left", "keep_types"])?;
        Ok(Self { output })
    }

    fn plan_copy(
        &self,
        input: Arc<dyn ExecutionPlan>,
        conf: &FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (target, schema) =
            (find_local_target(conf, "SAFETENSORS")?, Arc::clone(conf.output_schema()));
        let options = self.output.clone();
        let write = TargetSink::new(
            "SafetensorsSink(file=",
            target,
            schema,
            move |batches, target, schema, limit| {
                access::check_new(target, options.overwrite)?;
                let whole = collect_rows(batches, schema, "the writer of safetensors files")?;
                let tensors = to_tensors(&whole, &options, limit)?;
                let save = SaveOptions { overwrite: options.overwrite, ..SaveOptions::default() };
                make_folder(target)?;
                dense::write(target, tensors.iter().map(|(n, t)| (n.as_str(), t)), &save)?;
                Ok(u64::try_from(whole.num_rows()).unwrap_or(u64::MAX))
            },
        );
        build_ordered_sink(input, write, order, ".safetensors", Some(&["subject_id", "id"]))
    }
}

fn to_tensors(
    batch: &RecordBatch,
    options: &OutputOptions,
    limit: u64,
) -> Result<Vec<(String, DenseTensor)>> {
    let keep = options.has_option("keep_types");
    let (mut out, mut ragged) = (Vec::new(), Vec::new());
    let mut bytes = 0u64;
    for (i, (field, column)) in batch.schema_ref().fields().iter().zip(batch.columns()).enumerate()
    {
        if !matches!(field.data_type(), DataType::FixedSizeList(_, _)) {
            ragged.push(i);
            continue;
        }
        let mut tensor = make_fixed_tensor(field, column)?;
        if !keep && tensor.dtype().is_integer() {
            tensor = tensor.cast(DType::I64)?;
        }
        bytes = bytes.saturating_add(u64::try_from(tensor.nbytes()).unwrap_or(u64::MAX));
        out.push((field.name().clone(), tensor));
    }
    if !ragged.is_empty() {
        let table = RaggedTable::try_from_batch(&batch.project(&ragged)?)?;
        let dense = DenseOptions {
            side: if options.has_option("left") { PaddingSide::Left } else { PaddingSide::Right },
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
fn make_fixed_tensor(field: &Field, column: &ArrayRef) -> Result<DenseTensor> {
    let tensor = DenseTensor::try_from_arrow(column).map_err(|e| {
        crate::Error::invalid(format!(
            "column {:?} cannot be written as a tensor; cast it to numbers or leave it out: {e}",
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
