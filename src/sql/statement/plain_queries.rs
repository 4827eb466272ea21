//! Recognizes plain queries, which the rewrites before planning do not change.

use std::collections::HashSet;

use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, LimitClause, ObjectNamePart, Query, Select, SelectFlavor,
    SelectItem, SetExpr, Statement as SqlStatement, TableFactor, TableWithJoins, Value,
};
use datafusion::sql::parser::Statement;

use crate::sql::sources::nrt::position_fields::{FILE, ROW};
use crate::sql::statement::syntax_facts::MOST_DIGITS;

/// Whether a statement selects columns and literals without aliases from at most one table, with
/// comparisons in WHERE, and perhaps with LIMIT.
///
/// The rewrites that look up columns and names concern none of these. The walks of the rewrites
/// over the syntax tree take longer than the rest of the planning of such a statement.
pub(super) fn is_plain(statement: &Statement) -> bool {
    match statement {
        Statement::Statement(inner) => find_plain_select(inner).is_some(),
        _ => false,
    }
}

/// Whether the rewrites of the syntax tree after parsing do not concern a statement: it is plain,
/// has at most one comparison, and selects nothing twice.
pub(super) fn is_simple(statement: &SqlStatement) -> bool {
    let Some(select) = find_plain_select(statement) else { return false };
    let is_leaf = |e: &Expr| matches!(e, Expr::Identifier(_) | Expr::Value(_));
    let is_comparison = |e: &Expr| match e {
        Expr::BinaryOp { left, right, .. } => is_leaf(left) && is_leaf(right),
        e => is_leaf(e),
    };
    // `a` and `"a"` are one column, and the column `"1"` has the name of the number 1.
    let read_name = |e: &Expr| match e {
        Expr::Identifier(name) => name.value.to_lowercase(),
        e => e.to_string().to_lowercase(),
    };
    let mut names = HashSet::new();
    let is_new = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(e) => is_leaf(e) && names.insert(read_name(e)),
        _ => false,
    };
    select.selection.as_ref().is_none_or(is_comparison) && select.projection.iter().all(is_new)
}

/// Returns the SELECT of a plain query; see [`is_plain`].
fn find_plain_select(statement: &SqlStatement) -> Option<&Select> {
    let SqlStatement::Query(query) = statement else { return None };
    let Query {
        with: None,
        body,
        order_by: None,
        limit_clause,
        fetch: None,
        locks,
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators,
    } = query.as_ref()
    else {
        return None;
    };
    let SetExpr::Select(select) = body.as_ref() else { return None };
    let is_found = locks.is_empty()
        && pipe_operators.is_empty()
        && limit_clause.as_ref().is_none_or(is_plain_limit)
        && is_plain_select(select);
    is_found.then_some(select.as_ref())
}

fn is_plain_limit(limit: &LimitClause) -> bool {
    match limit {
        LimitClause::LimitOffset { limit: Some(Expr::Value(_)), offset: None, limit_by } => {
            limit_by.is_empty()
        }
        _ => false,
    }
}

fn is_plain_select(select: &Select) -> bool {
    // Names all fields, so that a new clause of the parser must be decided on here.
    let Select {
        select_token: _,
        optimizer_hints,
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection,
        exclude: None,
        into: None,
        from,
        lateral_views,
        prewhere: None,
        selection,
        connect_by,
        group_by: GroupByExpr::Expressions(keys, modifiers),
        cluster_by,
        distribute_by,
        sort_by,
        having: None,
        named_window,
        qualify: None,
        window_before_qualify: _,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    } = select
    else {
        return false;
    };
    let has_clauses = !(optimizer_hints.is_empty()
        && lateral_views.is_empty()
        && connect_by.is_empty()
        && keys.is_empty()
        && modifiers.is_empty()
        && cluster_by.is_empty()
        && distribute_by.is_empty()
        && sort_by.is_empty()
        && named_window.is_empty());
    let is_plain_item =
        |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(e) if is_plain_expr(e));
    !has_clauses
        && projection.iter().all(is_plain_item)
        && from.len() <= 1
        && from.iter().all(is_plain_table)
        && selection.as_ref().is_none_or(is_plain_expr)
}

fn is_plain_table(table: &TableWithJoins) -> bool {
    let TableFactor::Table {
        name,
        alias: None,
        args: None,
        with_hints,
        version: None,
        with_ordinality: false,
        partitions,
        json_path: None,
        sample: None,
        index_hints,
    } = &table.relation
    else {
        return false;
    };
    matches!(name.0.as_slice(), [ObjectNamePart::Identifier(_)])
        && with_hints.is_empty()
        && partitions.is_empty()
        && index_hints.is_empty()
        && table.joins.is_empty()
}

