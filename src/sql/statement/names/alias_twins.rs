//! Supports an alias that is also the name of another result column: `SELECT z, -z AS z FROM t`.
//!
//! SQL accepts such names in the result of a statement. DataFusion rejects a name that is both a
//! column of a table and an alias. So the alias gets a generated name in the plan. A projection
//! above the plan restores the name as a column of a table `__serrate_twin`, which the result does
//! not show. This workaround is obsolete once the test
//! `stock_aliases_of_columns_beside_them_are_still_refused` fails.

use std::collections::HashSet;

use datafusion::common::{Column, SchemaError, TableReference};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sqlparser::ast::{
    Distinct, Expr as SqlExpr, Ident, OrderByKind, Query, SelectItem, SetExpr,
    Statement as SqlStatement,
};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::parser::Statement;

use crate::sql::base::syntax::is_star;
use crate::sql::statement::columns::set_names::add_identifiers;
use crate::sql::statement::folding::fold_name;

/// The name that, in the plan, replaces an alias which is also the name of another column.
const TWIN: &str = "__serrate_twin";

/// Whether a statement is a SELECT in which an alias may be the name of another column.
pub(in crate::sql::statement) fn may_have_twins(statement: &Statement) -> bool {
    let Some(query) = find_query(statement) else { return false };
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let mut used = HashSet::new();
    add_identifiers(&select.projection, &mut used);
    let has_star = select.projection.iter().any(is_star);
    select.projection.iter().any(|item| match item {
        SelectItem::ExprWithAlias { alias, .. } => {
            has_star || used.contains(&alias.value.to_lowercase())
        }
        _ => false,
    })
}

fn find_query(statement: &Statement) -> Option<&Query> {
    let Statement::Statement(inner) = statement else { return None };
    match inner.as_ref() {
        SqlStatement::Query(query) => Some(query),
        _ => None,
    }
}

/// If DataFusion's error says that an alias is also the name of a column, renames the alias, and
/// returns its former name. Returns `None` for any other error, and if another clause may refer to
/// the alias or to the column.
pub(in crate::sql::statement) fn rename_twin(
    statement: &mut Statement,
    e: &DataFusionError,
) -> Option<String> {
    let DataFusionError::SchemaError(error, _) = e.find_root() else { return None };
    let SchemaError::AmbiguousReference { field } = error.as_ref() else { return None };
    let name = field.relation.is_some().then(|| field.name.clone())?;
    let Statement::Statement(inner) = statement else { return None };
    let SqlStatement::Query(query) = inner.as_mut() else { return None };
    let Query { body, order_by, .. } = query.as_mut();
    let SetExpr::Select(select) = body.as_mut() else { return None };
    let mut used = HashSet::new();
    select.having.iter().chain(&select.qualify).for_each(|e| add_identifiers(e, &mut used));
    if let Some(Distinct::On(keys)) = &select.distinct {
        add_identifiers(keys, &mut used);
    }
    let mut sorted = Vec::new();
    if let Some(order) = order_by {
        let OrderByKind::Expressions(keys) = &mut order.kind else { return None };
        for key in keys {
            let is_alias =
                matches!(&key.expr, SqlExpr::Identifier(column) if fold_name(column) == name);
            match is_alias {
                true => sorted.push(&mut key.expr),
                false => add_identifiers(&key.expr, &mut used),
            }
        }
    }
    if used.contains(&name.to_lowercase()) {
        return None;
    }
    let mut aliases = select.projection.iter_mut().filter_map(|item| match item {
        SelectItem::ExprWithAlias { alias, .. } if fold_name(alias) == name => Some(alias),
        _ => None,
    });
    let (alias, None) = (aliases.next()?, aliases.next()) else { return None };
    let twin = Ident::with_quote('"', TWIN);
    *alias = twin.clone();
    // In ORDER BY, the name refers to the alias, as in DuckDB.
    for key in sorted {
        *key = SqlExpr::Identifier(twin.clone());
    }
    Some(name)
}

/// Restores the alias `name` of the column that [`rename_twin`] has renamed.
pub(in crate::sql::statement) fn restore_twin(
    plan: LogicalPlan,
    name: &str,
) -> Result<LogicalPlan> {
    let schema = plan.schema().clone();
    let columns = schema.iter().map(|field| {
        let column = Column::from(field);
        match column.name == TWIN {
            true => Expr::Column(column).alias_qualified(Some(TableReference::bare(TWIN)), name),
            false => Expr::Column(column),
        }
    });
    LogicalPlanBuilder::from(plan).project(columns.collect::<Vec<_>>())?.build()
}
