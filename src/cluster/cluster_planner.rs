//! [`ClusterPlanner`]: divides a physical plan among workers, or leaves it unchanged.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::exec_datafusion_err;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, ExecutionPlanProperties, ReplaceChildrenOptions,
};
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion_distributed::{DistributedExec, SessionStateBuilderExt};

use super::client::{Cluster, FIXED};
use super::cluster_exec::{ClusterExec, PlanAgain};
use super::nodes::{RowsInOrderExec, TaskMergeExec, TaskRowsExec, find_single_child};
use super::preflight::check_stages;
use super::settings::encode_settings;
use super::subqueries_first::{PlanPart, SubqueriesFirstExec};
use crate::sql::portable::{find_reason, plan_division, to_portable};
use crate::sql::{SourceOrderExec, in_source_order, remove_memory_nodes};

/// The names of all nodes that a divided plan may contain. A plan with any other node runs in the
/// session, because that node has not been tested on workers.
const KNOWN: [&str; 37] = [
    "AggregateExec",
    "AnalyzeExec",
    "BatchSizeExec",
    "BoundedWindowAggExec",
    "CoalesceBatchesExec",
    "CoalescePartitionsExec",
    "CooperativeExec",
    "CrossJoinExec",
    "DataSinkExec",
    "DataSourceExec",
    "DeepStackExec",
    "EmptyExec",
    "ExplodeExec",
    "FilterExec",
    "GlobalLimitExec",
    "HashJoinExec",
    "LocalLimitExec",
    "MergedOrderExec",
    "NestExec",
    "NestedLoopJoinExec",
    "OrderedSinkExec",
    "PacedExec",
    "PlaceholderRowExec",
    "PlainOrderExec",
    "ProjectionExec",
    "RepartitionExec",
    "SortExec",
    "SortMergeJoinExec",
    "SortPreservingMergeExec",
    "SortedExec",
    "SourceOrderExec",
    TABLE_ROWS,
    "UnionExec",
    "UnnestExec",
    "UnorderedExec",
    "WindowAggExec",
    "YieldingExec",
];

/// Nodes whose output has the same partitions as their input, with the rows of each partition in
/// the same order.
const IN_ORDER: [&str; 7] = [
    "BatchSizeExec",
    "CoalesceBatchesExec",
    "CooperativeExec",
    "DeepStackExec",
    "FilterExec",
    "ProjectionExec",
    "UnnestExec",
];

const STATEMENT: &str = "the statement";

/// The name of the node at the top of the plan of CREATE TABLE .. AS.
const TABLE_ROWS: &str = "TableRowsExec";

/// Nodes that write. If a worker is lost, a statement with such a node does not run again, because
/// it could write twice.
const WRITING: [&str; 2] = ["DataSinkExec", "OrderedSinkExec"];

/// Marks the configuration of a session (as an extension) while the session plans a statement.
/// Meanwhile, a table function such as `ragged_nest` may plan a query of its own. With this mark,
/// the inner query is not divided by itself: its plan becomes a part of the plan of the statement,
/// and the optimizer of the statement would change a divided plan. Later, the whole plan is
/// divided.
struct WithinStatement;

/// Plans a statement with the planner that the session had before, and then divides the plan among
/// workers, unless the division could change the answer.
#[derive(Clone)]
pub(super) struct ClusterPlanner {
    inner: Option<Arc<dyn QueryPlanner + Send + Sync>>,
    cluster: Cluster,
    /// The name of the planned query in notes that the user reads: `the statement`, or a part of
    /// the statement, such as a subquery.
    subject: &'static str,
}

impl ClusterPlanner {
    pub(super) fn new(
        inner: Option<Arc<dyn QueryPlanner + Send + Sync>>,
        cluster: Cluster,
    ) -> Self {
        Self { inner, cluster, subject: STATEMENT }
    }
}

impl fmt::Debug for ClusterPlanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterPlanner").finish_non_exhaustive()
    }
}

#[async_trait]
impl QueryPlanner for ClusterPlanner {
    async fn create_physical_plan(
        &self,
        logical_plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if session.config().get_extension::<WithinStatement>().is_some() {
            return self.plan_whole(logical_plan, session).await;
        }
        let plan = match session.as_any().downcast_ref::<SessionState>() {
            Some(state) => {
                let mut state = state.clone();
                state.config_mut().set_extension(Arc::new(WithinStatement));
                self.plan_whole(logical_plan, &state).await?
            }
            None => self.plan_whole(logical_plan, session).await?,
        };
        if let Some(first) = self.plan_subqueries_first(logical_plan, &plan, session) {
            return Ok(Arc::new(first));
        }
        Ok(match divide_or_explain(&plan, session, &self.cluster, self.subject).await {
            Some(divided) => {
                Arc::new(divided.repeat_with(plan_repeat(&plan, session, &self.cluster)))
            }
            None => plan,
        })
    }
}

