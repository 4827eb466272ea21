//! Rules made of functions: [`FunctionRule`] is a new rule, [`WrappedRule`] replaces a rule of
//! DataFusion with a function that calls this rule, and [`RemovedRule`] replaces a rule of
//! DataFusion with nothing. `SET serrate.disabled_rules` applies to all of them. [`SkippableRule`]
//! runs a rule of DataFusion only for plans that the rule may change.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{ExecutionPlan, displayable};

use crate::config::{DisabledRules, SerrateOptions};
use crate::sql::base::node_types::{NodeType, has_nodes};
use crate::sql::base::plan_facts::{PlanFact, has_facts};

pub(in crate::sql) type AnalysisRule = Arc<dyn AnalyzerRule + Send + Sync>;
pub(in crate::sql) type LogicalRule = Arc<dyn OptimizerRule + Send + Sync>;
pub(in crate::sql) type PhysicalRule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

pub(super) type AnalyzeFn = fn(LogicalPlan) -> Result<LogicalPlan>;
pub(super) type RewriteFn =
    fn(LogicalPlan, &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>>;
pub(super) type OptimizeFn =
    fn(Arc<dyn ExecutionPlan>, &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>>;
/// A function that replaces a logical rule of DataFusion. It receives this rule as its first
/// argument, and applies it.
pub(super) type RewriteAroundFn =
    fn(&dyn OptimizerRule, LogicalPlan, &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>>;
/// A function that replaces a physical rule of DataFusion. It receives this rule as its first
/// argument, and applies it.
pub(super) type OptimizeAroundFn = fn(
    &dyn PhysicalOptimizerRule,
    Arc<dyn ExecutionPlan>,
    &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>>;

/// Whether a rule of DataFusion may change a plan.
pub(super) type ConcernFn = fn(&LogicalPlan) -> Result<bool>;

/// Whether `serrate.disabled_rules` contains a rule.
fn is_disabled(name: &str, config: &ConfigOptions) -> bool {
    SerrateOptions::of(config).disabled_rules.contains(name)
}

/// A rule that applies a function: an analyzer rule for [`AnalyzeFn`] with the [`PlanFact`]s of the
/// plans to which it applies, a logical optimizer rule for [`RewriteFn`] with an [`ApplyOrder`],
/// and a physical optimizer rule for [`OptimizeFn`] with the types of the nodes to which it
/// applies.
#[derive(Debug)]
pub(super) struct FunctionRule<F> {
    pub(super) name: &'static str,
    /// Whether the setting `serrate.rule.NAME` can switch off this rule. NAME is the rule's name
    /// without the prefix `serrate_`.
    pub(super) is_switched: bool,
    pub(super) function: F,
}

impl<F> FunctionRule<F> {
    /// Returns false if no session can have switched off the rule. The settings of the session then
    /// need not be read.
    fn may_be_off(&self) -> bool {
        self.is_switched || DisabledRules::may_exist()
    }

    fn is_off(&self, config: &ConfigOptions) -> bool {
        let name = self.name.strip_prefix("serrate_").unwrap_or(self.name);
        is_disabled(self.name, config)
            || self.is_switched && SerrateOptions::of(config).rules_off.contains(name)
    }
}

impl FunctionRule<(&'static [PlanFact], AnalyzeFn)> {
    /// Checks, with debug assertions, that the rule neither changes nor refuses `plan`, for which
    /// it is skipped.
    fn check_skipped(&self, plan: &LogicalPlan) {
        if cfg!(debug_assertions) {
            let (facts, function) = self.function;
            let done = function(plan.clone());
            assert!(
                done.is_ok_and(|done| done == *plan),
                "{} changes or refuses a plan without {facts:?}; add what it changes to its entry in sql::rules",
                self.name
            );
        }
    }
}

impl AnalyzerRule for FunctionRule<(&'static [PlanFact], AnalyzeFn)> {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        if self.may_be_off() && self.is_off(config) {
            return Ok(plan);
        }
        let (facts, function) = self.function;
        match has_facts(&plan, facts)? {
            true => function(plan),
            false => {
                self.check_skipped(&plan);
                Ok(plan)
            }
        }
    }

    fn name(&self) -> &str {
        self.name
    }
}

impl OptimizerRule for FunctionRule<(ApplyOrder, RewriteFn)> {
    fn name(&self) -> &str {
        self.name
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(self.function.0)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match self.may_be_off() && self.is_off(&config.options()) {
            true => Ok(Transformed::no(plan)),
            false => (self.function.1)(plan, config),
        }
    }
}

impl FunctionRule<(&'static [NodeType], OptimizeFn)> {
    /// Checks, with debug assertions, that the rule neither changes nor refuses `plan`, for which
    /// it is skipped.
    fn check_skipped(&self, plan: &Arc<dyn ExecutionPlan>, config: &ConfigOptions) {
        if cfg!(debug_assertions) {
            let (_, function) = self.function;
            let done = function(Arc::clone(plan), config);
            assert!(
                done.is_ok_and(|done| Arc::ptr_eq(&done, plan)),
                "{} changes or refuses a plan that has no node of its types; add what it changes to its entry in sql::rules",
                self.name
            );
        }
    }
}

impl PhysicalOptimizerRule for FunctionRule<(&'static [NodeType], OptimizeFn)> {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if self.may_be_off() && self.is_off(config) {
            return Ok(plan);
        }
        let (nodes, function) = self.function;
        match nodes.is_empty() || has_nodes(&plan, nodes)? {
            true => function(plan, config),
            false => {
                self.check_skipped(&plan, config);
                Ok(plan)
            }
        }
    }

    fn name(&self) -> &str {
        self.name
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A rule of DataFusion together with the function that applies it, a [`RewriteAroundFn`] or an
/// [`OptimizeAroundFn`]. It has the name of DataFusion's rule.
#[derive(Debug)]
pub(super) struct WrappedRule<R, F> {
    /// Name in the list of rules. In a session that disables this name, DataFusion's rule runs
    /// alone.
    pub(super) name: &'static str,
    pub(super) stock: R,
    pub(super) function: F,
}

impl OptimizerRule for WrappedRule<LogicalRule, RewriteAroundFn> {
    fn name(&self) -> &str {
        self.stock.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.stock.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match DisabledRules::may_exist() && is_disabled(self.name, &config.options()) {
            true => self.stock.rewrite(plan, config),
            false => (self.function)(&*self.stock, plan, config),
        }
    }
}

impl PhysicalOptimizerRule for WrappedRule<PhysicalRule, OptimizeAroundFn> {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match DisabledRules::may_exist() && is_disabled(self.name, config) {
            true => self.stock.optimize(plan, config),
            false => (self.function)(&*self.stock, plan, config),
        }
    }

    fn name(&self) -> &str {
        self.stock.name()
    }

    fn schema_check(&self) -> bool {
        self.stock.schema_check()
    }
}

/// A rule of DataFusion that Serrate removes. It runs only in sessions that list its name in
/// `serrate.disabled_rules`, which disables the removal.
#[derive(Debug)]
pub(super) struct RemovedRule {
    pub(super) stock: LogicalRule,
}

/// This rule has no `apply_order`, so the optimizer calls it once per plan. If the removal is
/// disabled, the rule itself visits the nodes in the order that DataFusion's rule requires. With an
/// `apply_order`, the optimizer would visit all nodes even when the rule does nothing.
impl OptimizerRule for RemovedRule {
    fn name(&self) -> &str {
        self.stock.name()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if !(DisabledRules::may_exist() && is_disabled(self.stock.name(), &config.options())) {
            return Ok(Transformed::no(plan));
        }
        let rewrite = |node| self.stock.rewrite(node, config);
        match self.stock.apply_order() {
            Some(ApplyOrder::TopDown) => plan.transform_down_with_subqueries(rewrite),
            Some(ApplyOrder::BottomUp) => plan.transform_up_with_subqueries(rewrite),
            None => rewrite(plan),
        }
    }
}

/// A rule of DataFusion, also a wrapped one, that runs only for plans that it may change. It has
/// the name of DataFusion's rule.
#[derive(Debug)]
pub(super) struct SkippableRule<R, K> {
    pub(super) stock: R,
    /// For a rule of analysis and a logical rule, whether it may change a plan; for a physical
    /// rule, the types of the nodes without which it does not change a plan.
    pub(super) concerns: K,
}

impl AnalyzerRule for SkippableRule<AnalysisRule, ConcernFn> {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        if (self.concerns)(&plan)? {
            return self.stock.analyze(plan, config);
        }
        if cfg!(debug_assertions) {
            let done = self.stock.analyze(plan.clone(), config);
            assert!(
                done.is_ok_and(|done| done == plan),
                "{} changes or refuses a plan for which it is skipped; correct its entry in sql::rules::skipped_rules",
                self.name()
            );
        }
        Ok(plan)
    }

    fn name(&self) -> &str {
        self.stock.name()
    }
}

