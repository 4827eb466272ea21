//! Casts compared, combined or chosen times to one type in which the result is exact.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Decimal128Type, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};
use serrate_core::internal::cast_strictly;
use serrate_core::internal::times::{
    NANOSECONDS_PER_DAY, complete_times, convert_all_exactly, is_instant_or_span,
    parse_exact_seconds,
};

use super::clock;
use super::functions::ComparableForm;
use super::integers::refuse_integers;
use crate::array::{leaf_type, list_depth};
use crate::functions::{
    cast_mixed_dates, find_unit_of_text, fold_constant, is_constant, replace_leaf,
};

struct TypedValue {
    expr: Expr,
    data_type: DataType,
    constant: Option<ScalarValue>,
}

/// The expression that replaces a value, or `None` if the value stays unchanged.
type ReplacedExpr = Option<Expr>;

/// Casts times that are compared with each other to one type in which the comparison is exact.
/// Returns `None` if nothing has to change.
pub(super) fn unify_compared(values: &[Expr], schema: &DFSchema) -> Result<Option<Vec<Expr>>> {
    unify_compared_pairs(&pair_with_schema(values, schema))
}

pub(super) fn pair_with_schema<'a>(
    values: &'a [Expr],
    schema: &'a DFSchema,
) -> Vec<(&'a Expr, &'a DFSchema)> {
    values.iter().map(|e| (e, schema)).collect()
}

/// Does the same as [`unify_compared`] for values that each have their own schema.
pub(super) fn unify_compared_pairs(values: &[(&Expr, &DFSchema)]) -> Result<Option<Vec<Expr>>> {
    refuse_integers(values)?;
    if let Some(clock) = clock::unify_compared(values) {
        return Ok(Some(clock));
    }
    let Some(values) = find_types(values) else { return Ok(unify_nested_times(values)) };
    let of = |is: fn(&DataType) -> bool| values.iter().any(|v| is(&v.data_type));
    let (durations, intervals) = (of(is_duration), of(is_interval));
    if of(DataType::is_string)
        && of(is_date)
        && !of(|t| !t.is_null() && !t.is_string() && !is_date(t))
    {
        // Type coercion would cast the strings to dates and drop their times of day. If a string
        // has a time of day, all values are compared as seconds instead.
        let is_exact = values.iter().all(|v| !v.data_type.is_string() || is_plain_date(v));
        return Ok((!is_exact).then(|| apply_form(&values, ComparableForm::ExactSeconds)));
    }
    if durations || intervals {
        if of(|t| !t.is_null() && !is_duration(t) && !is_interval(t)) {
            return Ok(None);
        }
        if !durations {
            return Ok(Some(apply_form(&values, ComparableForm::IntervalNanoseconds)));
        }
    } else if !of(is_timestamp) || of(|t| !t.is_null() && !t.is_string() && !is_instant_or_span(t))
    {
        return Ok(None);
    }
    if let Some(changed) = cast_to_one_type(&values)? {
        let same = changed.iter().all(Option::is_none);
        return Ok(if same { None } else { Some(apply_changes(values, changed)) });
    }
    let zone = find_common_zone(&values);
    let alike: Vec<TypedValue> = values
        .into_iter()
        .map(|v| match (&v.data_type, &zone) {
            // Timestamps without a time zone, dates and strings get the zone of the other values.
            (DataType::Timestamp(unit, None), Some(_)) => {
                let to = DataType::Timestamp(*unit, zone.clone());
                cast_value(v, to)
            }
            (t, Some(_)) if is_date(t) => {
                let to = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
                cast_value(v, to)
            }
            (t, Some(_)) if t.is_string() => {
                let unit = v.constant.as_ref().map_or(TimeUnit::Microsecond, find_unit_of_text);
                let to = DataType::Timestamp(unit, zone.clone());
                cast_value(v, to)
            }
            _ => v,
        })
        .collect();
    Ok(Some(apply_form(&alike, ComparableForm::ExactSeconds)))
}

