//! Calls of scalar functions on lists.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};

use crate::array::{leaf_type, list_depth};
use crate::functions::expression_planners::constant_folding::fold_to_literals;
use crate::functions::expression_planners::times_of_day::{unify_clocks, unify_elements};
use crate::functions::list_counts::call_array_length;
use crate::functions::list_fields::concat_lists;
use crate::functions::over_lists::map_over_lists;
use crate::functions::{
    StockFact, cast_element_dates, find_replacement_on_lists, has_fact, is_ours,
};

/// Functions that return one of their arguments, or a list of them. All arguments must have the
/// same type, so times of day in several units are cast to one unit.
const CHOOSING: [&str; 6] = ["coalesce", "greatest", "least", "make_array", "nullif", "nvl"];

pub(super) fn replace_list_call(call: Expr, schema: &DFSchema) -> Expr {
    let plain = match &call {
        Expr::Alias(alias) => alias.expr.as_ref(),
        plain => plain,
    };
    let Expr::ScalarFunction(function) = plain else { return call };
    let replaced = match is_ours(&function.func) {
        true => Some(fold_to_literals(function.clone(), schema)),
        false if CHOOSING.contains(&function.name()) => {
            unify_clocks(&function.args, schema).map(|args| {
                Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&function.func), args))
            })
        }
        false if function.name().starts_with("array_") => {
            let args: Vec<&Expr> = function.args.iter().collect();
            unify_elements(&args, schema)
                .or_else(|| cast_searched(function, schema))
                // DataFusion refuses to plan a search of a list of dates for a timestamp with a zone.
                .or_else(|| cast_element_dates(function, schema))
                .map(|args| {
                    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&function.func), args))
                })
        }
        false => None,
    };
    if let Some(plain) = replaced {
        return match call {
            Expr::Alias(mut alias) => {
                *alias.expr = plain;
                Expr::Alias(alias)
            }
            _ => plain,
        };
    }
    let is_list = |e: &Expr| e.get_type(schema).is_ok_and(|t| list_depth(&t) > 0);
    if function.name() == "character_length"
        && let [list] = function.args.as_slice()
        && is_list(list)
    {
        return call_array_length(list.clone());
    }
    if let Some(lists) = plan_concat(function, schema) {
        return lists;
    }
    match find_replacement_on_lists(function.name()) {
        Some(ours) if function.args.first().is_some_and(is_list) => {
            ours.call(function.args.clone())
        }
        _ => map_over_lists(function, schema).unwrap_or(call),
    }
}

/// If a call searches a list of dates or times for a string literal, casts the string to the type
/// of the elements. Returns `None` for other calls, and if this cast could drop a part of the
/// string, such as the time of day in a list of dates.
fn cast_searched(call: &ScalarFunction, schema: &DFSchema) -> Option<Vec<Expr>> {
    let [list, Expr::Literal(value, _), ..] = call.args.as_slice() else { return None };
    let text = value.try_as_str().flatten()?;
    let lists = list.get_type(schema).ok()?;
    let element = leaf_type(&lists);
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    let is_exact = match element {
        // A string of at most this length has no time of day.
        DataType::Date32 | DataType::Date64 => text.len() <= "2020-01-01".len(),
        DataType::Timestamp(unit, _) | DataType::Time32(unit) | DataType::Time64(unit) => {
            digits
                <= match unit {
                    TimeUnit::Second => 0,
                    TimeUnit::Millisecond => 3,
                    TimeUnit::Microsecond => 6,
                    TimeUnit::Nanosecond => 9,
                }
        }
        _ => false,
    };
    let searches = has_fact(call.name(), StockFact::FindsElement);
    if !searches || !is_exact || list_depth(&lists) != 1 {
        return None;
    }
    let mut args = call.args.clone();
    let value = std::mem::take(&mut args[1]);
    args[1] = Expr::Cast(Cast::new(Box::new(value), element.clone()));
    Some(args)
}

/// Plans `concat` of lists and NULL as the concatenation of the lists, as in DuckDB.
/// DataFusion would concatenate the lists as strings.
fn plan_concat(call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let types = call.args.iter().map(|arg| arg.get_type(schema));
    let types = types.collect::<Result<Vec<_>>>().ok()?;
    let are_lists = types.iter().all(|t| t.is_null() || list_depth(t) > 0)
        && types.iter().any(|t| !t.is_null());
    let lists = call.args.iter().zip(&types).filter(|(_, t)| !t.is_null());
    let lists: Vec<Expr> = lists.map(|(arg, _)| arg.clone()).collect();
    (call.name() == "concat" && are_lists).then(|| concat_lists(lists))
}
