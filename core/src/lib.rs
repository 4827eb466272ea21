//! The core of `serrate` without DataFusion: everything except SQL and the command line. The crate
//! `serrate` exports all items under the same names; the examples use `serrate`.

pub mod access;
pub mod array;
#[cfg(feature = "audit")]
pub mod audit;
#[cfg(feature = "batching")]
pub mod batching;
pub mod dense;
pub mod dok;
pub mod error;
#[cfg(feature = "generate")]
pub mod generate;
#[cfg(feature = "het")]
pub mod het;
pub mod index;
#[doc(hidden)]
pub mod internal;
pub mod io;
pub mod kernels;
mod limit;
pub mod loader;
mod locks;
pub mod memory;
pub mod table;

pub(crate) use array::with_offsets;
pub use array::{Layout, Offsets, RaggedArray};
pub use arrow;
#[cfg(feature = "batching")]
pub use batching::RaggedBatch;
pub use dense::{DType, DenseOptions, DenseTensor};
pub use dok::DokTensor;
pub use error::{Error, Result};
#[cfg(feature = "het")]
pub use het::HetTensor;
pub use index::Index;
pub use loader::{Loader, LoaderOptions};
pub use table::RaggedTable;
