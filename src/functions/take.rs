//! Functions that select elements by lists of positions, reverse them, and repeat them.

use arrow::array::new_null_array;
use arrow::datatypes::{DataType, FieldRef};

use super::args::{BatchCall, CallPlan};
use super::def::{Def, FailureCase, FunctionFacts, ReadParts, make_nullable};
use super::doc::{Doc, FunctionSection, X};
use super::example;
use super::index::plan_same_field;
use super::lists::NestedListType;
use crate::array::{RaggedArray, list_depth};
use crate::error::Result;
use crate::kernels::{CountArgument, repeat, take};

pub(super) static TAKE: Def = Def {
    name: "ragged_take",
    aliases: &["ragged_gather"],
    arity: (2, 2),
    doc: Doc {
        section: FunctionSection::Index,
        description: "Returns the elements at the given positions, in that order. Positions of one level select whole elements of axis 1, positions of two levels select elements of each list of axis 2, and so on. `ragged_take(x, ragged_argsort(x))` sorts `x`.",
        syntax: &["ragged_take(x, indices)"],
        args: &[
            X,
            (
                "indices",
                "a list of integers from 0; negative ones count from the end. Its outer lists must match those of `x`. Positions may repeat, and may be a literal, which holds for every row",
            ),
        ],
        missing: "A NULL position returns a NULL element. A NULL list on either side returns a NULL list. A position out of range is an error that names the row.",
        duckdb: "`list_select(x, indices)`, with positions from 1.",
        example: example!("ragged_take"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        if plan.is_untyped_null(1) {
            return plan_same_field(plan);
        }
        let indices = check_integers(plan, 1, "the positions")?;
        plan.check_depth(&lists, &indices, "the positions", "positions")?;
        let field = plan_same_field(plan)?;
        let out = NestedListType::from_type(&lists.widen_by(&indices).open()).open();
        Ok(std::sync::Arc::new(field.as_ref().clone().with_data_type(out)))
    },
    call: |call| {
        let x = call.read_ragged(0)?;
        if call.find_array_type(1).is_null() {
            return Ok(new_null_array(call.return_type(), x.len()));
        }
        call.to_lists(&take::take(&x, &read_integers(call, 1)?)?)
    },
    ..Def::DEFAULTS
};

pub(super) fn check_integers(plan: &CallPlan<'_>, i: usize, what: &str) -> Result<NestedListType> {
    let lists = plan.require_lists(i)?;
    match lists.leaf() {
        t if t.is_integer() || t.is_null() => Ok(lists),
        t => Err(plan.refuse_call(format!(
            "argument {} ({what}) must be a list of integers; its values are {t}, so cast them first",
            i + 1
        ))),
    }
}

/// Returns argument `i` as lists of integers. Leaves of type Null, as in `[]`, become integers.
pub(super) fn read_integers(call: &BatchCall<'_>, i: usize) -> Result<RaggedArray> {
    let x = call.read_ragged(i)?;
    match x.leaf_type() {
        DataType::Null => x.with_leaves(arrow::compute::cast(x.leaves(), &DataType::Int64)?),
        _ => Ok(x),
    }
}

pub(super) static REVERSE: Def = Def {
    name: "ragged_reverse",
    arity: (1, 2),
    doc: Doc {
        section: FunctionSection::Index,
        description: "Returns the elements from the last to the first.",
        syntax: &["ragged_reverse(x [, axis])"],
        args: &[
            X,
            (
                "axis",
                "the axis whose lists are reversed, a literal; 1, the outermost list of a row, by default",
            ),
        ],
        missing: "A NULL row stays NULL, NULL elements are kept.",
        duckdb: "`list_reverse(x)`, `list_transform(x, lambda v: list_reverse(v))`.",
        example: example!("ragged_reverse"),
    },
    plan: |plan| {
        plan.axis(1, &plan.require_lists(0)?, "use ORDER BY for rows")?;
        plan_same_field(plan)
    },
    call: |call| {
        call.to_lists(&take::reverse(&call.read_ragged(0)?, call.read_integer(1).unwrap_or(1))?)
    },
    fails: FailureCase::Never,
    facts: FunctionFacts { reads: ReadParts::Structure, ..FunctionFacts::NONE },
    ..Def::DEFAULTS
};

pub(super) static REPEAT: Def = Def {
    name: "ragged_repeat",
    arity: (2, 3),
    doc: Doc {
        section: FunctionSection::Index,
        description: "Repeats each whole element a number of times in a row, as numpy's `repeat` does, list by list.",
        syntax: &["ragged_repeat(x, n [, axis])"],
        args: &[
            X,
            ("n", "the number of times: a number, a column, or a list with one number per element"),
            (
                "axis",
                "the axis whose elements are repeated, a literal; 1, the outermost list of a row, by default",
            ),
        ],
        missing: "NULL as a number counts as 0. A NULL row stays NULL, and NULL elements are repeated like others. A negative number is an error.",
        duckdb: "`flatten(list_transform(x, lambda v: list_resize([v], n, v)))`.",
        example: example!("ragged_repeat"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        let axis = plan.axis(2, &lists, "rows cannot be repeated")?.unwrap_or(1);
        check_counts(plan, 1, axis)?;
        plan_same_field(plan)
    },
    call: |call| {
        let axis = call.read_integer(2).unwrap_or(1);
        let n = read_count(call, 1)?;
        call.to_lists(&repeat::repeat(&call.read_ragged(0)?, axis, CountArgument::Each(&n))?)
    },
    ..Def::DEFAULTS
};

/// Returns an error unless argument `i` is an integer, or lists of integers with at most `levels`
/// levels.
pub(super) fn check_counts(plan: &CallPlan<'_>, i: usize, levels: usize) -> Result<()> {
    if list_depth(plan.data_type(i)) == 0 {
        return plan.check_integer(i, "a number of elements");
    }
    let lists = check_integers(plan, i, "numbers of elements")?;
    if lists.depth() > levels {
        return Err(plan.refuse_call(format!(
            "argument {} has {} levels of lists, but this argument can have at most {levels}; select or flatten levels first",
            i + 1,
            lists.depth()
        )));
    }
    Ok(())
}

pub(super) fn read_count(call: &BatchCall<'_>, i: usize) -> Result<RaggedArray> {
    read_integers(call, i)
}

pub(super) fn wrap_leaf(lists: &NestedListType, leaf: DataType) -> Result<FieldRef> {
    Ok(make_nullable(lists.make_plain_leaf(leaf)))
}
