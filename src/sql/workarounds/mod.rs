//! Works around bugs of DataFusion, each in one file. A file names the test (`stock_.._still_..`)
//! that fails once the file can be removed. `sql::rules` lists the rules in the order in which they
//! run, with the issues of DataFusion.
//!
//! A folder is named after the part of a statement or plan that its files are for. [`changes`],
//! [`from_alone`], [`inserted_nulls`] and [`inserted_types`] are for whole statements.

pub(in crate::sql) mod changes;
pub(in crate::sql) mod expressions;
pub(in crate::sql) mod from_alone;
pub(in crate::sql) mod grouping;
pub(in crate::sql) mod guards;
pub(in crate::sql) mod inserted_nulls;
pub(in crate::sql) mod inserted_types;
pub(in crate::sql) mod joins_and_unions;
pub(in crate::sql) mod sorting;
pub(in crate::sql) mod subqueries;
pub(in crate::sql) mod types;
pub(in crate::sql) mod windows;
