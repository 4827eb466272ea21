//! Reductions: one value per list, or one per row.

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Float64Type};
use datafusion::common::ScalarValue;

use super::args::{Call, Plan};
use super::def::{Def, Fails, nullable};
use super::doc::{Doc, Section};
use super::example;
use crate::array::list_depth;
use crate::error::{Error, Result};
use crate::kernels::reduce::{self, Reduction};

const ARGS: &[(&str, &str)] = &[
    ("x", "a list of any depth: List, LargeList or FixedSizeList"),
    (
        "axis",
        "the axis that goes, written out: -1 gives one value per innermost list, 1 one value per position across the lists of a row; without it all values of the row become one. 0, the rows, is refused: aggregate the result instead, as in `sum(ragged_sum(x))`",
    ),
];

/// Sums and products of integers overflow; other reductions take values as they are.
const fn reduction_fails(how: Reduction) -> Fails {
    match how {
        Reduction::Sum | Reduction::Prod => Fails::IntegerOverflow,
        _ => Fails::Never,
    }
}

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
            fails: reduction_fails($how),
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

reduction!(
    MEDIAN,
    Reduction::Median,
    "ragged_median",
    "The value in the middle, or the mean of the two there: `Float64` of integers, `Float32` of `Float32`.",
    "NULL values are skipped; the median of nothing is NULL. NaN makes NaN.",
    "`list_median(flatten(x))`, `list_transform(x, lambda v: list_median(v))`."
);
reduction!(
    ARGMIN,
    Reduction::ArgMin,
    "ragged_argmin",
    "Where the smallest value is, counted from 0: along an axis its place there, without one its place among all values of the row. Of several the first.",
    "NULL values take up a place and are passed over; of nothing it is NULL. NaN, if there is one, wins, as in numpy.",
    "`list_position(x, list_min(x)) - 1`."
);
reduction!(
    ARGMAX,
    Reduction::ArgMax,
    "ragged_argmax",
    "Where the largest value is, counted from 0: along an axis its place there, without one its place among all values of the row. Of several the first.",
    "NULL values take up a place and are passed over; of nothing it is NULL. NaN, if there is one, wins, as in numpy.",
    "`list_position(x, list_max(x)) - 1`."
);
reduction!(
    FIRST,
    Reduction::First,
    "ragged_first",
    "The first value that is not NULL. (`ragged_get(x, '0')` is the element at position 0, whatever it is.)",
    "NULL values are skipped; of nothing it is NULL.",
    "`list_any_value(flatten(x))`."
);
reduction!(
    LAST,
    Reduction::Last,
    "ragged_last",
    "The last value that is not NULL. (`ragged_get(x, '-1')` is the element at the last position, whatever it is.)",
    "NULL values are skipped; of nothing it is NULL.",
    "`list_last(list_filter(x, lambda v: v IS NOT NULL))`."
);
reduction!(
    NUNIQUE,
    Reduction::Nunique,
    "ragged_nunique",
    "How many different values there are.",
    "NULL does not count, NaN is one value and so is zero; of nothing it is 0.",
    "`list_unique(flatten(x))`."
);

macro_rules! spread {
    ($id:ident, $how:ident, $name:literal, $description:literal, $duckdb:literal) => {
        #[doc = concat!("`", $name, "(x [, axis [, ddof]])`.")]
        pub(super) static $id: Def = Def {
            name: $name,
            aliases: &[],
            arity: (1, 3),
            doc: Doc {
                section: Section::Reduce,
                description: $description,
                syntax: &[concat!($name, "(x [, axis [, ddof]])")],
                args: &[
                    ARGS[0],
                    ("axis", "as for `ragged_sum`; NULL for all values of the row"),
                    (
                        "ddof",
                        "what the number of values is lessened by before it divides, written out: 1 (default), the measure of a sample as in SQL, or 0, that of all there is, as in numpy",
                    ),
                ],
                missing: "NULL values are skipped; of no more than `ddof` values it is NULL. NaN makes NaN.",
                duckdb: $duckdb,
                example: example!($name),
            },
            plan: |plan| planned(plan, Reduction::$how { ddof: ddof(plan)? }),
            call: |call| {
                let ddof = call.integer(2).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
                computed(call, Reduction::$how { ddof })
            },
            fails: Fails::Never,
            infix: None,
        };
    };
}

