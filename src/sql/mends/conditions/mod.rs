//! Conditions that can fail on a value are evaluated only for the rows for which the query
//! evaluates them.
//!
//! A rewrite that evaluates `1 / x > 0` below a join, or for the rows that `x <> 0` excludes, makes
//! a valid statement fail. Conditions that cannot fail therefore move as usual, and the others are
//! *held*: they stay above the filter with the rest, within a function that no rule of DataFusion
//! looks into.

mod held;
mod lazy;
mod push;

pub(in crate::sql) use lazy::LazyConditions;
pub(in crate::sql) use push::PushDownFree;
