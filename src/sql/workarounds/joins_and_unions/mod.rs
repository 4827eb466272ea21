//! Works around bugs of DataFusion in nodes with several inputs: joins, UNION, EXCEPT, INTERSECT
//! and WITH RECURSIVE.

pub(in crate::sql) mod dictionary_keys;
pub(in crate::sql) mod distinct_recursions;
pub(in crate::sql) mod join_orders;
pub(in crate::sql) mod lone_branches;
pub(in crate::sql) mod merge_joins;
pub(in crate::sql) mod multisets;
pub(in crate::sql) mod null_equal_joins;
pub(in crate::sql) mod recursive_metadata;
pub(in crate::sql) mod union_tensors;
pub(in crate::sql) mod unions;
