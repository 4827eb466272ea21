use std::sync::{Arc, LazyLock};

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, TryCast, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::scalar::ScalarValue;

use super::coarser_times::is_named_cast;
use crate::array::leaf_type;
use crate::kernels::time_texts::{complete_times, has_texts};
use crate::sql::mends::parts::rewrite_parts;

static COMPLETED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(CompleteTime { signature }))
});

/// Functions whose first argument may be the text of a time.
const READERS: [&str; 6] = [
    "to_date",
    "to_timestamp",
    "to_timestamp_micros",
    "to_timestamp_millis",
    "to_timestamp_nanos",
    "to_timestamp_seconds",
];

/// Analyzer rule: reads texts such as `2024-01-01 10:00` and `2024/1/5` as dates and times
/// ([`time_texts`](crate::kernels::time_texts)), as PostgreSQL and DuckDB do.
///
/// Arrow requires the seconds and two digits for each field, so a cast of such a text fails. Obsolete once the test
/// `stock_times_without_seconds_are_still_errors` fails.
#[derive(Debug, Default)]
pub(in crate::sql) struct TimeTexts;

impl AnalyzerRule for TimeTexts {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let may_read = |e: &Expr| {
            matches!(e, Expr::Cast(_) | Expr::TryCast(_)) || is_named_cast(e) || is_reader(e)
        };
        rewrite_parts(plan, may_read, |e, columns| match e {
            Expr::Cast(Cast { expr, field }) if is_time(field.data_type()) => {
                let read = complete_text(*expr, columns)?;
                Ok(read.update_data(|expr| Expr::Cast(Cast { expr: Box::new(expr), field })))
            }
            Expr::TryCast(TryCast { expr, field }) if is_time(field.data_type()) => {
                let read = complete_text(*expr, columns)?;
                Ok(read.update_data(|expr| Expr::TryCast(TryCast { expr: Box::new(expr), field })))
            }
            Expr::ScalarFunction(mut call) => {
                let e = Expr::ScalarFunction(call.clone());
                let reads = is_reader(&e) || (is_named_cast(&e) && is_time(&e.get_type(columns)?));
                if !reads || call.args.is_empty() {
                    return Ok(Transformed::no(e));
                }
                let read = complete_text(call.args.swap_remove(0), columns)?;
                let changed = read.transformed;
                call.args.push(read.data);
                let last = call.args.len() - 1;
                call.args.swap(0, last);
                Ok(Transformed::new_transformed(Expr::ScalarFunction(call), changed))
            }
            e => Ok(Transformed::no(e)),
        })
    }

    fn name(&self) -> &str {
        "serrate_time_texts"
    }
}

/// Returns the function that [`TimeTexts`] inserts, for plans that are sent to worker processes.
#[cfg(feature = "cluster")]
pub(in crate::sql) fn time_text_function() -> Arc<ScalarUDF> {
    Arc::clone(&COMPLETED)
}

/// Whether an expression reads a time from text in the default format.
fn is_reader(e: &Expr) -> bool {
    matches!(e, Expr::ScalarFunction(call)
        if call.args.len() == 1 && READERS.contains(&call.name()))
}

fn is_time(t: &DataType) -> bool {
    matches!(leaf_type(t), DataType::Timestamp(..) | DataType::Date32 | DataType::Date64)
}

/// Rewrites an expression whose value is read as a time: completes a string literal here, and wraps any other string
/// in a call of [`CompleteTime`].
fn complete_text(e: Expr, columns: &DFSchema) -> Result<Transformed<Expr>> {
    match &e {
        Expr::Literal(value, metadata) if has_texts(&value.data_type()) => {
            let complete = ScalarValue::try_from_array(&complete_times(&value.to_array()?)?, 0)?;
            Ok(match complete == *value {
                true => Transformed::no(e),
                false => Transformed::yes(Expr::Literal(complete, metadata.clone())),
            })
        }
        Expr::ScalarFunction(call) if call.func.inner().is::<CompleteTime>() => {
            Ok(Transformed::no(e))
        }
        _ if has_texts(&e.get_type(columns)?) => Ok(Transformed::yes(COMPLETED.call(vec![e]))),
        _ => Ok(Transformed::no(e)),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CompleteTime {
    signature: Signature,
}

impl ScalarUDFImpl for CompleteTime {
    fn name(&self) -> &str {
        "complete_time"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [ColumnarValue::Array(texts)] => Ok(ColumnarValue::Array(complete_times(texts)?)),
            [ColumnarValue::Scalar(text)] => {
                let complete = complete_times(&text.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&complete, 0)?))
            }
            args => exec_err!(
                "internal error: complete_time takes 1 argument; {} given; please report it",
                args.len()
            ),
        }
    }
}
