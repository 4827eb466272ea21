//! Functions that select or reduce windows of list elements: elements within a span of time, or `n`
//! consecutive elements.

use arrow::array::{ArrayRef, new_empty_array};
use arrow::datatypes::{DataType, FieldRef, IntervalUnit, TimeUnit};
use datafusion::common::ScalarValue;
use serrate_core::internal::cast_strictly;
use serrate_core::internal::times::{count_nanoseconds, make_span_formatter};

use super::args::{BatchCall, CallPlan};
use super::def::{Def, FailureCase, FunctionFacts, make_nullable};
use super::doc::{Doc, FunctionSection};
use super::example;
use super::lists::NestedListType;
use super::naming;
use super::structs::find_type_below;
use crate::array::RaggedArray;
use crate::error::{Error, Result};
use crate::kernels::between::ClosedEnds;
use crate::kernels::reduce::Reduction;
use crate::kernels::window::{self, TimeWindow, WindowReach};

const X: (&str, &str) = ("x", "a list of any depth");
const TIME: (&str, &str) = (
    "time",
    "the times of the elements, or numbers: a list with the lengths of `x` on its own levels; if `x` is deeper, the times of whole elements of an outer axis. Lists that are not in ascending order are sorted first, with their elements",
);
const AT: (&str, &str) = (
    "at",
    "the times to look from: a list for each list of `time`, of any length, or one time. It may be a column, and `time` itself. Strings are parsed as times",
);
const HOW: &str = "`'any'`, `'all'`, `'count'`, `'sum'`, `'mean'`, `'median'`, `'quantile'`, `'min'`, `'max'`, `'first'` or `'last'`, a literal";
const Q: (&str, &str) =
    ("q", "which quantile, a literal from 0 to 1, for `how => 'quantile'`; 0.5 is the median");

pub(super) static WINDOW: Def = Def {
    name: "ragged_window",
    aliases: &[],
    arity: (3, 8),
    doc: Doc {
        section: FunctionSection::Within,
        description: "Reduces, for each time of `at`, the values of `x` whose times lie within the window around it: after `at - before`, up to and including `at + after`. The result has the lists of `at`. Without `how` it returns the elements of each window as a list, for any other function: `ragged_median(ragged_window(x, time, at, before => INTERVAL '30 days'), -1)`. With `how`, the cost does not grow with the length of the windows; for quantiles, it grows with the logarithm of this length.",
        syntax: &["ragged_window(x, time, at [, how [, before [, after [, closed [, q]]]]])"],
        args: &[
            X,
            TIME,
            AT,
            (
                "how",
                "`'any'`, `'all'`, `'count'`, `'sum'`, `'mean'`, `'median'`, `'quantile'`, `'min'`, `'max'`, `'first'` or `'last'`, a literal; NULL returns lists. They reduce as `ragged_any`, `ragged_sum` and so on do, except that sums of floats are exact before they are rounded. Means, medians and quantiles of durations are durations, rounded to their unit",
            ),
            (
                "before",
                "how far the window reaches back, a literal: an interval for times, a number for numbers, or `'unbounded'`. Months, and days of times with a zone, follow the calendar. By default 0 if `after` is given, else unbounded",
            ),
            ("after", "how far the window reaches forward, likewise; 0 by default"),
            (
                "closed",
                "which ends are included, a literal: `'(]'` or `'right'` (default), `'[]'` or `'both'`, `'[)'` or `'left'`, `'()'` or `'none'`",
            ),
            Q,
        ],
        missing: "NULL values are skipped, and values whose time is NULL lie in no window. An empty window has the count 0, the sum 0 and no mean or median: it is reduced as an empty list. A NULL time of `at` returns NULL, and every time does if the list `x` or `time` is NULL. A NULL list `at` stays NULL. NaN among the values makes sums, means, medians, quantiles, minima and maxima NaN; NaN among the times sorts after all numbers.",
        duckdb: "`sum(x) OVER (ORDER BY time RANGE BETWEEN INTERVAL '30 days' PRECEDING AND CURRENT ROW)` after `unnest`, for `at` equal to `time`; it includes both ends.",
        example: example!("ragged_window"),
    },
    plan: plan_window,
    call: compute_window,
    facts: FunctionFacts { pairs: true, ..FunctionFacts::NONE },
    fails: FailureCase::Values,
    infix: None,
};

