//! Adapters that turn a [`GroupStates`] into DataFusion's accumulators for one group and for many
//! groups.

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::compute::filter;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::GroupStates;

#[derive(Debug)]
pub(super) struct SingleAccumulator(Box<dyn GroupStates>);

impl SingleAccumulator {
    pub(super) fn new(fold: Box<dyn GroupStates>) -> Self {
        Self(fold)
    }
}

impl Accumulator for SingleAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        Ok(self.0.update_one(values)?)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        Ok(self.0.retract_one(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.0.retracts()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.0.result(1)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.state(1)?.iter().map(|a| ScalarValue::try_from_array(a, 0)).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let rows = states.first().map_or(0, |v| v.len());
        Ok(self.0.merge(states, &vec![0; rows])?)
    }
}

#[derive(Debug)]
pub(super) struct GroupedAccumulator {
    fold: Box<dyn GroupStates>,
    groups: usize,
}

impl GroupedAccumulator {
    pub(super) fn new(fold: Box<dyn GroupStates>) -> Self {
        Self { fold, groups: 0 }
    }

    fn count_emitted(&mut self, to: EmitTo) -> usize {
        match to {
            EmitTo::All => self.groups,
            EmitTo::First(n) => n.min(self.groups),
        }
    }

    fn forget_groups(&mut self, groups: usize) -> Result<()> {
        self.groups -= groups;
        Ok(self.fold.forget(groups)?)
    }
}

impl GroupsAccumulator for GroupedAccumulator {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.groups = self.groups.max(total_num_groups);
        let Some(keep) = opt_filter else { return Ok(self.fold.update(values, group_indices)?) };
        let values: Vec<ArrayRef> =
            values.iter().map(|v| filter(v, keep)).collect::<Result<_, _>>()?;
        let kept = |row: &usize| keep.is_valid(*row) && keep.value(*row);
        let groups: Vec<usize> =
            (0..group_indices.len()).filter(kept).map(|row| group_indices[row]).collect();
        Ok(self.fold.update(&values, &groups)?)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let groups = self.count_emitted(emit_to);
        let out = self.fold.result(groups)?;
        self.forget_groups(groups)?;
        Ok(out)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let groups = self.count_emitted(emit_to);
        let out = self.fold.state(groups)?;
        self.forget_groups(groups)?;
        Ok(out)
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.groups = self.groups.max(total_num_groups);
        Ok(self.fold.merge(values, group_indices)?)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let rows = values.first().map_or(0, |v| v.len());
        let mut each = Self { fold: self.fold.fresh()?, groups: rows };
        let own: Vec<usize> = (0..rows).collect();
        each.update_batch(values, &own, opt_filter, rows)?;
        Ok(each.fold.state(rows)?)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.fold.size()
    }
}
