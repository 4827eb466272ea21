//! `ragged_nest_agg`: collects rows into lists, in a given order.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, StructArray, UInt64Array, make_comparator, new_null_array,
};
use arrow::compute::{SortOptions, filter, is_not_null};
use arrow::datatypes::{DataType, Field, Fields};

use super::super::doc::{Doc, FunctionSection};
use super::super::example;
use super::super::lists::take_rows_at;
use super::grouped_rows::{ByGroup, CollectedRows, group_rows};
use super::{AggBegin, AggDef, AggFacts, AggTypes, GroupStates};
use crate::array::RaggedArray;
use crate::error::Result;
use crate::kernels::reshape;

pub(super) static NEST: AggDef = AggDef {
    name: "ragged_nest_agg",
    arity: (1, 1),
    doc: Doc {
        section: FunctionSection::Aggregate,
        description: "Collects the rows of a group into a list: scalars into a list, lists into a list of lists. It is the inverse of `unnest`. Two columns that are nested in one query have the same lengths. Rows that arrive in the requested order are not sorted again.",
        syntax: &["ragged_nest_agg(x)", "ragged_nest_agg(x ORDER BY t, ..)"],
        args: &[(
            "x",
            "any value; `ORDER BY` determines the order of the rows, which without it come in the order of the plan",
        )],
        missing: "NULL rows are kept as NULL elements. A group without rows returns NULL; `FILTER (WHERE ..)` leaves rows out.",
        duckdb: "`list(x ORDER BY t)`.",
        example: example!("ragged_nest_agg"),
    },
    ordered: true,
    keeps_values: true,
    facts: AggFacts { refuses_distinct: true, ..AggFacts::ANY_ROW },
    plan: |types| Ok(DataType::new_list(types.data_type(0).clone(), true)),
    state: |types| Ok(list_state_types(types)),
    begin: |begin| Ok(Box::new(NestAggregate::new(begin, None))),
};

/// Returns the types of the columns of the partial state: a list of the argument's values per group
/// and, if the call has an ORDER BY, a list of their sort keys.
pub(super) fn list_state_types(types: &AggTypes<'_>) -> Vec<DataType> {
    let mut out = vec![DataType::new_list(types.data_type(0).clone(), true)];
    if !types.ordering().is_empty() {
        out.push(DataType::new_list(DataType::Struct(make_key_fields(types)), true));
    }
    out
}

fn make_key_fields(types: &AggTypes<'_>) -> Fields {
    let field = |(i, t): (usize, &DataType)| Field::new(format!("key{i}"), t.clone(), true);
    types.ordering().iter().enumerate().map(field).collect()
}

#[derive(Debug)]
pub(super) struct NestAggregate {
    rows: CollectedRows,
    keys: Fields,
    sort: Vec<SortOptions>,
    /// Type of the result lists if they concatenate the rows' lists; `None` if each row becomes one
    /// element.
    joined: Option<DataType>,
}

impl NestAggregate {
    pub(super) fn new(begin: &AggBegin<'_>, joined: Option<DataType>) -> Self {
        let keys = make_key_fields(&begin.types);
        let types = std::iter::once(begin.types.data_type(0).clone());
        let all = types.chain(keys.iter().map(|k| k.data_type().clone())).collect();
        Self { rows: CollectedRows::new(all), keys, sort: begin.sort.clone(), joined }
    }

    fn sort_rows(&mut self, groups: usize) -> Result<ByGroup> {
        let mut out = self.rows.sort_by_group(groups)?;
        let compare = out.columns[1..]
            .iter()
            .zip(&self.sort)
            .map(|(key, options)| make_comparator(key, key, *options))
            .collect::<Result<Vec<_>, _>>()?;
        if compare.is_empty() {
            return Ok(out);
        }
        let order = |a: usize, b: usize| {
            let by_key = compare.iter().map(|c| c(a, b));
            by_key.fold(Ordering::Equal, Ordering::then)
        };
        let mut positions: Vec<usize> = (0..out.lengths.iter().sum()).collect();
        let (mut start, mut moved) = (0usize, false);
        for n in &out.lengths {
            let group = &mut positions[start..start + n];
            if !group.is_sorted_by(|a, b| order(*a, *b).is_le()) {
                group.sort_by(|a, b| order(*a, *b));
                moved = true;
            }
            start += n;
        }
        if moved {
            let order = UInt64Array::from_iter_values(positions.into_iter().map(|p| p as u64));
            out.columns =
                out.columns.iter().map(|c| take_rows_at(c, &order)).collect::<Result<_>>()?;
        }
        Ok(out)
    }
}

/// Returns one list per group: the next `lengths[i]` rows of `values` for group `i`, or NULL if
/// this length is 0.
fn nest_values(values: &ArrayRef, lengths: &[usize]) -> Result<ArrayRef> {
    let flat = RaggedArray::try_from_arrow_levels(values, 0)?;
    let lists = group_rows(flat, lengths, |g| lengths[g] == 0)?;
    lists.to_arrow_as(&DataType::new_list(values.data_type().clone(), true))
}

impl GroupStates for NestAggregate {
    fn fresh(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(Self {
            rows: self.rows.make_empty(),
            keys: self.keys.clone(),
            sort: self.sort.clone(),
            joined: self.joined.clone(),
        }))
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize]) -> Result<()> {
        if self.joined.is_none() || values[0].logical_null_count() == 0 {
            self.rows.push(values.to_vec(), groups.to_vec());
            return Ok(());
        }
        let keep = is_not_null(&values[0])?;
        let row_groups =
            groups.iter().zip(keep.values()).filter_map(|(g, keep)| keep.then_some(*g));
        let columns = values.iter().map(|v| Ok(filter(v, &keep)?)).collect::<Result<_>>()?;
        self.rows.push(columns, row_groups.collect());
        Ok(())
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let nested = RaggedArray::try_from_arrow_levels(&states[0], 1)?;
        let mut row_groups = Vec::with_capacity(nested.leaves().len());
        for (group, n) in groups.iter().zip(nested.lengths(1)?) {
            row_groups.resize(row_groups.len() + n, *group);
        }
        let mut columns = vec![Arc::clone(nested.leaves())];
        if let Some(keys) = states.get(1) {
            let keys = RaggedArray::try_from_arrow_levels(keys, 1)?;
            columns.extend(keys.leaves().as_struct().columns().iter().cloned());
        }
        self.rows.push(columns, row_groups);
        Ok(())
    }

    fn state(&mut self, groups: usize) -> Result<Vec<ArrayRef>> {
        let rows = self.sort_rows(groups)?;
        let mut out = vec![nest_values(&rows.columns[0], &rows.lengths)?];
        if !self.keys.is_empty() {
            let keys = StructArray::try_new(self.keys.clone(), rows.columns[1..].to_vec(), None)?;
            out.push(nest_values(&(Arc::new(keys) as ArrayRef), &rows.lengths)?);
        }
        Ok(out)
    }

    fn result(&mut self, groups: usize) -> Result<ArrayRef> {
        let rows = self.sort_rows(groups)?;
        let nested = nest_values(&rows.columns[0], &rows.lengths)?;
        match &self.joined {
            None => Ok(nested),
            Some(DataType::Null) => Ok(new_null_array(&DataType::Null, groups)),
            Some(joined) => {
                let rows = RaggedArray::try_from_arrow(&nested)?;
                reshape::flatten(&rows, 2)?.to_arrow_as(joined)
            }
        }
    }

    fn forget(&mut self, groups: usize) -> Result<()> {
        self.rows.forget_rows(groups)
    }

    fn size(&self) -> usize {
        self.rows.size()
    }
}
