//! Softmax and scaling along an axis.

use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;

use super::args::{Call, Plan};
use super::def::{Def, Fails, nullable};
use super::doc::{Doc, Section};
use super::example;
use crate::array::RaggedArray;
use crate::error::Result;
use crate::kernels::normalize;

const X: (&str, &str) = ("x", "a list of any depth of numbers");

/// The axis along which values go together, -1 if not given.
fn along(call: &Call<'_>) -> i64 {
    call.integer(1).unwrap_or(-1)
}

const ALONG: (&str, &str) = (
    "axis",
    "the axis along which values go together, written out: -1, every innermost list by itself, if not given; along an outer axis the values at the same place of its lists go together",
);

macro_rules! scaled {
    ($id:ident, $kernel:path, $name:literal, $description:literal, $duckdb:literal) => {
        #[doc = concat!("`", $name, "(x [, axis])`.")]
        pub(super) static $id: Def = Def {
            name: $name,
            aliases: &[],
            arity: (1, 2),
            doc: Doc {
                section: Section::Elementwise,
                description: $description,
                syntax: &[concat!($name, "(x [, axis])")],
                args: &[X, ALONG],
                missing: "NULL values stay NULL and do not compete, nor does padding, which is not there. NaN makes NaN. Integers become `Float64`.",
                duckdb: $duckdb,
                example: example!($name),
            },
            plan: scaled,
            call: |call| call.lists(&$kernel(&floats(call)?, along(call))?),
            fails: Fails::Values,
            infix: None,
        };
    };
}

scaled!(
    SOFTMAX,
    normalize::softmax,
    "ragged_softmax",
    "The softmax: `exp(v)` divided by the sum of all that go together, so that they add up to 1. Nothing overflows.",
    "`list_transform(x, lambda v: exp(v - list_max(x)) / list_sum(list_transform(x, lambda w: exp(w - list_max(x)))))`."
);
scaled!(
    LOG_SOFTMAX,
    normalize::log_softmax,
    "ragged_log_softmax",
    "The logarithm of the softmax, exact where that is too small for a float.",
    "`list_transform(x, lambda v: v - ln(list_sum(list_transform(x, lambda w: exp(w)))))`."
);

/// `ragged_normalize(x [, axis [, p]])`.
pub(super) static NORMALIZE: Def = Def {
    name: "ragged_normalize",
    aliases: &[],
    arity: (1, 3),
    doc: Doc {
        section: Section::Elementwise,
        description: "Values divided by the norm of all that go together, so that its norm is 1: as `torch.nn.functional.normalize` does, by no less than 1e-12.",
        syntax: &["ragged_normalize(x [, axis [, p]])"],
        args: &[
            X,
            ALONG,
            (
                "p",
                "the order of the norm, written out, 2 if not given: 1 makes absolute values add up to 1, `'inf'` makes the largest one 1",
            ),
        ],
        missing: "NULL values stay NULL and do not count. NaN makes NaN. Integers become `Float64`.",
        duckdb: "`list_transform(x, lambda v: v / sqrt(list_sum(list_transform(x, lambda w: w * w))))`.",
        example: example!("ragged_normalize"),
    },
    plan: |plan| {
        if let Some(value) = plan.literal(2, "p", "1 or 2")? {
            match order(value) {
                Some(p) if p >= 0.0 => {}
                _ => {
                    return Err(plan.refuse(
                        2,
                        format!("(p) must be a number of 0 or more, such as 2; it is {value}"),
                    ));
                }
            }
        }
        scaled(plan)
    },
    call: |call| {
        let p = call.constant(2).and_then(order).unwrap_or(2.0);
        call.lists(&normalize::normalize(&floats(call)?, along(call), p, 1e-12)?)
    },
    fails: Fails::Values,
    infix: None,
};

/// A number as the order of a norm; NULL is 2.
fn order(value: &ScalarValue) -> Option<f64> {
    if value.is_null() {
        return Some(2.0);
    }
    if let Some(Some(text)) = value.try_as_str() {
        return (text == "inf").then_some(f64::INFINITY);
    }
    if !value.data_type().is_numeric() {
        return None;
    }
    match value.cast_to(&DataType::Float64) {
        Ok(ScalarValue::Float64(p)) => p,
        _ => None,
    }
}

fn scaled(plan: &Plan<'_>) -> Result<FieldRef> {
    let lists = plan.lists(0)?;
    plan.axis(1, &lists, "nest the rows first, with ragged_nest_agg")?;
    let leaf = match lists.leaf() {
        DataType::Null => Ok(DataType::Float64),
        leaf => normalize::output_type(plan.name(), leaf),
    };
    let leaf = leaf.map_err(|_| plan.refuse_values("numbers", lists.leaf()))?;
    Ok(nullable(lists.plain_leaf(leaf)))
}

/// The first argument; leaves without a type count as floats.
fn floats(call: &Call<'_>) -> Result<RaggedArray> {
    let x = call.ragged(0)?;
    match x.leaf_type() {
        DataType::Null => x.with_leaves(cast(x.leaves(), &DataType::Float64)?),
        _ => Ok(x),
    }
}
