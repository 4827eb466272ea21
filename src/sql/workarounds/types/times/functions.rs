use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Decimal128Type, FieldRef, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit,
};
use datafusion::common::exec_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use serrate_core::internal::times::{
    EXACT_SECONDS, INTERVAL_NANOSECONDS, complete_times, has_texts, parse_exact_seconds,
    to_exact_nanoseconds, to_exact_seconds,
};

use crate::array::{RaggedArray, list_depth};
use crate::functions::{call_on_arrays, declare};

/// A form in which times, durations or intervals can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ComparableForm {
    /// Seconds as an exact decimal, for timestamps, dates and durations of all units, for strings
    /// that are timestamps without a zone, and for the values of lists of these types.
    ExactSeconds,
    /// The length of an interval in nanoseconds, where a month has 30 days.
    IntervalNanoseconds,
    /// An interval normalized to months of 30 days and days of 24 hours, so that equal lengths have
    /// equal fields. It is still an interval, so GROUP BY and aggregates return intervals.
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

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match self.form {
            ComparableForm::ExactSeconds => types.first().map_or(EXACT_SECONDS, find_seconds_type),
            ComparableForm::IntervalNanoseconds => INTERVAL_NANOSECONDS,
            ComparableForm::EqualInterval => DataType::Interval(IntervalUnit::MonthDayNano),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[values]| {
            Ok(match self.form {
                ComparableForm::ExactSeconds => convert_to_seconds(&values)?,
                ComparableForm::IntervalNanoseconds => to_exact_nanoseconds(&values)?,
                ComparableForm::EqualInterval => canonicalize_intervals(&values)?,
            })
        })
    }
}

/// Returns the type of [`ComparableForm::ExactSeconds`]: a decimal, or a list of decimals if `t` is
/// a list type.
fn find_seconds_type(t: &DataType) -> DataType {
    let within = |field: &FieldRef| {
        let seconds = find_seconds_type(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(seconds))
    };
    match t {
        DataType::List(field) => DataType::List(within(field)),
        DataType::LargeList(field) => DataType::LargeList(within(field)),
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(within(field), *size),
        _ => EXACT_SECONDS,
    }
}

fn convert_to_seconds(values: &ArrayRef) -> Result<ArrayRef> {
    let given = values.data_type();
    if list_depth(given) > 0 {
        let lists = RaggedArray::try_from_arrow(values)?;
        let seconds = convert_to_seconds(lists.leaves())?;
        return Ok(lists.with_leaves(seconds)?.to_arrow_as(&find_seconds_type(given))?);
    }
    Ok(match has_texts(given) {
        true => parse_exact_seconds(&complete_times(values)?, None)?,
        false => to_exact_seconds(values)?,
    })
}

const NANOSECONDS_PER_DAY: i128 = 86_400_000_000_000;
const DAYS_PER_MONTH: i128 = 30;

/// Normalizes intervals to months of 30 days and days of 24 hours, with all fields of one sign: 750
/// hours become 1 month, 1 day and 6 hours.
fn canonicalize_intervals(values: &ArrayRef) -> Result<ArrayRef> {
    let lengths = to_exact_nanoseconds(values)?;
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
