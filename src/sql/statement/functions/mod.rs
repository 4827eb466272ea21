//! Calls of functions: DuckDB's short forms, lambdas, and suggestions for unknown functions.

pub(in crate::sql) mod calls;
pub(in crate::sql) mod counterparts;
pub(in crate::sql) mod lambda_bodies;
pub(super) mod numbered_lambdas;
#[cfg(feature = "cli")]
pub(in crate::sql) mod shorthand_docs;
pub(in crate::sql) mod shorthands;
