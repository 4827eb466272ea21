//! Operations on ragged arrays: free functions that take arrays and return a `Result`.
//!
//! Axis 0 is the rows, axis `k` the elements of the `k`-th level of lists; negative axes count from
//! the innermost. A null list has no elements; it stays null in all kernels that keep lists. Each
//! kernel documents its treatment of null leaves.

pub mod at;
pub mod between;
pub mod broadcast;
pub mod concat;
pub mod coords;
pub mod dictionary_predicate;
pub mod elementwise;
mod exp;
pub mod filter;
pub mod gather;
pub mod group;
pub mod histogram;
pub mod index;
pub mod indices;
pub mod isin;
pub mod nan;
pub mod normalize;
pub mod occurrences;
pub mod pad;
pub mod reduce;
pub mod repeat;
pub mod reshape;
pub mod running;
pub mod scatter;
pub mod search;
pub mod select;
pub mod shape;
pub mod sort;
pub mod take;
pub mod text;
pub mod time_formats;
pub mod unary;
pub mod window;

pub(crate) mod align;
mod allocate;
#[cfg_attr(not(feature = "sql"), allow(unreachable_pub))]
pub(crate) mod argument_casts;
pub(crate) mod bits;
mod filter_values;
mod flags;
pub(crate) mod levels;
#[cfg(feature = "sql")]
pub(crate) mod list_bytes;
pub(crate) mod lookup;
mod native;
mod row_arg;
pub(crate) mod secret_hash;
pub(crate) mod side;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) mod simd;
pub(crate) mod span_texts;
pub(crate) mod text_lists;
#[cfg_attr(not(feature = "sql"), allow(dead_code, unreachable_pub, reason = "SQL has more parts"))]
pub(crate) mod time_parts;
pub(crate) mod time_texts;
mod time_units;
pub(crate) mod times;
pub(crate) mod zones;

pub use argument_casts::CountArgument;
pub use row_arg::RowArg;
