//! Statistics of tables: lengths of lists, missing values, sizes of dense tensors.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, BooleanArray, PrimitiveArray};
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};

use super::RaggedTable;
use super::concat::promote_column_type;
use crate::array::Layout;
use crate::error::{Error, Result};

/// Histogram of list lengths across any number of tables.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::table::LengthHistogram;
/// let lengths: LengthHistogram = [3, 0, 2, 2].into_iter().collect();
/// assert_eq!((lengths.min(), lengths.quantile(0.5), lengths.max()), (Some(0), Some(2), Some(3)));
/// assert_eq!((lengths.lists(), lengths.total()), (4, 7));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LengthHistogram {
    /// `small[n]` is the number of lists of length `n`, for lengths below [`SMALL`].
    small: Vec<u64>,
    large: BTreeMap<usize, u64>,
    lists: u64,
    total: u64,
}

const SMALL: usize = 4096;

impl LengthHistogram {
    /// Adds one list of length `length` to the histogram.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::table::LengthHistogram;
    /// let mut lengths = LengthHistogram::default();
    /// lengths.push(3);
    /// lengths.push(0);
    /// assert_eq!((lengths.lists(), lengths.total()), (2, 3));
    /// ```
    pub fn push(&mut self, length: usize) {
        self.push_many(length, 1);
    }

    fn push_many(&mut self, length: usize, lists: u64) {
        if length < SMALL {
            if self.small.len() <= length {
                self.small.resize(length + 1, 0);
            }
            self.small[length] += lists;
        } else {
            *self.large.entry(length).or_default() += lists;
        }
        self.lists += lists;
        self.total = self.total.saturating_add((length as u64).saturating_mul(lists));
    }

    /// Adds all lists of an axis to the histogram.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::array::Layout;
    /// use serrate::table::LengthHistogram;
    /// let mut lengths = LengthHistogram::default();
    /// lengths.push_layout(&Layout::Uniform { size: 3, lists: 2 });
    /// assert_eq!((lengths.lists(), lengths.total()), (2, 6));
    /// ```
    pub fn push_layout(&mut self, layout: &Layout) {
        match layout {
            Layout::Uniform { lists: 0, .. } => {}
            Layout::Uniform { size, lists } => self.push_many(*size, *lists as u64),
            Layout::Ragged(offsets) => offsets.lengths().for_each(|n| self.push(n)),
        }
    }

    /// Returns the number of lists.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::table::LengthHistogram;
    /// let lengths: LengthHistogram = [3, 0, 2].into_iter().collect();
    /// assert_eq!(lengths.lists(), 3);
    /// ```
    pub fn lists(&self) -> u64 {
        self.lists
    }

    /// Returns the sum of all lengths.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::table::LengthHistogram;
    /// let lengths: LengthHistogram = [3, 0, 2].into_iter().collect();
    /// assert_eq!(lengths.total(), 5);
    /// ```
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the length of the shortest list; `None` without lists.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::table::LengthHistogram;
    /// let lengths: LengthHistogram = [3, 0, 2].into_iter().collect();
    /// assert_eq!(lengths.min(), Some(0));
    /// assert_eq!(LengthHistogram::default().min(), None);
    /// ```
    pub fn min(&self) -> Option<usize> {
        self.counts().next().map(|(n, _)| n)
    }

    /// Returns the length of the longest list; `None` without lists.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::table::LengthHistogram;
    /// let lengths: LengthHistogram = [3, 0, 2].into_iter().collect();
    /// assert_eq!(lengths.max(), Some(3));
    /// assert_eq!(LengthHistogram::default().max(), None);
    /// ```
    pub fn max(&self) -> Option<usize> {
        self.counts().last().map(|(n, _)| n)
    }

