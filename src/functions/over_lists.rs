//! Scalar functions applied to the values of lists, such as `upper(code)` or
//! `date_trunc('month', time)`.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{HigherOrderFunction, LambdaVariable, ScalarFunction};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{Expr, ExprSchemable, lambda};

use super::lambda::build_udf;
use super::stock_facts::{StockFact, has_fact};
use crate::array::{leaf_type, list_depth};

/// Rewrites a call of a scalar function to a `ragged_map` over its list arguments. Returns `None`
/// if no argument is a list, or if the function accepts lists or refuses the values of the lists.
pub(super) fn map_over_lists(call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let types: Option<Vec<_>> = call.args.iter().map(|arg| arg.get_type(schema).ok()).collect();
    let types = types?;
    // `coalesce` is not mapped over the values of lists, because it chooses one whole list.
    let of_lists = call.name() == "coalesce" || accepts_lists(call, &types, schema);
    if types.iter().all(|t| list_depth(t) == 0) || of_lists {
        return None;
    }
    let (mut names, mut lists, mut body) = (Vec::new(), Vec::new(), Vec::new());
    for (arg, data_type) in call.args.iter().zip(&types) {
        if list_depth(data_type) == 0 {
            body.push(arg.clone());
            continue;
        }
        let name = make_variable_name(names.len());
        let leaf = Arc::new(Field::new_list_field(leaf_type(data_type).clone(), true));
        body.push(Expr::LambdaVariable(LambdaVariable::new(name.clone(), Some(leaf))));
        names.push(name);
        lists.push(arg.clone());
    }
    let body = Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&call.func), body));
    body.get_type(schema).ok()?;
    lists.push(lambda(names, body));
    let map = Arc::new(build_udf(call.name()));
    Some(Expr::HigherOrderFunction(HigherOrderFunction::new(map, lists)))
}

/// Whether a function accepts list arguments as lists. Some functions, such as `left`, do not:
/// DataFusion passes lists to them as text.
fn accepts_lists(call: &ScalarFunction, types: &[DataType], schema: &DFSchema) -> bool {
    if Expr::ScalarFunction(call.clone()).get_type(schema).is_err() {
        return false;
    }
    if has_fact(call.name(), StockFact::RefusesLists) {
        return false;
    }
    // These functions convert values of any type, also lists, to strings.
    if ["concat", "concat_ws"].contains(&call.name()) {
        return true;
    }
    let fields = call.args.iter().map(|arg| arg.to_field(schema).map(|(_, field)| field));
    let Ok(fields) = fields.collect::<Result<Vec<_>>>() else { return true };
    let Ok(coerced) = fields_with_udf(&fields, call.func.as_ref()) else { return true };
    let is_kept = |(to, from): (&FieldRef, &DataType)| {
        list_depth(from) == 0 || list_depth(to.data_type()) > 0
    };
    coerced.iter().zip(types).all(is_kept)
}

/// Returns the call that `map_over_lists` has rewritten to `map`: `upper(codes)` for
/// `ragged_map(codes, value_0 -> upper(value_0))`. Returns `None` if `map` is not such a rewritten
/// call.
pub(crate) fn write_list_call(map: &HigherOrderFunction) -> Option<Expr> {
    let (Expr::Lambda(lambda), lists) = map.args.split_last()? else { return None };
    let Expr::ScalarFunction(mut call) = lambda.body.as_ref().clone() else { return None };
    if lambda.params.iter().enumerate().any(|(at, name)| *name != make_variable_name(at)) {
        return None;
    }
    let mut lists = lists.iter();
    for arg in &mut call.args {
        if matches!(arg, Expr::LambdaVariable(_)) {
            *arg = lists.next()?.clone();
        }
    }
    lists.next().is_none().then_some(Expr::ScalarFunction(call))
}

fn make_variable_name(at: usize) -> String {
    format!("value_{at}")
}
