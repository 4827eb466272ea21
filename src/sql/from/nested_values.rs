//! Plans VALUES within the query of an INSERT or CREATE TABLE, with the types of their values.

use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::sqlparser::ast::{SetExpr, TableFactor};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};

use crate::sql::base::marks::NESTED_VALUES;

/// Plans the tables `(VALUES ..) AS __serrate_values`, to which
/// `statement::commands::nested_values` rewrites VALUES.
///
/// DataFusion 55 gives all VALUES in the query of an INSERT the types of the columns of the table:
/// `INSERT INTO t SELECT length(s) FROM (VALUES ('007')) v(s)` inserts 1, the length of `7`, into
/// an integer column, and fails if the table has two columns. The same applies to CREATE TABLE with
/// columns and a query. This workaround is obsolete once the test
/// `stock_nested_values_still_have_the_types_of_the_table` fails.
#[derive(Debug)]
pub(in crate::sql) struct NestedValuesPlanner;

impl RelationPlanner for NestedValuesPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Derived { subquery, alias: Some(alias), .. } = &relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let SetExpr::Values(values) = subquery.body.as_ref() else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        if alias.name.value != NESTED_VALUES {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        let no_columns = DFSchema::empty();
        let mut rows = Vec::with_capacity(values.rows.len());
        for row in &values.rows {
            let cells = row.iter().map(|cell| context.sql_to_expr(cell.clone(), &no_columns));
            rows.push(cells.collect::<Result<Vec<Expr>>>()?);
        }
        let plan = LogicalPlanBuilder::values(rows)?.build()?;
        let planned = PlannedRelation::new(plan, Some(alias.clone()));
        Ok(RelationPlanning::Planned(Box::new(planned)))
    }
}