    /// Returns quantile `q` (0 to 1) of the lengths: the smallest length `n` such that at least the
    /// share `q` of the lists has at most `n` elements.
    ///
    /// Returns `None` without lists; 0.5 gives the lower median.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::table::LengthHistogram;
    /// let lengths: LengthHistogram = [10, 1, 3, 2].into_iter().collect();
    /// assert_eq!((lengths.quantile(0.5), lengths.quantile(0.75)), (Some(2), Some(3)));
    /// assert_eq!(LengthHistogram::default().quantile(0.5), None);
    /// ```
    pub fn quantile(&self, q: f64) -> Option<usize> {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank between 0 and the number of lists"
        )]
        let rank = ((self.lists as f64 * q.clamp(0.0, 1.0)).ceil() as u64).max(1);
        let mut seen = 0;
        self.counts().find_map(|(length, lists)| {
            seen += lists;
            (seen >= rank).then_some(length)
        })
    }

    /// Returns the lengths that occur, in ascending order, each with its number of lists.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::table::LengthHistogram;
    /// let lengths: LengthHistogram = [3, 0, 3].into_iter().collect();
    /// assert_eq!(lengths.counts().collect::<Vec<_>>(), [(0, 1), (3, 2)]);
    /// ```
    pub fn counts(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let small = self.small.iter().copied().enumerate().filter(|(_, lists)| *lists > 0);
        small.chain(self.large.iter().map(|(n, lists)| (*n, *lists)))
    }
}

impl FromIterator<usize> for LengthHistogram {
    fn from_iter<I: IntoIterator<Item = usize>>(lengths: I) -> Self {
        let mut counts = Self::default();
        lengths.into_iter().for_each(|n| counts.push(n));
        counts
    }
}

/// Counts of missing values of a column, across any number of tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnStats {
    /// Name of the column.
    pub name: String,
    /// Axis of the column.
    pub axis: usize,
    /// Common type of the values of this column in all tables.
    pub data_type: DataType,
    /// Number of values, nulls and NaN included.
    pub values: u64,
    /// Number of null values.
    pub nulls: u64,
    /// Number of valid NaN values.
    pub nans: u64,
    /// Number of null lists of this column, on all axes together.
    pub null_lists: u64,
}

/// Statistics of tables with the same columns: lengths per axis and missing values per column.
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Arc;
/// use arrow::array::Float32Array;
/// use serrate::table::{RaggedTable, TableStats};
/// let table = RaggedTable::builder()
///     .lengths([2, 1])?
///     .column("x", 1, Arc::new(Float32Array::from(vec![Some(1.0), None, Some(f32::NAN)])))
///     .build()?;
/// let stats = TableStats::of([&table])?;
/// assert_eq!(stats.lengths(1)?.max(), Some(2));
/// assert_eq!((stats.columns()[0].nulls, stats.columns()[0].nans), (1, 1));
/// // 2 rows of at most 2 float32 values, and a mask of the same shape.
/// assert_eq!(stats.dense_bytes(), 2 * 2 * 4 + 2 * 2);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableStats {
    rows: u64,
    tables: u64,
    names: Vec<Option<String>>,
    axes: Vec<LengthHistogram>,
    columns: Vec<ColumnStats>,
}

