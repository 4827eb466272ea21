//! Elementwise sum, mean, minimum and maximum of lists across rows.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt64Array, new_null_array};
use arrow::compute::{cast, is_not_null};
use arrow::datatypes::DataType;

use super::super::args::advise_numbers;
use super::super::doc::{Doc, FunctionSection};
use super::super::example;
use super::super::lists::{NestedListType, take_rows_at};
use super::grouped_rows::{ByGroup, CollectedRows, group_rows};
use super::{AggBegin, AggDef, AggFacts, AggTypes, GroupStates};
use crate::array::RaggedArray;
use crate::error::Result;
use crate::kernels::gather;
use crate::kernels::reduce::{self, Reduction};
use serrate_core::internal::exact::ExactSumKind;

const ARGS: &[(&str, &str)] = &[(
    "x",
    "a list of any depth: List, LargeList or FixedSizeList; rows may be of different lengths",
)];

macro_rules! elementwise {
    ($id:ident, $how:expr, $name:literal, $description:literal, $missing:literal, $duckdb:literal) => {
        #[doc = concat!("`", $name, "(x)`.")]
        pub(super) static $id: AggDef = AggDef {
            name: $name,
            arity: (1, 1),
            doc: Doc {
                section: FunctionSection::Aggregate,
                description: $description,
                syntax: &[concat!($name, "(x)")],
                args: ARGS,
                missing: $missing,
                duckdb: $duckdb,
                example: example!($name),
            },
            ordered: false,
            keeps_values: matches!($how, Reduction::Min | Reduction::Max),
            facts: AggFacts {
                compares: matches!($how, Reduction::Min | Reduction::Max),
                ..AggFacts::NONE
            },
            plan: |types| plan_result(types, $how),
            state: |types| list_state_types(types, $how),
            begin: |begin| Ok(Box::new(ElementwiseState::new(begin, $how)?)),
        };
    };
}

elementwise!(
    SUM,
    Reduction::Sum,
    "ragged_sum_agg",
    "Returns the elementwise sum of the rows of a group: the first elements of all rows are added, then the second, and so on, on every level. Shorter rows are ignored beyond their end, so the result is as long as the longest row. Sums of integers are 64-bit integers, and overflow is an error. Sums of floats are exact and rounded once, so that they do not depend on the order of rows, on batches or on partitions.",
    "NULL rows and NULL values are skipped; a position at which all are NULL is 0. A group of NULL rows only returns NULL.",
    "`list_sum` per position, after `unnest` with a position number and GROUP BY on it."
);
elementwise!(
    MEAN,
    Reduction::Mean,
    "ragged_mean_agg",
    "Returns the elementwise mean of the rows of a group: each position is divided by the number of rows that have a value there. Shorter rows are ignored beyond their end. The sum is exact until it is divided, so that the mean does not depend on the order of rows, on batches or on partitions. The mean of durations is a duration, rounded to their unit, halves away from zero.",
    "NULL rows and NULL values are skipped; a position at which all are NULL is NULL. A group of NULL rows only returns NULL.",
    "`avg` per position, after `unnest` with a position number and GROUP BY on it."
);
elementwise!(
    MIN,
    Reduction::Min,
    "ragged_min_agg",
    "Returns the elementwise minimum of the rows of a group, on every level. Shorter rows are ignored beyond their end.",
    "NULL rows and NULL values are skipped; a position at which all are NULL is NULL, and one at which any is NaN is NaN. A group of NULL rows only returns NULL.",
    "`min` per position, after `unnest` with a position number and GROUP BY on it."
);
elementwise!(
    MAX,
    Reduction::Max,
    "ragged_max_agg",
    "Returns the elementwise maximum of the rows of a group, on every level. Shorter rows are ignored beyond their end.",
    "NULL rows and NULL values are skipped; a position at which all are NULL is NULL, and one at which any is NaN is NaN. A group of NULL rows only returns NULL.",
    "`max` per position, after `unnest` with a position number and GROUP BY on it."
);

fn plan_result(types: &AggTypes<'_>, how: Reduction) -> Result<DataType> {
    let Some(lists) = types.require_lists()? else { return Ok(DataType::Null) };
    Ok(lists.make_plain_leaf(find_leaf_type(types, &lists, how)?))
}

