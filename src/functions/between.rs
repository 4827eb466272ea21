//! `ragged_between`: values within bounds, and elements whose times are within bounds.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::{is_not_null, is_null};
use arrow::datatypes::{DataType, FieldRef};

use super::args::{BatchCall, CallPlan};
use super::def::{Def, FailureCase, FunctionFacts};
use super::doc::{Doc, FunctionSection};
use super::example;
use super::operators::{BatchOperand, as_booleans};
use crate::array::{RaggedArray, list_depth};
use crate::error::Result;
use crate::kernels::elementwise::{self, BinaryOp, Operand};
use crate::kernels::filter;
use serrate_core::internal::find_true_bits;

pub(super) static BETWEEN: Def = Def {
    name: "ragged_between",
    arity: (3, 5),
    doc: Doc {
        section: FunctionSection::Index,
        description: "With bounds only, returns a mask of the values that lie between them. (`BETWEEN` does not work on lists.) With the times of the elements, or any other sibling list, returns the elements whose time lies between: `ragged_between(code, time, start, stop, '(]')` returns the codes after `start`, up to and including `stop`.",
        syntax: &[
            "ragged_between(x, lo, hi [, closed])",
            "ragged_between(x, time, lo, hi [, closed])",
        ],
        args: &[
            ("x", "a list of any depth"),
            (
                "time",
                "a list with the lengths of `x` on its own levels; if `x` is deeper, whole elements of an outer axis are selected. It need not be sorted",
            ),
            (
                "lo, hi",
                "scalars, columns or literals; strings are parsed as times if the values are times. With `time`, NULL means no bound",
            ),
            (
                "closed",
                "which bounds are included, a literal: `'[]'` (default, as BETWEEN), `'[)'`, `'(]'`, `'()'`",
            ),
        ],
        missing: "The mask is NULL if the value is NULL, or if a bound is NULL and the other one does not exclude the value. Elements whose time is NULL, or whose list of times, are not selected. A NULL row stays NULL.",
        duckdb: "`list_filter(x, lambda v: v BETWEEN lo AND hi)`; with times `list_where(x, list_transform(time, lambda t: t > lo AND t <= hi))`.",
        example: example!("ragged_between"),
    },
    plan: plan_between,
    call: compute_between,
    fails: FailureCase::UnequalLengths,
    facts: FunctionFacts { shrinks: true, ..FunctionFacts::NONE },
    ..Def::DEFAULTS
};

struct ArgumentPositions {
    /// Index of the argument that is compared with the bounds: 1 if times are given, otherwise 0.
    values: usize,
    closed: Option<usize>,
}

fn locate_arguments(
    arguments: usize,
    second_is_list: bool,
    last_is_text: bool,
) -> ArgumentPositions {
    // Four arguments are `(x, time, lo, hi)` if the second is a list and the last is not a `closed`
    // literal, else `(x, lo, hi, closed)`.
    match (arguments, second_is_list) {
        (3, _) => ArgumentPositions { values: 0, closed: None },
        (4, false) => ArgumentPositions { values: 0, closed: Some(3) },
        (4, true) if last_is_text => ArgumentPositions { values: 0, closed: Some(3) },
        (4, true) => ArgumentPositions { values: 1, closed: None },
        _ => ArgumentPositions { values: 1, closed: Some(4) },
    }
}

fn is_closed_ends(text: Option<&str>) -> bool {
    matches!(text, Some("[]" | "[)" | "(]" | "()"))
}

fn plan_between(plan: &CallPlan<'_>) -> Result<FieldRef> {
    let lists = plan.require_lists(0)?;
    let text = plan.find_known_literal(plan.len() - 1).and_then(|v| v.try_as_str()).flatten();
    let at = locate_arguments(plan.len(), list_depth(plan.data_type(1)) > 0, is_closed_ends(text));
    if let Some(i) = at.closed {
        let kind = plan.find_literal_text(i, "which bounds are included", "'[]'")?;
        if !is_closed_ends(kind) {
            return Err(plan.refuse_call(format!(
                "argument {} must be '[]', '[)', '(]' or '()'; it is {:?}",
                i + 1,
                kind.unwrap_or("NULL")
            )));
        }
    }
    let values = plan.require_lists(at.values)?;
    plan.check_depth(&lists, &values, "the times of the elements of argument 1", "times")?;
    for i in [at.values + 1, at.values + 2] {
        super::operators::check_comparable(plan, BinaryOp::Lt, at.values, i)?;
        if at.values == 1 && list_depth(plan.data_type(i)) > 0 {
            return Err(plan.refuse_call(format!(
                "argument {} (a bound) is a list, but must be one scalar per row; for a list of bounds, select an element first",
                i + 1
            )));
        }
    }
    match at.values {
        0 => Ok(super::def::make_nullable(lists.make_plain_leaf(DataType::Boolean))),
        _ => super::index::plan_same_field(plan),
    }
}

fn compute_between(call: &BatchCall<'_>) -> Result<ArrayRef> {
    let last = call.len() - 1;
    let second = call.find_array_type(1);
    let at =
        locate_arguments(call.len(), list_depth(&second) > 0, is_closed_ends(call.read_text(last)));
    let kind = at.closed.and_then(|i| call.read_text(i)).unwrap_or("[]");
    let low = if kind.starts_with('[') { BinaryOp::GtEq } else { BinaryOp::Gt };
    let high = if kind.ends_with(']') { BinaryOp::LtEq } else { BinaryOp::Lt };
    let values = call.read_ragged(at.values)?;
    let picks = at.values == 1;
    let above = compare_bound(call, low, &values, at.values + 1, picks)?;
    let below = compare_bound(call, high, &values, at.values + 2, picks)?;
    let mask = elementwise::binary(BinaryOp::And, Operand::Array(&above), Operand::Array(&below))?;
    match picks {
        false => call.to_lists(&mask),
        true => {
            // A NULL bound matches every time, even a NULL time. The mask therefore also requires a
            // time, because an element with a NULL time is never selected.
            let known = values.with_leaves(Arc::new(is_not_null(values.leaves())?))?;
            let mask =
                elementwise::binary(BinaryOp::And, Operand::Array(&mask), Operand::Array(&known))?;
            call.to_lists(&filter::filter(&call.read_ragged(0)?, &mask)?)
        }
    }
}

/// Returns a mask that says which of `values` satisfy the comparison `op` with the argument that
/// has the index `bound`. If `open` is true, a NULL bound matches all values of its row.
fn compare_bound(
    call: &BatchCall<'_>,
    op: BinaryOp,
    values: &RaggedArray,
    bound: usize,
    open: bool,
) -> Result<RaggedArray> {
    let side = BatchOperand::from_argument(call, bound)?;
    let mask = as_booleans(&elementwise::binary(op, Operand::Array(values), side.as_operand())?)?;
    if !open {
        return Ok(mask);
    }
    let unbounded = match &side {
        BatchOperand::One(v) if v.is_valid(0) && !v.data_type().is_null() => return Ok(mask),
        BatchOperand::One(_) => {
            return mask.with_leaves(Arc::new(BooleanArray::from(vec![true; mask.leaves().len()])));
        }
        BatchOperand::Each(bounds) if bounds.leaves().logical_null_count() == 0 => return Ok(mask),
        BatchOperand::Each(bounds) => bounds.with_leaves(Arc::new(is_null(bounds.leaves())?))?,
    };
    let known = BooleanArray::new(find_true_bits(mask.leaves().as_boolean()), None);
    let known = mask.with_leaves(Arc::new(known))?;
    elementwise::binary(BinaryOp::Or, Operand::Array(&known), Operand::Array(&unbounded))
}
