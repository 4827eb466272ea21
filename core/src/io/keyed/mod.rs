//! Files of sparse tensors and of dictionaries of keys for SQL: their [`Contents`], a [`Version`] of a
//! file, and the [`Spec`] by which a plan refers to a version.

mod contents;
mod spec;
mod store;

pub use contents::{Contents, first_double, key_type};
pub use spec::Spec;
pub use store::{Latest, Version, change, create, open};
