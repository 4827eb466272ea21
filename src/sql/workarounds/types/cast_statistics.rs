use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, TryCast};

use crate::sql::base::expression_parts::{has_part, rewrite_node};
use crate::sql::workarounds::grouping::dependencies::COMPUTED_COLUMN;
use crate::sql::workarounds::types::coarser_times::is_named_cast;
use crate::sql::workarounds::types::compared_casts::is_utc;

/// Analyzer rule: hides the statistics of a column below a cast that does not keep the order of its
/// values or that makes different values equal.
///
/// DataFusion 55 casts the minimum, the maximum and the number of distinct values of a column in a
/// Parquet file, and answers `min`, `max` and `count(DISTINCT ..)` with the results. The strings
/// '9' and '10' then have the maximum `'9'::INT`, which is 9:
/// <https://github.com/apache/datafusion/issues/25221>. The upstream fix is not released yet. This
/// workaround is obsolete once the tests `stock_casts_still_keep_statistics` and
/// `stock_casts_still_skip_row_groups` fail.
///
/// DataFusion also skips row groups for which a condition on the cast minimum and maximum is false,
/// unless the cast is between a string and another type. So `t::TIME = TIME '12:00:00'` skips a row
/// group of the times from 23:00 on 1 January to 01:00 on 3 January, although it may contain 12:00
/// on 2 January. In a filter, the rule hides the statistics only below casts that do not keep the
/// order, because a cast that makes different values equal skips no row group wrongly. In other
/// nodes, the rule treats TRY_CAST as in a filter, because the optimizer may move a TRY_CAST into a
/// filter.
pub(in crate::sql) fn hide_cast_statistics(plan: LogicalPlan) -> Result<LogicalPlan> {
    let rewritten = plan.transform_up_with_subqueries(|plan| {
        let is_scan = matches!(plan, LogicalPlan::TableScan(_));
        if is_scan || !has_part(&plan, is_column_cast) {
            return Ok(Transformed::no(plan));
        }
        let is_condition = matches!(plan, LogicalPlan::Filter(_));
        let is_misleading = |from: &DataType, to: &DataType, is_try_cast: bool| match is_condition {
            false if !is_try_cast => !keeps_statistics(from, to),
            _ => !keeps_order(from, to),
        };
        rewrite_node(plan, |e, columns| match e {
            Expr::Cast(Cast { expr, field })
                if is_cast_column(&expr)
                    && is_misleading(&expr.get_type(columns)?, field.data_type(), false) =>
            {
                let expr = Box::new(hide_statistics(*expr));
                Ok(Transformed::yes(Expr::Cast(Cast { expr, field })))
            }
            Expr::TryCast(TryCast { expr, field })
                if is_cast_column(&expr)
                    && is_misleading(&expr.get_type(columns)?, field.data_type(), true) =>
            {
                let expr = Box::new(hide_statistics(*expr));
                Ok(Transformed::yes(Expr::TryCast(TryCast { expr, field })))
            }
            e if is_column_cast(&e) && is_named_cast(&e) => {
                let to = e.get_type(columns)?;
                let Expr::ScalarFunction(mut call) = e else { return Ok(Transformed::no(e)) };
                let hides = is_misleading(&call.args[0].get_type(columns)?, &to, false);
                if hides {
                    let column = std::mem::take(&mut call.args[0]);
                    call.args[0] = hide_statistics(column);
                }
                Ok(Transformed::new_transformed(Expr::ScalarFunction(call), hides))
            }
            e => Ok(Transformed::no(e)),
        })
    })?;
    Ok(rewritten.data)
}

fn hide_statistics(e: Expr) -> Expr {
    COMPUTED_COLUMN.call(vec![e])
}

fn is_column_cast(e: &Expr) -> bool {
    match e {
        Expr::Cast(cast) => is_cast_column(&cast.expr),
        Expr::TryCast(cast) => is_cast_column(&cast.expr),
        // These calls count as casts: the simplifier replaces `arrow_cast` and `arrow_try_cast`
        // with casts.
        Expr::ScalarFunction(call) => {
            is_named_cast(e) && call.args.first().is_some_and(is_cast_column)
        }
        _ => false,
    }
}

/// Whether an expression is a column, or a cast or the negative of a column. DataFusion derives the
/// statistics of such an expression from those of the column.
fn is_cast_column(e: &Expr) -> bool {
    match e {
        Expr::Column(_) => true,
        Expr::Cast(cast) => is_cast_column(&cast.expr),
        Expr::TryCast(cast) => is_cast_column(&cast.expr),
        Expr::Negative(negated) => is_cast_column(negated),
        _ => false,
    }
}

/// Whether a cast keeps the order of values and maps different values to different values.
fn keeps_statistics(from: &DataType, to: &DataType) -> bool {
    let is_date = |t: &DataType| matches!(t, DataType::Date32 | DataType::Int32);
    match (from, to) {
        (DataType::Dictionary(_, from), to) => keeps_statistics(from, to),
        (from, DataType::Dictionary(_, to)) => keeps_statistics(from, to),
        (DataType::Date32, DataType::Timestamp(_, None)) => true,
        (from, to) => {
            from == to
                || from.is_nested()
                || (from.is_integer() && to.is_integer())
                || (is_date(from) && is_date(to))
                || (from.is_string() && to.is_string())
        }
    }
}

/// Whether a cast keeps the order of values, though it may make different values equal. Also true
/// for casts between strings and other types, because DataFusion uses no statistics for conditions
/// on these casts.
fn keeps_order(from: &DataType, to: &DataType) -> bool {
    let is_count =
        |t: &DataType| t.is_integer() || (t.is_temporal() && !matches!(t, DataType::Interval(_)));
    match (from, to) {
        (DataType::Dictionary(_, from), to) => keeps_order(from, to),
        (from, DataType::Dictionary(_, to)) => keeps_order(from, to),
        (from, to) if from == to || from.is_nested() || from.is_string() || to.is_string() => true,
        // A cast between local times and instants does not keep the order, because clocks skip some
        // local times and repeat others, even across midnight.
        (DataType::Timestamp(_, from_zone), DataType::Timestamp(_, zone)) => {
            from_zone.is_some() || zone.as_deref().is_none_or(is_utc)
        }
        (DataType::Timestamp(_, zone), DataType::Date32 | DataType::Date64) => {
            zone.as_deref().is_none_or(is_utc)
        }
        (DataType::Timestamp(..), DataType::Time32(_) | DataType::Time64(_)) => false,
        (DataType::Boolean, to) => to.is_numeric(),
        (from, to) => {
            (from.is_numeric() && to.is_numeric())
                || (from.is_binary() && to.is_binary())
                || (is_count(from) && is_count(to))
        }
    }
}
