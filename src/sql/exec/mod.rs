//! Plan nodes, and the macros that define the methods which several nodes share.

pub(in crate::sql) mod change_query;
pub(in crate::sql) mod compact_texts;
pub(in crate::sql) mod copied;
pub(in crate::sql) mod cut_batches;
pub(in crate::sql) mod cut_rows;
pub(in crate::sql) mod explode;
#[cfg(feature = "cluster")]
pub(in crate::sql) mod given_values;
pub(in crate::sql) mod memory_pool;
pub(in crate::sql) mod merged_order;
pub(in crate::sql) mod nest;
pub(in crate::sql) mod new_rows;
pub(in crate::sql) mod node_planner;
pub(in crate::sql) mod pacing;
pub(in crate::sql) mod plain_order;
pub(in crate::sql) mod plain_rows;
pub(in crate::sql) mod shared;
pub(in crate::sql) mod spool;
pub(in crate::sql) mod stack;
pub(in crate::sql) mod table_rows;
pub(in crate::sql) mod yielding;

use std::sync::Arc;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::prelude::SessionConfig;

pub(crate) fn replace_config(context: &TaskContext, config: SessionConfig) -> Arc<TaskContext> {
    Arc::new(TaskContext::new(
        context.task_id(),
        context.session_id(),
        config,
        context.scalar_functions().clone(),
        context.higher_order_functions().clone(),
        context.aggregate_functions().clone(),
        context.window_functions().clone(),
        context.runtime_env(),
    ))
}

/// Returns the top node of a plan if it is a logical node of Serrate of the type `T`, otherwise
/// `None`.
pub(in crate::sql) fn find_logical_node<T: 'static>(plan: &LogicalPlan) -> Option<&T> {
    let LogicalPlan::Extension(extension) = plan else { return None };
    let node: &dyn UserDefinedLogicalNode = extension.node.as_ref();
    node.as_any().downcast_ref()
}

/// Returns the only item of `inputs`, the new inputs of the logical node `name`. Any other number
/// of inputs is an error.
fn take_one_input(name: &str, inputs: Vec<LogicalPlan>) -> Result<LogicalPlan> {
    match <[LogicalPlan; 1]>::try_from(inputs) {
        Ok([input]) => Ok(input),
        Err(inputs) => plan_err!(
            "internal error: {name} has one input, not {}; please report it",
            inputs.len()
        ),
    }
}

/// Implements the `UserDefinedLogicalNodeCore` methods that nodes with one input and no expressions
/// share: all methods except `schema`. The type must have a field `input` and a method
/// `with_logical_input(&self, LogicalPlan) -> Result<Self>`.
macro_rules! one_logical_input {
    ($name:literal) => {
        fn name(&self) -> &str {
            $name
        }

        fn inputs(&self) -> Vec<&LogicalPlan> {
            vec![&self.input]
        }

        fn expressions(&self) -> Vec<datafusion::logical_expr::Expr> {
            Vec::new()
        }

        fn fmt_for_explain(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str($name)
        }

        fn with_exprs_and_inputs(
            &self,
            _exprs: Vec<datafusion::logical_expr::Expr>,
            inputs: Vec<LogicalPlan>,
        ) -> datafusion::error::Result<Self> {
            self.with_logical_input($crate::sql::exec::take_one_input($name, inputs)?)
        }
    };
}

pub(in crate::sql) use one_logical_input;

/// Implements `DisplayAs` for a plan node: EXPLAIN shows the name of its type, without properties.
macro_rules! display_name {
    ($node:ident) => {
        impl datafusion::physical_plan::DisplayAs for $node {
            fn fmt_as(
                &self,
                _t: datafusion::physical_plan::DisplayFormatType,
                f: &mut std::fmt::Formatter<'_>,
            ) -> std::fmt::Result {
                f.write_str(stringify!($node))
            }
        }
    };
}

pub(crate) use display_name;

