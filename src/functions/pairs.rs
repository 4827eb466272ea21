//! Correlation and linear regression of the values of two lists of the same lengths.

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};

use super::aggregate::{GroupStates, MomentStatistic, Moments};
use super::args::{BatchCall, CallPlan, advise_numbers};
use super::def::{Def, FailureCase, FunctionFacts, make_nullable};
use super::doc::{Doc, FunctionSection};
use super::example;
use super::lists::{NestedListType, broadcast_together, find_ancestors_of_leaves};
use crate::array::RaggedArray;
use crate::error::{Error, Result};
use serrate_core::internal::exact::ExactSumKind;

macro_rules! pair {
    ($id:ident, $how:ident, $name:literal, $description:literal, $missing:literal, $duckdb:literal) => {
        #[doc = concat!("`", $name, "(y, x [, axis])`.")]
        pub(super) static $id: Def = Def {
            name: $name,
            aliases: &[],
            arity: (2, 3),
            doc: Doc {
                section: FunctionSection::Within,
                description: $description,
                syntax: &[concat!($name, "(y, x [, axis])")],
                args: &[
                    ("y", "a list of numbers of any depth"),
                    (
                        "x",
                        "a list with the lengths of `y` on the levels that both have; where one has fewer levels, each of its values is combined with all values below its position. Write `extract(epoch FROM time)` for times",
                    ),
                    (
                        "axis",
                        "-1, a literal, returns one result per innermost list; without it, all values of a row give one",
                    ),
                ],
                missing: $missing,
                duckdb: $duckdb,
                example: example!($name),
            },
            plan: plan_pair,
            call: |call| compute_pair(call, MomentStatistic::$how),
            facts: FunctionFacts { pairs: true, ..FunctionFacts::NONE },
            fails: FailureCase::UnequalLengths,
            infix: None,
        };
    };
}

pair!(
    CORR,
    Correlation,
    "ragged_corr",
    "Returns Pearson's correlation of two sibling lists, from exact sums, as `corr` does over rows.",
    "Pairs with a NULL are skipped. The result is NULL for fewer than two pairs and if either list is constant.",
    "`corr(y, x)` after `unnest`."
);
pair!(
    SLOPE,
    Slope,
    "ragged_regr_slope",
    "Returns the slope of the line that fits `y` over `x` best (least squares), from exact sums, as `regr_slope` does over rows.",
    "Pairs with a NULL are skipped. The result is NULL for fewer than two pairs and if all `x` are equal.",
    "`regr_slope(y, x)` after `unnest`."
);
pair!(
    INTERCEPT,
    Intercept,
    "ragged_regr_intercept",
    "Returns the value at 0 of the line that fits `y` over `x` best (least squares), from exact sums, as `regr_intercept` does over rows.",
    "Pairs with a NULL are skipped. The result is NULL for fewer than two pairs and if all `x` are equal.",
    "`regr_intercept(y, x)` after `unnest`."
);

fn plan_pair(plan: &CallPlan<'_>) -> Result<FieldRef> {
    let (y, x) = (plan.require_lists(0)?, plan.require_lists(1)?);
    for (i, lists) in [&y, &x].into_iter().enumerate() {
        let leaf = lists.leaf();
        if !(leaf.is_null() || leaf.is_integer() || leaf.is_floating()) {
            let hint = match leaf {
                t if t.is_decimal() => "; cast decimals to DOUBLE",
                t if t.is_temporal() => "; write extract(epoch FROM x) for seconds",
                t => advise_numbers(t),
            };
            return Err(plan.refuse_call(format!(
                "argument {} must be a list of numbers; its values are {leaf}{hint}",
                i + 1
            )));
        }
    }
    let deepest = find_deepest_levels(y, x);
    let Some(axis) = plan.axis(2, &deepest, "use corr, regr_slope or regr_intercept of rows")?
    else {
        return Ok(make_nullable(DataType::Float64));
    };
    if axis != deepest.depth() {
        return Err(plan.refuse_call(format!(
            "argument 3 (the axis) is axis {axis}, but must be the axis of the innermost lists; give -1, or leave the argument out"
        )));
    }
    Ok(make_nullable(deepest.to_plain_fields().remove_level(axis - 1, DataType::Float64)))
}

/// Returns the levels of the deeper argument. A level is a LargeList if it is one in either
/// argument.
fn find_deepest_levels(y: NestedListType, x: NestedListType) -> NestedListType {
    if x.depth() > y.depth() { x.widen_by(&y) } else { y.widen_by(&x) }
}

fn compute_pair(call: &BatchCall<'_>, how: MomentStatistic) -> Result<ArrayRef> {
    let Some((shape, leaves)) = broadcast_together(&[call.read_ragged(0)?, call.read_ragged(1)?])?
    else {
        return Err(Error::invalid(
            "internal error: a function of two lists has no arguments; please report it",
        ));
    };
    // There is one result per innermost list if the axis (argument 3) is given, else one per row.
    let innermost = shape.axes().len() - 1;
    let outer = if call.read_integer(2).is_some() { innermost } else { 0 };
    let results = shape.axis_len(outer)?;
    let owners = find_ancestors_of_leaves(&shape.axes()[outer..], results);
    let groups = owners.values().iter().map(|g| usize::try_from(*g).unwrap_or(usize::MAX));
    let groups: Vec<usize> = groups.collect();
    let pairs = leaves.iter().map(|leaves| Ok(cast(leaves, &DataType::Float64)?));
    let pairs: Vec<ArrayRef> = pairs.collect::<Result<_>>()?;
    let mut moments = Moments::new(how, ExactSumKind::Float);
    moments.update(&pairs, &groups)?;
    let found = moments.result(results)?;
    call.to_lists(&RaggedArray::try_new(shape.len(), shape.axes()[..outer].to_vec(), found)?)
}
