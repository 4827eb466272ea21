//! Wraps rules of DataFusion, and its planner, so that they skip nodes for which they would fail or
//! change results. Also keeps the optimizer from moving conditions that can fail.

pub(in crate::sql) mod conditions;
pub(in crate::sql) mod failing_rules;
pub(in crate::sql) mod failing_statistics;
pub(in crate::sql) mod guarded_rules;
pub(in crate::sql) mod repeated_constants;
pub(in crate::sql) mod row_filters;
mod waiting_joins;
