//! Rules made of functions: [`FunctionRule`] is a new rule, and [`WrappedRule`] replaces a rule of
//! DataFusion with a function that calls this rule.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::config::SerrateOptions;

pub(in crate::sql) type TypeRule = Arc<dyn AnalyzerRule + Send + Sync>;
pub(in crate::sql) type LogicalRule = Arc<dyn OptimizerRule + Send + Sync>;
pub(in crate::sql) type PhysicalRule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

pub(super) type AnalyzeFn = fn(LogicalPlan) -> Result<LogicalPlan>;
pub(super) type RewriteFn =
    fn(LogicalPlan, &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>>;
pub(super) type OptimizeFn =
    fn(Arc<dyn ExecutionPlan>, &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>>;
/// A function that applies its first argument, a logical rule of DataFusion.
pub(super) type RewriteAroundFn =
    fn(&dyn OptimizerRule, LogicalPlan, &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>>;
/// A function that applies its first argument, a physical rule of DataFusion.
pub(super) type OptimizeAroundFn = fn(
    &dyn PhysicalOptimizerRule,
    Arc<dyn ExecutionPlan>,
    &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>>;

/// A rule that applies a function: an analyzer rule for [`AnalyzeFn`], a logical optimizer rule for
/// [`RewriteFn`] with an [`ApplyOrder`], and a physical optimizer rule for [`OptimizeFn`].
#[derive(Debug)]
pub(super) struct FunctionRule<F> {
    pub(super) name: &'static str,
    /// Whether the setting `serrate.rule.NAME` can switch off this rule. NAME is the name of the
    /// rule without the prefix `serrate_`.
    pub(super) is_switched: bool,
    pub(super) function: F,
}

impl<F> FunctionRule<F> {
    fn is_on(&self, config: &ConfigOptions) -> bool {
        let name = self.name.strip_prefix("serrate_").unwrap_or(self.name);
        !SerrateOptions::of(config).rules_off.contains(name)
    }
}

impl AnalyzerRule for FunctionRule<AnalyzeFn> {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        (self.function)(plan)
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
        match self.is_switched && !self.is_on(&config.options()) {
            true => Ok(Transformed::no(plan)),
            false => (self.function.1)(plan, config),
        }
    }
}

impl PhysicalOptimizerRule for FunctionRule<OptimizeFn> {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match self.is_switched && !self.is_on(config) {
            true => Ok(plan),
            false => (self.function)(plan, config),
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
        (self.function)(&*self.stock, plan, config)
    }
}

impl PhysicalOptimizerRule for WrappedRule<PhysicalRule, OptimizeAroundFn> {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        (self.function)(&*self.stock, plan, config)
    }

    fn name(&self) -> &str {
        self.stock.name()
    }

    fn schema_check(&self) -> bool {
        self.stock.schema_check()
    }
}
