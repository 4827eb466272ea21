//! Works around bugs of DataFusion in GROUP BY, DISTINCT and aggregates, and in the functional
//! dependencies between columns that it derives from their keys.

pub(in crate::sql) mod cast_groups;
pub(in crate::sql) mod computed_keys;
pub(in crate::sql) mod dependencies;
pub(in crate::sql) mod distinct_counts;
pub(in crate::sql) mod empty_inputs;
pub(in crate::sql) mod filtered_aggregates;
pub(in crate::sql) mod float_keys;
pub(in crate::sql) mod joined_groups;
mod kept_nodes;
pub(in crate::sql) mod list_keys;
pub(in crate::sql) mod nested_constants;
pub(in crate::sql) mod topk;
pub(in crate::sql) mod unnested_names;
