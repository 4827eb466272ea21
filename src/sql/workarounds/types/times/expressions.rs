//! Rewrites expressions that combine times of different types.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, TimeUnit};
use arrow::util::display::array_value_to_string;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{
    AggregateFunction, BinaryExpr, InList, InSubquery, ScalarFunction, SetComparison,
    WindowFunction, WindowFunctionDefinition,
};
use datafusion::logical_expr::{
    AggregateUDF, Between, Case, Cast, Expr, ExprSchemable, LogicalPlan, Operator, Projection,
    Subquery,
};
use serrate_core::internal::holds_type;
use serrate_core::internal::times::{complete_times, has_texts};

use super::choices::IntervalChoice;
use super::clock::{INTERVAL, is_day_or_clock};
use super::functions::ComparableForm;
use super::integers::refuse_integers;
use super::unify::{
    make_interval_key, pair_with_schema, refine_timestamps, unify_chosen, unify_compared,
    unify_compared_pairs, unify_operands,
};
use super::wide::find_wide_part;
use crate::array::{leaf_type, list_depth};
use crate::functions::{
    StockFact, cast_element_dates, cast_mixed_dates, find_aggregate_facts, find_facts,
    find_interval_extreme, has_fact, refine_unit,
};

/// Returns an error if a list of numbers is cast to a list of timestamps. Arrow would treat the
/// numbers as microseconds, but `5::TIMESTAMP` is 5 seconds.
fn check_unit(values: &Expr, to: &DataType, schema: &DFSchema) -> Result<()> {
    let is_time = list_depth(to) > 0 && matches!(leaf_type(to), DataType::Timestamp(..));
    if is_time && values.get_type(schema).is_ok_and(|t| leaf_type(&t).is_numeric()) {
        return plan_err!(
            "a list of numbers cannot be cast to a list of timestamps, because the unit of the numbers is not known; write to_timestamp(x) for seconds, or to_timestamp_micros(x) for microseconds"
        );
    }
    Ok(())
}

/// Rewrites one expression so that it compares times, durations and intervals exactly. The caller
/// has already rewritten the operands of the expression.
pub(super) fn rewrite_expr(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(binary) => rewrite_binary(binary, schema),
        Expr::Cast(ref cast) => {
            check_unit(&cast.expr, cast.field.data_type(), schema)?;
            Ok(Transformed::no(expr))
        }
        Expr::TryCast(ref cast) => {
            check_unit(&cast.expr, cast.field.data_type(), schema)?;
            Ok(Transformed::no(expr))
        }
        Expr::Between(between) => rewrite_between(between, schema),
        Expr::InList(list) => rewrite_in_list(list, schema),
        Expr::Case(case) => rewrite_case(case, schema),
        Expr::ScalarFunction(call) => rewrite_call(call, schema),
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let (expr, subquery, changed) = unify_subquery(*expr, subquery, schema)?;
            let found = InSubquery::new(Box::new(expr), subquery, negated);
            Ok(Transformed::new_transformed(Expr::InSubquery(found), changed))
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            let (expr, subquery, changed) = unify_subquery(*expr, subquery, schema)?;
            let found = SetComparison::new(Box::new(expr), subquery, op, quantifier);
            Ok(Transformed::new_transformed(Expr::SetComparison(found), changed))
        }
        Expr::AggregateFunction(mut call) => {
            let AggregateFunction { func, params } = &mut call;
            let mut changed = compare_lengths(func, params.distinct, &mut params.args, schema)?;
            for key in &mut params.order_by {
                if let Some(by) = make_interval_key(&key.expr, schema) {
                    (key.expr, changed) = (by, true);
                }
            }
            Ok(Transformed::new_transformed(Expr::AggregateFunction(call), changed))
        }
        Expr::WindowFunction(mut call) => {
            let WindowFunction { fun, params } = &mut *call;
            let mut changed = false;
            if let WindowFunctionDefinition::AggregateUDF(func) = fun {
                changed = compare_lengths(func, params.distinct, &mut params.args, schema)?;
            } else if matches!(fun.name(), "lead" | "lag") {
                changed = complete_default(&mut params.args, schema)?;
            }
            let keys = params.order_by.iter_mut().map(|key| &mut key.expr);
            for key in keys.chain(&mut params.partition_by) {
                if let Some(by) = make_interval_key(key, schema) {
                    (*key, changed) = (by, true);
                }
            }
            Ok(Transformed::new_transformed(Expr::WindowFunction(call), changed))
        }
        expr => Ok(Transformed::no(expr)),
    }
}

