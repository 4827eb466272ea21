//! [`GroupStates`]: the state of an aggregate.

use std::fmt;

use arrow::array::ArrayRef;

use crate::error::{Error, Result};

/// State of an aggregate for many groups, numbered from 0. A group may have no rows.
pub(crate) trait GroupStates: fmt::Debug + Send + Sync {
    fn fresh(&self) -> Result<Box<dyn GroupStates>>;

    /// Adds rows: `values` has the columns of the arguments, followed by the columns of the sort
    /// keys; `groups` has the group of each row.
    fn update(&mut self, values: &[ArrayRef], groups: &[usize]) -> Result<()>;

    fn update_one(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = values.first().map_or(0, |v| v.len());
        self.update(values, &vec![0; rows])
    }

    fn retracts(&self) -> bool {
        false
    }

    /// Removes rows from group 0 that were added earlier.
    fn retract_one(&mut self, _values: &[ArrayRef]) -> Result<()> {
        Err(Error::invalid(format!(
            "internal error: an aggregate with the state {} cannot remove rows from it; please report it",
            std::any::type_name::<Self>()
        )))
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()>;

    /// Returns the partial state of the first `groups` groups.
    fn state(&mut self, groups: usize) -> Result<Vec<ArrayRef>>;

    fn result(&mut self, groups: usize) -> Result<ArrayRef>;

    /// Removes the first `groups` groups. The numbers of the remaining groups decrease by `groups`.
    fn forget(&mut self, groups: usize) -> Result<()>;

    fn size(&self) -> usize;
}