spread!(
    VAR,
    Var,
    "ragged_var",
    "The variance: the squared distances from the mean, added up and divided by one less than their number.",
    "`list_var_samp(flatten(x))`, `list_var_pop` for `ddof` 0."
);
spread!(
    STD,
    Std,
    "ragged_std",
    "The standard deviation: the root of the variance.",
    "`list_stddev_samp(flatten(x))`, `list_stddev_pop` for `ddof` 0."
);

fn ddof(plan: &Plan<'_>) -> Result<u32> {
    let given = plan.literal_integer(2, "ddof", "0")?.unwrap_or(1);
    u32::try_from(given).map_err(|_| {
        plan.refuse(2, format!("(ddof) must be a small number such as 0 or 1; it is {given}"))
    })
}

/// `ragged_quantile(x, q [, axis])`.
pub(super) static QUANTILE: Def = Def {
    name: "ragged_quantile",
    aliases: &[],
    arity: (2, 3),
    doc: Doc {
        section: Section::Reduce,
        description: "The value that a share of `q` of the values does not exceed, linear between its two neighbours as numpy finds it. Several shares give a list of values for each.",
        syntax: &["ragged_quantile(x, q [, axis])", "ragged_quantile(x, [q, ..] [, axis])"],
        args: &[
            ARGS[0],
            ("q", "a number from 0 to 1, or a list of such, written out"),
            ("axis", "as for `ragged_sum`; without it all values of the row"),
        ],
        missing: "NULL values are skipped; of nothing it is NULL. NaN makes NaN. The quantiles of a NULL list are NULL.",
        duckdb: "`list_aggregate(flatten(x), 'quantile_cont', q)`.",
        example: example!("ragged_quantile"),
    },
    plan: |plan| {
        let lists = plan.lists(0)?;
        let axis = plan.axis(2, &lists, "use quantile_cont over unnest(x)")?;
        let out = Reduction::Median
            .output_type(lists.leaf())
            .map_err(|_| refused(plan, Reduction::Median, lists.leaf()))?;
        let such = "0.5 or [0.25, 0.75]";
        let several = match plan.literal(1, "q", such)? {
            None => false,
            Some(value) => match shares(value) {
                Some((qs, several)) if qs.iter().all(|q| (0.0..=1.0).contains(q)) => several,
                _ => {
                    return Err(plan.refuse(
                        1,
                        format!("(q) must be a number from 0 to 1 such as {such}; it is {value}"),
                    ));
                }
            },
        };
        let out = if several { DataType::new_list(out, true) } else { out };
        Ok(nullable(match axis {
            None => out,
            Some(axis) => lists.plain().without(axis - 1, out),
        }))
    },
    call: |call| {
        let x = call.ragged(0)?;
        let axis = call.integer(2);
        match call.constant(1).and_then(shares) {
            Some((qs, true)) => call.lists(&reduce::quantiles(&x, &qs, axis)?),
            Some((qs, false)) if qs.len() == 1 => call.lists(&reduce::quantile(&x, qs[0], axis)?),
            _ => Err(Error::invalid("ragged_quantile: q must be written out")),
        }
    },
    fails: Fails::Values,
    infix: None,
};

/// The shares asked for, and whether they were a list.
fn shares(value: &ScalarValue) -> Option<(Vec<f64>, bool)> {
    let list = list_depth(&value.data_type()) == 1;
    let array = match value {
        ScalarValue::List(a) if list => a.value(0),
        ScalarValue::LargeList(a) if list => a.value(0),
        ScalarValue::FixedSizeList(a) if list => a.value(0),
        value if value.data_type().is_numeric() => value.to_array_of_size(1).ok()?,
        _ => return None,
    };
    let array = cast(&array, &DataType::Float64).ok()?;
    let numbers = array.as_primitive::<Float64Type>();
    let all = numbers.iter().collect::<Option<Vec<f64>>>()?;
    (!value.is_null()).then_some((all, list))
}

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
    plan.refuse_values(format_args!("values that have a {}", how.name()), leaf)
}

fn computed(call: &Call<'_>, how: Reduction) -> Result<ArrayRef> {
    call.lists(&reduce::reduce(&call.ragged(0)?, how, call.integer(1))?)
}
