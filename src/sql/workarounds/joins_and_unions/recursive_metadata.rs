//! Removes the metadata of recursive queries whose two parts differ in it.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlan, RecursiveQuery};

use crate::sql::exec::plain_rows::PlainRows;

/// `WITH RECURSIVE r AS (SELECT id FROM t UNION ALL SELECT id + 1 FROM r ..)` fails without this
/// rule if the column `id` of a Parquet file has metadata, such as the id of the field: `id + 1`
/// has none. So does a recursive query whose second part joins a file with metadata of its own,
/// such as that of pandas.
///
/// Analyzer rule: removes the metadata of both parts if it differs. DataFusion 55 requires that
/// both parts have equal metadata. This workaround is obsolete once the test
/// `stock_recursions_still_compare_metadata` fails.
pub(in crate::sql) fn remove_recursive_metadata(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut differs = false;
    plan.apply_with_subqueries(|node| {
        differs |= matches!(node, LogicalPlan::RecursiveQuery(query) if has_other_metadata(query));
        Ok(match differs {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    if !differs {
        return Ok(plan);
    }
    // Recompute the schemas, because a node above a changed query has its former metadata.
    let plan = plan.transform_up_with_subqueries(|node| {
        Ok(Transformed::yes(match node.recompute_schema()? {
            LogicalPlan::RecursiveQuery(query) if has_other_metadata(&query) => {
                LogicalPlan::RecursiveQuery(remove_metadata(query)?)
            }
            other => other,
        }))
    })?;
    Ok(plan.data)
}

/// Whether the parts of a recursive query differ in the metadata of their schemas or columns.
fn has_other_metadata(query: &RecursiveQuery) -> bool {
    let (first, next) = (query.static_term.schema(), query.recursive_term.schema());
    let mut columns = first.fields().iter().zip(next.fields());
    first.metadata() != next.metadata() || columns.any(|(a, b)| a.metadata() != b.metadata())
}

fn remove_metadata(query: RecursiveQuery) -> Result<RecursiveQuery> {
    let [first, next] = [query.static_term, query.recursive_term].map(Arc::unwrap_or_clone);
    let (first, next) = (PlainRows::plan(first)?, PlainRows::plan(next)?);
    RecursiveQuery::try_new(query.name, Arc::new(first), Arc::new(next), query.is_distinct)
}
