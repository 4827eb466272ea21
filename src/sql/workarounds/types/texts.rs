use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, lit};

use crate::sql::base::expression_parts::rewrite_parts;
use crate::sql::sources::run_ends::to_plain_type;

/// Analyzer rule, before type coercion, that casts what DataFusion does not accept, mostly
/// dictionaries:
///
/// * The pattern of LIKE, if the tested value is a dictionary of strings, to the type of the
///   dictionary's values. Type coercion keeps the dictionary and casts the pattern to another
///   string type, so `code LIKE pattern` fails if the pattern is a column of a Parquet file.
/// * A dictionary in `approx_distinct` and in `string_agg` with DISTINCT to its values. Type
///   coercion casts the argument of `string_agg(DISTINCT code, ',' ORDER BY code)`, but not the
///   expression of ORDER BY, which must be equal.
/// * Floats in `approx_distinct`, which has no implementation for them, to strings.
/// * Dictionaries in `array_agg` and `nth_value` whose keys have fewer than 32 bits, to
///   dictionaries with keys of 32 bits. These aggregates keep the values of all batches, and narrow
///   keys may be too few for them. DataFusion then panics if the call has ORDER BY.
pub(in crate::sql) fn cast_dictionaries(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_affected = |e: &Expr| match e {
        Expr::Like(_) => true,
        Expr::AggregateFunction(call) => needs_values(call) || keeps_rows(call),
        _ => false,
    };
    rewrite_parts(plan, is_affected, |e, columns| {
        Ok(match e {
            Expr::Like(_) => cast_pattern(e, columns),
            Expr::AggregateFunction(call) if needs_values(&call) => cast_argument(call, columns),
            Expr::AggregateFunction(call) if keeps_rows(&call) => widen_keys(call, columns),
            e => Transformed::no(e),
        })
    })
}

fn cast_pattern(e: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::Like(mut like) = e else { return Transformed::no(e) };
    let values = match like.expr.get_type(schema) {
        Ok(DataType::Dictionary(_, values)) if values.is_string() => *values,
        _ => return Transformed::no(Expr::Like(like)),
    };
    // Only a dictionary of Utf8 that is compared with a pattern of another type needs a cast:
    // DataFusion supports a pattern of type Utf8, and unpacks dictionaries of other string types
    // itself.
    let pattern = like.pattern.get_type(schema);
    if values != DataType::Utf8 || pattern.is_ok_and(|t| t == DataType::Utf8 || t.is_null()) {
        return Transformed::no(Expr::Like(like));
    }
    like.pattern = Box::new(Expr::Cast(Cast::new(like.pattern, values)));
    Transformed::yes(Expr::Like(like))
}

fn needs_values(call: &AggregateFunction) -> bool {
    match call.func.name() {
        "approx_distinct" => true,
        "string_agg" => call.params.distinct,
        _ => false,
    }
}

/// Whether an aggregate keeps the values of its arguments and sort keys in rows.
fn keeps_rows(call: &AggregateFunction) -> bool {
    ["array_agg", "nth_value"].contains(&call.func.name())
}

/// Casts the arguments and sort keys of an aggregate to types whose dictionaries have keys of at
/// least 32 bits.
fn widen_keys(mut call: AggregateFunction, schema: &DFSchema) -> Transformed<Expr> {
    let mut is_changed = false;
    let keys = call.params.order_by.iter_mut().map(|key| &mut key.expr);
    for value in call.params.args.iter_mut().chain(keys) {
        let Ok(given) = value.get_type(schema) else { continue };
        let wide = to_plain_type(&given);
        if wide != given {
            *value = Expr::Cast(Cast::new(Box::new(value.clone()), wide));
            is_changed = true;
        }
    }
    Transformed::new_transformed(Expr::AggregateFunction(call), is_changed)
}

/// Casts the first argument of an aggregate, if it is a dictionary, to its values. Does the same
/// with an equal key of ORDER BY. Casts floats in `approx_distinct` to strings.
fn cast_argument(mut call: AggregateFunction, schema: &DFSchema) -> Transformed<Expr> {
    let is_estimate = call.func.name() == "approx_distinct";
    let params = &mut call.params;
    let Some(argument) = params.args.first_mut() else {
        return Transformed::no(Expr::AggregateFunction(call));
    };
    let Ok(given) = argument.get_type(schema) else {
        return Transformed::no(Expr::AggregateFunction(call));
    };
    let old = argument.clone();
    let (mut new, values) = match given {
        DataType::Dictionary(_, values) => {
            (Expr::Cast(Cast::new(Box::new(old.clone()), *values.clone())), *values)
        }
        values => (old.clone(), values),
    };
    if is_estimate && values.is_floating() {
        // The sum is 0.0 for -0.0, so that both zeros have one text.
        new = Expr::Cast(Cast::new(Box::new(new + lit(0.0)), DataType::Utf8));
    }
    if new == old {
        return Transformed::no(Expr::AggregateFunction(call));
    }
    *argument = new.clone();
    for key in params.order_by.iter_mut().filter(|key| key.expr == old) {
        key.expr = new.clone();
    }
    Transformed::yes(Expr::AggregateFunction(call))
}
