//! Plans views and prepared statements again from their syntax at each use.
//!
//! DataFusion keeps the plan that CREATE VIEW or PREPARE made, which reads the tables of that time
//! (test `stock_views_still_keep_replaced_tables`), and casts the arguments of EXECUTE to the types
//! of the columns that they are compared with (test `stock_execute_still_casts_its_arguments`).

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use arrow::datatypes::SchemaRef;
use datafusion::catalog::view::ViewTable;
use datafusion::catalog::{SchemaProvider, Session, TableProvider};
use datafusion::common::{ResolvedTableReference, TableReference, plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    CastKind, DataType, Expr as SqlExpr, Ident, LimitClause, Query, Statement as SqlStatement,
    Value, ValueWithSpan, Visit, VisitMut, VisitorMut, visit_expressions,
};
use datafusion::logical_expr::sqlparser::tokenizer::Location;
use datafusion::logical_expr::{
    CreateView, DdlStatement, Expr, LogicalPlan, TableProviderFilterPushDown, TableType, Volatility,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use futures::FutureExt;
use futures::future::BoxFuture;
use serrate_core::internal::lock_mutex;

use crate::sql::base::boxed_methods::boxed_method;
use crate::sql::base::deep_stack::run_deep;
use crate::sql::base::syntax::has_expr;
use crate::sql::rules::coerce_types;
use crate::sql::statement::folding::fold_name;
use crate::sql::statement::planner::plan_with_views;
use crate::sql::statement::sql_parts::with_sql;
use crate::sql::workarounds::subqueries::shared_rows::copy_shared_rows;

/// The syntax trees of a session's views and prepared statements, kept in its configuration.
#[derive(Default)]
pub(in crate::sql) struct KeptStatements {
    /// The CREATE VIEW statements of each view by its full name, in the order of their definitions.
    /// The last statement may have failed, because statements are kept before they run.
    views: Mutex<HashMap<String, Vec<CreatedView>>>,
    /// The prepared statements by the id of the session and the name of the statement.
    prepared: Mutex<HashMap<(String, String), KeptStatement>>,
}

#[derive(Clone)]
struct CreatedView {
    /// The text of the definition. If the view in the catalog has another definition, this entry is
    /// not used.
    definition: String,
    statement: Statement,
    /// The default catalog and schema when the view was created. Names in the view are resolved in
    /// these.
    home: (String, String),
}

#[derive(Clone)]
pub(super) struct KeptStatement {
    /// The declared types of the parameters.
    types: Vec<DataType>,
    statement: SqlStatement,
}

impl KeptStatements {
    fn from_state(state: &SessionState) -> Option<Arc<Self>> {
        state.config().get_extension::<Self>()
    }

    /// Returns a copy with the same views and without the prepared statements.
    #[cfg(feature = "serve")]
    pub(in crate::sql) fn copy_views(&self) -> Self {
        let views = lock_mutex(&self.views).clone();
        Self { views: Mutex::new(views), prepared: Mutex::default() }
    }

    /// Returns the statement of a view whose definition in the catalog is `definition`. Forgets the
    /// statements before it, because their views were replaced.
    fn find_created(&self, name: &str, definition: &str) -> Option<CreatedView> {
        let mut views = lock_mutex(&self.views);
        let all = views.get_mut(name)?;
        let at = all.iter().rposition(|created| created.definition == definition)?;
        all.drain(..at);
        all.first().cloned()
    }
}

/// Keeps the statement of a view for later uses of the view. Does nothing for a statement without
/// OR REPLACE if a table or view has its name. Such a statement fails when it runs, and an existing
/// view must keep the default schema with which it was created, even if the definitions are equal.
pub(super) fn keep_view(
    state: &SessionState,
    view: &CreateView,
    definition: &str,
    statement: Statement,
) {
    if !view.or_replace && is_known_table(state, &view.name) {
        return;
    }
    if let Some(kept) = KeptStatements::from_state(state) {
        let definition = definition.to_owned();
        let created = CreatedView { definition, statement, home: find_home(state) };
        let mut views = lock_mutex(&kept.views);
        let all = views.entry(resolve_name(state, &view.name).to_string()).or_default();
        match all.iter_mut().find(|known| known.definition == created.definition) {
            Some(known) => *known = created,
            None => all.push(created),
        }
    }
}

fn is_known_table(state: &SessionState, name: &TableReference) -> bool {
    state.schema_for_ref(name.clone()).is_ok_and(|schema| schema.table_exist(name.table()))
}

fn find_home(state: &SessionState) -> (String, String) {
    let catalog = &state.config_options().catalog;
    (catalog.default_catalog.clone(), catalog.default_schema.clone())
}

/// Returns the name and the statement of PREPARE. Returns `None` for any other statement, and if a
/// parameter has no number, such as `$name`.
pub(super) fn parse_prepare(statement: &Statement) -> Option<(String, KeptStatement)> {
    let Statement::Statement(inner) = statement else { return None };
    let SqlStatement::Prepare { name, data_types, statement } = inner.as_ref() else { return None };
    count_parameters(statement)?;
    let prepared =
        KeptStatement { types: data_types.clone(), statement: statement.as_ref().clone() };
    Some((fold_name(name), prepared))
}

/// Keeps a prepared statement for later EXECUTE statements, unless the session already has a
/// prepared statement of this name: then DataFusion refuses to run PREPARE.
pub(super) fn keep_prepared(state: &SessionState, (name, prepared): (String, KeptStatement)) {
    if let Some(kept) = KeptStatements::from_state(state) {
        let mut all = lock_mutex(&kept.prepared);
        all.entry((state.session_id().to_owned(), name)).or_insert(prepared);
    }
}

/// Replaces EXECUTE with the prepared statement, in which the arguments stand in place of the
/// parameters. For DEALLOCATE, forgets the prepared statement that DEALLOCATE names. Returns
/// DEALLOCATE, EXECUTE of an unknown name, and all other statements unchanged.
///
/// # Errors
/// If the number of arguments differs from the number of parameters, or if an argument is not a
/// constant.
pub(super) fn expand_execute(state: &SessionState, statement: Statement) -> Result<Statement> {
    let (Some(kept), Statement::Statement(inner)) = (KeptStatements::from_state(state), &statement)
    else {
        return Ok(statement);
    };
    let key = |name: &Ident| (state.session_id().to_owned(), fold_name(name));
    let mut prepared = lock_mutex(&kept.prepared);
    match inner.as_ref() {
        SqlStatement::Deallocate { name, .. } => {
            prepared.remove(&key(name));
        }
        SqlStatement::Execute { name: Some(name), parameters, using, into, .. }
            if using.is_empty() && into.is_empty() =>
        {
            let [part] = name.0.as_slice() else { return Ok(statement) };
            let Some(ident) = part.as_ident() else { return Ok(statement) };
            if let Some(found) = prepared.get(&key(ident)) {
                let bound = bind_arguments(state, ident, found.clone(), parameters)?;
                return Ok(Statement::Statement(Box::new(bound)));
            }
        }
        _ => {}
    }
    Ok(statement)
}

/// Numbers the parameters `?` in the order of the text.
///
/// The syntax tree may have them in another order, as for `FROM t SELECT ? WHERE x > ?`. It may
/// also have several copies of a parameter, which get the same number: `isfinite(?)`, for example,
/// has been rewritten to an expression that uses its argument twice.
#[derive(Default)]
struct ParameterNumbers {
    places: BTreeSet<Location>,
    /// Whether `places` has the places of all parameters, so that these can be numbered.
    has_all: bool,
}

impl VisitorMut for ParameterNumbers {
    type Break = ();

    fn post_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        let place = value.span.start;
        if let Value::Placeholder(name) = &mut value.value
            && name == "?"
        {
            if self.has_all {
                *name = format!("${}", self.places.range(..=place).count());
            } else {
                self.places.insert(place);
            }
        }
        ControlFlow::Continue(())
    }
}

