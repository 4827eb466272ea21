//! Long tables, with a row for each value: conversion from and to ragged tables.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Int32Array, Int64Array, OffsetSizeTrait, RecordBatch, UInt64Array,
};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::compute::take;
use arrow::datatypes::{ArrowNativeType, Field, FieldRef, Schema};

use super::key_runs::{KeyRuns, ORDER, describe_descent, find_runs};
use super::sort::{canonicalize_keys, sort_rows};
use super::{Column, RaggedTable};
use crate::array::record_batch::build_record_batch;
use crate::array::{Layout, Offsets};
use crate::error::{Error, Result};
use crate::with_offsets;

/// Treatment of a long table whose rows are not sorted by its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnsortedRows {
    /// Return an error that names the first row out of order.
    #[default]
    Refuse,
    /// Sort the rows with a stable sort, which copies all columns.
    Sort,
}

/// Options of [`RaggedTable::nest`].
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int64Array;
/// use serrate::table::{NestOptions, RaggedTable, UnsortedRows};
/// let long = RaggedTable::builder()
///     .column("subject_id", 0, Arc::new(Int64Array::from(vec![7, 1, 7])))
///     .column("code", 0, Arc::new(Int64Array::from(vec![10, 11, 12])))
///     .build()?;
/// assert!(long.nest_rows(&["subject_id"], &NestOptions::default()).is_err());
/// let options = NestOptions { unsorted: UnsortedRows::Sort };
/// assert_eq!(long.nest_rows(&["subject_id"], &options)?.array("code")?.lengths(1)?, [1, 2]);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct NestOptions {
    /// Treatment of rows that are out of order.
    pub unsorted: UnsortedRows,
}

/// Options of [`RaggedTable::to_long`].
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// use serrate::table::{LongOptions, RaggedTable};
/// let table = RaggedTable::builder()
///     .lengths([2, 0])?
///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
///     .column("code", 1, Arc::new(Int32Array::from(vec![7, 8])))
///     .build()?;
/// assert_eq!(table.to_long(&LongOptions::default())?.num_rows(), 2);
/// assert_eq!(table.to_long(&LongOptions { keep_empty: true })?.num_rows(), 3);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct LongOptions {
    /// Whether an element whose list is empty or null becomes one row, with nulls in inner columns.
    pub keep_empty: bool,
}