fn find_leaf_type(
    types: &AggTypes<'_>,
    lists: &NestedListType,
    how: Reduction,
) -> Result<DataType> {
    how.output_type(lists.leaf()).map_err(|_| {
        types.refuse_types(format!(
            "argument 1 must be a list of values from which the {how} can be computed; its values are {leaf}{hint}",
            how = how.name(),
            leaf = lists.leaf(),
            hint = match lists.leaf() {
                t if t.is_decimal() => "; cast decimals first: ragged_cast(x, 'DOUBLE')",
                t => advise_numbers(t),
            }
        ))
    })
}

/// Returns how the leaves of `lists` are added without rounding (as floats or as integers), or
/// `None` if `how` is neither a sum nor a mean.
fn find_exact_sum(how: Reduction, lists: &NestedListType) -> Option<ExactSumKind> {
    matches!(how, Reduction::Sum | Reduction::Mean).then(|| ExactSumKind::of(lists.leaf()))
}

/// Returns the types of the columns of the partial state: a list of sums or extremes per group and,
/// for a mean, a list of the numbers of values at each position.
fn list_state_types(types: &AggTypes<'_>, how: Reduction) -> Result<Vec<DataType>> {
    let Some(lists) = types.require_lists()? else { return Ok(vec![DataType::Null]) };
    let leaf = find_leaf_type(types, &lists, how)?;
    let values = find_exact_sum(how, &lists).map_or(leaf, |_| ExactSumKind::make_sum_type());
    let mut out = vec![lists.make_plain_leaf(values)];
    if how == Reduction::Mean {
        out.push(lists.make_plain_leaf(DataType::UInt64));
    }
    Ok(out)
}

/// Number of values that are buffered before the rows of each group are combined to one row. After
/// that, rows are combined whenever the number of values has doubled, so that each value is copied
/// only a few times.
const MIN_COMBINED: usize = 1 << 18;

/// One combined row of lists per group, and buffered rows that are not combined yet.
#[derive(Debug)]
struct ElementwiseState {
    how: Reduction,
    exact: Option<ExactSumKind>,
    returns: DataType,
    states: Vec<DataType>,
    rows: CollectedRows,
    waiting: usize,
    settled: usize,
    /// Whether `combine_waiting` has combined all buffered rows, so that each group has at most one
    /// row. A group with only one row must also be combined, because this replaces NULL in sums
    /// with 0.
    laid: bool,
    groups: usize,
}

impl ElementwiseState {
    fn new(begin: &AggBegin<'_>, how: Reduction) -> Result<Self> {
        let states = list_state_types(&begin.types, how)?;
        let exact = begin.types.require_lists()?.and_then(|lists| find_exact_sum(how, &lists));
        Ok(Self {
            how,
            exact,
            returns: begin.returns.clone(),
            rows: CollectedRows::new(states.clone()),
            states,
            waiting: 0,
            settled: 0,
            laid: false,
            groups: 0,
        })
    }

    /// Buffers rows without NULL: `columns` have the types of the partial state, `groups` has the
    /// group of each row, and `values` is the number of values in the first column.
    fn push(&mut self, columns: Vec<ArrayRef>, groups: Vec<usize>, values: usize) -> Result<()> {
        self.groups = self.groups.max(groups.iter().max().map_or(0, |g| g + 1));
        self.rows.push(columns, groups);
        self.laid = false;
        self.waiting = self.waiting.saturating_add(values);
        if self.waiting > MIN_COMBINED.max(self.settled.saturating_mul(2)) {
            self.combine_waiting()?;
        }
        Ok(())
    }

    fn combine_waiting(&mut self) -> Result<()> {
        if self.laid {
            return Ok(());
        }
        let ByGroup { columns, lengths } = self.rows.sort_by_group(self.groups)?;
        let present: Vec<usize> = (0..lengths.len()).filter(|g| lengths[*g] > 0).collect();
        let lengths: Vec<usize> = present.iter().map(|g| lengths[*g]).collect();
        let mut laid = Vec::with_capacity(columns.len());
        let mut values = 0usize;
        for (i, column) in columns.iter().enumerate() {
            let rows = group_rows(RaggedArray::try_from_arrow(column)?, &lengths, |_| false)?;
            let one = match (i, self.exact) {
                (0, Some(exact)) => exact.add_along_lists(&rows)?,
                (0, None) => reduce::reduce(&rows, self.how, Some(1))?,
                _ => reduce::reduce(&rows, Reduction::Sum, Some(1))?,
            };
            values = values.saturating_add(one.leaves().len());
            laid.push(one.to_arrow_as(&self.states[i])?);
        }
        self.rows = CollectedRows::new(self.states.clone());
        self.rows.push(laid, present);
        (self.waiting, self.settled, self.laid) = (values, values, true);
        Ok(())
    }

