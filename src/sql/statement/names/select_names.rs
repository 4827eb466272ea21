//! Normalizes names and positions in a SELECT that DataFusion's planner does not normalize.

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{
    Distinct, ExcludeSelectItem, Expr, Ident, JoinConstraint, ObjectName, ObjectNamePart, Select,
    SelectItem, Value,
};

use crate::sql::base::syntax::is_star;
use crate::sql::statement::columns::join_constraints::find_constraint_mut;
use crate::sql::statement::folding::{fold_name, is_same_name};

/// Writes unquoted names after USING, EXCLUDE and REPLACE in lower case, as the planner does for
/// all other names, and replaces the position in `DISTINCT ON (2)` by the expression at this
/// position of the SELECT list.
///
/// # Errors
/// If DISTINCT ON has a position that the SELECT list lacks.
pub(in crate::sql::statement) fn normalize_names(select: &mut Select) -> Result<()> {
    for join in select.from.iter_mut().flat_map(|from| &mut from.joins) {
        if let Some(JoinConstraint::Using(columns)) = find_constraint_mut(&mut join.join_operator) {
            columns.iter_mut().for_each(lower_name);
        }
    }
    for item in &mut select.projection {
        let (SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)) = item
        else {
            continue;
        };
        for replaced in options.opt_replace.iter_mut().flat_map(|replace| &mut replace.items) {
            replaced.column_name.value = fold_name(&replaced.column_name);
        }
        match &mut options.opt_exclude {
            Some(ExcludeSelectItem::Single(name)) => lower_name(name),
            Some(ExcludeSelectItem::Multiple(names)) => names.iter_mut().for_each(lower_name),
            None => {}
        }
    }
    if let Some(Distinct::On(keys)) = &mut select.distinct {
        for key in keys {
            if let Expr::Value(value) = key
                && let Value::Number(number, _) = &value.value
            {
                let Some(found) = find_expression_at(&select.projection, number) else {
                    return plan_err!(
                        "DISTINCT ON has the position {number}, but the SELECT list has no expression at this position, or a star before it; write the expression itself"
                    );
                };
                *key = found.clone();
            }
        }
    }
    Ok(())
}

/// Returns the expression at the position `number` of the SELECT list, counted from 1. Returns
/// `None` if the SELECT list has no expression at this position, or a star at or before it.
pub(in crate::sql::statement) fn find_expression_at<'a>(
    columns: &'a [SelectItem],
    number: &str,
) -> Option<&'a Expr> {
    let at = number.parse::<usize>().ok()?.checked_sub(1)?;
    if columns.iter().take(at).any(is_star) {
        return None;
    }
    match columns.get(at)? {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

/// Returns the expression of the SELECT list that has the alias `name`.
pub(in crate::sql::statement) fn find_aliased<'a>(
    columns: &'a [SelectItem],
    name: &Ident,
) -> Option<&'a Expr> {
    columns.iter().find_map(|column| match column {
        SelectItem::ExprWithAlias { expr, alias } if is_same_name(alias, name) => Some(expr),
        _ => None,
    })
}

fn lower_name(name: &mut ObjectName) {
    for part in &mut name.0 {
        if let ObjectNamePart::Identifier(name) = part {
            name.value = fold_name(name);
        }
    }
}
