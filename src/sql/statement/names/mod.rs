//! Rewrites names that DataFusion refuses or resolves otherwise than SQL: aliases, columns of outer
//! queries, and names that clash. Also names the result columns.

pub(super) mod alias_twins;
pub(super) mod cast_arguments;
pub(super) mod clashing_names;
pub(in crate::sql) mod headings;
pub(super) mod order_aliases;
pub(super) mod outer_fields;
pub(super) mod outer_tables;
pub(super) mod partial_names;
pub(super) mod select_aliases;
pub(super) mod select_names;
pub(in crate::sql) mod shadowed;
pub(super) mod unnamed_queries;
pub(in crate::sql) mod unnest_names;
