//! [`GroupStates`]: the trait for the state of an aggregate over many groups.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, ListArray, PrimitiveArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::Field;

use crate::error::{Error, Result};

/// State of an aggregate for many groups, which are numbered from 0. A number may belong to a group
/// without rows.
pub(crate) trait GroupStates: fmt::Debug + Send + Sync {
    fn fresh(&self) -> Result<Box<dyn GroupStates>>;

    /// Adds rows. `values` has the columns of the arguments, then the columns of the sort keys;
    /// `groups` has the group of each row.
    fn update(&mut self, values: &[ArrayRef], groups: &[usize]) -> Result<()>;

    fn update_one(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = values.first().map_or(0, |v| v.len());
        self.update(values, &vec![0; rows])
    }

    fn retracts(&self) -> bool {
        false
    }

    /// Removes rows that were added to group 0 earlier, as a sliding window requires.
    fn retract_one(&mut self, _values: &[ArrayRef]) -> Result<()> {
        Err(Error::invalid(format!(
            "internal error: an aggregate with the state {} cannot remove rows from it; please report it",
            std::any::type_name::<Self>()
        )))
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()>;

    /// Returns the partial state, which `merge` accepts, of the first `groups` groups: columns with
    /// one row per group.
    fn state(&mut self, groups: usize) -> Result<Vec<ArrayRef>>;

    fn result(&mut self, groups: usize) -> Result<ArrayRef>;

    /// Removes the first `groups` groups. The numbers of the remaining groups decrease by `groups`.
    fn forget(&mut self, groups: usize) -> Result<()>;

    fn size(&self) -> usize;
}

/// Removes each value of `gone` once from `values`. Two values are equal if `key_of` returns the
/// same key for both.
pub(super) fn remove_values<T, K: Eq + Hash>(
    values: &mut Vec<T>,
    gone: impl Iterator<Item = T>,
    key_of: impl Fn(&T) -> K,
) {
    let mut counts: HashMap<K, usize> = HashMap::new();
    for value in gone {
        *counts.entry(key_of(&value)).or_default() += 1;
    }
    values.retain(|value| match counts.get_mut(&key_of(value)) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    });
}

/// Returns the values of the first `groups` groups as lists. More than 2^31 - 1 values are the
/// error `too_many`.
pub(super) fn list_values<T: ArrowPrimitiveType>(
    values: &[Vec<T::Native>],
    groups: usize,
    too_many: &str,
) -> Result<ArrayRef> {
    let lists = || (0..groups).map(|group| values.get(group).map_or(&[][..], |v| &v[..]));
    let total = lists().try_fold(0usize, |total, list| total.checked_add(list.len()));
    if total.is_none_or(|total| i32::try_from(total).is_err()) {
        return Err(Error::invalid(too_many));
    }
    let flat = PrimitiveArray::<T>::from_iter_values(lists().flatten().copied());
    let offsets = OffsetBuffer::from_lengths(lists().map(<[_]>::len));
    let field = Arc::new(Field::new_list_field(T::DATA_TYPE, true));
    Ok(Arc::new(ListArray::try_new(field, offsets, Arc::new(flat), None)?))
}
