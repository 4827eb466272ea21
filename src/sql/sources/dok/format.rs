//! Writes sparse tensors and dictionaries for `COPY .. TO 'file' STORED AS DOK`.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;
use datafusion::common::plan_err;
use datafusion::datasource::physical_plan::FileSinkConfig;
use datafusion::error::Result;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;

use crate::sql::sources::target_sink::TargetSink;

use super::factory::find_tensor_type;
use super::options::DokOptions;
use crate::access;
use crate::sql::order::build_ordered_sink;
use crate::sql::sources::file_output::{collect_rows, find_local_target, make_folder};
use crate::sql::sources::write_only::{WrittenFactory, WrittenFormat};
use serrate_core::internal::keyed::{self, KeyedContents};

const READING: &str = "a file of a sparse tensor or a dictionary is read only through a table; create it, as in CREATE EXTERNAL TABLE m STORED AS DOK LOCATION 'm.safetensors'";

/// Creates [`DokFormat`]; registered under the extension `dok`.
pub(crate) type DokFormatFactory = WrittenFactory<DokFormat>;

/// Sparse tensors and dictionaries as a target of COPY.
///
/// Without `keys`, all columns but the last are axes of a tensor, with integers from 0, and the
/// last is the value. The names of columns are stored. Options:
///
/// | option | |
/// |---|---|
/// | `shape` | size of every axis, such as `'1000, 50'`; by default, as large as the indices require |
/// | `keys` | columns of keys, such as `'subject_id, code'`, of any type; the one other column is the value |
/// | `duplicates` | rows with the same keys: `'error'` (the default), `'last'` or `'sum'` |
/// | `overwrite` | whether an existing file is replaced |
///
/// An index that is negative or outside the shape, and NULL in any column, is an error that names
/// the row. A zero value is not an entry of a tensor.
#[derive(Clone, Debug, Default)]
pub(crate) struct DokFormat {
    options: DokOptions,
}

impl WrittenFormat for DokFormat {
    const NAME: &'static str = "dok";
    const READING: &'static str = READING;
    const COMPRESSING: &'static str =
        "safetensors files cannot be compressed; remove the compression";

    fn parse(options: &HashMap<String, String>) -> Result<Self> {
        let known = ["shape", "keys", "duplicates", "overwrite"];
        Ok(Self { options: DokOptions::parse(options, &known)? })
    }

    fn plan_copy(
        &self,
        input: Arc<dyn ExecutionPlan>,
        conf: &FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = Arc::clone(conf.output_schema());
        let (columns, shape) = order_columns(&schema, &self.options)?;
        let options = DokOptions { shape, ..self.options.clone() };
        let target = find_local_target(conf, "DOK")?;
        // Collects rows and writes one file; the columns are the keys, then the value.
        let sink =
            TargetSink::new("DokSink(file=", target, schema, move |batches, target, schema, _| {
                access::check_new(target, options.overwrite)?;
                let rows = collect_rows(batches, schema, "the writer of DOK files")?;
                let names: Vec<String> =
                    columns.iter().map(|at| schema.field(*at).name().clone()).collect();
                let columns: Vec<ArrayRef> =
                    columns.iter().map(|at| Arc::clone(rows.column(*at))).collect();
                let duplicates = options.duplicates.flatten();
                let contents = match (&options.keys, columns.last()) {
                    (None, Some(value)) => {
                        let dtype = find_tensor_type("value", value.data_type())?;
                        let shape = options.shape.clone();
                        KeyedContents::tensor(&names, &columns, shape, dtype, 0, duplicates)?
                    }
                    _ => KeyedContents::keys(&names, &columns, 0, duplicates)?,
                };
                let count = u64::try_from(rows.num_rows()).unwrap_or(u64::MAX);
                make_folder(target)?;
                keyed::create(target, contents, options.overwrite)?;
                Ok(count)
            });
        build_ordered_sink(input, sink, order, "DOK", None)
    }
}

/// Returns the indices of the columns to write, keys first and value last, and the shape in OPTIONS
/// (`None` for a dictionary or without `shape`). Returns an error if the number of columns is
/// wrong, or if an axis of a tensor is not an integer.
fn order_columns(
    schema: &SchemaRef,
    options: &DokOptions,
) -> Result<(Vec<usize>, Option<Vec<usize>>)> {
    let count = schema.fields().len();
    if let Some(keys) = &options.keys {
        let mut columns = Vec::with_capacity(count);
        for key in keys {
            match schema.index_of(key) {
                Ok(at) => columns.push(at),
                Err(_) => {
                    return plan_err!(
                        "the option 'keys' names column '{key}', which the query does not have; select it"
                    );
                }
            }
        }
        let rest: Vec<usize> = (0..count).filter(|at| !columns.contains(at)).collect();
        let [value] = rest.as_slice() else {
            return plan_err!(
                "a dictionary needs one value column in addition to its keys ({}), but the query has {} \
                 other columns; select exactly one",
                keys.join(", "),
                rest.len()
            );
        };
        columns.push(*value);
        return Ok((columns, None));
    }
    if count < 2 {
        return plan_err!(
            "a sparse tensor needs one column per axis and then the value, but the query has {count} \
             column(s); select at least two"
        );
    }
    if let Some(shape) = &options.shape
        && shape.len() + 1 != count
    {
        return plan_err!(
            "the number of axes of the shape {shape:?} is {}, but the number of columns before the value is {}; give one size per column",
            shape.len(),
            count - 1
        );
    }
    for field in schema.fields().iter().take(count - 1) {
        if !field.data_type().is_integer() {
            return plan_err!(
                "the column '{}' is an axis of the sparse tensor and has the type {}, but an axis must be an \
                 integer; cast the column, or list the columns before the value in the option 'keys' to \
                 write a dictionary, whose keys may have any type",
                field.name(),
                field.data_type()
            );
        }
    }
    let value = schema.field(count - 1);
    find_tensor_type(value.name(), value.data_type())?;
    Ok(((0..count).collect(), options.shape.clone()))
}
