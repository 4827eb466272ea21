use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Cast, Expr, ExprSchemable, LogicalPlan, WindowFrameBound, WindowFrameUnits,
};

use crate::sql::base::expression_parts::rewrite_parts;

/// Analyzer rule, before type coercion: casts durations and TIME in window ORDER BY to integers.
///
/// Type coercion rejects `rank() OVER (ORDER BY end - start)`, because the default frame of a
/// window is a RANGE and DataFusion supports no RANGE over durations and TIME, even if its bounds
/// have no offset. This workaround is obsolete once the test
/// `stock_windows_over_durations_still_fail` fails.
pub(in crate::sql) fn cast_window_durations(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_window = |e: &Expr| matches!(e, Expr::WindowFunction(_));
    rewrite_parts(plan, is_window, |e, columns| Ok(order_by_numbers(e, columns)))
}

fn order_by_numbers(mut e: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::WindowFunction(call) = &mut e else { return Transformed::no(e) };
    let WindowFunction { params, .. } = &mut **call;
    let frame = &params.window_frame;
    let is_end = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => true,
        WindowFrameBound::Preceding(n) | WindowFrameBound::Following(n) => n.is_null(),
    };
    // Keys of a RANGE frame with an offset are not cast, because the offset is not an integer. Keys
    // of ROWS and GROUPS frames are cast, too, because all windows of a node must have the same
    // sort keys.
    if frame.units == WindowFrameUnits::Range
        && !(is_end(&frame.start_bound) && is_end(&frame.end_bound))
    {
        return Transformed::no(e);
    }
    let mut changed = false;
    for key in &mut params.order_by {
        let number = match key.expr.get_type(schema) {
            Ok(DataType::Duration(_) | DataType::Time64(_)) => DataType::Int64,
            Ok(DataType::Time32(_)) => DataType::Int32,
            _ => continue,
        };
        let time = std::mem::take(&mut key.expr);
        key.expr = Expr::Cast(Cast::new(Box::new(time), number));
        changed = true;
    }
    Transformed::new_transformed(e, changed)
}
