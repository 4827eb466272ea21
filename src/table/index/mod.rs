//! Indexing a table as numpy indexes an array.

mod cursor;
mod items;

use arrow::buffer::NullBuffer;

use self::cursor::Cursor;
use self::items::{Arrangement, Item, items};
use super::RaggedTable;
use crate::error::Result;
use crate::index::Index;

impl RaggedTable {
    /// Indexes all columns at once, as numpy does between brackets: the first item is for axis 0 (the
    /// rows), the next for axis 1. Axes without an item stay whole, and a column takes the items for
    /// the axes it has.
    ///
    /// | item | does | copies |
    /// |---|---|---|
    /// | integer on axis 0 | that row; axis 1 becomes axis 0 and columns of axis 0 [`scalars`](Self::scalars) | nothing |
    /// | integer on an inner axis | that element of every list; the axis goes | the elements |
    /// | slice of step 1 on axis 0 | those rows | nothing |
    /// | other slices | their elements, in their order; out of range is cut off | the elements, unless they are one range |
    /// | array of integers | those elements, repeats allowed | the elements |
    /// | mask of booleans | the elements that are true; as long as the axis | the elements |
    /// | `...` | as many whole axes as are left over | nothing |
    /// | new axis | an axis of size 1, as [`unsqueeze`](Self::unsqueeze) adds it | nothing |
    ///
    /// Negatives count from the end. Where every list stays whole nothing is copied. Several arrays,
    /// and integers beside them, go together element by element, and their one axis stands where the
    /// first of them did; with a slice, `...` or new axis between them it comes first, as in numpy
    /// (columns that no array reaches are repeated along it then).
    ///
    /// A list that is null in every column that has it gives null where an element is asked of it,
    /// and stays null where elements are. Only lists that the items before reach are looked at: a
    /// position out of range for lists that are not selected is no error. So nothing is out of range
    /// after an array that takes nothing: `[], 99` has no rows whose axis 1 could lack element 99
    /// (numpy, where all lists are of one length, refuses that), while `99, []` is an error, and so
    /// is a mask that takes nothing and is not as long as a list it is for.
    ///
    /// ```
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
    /// More items than axes; a position out of range, with axis, index and size (and row, where lists
    /// differ); arrays of different lengths or of more than one dimension; a mask that is not as long
    /// as a list it is for.
    pub fn index(&self, index: &[Index]) -> Result<Self> {
        let what = format!("a table with {} axes (the first index is axis 0)", self.ndim());
        let expanded = Index::expand(index, self.ndim(), &what)?;
        let arrangement = Arrangement::of(&expanded);
        let items = items(&expanded)?;
        let out = if arrangement.apart && !matches!(items.first(), Some(Item::Picks(_))) {
            self.index_apart(&items)?
        } else {
            let mut cursor = Cursor::new(self);
            cursor.apply(&items, arrangement.apart)?;
            cursor.table
        };
        arrangement.new_axes.iter().try_fold(out, |t, axis| t.unsqueeze(*axis))
    }

    /// Arrays apart from each other, after an axis without one: one part of the answer after the
    /// other, as rows of a new axis 0.
    fn index_apart(&self, items: &[Item]) -> Result<Self> {
        let count = items.iter().find_map(Item::count).unwrap_or(0);
        let bare = Self { scalars: Vec::new(), ..self.clone() };
        let one = |j: usize| -> Result<Self> {
            let items: Vec<Item> = items.iter().map(|i| i.only(j)).collect();
            let mut cursor = Cursor::new(&bare);
            cursor.apply(&items, false)?;
            cursor.table.unsqueeze(0)
        };
        let mut out = match count {
            0 => {
                // What stands before the arrays is looked at, what stands after them is not reached.
                let first = items.iter().position(|i| matches!(i, Item::Picks(_))).unwrap_or(0);
                Cursor::new(&bare).apply(items.get(..=first).unwrap_or(items), false)?;
                // Of nothing, only axes and types: no rows, under which there are no lists.
                let mut cursor = Cursor::new(&bare.unsqueeze(0)?.slice(0..0)?);
                let mut below = vec![Item::Slice(None)];
                below.extend(items.iter().map(|i| i.only(0)));
                cursor.apply(&below, false)?;
                cursor.table
            }
            n => Self::concat(&(0..n).map(one).collect::<Result<Vec<_>>>()?)?,
        };
        out.scalars.clone_from(&self.scalars);
        Ok(out)
    }

    /// For every list of axis `axis`, whether it is null in all columns that have it.
    pub(super) fn missing(&self, axis: usize) -> Missing {
        let mut below = self.columns().iter().filter(|c| c.axis() >= axis).peekable();
        if below.peek().is_none() {
            return Missing(None);
        }
        Missing(below.map(|c| c.list_nulls().get(axis - 1).cloned().flatten()).collect())
    }
}

/// Validities of the lists of one axis; `None` when some column has no null there.
pub(super) struct Missing(Option<Vec<NullBuffer>>);

impl Missing {
    pub(super) fn get(&self, list: usize) -> bool {
        self.0.as_ref().is_some_and(|all| all.iter().all(|n| n.is_null(list)))
    }
}
