//! Ragged arrays: levels of lists over a flat Arrow array of leaves.

pub(crate) mod arrow;
mod axis;
// The functions of `canonical` are `pub`, because `serrate_core::internal` (feature `sql`)
// re-exports them.
#[cfg_attr(not(feature = "sql"), allow(unreachable_pub))]
pub(crate) mod canonical;
#[cfg_attr(not(feature = "sql"), allow(unreachable_pub))]
pub(crate) mod exact_casts;
#[cfg(feature = "sql")]
pub(crate) mod extent;
#[cfg_attr(not(feature = "sql"), allow(unreachable_pub))]
pub(crate) mod nearest_doubles;
pub(crate) mod nested_types;
pub(crate) mod nulls;
mod offsets;
pub(crate) mod prefetch;
mod ragged;
pub(crate) mod ranges;
pub(crate) mod record_batch;

pub use self::arrow::{ListKind, leaf_type, list_depth, list_kind, list_of};
pub(crate) use axis::make_lists_like;
pub use axis::{Layout, resolve_axis};
pub use offsets::Offsets;
pub(crate) use offsets::with_offsets;
pub use ragged::{ListAxis, RaggedArray};
