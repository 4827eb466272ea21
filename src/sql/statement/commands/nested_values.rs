//! Marks VALUES within the query of an INSERT or CREATE TABLE, so that they keep their types.

use std::ops::ControlFlow;

use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sqlparser::ast::{
    Query, SetExpr, Statement as SqlStatement, TableFactor, VisitMut, VisitorMut,
};
use datafusion::sql::parser::Statement;

use crate::sql::base::marks::NESTED_VALUES;
use crate::sql::base::syntax::{as_flow, as_result, parse_query};
use crate::sql::statement::sql_parts::find_sql_statement;

/// Rewrites `VALUES ..` to `SELECT * FROM (VALUES ..) AS __serrate_values` within the query of an
/// INSERT, or of a CREATE TABLE that declares columns. DataFusion would give these VALUES the types
/// of the columns of the table; see [`NestedValuesPlanner`](crate::sql::from::nested_values).
///
/// VALUES that are the whole query, as in `INSERT INTO t VALUES (1)`, stay unchanged.
pub(in crate::sql::statement) fn mark_nested_values(statement: &mut Statement) -> Result<()> {
    let query = match find_sql_statement(statement) {
        Some(SqlStatement::Insert(insert)) => insert.source.as_mut(),
        Some(SqlStatement::CreateTable(table)) if !table.columns.is_empty() => table.query.as_mut(),
        _ => None,
    };
    let Some(query) = query else { return Ok(()) };
    as_result(VisitMut::visit(query, &mut MarkValues { depth: 0 }))
}

struct MarkValues {
    /// Number of queries around the current position.
    depth: usize,
}

impl VisitorMut for MarkValues {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<DataFusionError> {
        self.depth = self.depth.saturating_add(1);
        ControlFlow::Continue(())
    }

    // Marks the VALUES of a query after the visit of the query, so that the visit does not reach
    // the added query.
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        self.depth = self.depth.saturating_sub(1);
        let is_whole = self.depth == 0 && matches!(query.body.as_ref(), SetExpr::Values(_));
        match is_whole {
            true => ControlFlow::Continue(()),
            false => as_flow(mark_body(&mut query.body)),
        }
    }
}

fn mark_body(body: &mut SetExpr) -> Result<()> {
    match body {
        SetExpr::Values(values) if !values.value_keyword => {
            let marked = parse_query(&format!("SELECT * FROM (VALUES (1)) AS {NESTED_VALUES}"))?;
            let mut marked = *marked.body;
            if let SetExpr::Select(select) = &mut marked
                && let Some(from) = select.from.first_mut()
                && let TableFactor::Derived { subquery, .. } = &mut from.relation
            {
                std::mem::swap(subquery.body.as_mut(), body);
                *body = marked;
            }
            Ok(())
        }
        SetExpr::SetOperation { left, right, .. } => {
            mark_body(left).and_then(|()| mark_body(right))
        }
        _ => Ok(()),
    }
}
