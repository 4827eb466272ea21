//! `first_value`, `last_value` and `any_value` of lists and structs per group.
//!
//! DataFusion keeps one scalar per group, which has small buffers of its own if it is a list. The
//! allocator does not return such buffers to the system, and the memory limit does not count them:
//! under a limit of 32 MiB, such a query took 112 MB. Without ORDER BY, DataFusion has an
//! accumulator per group. When the accumulator merges a partial state, it keeps the whole batch of
//! this state in memory; no upstream issue was found. Remove this module once
//! `stock_first_values_of_lists_still_count_their_batch` in the SQL tests fails.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DynComparator, StructArray, make_comparator,
};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::physical_expr::PhysicalSortExpr;

use super::GroupStates;
use super::kept_rows::KeptRows;
use crate::error::{Error, Result};

/// The first or last row of each group. The partial state has the same columns as DataFusion's
/// partial state: the value, the sort keys, and whether there is a row.
#[derive(Debug)]
pub(super) struct PickedRows {
    /// The picked row of each group, as a struct of the value and the sort keys.
    kept: KeptRows,
    fields: Fields,
    sort: Vec<SortOptions>,
    takes_last: bool,
    skips_nulls: bool,
}

/// Whether [`PickedRows`] computes a call of the aggregate `name`: `any_value`, `first_value` or
/// `last_value` of lists or structs.
pub(super) fn picks_rows(name: &str, args: &AccumulatorArgs<'_>) -> bool {
    ["any_value", "first_value", "last_value"].contains(&name)
        && args.return_field.data_type().is_nested()
}

impl PickedRows {
    pub(super) fn new(name: &str, args: &AccumulatorArgs<'_>) -> DfResult<Self> {
        let takes_any = name == "any_value";
        let order_bys: &[PhysicalSortExpr] = if takes_any { &[] } else { args.order_bys };
        let value = Field::new("value", args.return_field.data_type().clone(), true);
        let mut fields = vec![value];
        for (i, by) in order_bys.iter().enumerate() {
            fields.push(Field::new(format!("key{i}"), by.expr.data_type(args.schema)?, true));
        }
        let fields = Fields::from(fields);
        Ok(Self {
            kept: KeptRows::new(&DataType::Struct(fields.clone())),
            fields,
            sort: order_bys.iter().map(|by| by.options).collect(),
            takes_last: name == "last_value",
            skips_nulls: takes_any || args.ignore_nulls,
        })
    }

    /// Updates the picked row of each group with the new rows for which `counts` is true. `columns`
    /// has the values, then the sort keys; `groups` has the group of each row.
    fn pick_rows(
        &mut self,
        columns: &[ArrayRef],
        groups: &[usize],
        counts: impl Fn(usize) -> bool,
    ) -> Result<()> {
        // Drops the sort keys that DataFusion passes for `any_value`, which ignores its ORDER BY.
        let columns = columns.iter().take(self.fields.len()).cloned().collect();
        let rows: ArrayRef = Arc::new(StructArray::try_new(self.fields.clone(), columns, None)?);
        if !self.sort.is_empty() {
            let wanted = if self.takes_last { Ordering::Greater } else { Ordering::Less };
            let compare = |a: &ArrayRef, b: &ArrayRef| compare_keys(a, b, &self.sort);
            return self.kept.keep_best_rows(&rows, groups, counts, wanted, compare);
        }
        let mut picked: HashMap<usize, u64> = HashMap::new();
        for (row, group) in groups.iter().enumerate().filter(|(row, _)| counts(*row)) {
            if self.takes_last {
                picked.insert(*group, row as u64);
            } else if !self.kept.has_row(*group) {
                picked.entry(*group).or_insert(row as u64);
            }
        }
        let (groups, picked): (Vec<usize>, Vec<u64>) = picked.into_iter().unzip();
        self.kept.put_rows(&rows, &groups, picked)
    }
}

/// Returns a function that compares a row of `left` with a row of `right` by their sort keys. Both
/// arrays have structs of a value and the sort keys; `sort` has the direction of each key.
fn compare_keys(left: &ArrayRef, right: &ArrayRef, sort: &[SortOptions]) -> Result<DynComparator> {
    let (left, right) = (left.as_struct().columns(), right.as_struct().columns());
    let keys = left.iter().zip(right).skip(1).zip(sort);
    let orders = keys
        .map(|((left, right), options)| make_comparator(left, right, *options))
        .collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(Box::new(move |a, b| {
        let by_key = orders.iter().map(|order| order(a, b));
        by_key.fold(Ordering::Equal, Ordering::then)
    }))
}

impl GroupStates for PickedRows {
    fn fresh(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(Self {
            kept: self.kept.to_empty(),
            fields: self.fields.clone(),
            sort: self.sort.clone(),
            ..*self
        }))
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let Some(first) = values.first() else { return Ok(()) };
        let skips_nulls = self.skips_nulls;
        self.pick_rows(values, groups, |row| !skips_nulls || first.is_valid(row))
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let Some((set, columns)) = states.split_last() else { return Ok(()) };
        let set = set.as_boolean_opt().ok_or_else(|| {
            Error::type_of(
                "internal error, please report it: the state column that says whether a group has a row",
                "Boolean",
                set.data_type(),
            )
        })?;
        self.pick_rows(columns, groups, |row| set.is_valid(row) && set.value(row))
    }

    fn state(&mut self, groups: usize) -> Result<Vec<ArrayRef>> {
        let set: BooleanArray = (0..groups).map(|group| Some(self.kept.has_row(group))).collect();
        let mut state = self.kept.collect_rows(groups)?.as_struct().columns().to_vec();
        state.push(Arc::new(set));
        Ok(state)
    }

    fn result(&mut self, groups: usize) -> Result<ArrayRef> {
        Ok(Arc::clone(self.kept.collect_rows(groups)?.as_struct().column(0)))
    }

    fn forget(&mut self, groups: usize) -> Result<()> {
        self.kept.forget_groups(groups)
    }

    fn size(&self) -> usize {
        self.kept.size()
    }
}
