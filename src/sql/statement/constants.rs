//! Constants in clauses where DataFusion does not plan them.

use std::ops::ControlFlow;

use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, DataType, Expr, GroupByExpr, Query, Select, SetExpr, Value, WindowType,
    visit_expressions, visit_expressions_mut,
};

use crate::sql::sources::from::parse_query;

/// Rewrites a constant HAVING without GROUP BY, and removes constants from PARTITION BY.
///
/// * `HAVING true` becomes `HAVING true AND count(*) >= 0`, because only an aggregate makes the rows one group.
/// * The planner ignores constants in PARTITION BY, so it plans `sum(x) OVER (PARTITION BY 1)` and
///   `sum(x) OVER (PARTITION BY NULL)` as one column. Without the constants, the two expressions
///   are equal, and `name_repeated` gives the second one a name of its own.
pub(in crate::sql) fn rewrite_constants(select: &mut Select) -> Result<()> {
    for item in &mut select.projection {
        let _ = visit_expressions_mut(item, |e| {
            if let Expr::Function(call) = e
                && let Some(WindowType::WindowSpec(window)) = &mut call.over
            {
                window.partition_by.retain(|key| !matches!(key, Expr::Value(_)));
            }
            ControlFlow::<()>::Continue(())
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

/// Doubles the casts to decimals in VALUES. The planner adds a cast of each value to the common
/// type of its column, and `sql::mends::decimal_values` removes one cast again. Of a doubled cast,
/// one remains.
pub(in crate::sql) fn double_casts(query: &mut Query) {
    let SetExpr::Values(values) = query.body.as_mut() else { return };
    if values.rows.len() < 2 {
        return;
    }
    for cell in values.rows.iter_mut().flat_map(|row| row.iter_mut()) {
        let mut doubled = cell.clone();
        if let Expr::Cast {
            expr,
            data_type: DataType::Decimal(_) | DataType::Numeric(_) | DataType::Dec(_),
            ..
        } = &mut doubled
        {
            **expr = std::mem::replace(cell, Expr::value(Value::Null));
            *cell = doubled;
        }
    }
}

/// Whether an expression has only literals and operators.
fn is_constant(e: &Expr) -> bool {
    let has_only_literals = visit_expressions(e, |e| match e {
        Expr::Value(_)
        | Expr::Nested(_)
        | Expr::BinaryOp { .. }
        | Expr::UnaryOp { .. }
        | Expr::Cast { .. }
        | Expr::IsNull(_)
        | Expr::IsNotNull(_) => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    has_only_literals.is_continue()
}
