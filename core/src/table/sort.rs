use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::SortOptions;
use arrow::row::{RowConverter, SortField};
use rayon::prelude::*;

use super::RaggedTable;
use crate::array::canonical::to_canonical_floats;
use crate::error::{Error, Result};

/// A column to sort rows by.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::table::SortKey;
/// let key = SortKey { descending: true, ..SortKey::from("age") };
/// assert!(!key.nulls_first);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SortKey {
    /// Name of a column of axis 0, which has one value per row.
    pub column: String,
    /// Whether to sort in descending order.
    pub descending: bool,
    /// Whether nulls sort before all values instead of after all values; `descending` does not
    /// change this.
    pub nulls_first: bool,
}

/// The name of a column becomes a key that sorts ascending, with nulls last.
impl From<&str> for SortKey {
    fn from(column: &str) -> Self {
        Self { column: column.into(), descending: false, nulls_first: false }
    }
}

impl RaggedTable {
    /// Sorts the rows by columns of axis 0; the first key takes precedence.
    ///
    /// The sort is stable. NaN is larger than all numbers. Copies the rows like
    /// [`take`](Self::take).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 0, 1])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38, 50])))
    ///     .column("code", 1, Arc::new(Int32Array::from(vec![1, 2, 3])))
    ///     .build()?;
    /// let sorted = table.sort(&["age".into()])?;
    /// assert_eq!(sorted.array("code")?.lengths(1)?, [0, 1, 2]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`sort_indices`](Self::sort_indices).
    pub fn sort(&self, keys: &[SortKey]) -> Result<Self> {
        self.take(&self.sort_indices(keys)?)
    }

    /// Returns the indices of all rows in sorted order: [`sort`](Self::sort) returns the rows at
    /// these indices.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Int32Array, UInt16Array};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// assert_eq!(table.sort_indices(&["age".into()])?, [1, 0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are no keys, or a key is not a column of axis 0 or has a type without an order.
    pub fn sort_indices(&self, keys: &[SortKey]) -> Result<Vec<usize>> {
        if keys.is_empty() {
            return Err(Error::invalid(
                "no column to sort by is given; give at least one column with one value per row",
            ));
        }
        let (mut columns, mut options) = (Vec::new(), Vec::new());
        for key in keys {
            let column = self.column(&key.column)?;
            if column.axis() != 0 {
                return Err(Error::invalid(format!(
                    "column {:?} has {} level(s) of lists, but rows can be sorted only by columns with one value per row; choose such a column",
                    key.column,
                    column.axis()
                )));
            }
            columns.push(Arc::clone(column.values()));
            options.push(SortOptions { descending: key.descending, nulls_first: key.nulls_first });
        }
        sort_rows(&columns, &options)
    }
}

pub(super) fn sort_rows(keys: &[ArrayRef], options: &[SortOptions]) -> Result<Vec<usize>> {
    let fields = keys
        .iter()
        .zip(options)
        .map(|(k, o)| SortField::new_with_options(k.data_type().clone(), *o))
        .collect();
    let converted = RowConverter::new(fields)?.convert_columns(&canonicalize_keys(keys)?)?;
    let mut rows: Vec<usize> = (0..converted.num_rows()).collect();
    rows.par_sort_by(|a, b| converted.row(*a).cmp(&converted.row(*b)));
    Ok(rows)
}

/// Makes the floats of keys canonical, because Arrow's row format distinguishes -0 from 0, and
/// sorts a NaN first if its sign bit is set.
pub(super) fn canonicalize_keys(keys: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    keys.iter().map(to_canonical_floats).collect()
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float32Array, Float64Array};

    use super::*;

    #[test]
    fn floats_sort_as_numbers() {
        let ascending = [SortOptions { descending: false, nulls_first: false }];
        let sort = |key: ArrayRef| sort_rows(&[key], &ascending).unwrap();
        let key: ArrayRef =
            Arc::new(Float64Array::from(vec![0.0, -0.0, -f64::NAN, -1.0, f64::INFINITY]));
        assert_eq!(sort(key), [3, 0, 1, 4, 2]);
        let key: ArrayRef = Arc::new(Float32Array::from(vec![
            Some(f32::NAN),
            None,
            Some(-f32::NAN),
            Some(-2.0),
            Some(-0.0),
        ]));
        assert_eq!(sort(key), [3, 4, 0, 2, 1]);
    }
}
