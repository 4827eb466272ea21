//! A columnar engine for nested ragged data: patients who have visits that have codes, and anything
//! else where lists of different lengths nest and several columns share the same nesting.
//!
//! * [`table::RaggedTable`]: jointly ragged columns, flat Arrow arrays over offsets stored once per axis;
//!   [`array::RaggedArray`]: one column with its axes.
//! * [`mod@index`]: what to take along each axis, in numpy's terms.
//! * [`kernels`]: operations on them, free functions; [`dense`]: padded tensors and masks.
//! * [`batching`]: samples of different size as one batch, and batched operations on them.
//! * [`het`]: tensors of which some axes differ in size from place to place.
//! * [`loader`]: epochs of padded or packed batches, for training.
//! * [`io`]: `.nrt`, safetensors, JSON, Arrow IPC, and with the feature `parquet` Parquet and MEDS.
#![cfg_attr(
    feature = "sql",
    doc = "* [`sql`]: a DataFusion session over all of it; [`functions`]: the SQL functions; [`expr_fn`]: them in Rust."
)]
//!
//! ```
//! use std::sync::Arc;
//! use serrate::arrow::array::UInt16Array;
//! use serrate::dense::DenseOptions;
//! use serrate::kernels::densify::densify;
//! use serrate::table::RaggedTable;
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

pub mod array;
#[cfg(feature = "parquet")]
pub mod audit;
pub mod batching;
#[cfg(feature = "sql")]
mod config;
pub mod dense;
pub mod dok;
pub mod error;
pub mod generate;
pub mod het;
pub mod index;
pub mod io;
pub mod kernels;
pub mod loader;
pub mod table;

#[cfg(feature = "sql")]
pub mod expr_fn;
#[cfg(feature = "sql")]
pub mod functions;
#[cfg(feature = "sql")]
pub mod sql;

#[cfg(feature = "cli")]
pub mod cli;

pub use arrow;
#[cfg(feature = "sql")]
pub use datafusion;
pub use error::{Error, Result};

/// The examples of the README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
