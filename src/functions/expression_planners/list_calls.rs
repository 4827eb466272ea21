//! Calls of scalar functions on lists.

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable};

use crate::array::list_depth;
use crate::functions::expression_planners::constant_folding::fold_to_literals;
use crate::functions::expression_planners::times_of_day::{unify_clocks, unify_elements};
use crate::functions::list_counts::array_length;
use crate::functions::list_fields::concat_lists;
use crate::functions::over_lists::map_over_lists;
use crate::functions::{find_scalar, is_ours};

/// String tests of DataFusion, each with the function of Serrate that tests every string of a list.
const TESTS: [(&str, &str); 2] =
    [("starts_with", "ragged_starts_with"), ("regexp_like", "ragged_matches")];

/// Functions that return one or all of their arguments.
const CHOOSING: [&str; 5] = ["coalesce", "greatest", "least", "make_array", "nullif"];

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
            unify_elements(&args, schema).map(|args| {
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
        return array_length(list.clone());
    }
    if let Some(lists) = plan_concat(function, schema) {
        return lists;
    }
    let ours = TESTS.iter().find(|(name, _)| *name == function.name()).map(|(_, ours)| *ours);
    match ours.and_then(find_scalar) {
        Some(test) if function.args.first().is_some_and(is_list) => {
            test.call(function.args.clone())
        }
        _ => map_over_lists(function, schema).unwrap_or(call),
    }
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
