//! Evaluates conditions that can fail only for the rows for which the query as written evaluates them.
//!
//! A rewrite that evaluates `1 / x > 0` below a join, or for the rows that `x <> 0` excludes, makes a
//! valid statement fail. Conditions that cannot fail (*free* conditions) therefore move as usual. The
//! others are *held*: they stay in a filter above the free ones, within the function `evaluated_here`,
//! which no rule of DataFusion looks into.

mod held;
mod lazy;
mod push;

pub(in crate::sql) use lazy::LazyConditions;
pub(in crate::sql) use push::PushDownFree;
