//! `first_value`, `last_value` and `any_value` of lists and structs per group, without ORDER BY.
//!
//! For these calls, DataFusion has an accumulator per group. Once it has merged states, each holds
//! the whole batch of its state, and counts this batch as its own memory. Remove this module once
//! `stock_first_values_of_lists_still_count_their_batch` in the SQL tests fails.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::logical_expr::function::AccumulatorArgs;

use super::GroupStates;
use super::kept_rows::KeptRows;
use crate::error::{Error, Result};

/// The first or last row of each group. The state is the row, and whether there is one, as in
/// DataFusion.
#[derive(Debug)]
pub(super) struct PickedRows {
    kept: KeptRows,
    takes_last: bool,
    skips_nulls: bool,
}

impl PickedRows {
    /// Returns the state of a call of the aggregate `name`; `None` for other aggregates and types.
    pub(super) fn from_call(name: &str, args: &AccumulatorArgs<'_>) -> Option<Self> {
        let (takes_last, skips_nulls) = match name {
            "any_value" => (false, true),
            "first_value" => (false, args.ignore_nulls),
            "last_value" => (true, args.ignore_nulls),
            _ => return None,
        };
        let data_type = args.return_field.data_type();
        (data_type.is_nested() && args.order_bys.is_empty()).then(|| Self {
            kept: KeptRows::new(data_type),
            takes_last,
            skips_nulls,
        })
    }

    /// Adds the rows for which `counts` is true.
    fn pick_rows(
        &mut self,
        values: &ArrayRef,
        groups: &[usize],
        counts: impl Fn(usize) -> bool,
    ) -> Result<()> {
        let mut picked: HashMap<usize, u64> = HashMap::new();
        for (row, group) in groups.iter().enumerate() {
            if !counts(row) {
                continue;
            }
            if self.takes_last {
                picked.insert(*group, row as u64);
            } else if !self.kept.has_row(*group) {
                picked.entry(*group).or_insert(row as u64);
            }
        }
        let (groups, rows): (Vec<usize>, Vec<u64>) = picked.into_iter().unzip();
        self.kept.put_rows(values, &groups, rows)
    }
}

impl GroupStates for PickedRows {
    fn fresh(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(Self { kept: self.kept.fresh(), ..*self }))
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let Some(values) = values.first() else { return Ok(()) };
        let skips_nulls = self.skips_nulls;
        self.pick_rows(values, groups, |row| !skips_nulls || values.is_valid(row))
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let (values, set) = match states {
            [values, set] => (values, set.as_boolean_opt()),
            _ => return Ok(()),
        };
        let set = set.ok_or_else(|| {
            Error::type_of(
                "internal error, please report it: whether a group has a row",
                "Boolean".to_owned(),
                states[1].data_type(),
            )
        })?;
        self.pick_rows(values, groups, |row| set.is_valid(row) && set.value(row))
    }

    fn state(&mut self, groups: usize) -> Result<Vec<ArrayRef>> {
        let set: BooleanArray = (0..groups).map(|group| Some(self.kept.has_row(group))).collect();
        Ok(vec![self.kept.collect_rows(groups)?, Arc::new(set)])
    }

    fn result(&mut self, groups: usize) -> Result<ArrayRef> {
        self.kept.collect_rows(groups)
    }

    fn forget(&mut self, groups: usize) -> Result<()> {
        self.kept.forget_groups(groups)
    }

    fn size(&self) -> usize {
        self.kept.size()
    }
}
