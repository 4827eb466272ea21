//! Rules that speed up queries without changing results. Each has a setting `serrate.rule.NAME`.

pub(in crate::sql) mod below_joins;
pub(in crate::sql) mod contains;
pub(in crate::sql) mod flat_filters;
pub(in crate::sql) mod leaf_limit;
pub(in crate::sql) mod lengths;
pub(in crate::sql) mod offset;
pub(in crate::sql) mod partitions;
mod spill_batches;
