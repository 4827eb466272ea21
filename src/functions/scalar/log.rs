use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::error::Result;
use datafusion::functions::math;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
};

use crate::functions::delegate;

use super::documents::{DocumentationText, document};

/// Returns `log(x)` and `log(base, x)`.
///
/// DataFusion 55 computes `log(x)` as a quotient of logarithms: `log(1000)` is 2.9999999999999996.
/// This function returns `log10(x)`, as in DuckDB. This workaround is obsolete once the test
/// `stock_log_is_still_inexact` fails.
pub(super) fn build_exact_log() -> ScalarUDF {
    ScalarUDF::new_from_impl(LogFunction { stock: math::log(), base_10: math::log10() })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct LogFunction {
    stock: Arc<ScalarUDF>,
    base_10: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for LogFunction {
    delegate!(stock: name, signature, coerce_types, return_type);

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        use DataType::{Float32, Float64};
        match &args.args[..] {
            [x] if matches!(x.data_type(), Float32 | Float64) => {
                self.base_10.invoke_with_args(args)
            }
            [x] if x.data_type().is_decimal() => {
                let doubles = x.cast_to(&Float64, None)?;
                let field = Arc::new(Field::new("x", Float64, true));
                self.base_10.invoke_with_args(ScalarFunctionArgs {
                    args: vec![doubles],
                    arg_fields: vec![field],
                    ..args
                })
            }
            _ => self.stock.invoke_with_args(args),
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        document!(DocumentationText {
            syntax: "log(x)",
            also: &["log(base, x)"],
            description: "Returns the logarithm of x to a base, by default 10. `ln(x)` is the natural logarithm.",
            missing: "The result is NULL if an argument is NULL, -inf for 0, and NaN for a negative number.",
            example: "SELECT log(1000), log(2, 8);   -- 3.0  3.0",
            ..DocumentationText::EMPTY
        })
    }
}
