//! Computes correlated subqueries for all outer rows at once.
//!
//! The distinct values of the outer columns that a query names become the rows of a table. This
//! table is joined to the innermost rows of the query, and the table's columns are kept up to the
//! result. The method is that of T. Neumann and A. Kemper, "Unnesting Arbitrary Queries", BTW 2015.

mod bound;
mod checks;
pub(in crate::sql) mod expand;
mod hoisted_queries;
mod lateral_joins;
pub(in crate::sql) mod new_names;
mod outer_rows;
pub(in crate::sql) mod query_values;

pub(in crate::sql) use self::checks::{is_equation, is_semi_join, repeats_bare_name};
pub(in crate::sql) use self::lateral_joins::{
    find_clashing_column, find_lateral_query, gains_columns, join_lateral, to_plain_join,
};
