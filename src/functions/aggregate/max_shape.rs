//! `ragged_max_shape_agg`: the smallest dense shape to which all rows can be padded.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::{ScalarValue, exec_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator,
    Signature, Volatility,
};

use super::super::doc::{Doc, FunctionSection};
use super::super::example;
use super::sliding_frames;
use crate::array::{RaggedArray, list_depth, list_of};
use crate::kernels::shape;

pub(super) const NAME: &str = "ragged_max_shape_agg";

pub(super) static DOC: Doc = Doc {
    section: FunctionSection::Aggregate,
    description: "Returns the extent of all rows together: the length of the longest list on each axis. These are the sizes that `densify` needs to hold every row whole.",
    syntax: &["ragged_max_shape_agg(x)"],
    args: &[("x", "a list of any depth: List, LargeList or FixedSizeList")],
    missing: "NULL rows are skipped. A group without rows, or of NULL rows only, returns NULL; one of empty rows returns zeros.",
    duckdb: "`[max(len(x)), max(list_max(list_transform(x, lambda v: len(v))))]`.",
    example: example!("ragged_max_shape_agg"),
};

pub(super) fn build_udaf() -> AggregateUDF {
    AggregateUDF::new_from_impl(MaxShape {
        signature: Signature::any(1, Volatility::Immutable),
        documentation: DOC.to_documentation(),
    })
}

#[derive(Debug)]
struct MaxShape {
    signature: Signature,
    documentation: Documentation,
}

/// Functions have no state, so all instances are equal.
impl PartialEq for MaxShape {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for MaxShape {}

impl Hash for MaxShape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        NAME.hash(state);
    }
}

impl AggregateUDFImpl for MaxShape {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::Null] => Ok(list_of(1, DataType::Int64)),
            [t] if list_depth(t) > 0 => Ok(list_of(1, DataType::Int64)),
            [t] => plan_err!(
                "{NAME}: the argument must be a list (List, LargeList or FixedSizeList); it is {t}"
            ),
            _ => {
                plan_err!(
                    "{NAME} takes 1 argument, a list, as in {NAME}(x), but found {}",
                    types.len()
                )
            }
        }
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(ShapeExtents::default()))
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        Ok(sliding_frames::replay_frames(build_udaf(), &args))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let name = format!("{}[extent]", args.name);
        Ok(vec![Arc::new(Field::new(name, list_of(1, DataType::Int64), true))])
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        _: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(ShapeExtents::default()))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&self.documentation)
    }
}

#[derive(Debug, Default)]
struct ShapeExtents {
    /// Number of axes; 0 before the first valid row.
    axes: usize,
    /// Lengths of the longest lists: `axes` values per group, group after group.
    longest: Vec<i64>,
    seen: Vec<bool>,
}

impl ShapeExtents {
    fn add_shapes(
        &mut self,
        shapes: &ListArray,
        group: impl Fn(usize) -> usize,
        keep: impl Fn(usize) -> bool,
        groups: usize,
    ) -> Result<()> {
        if groups > self.seen.len() {
            self.seen.resize(groups, false);
        }
        let numbers = shapes.values().as_primitive::<Int64Type>().values();
        let offsets = shapes.value_offsets();
        for row in (0..shapes.len()).filter(|r| shapes.is_valid(*r) && keep(*r)) {
            let bounds =
                usize::try_from(offsets[row]).ok().zip(usize::try_from(offsets[row + 1]).ok());
            let shape = bounds.and_then(|(a, b)| numbers.get(a..b)).unwrap_or_default();
            if self.axes == 0 {
                self.axes = shape.len();
            }
            if shape.len() != self.axes {
                return Err(exec_datafusion_err!(
                    "{NAME}: a row has {} level(s) of lists, but earlier rows have {}; all rows must have the same type, so cast the lists to one type",
                    shape.len(),
                    self.axes
                ));
            }
            self.longest.resize(self.seen.len() * self.axes, 0);
            let group = group(row);
            let own = &mut self.longest[group * self.axes..][..self.axes];
            for (max, n) in own.iter_mut().zip(shape) {
                *max = (*max).max(*n);
            }
            self.seen[group] = true;
        }
        self.longest.resize(self.seen.len() * self.axes, 0);
        Ok(())
    }

    /// Removes the groups that `to` selects, and returns the maximum shape of each of them as a
    /// list of lengths.
    fn emit_groups(&mut self, to: EmitTo) -> Result<ListArray> {
        let seen = to.take_needed(&mut self.seen);
        let numbers = match to {
            EmitTo::All => std::mem::take(&mut self.longest),
            EmitTo::First(_) => {
                let rest = self.longest.split_off(seen.len() * self.axes);
                std::mem::replace(&mut self.longest, rest)
            }
        };
        let axes = self.axes;
        let numbers: Vec<i64> = match axes {
            0 => Vec::new(),
            _ => numbers
                .chunks_exact(axes)
                .zip(&seen)
                .filter(|(_, seen)| **seen)
                .flat_map(|(shape, _)| shape.iter().copied())
                .collect(),
        };
        let offsets = OffsetBuffer::from_lengths(seen.iter().map(|s| if *s { axes } else { 0 }));
        let field = Arc::new(Field::new_list_field(DataType::Int64, true));
        let nulls = NullBuffer::from(seen);
        Ok(ListArray::try_new(field, offsets, Arc::new(Int64Array::from(numbers)), Some(nulls))?)
    }
}

