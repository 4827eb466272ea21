pub(in crate::sql) mod change_query;
pub(in crate::sql) mod guard;
pub(in crate::sql) mod new_rows;
pub(in crate::sql) mod pacing;
pub(in crate::sql) mod plain_order;
pub(in crate::sql) mod pool;
pub(in crate::sql) mod shared;
pub(in crate::sql) mod spool;
pub(in crate::sql) mod stack;
pub(in crate::sql) mod table_rows;
pub(in crate::sql) mod yielding;

/// Implements the `ExecutionPlan` methods that nodes with one input and no expressions share. The type must
/// have a method `with_input(&self, Arc<dyn ExecutionPlan>) -> Self`.
macro_rules! one_input {
    () => {
        fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
            vec![&self.input]
        }

        fn benefits_from_input_partitioning(&self) -> Vec<bool> {
            vec![false]
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

        fn replace_children(
            self: Arc<Self>,
            mut children: Vec<Arc<dyn ExecutionPlan>>,
            _options: datafusion::physical_plan::ReplaceChildrenOptions,
        ) -> datafusion::error::Result<Arc<dyn ExecutionPlan>> {
            match (children.pop(), children.is_empty()) {
                (Some(input), true) => Ok(Arc::new(self.with_input(input))),
                _ => {
                    datafusion::common::internal_err!(
                        "internal error: the plan node {} must have exactly one input; please report it",
                        self.name()
                    )
                }
            }
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

/// Implements [`one_input`], name, properties and order of a node that returns its input's rows.
macro_rules! pass_through {
    ($name:literal) => {
        fn name(&self) -> &str {
            $name
        }

        fn properties(&self) -> &Arc<PlanProperties> {
            self.input.properties()
        }

        fn maintains_input_order(&self) -> Vec<bool> {
            vec![true]
        }

        $crate::sql::exec::one_input!();
    };
}

pub(in crate::sql) use pass_through;

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
                        "internal error: the plan node {} must have exactly one input; please report it",
                        self.name()
                    )
                }
            }
        }
    };
}

pub(in crate::sql) use same_statistics;
