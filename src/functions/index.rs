//! Functions that select elements by position, range or coordinates, and search in sorted lists.

use std::sync::Arc;

use arrow::array::Scalar;
use arrow::compute::can_cast_types;
use arrow::datatypes::{DataType, FieldRef};

use super::args::{BatchCall, CallPlan};
use super::def::{ANY, Def, FailureCase, FunctionFacts, ListPart, ReadParts, make_nullable};
use super::doc::{Doc, FunctionSection, X};
use super::example;
use super::lists::NestedListType;
use super::mixed_times::refuse_numbers_as_times;
use crate::error::Result;
use crate::index::{Index, parse_index};
use crate::kernels::index;
use crate::kernels::search::{self, SearchSide};
use crate::kernels::{RowArg, at, select};
use serrate_core::internal::find_item_positions;

const WHERE_AXIS: (&str, &str) =
    ("axis", "the axis to slice, a literal; 1, the outermost list of a row, by default");
const ROWS: &str = "use LIMIT and OFFSET for rows";

pub(super) fn plan_same_field(plan: &CallPlan<'_>) -> Result<FieldRef> {
    plan_retyped_field(plan, plan.require_lists(0)?.open())
}

/// Returns a field of type `data_type` with the metadata of the first argument, such as a
/// vocabulary id.
pub(super) fn plan_retyped_field(plan: &CallPlan<'_>, data_type: DataType) -> Result<FieldRef> {
    let metadata = plan.field(0).metadata().clone();
    Ok(Arc::new(make_nullable(data_type).as_ref().clone().with_metadata(metadata)))
}

pub(super) static SLICE: Def = Def {
    name: "ragged_slice",
    arity: (3, 5),
    doc: Doc {
        section: FunctionSection::Index,
        description: "Returns the elements from `start` (included) to `stop` (excluded), every `step`-th of them, as a Python slice does. All arguments but the axis may be columns, which give one slice per row.",
        syntax: &["ragged_slice(x, start, stop [, step [, axis]])"],
        args: &[
            X,
            ("start", "first position; NULL for the start of the list"),
            ("stop", "position before which the slice stops; NULL for the end of the list"),
            (
                "step",
                "distance between positions, 1 by default; a negative step runs backwards, 0 is refused",
            ),
            WHERE_AXIS,
        ],
        missing: "Positions out of range are clipped, as in Python. A NULL row stays NULL, and NULL elements are kept.",
        duckdb: "`x[start + 1:stop]`, `x[start + 1:stop:step]` (positions from 1, the end included).",
        example: example!("ragged_slice"),
    },
    plan: |plan| {
        for (i, what) in [(1, "start"), (2, "stop"), (3, "step")] {
            plan.check_integer(i, what)?;
        }
        if plan.is_zero_literal(3) {
            return Err(
                plan.refuse_call("argument 4 (step) is 0; give a positive or negative step")
            );
        }
        plan.axis(4, &plan.require_lists(0)?, ROWS)?;
        plan_same_field(plan)
    },
    call: |call| {
        let (start, stop, step) =
            (call.read_row_arg(1)?, call.read_row_arg(2)?, call.read_row_arg(3)?);
        let axis = call.read_integer(4).unwrap_or(1);
        call.to_lists(&index::slice(&call.read_ragged(0)?, axis, &start, &stop, &step)?)
    },
    fails: FailureCase::ComputedArguments,
    facts: FunctionFacts {
        shrinks: true,
        reads: ReadParts::Structure,
        part: ListPart::Range,
        ..FunctionFacts::NONE
    },
    ..Def::DEFAULTS
};

pub(super) static HEAD: Def = Def {
    name: "ragged_head",
    arity: (2, 3),
    doc: Doc {
        section: FunctionSection::Index,
        description: "Returns the first `n` elements, or for a negative `n` all but the last `-n`.",
        syntax: &["ragged_head(x, n [, axis])"],
        args: &[X, ("n", "the number of elements; may be a column"), WHERE_AXIS],
        missing: "A list of fewer elements is returned whole, and so is any list if `n` is NULL. A NULL row stays NULL.",
        duckdb: "`x[:n]`.",
        example: example!("ragged_head"),
    },
    plan: plan_ends,
    call: |call| {
        let axis = call.read_integer(2).unwrap_or(1);
        call.to_lists(&index::head(&call.read_ragged(0)?, axis, &call.read_row_arg(1)?)?)
    },
    fails: FailureCase::ComputedArguments,
    facts: FunctionFacts {
        shrinks: true,
        reads: ReadParts::Structure,
        part: ListPart::First,
        ..FunctionFacts::NONE
    },
    ..Def::DEFAULTS
};

