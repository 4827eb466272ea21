//! [`RowArg`]: an integer argument, one for all rows or one per row; [`Count`]: one for all elements
//! of an axis, or by an array.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, UInt64Array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Int64Type, UInt64Type};

use super::elementwise::{Pair, pair};
use crate::array::RaggedArray;
use crate::dense::DenseOptions;
use crate::error::{Error, Result};

/// An integer argument that is the same for all rows or another one for each.
///
/// `None`, or a null in the array, means "not given": an open end of a slice, no coordinate.
///
/// ```
/// use arrow::array::Int64Array;
/// use serrate::kernels::RowArg;
/// assert_eq!(RowArg::from(-2).get(7), Some(-2));
/// assert_eq!(RowArg::Each(Int64Array::from(vec![Some(1), None])).get(1), None);
/// ```
#[derive(Clone, Debug)]
pub enum RowArg {
    /// For every row.
    All(Option<i64>),
    /// One per row; as long as there are rows.
    Each(Int64Array),
}

impl RowArg {
    /// Not given, for any row.
    pub const NONE: Self = Self::All(None);

    /// The argument of a row.
    pub fn get(&self, row: usize) -> Option<i64> {
        match self {
            Self::All(v) => *v,
            Self::Each(a) => a.is_valid(row).then(|| a.value(row)),
        }
    }

    /// Whether it is the same for all rows.
    pub fn is_constant(&self) -> bool {
        matches!(self, Self::All(_))
    }

    /// Refuses one argument per row for another number of rows.
    pub(crate) fn check(&self, what: &str, rows: usize) -> Result<()> {
        match self {
            Self::Each(a) if a.len() != rows => {
                Err(Error::invalid(format!("{what}: {} values for {rows} rows", a.len())))
            }
            _ => Ok(()),
        }
    }
}

/// Values in another type that has them: 0.5 is no integer, 300 no byte; 0.1 as a float32 is as near as
/// can be. `what` stands in the error.
pub(super) fn exact(what: &str, values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if values.data_type() == to {
        return Ok(values.clone());
    }
    let refuse = |why: String| Error::invalid(format!("{what} is no value of {to}{why}"));
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let cast = |from: &ArrayRef, to| {
        cast_with_options(from, to, &options).map_err(|e| refuse(format!(": {e}")))
    };
    let made = cast(values, to)?;
    // A text may be written in several ways.
    if values.data_type().is_numeric() && !to.is_floating() {
        let back = cast(&made, values.data_type())?;
        if *back != **values {
            let differs = |i: &usize| back.slice(*i, 1) != values.slice(*i, 1);
            let found = (0..values.len())
                .find(differs)
                .and_then(|i| arrow::util::display::array_value_to_string(values, i).ok());
            return Err(refuse(found.map_or_else(String::new, |v| format!(": {v}"))));
        }
    }
    Ok(made)
}

/// How many, or how long: one number for all elements of an axis, or integers over their lists.
///
/// The array may have fewer levels of lists than the axis; a value per row, or per outer element,
/// then holds for everything below it.
#[derive(Clone, Copy, Debug)]
pub enum Count<'a> {
    /// For every element.
    All(usize),
    /// By element, or by an element above it. Null and negative numbers are dealt with where it is
    /// used.
    Each(&'a RaggedArray),
}

impl Count<'_> {
    /// The number of every element of axis `axis` of `array`; `None` where it is null.
    ///
    /// # Errors
    /// For negative numbers, other types than integers, more levels than the axis has, and lists of
    /// other lengths.
    pub(crate) fn of_elements(
        &self,
        what: &str,
        array: &RaggedArray,
        axis: usize,
    ) -> Result<Vec<Option<usize>>> {
        let elements = array.axis_len(axis)?;
        let given = match self {
            Self::All(n) => return Ok(vec![Some(*n); elements]),
            Self::Each(given) => *given,
        };
        let numbers = integers(what, given.leaves())?;
        if given.axes().len() > axis {
            return Err(Error::invalid(format!(
                "{what}: counts with {} level(s) of lists for axis {axis}; they have at most {axis}",
                given.axes().len()
            )));
        }
        let ids: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..elements as u64));
        let places = RaggedArray::try_new(array.len(), array.axes()[..axis].to_vec(), ids)?;
        let Pair { left, right, .. } = pair(&places, &given.with_leaves(Arc::new(numbers))?)?;
        let (ids, numbers) = (left.as_primitive::<UInt64Type>(), right.as_primitive::<Int64Type>());
        // A list of one element that several counts meet would have to be repeated.
        if ids.values().windows(2).any(|w| w[0] == w[1]) {
            return Err(Error::invalid(format!(
                "{what}: a list of one element has several counts on axis {axis}; counts have lists of the same lengths"
            )));
        }
        let mut out = vec![None; elements];
        for (id, number) in ids.values().iter().zip(numbers.iter()) {
            let Some(number) = number else { continue };
            let count = usize::try_from(number).map_err(|_| {
                Error::invalid(format!("{what}: {number} is no number of elements"))
            })?;
            if let Some(place) = usize::try_from(*id).ok().and_then(|i| out.get_mut(i)) {
                *place = Some(count);
            }
        }
        Ok(out)
    }
}

/// Refuses results of more than [`DenseOptions::DEFAULT_LIMIT`] bytes before they are allocated: a
/// count that came from data may be anything.
pub(crate) fn check_size(what: &str, elements: usize, bits: usize) -> Result<()> {
    let bytes = (elements as u128).saturating_mul(bits as u128) / 8;
    DenseOptions::default()
        .check_bytes(
            bytes,
            || format!("{what}: a result of {elements} elements"),
            || "give smaller counts or sizes, or fewer rows at a time".into(),
        )
        .map(|_| ())
}

/// Bits that one value of a type takes; those of a number for what has no fixed width.
pub(crate) fn bits_of(data_type: &DataType) -> usize {
    match data_type {
        DataType::Boolean => 1,
        other => other.primitive_width().unwrap_or(8).saturating_mul(8),
    }
}

/// Integers of any width as 64-bit ones.
pub(crate) fn integers(what: &str, values: &ArrayRef) -> Result<Int64Array> {
    if !values.data_type().is_integer() && !values.data_type().is_null() {
        return Err(Error::type_of(what, "integers", values.data_type()));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let wide = cast_with_options(values, &DataType::Int64, &options)?;
    Ok(wide.as_primitive::<Int64Type>().clone())
}

impl From<i64> for RowArg {
    fn from(value: i64) -> Self {
        Self::All(Some(value))
    }
}

impl From<Option<i64>> for RowArg {
    fn from(value: Option<i64>) -> Self {
        Self::All(value)
    }
}

impl From<Int64Array> for RowArg {
    fn from(values: Int64Array) -> Self {
        Self::Each(values)
    }
}
