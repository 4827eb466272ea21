//! Elements that a mask says.

use arrow::array::{Array, new_null_array};
use arrow::datatypes::DataType;

use super::args::{Call, Plan};
use super::def::{Def, Fails};
use super::doc::{Doc, Section};
use super::example;
use super::index::{kept, same};
use super::lists::Lists;
use crate::array::{RaggedArray, list_of};
use crate::error::Result;
use crate::kernels::filter;

const X: (&str, &str) = ("x", "a list of any depth: List, LargeList or FixedSizeList");
const MASK: (&str, &str) = ("mask", "lists of booleans with the same lengths");

/// `ragged_filter(x, mask)`.
pub(super) static FILTER: Def = Def {
    name: "ragged_filter",
    aliases: &[],
    arity: (2, 2),
    doc: Doc {
        section: Section::Index,
        description: "The elements for which the mask is true. The mask has the lists of `x`, and picks values, or only its outer levels, and picks whole elements with all they hold. Comparisons make masks: `ragged_filter(code, value > 5)`.",
        syntax: &["ragged_filter(x, mask)"],
        args: &[X, MASK],
        missing: "NULL in the mask is false. Lists stay: where nothing is chosen they are empty, where NULL they are NULL. Lists of different length are an error that names the row and both lengths.",
        duckdb: "`list_where(x, mask)`, or `list_filter(x, lambda v: v > 5)`.",
        example: example!("ragged_filter"),
    },
    plan: |plan| {
        checked(plan)?;
        same(plan)
    },
    call: |call| call.lists(&filter::filter(&call.ragged(0)?, &mask(call)?)?),
    fails: Fails::UnequalLengths,
    infix: None,
};

/// `ragged_compress(x, mask)`.
pub(super) static COMPRESS: Def = Def {
    name: "ragged_compress",
    aliases: &[],
    arity: (2, 2),
    doc: Doc {
        section: Section::Index,
        description: "The values for which the mask is true, in one list per row, as numpy's `compress`: `ragged_flatten(ragged_filter(x, mask))` without the lists in between. Where only a reduction over whole rows looks at a `ragged_filter`, as in `ragged_mean(ragged_filter(val, code == 7))`, it becomes this by itself.",
        syntax: &["ragged_compress(x, mask)"],
        args: &[X, MASK],
        missing: "NULL in the mask is false, a NULL row stays NULL; NULL and empty lists inside a row contribute nothing. Lists of different length are an error that names the row and both lengths.",
        duckdb: "`list_where(flatten(x), flatten(mask))`.",
        example: example!("ragged_compress"),
    },
    plan: |plan| {
        let lists = checked(plan)?;
        kept(plan, lists.flat())
    },
    call: |call| call.lists(&filter::compress(&call.ragged(0)?, &mask(call)?)?),
    fails: Fails::UnequalLengths,
    infix: None,
};

/// The lists of argument 0, when argument 1 is a mask of them.
fn checked(plan: &Plan<'_>) -> Result<Lists> {
    let lists = plan.lists(0)?;
    if plan.is_untyped_null(1) {
        return Ok(lists);
    }
    let mask = plan.boolean_lists(1)?;
    if mask.depth() > lists.depth() {
        return Err(plan.refuse(
            1,
            format!(
                "(mask) has {} levels of lists, more than the {} of what it filters",
                mask.depth(),
                lists.depth()
            ),
        ));
    }
    Ok(lists)
}

/// The mask of a call; without a type, as NULL, it keeps nothing.
fn mask(call: &Call<'_>) -> Result<RaggedArray> {
    let mask = match call.array(1)? {
        null if null.data_type().is_null() => {
            new_null_array(&list_of(1, DataType::Boolean), null.len())
        }
        mask => mask,
    };
    super::operators::booleans(&RaggedArray::try_from_arrow(&mask)?)
}
