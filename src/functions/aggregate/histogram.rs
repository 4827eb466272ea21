//! `ragged_histogram_agg`: counts how often each value occurs.

mod counts;
mod value_ids;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StructArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Fields, UInt64Type};

use super::super::doc::{Doc, FunctionSection};
use super::super::example;
use super::grouped_rows::group_rows;
use super::{AggBegin, AggDef, AggFacts, AggTypes, GroupStates};
use crate::array::{RaggedArray, leaf_type};
use crate::error::{Error, Result};
use counts::ValueCounts;
use serrate_core::internal::merge_all_levels;
use value_ids::ValueNumbers;

pub(super) static HISTOGRAM: AggDef = AggDef {
    name: "ragged_histogram_agg",
    arity: (1, 2),
    doc: Doc {
        section: FunctionSection::Aggregate,
        description: "Counts how often each value occurs in all lists of a group, and returns a list of `{value, count}`, the most frequent value first. It counts without unnesting. `unnest(ragged_histogram_agg(code, 5))` returns the five most frequent codes.",
        syntax: &["ragged_histogram_agg(x [, n])"],
        args: &[
            ("x", "a list of any depth, or a scalar per row"),
            ("n", "the number of most frequent values to return, a literal; all by default"),
        ],
        missing: "NULL is not counted. All NaN count as one value, and so do 0.0 and -0.0. Values with equal counts come in ascending order. A group without a list returns NULL, and one of empty lists an empty list.",
        duckdb: "`histogram(v)` over `unnest(flatten(x))`, which returns a map.",
        example: example!("ragged_histogram_agg"),
    },
    ordered: false,
    keeps_values: false,
    facts: AggFacts { refuses_distinct: true, ..AggFacts::COMPARES },
    plan: |types| {
        if types.len() > 1 && !types.data_type(1).is_integer() && !types.data_type(1).is_null() {
            return Err(types.refuse_types(format!(
                "argument 2 (n) must be an integer such as 5; it is {}",
                types.data_type(1)
            )));
        }
        make_entries_type(types)
    },
    state: |types| Ok(vec![make_entries_type(types)?]),
    begin: |begin| Ok(Box::new(GroupHistograms::new(begin)?)),
};

fn make_entries_type(types: &AggTypes<'_>) -> Result<DataType> {
    let value = match leaf_type(types.data_type(0)) {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        t if t.is_nested() => {
            return Err(types.refuse_types(format!(
                "argument 1 must hold scalars; its values are {t}, which cannot be counted; for structs, give one field: ragged_unzip(x, 'name')"
            )));
        }
        t => t.clone(),
    };
    Ok(DataType::new_list(DataType::Struct(make_entry_fields(value)), true))
}

fn make_entry_fields(value: DataType) -> Fields {
    [Field::new("value", value, true), Field::new("count", DataType::UInt64, false)]
        .into_iter()
        .collect()
}

#[derive(Debug)]
struct GroupHistograms {
    returns: DataType,
    fields: Fields,
    top: Option<usize>,
    values: ValueNumbers,
    /// How often each value occurs in each group, or `None` for a group without a valid list.
    groups: Vec<Option<ValueCounts>>,
    scratch: Vec<u32>,
}

impl GroupHistograms {
    fn new(begin: &AggBegin<'_>) -> Result<Self> {
        let DataType::List(item) = begin.returns else {
            return Err(Error::invalid(format!(
                "internal error: the result of a histogram must be a list, not {}; please report it",
                begin.returns
            )));
        };
        let DataType::Struct(fields) = item.data_type() else {
            return Err(Error::invalid(format!(
                "internal error: the result of a histogram must be a list of structs, not {}; please report it",
                begin.returns
            )));
        };
        let top = match begin.types.len() {
            1 => None,
            _ => parse_top(begin)?,
        };
        Ok(Self {
            returns: begin.returns.clone(),
            fields: fields.clone(),
            top,
            values: ValueNumbers::new(fields[0].data_type())?,
            groups: Vec::new(),
            scratch: Vec::new(),
        })
    }

    fn group_counts(&mut self, group: usize) -> &mut ValueCounts {
        if group >= self.groups.len() {
            self.groups.resize_with(group + 1, || None);
        }
        self.groups[group].get_or_insert_default()
    }

