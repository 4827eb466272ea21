//! From text to syntax trees: the dialect, edits of a text that the parser does not accept, and limits of its depth.

pub(super) mod copy_options;
pub(in crate::sql) mod depth;
pub(in crate::sql) mod dialect;
pub(in crate::sql) mod forms;
pub(super) mod joined_numbers;
