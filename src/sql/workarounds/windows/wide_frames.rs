use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Cast, Expr, ExprSchemable, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits,
};

use crate::sql::base::expression_parts::{find_columns_below, for_each_part, rewrite_node};

/// A decimal type that holds the sum of a 64-bit integer and any offset of up to [`FARTHEST`].
const WIDEST: DataType = DataType::Decimal128(38, 0);
const FARTHEST: u128 = 10u128.pow(37);

/// Maximum number of rows or groups in a bound of a frame.
const MOST_ROWS: u64 = 1 << 62;

/// Without this rule, `SELECT count(*) OVER (ORDER BY j RANGE BETWEEN CURRENT ROW AND 50 FOLLOWING)
/// FROM t` also counts the rows whose `j` is NULL, if `j` is a TINYINT and 100 in the current row.
///
/// Analyzer rule, before type coercion: widens integer keys of RANGE frames with an offset `n`.
///
/// If `key + n` does not fit the type of the key, DataFusion 55 extends the frame to the end of the
/// partition, so that the frame includes the rows whose key is NULL. An `n` that does not fit the
/// type of the key has the same effect. This workaround is obsolete once the test
/// `stock_frames_beyond_a_type_still_include_null` fails.
pub(in crate::sql) fn widen_frames(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|plan| {
        let LogicalPlan::Window(_) = &plan else { return Ok(Transformed::no(plan)) };
        check_bounds(&plan)?;
        let schema = find_columns_below(&plan)?;
        // All windows of a node must have the same sort keys, so a key is widened in all of them.
        let mut widened = Vec::new();
        for_each_part(&plan, |e| {
            widened.extend(widen_key(e, &schema));
            Ok(())
        })?;
        if widened.is_empty() {
            return Ok(Transformed::no(plan));
        }
        rewrite_node(plan, |e, _| Ok(replace_wide_keys(e, &widened)))
    })?;
    Ok(plan.data)
}

/// Returns an error for bounds that DataFusion's frames do not support: an INTERVAL with a negative
/// part (the frame ends before its start, <https://github.com/apache/datafusion/issues/24902>) and
/// a number of rows or groups that overflows when it is added to a position.
fn check_bounds(windows: &LogicalPlan) -> Result<()> {
    for_each_part(windows, |e| {
        if let Expr::WindowFunction(call) = e {
            let frame = &call.params.window_frame;
            check_bound(&frame.start_bound)?;
            check_bound(&frame.end_bound)?;
        }
        Ok(())
    })
}

fn check_bound(bound: &WindowFrameBound) -> Result<()> {
    let (WindowFrameBound::Preceding(by) | WindowFrameBound::Following(by)) = bound else {
        return Ok(());
    };
    match by {
        ScalarValue::Utf8(Some(text)) if is_negative(text) => plan_err!(
            "the bound {text} of a window frame is negative; write the bound without a minus sign, and exchange PRECEDING and FOLLOWING"
        ),
        ScalarValue::UInt64(Some(rows)) if *rows > MOST_ROWS => plan_err!(
            "the bound {rows} of a window frame is greater than 2^62; write UNBOUNDED, or a smaller bound"
        ),
        _ => Ok(()),
    }
}

/// Whether a bound is a negative number or an INTERVAL with a negative part. The number
/// 15e-1 is not negative, because only its exponent is.
fn is_negative(bound: &str) -> bool {
    match bound.parse::<f64>() {
        Ok(number) => number.is_sign_negative(),
        Err(_) => bound.contains('-'),
    }
}

/// If the bounds of a RANGE frame may exceed the type of its sort key, returns the key and a wider
/// type for it.
fn widen_key(e: &Expr, schema: &DFSchema) -> Option<(Expr, DataType)> {
    use DataType::{Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    let Expr::WindowFunction(call) = e else { return None };
    let [by] = call.params.order_by.as_slice() else { return None };
    let farthest = find_farthest_bound(&call.params.window_frame)?;
    let given = by.expr.get_type(schema).ok()?;
    // If a bound overflows the type of the key, DataFusion extends the frame to the boundary of the
    // partition. The result is still correct if the key is never NULL, because the frame then gains
    // no rows whose key is NULL.
    let is_right = || !by.expr.nullable(schema).unwrap_or(true);
    let wide = match given {
        Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32 if farthest <= 1 << 62 => Int64,
        Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32 => WIDEST,
        Int64 | UInt64 if is_right() && i64::try_from(farthest).is_ok() => return None,
        Int64 | UInt64 => WIDEST,
        _ => return None,
    };
    (farthest <= FARTHEST).then(|| (by.expr.clone(), wide))
}

/// Returns the greatest offset of a RANGE frame. Its bounds are still strings, because type
/// coercion has not parsed them yet. Returns `None` for other frames, for frames without offsets,
/// and for offsets that are not integers.
fn find_farthest_bound(frame: &WindowFrame) -> Option<u128> {
    let distance = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(ScalarValue::Utf8(Some(n)))
        | WindowFrameBound::Following(ScalarValue::Utf8(Some(n))) => n.parse().ok().map(Some),
        WindowFrameBound::Preceding(n) | WindowFrameBound::Following(n) => {
            n.is_null().then_some(None)
        }
        WindowFrameBound::CurrentRow => Some(None),
    };
    let (start, end) = (distance(&frame.start_bound)?, distance(&frame.end_bound)?);
    start.max(end).filter(|_| frame.units == WindowFrameUnits::Range)
}

fn replace_wide_keys(mut e: Expr, widened: &[(Expr, DataType)]) -> Transformed<Expr> {
    let Expr::WindowFunction(call) = &mut e else { return Transformed::no(e) };
    let WindowFunction { params, .. } = &mut **call;
    let mut changed = false;
    let keys = params.order_by.iter_mut().map(|by| &mut by.expr);
    for key in keys.chain(&mut params.partition_by) {
        let wide = widened.iter().filter(|(of, _)| of == key).map(|(_, wide)| wide);
        if let Some(wide) = wide.max_by_key(|wide| **wide == WIDEST) {
            *key = Expr::Cast(Cast::new(Box::new(std::mem::take(key)), wide.clone()));
            changed = true;
        }
    }
    Transformed::new_transformed(e, changed)
}
