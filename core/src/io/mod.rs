//! Readers and writers of files, with one module per format.

pub mod arrow_ipc;
pub(crate) mod atomic;
#[cfg(feature = "sql")]
pub(crate) mod csv;
pub mod dictionary;
pub mod dok;
#[cfg_attr(not(any(feature = "sql", feature = "parquet")), allow(dead_code))]
pub(crate) mod hidden_names;
pub mod json;
#[cfg(feature = "sql")]
pub(crate) mod keyed;
pub(crate) mod lease;
mod memory_map;
mod named_columns;
pub(crate) mod natural_order;
pub mod nrt;
pub(crate) mod reader_panics;
pub(crate) mod repeated_names;
pub mod safetensors;
#[cfg(feature = "sql")]
pub(crate) mod span_columns;
#[cfg(feature = "sql")]
pub(crate) mod stamp;

#[cfg(feature = "parquet")]
pub mod features;
#[cfg(feature = "parquet")]
pub mod meds;
#[cfg(feature = "parquet")]
pub mod meds_torch;
#[cfg(feature = "parquet")]
pub mod parquet;

pub use atomic::ExistingTarget;
