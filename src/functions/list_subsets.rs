//! Replaces `array_has_all` and `array_has_any` by functions that return NULL if a list is NULL.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray};
use arrow::buffer::NullBuffer;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions_nested::array_has::{array_has_all_udf, array_has_any_udf};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};

use super::delegate;

/// Returns `array_has_all` and `array_has_any`, with NULL as the result for a NULL list. DataFusion
/// treats a NULL list as empty if the second argument has no element in any row of the batch.
/// Remove once `stock_subsets_of_null_are_still_true` in `tests/sql/quantified.rs` fails.
pub(crate) fn build_null_subsets() -> [ScalarUDF; 2] {
    [array_has_all_udf(), array_has_any_udf()]
        .map(|inner| ScalarUDF::new_from_impl(NullSubset { inner }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NullSubset {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for NullSubset {
    delegate!(inner: name, aliases, signature, return_type, documentation);

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut nulls: Option<NullBuffer> = None;
        for list in &args.args {
            match list {
                ColumnarValue::Scalar(list) if list.is_null() => {
                    return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(None)));
                }
                ColumnarValue::Scalar(_) => {}
                ColumnarValue::Array(lists) => {
                    nulls = NullBuffer::union(nulls.as_ref(), lists.logical_nulls().as_ref());
                }
            }
        }
        let rows = args.number_rows;
        let found = self.inner.invoke_with_args(args)?;
        let Some(nulls) = nulls else { return Ok(found) };
        let found = found.into_array(rows)?;
        let found = found.as_boolean();
        let nulls = NullBuffer::union(found.nulls(), Some(&nulls));
        let found = BooleanArray::new(found.values().clone(), nulls);
        Ok(ColumnarValue::Array(Arc::new(found)))
    }
}
