//! DataFusion's functions of lists of numbers, which reject other lists.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use super::delegate;
use super::element_types::find_element_field;
use crate::array::leaf_type;

/// The functions, each with an expression to write in its place for lists of lists.
const OVER_NUMBERS: [(&str, &str); 8] = [
    ("array_add", "x + y"),
    ("array_avg", "ragged_mean(x), or ragged_mean(x, -1) for one mean per innermost list"),
    ("array_normalize", "list_transform(x, lambda l: array_normalize(l))"),
    ("array_product", "ragged_prod(x), or ragged_prod(x, -1) for one product per innermost list"),
    ("array_scale", "x * 2"),
    ("array_subtract", "x - y"),
    ("cosine_distance", "cosine_distance(flatten(x), flatten(y))"),
    ("inner_product", "ragged_sum(x * y)"),
];

/// Part of the error for an argument whose values are lists. `explain_call` in
/// `sql::statement::errors::hints` keeps messages that contain it.
pub(crate) const OTHER_LISTS: &str = "takes lists of numbers, but the values of a list are";

/// Returns the functions of [`OVER_NUMBERS`] among `registered`, changed to reject lists of lists,
/// for which DataFusion reports an internal error. `array_avg` also refuses times and durations, whose averages DataFusion
/// returns without a unit. Remove once `stock_averages_of_times_are_still_numbers` and
/// `stock_products_of_lists_are_still_internal_errors` in `tests/sql/over_lists.rs` fail.
pub(crate) fn number_lists(
    registered: &HashMap<String, Arc<ScalarUDF>>,
) -> impl Iterator<Item = ScalarUDF> {
    OVER_NUMBERS.into_iter().filter_map(|(name, nested)| {
        let inner = Arc::clone(registered.get(name)?);
        let signature = Signature::user_defined(inner.signature().volatility);
        Some(ScalarUDF::new_from_impl(NumberList { inner, signature, nested }))
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NumberList {
    inner: Arc<ScalarUDF>,
    signature: Signature,
    /// The expression to write in place of this function for lists of lists.
    nested: &'static str,
}

impl ScalarUDFImpl for NumberList {
    delegate!(inner: name, aliases, return_type, return_field_from_args, documentation);

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if self.name() == "array_avg"
            && let Some(times) = types.iter().map(leaf_type).find(|t| t.is_temporal())
        {
            return plan_err!(
                "list_avg takes a list of numbers, but the values of the list are {times}; convert them to numbers first, as in list_avg(epoch(x)), which is in seconds"
            );
        }
        let mut elements = types.iter().filter_map(find_element_field);
        if let Some(lists) = elements.find(|e| find_element_field(e.data_type()).is_some()) {
            return plan_err!(
                "{} {OTHER_LISTS} {}; for lists of lists, write {}",
                self.name(),
                lists.data_type(),
                self.nested
            );
        }
        self.inner.coerce_types(types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }
}
