//! Shapes of rows, lengths of lists, and counts of values.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};

use super::args::{BatchCall, CallPlan};
use super::def::{Def, FailureCase, FunctionFacts, ListPart, ReadParts, make_nullable};
use super::doc::{Doc, FunctionSection, X};
use super::example;
use crate::array::{RaggedArray, list_depth, list_of};
use crate::error::Result;
use crate::kernels::reduce::{self, Reduction};
use crate::kernels::shape;

const AXIS: (&str, &str) = (
    "axis",
    "an axis, a literal: 1 is the outermost list of a row, -1 the innermost; 0, the rows, is refused",
);

pub(super) static NDIM: Def = Def {
    name: "ragged_ndim",
    arity: (1, 1),
    doc: Doc {
        section: FunctionSection::Shape,
        description: "Returns the number of list axes of each row. The rows themselves are axis 0 and are not counted.",
        syntax: &["ragged_ndim(x)"],
        args: &[X],
        missing: "A NULL row returns NULL. An empty list has all axes of its type.",
        duckdb: "none: the type determines it (`typeof(x)`).",
        example: example!("ragged_ndim"),
    },
    plan: |plan| {
        plan.require_lists(0)?;
        Ok(make_nullable(DataType::Int64))
    },
    call: |call| {
        let x = call.read_array(0)?;
        let axes = i64::try_from(list_depth(x.data_type())).unwrap_or(i64::MAX);
        Ok(Arc::new(Int64Array::new(vec![axes; x.len()].into(), x.logical_nulls())))
    },
    fails: FailureCase::Never,
    facts: FunctionFacts { reads: ReadParts::Lengths, ..FunctionFacts::NONE },
    ..Def::DEFAULTS
};

pub(super) static SHAPE: Def = Def {
    name: "ragged_shape",
    arity: (1, 1),
    doc: Doc {
        section: FunctionSection::Shape,
        description: "Returns the shape of each row: its length, then for each deeper axis its size if it is fixed (a FixedSizeList), or -1 if it is ragged.",
        syntax: &["ragged_shape(x)"],
        args: &[X],
        missing: "A NULL row returns NULL. The shape of an empty row starts with 0.",
        duckdb: "`[len(x), -1]`, written by hand.",
        example: example!("ragged_shape"),
    },
    plan: plan_shape,
    call: |call| {
        let shapes = shape::row_shapes(&call.read_ragged(0)?)?;
        call.to_lists(&replace_sizes(&shapes, &call.find_array_type(0))?)
    },
    fails: FailureCase::Never,
    facts: FunctionFacts { shrinks: true, reads: ReadParts::Lengths, ..FunctionFacts::NONE },
    ..Def::DEFAULTS
};

pub(super) static MAX_SHAPE: Def = Def {
    name: "ragged_max_shape",
    arity: (1, 1),
    doc: Doc {
        section: FunctionSection::Shape,
        description: "Returns the extent of each row: the length of its longest list on each axis. This is the shape of the row after padding. `ragged_max_shape_agg` returns the shape of all rows together.",
        syntax: &["ragged_max_shape(x)"],
        args: &[X],
        missing: "A NULL row returns NULL. A NULL list inside a row counts as length 0.",
        duckdb: "`[len(x), list_max(list_transform(x, lambda v: len(v)))]`.",
        example: example!("ragged_max_shape"),
    },
    plan: plan_shape,
    call: |call| call.to_lists(&shape::row_max_shapes(&call.read_ragged(0)?)?),
    fails: FailureCase::Never,
    facts: FunctionFacts { shrinks: true, reads: ReadParts::Lengths, ..FunctionFacts::NONE },
    ..Def::DEFAULTS
};

