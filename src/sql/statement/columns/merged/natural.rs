//! Changes NATURAL joins to USING with the columns that both inputs have.

use std::ops::ControlFlow;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    Cte, Expr, Ident, JoinConstraint, ObjectName, Query, Select, SetExpr, TableFactor,
    TableWithJoins, VisitMut, VisitorMut,
};

use crate::sql::base::syntax::{list_relations, parse_query};
use crate::sql::statement::columns::join_constraints::{find_constraint_mut, join_constraint};
use crate::sql::statement::columns::merged::merge_columns;
use crate::sql::statement::columns::written_columns::list_derived_names;
use crate::sql::statement::folding::fold_name;
use crate::sql::statement::planned_parts::{add_queries, plan_names};
use crate::sql::statement::scopes::{CteScopes, is_lateral_query, track_scopes};

/// Changes NATURAL joins to USING. Returns the number of NATURAL joins whose columns are unknown,
/// and the text of one of these that may use columns of an outer query.
async fn write_natural<S: VisitMut>(
    state: &SessionState,
    statement: &mut S,
) -> (usize, Option<String>) {
    let mut natural = NaturalJoinRewriter::default();
    let _ = statement.visit(&mut natural);
    let mut common: Vec<Option<Vec<String>>> = Vec::with_capacity(natural.found.len());
    for [left, right] in natural.found {
        let left = list_input_names(state, left).await;
        let right = list_input_names(state, right).await;
        common.push(match (left, right) {
            (Some(left), Some(right)) => {
                Some(right.into_iter().filter(|name| left.contains(name)).collect())
            }
            // The columns of an input that cannot be planned are unknown. Planning the whole
            // statement reports the error.
            _ => None,
        });
    }
    let unknown = common.iter().filter(|names| names.is_none()).count();
    let known = Some(common.into_iter());
    let mut natural = NaturalJoinRewriter { known, ..NaturalJoinRewriter::default() };
    let _ = statement.visit(&mut natural);
    (unknown, natural.unclear)
}

/// Returns the names of the columns of `query`, which is `SELECT * FROM ..` of one input of a
/// NATURAL join. An input that uses columns of an outer query cannot be planned alone. The names of
/// such an input are collected table by table: those that the statement writes, or those of the
/// planned table. Returns `None` if the names are unknown.
async fn list_input_names(state: &SessionState, query: Query) -> Option<Vec<String>> {
    if let Some(names) = plan_merged_names(state, query.clone()).await {
        return Some(names);
    }
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let from = select.from.first()?;
    let mut names = Vec::new();
    for relation in list_relations(from) {
        if let Some(written) = list_derived_names(relation) {
            names.extend(written.iter().map(fold_name));
            continue;
        }
        let mut relation = relation.clone();
        // The names of columns do not depend on WHERE, and most outer columns are in WHERE.
        if let TableFactor::Derived { subquery, .. } = &mut relation
            && let SetExpr::Select(select) = subquery.body.as_mut()
        {
            select.selection = None;
        }
        let mut alone = query.clone();
        if let SetExpr::Select(select) = alone.body.as_mut() {
            select.from = vec![TableWithJoins { relation, joins: Vec::new() }];
        }
        names.extend(plan_names(state, alone).await?);
    }
    Some(names)
}

/// Plans a query and returns the names of its columns, or `None` if it cannot be planned. The
/// planner may find the name of a merged column ambiguous. So after an error,
/// [`ColumnMerger`](super::ColumnMerger) rewrites these names, and the query is planned again.
async fn plan_merged_names(state: &SessionState, mut query: Query) -> Option<Vec<String>> {
    if let Some(names) = plan_names(state, query.clone()).await {
        return Some(names);
    }
    merge_columns(state, &mut query).await.ok()?;
    plan_names(state, query).await
}

/// Whether a statement has a NATURAL join. If not, the visitor [`NaturalJoinRewriter`], which
/// copies queries, is skipped.
pub(super) struct AnyNatural(pub(super) bool);

impl AnyNatural {
    fn find_merged(&mut self, from: &TableWithJoins) {
        self.0 |= from.joins.iter().any(|join| {
            matches!(join_constraint(&join.join_operator), Some(JoinConstraint::Natural))
        });
    }
}

impl VisitorMut for AnyNatural {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        select.from.iter().for_each(|from| self.find_merged(from));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            self.find_merged(table_with_joins);
        }
        ControlFlow::Continue(())
    }
}