    /// Returns, for each of the first `groups` groups, a list of its values with their counts, the
    /// most frequent first, cut to `top` values.
    fn collect_entries(&self, groups: usize, top: Option<usize>) -> Result<ArrayRef> {
        let mut lengths = vec![0usize; groups];
        let (mut ids, mut counts) = (Vec::new(), Vec::new());
        for (group, length) in lengths.iter_mut().enumerate() {
            let Some(Some(found)) = self.groups.get(group) else { continue };
            let mut all: Vec<(u64, u64)> = found.iter().collect();
            all.sort_unstable_by(|a, b| {
                b.1.cmp(&a.1).then_with(|| self.values.compare_values(a.0, b.0))
            });
            all.truncate(top.unwrap_or(usize::MAX));
            *length = all.len();
            ids.extend(all.iter().map(|(id, _)| *id));
            counts.extend(all.iter().map(|(_, n)| *n));
        }
        let values = self.values.decode_values(&ids)?;
        let columns = vec![values, Arc::new(UInt64Array::from(counts)) as ArrayRef];
        let all: ArrayRef = Arc::new(StructArray::try_new(self.fields.clone(), columns, None)?);
        let rows = RaggedArray::try_from_arrow_levels(&all, 0)?;
        let missing = |g: usize| self.groups.get(g).is_none_or(Option::is_none);
        group_rows(rows, &lengths, missing)?.to_arrow_as(&self.returns)
    }
}

/// Returns the literal argument 2, the maximum number of values in a result list, or `None` if it
/// is NULL, so that lists have all values.
fn parse_top(begin: &AggBegin<'_>) -> Result<Option<usize>> {
    let Some(value) = begin.find_literal(1) else {
        return Err(begin.types.refuse_types(
            "argument 2 (n) is a column, a parameter ($1) or a computed value, which is not known when the query is planned; give a literal such as 5"
        ));
    };
    if value.is_null() {
        return Ok(None);
    }
    match value.cast_to(&DataType::Int64)? {
        datafusion::common::ScalarValue::Int64(Some(n)) => {
            usize::try_from(n).map(Some).map_err(|_| {
                begin
                    .types
                    .refuse_types(format!(
                        "argument 2 (n), the maximum number of values in the result, must be 0 or more; it is {n}"
                    ))
            })
        }
        other => Err(begin.types.refuse_types(format!("argument 2 (n) must be an integer such as 5; it is {other}"))),
    }
}

impl GroupStates for GroupHistograms {
    fn fresh(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(Self {
            returns: self.returns.clone(),
            fields: self.fields.clone(),
            top: self.top,
            values: ValueNumbers::new(self.fields[0].data_type())?,
            groups: Vec::new(),
            scratch: Vec::new(),
        }))
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let rows = RaggedArray::try_from_arrow(&values[0])?;
        let lists = merge_all_levels(&rows)?;
        let leaves = rows.leaves();
        let ids = self.values.number_batch(leaves)?;
        let mut row = 0;
        while row < groups.len() {
            let group = groups[row];
            let run = groups[row..].iter().take_while(|g| **g == group).count();
            let range = match &lists {
                Some(lists) => lists.layout().ranges(row..row + run),
                None => row..row + run,
            };
            let known = match &lists {
                Some(lists) => lists.nulls().is_none_or(|n| n.slice(row, run).null_count() < run),
                None => (row..row + run).any(|i| leaves.is_valid(i)),
            };
            if known {
                let mut scratch = std::mem::take(&mut self.scratch);
                let counts = self.group_counts(group);
                ids.count(range, counts, &mut scratch);
                self.scratch = scratch;
            }
            row += run;
        }
        Ok(())
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let nested = RaggedArray::try_from_arrow_levels(&states[0], 1)?;
        let level = nested.axis(1)?.clone();
        let entries = nested.leaves().as_struct();
        let ids = self.values.number_batch(entries.column(0))?;
        let counts = entries.column(1).as_primitive::<UInt64Type>().values();
        for (row, group) in groups.iter().enumerate() {
            if level.nulls().is_some_and(|n| n.is_null(row)) {
                continue;
            }
            let own = self.group_counts(*group);
            for i in level.layout().range(row) {
                if let Some(id) = ids.get_bits(i) {
                    own.add(id, counts[i]);
                }
            }
        }
        Ok(())
    }

    fn state(&mut self, groups: usize) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.collect_entries(groups, None)?])
    }

    fn result(&mut self, groups: usize) -> Result<ArrayRef> {
        self.collect_entries(groups, self.top)
    }

    fn forget(&mut self, groups: usize) -> Result<()> {
        self.groups.drain(..groups.min(self.groups.len()));
        Ok(())
    }

    fn size(&self) -> usize {
        let counts: usize = self.groups.iter().flatten().map(ValueCounts::size).sum();
        self.groups.capacity() * size_of::<Option<ValueCounts>>() + counts + self.values.size()
    }
}
