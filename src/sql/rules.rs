//! The optimizer rules of a session, in order.
//!
//! There are three kinds. Rules that work around a fault of DataFusion and rules that keep source order
//! always run. Rules that speed up queries are [`Switched`]: each has a setting `serrate.rule.NAME`, and
//! does not change answers.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::config::SerrateOptions;
use crate::sql::exec::guard::NamedFiles;
use crate::sql::exec::stack::DeepStacks;
use crate::sql::exec::yielding::YieldingJoins;
use crate::sql::mends::conditions::{LazyConditions, PushDownFree};
use crate::sql::mends::equations::PlainEquations;
use crate::sql::mends::float_keys::{ConstantFloatKeys, FloatKeys};
use crate::sql::mends::guarded_rules::GuardedRule;
use crate::sql::mends::lambdas::LambdaParameters;
use crate::sql::mends::limits::OpaqueLimits;
use crate::sql::mends::merge_joins::MergeJoinFilters;
use crate::sql::mends::scan_order::OrderedScanLimits;
use crate::sql::mends::sort_lists::SortLists;
use crate::sql::mends::sorts::{LostConstants, MissingSorts, UnorderedKeys};
use crate::sql::mends::topk::WholeFloatGroups;
use crate::sql::order::{MemoryOrder, OffsetIntoScan, SourceOrder};
use crate::sql::pushdown::batches::LeafBatches;
use crate::sql::pushdown::below_joins::BelowJoins;
use crate::sql::pushdown::contains::ContainsPushdown;
use crate::sql::pushdown::flat_filters::FlatFilters;
use crate::sql::pushdown::lengths::{LengthsBelow, LengthsIntoScan};
use crate::sql::pushdown::partitions::LeafPartitions;
use crate::sql::sources::asof::{AsOfOrder, AsOfProjections};
use crate::sql::sources::parquet::ParquetLists;

pub(in crate::sql) type LogicalRule = Arc<dyn OptimizerRule + Send + Sync>;
pub(in crate::sql) type PhysicalRule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// Removes logical rules of DataFusion that make valid statements fail.
///
/// `eliminate_group_by_constant` of DataFusion 55 drops `CAST(id AS VARCHAR)` next to `id` from a GROUP
/// BY and builds a projection in which both have one name, which DataFusion refuses. The rule is only an
/// optimization. Keep it once `stock_grouping_by_a_cast_still_fails` in `tests/sql/planning.rs` fails.
pub(in crate::sql) fn remove_logical_rules(rules: &mut Vec<LogicalRule>) {
    rules.retain(|rule| rule.name() != "eliminate_group_by_constant");
}

/// Adds rules that evaluate conditions that can fail only for the rows for which the query does.
pub(in crate::sql) fn guard_logical_rules(rules: &mut Vec<LogicalRule>) {
    for rule in rules.iter_mut() {
        *rule = PushDownFree::around(Arc::clone(rule));
    }
    // Runs before expressions are simplified and conditions become joins.
    rules.insert(0, Arc::new(LazyConditions));
    // Runs before constants are folded.
    rules.insert(0, Arc::new(ConstantFloatKeys));
}

pub(in crate::sql) fn logical_rules() -> [LogicalRule; 4] {
    [
        // Comparisons and keys must treat both zeros, and all NaN, as equal.
        Arc::new(FloatKeys),
        Arc::new(Switched(FlatFilters)),
        Arc::new(Switched(BelowJoins)),
        // Runs last, so that no other rule sees its columns.
        Arc::new(Switched(LengthsBelow)),
    ]
}

pub(in crate::sql) fn add_physical_rules(rules: &mut Vec<PhysicalRule>) {
    let first: [PhysicalRule; 7] = [
        // Runs before any rule asks for the type of a parameter.
        Arc::new(LambdaParameters),
        // Run before sorts are removed.
        Arc::new(PlainEquations),
        Arc::new(LostConstants),
        // Runs before batches of tables in memory are repartitioned.
        Arc::new(MemoryOrder),
        // Runs before a repartitioning is inserted between a projection and its scan.
        Arc::new(Switched(AsOfProjections)),
        // Runs before conditions are pushed into scans.
        Arc::new(Switched(ContainsPushdown)),
        // Runs before partitions are planned.
        Arc::new(Switched(LeafPartitions)),
    ];
    rules.splice(0..0, first);
    // Runs after conditions are pushed into scans, and before a repartitioning is inserted above them.
    let filters = rules.iter().position(|rule| rule.name() == "FilterPushdown");
    rules.insert(filters.map_or(rules.len(), |at| at + 1), Arc::new(Switched(LengthsIntoScan)));
    let topk = rules.iter().position(|rule| rule.name() == "TopKAggregation");
    rules.insert(topk.map_or(rules.len(), |at| at + 1), Arc::new(WholeFloatGroups));
    // Run after all sorts are in place, before plans are checked.
    let check = rules.iter().position(|rule| rule.name() == "SanityCheckPlan");
    let check = check.unwrap_or(rules.len());
    let orders: [PhysicalRule; 2] = [
        // Removes known orders, so that further sorts may be required.
        Arc::new(UnorderedKeys),
        Arc::new(MissingSorts),
    ];
    rules.splice(check..check, orders);
    for rule in rules.iter_mut() {
        *rule = OpaqueLimits::guard(GuardedRule::guard(Arc::clone(rule)));
    }
}

pub(in crate::sql) fn last_physical_rules() -> [PhysicalRule; 11] {
    [
        Arc::new(AsOfOrder),
        Arc::new(SourceOrder),
        Arc::new(Switched(OffsetIntoScan)),
        Arc::new(Switched(LeafBatches)),
        // Runs after every limit is in its scan.
        Arc::new(OrderedScanLimits),
        // Runs after all rules that change scans. Its setting is `serrate.parquet_lists`.
        Arc::new(ParquetLists),
        Arc::new(SortLists),
        // Runs before joins are wrapped.
        Arc::new(MergeJoinFilters),
        Arc::new(YieldingJoins),
        Arc::new(DeepStacks),
        Arc::new(NamedFiles),
    ]
}

/// A rule `serrate_NAME` that the setting `serrate.rule.NAME` switches off.
#[derive(Debug)]
struct Switched<R>(R);

fn is_on(rule: &str, config: &ConfigOptions) -> bool {
    let name = rule.strip_prefix("serrate_").unwrap_or(rule);
    !SerrateOptions::of(config).rules_off.contains(name)
}

impl<R: OptimizerRule> OptimizerRule for Switched<R> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match is_on(self.name(), &config.options()) {
            true => self.0.rewrite(plan, config),
            false => Ok(Transformed::no(plan)),
        }
    }
}

impl<R: PhysicalOptimizerRule> PhysicalOptimizerRule for Switched<R> {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match is_on(self.name(), config) {
            true => self.0.optimize(plan, config),
            false => Ok(plan),
        }
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::RULES;

    #[test]
    fn every_switched_rule_has_a_setting() {
        let mut physical: Vec<PhysicalRule> = Vec::new();
        add_physical_rules(&mut physical);
        physical.extend(last_physical_rules());
        let logical = logical_rules();
        let switched = |debug: String, name: &str| {
            debug.starts_with("Switched").then(|| name.replace("serrate_", ""))
        };
        let found: BTreeSet<String> = physical
            .iter()
            .filter_map(|rule| switched(format!("{rule:?}"), rule.name()))
            .chain(logical.iter().filter_map(|rule| switched(format!("{rule:?}"), rule.name())))
            .collect();
        let known: BTreeSet<String> = RULES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(found, known);
    }
}
