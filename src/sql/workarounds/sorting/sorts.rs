//! Works around row orders that DataFusion derives wrongly or cannot use.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, PhysicalGroupBy};
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, InputOrderMode, PlanProperties,
};

use crate::functions::find_element_field;
use crate::sql::base::plan_nodes::replace_inputs;
use crate::sql::exec::{display_name, one_input, pass_filters, same_rows, same_statistics};

/// `SELECT id, k FROM (SELECT id, 1 AS k FROM t WHERE id = 3 UNION ALL SELECT id, id AS k FROM t
/// WHERE id < 3) ORDER BY k` fails without this rule.
///
/// Physical optimizer rule, before plans are checked: adds the required sorts that are missing.
///
/// Below UNION ALL, DataFusion sorts one input by a column that equals the key, and another input
/// by a constant column. It then cannot derive an order for the union, so the statement fails in
/// `SanityCheckPlan`. This workaround is obsolete once the test
/// `stock_unions_with_a_constant_still_fail` fails.
///
/// The rule also adds the missing keys of a merge to a sort with a limit below the merge.
/// DataFusion omits keys of the sort that are constant in each input of UNION ALL. The sort then
/// drops rows that differ from the last rows of another input only in these keys. This workaround
/// is obsolete once `stock_limits_over_unions_still_drop_rows` fails.
pub(in crate::sql) fn add_missing_sorts(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    Ok(plan.transform_up(add_sorts)?.data)
}

fn add_sorts(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let mut changed = false;
    let mut inputs = Vec::new();
    for (input, required) in node.children().into_iter().zip(node.required_input_ordering()) {
        let mut input = Arc::clone(input);
        if let Some(sort) = sort_by_all_keys(&node, &input) {
            (input, changed) = (sort, true);
        }
        if let Some(required) = required {
            let required = required.into_single();
            let properties = input.equivalence_properties();
            if !properties.ordering_satisfy_requirement(required.clone())? {
                let several = input.output_partitioning().partition_count() > 1;
                let sort = SortExec::new(LexOrdering::from(required), input);
                input = Arc::new(sort.with_preserve_partitioning(several));
                changed = true;
            }
        }
        inputs.push(input);
    }
    match changed {
        true => replace_inputs(node, inputs).map(Transformed::yes),
        false => Ok(Transformed::no(node)),
    }
}

/// If `node` is a merge, and its input `input` a sort with a limit by fewer keys, returns this sort
/// with all keys of the merge. Otherwise, returns `None`.
fn sort_by_all_keys(
    node: &Arc<dyn ExecutionPlan>,
    input: &Arc<dyn ExecutionPlan>,
) -> Option<Arc<dyn ExecutionPlan>> {
    let merge = node.downcast_ref::<SortPreservingMergeExec>()?;
    let sort = input.downcast_ref::<SortExec>()?;
    if sort.fetch().is_none() || sort.expr() == merge.expr() {
        return None;
    }
    let whole = SortExec::new(merge.expr().clone(), Arc::clone(sort.input()))
        .with_fetch(sort.fetch())
        .with_preserve_partitioning(sort.preserve_partitioning());
    Some(Arc::new(whole))
}

/// `SELECT DISTINCT id AS a, [[1]] AS c FROM t` fails without this rule if `t` has several batches.
///
/// Physical optimizer rule, before [`add_missing_sorts`]: hides the order of the input from an
/// aggregation whose group keys have a type without scalar comparison.
///
/// If some keys are ordered, for example constant, the aggregation compares them with the keys of
/// the previous row as scalars, and fails with "Uncomparable values" for lists of lists. This
/// workaround is obsolete once the test `stock_distinct_of_constant_lists_still_fails` fails.
pub(in crate::sql) fn hide_unordered_keys(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let Some(aggregate) = node.downcast_ref::<AggregateExec>() else {
            return Ok(Transformed::no(node));
        };
        let InputOrderMode::PartiallySorted(ordered) = aggregate.input_order_mode() else {
            return Ok(Transformed::no(node));
        };
        let schema = node.schema();
        let compared = ordered.iter().all(|at| {
            schema.fields().get(*at).is_some_and(|field| has_comparison(field.data_type()))
        });
        if compared {
            return Ok(Transformed::no(node));
        }
        let input = Arc::new(UnorderedExec::new(Arc::clone(aggregate.input())));
        replace_inputs(node, vec![input]).map(Transformed::yes)
    })?;
    Ok(plan.data)
}

