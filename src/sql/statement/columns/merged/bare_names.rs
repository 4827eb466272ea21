//! Replaces unqualified names of columns that USING merges with expressions such as
//! `coalesce(a.k, b.k)`.

use std::ops::ControlFlow;

use datafusion::logical_expr::sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, Query, Select, SelectItem, TableFactor, VisitMut,
    VisitorMut,
};

use crate::sql::statement::columns::merged::known_columns::{
    FromColumns, from_text, list_only_selects,
};
use crate::sql::statement::folding::{fold_name, is_same_name};
use crate::sql::statement::scopes::{LambdaParameters, is_apart};

/// Replaces unqualified names of columns with expressions, except in subqueries that may have
/// columns of these names.
pub(in crate::sql) fn replace_names<V: VisitMut>(node: &mut V, names: &[(Ident, Expr)]) {
    let _ = node.visit(&mut BareNames::new(names, &FromColumns::new()));
}

pub(super) struct BareNames<'a> {
    names: &'a [(Ident, Expr)],
    columns: &'a FromColumns,
    /// For each query around the current position, whether the query may have a column with one of
    /// the names to replace.
    queries: Vec<bool>,
    /// For each subquery in FROM around the current position that is not LATERAL, the entry of
    /// `queries` for the query whose FROM it is in. While the subquery is visited, this entry is
    /// false, because the subquery does not see the tables next to it.
    hidden: Vec<bool>,
    parameters: LambdaParameters,
}

impl<'a> BareNames<'a> {
    pub(super) fn new(names: &'a [(Ident, Expr)], columns: &'a FromColumns) -> Self {
        Self {
            names,
            columns,
            queries: Vec::new(),
            hidden: Vec::new(),
            parameters: LambdaParameters::default(),
        }
    }
}

impl VisitorMut for BareNames<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.queries.push(!lacks_names(query, self.names, self.columns));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if is_apart(table) {
            let last = self.queries.last_mut().map(std::mem::take);
            self.hidden.push(last.unwrap_or_default());
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if is_apart(table)
            && let Some(hidden) = self.hidden.pop()
            && let Some(last) = self.queries.last_mut()
        {
            *last = hidden;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.parameters.enter_expr(expr);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.parameters.leave_expr(expr);
        if !self.queries.contains(&true)
            && let Expr::Identifier(name) = expr
            && !self.parameters.contains(&fold_name(name))
            && let Some((_, merged)) =
                self.names.iter().find(|(other, _)| is_same_name(other, name))
        {
            *expr = merged.clone();
        }
        ControlFlow::Continue(())
    }
}

/// Whether a query is a SELECT, or a set operation of SELECTs, in which no column of FROM has one
/// of `names`, and no clause refers to a result column with one of `names`. Returns false if the
/// columns of FROM are unknown.
fn lacks_names(query: &Query, names: &[(Ident, Expr)], columns: &FromColumns) -> bool {
    let selects = list_only_selects(&query.body);
    let is_ordered = query.order_by.is_some();
    // ORDER BY of a set operation can refer only to result columns.
    let is_known = match selects.len() {
        0 => false,
        1 => true,
        _ => !is_ordered,
    };
    is_known
        && (query.with.is_none() || selects.iter().all(|select| select.from.is_empty()))
        && selects.iter().all(|select| select_lacks_names(select, is_ordered, names, columns))
}

fn select_lacks_names(
    select: &Select,
    is_ordered: bool,
    names: &[(Ident, Expr)],
    columns: &FromColumns,
) -> bool {
    let is_named = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { alias, .. } => {
            names.iter().any(|(name, _)| is_same_name(name, alias))
        }
        _ => false,
    };
    let is_grouped =
        !matches!(&select.group_by, GroupByExpr::Expressions(exprs, _) if exprs.is_empty());
    let may_refer = is_ordered
        || is_grouped
        || select.having.is_some()
        || select.qualify.is_some()
        || matches!(select.distinct, Some(Distinct::On(_)));
    let is_known = select.from.is_empty()
        || columns.get(&from_text(&select.from)).and_then(Option::as_ref).is_some_and(|columns| {
            // No item of SELECT may have an alias that is one of `names`, because a later item may
            // refer to this alias.
            !select.projection.iter().any(is_named)
                && !names.iter().any(|(name, _)| columns.contains(&fold_name(name)))
        });
    is_known && !(may_refer && select.projection.iter().any(is_named))
}
