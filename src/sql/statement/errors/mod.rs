//! Statements that are refused because the planner would ignore or misread a part of them, and the wording of errors.

mod call_clauses;
pub(in crate::sql) mod clauses;
pub(in crate::sql) mod hints;
mod misplaced_windows;
pub(super) mod recursion_types;
pub(in crate::sql) mod wording;
