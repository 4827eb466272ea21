//! Sparse tensor and dictionary files that SQL statements read and change.

mod contents;
mod entry_cache;
mod spec;

pub use contents::{KeyedContents, key_type};
pub use entry_cache::{KeyedVersion, LatestVersion, change_file, create, open};
pub use spec::KeyedSpec;
