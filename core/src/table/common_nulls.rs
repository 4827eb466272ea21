use arrow::buffer::NullBuffer;

use super::RaggedTable;

/// Validity of the lists of one axis, one bitmap per column. `None` if a column has no null list on this
/// axis, because then no list is null in all columns.
pub(super) struct CommonNulls(pub(super) Option<Vec<NullBuffer>>);

impl CommonNulls {
    pub(super) fn get(&self, list: usize) -> bool {
        self.0.as_ref().is_some_and(|all| all.iter().all(|n| n.is_null(list)))
    }
}

impl RaggedTable {
    /// Returns, for every list of axis `axis`, whether the list is null in all columns on this axis
    /// and on the axes below.
    pub(super) fn find_common_nulls(&self, axis: usize) -> CommonNulls {
        let mut below = self.columns().iter().filter(|c| c.axis() >= axis).peekable();
        if below.peek().is_none() {
            return CommonNulls(None);
        }
        CommonNulls(below.map(|c| c.list_nulls().get(axis - 1).cloned().flatten()).collect())
    }
}
