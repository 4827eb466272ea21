use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};

use super::dependencies::{may_have_dependencies, remove_dependencies};

/// Analyzer rule: hides from a GROUP BY the functional dependencies of its input (which columns are
/// unique), if a key has the name of an input column but is another expression, such as a cast.
///
/// DataFusion removes the keys that a unique column of the input determines. It finds this column
/// among the keys by its name, and a cast has the name of its column. So `GROUP BY f::INT, f` over
/// rows with unique `f` becomes `GROUP BY f::INT`. This workaround is obsolete once the test
/// `stock_casts_still_replace_group_keys` fails.
///
/// The rule also hides which columns of a GROUP BY are unique if two keys have the same name, as a
/// cast and its column have, or the column "a + Int64(1)" and the expression `a + 1`. DataFusion
/// counts such keys as one. It then treats the first key alone as unique, and drops the other keys
/// from ORDER BY. This workaround is obsolete once the test
/// `stock_keys_of_one_name_still_count_as_one` fails.
pub(in crate::sql) fn keep_cast_groups(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut hides = false;
    let plan = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Aggregate(aggregate) = &node else { return Ok(Transformed::no(node)) };
        let repeats = repeats_key_name(aggregate);
        let is_misnamed = has_misnamed_key(aggregate) && may_have_dependencies(&aggregate.input)?;
        if !repeats && !is_misnamed {
            return Ok(Transformed::no(node));
        }
        let mut grouped = node.clone();
        if is_misnamed {
            let input = Arc::new(remove_dependencies(&aggregate.input)?);
            let (keys, calls) = (aggregate.group_expr.clone(), aggregate.aggr_expr.clone());
            grouped = LogicalPlan::Aggregate(Aggregate::try_new(input, keys, calls)?);
        }
        if repeats {
            hides = true;
            grouped = remove_dependencies(&Arc::new(grouped))?;
        }
        Ok(Transformed::yes(grouped))
    })?;
    if !hides {
        return Ok(plan.data);
    }
    // The schemas above a changed node still have the functional dependencies of the old node, so
    // they are computed again.
    plan.data
        .transform_up_with_subqueries(|node| node.recompute_schema().map(Transformed::yes))
        .data()
}

/// Whether several keys of a GROUP BY without grouping sets have the same name.
fn repeats_key_name(aggregate: &Aggregate) -> bool {
    let keys = &aggregate.group_expr;
    let mut names = HashSet::new();
    keys.len() > 1
        && !keys.iter().any(|key| matches!(key, Expr::GroupingSet(_)))
        && !keys.iter().all(|key| names.insert(key.schema_name().to_string()))
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
