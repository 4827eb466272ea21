//! Functions that merge, remove, add and divide levels of lists.

use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::ScalarValue;

use super::args::CallPlan;
use super::def::{Def, FailureCase, FunctionFacts, ListPart, ReadParts, make_nullable};
use super::doc::{Doc, FunctionSection, X};
use super::example;
use super::index::plan_retyped_field;
use crate::error::{Error, Result};
use crate::kernels::reshape;

pub(super) static FLATTEN: Def = Def {
    name: "ragged_flatten",
    arity: (1, 2),
    doc: Doc {
        section: FunctionSection::Shape,
        description: "Returns all values of a row in one list. With an axis, it merges only the lists of that axis into those of the axis above.",
        syntax: &["ragged_flatten(x [, axis])"],
        args: &[
            ("x", "a list of any depth: List, LargeList or FixedSizeList"),
            (
                "axis",
                "the axis to remove, a literal: 2 or more, or negative from the innermost. Axis 1 is refused, because that would merge rows, as `unnest` does",
            ),
        ],
        missing: "NULL lists and empty lists inside a row contribute nothing. NULL values are kept. A NULL row stays NULL.",
        duckdb: "`flatten(x)` removes one level.",
        example: example!("ragged_flatten"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        let out = match plan.axis(1, &lists, "use array_agg and unnest")? {
            None => lists.build_flat_type(),
            Some(1) => {
                return Err(Error::invalid(format!(
                    "{}: axis 1 cannot be removed: without the outermost list of each row, rows would be merged; give axis 2 or more, or use unnest(x) for one row per element",
                    plan.name()
                )));
            }
            Some(axis) => lists.remove_level(axis - 1, lists.leaf().clone()),
        };
        let metadata = plan.field(0).metadata().clone();
        Ok(Arc::new(make_nullable(out).as_ref().clone().with_metadata(metadata)))
    },
    call: |call| {
        let x = call.read_ragged(0)?;
        call.to_lists(&match call.read_integer(1) {
            None => reshape::flatten_all(&x)?,
            Some(axis) => reshape::flatten(&x, axis)?,
        })
    },
    fails: FailureCase::Never,
    facts: FunctionFacts {
        whole_row: true,
        reads: ReadParts::Structure,
        part: ListPart::Leaves,
        ..FunctionFacts::NONE
    },
    ..Def::DEFAULTS
};

pub(super) static SQUEEZE: Def = Def {
    name: "ragged_squeeze",
    arity: (2, 2),
    doc: Doc {
        section: FunctionSection::Shape,
        description: "Removes an axis whose lists have one element each: the element takes the place of its list. (`ragged_get(x, '0')` takes the first element of lists of any length.)",
        syntax: &["ragged_squeeze(x, axis)"],
        args: &[
            X,
            (
                "axis",
                "the axis to remove, a literal: 1 is the outermost list of a row, -1 the innermost",
            ),
        ],
        missing: "A NULL list becomes a NULL element. A list of any other length is an error that names it.",
        duckdb: "`x[1]`, `list_transform(x, lambda v: v[1])`.",
        example: example!("ragged_squeeze"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        let axis = plan.axis(1, &lists, "rows are not an axis of size 1")?.ok_or_else(|| {
            plan.refuse_call(
                "argument 2 (the axis) must be an integer literal such as 1; it is NULL",
            )
        })?;
        plan_retyped_field(plan, lists.remove_level(axis - 1, lists.leaf().clone()))
    },
    call: |call| {
        let out = reshape::squeeze(&call.read_ragged(0)?, call.read_integer(1).unwrap_or(1))?;
        if out.axes().is_empty() { Ok(Arc::clone(out.leaves())) } else { call.to_lists(&out) }
    },
    facts: FunctionFacts { reads: ReadParts::Structure, ..FunctionFacts::NONE },
    ..Def::DEFAULTS
};

pub(super) static UNSQUEEZE: Def = Def {
    name: "ragged_unsqueeze",
    arity: (2, 2),
    doc: Doc {
        section: FunctionSection::Shape,
        description: "Adds an axis of lists of one element: each element that was on that axis becomes a list of its own. In operations with a deeper list, the new axis is repeated, so that each element meets every element of the other list.",
        syntax: &["ragged_unsqueeze(x, axis)"],
        args: &[
            X,
            (
                "axis",
                "the position of the new axis in the result, a literal: 1 wraps the list of each row into a list, -1 wraps each value",
            ),
        ],
        missing: "A NULL list becomes a list of one NULL.",
        duckdb: "`[x]`, `list_transform(x, lambda v: [v])`.",
        example: example!("ragged_unsqueeze"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        plan_retyped_field(plan, lists.add_level(new_axis(plan, lists.ndim())? - 1))
    },
    call: |call| {
        call.to_lists(&reshape::unsqueeze(
            &call.read_ragged(0)?,
            call.read_integer(1).unwrap_or(1),
        )?)
    },
    fails: FailureCase::Never,
    facts: FunctionFacts { reads: ReadParts::Structure, ..FunctionFacts::NONE },
    ..Def::DEFAULTS
};

fn new_axis(plan: &CallPlan<'_>, ndim: usize) -> Result<usize> {
    let axis = plan.find_literal_integer(1, "the axis", "1 or -1")?.unwrap_or_default();
    match crate::array::resolve_axis(axis, ndim + 1, &format!("{}: its result", plan.name()))? {
        0 => Err(plan.refuse_call(format!(
            "argument 2 (the axis) is {axis}, but no axis can be inserted before the axis of the rows; give an axis from 1 to {ndim} or, from the innermost, -1 to -{ndim}"
        ))),
        axis => Ok(axis),
    }
}

pub(super) static RESHAPE: Def = Def {
    name: "ragged_reshape",
    arity: (2, 3),
    doc: Doc {
        section: FunctionSection::Shape,
        description: "Divides each list of an axis into nested lists of the given sizes. The axis is replaced by one axis per size. The elements keep their order, and no value is moved.",
        syntax: &["ragged_reshape(x, [size, ..] [, axis])"],
        args: &[
            X,
            (
                "sizes",
                "the number of elements on each new axis, as literals; one of them may be -1, which means as many as fit",
            ),
            ("axis", "the axis to divide, a literal; 1, the outermost list of a row, by default"),
        ],
        missing: "A NULL list stays NULL. A list whose length does not match the sizes is an error that names it.",
        duckdb: "`[x[1:2], x[3:4]]`, written by hand.",
        example: example!("ragged_reshape"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        let such = "[-1, 2]";
        let value = plan.require_literal(1, "the sizes", such)?;
        let sizes = value.and_then(read_literal_integers).filter(|s| !s.is_empty());
        let Some(sizes) = sizes else {
            return Err(plan.refuse_call(format!(
                "argument 2 (the sizes) must be a list of one or more integers such as {such}; it is {}",
                value.map_or_else(String::new, ToString::to_string)
            )));
        };
        let wrong = sizes.iter().any(|s| *s < -1);
        if wrong || sizes.iter().filter(|s| **s == -1).count() > 1 {
            return Err(plan.refuse_call(format!(
                "argument 2 (the sizes) must be 0 or more, except that one size may be -1; the sizes are {sizes:?}"
            )));
        }
        let axis = plan.axis(2, &lists, "rows cannot be divided")?.unwrap_or(1);
        plan_retyped_field(plan, lists.repeat_level(axis - 1, sizes.len()))
    },
    call: |call| {
        let sizes = call.find_constant(1).and_then(read_literal_integers).unwrap_or_default();
        let axis = call.read_integer(2).unwrap_or(1);
        call.to_lists(&reshape::reshape(&call.read_ragged(0)?, axis, &sizes)?)
    },
    ..Def::DEFAULTS
};

/// Returns the integers of a literal list, or `None` for any other literal.
fn read_literal_integers(value: &ScalarValue) -> Option<Vec<i64>> {
    let list = match value {
        ScalarValue::List(a) if !value.is_null() => a.value(0),
        ScalarValue::LargeList(a) if !value.is_null() => a.value(0),
        ScalarValue::FixedSizeList(a) if !value.is_null() => a.value(0),
        _ => return None,
    };
    if !list.data_type().is_integer() || list.null_count() > 0 {
        return None;
    }
    let wide = cast(&list, &DataType::Int64).ok()?;
    let numbers = wide.as_primitive::<Int64Type>();
    (numbers.null_count() == 0).then(|| numbers.values().to_vec())
}
