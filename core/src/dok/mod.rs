//! Sparse tensors, dictionaries over Arrow columns, and the hash map that both are built on.

mod dictionary;
mod map;
mod tensor;

pub(crate) use dictionary::ColumnParts;
pub use dictionary::Dictionary;
pub use map::{Fallback, FetchedValues, MapOptions, RowMap, RowType};
pub(crate) use map::{MISSING, canonicalize_keys};
pub(crate) use tensor::check_size;
pub use tensor::{
    Coo, Csr, DokScalar, DokTensor, DokUnary, DokValue, DuplicateEntries, ReducedAxes,
};
