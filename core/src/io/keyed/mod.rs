//! Sparse tensor and dictionary files that SQL statements read and change: the [`Contents`] of a file, a
//! [`Version`] of a file, and the [`Spec`] that identifies a version in a query plan.

mod contents;
mod entry_cache;
mod spec;

pub use contents::{Contents, find_first_double, key_type};
pub use entry_cache::{LatestVersion, Version, change_file, create, open};
pub use spec::Spec;
