use std::sync::{Arc, LazyLock};

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, TryCast, Volatility,
};
use datafusion::scalar::ScalarValue;
use serrate_core::internal::parse_lists;

use crate::array::list_depth;
use crate::functions::{declare, take_first, to_columnar};
use crate::sql::base::expression_parts::rewrite_parts;

static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 2]> = LazyLock::new(|| {
    [false, true].map(|safe| Arc::new(ScalarUDF::new_from_impl(TextList { safe })))
});

/// Analyzer rule: casts of strings to lists parse the list ([`parse_lists`]), as in DuckDB.
///
/// Arrow casts a string to a list with the string as its only element. The rule runs before type
/// coercion, which casts strings to lists for functions such as `array_append`. This workaround is
/// obsolete once the test `stock_texts_of_lists_are_still_elements` fails.
pub(in crate::sql) fn cast_texts_to_lists(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_parts(plan, is_cast_to_list, |e, columns| {
        Ok(match call_parser(&e, columns) {
            Some(call) => Transformed::yes(call),
            None => Transformed::no(e),
        })
    })
}

/// Returns the functions that [`cast_texts_to_lists`] inserts. Workers of a distributed query need
/// them to decode plans.
#[cfg(feature = "cluster")]
pub(in crate::sql) fn list_text_list_functions() -> [Arc<ScalarUDF>; 2] {
    FUNCTIONS.clone()
}

fn is_cast_to_list(e: &Expr) -> bool {
    match e {
        Expr::Cast(Cast { field, .. }) | Expr::TryCast(TryCast { field, .. }) => {
            list_depth(field.data_type()) > 0
        }
        _ => false,
    }
}

/// Returns the call that replaces a cast of a string to a list, or `None` for any other expression.
fn call_parser(e: &Expr, columns: &DFSchema) -> Option<Expr> {
    let [parse, try_parse] = &*FUNCTIONS;
    let (Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field })) = e else {
        return None;
    };
    let is_text = match expr.get_type(columns).ok()? {
        DataType::Dictionary(_, values) => values.is_string(),
        t => t.is_string(),
    };
    if !is_text || !is_cast_to_list(e) {
        return None;
    }
    let function = if matches!(e, Expr::Cast(_)) { parse } else { try_parse };
    let to = ScalarValue::try_from(field.data_type()).ok()?;
    Some(function.call(vec![expr.as_ref().clone(), Expr::Literal(to, None)]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TextList {
    /// Whether a string that is not a list becomes NULL instead of an error.
    safe: bool,
}

impl ScalarUDFImpl for TextList {
    declare!(Signature::any(2, Volatility::Immutable));

    fn name(&self) -> &str {
        match self.safe {
            true => "try_text_list",
            false => "text_list",
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [_, to] => Ok(to.clone()),
            types => plan_err!(
                "internal error: {} takes 2 arguments; {} given; please report it",
                self.name(),
                types.len()
            ),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let texts = take_first(self.name(), &args.args)?;
        let is_one = matches!(texts, ColumnarValue::Scalar(_));
        let texts = texts.to_array(if is_one { 1 } else { args.number_rows })?;
        let texts = cast(&texts, &DataType::Utf8)?;
        let to = args.return_field.data_type();
        to_columnar(parse_lists(texts.as_string::<i32>(), to, self.safe)?, is_one)
    }
}
