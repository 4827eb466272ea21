//! Names in plans by which planners and rules recognize VALUES within an INSERT, LATERAL
//! subqueries, and joins that only test whether rows match.

use datafusion::common::Column;
use datafusion::logical_expr::{Expr, Join, LogicalPlan};

/// Alias that marks VALUES within the query of an INSERT or CREATE TABLE.
pub(in crate::sql) const NESTED_VALUES: &str = "__serrate_values";

/// Alias that marks the query of a LATERAL table if the query contains subqueries.
pub(in crate::sql) const LATERAL: &str = "__serrate_lateral";

/// Whether a plan is the plan of `SELECT * FROM (query) AS __serrate_lateral`, to which
/// `statement::columns::lateral_tables` rewrites the query of a LATERAL table. Rules recognize a
/// LATERAL table by a `Subquery` node. DataFusion does not create this node if only subqueries of
/// the query use columns of earlier tables, so the rules recognize this alias ([`LATERAL`]), too.
pub(in crate::sql) fn is_marked(query: &LogicalPlan) -> bool {
    matches!(query, LogicalPlan::Projection(node)
        if matches!(node.input.as_ref(), LogicalPlan::SubqueryAlias(alias)
            if alias.alias.table() == LATERAL))
}

pub(in crate::sql) const MATCHES: &str = "matches";

/// Whether a join is a semi join or anti join that
/// [`join_matches`](crate::sql::workarounds::subqueries::correlated::expand::join_matches) created.
pub(in crate::sql) fn is_match_join(join: &Join) -> bool {
    let is_match = |e: &Expr| match e {
        Expr::Column(Column { relation: Some(table), .. }) => {
            table.table().starts_with(&format!("__serrate_{MATCHES}_"))
        }
        _ => false,
    };
    join.on.iter().any(|(_, right)| is_match(right))
}
