//! Functions along lists: cumulative sums, differences, shifts, and NULL values filled from
//! neighbors.

use arrow::datatypes::FieldRef;

use super::args::CallPlan;
use super::choose::cast_scalar;
use super::def::{Def, FunctionFacts, make_nullable};
use super::doc::{Doc, FunctionSection, X};
use super::example;
use super::index::plan_retyped_field;
use super::lists::NestedListType;
use super::mixed_times::refuse_numbers_as_times;
use crate::array::list_depth;
use crate::error::Result;
use crate::kernels::running::{self, RunningOp};

const AXIS: (&str, &str) = (
    "axis",
    "the axis to run along, a literal; -1, each innermost list, by default. Along an outer axis, the values at the same position of its lists form a sequence",
);
const ROWS: &str = "use a window function over the rows, OVER (ORDER BY ..)";

macro_rules! cumulative {
    ($id:ident, $how:ident, $name:literal, $description:literal, $missing:literal, $duckdb:literal) => {
        #[doc = concat!("`", $name, "(x [, axis])`.")]
        pub(super) static $id: Def = Def {
            name: $name,
            arity: (1, 2),
            doc: Doc {
                section: FunctionSection::Running,
                description: $description,
                syntax: &[concat!($name, "(x [, axis])")],
                args: &[X, AXIS],
                missing: $missing,
                duckdb: $duckdb,
                example: example!($name),
            },
            plan: |plan| {
                let lists = plan.require_lists(0)?;
                plan.axis(1, &lists, ROWS)?;
                let out = RunningOp::$how
                    .output_type(lists.leaf())
                    .map_err(|_| refuse_leaf(plan, &lists))?;
                Ok(make_nullable(lists.make_plain_leaf(out)))
            },
            call: |call| {
                let (x, axis) = (call.read_ragged(0)?, call.read_integer(1).unwrap_or(-1));
                // Lists whose leaves have the type Null are returned unchanged.
                if NestedListType::from_type(call.return_type()).leaf().is_null() {
                    return call.to_lists(&x);
                }
                call.to_lists(&running::running(&x, RunningOp::$how, axis)?)
            },
            facts: FunctionFacts {
                compares: matches!(RunningOp::$how, RunningOp::Max | RunningOp::Min),
                ..FunctionFacts::NONE
            },
            ..Def::DEFAULTS
        };
    };
}

cumulative!(
    CUMSUM,
    Sum,
    "ragged_cumsum",
    "Returns the running sum: each value plus all values before it in its list. Sums of integers are 64-bit integers, and overflow is an error; `Float32` stays `Float32` and is accumulated in 64 bits.",
    "NULL values stay NULL and are skipped. After a NaN, all results are NaN.",
    "`list_transform(x, lambda v, i: list_sum(x[:i]))`."
);
cumulative!(
    CUMPROD,
    Prod,
    "ragged_cumprod",
    "Returns the running product: each value times all values before it in its list. Products of integers are 64-bit integers, and overflow is an error.",
    "NULL values stay NULL and are skipped. After a NaN, all results are NaN.",
    "`list_transform(x, lambda v, i: list_product(x[:i]))`."
);
cumulative!(
    CUMMIN,
    Min,
    "ragged_cummin",
    "Returns the running minimum: the smallest of each value and all values before it in its list.",
    "NULL values stay NULL and are skipped. After a NaN, all results are NaN.",
    "`list_transform(x, lambda v, i: list_min(x[:i]))`."
);
cumulative!(
    CUMMAX,
    Max,
    "ragged_cummax",
    "Returns the running maximum: the largest of each value and all values before it in its list.",
    "NULL values stay NULL and are skipped. After a NaN, all results are NaN.",
    "`list_transform(x, lambda v, i: list_max(x[:i]))`."
);

fn refuse_leaf(plan: &CallPlan<'_>, lists: &NestedListType) -> crate::Error {
    plan.make_values_error("numbers or times", lists.leaf())
}

