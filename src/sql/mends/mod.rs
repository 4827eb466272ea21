//! Rules and planners that work around faults of DataFusion, one file each. Every file names the fault,
//! the upstream issue if there is one, and the test `stock_.._still_..` that fails when the file can be
//! removed.

pub(in crate::sql) mod changes;
pub(in crate::sql) mod computed_lists;
pub(in crate::sql) mod conditions;
pub(in crate::sql) mod correlated;
pub(in crate::sql) mod decimals;
pub(in crate::sql) mod dependencies;
pub(in crate::sql) mod duration_windows;
pub(in crate::sql) mod empty_queries;
pub(in crate::sql) mod equations;
pub(in crate::sql) mod float_keys;
pub(in crate::sql) mod guarded_rules;
pub(in crate::sql) mod lambdas;
pub(in crate::sql) mod limits;
pub(in crate::sql) mod merge_joins;
pub(in crate::sql) mod multisets;
pub(in crate::sql) mod nested_order;
pub(in crate::sql) mod query_values;
pub(in crate::sql) mod rows_in;
pub(in crate::sql) mod scan_order;
pub(in crate::sql) mod similar;
pub(in crate::sql) mod sort_lists;
pub(in crate::sql) mod sorts;
pub(in crate::sql) mod subqueries;
pub(in crate::sql) mod texts;
pub(in crate::sql) mod times;
pub(in crate::sql) mod topk;
pub(in crate::sql) mod unions;
pub(in crate::sql) mod window_keys;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;

type TypeRule = Arc<dyn AnalyzerRule + Send + Sync>;

/// Returns the analyzer rules that run before DataFusion's type coercion, in order.
pub(in crate::sql) fn rules_before_coercion() -> [TypeRule; 7] {
    [
        Arc::new(rows_in::RowsIn),
        Arc::new(times::ExactTimes),
        Arc::new(texts::OneText),
        Arc::new(decimals::StableDecimals),
        Arc::new(similar::SimilarPatterns),
        Arc::new(duration_windows::DurationWindows),
        Arc::new(window_keys::WindowKeys),
    ]
}

/// Applies type coercion, so that expressions have the types in which they will be evaluated.
pub(in crate::sql) fn with_coerced_types(plan: LogicalPlan) -> Result<LogicalPlan> {
    let config = ConfigOptions::default();
    let coerced =
        rules_before_coercion().iter().try_fold(plan, |plan, rule| rule.analyze(plan, &config))?;
    TypeCoercion::new().analyze(coerced, &config)
}
