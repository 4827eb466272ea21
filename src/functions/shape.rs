//! Shapes, lengths, counts.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array};
use arrow::datatypes::DataType;

use super::args::{Call, Plan};
use super::def::{Def, Fails, nullable};
use super::doc::{Doc, Section};
use super::example;
use crate::array::{list_depth, list_of};
use crate::error::Result;
use crate::kernels::reduce::{self, Reduction};
use crate::kernels::shape;

const X: (&str, &str) = ("x", "a list of any depth: List, LargeList or FixedSizeList");
const AXIS: (&str, &str) = (
    "axis",
    "an axis, written out: 1 is the outermost list of a row, -1 the innermost; 0, the rows, is refused",
);

/// Names of the functions that look at the lengths of lists and at no value, DataFusion's among them;
/// [`COUNT`] also at which values are NULL.
pub(crate) const LENGTHS_ONLY: [&str; 7] = [
    "array_length",
    "cardinality",
    "ragged_count",
    "ragged_lengths",
    "ragged_max_shape",
    "ragged_ndim",
    "ragged_shape",
];

/// Names of the functions that move or leave out values without looking at them, where all arguments but
/// the first are written out. Under one of [`LENGTHS_ONLY`], they look at the lengths of lists only.
pub(crate) const STRUCTURE_ONLY: [&str; 8] = [
    "array_slice",
    "ragged_flatten",
    "ragged_head",
    "ragged_reverse",
    "ragged_slice",
    "ragged_squeeze",
    "ragged_tail",
    "ragged_unsqueeze",
];

/// `ragged_ndim(x)`.
pub(super) static NDIM: Def = Def {
    name: "ragged_ndim",
    aliases: &[],
    arity: (1, 1),
    doc: Doc {
        section: Section::Shape,
        description: "How many axes of lists every row has: as many numbers as `ragged_shape` gives. The rows themselves are axis 0 and not counted.",
        syntax: &["ragged_ndim(x)"],
        args: &[X],
        missing: "A NULL row gives NULL. Empty lists have all the axes of their type.",
        duckdb: "none: the type says it (`typeof(x)`).",
        example: example!("ragged_ndim"),
    },
    plan: |plan| {
        plan.lists(0)?;
        Ok(nullable(DataType::Int64))
    },
    call: |call| {
        let x = call.array(0)?;
        let axes = i64::try_from(list_depth(x.data_type())).unwrap_or(i64::MAX);
        Ok(Arc::new(Int64Array::new(vec![axes; x.len()].into(), x.logical_nulls())))
    },
    fails: Fails::Never,
    infix: None,
};

/// `ragged_shape(x)`.
pub(super) static SHAPE: Def = Def {
    name: "ragged_shape",
    aliases: &[],
    arity: (1, 1),
    doc: Doc {
        section: Section::Shape,
        description: "The shape of every row: its length, then for each deeper axis its size where it is fixed (a FixedSizeList) and -1 where it is ragged.",
        syntax: &["ragged_shape(x)"],
        args: &[X],
        missing: "A NULL row has no shape: NULL. An empty row begins with 0.",
        duckdb: "`[len(x), -1]` by hand.",
        example: example!("ragged_shape"),
    },
    plan: shapes,
    call: |call| call.lists(&shape::row_shapes(&call.ragged(0)?)?),
    fails: Fails::Never,
    infix: None,
};

/// `ragged_max_shape(x)`.
pub(super) static MAX_SHAPE: Def = Def {
    name: "ragged_max_shape",
    aliases: &[],
    arity: (1, 1),
    doc: Doc {
        section: Section::Shape,
        description: "The extent of every row: for each axis the longest list the row has there. This is the shape of the row when it is padded; over all rows `ragged_max_shape_agg` gives the shape of the table.",
        syntax: &["ragged_max_shape(x)"],
        args: &[X],
        missing: "A NULL row gives NULL, lists that are NULL inside a row count 0.",
        duckdb: "`[len(x), list_max(list_transform(x, lambda v: len(v)))]`.",
        example: example!("ragged_max_shape"),
    },
    plan: shapes,
    call: |call| call.lists(&shape::row_max_shapes(&call.ragged(0)?)?),
    fails: Fails::Never,
    infix: None,
};

fn shapes(plan: &Plan<'_>) -> Result<arrow::datatypes::FieldRef> {
    plan.lists(0)?;
    Ok(nullable(list_of(1, DataType::Int64)))
}

/// `ragged_lengths(x, axis)`.
pub(super) static LENGTHS: Def = Def {
    name: "ragged_lengths",
    aliases: &[],
    arity: (1, 2),
    doc: Doc {
        section: Section::Shape,
        description: "The length of every list of an axis: one number per row for axis 1 (the default), a list of numbers per row for axis 2, and so on.",
        syntax: &["ragged_lengths(x [, axis])"],
        args: &[X, AXIS],
        missing: "The length of a NULL list is NULL, that of an empty one 0. NULL elements take up a place and count.",
        duckdb: "`len(x)`, and `list_transform(x, lambda v: len(v))` for axis 2.",
        example: example!("ragged_lengths"),
    },
    plan: |plan| {
        let lists = plan.lists(0)?;
        let axis = plan.axis(1, &lists, "for the rows use count(*)")?.unwrap_or(1);
        Ok(nullable(lists.outer(axis - 1, DataType::Int64)))
    },
    call: |call| {
        let axis = call.integer(1).unwrap_or(1);
        call.lists(&shape::lengths(&call.ragged(0)?, axis)?)
    },
    fails: Fails::Never,
    infix: None,
};

/// `ragged_count(x [, axis])`.
pub(super) static COUNT: Def = Def {
    name: "ragged_count",
    aliases: &[],
    arity: (1, 2),
    doc: Doc {
        section: Section::Shape,
        description: "How many values every row has, on all its levels together; with an axis how many each of its lists has, as a reduction: -1 for one number per innermost list.",
        syntax: &["ragged_count(x [, axis])"],
        args: &[X, AXIS],
        missing: "NULL values do not count, as in SQL's `count`; NaN does. An empty row counts 0, a NULL row gives NULL.",
        duckdb: "`list_count(flatten(x))`, `list_transform(x, lambda v: list_count(v))`.",
        example: example!("ragged_count"),
    },
    plan: |plan| {
        let lists = plan.lists(0)?;
        let axis = plan.axis(1, &lists, "use sum(ragged_count(x))")?;
        Ok(nullable(match axis {
            None => DataType::Int64,
            Some(axis) => lists.plain().without(axis - 1, DataType::Int64),
        }))
    },
    call: count,
    fails: Fails::Never,
    infix: None,
};

fn count(call: &Call<'_>) -> Result<ArrayRef> {
    let x = call.ragged(0)?;
    match call.integer(1) {
        None => Ok(Arc::new(shape::count(&x)?)),
        axis => call.lists(&reduce::reduce(&x, Reduction::Count, axis)?),
    }
}
