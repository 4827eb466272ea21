//! Functions that write values at positions, and that convert between positions and masks.

use arrow::datatypes::DataType;

use super::choose::check_fits;
use super::def::{Def, make_nullable};
use super::doc::{Doc, FunctionSection, X};
use super::example;
use super::index::plan_same_field;
use super::lists::NestedListType;
use super::operators::as_booleans;
use super::take::{check_counts, check_integers, read_count, read_integers, wrap_leaf};
use crate::kernels::scatter::{self, DuplicateWrites};
use crate::kernels::{CountArgument, indices};

const INDICES: (&str, &str) = (
    "indices",
    "a list of integers from 0; negative ones count from the end. It has as many levels as the axis that is written to",
);

pub(super) static SCATTER: Def = Def {
    name: "ragged_scatter",
    arity: (3, 3),
    doc: Doc {
        section: FunctionSection::Index,
        description: "Returns `x` with the elements at the given positions replaced. It is the inverse of `ragged_take`: it puts back what `ragged_take(x, indices)` took. To start from new lists, write to `ragged_pad([0], size, 0)`.",
        syntax: &["ragged_scatter(x, indices, values)"],
        args: &[
            X,
            INDICES,
            (
                "values",
                "one value per position, in lists of the same lengths, or one scalar for all positions",
            ),
        ],
        missing: "If two values have the same position, the last one stays. NULL positions, and innermost lists that are NULL in `indices` or `values`, write nothing. A NULL list of `x` stays NULL, and an outer list that is NULL in `indices` or `values` becomes NULL. A position out of range is an error that names the row.",
        duckdb: "none; combine `list_transform` with an index and `list_position`.",
        example: example!("ragged_scatter"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        let at = check_integers(plan, 1, "the positions")?;
        plan.check_depth(&lists, &at, "the positions", "positions")?;
        let values = NestedListType::from_type(plan.data_type(2));
        if values.depth() != lists.depth() && values.depth() > 0 {
            return Err(plan.refuse_call(format!(
                "argument 3 (the values) has {} level(s) of lists, but argument 1 has {}; give values with as many levels as argument 1",
                values.depth(),
                lists.depth()
            )));
        }
        if values.depth() == 0 && at.depth() != lists.depth() {
            return Err(
                plan.refuse_call(
                    "argument 3 (the values) is a scalar, but the elements to replace are lists; give lists of values"
                )
            );
        }
        check_fits(plan, 2, values.leaf(), lists.leaf())?;
        plan_same_field(plan)
    },
    call: |call| {
        let (x, at) = (call.read_ragged(0)?, read_integers(call, 1)?);
        let mut values = call.read_ragged(2)?;
        if values.axes().is_empty() {
            let rows = super::lists::find_ancestors_of_leaves(at.axes(), at.len());
            values = at.with_leaves(super::lists::take_rows_at(values.leaves(), &rows)?)?;
        }
        call.to_lists(&scatter::scatter(&x, &at, &values, DuplicateWrites::Last)?)
    },
    ..Def::DEFAULTS
};

pub(super) static INDICES_FROM_MASK: Def = Def {
    name: "ragged_indices_from_mask",
    arity: (1, 1),
    doc: Doc {
        section: FunctionSection::Index,
        description: "Returns the positions at which each innermost list of a mask is true, in ascending order from 0. `ragged_take(x, ragged_indices_from_mask(mask))` equals `ragged_filter(x, mask)` if no list of the mask is NULL.",
        syntax: &["ragged_indices_from_mask(mask)"],
        args: &[("mask", "a list of any depth of booleans")],
        missing: "NULL counts as false. A NULL list stays NULL.",
        duckdb: "`list_where(range(len(mask)), mask)`.",
        example: example!("ragged_indices_from_mask"),
    },
    plan: |plan| wrap_leaf(&plan.find_boolean_lists(0)?, DataType::Int64),
    call: |call| call.to_lists(&indices::indices_from_mask(&as_booleans(&call.read_ragged(0)?)?)?),
    ..Def::DEFAULTS
};

pub(super) static MASK_FROM_INDICES: Def = Def {
    name: "ragged_mask_from_indices",
    arity: (2, 2),
    doc: Doc {
        section: FunctionSection::Index,
        description: "Returns masks of a given length that are true at the given positions: the inverse of `ragged_indices_from_mask`.",
        syntax: &["ragged_mask_from_indices(indices, size)"],
        args: &[
            (
                "indices",
                "a list of any depth of integers from 0; negative ones count from the end. Positions may repeat",
            ),
            (
                "size",
                "the length of each mask: a number, a column, or a list with one number per innermost list",
            ),
        ],
        missing: "NULL positions are skipped. A NULL list or a NULL size returns a NULL list. A position out of range is an error that names the row.",
        duckdb: "`list_transform(range(size), lambda i: list_contains(indices, i))`.",
        example: example!("ragged_mask_from_indices"),
    },
    plan: |plan| {
        let lists = check_integers(plan, 0, "the positions")?;
        check_counts(plan, 1, lists.depth() - 1)?;
        Ok(make_nullable(lists.make_plain_leaf(DataType::Boolean)))
    },
    call: |call| {
        let sizes = read_count(call, 1)?;
        call.to_lists(&indices::mask_from_indices(
            &read_integers(call, 0)?,
            CountArgument::Each(&sizes),
        )?)
    },
    ..Def::DEFAULTS
};