pub(super) static DIFF: Def = Def {
    name: "ragged_diff",
    arity: (1, 3),
    doc: Doc {
        section: FunctionSection::Running,
        description: "Returns each value minus the value before it in its list, and NULL for the first one, so that lists keep their lengths. The difference of times is a duration.",
        syntax: &["ragged_diff(x [, n [, axis]])"],
        args: &[
            X,
            (
                "n",
                "the distance to the earlier value, a literal; 1 by default. With a negative distance, a later value is subtracted",
            ),
            AXIS,
        ],
        missing: "If either value is NULL, the difference is NULL. Along an outer axis, the earlier value is that of the list `n` lists before; if that list is too short to have one, the difference is NULL. Differences of integers are `Int64`, and overflow is an error.",
        duckdb: "`list_transform(x, lambda v, i: v - x[i - 1])`.",
        example: example!("ragged_diff"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        plan.find_literal_integer(1, "n", "1")?;
        plan.axis(2, &lists, ROWS)?;
        let out = running::find_diff_type(lists.leaf()).map_err(|_| refuse_leaf(plan, &lists))?;
        Ok(make_nullable(lists.make_plain_leaf(out)))
    },
    call: |call| {
        let (n, axis) = (call.read_integer(1).unwrap_or(1), call.read_integer(2).unwrap_or(-1));
        call.to_lists(&running::diff(&call.read_ragged(0)?, n, axis)?)
    },
    ..Def::DEFAULTS
};

pub(super) static SHIFT: Def = Def {
    name: "ragged_shift",
    arity: (2, 4),
    doc: Doc {
        section: FunctionSection::Running,
        description: "Moves the values of each list by `n` positions: each position gets the value `n` positions before it. `x - ragged_shift(x, 1)` returns differences.",
        syntax: &["ragged_shift(x, n [, fill [, axis]])"],
        args: &[
            X,
            ("n", "the distance, a literal; a negative distance gets later values"),
            (
                "fill",
                "the value for positions that have no value to get, a literal; NULL by default",
            ),
            AXIS,
        ],
        missing: "Lists keep their lengths. NULL values move like others. Along an outer axis, `n` counts lists, and a list that is too short to have the position has no value to get.",
        duckdb: "`[NULL] || x[:-2]`.",
        example: example!("ragged_shift"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        if plan.find_literal_integer(1, "n", "1")?.is_none() {
            return Err(plan.refuse_call("argument 2 (n) must be an integer such as 1; it is NULL"));
        }
        if plan.require_literal(2, "the fill value", "0")?.is_some() && !plan.is_untyped_null(2) {
            let found = plan.data_type(2);
            if list_depth(found) > 0 || !arrow::compute::can_cast_types(found, lists.leaf()) {
                return Err(plan.refuse_call(format!(
                    "argument 3 (fill) must fit the values, which are {}; it is {found}, so cast it first",
                    lists.leaf()
                )));
            }
            refuse_numbers_as_times(plan, 2, found, lists.leaf())?;
        }
        plan.axis(3, &lists, ROWS)?;
        plan_retyped_field(plan, lists.open())
    },
    call: |call| {
        let x = call.read_ragged(0)?;
        let (n, axis) = (call.read_integer(1).unwrap_or(1), call.read_integer(3).unwrap_or(-1));
        let fill = match call.find_constant(2) {
            Some(value) if !value.is_null() => Some(cast_scalar(call, 2, x.leaf_type())?),
            _ => None,
        };
        call.to_lists(&running::shift(&x, n, fill.as_ref(), axis)?)
    },
    facts: FunctionFacts { instead_of: &["lag", "lead"], ..FunctionFacts::NONE },
    ..Def::DEFAULTS
};

macro_rules! filled {
    ($id:ident, $kernel:path, $name:literal, $description:literal, $missing:literal, $duckdb:literal) => {
        #[doc = concat!("`", $name, "(x [, axis])`.")]
        pub(super) static $id: Def = Def {
            name: $name,
            arity: (1, 2),
            doc: Doc {
                section: FunctionSection::Running,
                description: $description,
                syntax: &[concat!($name, "(x [, axis])")],
                args: &[X, AXIS],
                missing: $missing,
                duckdb: $duckdb,
                example: example!($name),
            },
            plan: plan_filling,
            call: |call| {
                call.to_lists(&$kernel(&call.read_ragged(0)?, call.read_integer(1).unwrap_or(-1))?)
            },
            ..Def::DEFAULTS
        };
    };
}

filled!(
    FFILL,
    running::forward_fill,
    "ragged_ffill",
    "Replaces each NULL value by the last valid value before it in its list.",
    "NULL values at the start of a list stay NULL, and so do NULL lists. NaN is a value.",
    "`list_transform(x, lambda v, i: list_last(list_filter(x[:i], lambda w: w IS NOT NULL)))`."
);
filled!(
    BFILL,
    running::backward_fill,
    "ragged_bfill",
    "Replaces each NULL value by the next valid value after it in its list.",
    "NULL values at the end of a list stay NULL, and so do NULL lists. NaN is a value.",
    "`list_transform(x, lambda v, i: list_any_value(x[i:]))`."
);

fn plan_filling(plan: &CallPlan<'_>) -> Result<FieldRef> {
    let lists = plan.require_lists(0)?;
    plan.axis(1, &lists, ROWS)?;
    plan_retyped_field(plan, lists.open())
}
