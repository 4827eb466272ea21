//! Elements by lists of positions, in another order, or several times.

use arrow::array::new_null_array;
use arrow::datatypes::{DataType, FieldRef};

use super::args::{Call, Plan};
use super::def::{Def, Fails, nullable};
use super::doc::{Doc, Section};
use super::example;
use super::index::same;
use super::lists::Lists;
use crate::array::{RaggedArray, list_depth};
use crate::error::Result;
use crate::kernels::{Count, repeat, take};

pub(super) const X: (&str, &str) = ("x", "a list of any depth: List, LargeList or FixedSizeList");

/// `ragged_take(x, indices)`.
pub(super) static TAKE: Def = Def {
    name: "ragged_take",
    aliases: &["ragged_gather"],
    arity: (2, 2),
    doc: Doc {
        section: Section::Index,
        description: "The elements at the positions that a list says, in that order. A list of one level picks elements of axis 1 with all they hold, one of two levels those of every list of axis 2, and so on. `ragged_take(x, ragged_argsort(x))` is `x` sorted.",
        syntax: &["ragged_take(x, indices)"],
        args: &[
            X,
            (
                "indices",
                "a list of integers, counted from 0, negatives from the end; its outer lists are those of `x`. They may repeat, and may be written out: the same for every row",
            ),
        ],
        missing: "A NULL position gives a NULL element; a list that is NULL on either side is NULL. A position out of range is an error that names the row.",
        duckdb: "`list_select(x, indices)`, counted from 1.",
        example: example!("ragged_take"),
    },
    plan: |plan| {
        let lists = plan.lists(0)?;
        if plan.is_untyped_null(1) {
            return same(plan);
        }
        let indices = integers(plan, 1, "the positions")?;
        if indices.depth() > lists.depth() {
            return Err(plan.refuse(
                1,
                format!(
                    "has {} levels of lists, more than the {} of what it takes from",
                    indices.depth(),
                    lists.depth()
                ),
            ));
        }
        let field = same(plan)?;
        let out = Lists::of(&lists.widened_by(&indices).open()).open();
        Ok(std::sync::Arc::new(field.as_ref().clone().with_data_type(out)))
    },
    call: |call| {
        let x = call.ragged(0)?;
        if call.array_type(1).is_null() {
            return Ok(new_null_array(call.return_type(), x.len()));
        }
        call.lists(&take::take(&x, &numbered(call, 1)?)?)
    },
    fails: Fails::Values,
    infix: None,
};

/// An argument that must be a list of integers.
pub(super) fn integers(plan: &Plan<'_>, i: usize, what: &str) -> Result<Lists> {
    let lists = plan.lists(i)?;
    match lists.leaf() {
        t if t.is_integer() || t.is_null() => Ok(lists),
        t => {
            Err(plan.refuse(i, format!("({what}) must be a list of integers; its values are {t}")))
        }
    }
}

/// A list of integers; without a type, as in `[]`, they count as such.
pub(super) fn numbered(call: &Call<'_>, i: usize) -> Result<RaggedArray> {
    let x = call.ragged(i)?;
    match x.leaf_type() {
        DataType::Null => x.with_leaves(arrow::compute::cast(x.leaves(), &DataType::Int64)?),
        _ => Ok(x),
    }
}

/// `ragged_reverse(x [, axis])`.
pub(super) static REVERSE: Def = Def {
    name: "ragged_reverse",
    aliases: &[],
    arity: (1, 2),
    doc: Doc {
        section: Section::Index,
        description: "The elements from the last to the first.",
        syntax: &["ragged_reverse(x [, axis])"],
        args: &[
            X,
            (
                "axis",
                "the axis whose lists are turned round, written out; 1, the outermost list of a row, if not given",
            ),
        ],
        missing: "A NULL row stays NULL, NULL elements are kept.",
        duckdb: "`list_reverse(x)`, `list_transform(x, lambda v: list_reverse(v))`.",
        example: example!("ragged_reverse"),
    },
    plan: |plan| {
        plan.axis(1, &plan.lists(0)?, "use ORDER BY for rows")?;
        same(plan)
    },
    call: |call| call.lists(&take::reverse(&call.ragged(0)?, call.integer(1).unwrap_or(1))?),
    fails: Fails::Never,
    infix: None,
};

/// `ragged_repeat(x, n [, axis])`.
pub(super) static REPEAT: Def = Def {
    name: "ragged_repeat",
    aliases: &[],
    arity: (2, 3),
    doc: Doc {
        section: Section::Index,
        description: "Every element so many times, one after the other, with all it holds: numpy's `repeat`, list by list.",
        syntax: &["ragged_repeat(x, n [, axis])"],
        args: &[
            X,
            ("n", "how often: a number, a column, or a list with a number for every element"),
            (
                "axis",
                "the axis whose elements are repeated, written out; 1, the outermost list of a row, if not given",
            ),
        ],
        missing: "NULL as a number is 0. A NULL row stays NULL, NULL elements are repeated as others. A negative number is an error.",
        duckdb: "`flatten(list_transform(x, lambda v: list_resize([v], n, v)))`.",
        example: example!("ragged_repeat"),
    },
    plan: |plan| {
        let lists = plan.lists(0)?;
        let axis = plan.axis(2, &lists, "rows are not repeated")?.unwrap_or(1);
        counts(plan, 1, axis)?;
        same(plan)
    },
    call: |call| {
        let axis = call.integer(2).unwrap_or(1);
        let n = count(call, 1)?;
        call.lists(&repeat::repeat(&call.ragged(0)?, axis, Count::Each(&n))?)
    },
    fails: Fails::Values,
    infix: None,
};

/// Refuses what is no number of elements: an integer, or lists of them with no more levels than the
/// axis has.
pub(super) fn counts(plan: &Plan<'_>, i: usize, levels: usize) -> Result<()> {
    if list_depth(plan.data_type(i)) == 0 {
        return plan.integer(i, "a number of elements");
    }
    let lists = integers(plan, i, "numbers of elements")?;
    if lists.depth() > levels {
        return Err(
            plan.refuse(i, format!("has {} levels of lists; here are {levels}", lists.depth()))
        );
    }
    Ok(())
}

/// Numbers of elements, one per row or deeper.
pub(super) fn count(call: &Call<'_>, i: usize) -> Result<RaggedArray> {
    numbered(call, i)
}

/// A nullable list of the levels of an argument around other leaves.
pub(super) fn around(lists: &Lists, leaf: DataType) -> Result<FieldRef> {
    Ok(nullable(lists.plain_leaf(leaf)))
}
