//! Casts times of day (`TIME`) that are combined with strings or times of another unit.
//!
//! DataFusion 55 has no common type for times of day of two units, and casts a string to the unit
//! of the column, which drops digits. This workaround is obsolete once the test
//! `stock_times_of_day_still_differ` fails.

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};

use crate::array::leaf_type;
use crate::functions::{find_finest_clock, fold_constant, is_constant};

pub(super) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

const FINEST: DataType = DataType::Time64(TimeUnit::Nanosecond);

/// Casts compared values to the unit of the columns, or to nanoseconds if the columns differ in
/// type or their unit cannot represent all constants. Returns `None` if nothing has to change, if
/// no value is a time of day, or if a value is neither a time of day nor a string.
pub(super) fn unify_compared(values: &[(&Expr, &DFSchema)]) -> Option<Vec<Expr>> {
    let types = find_value_types(values)?;
    let is_known = |t: &DataType| is_clock(t) || t.is_string() || t.is_null();
    if !types.iter().any(is_clock) || !types.iter().all(is_known) {
        return None;
    }
    let constants: Vec<Option<ScalarValue>> = values.iter().map(|(e, _)| read_clock(e)).collect();
    let columns = types.iter().zip(&constants).filter(|(_, constant)| constant.is_none());
    let mut columns = columns.map(|(t, _)| t).filter(|t| !t.is_null());
    let unit = columns.next().filter(|t| is_clock(t));
    let unit = unit.filter(|first| columns.all(|t| t == *first)).cloned().unwrap_or(FINEST);
    let fits = |constant: &Option<ScalarValue>| match constant {
        Some(constant) => is_exact(constant, &unit),
        None => true,
    };
    let unit = if constants.iter().all(fits) { unit } else { FINEST };
    let mut changed = false;
    let unified = values.iter().zip(types).zip(constants).map(|(((e, _), t), constant)| {
        if t == unit || t.is_null() {
            return (*e).clone();
        }
        changed = true;
        match constant.and_then(|constant| constant.cast_to(&unit).ok()) {
            Some(there) => Expr::Literal(there, None),
            None => Expr::Cast(Cast::new(Box::new((*e).clone()), unit.clone())),
        }
    });
    let unified: Vec<Expr> = unified.collect();
    changed.then_some(unified)
}

/// If an expression such as CASE returns one of several times of day, casts them to the finest of
/// their units. Returns `None` if nothing has to change, or if a value is not a time of day.
pub(super) fn choose_from(values: &[Expr], schema: &DFSchema) -> Option<Vec<Expr>> {
    let with_schema: Vec<_> = values.iter().map(|e| (e, schema)).collect();
    let types = find_value_types(&with_schema)?;
    let finest = find_finest_clock(&types)?;
    if types.iter().all(|t| *t == finest || t.is_null()) {
        return None;
    }
    let cast = |(e, t): (&Expr, &DataType)| match *t == finest || t.is_null() {
        true => e.clone(),
        false => Expr::Cast(Cast::new(Box::new(e.clone()), finest.clone())),
    };
    Some(values.iter().zip(&types).map(cast).collect())
}

fn find_value_types(values: &[(&Expr, &DFSchema)]) -> Option<Vec<DataType>> {
    let types = values.iter().map(|(e, schema)| match e.get_type(*schema).ok()? {
        DataType::Dictionary(_, of) => Some(*of),
        t => Some(t),
    });
    types.collect()
}

pub(super) fn is_clock(t: &DataType) -> bool {
    matches!(t, DataType::Time32(_) | DataType::Time64(_))
}

/// Whether `t` is a date or a time of day, or a list of them.
pub(super) fn is_day_or_clock(t: &DataType) -> bool {
    let leaf = leaf_type(t);
    matches!(leaf, DataType::Date32 | DataType::Date64) || is_clock(leaf)
}

/// Returns the value of a constant expression as a time of day in nanoseconds. Returns `None` for
/// an expression that is not constant, is NULL or cannot be cast to a time of day.
fn read_clock(e: &Expr) -> Option<ScalarValue> {
    let constant =
        is_constant(e).then(|| fold_constant(e.clone(), &DFSchema::empty())).flatten()?;
    let Expr::Literal(constant, _) = constant else { return None };
    constant.cast_to(&FINEST).ok().filter(|time| !time.is_null())
}

fn is_exact(time: &ScalarValue, unit: &DataType) -> bool {
    let there = time.cast_to(unit).and_then(|there| there.cast_to(&FINEST));
    there.is_ok_and(|back| back == *time)
}
