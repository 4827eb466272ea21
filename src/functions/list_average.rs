//! `array_avg` that rejects times and durations, whose averages DataFusion returns without a unit.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::functions_nested::all_default_nested_functions;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use super::delegate;
use crate::array::leaf_type;

/// Returns `array_avg`, which refuses times and durations. Remove once
/// `stock_averages_of_times_are_still_numbers` in `tests/sql/over_lists.rs` fails.
pub(crate) fn list_average() -> impl Iterator<Item = ScalarUDF> {
    all_default_nested_functions().into_iter().filter(|f| f.name() == "array_avg").map(|inner| {
        let signature = Signature::user_defined(inner.signature().volatility);
        ScalarUDF::new_from_impl(ListAverage { inner, signature })
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ListAverage {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for ListAverage {
    delegate!(inner: name, aliases, return_type, return_field_from_args, documentation);

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if let Some(times) = types.iter().map(leaf_type).find(|t| t.is_temporal()) {
            return plan_err!(
                "list_avg takes a list of numbers, but the values of the list are {times}; convert them to numbers first, as in list_avg(epoch(x)), which is in seconds"
            );
        }
        self.inner.coerce_types(types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }
}
