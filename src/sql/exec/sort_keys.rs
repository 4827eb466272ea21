use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions,
};

use crate::array::{leaf_type, list_depth};
use crate::sql::exec::memory_pool::announce_sort_keys;
use crate::sql::exec::{pass_through, same_statistics};

/// Number of bytes that the keys of a row take in addition to their encoded values: an offset.
const OFFSET_BYTES: usize = 8;

/// Assumed number of bytes of a value of unknown size that is no key.
const VALUE_BYTES: usize = 16;

/// Assumed size of the key of a string, in percent of the string.
const TEXT_PERCENT: usize = 150;

/// Assumed size of the key of another value of unknown size, in percent of the value.
const OTHER_PERCENT: usize = 300;

/// Physical optimizer rule: makes sorts with large keys leave memory for their keys.
///
/// Without this rule, `ORDER BY k, id` of two integers fails if the rows do not fit the memory
/// limit: a sort reserves memory for its rows and their sorted copy, and then needs memory for the
/// keys of all rows at once. The keys are in the row format of Arrow, in which those of several
/// columns, and of a list, may be larger than the rows.
pub(in crate::sql) fn reserve_sort_keys(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let Some(sort) = node.downcast_ref::<SortExec>() else {
            return Ok(Transformed::no(node));
        };
        let percent = estimate_keys(sort)?;
        if sort.fetch().is_some() || percent <= 100 {
            return Ok(Transformed::no(node));
        }
        let input: Arc<dyn ExecutionPlan> =
            Arc::new(SortKeysExec { input: Arc::clone(sort.input()), percent });
        let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
        Ok(Transformed::yes(node.replace_children(vec![input], keep)?))
    })?;
    Ok(plan.data)
}

/// Returns the size of the keys of a sort in percent of its rows, or 0 if the sort compares the
/// values of its only key in place.
fn estimate_keys(sort: &SortExec) -> Result<usize> {
    let schema = sort.input().schema();
    let mut keys = Vec::new();
    for by in sort.expr() {
        keys.push(by.expr.data_type(&schema)?);
    }
    match keys.as_slice() {
        [only] if only.primitive_width().is_some() || is_text(only) => Ok(0),
        keys => Ok(estimate_percent(&schema, keys)),
    }
}

fn is_text(data_type: &DataType) -> bool {
    data_type.is_string() || data_type.is_binary()
}

/// Returns the size of the keys of these types in percent of the rows. The percentage is that of
/// the keys of fixed width or that of the other keys, whichever is larger.
fn estimate_percent(schema: &Schema, keys: &[DataType]) -> usize {
    let fixed_width = |data_type: &DataType| match data_type {
        DataType::Boolean => Some(1),
        other => other.primitive_width(),
    };
    let widths = schema.fields().iter().map(|field| fixed_width(field.data_type()));
    let row_bytes: usize = widths.map(|width| width.unwrap_or(VALUE_BYTES)).sum();
    let fixed = keys.iter().filter_map(fixed_width).map(|width| width + 1);
    let key_bytes = OFFSET_BYTES + fixed.sum::<usize>();
    let of_fixed = (key_bytes * 100).checked_div(row_bytes).unwrap_or(0);
    let others = keys.iter().filter(|key| fixed_width(key).is_none());
    others.map(estimate_other_percent).max().unwrap_or(0).max(of_fixed)
}

/// In the row format, an element of a list takes blocks of 8 bytes, each with a byte that follows
/// it, after one byte for the element. The value of an element follows a byte for its validity.
fn estimate_other_percent(key: &DataType) -> usize {
    let width = leaf_type(key).primitive_width();
    match width {
        Some(width) if list_depth(key) > 0 => (1 + (width + 1).div_ceil(8) * 9) * 100 / width,
        _ if is_text(key) => TEXT_PERCENT,
        _ => OTHER_PERCENT,
    }
}

/// Returns the rows of its input, and tells the memory pool the size of the keys of the sort above.
#[derive(Debug)]
pub(in crate::sql) struct SortKeysExec {
    input: Arc<dyn ExecutionPlan>,
    /// Size of the keys in percent of the rows.
    percent: usize,
}

impl SortKeysExec {
    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self { input, percent: self.percent }
    }

    #[cfg(feature = "cluster")]
    pub(in crate::sql) fn get_input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }
}

impl DisplayAs for SortKeysExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SortKeysExec: percent={}", self.percent)
    }
}

impl ExecutionPlan for SortKeysExec {
    pass_through!("SortKeysExec", input);

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, context)?;
        // The sort registers its consumers next, after all sorts of the input.
        announce_sort_keys(self.percent);
        Ok(rows)
    }

    same_statistics!();
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, AsArray, Int64Array, ListArray};
    use arrow::datatypes::{Field, Int16Type, Int64Type};
    use arrow::row::{RowConverter, SortField};

    use super::*;

    fn measure_keys(columns: &[ArrayRef]) -> usize {
        let fields = columns.iter().map(|c| SortField::new(c.data_type().clone())).collect();
        let rows = RowConverter::new(fields).unwrap().convert_columns(columns).unwrap();
        let keys: usize = rows.iter().map(|row| row.as_ref().len() + OFFSET_BYTES).sum();
        let sizes = columns.iter().map(|c| c.to_data().get_slice_memory_size().unwrap());
        let bytes: usize = sizes.sum();
        keys * 100 / bytes
    }

    fn estimate(columns: &[ArrayRef]) -> usize {
        let types: Vec<DataType> = columns.iter().map(|c| c.data_type().clone()).collect();
        let fields = types.iter().map(|t| Field::new("x", t.clone(), true));
        estimate_percent(&Schema::new(fields.collect::<Vec<_>>()), &types)
    }

    #[test]
    fn keys_are_as_large_as_estimated() {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
        let two = [Arc::clone(&ids), ids];
        assert_eq!(estimate(&two), 162);
        assert_eq!(measure_keys(&two), 162);
        let long = (0..10).map(|row| Some((0..1000).map(move |i| Some(i + row))));
        let long: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(long));
        assert_eq!(long.as_list::<i32>().values().len(), 10_000);
        assert_eq!(estimate(&[Arc::clone(&long)]), 237);
        assert!((230..=245).contains(&measure_keys(&[long])));
        let short = (0..10).map(|_| Some((0..1000i16).map(Some)));
        let short: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int16Type, _, _>(short));
        assert_eq!(estimate(&[Arc::clone(&short)]), 500);
        assert!((480..=510).contains(&measure_keys(&[short])));
    }
}
