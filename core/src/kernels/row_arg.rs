use arrow::array::{Array, Int64Array};

use crate::error::{Error, Result};

/// An integer argument: one value for all rows, or one per row; `None` or null if it is not given.
///
/// ```
/// # use serrate_core as serrate;
/// use arrow::array::Int64Array;
/// use serrate::kernels::RowArg;
/// assert_eq!(RowArg::from(-2).get(7), Some(-2));
/// assert_eq!(RowArg::Each(Int64Array::from(vec![Some(1), None])).get(1), None);
/// ```
#[derive(Clone, Debug)]
pub enum RowArg {
    /// One value for all rows.
    All(Option<i64>),
    /// One value per row.
    Each(Int64Array),
}

impl RowArg {
    /// A missing argument for all rows.
    pub const NONE: Self = Self::All(None);

    /// Returns the argument of a row; `None` if the argument is missing or null.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::array::Int64Array;
    /// use serrate::kernels::RowArg;
    /// let each = RowArg::Each(Int64Array::from(vec![Some(3), None]));
    /// assert_eq!((each.get(0), each.get(1)), (Some(3), None));
    /// assert_eq!((RowArg::from(3).get(9), RowArg::NONE.get(9)), (Some(3), None));
    /// ```
    pub fn get(&self, row: usize) -> Option<i64> {
        match self {
            Self::All(v) => *v,
            Self::Each(a) => a.is_valid(row).then(|| a.value(row)),
        }
    }

    /// Returns whether the argument is the same for all rows.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::array::Int64Array;
    /// use serrate::kernels::RowArg;
    /// assert!(RowArg::from(3).is_constant());
    /// assert!(!RowArg::Each(Int64Array::from(vec![3])).is_constant());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn is_constant(&self) -> bool {
        matches!(self, Self::All(_))
    }

    /// Returns an error unless this is one value or `rows` values. `what` names the argument or
    /// function.
    pub(crate) fn check_rows(&self, what: &str, rows: usize) -> Result<()> {
        match self {
            Self::Each(a) if a.len() != rows => Err(Error::invalid(format!(
                "{what}: {} value(s) are given for {rows} row(s); give one value for all rows, or one per row",
                a.len()
            ))),
            _ => Ok(()),
        }
    }
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