pub(super) static TAIL: Def = Def {
    name: "ragged_tail",
    arity: (2, 3),
    doc: Doc {
        section: FunctionSection::Index,
        description: "Returns the last `n` elements in their order, or for a negative `n` all but the first `-n`.",
        syntax: &["ragged_tail(x, n [, axis])"],
        args: &[X, ("n", "the number of elements; may be a column"), WHERE_AXIS],
        missing: "A list of fewer elements is returned whole, and so is any list if `n` is NULL. A NULL row stays NULL.",
        duckdb: "`x[-n:]`.",
        example: example!("ragged_tail"),
    },
    plan: plan_ends,
    call: |call| {
        let axis = call.read_integer(2).unwrap_or(1);
        call.to_lists(&index::tail(&call.read_ragged(0)?, axis, &call.read_row_arg(1)?)?)
    },
    fails: FailureCase::ComputedArguments,
    facts: FunctionFacts {
        shrinks: true,
        reads: ReadParts::Structure,
        part: ListPart::Last,
        ..FunctionFacts::NONE
    },
    ..Def::DEFAULTS
};

fn plan_ends(plan: &CallPlan<'_>) -> Result<FieldRef> {
    plan.check_integer(1, "n")?;
    plan.axis(2, &plan.require_lists(0)?, ROWS)?;
    plan_same_field(plan)
}

