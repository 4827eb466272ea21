//! Plans items of FROM that DataFusion does not support: `unnest(..)` as a table function, and
//! `(FROM t)`.

use datafusion::error::Result;
use datafusion::logical_expr::planner::{
    RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::sqlparser::ast::TableFactor;

use crate::sql::statement::columns::unnest_calls::as_unnest;
use crate::sql::statement::errors::table_clauses::check_factor;
use crate::sql::statement::syntax_rewriter::rewrite_query;

/// Plans `FROM unnest(..)`, which the DuckDB dialect parses as a table function, and
/// `FROM (FROM t)`.
#[derive(Debug)]
pub(in crate::sql) struct UnnestPlanner;

impl RelationPlanner for UnnestPlanner {
    fn plan_relation(
        &self,
        mut relation: TableFactor,
        _context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        // If the statement comes from `ctx.sql`, Serrate has not checked it yet for clauses that
        // the planner ignores.
        check_factor(&relation)?;
        if let TableFactor::Derived { subquery, .. } = &mut relation {
            rewrite_query(subquery)?;
        }
        let relation = as_unnest(&relation).unwrap_or(relation);
        Ok(RelationPlanning::Original(Box::new(relation)))
    }
}
