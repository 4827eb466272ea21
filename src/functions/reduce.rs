//! Reductions of lists to one value per list or per row.

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Float64Type};
use datafusion::common::ScalarValue;

use super::args::{BatchCall, CallPlan};
use super::def::{Def, FailureCase, FunctionFacts, make_nullable};
use super::doc::{Doc, FunctionSection};
use super::example;
use crate::array::list_depth;
use crate::error::{Error, Result};
use crate::kernels::reduce::{self, Reduction};

const ARGS: &[(&str, &str)] = &[
    ("x", "a list of any depth: List, LargeList or FixedSizeList"),
    (
        "axis",
        "the axis to reduce, a literal: -1 returns one value per innermost list, 1 one value per position across the lists of a row. Without it, all values of a row are reduced to one. Axis 0, the rows, is refused: aggregate the result instead, as in `sum(ragged_sum(x))`",
    ),
];

/// Returns the condition under which a reduction can fail: sums and products fail if integers
/// overflow, others never.
const fn find_reduction_fails(how: Reduction) -> FailureCase {
    match how {
        Reduction::Sum | Reduction::Prod => FailureCase::IntegerOverflow,
        _ => FailureCase::Never,
    }
}

const fn find_reduction_facts(how: Reduction) -> FunctionFacts {
    use Reduction::{ArgMax, ArgMin, First, Last, Max, Mean, Median, Min, Mode, Nunique, Std, Var};
    let instead_of: &[&str] = match how {
        First => &["first_value"],
        Last => &["last_value"],
        Mean => &["avg"],
        Std { .. } => &["stddev", "stddev_pop", "stddev_samp"],
        Var { .. } => &["var_pop", "var_samp", "var_sample", "var_population"],
        _ => &[],
    };
    let compares = matches!(how, ArgMax | ArgMin | Max | Median | Min | Mode | Nunique);
    FunctionFacts { compares, instead_of, ..FunctionFacts::REDUCES }
}

macro_rules! reduction {
    ($id:ident, $how:expr, $name:literal, $description:literal, $missing:literal, $duckdb:literal) => {
        #[doc = concat!("`", $name, "(x [, axis])`.")]
        pub(super) static $id: Def = Def {
            name: $name,
            arity: (1, 2),
            doc: Doc {
                section: FunctionSection::Reduce,
                description: $description,
                syntax: &[concat!($name, "(x [, axis])")],
                args: ARGS,
                missing: $missing,
                duckdb: $duckdb,
                example: example!($name),
            },
            plan: |plan| plan_reduction(plan, $how),
            call: |call| compute_reduction(call, $how),
            fails: find_reduction_fails($how),
            facts: find_reduction_facts($how),
            ..Def::DEFAULTS
        };
    };
}

reduction!(
    SUM,
    Reduction::Sum,
    "ragged_sum",
    "Returns the sum. The sum of integers is a 64-bit integer (`UInt64` for unsigned ones), and overflow is an error. `Float32` stays `Float32` and is accumulated in 64 bits.",
    "NULL values are skipped. The sum of an empty list is 0, and that of a NULL list is NULL. If any value is NaN, the sum is NaN.",
    "`list_sum(flatten(x))`, `list_transform(x, lambda v: list_sum(v))`."
);
reduction!(
    MEAN,
    Reduction::Mean,
    "ragged_mean",
    "Returns the arithmetic mean: `Float64` for integers, `Float32` for `Float32` (accumulated in 64 bits). The mean of durations is a duration of the same unit: it is exact until it is rounded to the unit, halves away from zero, as `avg` of rows is.",
    "NULL values are skipped and not counted. The mean is NULL if there are no values. If any value is NaN, the mean is NaN.",
    "`list_avg(flatten(x))`, `list_transform(x, lambda v: list_avg(v))`."
);
reduction!(
    MIN,
    Reduction::Min,
    "ragged_min",
    "Returns the smallest value of numbers, dates, times or strings, in their type.",
    "NULL values are skipped. The result is NULL if there are no values, and NaN if any value is NaN, as in numpy.",
    "`list_min(flatten(x))`, `list_transform(x, lambda v: list_min(v))`."
);
reduction!(
    MAX,
    Reduction::Max,
    "ragged_max",
    "Returns the largest value of numbers, dates, times or strings, in their type.",
    "NULL values are skipped. The result is NULL if there are no values, and NaN if any value is NaN, as in numpy.",
    "`list_max(flatten(x))`, `list_transform(x, lambda v: list_max(v))`."
);
reduction!(
    PROD,
    Reduction::Prod,
    "ragged_prod",
    "Returns the product. The product of integers is a 64-bit integer (`UInt64` for unsigned ones), and overflow is an error. `Float32` stays `Float32` and is accumulated in 64 bits.",
    "NULL values are skipped. The product of an empty list is 1, and that of a NULL list is NULL. If any value is NaN, the product is NaN.",
    "`list_product(flatten(x))`."
);

