//! `array_element` that returns NULL for every index beyond the list.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::error::Result;
use datafusion::functions_nested::extract::array_element_udf;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};

use super::clipped_slice::holds_only;
use super::delegate;
use super::hidden::change_values;

/// Returns an `array_element` that accepts any index. DataFusion's function fails for an index
/// beyond Int32; no upstream issue was found. Remove once `stock_elements_still_need_short_indexes`
/// in `tests/sql/from.rs` fails.
pub(crate) fn build_clipped_element() -> ScalarUDF {
    ScalarUDF::new_from_impl(ClippedElement { inner: array_element_udf() })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ClippedElement {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for ClippedElement {
    delegate!(inner: name, aliases, schema_name, signature, return_type, documentation);

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let [lists, index] = args.args.as_mut_slice()
            && matches!(lists.data_type(), DataType::List(_))
            && !holds_only(index, is_short)
        {
            *index = change_values(index, replace_long)?;
        }
        self.inner.invoke_with_args(args)
    }
}

fn is_short(index: i64) -> bool {
    i32::try_from(index).is_ok()
}

/// Replaces the indexes that do not fit an Int32 with 0. No list has an element 0, so the result
/// for such an index is NULL.
fn replace_long(indexes: &ArrayRef) -> Result<ArrayRef> {
    let Some(numbers) = indexes.as_primitive_opt::<Int64Type>() else {
        return Ok(Arc::clone(indexes));
    };
    let short = numbers.unary::<_, Int64Type>(|index| if is_short(index) { index } else { 0 });
    Ok(Arc::new(short))
}
