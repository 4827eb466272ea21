//! Refuses statements that contain a clause which the planner would ignore or misread, and rewords
//! errors of the planner.

pub(in crate::sql) mod call_clauses;
mod change_clauses;
pub(in crate::sql) mod clauses;
pub(in crate::sql) mod hints;
pub(super) mod misplaced_windows;
mod other_statements;
pub(super) mod recursion_types;
mod rejected_forms;
mod star_clauses;
pub(super) mod table_clauses;
pub(in crate::sql) mod wording;