impl ClusterPlanner {
    /// Plans a statement, or a query that is a part of it, without dividing it.
    async fn plan_whole(
        &self,
        logical_plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match &self.inner {
            Some(inner) => inner.create_physical_plan(logical_plan, session).await,
            None => {
                let planner = DefaultPhysicalPlanner::default();
                planner.create_physical_plan(logical_plan, session).await
            }
        }
    }

    /// Returns a node that runs the scalar subqueries of a statement first, if the rest of the
    /// statement can be divided. Returns `None` for all other statements. `plan` is the plan of the
    /// statement, not divided.
    ///
    /// Returns `None` also for three kinds of statements:
    /// * statements that write, because planning them twice would create the target twice;
    /// * statements in which several subqueries share rows (`SharedExec`), because each subquery
    ///   would compute its own rows;
    /// * statements with a scan that only the session can run: callers read the metrics of this
    ///   scan from `plan`, but a second plan, with the values of the subqueries, would run instead.
    fn plan_subqueries_first(
        &self,
        statement: &LogicalPlan,
        plan: &Arc<dyn ExecutionPlan>,
        session: &dyn Session,
    ) -> Option<SubqueriesFirstExec> {
        let main = Arc::clone(plan.downcast_ref::<ScalarSubqueryExec>()?.input());
        let main = &remove_memory_nodes(main).ok()?;
        let stays = |node: &Arc<dyn ExecutionPlan>| {
            WRITING.contains(&node.name()) || node.name() == "SharedExec"
        };
        let whole = plan.exists(|node| Ok(stays(node))).unwrap_or(true)
            || main.exists(|node| Ok(is_scan_of_session(node))).unwrap_or(true)
            || !matches!(find_division(main), Ok(true))
            || check_known(main).is_err()
            || check_fixed(session.config_options()).is_err();
        if whole {
            return None;
        }
        let session = Arc::new(session.as_any().downcast_ref::<SessionState>()?.clone());
        let planner = self.clone();
        let plan_part: PlanPart = Arc::new(move |subject: &'static str, part: LogicalPlan| {
            let (planner, session) = (Self { subject, ..planner.clone() }, Arc::clone(&session));
            Box::pin(async move {
                let plan = planner.create_physical_plan(&part, session.as_ref()).await?;
                Ok(merge_partitions(plan))
            })
        });
        let input = match keeps_order(main) {
            true => Arc::new(SourceOrderExec::new(Arc::clone(plan), None)),
            false => merge_partitions(Arc::clone(plan)),
        };
        let statement = Arc::new(statement.clone());
        Some(SubqueriesFirstExec::new(input, statement, plan_part, self.cluster.clone()))
    }
}

/// Whether a node is a scan that only the session can run. False for a scan of a table in memory,
/// because the session can send such a table to workers.
fn is_scan_of_session(node: &Arc<dyn ExecutionPlan>) -> bool {
    let scan = node.downcast_ref::<DataSourceExec>();
    scan.is_some_and(|scan| !scan.data_source().is::<MemorySourceConfig>())
        && to_portable(node).is_err()
}

/// Merges the partitions of a plan into one. If the plan only scans files, or creates a table, its
/// rows then have the order of the partitions. Otherwise, they have any order.
fn merge_partitions(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match plan.output_partitioning().partition_count() {
        1 => plan,
        _ if keeps_order(&plan) => Arc::new(SourceOrderExec::new(plan, None)),
        _ => Arc::new(CoalescePartitionsExec::new(plan)),
    }
}

/// Whether the rows of a statement have the order of the partitions of its plan.
fn keeps_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.name() == TABLE_ROWS || is_chain_of_scan(plan)
}

/// Returns a function that plans the statement again after a worker is lost: for the remaining
/// workers, or for the session if they cannot run the statement. Returns `None` for statements that
/// write.
fn plan_repeat(
    plan: &Arc<dyn ExecutionPlan>,
    session: &dyn Session,
    cluster: &Cluster,
) -> Option<PlanAgain> {
    let writes = |node: &Arc<dyn ExecutionPlan>| WRITING.contains(&node.name());
    if plan.exists(|node| Ok(writes(node))).unwrap_or(true) {
        return None;
    }
    let session = Arc::new(session.as_any().downcast_ref::<SessionState>()?.clone());
    let (plan, cluster) = (Arc::clone(plan), cluster.clone());
    Some(Arc::new(move || {
        let (plan, session, cluster) = (Arc::clone(&plan), Arc::clone(&session), cluster.clone());
        Box::pin(async move {
            let plan = reset_plan_states(plan)?;
            let divided = divide_or_explain(&plan, session.as_ref(), &cluster, STATEMENT).await;
            Ok(merge_partitions(match divided {
                Some(divided) => Arc::new(divided),
                None => plan,
            }))
        })
    }))
}

