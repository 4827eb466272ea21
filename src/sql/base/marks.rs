//! Names in a plan by which rules recognize LATERAL subqueries, and joins that only test for a
//! match.

use datafusion::common::Column;
use datafusion::logical_expr::{Expr, Join, LogicalPlan};

/// Alias that marks the query of a LATERAL table if the query contains subqueries.
pub(in crate::sql) const LATERAL: &str = "__serrate_lateral";

/// Whether a plan is that of a LATERAL query to which `statement::columns::lateral_tables` has
/// added [`LATERAL`]. The alias marks the query, because DataFusion creates no `Subquery` node if
/// only subqueries of a LATERAL query use columns of the tables before it.
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
