//! Rewrites constants in HAVING, PARTITION BY and VALUES that DataFusion plans wrongly or refuses.

use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, DataType, Expr, GroupByExpr, Query, Select, SetExpr,
    TypedString, Value, WindowType,
};

use crate::sql::base::syntax::{for_each_expr_mut, has_expr, parse_query};
use crate::sql::statement::names::cast_arguments::is_aggregate;

/// Rewrites a constant HAVING without GROUP BY, and removes constants from PARTITION BY.
///
/// * `HAVING true` becomes `HAVING true AND count(*) >= 0`, so that the query has an aggregate,
///   which makes the rows one group.
/// * The planner ignores constants in PARTITION BY, so it plans `sum(x) OVER (PARTITION BY 1)` and
///   `sum(x) OVER (PARTITION BY NULL)` as one column. Without the constants, the two expressions
///   are equal, and `name_repeated` gives the second one a name of its own.
pub(in crate::sql) fn rewrite_constants(select: &mut Select) -> Result<()> {
    for item in &mut select.projection {
        for_each_expr_mut(item, |e| {
            if let Expr::Function(call) = e
                && let Some(WindowType::WindowSpec(window)) = &mut call.over
            {
                window.partition_by.retain(|key| !matches!(key, Expr::Value(_)));
            }
        });
    }
    let GroupByExpr::Expressions(groups, _) = &select.group_by else { return Ok(()) };
    let no_groups = groups.is_empty();
    if let Some(having) = select.having.take_if(|having| no_groups && is_constant(having)) {
        let counted = match *parse_query("SELECT 1 HAVING count(*) >= 0")?.body {
            SetExpr::Select(template) => template.having,
            _ => None,
        };
        select.having = Some(match counted {
            Some(counted) => Expr::BinaryOp {
                left: Box::new(Expr::Nested(Box::new(having))),
                op: BinaryOperator::And,
                right: Box::new(counted),
            },
            None => having,
        });
    }
    Ok(())
}

/// Doubles each cast to a decimal or to a timestamp in nanoseconds in VALUES:
/// `x::DECIMAL` -> `x::DECIMAL::DECIMAL`.
///
/// The planner casts the values of a column to their common type, and `sql::workarounds::types`
/// removes one cast of each value to undo this. A value that already has the common type gets no
/// cast from the planner. Without the second cast, it would lose the cast in the statement.
pub(in crate::sql) fn repeat_casts(query: &mut Query) {
    let SetExpr::Values(values) = query.body.as_mut() else { return };
    if values.rows.len() < 2 {
        return;
    }
    for cell in values.rows.iter_mut().flat_map(|row| row.iter_mut()) {
        if let Expr::Cast { kind, expr, data_type, array, format } = cell
            && is_cast_twice(data_type)
        {
            let operand = std::mem::replace(expr.as_mut(), Expr::value(Value::Null));
            **expr = Expr::Cast {
                kind: kind.clone(),
                expr: Box::new(operand),
                data_type: data_type.clone(),
                array: *array,
                format: format.clone(),
            };
        }
    }
}

fn is_cast_twice(to: &DataType) -> bool {
    match to {
        DataType::Decimal(_) | DataType::Numeric(_) | DataType::Dec(_) => true,
        to => holds_nanoseconds(to),
    }
}

fn holds_nanoseconds(t: &DataType) -> bool {
    match t {
        DataType::Timestamp(digits, _) => *digits == Some(9),
        DataType::Array(
            ArrayElemTypeDef::AngleBracket(item)
            | ArrayElemTypeDef::SquareBracket(item, _)
            | ArrayElemTypeDef::Parenthesis(item),
        ) => holds_nanoseconds(item),
        DataType::Struct(fields, _) => fields.iter().any(|f| holds_nanoseconds(&f.field_type)),
        _ => false,
    }
}

/// If a column of VALUES has string literals and literals such as `DATE '2020-01-01'`, gives the
/// strings the type of those literals, as in PostgreSQL and DuckDB. DataFusion refuses such a
/// column.
pub(in crate::sql) fn type_strings(query: &mut Query) {
    let SetExpr::Values(values) = query.body.as_mut() else { return };
    let columns = values.rows.first().map_or(0, |row| row.len());
    for at in 0..columns {
        let cells = || values.rows.iter().filter_map(|row| row.get(at));
        let typed = cells().find_map(|cell| match cell {
            Expr::TypedString(typed) => Some(typed.clone()),
            _ => None,
        });
        let Some(typed) = typed else { continue };
        let is_fit = |cell: &Expr| match cell {
            Expr::TypedString(other) => other.data_type == typed.data_type,
            Expr::Value(value) => matches!(value.value, Value::SingleQuotedString(_) | Value::Null),
            _ => false,
        };
        if !cells().all(is_fit) {
            continue;
        }
        for cell in values.rows.iter_mut().filter_map(|row| row.get_mut(at)) {
            if let Expr::Value(value) = cell
                && matches!(value.value, Value::SingleQuotedString(_))
            {
                *cell = Expr::TypedString(TypedString { value: value.clone(), ..typed.clone() });
            }
        }
    }
}

/// Whether an expression has no column, subquery or aggregate, so that its value is the same for
/// all rows.
fn is_constant(e: &Expr) -> bool {
    !has_expr(e, |e| match e {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::Subquery(_)
        | Expr::Exists { .. }
        | Expr::InSubquery { .. }
        | Expr::Wildcard(_)
        | Expr::QualifiedWildcard(..) => true,
        Expr::Function(call) => is_aggregate(call),
        _ => false,
    })
}
