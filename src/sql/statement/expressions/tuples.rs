//! Supports tuples: `(a, b) = (1, 2)`, `(a + 1, b) IN ((1, 2), (3, 4))` and `(a, b) IN (SELECT x, y ..)`.

use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments,
    GroupByExpr, Ident, ObjectName, Query, SelectItem, SetExpr, TableFactor, Value,
};

use crate::sql::base::syntax::parse_query;
use crate::sql::statement::expressions::predicates::call_function;
use crate::sql::workarounds::subqueries::rows_in::ROW_FIELD;

/// Rewrites compared tuples to structs, and the columns of the query after `tuple IN` to a struct.
///
/// DataFusion plans only tuples of names and literals, and no tuple in front of IN (query). Two
/// tuples compare as structs: field by field, with NULL equal to NULL, as in DuckDB. In
/// `tuple IN (query)`, however, NULL equals nothing: a row matches if each of its columns equals
/// the value at the same position of the tuple.
/// [`rewrite_rows_in`](crate::sql::workarounds::subqueries::rows_in::rewrite_rows_in) therefore
/// splits these structs in the plan.
pub(in crate::sql) fn rewrite_tuples(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::BinaryOp { left, right, .. } => {
            as_struct(left);
            as_struct(right);
        }
        Expr::InList { expr, list, .. } => {
            as_struct(expr);
            list.iter_mut().for_each(as_struct);
        }
        Expr::InSubquery { expr: tuple, subquery, .. } => {
            if let Some(values) = list_row_values(tuple) {
                if !select_struct(values.len(), subquery) {
                    enclose_in_struct(values.len(), subquery)?;
                }
                **tuple = make_row_expr(values);
            }
        }
        // DataFusion can plan only tuples of names and literals, so other tuples become structs.
        Expr::Tuple(values) if values.iter().any(|value| !is_simple(value)) => as_struct(expr),
        _ => {}
    }
    Ok(())
}

fn is_simple(value: &Expr) -> bool {
    matches!(value, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_))
}

fn list_row_values(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Tuple(values) if values.len() > 1 => Some(values.clone()),
        _ => None,
    }
}

/// Rewrites the `count` columns of a query to one struct. Returns false and changes nothing if the
/// columns are unknown before planning (a star, a set operation, VALUES), if their number is not
/// `count`, or if a clause such as ORDER BY may refer to their aliases.
fn select_struct(count: usize, query: &mut Query) -> bool {
    let is_ordered = query.order_by.is_some();
    let SetExpr::Select(select) = query.body.as_mut() else { return false };
    let plain = !is_ordered
        && select.having.is_none()
        && select.qualify.is_none()
        && matches!(&select.group_by, GroupByExpr::Expressions(groups, _) if groups.is_empty());
    let columns = select.projection.iter().map(|item| match item {
        SelectItem::UnnamedExpr(e) => Some(e.clone()),
        SelectItem::ExprWithAlias { expr, .. } if plain => Some(expr.clone()),
        _ => None,
    });
    let Some(columns) = columns.collect::<Option<Vec<_>>>() else { return false };
    if columns.len() != count {
        return false;
    }
    select.projection = vec![SelectItem::UnnamedExpr(make_row_expr(columns))];
    true
}

/// Rewrites a query to `SELECT struct of c0, .. FROM (query) AS rows (c0, ..)`.
fn enclose_in_struct(count: usize, query: &mut Query) -> Result<()> {
    let names: Vec<String> = (0..count).map(|at| format!("__serrate_tuple_{at}")).collect();
    let text = format!("SELECT 1 FROM (SELECT 1) AS __serrate_tuples ({})", names.join(", "));
    let mut around = parse_query(&text)?;
    let SetExpr::Select(select) = around.body.as_mut() else { return Ok(()) };
    let columns = names.into_iter().map(|name| Expr::Identifier(Ident::new(name)));
    select.projection = vec![SelectItem::UnnamedExpr(make_row_expr(columns.collect()))];
    let from = select.from.first_mut().map(|from| &mut from.relation);
    if let Some(TableFactor::Derived { subquery, .. }) = from {
        std::mem::swap(subquery.as_mut(), query);
        *query = around;
    }
    Ok(())
}

/// Returns the struct for a tuple of values: `named_struct('__serrate_row_0', value, ..)`.
fn make_row_expr(values: Vec<Expr>) -> Expr {
    let args = values.into_iter().enumerate().flat_map(|(at, value)| {
        [Expr::value(Value::SingleQuotedString(format!("{ROW_FIELD}{at}"))), value]
    });
    call_function("named_struct", args.collect())
}

fn as_struct(expr: &mut Expr) {
    if let Some(values) = list_row_values(expr) {
        *expr = Expr::Function(Function {
            name: ObjectName::from(vec![Ident::new("struct")]),
            uses_odbc_syntax: false,
            parameters: FunctionArguments::None,
            args: FunctionArguments::List(FunctionArgumentList {
                duplicate_treatment: None,
                args: values
                    .into_iter()
                    .map(|e| FunctionArg::Unnamed(FunctionArgExpr::Expr(e)))
                    .collect(),
                clauses: vec![],
            }),
            filter: None,
            null_treatment: None,
            over: None,
            within_group: vec![],
        });
    }
}
