//! Replaces aliases that a SELECT uses in later columns or in WHERE with their expressions: `SELECT
//! a + 1 AS b, b * 2` becomes `SELECT a + 1 AS b, (a + 1) * 2`. Applies to every query whose FROM
//! can be planned.

use std::collections::HashSet;

use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::VisitMut;
use datafusion::prelude::SessionContext;

use crate::sql::statement::names::select_aliases::{SelectAliases, SelectSource};
use crate::sql::statement::plan_once::plan_rewritten_names;
use crate::sql::statement::planned_parts::plan_names;

/// Replaces aliases that a SELECT uses like columns, such as `b` in `SELECT a + 1 AS b, b * 2 FROM
/// t`, with their expressions, if FROM can be planned and has no column of this name. Returns
/// whether an alias was replaced. SELECTs within expressions and LATERAL tables stay unchanged,
/// because a name in them may be a column of an outer query.
pub(super) async fn replace_in_statement<S: VisitMut>(
    ctx: &SessionContext,
    state: &SessionState,
    statement: &mut S,
) -> bool {
    let mut aliases = SelectAliases::new(state);
    let _ = VisitMut::visit(statement, &mut aliases);
    let mut columns = Vec::with_capacity(aliases.places.len());
    for place in aliases.places {
        columns.push(match place {
            SelectSource::NoTable => Some(HashSet::new()),
            SelectSource::Table(query) => {
                let names = match plan_names(state, (*query).clone()).await {
                    // Some queries can be planned only after they are rewritten, such as those with
                    // `upper` of a list.
                    None => plan_rewritten_names(ctx, state, *query).await,
                    names => names,
                };
                names.map(|names| names.into_iter().collect())
            }
            SelectSource::Unknown => None,
        });
    }
    let mut aliases = SelectAliases::new(state);
    aliases.columns = Some(columns.into_iter());
    let _ = VisitMut::visit(statement, &mut aliases);
    aliases.is_replaced
}