fn compute_row_shapes(values: &ArrayRef) -> Result<ListArray> {
    if values.data_type().is_null() {
        let field = Arc::new(Field::new_list_field(DataType::Int64, true));
        return Ok(ListArray::new_null(field, values.len()));
    }
    let shapes = shape::row_max_shapes(&RaggedArray::try_from_arrow(values)?)?;
    Ok(shapes.to_arrow_as(&list_of(1, DataType::Int64))?.as_list::<i32>().clone())
}

impl Accumulator for ShapeExtents {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add_shapes(&compute_row_shapes(&values[0])?, |_| 0, |_| true, 1)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.seen.is_empty() {
            self.seen.push(false);
            self.longest.resize(self.axes, 0);
        }
        let (seen, longest) = (self.seen.clone(), self.longest.clone());
        let list = self.emit_groups(EmitTo::All)?;
        // Restores the state, because a window function calls `evaluate` again after each row.
        (self.seen, self.longest) = (seen, longest);
        Ok(ScalarValue::List(Arc::new(list)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.longest.capacity() * 8 + self.seen.capacity()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![Accumulator::evaluate(self)?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.add_shapes(states[0].as_list::<i32>(), |_| 0, |_| true, 1)
    }
}

impl GroupsAccumulator for ShapeExtents {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let keep = |row: usize| opt_filter.is_none_or(|f| f.is_valid(row) && f.value(row));
        self.add_shapes(
            &compute_row_shapes(&values[0])?,
            |row| group_indices[row],
            keep,
            total_num_groups,
        )
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(Arc::new(self.emit_groups(emit_to)?))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![Arc::new(self.emit_groups(emit_to)?)])
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        let states = values[0].as_list::<i32>();
        self.add_shapes(states, |row| group_indices[row], |_| true, total_num_groups)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let list = compute_row_shapes(&values[0])?;
        let Some(filter) = opt_filter else { return Ok(vec![Arc::new(list)]) };
        let kept: Vec<bool> =
            (0..list.len()).map(|i| filter.is_valid(i) && filter.value(i)).collect();
        let (field, offsets, numbers, nulls) = list.into_parts();
        let nulls = NullBuffer::union(nulls.as_ref(), Some(&NullBuffer::from(kept)));
        Ok(vec![Arc::new(ListArray::try_new(field, offsets, numbers, nulls)?)])
    }

    fn size(&self) -> usize {
        Accumulator::size(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(rows: Vec<Option<Vec<Option<i64>>>>) -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows))
    }

    fn shown(list: &ListArray) -> Vec<Option<Vec<i64>>> {
        list.iter().map(|l| l.map(|l| l.as_primitive::<Int64Type>().values().to_vec())).collect()
    }

    #[test]
    fn groups_emit_first_and_keep_the_rest() {
        let rows = lists(vec![
            Some(vec![Some(1); 3]),
            None,
            Some(vec![]),
            Some(vec![Some(1); 5]),
            Some(vec![Some(1); 2]),
        ]);
        let mut e = ShapeExtents::default();
        let keep = BooleanArray::from(vec![Some(true), Some(true), Some(true), None, Some(true)]);
        GroupsAccumulator::update_batch(&mut e, &[rows], &[0, 1, 2, 0, 3], Some(&keep), 4).unwrap();
        let first = e.emit_groups(EmitTo::First(2)).unwrap();
        assert_eq!(shown(&first), [Some(vec![3]), None]);
        let more = lists(vec![Some(vec![Some(1); 7])]);
        GroupsAccumulator::update_batch(&mut e, &[more], &[0], None, 2).unwrap();
        assert_eq!(shown(&e.emit_groups(EmitTo::All).unwrap()), [Some(vec![7]), Some(vec![2])]);
    }

    #[test]
    fn states_merge_and_nulls_only_stay_null() {
        let mut a = ShapeExtents::default();
        Accumulator::update_batch(&mut a, &[lists(vec![None, None])]).unwrap();
        let none = Accumulator::state(&mut a).unwrap();
        assert!(none[0].is_null());
        Accumulator::merge_batch(&mut a, &[none[0].to_array().unwrap()]).unwrap();
        assert!(Accumulator::evaluate(&mut a).unwrap().is_null());
        Accumulator::merge_batch(&mut a, &[lists(vec![Some(vec![Some(4), Some(9)])])]).unwrap();
        Accumulator::merge_batch(&mut a, &[lists(vec![Some(vec![Some(6), Some(2)])])]).unwrap();
        for _ in 0..2 {
            let ScalarValue::List(l) = Accumulator::evaluate(&mut a).unwrap() else { panic!() };
            assert_eq!(shown(&l), [Some(vec![6, 9])]);
        }
        let other = lists(vec![Some(vec![Some(1)])]);
        assert!(Accumulator::merge_batch(&mut a, &[other]).is_err());
    }
}