impl RaggedTable {
    /// Nests a long table, which has one row per innermost element, by the columns `keys`, the
    /// outermost key first.
    ///
    /// Every key makes an axis with its name. With the keys `subject_id` and `time`, axis 0 is the
    /// subjects, axis 1 the times of each subject, and axis 2 the rows of the long table. The
    /// column of a key holds one value per element of its axis; all other columns stay on the axis
    /// of the rows and keep their buffers. The lists in a list column of the long table become
    /// further axes inside the axis of the rows.
    ///
    /// The rows must be sorted by the keys, unless `options` requests a sort
    /// ([`UnsortedRows::Sort`]): each key ascends within equal values of the keys before it. A null
    /// sorts first and equals other nulls. For floats, -0 equals 0, and all NaN are equal and sort
    /// last; dictionaries sort by value.
    ///
    /// # Errors
    /// If there are no keys, a key is given twice, is not a column or has lists or structs as
    /// values, or rows are out of order with [`UnsortedRows::Refuse`].
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::{Int64Array, RecordBatch, UInt16Array};
    /// use serrate::table::{NestOptions, RaggedTable};
    ///
    /// let long = RecordBatch::try_from_iter([
    ///     ("subject_id", Arc::new(Int64Array::from(vec![1, 1, 1, 7])) as _),
    ///     ("time", Arc::new(Int64Array::from(vec![0, 0, 5, 2])) as _),
    ///     ("code", Arc::new(UInt16Array::from(vec![10, 11, 12, 13])) as _),
    /// ])?;
    /// let table = RaggedTable::nest(&long, &["subject_id", "time"], &NestOptions::default())?;
    /// assert_eq!(table.num_rows(), 2);
    /// assert_eq!(table.array("time")?.lengths(1)?, [2, 1]);
    /// assert_eq!(table.array("code")?.lengths(2)?, [2, 1, 1]);
    /// assert_eq!(table.to_long(&Default::default())?, long);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn nest(batch: &RecordBatch, keys: &[&str], options: &NestOptions) -> Result<Self> {
        Self::try_from_batch(batch)?.nest_rows(keys, options)
    }

    /// Nests the rows of this table, which is a long table, like [`nest`](Self::nest).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int64Array;
    /// use serrate::table::RaggedTable;
    /// let column = |values: Vec<i64>| Arc::new(Int64Array::from(values));
    /// let long = RaggedTable::builder()
    ///     .column("subject_id", 0, column(vec![1, 1, 7]))
    ///     .column("code", 0, column(vec![10, 11, 12]))
    ///     .build()?;
    /// let table = long.nest_rows(&["subject_id"], &Default::default())?;
    /// assert_eq!(table.array("code")?.lengths(1)?, [2, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`nest`](Self::nest).
    pub fn nest_rows(&self, keys: &[&str], options: &NestOptions) -> Result<Self> {
        if keys.is_empty() {
            return Err(Error::invalid(
                "no key is given to nest the long table by; give at least one key column",
            ));
        }
        if let Some(twice) = keys.iter().enumerate().find(|(i, k)| keys[..*i].contains(k)) {
            return Err(Error::invalid(format!(
                "the key {:?} is given twice; give each key once",
                twice.1
            )));
        }
        if i32::try_from(self.num_rows()).is_ok() {
            self.nest_as::<i32>(keys, options)
        } else {
            self.nest_as::<i64>(keys, options)
        }
    }

    fn collect_key_columns(&self, keys: &[&str]) -> Result<Vec<ArrayRef>> {
        keys.iter()
            .map(|k| {
                let column = self.column(k)?;
                if column.axis() > 0 || column.data_type().is_nested() {
                    let list = self.make_arrow_field(column)?;
                    let what = format!("key {k:?}");
                    return Err(Error::type_of(
                        what,
                        "a column with one value per row, not lists or structs (choose another column)",
                        list.data_type(),
                    ));
                }
                Ok(column.values().clone())
            })
            .collect()
    }

    fn nest_as<O: OffsetSizeTrait + Send>(
        &self,
        keys: &[&str],
        options: &NestOptions,
    ) -> Result<Self> {
        let columns = self.collect_key_columns(keys)?;
        match find_runs::<O>(&canonicalize_keys(&columns)?)? {
            Ok(found) => self.add_key_axes(keys, &columns, found),
            Err(at) if options.unsorted == UnsortedRows::Refuse => {
                Err(describe_descent(&columns, keys, at))
            }
            Err(_) => {
                let sorted = self.take(&sort_rows(&columns, &vec![ORDER; columns.len()])?)?;
                let columns = sorted.collect_key_columns(keys)?;
                match find_runs::<O>(&canonicalize_keys(&columns)?)? {
                    Ok(found) => sorted.add_key_axes(keys, &columns, found),
                    Err(at) => Err(describe_descent(&columns, keys, at)),
                }
            }
        }
    }

    fn add_key_axes<O: OffsetSizeTrait>(
        &self,
        keys: &[&str],
        key_columns: &[ArrayRef],
        found: Vec<KeyRuns<O>>,
    ) -> Result<Self> {
        let depth = keys.len();
        let rows = found.first().map_or(0, |r| r.starts.len());
        let mut layouts: Vec<Layout> = Vec::with_capacity(depth + self.axes().len());
        let mut values = Vec::with_capacity(depth);
        let mut found = found.into_iter().peekable();
        let mut level = 0;
        while let Some(runs) = found.next() {
            // A run of equal keys becomes one list. The elements of the list are the runs of the
            // next key within this run or, for the last key, its rows. The first row of the run
            // gives the value of the key.
            let (layout, at): (Layout, ArrayRef) = match found.peek_mut() {
                Some(inner) => {
                    let mut first = std::mem::take(&mut inner.first);
                    first.push(O::usize_as(inner.starts.len()));
                    (make_offsets_layout(first.into()), make_indices_array(runs.starts.into()))
                }
                None => {
                    let count = runs.starts.len();
                    let mut starts = runs.starts;
                    starts.push(O::usize_as(self.num_rows()));
                    let starts = ScalarBuffer::from(starts);
                    (
                        make_offsets_layout(starts.clone()),
                        make_indices_array(starts.slice(0, count)),
                    )
                }
            };
            layouts.push(layout);
            values.push(take(&key_columns[level], &at, None)?);
            level += 1;
        }
        layouts.extend(self.axes().iter().map(|a| a.layout().clone()));
        let columns = self
            .columns()
            .iter()
            .map(|c| match keys.iter().position(|k| *k == c.name()) {
                Some(k) => Column::with_field(Arc::clone(c.field()), k, values[k].clone()),
                None => {
                    let mut nulls = vec![None; depth];
                    nulls.extend_from_slice(c.list_nulls());
                    let field = Arc::clone(c.field());
                    Column::with_field(field, c.axis() + depth, c.values().clone())
                        .with_list_nulls(nulls)
                }
            })
            .collect();
        let name = |axis: usize| match axis.checked_sub(depth) {
            None => Some(Arc::from(keys[axis])),
            Some(inner) => self.axis_name(inner).map(Arc::from),
        };
        let axes = layouts.into_iter().enumerate().map(|(i, l)| (name(i + 1), l)).collect();
        Self::try_new(rows, name(0), axes, columns)
    }

    /// Converts to a long table: one row per innermost element, which repeats the values of outer
    /// axes.
    ///
    /// This is the inverse of [`nest`](Self::nest). Columns keep their order; columns of the
    /// innermost axis are not copied. An element whose list is empty or null is lost, unless
    /// [`keep_empty`](LongOptions::keep_empty) gives it one row with nulls in the columns of deeper
    /// axes (`nest` reads that row as a list of one null).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Array, Int32Array, UInt16Array};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// use serrate::table::LongOptions;
    /// let long = table.to_long(&LongOptions::default())?;
    /// assert_eq!(long.num_rows(), 3);
    /// let ages = long.column_by_name("age").map(|a| a.as_ref() == &Int32Array::from(vec![71, 71, 38]));
    /// assert_eq!(ages, Some(true));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the table has [`scalars`](Self::scalars), which a long table cannot hold, or the repeated
    /// values do not fit in memory or in the offsets of their type.
    pub fn to_long(&self, options: &LongOptions) -> Result<RecordBatch> {
        self.check_no_scalars("a long table")?;
        let depth = self.axes().len();
        let gaps = options.keep_empty
            && self.axes().iter().any(|a| {
                let layout = a.layout();
                (0..layout.lists()).any(|i| layout.length(i) == 0)
            });
        let positions = if gaps {
            self.find_element_positions_with_gaps()?
        } else {
            self.find_element_positions()?
        };
        let mut fields: Vec<FieldRef> = Vec::with_capacity(self.columns().len());
        let mut arrays = Vec::with_capacity(self.columns().len());
        for column in self.columns() {
            let array = match positions.get(column.axis()) {
                Some(at) => take(column.values(), at, None)?,
                None => column.values().clone(),
            };
            let nullable = column.field().is_nullable() || array.is_nullable();
            fields.push(Arc::new(Field::clone(column.field()).with_nullable(nullable)));
            arrays.push(array);
        }
        let length = match positions.first() {
            Some(at) => at.len(),
            None => self.axis_len(depth)?,
        };
        Ok(build_record_batch(Arc::new(Schema::new(fields)), arrays, length)?)
    }

    /// Returns an array for each axis above the innermost. Entry `i` is the index of the element of
    /// this axis that contains the innermost element `i`: lists of lengths 2 and 1 give
    /// `[0, 0, 1]`.
    fn find_element_positions(&self) -> Result<Vec<UInt64Array>> {
        let mut out = Vec::with_capacity(self.axes().len());
        let mut ends: Option<Vec<usize>> = None;
        for axis in self.axes().iter().rev() {
            let layout = axis.layout();
            let own: Vec<usize> = match layout {
                Layout::Ragged(o) => {
                    let base = o.base();
                    with_offsets!(o, o => o[1..].iter().map(|e| e.as_usize() - base).collect())
                }
                Layout::Uniform { size, lists } => (1..=*lists).map(|i| i * size).collect(),
            };
            // The number of innermost elements in each list and all lists before it.
            let own = match &ends {
                None => own,
                Some(inner) => {
                    own.into_iter().map(|e| if e == 0 { 0 } else { inner[e - 1] }).collect()
                }
            };
            let total = own.last().copied().unwrap_or(0);
            let mut at = Vec::new();
            at.try_reserve_exact(total).map_err(|e| {
                Error::invalid(format!(
                    "cannot allocate a long table of {total} rows ({e}); convert fewer rows at a time"
                ))
            })?;
            for (list, end) in (0u64..).zip(&own) {
                at.resize(*end, list);
            }
            out.push(UInt64Array::from(at));
            ends = Some(own);
        }
        out.reverse();
        Ok(out)
    }

    /// Returns an array for each axis. Entry `i` is the index of the element of this axis whose
    /// values row `i` of the long table has; null below an empty list. Lists of lengths 2 and 0
    /// give `[0, 0, 1]` for the outer axis and `[0, 1, NULL]` for the inner axis.
    fn find_element_positions_with_gaps(&self) -> Result<Vec<UInt64Array>> {
        let mut levels: Vec<Vec<Option<u64>>> =
            vec![(0..self.num_rows() as u64).map(Some).collect()];
        for axis in self.axes() {
            let layout = axis.layout();
            let last = &levels[levels.len() - 1];
            let mut repeat = Vec::with_capacity(last.len());
            let mut next: Vec<Option<u64>> = Vec::with_capacity(last.len());
            for element in last {
                let list = element.and_then(|e| usize::try_from(e).ok());
                let children = list.map_or(0..0, |l| layout.range(l));
                repeat.push(children.len().max(1));
                if children.is_empty() {
                    next.push(None);
                } else {
                    next.extend(children.map(|c| Some(c as u64)));
                }
            }
            for level in &mut levels {
                let repeated = level.iter().zip(&repeat);
                *level = repeated.flat_map(|(e, n)| std::iter::repeat_n(*e, *n)).collect();
            }
            levels.push(next);
        }
        Ok(levels.into_iter().map(UInt64Array::from).collect())
    }
}

fn make_offsets_layout<O: OffsetSizeTrait>(starts: ScalarBuffer<O>) -> Layout {
    Offsets::from(OffsetBuffer::new(starts)).into()
}

fn make_indices_array<O: OffsetSizeTrait>(starts: ScalarBuffer<O>) -> ArrayRef {
    let buffer = starts.into_inner();
    if O::IS_LARGE {
        Arc::new(Int64Array::new(buffer.into(), None))
    } else {
        Arc::new(Int32Array::new(buffer.into(), None))
    }
}
