//! Sparse tensors by coordinates, and the hash map below them.

mod map;

pub use map::{Fallback, Fetched, HashMap, MapOptions, RowType};