pub(super) static GET: Def = Def {
    name: "ragged_get",
    arity: (2, 2),
    doc: Doc {
        section: FunctionSection::Index,
        description: "Applies a numpy index, as written between brackets: items separated by commas, the first for axis 1, the next for axis 2. An integer takes one element of each list and drops the axis. A slice `start:stop:step` keeps the axis. A list `[0, 2, -1]` takes these elements. `...` stands for all axes that no other item addresses.",
        syntax: &["ragged_get(x, 'index')"],
        args: &[X, ("index", "the index expression, a literal such as `'2:5, 0'` or `'-1'`")],
        missing: "An integer out of range is an error that names the row (`ragged_at` returns NULL instead). Slices are clipped. A NULL list returns NULL.",
        duckdb: "`list_transform(x[3:5], lambda v: v[1])` for `'2:5, 0'`.",
        example: example!("ragged_get"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        let text = plan.find_literal_text(1, "the index", "'2:5, 0'")?.unwrap_or_default();
        let index = parse_index(text)?;
        check_lists_of_index(plan, text, &index)?;
        if index.contains(&Index::NewAxis) {
            return Err(plan.refuse_call(
                "argument 2 has None, which would add an axis; use make_array(x) for that",
            ));
        }
        let given = index.iter().filter(|i| i.takes_axis()).count();
        if given > lists.depth() {
            return Err(plan.refuse_call(format!(
                "argument 2 has {given} items, but the lists of argument 1 have the depth {} (the first item is for \
                 axis 1); give at most one item per axis",
                lists.depth()
            )));
        }
        plan_retyped_field(plan, lists.keep_levels(&find_retained_levels(&index, lists.depth())))
    },
    call: |call| {
        let index = parse_index(call.read_text(1).unwrap_or_default())?;
        let out = index::get(&call.read_ragged(0)?, &index)?;
        if out.axes().is_empty() { Ok(Arc::clone(out.leaves())) } else { call.to_lists(&out) }
    },
    ..Def::DEFAULTS
};

/// Returns an error if an index has a list for one axis and a list or an integer for another axis.
/// numpy combines the two element by element, which is not supported here.
fn check_lists_of_index(plan: &CallPlan<'_>, text: &str, index: &[Index]) -> Result<()> {
    let picks = |i: &Index| matches!(i, Index::At(_) | Index::Array(_) | Index::Mask(_));
    let mut picking = index.iter().zip(find_item_positions(text)).filter(|(item, _)| picks(item));
    let arrays = index.iter().any(|i| picks(i) && !matches!(i, Index::At(_)));
    match (picking.next(), picking.next()) {
        (Some(_), Some((_, position))) if arrays => Err(plan.refuse_call(format!(
            "argument 2 ({text:?}), position {position}: numpy combines a list with another list or an integer element by element, which is not supported; index one axis at a time: ragged_get(ragged_get(x, '[0, 1]'), ':, [0, 1]')"
        ))),
        _ => Ok(()),
    }
}

/// Returns for each list level, the outermost first, whether the result of an index keeps the
/// level: the index `0, :` drops the first level and keeps the second.
fn find_retained_levels(index: &[Index], depth: usize) -> Vec<bool> {
    let given = index.iter().filter(|i| i.takes_axis()).count();
    let mut keep = Vec::with_capacity(depth);
    for item in index {
        match item {
            Index::At(_) => keep.push(false),
            Index::Slice { .. } | Index::Array(_) | Index::Mask(_) => keep.push(true),
            Index::NewAxis => {}
            Index::Rest => keep.resize(keep.len() + depth.saturating_sub(given), true),
        }
    }
    keep.resize(depth, true);
    keep
}

pub(super) static AT: Def = Def {
    name: "ragged_at",
    arity: (2, ANY),
    doc: Doc {
        section: FunctionSection::Index,
        description: "Returns the value at the given coordinates, one for each axis from axis 1 on, or NULL if there is none. Coordinates may be columns.",
        syntax: &["ragged_at(x, i, j, ..)"],
        args: &[X, ("i, j, ..", "positions, one per axis; negative positions count from the end")],
        missing: "A position out of range, a NULL list on the way or a NULL coordinate returns NULL and is never an error. (`ragged_get` fails instead, and `ragged_at_or` returns a given value.)",
        duckdb: "`x[i + 1][j + 1]`.",
        example: example!("ragged_at"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        check_coordinates(plan, &lists, 1)?;
        plan_retyped_field(plan, lists.leaf().clone())
    },
    call: |call| at::at(&call.read_ragged(0)?, &read_row_args(call, 1)?, None),
    fails: FailureCase::Never,
    facts: FunctionFacts { part: ListPart::Element(0), ..FunctionFacts::NONE },
    ..Def::DEFAULTS
};

pub(super) static AT_OR: Def = Def {
    name: "ragged_at_or",
    arity: (3, ANY),
    doc: Doc {
        section: FunctionSection::Index,
        description: "Returns the value at the given coordinates, or `default` if there is none. With 0 as default, a list can be read as a sparse array.",
        syntax: &["ragged_at_or(x, default, i, j, ..)"],
        args: &[
            X,
            (
                "default",
                "a value in the type of the leaves, or a column of such values. Cast it first if it does not fit, such as 0.5 for integer leaves",
            ),
            ("i, j, ..", "positions, one per axis; negative positions count from the end"),
        ],
        missing: "A position out of range, a NULL list on the way, a NULL coordinate or a NULL value returns the default. NaN is a value.",
        duckdb: "`coalesce(x[i + 1][j + 1], default)`.",
        example: example!("ragged_at_or"),
    },
    plan: |plan| {
        let default = plan.data_type(1);
        if plan.is_untyped_null(0) {
            (2..plan.len()).try_for_each(|i| plan.check_integer(i, "a coordinate"))?;
            return Ok(make_nullable(default.clone()));
        }
        let lists = plan.require_lists(0)?;
        check_coordinates(plan, &lists, 2)?;
        let leaf = match lists.leaf() {
            // The values of `[]` and `[NULL]` have no type.
            DataType::Null if !default.is_nested() => default,
            leaf => leaf,
        };
        if !can_cast_types(default, leaf) {
            return Err(plan.refuse_call(format!(
                "argument 2 (default) must have the type of the values, {leaf}; it is {default}, so cast it first"
            )));
        }
        refuse_numbers_as_times(plan, 1, default, leaf)?;
        plan_retyped_field(plan, leaf.clone())
    },
    call: |call| {
        if call.find_array_type(0).is_null() {
            return call.read_array(1);
        }
        let x = select::cast(&call.read_ragged(0)?, call.return_type())?;
        let coordinates = read_row_args(call, 2)?;
        match call.find_constant(1) {
            Some(value) => at::at(&x, &coordinates, Some(&Scalar::new(value.to_array_of_size(1)?))),
            None => at::at(&x, &coordinates, Some(&call.read_array(1)?)),
        }
    },
    fails: FailureCase::Never,
    facts: FunctionFacts { replaces_null: true, ..FunctionFacts::NONE },
    ..Def::DEFAULTS
};

fn check_coordinates(plan: &CallPlan<'_>, lists: &NestedListType, first: usize) -> Result<()> {
    let given = plan.len() - first;
    if given != lists.depth() {
        return Err(plan.refuse_call(format!(
            "argument 1 has lists of depth {}, but {given} coordinate(s) are given; give {}, one per axis of lists",
            lists.depth(),
            lists.depth()
        )));
    }
    (first..plan.len()).try_for_each(|i| plan.check_integer(i, "a coordinate"))
}

fn read_row_args(call: &BatchCall<'_>, first: usize) -> Result<Vec<RowArg>> {
    (first..call.len()).map(|i| call.read_row_arg(i)).collect()
}

pub(super) static SEARCHSORTED: Def = Def {
    name: "ragged_searchsorted",
    arity: (2, 3),
    doc: Doc {
        section: FunctionSection::Index,
        description: "Returns the position at which a value belongs in each sorted list: the number of elements less than the value or, with `'right'`, not greater than it. `ragged_head(x, ragged_searchsorted(time, t))` is what was known before `t`. For a list of values it returns a list of positions.",
        syntax: &["ragged_searchsorted(times, t [, side])"],
        args: &[
            ("times", "a list in ascending order, of one level or more"),
            (
                "t",
                "the value: one for each innermost list of `times` or a list of values for each, so a scalar or a list if `times` has one level. It may be a column. A string is parsed as a time if `times` holds times",
            ),
            ("side", "`'left'` (default) or `'right'`, a literal"),
        ],
        missing: "NaN sorts after all numbers, and NULL elements after NaN. A NULL value returns NULL, and so does every value if the list `times` is NULL. An empty list returns 0. The function does not check the order: for an unsorted list it returns some position, always the same for the same list and value. Apply `ragged_sort` first.",
        duckdb: "`len(list_filter(times, lambda v: v < t))`.",
        example: example!("ragged_searchsorted"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        parse_side(plan.find_literal_text(2, "the side", "'left'")?)?;
        let needles = NestedListType::from_type(plan.data_type(1));
        if needles.depth() == 0 && lists.depth() != 1 {
            return Err(plan.refuse_call(format!(
                "argument 1 must be a list of one level; it has {levels}; select one list with ragged_get, or merge the levels with ragged_flatten",
                levels = lists.depth()
            )));
        }
        if needles.depth() != lists.depth() && needles.depth() + 1 != lists.depth() {
            return Err(plan.refuse_call(format!(
                "argument 2 has {} level(s) of lists, and the lists to search have {}; give argument 2 as many levels as these lists, or one level less",
                needles.depth(),
                lists.depth()
            )));
        }
        let times = lists.leaf();
        if let Some(value) = plan.find_known_literal(1)
            && let Some(Some(text)) = value.try_as_str()
            && times.is_temporal()
            && value.cast_to(times).map_or(true, |time| time.is_null())
        {
            return Err(plan.refuse_call(format!(
                "argument 2 ({text:?}) is not a {times}; write it like '2020-01-31' or '2020-01-31 08:30:00'"
            )));
        }
        refuse_numbers_as_times(plan, 1, needles.leaf(), times)?;
        Ok(make_nullable(needles.make_plain_leaf(DataType::Int64)))
    },
    call: |call| {
        let x = call.read_ragged(0)?;
        let side = parse_side(call.read_text(2))?;
        if NestedListType::from_type(&call.find_array_type(1)).depth() > 0 || x.axes().len() > 1 {
            return call.to_lists(&search::searchsorted_lists(&x, &call.read_ragged(1)?, side)?);
        }
        let found = match call.find_constant(1) {
            Some(value) => search::searchsorted(&x, &Scalar::new(value.to_array_of_size(1)?), side),
            None => search::searchsorted(&x, &call.read_array(1)?, side),
        }?;
        Ok(Arc::new(found))
    },
    fails: FailureCase::Never,
    facts: FunctionFacts::COMPARES,
    ..Def::DEFAULTS
};

fn parse_side(text: Option<&str>) -> Result<SearchSide> {
    match text {
        None | Some("left") => Ok(SearchSide::Left),
        Some("right") => Ok(SearchSide::Right),
        Some(other) => Err(crate::Error::invalid(format!(
            "ragged_searchsorted: the side must be 'left' or 'right', not {other:?}"
        ))),
    }
}
