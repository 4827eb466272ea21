use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, TryCast};

use crate::sql::base::expression_parts::rewrite_parts;

/// Analyzer rule: casts a dictionary to the type of its values before a cast to another type.
///
/// Arrow 59 casts all values of a dictionary, also those that no row has, so
/// `SELECT d::INT FROM t WHERE d <> 'x'` fails because of 'x'. Arrow's cast to string views makes a
/// NULL among the values an empty string: <https://github.com/apache/arrow-rs/issues/10510>. This
/// workaround is obsolete once the test `stock_casts_of_dictionaries_still_cast_unused_values`
/// fails.
pub(in crate::sql) fn cast_dictionary_values(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_cast = |e: &Expr| matches!(e, Expr::Cast(_) | Expr::TryCast(_));
    rewrite_parts(plan, is_cast, |e, columns| match e {
        Expr::Cast(Cast { expr, field }) => {
            let decoded = decode_operand(*expr, field.data_type(), columns)?;
            Ok(decoded.update_data(|e| Expr::Cast(Cast { expr: Box::new(e), field })))
        }
        Expr::TryCast(TryCast { expr, field }) => {
            let decoded = decode_operand(*expr, field.data_type(), columns)?;
            Ok(decoded.update_data(|e| Expr::TryCast(TryCast { expr: Box::new(e), field })))
        }
        e => Ok(Transformed::no(e)),
    })
}

/// If `e`, the operand of a cast to `to`, is a dictionary with values of another type than `to`,
/// casts `e` to the type of these values.
fn decode_operand(e: Expr, to: &DataType, columns: &DFSchema) -> Result<Transformed<Expr>> {
    match e.get_type(columns)? {
        DataType::Dictionary(_, values)
            if *values != *to && !matches!(to, DataType::Dictionary(..)) =>
        {
            Ok(Transformed::yes(Expr::Cast(Cast::new(Box::new(e), *values))))
        }
        _ => Ok(Transformed::no(e)),
    }
}
