//! Plans calls of scalar functions on lists: replaces them with calls of functions for lists, and
//! casts arguments for which DataFusion finds no common type.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::functions::{encoding, unicode};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Operator, lit};

use crate::array::{leaf_type, list_depth};
use crate::functions::expression_planners::constant_folding::fold_to_literals;
use crate::functions::expression_planners::literal_lists::cast_strings_to_times;
use crate::functions::expression_planners::times_of_day::{unify_clocks, unify_elements};
use crate::functions::list_counts::call_array_length;
use crate::functions::list_fields::concat_lists;
use crate::functions::over_lists::map_over_lists;
use crate::functions::{
    StockFact, cast_element_dates, find_element_field, find_replacement_on_lists, has_fact,
    is_ours, replace_element_type,
};

/// Functions that return one of their arguments, or a list of them. All arguments must have the
/// same type, so times of day in different units are cast to the same unit.
const CHOOSING: [&str; 6] = ["coalesce", "greatest", "least", "make_array", "nullif", "nvl"];

/// Plans a call of a scalar function, with or without an alias. Returns any other expression, and a
/// call that DataFusion plans as it should, unchanged.
pub(super) fn replace_list_call(call: Expr, schema: &DFSchema) -> Expr {
    let plain = match &call {
        Expr::Alias(alias) => alias.expr.as_ref(),
        plain => plain,
    };
    let Expr::ScalarFunction(function) = plain else { return call };
    if let Some(count) = count_bytes(function, schema) {
        return replace_in_alias(call, count);
    }
    if let Some(lists) = cast_views(function, schema) {
        let lists = replace_list_call(Expr::ScalarFunction(lists), schema);
        return replace_in_alias(call, lists);
    }
    if let Some(adapted) = adapt_arguments(function, schema) {
        return replace_in_alias(call, adapted);
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

/// Returns `expr` with the alias of `call`, if it has one.
fn replace_in_alias(call: Expr, expr: Expr) -> Expr {
    match call {
        Expr::Alias(mut alias) => {
            *alias.expr = expr;
            Expr::Alias(alias)
        }
        _ => expr,
    }
}

/// Folds the arguments of a function of Serrate to literals, and casts arguments of a function of
/// DataFusion for which it finds no common type. Returns `None` for other calls.
fn adapt_arguments(call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let args = match call.name() {
        _ if is_ours(&call.func) => return Some(fold_to_literals(call.clone(), schema)),
        name if CHOOSING.contains(&name) => {
            unify_clocks(&call.args, schema).or_else(|| cast_chosen_strings(call, schema))
        }
        name if name.starts_with("array_") => {
            let args: Vec<&Expr> = call.args.iter().collect();
            unify_elements(&args, schema)
                .or_else(|| cast_searched(call, schema))
                // DataFusion refuses to plan a call that searches a list of dates for a timestamp
                // with a zone, so the dates are cast to timestamps.
                .or_else(|| cast_element_dates(call, schema))
        }
        _ => None,
    };
    let args = args?;
    Some(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&call.func), args)))
}

/// Returns the number of bytes of a binary value for `length(b)` and `octet_length(b)`: half the
/// number of its hexadecimal digits. DataFusion would count the characters of `b` as a string, or
/// refuse the call. Returns `None` for other calls.
fn count_bytes(call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    use DataType::{Binary, BinaryView, LargeBinary};
    let [bytes] = call.args.as_slice() else { return None };
    let counts = matches!(call.name(), "character_length" | "octet_length");
    if !counts || !matches!(bytes.get_type(schema), Ok(Binary | BinaryView | LargeBinary)) {
        return None;
    }
    let digits = encoding::encode().call(vec![bytes.clone(), lit("hex")]);
    let count = unicode::character_length().call(vec![digits]);
    Some(Expr::BinaryExpr(BinaryExpr::new(Box::new(count), Operator::Divide, Box::new(lit(2i64)))))
}

