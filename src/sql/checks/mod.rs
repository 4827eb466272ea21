//! Checks of logical plans: errors that say what is wrong and what to write instead.

pub(in crate::sql) mod elements;
pub(in crate::sql) mod list_uses;
mod modifiers;
mod row_values;