/// Returns the divided plan, or `None` if the plan has no scan that can be divided. Also returns
/// `None` if the session must run the plan without workers, and then adds a note with the reason,
/// in which `subject` names the plan.
async fn divide_or_explain(
    plan: &Arc<dyn ExecutionPlan>,
    session: &dyn Session,
    cluster: &Cluster,
    subject: &str,
) -> Option<ClusterExec> {
    match divide_plan(plan, session, cluster).await {
        Ok(divided) => divided,
        Err(reason) => {
            cluster.add_note(format!("{subject} runs here, not on workers: {reason}"));
            None
        }
    }
}

/// Returns a node that runs `plan` divided among workers, or `None` if the plan has no scan that
/// can be divided. The error is the reason why the session must run the plan without workers.
async fn divide_plan(
    plan: &Arc<dyn ExecutionPlan>,
    session: &dyn Session,
    cluster: &Cluster,
) -> std::result::Result<Option<ClusterExec>, String> {
    let plan = remove_memory_nodes(Arc::clone(plan)).map_err(|e| e.strip_backtrace())?;
    let plan = &plan;
    if !find_division(plan)? {
        return Ok(None);
    }
    cluster.refresh_health().await;
    let faults = cluster.list_faults();
    match cluster.count_alive() {
        0 => return Err(faults.join(", ")),
        _ if faults.is_empty() => {}
        1 => {
            cluster.add_note(format!("{}; the other worker runs the statement", faults.join(", ")))
        }
        alive => {
            cluster.add_note(format!("{}; the other {alive} run the statement", faults.join(", ")))
        }
    }
    check_known(plan)?;
    check_table_order(plan)?;
    check_fixed(session.config_options())?;
    let settings = encode_settings(session.config_options()).map_err(|e| e.strip_backtrace())?;
    let divided = async {
        let marked = mark_order(collect_in_order(plan)?)?;
        cut_plan(marked, session).await
    };
    let divided = divided.await.map_err(|e| e.strip_backtrace())?;
    if !contains_distributed(&divided) {
        return Ok(None);
    }
    check_stages(&divided, session)?;
    Ok(Some(ClusterExec::new(divided, settings, cluster.clone())))
}

/// Returns whether `plan` has a scan that can be divided among workers. If it has none, but has a
/// scan of several partitions that cannot be divided, the error is the reason.
fn find_division(plan: &Arc<dyn ExecutionPlan>) -> std::result::Result<bool, String> {
    let (mut found, mut reason) = (false, None);
    let mut open = vec![plan];
    while let Some(node) = open.pop() {
        let children = node.children();
        if children.is_empty() {
            match plan_division(node) {
                Ok(Some(_)) => found = true,
                Ok(None) => {}
                Err(e) => reason = Some(e),
            }
        }
        open.extend(children);
    }
    match reason {
        Some(reason) if !found => Err(reason),
        _ => Ok(found),
    }
}

/// Returns an error if a setting in [`FIXED`] has another value, because a statement changed it.
fn check_fixed(options: &ConfigOptions) -> std::result::Result<(), String> {
    let entries = options.entries();
    let changed = FIXED.iter().find(|(name, value)| {
        // datafusion-distributed lists its settings without the prefix `distributed.`.
        let short = name.strip_prefix("distributed.").unwrap_or(name);
        let now = entries.iter().find(|entry| entry.key == *name || entry.key == short);
        now.is_some_and(|entry| entry.value.as_deref() != Some(*value))
    });
    match changed {
        None => Ok(()),
        Some((name, value)) => Err(format!(
            "workers require the setting {name} to be {value}; set it to {value} again"
        )),
    }
}

fn check_known(plan: &Arc<dyn ExecutionPlan>) -> std::result::Result<(), String> {
    let mut open = vec![plan];
    while let Some(node) = open.pop() {
        // Removes details in parentheses, such as `(TopK)` of `SortExec(TopK)`.
        let name = node.name().split('(').next().unwrap_or_default();
        if !KNOWN.contains(&name) {
            return Err(match name {
                "ScalarSubqueryExec" => {
                    "a statement with scalar subqueries is divided only if it does not write, and if its main query can be divided".into()
                }
                "RecursiveQueryExec" | "WorkTableExec" => "WITH RECURSIVE runs in the session".into(),
                name => find_reason(name),
            });
        }
        open.extend(node.children());
    }
    Ok(())
}

