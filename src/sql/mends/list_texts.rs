use std::sync::LazyLock;

use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::exec_err;
use datafusion::common::format::DEFAULT_FORMAT_OPTIONS;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::scalar::ScalarValue;

static LIST_TEXT: LazyLock<ScalarUDF> = LazyLock::new(|| {
    ScalarUDF::new_from_impl(ListText { signature: Signature::any(1, Volatility::Immutable) })
});

/// Analyzer rule: casts of lists to strings show NULL elements as NULL.
///
/// Arrow shows them as empty strings, so that `[1, NULL]` is `[1, ]`, and the lists `[NULL]` and `['']` have
/// the same text. Obsolete once the test `stock_texts_of_lists_still_lack_null` fails.
#[derive(Debug, Default)]
pub(in crate::sql) struct ListTexts;

impl AnalyzerRule for ListTexts {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|plan| {
            let to_text = |e: &Expr| match e {
                Expr::Cast(cast) => cast.field.data_type().is_string(),
                _ => false,
            };
            let has_text = |e: &Expr| e.exists(|e| Ok(to_text(e))).unwrap_or(true);
            if !plan.expressions().iter().any(has_text) {
                return Ok(Transformed::no(plan));
            }
            let mut schema = merge_schema(&plan.inputs());
            if let LogicalPlan::TableScan(scan) = &plan {
                let (name, source) = (scan.table_name.clone(), scan.source.schema());
                schema.merge(&DFSchema::try_from_qualified_schema(name, &source)?);
            }
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|e| {
                let name = names.save(&e);
                let done = e.transform_up(|e| match e {
                    Expr::Cast(Cast { expr, field })
                        if field.data_type().is_string()
                            && expr.get_type(&schema).is_ok_and(|t| is_list(&t)) =>
                    {
                        let text = Box::new(LIST_TEXT.call(vec![*expr]));
                        Ok(Transformed::yes(match field.data_type() {
                            DataType::Utf8 => *text,
                            _ => Expr::Cast(Cast { expr: text, field }),
                        }))
                    }
                    e => Ok(Transformed::no(e)),
                })?;
                Ok(done.update_data(|e| name.restore(e)))
            })
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "serrate_list_texts"
    }
}

fn is_list(t: &DataType) -> bool {
    matches!(t, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))
}

/// Returns the function that [`ListTexts`] inserts, for plans that are sent to worker processes.
#[cfg(feature = "cluster")]
pub(in crate::sql) fn list_text_function() -> ScalarUDF {
    LIST_TEXT.clone()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ListText {
    signature: Signature,
}

impl ScalarUDFImpl for ListText {
    fn name(&self) -> &str {
        "list_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [lists] = args.args.as_slice() else {
            return exec_err!(
                "internal error: list_text takes 1 argument; {} given; please report it",
                args.args.len()
            );
        };
        let is_one = matches!(lists, ColumnarValue::Scalar(_));
        let lists = lists.to_array(if is_one { 1 } else { args.number_rows })?;
        let options =
            CastOptions { safe: false, format_options: DEFAULT_FORMAT_OPTIONS.with_null("NULL") };
        let texts = cast_with_options(&lists, &DataType::Utf8, &options)?;
        Ok(match is_one {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&texts, 0)?),
            false => ColumnarValue::Array(texts),
        })
    }
}
