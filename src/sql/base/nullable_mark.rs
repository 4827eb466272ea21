//! The function that marks a column as nullable in a plan.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::functions::{declare, take_first};

/// Whether an expression is a call of `nullable`.
pub(in crate::sql) fn is_nullable_mark(e: &Expr) -> bool {
    matches!(e, Expr::ScalarFunction(call) if call.func.as_ref() == &*NULLABLE)
}

/// The function `nullable(x)` returns its argument as nullable. It is volatile, so that no rule
/// folds it.
pub(in crate::sql) static NULLABLE: LazyLock<ScalarUDF> =
    LazyLock::new(|| ScalarUDF::new_from_impl(NullableMark));

#[derive(Debug, PartialEq, Eq, Hash)]
struct NullableMark;

impl ScalarUDFImpl for NullableMark {
    declare!("nullable", Signature::any(1, Volatility::Volatile));

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = take_first(self.name(), args.arg_fields)?;
        Ok(Arc::new(field.as_ref().clone().with_nullable(true).with_name(self.name())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        take_first(self.name(), args.args)
    }
}
