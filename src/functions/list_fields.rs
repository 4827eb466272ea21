//! `array_concat`, `array_normalize` and `array_repeat` of lists whose element fields differ in name.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::Result;
use datafusion::functions_nested::concat::array_concat_udf;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
};

use super::delegate;

/// Parquet names the element field of a list `element`, Arrow names it `item`, and DataFusion's
/// functions return either, depending on the batch, so that queries fail. Remove once
/// `stock_element_fields_still_differ` in `tests/sql/over_lists.rs` fails.
pub(crate) fn typed_lists() -> impl Iterator<Item = ScalarUDF> {
    datafusion::functions_nested::all_default_nested_functions()
        .into_iter()
        .filter(|f| matches!(f.name(), "array_concat" | "array_normalize" | "array_repeat"))
        .map(|inner| ScalarUDF::new_from_impl(TypedLists { inner }))
}

pub(super) fn concat_lists(lists: Vec<Expr>) -> Expr {
    ScalarUDF::new_from_impl(TypedLists { inner: array_concat_udf() }).call(lists)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TypedLists {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for TypedLists {
    delegate!(inner: name, aliases, signature, documentation);

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let types: Vec<DataType> = types.iter().map(rename_item_fields).collect();
        self.inner.return_type(&types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let fields: Vec<FieldRef> = args.arg_fields.iter().map(rename_item_field).collect();
        self.inner.return_field_from_args(ReturnFieldArgs { arg_fields: &fields, ..args })
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let types: Vec<DataType> = types.iter().map(rename_item_fields).collect();
        // DataFusion has no common type of a list and an untyped NULL.
        let lists: Vec<DataType> = types.iter().filter(|t| !t.is_null()).cloned().collect();
        if self.name() != "array_concat" || lists.is_empty() || lists.len() == types.len() {
            return self.inner.coerce_types(&types);
        }
        let coerced = self.inner.coerce_types(&lists)?;
        let mut typed = coerced.iter();
        let all = types.iter().map(|t| match t.is_null() {
            true => coerced.first().cloned(),
            false => typed.next().cloned(),
        });
        all.collect::<Option<_>>().map_or_else(|| self.inner.coerce_types(&types), Ok)
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let to = args.return_field.data_type().clone();
        args.arg_fields = args.arg_fields.iter().map(rename_item_field).collect();
        for value in &mut args.args {
            let wanted = rename_item_fields(&value.data_type());
            if value.data_type() != wanted {
                *value = value.cast_to(&wanted, None)?;
            }
        }
        let found = self.inner.invoke_with_args(args)?;
        match found.data_type() == to {
            true => Ok(found),
            false => found.cast_to(&to, None),
        }
    }
}

fn rename_item_field(field: &FieldRef) -> FieldRef {
    let wanted = rename_item_fields(field.data_type());
    match *field.data_type() == wanted {
        true => Arc::clone(field),
        false => Arc::new(field.as_ref().clone().with_data_type(wanted)),
    }
}

/// Returns a data type in which the element field of each list is nullable and named `item`.
fn rename_item_fields(data_type: &DataType) -> DataType {
    let item = |element: &FieldRef| {
        let data_type = rename_item_fields(element.data_type());
        let element = element.as_ref().clone().with_data_type(data_type).with_nullable(true);
        Arc::new(element.with_name(Field::LIST_FIELD_DEFAULT_NAME))
    };
    match data_type {
        DataType::List(element) => DataType::List(item(element)),
        DataType::LargeList(element) => DataType::LargeList(item(element)),
        DataType::FixedSizeList(element, n) => DataType::FixedSizeList(item(element), *n),
        other => other.clone(),
    }
}
