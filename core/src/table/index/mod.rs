//! Indexes tables and arrays, like brackets in NumPy.

mod axis_cursor;
mod axis_items;

use self::axis_cursor::IndexCursor;
use self::axis_items::{AddedAxes, AxisItem, prepare_items};
use super::{Column, RaggedTable};
use crate::array::RaggedArray;
use crate::error::Result;
use crate::index::Index;

impl RaggedTable {
    /// Indexes all columns at once, like brackets in NumPy: the first item applies to axis 0 (the
    /// rows), the next to axis 1, and so on.
    ///
    /// Axes without an item stay whole. An item applies only to the columns that have its axis.
    ///
    /// | item | result | copies |
    /// |---|---|---|
    /// | integer on axis 0 | that row; axis 1 becomes axis 0 and columns of axis 0 become [`scalars`](Self::scalars) | nothing |
    /// | integer on an inner axis | that element of every list; drops the axis | the elements |
    /// | slice of step 1 on axis 0 | those rows | nothing |
    /// | other slices | their elements, in order, clipped to the list | the elements, unless they are one range |
    /// | array of integers | those elements, repeats allowed | the elements |
    /// | boolean mask, as long as the axis | the elements where it is true | the elements |
    /// | `...` | as many whole axes as the other items leave | nothing |
    /// | new axis | an axis of size 1, as [`unsqueeze`](Self::unsqueeze) adds it | nothing |
    ///
    /// Negative indices count from the end. If every list stays whole, nothing is copied. Several
    /// arrays, and integers in the same index, are paired element by element. Their common axis
    /// replaces the first of their axes, or comes first if a slice, `...` or a new axis separates
    /// them, as in NumPy; columns that no array applies to are repeated along the common axis.
    ///
    /// If a list is null in every column that has it, an item that takes one element yields null;
    /// other items keep the null list. Items are checked only against lists that earlier items
    /// select: after an empty array, any index is valid (`[], 99`; NumPy reports 99), but `99, []`
    /// is an error. A mask must have the length of its lists even if it selects nothing.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::{AsArray, Int32Array, UInt16Array, types::UInt16Type};
    /// use serrate::index::parse_index;
    /// use serrate::table::RaggedTable;
    ///
    /// let t = RaggedTable::builder()
    ///     .lengths([3, 1])?
    ///     .lengths([2, 4, 1, 3])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 2, Arc::new(UInt16Array::from_iter_values(0..10)))
    ///     .build()?;
    /// // the last two events of the first row, and of each the first code
    /// let part = t.index(&parse_index("0, -2:, 0")?)?;
    /// assert_eq!(part.column("code")?.values().as_primitive::<UInt16Type>().values(), &[2, 6]);
    /// assert_eq!(part.scalar("age")?.name(), "age");
    /// let error = t.index(&[1.into(), 1.into()]).unwrap_err();
    /// assert_eq!(error.to_string(), "index 1 is out of range for axis 1 of size 1");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are more items than axes; an index is out of range (the message names axis, index
    /// and size, and for lists of several rows the row); arrays differ in length or have more than
    /// one dimension; or the length of a mask differs from one of its lists.
    pub fn index(&self, index: &[Index]) -> Result<Self> {
        let what = format!("a table with {} axes (the first index is axis 0)", self.ndim());
        let expanded = Index::expand_axes(index, self.ndim(), &what)?;
        let added = AddedAxes::from_items(&expanded);
        let items = prepare_items(&expanded)?;
        let out = if added.are_separated && !matches!(items.first(), Some(AxisItem::Picks(_))) {
            self.index_one_by_one(&items)?
        } else {
            let mut cursor = IndexCursor::new(self);
            cursor.apply_items(&items, added.are_separated)?;
            cursor.table
        };
        added.new_axes.iter().try_fold(out, |t, axis| t.unsqueeze(*axis))
    }

    /// Applies an index whose arrays are separated by other items, one index of the arrays at a
    /// time: for `[0, 1], :, [2, 3]`, joins the results of `0, :, 2` and `1, :, 3`.
    fn index_one_by_one(&self, items: &[AxisItem]) -> Result<Self> {
        let count = items.iter().find_map(AxisItem::count).unwrap_or(0);
        let bare = Self { scalars: Vec::new(), ..self.clone() };
        let one = |j: usize| -> Result<Self> {
            let items: Vec<AxisItem> = items.iter().map(|i| i.select_element(j)).collect();
            let mut cursor = IndexCursor::new(&bare);
            cursor.apply_items(&items, false)?;
            cursor.table.unsqueeze(0)
        };
        let mut out = match count {
            0 => {
                // Items after the first array, which is empty, apply to no list and need no check.
                let first = items.iter().position(|i| matches!(i, AxisItem::Picks(_))).unwrap_or(0);
                IndexCursor::new(&bare).apply_items(items.get(..=first).unwrap_or(items), false)?;
                // The result has no rows. To find its axes and types, index a table of zero rows.
                let mut cursor = IndexCursor::new(&bare.unsqueeze(0)?.slice(0, 0)?);
                let mut below = vec![AxisItem::Slice(None)];
                below.extend(items.iter().map(|i| i.select_element(0)));
                cursor.apply_items(&below, false)?;
                cursor.table
            }
            n => Self::concat(&(0..n).map(one).collect::<Result<Vec<_>>>()?)?,
        };
        out.scalars.clone_from(&self.scalars);
        Ok(out)
    }
}

impl RaggedArray {
    /// Indexes the array like brackets in NumPy: the first item applies to axis 0 (the rows), the
    /// next to axis 1, and so on.
    ///
    /// [`RaggedTable::index`] describes the items.
    ///
    /// A scalar becomes an array of one row, because an array has at least one axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// use serrate::index::parse_index;
    /// // [[1, 2, 3], [4]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
    /// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
    /// let last_two = a.index(&parse_index("0, -2:")?)?;
    /// assert_eq!(last_two.leaves().as_ref(), &Int32Array::from(vec![2, 3]));
    /// assert_eq!(a.index(&parse_index("::-1")?)?.lengths(1)?, [1, 3]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`RaggedTable::index`].
    pub fn index(&self, index: &[Index]) -> Result<Self> {
        const NAME: &str = "values";
        let axes = self.axes().iter().map(|axis| (None, axis.layout().clone())).collect();
        let nulls = self.axes().iter().map(|axis| axis.nulls().cloned()).collect();
        let column = Column::new(NAME, self.ndim() - 1, self.leaves().clone());
        let column = column.with_list_nulls(nulls);
        let table = RaggedTable::try_new(self.len(), None, axes, vec![column])?.index(index)?;
        match table.scalars() {
            [value, ..] => Self::try_new(1, Vec::new(), value.value().clone()),
            [] => table.array(NAME),
        }
    }
}
