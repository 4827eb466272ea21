//! Sparse tensor and dictionary files that SQL statements read and change: the [`Contents`] of a file, a
//! [`Version`] of a file, and the [`Spec`] that identifies a version in a query plan.

mod contents;
mod spec;
mod store;

pub use contents::{Contents, first_double, key_type};
pub use spec::Spec;
pub use store::{Latest, Version, change, create, open};
