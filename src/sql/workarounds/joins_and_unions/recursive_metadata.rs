//! Removes the metadata in which the two parts of a recursive query differ.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::common::plan_err;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlan, RecursiveQuery};

use crate::functions::{differ_in_vocabulary, merge_tags};
use crate::sql::exec::plain_rows::{ColumnMetadata, PlainRows};

/// `WITH RECURSIVE r AS (SELECT id FROM t UNION ALL SELECT id + 1 FROM r ..)` fails without this
/// rule if the column `id` of a Parquet file has metadata, such as the id of the field: `id + 1`
/// has none. So does a recursive query whose second part joins a file with metadata of its own,
/// such as that of pandas.
///
/// Analyzer rule: if the metadata of the parts differs, removes that of the schemas, and keeps only
/// equal metadata of a column and the vocabulary of its tokens. Tokens of two vocabularies are an
/// error, because the rows that the second part reads have the metadata of the first. DataFusion 55
/// requires that both parts have equal metadata. This workaround is obsolete once the test
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
    let columns = first.schema().fields().iter().zip(next.schema().fields());
    let kept = columns.map(|(a, b)| merge_metadata(a, b)).collect::<Result<Vec<_>>>()?;
    let (first, next) = (PlainRows::plan(first, &kept)?, PlainRows::plan(next, &kept)?);
    RecursiveQuery::try_new(query.name, Arc::new(first), Arc::new(next), query.is_distinct)
}

/// Returns the metadata of a column that the parts have as `first` and `next`.
fn merge_metadata(first: &FieldRef, next: &FieldRef) -> Result<ColumnMetadata> {
    if differ_in_vocabulary(first, next) {
        return plan_err!(
            "the column '{}' of WITH RECURSIVE has tokens of several vocabularies, in which a token stands for different codes; decode the tokens of each part with ragged_decode",
            first.name()
        );
    }
    let mut kept = first.metadata().clone();
    kept.retain(|key, value| next.metadata().get(key).is_some_and(|same| *same == *value));
    let merged = Arc::new(first.as_ref().clone().with_metadata(kept));
    Ok(merge_tags(merged, first, next).metadata().clone())
}
