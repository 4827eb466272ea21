//! [`SharedRows`]: a part of a plan that is computed once although the plan contains it several times.
//!
//! DataFusion 55 copies the plan of a CTE to each reference to the CTE, and Serrate copies the rows
//! of the outer query for each correlated subquery. If the rows may differ from run to run, as
//! those of `random()` and `LIMIT` over groups do, the copies have different rows.
//! `stock_ctes_are_still_computed_twice` in `tests/sql/shared_rows.rs` fails once DataFusion
//! computes such a CTE once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Weak};

use arrow::datatypes::DataType;
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef, TableReference, not_impl_err};
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Distinct, Expr, Extension, FetchType, LogicalPlan, SkipType, SubqueryAlias, Window,
    WindowFrameUnits, WindowFunctionDefinition,
};
use serrate_core::internal::lock_mutex;

use crate::functions::find_aggregate_facts;
use crate::sql::base::expression_parts::has_part;
use crate::sql::base::outer_columns::find_outer_columns;
use crate::sql::base::subquery_parts::has_one_row;
use crate::sql::exec::shared::{SharedResult, SharedRows};
use crate::sql::workarounds::joins_and_unions::multisets::numbers_copies;
use crate::sql::workarounds::subqueries::only_row::is_only_row;

static IDS: AtomicU64 = AtomicU64::new(0);

/// Returns a plan whose copies all have the same rows: the plan itself, or a [`SharedRows`] of it.
/// Returns `None` if the rows depend on an outer query or on a step of a recursive query.
pub(in crate::sql) fn share_rows(plan: &Arc<LogicalPlan>) -> Result<Option<Arc<LogicalPlan>>> {
    if is_determined(plan)? {
        return Ok(Some(Arc::clone(plan)));
    }
    if !is_independent(plan)? {
        return Ok(None);
    }
    let id = IDS.fetch_add(1, Atomic::Relaxed);
    Ok(Some(Arc::new(SharedRows::plan(plan.as_ref().clone(), id))))
}

/// Makes all references to a CTE share its rows if its rows may differ from run to run.
pub(in crate::sql) fn share_ctes(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    // Only a session of Serrate can plan a `SharedRows` node.
    if !state.analyzer().rules.iter().any(|rule| rule.name() == SHARED_ONCE) {
        return Ok(plan);
    }
    // `ctes` has clones of the aliases. Their schemas stay in memory, so no new schema gets the
    // address of an old one while the plan changes.
    let ctes = find_ctes(&plan)?;
    let mut shared: HashMap<AliasId, (u64, Arc<LogicalPlan>)> = HashMap::new();
    for (alias, copies) in &ctes {
        if copies.must_share()? {
            let id = IDS.fetch_add(1, Atomic::Relaxed);
            shared.insert(*alias, (id, Arc::clone(&copies.first.input)));
        }
    }
    if shared.is_empty() {
        return Ok(plan);
    }
    let plan = plan.transform_down_with_subqueries(|node| {
        let LogicalPlan::SubqueryAlias(alias) = &node else { return Ok(Transformed::no(node)) };
        let Some((id, input)) = shared.get(&AliasId::find_original(alias)) else {
            return Ok(Transformed::no(node));
        };
        let input = SharedRows::plan(input.as_ref().clone(), *id);
        let alias = SubqueryAlias::try_new(Arc::new(input), alias.alias.clone())?;
        Ok(Transformed::yes(LogicalPlan::SubqueryAlias(alias)))
    })?;
    Ok(plan.data)
}

/// Finds the copies of each table alias; a CTE is an alias, too. Searches only the first copy of an
/// alias for further aliases.
fn find_ctes(plan: &LogicalPlan) -> Result<HashMap<AliasId, CteCopies>> {
    let mut ctes: HashMap<AliasId, CteCopies> = HashMap::new();
    plan.apply_with_subqueries(|node| {
        let LogicalPlan::SubqueryAlias(alias) = node else {
            return Ok(TreeNodeRecursion::Continue);
        };
        match ctes.get_mut(&AliasId::find_original(alias)) {
            Some(copies) => {
                copies.places += 1;
                copies.equal &= is_same_cte(&copies.first, alias);
                Ok(TreeNodeRecursion::Jump)
            }
            None => {
                let copies = CteCopies { first: alias.clone(), places: 1, equal: true };
                ctes.insert(AliasId::find_original(alias), copies);
                Ok(TreeNodeRecursion::Continue)
            }
        }
    })?;
    Ok(ctes)
}

