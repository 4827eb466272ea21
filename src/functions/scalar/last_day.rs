use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Date32Type};
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use serrate_core::internal::zones::to_local;
use serrate_core::internal::{TimePart, extract_time_part};

use crate::functions::{call_on_arrays, declare};

use super::documents::{DocumentationText, document};
use super::strftime::find_time_type;

const NAME: &str = "last_day";

/// Returns `last_day(t)`, the last day of the month of a date or timestamp. As an expression of
/// `date_trunc` and intervals, it would take thirty times as long.
pub(super) fn build_last_day() -> ScalarUDF {
    ScalarUDF::new_from_impl(LastDayFunction)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct LastDayFunction;

impl ScalarUDFImpl for LastDayFunction {
    declare!(NAME, Signature::user_defined(Volatility::Immutable));

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [DataType::Date32] => Ok(vec![DataType::Date32]),
            [t] if let Some(time) = find_time_type(t) => Ok(vec![time]),
            types => plan_err!(
                "{NAME} takes one date or timestamp, but the argument types are {types:?}; cast the argument, as in {NAME}(x::DATE)"
            ),
        }
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Date32)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(NAME, &args, |[times]| find_month_ends(&to_local(&times)?))
    }

    fn documentation(&self) -> Option<&Documentation> {
        document!(DocumentationText {
            syntax: "last_day(t)",
            description: "Returns the last day of the month of a date or timestamp as a DATE. A timestamp with a zone counts in its zone.",
            missing: "The result is NULL for NULL. A time more than 246,000 years from 1970 is an error.",
            example: "SELECT last_day(DATE '2020-02-03');   -- 2020-02-29",
            ..DocumentationText::EMPTY
        })
    }
}

fn find_month_ends(times: &ArrayRef) -> Result<ArrayRef> {
    let Some(ends) = extract_time_part(times, TimePart::MonthEnd)? else {
        return exec_err!(
            "{NAME}: a time is more than 246,000 years from 1970; filter its row out"
        );
    };
    Ok(Arc::new(ends.reinterpret_cast::<Date32Type>()))
}
