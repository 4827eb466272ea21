//! A columnar engine for nested ragged data.

pub mod array;
pub mod dense;
pub mod error;
pub mod generate;
pub mod io;
pub mod kernels;
pub mod table;

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
