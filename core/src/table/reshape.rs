//! Flattens, squeezes and inserts axes of a table.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt64Array, new_null_array};
use arrow::compute::kernels::zip::zip;
use arrow::compute::take;
use arrow::datatypes::DataType;

use super::gather::{PickedElements, PickedParents};
use super::{Axis, Column, RaggedTable};
use crate::array::{Layout, Offsets, make_lists_like, resolve_axis};
use crate::error::{Error, Result};

/// Values that [`flatten_with`](RaggedTable::flatten_with) gives the columns of the outer axis.
///
/// After flattening, such a column has a value for each element of a list, instead of one value for
/// the list. The first element of a list gets the value of the list. The fill chooses the values of
/// the other elements.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, UInt8Array, types::UInt8Type};
/// use serrate::table::{FlattenFill, RaggedTable};
/// let table = RaggedTable::builder()
///     .lengths([2, 1])?
///     .column("time", 0, Arc::new(UInt8Array::from(vec![7, 8])))
///     .build()?;
/// let flat = table.flatten_with(1, FlattenFill::Repeat)?;
/// assert_eq!(flat.column("time")?.values().as_primitive::<UInt8Type>().values(), &[7, 7, 8]);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FlattenFill {
    /// The first element of a list gets the value of its row in the outer column. The other
    /// elements get 0 or `false`, or null if the type of the column has neither.
    #[default]
    Zero,
    /// The first element of a list gets the value of its row in the outer column, the others null.
    Null,
    /// All elements of a list get the value of its row in the outer column.
    Repeat,
}

impl RaggedTable {
    /// Removes an axis with one element in every list.
    ///
    /// Negative axes count from the innermost axis.
    ///
    /// Columns of this axis and of later axes move up by one axis. If axis 0 is removed, its
    /// columns become [`scalars`](Self::scalars). A list that is null in all columns of this axis
    /// and of the axes below becomes a null element. Nothing is copied if no list is null.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::table::RaggedTable;
    /// let column = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let table = RaggedTable::builder().lengths([3])?.column("code", 1, column).build()?;
    /// assert_eq!(table.squeeze(0)?.num_rows(), 3);
    /// let error = table.squeeze(1).unwrap_err().to_string();
    /// assert!(error.contains("list 0 has 3 elements"), "{error}");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such axis, or a list (which the message names) does not have one element.
    pub fn squeeze(&self, axis: i64) -> Result<Self> {
        let axis = self.resolve_axis(axis)?;
        if axis == 0 {
            if self.num_rows() != 1 {
                return Err(Error::invalid(format!(
                    "axis 0 has {} rows; squeeze needs exactly one, so select a row first",
                    self.num_rows()
                )));
            }
            return self.clone().into_row();
        }
        let layout = self.layout(axis)?;
        let missing = self.find_common_nulls(axis);
        let mut positions = Vec::with_capacity(layout.lists());
        for list in 0..layout.lists() {
            let range = layout.range(list);
            positions.push(match range.len() {
                1 => Some(range.start),
                _ if missing.get(list) => None,
                n => {
                    let above = self.axes()[..axis - 1].iter().rev();
                    let row = above.fold(list, |at, a| a.layout().list_of(at));
                    return Err(Error::invalid(format!(
                        "axis {axis}: list {list} has {n} elements (in row {row}); squeeze needs exactly one element in every list, so select one per list first"
                    )));
                }
            });
        }
        self.gather_axis(axis, PickedParents::Nothing, &[PickedElements::from_positions(positions)])
    }

