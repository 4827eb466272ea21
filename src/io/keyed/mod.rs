//! Files of sparse tensors and of dictionaries of keys as SQL has them: what they hold ([`Contents`]), as
//! which [`Version`], and how a plan says which one it means ([`Spec`]).

mod contents;
mod spec;
mod store;

pub(crate) use contents::{Contents, first_double, key_type};
pub(crate) use spec::Spec;
pub(crate) use store::{Latest, Version, change, create, open};
