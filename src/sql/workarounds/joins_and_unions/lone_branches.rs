use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::sql::workarounds::joins_and_unions::unions::name_columns;

/// `SELECT id FROM (SELECT id FROM a WHERE false UNION ALL SELECT b.id FROM a, b) q WHERE id < 4`
/// compares `a.id` instead of `b.id` without this rule.
///
/// Makes the rule `propagate_empty_relation` keep the table names of columns if it replaces a UNION
/// with one of its branches.
///
/// If all other branches are empty, the rule replaces the union with a projection of the branch to
/// columns without a table: `id` instead of `b.id`. A filter above then moves below a join in the
/// branch and applies to another column named `id`. This workaround is obsolete once the test
/// `stock_filters_of_lone_branches_still_reach_other_tables` fails.
pub(in crate::sql) fn keep_branch_tables(
    stock: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Union(union) = &plan else { return stock.rewrite(plan, config) };
    let schema = Arc::clone(&union.schema);
    stock.rewrite(plan, config)?.map_data(|plan| match plan {
        // Only the projection that DataFusion's rule adds in place of the union shares the `Arc` of
        // the schema of the union.
        LogicalPlan::Projection(made) if Arc::ptr_eq(&made.schema, &schema) => {
            let columns = made.input.schema().iter().zip(schema.iter());
            let columns = columns.map(|(column, (table, field))| {
                Expr::Column(Column::from(column)).alias_qualified(table.cloned(), field.name())
            });
            let columns = columns.collect();
            Projection::try_new_with_schema(columns, made.input, schema)
                .map(LogicalPlan::Projection)
        }
        plan => Ok(plan),
    })
}

/// `SELECT * FROM (SELECT c1 AS c0, c0 AS c1 FROM (SELECT id AS c0, id AS c1 FROM u WHERE false
/// UNION ALL (SELECT k, x FROM u UNION ALL SELECT x, k FROM u WHERE k > 1))) ORDER BY c0, c1` fails
/// without this rule.
///
/// Makes the rule `propagate_empty_relation` keep the column names of a UNION if several branches
/// remain.
///
/// The rule removes empty branches and keeps the schema of the union. The physical union, however,
/// takes the column names of its first branch, which is now another branch. This workaround is
/// obsolete once the test `stock_unions_still_take_names_from_a_later_branch` fails.
pub(in crate::sql) fn keep_branch_names(
    stock: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Union(union) = &plan else { return stock.rewrite(plan, config) };
    let (schema, branches) = (Arc::clone(&union.schema), union.inputs.len());
    stock.rewrite(plan, config)?.map_data(|plan| match plan {
        LogicalPlan::Union(mut rest) if rest.inputs.len() < branches => {
            if let Some(first) = rest.inputs.first_mut()
                && !has_names_of(first.schema(), &schema)
            {
                *first = name_columns(Arc::clone(first), &schema)?;
            }
            Ok(LogicalPlan::Union(rest))
        }
        plan => Ok(plan),
    })
}

fn has_names_of(one: &DFSchema, other: &DFSchema) -> bool {
    one.fields().iter().zip(other.fields()).all(|(a, b)| a.name() == b.name())
}
