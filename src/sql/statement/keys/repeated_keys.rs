//! Removes repeated keys of ORDER BY.
//!
//! `DISTINCT ON (v) .. ORDER BY v, v` and `array_agg(x ORDER BY v, v)` panic in DataFusion 55,
//! whose aggregates expect unique keys. This workaround is obsolete once the test
//! `stock_repeated_keys_still_panic` fails.

use std::collections::HashSet;

use datafusion::logical_expr::sqlparser::ast::{
    Expr, FunctionArgumentClause, FunctionArguments, OrderByExpr, OrderByKind, Query, WindowType,
};

pub(in crate::sql) fn drop_in_query(query: &mut Query) {
    if let Some(order) = &mut query.order_by
        && let OrderByKind::Expressions(keys) = &mut order.kind
    {
        drop_repeated(keys);
    }
}

/// Removes repeated keys from the ORDER BY of a call and of its window.
pub(in crate::sql) fn drop_in_call(expr: &mut Expr) {
    let Expr::Function(call) = expr else { return };
    if let FunctionArguments::List(list) = &mut call.args {
        for clause in &mut list.clauses {
            if let FunctionArgumentClause::OrderBy(keys) = clause {
                drop_repeated(keys);
            }
        }
    }
    drop_repeated(&mut call.within_group);
    if let Some(WindowType::WindowSpec(window)) = &mut call.over {
        drop_repeated(&mut window.order_by);
    }
}

fn drop_repeated(keys: &mut Vec<OrderByExpr>) {
    if keys.len() > 1 {
        let mut seen = HashSet::new();
        keys.retain(|key| seen.insert(key.expr.clone()));
    }
}
