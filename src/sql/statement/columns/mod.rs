//! Rewrites syntax whose meaning depends on the columns of the tables in FROM: `*`, `COLUMNS(..)`,
//! USING and NATURAL, LATERAL, `_file` and `_row`. To learn the columns, most files of this folder
//! plan parts of the statement.

pub(super) mod column_sets;
pub(super) mod join_constraints;
pub(in crate::sql) mod lateral_tables;
pub(in crate::sql) mod merged;
pub(in crate::sql) mod position_columns;
pub(in crate::sql) mod set_names;
pub(super) mod star_excludes;
pub(in crate::sql) mod star_names;
pub(super) mod star_replaces;
pub(in crate::sql) mod unnest_calls;
pub(super) mod written_columns;