/// Implements the `ExecutionPlan` methods that nodes with one input and no expressions share.
/// `properties()` returns the properties of the node in the field `$node` or, without `$node`, the
/// field `properties`. The type must have a method `with_input(&self, Arc<dyn ExecutionPlan>) ->
/// Self`.
macro_rules! one_input {
    ($name:literal) => {
        fn properties(&self) -> &Arc<PlanProperties> {
            &self.properties
        }

        $crate::sql::one_input!(@ methods $name);
    };
    ($name:literal, $node:ident) => {
        fn properties(&self) -> &Arc<PlanProperties> {
            self.$node.properties()
        }

        $crate::sql::one_input!(@ methods $name);
    };
    (@ methods $name:literal) => {
        fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
            vec![&self.input]
        }

        fn benefits_from_input_partitioning(&self) -> Vec<bool> {
            vec![false]
        }

        fn replace_children(
            self: Arc<Self>,
            mut children: Vec<Arc<dyn ExecutionPlan>>,
            _options: datafusion::physical_plan::ReplaceChildrenOptions,
        ) -> datafusion::error::Result<Arc<dyn ExecutionPlan>> {
            let count = children.len();
            match (children.pop(), children.is_empty()) {
                (Some(input), true) => Ok(Arc::new(self.with_input(input))),
                _ => {
                    datafusion::common::internal_err!(
                        "internal error: the plan node {} must have exactly one input, not {count}; please report it",
                        self.name()
                    )
                }
            }
        }

        $crate::sql::one_input!(@ any $name);
    };
    (@ any $name:literal) => {
        fn name(&self) -> &str {
            $name
        }

        fn apply_expressions(
            &self,
            _f: &mut dyn FnMut(
                &Arc<dyn datafusion::physical_expr::PhysicalExpr>,
            ) -> datafusion::error::Result<
                datafusion::common::tree_node::TreeNodeRecursion,
            >,
        ) -> datafusion::error::Result<datafusion::common::tree_node::TreeNodeRecursion> {
            Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
        }

        fn with_new_children(
            self: Arc<Self>,
            children: Vec<Arc<dyn ExecutionPlan>>,
        ) -> datafusion::error::Result<Arc<dyn ExecutionPlan>> {
            self.replace_children(
                children,
                datafusion::physical_plan::ReplaceChildrenOptions::new(
                    datafusion::physical_plan::ChildrenPropertiesMode::Recompute,
                ),
            )
        }
    };
}

pub(crate) use one_input;

/// Implements the methods of [`one_input`], and `maintains_input_order` for nodes that keep the
/// order of their input.
macro_rules! pass_through {
    ($($node:tt)+) => {
        fn maintains_input_order(&self) -> Vec<bool> {
            vec![true]
        }

        $crate::sql::one_input!($($node)+);
    };
}

pub(crate) use pass_through;

/// Implements the methods of a node that wraps another node (its field `$node`) to hide it from an
/// optimizer rule. The children of the wrapper are the children of the hidden node. The type must
/// have a method `hide_other(&self, Arc<dyn ExecutionPlan>) -> Self`.
macro_rules! hide_node {
    ($name:literal, $node:ident) => {
        fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
            self.$node.children()
        }

        fn replace_children(
            self: Arc<Self>,
            children: Vec<Arc<dyn ExecutionPlan>>,
            options: datafusion::physical_plan::ReplaceChildrenOptions,
        ) -> datafusion::error::Result<Arc<dyn ExecutionPlan>> {
            let node = Arc::clone(&self.$node).replace_children(children, options)?;
            Ok(Arc::new(self.hide_other(node)))
        }

        $crate::sql::one_input!(@ any $name);

        fn execute(
            &self,
            partition: usize,
            context: Arc<TaskContext>,
        ) -> datafusion::error::Result<SendableRecordBatchStream> {
            self.$node.execute(partition, context)
        }
    };
}

pub(in crate::sql) use hide_node;

/// Implements `execute` for a node that returns the rows of its input unchanged.
macro_rules! same_rows {
    () => {
        fn execute(
            &self,
            partition: usize,
            context: Arc<datafusion::execution::TaskContext>,
        ) -> datafusion::error::Result<datafusion::execution::SendableRecordBatchStream> {
            self.input.execute(partition, context)
        }
    };
}

pub(in crate::sql) use same_rows;

/// Lets DataFusion push the filters above a node through the node into its input.
macro_rules! pass_filters {
    () => {
        fn gather_filters_for_pushdown(
            &self,
            _phase: datafusion::physical_plan::filter_pushdown::FilterPushdownPhase,
            parent_filters: Vec<Arc<dyn datafusion::physical_expr::PhysicalExpr>>,
            _config: &datafusion::common::config::ConfigOptions,
        ) -> datafusion::error::Result<
            datafusion::physical_plan::filter_pushdown::FilterDescription,
        > {
            datafusion::physical_plan::filter_pushdown::FilterDescription::from_children(
                parent_filters,
                &self.children(),
            )
        }
    };
}

pub(in crate::sql) use pass_filters;

/// Implements the statistics methods for a node that returns its input unchanged.
macro_rules! same_statistics {
    () => {
        fn child_stats_requests(
            &self,
            partition: Option<usize>,
        ) -> Vec<datafusion::physical_plan::statistics::ChildStats> {
            vec![datafusion::physical_plan::statistics::ChildStats::At(partition)]
        }

        fn statistics_from_inputs(
            &self,
            input_stats: &[Arc<datafusion::common::Statistics>],
            _args: &datafusion::physical_plan::statistics::StatisticsArgs,
        ) -> datafusion::error::Result<Arc<datafusion::common::Statistics>> {
            match input_stats {
                [input] => Ok(Arc::clone(input)),
                _ => {
                    datafusion::common::internal_err!(
                        "internal error: the plan node {} must have exactly one input, not {}; please report it",
                        self.name(),
                        input_stats.len()
                    )
                }
            }
        }
    };
}

pub(in crate::sql) use same_statistics;
