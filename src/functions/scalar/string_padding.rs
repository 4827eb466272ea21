use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use datafusion::error::Result;
use datafusion::functions::unicode;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};

use crate::functions::delegate;

/// Returns `lpad` and `rpad`, for which a negative length counts as 0, as in DuckDB.
///
/// DataFusion 55 panics if a column of lengths has a negative value, because it reserves memory for
/// the length as an unsigned integer. This workaround is obsolete once the test
/// `stock_negative_lengths_still_panic` fails.
pub(super) fn build_paddings() -> [ScalarUDF; 2] {
    [unicode::lpad(), unicode::rpad()]
        .map(|stock| ScalarUDF::new_from_impl(PaddingFunction { stock }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct PaddingFunction {
    stock: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for PaddingFunction {
    delegate!(stock: name, aliases, signature, return_type, documentation);

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Some(ColumnarValue::Array(lengths)) = args.args.get_mut(1) {
            let positive = lengths
                .as_primitive_opt::<Int64Type>()
                .map(|lengths| lengths.unary::<_, Int64Type>(|length| length.max(0)));
            if let Some(positive) = positive {
                *lengths = Arc::new(positive);
            }
        }
        self.stock.inner().invoke_with_args(args)
    }
}
