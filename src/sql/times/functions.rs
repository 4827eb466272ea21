//! What times, durations and intervals are compared by, as functions of a plan.

use arrow::datatypes::DataType;
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::kernels::times::{
    EXACT_SECONDS, INTERVAL_NANOSECONDS, exact_seconds, interval_nanoseconds,
};

/// A time in a form that compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// Instants and lengths of time of all units.
    ExactSeconds,
    /// Intervals, a month being 30 days.
    IntervalNanoseconds,
}

impl Form {
    /// A value in this form.
    pub(super) fn call(self, value: Expr) -> Expr {
        let form = InForm { form: self, signature: Signature::any(1, Volatility::Immutable) };
        ScalarUDF::new_from_impl(form).call(vec![value])
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct InForm {
    form: Form,
    signature: Signature,
}

impl ScalarUDFImpl for InForm {
    fn name(&self) -> &str {
        match self.form {
            Form::ExactSeconds => "exact_seconds",
            Form::IntervalNanoseconds => "interval_nanoseconds",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(match self.form {
            Form::ExactSeconds => EXACT_SECONDS,
            Form::IntervalNanoseconds => INTERVAL_NANOSECONDS,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.first() else { return exec_err!("{}: no value", self.name()) };
        let one = matches!(value, ColumnarValue::Scalar(_));
        let values = value.to_array(if one { 1 } else { args.number_rows })?;
        let found = match self.form {
            Form::ExactSeconds => exact_seconds(&values)?,
            Form::IntervalNanoseconds => interval_nanoseconds(&values)?,
        };
        Ok(match one {
            true => ColumnarValue::Scalar(
                datafusion::common::ScalarValue::try_from_array(&found, 0)?,
            ),
            false => ColumnarValue::Array(found),
        })
    }
}
