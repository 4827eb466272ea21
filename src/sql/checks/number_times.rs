use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

use crate::array::leaf_type;
use crate::sql::base::expression_parts::{find_columns_below, for_each_part, has_part};

/// Returns an error if a statement casts numbers to times of day, also in lists, or to timestamps
/// whose unit is not the second, as `i::TIMESTAMP(6)` does, or numbers with a fraction to seconds.
/// `plan` is the plan of the statement before analysis.
///
/// DataFusion would read the numbers in the unit of the type: `5::TIME` would be 5 nanoseconds. But
/// TIMESTAMP and TIMESTAMP(6) are one type, and `i::TIMESTAMP` reads seconds. It is planned as two
/// casts, the first to seconds, which is allowed; `i::TIMESTAMP(9)` of a BIGINT is planned in the
/// same way.
pub(in crate::sql) fn refuse_number_times(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        if has_part(node, |e| find_time_cast(e).is_some()) {
            let columns = find_columns_below(node)?;
            for_each_part(node, |part| check_cast(part, &columns))?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Returns the operand and the type of a cast to a timestamp, or to times of day or lists of them;
/// `None` for any other expression.
fn find_time_cast(e: &Expr) -> Option<(&Expr, &DataType)> {
    let (operand, to) = match e {
        Expr::Cast(cast) => (cast.expr.as_ref(), cast.field.data_type()),
        Expr::TryCast(cast) => (cast.expr.as_ref(), cast.field.data_type()),
        _ => return None,
    };
    let is_timestamp = matches!(to, DataType::Timestamp(..));
    let is_clock = matches!(leaf_type(to), DataType::Time32(_) | DataType::Time64(_));
    (is_timestamp || is_clock).then_some((operand, to))
}

fn check_cast(e: &Expr, columns: &DFSchema) -> Result<()> {
    let Some((operand, to)) = find_time_cast(e) else { return Ok(()) };
    let Ok(found) = operand.get_type(columns) else { return Ok(()) };
    let DataType::Timestamp(unit, _) = to else {
        let number = leaf_type(&found);
        return match number.is_numeric() {
            true => plan_err!(
                "cannot cast {number} to TIME, because the unit of the numbers is not known; write make_time(hours, minutes, seconds), or TIME '00:00:00' + n * INTERVAL '1 second' for n seconds"
            ),
            false => Ok(()),
        };
    };
    let digits = match unit {
        // Only integers are allowed: the cast would drop fractions of a second.
        TimeUnit::Second if found.is_integer() => return Ok(()),
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    };
    match found.is_numeric() {
        true => plan_err!(
            "cannot cast {found} to TIMESTAMP({digits}), because the unit of the numbers is not known: x::TIMESTAMP reads seconds; write to_timestamp(x) for seconds, to_timestamp_millis(x) for milliseconds, or to_timestamp_micros(x) for microseconds"
        ),
        false => Ok(()),
    }
}
