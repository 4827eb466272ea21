use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan};

use crate::sql::base::expression_parts::rewrite_parts;

/// Analyzer rule, before type coercion: if the tested value of LIKE is a dictionary of strings,
/// casts the pattern to the type of the dictionary's values.
///
/// Type coercion keeps the dictionary and casts the pattern to another string type, so `code LIKE pattern`
/// fails if the pattern is a column of a Parquet file.
pub(in crate::sql) fn cast_like_patterns(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_like = |e: &Expr| matches!(e, Expr::Like(_));
    rewrite_parts(plan, is_like, |e, columns| Ok(cast_pattern(e, columns)))
}

fn cast_pattern(e: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::Like(mut like) = e else { return Transformed::no(e) };
    let is_text = |t: &DataType| t.is_string();
    let values = match like.expr.get_type(schema) {
        Ok(DataType::Dictionary(_, values)) if is_text(&values) => *values,
        _ => return Transformed::no(Expr::Like(like)),
    };
    // Only a dictionary of Utf8 that is compared with a pattern of another type needs a cast: DataFusion
    // supports a pattern of type Utf8, and unpacks dictionaries of other string types itself.
    let pattern = like.pattern.get_type(schema);
    if values != DataType::Utf8 || pattern.is_ok_and(|t| t == DataType::Utf8 || t.is_null()) {
        return Transformed::no(Expr::Like(like));
    }
    like.pattern = Box::new(Expr::Cast(Cast::new(like.pattern, values)));
    Transformed::yes(Expr::Like(like))
}
