//! The core of `serrate`: everything except SQL and the command line, without DataFusion.
//!
//! `serrate` exports all of it under the same names; the examples use its name.

pub mod array;
#[cfg(feature = "parquet")]
pub mod audit;
pub mod batching;
pub mod dense;
pub mod dok;
pub mod error;
pub mod generate;
pub mod het;
pub mod index;
#[doc(hidden)]
pub mod internal;
pub mod io;
pub mod kernels;
mod limit;
pub mod loader;
pub mod table;

pub use arrow;
pub use error::{Error, Result};
