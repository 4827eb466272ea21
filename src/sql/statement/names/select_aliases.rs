//! Replaces aliases that a SELECT uses in later columns or in WHERE.
//!
//! `SELECT a + 1 AS b, b * 2 AS c FROM t WHERE b > 1` becomes `SELECT a + 1 AS b, (a + 1) * 2 AS c
//! FROM t WHERE (a + 1) > 1`, as in DuckDB. DataFusion resolves aliases only in GROUP BY, HAVING,
//! QUALIFY and ORDER BY. Only statements with an unknown column are rewritten, and a column of FROM
//! has precedence over an alias, so that no statement that can be planned changes its meaning. This
//! workaround is obsolete once the test `stock_aliases_are_still_no_columns` fails.
//!
//! In HAVING, DataFusion takes a name for a column of FROM, even if it is the alias of an
//! aggregate, and refuses a column that is not grouped. Such an alias is replaced, too. This
//! workaround is obsolete once the test `stock_names_in_having_are_still_columns` fails.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::error::DataFusionError;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::Volatility;
use datafusion::logical_expr::sqlparser::ast::{
    Cte, Expr, GroupByExpr, Query, Select, SelectItem, SetExpr, TableFactor, Visit, VisitMut,
    Visitor, VisitorMut,
};

use crate::sql::base::syntax::{
    for_each_expr, has_expr, has_query, has_select, name_item, parse_query, to_plain_name,
};
use crate::sql::statement::columns::set_names::{
    add_identifiers, find_expr_name, find_unused_name,
};
use crate::sql::statement::folding::fold_name;
use crate::sql::statement::names::cast_arguments::is_aggregate;
use crate::sql::statement::planned_parts::add_queries;
use crate::sql::statement::scopes::{CteScopes, LambdaParameters, is_lateral_query, track_scopes};

/// Columns that `*` omits, although FROM may have them.
const HIDDEN: [&str; 2] = ["_file", "_row"];

/// Maximum number of expressions that the replacement of aliases adds to a SELECT. Without it, a
/// SELECT in which each alias uses the previous one twice would double in size per alias.
const MOST_ADDED: usize = 1_000;

/// Whether a SELECT of a statement may use an alias of an earlier column or, in WHERE, of any
/// column.
pub(in crate::sql::statement) fn may_reuse<S: Visit>(statement: &S) -> bool {
    has_select(statement, reuses_alias)
}

pub(in crate::sql::statement) fn is_unknown_column(e: &DataFusionError) -> bool {
    e.to_string().contains("No field named ")
}

fn reuses_alias(select: &Select) -> bool {
    let mut earlier = HashSet::new();
    for item in &select.projection {
        let (expr, alias) = match item {
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias)),
            SelectItem::UnnamedExpr(expr) => (expr, None),
            _ => continue,
        };
        if mentions_alias(expr, &earlier) {
            return true;
        }
        earlier.extend(alias.map(fold_name));
    }
    select.selection.as_ref().is_some_and(|condition| mentions_alias(condition, &earlier))
}

fn mentions_alias(expr: &Expr, aliases: &HashSet<String>) -> bool {
    let is_alias =
        |e: &Expr| matches!(e, Expr::Identifier(name) if aliases.contains(&fold_name(name)));
    !aliases.is_empty() && has_expr(expr, is_alias)
}

/// Whether HAVING of a SELECT mentions an alias.
pub(in crate::sql::statement) fn may_hide_aliases<S: Visit>(statement: &S) -> bool {
    has_select(statement, |select| {
        let aliases = select.projection.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(fold_name(alias)),
            _ => None,
        });
        let having = select.having.as_ref();
        having.is_some_and(|condition| mentions_alias(condition, &aliases.collect()))
    })
}

pub(in crate::sql::statement) fn is_ungrouped(e: &DataFusionError) -> bool {
    e.to_string().contains("Column in HAVING must be in GROUP BY")
}

/// Replaces the aliases of aggregates in HAVING. An alias stays if another column of the SELECT or
/// a key of GROUP BY uses the same name. Returns whether an alias was replaced.
pub(in crate::sql::statement) fn replace_in_having<S: VisitMut>(
    state: &SessionState,
    statement: &mut S,
) -> bool {
    let mut having = HavingAliases { state, is_replaced: false };
    let _ = VisitMut::visit(statement, &mut having);
    having.is_replaced
}

