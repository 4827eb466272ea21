//! Changes each relation in FROM while a statement is planned.

use std::cell::Cell;

use datafusion::error::Result;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::sqlparser::ast::TableFactor;

use crate::sql::from::relation_types::set_final_types;
use crate::sql::workarounds::grouping::dependencies::add_unnest_barriers;
use crate::sql::workarounds::subqueries::shared_rows::keep_copies;

/// Changes each relation in FROM during planning: applies
/// [`drop_unnest_dependencies`](crate::sql::workarounds::grouping::dependencies::drop_unnest_dependencies), and gives
/// columns their [final types](super::relation_types). After planning, it is too late to remove functional
/// dependencies, because the planner adds columns to GROUP BY according to them.
#[derive(Debug)]
pub(in crate::sql) struct PlannedRelations;

thread_local! {
    /// Set when `plan_relation` passes a relation back to DataFusion's planner. The planner then
    /// calls `plan_relation` again, which clears the flag and returns the relation unchanged.
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
        let changed = add_unnest_barriers(planned.clone())?.transform_data(set_final_types)?;
        // The copies of a plan that is not rewritten share their schemas already. A chain of CTEs contains the plans of
        // all CTEs before, so each walk over the plan of a relation counts.
        if changed.transformed {
            keep_copies(&planned, &changed.data)?;
        }
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(changed.data, None))))
    }
}
