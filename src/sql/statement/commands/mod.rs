//! Checks and rewrites statements that are not queries: INSERT, UPDATE, DELETE, CREATE TABLE, COPY,
//! SET, RESET and SHOW TABLES.

pub(super) mod change_forms;
pub(in crate::sql) mod column_constraints;
pub(in crate::sql) mod copy_targets;
pub(super) mod created_tables;
pub(super) mod listed_tables;
pub(super) mod nested_values;
pub(super) mod own_settings;
pub(super) mod replaced_kinds;
pub(super) mod row_structs;
mod target_columns;
pub(super) mod time_values;
pub(super) mod unlisted_columns;
pub(super) mod update_targets;
pub(super) mod written_decimals;
pub(super) mod written_tensors;
