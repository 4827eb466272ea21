//! Checks the names in `* REPLACE (x + 1 AS x)`: DataFusion ignores a name that is not a column of
//! the star.
//!
//! The columns of a star are known only after planning. This workaround is obsolete once the test
//! `stock_unknown_names_in_replace_are_still_ignored` fails.

use std::ops::ControlFlow;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    Cte, Query, Select, SelectItem, SetExpr, Visit, VisitMut, VisitorMut, WildcardAdditionalOptions,
};

use crate::sql::base::syntax::{has_select, parse_query};
use crate::sql::statement::folding::fold_name;
use crate::sql::statement::planned_parts::{add_queries, plan_names};
use crate::sql::statement::scopes::{CteScopes, track_scopes};

/// Checks the names in each `* REPLACE (..)` of a statement. A star whose columns are unknown is
/// not checked.
///
/// # Errors
/// If REPLACE names a column that its star does not have.
pub(in crate::sql::statement) async fn check_names<S: Visit + VisitMut>(
    state: &SessionState,
    statement: &mut S,
) -> Result<()> {
    let replaces = |item: &SelectItem| find_wildcard_options(item).is_some();
    // A statement without REPLACE skips the visitor, which copies queries.
    if !has_select(statement, |select| select.projection.iter().any(replaces)) {
        return Ok(());
    }
    let mut stars = ReplacedStars { scopes: CteScopes::default(), found: Vec::new() };
    let _ = VisitMut::visit(statement, &mut stars);
    for (query, names) in stars.found {
        // The planner reports the error of a query that cannot be planned.
        let Some(columns) = plan_names(state, query).await else { continue };
        if let Some(name) = names.iter().find(|name| !columns.contains(name)) {
            let some: Vec<&str> = columns.iter().map(String::as_str).take(10).collect();
            return plan_err!(
                "REPLACE (.. AS {name}) names a column that the star does not have; write one of its columns, such as {}",
                some.join(", ")
            );
        }
    }
    Ok(())
}

fn find_wildcard_options(item: &SelectItem) -> Option<&WildcardAdditionalOptions> {
    match item {
        SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => {
            options.opt_replace.is_some().then_some(options)
        }
        _ => None,
    }
}

/// Collects the stars with REPLACE.
struct ReplacedStars {
    scopes: CteScopes<Cte>,
    /// For each star, a query of its columns, and the names in REPLACE.
    found: Vec<(Query, Vec<String>)>,
}

impl VisitorMut for ReplacedStars {
    type Break = ();

    track_scopes!();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &select.projection {
            let Some(options) = find_wildcard_options(item) else { continue };
            let replaced = options.opt_replace.iter().flat_map(|replace| &replace.items);
            let names = replaced.map(|item| fold_name(&item.column_name)).collect();
            let Ok(mut query) = parse_query("SELECT *") else { continue };
            if let SetExpr::Select(all) = query.body.as_mut() {
                let plain = WildcardAdditionalOptions::default();
                all.from.clone_from(&select.from);
                all.projection = vec![match item {
                    SelectItem::QualifiedWildcard(kind, _) => {
                        SelectItem::QualifiedWildcard(kind.clone(), plain)
                    }
                    _ => SelectItem::Wildcard(plain),
                }];
            }
            self.found.push((add_queries(query, &self.scopes), names));
        }
        ControlFlow::Continue(())
    }
}
