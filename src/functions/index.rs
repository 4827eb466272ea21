//! Elements by position, range or coordinates; places in sorted lists.

use std::sync::Arc;

use arrow::array::Scalar;
use arrow::compute::can_cast_types;
use arrow::datatypes::{DataType, FieldRef};

use super::args::{Call, Plan};
use super::def::{ANY, Def, Fails, nullable};
use super::doc::{Doc, Section};
use super::example;
use super::lists::Lists;
use crate::error::Result;
use crate::index::{Index, parse_index};
use crate::kernels::index;
use crate::kernels::search::{self, Side};
use crate::kernels::{RowArg, at};
use serrate_core::internal::item_positions;

const X: (&str, &str) = ("x", "a list of any depth: List, LargeList or FixedSizeList");
const WHERE_AXIS: (&str, &str) =
    ("axis", "the axis to cut, written out; 1, the outermost list of a row, if not given");
const ROWS: &str = "for rows use LIMIT and OFFSET";

/// The list of argument 0 as it is, with its metadata.
pub(super) fn same(plan: &Plan<'_>) -> Result<FieldRef> {
    kept(plan, plan.lists(0)?.open())
}

/// A type around the leaves of argument 0, with the metadata of the argument.
pub(super) fn kept(plan: &Plan<'_>, data_type: DataType) -> Result<FieldRef> {
    let metadata = plan.field(0).metadata().clone();
    Ok(Arc::new(nullable(data_type).as_ref().clone().with_metadata(metadata)))
}

/// `ragged_slice(x, start, stop [, step [, axis]])`.
pub(super) static SLICE: Def = Def {
    name: "ragged_slice",
    aliases: &[],
    arity: (3, 5),
    doc: Doc {
        section: Section::Index,
        description: "The elements from `start` up to but without `stop`, every `step`-th of them, as Python slices a list. All but the axis may be columns: one slice per row.",
        syntax: &["ragged_slice(x, start, stop [, step [, axis]])"],
        args: &[
            X,
            ("start", "first position; NULL for the beginning"),
            ("stop", "position to stop before; NULL for the end"),
            ("step", "distance, 1 if not given; a negative one runs backwards, 0 is refused"),
            WHERE_AXIS,
        ],
        missing: "Positions out of range are cut off, as in Python. A NULL row stays NULL, NULL elements are kept.",
        duckdb: "`x[start + 1:stop]`, `x[start + 1:stop:step]` (counted from 1, the end included).",
        example: example!("ragged_slice"),
    },
    plan: |plan| {
        for (i, what) in [(1, "start"), (2, "stop"), (3, "step")] {
            plan.integer(i, what)?;
        }
        if plan.literal_is_zero(3) {
            return Err(plan.refuse(3, "(step) is 0, which goes nowhere"));
        }
        plan.axis(4, &plan.lists(0)?, ROWS)?;
        same(plan)
    },
    call: |call| {
        let (start, stop, step) = (call.row_arg(1)?, call.row_arg(2)?, call.row_arg(3)?);
        let axis = call.integer(4).unwrap_or(1);
        call.lists(&index::slice(&call.ragged(0)?, axis, &start, &stop, &step)?)
    },
    fails: Fails::ComputedArguments,
    infix: None,
};

/// `ragged_head(x, n [, axis])`.
pub(super) static HEAD: Def = Def {
    name: "ragged_head",
    aliases: &[],
    arity: (2, 3),
    doc: Doc {
        section: Section::Index,
        description: "The first `n` elements; with a negative `n` all but the last `-n`.",
        syntax: &["ragged_head(x, n [, axis])"],
        args: &[X, ("n", "how many; may be a column"), WHERE_AXIS],
        missing: "A shorter list comes whole, and so does any list where `n` is NULL. A NULL row stays NULL.",
        duckdb: "`x[:n]`.",
        example: example!("ragged_head"),
    },
    plan: ends,
    call: |call| {
        let axis = call.integer(2).unwrap_or(1);
        call.lists(&index::head(&call.ragged(0)?, axis, &call.row_arg(1)?)?)
    },
    fails: Fails::ComputedArguments,
    infix: None,
};

/// `ragged_tail(x, n [, axis])`.
pub(super) static TAIL: Def = Def {
    name: "ragged_tail",
    aliases: &[],
    arity: (2, 3),
    doc: Doc {
        section: Section::Index,
        description: "The last `n` elements, in their order; with a negative `n` all but the first `-n`.",
        syntax: &["ragged_tail(x, n [, axis])"],
        args: &[X, ("n", "how many; may be a column"), WHERE_AXIS],
        missing: "A shorter list comes whole, and so does any list where `n` is NULL. A NULL row stays NULL.",
        duckdb: "`x[-n:]`.",
        example: example!("ragged_tail"),
    },
    plan: ends,
    call: |call| {
        let axis = call.integer(2).unwrap_or(1);
        call.lists(&index::tail(&call.ragged(0)?, axis, &call.row_arg(1)?)?)
    },
    fails: Fails::ComputedArguments,
    infix: None,
};

