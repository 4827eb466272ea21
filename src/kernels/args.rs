//! [`RowArg`]: an integer argument, one for all rows or one per row.

use arrow::array::{Array, ArrayRef, Int64Array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;

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
