//! Rejects DISTINCT, IGNORE NULLS and similar modifiers where an aggregate or window function ignores them.

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::{Expr, WindowFunctionDefinition};

/// Aggregates whose accumulators ignore DISTINCT although it would change the result.
///
/// The test `distinct_aggregates_are_what_they_say` checks this list.
const ALL_ROWS: [&str; 16] = [
    "approx_percentile_cont",
    "corr",
    "covar_pop",
    "covar_samp",
    "nth_value",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "ragged_histogram_agg",
    "ragged_nest_agg",
];

/// Aggregates of several arguments for which DISTINCT applies to the first argument.
const ABOUT_THE_FIRST: [&str; 3] = ["string_agg", "percentile_cont", "approx_percentile_cont"];

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
                    "{name}(..) {clause} is not supported, because {name} has only one treatment of NULL; remove the clause, or use a function that supports it: first_value, last_value, nth_value, lag or lead"
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
                    "{name}(..) {clause} is not supported, because {name} does not read values; remove the clause, or use one of the functions that support it: {}",
                    two_ways.join(", ")
                );
            }
        }
    }
    Ok(())
}

fn check_distinct(name: &str, args: &[Expr]) -> Result<()> {
    if ALL_ROWS.contains(&name) {
        return plan_err!(
            "{name}(DISTINCT ..) is not supported, because {name} uses every row; select distinct rows first, as in FROM (SELECT DISTINCT ..)"
        );
    }
    if args.len() > 1 && !ABOUT_THE_FIRST.contains(&name) {
        return plan_err!(
            "{name}(DISTINCT a, b) is not supported, because DISTINCT applies to one argument; combine the arguments, as in count(DISTINCT named_struct('a', a, 'b', b))"
        );
    }
    Ok(())
}
