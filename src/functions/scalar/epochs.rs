use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::{cast, try_unary};
use arrow::datatypes::{DataType, Int64Type, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use serrate_core::internal::times::count_nanoseconds;

use crate::functions::{call_on_arrays, declare};

use super::documents::{DocumentationText, document};

/// Returns `epoch_ms`, `epoch_us` and `epoch_ns`: the number of units from 1970 to a date or
/// timestamp, rounded down. For an integer, `epoch_ms` returns the time that is this number of
/// milliseconds after 1970.
pub(super) fn build_epoch_functions() -> [ScalarUDF; 3] {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond};
    [Millisecond, Microsecond, Nanosecond]
        .map(|unit| ScalarUDF::new_from_impl(EpochFunction { unit }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct EpochFunction {
    unit: TimeUnit,
}

impl ScalarUDFImpl for EpochFunction {
    declare!(Signature::user_defined(Volatility::Immutable));

    fn name(&self) -> &str {
        match self.unit {
            TimeUnit::Second | TimeUnit::Millisecond => "epoch_ms",
            TimeUnit::Microsecond => "epoch_us",
            TimeUnit::Nanosecond => "epoch_ns",
        }
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [DataType::Timestamp(unit, _)] => Ok(vec![DataType::Timestamp(*unit, None)]),
            [DataType::Null | DataType::Date32 | DataType::Date64] => {
                Ok(vec![DataType::Timestamp(TimeUnit::Millisecond, None)])
            }
            [t] if t.is_integer() && self.unit == TimeUnit::Millisecond => {
                Ok(vec![DataType::Int64])
            }
            types => plan_err!(
                "{} takes one date or timestamp, but the argument types are {types:?}; cast the argument, as in {}(x::TIMESTAMP)",
                self.name(),
                self.name()
            ),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match types {
            [DataType::Int64] => DataType::Timestamp(TimeUnit::Microsecond, None),
            _ => DataType::Int64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[values]| match values.data_type() {
            DataType::Timestamp(from, _) => self.count_units(&values, *from),
            _ => read_milliseconds(&values),
        })
    }

    fn documentation(&self) -> Option<&Documentation> {
        match self.unit {
            TimeUnit::Second | TimeUnit::Millisecond => document!(DocumentationText {
                syntax: "epoch_ms(t)",
                also: &["epoch_ms(milliseconds)"],
                description: "Returns the milliseconds from 1970-01-01 00:00 UTC to a date or timestamp as a BIGINT, rounded down. For an integer, `epoch_ms` returns the timestamp that many milliseconds after 1970 instead.",
                missing: "The result is NULL for NULL. A result outside the range of BIGINT is an error.",
                example: "SELECT epoch_ms(TIMESTAMP '1970-01-01 00:00:01.5'), epoch_ms(1500);   -- 1500  1970-01-01T00:00:01.500",
                ..DocumentationText::EMPTY
            }),
            TimeUnit::Microsecond => document!(DocumentationText {
                syntax: "epoch_us(t)",
                description: "Returns the microseconds from 1970-01-01 00:00 UTC to a date or timestamp as a BIGINT, rounded down.",
                missing: "The result is NULL for NULL. A result outside the range of BIGINT is an error.",
                example: "SELECT epoch_us(DATE '1970-01-02');   -- 86400000000",
                ..DocumentationText::EMPTY
            }),
            TimeUnit::Nanosecond => document!(DocumentationText {
                syntax: "epoch_ns(t)",
                description: "Returns the nanoseconds from 1970-01-01 00:00 UTC to a date or timestamp as a BIGINT, rounded down.",
                missing: "The result is NULL for NULL. A result outside the range of BIGINT is an error.",
                example: "SELECT epoch_ns(TIMESTAMP '1970-01-01 00:00:01');   -- 1000000000",
                ..DocumentationText::EMPTY
            }),
        }
    }
}

impl EpochFunction {
    fn count_units(&self, times: &ArrayRef, from: TimeUnit) -> Result<ArrayRef> {
        // `count_nanoseconds` returns the length of a unit in nanoseconds, a power of ten. Division
        // of 64 bits is several times as fast as division of 128 bits.
        let (from, to) = (count_nanoseconds(from), count_nanoseconds(self.unit));
        let shorter = i64::try_from(from / to.min(from)).unwrap_or(1);
        let longer = i64::try_from(to / to.min(from)).unwrap_or(1);
        let ticks = cast(times, &DataType::Int64)?;
        let ticks = ticks.as_primitive::<Int64Type>();
        if longer > 1 {
            let units = ticks.unary::<_, Int64Type>(|ticks| ticks.div_euclid(longer));
            return Ok(Arc::new(units));
        }
        let convert = |ticks: i64| {
            ticks.checked_mul(shorter).ok_or_else(|| {
                ArrowError::ArithmeticOverflow(format!(
                    "{}: the result {} is outside the range of BIGINT; use a coarser unit",
                    self.name(),
                    i128::from(ticks) * i128::from(shorter)
                ))
            })
        };
        Ok(Arc::new(try_unary::<_, _, Int64Type>(ticks, convert)?))
    }
}

fn read_milliseconds(numbers: &ArrayRef) -> Result<ArrayRef> {
    let convert = |ms: i64| {
        ms.checked_mul(1000).ok_or_else(|| {
            ArrowError::ArithmeticOverflow(format!(
                "epoch_ms: {ms} milliseconds are outside the range of TIMESTAMP; use to_timestamp_millis"
            ))
        })
    };
    let times =
        try_unary::<_, _, TimestampMicrosecondType>(numbers.as_primitive::<Int64Type>(), convert)?;
    Ok(Arc::new(times))
}
