//! Keys of GROUP BY and DISTINCT, aggregates, and the functional dependencies between columns that DataFusion
//! derives from keys.

pub(in crate::sql) mod cast_groups;
pub(in crate::sql) mod computed_keys;
pub(in crate::sql) mod dependencies;
pub(in crate::sql) mod filtered_aggregates;
pub(in crate::sql) mod float_keys;
pub(in crate::sql) mod joined_groups;
pub(in crate::sql) mod nested_constants;
pub(in crate::sql) mod topk;
