//! Workarounds for bugs of DataFusion in window functions: in their keys, frames and orders.

pub(in crate::sql) mod duration_windows;
pub(in crate::sql) mod nested_windows;
pub(in crate::sql) mod range_frames;
pub(in crate::sql) mod unique_partitions;
pub(in crate::sql) mod whole_windows;
pub(in crate::sql) mod wide_frames;
pub(in crate::sql) mod window_keys;
pub(in crate::sql) mod window_orders;
