//! Rewrites keys and constants in GROUP BY, DISTINCT ON, ORDER BY, PARTITION BY and HAVING that
//! DataFusion refuses or plans wrongly.

pub(super) mod constants;
pub(super) mod distinct_on;
pub(in crate::sql) mod grouping;
pub(in crate::sql) mod order_all;
pub(super) mod prepared_distinct;
pub(in crate::sql) mod repeated_keys;
pub(super) mod text_orders;
