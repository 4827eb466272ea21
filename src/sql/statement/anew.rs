//! Views and prepared statements, which are planned anew from their syntax at each use.
//!
//! DataFusion keeps their first plan, with the tables of that time
//! (`stock_views_still_keep_replaced_tables`), and casts the arguments of EXECUTE to the types of the columns
//! that they are compared with (`stock_execute_still_casts_its_arguments`).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::view::ViewTable;
use datafusion::catalog::{SchemaProvider, Session, TableProvider};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{ResolvedTableReference, TableReference, plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    CastKind, DataType, Expr as SqlExpr, Statement as SqlStatement, Value, visit_expressions,
    visit_expressions_mut,
};
use datafusion::logical_expr::{
    DdlStatement, Expr, LogicalPlan, TableProviderFilterPushDown, TableType,
};
use datafusion::optimizer::analyzer::Analyzer;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::plan_here;

/// The syntax trees of the views and prepared statements of a session. They are stored as an
/// extension of the session's configuration.
#[derive(Default)]
pub(in crate::sql) struct KeptStatements {
    /// The CREATE VIEW statements. The key is the text that the created view returns as its
    /// definition.
    views: Mutex<HashMap<String, Statement>>,
    /// Types and statements of PREPARE, by session and name.
    prepared: Mutex<HashMap<(String, String), Prepared>>,
}

/// The declared types of the parameters of PREPARE, and its statement.
type Prepared = (Vec<DataType>, SqlStatement);

impl KeptStatements {
    fn of_state(state: &SessionState) -> Option<Arc<Self>> {
        state.config().get_extension::<Self>()
    }

    fn find_created(&self, definition: &str) -> Option<Statement> {
        let views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        views.get(definition).cloned()
    }
}

pub(super) fn keep_view(state: &SessionState, definition: &str, created: Statement) {
    if let Some(kept) = KeptStatements::of_state(state) {
        let mut views = kept.views.lock().unwrap_or_else(PoisonError::into_inner);
        views.insert(definition.to_owned(), created);
    }
}

/// Keeps the syntax of PREPARE, forgets it at DEALLOCATE, and returns for EXECUTE the prepared statement with
/// the arguments in their places. Returns any other statement unchanged.
pub(super) fn with_arguments(state: &SessionState, statement: Statement) -> Result<Statement> {
    let (Some(kept), Statement::Statement(inner)) = (KeptStatements::of_state(state), &statement)
    else {
        return Ok(statement);
    };
    let key = |name: String| (state.session_id().to_owned(), name);
    let mut prepared = kept.prepared.lock().unwrap_or_else(PoisonError::into_inner);
    match inner.as_ref() {
        SqlStatement::Prepare { name, data_types, statement: inner }
            if count_parameters(inner).is_some() =>
        {
            // If the name is already in use, the planner reports an error, and the first statement is kept.
            let entry = prepared.entry(key(name.to_string()));
            entry.or_insert_with(|| (data_types.clone(), inner.as_ref().clone()));
        }
        SqlStatement::Deallocate { name, .. } => {
            prepared.remove(&key(name.to_string()));
        }
        SqlStatement::Execute { name: Some(name), parameters, using, into, .. }
            if using.is_empty() && into.is_empty() =>
        {
            let name = name.to_string();
            if let Some((types, inner)) = prepared.get(&key(name.clone())) {
                let inner = bind_arguments(&name, types, inner.clone(), parameters)?;
                return Ok(Statement::Statement(Box::new(inner)));
            }
        }
        _ => {}
    }
    Ok(statement)
}

pub(super) fn prepares_without_types(statement: &Statement) -> bool {
    let Statement::Statement(inner) = statement else { return false };
    matches!(inner.as_ref(), SqlStatement::Prepare { data_types, .. } if data_types.is_empty())
}

