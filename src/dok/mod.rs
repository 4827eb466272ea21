//! Sparse tensors by coordinates, and the hash map below them.

mod map;
mod tensor;

pub(crate) use map::MISSING;
pub use map::{Fallback, Fetched, HashMap, MapOptions, RowType};
pub use tensor::{Coo, Csr, DokTensor, Duplicates, Scalar, Source};
