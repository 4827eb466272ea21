use arrow::buffer::NullBuffer;

use super::RaggedTable;

/// Tells which lists of one axis are null in every column. Stores the validity of the lists of this
/// axis for each column; `None` if no list is null in every column, because at least one column has
/// no null lists, or because there are no columns.
pub(super) struct CommonNulls(pub(super) Option<Vec<NullBuffer>>);

impl CommonNulls {
    /// Returns whether a list is null in every column.
    pub(super) fn get(&self, list: usize) -> bool {
        self.0.as_ref().is_some_and(|all| all.iter().all(|n| n.is_null(list)))
    }
}

impl RaggedTable {
    /// Finds the lists of `axis` that are null in every column on `axis` or an axis below.
    pub(super) fn find_common_nulls(&self, axis: usize) -> CommonNulls {
        let mut below = self.columns().iter().filter(|c| c.axis() >= axis).peekable();
        if below.peek().is_none() {
            return CommonNulls(None);
        }
        CommonNulls(below.map(|c| c.list_nulls().get(axis - 1).cloned().flatten()).collect())
    }
}
