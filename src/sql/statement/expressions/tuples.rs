//! Supports tuples: `(a, b) = (1, 2)`, `(a + 1, b) IN ((1, 2), (3, 4))` and
//! `(a, b) IN (SELECT x, y ..)`.

use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArguments, GroupByExpr, Ident, Query, SelectItem, SetExpr,
    TableFactor, Value,
};

use crate::sql::base::syntax::{list_plain_arguments, parse_query, to_plain_name};
use crate::sql::statement::expressions::predicates::call_function;
use crate::sql::workarounds::subqueries::rows_in::ROW_FIELD;

/// Rewrites compared tuples to structs, and the columns of the query after `tuple IN` to a struct.
///
/// DataFusion plans a tuple only if its values are names and literals, and never in front of IN
/// (query). Two tuples compare as structs: field by field, with NULL equal to NULL, as in DuckDB.
/// In `tuple IN (query)`, however, NULL equals nothing: a row matches if each of its columns equals
/// the value at the same position of the tuple.
/// [`rewrite_rows_in`](crate::sql::workarounds::subqueries::rows_in::rewrite_rows_in) therefore
/// replaces the comparison of the two structs in the plan with comparisons of their fields.
///
/// # Errors
/// If the number of columns of the query differs from the number of values in the tuple, or if a
/// tuple is compared with a query by ANY or ALL, except by `= ANY` and `<> ALL`.
pub(in crate::sql) fn rewrite_tuples(expr: &mut Expr) -> Result<()> {
    use_in(expr)?;
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
            if let Some(values) = list_tested_values(tuple, subquery) {
                check_columns(tuple, values.len(), subquery)?;
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

/// Rewrites `tuple = ANY (query)` to `tuple IN (query)`, and `tuple <> ALL (query)` to
/// `tuple NOT IN (query)`. Leaves other expressions unchanged.
///
/// # Errors
/// If a tuple is compared with ANY or ALL of a query in another way, as in `(a, b) < ANY (query)`.
fn use_in(expr: &mut Expr) -> Result<()> {
    let (of_any, left, op, right) = match &*expr {
        Expr::AnyOp { left, compare_op, right, .. } => (true, left, compare_op, right),
        Expr::AllOp { left, compare_op, right } => (false, left, compare_op, right),
        _ => return Ok(()),
    };
    let Expr::Subquery(query) = right.as_ref() else { return Ok(()) };
    let Some(values) = list_tested_values(left, query) else { return Ok(()) };
    let negated = match (of_any, op) {
        (true, BinaryOperator::Eq) => false,
        (false, BinaryOperator::NotEq) => true,
        _ => return Err(refuse_quantified(of_any, left, op, values.len())),
    };
    if let Expr::AnyOp { left, right, .. } | Expr::AllOp { left, right, .. } =
        std::mem::replace(expr, Expr::value(Value::Null))
        && let Expr::Subquery(subquery) = *right
    {
        *expr = Expr::InSubquery { expr: left, subquery, negated };
    }
    Ok(())
}

fn refuse_quantified(
    of_any: bool,
    tuple: &Expr,
    op: &BinaryOperator,
    count: usize,
) -> DataFusionError {
    let names: Vec<String> = (1..=count).map(|at| format!("c{at}")).collect();
    let of_query: Vec<String> = names.iter().map(|name| format!("q.{name}")).collect();
    let compared = format!("{tuple} {op} ({})", of_query.join(", "));
    let (word, not, condition) = match of_any {
        true => ("ANY", "", compared),
        false => ("ALL", "NOT ", format!("NOT ({compared})")),
    };
    plan_datafusion_err!(
        "{tuple} {op} {word} (SELECT ..) is not supported: only = ANY and <> ALL compare a row with the rows of a query; write {not}EXISTS (SELECT 1 FROM (SELECT ..) AS q({}) WHERE {condition})",
        names.join(", ")
    )
}

/// Returns an error if the number of columns of a query is known and differs from the number of
/// values in front of IN.
fn check_columns(tuple: &Expr, count: usize, query: &Query) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(()) };
    let is_one_column = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => is_simple(expr),
        _ => false,
    };
    let columns = select.projection.len();
    match columns != count && select.projection.iter().all(is_one_column) {
        true => plan_err!(
            "the row {tuple} has {count} values, but the subquery that it is compared with has {columns} column(s); select one column for each value"
        ),
        false => Ok(()),
    }
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

/// Returns the values of `expr`, the operand in front of IN, ANY or ALL with the subquery `query`.
/// Returns `None` unless `expr` is a tuple, or is a call `ROW(a, b)` and the query has several
/// columns.
fn list_tested_values(expr: &Expr, query: &Query) -> Option<Vec<Expr>> {
    let Expr::Function(call) = expr else { return list_row_values(expr) };
    let (FunctionArguments::List(list), SetExpr::Select(select)) =
        (&call.args, query.body.as_ref())
    else {
        return None;
    };
    if to_plain_name(&call.name)? != "row" || select.projection.len() < 2 {
        return None;
    }
    list_plain_arguments(&list.args)
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
        *expr = call_function("struct", values);
    }
}
