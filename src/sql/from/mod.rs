//! Plans FROM: tables by path, table functions over queries, and the types of the columns of
//! relations.

mod axes;
mod derived;
pub(in crate::sql) mod distinct_names;
pub(in crate::sql) mod nested_values;
pub(in crate::sql) mod path_tables;
pub(in crate::sql) mod planned_relations;
mod read_functions;
mod relation_types;
pub(in crate::sql) mod rewrite;
mod summarize;
pub(in crate::sql) mod table_function_planner;
pub(in crate::sql) mod text_rewrites;
pub(in crate::sql) mod vocab;