/// Returns an alias in HAVING or QUALIFY whose expression has a function such as `random()`, which
/// returns another value for each call. Returns `None` if there is no such alias.
///
/// DataFusion 55 calls the function again for the condition
/// (<https://github.com/apache/datafusion/issues/7976>). The result then has rows whose displayed
/// value does not meet the condition. This workaround is obsolete once the test
/// `stock_having_still_calls_random_again` fails.
pub(in crate::sql::statement) fn find_random_alias<S: Visit>(
    state: &SessionState,
    statement: &S,
) -> Option<String> {
    match statement.visit(&mut FindRandomAlias { state }) {
        ControlFlow::Break(alias) => Some(alias),
        ControlFlow::Continue(()) => None,
    }
}

struct FindRandomAlias<'a> {
    state: &'a SessionState,
}

impl Visitor for FindRandomAlias<'_> {
    type Break = String;

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<String> {
        if select.having.is_none() && select.qualify.is_none() {
            return ControlFlow::Continue(());
        }
        // Accepts aliases that may be keys of GROUP BY, because a key is computed once. A position
        // or ALL in GROUP BY may stand for any column.
        let may_group_all = match &select.group_by {
            GroupByExpr::All(_) => true,
            GroupByExpr::Expressions(keys, _) => {
                keys.iter().any(|key| matches!(key, Expr::Value(_)))
            }
        };
        if may_group_all {
            return ControlFlow::Continue(());
        }
        let mut grouped = HashSet::new();
        add_identifiers(&select.group_by, &mut grouped);
        let aliases = select.projection.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } => describe_alias(expr, self.state)
                .is_none()
                .then(|| fold_name(alias))
                .filter(|alias| !grouped.contains(&alias.to_lowercase())),
            _ => None,
        });
        let mut uses = FindUse { aliases: aliases.collect(), enclosing: 0 };
        if uses.aliases.is_empty() {
            return ControlFlow::Continue(());
        }
        let mut conditions = select.having.iter().chain(&select.qualify);
        conditions.try_for_each(|condition| condition.visit(&mut uses))
    }
}

/// Visitor that finds an alias in a condition. Skips aggregates and subqueries, in which the name
/// may be that of a column.
struct FindUse {
    aliases: HashSet<String>,
    /// Number of aggregates and subqueries around the current position.
    enclosing: usize,
}

impl FindUse {
    fn is_aggregate(e: &Expr) -> bool {
        matches!(e, Expr::Function(call) if call.over.is_none() && is_aggregate(call))
    }
}

impl Visitor for FindUse {
    type Break = String;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<String> {
        self.enclosing += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<String> {
        self.enclosing -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, e: &Expr) -> ControlFlow<String> {
        match e {
            Expr::Identifier(name)
                if self.enclosing == 0 && self.aliases.contains(&fold_name(name)) =>
            {
                return ControlFlow::Break(name.value.clone());
            }
            e if Self::is_aggregate(e) => self.enclosing += 1,
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, e: &Expr) -> ControlFlow<String> {
        if Self::is_aggregate(e) {
            self.enclosing -= 1;
        }
        ControlFlow::Continue(())
    }
}

struct HavingAliases<'a> {
    state: &'a SessionState,
    is_replaced: bool,
}

impl VisitorMut for HavingAliases<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let Select { projection, group_by, having: Some(condition), .. } = select else {
            return ControlFlow::Continue(());
        };
        let mut grouped = HashSet::new();
        add_identifiers(&*group_by, &mut grouped);
        let mut aggregates = Vec::new();
        for item in projection.iter() {
            let (expr, alias) = match item {
                SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias)),
                SelectItem::UnnamedExpr(expr) => (expr, None),
                _ => continue,
            };
            match describe_alias(expr, self.state) {
                Some(known) if known.functions == AliasFunctions::Aggregate => {
                    aggregates
                        .extend(alias.map(|alias| (fold_name(alias), has_query(expr), known)));
                }
                // A column without an aggregate may be a key of GROUP BY. HAVING may then use the
                // names in its expression, so these names are not replaced.
                _ => add_identifiers(expr, &mut grouped),
            }
        }
        let mut aliases = KnownAliases::default();
        for (name, reads_rows, known) in aggregates {
            if !grouped.contains(&name.to_lowercase()) {
                let is_clear = !reads_rows && !aliases.known.contains_key(&name);
                aliases.known.insert(name, is_clear.then_some(known));
            }
        }
        self.is_replaced |= aliases.replace_in(condition, false);
        ControlFlow::Continue(())
    }
}

