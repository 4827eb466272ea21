//! A columnar engine for nested ragged data: patients who have visits that have codes, and any
//! other data in which lists of different lengths nest and several columns share one nesting.
//!
//! The types that a program names most are exported at the top: [`RaggedTable`], [`RaggedArray`],
//! [`DenseTensor`], [`Index`], [`Error`] and a few more.
//!
//! * [`table::RaggedTable`]: jointly ragged columns, flat Arrow arrays over offsets stored once per
//!   axis; [`array::RaggedArray`]: one column with its axes.
//! * [`mod@index`]: numpy-style indices along each axis.
//! * [`kernels`]: operations on ragged arrays as functions; [`dense`]: padded tensors and masks.
#![cfg_attr(
    feature = "batching",
    doc = "* [`batching`]: samples of different size as one batch, and operations on such batches."
)]
#![cfg_attr(feature = "het", doc = "* [`het`]: tensors in which the size of some axes varies.")]
//! * [`loader`]: epochs of padded or packed batches, for training.
//! * [`io`]: `.nrt`, safetensors, JSON, Arrow IPC, and with the feature `parquet` Parquet and MEDS.
#![cfg_attr(
    feature = "sql",
    doc = "* [`sql`]: a DataFusion session; [`functions`]: the SQL functions; [`expr_fn`]: builders for their calls in Rust."
)]
//!
//! A table of two patients, and its codes as a dense tensor, padded to the longest lists:
//!
//! ```
//! use std::sync::Arc;
//! use serrate::arrow::array::UInt16Array;
//! use serrate::kernels::densify::densify;
//! use serrate::{DenseOptions, RaggedTable};
//!
//! // two patients with 3 and 1 visits, which have 2, 4, 1 and 3 codes
//! let table = RaggedTable::builder()
//!     .lengths([3, 1])?
//!     .lengths([2, 4, 1, 3])?
//!     .column("code", 2, Arc::new(UInt16Array::from_iter_values(0..10)))
//!     .build()?;
//! let dense = densify(&table.array("code")?, None, &DenseOptions::default())?;
//! assert_eq!(dense.shape(), [2, 3, 4]);
//! # Ok::<(), serrate::Error>(())
//! ```

#[cfg(feature = "sql")]
#[cfg_attr(
    not(feature = "cli"),
    allow(dead_code, unused_imports, reason = "the command uses the rest")
)]
mod cohorts;
#[cfg(feature = "sql")]
mod config;
#[cfg(feature = "sql")]
pub mod expr_fn;
#[cfg(feature = "sql")]
pub mod functions;
#[cfg(feature = "sql")]
pub mod sql;

// Public only for the `serrate` binary.
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
#[cfg(feature = "cluster")]
pub mod cluster;
#[cfg(any(feature = "cluster", feature = "serve"))]
mod secret;
#[cfg(feature = "serve")]
mod serve;

pub use arrow;
#[cfg(feature = "sql")]
pub use datafusion;
#[cfg(feature = "audit")]
#[doc(inline)]
pub use serrate_core::audit;
#[cfg(feature = "generate")]
#[doc(inline)]
pub use serrate_core::generate;
#[doc(inline)]
pub use serrate_core::{
    DType, DenseOptions, DenseTensor, DokTensor, Error, Index, Layout, Loader, LoaderOptions,
    Offsets, RaggedArray, RaggedTable, Result, access, array, dense, dok, error, index, io, loader,
    memory, table,
};
#[cfg(feature = "het")]
#[doc(inline)]
pub use serrate_core::{HetTensor, het};
#[cfg(feature = "batching")]
#[doc(inline)]
pub use serrate_core::{RaggedBatch, batching};

/// Operations on ragged arrays, as free functions that take arrays and return a `Result`.
///
/// Axis 0 is the rows, axis `k` is the elements of the `k`-th level of lists, and negative axes
/// count from the innermost. A null list has no elements, and operations that keep lists keep it
/// null. Each kernel documents how it treats null leaves.
pub mod kernels {
    // `serrate_core` has these two functions in `dense`, because they return dense tensors.
    #[doc(inline)]
    pub use serrate_core::dense::{densify, mask};
    #[doc(inline)]
    pub use serrate_core::kernels::*;
}

/// Runs the examples of the README and of `docs/rust.md` as tests.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;

    #[cfg(all(feature = "batching", feature = "het", feature = "parquet"))]
    #[doc = include_str!("../docs/rust.md")]
    struct RustApi;
}
