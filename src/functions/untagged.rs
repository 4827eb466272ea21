//! [`remove_tag`]: values without the extension type of their column.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::def::remove_extension;
use super::{declare, take_first};

static UNTAGGED: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(UntaggedFunction)));

/// Wraps `e` in a call of a function that returns the same values without an extension type, such
/// as that of a tensor. The optimizer would remove a cast to the type that the values have.
pub(crate) fn remove_tag(e: Expr) -> Expr {
    UNTAGGED.call(vec![e])
}

/// Returns the function that [`remove_tag`] calls, so that workers can decode plans that call it.
#[cfg(feature = "cluster")]
pub(crate) fn build_untagged() -> Arc<ScalarUDF> {
    Arc::clone(&UNTAGGED)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct UntaggedFunction;

impl ScalarUDFImpl for UntaggedFunction {
    declare!("untagged", Signature::any(1, Volatility::Immutable));

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        take_first(self.name(), types).cloned()
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let of = take_first(self.name(), args.arg_fields)?;
        Ok(Arc::new(remove_extension(of.as_ref().clone().with_name(self.name()))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        take_first(self.name(), args.args)
    }
}
