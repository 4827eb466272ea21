//! Changes the plan of each relation in FROM while a statement is planned: its columns get their
//! final types, `unnest` loses its functional dependencies, and an alias may name the first columns
//! only.

use std::cell::Cell;

use datafusion::error::Result;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::sqlparser::ast::{Ident, SetExpr, TableFactor};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};

use crate::sql::from::relation_types::set_final_types;
use crate::sql::workarounds::grouping::dependencies::add_unnest_barriers;
use crate::sql::workarounds::subqueries::shared_rows::keep_copies;

/// Changes each relation in FROM before the planner reads its schema:
///
/// * It makes `unnest` drop the functional dependencies of its input (see
///   [`drop_unnest_dependencies`](crate::sql::workarounds::grouping::dependencies::drop_unnest_dependencies)).
///   The planner adds columns to GROUP BY because of such dependencies, so a rule after planning
///   would be too late.
/// * It gives columns their [final types](super::relation_types). In `SELECT (SELECT sum(y * l.c)
///   FROM r) FROM (SELECT 2 AS c UNION ALL SELECT 300.5) l`, the reference `l.c` would keep the
///   type of the first branch, INT.
/// * An alias such as `(SELECT 1 AS p, 2 AS q) AS a(x)` may name fewer columns than there are. The
///   others keep their names, as in DuckDB and PostgreSQL: `a` has the columns `x` and `q`.
///   DataFusion requires a name for each column. Obsolete once the test
///   `stock_aliases_must_still_name_all_columns` fails.
#[derive(Debug)]
pub(in crate::sql) struct PlannedRelations;

thread_local! {
    /// Prevents an endless recursion: `plan_relation` passes each relation to DataFusion's planner,
    /// which calls `plan_relation` again. `true` marks this second call, which clears the flag and
    /// returns the relation unchanged.
    static PLANNED_HERE: Cell<bool> = const { Cell::new(false) };
}

impl RelationPlanner for PlannedRelations {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        if PLANNED_HERE.take() {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        let first_names = split_names(&relation);
        let mut plan = plan_once(relation, context);
        if let Some((unnamed, names)) = first_names
            && plan.as_ref().is_err_and(|e| e.to_string().contains(LACKS_NAMES))
            && let Some(named) = name_first_columns(unnamed, names, context)?
        {
            plan = Ok(named);
        }
        let planned = plan?;
        let config = context.context_provider().options();
        let changed = add_unnest_barriers(planned.clone())?
            .transform_data(|plan| set_final_types(plan, config))?;
        // In an unchanged plan, all copies of a CTE still share one schema `Arc`, by which a later
        // rule recognizes them. In a changed plan they do not, so `keep_copies` records which
        // aliases are copies of one CTE. It is called only if necessary, because it visits the
        // whole plan, and in a chain of CTEs, each plan contains the plans of all earlier CTEs.
        if changed.transformed {
            keep_copies(&planned, &changed.data)?;
        }
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(changed.data, None))))
    }
}

/// Plans a relation with DataFusion's planner and the other relation planners.
fn plan_once(
    relation: TableFactor,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    PLANNED_HERE.set(true);
    let plan = context.plan(relation);
    // Clears the flag, which is still set if another planner has planned the relation.
    PLANNED_HERE.set(false);
    plan
}

/// Part of DataFusion's message about an alias that does not name all columns.
const LACKS_NAMES: &str = "names given as column alias";

/// Splits a table, or a query that is not LATERAL, into the relation without names of columns and
/// these names. Returns `None` for other relations, and if there are no names or enough of them.
fn split_names(relation: &TableFactor) -> Option<(TableFactor, Vec<Ident>)> {
    let (TableFactor::Table { alias: Some(alias), .. }
    | TableFactor::Derived { lateral: false, alias: Some(alias), .. }) = relation
    else {
        return None;
    };
    if alias.columns.is_empty() {
        return None;
    }
    // Many rows of VALUES are copied only if the names cannot be complete.
    if let TableFactor::Derived { subquery, .. } = relation
        && let SetExpr::Values(values) = subquery.body.as_ref()
        && values.rows.first().is_some_and(|row| row.len() <= alias.columns.len())
    {
        return None;
    }
    let names = alias.columns.iter().map(|column| column.name.clone()).collect();
    let mut unnamed = relation.clone();
    if let TableFactor::Table { alias: Some(alias), .. }
    | TableFactor::Derived { alias: Some(alias), .. } = &mut unnamed
    {
        alias.columns.clear();
    }
    Some((unnamed, names))
}

/// Plans a relation and gives its first columns the names `names`. Returns `None` if there are more
/// names than columns, or if the plan has no alias.
fn name_first_columns(
    relation: TableFactor,
    names: Vec<Ident>,
    context: &mut dyn RelationPlannerContext,
) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::SubqueryAlias(aliased) = plan_once(relation, context)? else {
        return Ok(None);
    };
    let columns = aliased.input.schema().columns();
    if names.len() > columns.len() {
        return Ok(None);
    }
    let mut names = names.into_iter();
    let named = columns.into_iter().map(|column| match names.next() {
        Some(name) => Expr::Column(column).alias(context.normalize_ident(name)),
        None => Expr::Column(column),
    });
    let named: Vec<Expr> = named.collect();
    let plan = LogicalPlanBuilder::from(aliased.input.as_ref().clone()).project(named)?;
    Ok(Some(plan.alias(aliased.alias)?.build()?))
}
