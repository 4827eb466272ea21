//! Functions that select elements by a mask.

use arrow::array::{Array, new_null_array};
use arrow::datatypes::DataType;

use super::args::{BatchCall, CallPlan};
use super::def::{Def, FailureCase, FunctionFacts};
use super::doc::{Doc, FunctionSection, X};
use super::example;
use super::index::{plan_retyped_field, plan_same_field};
use super::lists::NestedListType;
use crate::array::{RaggedArray, list_of};
use crate::error::Result;
use crate::kernels::filter;

const MASK: (&str, &str) = ("mask", "lists of booleans with the same lengths");

pub(super) static FILTER: Def = Def {
    name: "ragged_filter",
    arity: (2, 2),
    doc: Doc {
        section: FunctionSection::Index,
        description: "Returns the elements for which the mask is true. The mask has the lists of `x` and selects values, or has only its outer levels and selects whole elements. A comparison makes a mask: `ragged_filter(code, value > 5)`.",
        syntax: &["ragged_filter(x, mask)"],
        args: &[X, MASK],
        missing: "NULL in the mask, a value or a list, counts as false. A list of which nothing is selected becomes empty, and a NULL list stays NULL. If a list and its mask differ in length, the error names the row and both lengths.",
        duckdb: "`list_where(x, mask)`, or `list_filter(x, lambda v: v > 5)`.",
        example: example!("ragged_filter"),
    },
    plan: |plan| {
        check_mask(plan)?;
        plan_same_field(plan)
    },
    call: |call| call.to_lists(&filter::filter(&call.read_ragged(0)?, &read_mask(call)?)?),
    fails: FailureCase::UnequalLengths,
    facts: FunctionFacts { shrinks: true, ..FunctionFacts::NONE },
    ..Def::DEFAULTS
};

pub(super) static COMPRESS: Def = Def {
    name: "ragged_compress",
    arity: (2, 2),
    doc: Doc {
        section: FunctionSection::Index,
        description: "Returns the values for which the mask is true in one list per row, as numpy's `compress`. It equals `ragged_flatten(ragged_filter(x, mask))` without building the inner lists. The planner replaces a `ragged_filter` by it if only reductions over whole rows read the result, as in `ragged_mean(ragged_filter(val, code == 7))`.",
        syntax: &["ragged_compress(x, mask)"],
        args: &[X, MASK],
        missing: "NULL in the mask, a value or a list, counts as false. A NULL row stays NULL, and NULL or empty lists inside a row contribute nothing. If a list and its mask differ in length, the error names the row and both lengths.",
        duckdb: "`list_where(flatten(x), flatten(mask))`.",
        example: example!("ragged_compress"),
    },
    plan: |plan| {
        let lists = check_mask(plan)?;
        plan_retyped_field(plan, lists.build_flat_type())
    },
    call: |call| call.to_lists(&filter::compress(&call.read_ragged(0)?, &read_mask(call)?)?),
    fails: FailureCase::UnequalLengths,
    facts: FunctionFacts { shrinks: true, ..FunctionFacts::NONE },
    ..Def::DEFAULTS
};

fn check_mask(plan: &CallPlan<'_>) -> Result<NestedListType> {
    let lists = plan.require_lists(0)?;
    if plan.is_untyped_null(1) {
        return Ok(lists);
    }
    let mask = plan.find_boolean_lists(1)?;
    if mask.depth() > lists.depth() {
        return Err(plan.refuse_call(format!(
            "argument 2 (mask) has {} levels of lists, but argument 1 has only {}; give a mask with at most as many levels as argument 1, such as ragged_any(mask, -1), which has one level less",
            mask.depth(),
            lists.depth()
        )));
    }
    Ok(lists)
}

/// Returns argument 2 of a call, the mask, with boolean leaves. For an untyped NULL, every row of
/// the mask is NULL, which keeps no elements.
fn read_mask(call: &BatchCall<'_>) -> Result<RaggedArray> {
    let mask = match call.read_array(1)? {
        null if null.data_type().is_null() => {
            new_null_array(&list_of(1, DataType::Boolean), null.len())
        }
        mask => mask,
    };
    super::operators::as_booleans(&RaggedArray::try_from_arrow(&mask)?)
}
