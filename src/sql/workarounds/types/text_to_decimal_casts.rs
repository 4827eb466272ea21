use std::sync::{Arc, LazyLock};

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, TryCast, Volatility,
};
use serrate_core::internal::times::has_texts;

use super::coarser_times::is_named_cast;
use super::text_to_time_casts::complete_leaves;
use crate::array::leaf_type;
use crate::functions::{call_on_arrays, declare, same_field};
use crate::sql::base::decimal_texts::write_out_exponent;
use crate::sql::base::expression_parts::rewrite_parts;

static PLAIN_NUMBERS: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(PlainNumbers)));

/// Analyzer rule: casts strings of numbers with an exponent, such as `1.5e2`, to decimals, as
/// PostgreSQL and DuckDB do, also in lists.
///
/// Arrow casts such strings to floats, but not to decimals: such a cast is an error, and NULL with
/// TRY_CAST. This workaround is obsolete once the test `stock_exponents_are_still_no_decimals`
/// fails.
pub(in crate::sql) fn cast_texts_to_decimals(plan: LogicalPlan) -> Result<LogicalPlan> {
    let may_read = |e: &Expr| match e {
        Expr::Cast(cast) => is_decimal(cast.field.data_type()),
        Expr::TryCast(cast) => is_decimal(cast.field.data_type()),
        e => is_named_cast(e),
    };
    rewrite_parts(plan, may_read, |e, columns| match e {
        Expr::Cast(Cast { expr, field }) if is_decimal(field.data_type()) => {
            let read = write_out_numbers(*expr, columns)?;
            Ok(read.update_data(|expr| Expr::Cast(Cast { expr: Box::new(expr), field })))
        }
        Expr::TryCast(TryCast { expr, field }) if is_decimal(field.data_type()) => {
            let read = write_out_numbers(*expr, columns)?;
            Ok(read.update_data(|expr| Expr::TryCast(TryCast { expr: Box::new(expr), field })))
        }
        e if is_named_cast(&e) && is_decimal(&e.get_type(columns)?) => {
            let Expr::ScalarFunction(mut call) = e else { return Ok(Transformed::no(e)) };
            let mut changed = false;
            if let Some(number) = call.args.first_mut() {
                let read = write_out_numbers(std::mem::take(number), columns)?;
                (*number, changed) = (read.data, read.transformed);
            }
            Ok(Transformed::new_transformed(Expr::ScalarFunction(call), changed))
        }
        e => Ok(Transformed::no(e)),
    })
}

/// Returns the function that [`cast_texts_to_decimals`] inserts. Workers of a distributed query
/// need it to decode plans.
#[cfg(feature = "cluster")]
pub(in crate::sql) fn get_plain_numbers_function() -> Arc<ScalarUDF> {
    Arc::clone(&PLAIN_NUMBERS)
}

/// Whether a type is a decimal, or a list of decimals.
fn is_decimal(t: &DataType) -> bool {
    leaf_type(t).is_decimal()
}

/// Rewrites the operand of a cast to a decimal if it is a string or a list of strings: writes the
/// numbers of a literal without exponents, and wraps any other operand in a call of
/// [`PlainNumbers`].
fn write_out_numbers(e: Expr, columns: &DFSchema) -> Result<Transformed<Expr>> {
    match &e {
        Expr::Literal(value, metadata) if has_texts(&value.data_type()) => {
            let plain = complete_leaves(&value.to_array()?, write_out_exponent)?;
            let plain = ScalarValue::try_from_array(&plain, 0)?;
            Ok(match plain == *value {
                true => Transformed::no(e),
                false => Transformed::yes(Expr::Literal(plain, metadata.clone())),
            })
        }
        Expr::ScalarFunction(call) if call.func.inner().is::<PlainNumbers>() => {
            Ok(Transformed::no(e))
        }
        _ if has_texts(&e.get_type(columns)?) => Ok(Transformed::yes(PLAIN_NUMBERS.call(vec![e]))),
        _ => Ok(Transformed::no(e)),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct PlainNumbers;

impl ScalarUDFImpl for PlainNumbers {
    declare!("complete_decimal", Signature::any(1, Volatility::Immutable));
    same_field!();

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[texts]| complete_leaves(&texts, write_out_exponent))
    }
}
