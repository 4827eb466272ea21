use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};

use super::dependencies::{may_have_dependencies, remove_dependencies};

/// Analyzer rule: hides from a GROUP BY which columns of its input are unique, if a key has the
/// name of an input column but is another expression, such as a cast.
///
/// DataFusion removes the keys that a unique column of the input determines. It finds this column
/// among the keys by its name, and a cast has the name of its column. So `GROUP BY f::INT, f` over
/// rows with unique `f` becomes `GROUP BY f::INT`. Obsolete once the test
/// `stock_casts_still_replace_group_keys` fails.
pub(in crate::sql) fn keep_cast_groups(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Aggregate(aggregate) = &node else { return Ok(Transformed::no(node)) };
        if !has_misnamed_key(aggregate) || !may_have_dependencies(&aggregate.input)? {
            return Ok(Transformed::no(node));
        }
        let input = Arc::new(remove_dependencies(&aggregate.input)?);
        let (keys, calls) = (aggregate.group_expr.clone(), aggregate.aggr_expr.clone());
        Aggregate::try_new(input, keys, calls).map(LogicalPlan::Aggregate).map(Transformed::yes)
    })
    .data()
}

/// Whether one of several keys has the name of an input column but is not a column.
fn has_misnamed_key(aggregate: &Aggregate) -> bool {
    let names = || aggregate.input.schema().field_names();
    aggregate.group_expr.len() > 1
        && aggregate.group_expr.iter().any(|key| {
            !matches!(key, Expr::Column(_) | Expr::GroupingSet(_))
                && names().contains(&key.schema_name().to_string())
        })
}