impl TableStats {
    /// Collects the statistics of all tables.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt8Array;
    /// use serrate::table::{RaggedTable, TableStats};
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("x", 1, Arc::new(UInt8Array::from(vec![1, 2, 3])))
    ///     .build()?;
    /// let stats = TableStats::of([&table, &table.slice(0, 1)?])?;
    /// assert_eq!((stats.rows(), stats.columns()[0].values), (3, 5));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`push`](Self::push), for the first table whose columns or axes differ.
    pub fn of<'a>(tables: impl IntoIterator<Item = &'a RaggedTable>) -> Result<Self> {
        let mut stats = Self::default();
        for table in tables {
            stats.push(table)?;
        }
        Ok(stats)
    }

    /// Adds a table.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt8Array;
    /// use serrate::table::{RaggedTable, TableStats};
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("x", 1, Arc::new(UInt8Array::from(vec![1, 2, 3])))
    ///     .build()?;
    /// let mut stats = TableStats::default();
    /// stats.push(&table)?;
    /// stats.push(&table)?;
    /// assert_eq!(stats.rows(), 4);
    /// assert!(stats.push(&table.select(&[])?).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If columns or axes differ from the earlier tables, or the types of a column have no common
    /// type.
    pub fn push(&mut self, table: &RaggedTable) -> Result<()> {
        if self.tables == 0 {
            self.names = (0..table.ndim()).map(|a| table.axis_name(a).map(str::to_owned)).collect();
            self.axes = vec![LengthHistogram::default(); table.axes().len()];
            self.columns = table
                .columns()
                .iter()
                .map(|c| ColumnStats {
                    name: c.name().to_owned(),
                    axis: c.axis(),
                    data_type: c.data_type().clone(),
                    values: 0,
                    nulls: 0,
                    nans: 0,
                    null_lists: 0,
                })
                .collect();
        } else if self.axes.len() != table.axes().len()
            || self.columns.len() != table.columns().len()
        {
            return Err(Error::invalid(format!(
                "this table has {} columns and {} axes, but the earlier tables have {} columns and {} axes; give tables with the same columns and axes",
                table.columns().len(),
                table.ndim(),
                self.columns.len(),
                self.ndim()
            )));
        }
        self.tables += 1;
        self.rows += table.num_rows() as u64;
        for (lengths, axis) in self.axes.iter_mut().zip(table.axes()) {
            lengths.push_layout(axis.layout());
        }
        for stats in &mut self.columns {
            let column = table.column(&stats.name)?;
            if column.axis() != stats.axis {
                return Err(Error::invalid(format!(
                    "column {:?} has {} level(s) of lists in this table, but {} in the earlier tables; give the column the same number of levels in all tables, or select only the other columns",
                    stats.name,
                    column.axis(),
                    stats.axis
                )));
            }
            let place = || format!("column {:?}", stats.name);
            stats.data_type = promote_column_type(&stats.data_type, column.data_type(), place)?;
            stats.values += column.values().len() as u64;
            stats.nulls += column.values().logical_null_count() as u64;
            stats.nans += count_nans(column.values().as_ref());
            stats.null_lists +=
                column.list_nulls().iter().flatten().map(|n| n.null_count() as u64).sum::<u64>();
        }
        Ok(())
    }

    /// Returns the number of rows of all tables.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::table::{RaggedTable, TableStats};
    /// let table = RaggedTable::builder().lengths([2, 1])?.build()?;
    /// let stats = TableStats::of([&table, &table])?;
    /// assert_eq!(stats.rows(), 4);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the number of axes, rows included.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::table::{RaggedTable, TableStats};
    /// let table = RaggedTable::builder().lengths([2, 1])?.build()?;
    /// let stats = TableStats::of([&table])?;
    /// assert_eq!(stats.ndim(), 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn ndim(&self) -> usize {
        self.axes.len() + 1
    }

    /// Returns the name of axis `axis` (0 is the rows); `None` if the axis has no name or does not
    /// exist.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::table::{RaggedTable, TableStats};
    /// let table = RaggedTable::builder().names(["patient", "visit"]).lengths([2, 1])?.build()?;
    /// let stats = TableStats::of([&table])?;
    /// assert_eq!((stats.axis_name(0), stats.axis_name(1)), (Some("patient"), Some("visit")));
    /// assert_eq!(stats.axis_name(2), None);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn axis_name(&self, axis: usize) -> Option<&str> {
        self.names.get(axis)?.as_deref()
    }

    /// Returns the histogram of the list lengths of axis `axis` (1 or more).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::table::{RaggedTable, TableStats};
    /// let table = RaggedTable::builder().lengths([2, 1])?.build()?;
    /// let stats = TableStats::of([&table])?;
    /// assert_eq!(stats.lengths(1)?.max(), Some(2));
    /// assert!(stats.lengths(0).is_err() && stats.lengths(2).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such axis.
    pub fn lengths(&self, axis: usize) -> Result<&LengthHistogram> {
        axis.checked_sub(1).and_then(|i| self.axes.get(i)).ok_or_else(|| Error::NoSuchAxis {
            what: "the table".into(),
            axis: i64::try_from(axis).unwrap_or(i64::MAX),
            ndim: self.ndim(),
        })
    }

    /// Returns the statistics of each column, in the order of the columns of the first table.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt8Array;
    /// use serrate::table::{RaggedTable, TableStats};
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("x", 1, Arc::new(UInt8Array::from(vec![1, 2, 3])))
    ///     .build()?;
    /// let stats = TableStats::of([&table])?;
    /// let x = &stats.columns()[0];
    /// assert_eq!((x.name.as_str(), x.axis, x.values, x.nulls), ("x", 1, 3, 0));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn columns(&self) -> &[ColumnStats] {
        &self.columns
    }

    /// Returns the number of elements of axis `axis` after padding: the number of rows times the
    /// length of the longest list of each axis from 1 to `axis`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::table::{RaggedTable, TableStats};
    /// let table = RaggedTable::builder().lengths([2, 1])?.build()?;
    /// let stats = TableStats::of([&table])?;
    /// // 2 rows, and at most 2 elements in each.
    /// assert_eq!((stats.dense_cells(0), stats.dense_cells(1)), (2, 4));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn dense_cells(&self, axis: usize) -> u128 {
        let longest = self.axes.iter().take(axis).map(|a| a.max().unwrap_or(0) as u128);
        longest.fold(u128::from(self.rows), u128::saturating_mul)
    }

    /// Returns the share (0 to 1) of the [`dense_cells`](Self::dense_cells) that are elements and
    /// not padding; `None` if there are 0 cells.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use serrate::array::{Layout, Offsets};
    /// use serrate::table::{LengthHistogram, RaggedTable, TableStats};
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// let mut stats = TableStats::default();
    /// stats.push(&table)?;
    /// assert_eq!((stats.rows(), stats.ndim(), stats.dense_cells(1)), (2, 2, 4));
    /// assert_eq!(stats.occupied(1), Some(0.75));
    /// let mut lengths = LengthHistogram::default();
    /// lengths.push_layout(&Layout::from(Offsets::from_lengths([2, 1, 2])?));
    /// assert_eq!(lengths.counts().collect::<Vec<_>>(), [(1, 1), (2, 2)]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn occupied(&self, axis: usize) -> Option<f64> {
        let elements = match axis.checked_sub(1) {
            None => self.rows,
            Some(i) => self.axes.get(i)?.total(),
        };
        let cells = self.dense_cells(axis);
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        (cells > 0).then(|| elements as f64 / cells as f64)
    }

    /// Returns the number of bytes of all fixed-width columns after padding to the longest lists,
    /// plus the bytes of one mask for each axis (except the rows) that has a fixed-width column.
    ///
    /// A mask takes one byte per padded element.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt8Array;
    /// use serrate::table::{RaggedTable, TableStats};
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("x", 1, Arc::new(UInt8Array::from(vec![1, 2, 3])))
    ///     .build()?;
    /// let stats = TableStats::of([&table])?;
    /// // 2 rows of at most 2 uint8 values, and a mask of the same shape.
    /// assert_eq!(stats.dense_bytes(), 4 + 4);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn dense_bytes(&self) -> u128 {
        let fixed: Vec<_> =
            self.columns.iter().filter_map(|c| Some((c, compute_dense_width(c)?))).collect();
        let columns = fixed.iter().map(|(c, w)| self.dense_cells(c.axis).saturating_mul(*w));
        let masks = (1..self.ndim())
            .filter(|axis| fixed.iter().any(|(c, _)| c.axis == *axis))
            .map(|axis| self.dense_cells(axis));
        columns.chain(masks).fold(0, u128::saturating_add)
    }
}