/// Does not recurse, because a long condition is a deep tree.
fn is_plain_expr(e: &Expr) -> bool {
    let mut open = vec![e];
    while let Some(e) = open.pop() {
        match e {
            Expr::Identifier(name) if !is_position(&name.value) => {}
            Expr::Value(value) if is_plain_value(&value.value) => {}
            Expr::Nested(inner) => open.push(inner.as_ref()),
            Expr::BinaryOp { left, op, right } if is_plain_operator(op) => {
                open.extend([left.as_ref(), right.as_ref()]);
            }
            _ => return false,
        }
    }
    true
}

/// Whether a column is added to its table when a statement names it.
fn is_position(name: &str) -> bool {
    [FILE, ROW].iter().any(|position| name.eq_ignore_ascii_case(position))
}

fn is_plain_value(value: &Value) -> bool {
    match value {
        Value::Number(digits, is_long) => !is_long && digits.len() <= MOST_DIGITS,
        Value::SingleQuotedString(_) | Value::Boolean(_) | Value::Null => true,
        _ => false,
    }
}

fn is_plain_operator(op: &BinaryOperator) -> bool {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    matches!(op, And | Eq | Gt | GtEq | Lt | LtEq | NotEq | Or)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_columns_literals_and_comparisons_are_plain() {
        let ctx = crate::sql::session();
        let is_plain_text = |text: &str| {
            let statement = crate::sql::parse(&ctx, text).unwrap().remove(0);
            is_plain(&statement)
        };
        for text in [
            "SELECT 1",
            "SELECT id, code FROM t WHERE id = 5",
            "SELECT a FROM 'x.nrt' WHERE (a > 1 OR b <> 'x') AND c <= 2.5 LIMIT 3",
        ] {
            assert!(is_plain_text(text), "{text}");
        }
        for text in [
            "SELECT *",
            "SELECT a AS b FROM t",
            "SELECT t.a FROM t",
            "SELECT a FROM t AS u",
            "SELECT a FROM s.t",
            "SELECT a FROM t, u",
            "SELECT a FROM t JOIN u ON t.a = u.a",
            "SELECT DISTINCT a FROM t",
            "SELECT a FROM t GROUP BY a",
            "SELECT a FROM t ORDER BY a",
            "SELECT a FROM t LIMIT 3 OFFSET 2",
            "SELECT a FROM t WHERE _row = 5",
            "SELECT _FILE FROM t",
            "SELECT a FROM t WHERE a IN (1, 2)",
            "SELECT a FROM t WHERE a = 1234567890123456",
            "SELECT a FROM t WHERE a IS NULL",
            "SELECT -a FROM t",
            "SELECT a + 1 FROM t",
            "SELECT f(a) FROM t",
            "SELECT a::INT FROM t",
            "SELECT (SELECT 1)",
            "SELECT a FROM (SELECT 1 AS a)",
            "SELECT 1 UNION ALL SELECT 2",
            "WITH t AS (SELECT 1 AS a) SELECT a FROM t",
            "EXPLAIN SELECT 1",
            "CREATE VIEW v AS SELECT 1",
        ] {
            assert!(!is_plain_text(text), "{text}");
        }
    }

    #[test]
    fn simple_queries_have_one_comparison_and_no_column_twice() {
        let is_simple_text = |text: &str| {
            let query = crate::sql::base::syntax::parse_query(text).unwrap();
            is_simple(&SqlStatement::Query(Box::new(query)))
        };
        for text in ["SELECT 1", "SELECT id, b FROM t WHERE id = 5 LIMIT 3", "SELECT 'a' FROM t"] {
            assert!(is_simple_text(text), "{text}");
        }
        for text in [
            "SELECT a, A FROM t",
            "SELECT a, \"a\" FROM t",
            "SELECT 1, \"1\" FROM t",
            "SELECT 1, 1",
            "SELECT a = 1 FROM t",
            "SELECT a FROM t WHERE a = 1 AND b = 2",
            "SELECT a FROM t WHERE (a = 1)",
            "SELECT a FROM t WHERE a = (1)",
            "SELECT -1",
            "SELECT *",
        ] {
            assert!(!is_simple_text(text), "{text}");
        }
    }
}
