//! Rejects DISTINCT, IGNORE NULLS and similar modifiers where an aggregate or window function
//! ignores them.

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::{
    Expr, ExprSchemable, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition,
};

use crate::functions::find_aggregate_facts;

pub(in crate::sql) fn check_aggregate(call: &AggregateFunction) -> Result<()> {
    if call.params.distinct {
        check_distinct(call.func.name(), &call.params.args)?;
    }
    Ok(())
}

pub(in crate::sql) fn check_window(call: &WindowFunction) -> Result<()> {
    let params = &call.params;
    match &call.fun {
        WindowFunctionDefinition::AggregateUDF(aggregate) => {
            let name = aggregate.name();
            if params.distinct {
                check_distinct(name, &params.args)?;
            }
            if let Some(clause) = &params.null_treatment
                && !aggregate.supports_null_handling_clause()
            {
                return plan_err!(
                    "{name}(..) {clause} is not supported, because {name} always treats NULL in the same way; remove the clause, or use a function that supports it: first_value, last_value, nth_value, lag or lead"
                );
            }
        }
        WindowFunctionDefinition::WindowUDF(function) => {
            let name = function.name();
            if params.distinct {
                return plan_err!(
                    "{name}(DISTINCT ..) OVER (..) is not supported, because {name} uses every row; select distinct rows first, as in FROM (SELECT DISTINCT ..)"
                );
            }
            let two_ways = ["first_value", "last_value", "nth_value", "lag", "lead"];
            if let Some(clause) = &params.null_treatment
                && !two_ways.contains(&name)
            {
                return plan_err!(
                    "{name}(..) {clause} is not supported, because {name} depends only on the position of a row, not on values that may be NULL; remove the clause, or use one of the functions that support it: {}",
                    two_ways.join(", ")
                );
            }
        }
    }
    Ok(())
}

/// Returns an error for an offset in a RANGE frame (`RANGE 3 PRECEDING`) if no offset can be added
/// to the values of ORDER BY, such as strings. DataFusion would ignore the offset.
pub(in crate::sql) fn check_range(call: &WindowFunction, schema: &DFSchema) -> Result<()> {
    let (frame, [key]) = (&call.params.window_frame, call.params.order_by.as_slice()) else {
        return Ok(());
    };
    let offset = [&frame.start_bound, &frame.end_bound].into_iter().find(|bound| match bound {
        WindowFrameBound::Preceding(n) | WindowFrameBound::Following(n) => !n.is_null(),
        WindowFrameBound::CurrentRow => false,
    });
    let (WindowFrameUnits::Range, Some(offset), Ok(found)) =
        (frame.units, offset, key.expr.get_type(schema))
    else {
        return Ok(());
    };
    let value = match &found {
        DataType::Dictionary(_, value) => value.as_ref(),
        other => other,
    };
    let is_ordered_only =
        value.is_string() || value.is_binary() || value.is_nested() || *value == DataType::Boolean;
    match is_ordered_only {
        true => plan_err!(
            "the frame RANGE .. {offset} needs numbers, dates or times in the ORDER BY of its window, but {} is {found}; write ROWS to count rows, or GROUPS to count different values",
            key.expr.schema_name()
        ),
        false => Ok(()),
    }
}

fn check_distinct(name: &str, args: &[Expr]) -> Result<()> {
    let facts = find_aggregate_facts(name);
    if facts.refuses_distinct {
        return plan_err!(
            "{name}(DISTINCT ..) is not supported, because {name} uses every row; select distinct rows first, as in FROM (SELECT DISTINCT ..)"
        );
    }
    if args.len() > 1 && !facts.distinct_of_first {
        return plan_err!(
            "{name}(DISTINCT a, b) is not supported, because DISTINCT applies to one argument; combine the arguments, as in count(DISTINCT named_struct('a', a, 'b', b))"
        );
    }
    Ok(())
}