/// Returns the number of bytes of one value of a column in a dense tensor; `None` for a type
/// without a fixed width, such as strings.
fn compute_dense_width(column: &ColumnStats) -> Option<u128> {
    match &column.data_type {
        DataType::Boolean => Some(1),
        other => other.primitive_width().map(|w| w as u128),
    }
}

fn count_nans(values: &dyn Array) -> u64 {
    fn count_matches<T: arrow::datatypes::ArrowPrimitiveType>(
        values: &PrimitiveArray<T>,
        is_nan: impl Fn(T::Native) -> bool,
    ) -> u64 {
        BooleanArray::from_unary(values, is_nan).true_count() as u64
    }
    match values.data_type() {
        DataType::Float16 => count_matches(values.as_primitive::<Float16Type>(), |v| v.is_nan()),
        DataType::Float32 => count_matches(values.as_primitive::<Float32Type>(), f32::is_nan),
        DataType::Float64 => count_matches(values.as_primitive::<Float64Type>(), f64::is_nan),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, StringArray, UInt8Array, UInt16Array};

    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sorted_lengths() {
        for lengths in [vec![0], vec![5, 1, 4], vec![9; 7], (0..10_000).rev().collect::<Vec<_>>()] {
            let counts: LengthHistogram = lengths.iter().copied().collect();
            let mut sorted = lengths.clone();
            sorted.sort_unstable();
            for (q, rank) in [(0.0, 1), (0.5, sorted.len().div_ceil(2)), (1.0, sorted.len())] {
                assert_eq!(counts.quantile(q), Some(sorted[rank - 1]), "{q}");
            }
            assert_eq!(counts.total(), sorted.iter().sum::<usize>() as u64);
            assert_eq!((counts.min(), counts.max()), (Some(sorted[0]), sorted.last().copied()));
        }
        let none = LengthHistogram::default();
        assert_eq!((none.min(), none.quantile(0.5), none.max()), (None, None, None));
    }

    #[test]
    fn a_uniform_axis_counts_as_its_lists() {
        let mut uniform = LengthHistogram::default();
        uniform.push_layout(&Layout::Uniform { size: 3, lists: 4 });
        uniform.push_layout(&Layout::Uniform { size: 3, lists: 0 });
        assert_eq!(uniform, [3; 4].into_iter().collect());
    }

    fn table(lengths: &[usize], ids: arrow::array::ArrayRef) -> RaggedTable {
        let leaves: usize = lengths.iter().sum();
        RaggedTable::builder()
            .lengths(lengths.iter().copied())
            .unwrap()
            .column("id", 0, ids)
            .column("x", 1, Arc::new(Float64Array::from(vec![f64::NAN; leaves])))
            .column("s", 1, Arc::new(StringArray::from(vec![None::<&str>; leaves])))
            .build()
            .unwrap()
    }

    #[test]
    fn tables_add_up() {
        let a = table(&[3, 0], Arc::new(UInt8Array::from(vec![1, 2])));
        let b = table(&[1], Arc::new(UInt16Array::from(vec![300])));
        let stats = TableStats::of([&a, &b]).unwrap();
        assert_eq!((stats.rows(), stats.ndim()), (3, 2));
        assert_eq!(stats.columns()[0].data_type, DataType::UInt16);
        assert_eq!((stats.columns()[1].nans, stats.columns()[2].nulls), (4, 4));
        assert_eq!(stats.dense_cells(1), 9);
        assert_eq!(stats.occupied(1), Some(4.0 / 9.0));
        // Bytes of the columns `id` and `x` and of the mask; columns of strings do not count.
        assert_eq!(stats.dense_bytes(), 3 * 2 + 9 * 8 + 9);
    }

    #[test]
    fn other_columns_are_refused() {
        let a = table(&[1], Arc::new(UInt8Array::from(vec![1])));
        let b = a.select(&["id"]).unwrap();
        assert!(TableStats::of([&a, &b]).is_err());
        let c = table(&[1], Arc::new(StringArray::from(vec!["x"])));
        let e = TableStats::of([&a, &c]).unwrap_err().to_string();
        assert!(e.contains("\"id\""), "{e}");
    }

    #[test]
    fn nothing_costs_nothing() {
        let stats =
            TableStats::of([&table(&[], Arc::new(UInt8Array::from(vec![0u8; 0])))]).unwrap();
        assert_eq!((stats.dense_bytes(), stats.occupied(1)), (0, None));
    }
}
