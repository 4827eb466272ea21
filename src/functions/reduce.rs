//! Reductions: one value per list, or one per row.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};

use super::args::{Call, Plan};
use super::def::{Def, nullable};
use super::doc::{Doc, Section};
use super::example;
use crate::error::{Error, Result};
use crate::kernels::reduce::{self, Reduction};

const ARGS: &[(&str, &str)] = &[
    ("x", "a list of any depth: List, LargeList or FixedSizeList"),
    (
        "axis",
        "the axis that goes, written out: -1 gives one value per innermost list, 1 one value per position across the lists of a row; without it all values of the row become one. 0, the rows, is refused: aggregate the result instead, as in `sum(ragged_sum(x))`",
    ),
];

macro_rules! reduction {
    ($id:ident, $how:expr, $name:literal, $description:literal, $missing:literal, $duckdb:literal) => {
        #[doc = concat!("`", $name, "(x [, axis])`.")]
        pub(super) static $id: Def = Def {
            name: $name,
            aliases: &[],
            arity: (1, 2),
            doc: Doc {
                section: Section::Reduce,
                description: $description,
                syntax: &[concat!($name, "(x [, axis])")],
                args: ARGS,
                missing: $missing,
                duckdb: $duckdb,
                example: example!($name),
            },
            plan: |plan| planned(plan, $how),
            call: |call| computed(call, $how),
            infix: None,
        };
    };
}

reduction!(
    SUM,
    Reduction::Sum,
    "ragged_sum",
    "The sum. Integers give a 64-bit integer (unsigned ones `UInt64`) and refuse to overflow; `Float32` stays `Float32` and adds up in 64 bits.",
    "NULL values are skipped, the sum of an empty list is 0, that of a NULL list NULL. NaN makes NaN.",
    "`list_sum(flatten(x))`, `list_transform(x, lambda v: list_sum(v))`."
);
reduction!(
    MEAN,
    Reduction::Mean,
    "ragged_mean",
    "The arithmetic mean: `Float64` of integers, `Float32` of `Float32` (added up in 64 bits).",
    "NULL values are skipped and not counted; the mean of nothing is NULL. NaN makes NaN.",
    "`list_avg(flatten(x))`, `list_transform(x, lambda v: list_avg(v))`."
);
reduction!(
    MIN,
    Reduction::Min,
    "ragged_min",
    "The smallest value, in the type of the values: numbers, dates and times, texts.",
    "NULL values are skipped; of nothing it is NULL. NaN, if there is one, wins, as in numpy.",
    "`list_min(flatten(x))`, `list_transform(x, lambda v: list_min(v))`."
);
reduction!(
    MAX,
    Reduction::Max,
    "ragged_max",
    "The largest value, in the type of the values: numbers, dates and times, texts.",
    "NULL values are skipped; of nothing it is NULL. NaN, if there is one, wins, as in numpy.",
    "`list_max(flatten(x))`, `list_transform(x, lambda v: list_max(v))`."
);
reduction!(
    PROD,
    Reduction::Prod,
    "ragged_prod",
    "The product. Integers give a 64-bit integer (unsigned ones `UInt64`) and refuse to overflow; `Float32` stays `Float32` and multiplies in 64 bits.",
    "NULL values are skipped, the product of an empty list is 1, that of a NULL list NULL. NaN makes NaN.",
    "`list_product(flatten(x))`."
);

fn planned(plan: &Plan<'_>, how: Reduction) -> Result<FieldRef> {
    let lists = plan.lists(0)?;
    let across = format!("aggregate its result instead, as in {}({}(x))", how.name(), plan.name());
    let axis = plan.axis(1, &lists, &across)?;
    let out = how.output_type(lists.leaf()).map_err(|_| refused(plan, how, lists.leaf()))?;
    Ok(nullable(match axis {
        None => out,
        Some(axis) => lists.plain().without(axis - 1, out),
    }))
}

fn refused(plan: &Plan<'_>, how: Reduction, leaf: &DataType) -> Error {
    plan.refuse(0, format!("must be a list of values that have a {}; they are {leaf}", how.name()))
}

fn computed(call: &Call<'_>, how: Reduction) -> Result<ArrayRef> {
    call.lists(&reduce::reduce(&call.ragged(0)?, how, call.integer(1))?)
}
