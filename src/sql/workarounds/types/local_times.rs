//! Conversions of local times to zones whose clocks change.

use std::sync::{Arc, LazyLock};

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    BinaryExpr, Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TryCast, Volatility,
};
use datafusion::scalar::ScalarValue;
use serrate_core::internal::zones::{add_intervals, local_to_instants, may_change};

use super::coarser_times::is_named_cast;
use crate::array::{RaggedArray, leaf_type, list_depth};
use crate::functions::{declare, to_columnar};
use crate::sql::base::expression_parts::rewrite_parts;

static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 4]> = LazyLock::new(|| {
    [ZonedTime::Cast, ZonedTime::TryCast, ZonedTime::Add, ZonedTime::Subtract]
        .map(|function| Arc::new(ScalarUDF::new_from_impl(function)))
});

/// `SELECT TIMESTAMP '2024-03-10 02:30:00' AT TIME ZONE 'America/New_York'`, a time that the clocks
/// skip, fails without this rule.
///
/// Analyzer rule: converts local times that clocks skip or repeat to instants, as in PostgreSQL and
/// DuckDB ([`zones`](serrate_core::internal::zones)).
///
/// Arrow refuses to cast such a time to a timestamp with a zone, and to add an interval if the sum
/// is such a time, so that one row makes the query fail. In a difference of an instant and a local
/// time, DataFusion takes the local time as a time in UTC (no issue was found upstream); the rule
/// converts it to an instant in the zone of the other operand. This workaround is obsolete once the
/// test `stock_changes_of_clocks_are_still_errors` fails.
pub(in crate::sql) fn convert_local_times(plan: LogicalPlan) -> Result<LogicalPlan> {
    let may_change = |e: &Expr| {
        matches!(e, Expr::Cast(_) | Expr::TryCast(_))
            || is_named_cast(e)
            || matches!(e, Expr::BinaryExpr(sum) if is_sum(sum.op))
    };
    rewrite_parts(plan, may_change, |e, columns| {
        Ok(match rewrite_zoned(&e, columns) {
            Some(call) => Transformed::yes(call),
            None => Transformed::no(e),
        })
    })
}

/// Returns the functions that [`convert_local_times`] inserts. Workers of a distributed query need
/// them to decode plans.
#[cfg(feature = "cluster")]
pub(in crate::sql) fn list_zoned_functions() -> [Arc<ScalarUDF>; 4] {
    FUNCTIONS.clone()
}

fn is_sum(op: Operator) -> bool {
    matches!(op, Operator::Plus | Operator::Minus)
}

