//! Works around bugs of DataFusion in the order of rows: sorts that it drops, moves or omits, and
//! orders that it derives wrongly.

pub(in crate::sql) mod equations;
pub(in crate::sql) mod merged_orders;
pub(in crate::sql) mod missing_partitions;
pub(in crate::sql) mod moved_keys;
pub(in crate::sql) mod opaque_limits;
pub(in crate::sql) mod partition_constants;
pub(in crate::sql) mod repeated_orders;
pub(in crate::sql) mod scan_order;
pub(in crate::sql) mod sort_keys;
pub(in crate::sql) mod sort_lists;
pub(in crate::sql) mod sorts;
