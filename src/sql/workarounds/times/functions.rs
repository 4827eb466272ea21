use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Decimal128Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::common::exec_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::functions::{call_on_arrays, declare};
use crate::kernels::times::{
    EXACT_SECONDS, INTERVAL_NANOSECONDS, exact_seconds, interval_nanoseconds,
};

/// A form in which times, durations or intervals can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ComparableForm {
    /// Seconds as an exact decimal, for timestamps, dates and durations of all units.
    ExactSeconds,
    /// The length of an interval in nanoseconds, where a month has 30 days.
    IntervalNanoseconds,
    /// An interval normalized to months of 30 days and days of 24 hours, compared field by field.
    EqualInterval,
}

impl ComparableForm {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ExactSeconds => "exact_seconds",
            Self::IntervalNanoseconds => "interval_nanoseconds",
            Self::EqualInterval => "equal_interval",
        }
    }

    pub(super) fn call(self, value: Expr) -> Expr {
        ScalarUDF::new_from_impl(InForm { form: self }).call(vec![value])
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct InForm {
    form: ComparableForm,
}

impl ScalarUDFImpl for InForm {
    declare!(Signature::any(1, Volatility::Immutable));

    fn name(&self) -> &str {
        self.form.name()
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(match self.form {
            ComparableForm::ExactSeconds => EXACT_SECONDS,
            ComparableForm::IntervalNanoseconds => INTERVAL_NANOSECONDS,
            ComparableForm::EqualInterval => DataType::Interval(IntervalUnit::MonthDayNano),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[values]| {
            Ok(match self.form {
                ComparableForm::ExactSeconds => exact_seconds(&values)?,
                ComparableForm::IntervalNanoseconds => interval_nanoseconds(&values)?,
                ComparableForm::EqualInterval => equal_intervals(&values)?,
            })
        })
    }
}

const NANOSECONDS_PER_DAY: i128 = 86_400_000_000_000;
const DAYS_PER_MONTH: i128 = 30;

/// Normalizes intervals: converts as much as possible to months and days, and gives all fields one sign.
fn equal_intervals(values: &ArrayRef) -> Result<ArrayRef> {
    let lengths = interval_nanoseconds(values)?;
    let lengths = lengths.as_primitive::<Decimal128Type>();
    let out_of_range = |length: i128| {
        exec_datafusion_err!(
            "an interval of {} days is longer than 2^31 - 1 months of 30 days; use a shorter interval",
            length / NANOSECONDS_PER_DAY
        )
    };
    let equal = lengths.try_unary::<_, IntervalMonthDayNanoType, _>(|length| {
        let (days, rest) = (length / NANOSECONDS_PER_DAY, length % NANOSECONDS_PER_DAY);
        let months = i32::try_from(days / DAYS_PER_MONTH).map_err(|_| out_of_range(length))?;
        let days = i32::try_from(days % DAYS_PER_MONTH).map_err(|_| out_of_range(length))?;
        let rest = i64::try_from(rest).map_err(|_| out_of_range(length))?;
        Ok::<_, DataFusionError>(IntervalMonthDayNano::new(months, days, rest))
    })?;
    Ok(Arc::new(equal) as ArrayRef)
}