fn rewrite_between(between: Between, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Between { expr, negated, low, high } = between;
    let parts = [*expr, *low, *high];
    reject_nested("BETWEEN over", &parts.each_ref().map(|e| (e, schema)))?;
    let done = unify_compared(&parts, schema)?;
    let (changed, parts) = (done.is_some(), done.unwrap_or(parts.to_vec()));
    let Ok([expr, low, high]) = <[Expr; 3]>::try_from(parts) else {
        return plan_err!(
            "internal error: BETWEEN has other operands than a value and 2 bounds; please report it"
        );
    };
    let between = Between::new(Box::new(expr), negated, Box::new(low), Box::new(high));
    Ok(Transformed::new_transformed(Expr::Between(between), changed))
}

fn rewrite_in_list(list: InList, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let InList { expr, list, negated } = list;
    let mut parts = vec![*expr];
    parts.extend(list);
    reject_nested("IN over", &pair_with_schema(&parts, schema))?;
    let done = unify_compared(&parts, schema)?;
    let (changed, mut parts) = (done.is_some(), done.unwrap_or(parts));
    let expr = Box::new(parts.remove(0));
    let list = Expr::InList(InList::new(expr, parts, negated));
    Ok(Transformed::new_transformed(list, changed))
}

/// Completes the default of `lead` and `lag` of timestamps, if it is a string literal without
/// seconds such as `'2020-01-01 10:00'`, which DataFusion does not parse. Returns whether it
/// changed the default.
///
/// # Errors
/// If the values are dates and the default is an integer, or the reverse.
fn complete_default(args: &mut [Expr], schema: &DFSchema) -> Result<bool> {
    let [values, _, default] = args else { return Ok(false) };
    refuse_integers(&[(&*values, schema), (&*default, schema)])?;
    let Expr::Literal(default, _) = default else { return Ok(false) };
    let is_time = matches!(values.get_type(schema), Ok(DataType::Timestamp(..)));
    if !is_time || !default.data_type().is_string() {
        return Ok(false);
    }
    let complete = ScalarValue::try_from_array(&complete_times(&default.to_array()?)?, 0)?;
    let changed = complete != *default;
    *default = complete;
    Ok(changed)
}

fn rewrite_binary(binary: BinaryExpr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, Minus, NotEq, Plus};
    let BinaryExpr { left, op, right } = binary;
    if let Some(date) = add_days(&left, op, &right, schema) {
        return Ok(Transformed::yes(date));
    }
    let pair = match op {
        Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom => {
            match unify_nested(&left, &right, schema) {
                Some(pair) => Some(pair),
                None => {
                    let what = format!("{op} between");
                    reject_nested(&what, &[(&*left, schema), (&*right, schema)])?;
                    let both = [left.as_ref().clone(), right.as_ref().clone()];
                    let pair = unify_compared(&both, schema)?;
                    let pair = pair.and_then(|pair| <[Expr; 2]>::try_from(pair).ok());
                    let pair = pair.map(|[a, b]| (a, b));
                    pair.or_else(|| unify_text_lists(&left, &right, schema))
                }
            }
        }
        Plus | Minus => match unify_operands(&left, &right, schema) {
            Some(pair) => Some(pair),
            None => refine_unit(&left, op, &right, schema),
        },
        _ => None,
    };
    let changed = pair.is_some();
    let (left, right) = pair.map_or((left, right), |(a, b)| (Box::new(a), Box::new(b)));
    let binary = Expr::BinaryExpr(BinaryExpr::new(left, op, right));
    Ok(Transformed::new_transformed(binary, changed))
}