/// Replaces the parameters `?` of a statement by `$1`, `$2`, ..
pub(crate) fn number_parameters(statement: &mut Statement) {
    let mut numbers = ParameterNumbers::default();
    visit_sql(statement, &mut numbers);
    numbers.has_all = true;
    visit_sql(statement, &mut numbers);
}

fn visit_sql<V: VisitorMut<Break = ()>>(statement: &mut Statement, visitor: &mut V) {
    with_sql!(statement, sql => {
        let _ = VisitMut::visit(sql, visitor);
    });
}

pub(crate) fn is_prepare(statement: &Statement) -> bool {
    let Statement::Statement(inner) = statement else { return false };
    matches!(inner.as_ref(), SqlStatement::Prepare { .. })
}

pub(super) fn prepares_without_types(statement: &Statement) -> bool {
    let Statement::Statement(inner) = statement else { return false };
    matches!(inner.as_ref(), SqlStatement::Prepare { data_types, .. } if data_types.is_empty())
}

/// Returns the number of a parameter: 2 for `$2`. Returns `None` for an expression that is not
/// a parameter. Returns `Break` for a parameter without a number, such as `$name`.
fn find_parameter(expr: &SqlExpr) -> ControlFlow<(), Option<usize>> {
    match expr {
        SqlExpr::Value(value) => match &value.value {
            Value::Placeholder(name) => {
                match name.strip_prefix('$').and_then(|n| n.parse().ok()).filter(|n| *n > 0) {
                    Some(number) => ControlFlow::Continue(Some(number)),
                    None => ControlFlow::Break(()),
                }
            }
            _ => ControlFlow::Continue(None),
        },
        _ => ControlFlow::Continue(None),
    }
}

