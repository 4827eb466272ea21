//! Keeps WITH, ORDER BY, LIMIT and OFFSET of a UNION that is a query of WITH RECURSIVE.
//!
//! DataFusion plans the two parts of such a UNION, and ignores the other clauses of the query, even
//! if the query does not read itself. No upstream issue was found. This workaround is obsolete once
//! the test `stock_clauses_of_recursive_unions_are_still_ignored` fails.

use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{Cte, Query, SetExpr, SetOperator, Visit, With};

use crate::sql::base::syntax::parse_query;
use crate::sql::statement::errors::clauses::reads_table;

/// Rewrites the queries of WITH RECURSIVE so that the planner does not ignore their clauses.
///
/// A UNION that does not read itself becomes a query in parentheses, which the planner plans with
/// all clauses. The WITH of a UNION that reads itself moves into the part that reads it. For the
/// clauses that remain, such as ORDER BY, [`clauses`](crate::sql::statement::errors::clauses)
/// reports an error.
pub(super) fn keep_clauses(query: &mut Query) -> Result<()> {
    let Some(with) = query.with.as_mut().filter(|with| with.recursive) else { return Ok(()) };
    with.cte_tables.iter_mut().try_for_each(keep_union_clauses)
}

fn keep_union_clauses(cte: &mut Cte) -> Result<()> {
    let query: &mut Query = &mut cte.query;
    let SetExpr::SetOperation { op: SetOperator::Union, left, right, .. } = query.body.as_mut()
    else {
        return Ok(());
    };
    let name = &cte.alias.name;
    if reads_table(&*left, name) || reads_table(&*right, name) {
        let Some(with) = query.with.take_if(|with| !reads_table(&*with, name)) else {
            return Ok(());
        };
        match (reads_any(&*left, &with), reads_any(&*right, &with)) {
            // Both parts read the WITH, so it stays. If each part got a copy, a query that calls
            // `random()` could return different rows in the two parts.
            (true, true) => query.with = Some(with),
            (false, true) => define_in_part(right, with)?,
            (_, false) => define_in_part(left, with)?,
        }
        return Ok(());
    }
    let has_clauses = query.with.is_some()
        || query.order_by.is_some()
        || query.limit_clause.is_some()
        || query.fetch.is_some()
        || !query.pipe_operators.is_empty();
    if has_clauses {
        let enclosed = std::mem::replace(query, parse_query("SELECT 1")?);
        *query.body = SetExpr::Query(Box::new(enclosed));
    }
    Ok(())
}

fn reads_any(part: &impl Visit, with: &With) -> bool {
    with.cte_tables.iter().any(|cte| reads_table(part, &cte.alias.name))
}

fn define_in_part(part: &mut Box<SetExpr>, with: With) -> Result<()> {
    let mut query = parse_query("SELECT 1")?;
    std::mem::swap(&mut query.body, part);
    query.with = Some(with);
    **part = SetExpr::Query(Box::new(query));
    Ok(())
}