/// Replaces all sizes but the first of each shape with the sizes in the type `lists`: the size of a
/// FixedSizeList, or -1 for other lists. A shape computed from a batch with a NULL list lacks the
/// size of a FixedSizeList, because the FixedSizeList is then read as a ragged axis.
fn replace_sizes(shapes: &RaggedArray, lists: &DataType) -> Result<RaggedArray> {
    let mut sizes: Vec<i64> = Vec::new();
    let mut level = lists;
    loop {
        level = match level {
            DataType::List(field) | DataType::LargeList(field) => {
                sizes.push(-1);
                field.data_type()
            }
            DataType::FixedSizeList(field, size) => {
                sizes.push(i64::from(*size));
                field.data_type()
            }
            _ => break,
        };
    }
    let mut values = shapes.leaves().as_primitive::<Int64Type>().values().to_vec();
    for shape in values.chunks_exact_mut(sizes.len().max(1)) {
        if let ([_, deeper @ ..], [_, fixed @ ..]) = (shape, sizes.as_slice()) {
            deeper.copy_from_slice(fixed);
        }
    }
    shapes.with_leaves(Arc::new(Int64Array::from(values)))
}

fn plan_shape(plan: &CallPlan<'_>) -> Result<arrow::datatypes::FieldRef> {
    plan.require_lists(0)?;
    Ok(make_nullable(list_of(1, DataType::Int64)))
}

pub(super) static LENGTHS: Def = Def {
    name: "ragged_lengths",
    arity: (1, 2),
    doc: Doc {
        section: FunctionSection::Shape,
        description: "Returns the length of each list of an axis: one number per row for axis 1 (the default), a list of numbers per row for axis 2, and so on.",
        syntax: &["ragged_lengths(x [, axis])"],
        args: &[X, AXIS],
        missing: "The length of a NULL list is NULL, and that of an empty list is 0. NULL elements count.",
        duckdb: "`len(x)`, and `list_transform(x, lambda v: len(v))` for axis 2.",
        example: example!("ragged_lengths"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        let axis = plan.axis(1, &lists, "for the rows use count(*)")?.unwrap_or(1);
        Ok(make_nullable(lists.wrap_outer(axis - 1, DataType::Int64)))
    },
    call: |call| {
        let axis = call.read_integer(1).unwrap_or(1);
        call.to_lists(&shape::lengths(&call.read_ragged(0)?, axis)?)
    },
    fails: FailureCase::Never,
    facts: FunctionFacts {
        shrinks: true,
        reads: ReadParts::Lengths,
        part: ListPart::Length,
        ..FunctionFacts::NONE
    },
    ..Def::DEFAULTS
};

pub(super) static COUNT: Def = Def {
    name: "ragged_count",
    arity: (1, 2),
    doc: Doc {
        section: FunctionSection::Shape,
        description: "Returns the number of values of each row, on all levels together. With an axis, it counts as a reduction along that axis: -1 returns one number per innermost list.",
        syntax: &["ragged_count(x [, axis])"],
        args: &[X, AXIS],
        missing: "NULL values are not counted, as in SQL's `count`; NaN is counted. An empty row returns 0, and a NULL row returns NULL.",
        duckdb: "`list_count(flatten(x))`, `list_transform(x, lambda v: list_count(v))`.",
        example: example!("ragged_count"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        let axis = plan.axis(1, &lists, "use sum(ragged_count(x))")?;
        Ok(make_nullable(match axis {
            None => DataType::Int64,
            Some(axis) => lists.to_plain_fields().remove_level(axis - 1, DataType::Int64),
        }))
    },
    call: count_leaves,
    fails: FailureCase::Never,
    facts: FunctionFacts {
        whole_row: true,
        reads: ReadParts::LengthsAndNulls,
        part: ListPart::Count,
        ..FunctionFacts::NONE
    },
    ..Def::DEFAULTS
};

fn count_leaves(call: &BatchCall<'_>) -> Result<ArrayRef> {
    let x = call.read_ragged(0)?;
    match call.read_integer(1) {
        None => Ok(Arc::new(shape::count(&x)?)),
        axis => call.to_lists(&reduce::reduce(&x, Reduction::Count, axis)?),
    }
}