/// Returns the greatest number of a parameter: 2 for `$2 + $2`, and 0 without parameters. Returns
/// `None` if a parameter has no number, such as `$name`.
fn count_parameters(statement: &impl Visit) -> Option<usize> {
    let mut count = 0;
    let visited = visit_expressions(statement, |expr| {
        count = find_parameter(expr)?.map_or(count, |number| count.max(number));
        ControlFlow::Continue(())
    });
    visited.is_continue().then_some(count)
}

fn bind_arguments(
    state: &SessionState,
    name: &Ident,
    prepared: KeptStatement,
    arguments: &[SqlExpr],
) -> Result<SqlStatement> {
    let KeptStatement { types, mut statement } = prepared;
    let count = count_parameters(&statement).unwrap_or_default();
    if count != arguments.len() {
        return plan_err!(
            "EXECUTE {name}: the number of parameters of the prepared statement is {count}, but the number of arguments is {}; give one argument per parameter",
            arguments.len()
        );
    }
    for argument in arguments {
        if !is_constant(state, argument) {
            return plan_err!(
                "EXECUTE {name}: the argument {argument} is not a constant; give a literal"
            );
        }
    }
    let _ = VisitMut::visit(&mut statement, &mut ParameterBinding { types: &types, arguments });
    Ok(statement)
}

fn is_constant(state: &SessionState, argument: &SqlExpr) -> bool {
    !has_expr(argument, |expr| match expr {
        SqlExpr::Identifier(_)
        | SqlExpr::CompoundIdentifier(_)
        | SqlExpr::Subquery(_)
        | SqlExpr::Exists { .. }
        | SqlExpr::InSubquery { .. } => true,
        // A parameter whose argument is a parameter would be bound without end.
        SqlExpr::Value(value) => matches!(value.value, Value::Placeholder(_)),
        SqlExpr::Function(call) => {
            let name = call.name.to_string().to_ascii_lowercase();
            let found = state.scalar_functions().get(&name);
            found.is_none_or(|f| f.signature().volatility == Volatility::Volatile)
        }
        _ => false,
    })
}

/// Returns the greatest number of a parameter in a statement, also below EXPLAIN and in COPY: 2 for
/// `$2 + $2`, and 0 without parameters. Returns `None` if a parameter has no number, such as
/// `$name`.
#[cfg(feature = "serve")]
pub(crate) fn count_parameters_of(statement: &Statement) -> Option<usize> {
    with_sql!(statement, sql => count_parameters(sql)).unwrap_or(Some(0))
}

/// Replaces the numbered parameters of any statement with literals, as EXECUTE does.
#[cfg(feature = "serve")]
pub(crate) fn bind_parameters(statement: &mut Statement, arguments: &[SqlExpr]) {
    visit_sql(statement, &mut ParameterBinding { types: &[], arguments });
}

struct ParameterBinding<'a> {
    types: &'a [DataType],
    arguments: &'a [SqlExpr],
}

