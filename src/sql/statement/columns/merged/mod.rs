//! Gives each column that USING or NATURAL merges the value that SQL requires.
//!
//! The merged column is the left column in an inner or left join, the right column in a right join,
//! and the first that is not NULL in a full join. DataFusion instead always uses one of the two
//! columns: for `*` the one with the smaller qualified name, for an unqualified name the first by
//! position. In rows without a match, this column may be NULL. GROUP BY and later joins then use
//! the NULL, too. Therefore a SELECT over such joins is rewritten before planning: `*` is expanded
//! table by table, with the merged column in place of the left one, and unqualified names become
//! expressions of both columns.

mod bare_names;
mod known_columns;
mod names;
mod natural;
mod stars;
mod tables;

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    Distinct, Expr, Ident, JoinOperator, OrderBy, Query, ReplaceSelectItem, Select, SelectItem,
    SetExpr, TableFactor, TableWithJoins, VisitMut, VisitorMut, WildcardAdditionalOptions,
};

use crate::sql::base::syntax::{as_flow, as_result, name_item, parse_query};
use crate::sql::statement::columns::join_constraints::{has_using, is_merging, list_using_columns};
use crate::sql::statement::columns::merged::bare_names::BareNames;
use crate::sql::statement::columns::merged::known_columns::{
    FromColumns, TableColumns, find_columns,
};
use crate::sql::statement::columns::merged::names::{
    find_last_ident, has_known_options, qualify_column,
};
use crate::sql::statement::columns::merged::stars::{replace_column, write_star};
use crate::sql::statement::columns::merged::tables::{
    MergedTable, TableMerger, has_name, is_merged_in, owns_column, replace_in_lateral,
};
use crate::sql::statement::columns::set_names::{add_identifiers, find_unused_name};
use crate::sql::statement::folding::{fold_name, is_same_name};
use crate::sql::statement::scopes::is_lateral_query;

pub(in crate::sql) use self::bare_names::replace_names;
pub(in crate::sql::statement) use self::natural::write_out;
pub(in crate::sql::statement) use self::stars::list_excluded_names;
pub(in crate::sql) use self::tables::build_coalesce;

async fn merge_columns<S: VisitMut>(state: &SessionState, statement: &mut S) -> Result<()> {
    let Some((columns, relations)) = find_columns(state, statement).await else { return Ok(()) };
    as_result(statement.visit(&mut ColumnMerger { outer: 0, columns, relations }))
}

/// Rewrites `(a JOIN b USING (k)) AS j` to `(SELECT * FROM a JOIN b USING (k)) AS j`, in which `k`
/// is one column.
pub(in crate::sql) fn select_merged(relation: &mut TableFactor) -> Result<()> {
    let TableFactor::NestedJoin { table_with_joins, alias: Some(alias) } = relation else {
        return Ok(());
    };
    if !table_with_joins.joins.iter().any(is_merging) {
        return Ok(());
    }
    let mut query = parse_query("SELECT * FROM t")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.from = vec![table_with_joins.as_ref().clone()];
    }
    *relation = TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query),
        alias: Some(alias.clone()),
        sample: None,
    };
    Ok(())
}

struct ColumnMerger {
    /// The number of expressions and LATERAL tables that contain the current position. If it is not
    /// 0, a query at this position may use columns of outer queries.
    outer: usize,
    columns: FromColumns,
    relations: TableColumns,
}

