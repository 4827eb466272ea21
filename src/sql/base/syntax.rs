//! Reads and builds parts of syntax trees: names, string literals, arguments and queries.

use std::ops::ControlFlow;

use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sqlparser::ast::{
    Expr, FromTable, FunctionArg, FunctionArgExpr, Ident, ObjectName, Query, Select, SelectItem,
    SetExpr, Statement, TableFactor, TableWithJoins, UpdateTableFromKind, Value, Visit, VisitMut,
    Visitor, visit_expressions, visit_expressions_mut,
};
use datafusion::logical_expr::sqlparser::dialect::DuckDbDialect;
use datafusion::logical_expr::sqlparser::parser::Parser;

/// Splits an argument of a table function into its name in lower case, if it has one, and its
/// value. Returns `None` for an argument without a value, such as `*`.
pub(in crate::sql) fn split_argument(arg: &FunctionArg) -> Option<(Option<String>, &Expr)> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some((None, value)),
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. }
        | FunctionArg::ExprNamed {
            name: Expr::Identifier(name),
            arg: FunctionArgExpr::Expr(value),
            ..
        } => Some((Some(name.value.to_ascii_lowercase()), value)),
        _ => None,
    }
}

/// Returns the values of the arguments of a call. Returns `None` if an argument has a name or is
/// `*`.
pub(in crate::sql) fn list_plain_arguments(args: &[FunctionArg]) -> Option<Vec<Expr>> {
    let values = args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    });
    values.collect()
}

pub(in crate::sql) fn unquote_text(value: &Expr) -> Option<&str> {
    match value {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// Converts the result of one step of a visitor to a `ControlFlow`: an error stops the visitor.
pub(in crate::sql) fn as_flow(done: Result<()>) -> ControlFlow<DataFusionError> {
    match done {
        Ok(()) => ControlFlow::Continue(()),
        Err(e) => ControlFlow::Break(e),
    }
}

/// Stops a visitor if `is_found` is true.
pub(in crate::sql) fn break_if(is_found: bool) -> ControlFlow<()> {
    match is_found {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// Converts the `ControlFlow` of a visitor to a result: the error that stopped the visitor, if any.
pub(in crate::sql) fn as_result(done: ControlFlow<DataFusionError>) -> Result<()> {
    match done {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(e) => Err(e),
    }
}

/// Returns an unqualified name in lower case, or `None` for a qualified name.
pub(crate) fn to_plain_name(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [part] => part.as_ident().map(|i| i.value.to_ascii_lowercase()),
        _ => None,
    }
}

/// Returns the tables that a DELETE or UPDATE statement mentions outside of subqueries. Returns an
/// empty list for any other statement.
pub(in crate::sql) fn list_changed_tables(statement: &Statement) -> Vec<&TableWithJoins> {
    match statement {
        Statement::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            from.iter().chain(delete.using.iter().flatten()).collect()
        }
        Statement::Update(update) => {
            let from = update.from.iter().flat_map(|from| match from {
                UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from) => from,
            });
            std::iter::once(&update.table).chain(from).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the tables in one item of FROM. A join in parentheses counts as one table.
pub(in crate::sql) fn list_relations(from: &TableWithJoins) -> impl Iterator<Item = &TableFactor> {
    std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation))
}

/// Returns the SELECTs of a query, also of the inputs of a set operation.
pub(in crate::sql) fn list_selects(query: &Query) -> Vec<&Select> {
    let (mut open, mut selects) = (vec![query.body.as_ref()], Vec::new());
    while let Some(body) = open.pop() {
        match body {
            SetExpr::Select(select) => selects.push(select.as_ref()),
            SetExpr::Query(inner) => open.push(inner.body.as_ref()),
            SetExpr::SetOperation { left, right, .. } => open.extend([&**left, &**right]),
            _ => {}
        }
    }
    selects
}

/// Whether an item of a SELECT list is `*` or `t.*`.
pub(in crate::sql) fn is_star(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

/// Gives an item of a SELECT list the alias `name`, in quotes. An item with an alias stays
/// unchanged, and so does `*`.
pub(in crate::sql) fn name_item(item: &mut SelectItem, name: String) {
    if let SelectItem::UnnamedExpr(expr) = item {
        let expr = std::mem::replace(expr, Expr::value(Value::Null));
        let alias = Ident::with_quote('"', name);
        *item = SelectItem::ExprWithAlias { expr, alias };
    }
}

/// Returns the number of columns of a query without a star, for a set operation that of its first
/// input. `unnest` of a struct counts as one.
pub(in crate::sql) fn count_columns(body: &SetExpr) -> Option<usize> {
    match body {
        SetExpr::Select(select) => {
            (!select.projection.iter().any(is_star)).then_some(select.projection.len())
        }
        SetExpr::Query(inner) => count_columns(&inner.body),
        SetExpr::SetOperation { left, .. } => count_columns(left),
        SetExpr::Values(values) => values.rows.first().map(|row| row.len()),
        _ => None,
    }
}

pub(crate) fn parse_query(text: &str) -> Result<Query> {
    let parse = || {
        let mut parser = Parser::new(&DuckDbDialect {}).try_with_sql(text)?;
        let query = parser.parse_query()?;
        parser.expect_token(&datafusion::logical_expr::sqlparser::tokenizer::Token::EOF)?;
        Ok(*query)
    };
    parse().map_err(|e: datafusion::logical_expr::sqlparser::parser::ParserError| {
        DataFusionError::SQL(Box::new(e), None)
    })
}

/// Whether a part of a statement has an expression that is a subquery, IN (query) or EXISTS.
pub(in crate::sql) fn has_query<V: Visit>(node: &V) -> bool {
    has_expr(node, |e| {
        matches!(e, Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. })
    })
}

/// Whether a part of a statement has a SELECT that `test` accepts.
pub(in crate::sql) fn has_select<V: Visit>(node: &V, test: impl Fn(&Select) -> bool) -> bool {
    struct SelectSearch<F>(F);

    impl<F: Fn(&Select) -> bool> Visitor for SelectSearch<F> {
        type Break = ();

        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
            break_if((self.0)(select))
        }
    }

    node.visit(&mut SelectSearch(test)).is_break()
}

/// Calls `f` with each expression in a part of a statement, outer expressions first.
pub(in crate::sql) fn for_each_expr<V: Visit>(node: &V, mut f: impl FnMut(&Expr)) {
    let _ = visit_expressions(node, |e| {
        f(e);
        ControlFlow::<()>::Continue(())
    });
}

/// Calls `f` with each expression in a part of a statement, inner expressions first.
pub(in crate::sql) fn for_each_expr_mut<V: VisitMut>(node: &mut V, mut f: impl FnMut(&mut Expr)) {
    let _ = visit_expressions_mut(node, |e| {
        f(e);
        ControlFlow::<()>::Continue(())
    });
}

/// Whether a part of a statement has an expression that `test` accepts.
pub(in crate::sql) fn has_expr<V: Visit>(node: &V, test: impl Fn(&Expr) -> bool) -> bool {
    visit_expressions(node, |e| break_if(test(e))).is_break()
}
