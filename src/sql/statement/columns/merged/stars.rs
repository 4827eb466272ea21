//! Replaces a `*` over tables that USING joins with one star per table, such as `a.*, b.*`.

use std::collections::HashSet;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{
    ExcludeSelectItem, Expr, Ident, ObjectName, ReplaceSelectElement, ReplaceSelectItem,
    SelectItem, SelectItemQualifiedWildcardKind, WildcardAdditionalOptions,
};

use crate::sql::statement::columns::merged::known_columns::TableColumns;
use crate::sql::statement::columns::merged::names::{
    find_last_ident, has_known_options, qualify_column,
};
use crate::sql::statement::columns::merged::tables::{
    MergedTable, has_name, is_merged_in, owns_column,
};
use crate::sql::statement::folding::{fold_name, is_same_name};

/// Returns one star per table for a `*`. For `a FULL JOIN b USING (k)`, these are `a.* REPLACE
/// (coalesce(a.k, b.k) AS k)` and `b.* EXCLUDE (k)`. Returns `None` if the planner has to report an
/// error: EXCLUDE names a column that no table has, or the options are those of another dialect.
///
/// # Errors
/// If it is unknown which tables have the columns that EXCLUDE and REPLACE name, or if EXCLUDE
/// names a merged column with its table.
pub(super) fn write_star(
    options: &WildcardAdditionalOptions,
    tables: &[MergedTable],
    relations: &TableColumns,
) -> Result<Option<Vec<SelectItem>>> {
    if !has_known_options(options) {
        return Ok(None);
    }
    let excluded = list_excluded_names(options);
    let replaced: Vec<&ReplaceSelectElement> =
        options.opt_replace.iter().flat_map(|r| &r.items).map(AsRef::as_ref).collect();
    let is_merged = |name: &Ident| {
        tables.iter().all(|table| owns_column(table, name) || is_merged_in(table, name))
    };
    let merged_only =
        excluded.iter().all(|name| find_last_ident(name).is_some_and(|name| is_merged(&name)))
            && replaced.iter().all(|item| is_merged(&item.column_name));
    let mut columns: Vec<HashSet<String>> = Vec::with_capacity(tables.len());
    for table in tables {
        columns.push(match relations.get(&table.text) {
            _ if merged_only => HashSet::new(),
            Some(Ok(columns)) => columns.clone(),
            Some(Err(reason)) => return refuse_star(table, reason),
            None => return refuse_star(table, DEPENDENT),
        });
    }
    for excluded in excluded {
        let Some((name, table)) = split_column(excluded) else { return Ok(None) };
        let mut owners = tables.iter().zip(&columns).filter(|(known, columns)| {
            has_name(known, &table)
                && (is_merged_in(known, &name) || shows_column(known, columns, &name))
        });
        let Some((owner, _)) = owners.next() else { return Ok(None) };
        if !table.is_empty() && owns_column(owner, &name) {
            return plan_err!(
                "EXCLUDE ({excluded}) names one of the columns that USING or NATURAL merges into {name}; write EXCLUDE ({name}) to omit the merged column"
            );
        }
    }
    let stars = tables.iter().zip(&columns);
    let stars = stars.map(|(table, columns)| write_table_star(options, table, columns, &replaced));
    Ok(Some(stars.collect()))
}

/// Returns the star of a table with these columns for a `*` with `options`, whose REPLACE has the
/// items `replaced`.
fn write_table_star(
    options: &WildcardAdditionalOptions,
    table: &MergedTable,
    columns: &HashSet<String>,
    replaced: &[&ReplaceSelectElement],
) -> SelectItem {
    let excluded = list_excluded_names(options);
    let is_excluded = |name: &Ident| {
        excluded
            .iter()
            .filter_map(split_column)
            .any(|(column, of)| is_same_name(&column, name) && has_name(table, &of))
    };
    let mut omitted = table.merged.clone();
    for name in excluded.iter().filter_map(find_last_ident) {
        if is_excluded(&name) && shows_column(table, columns, &name) {
            let name = ObjectName::from(vec![Ident::with_quote('"', fold_name(&name))]);
            if !omitted.contains(&name) {
                omitted.push(name);
            }
        }
    }
    let is_replaced =
        |name: &Ident| replaced.iter().any(|item| is_same_name(&item.column_name, name));
    let own = table
        .own
        .iter()
        .filter(|(name, _)| !is_excluded(name) && !is_replaced(name))
        .filter(|(name, expr)| *expr != qualify_column(&table.name, name))
        .map(|(name, expr)| Box::new(replace_column(name, expr)));
    let others = replaced
        .iter()
        .filter(|item| shows_column(table, columns, &item.column_name))
        .filter(|item| !is_excluded(&item.column_name))
        .map(|item| Box::new((*item).clone()));
    let items: Vec<_> = own.chain(others).collect();
    let mut options = options.clone();
    options.opt_exclude = (!omitted.is_empty()).then_some(ExcludeSelectItem::Multiple(omitted));
    options.opt_replace = (!items.is_empty()).then_some(ReplaceSelectItem { items });
    let kind = SelectItemQualifiedWildcardKind::ObjectName(table.name.clone());
    SelectItem::QualifiedWildcard(kind, options)
}

/// Whether the star of a table returns the column `name`. The star omits a column that USING merges
/// into the column of an earlier table.
fn shows_column(table: &MergedTable, columns: &HashSet<String>, name: &Ident) -> bool {
    owns_column(table, name) || (columns.contains(&fold_name(name)) && !is_merged_in(table, name))
}

/// The reason why the columns of a table are unknown, if the table cannot be selected alone, such
/// as `unnest(t.x)`.
const DEPENDENT: &str = "the table depends on other tables in FROM";

fn refuse_star<T>(table: &MergedTable, reason: &str) -> Result<T> {
    plan_err!(
        "* with EXCLUDE or REPLACE over USING or NATURAL requires the columns of {}, which are unknown ({reason}); write the columns instead of the star",
        table.text
    )
}

/// Splits a name in EXCLUDE: `s.t.x` into the column `x` and the table `s.t`. For `x` alone, the
/// table is empty. Returns `None` if a part of the name is not an identifier.
fn split_column(name: &ObjectName) -> Option<(Ident, Vec<Ident>)> {
    let mut parts: Vec<Ident> =
        name.0.iter().map(|part| part.as_ident().cloned()).collect::<Option<_>>()?;
    let column = parts.pop()?;
    Some((column, parts))
}

pub(in crate::sql::statement) fn list_excluded_names(
    options: &WildcardAdditionalOptions,
) -> &[ObjectName] {
    match &options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => std::slice::from_ref(name),
        Some(ExcludeSelectItem::Multiple(names)) => names,
        None => &[],
    }
}

pub(super) fn replace_column(name: &Ident, expr: &Expr) -> ReplaceSelectElement {
    ReplaceSelectElement { expr: expr.clone(), column_name: name.clone(), as_keyword: true }
}