/// Returns a copy of the plan of a view for one reference to the view. Nodes of the plan that share
/// rows also share rows in the copy, but not with other copies.
pub(in crate::sql) fn copy_shared_rows(plan: LogicalPlan) -> Result<LogicalPlan> {
    // For each alias, its schema and the schema of its copy. The map keeps the first schema in
    // memory, so that its address stays unique.
    let mut schemas: HashMap<AliasId, (DFSchemaRef, DFSchemaRef)> = HashMap::new();
    let mut ids: HashMap<u64, u64> = HashMap::new();
    let plan = plan.transform_down_with_subqueries(|node| {
        if let Some(shared) = SharedRows::from_plan(&node) {
            let id = *ids.entry(shared.id).or_insert_with(|| IDS.fetch_add(1, Atomic::Relaxed));
            return Ok(Transformed::yes(SharedRows::plan(shared.input.clone(), id)));
        }
        let LogicalPlan::SubqueryAlias(mut alias) = node else { return Ok(Transformed::no(node)) };
        let (_, own) = schemas.entry(AliasId::from_alias(&alias)).or_insert_with(|| {
            (Arc::clone(&alias.schema), Arc::new(alias.schema.as_ref().clone()))
        });
        alias.schema = Arc::clone(own);
        Ok(Transformed::yes(LogicalPlan::SubqueryAlias(alias)))
    })?;
    Ok(plan.data)
}

/// The copies of one CTE in a plan: the first copy, their number, and whether all copies have the
/// same rows and columns as the first.
struct CteCopies {
    first: SubqueryAlias,
    places: usize,
    equal: bool,
}

impl CteCopies {
    /// Whether the rows of the copies could differ from copy to copy, and can be computed once,
    /// because they depend on no query around the CTE.
    fn must_share(&self) -> Result<bool> {
        let input = &self.first.input;
        Ok(self.places > 1 && self.equal && !is_determined(input)? && is_independent(input)?)
    }
}

/// Whether two copies of a CTE have the same rows and columns. Either copy may have been rewritten.
fn is_same_cte(a: &SubqueryAlias, b: &SubqueryAlias) -> bool {
    if Arc::ptr_eq(&a.schema, &b.schema) {
        return Arc::ptr_eq(&a.input, &b.input) || a.input == b.input;
    }
    // A rewrite does not change the rows, but may insert casts, so only the names and types of
    // columns are compared.
    list_alias_columns(a).eq(list_alias_columns(b))
}

fn list_alias_columns(alias: &SubqueryAlias) -> impl Iterator<Item = (&String, &DataType)> {
    alias.schema.fields().iter().map(|field| (field.name(), field.data_type()))
}

/// The identity of an alias in a plan: the address of its schema.
///
/// DataFusion clones the plan of a CTE for each reference to it, as for `w` in
/// `WITH w AS (SELECT random() AS r) SELECT * FROM w a, w b`, and a clone shares the `Arc` of the
/// schema. So aliases of equal address are copies of one CTE, but only while the schema is in
/// memory: the next schema may get the address of one that is dropped. Each map with such keys
/// therefore has references to the schemas.
///
/// If a rewrite during planning changes the input of an alias, each copy gets a schema of its own.
/// [`REWRITTEN`] has the schema that such an alias had before.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct AliasId(usize);

impl AliasId {
    fn from_alias(alias: &SubqueryAlias) -> Self {
        Self(Arc::as_ptr(&alias.schema).addr())
    }

    fn from_schema(schema: &Weak<DFSchema>) -> Self {
        Self(schema.as_ptr().addr())
    }

    /// Returns the identity that an alias had before a rewrite changed its input, or its current
    /// identity if no rewrite has changed it.
    fn find_original(alias: &SubqueryAlias) -> Self {
        Self::from_schema(&find_original_schema(alias))
    }
}

fn find_original_schema(alias: &SubqueryAlias) -> Weak<DFSchema> {
    lock_rewritten()
        .get(&AliasId::from_alias(alias))
        .map_or_else(|| Arc::downgrade(&alias.schema), |found| Weak::clone(&found.original))
}

/// The schema of a rewritten alias, and the schema that the alias had before. Weak references keep
/// the memory of the schemas allocated, so no other schema gets one of the two addresses.
struct RewrittenAlias {
    schema: Weak<DFSchema>,
    original: Weak<DFSchema>,
}

/// The rewritten aliases of the plans in memory.
static REWRITTEN: LazyLock<Mutex<HashMap<AliasId, RewrittenAlias>>> = LazyLock::new(Mutex::default);

fn lock_rewritten() -> MutexGuard<'static, HashMap<AliasId, RewrittenAlias>> {
    lock_mutex(&REWRITTEN)
}

