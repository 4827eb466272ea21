//! Supports tuples: `(a, b) = (1, 2)`, `(a + 1, b) IN ((1, 2), (3, 4))` and `(a, b) IN (SELECT x, y ..)`.

use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, GroupByExpr, Ident, ObjectName, Query, SelectItem, SetExpr, TableFactor,
    Value,
};

use crate::sql::mends::rows_in::ROW_FIELD;
use crate::sql::statement::predicates::call_function;

/// Rewrites compared tuples to structs, and `tuple IN (query)` to a form that compares rows.
///
/// DataFusion plans only tuples of names and literals, and no tuple in front of IN (query). Two tuples
/// compare as structs: field by field, with NULL equal to NULL, as in DuckDB. In `tuple IN (query)`, however,
/// NULL equals nothing: a row equals the tuple if each column equals its value.
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
        Expr::InSubquery { expr: tuple, subquery, negated } => {
            if let Some(values) = values_of(tuple)
                && !compare_structs(&values, tuple, subquery)
            {
                *expr = test_rows(&values, subquery, *negated)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Rewrites tuples like [`rewrite_tuples`], but in conjuncts of WHERE, where NULL acts like FALSE.
pub(in crate::sql) fn rewrite_condition(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            rewrite_condition(left)?;
            rewrite_condition(right)
        }
        Expr::Nested(inner) => rewrite_condition(inner),
        Expr::InSubquery { expr: tuple, subquery, negated: false } => {
            if let Some(values) = values_of(tuple)
                && !compare_structs(&values, tuple, subquery)
            {
                *expr = rows_where(&values, subquery, |equal| equal)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn values_of(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Tuple(values) if values.len() > 1 => Some(values.clone()),
        _ => None,
    }
}

/// Rewrites a tuple and the columns of the query after IN to structs, so that the query may be correlated.
/// [`RowsIn`](crate::sql::mends::rows_in::RowsIn) splits the structs in the plan.
///
/// Returns whether the rewrite succeeded. It fails if the columns are unknown before planning (a star, a set
/// operation or VALUES), or if the query may refer to aliases of its columns.
fn compare_structs(values: &[Expr], tuple: &mut Expr, query: &mut Query) -> bool {
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
    if columns.len() != values.len() {
        return false;
    }
    *tuple = row_of(values.to_vec());
    select.projection = vec![SelectItem::UnnamedExpr(row_of(columns))];
    true
}

/// Returns the struct for a tuple of values: `named_struct('__serrate_row_0', value, ..)`.
fn row_of(values: Vec<Expr>) -> Expr {
    let args = values.into_iter().enumerate().flat_map(|(at, value)| {
        [Expr::value(Value::SingleQuotedString(format!("{ROW_FIELD}{at}"))), value]
    });
    call_function("named_struct", args.collect())
}

fn as_struct(expr: &mut Expr) {
    if let Some(values) = values_of(expr) {
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

/// Returns `CASE WHEN EXISTS (equal) THEN true WHEN EXISTS (open) THEN NULL ELSE false END`: `equal` are the
/// rows that equal the tuple, `open` the rows for which the equality is true or NULL. If `negated`, true and
/// false are exchanged.
fn test_rows(values: &[Expr], query: &Query, negated: bool) -> Result<Expr> {
    let truth = |of| Expr::value(Value::Boolean(of));
    let equal = rows_where(values, query, |equal| equal)?;
    let open = rows_where(values, query, |equal| {
        Expr::IsNotFalse(Box::new(Expr::Nested(Box::new(equal))))
    })?;
    let when = |condition, result| CaseWhen { condition, result };
    Ok(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![when(equal, truth(!negated)), when(open, Expr::value(Value::Null))],
        else_result: Some(Box::new(truth(negated))),
    })
}

/// Returns `EXISTS (SELECT 1 FROM (query) AS rows (c0, c1) WHERE condition)`, in which `test` makes the
/// condition from the equality `c0 = value AND ..`.
fn rows_where(values: &[Expr], query: &Query, test: impl FnOnce(Expr) -> Expr) -> Result<Expr> {
    let names: Vec<String> = (0..values.len()).map(|at| format!("__serrate_tuple_{at}")).collect();
    let text = format!("SELECT 1 FROM (SELECT 1) AS __serrate_tuples ({})", names.join(", "));
    let mut rows = crate::sql::sources::from::parse_query(&text)?;
    let equal = values.iter().zip(&names).map(|(value, name)| Expr::BinaryOp {
        left: Box::new(Expr::Identifier(Ident::new(name))),
        op: BinaryOperator::Eq,
        right: Box::new(Expr::Nested(Box::new(value.clone()))),
    });
    let equal = equal.reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::And,
        right: Box::new(right),
    });
    if let SetExpr::Select(select) = rows.body.as_mut() {
        select.selection = equal.map(test);
        for from in &mut select.from {
            if let TableFactor::Derived { subquery, .. } = &mut from.relation {
                **subquery = query.clone();
            }
        }
    }
    Ok(Expr::Exists { subquery: Box::new(rows), negated: false })
}
