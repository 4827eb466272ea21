//! `array_has` without DataFusion's rewrite of list literals, which returns wrong results for NULL.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions_nested::array_has::array_has_udf;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, in_list, lit, when,
};

use super::delegate;

/// Returns `array_has` without DataFusion's rewrite of a constant list to `x IN (..)`. That rewrite
/// returns NULL instead of false if the list contains NULL and not `x`, and false instead of NULL
/// if the list is empty and `x` is NULL. Remove once `stock_constant_lists_still_contain_null` in
/// `tests/sql/quantified.rs` fails.
pub(crate) fn list_contains() -> ScalarUDF {
    ScalarUDF::new_from_impl(ListContains { inner: array_has_udf() })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ListContains {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for ListContains {
    delegate!(inner: name, aliases, signature, return_type, documentation);

    fn simplify(&self, args: Vec<Expr>, _context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let [list, value] = args.as_slice() else { return Ok(ExprSimplifyResult::Original(args)) };
        // A call with a volatile value is not rewritten, because the rewrite would evaluate the
        // value twice.
        if value.is_volatile() {
            return Ok(ExprSimplifyResult::Original(args));
        }
        Ok(match find_constant_elements(list)? {
            Some(elements) => ExprSimplifyResult::Simplified(contains_any(value, elements)?),
            None => ExprSimplifyResult::Original(args),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }
}

/// Returns the non-NULL elements of a list literal or a `make_array` of literals, else `None`.
fn find_constant_elements(list: &Expr) -> Result<Option<Vec<Expr>>> {
    let values = match list {
        Expr::Literal(list @ (ScalarValue::List(_) | ScalarValue::LargeList(_)), _)
            if !list.is_null() =>
        {
            let lists = ScalarValue::convert_array_to_scalar_vec(&list.to_array()?)?;
            lists.into_iter().flatten().flatten().collect()
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "make_array" => {
            let literal = |e: &Expr| e.as_literal().cloned();
            match args.iter().map(literal).collect::<Option<Vec<_>>>() {
                Some(values) => values,
                None => return Ok(None),
            }
        }
        _ => return Ok(None),
    };
    let valid = values.into_iter().filter(|value| !value.is_null());
    Ok(Some(valid.map(|value| Expr::Literal(value, None)).collect()))
}

fn contains_any(value: &Expr, elements: Vec<Expr>) -> Result<Expr> {
    match elements.is_empty() {
        true => {
            let null = Expr::Literal(ScalarValue::Boolean(None), None);
            when(value.clone().is_null(), null).otherwise(lit(false))
        }
        false => Ok(in_list(value.clone(), elements, false)),
    }
}