fn ends(plan: &Plan<'_>) -> Result<FieldRef> {
    plan.integer(1, "n")?;
    plan.axis(2, &plan.lists(0)?, ROWS)?;
    same(plan)
}

/// `ragged_get(x, 'index')`.
pub(super) static GET: Def = Def {
    name: "ragged_get",
    aliases: &[],
    arity: (2, 2),
    doc: Doc {
        section: Section::Index,
        description: "Indexes as numpy does between brackets: items separated by commas, the first for axis 1, the next for axis 2. An integer takes one element of every list and drops the axis, a slice `start:stop:step` keeps it, a list `[0, 2, -1]` takes those elements, `...` stands for as many whole axes as are left over.",
        syntax: &["ragged_get(x, 'index')"],
        args: &[X, ("index", "the expression, written out, such as `'2:5, 0'` or `'-1'`")],
        missing: "An integer out of range for a list that is not NULL is an error that names the row (`ragged_at` gives NULL instead); slices are cut off. A NULL list gives NULL.",
        duckdb: "`list_transform(x[3:5], lambda v: v[1])` for `'2:5, 0'`.",
        example: example!("ragged_get"),
    },
    plan: |plan| {
        let lists = plan.lists(0)?;
        let text = plan.literal_text(1, "the index", "'2:5, 0'")?.unwrap_or_default();
        let index = parse_index(text)?;
        one_at_a_time(plan, text, &index)?;
        if index.contains(&Index::NewAxis) {
            return Err(
                plan.refuse(1, "has None, which adds an axis: make_array(x) does that here")
            );
        }
        let given = index.iter().filter(|i| i.takes_axis()).count();
        if given > lists.depth() {
            return Err(plan.refuse(
                1,
                format!(
                    "has {given} items for {} axes of lists (the first is for axis 1)",
                    lists.depth()
                ),
            ));
        }
        kept(plan, lists.only(&kept_levels(&index, lists.depth())))
    },
    call: |call| {
        let index = parse_index(call.text(1).unwrap_or_default())?;
        let out = index::get(&call.ragged(0)?, &index)?;
        if out.axes().is_empty() { Ok(Arc::clone(out.leaves())) } else { call.lists(&out) }
    },
    fails: Fails::Values,
    infix: None,
};

/// Refuses an array beside another one or an integer, which numpy would take together.
fn one_at_a_time(plan: &Plan<'_>, text: &str, index: &[Index]) -> Result<()> {
    let picks = |i: &Index| matches!(i, Index::At(_) | Index::Array(_) | Index::Mask(_));
    let mut picking = index.iter().zip(item_positions(text)).filter(|(item, _)| picks(item));
    let arrays = index.iter().any(|i| picks(i) && !matches!(i, Index::At(_)));
    match (picking.next(), picking.next()) {
        (Some(_), Some((_, position))) if arrays => Err(plan.refuse(
            1,
            format!(
                "({text:?}), position {position}: a list beside another one or an integer goes with it element by element in numpy; take one axis at a time: ragged_get(ragged_get(x, '[0, 1]'), ':, [0, 1]')"
            ),
        )),
        _ => Ok(()),
    }
}