impl ParameterBinding<'_> {
    /// Returns the argument for a parameter such as `$2`, cast to the type that PREPARE declares
    /// for the parameter, if any. Returns `None` for other expressions, and for a parameter without
    /// an argument.
    fn find_argument(&self, expr: &SqlExpr) -> Option<SqlExpr> {
        let ControlFlow::Continue(Some(number)) = find_parameter(expr) else { return None };
        let at = number.checked_sub(1)?;
        let argument = self.arguments.get(at)?.clone();
        Some(match self.types.get(at) {
            None => argument,
            Some(data_type) => cast_to(argument, data_type.clone()),
        })
    }
}

fn cast_to(expr: SqlExpr, data_type: DataType) -> SqlExpr {
    let (kind, expr) = (CastKind::Cast, Box::new(expr));
    SqlExpr::Cast { kind, expr, data_type, array: false, format: None }
}

impl VisitorMut for ParameterBinding<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        // In LIMIT and OFFSET, a bare integer gets no cast, because more optimizer rules support a
        // literal than a cast in these clauses.
        if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &mut query.limit_clause {
            let offset = offset.as_mut().map(|offset| &mut offset.value);
            for expr in limit.iter_mut().chain(offset) {
                if let Some(argument) = self.find_argument(expr) {
                    *expr = argument;
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut SqlExpr) -> ControlFlow<()> {
        if let Some(argument) = self.find_argument(expr) {
            // A bare integer in ORDER BY or GROUP BY would be the position of a column, so it gets
            // a cast.
            *expr = match is_integer(&argument) {
                true => cast_to(argument, DataType::BigInt(None)),
                false => argument,
            };
        }
        ControlFlow::Continue(())
    }
}

/// Whether an expression is a literal that DataFusion's planner reads as a 64-bit integer.
fn is_integer(expr: &SqlExpr) -> bool {
    let SqlExpr::Value(value) = expr else { return false };
    matches!(&value.value, Value::Number(text, _) if text.parse::<i64>().is_ok())
}

/// Plans the views in a statement again with the current tables, except the views whose names are
/// in `refreshed`, and adds the names of the planned views to `refreshed`.
///
/// # Errors
/// If the definition of a view cannot be planned, for example because a table was dropped.
pub(super) fn refresh_views<'a>(
    ctx: &'a SessionContext,
    state: &'a SessionState,
    statement: &'a Statement,
    refreshed: &'a mut HashSet<String>,
) -> BoxFuture<'a, Result<()>> {
    // This function and `plan_with_views` call each other, so one of the two futures must be boxed.
    refresh_each(ctx, state, statement, refreshed).boxed()
}

async fn refresh_each(
    ctx: &SessionContext,
    state: &SessionState,
    statement: &Statement,
    refreshed: &mut HashSet<String>,
) -> Result<()> {
    let Some(kept) = KeptStatements::from_state(state) else { return Ok(()) };
    for reference in find_used_tables(state, statement)? {
        let Some(found) = find_view(state, &reference).await? else { continue };
        let name = resolve_name(state, &reference).to_string();
        let Some(created) = kept.find_created(&name, &found.definition) else { continue };
        if !refreshed.insert(name) || is_recursive(state, &kept, &reference).await? {
            continue;
        }
        let planned = match created.home == find_home(state) {
            true => run_deep(plan_with_views(ctx, created.statement, refreshed)).await,
            false => {
                let ctx = SessionContext::new_with_state(make_state_at(state, &created.home));
                run_deep(plan_with_views(&ctx, created.statement, refreshed)).await
            }
        };
        let (planned, _) = planned.map_err(|e| {
            plan_datafusion_err!(
                "the view {reference} cannot be planned with the current tables: {}; create its tables or the view again",
                e.strip_backtrace()
            )
        })?;
        if let LogicalPlan::Ddl(DdlStatement::CreateView(view)) = planned {
            let query = coerce_types(Arc::unwrap_or_clone(view.input), state.config_options())?;
            found.replace_plan(reference.table(), query)?;
        }
    }
    Ok(())
}

fn make_state_at(state: &SessionState, (catalog, schema): &(String, String)) -> SessionState {
    let mut state = state.clone();
    let options = &mut state.config_mut().options_mut().catalog;
    (options.default_catalog, options.default_schema) = (catalog.clone(), schema.clone());
    state
}

