use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{
    Expr, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition,
};

use crate::functions::keep_window_order;
use crate::sql::base::expression_parts::map_named;

/// The result of `SELECT count(1) OVER (PARTITION BY g ORDER BY i ROWS BETWEEN 1 PRECEDING AND
/// CURRENT ROW) AS n FROM t ORDER BY n` is not sorted without this rule.
///
/// Analyzer rule: marks the sliding frames of aggregates as non-causal, that is as dependent on
/// later rows.
///
/// DataFusion 55 assumes that the results of `count(x)` over a causal frame such as
/// `ROWS BETWEEN 1 PRECEDING AND CURRENT ROW` are sorted, and omits ORDER BY and DISTINCT above
/// them. In fact, the counts restart in each partition and decrease at NULL. DataFusion makes no
/// such assumption for non-causal frames. The mark does not change the results: a streaming window
/// waits for later rows only where a frame can have them. Serrate's own `min`, `max` and `sum`
/// report no order of their results in any case ([`crate::functions`]). This workaround is obsolete
/// once the test `stock_counts_over_frames_still_count_as_sorted` fails.
///
/// The rule also replaces `array_agg` and `string_agg` with functions whose windows DataFusion does
/// not reverse. This workaround is obsolete once the test
/// `stock_lists_of_reversed_windows_are_still_reversed` fails.
pub(in crate::sql) fn mark_sliding_frames(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|plan| {
        let LogicalPlan::Window(_) = &plan else { return Ok(Transformed::no(plan)) };
        map_named(plan, |e| {
            e.transform_up(|e| Ok(replace_ordered(e)))?
                .transform_data(|e| e.transform_up(|e| Ok(mark_frame(e))))
        })
    })?;
    Ok(plan.data)
}

fn replace_ordered(mut e: Expr) -> Transformed<Expr> {
    let Expr::WindowFunction(call) = &mut e else { return Transformed::no(e) };
    let WindowFunctionDefinition::AggregateUDF(function) = &mut call.fun else {
        return Transformed::no(e);
    };
    match keep_window_order(function) {
        Some(replaced) => {
            *function = replaced;
            Transformed::yes(e)
        }
        None => Transformed::no(e),
    }
}

fn mark_frame(mut e: Expr) -> Transformed<Expr> {
    let Expr::WindowFunction(call) = &mut e else { return Transformed::no(e) };
    let is_aggregate = matches!(call.fun, WindowFunctionDefinition::AggregateUDF(_));
    let frame = &mut call.params.window_frame;
    if !is_aggregate || !frame.is_causal() || frame.start_bound.is_unbounded() {
        return Transformed::no(e);
    }
    // Mark the frame as not causal, so that DataFusion does not assume that the results are sorted.
    // The mark cannot be set directly, but `new_bounds` sets it for a frame whose end depends on
    // later rows: make such a frame, then replace its end with the end of `frame`.
    let later = match frame.units {
        WindowFrameUnits::Rows => WindowFrameBound::Following(ScalarValue::UInt64(Some(1))),
        WindowFrameUnits::Range | WindowFrameUnits::Groups => WindowFrameBound::CurrentRow,
    };
    let mut marked = WindowFrame::new_bounds(frame.units, frame.start_bound.clone(), later);
    marked.end_bound = frame.end_bound.clone();
    *frame = marked;
    Transformed::yes(e)
}