/// Returns the expression that replaces `e` if `e` casts local times to a zone whose clocks change,
/// adds an interval to an instant in such a zone or subtracts one, or is the difference of an
/// instant and a local time. Otherwise returns `None`.
fn rewrite_zoned(e: &Expr, schema: &DFSchema) -> Option<Expr> {
    let [cast, try_cast, add, subtract] = &*FUNCTIONS;
    match e {
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field })
            if is_zoned(leaf_type(field.data_type()))
                && reads_local_times(&expr.get_type(schema).ok()?, field.data_type()) =>
        {
            let function = if matches!(e, Expr::Cast(_)) { cast } else { try_cast };
            make_cast(function, expr, field.data_type())
        }
        // Handles `arrow_cast` like a cast, because the simplifier replaces it with a cast after
        // this rule.
        Expr::ScalarFunction(call) if is_named_cast(e) => {
            let (value, to) = (call.args.first()?, e.get_type(schema).ok()?);
            if !is_zoned(leaf_type(&to)) || !reads_local_times(&value.get_type(schema).ok()?, &to) {
                return None;
            }
            let function = if call.name() == "arrow_cast" { cast } else { try_cast };
            make_cast(function, value, &to)
        }
        Expr::BinaryExpr(sum) if is_sum(sum.op) => {
            let (left, right) = (sum.left.as_ref(), sum.right.as_ref());
            let types = (left.get_type(schema).ok()?, right.get_type(schema).ok()?);
            let function = if sum.op == Operator::Plus { add } else { subtract };
            match types {
                (time, DataType::Interval(_)) if is_zoned(&time) => {
                    Some(function.call(vec![left.clone(), right.clone()]))
                }
                (DataType::Interval(_), time) if is_zoned(&time) && sum.op == Operator::Plus => {
                    Some(function.call(vec![right.clone(), left.clone()]))
                }
                // Converts the local time to an instant in the zone of the other operand, because
                // DataFusion would subtract the local time as if it were in UTC.
                (DataType::Timestamp(_, Some(zone)), DataType::Timestamp(unit, None)) => {
                    let right = read_in_zone(right, unit, zone)?;
                    Some(Expr::BinaryExpr(BinaryExpr::new(sum.left.clone(), sum.op, right)))
                }
                (DataType::Timestamp(unit, None), DataType::Timestamp(_, Some(zone))) => {
                    let left = read_in_zone(left, unit, zone)?;
                    Some(Expr::BinaryExpr(BinaryExpr::new(left, sum.op, sum.right.clone())))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Returns a call that converts `local`, a local time of the zone `zone`, to an instant in the unit
/// `unit`. Returns `None` if [`make_cast`] does so.
fn read_in_zone(local: &Expr, unit: TimeUnit, zone: Arc<str>) -> Option<Box<Expr>> {
    let [cast, ..] = &*FUNCTIONS;
    make_cast(cast, local, &DataType::Timestamp(unit, Some(zone))).map(Box::new)
}

/// Returns a call of `function`, which casts a local time to the type `to`. Its arguments are the
/// time, a NULL of the type `to` and the name of this type. Without the name, the optimizer would
/// take calls for two zones for the same call, because [`ScalarValue`]s that differ only in their
/// zone are equal. Returns `None` if no [`ScalarValue`] can have the type `to`.
fn make_cast(function: &ScalarUDF, local: &Expr, to: &DataType) -> Option<Expr> {
    let none = ScalarValue::try_from(to).ok()?;
    let name = ScalarValue::from(to.to_string());
    Some(function.call(vec![local.clone(), Expr::Literal(none, None), Expr::Literal(name, None)]))
}

fn is_zoned(t: &DataType) -> bool {
    matches!(t, DataType::Timestamp(_, Some(zone)) if may_change(zone))
}

/// Whether a cast from `from` to `to` (a timestamp with a zone, or lists of such timestamps)
/// interprets its operand as local times of this zone.
fn reads_local_times(from: &DataType, to: &DataType) -> bool {
    use DataType::{Date32, Date64, FixedSizeList, LargeList, List, Timestamp};
    match (from, to) {
        (FixedSizeList(f, n), FixedSizeList(g, m)) => {
            n == m && reads_local_times_in_lists(f.data_type(), g.data_type())
        }
        (List(f) | LargeList(f) | FixedSizeList(f, _), List(g) | LargeList(g)) => {
            reads_local_times_in_lists(f.data_type(), g.data_type())
        }
        (Timestamp(_, None) | Date32 | Date64, Timestamp(..)) => true,
        (from, Timestamp(..)) => from.is_string(),
        _ => false,
    }
}

fn reads_local_times_in_lists(from: &DataType, to: &DataType) -> bool {
    !from.is_string() && reads_local_times(from, to)
}

fn convert_to_instants(times: &ArrayRef, to: &DataType, safe: bool) -> Result<ArrayRef> {
    if list_depth(to) == 0 {
        return Ok(local_to_instants(times, to, safe)?);
    }
    let lists = RaggedArray::try_from_arrow(times)?;
    let instants = local_to_instants(lists.leaves(), leaf_type(to), safe)?;
    Ok(lists.with_leaves(instants)?.to_arrow_as(to)?)
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum ZonedTime {
    /// Casts the first argument to the type of the second argument. The third argument is the name
    /// of this type.
    Cast,
    TryCast,
    Add,
    Subtract,
}

impl ScalarUDFImpl for ZonedTime {
    declare!(Signature::variadic_any(Volatility::Immutable));

    fn name(&self) -> &str {
        match self {
            Self::Cast => "local_time",
            Self::TryCast => "try_local_time",
            Self::Add => "zoned_sum",
            Self::Subtract => "zoned_difference",
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match (self, types) {
            (Self::Cast | Self::TryCast, [_, to, _]) => Ok(to.clone()),
            (Self::Add | Self::Subtract, [times, _]) => Ok(times.clone()),
            (_, types) => plan_err!(
                "internal error: {} does not take {} arguments; please report it",
                self.name(),
                types.len()
            ),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [times, by, ..] = args.args.as_slice() else {
            return exec_err!(
                "internal error: {} does not take {} arguments; please report it",
                self.name(),
                args.args.len()
            );
        };
        let is_constant = |value: &ColumnarValue| matches!(value, ColumnarValue::Scalar(_));
        let is_cast = matches!(self, Self::Cast | Self::TryCast);
        let one = is_constant(times) && (is_cast || is_constant(by));
        let array = |value: &ColumnarValue| {
            value.to_array(if is_constant(value) { 1 } else { args.number_rows })
        };
        let times = array(times)?;
        let found = match self {
            Self::Cast | Self::TryCast => {
                convert_to_instants(&times, args.return_field.data_type(), *self == Self::TryCast)?
            }
            Self::Add | Self::Subtract => {
                add_intervals(&times, &array(by)?, *self == Self::Subtract)?
            }
        };
        to_columnar(found, one)
    }
}
