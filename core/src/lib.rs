//! The core of `serrate`: everything but SQL and the command, without DataFusion.
//!
//! `serrate` exports all of it under the same names; examples here are written with its name.

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