/// Returns an error if CREATE TABLE .. AS keeps the source order of rows that only the session can
/// put in this order, such as those of UNION ALL.
fn check_table_order(plan: &Arc<dyn ExecutionPlan>) -> std::result::Result<(), String> {
    let [rows] = plan.children()[..] else { return Ok(()) };
    let is_kept = plan.name() == TABLE_ROWS
        && rows.output_partitioning().partition_count() > 1
        && !is_chain_of_scan(rows)
        && in_source_order(rows).is_ok();
    match is_kept {
        false => Ok(()),
        true => {
            Err("only the session can create a table in the order of several scans, or of a join"
                .into())
        }
    }
}

/// Merges the partitions of a plan into one, because [`DistributedExec`] executes only the first.
///
/// A plan that only scans files then returns its rows in the order of the files, as without
/// workers, where a session reads the partitions one by one. The planner of datafusion-distributed
/// merges the partitions of a plan, too, but not if the plan already has boundaries between stages,
/// such as [`RowsInOrderExec`].
///
/// The rows of CREATE TABLE .. AS are merged below the node [`TABLE_ROWS`], which only the session
/// can run.
fn collect_in_order(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if plan.output_partitioning().partition_count() < 2 {
        return Ok(Arc::clone(plan));
    }
    if plan.name() == TABLE_ROWS {
        let rows = collect_in_order(&find_single_child(plan)?)?;
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        return Arc::clone(plan).replace_children(vec![rows], options);
    }
    if !is_chain_of_scan(plan) {
        return Ok(Arc::new(CoalescePartitionsExec::new(Arc::clone(plan))));
    }
    let each = Arc::new(TaskRowsExec::new(Arc::clone(plan), None));
    Ok(Arc::new(RowsInOrderExec::collect_partitions(each, None)))
}

/// Finds each node that combines the partitions of all tasks in order: a merge of sorted
/// partitions, or a [`SourceOrderExec`] over a scan. Below each of these nodes, inserts a node that
/// combines the partitions of one task in the same order, because a connection carries only one
/// partition.
fn mark_order(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        if let Some(merge) = node.downcast_ref::<SortPreservingMergeExec>()
            && merge.input().output_partitioning().partition_count() > 1
        {
            let (order, input) = (merge.expr().clone(), Arc::clone(merge.input()));
            let each = Arc::new(TaskMergeExec::new(order.clone(), input, merge.fetch()));
            let all = SortPreservingMergeExec::new(order, each).with_fetch(merge.fetch());
            return Ok(Transformed::yes(Arc::new(all) as Arc<dyn ExecutionPlan>));
        }
        if let Some(order) = node.downcast_ref::<SourceOrderExec>()
            && let [input] = node.children()[..]
            && is_chain_of_scan(input)
        {
            let each = Arc::new(TaskRowsExec::new(Arc::clone(input), order.fetch()));
            let all = RowsInOrderExec::collect_partitions(each, order.fetch());
            return Ok(Transformed::yes(Arc::new(all) as Arc<dyn ExecutionPlan>));
        }
        Ok(Transformed::no(node))
    })?;
    Ok(plan.data)
}

/// Whether a plan is a scan that can be divided, alone or below nodes that keep its partitions and
/// their order ([`IN_ORDER`]).
fn is_chain_of_scan(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let mut node = plan;
    loop {
        match node.children()[..] {
            [] => return matches!(plan_division(node), Ok(Some(_))),
            [child] if IN_ORDER.contains(&node.name()) => node = child,
            _ => return false,
        }
    }
}

/// Returns `plan` as the planner of datafusion-distributed divides it into tasks for workers.
async fn cut_plan(
    plan: Arc<dyn ExecutionPlan>,
    session: &dyn Session,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut builder = SessionStateBuilder::new()
        .with_query_planner(Arc::new(GivenPlan(plan)))
        .with_distributed_planner();
    let Some(planner) = builder.query_planner().take() else {
        return Err(exec_datafusion_err!(
            "internal error: there is no planner for workers; please report it"
        ));
    };
    let any = LogicalPlanBuilder::empty(false).build()?;
    planner.create_physical_plan(&any, session).await
}

/// A query planner that returns the given physical plan for every logical plan.
#[derive(Debug)]
struct GivenPlan(Arc<dyn ExecutionPlan>);

#[async_trait]
impl QueryPlanner for GivenPlan {
    async fn create_physical_plan(
        &self,
        _logical_plan: &LogicalPlan,
        _session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::clone(&self.0))
    }
}

fn contains_distributed(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.exists(|node| Ok(node.is::<DistributedExec>())).unwrap_or(false)
}