    /// Adds an axis of one element per list at `axis`, like `None` in an index.
    ///
    /// A negative `axis` counts from the end; -1 adds an innermost axis. Copies nothing.
    ///
    /// At axis 0 the whole table becomes one row, and [`scalars`](Self::scalars) become the first
    /// columns of axis 0. At a later axis, every element of axis `axis - 1` becomes a list of one
    /// element, and columns on that axis and below move down by one.
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
    /// let wide = table.unsqueeze(1)?;
    /// assert_eq!(wide.array("code")?.shape(), [Some(2), Some(1), None]);
    /// assert_eq!(wide.squeeze(1)?, table);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `axis` exceeds the number of axes.
    pub fn unsqueeze(&self, axis: i64) -> Result<Self> {
        let axis = resolve_axis(axis, self.ndim() + 1, "the table with a new axis")?;
        let mut out = self.clone();
        let unnamed = |parent, layout| Axis { name: None, parent, layout };
        if axis == 0 {
            out.rows = 1;
            if !self.point {
                let layout = Offsets::from_lengths([self.rows])?.into();
                out.axes.insert(0, Axis { name: out.row_name.take(), parent: 0, layout });
            }
            out.point = false;
        } else {
            let lists = self.axis_len(axis - 1)?;
            out.axes.insert(axis - 1, unnamed(axis - 1, Layout::Uniform { size: 1, lists }));
        }
        for (parent, axis) in out.axes.iter_mut().enumerate() {
            axis.parent = parent;
        }
        for column in &mut out.columns {
            if column.axis() + 1 >= axis {
                let mut nulls = column.list_nulls().to_vec();
                nulls.insert(axis.saturating_sub(1), None);
                let (field, values) = (Arc::clone(column.field()), Arc::clone(column.values()));
                *column =
                    Column::with_field(field, column.axis() + 1, values).with_list_nulls(nulls);
            }
        }
        if axis == 0 {
            let scalars = std::mem::take(&mut out.scalars);
            out.columns.splice(0..0, scalars.iter().map(super::Scalar::to_column));
        }
        Ok(out)
    }

    /// Merges axis `axis` (not 0; negative axes count from the innermost) into the axis above: the
    /// elements of each list replace the element that holds the list.
    ///
    /// Merging axis 1 makes its elements rows.
    ///
    /// Columns of `axis` and below move up by one. A column of axis `axis - 1` keeps its value at
    /// the first element of each list and is zero at the other elements
    /// ([`flatten_with`](Self::flatten_with) offers other fills). **An element whose list is empty
    /// or null is dropped, with its values in columns of its own axis.** Offsets are rebuilt; the
    /// values of the other columns are shared.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{AsArray, UInt8Array, types::UInt8Type};
    /// # use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 0, 1])?
    ///     .column("time", 0, Arc::new(UInt8Array::from(vec![7, 8, 9])))
    ///     .column("code", 1, Arc::new(UInt8Array::from(vec![1, 2, 3])))
    ///     .build()?;
    /// let flat = table.flatten(1)?;
    /// assert_eq!(flat.num_rows(), 3);
    /// assert_eq!(flat.column("time")?.values().as_primitive::<UInt8Type>().values(), &[7, 0, 9]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such axis, or it is axis 0, which has no axis above.
    pub fn flatten(&self, axis: i64) -> Result<Self> {
        self.flatten_with(axis, FlattenFill::Zero)
    }

