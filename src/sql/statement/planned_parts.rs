//! Plans a part of a statement alone, such as a subquery, with the CTEs that are visible in it.

use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::logical_expr::sqlparser::ast::{Cte, Query, Statement as SqlStatement, With};
use datafusion::sql::parser::Statement;

use crate::sql::statement::scopes::CteScopes;

/// Plans a query and returns the names of its columns, or `None` if it cannot be planned.
pub(in crate::sql) async fn plan_names(state: &SessionState, query: Query) -> Option<Vec<String>> {
    let plan = plan_alone(state, query).await?;
    Some(list_column_names(&plan))
}

/// Plans a query, or returns `None` if it cannot be planned.
pub(in crate::sql) async fn plan_alone(state: &SessionState, query: Query) -> Option<LogicalPlan> {
    state.statement_to_plan(to_statement(query)).await.ok()
}

pub(in crate::sql) fn to_statement(query: Query) -> Statement {
    Statement::Statement(Box::new(SqlStatement::Query(Box::new(query))))
}

pub(in crate::sql) fn list_column_names<C: FromIterator<String>>(plan: &LogicalPlan) -> C {
    plan.schema().fields().iter().map(|field| field.name().clone()).collect()
}

/// Adds to a query the CTEs that are visible at its position, so that it can be planned alone.
pub(in crate::sql) fn add_queries(query: Query, scopes: &CteScopes<Cte>) -> Query {
    add_ctes(query, scopes.iter_visible(), scopes.is_recursive())
}

/// Adds a WITH clause to a query, or WITH RECURSIVE if `recursive` is true. The clause has those of
/// the CTEs `visible` that the query may use, directly or through other CTEs. Of several CTEs with
/// the same name, it has only the last, which hides the others.
///
/// A statement of many CTEs has many parts, so planning all CTEs with each part would take
/// quadratic time.
pub(in crate::sql) fn add_ctes<'a>(
    mut query: Query,
    visible: impl Iterator<Item = &'a Cte>,
    recursive: bool,
) -> Query {
    let mut ctes: Vec<Cte> = Vec::new();
    for cte in visible {
        ctes.retain(|known| known.alias.name.value != cte.alias.name.value);
        ctes.push(cte.clone());
    }
    let mut texts = vec![query.to_string().to_lowercase()];
    // A CTE uses only those before it and, if `recursive` is true, itself.
    for at in (0..ctes.len()).rev() {
        match is_named(&ctes[at].alias.name.value, &texts) {
            true => texts.push(ctes[at].query.to_string().to_lowercase()),
            false => drop(ctes.remove(at)),
        }
    }
    if !ctes.is_empty() {
        let with_token = AttachedToken::empty();
        query.with = Some(With { with_token, recursive, cte_tables: ctes });
    }
    query
}

/// Whether one of `texts`, which are in lower case, contains the name of a CTE as a word. A word in
/// a string counts, because the string may be a query that a table function reads.
fn is_named(name: &str, texts: &[String]) -> bool {
    let name = name.to_lowercase();
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    match name.chars().all(is_letter) {
        true => {
            texts.iter().any(|text| text.split(|c: char| !is_letter(c)).any(|word| word == name))
        }
        // The text has each quote of the name twice, so a name with quotes always counts as found.
        false => name.contains(['"', '\'']) || texts.iter().any(|text| text.contains(&name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::base::syntax::parse_query;

    #[test]
    fn parts_get_the_queries_of_with_that_they_use() {
        let with = "WITH a AS (SELECT 1), \"B\" AS (SELECT * FROM A), c AS (SELECT 2), d AS (SELECT * FROM f('b')) SELECT 1";
        let ctes = parse_query(with).unwrap().with.unwrap().cte_tables;
        for (part, expected) in [
            ("SELECT * FROM b", "a B"),
            ("SELECT * FROM d", "a B d"),
            ("SELECT x FROM t WHERE y IN (SELECT 2 FROM C)", "c"),
            ("SELECT 1 AS ba", ""),
        ] {
            let query = add_ctes(parse_query(part).unwrap(), ctes.iter(), false);
            let with = query.with.map(|with| with.cte_tables).unwrap_or_default();
            let names: Vec<&str> = with.iter().map(|cte| cte.alias.name.value.as_str()).collect();
            assert_eq!(names.join(" "), expected, "{part}");
        }
    }
}