    /// Returns the combined row of each of the first `groups` groups, or NULL for a group without
    /// rows.
    fn take_combined_rows(&mut self, groups: usize) -> Result<Vec<ArrayRef>> {
        if self.states[0].is_null() {
            return Ok(vec![new_null_array(&DataType::Null, groups)]);
        }
        self.combine_waiting()?;
        let ByGroup { columns, lengths } = self.rows.sort_by_group(groups)?;
        if lengths.iter().all(|n| *n == 1) {
            return Ok(columns);
        }
        let mut next = 0u64;
        let rows = lengths.iter().map(|n| {
            let row = next;
            next += *n as u64;
            (*n > 0).then_some(row)
        });
        let order = rows.collect();
        columns.iter().map(|c| take_rows_at(c, &order)).collect()
    }
}

impl GroupStates for ElementwiseState {
    fn fresh(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(Self {
            how: self.how,
            exact: self.exact,
            returns: self.returns.clone(),
            states: self.states.clone(),
            rows: self.rows.make_empty(),
            waiting: 0,
            settled: 0,
            laid: false,
            groups: 0,
        }))
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize]) -> Result<()> {
        if values[0].data_type().is_null() {
            return Ok(());
        }
        let mut x = RaggedArray::try_from_arrow(&values[0])?;
        let mut groups = groups.to_vec();
        if values[0].null_count() > 0 {
            let keep = is_not_null(&values[0])?;
            groups =
                groups.iter().zip(keep.values()).filter_map(|(g, k)| k.then_some(*g)).collect();
            x = gather::filter_rows(&x, &keep)?;
        }
        let wide = match self.exact {
            Some(exact) => exact.serialize_leaves(&x)?,
            None => {
                x.with_leaves(cast(x.leaves(), NestedListType::from_type(&self.states[0]).leaf())?)?
            }
        };
        let mut columns = vec![wide.to_arrow_as(&self.states[0])?];
        if let Some(counts) = self.states.get(1) {
            let ones: ArrayRef = match x.leaves().logical_nulls() {
                None => Arc::new(UInt64Array::from(vec![1; x.leaves().len()])),
                Some(nulls) => {
                    Arc::new(nulls.iter().map(|v| Some(u64::from(v))).collect::<UInt64Array>())
                }
            };
            columns.push(x.with_leaves(ones)?.to_arrow_as(counts)?);
        }
        self.push(columns, groups, x.leaves().len())
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        if states[0].data_type().is_null() {
            return Ok(());
        }
        let keep = is_not_null(&states[0])?;
        let row_groups =
            groups.iter().zip(keep.values()).filter_map(|(g, k)| k.then_some(*g)).collect();
        let mut columns = Vec::with_capacity(states.len());
        let mut values = 0;
        for (state, t) in states.iter().zip(&self.states) {
            let rows = gather::filter_rows(&RaggedArray::try_from_arrow(state)?, &keep)?;
            values = rows.leaves().len();
            columns.push(rows.to_arrow_as(t)?);
        }
        self.push(columns, row_groups, values)
    }

    fn state(&mut self, groups: usize) -> Result<Vec<ArrayRef>> {
        self.take_combined_rows(groups)
    }

    fn result(&mut self, groups: usize) -> Result<ArrayRef> {
        let columns = self.take_combined_rows(groups)?;
        if self.returns.is_null() {
            return Ok(Arc::clone(&columns[0]));
        }
        let mut out = RaggedArray::try_from_arrow(&columns[0])?;
        let leaf = NestedListType::from_type(&self.returns).leaf().clone();
        if let Some(exact) = self.exact {
            let counts = columns.get(1).map(RaggedArray::try_from_arrow).transpose()?;
            out = match &counts {
                None => exact.to_numbers(&out)?,
                Some(counts) if matches!(leaf, DataType::Duration(_)) => {
                    exact.compute_rounded_means(&out, counts.leaves())?
                }
                Some(counts) => exact.means(&out, counts.leaves())?,
            };
        }
        out.with_leaves(cast(out.leaves(), &leaf)?)?.to_arrow_as(&self.returns)
    }

    fn forget(&mut self, groups: usize) -> Result<()> {
        self.groups = self.groups.saturating_sub(groups);
        self.rows.forget_rows(groups)?;
        if self.groups == 0 {
            (self.waiting, self.settled) = (0, 0);
        }
        Ok(())
    }

    fn size(&self) -> usize {
        self.rows.size()
    }
}
