//! Casts decimals to the nearest doubles.
//!
//! Arrow rounds decimals of many digits twice, so that the DECIMAL(38, 38) 0.1 does not become the
//! double 0.1. This workaround is obsolete once the test `stock_decimals_are_still_rounded_twice`
//! fails.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use serrate_core::internal::{rounds_twice, to_nearest_doubles};

use super::{call_on_arrays, declare, replace_leaf, take_first};
use crate::array::{RaggedArray, leaf_type, list_depth};

static NEAREST_DOUBLES: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(NearestDoubles)));

/// Converts `e`, the operand of a cast to floats, to the nearest doubles if its values are decimals
/// that Arrow may round twice. Returns any other expression unchanged.
pub(crate) fn cast_to_nearest(e: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match rounds_twice(leaf_type(&e.get_type(schema)?)) {
        true => Transformed::yes(NEAREST_DOUBLES.call(vec![e])),
        false => Transformed::no(e),
    })
}

/// Returns the function that [`cast_to_nearest`] inserts. Workers of a distributed query need it to
/// decode plans.
#[cfg(feature = "cluster")]
pub(crate) fn get_nearest_doubles() -> Arc<ScalarUDF> {
    Arc::clone(&NEAREST_DOUBLES)
}

/// Returns decimals, or lists of decimals, as doubles.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NearestDoubles;

impl ScalarUDFImpl for NearestDoubles {
    declare!("nearest_double", Signature::any(1, Volatility::Immutable));

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.first().map(|of| of.schema_name().to_string()).unwrap_or_default())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(replace_leaf(take_first(self.name(), types)?, &DataType::Float64))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = take_first(self.name(), args.arg_fields)?;
        let doubles = replace_leaf(field.data_type(), &DataType::Float64);
        let field = field.as_ref().clone().with_data_type(doubles);
        Ok(Arc::new(field.with_name(self.name())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[decimals]| convert_decimals(&decimals))
    }
}

fn convert_decimals(decimals: &ArrayRef) -> Result<ArrayRef> {
    if list_depth(decimals.data_type()) == 0 {
        return Ok(convert_leaves(decimals));
    }
    let lists = RaggedArray::try_from_arrow(decimals)?;
    let doubles = lists.with_leaves(convert_leaves(lists.leaves()))?;
    let to = replace_leaf(decimals.data_type(), &DataType::Float64);
    Ok(doubles.to_arrow_as(&to)?)
}

fn convert_leaves(decimals: &ArrayRef) -> ArrayRef {
    match to_nearest_doubles(decimals) {
        Some(doubles) => Arc::new(doubles),
        None => Arc::clone(decimals),
    }
}
