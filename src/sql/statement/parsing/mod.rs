//! Prepares SQL text for the parser: defines the dialect, edits a text that the parser does not
//! accept, and limits the depth of statements.

pub(super) mod copy_options;
pub(in crate::sql) mod depth;
pub(in crate::sql) mod dialect;
pub(in crate::sql) mod forms;
pub(super) mod implied_parentheses;
pub(super) mod joined_numbers;
pub(in crate::sql) mod query_texts;
