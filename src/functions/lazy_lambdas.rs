//! DataFusion's functions with lambdas, which do not evaluate a lambda for lists without elements,
//! and return the type that was planned, whose elements are nullable.

use std::sync::Arc;

use arrow::array::{AsArray, GenericListArray, OffsetSizeTrait};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::error::Result;
use datafusion::functions_nested::all_default_higher_order_functions;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs,
    HigherOrderSignature, HigherOrderUDF, HigherOrderUDFImpl, LambdaArgument,
    LambdaParametersProgress, ValueOrLambda,
};
use datafusion::physical_expr::expressions::lit;
use datafusion::scalar::ScalarValue;

/// Returns variants of `array_filter`, `array_transform` and DataFusion's other functions with
/// lambdas. The variants do not evaluate the lambda if all lists of a batch are empty. DataFusion's
/// functions evaluate it in this case, too, and so fail for a lambda with a constant such as
/// `1 / 0`; no upstream issue was found. Remove once the test
/// `stock_lambdas_of_empty_lists_still_fail` in `tests/sql/over_lists.rs` fails.
pub(crate) fn build_lazy_lambdas() -> impl Iterator<Item = HigherOrderUDF> {
    all_default_higher_order_functions()
        .into_iter()
        .map(|inner| HigherOrderUDF::new_from_impl(LazyLambda { inner }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct LazyLambda {
    inner: Arc<HigherOrderUDF>,
}

impl HigherOrderUDFImpl for LazyLambda {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.schema_name(args)
    }

    fn signature(&self) -> &HigherOrderSignature {
        self.inner.signature()
    }

    fn lambda_parameters(
        &self,
        step: usize,
        fields: &[ValueOrLambda<FieldRef, Option<FieldRef>>],
    ) -> Result<LambdaParametersProgress> {
        self.inner.lambda_parameters(step, fields)
    }

    fn coerce_values_for_lambdas(
        &self,
        fields: &[ValueOrLambda<DataType, DataType>],
    ) -> Result<Option<Vec<DataType>>> {
        self.inner.coerce_values_for_lambdas(fields)
    }

    fn return_field_from_args(&self, args: HigherOrderReturnFieldArgs<'_>) -> Result<FieldRef> {
        let found = self.inner.return_field_from_args(args)?;
        let to = allow_null_elements(found.data_type());
        Ok(Arc::new(found.as_ref().clone().with_data_type(to)))
    }

    fn clear_null_values(&self) -> bool {
        self.inner.clear_null_values()
    }

    fn invoke_with_args(&self, mut args: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        if has_no_elements(&args)? {
            for (arg, field) in args.args.iter_mut().zip(&args.arg_fields) {
                if let (ValueOrLambda::Lambda(lambda), ValueOrLambda::Lambda(field)) = (arg, field)
                    && let Ok(null) = ScalarValue::try_new_null(field.data_type())
                {
                    *lambda = LambdaArgument::new(Vec::new(), lit(null), None, &[]);
                }
            }
        }
        // If all lists are empty, DataFusion returns a LargeList of nullable elements, whatever the
        // type that it promised. This workaround is obsolete once
        // `stock_empty_large_lists_still_differ` fails.
        let to = args.return_type().clone();
        let found = self.inner.invoke_with_args(args)?;
        match found.data_type() == to {
            true => Ok(found),
            false => found.cast_to(&to, None),
        }
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }

    fn conditional_arguments<'a>(
        &self,
        args: &'a [Expr],
    ) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(args)
    }

    fn coerce_value_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_value_types(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

/// Returns the type of a list with its elements declared as nullable, and any other type unchanged.
///
/// DataFusion declares the elements of `array_transform(x, v -> 1)` as not nullable. If other rows
/// of the column have lists of nullable elements, as in WITH RECURSIVE, the query fails. Fields
/// within the elements keep their nullability, because the values that the lambda returns have it.
/// This workaround is obsolete once the test
/// `stock_elements_of_a_constant_lambda_are_still_not_nullable` fails.
fn allow_null_elements(data_type: &DataType) -> DataType {
    let nullable = |element: &FieldRef| Arc::new(element.as_ref().clone().with_nullable(true));
    match data_type {
        DataType::List(element) => DataType::List(nullable(element)),
        DataType::LargeList(element) => DataType::LargeList(nullable(element)),
        other => other.clone(),
    }
}

/// Whether all lists of the first argument are empty or NULL. DataFusion has removed the elements
/// of NULL lists.
fn has_no_elements(args: &HigherOrderFunctionArgs) -> Result<bool> {
    let Some(ValueOrLambda::Value(lists)) = args.args.first() else { return Ok(false) };
    let lists = match lists {
        ColumnarValue::Array(lists) => Arc::clone(lists),
        ColumnarValue::Scalar(list) => list.to_array()?,
    };
    Ok(match lists.data_type() {
        DataType::List(_) => is_without_elements(lists.as_list::<i32>()),
        DataType::LargeList(_) => is_without_elements(lists.as_list::<i64>()),
        _ => false,
    })
}

fn is_without_elements<O: OffsetSizeTrait>(lists: &GenericListArray<O>) -> bool {
    let offsets = lists.value_offsets();
    offsets.first() == offsets.last()
}
