//! Checks the size of a result that can be far longer than the arguments, before it is computed.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::compute::kernels::length::length;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::count_call_rows;
use super::repeated_bytes::count_repeated_bytes;
use crate::array::list_depth;
use crate::memory::MemoryCharge;

/// Results of fewer bytes are not charged to the memory limit.
const MIN_CHARGED_BYTES: usize = 1 << 20;

/// Number of bytes that is assumed for a number or time, and for the offset of a string or list.
const VALUE_BYTES: usize = 8;

/// Charges the result of a call such as `array_repeat(x, 1000000000)` to the memory limit until the
/// returned value is dropped. DataFusion's functions allocate such results without a check, and an
/// allocation that fails ends the process. Returns `None` for short results, and for functions
/// whose results are not much longer than the arguments.
pub(super) fn charge_result(name: &str, args: &ScalarFunctionArgs) -> Result<Option<MemoryCharge>> {
    let [value, counts, rest @ ..] = args.args.as_slice() else { return Ok(None) };
    let (_, rows) = count_call_rows(args);
    let sizes = match name {
        "array_repeat" => measure_values(value, rows, VALUE_BYTES)?,
        "repeat" => measure_values(value, rows, 0)?,
        "array_resize" => match rest {
            [new, ..] => measure_values(new, rows, VALUE_BYTES)?,
            [] => vec![VALUE_BYTES; rows],
        },
        "lpad" | "rpad" => vec![1; rows],
        _ => return Ok(None),
    };
    let counts = cast(&counts.to_array(rows)?, &DataType::Int64)?;
    let counts = counts.as_primitive::<Int64Type>();
    let bytes = counts
        .iter()
        .zip(sizes)
        .map(|(count, size)| usize::try_from(count.unwrap_or(0)).unwrap_or(0).saturating_mul(size));
    charge_bytes(name, bytes.fold(0, usize::saturating_add))
}

/// Like [`charge_result`], for calls of `range` and `generate_series`: charges to the memory limit
/// the lists of integers that a call returns. Returns `None` for short results and for series of
/// other types.
pub(crate) fn charge_series(name: &str, args: &ScalarFunctionArgs) -> Result<Option<MemoryCharge>> {
    if !args.args.iter().all(|arg| arg.data_type().is_integer()) {
        return Ok(None);
    }
    let (_, rows) = count_call_rows(args);
    let columns = args.args.iter().map(|arg| Ok(cast(&arg.to_array(rows)?, &DataType::Int64)?));
    let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
    let count_elements = |row: usize| {
        let read = |column: &ArrayRef| {
            column.is_valid(row).then(|| column.as_primitive::<Int64Type>().value(row))
        };
        let (start, stop, step) = match columns.as_slice() {
            [stop] => (0, read(stop)?, 1),
            [start, stop] => (read(start)?, read(stop)?, 1),
            [start, stop, step] => (read(start)?, read(stop)?, read(step)?),
            _ => return None,
        };
        let is_empty = step == 0 || (start < stop) != (step > 0);
        (!is_empty).then(|| (start.abs_diff(stop) / step.unsigned_abs()).saturating_add(1))
    };
    let elements = (0..rows).filter_map(count_elements).fold(0, u64::saturating_add);
    let bytes = usize::try_from(elements).unwrap_or(usize::MAX).saturating_mul(VALUE_BYTES);
    charge_bytes(name, bytes)
}

fn charge_bytes(name: &str, bytes: usize) -> Result<Option<MemoryCharge>> {
    match bytes < MIN_CHARGED_BYTES {
        true => Ok(None),
        false => Ok(Some(MemoryCharge::take(&format!("the result of {name}"), bytes)?)),
    }
}

/// Returns the approximate size in bytes of each of the `rows` values, plus `more` bytes for each.
fn measure_values(values: &ColumnarValue, rows: usize, more: usize) -> Result<Vec<usize>> {
    let values = match values {
        ColumnarValue::Scalar(value) => return Ok(vec![count_repeated_bytes(value) + more; rows]),
        ColumnarValue::Array(values) => values,
    };
    let width = match values.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => 1,
        lists if list_depth(lists) > 0 => VALUE_BYTES,
        _ => return Ok(vec![more; rows]),
    };
    let lengths = cast(&length(values)?, &DataType::Int64)?;
    let bytes = lengths.as_primitive::<Int64Type>().iter().map(|n| {
        usize::try_from(n.unwrap_or(0)).unwrap_or(0).saturating_mul(width).saturating_add(more)
    });
    Ok(bytes.collect())
}
