//! Access to leaves by their coordinates.

use arrow::array::{Array, ArrayRef, Datum, Scalar, UInt64Array, make_array};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{is_not_null, take};

use super::RowArg;
use super::argument_casts::cast_exactly;
use crate::array::RaggedArray;
use crate::error::{Error, Result};
use crate::index::resolve_position;

/// Returns, for every row, the leaf at `coords`: one coordinate per axis, from axis 1 on.
///
/// Each coordinate is one number for all rows, or one number per row. Negative coordinates count
/// from the end of the list.
///
/// If a coordinate is null or out of range, or the leaf is null or below a null list, the result is
/// `default`, or null without a default. `default` has one value for all rows or one per row. It is
/// cast to the type of the leaves without loss, except that a float type rounds it.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, types::Int32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::at::at;
/// // [[1, 2, 3], [4]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let second = at(&a, &[1.into()], Some(&Int32Array::new_scalar(-1)))?;
/// assert_eq!(second.as_primitive::<Int32Type>().values(), &[2, -1]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the number of coordinates differs from the number of axes of lists, values per row do not
/// match the number of rows, or the type of the leaves cannot represent the default, such as 0.5
/// for integers.
pub fn at(array: &RaggedArray, coords: &[RowArg], default: Option<&dyn Datum>) -> Result<ArrayRef> {
    let rows = array.len();
    if coords.len() != array.axes().len() {
        return Err(Error::invalid(format!(
            "{} coordinate(s) are given for an array with {} level(s) of lists; give one coordinate per level, outermost first",
            coords.len(),
            array.axes().len()
        )));
    }
    for (i, c) in coords.iter().enumerate().filter(|(_, c)| !c.is_constant()) {
        c.check_rows(&format!("coordinate {}", i + 1), rows)?;
    }
    let mut found: Vec<Option<usize>> = (0..rows).map(Some).collect();
    for (axis, coord) in array.axes().iter().zip(coords) {
        let layout = axis.layout();
        for (row, slot) in found.iter_mut().enumerate() {
            *slot = slot.zip(coord.get(row)).and_then(|(list, index)| {
                let range = layout.range(list);
                resolve_position(index, range.len()).map(|i| range.start + i)
            });
        }
    }
    let found: UInt64Array = found.into_iter().map(|i| i.map(|i| i as u64)).collect();
    let values = take(array.leaves(), &found, None)?;
    match default {
        Some(default) if values.logical_null_count() > 0 => replace_null(&values, default, rows),
        _ => Ok(values),
    }
}

fn replace_null(values: &ArrayRef, default: &dyn Datum, rows: usize) -> Result<ArrayRef> {
    let (given, one) = default.get();
    if !one && given.len() != rows {
        return Err(Error::invalid(format!(
            "the default has {} value(s) for {rows} row(s); give one value for all rows, or one per row",
            given.len()
        )));
    }
    if one && given.is_null(0) {
        return Ok(values.clone());
    }
    let fits = cast_exactly("default", &make_array(given.to_data()), values.data_type())?;
    let valid = is_not_null(values)?;
    Ok(if one { zip(&valid, values, &Scalar::new(fits))? } else { zip(&valid, values, &fits)? })
}
