//! `array_slice` that clips both bounds of a slice to the list, even if the slice runs backwards.

use std::iter::successors;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, GenericListArray, Int64Array, OffsetSizeTrait, UInt64Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::cast::as_int64_array;
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::functions_nested::extract::array_slice_udf;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};

use super::{count_call_rows, delegate, to_columnar};

/// Returns an `array_slice` that selects the same elements as DuckDB for any bounds and steps.
/// DataFusion's function returns `[]` if a slice with a negative step begins after the end of the
/// list or ends before its start, and fails for bounds and steps beyond Int32; no upstream issue
/// was found. Remove once `stock_backward_slices_are_still_not_clipped` in `tests/sql/from.rs`
/// fails.
pub(crate) fn build_clipped_slice() -> ScalarUDF {
    ScalarUDF::new_from_impl(ClippedSlice { inner: array_slice_udf() })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ClippedSlice {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for ClippedSlice {
    delegate!(inner: name, aliases, schema_name, signature, return_type, documentation);

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (is_one, rows) = count_call_rows(&args);
        match args.args.as_slice() {
            [lists, from, to, steps @ ..] if !is_copied_in_ranges(from, to, steps) => {
                let steps: ArrayRef = match steps.first() {
                    Some(step) => step.to_array(rows)?,
                    None => Arc::new(Int64Array::from_value(1, rows)),
                };
                let (from, to) = (from.to_array(rows)?, to.to_array(rows)?);
                let bounds = SliceColumns {
                    from: as_int64_array(&from)?,
                    to: as_int64_array(&to)?,
                    steps: as_int64_array(&steps)?,
                };
                to_columnar(bounds.slice_lists(&lists.to_array(rows)?)?, is_one)
            }
            _ => self.inner.invoke_with_args(args),
        }
    }
}

/// Whether all steps are 1 and all bounds fit an Int32. DataFusion's function is correct for such
/// slices, and fast, because it copies whole ranges.
fn is_copied_in_ranges(from: &ColumnarValue, to: &ColumnarValue, steps: &[ColumnarValue]) -> bool {
    let is_short = |at: i64| i32::try_from(at).is_ok();
    steps.iter().all(|step| holds_only(step, |step| step == 1))
        && holds_only(from, is_short)
        && holds_only(to, is_short)
}

pub(super) fn holds_only(value: &ColumnarValue, is_wanted: impl Fn(i64) -> bool) -> bool {
    match value {
        ColumnarValue::Scalar(ScalarValue::Int64(value)) => value.is_none_or(is_wanted),
        ColumnarValue::Scalar(_) => false,
        ColumnarValue::Array(values) => values
            .as_primitive_opt::<Int64Type>()
            .is_some_and(|values| values.iter().flatten().all(is_wanted)),
    }
}

/// The bounds and the step of one slice per row.
struct SliceColumns<'a> {
    from: &'a Int64Array,
    to: &'a Int64Array,
    steps: &'a Int64Array,
}

impl SliceColumns<'_> {
    fn slice_lists(&self, lists: &ArrayRef) -> Result<ArrayRef> {
        let as_lists = match lists.data_type() {
            DataType::List(_) => return self.slice_each(lists.as_list::<i32>()),
            DataType::LargeList(_) => return self.slice_each(lists.as_list::<i64>()),
            DataType::ListView(item) => DataType::List(Arc::clone(item)),
            DataType::LargeListView(item) => DataType::LargeList(Arc::clone(item)),
            other => {
                return exec_err!(
                    "internal error: array_slice was called with the type {other}; please report it"
                );
            }
        };
        let slices = self.slice_lists(&cast(lists, &as_lists)?)?;
        Ok(cast(&slices, lists.data_type())?)
    }

    fn slice_each<O: OffsetSizeTrait>(&self, lists: &GenericListArray<O>) -> Result<ArrayRef> {
        let (item, offsets, values, nulls) = lists.clone().into_parts();
        let given = [nulls.as_ref(), self.from.nulls(), self.to.nulls(), self.steps.nulls()];
        let nulls = NullBuffer::union_many(given);
        let mut positions: Vec<u64> = Vec::new();
        let mut lengths = Vec::with_capacity(lists.len());
        for (row, ends) in offsets.windows(2).enumerate() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                lengths.push(0);
                continue;
            }
            let step = self.steps.value(row);
            if step == 0 {
                return exec_err!(
                    "a slice x[a:b:step] has the step 0; use a positive step, or a negative one for a slice that runs backwards"
                );
            }
            let (start, end) = (ends[0].as_usize(), ends[1].as_usize());
            let (from, to) = (self.from.value(row), self.to.value(row));
            let before = positions.len();
            let found = list_positions(from, to, step, end - start);
            positions.extend(found.map(|at| start as u64 + at));
            lengths.push(positions.len() - before);
        }
        let values = take(&values, &UInt64Array::from(positions), None)?;
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(Arc::new(GenericListArray::<O>::try_new(item, offsets, values, nulls)?))
    }
}

/// Returns the positions, from 0, of the elements that the slice `[from:to:step]` takes from a list
/// of `length` elements. `from` and `to` count from 1, and from the end if they are negative.
fn list_positions(from: i64, to: i64, step: i64, length: usize) -> impl Iterator<Item = u64> {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let count_from_zero = |at: i64| if at < 0 { at + length } else { at - 1 };
    let (from, to) = (count_from_zero(from), count_from_zero(to));
    let (first, last) = match step > 0 {
        true => (from.max(0), to.min(length - 1)),
        false => (from.min(length - 1), to.max(0)),
    };
    successors(Some(first), move |at| at.checked_add(step))
        .take_while(move |at| if step > 0 { *at <= last } else { *at >= last })
        .map(i64::unsigned_abs)
}