/// Visitor that first collects NATURAL joins in `found`, then changes them to USING with `known`.
#[derive(Default)]
struct NaturalJoinRewriter {
    scopes: CteScopes<Cte>,
    /// The number of expressions and LATERAL tables around the current position.
    outer: usize,
    /// For each NATURAL join, its two inputs as separate queries.
    found: Vec<[Query; 2]>,
    /// `None` in the first pass. In the second pass, for each NATURAL join, the names of the
    /// columns that both inputs have, or `None` if they are unknown.
    known: Option<std::vec::IntoIter<Option<Vec<String>>>>,
    /// The text of a NATURAL join whose columns are unknown and that may use columns of an outer
    /// query, because it is in a subquery of an expression or in a LATERAL table.
    unclear: Option<String>,
}

impl NaturalJoinRewriter {
    /// Returns `SELECT * FROM from` with the visible CTEs in WITH, or `None` if it cannot be built.
    fn build_star_query(&self, from: TableWithJoins) -> Option<Query> {
        let mut query = parse_query("SELECT * FROM t").ok()?;
        let SetExpr::Select(select) = query.body.as_mut() else { return None };
        select.from = vec![from];
        Some(add_queries(query, &self.scopes))
    }

    fn rewrite_joins(&mut self, from: &mut TableWithJoins) {
        for i in 0..from.joins.len() {
            let natural = join_constraint(&from.joins[i].join_operator);
            if !matches!(natural, Some(JoinConstraint::Natural)) {
                continue;
            }
            if let Some(known) = &mut self.known {
                let columns = known.next().flatten();
                // The tables of the joins up to this one, which is the one at index `i`.
                let may_use_outer = self.outer > 0
                    && list_relations(from)
                        .take(i.saturating_add(2))
                        .any(|table| !matches!(table, TableFactor::Table { .. }));
                if columns.is_none() && may_use_outer {
                    self.unclear = Some(from.joins[i].to_string());
                }
                if let Some(columns) = columns
                    && !columns.is_empty()
                    && let Some(constraint) = find_constraint_mut(&mut from.joins[i].join_operator)
                {
                    let quoted = |name: &String| {
                        ObjectName::from(vec![Ident::with_quote('"', name.clone())])
                    };
                    *constraint = JoinConstraint::Using(columns.iter().map(quoted).collect());
                }
                continue;
            }
            let left =
                TableWithJoins { relation: from.relation.clone(), joins: from.joins[..i].to_vec() };
            let right =
                TableWithJoins { relation: from.joins[i].relation.clone(), joins: Vec::new() };
            if let (Some(left), Some(right)) =
                (self.build_star_query(left), self.build_star_query(right))
            {
                self.found.push([left, right]);
            }
        }
    }
}

impl VisitorMut for NaturalJoinRewriter {
    type Break = ();

    track_scopes!();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for from in &mut select.from {
            self.rewrite_joins(from);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        self.outer += usize::from(is_lateral_query(factor));
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            self.rewrite_joins(table_with_joins);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        self.outer -= usize::from(is_lateral_query(factor));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<()> {
        self.outer += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<()> {
        self.outer -= 1;
        ControlFlow::Continue(())
    }
}

/// Changes NATURAL joins to USING, and then replaces merged columns with their values.
///
/// # Errors
/// If the columns of a NATURAL join in a subquery are unknown: the planner could take the name of a
/// merged column for that of an outer column.
pub(in crate::sql) async fn write_out<S: VisitMut>(
    state: &SessionState,
    statement: &mut S,
) -> Result<()> {
    let mut any = AnyNatural(false);
    let _ = statement.visit(&mut any);
    if any.0 {
        // An input of a NATURAL join may contain another NATURAL join. The columns of the outer
        // join are known only after the inner join has become USING.
        let mut unknown = usize::MAX;
        loop {
            let (still, unclear) = write_natural(state, statement).await;
            if let Some(join) = unclear.filter(|_| still >= unknown) {
                return plan_err!(
                    "{join} in a subquery joins a table whose columns are not known, for example because it uses columns of an outer query; write USING with the columns instead of NATURAL, or give each column of this table a name"
                );
            }
            if still == 0 || still >= unknown {
                break;
            }
            unknown = still;
        }
    }
    merge_columns(state, statement).await
}