pub(super) static ASOF: Def = Def {
    name: "ragged_asof",
    aliases: &[],
    arity: (3, 3),
    doc: Doc {
        section: FunctionSection::Within,
        description: "Returns, for each time of `at`, the element of `x` with the greatest time that is not after it, the last of several. `ragged_asof(time, time, at)` returns the time of that element, and `at - ragged_asof(time, time, at)` its age.",
        syntax: &["ragged_asof(x, time, at)"],
        args: &[X, TIME, AT],
        missing: "The element is returned as it is, NULL or not: filter `x` and `time` first to carry the last value forward. The result is NULL if no time is early enough, for a NULL time of `at`, and for every time if the list `x` or `time` is NULL. A NULL list `at` stays NULL. Elements whose time is NULL are never returned.",
        duckdb: "`ASOF JOIN` after `unnest`.",
        example: example!("ragged_asof"),
    },
    plan: |plan| {
        let shape = check_times(plan)?;
        check_types(plan, None)?;
        let element = find_type_below(&shape.x.open(), shape.levels).clone();
        Ok(make_nullable(shape.at.make_plain_leaf(element)))
    },
    call: |call| {
        let (x, time, at) = read_lists(call)?;
        call.to_lists(&window::asof(&x, &time, &at)?)
    },
    facts: FunctionFacts::NONE,
    fails: FailureCase::Values,
    infix: None,
};