reduction!(
    MEDIAN,
    Reduction::Median,
    "ragged_median",
    "Returns the median: the middle value, or the mean of the two middle values. It is `Float64` for integers and `Float32` for `Float32`. The median of durations is a duration of the same unit: it is exact until it is rounded to the unit, halves up, as `median` of rows is.",
    "NULL values are skipped. The median is NULL if there are no values. If any value is NaN, the median is NaN.",
    "`list_median(flatten(x))`, `list_transform(x, lambda v: list_median(v))`."
);
reduction!(
    ARGMIN,
    Reduction::ArgMin,
    "ragged_argmin",
    "Returns the position of the smallest value, counted from 0: its position along the axis or, without an axis, among all values of the row. If several values are smallest, it is the first of them.",
    "NULL values count as positions, but are never chosen. The result is NULL if there are no values. If there is a NaN, the result is the position of the first NaN, as in numpy.",
    "`list_position(x, list_min(x)) - 1`."
);
reduction!(
    ARGMAX,
    Reduction::ArgMax,
    "ragged_argmax",
    "Returns the position of the largest value, counted from 0: its position along the axis or, without an axis, among all values of the row. If several values are largest, it is the first of them.",
    "NULL values count as positions, but are never chosen. The result is NULL if there are no values. If there is a NaN, the result is the position of the first NaN, as in numpy.",
    "`list_position(x, list_max(x)) - 1`."
);
reduction!(
    FIRST,
    Reduction::First,
    "ragged_first",
    "Returns the first value that is not NULL. (`ragged_get(x, '0')` returns the element at position 0, NULL or not.)",
    "NULL values are skipped. The result is NULL if there are no values.",
    "`list_any_value(flatten(x))`."
);
reduction!(
    LAST,
    Reduction::Last,
    "ragged_last",
    "Returns the last value that is not NULL. (`ragged_get(x, '-1')` returns the element at the last position, NULL or not.)",
    "NULL values are skipped. The result is NULL if there are no values.",
    "`list_last(list_filter(x, lambda v: v IS NOT NULL))`."
);
reduction!(
    NUNIQUE,
    Reduction::Nunique,
    "ragged_nunique",
    "Returns the number of different values.",
    "NULL values are not counted. All NaN are one value, and 0.0 equals -0.0. The result is 0 if there are no values.",
    "`list_unique(flatten(x))`."
);

reduction!(
    MODE,
    Reduction::Mode,
    "ragged_mode",
    "Returns the most frequent value of numbers, booleans, dates, times or strings, in their type; the smallest if several are equally frequent.",
    "NULL values are skipped. The result is NULL if there are no values. All NaN are one value, which is greater than any number, and 0.0 equals -0.0.",
    "`list_mode(flatten(x))`, `list_transform(x, lambda v: list_mode(v))`; of several, it returns the first."
);

macro_rules! spread {
    ($id:ident, $how:ident, $name:literal, $description:literal, $duckdb:literal) => {
        #[doc = concat!("`", $name, "(x [, axis [, ddof]])`.")]
        pub(super) static $id: Def = Def {
            name: $name,
            arity: (1, 3),
            doc: Doc {
                section: FunctionSection::Reduce,
                description: $description,
                syntax: &[concat!($name, "(x [, axis [, ddof]])")],
                args: &[
                    ARGS[0],
                    ("axis", "as for `ragged_sum`; NULL reduces all values of a row"),
                    (
                        "ddof",
                        "delta degrees of freedom, a literal: the divisor is the number of values minus `ddof`. 1 (default) gives the statistic of a sample, as in SQL; 0 that of a population, as in numpy",
                    ),
                ],
                missing: "NULL values are skipped. The result is NULL if there are at most `ddof` values, and NaN if any value is NaN.",
                duckdb: $duckdb,
                example: example!($name),
            },
            plan: |plan| plan_reduction(plan, Reduction::$how { ddof: parse_ddof(plan)? }),
            call: |call| {
                let ddof = call.read_integer(2).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
                compute_reduction(call, Reduction::$how { ddof })
            },
            fails: FailureCase::Never,
            facts: find_reduction_facts(Reduction::$how { ddof: 1 }),
            ..Def::DEFAULTS
        };
    };
}

spread!(
    VAR,
    Var,
    "ragged_var",
    "Returns the variance: the sum of squared distances from the mean, divided by the number of values minus `ddof`.",
    "`list_var_samp(flatten(x))`, `list_var_pop` for `ddof` 0."
);
spread!(
    STD,
    Std,
    "ragged_std",
    "Returns the standard deviation: the square root of the variance.",
    "`list_stddev_samp(flatten(x))`, `list_stddev_pop` for `ddof` 0."
);

fn parse_ddof(plan: &CallPlan<'_>) -> Result<u32> {
    let given = plan.find_literal_integer(2, "ddof", "0")?.unwrap_or(1);
    u32::try_from(given).map_err(|_| {
        plan.refuse_call(format!(
            "argument 3 (ddof) must be an integer from 0 to 4294967295, such as 0 or 1; it is {given}"
        ))
    })
}

