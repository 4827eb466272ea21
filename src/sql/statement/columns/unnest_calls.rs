//! Plans two kinds of table functions in FROM as UNNEST: calls of `unnest`, and calls of `range`
//! and `generate_series` whose arguments are columns of other tables.

use datafusion::logical_expr::sqlparser::ast::{
    Expr, ObjectName, TableAlias, TableAliasColumnDef, TableFactor,
};

use crate::sql::base::syntax::{has_expr, list_plain_arguments};
use crate::sql::statement::expressions::predicates::call_function;

/// Converts two kinds of table functions in FROM to UNNEST: a call of `unnest`, and a call such as
/// `generate_series(1, t.a) AS g`, which becomes `UNNEST(generate_series(1, t.a)) AS g(value)`,
/// because DataFusion's table functions `generate_series` and `range` accept only literals. Returns
/// `None` for any other table.
pub(in crate::sql) fn as_unnest(relation: &TableFactor) -> Option<TableFactor> {
    let (name, args, alias, with_ordinality) = match relation {
        // A call with a clause such as TABLESAMPLE does not match, so that an error can name the
        // clause.
        TableFactor::Table {
            name,
            alias,
            args: Some(args),
            with_ordinality,
            sample: None,
            version: None,
            ..
        } => (name, &args.args, alias, *with_ordinality),
        TableFactor::Function { name, args, alias, .. } => (name, args, alias, false),
        _ => return None,
    };
    let name = find_plain_name(name)?;
    if !["unnest", "generate_series", "range"].contains(&name.as_str()) {
        return None;
    }
    let args = list_plain_arguments(args)?;
    let (alias, array_exprs) = match name.as_str() {
        "unnest" => (alias.clone(), args),
        series if args.iter().any(reads_rows) => {
            (Some(name_value(alias.as_ref()?)), vec![call_function(series, args)])
        }
        _ => return None,
    };
    Some(TableFactor::UNNEST {
        alias,
        array_exprs,
        with_offset: false,
        with_offset_alias: None,
        with_ordinality,
    })
}

/// Returns the name of a function in lower case, or `None` if it is quoted or has a schema.
fn find_plain_name(name: &ObjectName) -> Option<String> {
    let [part] = name.0.as_slice() else { return None };
    let name = part.as_ident().filter(|name| name.quote_style.is_none())?;
    Some(name.value.to_ascii_lowercase())
}

/// Whether an expression contains a column or a subquery.
fn reads_rows(expr: &Expr) -> bool {
    has_expr(expr, |e| {
        matches!(e, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_))
    })
}

/// Adds the column name `value` to an alias without column names, because DataFusion's table
/// functions `generate_series` and `range` give their column this name.
fn name_value(alias: &TableAlias) -> TableAlias {
    let mut alias = alias.clone();
    if alias.columns.is_empty() {
        alias.columns.push(TableAliasColumnDef::from_name("value"));
    }
    alias
}