/// Returns the number of a parameter such as `$2`, a break for a named parameter, and `None` for
/// any other expression.
fn parameter_of(expr: &SqlExpr) -> ControlFlow<(), Option<usize>> {
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

/// Returns the number of parameters, or `None` if some are not numbered.
fn count_parameters(statement: &SqlStatement) -> Option<usize> {
    let mut count = 0;
    let visited = visit_expressions(statement, |expr| {
        count = parameter_of(expr)?.map_or(count, |number| count.max(number));
        ControlFlow::Continue(())
    });
    visited.is_continue().then_some(count)
}

fn bind_arguments(
    name: &str,
    types: &[DataType],
    mut statement: SqlStatement,
    arguments: &[SqlExpr],
) -> Result<SqlStatement> {
    let count = count_parameters(&statement).unwrap_or_default();
    if count != arguments.len() {
        return plan_err!(
            "the prepared statement {name} has {count} parameters, but EXECUTE has {} arguments; give one argument per parameter",
            arguments.len()
        );
    }
    for argument in arguments {
        let visited = visit_expressions(argument, |expr| match expr {
            SqlExpr::Identifier(_)
            | SqlExpr::CompoundIdentifier(_)
            | SqlExpr::Subquery(_)
            | SqlExpr::Exists { .. }
            | SqlExpr::InSubquery { .. } => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        if visited.is_break() {
            return plan_err!(
                "EXECUTE {name}: the argument {argument} is not a constant; give a literal"
            );
        }
    }
    let _: ControlFlow<()> = visit_expressions_mut(&mut statement, |expr| {
        let number = parameter_of(expr)?;
        let at = number.and_then(|number| number.checked_sub(1));
        if let Some((at, argument)) = at.and_then(|at| Some((at, arguments.get(at)?))) {
            *expr = match types.get(at) {
                None => argument.clone(),
                Some(data_type) => SqlExpr::Cast {
                    kind: CastKind::Cast,
                    expr: Box::new(argument.clone()),
                    data_type: data_type.clone(),
                    array: false,
                    format: None,
                },
            };
        }
        ControlFlow::Continue(())
    });
    Ok(statement)
}

/// Plans the views in a statement anew, except those in `done`, so that the statement reads the current
/// tables.
///
/// # Errors
/// If the definition of a view cannot be planned, for example because a table was dropped.
pub(super) fn refresh_views<'a>(
    ctx: &'a SessionContext,
    state: &'a SessionState,
    statement: &'a Statement,
    done: &'a mut HashSet<String>,
) -> BoxFuture<'a, Result<()>> {
    // This function and `plan_here` call each other, so one of the two futures must be boxed.
    refresh_each(ctx, state, statement, done).boxed()
}

async fn refresh_each(
    ctx: &SessionContext,
    state: &SessionState,
    statement: &Statement,
    done: &mut HashSet<String>,
) -> Result<()> {
    let Some(kept) = KeptStatements::of_state(state) else { return Ok(()) };
    for reference in tables_of(state, statement)? {
        let Some(found) = find_view(state, &reference).await? else { continue };
        let Some(created) = kept.find_created(&found.definition) else { continue };
        let name = resolve_name(state, &reference).to_string();
        if !done.insert(name) || is_recursive(state, &kept, &reference).await? {
            continue;
        }
        let planned = plan_here(ctx, created, done).await.map_err(|e| {
            plan_datafusion_err!(
                "the view {reference} cannot be planned anew: {}; create its tables or the view again",
                e.strip_backtrace()
            )
        })?;
        if let (LogicalPlan::Ddl(DdlStatement::CreateView(view)), _) = planned {
            found.replace_plan(reference.table(), Arc::unwrap_or_clone(view.input))?;
        }
    }
    Ok(())
}

/// Returns the tables that a statement reads.
fn tables_of(state: &SessionState, statement: &Statement) -> Result<Vec<TableReference>> {
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

/// A view in the catalog.
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
        let rules = Analyzer::with_rules(vec![Arc::new(TypeCoercion::new())]);
        let plan = rules.execute_and_check(plan, &ConfigOptions::default(), |_, _| {})?;
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

/// Whether a view reads the view that it replaced, as in `CREATE OR REPLACE VIEW v AS SELECT x + 1 AS x FROM
/// v`. Such a view keeps its plan.
async fn is_recursive(
    state: &SessionState,
    kept: &KeptStatements,
    view: &TableReference,
) -> Result<bool> {
    let target = resolve_name(state, view);
    let mut seen = HashSet::new();
    let mut next = vec![view.clone()];
    while let Some(reference) = next.pop() {
        let Some(found) = find_view(state, &reference).await? else { continue };
        let Some(created) = kept.find_created(&found.definition) else { continue };
        for table in tables_of(state, &created)? {
            let resolved = resolve_name(state, &table);
            if resolved == target {
                return Ok(true);
            }
            if seen.insert(resolved.to_string()) {
                next.push(table);
            }
        }
    }
    Ok(false)
}

/// A view whose plan is replaced at each use.
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

#[async_trait]
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
        Some(Cow::Owned(self.current_view().logical_plan().clone()))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        self.current_view().supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.current_view().scan(state, projection, filters, limit).await
    }
}