/// The result of `SELECT k, count(*) FROM (SELECT 'a' AS k FROM t) GROUP BY ROLLUP (k) ORDER BY k
/// NULLS FIRST` is not sorted without this rule.
///
/// Physical optimizer rule, before the rules for joins and sorts: hides from outer joins, GROUPING
/// SETS, ROLLUP and CUBE which columns of their input are constant or equal.
///
/// A column that is constant (`WHERE k = 1`) or equal to another below such a node is NULL above
/// the node in unmatched rows of the join and in grouping sets without the column. DataFusion still
/// treats the column as constant: it drops `ORDER BY k`, and an aggregation that relies on input
/// grouped by `k` returns a group several times. This workaround is obsolete once the test
/// `stock_constants_are_still_kept_where_they_are_null` fails.
///
/// Two kinds of constants need more. An aggregation itself reports a literal key of grouping sets
/// as constant, so the rule moves such keys to a projection below the aggregation. An input with an
/// aggregation without keys is always hidden, because DataFusion may later replace the one row of
/// this aggregation with literals from statistics.
///
/// The rule also runs after conditions are pushed into scans, which makes more columns constant: if
/// a condition is a computed column, as in `WHERE c` over `SELECT k = 1 AS c`, the plan shows that
/// `k` is constant only after the condition `k = 1` has moved below this SELECT.
pub(in crate::sql) fn hide_lost_constants(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        if let Some(aggregate) = node.downcast_ref::<AggregateExec>()
            && let Some(aggregate) = move_literal_keys_below(aggregate)?
        {
            return Ok(Transformed::yes(aggregate));
        }
        let is_null_somewhere = list_inputs_with_null_rows(&node);
        let mut changed = false;
        let inputs = node
            .children()
            .into_iter()
            .enumerate()
            .map(|(at, input)| {
                let known = input.equivalence_properties();
                let is_plain = known.eq_group().is_empty() && known.oeq_class().is_empty();
                let hides = is_null_somewhere.contains(&at)
                    && !input.is::<UnorderedExec>()
                    && (!is_plain || has_single_row_aggregate(input)?);
                if !hides {
                    return Ok(Arc::clone(input));
                }
                changed = true;
                Ok(Arc::new(UnorderedExec::new(Arc::clone(input))) as Arc<dyn ExecutionPlan>)
            })
            .collect::<Result<_>>()?;
        match changed {
            true => replace_inputs(node, inputs).map(Transformed::yes),
            false => Ok(Transformed::no(node)),
        }
    })?;
    Ok(plan.data)
}

/// If an aggregation with grouping sets has constant keys, computes these keys in a projection
/// below the aggregation, and hides the order and the constant columns of this projection.
/// Otherwise returns `None`.
fn move_literal_keys_below(aggregate: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let group_by = aggregate.group_expr();
    let is_literal = |key: &Arc<dyn PhysicalExpr>| collect_columns(key).is_empty();
    if group_by.is_single() || !group_by.expr().iter().any(|(key, _)| is_literal(key)) {
        return Ok(None);
    }
    let input = aggregate.input();
    let fields = input.schema();
    let mut computed: Vec<ProjectionExpr> = fields
        .fields()
        .iter()
        .enumerate()
        .map(|(at, field)| {
            ProjectionExpr::new(Arc::new(Column::new(field.name(), at)), field.name().clone())
        })
        .collect();
    let mut keys = Vec::with_capacity(group_by.expr().len());
    for (key, name) in group_by.expr() {
        let mut key = Arc::clone(key);
        if is_literal(&key) {
            let at = computed.len();
            let column = format!("__serrate_group_{at}");
            let below = std::mem::replace(&mut key, Arc::new(Column::new(&column, at)));
            computed.push(ProjectionExpr::new(below, column));
        }
        keys.push((key, name.clone()));
    }
    let group_by = PhysicalGroupBy::new(
        keys,
        group_by.null_expr().to_vec(),
        group_by.groups().to_vec(),
        group_by.has_grouping_set(),
    );
    let below = ProjectionExec::try_new(computed, Arc::clone(input))?;
    let aggregate = AggregateExec::try_new(
        *aggregate.mode(),
        group_by,
        aggregate.aggr_expr().to_vec(),
        aggregate.filter_expr().to_vec(),
        Arc::new(UnorderedExec::new(Arc::new(below))),
        aggregate.input_schema(),
    )?;
    Ok(Some(Arc::new(aggregate)))
}

/// Whether a plan contains an aggregation without keys, which returns one row.
fn has_single_row_aggregate(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|node| {
        let aggregate = node.downcast_ref::<AggregateExec>();
        Ok(aggregate.is_some_and(|aggregate| aggregate.group_expr().is_empty()))
    })
}

/// Returns the indices of inputs whose columns are NULL in some output rows, such as unmatched
/// rows.
fn list_inputs_with_null_rows(node: &Arc<dyn ExecutionPlan>) -> &'static [usize] {
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        return if aggregate.group_expr().is_single() { &[] } else { &[0] };
    }
    let join = if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        join.join_type()
    } else if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        join.join_type()
    } else if let Some(join) = node.downcast_ref::<SortMergeJoinExec>() {
        return find_nullable_inputs(&join.join_type());
    } else {
        return &[];
    };
    find_nullable_inputs(join)
}

fn find_nullable_inputs(join: &JoinType) -> &'static [usize] {
    match join {
        JoinType::Left => &[1],
        JoinType::Right => &[0],
        JoinType::Full => &[0, 1],
        _ => &[],
    }
}

/// Whether DataFusion can compare scalars of a type. It compares neither structs nor lists whose
/// elements are lists or structs.
pub(in crate::sql::workarounds) fn has_comparison(t: &DataType) -> bool {
    match find_element_field(t) {
        Some(element) => !element.data_type().is_nested(),
        None => !t.is_nested(),
    }
}

/// Returns the rows of its input, but hides their order and their constant columns from the nodes
/// above.
#[derive(Debug)]
pub(in crate::sql) struct UnorderedExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl UnorderedExec {
    pub(in crate::sql) fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        ));
        Self { input, properties }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input)
    }
}

display_name!(UnorderedExec);

impl ExecutionPlan for UnorderedExec {
    one_input!("UnorderedExec");
    pass_filters!();
    same_rows!();
    same_statistics!();
}
