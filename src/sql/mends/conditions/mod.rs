//! Conditions that can fail over a value are evaluated for the rows alone that the query evaluates them for.
//!
//! A rewrite that evaluates `1 / x > 0` below a join, or beside `x <> 0` for all rows, makes a valid
//! statement fail. So conditions that cannot fail move as ever, and the others are *held*: they
//! stand above the filter that has the rest, within a function that no rule of DataFusion looks into.

mod held;
mod lazy;
mod push;

pub(in crate::sql) use lazy::LazyConditions;
pub(in crate::sql) use push::PushDownFree;