/// A rule without `apply_order` receives the whole plan, so one search suffices.
impl OptimizerRule for SkippableRule<LogicalRule, ConcernFn> {
    fn name(&self) -> &str {
        self.stock.name()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if (self.concerns)(&plan)? {
            return self.stock.rewrite(plan, config);
        }
        if cfg!(debug_assertions) {
            let done = self.stock.rewrite(plan.clone(), config);
            assert!(
                done.is_ok_and(|done| !done.transformed && done.data == plan),
                "{} changes or refuses a plan for which it is skipped; correct its entry in sql::rules::skipped_rules",
                self.name()
            );
        }
        Ok(Transformed::no(plan))
    }
}

impl PhysicalOptimizerRule for SkippableRule<PhysicalRule, &'static [NodeType]> {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if has_nodes(&plan, self.concerns)? {
            return self.stock.optimize(plan, config);
        }
        if cfg!(debug_assertions) {
            let show =
                |plan: &Arc<dyn ExecutionPlan>| displayable(plan.as_ref()).indent(true).to_string();
            let done = self.stock.optimize(Arc::clone(&plan), config);
            assert!(
                done.is_ok_and(|done| show(&done) == show(&plan)),
                "{} changes or refuses a plan for which it is skipped; correct its entry in sql::rules::skipped_rules",
                self.name()
            );
        }
        Ok(plan)
    }

    fn name(&self) -> &str {
        self.stock.name()
    }

    fn schema_check(&self) -> bool {
        self.stock.schema_check()
    }
}
