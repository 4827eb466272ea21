//! Rules and planners that work around bugs of DataFusion, one file each. Every file describes the bug and
//! names the test (`stock_.. still_..`) that fails once the file can be removed. `sql::rules` lists the
//! rules in order, with upstream issues.

pub(in crate::sql) mod changes;
pub(in crate::sql) mod computed_lists;
pub(in crate::sql) mod conditions;
pub(in crate::sql) mod correlated;
pub(in crate::sql) mod decimals;
pub(in crate::sql) mod dependencies;
pub(in crate::sql) mod duration_windows;
pub(in crate::sql) mod empty_queries;
pub(in crate::sql) mod equations;
pub(in crate::sql) mod failing_rules;
pub(in crate::sql) mod float_keys;
pub(in crate::sql) mod guarded_rules;
pub(in crate::sql) mod in_lists;
pub(in crate::sql) mod join_orders;
pub(in crate::sql) mod lambdas;
pub(in crate::sql) mod limits;
pub(in crate::sql) mod merge_joins;
pub(in crate::sql) mod moved_keys;
pub(in crate::sql) mod multisets;
pub(in crate::sql) mod nested_constants;
pub(in crate::sql) mod nested_order;
pub(in crate::sql) mod partition_constants;
pub(in crate::sql) mod query_values;
pub(in crate::sql) mod range_frames;
pub(in crate::sql) mod row_filters;
pub(in crate::sql) mod rows_in;
pub(in crate::sql) mod scan_order;
pub(in crate::sql) mod similar;
pub(in crate::sql) mod sort_lists;
pub(in crate::sql) mod sorts;
pub(in crate::sql) mod subqueries;
pub(in crate::sql) mod texts;
pub(in crate::sql) mod times;
pub(in crate::sql) mod topk;
pub(in crate::sql) mod truths;
pub(in crate::sql) mod unions;
pub(in crate::sql) mod unique_partitions;
pub(in crate::sql) mod window_keys;
pub(in crate::sql) mod window_orders;