/// Returns an error if values to compare are lists or structs that contain intervals, because 1 day
/// would not equal 24 hours. The message begins with `what`, such as `IN over`.
fn reject_nested(what: &str, values: &[(&Expr, &DFSchema)]) -> Result<()> {
    let types = values.iter().filter_map(|(e, schema)| e.get_type(*schema).ok());
    let nested: Vec<DataType> = types.filter(DataType::is_nested).collect();
    let spans = nested.iter().filter(|t| holds_interval(t) || holds_duration(t)).count();
    match spans > 1 && nested.iter().any(holds_interval) {
        true => plan_err!(
            "{what} lists or structs of intervals is not supported, because 1 day and 24 hours would not be equal; use durations instead, such as the difference of two timestamps"
        ),
        false => Ok(()),
    }
}

/// If one of two lists or structs contains intervals and the other durations, casts both so that
/// they contain only durations. The cast of an interval with months or days fails. Type coercion
/// would cast the durations to intervals, which compare field by field.
fn unify_nested(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<(Expr, Expr)> {
    let (of_left, of_right) = (left.get_type(schema).ok()?, right.get_type(schema).ok()?);
    let is_mixed = (holds_interval(&of_left) && holds_duration(&of_right))
        || (holds_duration(&of_left) && holds_interval(&of_right));
    let (to_left, to_right) = (to_durations(&of_left), to_durations(&of_right));
    let is_nested = of_left.is_nested() && of_right.is_nested();
    if !is_mixed || !is_nested || holds_interval(&to_left) || holds_interval(&to_right) {
        return None;
    }
    let cast = |e: &Expr, to: DataType| Expr::Cast(Cast::new(Box::new(e.clone()), to));
    Some((cast(left, to_left), cast(right, to_right)))
}

/// Converts a list of dates or timestamps and a list of strings to lists of seconds. Type coercion
/// would cast the strings to dates without their times of day, or compare timestamps as strings.
/// Returns `None` for operands of other types.
fn unify_text_lists(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<(Expr, Expr)> {
    let (a, b) = (left.get_type(schema).ok()?, right.get_type(schema).ok()?);
    let is_time = |t: &DataType| {
        use DataType::{Date32, Date64, Timestamp};
        matches!(leaf_type(t), Date32 | Date64 | Timestamp(_, None))
    };
    let is_text = |t: &DataType| leaf_type(t).is_string();
    let is_mixed = (is_time(&a) && is_text(&b)) || (is_text(&a) && is_time(&b));
    if !is_mixed || list_depth(&a) == 0 || list_depth(&a) != list_depth(&b) {
        return None;
    }
    let seconds = |e: &Expr| ComparableForm::ExactSeconds.make_call(e.clone());
    Some((seconds(left), seconds(right)))
}

/// Returns the type `t` with durations in nanoseconds in place of all durations and intervals
/// within it.
fn to_durations(t: &DataType) -> DataType {
    let within = |field: &FieldRef| {
        let to = to_durations(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(to))
    };
    match t {
        DataType::Duration(_) | DataType::Interval(_) => DataType::Duration(TimeUnit::Nanosecond),
        DataType::List(field) => DataType::List(within(field)),
        DataType::LargeList(field) => DataType::LargeList(within(field)),
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(within(field), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(within).collect()),
        t => t.clone(),
    }
}

/// Rewrites `date + 1` as a sum of integers that is cast to a date. Type coercion would turn the
/// `1` into an interval, and if the plan is analyzed again, as the query of a view is, date plus
/// interval would become a timestamp. Returns `None` for other operands.
fn add_days(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    use DataType::{Date32, Int32, Int64};
    let types = (left.get_type(schema).ok()?, right.get_type(schema).ok()?);
    let cast = |e: Expr, to: DataType| Expr::Cast(Cast::new(Box::new(e), to));
    let days = |e: &Expr| match e.get_type(schema) {
        Ok(Date32) => cast(cast(e.clone(), Int32), Int64),
        _ => cast(e.clone(), Int64),
    };
    match (types, op) {
        ((Date32, number), Operator::Plus | Operator::Minus)
        | ((number, Date32), Operator::Plus)
            if number.is_integer() =>
        {
            let sum = BinaryExpr::new(Box::new(days(left)), op, Box::new(days(right)));
            Some(cast(cast(Expr::BinaryExpr(sum), Int32), Date32))
        }
        _ => None,
    }
}

/// Returns all arguments of a function that returns one of its arguments, such as `greatest` or
/// `nullif`. Returns no arguments for other functions.
fn list_results(call: &ScalarFunction) -> &[Expr] {
    match has_fact(call.name(), StockFact::Chooses) {
        true => &call.args,
        false => &[],
    }
}

/// Returns an error if `what`, which returns one of `values`, mixes dates or times of day with
/// strings that are not literals, also in lists. Type coercion would cast the strings to dates,
/// without their times of day.
///
/// Accepts `nullif(date, string)`, because it returns the date, and compares the date with the
/// string exactly.
fn refuse_mixed_texts(what: &str, values: &[Expr], schema: &DFSchema) -> Result<()> {
    let types = values.iter().map(|e| e.get_type(schema).unwrap_or(DataType::Null));
    let types: Vec<DataType> = types.collect();
    let is_column = |e: &Expr| match e {
        Expr::Alias(alias) => !matches!(*alias.expr, Expr::Literal(..)),
        e => !matches!(e, Expr::Literal(..)),
    };
    let text = values.iter().zip(&types).find(|&(e, t)| has_texts(t) && is_column(e));
    let day = values.iter().zip(&types).find(|&(_, t)| is_day_or_clock(t));
    let (Some((text, _)), Some((day, of_day))) = (text, day) else { return Ok(()) };
    if what == "nullif" && values.first() == Some(day) {
        return Ok(());
    }
    let (text, shown) = (text.schema_name(), day.schema_name());
    let brackets = "[]".repeat(list_depth(of_day));
    let casts = match leaf_type(of_day) {
        DataType::Date32 | DataType::Date64 => format!(
            "CAST({text} AS DATE{brackets}) for the day, CAST({text} AS TIMESTAMP{brackets}) to keep the time of day,"
        ),
        _ => format!("CAST({text} AS TIME{brackets})"),
    };
    plan_err!(
        "{what} mixes {shown} of type {of_day} with the string {text}; write {casts} or CAST({shown} AS VARCHAR{brackets})"
    )
}

fn rewrite_case(mut case: Case, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut changed = false;
    if let Some(operand) = &case.expr {
        let mut parts = vec![operand.as_ref().clone()];
        parts.extend(case.when_then_expr.iter().map(|(when, _)| when.as_ref().clone()));
        reject_nested("CASE over", &pair_with_schema(&parts, schema))?;
        if let Some(done) = unify_compared(&parts, schema)? {
            changed = true;
            let mut done = done.into_iter().map(Box::new);
            case.expr = done.next();
            for ((when, _), by) in case.when_then_expr.iter_mut().zip(done) {
                *when = by;
            }
        }
    }
    let mut results: Vec<Expr> =
        case.when_then_expr.iter().map(|(_, then)| then.as_ref().clone()).collect();
    results.extend(case.else_expr.as_deref().cloned());
    refuse_mixed_texts("CASE", &results, schema)?;
    let done = unify_chosen(&results, schema)?;
    if let Some(done) = done.or_else(|| refine_timestamps(&results, schema)) {
        changed = true;
        let mut done = done.into_iter().map(Box::new);
        for ((_, then), by) in case.when_then_expr.iter_mut().zip(&mut done) {
            *then = by;
        }
        case.else_expr = done.next();
    }
    Ok(Transformed::new_transformed(Expr::Case(case), changed))
}

fn rewrite_call(mut call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let name = call.name();
    let intervals = |e: &Expr| e.get_type(schema).is_ok_and(|t| holds_interval(&t));
    let durations =
        |e: &Expr| e.get_type(schema).is_ok_and(|t| matches!(leaf_type(&t), DataType::Duration(_)));
    let facts = find_facts(&call.func);
    if (has_fact(name, StockFact::ComparesElements) || facts.compares)
        && call.args.iter().any(intervals)
        && !(facts.compares_durations && call.args.first().is_some_and(durations))
    {
        let found = list_intervals(&call.args, schema);
        let (name, found) = match name {
            "mode_of_elements" => ("mode", find_collected_value(&found)),
            name => (name, found.as_str()),
        };
        return plan_err!(
            "{name} of {found} is not supported, because it would compare the months, days and hours of intervals one after the other, so 1 day would differ from 24 hours; use durations instead, such as the difference of two timestamps"
        );
    }
    let has_parts = |e: &Expr| {
        use DataType::{Date32, Duration, Timestamp};
        e.get_type(schema)
            .is_ok_and(|t| matches!(leaf_type(&t), Duration(_) | Date32 | Timestamp(..)))
    };
    if let [_, time] = call.args.as_slice()
        && has_parts(time)
        && let Some(part) = find_wide_part(&call.func)
    {
        call.func = part;
        return Ok(Transformed::yes(Expr::ScalarFunction(call)));
    }
    if name == "make_array" {
        refuse_integers(&pair_with_schema(&call.args, schema))?;
    }
    refuse_mixed_texts(name, list_results(&call), schema)?;
    let moved = match name {
        "nvl2" => cast_mixed_dates(&pair_with_schema(&call.args, schema)),
        _ => cast_element_dates(&call, schema),
    };
    if let Some(args) = moved {
        call.args = args;
        return Ok(Transformed::yes(Expr::ScalarFunction(call)));
    }
    if !has_fact(name, StockFact::Chooses) {
        return Ok(Transformed::no(Expr::ScalarFunction(call)));
    }
    let compares = has_fact(name, StockFact::ComparesArguments);
    let done = unify_chosen(&call.args, schema)?;
    let changed = done.is_some();
    call.args = done.unwrap_or(call.args);
    let is_interval = |e: &Expr| e.get_type(schema).is_ok_and(|t| holds_interval(&t));
    let plain = |e: &Expr| e.get_type(schema).is_ok_and(|t| t == INTERVAL);
    let null = |e: &Expr| e.get_type(schema).is_ok_and(|t| t.is_null());
    if compares
        && let Some(choice) = IntervalChoice::from_function(call.name())
        && call.args.iter().any(plain)
        && call.args.iter().all(|e| plain(e) || null(e))
    {
        let cast = |e: Expr| match null(&e) {
            true => Expr::Cast(Cast::new(Box::new(e), INTERVAL)),
            false => e,
        };
        let values = std::mem::take(&mut call.args).into_iter().map(cast).collect();
        return Ok(Transformed::yes(choice.make_call(values)));
    }
    if compares && call.args.iter().any(is_interval) {
        let (function, found) = (call.name(), list_intervals(&call.args, schema));
        return plan_err!(
            "{function} of {found} is not supported, because it would compare the months, days and hours of intervals one after the other, so 1 day would differ from 24 hours; compare durations, such as the difference of two timestamps, or seconds, as in extract(epoch FROM x), instead"
        );
    }
    Ok(Transformed::new_transformed(Expr::ScalarFunction(call), changed))
}

/// Returns, for an error message, the SQL text of the expressions in `values` that are intervals or
/// contain intervals.
fn list_intervals(values: &[Expr], schema: &DFSchema) -> String {
    let intervals = values.iter().filter(|e| e.get_type(schema).is_ok_and(|t| holds_interval(&t)));
    let named = intervals.map(|e| match e {
        Expr::Literal(value, _) => {
            let shown = value.to_array().ok().and_then(|v| array_value_to_string(&v, 0).ok());
            shown.map_or_else(|| e.schema_name().to_string(), |v| format!("INTERVAL '{v}'"))
        }
        e => e.schema_name().to_string(),
    });
    named.collect::<Vec<_>>().join(", ")
}

/// Returns `x` if `lists` is the text `array_agg(x)`, otherwise `lists`. Error messages name this
/// `x`, because `mode(x)` is rewritten to `mode_of_elements(array_agg(x))`.
fn find_collected_value(lists: &str) -> &str {
    let value = lists.strip_prefix("array_agg(").and_then(|rest| rest.strip_suffix(')'));
    value.filter(|value| !value.contains(") FILTER (")).unwrap_or(lists)
}

/// Makes an aggregate compare intervals by their lengths, so that 1 day equals 24 hours. Returns
/// `true` if there are intervals to compare.
fn compare_lengths(
    func: &mut Arc<AggregateUDF>,
    distinct: bool,
    args: &mut [Expr],
    schema: &DFSchema,
) -> Result<bool> {
    let is_interval = |e: &Expr| e.get_type(schema).is_ok_and(|t| t == INTERVAL);
    if args.iter().all(is_interval)
        && let Some(extreme) = find_interval_extreme(func.name())
    {
        *func = Arc::new(extreme);
        return Ok(true);
    }
    let mut changed = false;
    if func.name() == "approx_distinct" || (func.name() == "count" && distinct) {
        for arg in args.iter_mut() {
            if let Some(length) = make_interval_key(arg, schema) {
                (*arg, changed) = (length, true);
            }
        }
    }
    refuse_compared_fields(func.name(), distinct, args, schema)?;
    Ok(changed)
}

/// Returns an error for an aggregate that would compare intervals field by field, not by their
/// lengths.
fn refuse_compared_fields(
    name: &str,
    distinct: bool,
    args: &[Expr],
    schema: &DFSchema,
) -> Result<()> {
    // DISTINCT does not change the results of the first three, and `group_by_length` removes equal
    // intervals from the lists of `array_agg`.
    let ignores_equals = ["any_value", "first_value", "last_value", "array_agg"].contains(&name);
    let interval = |e: &Expr| {
        let is_compared = |t: DataType| holds_interval(&t) && !(ignores_equals && t == INTERVAL);
        e.get_type(schema).is_ok_and(is_compared)
    };
    if (distinct || find_aggregate_facts(name).compares) && args.iter().any(interval) {
        let distinct = if distinct { " DISTINCT" } else { "" };
        let found = list_intervals(args, schema);
        return plan_err!(
            "{name}{distinct} of {found} is not supported, because it would compare the months, days and hours of intervals one after the other, so 1 day would differ from 24 hours; use the seconds of the intervals instead, as in extract(epoch FROM x)"
        );
    }
    Ok(())
}

/// Casts `expr` and the column of `subquery`, with which `expr` is compared, to one type in which
/// the comparison of times is exact. Returns whether it changed them.
fn unify_subquery(
    expr: Expr,
    subquery: Subquery,
    schema: &DFSchema,
) -> Result<(Expr, Subquery, bool)> {
    let rows = &subquery.subquery;
    let column = Expr::Column(Column::from(rows.schema().qualified_field(0)));
    let values = [(&expr, schema), (&column, rows.schema().as_ref())];
    reject_nested("IN, ANY or ALL over", &values)?;
    let pair = unify_compared_pairs(&values)?;
    let Some([left, right]) = pair.and_then(|pair| <[Expr; 2]>::try_from(pair).ok()) else {
        return Ok((expr, subquery, false));
    };
    let projected = Projection::try_new(vec![right], Arc::clone(rows))?;
    let subquery = Subquery { subquery: Arc::new(LogicalPlan::Projection(projected)), ..subquery };
    Ok((left, subquery, true))
}

pub(super) fn holds_interval(t: &DataType) -> bool {
    holds_type(t, |t| matches!(t, DataType::Interval(_)))
}

fn holds_duration(t: &DataType) -> bool {
    holds_type(t, |t| matches!(t, DataType::Duration(_)))
}