/// Records for each alias of `plan` which alias it was in `before`, the plan before a rewrite, so
/// that [`share_ctes`] recognizes the copies of a CTE although rewriting gives each copy a schema
/// `Arc` of its own.
///
/// An alias is recognized by its name, and ignored if several aliases of `before` have this name.
pub(in crate::sql) fn keep_copies(before: &LogicalPlan, plan: &LogicalPlan) -> Result<()> {
    if is_determined(before)? {
        return Ok(());
    }
    let mut originals: HashMap<AliasName, Option<Weak<DFSchema>>> = HashMap::new();
    before.apply_with_subqueries(|node| {
        if let LogicalPlan::SubqueryAlias(alias) = node {
            let schema = find_original_schema(alias);
            let named = originals
                .entry(read_alias_name(alias))
                .or_insert_with(|| Some(Weak::clone(&schema)));
            if named.as_ref().is_some_and(|other| !Weak::ptr_eq(other, &schema)) {
                *named = None;
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut rewritten = lock_rewritten();
    rewritten.retain(|_, alias| alias.schema.strong_count() > 0);
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::SubqueryAlias(alias) = node
            && let Some(Some(original)) = originals.get(&read_alias_name(alias))
            && AliasId::from_alias(alias) != AliasId::from_schema(original)
        {
            let (schema, original) = (Arc::downgrade(&alias.schema), Weak::clone(original));
            rewritten.insert(AliasId::from_alias(alias), RewrittenAlias { schema, original });
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// The name of an alias, and of the alias directly below it: `FROM w AS w` has an alias of the
/// alias of a CTE.
type AliasName = (TableReference, Option<TableReference>);

fn read_alias_name(alias: &SubqueryAlias) -> AliasName {
    let below = match alias.input.as_ref() {
        LogicalPlan::SubqueryAlias(below) => Some(below.alias.clone()),
        _ => None,
    };
    (alias.alias.clone(), below)
}

/// Name of the rule [`share_results`].
pub(in crate::sql) const SHARED_ONCE: &str = "serrate_shared_once";

/// `WITH x AS (SELECT random() AS r) SELECT count(*) FROM x p, x q WHERE p.r = q.r` returns 0
/// without this rule and [`share_ctes`].
///
/// Analyzer rule, after all rules that create [`SharedRows`]: makes nodes with the same `id` share
/// one result, and replaces a node by its input if no other node has its `id`.
pub(in crate::sql) fn share_results(plan: LogicalPlan) -> Result<LogicalPlan> {
    refuse_repeated_steps(&plan)?;
    let mut uses: HashMap<u64, usize> = HashMap::new();
    plan.apply_with_subqueries(|node| {
        if let Some(shared) = SharedRows::from_plan(node) {
            *uses.entry(shared.id).or_default() += 1;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if uses.is_empty() {
        return Ok(plan);
    }
    let mut results: HashMap<u64, Arc<SharedResult>> = HashMap::new();
    let plan = plan.transform_down_with_subqueries(|mut node| {
        let mut changed = false;
        while let Some(shared) = SharedRows::from_plan(&node) {
            changed = true;
            if uses.get(&shared.id) == Some(&1) {
                node = shared.input.clone();
                continue;
            }
            let result = results.entry(shared.id).or_default();
            let shared = SharedRows { result: Some(Arc::clone(result)), ..shared.clone() };
            node = LogicalPlan::Extension(Extension { node: Arc::new(shared) });
            break;
        }
        Ok(Transformed::new_transformed(node, changed))
    })?;
    Ok(plan.data)
}

/// Returns an error for a recursive query whose recursive part scans the rows of the previous step
/// more than once, as by a self-join or a correlated subquery. DataFusion passes these rows to only
/// one scan.
fn refuse_repeated_steps(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        let LogicalPlan::RecursiveQuery(query) = node else {
            return Ok(TreeNodeRecursion::Continue);
        };
        let name = &query.name;
        let mut places = 0usize;
        query.recursive_term.apply(|node| {
            places += usize::from(reads_step(node).as_ref() == Some(name));
            Ok(match node {
                // Skips an inner recursive query of the same name: scans in it read the rows of the
                // inner query.
                LogicalPlan::RecursiveQuery(inner) if inner.name == *name => {
                    TreeNodeRecursion::Jump
                }
                _ => TreeNodeRecursion::Continue,
            })
        })?;
        match places > 1 {
            true => not_impl_err!(
                "the recursive part of {name} reads {name} more than once, in FROM or for a correlated subquery, which is not supported; read {name} once, and write the subquery as a join, as in SELECT min(u.a) FROM {name} JOIN u ON u.a > {name}.n GROUP BY {name}.n"
            ),
            false => Ok(TreeNodeRecursion::Continue),
        }
    })?;
    Ok(())
}

/// If a node scans the rows of the previous step of a recursive query, returns the name of this
/// query. Otherwise, returns `None`.
fn reads_step(node: &LogicalPlan) -> Option<String> {
    let LogicalPlan::TableScan(scan) = node else { return None };
    let table = source_as_provider(&scan.source).ok()?;
    table.downcast_ref::<CteWorkTable>().map(|step| step.name().to_owned())
}

/// Whether a plan depends neither on an outer query nor on a step of a recursive query.
fn is_independent(plan: &LogicalPlan) -> Result<bool> {
    if !find_outer_columns(plan)?.is_empty() {
        return Ok(false);
    }
    let mut steps = Vec::new();
    let mut queries = Vec::new();
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::RecursiveQuery(query) => queries.push(query.name.clone()),
            node => steps.extend(reads_step(node)),
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(steps.iter().all(|step| queries.contains(step)))
}

/// Whether a plan calls volatile functions outside [`SharedRows`], so that its copies may differ.
pub(in crate::sql) fn is_volatile(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        if SharedRows::from_plan(node).is_some() {
            return Ok(TreeNodeRecursion::Jump);
        }
        found |= is_volatile_node(node);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

fn is_volatile_node(node: &LogicalPlan) -> bool {
    has_part(node, |e| e.is_volatile_node() && !is_only_row(e))
}

/// Whether each run of a plan returns the same rows, in any order.
fn is_determined(plan: &LogicalPlan) -> Result<bool> {
    let mut found = true;
    plan.apply_with_subqueries(|node| {
        if SharedRows::from_plan(node).is_some() {
            return Ok(TreeNodeRecursion::Jump);
        }
        found = found && is_determined_node(node)?;
        Ok(if found { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(found)
}

fn is_determined_node(node: &LogicalPlan) -> Result<bool> {
    if is_volatile_node(node) {
        return Ok(false);
    }
    Ok(match node {
        LogicalPlan::Limit(limit) => {
            let skipped = !matches!(limit.get_skip_type()?, SkipType::Literal(0));
            let fetched = !matches!(limit.get_fetch_type()?, FetchType::Literal(None | Some(0)));
            !(skipped || fetched) || has_one_row(&limit.input) || is_scan(&limit.input)
        }
        LogicalPlan::Sort(sort) => sort.fetch.is_none(),
        LogicalPlan::Distinct(Distinct::On(_)) => false,
        LogicalPlan::Window(window) => is_determined_window(window)?,
        LogicalPlan::Aggregate(aggregate) => {
            let mut found = true;
            for e in &aggregate.aggr_expr {
                found = found
                    && !e.exists(|e| {
                        let Expr::AggregateFunction(call) = e else { return Ok(false) };
                        Ok(depends_on_order(call.func.name()))
                    })?;
            }
            found
        }
        _ => true,
    })
}

fn depends_on_order(aggregate: &str) -> bool {
    find_aggregate_facts(aggregate).any_row || aggregate.starts_with("approx_")
}

/// Whether a plan returns the rows of a table, or some of them, in the order of the table, so that
/// a LIMIT above it returns the same rows in each run.
fn is_scan(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(node) => is_scan(&node.input),
        LogicalPlan::SubqueryAlias(node) => is_scan(&node.input),
        LogicalPlan::Filter(node) => is_scan(&node.input),
        LogicalPlan::Limit(node) => is_scan(&node.input),
        LogicalPlan::TableScan(_) | LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => true,
        _ => false,
    }
}

/// Whether a window node returns the same rows in each run: each call has one value for all rows
/// that are equal in ORDER BY, or the node numbers equal rows for a set operation.
fn is_determined_window(node: &Window) -> Result<bool> {
    if numbers_copies(node) {
        return Ok(true);
    }
    let mut found = true;
    for e in &node.window_expr {
        found = found
            && !e.exists(|e| {
                let Expr::WindowFunction(call) = e else { return Ok(false) };
                Ok(!is_determined_call(call))
            })?;
    }
    Ok(found)
}

fn is_determined_call(call: &WindowFunction) -> bool {
    let frame = &call.params.window_frame;
    match &call.fun {
        WindowFunctionDefinition::WindowUDF(fun) => {
            ["rank", "dense_rank", "percent_rank", "cume_dist"].contains(&fun.name())
        }
        WindowFunctionDefinition::AggregateUDF(fun) => {
            let whole = frame.start_bound.is_unbounded() && frame.end_bound.is_unbounded();
            !depends_on_order(fun.name()) && (whole || frame.units != WindowFrameUnits::Rows)
        }
    }
}
