//! Records what is visible at the position of a visitor: CTEs, and parameters of lambdas.

use datafusion::logical_expr::sqlparser::ast::{Cte, Expr, Query, TableFactor};

use crate::sql::statement::folding::fold_name;

/// The WITH clauses of the enclosing queries. Each CTE is represented by a `T`.
///
/// A visitor visits the CTEs of a query in order, before the other clauses. Each CTE sees the
/// earlier ones, and itself if WITH is RECURSIVE. The query itself sees all of them.
pub(in crate::sql) struct CteScopes<T>(Vec<CteScope<T>>);

struct CteScope<T> {
    defined: Vec<T>,
    recursive: bool,
    done: usize,
}

impl<T> Default for CteScopes<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> CteScopes<T> {
    pub(in crate::sql) fn enter_scope(&mut self, defined: Vec<T>, recursive: bool) {
        self.0.push(CteScope { defined, recursive, done: 0 });
    }

    pub(in crate::sql) fn leave_scope(&mut self) {
        self.0.pop();
        if let Some(around) = self.0.last_mut() {
            around.done = around.defined.len().min(around.done.saturating_add(1));
        }
    }

    /// Returns the CTEs that are visible at the visitor's position, those of the outermost query
    /// first.
    pub(in crate::sql) fn iter_visible(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flat_map(|scope| {
            let own = usize::from(scope.recursive);
            scope.defined.iter().take(scope.done.saturating_add(own))
        })
    }

    pub(in crate::sql) fn is_recursive(&self) -> bool {
        self.0.iter().any(|scope| scope.recursive)
    }
}

impl CteScopes<Cte> {
    pub(in crate::sql) fn enter_query(&mut self, query: &Query) {
        let recursive = query.with.as_ref().is_some_and(|with| with.recursive);
        let ctes = query.with.iter().flat_map(|with| with.cte_tables.iter().cloned());
        self.enter_scope(ctes.collect(), recursive);
    }
}

/// The parameters of the lambdas around the position of a visitor.
#[derive(Default)]
pub(in crate::sql) struct LambdaParameters(Vec<String>);

impl LambdaParameters {
    /// Adds the parameters of `expr` if it is a lambda.
    pub(in crate::sql) fn enter_expr(&mut self, expr: &Expr) {
        if let Expr::Lambda(lambda) = expr {
            self.0.extend(lambda.params.iter().map(|parameter| fold_name(&parameter.name)));
        }
    }

    /// Removes the parameters of `expr` if it is a lambda.
    pub(in crate::sql) fn leave_expr(&mut self, expr: &Expr) {
        if let Expr::Lambda(lambda) = expr {
            let around = self.0.len().saturating_sub(lambda.params.iter().count());
            self.0.truncate(around);
        }
    }

    /// Whether a name that [`fold_name`] has returned is that of a parameter.
    pub(in crate::sql) fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|parameter| parameter == name)
    }
}

/// Defines the methods of a `VisitorMut` that record the enclosing queries in its field `scopes`.
macro_rules! track_scopes {
    () => {
        fn pre_visit_query(
            &mut self,
            query: &mut datafusion::logical_expr::sqlparser::ast::Query,
        ) -> std::ops::ControlFlow<Self::Break> {
            self.scopes.enter_query(query);
            std::ops::ControlFlow::Continue(())
        }

        fn post_visit_query(
            &mut self,
            _query: &mut datafusion::logical_expr::sqlparser::ast::Query,
        ) -> std::ops::ControlFlow<Self::Break> {
            self.scopes.leave_scope();
            std::ops::ControlFlow::Continue(())
        }
    };
}
pub(in crate::sql) use track_scopes;

pub(in crate::sql) fn is_lateral_query(table: &TableFactor) -> bool {
    matches!(table, TableFactor::Derived { lateral: true, .. })
}

/// Whether a table is a subquery that is not LATERAL, and so does not see the tables next to it.
pub(in crate::sql) fn is_apart(table: &TableFactor) -> bool {
    matches!(table, TableFactor::Derived { lateral: false, .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_of_with_see_those_before_them() {
        let mut scopes = CteScopes::default();
        let seen = |scopes: &CteScopes<char>| scopes.iter_visible().collect::<String>();
        scopes.enter_scope(vec!['a', 'b'], false);
        scopes.enter_scope(vec![], false);
        assert_eq!(seen(&scopes), "");
        scopes.leave_scope();
        scopes.enter_scope(vec!['c'], true);
        assert_eq!(seen(&scopes), "ac");
        scopes.leave_scope();
        assert_eq!(seen(&scopes), "ab");
        scopes.enter_scope(vec![], false);
        scopes.leave_scope();
        assert_eq!(seen(&scopes), "ab");
        scopes.leave_scope();
        assert_eq!(seen(&scopes), "");
    }
}
