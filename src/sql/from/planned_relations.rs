//! Changes the plan of each relation in FROM while a statement is planned: its columns get their
//! final types, and `unnest` loses its functional dependencies.

use std::cell::Cell;

use datafusion::error::Result;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::sqlparser::ast::TableFactor;

use crate::sql::from::relation_types::set_final_types;
use crate::sql::workarounds::grouping::dependencies::add_unnest_barriers;
use crate::sql::workarounds::subqueries::shared_rows::keep_copies;

/// Changes each relation in FROM before the planner reads its schema:
///
/// * It makes `unnest` drop the functional dependencies of its input (see
///   [`drop_unnest_dependencies`](crate::sql::workarounds::grouping::dependencies::drop_unnest_dependencies)).
///   The planner adds columns to GROUP BY because of such dependencies, so a rule after planning
///   would be too late.
/// * It gives columns their [final types](super::relation_types). In
///   `SELECT (SELECT sum(y * l.c) FROM r) FROM (SELECT 2 AS c UNION ALL SELECT 300.5) l`, the
///   reference `l.c` would keep the type of the first branch, INT.
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
        PLANNED_HERE.set(true);
        let plan = context.plan(relation);
        // Clears the flag, which is still set if another planner has planned the relation.
        PLANNED_HERE.set(false);
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
