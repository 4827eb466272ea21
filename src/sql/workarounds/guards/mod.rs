//! Functions around rules of DataFusion, and around its planner, which keep them from nodes for which they fail or
//! change results, and conditions that must not move because they can fail.

pub(in crate::sql) mod conditions;
pub(in crate::sql) mod failing_rules;
pub(in crate::sql) mod failing_statistics;
pub(in crate::sql) mod guarded_rules;
pub(in crate::sql) mod row_filters;
mod waiting_joins;
