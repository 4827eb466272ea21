use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use crate::sql::mends::sorts::has_comparison;
use serrate_core::internal::canonical_floats;

/// Analyzer rule, before DataFusion's type coercion: replaces window keys that are structs or lists of
/// lists with strings that sort equally.
///
/// DataFusion compares the keys of a row with the keys of the previous row as scalars, and fails with
/// "Uncomparable values" for lists of lists. DataFusion also does not recognize constant keys of these types
/// as ordered, and structs have no RANGE frame, which is the default. Obsolete once the test
/// `stock_windows_over_lists_of_lists_still_fail` fails.
#[derive(Debug, Default)]
pub(in crate::sql) struct WindowKeys;

impl AnalyzerRule for WindowKeys {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|plan| {
            let LogicalPlan::Window(_) = &plan else { return Ok(Transformed::no(plan)) };
            let schema = merge_schema(&plan.inputs());
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|e| {
                let name = names.save(&e);
                Ok(e.transform_up(|e| Ok(key_windows(e, &schema)))?
                    .update_data(|e| name.restore(e)))
            })
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "serrate_window_keys"
    }
}

fn key_windows(mut e: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::WindowFunction(call) = &mut e else { return Transformed::no(e) };
    let WindowFunction { params, .. } = &mut **call;
    let keys = params.order_by.iter_mut().map(|by| &mut by.expr).chain(&mut params.partition_by);
    let mut changed = false;
    for key in keys {
        if key.get_type(schema).is_ok_and(|t| t.is_nested() && !has_comparison(&t)) {
            let signature = Signature::any(1, Volatility::Immutable);
            let function = ScalarUDF::new_from_impl(TextKey { signature });
            *key = function.call(vec![std::mem::take(key)]);
            changed = true;
        }
    }
    Transformed::new_transformed(e, changed)
}

/// `text_key(x)`: strings that sort like lists or structs in which NULL elements are the greatest.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TextKey {
    signature: Signature,
}

impl ScalarUDFImpl for TextKey {
    fn name(&self) -> &str {
        "text_key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [ColumnarValue::Array(values)] => Ok(ColumnarValue::Array(to_texts(values)?)),
            [ColumnarValue::Scalar(value)] => {
                let text = to_texts(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&text, 0)?))
            }
            args => exec_err!(
                "internal error: text_key takes 1 argument; {} given; please report it",
                args.len()
            ),
        }
    }
}

/// Returns the bytes of Arrow's row format, which sort like the original values, as hexadecimal digits.
fn to_texts(values: &ArrayRef) -> Result<ArrayRef> {
    let order = SortOptions { descending: false, nulls_first: false };
    let field = SortField::new_with_options(values.data_type().clone(), order);
    let converter = RowConverter::new(vec![field])?;
    let rows = converter.convert_columns(&[canonical_floats(values)?])?;
    let texts = rows.iter().enumerate().map(|(at, row)| {
        values.is_valid(at).then(|| {
            let bytes = row.as_ref();
            let mut text = String::with_capacity(bytes.len().saturating_mul(2));
            for byte in bytes {
                // Writing to a String cannot fail, so the result can be ignored.
                let _ = write!(text, "{byte:02x}");
            }
            text
        })
    });
    Ok(Arc::new(texts.collect::<StringArray>()))
}
