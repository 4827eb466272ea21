//! Rewrites calls of functions: expands DuckDB's short forms, and adapts lambdas. Also suggests
//! functions for unknown names.

pub(in crate::sql) mod calls;
pub(in crate::sql) mod counterparts;
pub(in crate::sql) mod lambda_bodies;
pub(super) mod numbered_lambdas;
#[cfg(feature = "cli")]
pub(in crate::sql) mod shorthand_docs;
pub(in crate::sql) mod shorthands;