impl VisitorMut for ColumnMerger {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        // The names in ORDER BY refer to the tables of the SELECT, so both clauses are changed
        // together.
        let Query { body, order_by, .. } = query;
        if let SetExpr::Select(select) = body.as_mut() {
            let has_outer = self.outer > 0;
            let order = order_by.as_mut();
            if let Err(e) = qualify_merged(select, order, has_outer, &self.columns, &self.relations)
            {
                return ControlFlow::Break(e);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<DataFusionError> {
        // Only SELECTs of set operations change here: `pre_visit_query` has changed the others.
        let done = qualify_merged(select, None, self.outer > 0, &self.columns, &self.relations);
        as_flow(done.and_then(|done| match done {
            true => Ok(()),
            false => select.from.iter().try_for_each(check_holders),
        }))
    }

    fn pre_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<DataFusionError> {
        self.outer += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<DataFusionError> {
        self.outer -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<DataFusionError> {
        self.outer += usize::from(is_lateral_query(table));
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<DataFusionError> {
        self.outer -= usize::from(is_lateral_query(table));
        ControlFlow::Continue(())
    }
}

/// Returns an error for a RIGHT or FULL join such as `a JOIN b ON .. FULL JOIN c USING (k)` if it
/// is unknown whether `a` or `b` has `k`. DataFusion would return the left column, which is NULL
/// for rows without a match.
fn check_holders(from: &TableWithJoins) -> Result<()> {
    use JoinOperator as J;
    let mut seen: Vec<Ident> = Vec::new();
    for (before, join) in from.joins.iter().enumerate() {
        let columns = list_using_columns(&join.join_operator);
        let names = columns.iter().filter_map(|column| column.0.last()?.as_ident());
        let is_outer =
            matches!(join.join_operator, J::Right(_) | J::RightOuter(_) | J::FullOuter(_));
        for name in names {
            let is_held = before == 0 || seen.iter().any(|known| is_same_name(known, name));
            if is_outer && !is_held {
                return plan_err!(
                    "USING ({name}) of a RIGHT or FULL JOIN after a join of several tables is not supported, because it is not clear from which of these tables the column {name} comes; write ON and coalesce(a.{name}, b.{name}) instead"
                );
            }
            seen.push(name.clone());
        }
    }
    Ok(())
}

/// Replaces the names of merged columns in a SELECT and its ORDER BY. Returns false if it is
/// unknown which tables have these columns; the SELECT then stays unchanged. `has_outer` is whether
/// the SELECT has an outer query. `columns` has the columns in the FROM of each subquery, and
/// `relations` the columns of each table.
///
/// # Errors
/// If a `*` has EXCLUDE or REPLACE, and it is unknown which tables have the columns that it names.
fn qualify_merged(
    select: &mut Select,
    order: Option<&mut OrderBy>,
    has_outer: bool,
    columns: &FromColumns,
    relations: &TableColumns,
) -> Result<bool> {
    if !select.from.iter().any(has_using) {
        return Ok(true);
    }
    let Some((from, tables)) = merge_from(select, columns, relations) else { return Ok(false) };
    select.from = from;
    name_next_to_merged(select, order.as_deref(), &tables);
    let merged = MergedColumns::new(tables);
    let results = merged.write_projection(&mut select.projection, relations)?;
    if let Some(order) = order {
        let names = merged.list_names_in_order(&results);
        let _ = order.visit(&mut BareNames::new(&names, columns));
    }
    // In WHERE, HAVING and QUALIFY, the planner would find each unqualified name of a merged column
    // ambiguous.
    let names: Vec<(Ident, Expr)> = merged.computed.iter().chain(&merged.plain).cloned().collect();
    let mut bare = BareNames::new(&names, columns);
    let _ = select.selection.visit(&mut bare);
    let _ = select.having.visit(&mut bare);
    let _ = select.qualify.visit(&mut bare);
    let names = merged.list_names_in_columns(has_outer, relations);
    let mut bare = BareNames::new(&names, columns);
    let _ = select.projection.visit(&mut bare);
    let _ = select.group_by.visit(&mut bare);
    if let Some(Distinct::On(exprs)) = &mut select.distinct {
        for expr in exprs {
            // In DISTINCT ON, the name of a result column refers to this column, not to one of
            // FROM.
            let is_result = matches!(&*expr, Expr::Identifier(name) if results.aliases.contains(&fold_name(name)));
            replace_names(expr, if is_result { &merged.computed } else { &names });
        }
    }
    Ok(true)
}

/// Returns the FROM of a SELECT, and its tables with their merged columns. In the returned FROM, ON
/// replaces each USING that DataFusion cannot plan. Returns `None` if it is unknown which tables
/// have the merged columns.
fn merge_from(
    select: &Select,
    columns: &FromColumns,
    relations: &TableColumns,
) -> Option<(Vec<TableWithJoins>, Vec<MergedTable>)> {
    // A `*` over a join with ON would repeat the merged column. So USING can become ON only if each
    // `*` will be replaced with columns, which is not possible for a `*` with unknown options.
    let by_conditions = select.projection.iter().all(|item| match item {
        SelectItem::Wildcard(options) => has_known_options(options),
        _ => true,
    });
    let mut merger = TableMerger::new(by_conditions, relations, columns);
    let mut from = select.from.clone();
    for item in &mut from {
        let before = merger.tables.len();
        merger.add_from(item)?;
        // LATERAL tables change only after `add_from` has recorded the text of each table, because
        // this text is the key in `relations`.
        replace_in_lateral(&mut item.relation, &merger.tables[..before], columns);
    }
    Some((from, merger.tables))
}

/// The merged columns of a SELECT, each with the expression that replaces its unqualified name. In
/// `SELECT k FROM a FULL JOIN b USING (k)`, `coalesce(a.k, b.k)` replaces `k`.
struct MergedColumns {
    tables: Vec<MergedTable>,
    /// Columns whose bare name DataFusion reads wrongly, as after a FULL JOIN, or rejects as
    /// ambiguous, as after two joins with USING (k). Their expressions replace the names
    /// everywhere.
    computed: Vec<(Ident, Expr)>,
    /// Columns whose expression is a column of one table, such as `a.k` after an inner join.
    /// DataFusion resolves most of their unqualified names correctly.
    plain: Vec<(Ident, Expr)>,
}

impl MergedColumns {
    fn new(tables: Vec<MergedTable>) -> Self {
        let (mut computed, mut plain) = (Vec::new(), Vec::new());
        for table in &tables {
            for (name, expr) in &table.own {
                let is_repeated = table.repeated.iter().any(|other| is_same_name(other, name));
                let is_plain = *expr == qualify_column(&table.name, name) && !is_repeated;
                let columns = if is_plain { &mut plain } else { &mut computed };
                columns.push((name.clone(), expr.clone()));
            }
        }
        Self { tables, computed, plain }
    }

    /// Replaces each `*` and each unqualified name in a SELECT list, so that merged columns have
    /// the value that SQL requires. Returns the result columns.
    fn write_projection(
        &self,
        projection: &mut Vec<SelectItem>,
        relations: &TableColumns,
    ) -> Result<ResultColumns> {
        let mut results = ResultColumns::default();
        for item in std::mem::take(projection) {
            results.add_item(&item);
            match item {
                SelectItem::Wildcard(options) => {
                    projection.extend(self.write_star_items(options, relations)?);
                }
                SelectItem::UnnamedExpr(Expr::Identifier(name)) => {
                    projection.push(self.write_named_item(name));
                }
                other => projection.push(other),
            }
        }
        Ok(results)
    }

    /// Returns the items of SELECT that replace a `*`: one star per table. If DataFusion must
    /// report an error in the options of the `*`, returns the `*` itself, with the merged columns
    /// in REPLACE.
    fn write_star_items(
        &self,
        mut options: WildcardAdditionalOptions,
        relations: &TableColumns,
    ) -> Result<Vec<SelectItem>> {
        if let Some(items) = write_star(&options, &self.tables, relations)? {
            return Ok(items);
        }
        // DataFusion's `*` may return either of the two merged columns, so REPLACE sets the value.
        let excluded = list_excluded_idents(&options);
        let mut items = options.opt_replace.take().map_or_else(Vec::new, |replace| replace.items);
        let is_merged = |name: &Ident| self.tables.iter().any(|table| is_merged_in(table, name));
        let merged = self.plain.iter().filter(|(name, _)| is_merged(name));
        for (name, expr) in self.computed.iter().chain(merged) {
            let is_replaced = items.iter().any(|item| is_same_name(&item.column_name, name));
            let is_excluded = excluded.iter().any(|other| is_same_name(other, name));
            if !is_replaced && !is_excluded {
                items.push(Box::new(replace_column(name, expr)));
            }
        }
        options.opt_replace = (!items.is_empty()).then_some(ReplaceSelectItem { items });
        Ok(vec![SelectItem::Wildcard(options)])
    }

    /// Returns the item of SELECT for an unqualified name: `coalesce(a.k, b.k) AS k` if `k` is one
    /// of `computed`, and otherwise the name itself.
    fn write_named_item(&self, name: Ident) -> SelectItem {
        match self.computed.iter().find(|(other, _)| is_same_name(other, &name)) {
            Some((_, expr)) => SelectItem::ExprWithAlias { expr: expr.clone(), alias: name },
            None => SelectItem::UnnamedExpr(Expr::Identifier(name)),
        }
    }

    /// Returns the names to replace in ORDER BY. A name in `self.computed` (such as `k` after a
    /// FULL JOIN) is not replaced if a result column has this name: ORDER BY then refers to the
    /// result column, which has the merged value. A name in `self.plain` (such as `k` after an
    /// inner join) is not replaced if an alias has this name. Without such an alias, the planner
    /// would find the name ambiguous if USING has become ON, because two columns of FROM then have
    /// it.
    fn list_names_in_order(&self, results: &ResultColumns) -> Vec<(Ident, Expr)> {
        let computed = self.computed.iter().filter(|(name, _)| {
            !results.has_star_with(name) && !results.names.contains(&fold_name(name))
        });
        let plain =
            self.plain.iter().filter(|(name, _)| !results.aliases.contains(&fold_name(name)));
        computed.chain(plain).cloned().collect()
    }

    /// Returns the names to replace in SELECT, GROUP BY and DISTINCT ON: all names in
    /// `self.computed` (such as `k` after a FULL JOIN), and the names in `self.plain` (such as `k`
    /// after an inner join) that can mean only the merged column. The planner would find such a
    /// name ambiguous, or, if there is an outer query (`has_outer`), take the name for a column of
    /// that query. Omits a name for which USING merges columns into columns of several tables.
    /// Without an outer query, also omits a name that a further table may have as a column that
    /// USING does not merge: the planner rightly rejects this name as ambiguous.
    fn list_names_in_columns(
        &self,
        has_outer: bool,
        relations: &TableColumns,
    ) -> Vec<(Ident, Expr)> {
        let tables = &self.tables;
        let lacks = |table: &MergedTable, name: &Ident| match relations.get(&table.text) {
            Some(Ok(columns)) => !columns.contains(&fold_name(name)),
            _ => false,
        };
        let is_certain = |name: &Ident| {
            let owners = tables.iter().filter(|table| owns_column(table, name)).count();
            owners == 1
                && (has_outer
                    || tables
                        .iter()
                        .all(|t| owns_column(t, name) || is_merged_in(t, name) || lacks(t, name)))
        };
        let certain = self.plain.iter().filter(|(name, _)| is_certain(name));
        self.computed.iter().chain(certain).cloned().collect()
    }
}

/// The names of result columns, to which ORDER BY and DISTINCT ON may refer; in lower case unless
/// they are quoted.
#[derive(Default)]
struct ResultColumns {
    /// Aliases, and unqualified names without an alias: `a` and `b` of `SELECT x AS a, b`.
    names: Vec<String>,
    /// Aliases, and names that REPLACE sets: `a` of `* REPLACE (x + 1 AS a)`.
    aliases: Vec<String>,
    /// For each `*`, the names that it excludes.
    excluded: Vec<Vec<Ident>>,
}

impl ResultColumns {
    fn add_item(&mut self, item: &SelectItem) {
        match item {
            SelectItem::Wildcard(options) => {
                self.excluded.push(list_excluded_idents(options));
                let replaced = options.opt_replace.iter().flat_map(|replace| &replace.items);
                self.aliases.extend(replaced.map(|item| fold_name(&item.column_name)));
            }
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => self.names.push(fold_name(name)),
            SelectItem::ExprWithAlias { alias, .. } => {
                self.names.push(fold_name(alias));
                self.aliases.push(fold_name(alias));
            }
            _ => {}
        }
    }

    /// Whether a `*` of the SELECT list returns the column `name` of FROM.
    fn has_star_with(&self, name: &Ident) -> bool {
        self.excluded.iter().any(|excluded| !excluded.iter().any(|other| is_same_name(other, name)))
    }
}

fn list_excluded_idents(options: &WildcardAdditionalOptions) -> Vec<Ident> {
    list_excluded_names(options).iter().filter_map(find_last_ident).collect()
}

/// Gives `t.k` in a SELECT list the alias `k_1` if the list also has the merged column `k`, because
/// the planner would name both columns `k`.
fn name_next_to_merged(select: &mut Select, order: Option<&OrderBy>, tables: &[MergedTable]) {
    let mut used = HashSet::new();
    let mut merged: Vec<Ident> = Vec::new();
    for item in &select.projection {
        match item {
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => {
                used.insert(name.value.to_lowercase());
                let is_own =
                    |table: &MergedTable| table.own.iter().any(|(own, _)| is_same_name(own, name));
                if tables.iter().any(is_own) {
                    merged.push(name.clone());
                }
            }
            SelectItem::ExprWithAlias { alias, .. } => {
                used.insert(alias.value.to_lowercase());
            }
            _ => {}
        }
    }
    if merged.is_empty() {
        return;
    }
    let mut avoided = HashSet::new();
    add_identifiers(select, &mut avoided);
    if let Some(order) = order {
        add_identifiers(order, &mut avoided);
    }
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item
            && let Expr::CompoundIdentifier(parts) = &*expr
            && let Some((column, table)) = parts.split_last()
            // In `s.k`, `s` must be the name of a table: `s.k` may also be a field of a struct `s`.
            && tables.iter().any(|known| has_name(known, table))
            && merged.iter().any(|name| is_same_name(name, column))
        {
            let alias = find_unused_name(&column.value, &mut used, &avoided);
            name_item(item, alias);
        }
    }
}
