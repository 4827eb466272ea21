//! Safetensors: a checked header, reading in place, writing in a stream.
//!
//! A file is an 8-byte length, a JSON header of that length that names every tensor with its type,
//! shape and place, and the raw little-endian data. Reading trusts nothing: see [`header`].
//! Writing gives, byte for byte, what Python's `safetensors.numpy.save_file` gives for the same
//! tensors.

pub mod dense;
pub mod header;

mod file;
#[cfg(feature = "object_store")]
mod object;
mod source;
mod writer;

pub use file::SafetensorsFile;
pub use header::{Header, TensorEntry};
#[cfg(feature = "object_store")]
pub use object::ObjectOptions;
#[cfg(feature = "object_store")]
pub(crate) use object::{Object, Part};
#[cfg(feature = "sql")]
pub(crate) use object::{explain, first_request};
pub use safetensors::Dtype;
pub use source::Source;
#[cfg(feature = "object_store")]
pub(crate) use source::covered;
#[cfg(feature = "parquet")]
pub(crate) use source::read_exact_at;
pub use writer::{
    Encoded, SafetensorsWriter, SaveOptions, TensorId, encode_tensors, write_tensors,
};

#[cfg(target_endian = "big")]
compile_error!("values are used as they lie in files, which are little-endian");
