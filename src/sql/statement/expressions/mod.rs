//! Rewrites expressions to forms that the planner supports: operators, intervals, tuples, numbers
//! and named windows. These rewrites do not need the columns of tables.

pub(super) mod escapes;
pub(in crate::sql) mod expr_rewrites;
pub(in crate::sql) mod intervals;
pub(in crate::sql) mod long_numbers;
pub(in crate::sql) mod predicates;
pub(in crate::sql) mod quantified;
pub(in crate::sql) mod tuples;
pub(in crate::sql) mod windows;