pub(super) static ROLLING: Def = Def {
    name: "ragged_rolling",
    aliases: &[],
    arity: (3, 5),
    doc: Doc {
        section: FunctionSection::Within,
        description: "Reduces each value and the `n - 1` values before it in its innermost list: `ragged_rolling(x, 3, 'mean')` is the moving average of three. (`ragged_window(x, time, time, 'mean', before => INTERVAL '30 days')` moves by a span of time.)",
        syntax: &["ragged_rolling(x, n, how [, min_samples [, q]])"],
        args: &[
            X,
            ("n", "the number of elements of a window, a literal"),
            ("how", HOW),
            (
                "min_samples",
                "the number of values that are not NULL which a window needs, a literal; `n` by default, as in Polars. 1 also reduces the shorter windows at the start of a list",
            ),
            Q,
        ],
        missing: "Lists keep their lengths, and a NULL list stays NULL. NULL values are skipped, and a window with fewer than `min_samples` values is NULL. NaN makes sums, means, medians, quantiles, minima and maxima NaN. Sums of floats are exact before they are rounded. Means, medians and quantiles of durations are durations, rounded to their unit.",
        duckdb: "`list_transform(x, lambda v, i: list_avg(x[greatest(i - n + 1, 1):i]))`, which is `min_samples` 1. In Polars: `rolling_mean(n)`.",
        example: example!("ragged_rolling"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        if matches!(plan.data_type(1), DataType::Interval(_) | DataType::Duration(_)) {
            return Err(plan.refuse_call(
                "argument 2 (n) must be a number of elements such as 3, but is a span of time; write ragged_window(x, time, time, 'mean', before => INTERVAL '3 days') for windows of time",
            ));
        }
        check_positive(plan, 1, "n")?;
        let sizes = (
            plan.find_literal_integer(1, "n", "3")?,
            plan.find_literal_integer(3, "min_samples", "1")?,
        );
        if let Some(least) = sizes.1
            && least < 0
        {
            return Err(plan.refuse_call(format!(
                "argument 4 (min_samples) must not be negative; it is {least}, so give 0 or more"
            )));
        }
        if let (Some(n), Some(least)) = sizes
            && least > n
        {
            return Err(plan.refuse_call(format!(
                "argument 4 (min_samples) is {least}, more than argument 2 (n), which is {n}, so every window would be NULL; give at most {n}"
            )));
        }
        let Some(how) = parse_how(plan, 2, 4)? else {
            return Err(plan.refuse_call(
                "argument 3 (how) must be the name of a reduction such as 'mean'; it is NULL",
            ));
        };
        Ok(make_nullable(lists.make_plain_leaf(find_output_type(
            plan,
            how.as_reduction(),
            lists.leaf(),
        )?)))
    },
    call: |call| {
        let size = |i: usize| call.read_integer(i).and_then(|n| usize::try_from(n).ok());
        let n = size(1).unwrap_or(1);
        let (x, least) = (call.read_ragged(0)?, size(3).unwrap_or(n));
        call.to_lists(&match parse_reduction(call.read_text(2), call.find_constant(4)) {
            Some(WindowReduction::Quantile(q)) => window::rolling_quantile(&x, n, q, least)?,
            Some(WindowReduction::Reduce(how)) => window::rolling(&x, n, how, least)?,
            None => {
                return Err(Error::invalid(
                    "internal error: ragged_rolling has no valid reduction; please report it",
                ));
            }
        })
    },
    facts: FunctionFacts::NONE,
    fails: FailureCase::Values,
    infix: None,
};

pub(super) static NGRAMS: Def = Def {
    name: "ragged_ngrams",
    aliases: &[],
    arity: (2, 2),
    doc: Doc {
        section: FunctionSection::Within,
        description: "Returns every `n` elements that follow each other in an innermost list, as lists: bigrams for 2.",
        syntax: &["ragged_ngrams(x, n)"],
        args: &[X, ("n", "the number of elements, a literal")],
        missing: "A list of fewer than `n` elements has none. NULL values are elements like others, and a NULL list stays NULL.",
        duckdb: "`list_transform(range(1, len(x) - n + 2), lambda i: x[i:i + n - 1])`.",
        example: example!("ragged_ngrams"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        check_positive(plan, 1, "n")?;
        super::index::plan_retyped_field(plan, lists.repeat_level(lists.depth() - 1, 2))
    },
    call: |call| {
        let n = call.read_integer(1).and_then(|n| usize::try_from(n).ok()).unwrap_or(1);
        call.to_lists(&window::ngrams(&call.read_ragged(0)?, n)?)
    },
    facts: FunctionFacts::NONE,
    fails: FailureCase::Values,
    infix: None,
};

fn check_positive(plan: &CallPlan<'_>, i: usize, what: &str) -> Result<()> {
    match plan.find_literal_integer(i, what, "3")? {
        Some(n) if n >= 1 => Ok(()),
        found => Err(plan.refuse_call(format!(
            "argument {} ({what}) must be an integer of 1 or more; it is {}",
            i + 1,
            found.map_or("NULL".into(), |n| n.to_string())
        ))),
    }
}

#[derive(Clone, Copy)]
enum WindowReduction {
    Reduce(Reduction),
    Quantile(f64),
}

impl WindowReduction {
    /// Returns a [`Reduction`] with the same result type as `self`, because the planner derives
    /// result types from a [`Reduction`].
    fn as_reduction(self) -> Reduction {
        match self {
            Self::Reduce(how) => how,
            Self::Quantile(_) => Reduction::Median,
        }
    }
}

const QUANTILE: &str = "quantile";

/// Returns the reduction called `name`, with the quantile `q` if `name` is `quantile`; `None` for
/// NULL and unknown names.
fn parse_reduction(name: Option<&str>, q: Option<&ScalarValue>) -> Option<WindowReduction> {
    Some(WindowReduction::Reduce(match name? {
        "any" => Reduction::Any,
        "all" => Reduction::All,
        "count" => Reduction::Count,
        "sum" => Reduction::Sum,
        "mean" => Reduction::Mean,
        "median" => Reduction::Median,
        "min" => Reduction::Min,
        "max" => Reduction::Max,
        "first" => Reduction::First,
        "last" => Reduction::Last,
        QUANTILE => return find_float(q?).map(WindowReduction::Quantile),
        _ => return None,
    }))
}

fn find_float(value: &ScalarValue) -> Option<f64> {
    match value.cast_to(&DataType::Float64) {
        Ok(ScalarValue::Float64(value)) => value,
        _ => None,
    }
}

/// Returns the reduction that argument `i` (how) names, with the quantile in argument `q` if `how`
/// is 'quantile'; `None` if `how` is NULL. Returns an error for any other name, and if `q` is
/// missing, invalid or given without 'quantile'.
fn parse_how(plan: &CallPlan<'_>, i: usize, q: usize) -> Result<Option<WindowReduction>> {
    let name = match plan.require_literal(i, "how", "'mean'")? {
        Some(value) if !value.is_null() => value,
        _ => return Ok(None),
    };
    let share = plan.require_literal(q, "q", "0.9")?.filter(|share| !share.is_null());
    let is_quantile = name.try_as_str().flatten() == Some(QUANTILE);
    match (share, is_quantile) {
        (Some(share), true) => {
            if !share.data_type().is_numeric()
                || !find_float(share).is_some_and(|q| (0.0..=1.0).contains(&q))
            {
                return Err(plan.refuse_call(format!(
                    "argument {} (q) must be a number from 0 to 1, such as 0.9; it is {}",
                    q + 1,
                    naming::write_literal(share)
                )));
            }
        }
        (Some(_), false) => {
            return Err(plan.refuse_call(format!(
                "argument {} (q) applies only to how => 'quantile', but argument {} (how) is {name}; leave q out, or set how to 'quantile'",
                q + 1,
                i + 1
            )));
        }
        (None, true) => {
            return Err(plan.refuse_call("how => 'quantile' requires the quantile q, which is not given; add it, as in q => 0.9"));
        }
        (None, false) => {}
    }
    if let Some(how) = parse_reduction(name.try_as_str().flatten(), share) {
        return Ok(Some(how));
    }
    // `ragged_rolling` requires its third argument, so the hint does not suggest to omit it.
    let instead = match i {
        2 => "reduce the lists of ragged_ngrams, as in ragged_std(ragged_ngrams(x, 3), -1)",
        _ => {
            "omit this argument and reduce the returned lists, as in ragged_std(ragged_window(..), -1)"
        }
    };
    Err(plan.refuse_call(format!(
        "argument {} (how) must be 'any', 'all', 'count', 'sum', 'mean', 'median', 'quantile', 'min', 'max', 'first' or 'last'; it is {name}; for another reduction, {instead}",
        i + 1
    )))
}

fn find_output_type(plan: &CallPlan<'_>, how: Reduction, leaf: &DataType) -> Result<DataType> {
    how.output_type(leaf).map_err(|_| {
        plan.make_values_error(
            format_args!("values from which the {} can be computed", how.name()),
            leaf,
        )
    })
}

struct WindowLevels {
    x: NestedListType,
    levels: usize,
    time: DataType,
    at: NestedListType,
}

fn check_times(plan: &CallPlan<'_>) -> Result<WindowLevels> {
    let (x, time, at) = (
        plan.require_lists(0)?,
        plan.require_lists(1)?,
        NestedListType::from_type(plan.data_type(2)),
    );
    if plan.is_list_view(2) {
        plan.require_lists(2)?;
    }
    plan.check_depth(&x, &time, "the times of the elements of argument 1", "times")?;
    if at.depth() != time.depth() && at.depth() + 1 != time.depth() {
        return Err(plan.refuse_call(format!(
            "argument 3 (at) has {} level(s) of lists, and the times have {}; give argument 3 as many levels as the times, or one level less",
            at.depth(),
            time.depth()
        )));
    }
    let leaf = time.leaf();
    let number = leaf.is_numeric() && !leaf.is_decimal();
    if !number && !is_time(leaf) && !leaf.is_null() {
        return Err(plan.refuse_call(format!(
            "argument 2 (time) must hold dates, timestamps, durations or numbers; its values are {leaf}, so cast them first"
        )));
    }
    if let Some(value) = plan.find_known_literal(2)
        && let Some(Some(text)) = value.try_as_str()
        && value.cast_to(leaf).map_or(true, |time| time.is_null())
    {
        let remedy = match leaf {
            DataType::Duration(_) => "give a duration",
            _ if number => "give a number",
            _ => "write it like '2020-01-31' or '2020-01-31 08:30:00'",
        };
        return Err(plan.refuse_call(format!(
            "argument 3 (at) is {text:?}, which is not a value of the type {leaf}; {remedy}"
        )));
    }
    Ok(WindowLevels { levels: time.depth(), time: leaf.clone(), x, at })
}

fn is_time(t: &DataType) -> bool {
    use DataType::{Date32, Date64, Duration, Timestamp};
    matches!(t, Timestamp(..) | Date32 | Date64 | Duration(_))
}

/// Returns an error unless the types of the times, of the argument `at` and of the spans of the
/// window can be compared. Tests this by a call of the kernel on empty arrays of these types. If
/// `given` is `None`, the call has no window, and looks up the last element up to `at`.
fn check_types(plan: &CallPlan<'_>, given: Option<&TimeWindow>) -> Result<()> {
    let none = |i: usize| RaggedArray::try_from_arrow(&new_empty_array(plan.data_type(i)));
    let (x, time) = (none(0)?, none(1)?);
    let at = parse_times(none(2)?, time.leaf_type())?;
    let found = match given {
        Some(given) => window::window(&x, &time, &at, given),
        None => window::asof(&x, &time, &at),
    };
    found.map(|_| ()).map_err(|_| {
        plan.refuse_call(format!(
            "argument 3 (at) must hold values that can be compared with the times, which are {}; its values are {}, so cast them first",
            time.leaf_type(),
            at.leaf_type()
        ))
    })
}

/// Casts the strings in `at` to `to`; a string that is not a time is an error. Returns `at`
/// unchanged if it has no strings or `to` is not a time type.
fn parse_times(at: RaggedArray, to: &DataType) -> Result<RaggedArray> {
    if !at.leaf_type().is_string() || !is_time(to) {
        return Ok(at);
    }
    at.with_leaves(cast_strictly(at.leaves(), to)?)
}

fn plan_window(plan: &CallPlan<'_>) -> Result<FieldRef> {
    let shape = check_times(plan)?;
    let how = parse_how(plan, 3, 7)?;
    let before = parse_span(plan, 4, "before", &shape.time)?;
    let after = parse_span(plan, 5, "after", &shape.time)?;
    let closed = match plan.require_literal(6, "closed", "'(]'")? {
        Some(value) if !value.is_null() => plan.find_literal_text(6, "closed", "'(]'")?,
        _ => None,
    };
    let closure = parse_closure(closed)
        .map_err(|e| plan.refuse_call(format!("argument 7 (closed) is invalid: {e}")))?;
    check_types(plan, Some(&make_window(before, after, closure)))?;
    let out = match how {
        Some(how) => find_output_type(plan, how.as_reduction(), shape.x.leaf())?,
        None => find_type_below(&shape.x.open(), shape.levels - 1).clone(),
    };
    Ok(make_nullable(shape.at.make_plain_leaf(out)))
}

fn parse_closure(text: Option<&str>) -> Result<ClosedEnds> {
    text.map_or(Ok(ClosedEnds::Right), str::parse)
}

/// Creates a window around a time `at`. Without `before` and `after`, it has all times up to `at`.
/// If only one of the two is given, the other end of the window is `at` itself.
fn make_window(
    before: Option<WindowReach>,
    after: Option<WindowReach>,
    closure: ClosedEnds,
) -> TimeWindow {
    let none = WindowReach::Exact(0);
    let past = if after.is_some() { none } else { WindowReach::Unbounded };
    TimeWindow { before: before.unwrap_or(past), after: after.unwrap_or(none), closure }
}

fn parse_span(
    plan: &CallPlan<'_>,
    i: usize,
    what: &str,
    time: &DataType,
) -> Result<Option<WindowReach>> {
    let such = if is_time(time) { "INTERVAL '30 days'" } else { "30" };
    let Some(value) = plan.require_literal(i, what, such)? else { return Ok(None) };
    parse_window_span(value, time).map_err(|e| {
        plan.refuse_call(format!(
            "argument {} ({what}) must be a span such as {such} or 'unbounded'; {e}",
            i + 1
        ))
    })
}

/// Formats a literal for a message: an interval or a duration as query results show it, such as
/// `1d 03:00`.
fn show_span(value: &ScalarValue) -> String {
    let array = value.to_array().ok();
    let shown = array.as_ref().and_then(|array| Some(make_span_formatter(array)?(0)));
    shown.unwrap_or_else(|| value.to_string())
}

/// Converts a literal to a span for times of the type `time`; `None` for NULL. A literal that is
/// neither 'unbounded' nor a span for this type is an error.
fn parse_window_span(value: &ScalarValue, time: &DataType) -> Result<Option<WindowReach>> {
    if value.is_null() {
        return Ok(None);
    }
    if value.try_as_str().flatten() == Some("unbounded") {
        return Ok(Some(WindowReach::Unbounded));
    }
    let wrong = || {
        let accepted = if is_time(time) { "an interval" } else { "an integer or a finite float" };
        Error::invalid(format!(
            "{} is neither 'unbounded' nor {accepted}, but times of the type {time} require one of the two",
            show_span(value)
        ))
    };
    let interval = DataType::Interval(IntervalUnit::MonthDayNano);
    let found = match value.data_type() {
        t if (t.is_string() || matches!(t, DataType::Interval(_))) && is_time(time) => {
            value.cast_to(&interval).map_err(|_| wrong())?
        }
        DataType::Duration(_) if is_time(time) => value.clone(),
        t if t.is_integer() && !is_time(time) => {
            let wide = value.cast_to(&DataType::Decimal128(38, 0)).map_err(|_| wrong())?;
            let ScalarValue::Decimal128(Some(n), ..) = wide else { return Err(wrong()) };
            return Ok(Some(WindowReach::Exact(n)));
        }
        t if t.is_floating() && !is_time(time) => {
            let wide = value.cast_to(&DataType::Float64).map_err(|_| wrong())?;
            return match wide {
                ScalarValue::Float64(Some(n)) if n.is_finite() => Ok(Some(WindowReach::Float(n))),
                _ => Err(wrong()),
            };
        }
        _ => return Err(wrong()),
    };
    let zoned = matches!(time, DataType::Timestamp(_, Some(_)));
    Ok(Some(match found {
        ScalarValue::IntervalMonthDayNano(Some(by)) => {
            let calendar = by.months != 0 || (zoned && by.days != 0);
            match (calendar, time) {
                (true, DataType::Duration(_)) => {
                    return Err(Error::invalid(
                        "a span of months cannot be used for durations, because a month has no fixed length; write days, such as INTERVAL '30 days'",
                    ));
                }
                (true, _) => WindowReach::Calendar(by),
                (false, _) => WindowReach::Exact(
                    i128::from(by.days) * 86_400 * count_nanoseconds(TimeUnit::Second)
                        + i128::from(by.nanoseconds),
                ),
            }
        }
        ScalarValue::DurationSecond(Some(n)) => make_exact_span(n, TimeUnit::Second),
        ScalarValue::DurationMillisecond(Some(n)) => make_exact_span(n, TimeUnit::Millisecond),
        ScalarValue::DurationMicrosecond(Some(n)) => make_exact_span(n, TimeUnit::Microsecond),
        ScalarValue::DurationNanosecond(Some(n)) => make_exact_span(n, TimeUnit::Nanosecond),
        _ => return Err(wrong()),
    }))
}

fn make_exact_span(n: i64, unit: TimeUnit) -> WindowReach {
    WindowReach::Exact(i128::from(n) * count_nanoseconds(unit))
}

fn read_lists(call: &BatchCall<'_>) -> Result<(RaggedArray, RaggedArray, RaggedArray)> {
    let (x, time) = (call.read_ragged(0)?, call.read_ragged(1)?);
    let at = parse_times(call.read_ragged(2)?, time.leaf_type())?;
    Ok((x, time, at))
}

fn compute_window(call: &BatchCall<'_>) -> Result<ArrayRef> {
    let (x, time, at) = read_lists(call)?;
    let span = |i: usize| match call.find_constant(i) {
        Some(value) => parse_window_span(value, time.leaf_type()),
        None => Ok(None),
    };
    let given = make_window(span(4)?, span(5)?, parse_closure(call.read_text(6))?);
    call.to_lists(&match parse_reduction(call.read_text(3), call.find_constant(7)) {
        Some(WindowReduction::Quantile(q)) => window::window_quantile(&x, &time, &at, q, &given)?,
        Some(WindowReduction::Reduce(how)) => window::window_reduce(&x, &time, &at, how, &given)?,
        None => window::window(&x, &time, &at, &given)?,
    })
}
