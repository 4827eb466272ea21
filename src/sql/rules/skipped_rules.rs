//! The rules of DataFusion that are skipped for plans that they do not change.
//!
//! Each of these rules rebuilds all expressions or nodes of a plan, and logical rules do so twice
//! for each statement. A search for what the rule changes takes less time.

use std::any::TypeId;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;

use super::function_rule::ConcernFn;
use crate::sql::base::expression_parts::has_part;
use crate::sql::base::node_types::NodeType;
use crate::sql::base::plan_facts::{PlanFact, has_facts};
use crate::sql::base::plan_nodes::has_node;

/// Rules of analysis, and whether they may change a plan.
pub(super) static SKIPPED_ANALYSIS: &[(&str, ConcernFn)] =
    &[("resolve_grouping_function", calls_grouping)];

/// Logical rules that find the nodes to change themselves, and whether they may change a plan.
pub(super) static SKIPPED_LOGICAL: &[(&str, ConcernFn)] = &[
    // Replaces ANY and ALL.
    ("rewrite_set_comparison", has_queries),
    ("eliminate_cross_join", has_joins),
    ("common_sub_expression_eliminate", may_repeat_parts),
];

const AGGREGATE: &[NodeType] = &[TypeId::of::<AggregateExec> as NodeType];
const SORT: &[NodeType] = &[TypeId::of::<SortExec> as NodeType];

/// Physical rules, and the types of nodes without which they do not change a plan.
pub(super) static SKIPPED_PHYSICAL: &[(&str, &[NodeType])] = &[
    ("aggregate_statistics", AGGREGATE),
    ("LimitedDistinctAggregation", AGGREGATE),
    ("CombinePartialFinalAggregate", AGGREGATE),
    ("OptimizeAggregateOrder", AGGREGATE),
    ("LimitAggregation", AGGREGATE),
    ("PushdownSort", SORT),
    ("TopKRepartition", SORT),
    // Also divides the conditions of nested-loop joins.
    (
        "ProjectionPushdown",
        &[TypeId::of::<NestedLoopJoinExec> as NodeType, TypeId::of::<ProjectionExec> as NodeType],
    ),
    // Only a filter has conditions to move.
    ("FilterPushdown", &[TypeId::of::<FilterExec> as NodeType]),
    // Only these nodes make dynamic filters.
    (
        "FilterPushdown(Post)",
        &[
            TypeId::of::<AggregateExec> as NodeType,
            TypeId::of::<HashJoinExec> as NodeType,
            TypeId::of::<SortExec> as NodeType,
        ],
    ),
];

fn calls_grouping(plan: &LogicalPlan) -> Result<bool> {
    let is_call = |e: &Expr| match e {
        Expr::AggregateFunction(call) => call.func.name() == "grouping",
        _ => false,
    };
    has_node(plan, |node| Ok(matches!(node, LogicalPlan::Aggregate(_)) && has_part(node, is_call)))
}

fn has_queries(plan: &LogicalPlan) -> Result<bool> {
    has_facts(plan, &[PlanFact::Query])
}

fn has_joins(plan: &LogicalPlan) -> Result<bool> {
    has_facts(plan, &[PlanFact::Join])
}

/// Whether a node may compute an expression twice. Windows count as such nodes, because the rule
/// looks for equal expressions in several windows.
fn may_repeat_parts(plan: &LogicalPlan) -> Result<bool> {
    has_node(plan, |node| {
        let mut computed = 0usize;
        node.apply_expressions(|e| {
            e.apply(|part| {
                let is_leaf = matches!(part, Expr::Alias(_) | Expr::Column(_) | Expr::Literal(..));
                computed = computed.saturating_add(usize::from(!is_leaf));
                Ok(match computed > 1 {
                    true => TreeNodeRecursion::Stop,
                    false => TreeNodeRecursion::Continue,
                })
            })
        })?;
        Ok(computed > 1 || matches!(node, LogicalPlan::Window(_)))
    })
}

#[cfg(test)]
mod tests {
    use datafusion::optimizer::{Analyzer, Optimizer};
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

    use super::*;

    /// A rule with an `apply_order` receives each node of a plan and not the whole plan.
    #[test]
    fn skipped_rules_are_rules_of_datafusion() {
        for (name, _) in SKIPPED_ANALYSIS {
            assert!(Analyzer::new().rules.iter().any(|rule| rule.name() == *name), "{name}");
        }
        for (name, _) in SKIPPED_LOGICAL {
            let rules = Optimizer::new().rules;
            let rule = rules.iter().find(|rule| rule.name() == *name);
            assert!(rule.is_some_and(|rule| rule.apply_order().is_none()), "{name}");
        }
        for (name, _) in SKIPPED_PHYSICAL {
            let rules = PhysicalOptimizer::new().rules;
            assert!(rules.iter().any(|rule| rule.name() == *name), "{name}");
        }
    }

    #[tokio::test]
    async fn parts_repeat_only_next_to_each_other() {
        let ctx = crate::sql::session();
        let create = "CREATE TABLE t AS SELECT 1 AS a, 2 AS b";
        crate::sql::sql(&ctx, create).await.unwrap().collect().await.unwrap();
        for (text, expected) in [
            ("SELECT a, b AS c FROM t", false),
            ("SELECT a + 1 FROM t WHERE b = 2", false),
            ("SELECT a + 1, b FROM t ORDER BY b LIMIT 3", false),
            ("SELECT a + 1, a + 1 AS c FROM t", true),
            ("SELECT a FROM t WHERE a + 1 = 2", true),
            ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM t WHERE a + 1 = 2)", true),
            ("SELECT count(*) OVER () FROM t", true),
        ] {
            let plan = crate::sql::sql(&ctx, text).await.unwrap().logical_plan().clone();
            assert_eq!(may_repeat_parts(&plan).unwrap(), expected, "{text}");
        }
    }
}
