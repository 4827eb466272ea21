//! Checks of logical plans: errors that say what is wrong and what to write instead.

pub(in crate::sql) mod elements;
pub(in crate::sql) mod list_uses;
mod modifiers;
pub(in crate::sql) mod number_times;
mod row_values;