pub(super) static QUANTILE: Def = Def {
    name: "ragged_quantile",
    arity: (2, 3),
    doc: Doc {
        section: FunctionSection::Reduce,
        description: "Returns the quantile `q`: the value below which a fraction `q` of the values lies. It is interpolated linearly between the two nearest values, as in numpy. A list of quantiles returns a list of results. A quantile of durations is a duration of the same unit: it is interpolated exactly and rounded to the unit, halves up.",
        syntax: &["ragged_quantile(x, q [, axis])", "ragged_quantile(x, [q, ..] [, axis])"],
        args: &[
            ARGS[0],
            ("q", "a number from 0 to 1 or a list of such numbers, as a literal"),
            ("axis", "as for `ragged_sum`; without it, all values of a row are reduced"),
        ],
        missing: "NULL values are skipped. The result is NULL if there are no values, and NaN if any value is NaN. A NULL list has NULL in place of its list of quantiles.",
        duckdb: "`list_aggregate(flatten(x), 'quantile_cont', q)`.",
        example: example!("ragged_quantile"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        let axis = plan.axis(2, &lists, "use quantile_cont over unnest(x)")?;
        let out = Reduction::Median
            .output_type(lists.leaf())
            .map_err(|_| refuse_leaf(plan, Reduction::Median, lists.leaf()))?;
        let such = "0.5 or [0.25, 0.75]";
        let is_list = match plan.require_literal(1, "q", such)? {
            None => false,
            Some(value) => match find_literal_quantiles(value) {
                Some(LiteralQuantiles::One(q)) if is_fraction(q) => false,
                Some(LiteralQuantiles::List(qs)) if qs.iter().copied().all(is_fraction) => true,
                _ => {
                    return Err(plan.refuse_call(format!(
                        "argument 2 (q) must be a number from 0 to 1 such as {such}; it is {value}"
                    )));
                }
            },
        };
        let out = if is_list { DataType::new_list(out, true) } else { out };
        Ok(make_nullable(match axis {
            None => out,
            Some(axis) => lists.to_plain_fields().remove_level(axis - 1, out),
        }))
    },
    call: |call| {
        let x = call.read_ragged(0)?;
        let axis = call.read_integer(2);
        match call.find_constant(1).and_then(find_literal_quantiles) {
            Some(LiteralQuantiles::List(qs)) => call.to_lists(&reduce::quantiles(&x, &qs, axis)?),
            Some(LiteralQuantiles::One(q)) => call.to_lists(&reduce::quantile(&x, q, axis)?),
            None => Err(Error::invalid(
                "ragged_quantile: argument 2 (q) must be a literal such as 0.5; it is another expression",
            )),
        }
    },
    facts: FunctionFacts {
        instead_of: &["percentile_cont", "quantile_cont", "approx_percentile_cont"],
        ..FunctionFacts::COMPARES
    },
    ..Def::DEFAULTS
};

/// The argument `q` of `ragged_quantile`.
enum LiteralQuantiles {
    One(f64),
    List(Vec<f64>),
}

fn is_fraction(q: f64) -> bool {
    (0.0..=1.0).contains(&q)
}

/// Returns the quantiles in a literal. Returns `None` unless the literal is a number or a list of
/// numbers, without NULL.
fn find_literal_quantiles(value: &ScalarValue) -> Option<LiteralQuantiles> {
    if value.is_null() {
        return None;
    }
    let is_list = list_depth(&value.data_type()) == 1;
    let array = match value {
        ScalarValue::List(a) if is_list => a.value(0),
        ScalarValue::LargeList(a) if is_list => a.value(0),
        ScalarValue::FixedSizeList(a) if is_list => a.value(0),
        value if value.data_type().is_numeric() => value.to_array_of_size(1).ok()?,
        _ => return None,
    };
    let array = cast(&array, &DataType::Float64).ok()?;
    let numbers = array.as_primitive::<Float64Type>();
    let all = numbers.iter().collect::<Option<Vec<f64>>>()?;
    match (is_list, all.as_slice()) {
        (true, _) => Some(LiteralQuantiles::List(all)),
        (false, &[q]) => Some(LiteralQuantiles::One(q)),
        (false, _) => None,
    }
}

fn plan_reduction(plan: &CallPlan<'_>, how: Reduction) -> Result<FieldRef> {
    let lists = plan.require_lists(0)?;
    let across = format!("aggregate its result instead, as in {}({}(x))", how.name(), plan.name());
    let axis = plan.axis(1, &lists, &across)?;
    let out = how.output_type(lists.leaf()).map_err(|_| refuse_leaf(plan, how, lists.leaf()))?;
    Ok(make_nullable(match axis {
        None => out,
        Some(axis) => lists.to_plain_fields().remove_level(axis - 1, out),
    }))
}

fn refuse_leaf(plan: &CallPlan<'_>, how: Reduction, leaf: &DataType) -> Error {
    plan.make_values_error(
        format_args!("values from which the {} can be computed", how.name()),
        leaf,
    )
}

pub(super) fn compute_reduction(call: &BatchCall<'_>, how: Reduction) -> Result<ArrayRef> {
    call.to_lists(&reduce::reduce(&call.read_ragged(0)?, how, call.read_integer(1))?)
}