/// The FROM of a SELECT whose expressions may use aliases of its SELECT list.
pub(in crate::sql::statement) enum SelectSource {
    NoTable,
    /// A query that returns all columns of FROM.
    Table(Box<Query>),
    Unknown,
}

/// Visitor of the SELECTs that may use aliases: collects their FROM in a first pass, and replaces
/// aliases in a second.
pub(in crate::sql::statement) struct SelectAliases<'a> {
    state: &'a SessionState,
    scopes: CteScopes<Cte>,
    /// Number of expressions and LATERAL tables around the current position. A SELECT within them
    /// may read an outer table, so it is skipped.
    enclosing: usize,
    pub(in crate::sql::statement) places: Vec<SelectSource>,
    /// `None` in the first pass. In the second, the columns of each FROM in `places`, or `None` if
    /// they are unknown.
    pub(in crate::sql::statement) columns: Option<std::vec::IntoIter<Option<HashSet<String>>>>,
    pub(in crate::sql::statement) is_replaced: bool,
}

impl<'a> SelectAliases<'a> {
    pub(in crate::sql::statement) fn new(state: &'a SessionState) -> Self {
        Self {
            state,
            scopes: CteScopes::default(),
            enclosing: 0,
            places: Vec::new(),
            columns: None,
            is_replaced: false,
        }
    }

    fn find_table(&self, select: &Select) -> SelectSource {
        if select.from.is_empty() {
            return SelectSource::NoTable;
        }
        let Ok(mut query) = parse_query("SELECT * FROM t") else { return SelectSource::Unknown };
        let SetExpr::Select(all) = query.body.as_mut() else { return SelectSource::Unknown };
        all.from.clone_from(&select.from);
        SelectSource::Table(Box::new(add_queries(query, &self.scopes)))
    }

    fn replace_aliases(&mut self, select: &mut Select, columns: &HashSet<String>) {
        let mut found = KnownAliases::default();
        let mut used: HashSet<String> = select
            .projection
            .iter()
            .filter_map(|item| match item {
                SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.to_lowercase()),
                SelectItem::UnnamedExpr(e) => Some(find_expr_name(e).to_lowercase()),
                _ => None,
            })
            .collect();
        for item in &mut select.projection {
            match item {
                SelectItem::ExprWithAlias { expr, alias } => {
                    self.is_replaced |= found.replace_in(expr, false);
                    let name = fold_name(alias);
                    if !columns.contains(&name) && !HIDDEN.contains(&name.as_str()) {
                        found.add_alias(name, expr, self.state);
                    }
                }
                SelectItem::UnnamedExpr(expr) => {
                    let written = match &*expr {
                        Expr::Identifier(name) => fold_name(name),
                        other => find_expr_name(other),
                    };
                    if found.replace_in(expr, false) {
                        self.is_replaced = true;
                        // The second column of `SELECT a + 1 AS b, b` would have the same name as
                        // the first, so it gets another name.
                        let name = match found.known.contains_key(&written) {
                            true => find_unused_name(&written, &mut used, &HashSet::new()),
                            false => written,
                        };
                        name_item(item, name);
                    }
                }
                _ => {}
            }
        }
        if let Some(condition) = &mut select.selection {
            self.is_replaced |= found.replace_in(condition, true);
        }
    }
}