/// Which levels an index keeps.
fn kept_levels(index: &[Index], depth: usize) -> Vec<bool> {
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

/// `ragged_at(x, i, j, ..)`.
pub(super) static AT: Def = Def {
    name: "ragged_at",
    aliases: &[],
    arity: (2, ANY),
    doc: Doc {
        section: Section::Index,
        description: "The value at coordinates, one for each axis of lists from axis 1 on; NULL where nothing is stored. Coordinates may be columns.",
        syntax: &["ragged_at(x, i, j, ..)"],
        args: &[X, ("i, j, ..", "positions, one per axis; negatives count from the end")],
        missing: "Out of range, under a NULL or with a NULL coordinate: NULL, never an error (`ragged_get` is strict, `ragged_at_or` gives a value of your own).",
        duckdb: "`x[i + 1][j + 1]`.",
        example: example!("ragged_at"),
    },
    plan: |plan| {
        let lists = plan.lists(0)?;
        coordinates(plan, &lists, 1)?;
        kept(plan, lists.leaf().clone())
    },
    call: |call| at::at(&call.ragged(0)?, &row_args(call, 1)?, None),
    fails: Fails::Never,
    infix: None,
};

/// `ragged_at_or(x, default, i, j, ..)`.
pub(super) static AT_OR: Def = Def {
    name: "ragged_at_or",
    aliases: &[],
    arity: (3, ANY),
    doc: Doc {
        section: Section::Index,
        description: "The value at coordinates, or `default` where nothing is stored: what reading a sparse array does, with 0 for what it does not hold.",
        syntax: &["ragged_at_or(x, default, i, j, ..)"],
        args: &[
            X,
            (
                "default",
                "a value that the leaves' type has, or a column of them; 0.5 is refused where they are integers: cast them first",
            ),
            ("i, j, ..", "positions, one per axis; negatives count from the end"),
        ],
        missing: "Out of range, under a NULL, with a NULL coordinate or where the value itself is NULL: the default. NaN is a value.",
        duckdb: "`coalesce(x[i + 1][j + 1], default)`.",
        example: example!("ragged_at_or"),
    },
    plan: |plan| {
        let lists = plan.lists(0)?;
        coordinates(plan, &lists, 2)?;
        if !can_cast_types(plan.data_type(1), lists.leaf()) {
            return Err(plan.refuse(
                1,
                format!(
                    "(default) must fit the values, which are {}; it is {}",
                    lists.leaf(),
                    plan.data_type(1)
                ),
            ));
        }
        kept(plan, lists.leaf().clone())
    },
    call: |call| {
        let x = call.ragged(0)?;
        let coordinates = row_args(call, 2)?;
        match call.constant(1) {
            Some(value) => at::at(&x, &coordinates, Some(&Scalar::new(value.to_array_of_size(1)?))),
            None => at::at(&x, &coordinates, Some(&call.array(1)?)),
        }
    },
    fails: Fails::Never,
    infix: None,
};

fn coordinates(plan: &Plan<'_>, lists: &Lists, first: usize) -> Result<()> {
    let given = plan.len() - first;
    if given != lists.depth() {
        return Err(plan.refuse(
            0,
            format!(
                "has {} axes of lists, so {} coordinate(s) are needed; {given} given",
                lists.depth(),
                lists.depth()
            ),
        ));
    }
    (first..plan.len()).try_for_each(|i| plan.integer(i, "a coordinate"))
}

fn row_args(call: &Call<'_>, first: usize) -> Result<Vec<RowArg>> {
    (first..call.len()).map(|i| call.row_arg(i)).collect()
}

/// `ragged_searchsorted(times, t [, side])`.
pub(super) static SEARCHSORTED: Def = Def {
    name: "ragged_searchsorted",
    aliases: &[],
    arity: (2, 3),
    doc: Doc {
        section: Section::Index,
        description: "Where a value belongs in every sorted list: how many elements are less than it, or with `'right'` how many are not greater. `ragged_head(x, ragged_searchsorted(time, t))` is what was known before `t`.",
        syntax: &["ragged_searchsorted(times, t [, side])"],
        args: &[
            ("times", "a list of one level, sorted ascending"),
            (
                "t",
                "the value, or a column of one per row; a text is read as a time where times are",
            ),
            ("side", "`'left'` (default) or `'right'`, written out"),
        ],
        missing: "NaN sorts behind all numbers, NULL elements behind NaN. A NULL row or a NULL value gives NULL, an empty list 0. Whether the list ascends is not looked at: of one that does not, some position within it is given, the same one for the same list and value; `ragged_sort` it first.",
        duckdb: "`len(list_filter(times, lambda v: v < t))`.",
        example: example!("ragged_searchsorted"),
    },
    plan: |plan| {
        let lists = plan.lists(0)?;
        if lists.depth() != 1 {
            return Err(plan.refuse(
                0,
                format!(
                    "must be a list of one level; it has {}: take one with ragged_get or join them with ragged_flatten",
                    lists.depth()
                ),
            ));
        }
        side(plan.literal_text(2, "the side", "'left'")?)?;
        if crate::array::list_depth(plan.data_type(1)) > 0 {
            return Err(plan.refuse(1, "must be a single value per row, not a list"));
        }
        let times = lists.leaf();
        if let Some(value) = plan.known(1)
            && let Some(Some(text)) = value.try_as_str()
            && times.is_temporal()
            && value.cast_to(times).map_or(true, |time| time.is_null())
        {
            return Err(plan.refuse(
                1,
                format!("({text:?}) is no {times}, such as '2020-01-31' or '2020-01-31 08:30:00'"),
            ));
        }
        Ok(nullable(DataType::Int64))
    },
    call: |call| {
        let x = call.ragged(0)?;
        let side = side(call.text(2))?;
        let found = match call.constant(1) {
            Some(value) => search::searchsorted(&x, &Scalar::new(value.to_array_of_size(1)?), side),
            None => search::searchsorted(&x, &call.array(1)?, side),
        }?;
        Ok(Arc::new(found))
    },
    fails: Fails::Never,
    infix: None,
};

fn side(text: Option<&str>) -> Result<Side> {
    match text {
        None | Some("left") => Ok(Side::Left),
        Some("right") => Ok(Side::Right),
        Some(other) => Err(crate::Error::invalid(format!(
            "ragged_searchsorted: the side is 'left' or 'right', not {other:?}"
        ))),
    }
}
