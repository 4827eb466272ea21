//! Recognizes `unnest(..)` that the parser reads as a call of a table function.

use datafusion::logical_expr::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, ObjectName, TableFactor,
};

pub(in crate::sql) fn as_unnest(relation: &TableFactor) -> Option<TableFactor> {
    let (name, args, alias, with_ordinality) = match relation {
        // A call with a clause such as TABLESAMPLE does not match, so that an error can name the clause.
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
    if !is_unnest(name) {
        return None;
    }
    Some(TableFactor::UNNEST {
        alias: alias.clone(),
        array_exprs: find_plain_arguments(args)?,
        with_offset: false,
        with_offset_alias: None,
        with_ordinality,
    })
}

fn is_unnest(name: &ObjectName) -> bool {
    matches!(name.0.as_slice(), [part] if part
        .as_ident()
        .is_some_and(|i| i.quote_style.is_none() && i.value.eq_ignore_ascii_case("unnest")))
}

fn find_plain_arguments(args: &[FunctionArg]) -> Option<Vec<Expr>> {
    args.iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Some(e.clone()),
            _ => None,
        })
        .collect()
}