fn find_used_tables(state: &SessionState, statement: &Statement) -> Result<Vec<TableReference>> {
    if let Statement::Statement(inner) = statement {
        match inner.as_ref() {
            SqlStatement::CreateView(view) => {
                let query = SqlStatement::Query(view.query.clone());
                return state.resolve_table_references(&Statement::Statement(Box::new(query)));
            }
            SqlStatement::Drop { .. } => return Ok(Vec::new()),
            _ => {}
        }
    }
    state.resolve_table_references(statement)
}

fn resolve_name(state: &SessionState, reference: &TableReference) -> ResolvedTableReference {
    let catalog = &state.config_options().catalog;
    reference.clone().resolve(&catalog.default_catalog, &catalog.default_schema)
}

struct FoundView {
    definition: String,
    provider: Arc<dyn TableProvider>,
    schema: Arc<dyn SchemaProvider>,
}

async fn find_view(state: &SessionState, reference: &TableReference) -> Result<Option<FoundView>> {
    let Ok(schema) = state.schema_for_ref(reference.clone()) else { return Ok(None) };
    let name = reference.table();
    // A name that is not in the catalog may be a path, which is not opened here.
    if !schema.table_exist(name) {
        return Ok(None);
    }
    let Some(provider) = schema.table(name).await? else { return Ok(None) };
    if !provider.is::<ViewTable>() && !provider.is::<LiveView>() {
        return Ok(None);
    }
    let Some(definition) = provider.get_table_definition().map(str::to_owned) else {
        return Ok(None);
    };
    Ok(Some(FoundView { definition, provider, schema }))
}

impl FoundView {
    fn replace_plan(&self, name: &str, plan: LogicalPlan) -> Result<()> {
        let view = Arc::new(ViewTable::new(plan, None));
        if let Some(live) = self.provider.downcast_ref::<LiveView>() {
            *live.view.write().unwrap_or_else(PoisonError::into_inner) = view;
            return Ok(());
        }
        let live = LiveView { view: RwLock::new(view), definition: self.definition.clone() };
        self.schema.deregister_table(name)?;
        self.schema.register_table(name.to_owned(), Arc::new(live))?;
        Ok(())
    }
}

/// Whether a view reads the view that it replaced, as in `CREATE OR REPLACE VIEW v AS SELECT x + 1
/// AS x FROM v`. Such a view keeps its plan, because a new plan of its definition would read the
/// view itself.
async fn is_recursive(
    state: &SessionState,
    kept: &KeptStatements,
    view: &TableReference,
) -> Result<bool> {
    let target = resolve_name(state, view).to_string();
    let mut seen = HashSet::new();
    let mut next = vec![(target.clone(), view.clone(), state.clone())];
    while let Some((name, reference, state)) = next.pop() {
        let Some(found) = find_view(&state, &reference).await? else { continue };
        let Some(created) = kept.find_created(&name, &found.definition) else { continue };
        let state = make_state_at(&state, &created.home);
        for table in find_used_tables(&state, &created.statement)? {
            let name = resolve_name(&state, &table).to_string();
            if name == target {
                return Ok(true);
            }
            if seen.insert(name.clone()) {
                next.push((name, table, state.clone()));
            }
        }
    }
    Ok(false)
}

/// A view whose plan [`refresh_views`] replaces before each use.
#[derive(Debug)]
struct LiveView {
    view: RwLock<Arc<ViewTable>>,
    definition: String,
}

impl LiveView {
    fn current_view(&self) -> Arc<ViewTable> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl TableProvider for LiveView {
    fn schema(&self) -> SchemaRef {
        self.current_view().schema()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn get_table_definition(&self) -> Option<&str> {
        Some(&self.definition)
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        let plan = self.current_view().logical_plan().clone();
        // Each reference to the view gets a copy of the plan, so that references do not share rows
        // (see [`copy_shared_rows`]). A plan that nests subqueries too deeply for a copy is used
        // unchanged.
        Some(Cow::Owned(copy_shared_rows(plan.clone()).unwrap_or(plan)))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        self.current_view().supports_filters_pushdown(filters)
    }

    boxed_method!(LiveView: scan = plan_scan);
}

impl LiveView {
    async fn plan_scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.current_view().scan(state, projection, filters, limit).await
    }
}