/// If an expression such as CASE returns one of several times, casts them to a common time type.
/// Returns `None` if they stay unchanged.
pub(super) fn unify_chosen(values: &[Expr], schema: &DFSchema) -> Result<Option<Vec<Expr>>> {
    if let Some(clock) = clock::choose_from(values, schema) {
        return Ok(Some(clock));
    }
    let pairs = pair_with_schema(values, schema);
    refuse_integers(&pairs)?;
    let Some(values) = find_types(&pairs) else { return Ok(cast_mixed_dates(&pairs)) };
    let of = |is: fn(&DataType) -> bool| values.iter().any(|v| is(&v.data_type));
    let durations = of(is_duration);
    let foreign = match durations {
        true => of(|t| !t.is_null() && !is_duration(t) && !is_interval(t)),
        // A value that is neither a timestamp, a date nor NULL prevents the cast: a string, for
        // example, need not be a time.
        false => of(|t| !t.is_null() && !is_timestamp(t) && !is_date(t)),
    };
    if foreign || !(durations || of(is_timestamp)) {
        return Ok(cast_mixed_dates(&pairs));
    }
    // `cast_to_one_type` fails for an interval with months. The values then stay unchanged, and
    // DataFusion casts them to intervals.
    let changed = cast_to_one_type(&values).unwrap_or_default();
    let changed = changed.filter(|c| c.iter().any(Option::is_some));
    Ok(changed.map(|c| apply_changes(values, c)).or_else(|| cast_mixed_dates(&pairs)))
}

/// Casts compared lists or structs of dates and timestamps to types in which the comparison is
/// exact. Returns `None` if nothing has to change.
fn unify_nested_times(values: &[(&Expr, &DFSchema)]) -> Option<Vec<Expr>> {
    let types = values.iter().map(|(e, schema)| e.get_type(*schema).ok());
    let types = types.collect::<Option<Vec<_>>>()?;
    if !types.iter().any(DataType::is_nested) {
        return None;
    }
    convert_time_lists(values, &types).or_else(|| cast_mixed_dates(values))
}

/// Converts compared lists of dates or timestamps to lists of seconds if their types differ in more
/// than the zone. Returns `None` for all other values. Type coercion would cast all to nanoseconds
/// without a zone, whose range is small, and instants to their time in UTC.
fn convert_time_lists(values: &[(&Expr, &DFSchema)], types: &[DataType]) -> Option<Vec<Expr>> {
    use DataType::{Date32, Date64, Timestamp};
    let mut lists = types.iter().filter(|t| !t.is_null());
    let depth = lists.next().map(list_depth).filter(|depth| *depth > 0)?;
    if lists.any(|t| list_depth(t) != depth) {
        return None;
    }
    let leaves: Vec<&DataType> = types.iter().map(leaf_type).filter(|t| !t.is_null()).collect();
    let (first, rest) = leaves.split_first()?;
    let is_alike = |t: &&DataType| match (*first, *t) {
        (Timestamp(u, _), Timestamp(v, _)) => u == v,
        (s, t) => s == t,
    };
    if rest.iter().all(is_alike) || !leaves.iter().all(|t| is_date(t) || is_timestamp(t)) {
        return None;
    }
    let zone = leaves.iter().find_map(|t| match t {
        Timestamp(_, zone) => zone.clone(),
        _ => None,
    });
    let seconds = |e: &Expr, t: &DataType| {
        let local = match (leaf_type(t), &zone) {
            (Timestamp(unit, None), Some(_)) => Some(*unit),
            (Date32 | Date64, Some(_)) => Some(TimeUnit::Microsecond),
            _ => None,
        };
        let e = match local {
            Some(unit) => {
                let to = replace_leaf(t, &Timestamp(unit, zone.clone()));
                Expr::Cast(Cast::new(Box::new(e.clone()), to))
            }
            None => e.clone(),
        };
        ComparableForm::ExactSeconds.make_call(e)
    };
    let changed = values.iter().zip(types).map(|(&(e, _), t)| match leaf_type(t).is_null() {
        true => e.clone(),
        false => seconds(e, t),
    });
    Some(changed.collect())
}

