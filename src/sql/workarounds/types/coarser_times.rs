//! Casts of timestamps to coarser units, rounded down.

use std::sync::{Arc, LazyLock};

use arrow::array::{AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, TryCast, Volatility,
};
use serrate_core::internal::times::count_nanoseconds;

use crate::functions::{StockFact, call_on_arrays, declare, has_fact};
use crate::sql::base::expression_parts::rewrite_parts;

static COUNTS: LazyLock<[Arc<ScalarUDF>; 3]> = LazyLock::new(|| {
    [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond]
        .map(|unit| Arc::new(ScalarUDF::new_from_impl(CountIn { unit })))
});

/// `SELECT TIMESTAMP '1969-12-31 23:59:59.3'::TIMESTAMP(0)` is 1970-01-01 00:00:00 without this
/// rule.
///
/// Analyzer rule: rounds timestamps down where a cast, or `to_unixtime`, drops digits.
///
/// Arrow rounds times before 1970 up, so that half a second before 1970 and half a second after
/// become the same second. This workaround is obsolete once the test
/// `stock_casts_before_1970_still_round_up` fails. The rule also replaces `arrow_cast` of a
/// timestamp with a cast: the simplifier would do so later, and in a comparison would then compare
/// the timestamp without the cast.
pub(in crate::sql) fn round_times_down(plan: LogicalPlan) -> Result<LogicalPlan> {
    let may_change = |e: &Expr| find_cast_source(e).is_some() || is_named_cast(e);
    rewrite_parts(plan, may_change, |e, columns| {
        let e = make_plain_cast(e, columns);
        let counted = find_cast_source(&e.data)
            .and_then(|of| round_down(of, &e.data.get_type(columns).ok()?, columns));
        Ok(match counted {
            Some(counted) => Transformed::yes(counted),
            None => e,
        })
    })
}

/// Returns the functions that [`round_times_down`] inserts. Workers of a distributed query need
/// them to decode plans.
#[cfg(feature = "cluster")]
pub(in crate::sql) fn count_functions() -> [Arc<ScalarUDF>; 3] {
    COUNTS.clone()
}

/// If an expression casts a value to a timestamp, or to a number of seconds as `to_unixtime` does,
/// returns this value.
fn find_cast_source(e: &Expr) -> Option<&Expr> {
    match e {
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            matches!(field.data_type(), DataType::Timestamp(..)).then_some(&**expr)
        }
        Expr::ScalarFunction(call) => match call.args.as_slice() {
            [of] if has_fact(call.name(), StockFact::CoarsensTimes) => Some(of),
            _ => None,
        },
        _ => None,
    }
}

/// Whether an expression is a call of a function that casts a value to the type with a given name,
/// such as `arrow_cast(x, 'Date32')`.
pub(in crate::sql) fn is_named_cast(e: &Expr) -> bool {
    matches!(e, Expr::ScalarFunction(call) if has_fact(call.name(), StockFact::CastsToNamedType))
}

/// Replaces calls of `arrow_cast` and `arrow_try_cast` between timestamp types with plain casts.
fn make_plain_cast(e: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let is_time = |e: &Expr| matches!(e.get_type(schema), Ok(DataType::Timestamp(..)));
    let Expr::ScalarFunction(call) = &e else { return Transformed::no(e) };
    let [of, _] = call.args.as_slice() else { return Transformed::no(e) };
    if !is_named_cast(&e) || !is_time(of) || !is_time(&e) {
        return Transformed::no(e);
    }
    let Ok(to) = e.get_type(schema) else { return Transformed::no(e) };
    let of = Box::new(of.clone());
    Transformed::yes(match call.name() == "arrow_cast" {
        true => Expr::Cast(Cast::new(of, to)),
        false => Expr::TryCast(TryCast::new(of, to)),
    })
}

/// Returns a cast of the timestamp `of` to the type `to` that rounds down. If `to` is Int64, the
/// result is the number of seconds since 1970. Returns `None` if the cast drops no digits.
fn round_down(of: &Expr, to: &DataType, schema: &DFSchema) -> Option<Expr> {
    let DataType::Timestamp(from, zone) = of.get_type(schema).ok()? else { return None };
    let (unit, to_zone) = match to {
        DataType::Timestamp(unit, to_zone) => (*unit, to_zone.clone()),
        _ => (TimeUnit::Second, zone.clone()),
    };
    let function = match unit {
        TimeUnit::Second => &COUNTS[0],
        TimeUnit::Millisecond => &COUNTS[1],
        TimeUnit::Microsecond => &COUNTS[2],
        TimeUnit::Nanosecond => return None,
    };
    if unit >= from {
        return None;
    }
    let cast = |e: Expr, to: DataType| Expr::Cast(Cast::new(Box::new(e), to));
    let of = match zone == to_zone {
        true => of.clone(),
        false => cast(of.clone(), DataType::Timestamp(from, to_zone)),
    };
    let counted = function.call(vec![of]);
    Some(match to {
        DataType::Int64 => counted,
        to => cast(counted, to.clone()),
    })
}

/// The function that returns the number of whole `unit`s from 1970 to a timestamp, rounded down.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CountIn {
    unit: TimeUnit,
}

impl ScalarUDFImpl for CountIn {
    declare!(Signature::any(1, Volatility::Immutable));

    fn name(&self) -> &str {
        match self.unit {
            TimeUnit::Second => "count_seconds",
            TimeUnit::Millisecond => "count_milliseconds",
            TimeUnit::Microsecond => "count_microseconds",
            TimeUnit::Nanosecond => "count_nanoseconds",
        }
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[times]| {
            let DataType::Timestamp(from, _) = times.data_type() else {
                return exec_err!(
                    "internal error: {} takes a timestamp, not {}; please report it",
                    self.name(),
                    times.data_type()
                );
            };
            let ratio = i64::try_from(count_nanoseconds(self.unit) / count_nanoseconds(*from))
                .unwrap_or(1)
                .max(1);
            let counts = cast(&times, &DataType::Int64)?;
            let counts: Int64Array =
                counts.as_primitive::<Int64Type>().unary(|count| count.div_euclid(ratio));
            Ok(Arc::new(counts))
        })
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        Ok(inputs.first().map_or(SortProperties::Unordered, |input| input.sort_properties))
    }
}