/// Casts the list views in a call to lists, if the function of DataFusion does not accept list
/// views or would receive them as text, as `length` does. Returns `None` for other calls.
fn cast_views(call: &ScalarFunction, schema: &DFSchema) -> Option<ScalarFunction> {
    use DataType::{FixedSizeList, LargeList, LargeListView, List, ListView};
    let fields = call.args.iter().map(|arg| arg.to_field(schema).map(|(_, field)| field));
    let fields = fields.collect::<Result<Vec<FieldRef>>>().ok()?;
    let merges_levels = call.name() == "flatten";
    let lists = fields.iter().map(|field| match merges_levels {
        true => find_list_of_lists(field.data_type()),
        false => find_list(field.data_type()),
    });
    let lists: Vec<Option<DataType>> = lists.collect();
    if is_ours(&call.func) || lists.iter().all(Option::is_none) {
        return None;
    }
    let is_nested = |t: &DataType| {
        matches!(t, List(_) | LargeList(_) | FixedSizeList(..) | ListView(_) | LargeListView(_))
    };
    if !merges_levels
        && let Ok(coerced) = fields_with_udf(&fields, call.func.as_ref())
        && coerced.iter().zip(&lists).all(|(to, list)| list.is_none() || is_nested(to.data_type()))
    {
        return None;
    }
    let args = call.args.iter().zip(lists).map(|(arg, list)| match list {
        Some(list) => Expr::Cast(Cast::new(Box::new(arg.clone()), list)),
        None => arg.clone(),
    });
    Some(ScalarFunction::new_udf(Arc::clone(&call.func), args.collect()))
}

/// Casts string literals in a call such as `coalesce(day, '2020-01-01')` to the type of the other
/// arguments, if these are dates, times or intervals of one type. DataFusion finds no common type
/// for them. Returns `None` for other calls.
fn cast_chosen_strings(call: &ScalarFunction, schema: &DFSchema) -> Option<Vec<Expr>> {
    if !matches!(call.name(), "coalesce" | "nvl") {
        return None;
    }
    let args = cast_strings_to_times(call.args.clone(), schema);
    (args != call.args).then_some(args)
}

/// Returns the list type that replaces a list view type; `None` for other types.
fn find_list(view: &DataType) -> Option<DataType> {
    match view {
        DataType::ListView(field) => Some(DataType::List(Arc::clone(field))),
        DataType::LargeListView(field) => Some(DataType::LargeList(Arc::clone(field))),
        _ => None,
    }
}

/// If the elements of lists of the type `of` are list views, returns this type with lists in place
/// of list views, because DataFusion's `flatten` would return lists of list views unchanged.
/// Returns `None` for other types.
fn find_list_of_lists(of: &DataType) -> Option<DataType> {
    let outer = find_list(of).unwrap_or_else(|| of.clone());
    let inner = find_list(find_element_field(&outer)?.data_type())?;
    replace_element_type(&outer, inner)
}

/// If a call searches a list of dates or times for a string literal, or appends one to it, casts
/// the string to the type of the elements. Returns `None` for other calls, and if this cast could
/// drop a part of the string, such as the time of day in a list of dates.
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
    let takes_element =
        call.name() == "array_append" || has_fact(call.name(), StockFact::FindsElement);
    if !takes_element || !is_exact || list_depth(&lists) != 1 {
        return None;
    }
    let mut args = call.args.clone();
    let value = std::mem::take(&mut args[1]);
    args[1] = Expr::Cast(Cast::new(Box::new(value), element.clone()));
    Some(args)
}

/// Plans `concat` of lists and NULL as the concatenation of the lists, as in DuckDB; DataFusion
/// would concatenate them as strings. Returns `None` for all other calls.
fn plan_concat(call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let types = call.args.iter().map(|arg| arg.get_type(schema));
    let types = types.collect::<Result<Vec<_>>>().ok()?;
    let are_lists = types.iter().all(|t| t.is_null() || list_depth(t) > 0)
        && types.iter().any(|t| !t.is_null());
    let lists = call.args.iter().zip(&types).filter(|(_, t)| !t.is_null());
    let lists: Vec<Expr> = lists.map(|(arg, _)| arg.clone()).collect();
    (call.name() == "concat" && are_lists).then(|| concat_lists(lists))
}
