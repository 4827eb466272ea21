//! `ragged_broadcast`, which repeats outer values over inner lists, and `ragged_coords`, which
//! returns the coordinates of values.

use std::sync::Arc;

use arrow::array::{ArrayRef, StructArray};
use arrow::datatypes::{DataType, Field, Fields};

use super::args::BatchCall;
use super::def::{Def, make_nullable};
use super::doc::{Doc, FunctionSection};
use super::example;
use super::index::plan_retyped_field;
use super::lists::NestedListType;
use crate::error::{Error, Result};
use crate::kernels::broadcast::{self, BroadcastMode};
use crate::kernels::coords;

pub(super) static BROADCAST: Def = Def {
    name: "ragged_broadcast",
    arity: (2, 3),
    doc: Doc {
        section: FunctionSection::Structure,
        description: "Repeats the values of `x` over the lists of `y`, which are deeper: the time of a visit for each of its codes, so that both can be unnested together. Operators broadcast by themselves.",
        syntax: &["ragged_broadcast(x, y)", "ragged_broadcast(x, y, 'first')"],
        args: &[
            ("x", "a list with the outer lists of `y`, or one scalar per row"),
            ("y", "a list of more levels; its values are not read"),
            (
                "how",
                "`'repeat'` (default) returns the value at every position below its own, `'first'` at the first position and NULL at the others; a literal",
            ),
        ],
        missing: "A value whose list in `y` is empty is dropped. A list that is NULL in either argument is NULL.",
        duckdb: "`list_transform(list_zip(x, y), lambda p: list_transform(p[2], lambda v: p[1]))`.",
        example: example!("ragged_broadcast"),
    },
    plan: |plan| {
        let (x, y) = (NestedListType::from_type(plan.data_type(0)), plan.require_lists(1)?);
        if plan.is_list_view(0) {
            plan.require_lists(0)?;
        }
        if x.depth() >= y.depth() {
            return Err(plan.refuse_call(format!(
                "argument 1 has {} level(s) of lists, but argument 2 has only {}; argument 2 must have more levels",
                x.depth(),
                y.depth()
            )));
        }
        parse_broadcast_mode(plan.find_literal_text(2, "how", "'repeat'")?)?;
        plan_retyped_field(plan, y.widen_by(&x).make_plain_leaf(x.leaf().clone()))
    },
    call: |call| {
        let how = parse_broadcast_mode(call.read_text(2))?;
        call.to_lists(&broadcast::broadcast(&call.read_ragged(0)?, &call.read_ragged(1)?, how)?)
    },
    ..Def::DEFAULTS
};

fn parse_broadcast_mode(text: Option<&str>) -> Result<BroadcastMode> {
    match text {
        None | Some("repeat") => Ok(BroadcastMode::Repeat),
        Some("first") => Ok(BroadcastMode::First),
        Some(other) => Err(Error::invalid(format!(
            "ragged_broadcast: argument 3 must be 'repeat' or 'first', not {other:?}"
        ))),
    }
}

pub(super) static COORDS: Def = Def {
    name: "ragged_coords",
    arity: (1, 2),
    doc: Doc {
        section: FunctionSection::Structure,
        description: "Returns the coordinates of each value: a struct of its positions along the axes, `{axis1, axis2, ..}`, from 0. With an axis, it returns only that position. Unnest it together with the values and an id of the row to get the array in coordinate form.",
        syntax: &["ragged_coords(x)", "ragged_coords(x, axis)"],
        args: &[
            ("x", "a list of any depth"),
            (
                "axis",
                "the axis, a literal: 1 is the outermost list of a row, -1 the innermost; 0, the rows, is refused: use row_number() as an id of rows",
            ),
        ],
        missing: "Lists keep their lengths. NULL values have coordinates like others.",
        duckdb: "`generate_subscripts(x, 1) - 1` next to `unnest(x)`.",
        example: example!("ragged_coords"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        let leaf = match plan.axis(1, &lists, "use row_number() as an id of rows")? {
            Some(_) => DataType::Int64,
            None => DataType::Struct(make_axis_fields(lists.depth())),
        };
        Ok(make_nullable(lists.make_plain_leaf(leaf)))
    },
    call: list_coordinates,
    ..Def::DEFAULTS
};

fn make_axis_fields(axes: usize) -> Fields {
    (1..=axes).map(|a| Field::new(format!("axis{a}"), DataType::Int64, false)).collect()
}

fn list_coordinates(call: &BatchCall<'_>) -> Result<ArrayRef> {
    let x = call.read_ragged(0)?;
    let axis = |axis: i64| coords::coord(&x, axis);
    if let Some(one) = call.read_integer(1) {
        return call.to_lists(&axis(one)?);
    }
    let axes = x.axes().len();
    let all = (1..=axes)
        .map(|a| Ok(Arc::clone(axis(i64::try_from(a).unwrap_or(i64::MAX))?.leaves())))
        .collect::<Result<Vec<_>>>()?;
    let leaves =
        StructArray::try_new_with_length(make_axis_fields(axes), all, None, x.leaves().len())?;
    call.to_lists(&x.with_leaves(Arc::new(leaves))?)
}
