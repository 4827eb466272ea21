//! Builds batches of a table's columns from the rows of a file.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayData, ArrayRef, Int64Array, RecordBatch, make_array, new_null_array};
use arrow::buffer::MutableBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::error::DataFusionError;
use serrate_core::internal::build_record_batch;

use super::common_schema::cast_leaves;
use super::input::NrtInput;
use super::position_fields::ROW;
use super::row_runs::{count_run_rows, fill_gaps, mask_runs};
use crate::array::{RaggedArray, leaf_type, list_depth};
use crate::io::nrt::NrtFile;
use crate::table::{Column, RaggedTable};

/// Maximum gap in bytes between two row ranges that are read together. Rows in a gap are discarded.
const GAP_BYTES: usize = 4096;

#[derive(Debug)]
enum ColumnOrigin {
    /// The column is a tensor of the same name in the file.
    Tensor,
    /// The query needs only the list lengths of the tensor on this axis (level of lists), so the
    /// values in the returned column are zeros.
    Lengths(usize),
    /// The column has the index of the row in the file.
    Row,
    /// The column has one value for all rows of the file.
    Constant(ScalarValue),
    /// The file lacks the column, so all its values are NULL.
    Absent,
}

#[derive(Debug)]
pub(super) struct ScanColumns {
    schema: SchemaRef,
    origins: Vec<ColumnOrigin>,
    tensors: Vec<String>,
    /// Number of the deepest axis (level of lists) of the tensors to read; axis 0 has the rows.
    depth: usize,
    /// Maximum gap in rows between two ranges of needed rows that are read together.
    gap: usize,
    nan_is_null: bool,
}

impl ScanColumns {
    /// Maps the columns of the table's `schema` to the file. `constants` are the columns with one
    /// value in the whole file, and `lengths` names the columns that are needed only for the
    /// lengths of their lists.
    pub(super) fn try_new(
        input: &NrtInput,
        schema: SchemaRef,
        constants: &HashMap<String, ScalarValue>,
        lengths: &[String],
        nan_is_null: bool,
    ) -> Result<Self> {
        let (mut tensors, mut depth, mut bytes) = (Vec::new(), 0, 0u64);
        let mut origins = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let origin = if let Some(column) = input.find_column(field.name()) {
                if column.axis() != list_depth(field.data_type()) {
                    return Err(DataFusionError::Execution(format!(
                        "{file}: column {column:?} has {axis} levels of lists per row, but the table declares it as {declared}, \
                         with {of_type} levels; create the table again with another type",
                        file = input.path().display(),
                        column = field.name(),
                        axis = column.axis(),
                        declared = field.data_type(),
                        of_type = list_depth(field.data_type())
                    )));
                }
                depth = depth.max(column.axis());
                if lengths.contains(field.name()) {
                    origins.push(ColumnOrigin::Lengths(column.axis()));
                    continue;
                }
                bytes = bytes.saturating_add(column.nbytes());
                tensors.push(field.name().clone());
                ColumnOrigin::Tensor
            } else if let Some(value) = constants.get(field.name()) {
                ColumnOrigin::Constant(value.cast_to(field.data_type())?)
            } else if field.name() == ROW && field.data_type().is_integer() {
                ColumnOrigin::Row
            } else {
                ColumnOrigin::Absent
            };
            origins.push(origin);
        }
        let row = usize::try_from(bytes).unwrap_or(usize::MAX) / input.num_rows().max(1);
        let gap = GAP_BYTES / row.max(1);
        Ok(Self { schema, origins, tensors, depth, gap, nan_is_null })
    }

    pub(super) fn tensors(&self) -> &[String] {
        &self.tensors
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Returns the row ranges to read: the needed rows `runs`, and the short gaps between them.
    pub(super) fn plan_spans(&self, runs: &[Range<usize>]) -> Vec<Range<usize>> {
        fill_gaps(runs, self.gap)
    }

    pub(super) fn build_batch(&self, file: &NrtFile, runs: &[Range<usize>]) -> Result<RecordBatch> {
        let rows = count_run_rows(runs);
        let none = self.tensors.is_empty() && self.depth == 0;
        let table = if none { None } else { Some(self.build_table(file, runs)?) };
        let columns = self
            .schema
            .fields()
            .iter()
            .zip(&self.origins)
            .map(|(field, origin)| match (origin, &table) {
                (ColumnOrigin::Tensor, Some(table)) => self.build_column(file, table, field),
                (ColumnOrigin::Lengths(axis), Some(table)) => {
                    let values =
                        build_zero_array(leaf_type(field.data_type()), table.axis_len(*axis)?)?;
                    let column = Column::new(field.name(), *axis, values);
                    Ok(table.column_array(&column)?.to_arrow_as(field.data_type())?)
                }
                (ColumnOrigin::Row, _) => Ok(cast(&make_row_positions(runs), field.data_type())?),
                (ColumnOrigin::Constant(value), _) => value.to_array_of_size(rows),
                (ColumnOrigin::Absent | ColumnOrigin::Tensor | ColumnOrigin::Lengths(_), _) => {
                    Ok(new_null_array(field.data_type(), rows))
                }
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(build_record_batch(Arc::clone(&self.schema), columns, rows)?)
    }

    fn build_table(&self, file: &NrtFile, runs: &[Range<usize>]) -> Result<RaggedTable> {
        let names: Vec<&str> = self.tensors.iter().map(String::as_str).collect();
        let spans = self.plan_spans(runs);
        let mut tables = spans
            .iter()
            .map(|span| file.read_to(span.clone(), &names, self.depth))
            .collect::<crate::Result<Vec<_>>>()?;
        if tables.is_empty() {
            tables.push(file.read_to(0..0, &names, self.depth)?);
        }
        let table = RaggedTable::concat(&tables)?;
        if table.num_rows() == count_run_rows(runs) {
            return Ok(table);
        }
        Ok(table.filter(&mask_runs(&spans, runs))?)
    }

    fn build_column(&self, file: &NrtFile, table: &RaggedTable, field: &Field) -> Result<ArrayRef> {
        let (name, target) = (field.name(), field.data_type());
        let (rows, axes, values) = table.array(name)?.into_parts();
        let leaf = leaf_type(target);
        let values = cast_leaves(&values, leaf, self.nan_is_null, name, file.path())?;
        Ok(RaggedArray::try_new(rows, axes, values)?.to_arrow_as(target)?)
    }
}

fn build_zero_array(data_type: &DataType, len: usize) -> Result<ArrayRef> {
    let bytes = match data_type.primitive_width() {
        Some(width) => len.saturating_mul(width),
        None => len.div_ceil(8),
    };
    let buffer = MutableBuffer::from_len_zeroed(bytes).into();
    let data = ArrayData::builder(data_type.clone()).len(len).add_buffer(buffer).build()?;
    Ok(make_array(data))
}

fn make_row_positions(runs: &[Range<usize>]) -> ArrayRef {
    let rows = runs.iter().cloned().flatten();
    Arc::new(Int64Array::from_iter_values(rows.map(|r| i64::try_from(r).unwrap_or(i64::MAX))))
}
