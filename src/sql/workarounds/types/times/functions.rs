use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use serrate_core::internal::times::{
    EXACT_SECONDS, INTERVAL_NANOSECONDS, complete_times, has_texts, parse_exact_seconds,
    to_exact_nanoseconds, to_exact_seconds,
};

use crate::array::{RaggedArray, list_depth};
use crate::functions::{call_on_arrays, declare};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ComparableForm {
    /// Seconds as an exact decimal, for timestamps, dates and durations of all units, for strings
    /// that are timestamps without a zone, and for the values of lists of these types.
    ExactSeconds,
    /// The length of an interval in nanoseconds, where a month has 30 days.
    IntervalNanoseconds,
}

impl ComparableForm {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ExactSeconds => "exact_seconds",
            Self::IntervalNanoseconds => "interval_nanoseconds",
        }
    }

    pub(super) fn make_call(self, value: Expr) -> Expr {
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
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[values]| {
            Ok(match self.form {
                ComparableForm::ExactSeconds => convert_to_seconds(&values)?,
                ComparableForm::IntervalNanoseconds => to_exact_nanoseconds(&values)?,
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
