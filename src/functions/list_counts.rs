//! Lengths of lists and positions in lists as signed integers.

use std::sync::Arc;

use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions_nested::cardinality::cardinality_udf;
use datafusion::functions_nested::dimension::{array_dims_udf, array_ndims_udf};
use datafusion::functions_nested::length::array_length_udf;
use datafusion::functions_nested::position::{array_position_udf, array_positions_udf};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// Returns functions that count elements, levels or positions. DataFusion's functions of these names return
/// unsigned integers, whose difference is a decimal, and which list functions do not accept
/// (`x[list_position(x, 2)]`). Remove once `stock_positions_are_still_unsigned` in `tests/sql/numbers.rs`
/// fails.
pub(crate) fn signed_counts() -> [ScalarUDF; 6] {
    let lengths = [array_length_udf(), array_dims_udf(), array_ndims_udf(), cardinality_udf()];
    let [length, dims, levels, elements] = lengths;
    [length, dims, levels, elements, array_position_udf(), array_positions_udf()]
        .map(|inner| ScalarUDF::new_from_impl(Signed { inner }))
}

pub(super) fn array_length(list: Expr) -> Expr {
    ScalarUDF::new_from_impl(Signed { inner: array_length_udf() }).call(vec![list])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Signed {
    inner: Arc<ScalarUDF>,
}

fn signed_type(t: &DataType) -> DataType {
    match t {
        DataType::UInt64 => DataType::Int64,
        DataType::List(item) => {
            let item = item.as_ref().clone();
            let of = signed_type(item.data_type());
            DataType::List(Arc::new(item.with_data_type(of)))
        }
        other => other.clone(),
    }
}

impl ScalarUDFImpl for Signed {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(signed_type(&self.inner.return_type(types)?))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // DataFusion's function checks its result against its own return type, which is unsigned.
        let types: Vec<DataType> = args.arg_fields.iter().map(|f| f.data_type().clone()).collect();
        let promised = self.inner.return_type(&types)?;
        args.return_field = Arc::new(args.return_field.as_ref().clone().with_data_type(promised));
        Ok(match self.inner.invoke_with_args(args)? {
            ColumnarValue::Array(found) => {
                ColumnarValue::Array(cast(&found, &signed_type(found.data_type()))?)
            }
            ColumnarValue::Scalar(found) => {
                let found = found.to_array()?;
                let found = cast(&found, &signed_type(found.data_type()))?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)
            }
        })
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}