    /// Merges an axis like [`flatten`](Self::flatten).
    ///
    /// For columns of the outer axis, the first element of a list gets the value of the element
    /// that held the list, and `fill` chooses the values of the other elements.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Array, UInt8Array};
    /// use serrate::table::{FlattenFill, RaggedTable};
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 0, 1])?
    ///     .column("time", 0, Arc::new(UInt8Array::from(vec![7, 8, 9])))
    ///     .column("code", 1, Arc::new(UInt8Array::from(vec![1, 2, 3])))
    ///     .build()?;
    /// let flat = table.flatten_with(1, FlattenFill::Null)?;
    /// assert_eq!(flat.column("time")?.values().null_count(), 1);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`flatten`](Self::flatten).
    pub fn flatten_with(&self, axis: i64, fill: FlattenFill) -> Result<Self> {
        let axis = self.resolve_axis(axis)?;
        if axis == 0 {
            return Err(Error::invalid(
                "axis 0 cannot be flattened, because no axis is above it; flatten axis 1 or a later one",
            ));
        }
        let inner = self.layout(axis)?.clone();
        let mut out = self.clone();
        let removed = out.axes.remove(axis - 1);
        match axis.checked_sub(2) {
            None => (out.rows, out.row_name) = (inner.children(), removed.name),
            Some(above) => {
                let outer = &self.axes[above].layout;
                let merged = match (outer, &inner) {
                    (Layout::Uniform { size: a, lists }, Layout::Uniform { size: b, .. }) => {
                        Layout::Uniform { size: a * b, lists: *lists }
                    }
                    _ => {
                        let list = |l: usize| inner.ranges(outer.range(l)).len();
                        make_lists_like(&inner, (0..outer.lists()).map(list))?
                    }
                };
                (out.axes[above].layout, out.axes[above].name) = (merged, removed.name);
            }
        }
        for (parent, axis) in out.axes.iter_mut().enumerate() {
            axis.parent = parent;
        }
        for column in &mut out.columns {
            let mut nulls = column.list_nulls().to_vec();
            let field = Arc::clone(column.field());
            if column.axis() >= axis {
                nulls.remove(axis - 1);
                let values = Arc::clone(column.values());
                *column =
                    Column::with_field(field, column.axis() - 1, values).with_list_nulls(nulls);
            } else if column.axis() + 1 == axis {
                let values = expand_values(column.values(), &inner, fill)?;
                *column = Column::with_field(field, column.axis(), values).with_list_nulls(nulls);
            }
        }
        Ok(out)
    }

    /// Stacks tables: each table becomes one row, as with [`unsqueeze`](Self::unsqueeze) at axis 0.
    ///
    /// Rows that were selected by an integer index thus become one table, and their scalars become
    /// columns again.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::table::RaggedTable;
    /// # let table = RaggedTable::builder()
    /// #     .lengths([2, 0, 1])?
    /// #     .column("age", 0, Arc::new(Int32Array::from(vec![7, 8, 9])))
    /// #     .column("code", 1, Arc::new(Int32Array::from(vec![1, 2, 3])))
    /// #     .build()?;
    /// let rows = [table.index(&[2.into()])?, table.index(&[0.into()])?];
    /// assert_eq!(RaggedTable::vstack(&rows)?, table.take(&[2, 0])?);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`concat`](Self::concat).
    pub fn vstack(tables: &[Self]) -> Result<Self> {
        let rows = tables.iter().map(|t| t.unsqueeze(0)).collect::<Result<Vec<_>>>()?;
        Self::concat(&rows)
    }
}

/// Expands a column with one value per list to one value per element of the lists. The first
/// element of a list gets the value of the list; `fill` chooses the values of the other elements.
fn expand_values(values: &ArrayRef, layout: &Layout, fill: FlattenFill) -> Result<ArrayRef> {
    let lists = 0..layout.lists();
    let fill = match fill {
        FlattenFill::Zero if !has_zero(values.data_type()) => FlattenFill::Null,
        fill => fill,
    };
    let indices: UInt64Array = lists
        .flat_map(|list| {
            (0..layout.length(list))
                .map(move |i| (i == 0 || fill == FlattenFill::Repeat).then_some(list as u64))
        })
        .collect();
    let spread = take(values, &indices, None)?;
    if fill != FlattenFill::Zero || indices.null_count() == 0 {
        return Ok(spread);
    }
    // Zeros replace the elements after the first of each list. A null first element stays null.
    let zeros = build_zero_array(values.data_type(), spread.len())?;
    let taken = arrow::compute::is_not_null(&indices)?;
    Ok(zip(&taken, &spread, &zeros)?)
}

fn has_zero(data_type: &DataType) -> bool {
    data_type.is_numeric() || *data_type == DataType::Boolean
}

fn build_zero_array(data_type: &DataType, length: usize) -> Result<ArrayRef> {
    // The buffers of a null array hold zeros. If its validity is removed, these zeros are valid
    // values.
    let data = new_null_array(data_type, length).to_data();
    Ok(arrow::array::make_array(data.into_builder().nulls(None).null_count(0).build()?))
}