/// Casts the results of a CASE, if they are timestamps of several units or zones, to the type that
/// type coercion will choose. Until coercion, CASE has the type of its first result. If this result
/// has a coarser unit than others, a comparison of the CASE would be rewritten for the coarser unit
/// and drop digits of the others. Returns `None` if nothing changes, or if a value is not a
/// timestamp.
pub(super) fn refine_timestamps(values: &[Expr], schema: &DFSchema) -> Option<Vec<Expr>> {
    let values = find_types(&pair_with_schema(values, schema))?;
    if !values.iter().all(|v| v.data_type.is_null() || is_timestamp(&v.data_type)) {
        return None;
    }
    let units = values.iter().filter_map(|v| match &v.data_type {
        DataType::Timestamp(unit, _) => Some(*unit),
        _ => None,
    });
    let to = DataType::Timestamp(units.max()?, find_common_zone(&values));
    let changed = values.iter().map(|v| {
        let is_kept = v.data_type.is_null() || v.data_type == to;
        (!is_kept).then(|| Expr::Cast(Cast::new(Box::new(v.expr.clone()), to.clone())))
    });
    let changed: Vec<ReplacedExpr> = changed.collect();
    changed.iter().any(Option::is_some).then(|| apply_changes(values, changed))
}

/// Casts the operands of a sum or difference to one type, if they are durations and intervals, or
/// timestamps and dates. Returns `None` if they stay unchanged.
pub(super) fn unify_operands(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<(Expr, Expr)> {
    let pairs = [(left, schema), (right, schema)];
    // Types are compared before constants are folded, because folding each operand in a long chain
    // of operators would take quadratic time.
    let values = list_typed_values(&pairs)?;
    let [a, b] = &values[..] else { return None };
    let instants = |t: &DataType| is_timestamp(t) || is_date(t);
    let spans = |t: &DataType| is_duration(t) || is_interval(t);
    let (s, t) = (&a.data_type, &b.data_type);
    let one = (instants(s) && instants(t) && (is_timestamp(s) || is_timestamp(t)))
        || (spans(s) && spans(t) && (is_duration(s) || is_duration(t)));
    if !one || s == t {
        return None;
    }
    let values = find_types(&pairs)?;
    let changed = cast_to_one_type(&values).ok().flatten()?;
    <[Expr; 2]>::try_from(apply_changes(values, changed)).ok().map(|[a, b]| (a, b))
}

pub(super) fn make_interval_key(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let interval = expr.get_type(schema).is_ok_and(|t| is_interval(&t));
    interval.then(|| ComparableForm::IntervalNanoseconds.make_call(expr.clone()))
}

/// Returns values with their types and, for constant values, the constants. Returns `None` if no
/// value is a time, or if the type of a value is unknown.
fn find_types(values: &[(&Expr, &DFSchema)]) -> Option<Vec<TypedValue>> {
    let mut typed = list_typed_values(values)?;
    if !typed.iter().any(|v| is_instant_or_span(&v.data_type)) {
        return None;
    }
    for value in typed.iter_mut().filter(|v| is_constant(&v.expr)) {
        let literal = fold_constant(value.expr.clone(), &DFSchema::empty());
        value.constant = literal.and_then(|e| match e {
            Expr::Literal(value, _) => Some(value),
            _ => None,
        });
    }
    Some(typed)
}

/// Returns values with their types, without folding constants. Returns `None` if the type of a
/// value is unknown.
fn list_typed_values(values: &[(&Expr, &DFSchema)]) -> Option<Vec<TypedValue>> {
    let typed = values.iter().map(|&(expr, schema)| {
        let data_type = match expr.get_type(schema).ok()? {
            DataType::Dictionary(_, values) => *values,
            t => t,
        };
        Some(TypedValue { expr: expr.clone(), data_type, constant: None })
    });
    typed.collect()
}

/// Casts `values` to one type that represents all of them exactly. Returns `None` if there is no
/// such type.
fn cast_to_one_type(values: &[TypedValue]) -> Result<Option<Vec<ReplacedExpr>>> {
    let durations = values.iter().any(|v| is_duration(&v.data_type));
    let zone = find_common_zone(values);
    let wanted = |unit| match durations {
        true => DataType::Duration(unit),
        false => DataType::Timestamp(unit, zone.clone()),
    };
    // The common unit is the unit of the columns; if these have several units, there is no common
    // type. Without columns, the common unit is the finest unit of the literals.
    let units = |literals: bool| {
        let of = move |v: &TypedValue| match (v.constant.is_some() == literals, &v.data_type) {
            (true, DataType::Timestamp(unit, _) | DataType::Duration(unit)) if !is_now(&v.expr) => {
                Some(*unit)
            }
            _ => None,
        };
        values.iter().filter_map(of)
    };
    let unit = match (units(false).min(), units(false).max()) {
        (Some(least), Some(most)) if least == most => least,
        (Some(_), Some(_)) => return check_months(values).map(|()| None),
        _ => match units(true).max() {
            Some(unit) => unit,
            // The values are dates, strings and `now()`, which do not determine a unit, so there is
            // no unit to cast the values to.
            None => return Ok(None),
        },
    };
    let to = wanted(unit);
    let mut changed = Vec::with_capacity(values.len());
    for value in values {
        changed.push(match cast_to_type(value, unit, &to)? {
            Some(change) => change,
            None => return Ok(None),
        });
    }
    Ok(Some(changed))
}

/// Returns the replacement of a value by an expression of the type `to`, or `None` if this type
/// cannot represent the value exactly. `Some(None)` means that the value stays unchanged. `unit` is
/// the unit of `to`.
fn cast_to_type(value: &TypedValue, unit: TimeUnit, to: &DataType) -> Result<Option<ReplacedExpr>> {
    let cast = |e: &Expr| Some(Expr::Cast(Cast::new(Box::new(e.clone()), to.clone())));
    let (t, zone) = (&value.data_type, matches!(to, DataType::Timestamp(_, Some(_))));
    if t.is_null() {
        return Ok(Some(None));
    }
    if let Some(constant) = &value.constant {
        let Some(literal) = parse_constant(constant, to) else {
            return Ok(Some(cast(&value.expr)));
        };
        // A literal without a zone is a local time in the zone of `to`.
        let naive = zone && !matches!(literal.data_type(), DataType::Timestamp(_, Some(_)));
        let literal = match (naive, literal.data_type(), to) {
            (true, DataType::Timestamp(u, _), DataType::Timestamp(_, zone)) => {
                cast_strictly(&literal, &DataType::Timestamp(*u, zone.clone())).ok()
            }
            (true, DataType::Date32 | DataType::Date64, DataType::Timestamp(_, zone)) => {
                cast_strictly(&literal, &DataType::Timestamp(TimeUnit::Second, zone.clone())).ok()
            }
            _ => Some(literal),
        };
        let Some(literal) = literal else { return Ok(Some(cast(&value.expr))) };
        return Ok(match convert_all_exactly(&literal, to)? {
            Some(there) => {
                let there = ScalarValue::try_from_array(&there, 0)?;
                Some((there != *constant).then(|| Expr::Literal(there, None)))
            }
            None => None,
        });
    }
    Ok(match t {
        t if t == to => Some(None),
        DataType::Timestamp(..) if is_now(&value.expr) => Some(cast(&value.expr)),
        // The value stays unchanged, because DataFusion itself adds the time zone of the other
        // values.
        DataType::Timestamp(u, _) if *u == unit => Some(None),
        // Every unit except nanoseconds can represent all calendar dates.
        t if is_date(t) && unit != TimeUnit::Nanosecond => Some(cast(&value.expr)),
        // A string is cast only to a type with a zone. For other types, `None` makes the values
        // compare as exact seconds, because a cast would drop digits that are finer than the unit.
        t if t.is_string() && zone => Some(cast(&value.expr)),
        _ => None,
    })
}

/// Whether a text is a constant date without a time of day. Also true for a constant such as `'x'`
/// that is not a time, so that type coercion casts it and the cast reports the error.
fn is_plain_date(text: &TypedValue) -> bool {
    let Some(constant) = &text.constant else { return false };
    let Ok(texts) = constant.to_array() else { return true };
    let seconds = complete_times(&texts).and_then(|texts| parse_exact_seconds(&texts, None));
    seconds.map_or(true, |seconds| {
        let seconds = seconds.as_primitive::<Decimal128Type>();
        seconds.is_null(0) || seconds.value(0) % NANOSECONDS_PER_DAY == 0
    })
}

/// Returns a literal as an array of length 1. Parses a string as a timestamp in the zone of `to`.
/// Returns `None` if the string is not a timestamp, or `to` is not a timestamp type.
fn parse_constant(constant: &ScalarValue, to: &DataType) -> Option<ArrayRef> {
    let literal = constant.to_array().ok()?;
    let literal = match literal.data_type() {
        DataType::Dictionary(_, values) => cast_strictly(&literal, values).ok()?,
        _ => literal,
    };
    if !literal.data_type().is_string() {
        return Some(literal);
    }
    let DataType::Timestamp(_, zone) = to else { return None };
    let unit = find_unit_of_text(constant);
    cast_strictly(&literal, &DataType::Timestamp(unit, zone.clone())).ok()
}

/// Returns an error if a literal interval with months is compared with a duration, because a month
/// has no fixed length.
fn check_months(values: &[TypedValue]) -> Result<()> {
    let durations = values.iter().any(|v| is_duration(&v.data_type));
    let literals = values.iter().filter_map(|v| v.constant.as_ref());
    for literal in literals.filter(|v| durations && is_interval(&v.data_type())) {
        convert_all_exactly(&literal.to_array()?, &DataType::Duration(TimeUnit::Nanosecond))?;
    }
    Ok(())
}

fn find_common_zone(values: &[TypedValue]) -> Option<std::sync::Arc<str>> {
    values.iter().find_map(|v| match &v.data_type {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    })
}

fn cast_value(value: TypedValue, to: DataType) -> TypedValue {
    let expr = Expr::Cast(Cast::new(Box::new(value.expr), to.clone()));
    TypedValue { expr, data_type: to, constant: None }
}

fn apply_form(values: &[TypedValue], form: ComparableForm) -> Vec<Expr> {
    let changed = values.iter().map(|v| match v.data_type.is_null() {
        true => v.expr.clone(),
        false => form.make_call(v.expr.clone()),
    });
    changed.collect()
}

fn apply_changes(values: Vec<TypedValue>, changed: Vec<ReplacedExpr>) -> Vec<Expr> {
    values.into_iter().zip(changed).map(|(v, e)| e.unwrap_or(v.expr)).collect()
}

fn is_now(e: &Expr) -> bool {
    match e {
        Expr::ScalarFunction(call) => call.name() == "now",
        Expr::Alias(alias) => is_now(&alias.expr),
        _ => false,
    }
}

fn is_duration(t: &DataType) -> bool {
    matches!(t, DataType::Duration(_))
}

fn is_interval(t: &DataType) -> bool {
    matches!(t, DataType::Interval(_))
}

fn is_timestamp(t: &DataType) -> bool {
    matches!(t, DataType::Timestamp(..))
}

fn is_date(t: &DataType) -> bool {
    matches!(t, DataType::Date32 | DataType::Date64)
}
