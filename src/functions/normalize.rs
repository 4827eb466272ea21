//! Functions that scale the values of lists along an axis, such as softmax.

use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;

use super::args::{BatchCall, CallPlan};
use super::def::{Def, make_nullable};
use super::doc::{Doc, FunctionSection};
use super::example;
use crate::array::RaggedArray;
use crate::error::Result;
use crate::kernels::normalize;

const X: (&str, &str) = ("x", "a list of any depth of numbers");

fn call_axis(call: &BatchCall<'_>) -> i64 {
    call.read_integer(1).unwrap_or(-1)
}

const ALONG: (&str, &str) = (
    "axis",
    "the axis to normalize along, a literal; -1, each innermost list, by default. Along an outer axis, the values at the same position of its lists form a group",
);

macro_rules! scaled {
    ($id:ident, $kernel:path, $name:literal, $description:literal, $duckdb:literal) => {
        #[doc = concat!("`", $name, "(x [, axis])`.")]
        pub(super) static $id: Def = Def {
            name: $name,
            arity: (1, 2),
            doc: Doc {
                section: FunctionSection::Elementwise,
                description: $description,
                syntax: &[concat!($name, "(x [, axis])")],
                args: &[X, ALONG],
                missing: "NULL values stay NULL and are not counted. If a value of a group is NaN, the whole group becomes NaN. Integers become `Float64`.",
                duckdb: $duckdb,
                example: example!($name),
            },
            plan: plan_scaled,
            call: |call| call.to_lists(&$kernel(&read_floats(call)?, call_axis(call))?),
            ..Def::DEFAULTS
        };
    };
}

scaled!(
    SOFTMAX,
    normalize::softmax,
    "ragged_softmax",
    "Returns the softmax: `exp(v)` divided by the sum of `exp` over the group, so that the results add up to 1. It does not overflow.",
    "`list_transform(x, lambda v: exp(v - list_max(x)) / list_sum(list_transform(x, lambda w: exp(w - list_max(x)))))`."
);
scaled!(
    LOG_SOFTMAX,
    normalize::log_softmax,
    "ragged_log_softmax",
    "Returns the logarithm of the softmax. It is accurate even if the softmax is too small for a float.",
    "`list_transform(x, lambda v: v - ln(list_sum(list_transform(x, lambda w: exp(w)))))`."
);

pub(super) static NORMALIZE: Def = Def {
    name: "ragged_normalize",
    arity: (1, 3),
    doc: Doc {
        section: FunctionSection::Elementwise,
        description: "Divides values by the norm of their group, so that the norm becomes 1. Norms below 1e-12 count as 1e-12, as in `torch.nn.functional.normalize`.",
        syntax: &["ragged_normalize(x [, axis [, p]])"],
        args: &[
            X,
            ALONG,
            (
                "p",
                "the order of the norm, a literal; 2 by default. With 1 the absolute values add up to 1, with `'inf'` the largest absolute value becomes 1",
            ),
        ],
        missing: "NULL values stay NULL and are not counted. If a value of a group is NaN, the whole group becomes NaN, unless `p` is 0. Integers become `Float64`.",
        duckdb: "`list_transform(x, lambda v: v / sqrt(list_sum(list_transform(x, lambda w: w * w))))`.",
        example: example!("ragged_normalize"),
    },
    plan: |plan| {
        if let Some(value) = plan.require_literal(2, "p", "1 or 2")? {
            match find_norm_order(value) {
                Some(p) if p >= 0.0 => {}
                _ => {
                    return Err(plan.refuse_call(format!(
                        "argument 3 (p) must be a number of 0 or more, such as 2; it is {value}"
                    )));
                }
            }
        }
        plan_scaled(plan)
    },
    call: |call| {
        let p = call.find_constant(2).and_then(find_norm_order).unwrap_or(2.0);
        call.to_lists(&normalize::normalize(&read_floats(call)?, call_axis(call), p, 1e-12)?)
    },
    ..Def::DEFAULTS
};

/// Returns the order `p` of a norm (2 for NULL), or `None` if the value is neither a number nor
/// 'inf'.
fn find_norm_order(value: &ScalarValue) -> Option<f64> {
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

fn plan_scaled(plan: &CallPlan<'_>) -> Result<FieldRef> {
    let lists = plan.require_lists(0)?;
    plan.axis(1, &lists, "nest the rows first with ragged_nest_agg")?;
    let leaf = match lists.leaf() {
        DataType::Null => Ok(DataType::Float64),
        leaf => normalize::output_type(plan.name(), leaf),
    };
    let leaf = leaf.map_err(|_| plan.make_values_error("numbers", lists.leaf()))?;
    Ok(make_nullable(lists.make_plain_leaf(leaf)))
}

/// Returns the first argument as a ragged array. Leaves of type Null become floats.
fn read_floats(call: &BatchCall<'_>) -> Result<RaggedArray> {
    let x = call.read_ragged(0)?;
    match x.leaf_type() {
        DataType::Null => x.with_leaves(cast(x.leaves(), &DataType::Float64)?),
        _ => Ok(x),
    }
}