impl VisitorMut for SelectAliases<'_> {
    type Break = ();

    track_scopes!();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        self.enclosing = self.enclosing.saturating_add(usize::from(is_lateral_query(factor)));
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        self.enclosing = self.enclosing.saturating_sub(usize::from(is_lateral_query(factor)));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<()> {
        self.enclosing = self.enclosing.saturating_add(1);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<()> {
        self.enclosing = self.enclosing.saturating_sub(1);
        ControlFlow::Continue(())
    }

    // Decides before FROM is visited whether this SELECT may use aliases: the second pass replaces
    // aliases in FROM, but must find the same SELECTs as the first pass.
    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if self.enclosing > 0 || !reuses_alias(select) {
            return ControlFlow::Continue(());
        }
        match &mut self.columns {
            None => {
                let place = self.find_table(select);
                self.places.push(place);
            }
            Some(columns) => {
                if let Some(Some(columns)) = columns.next() {
                    self.replace_aliases(select, &columns);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// The kind of functions in an alias's expression, which determines the clauses and calls that can
/// use the alias.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AliasFunctions {
    Rows,
    Aggregate,
    Window,
}

struct KnownAlias {
    expr: Expr,
    size: usize,
    functions: AliasFunctions,
}

/// The aliases of the columns before the current one.
#[derive(Default)]
struct KnownAliases {
    /// The aliases by name. `None` for an alias that is not replaced: two columns have it, or its
    /// expression has a subquery, has a column of the same name (`a + 1 AS a`), or is volatile.
    known: HashMap<String, Option<KnownAlias>>,
    added: usize,
}

impl KnownAliases {
    fn add_alias(&mut self, name: String, expr: &Expr, state: &SessionState) {
        let own = HashSet::from([name.clone()]);
        let alias =
            match self.known.contains_key(&name) || has_query(expr) || mentions_alias(expr, &own) {
                true => None,
                false => describe_alias(expr, state),
            };
        self.known.insert(name, alias);
    }

    /// Replaces aliases in an expression. Returns whether one was replaced.
    fn replace_in(&mut self, expr: &mut Expr, in_where: bool) -> bool {
        if self.known.values().all(Option::is_none) {
            return false;
        }
        let mut uses = AliasUses {
            aliases: self,
            in_where,
            queries: 0,
            aggregates: 0,
            windows: 0,
            parameters: LambdaParameters::default(),
            is_replaced: false,
        };
        let _ = VisitMut::visit(expr, &mut uses);
        uses.is_replaced
    }
}

/// Returns the expression of an alias in parentheses, its size and the kind of its functions.
/// Returns `None` if the expression has a function such as `random()`, which would return another
/// value for each use of the alias.
fn describe_alias(expr: &Expr, state: &SessionState) -> Option<KnownAlias> {
    let (mut size, mut functions, mut is_volatile) = (0usize, AliasFunctions::Rows, false);
    for_each_expr(expr, |e| {
        size = size.saturating_add(1);
        if let Expr::Function(call) = e {
            let name = to_plain_name(&call.name).unwrap_or_default();
            let scalar = state.scalar_functions().get(&name).map(|f| f.signature().volatility);
            let of_rows = state.aggregate_functions().get(&name);
            let volatility = scalar.or(of_rows.map(|f| f.signature().volatility));
            is_volatile |= volatility == Some(Volatility::Volatile);
            if call.over.is_some() {
                functions = AliasFunctions::Window;
            } else if is_aggregate(call) && functions == AliasFunctions::Rows {
                functions = AliasFunctions::Aggregate;
            }
        }
    });
    let nested = Expr::Nested(Box::new(expr.clone()));
    (!is_volatile).then_some(KnownAlias { expr: nested, size, functions })
}

/// Visitor that replaces aliases in one expression, except in its subqueries.
struct AliasUses<'a> {
    aliases: &'a mut KnownAliases,
    in_where: bool,
    queries: usize,
    /// Numbers of aggregates and of window functions around the current position.
    aggregates: usize,
    windows: usize,
    parameters: LambdaParameters,
    is_replaced: bool,
}

impl AliasUses<'_> {
    /// Whether an alias whose expression has these functions can be used at the current position.
    /// WHERE has neither aggregates nor window functions. An aggregate contains neither, and a
    /// window function contains no window function.
    fn can_use(&self, functions: AliasFunctions) -> bool {
        match functions {
            AliasFunctions::Rows => true,
            AliasFunctions::Aggregate => !self.in_where && self.aggregates == 0,
            AliasFunctions::Window => !self.in_where && self.aggregates == 0 && self.windows == 0,
        }
    }

    fn count_call(&mut self, expr: &Expr, change: fn(usize) -> usize) {
        if let Expr::Function(call) = expr {
            if call.over.is_some() {
                self.windows = change(self.windows);
            } else if is_aggregate(call) {
                self.aggregates = change(self.aggregates);
            }
        }
    }
}

impl VisitorMut for AliasUses<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries = self.queries.saturating_add(1);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries = self.queries.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.count_call(expr, |n| n.saturating_add(1));
        self.parameters.enter_expr(expr);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.count_call(expr, |n| n.saturating_sub(1));
        self.parameters.leave_expr(expr);
        let Expr::Identifier(name) = expr else { return ControlFlow::Continue(()) };
        let name = fold_name(name);
        if self.queries > 0 || self.parameters.contains(&name) {
            return ControlFlow::Continue(());
        }
        if let Some(Some(alias)) = self.aliases.known.get(&name)
            && self.can_use(alias.functions)
            && self.aliases.added.saturating_add(alias.size) <= MOST_ADDED
        {
            self.aliases.added = self.aliases.added.saturating_add(alias.size);
            *expr = alias.expr.clone();
            self.is_replaced = true;
        }
        ControlFlow::Continue(())
    }
}
