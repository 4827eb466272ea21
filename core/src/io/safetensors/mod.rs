//! Safetensors files: a checked header, reads in place, streaming writes.
//!
//! A file is an 8-byte length, a JSON header of that length with the type, shape and position of
//! every tensor, and the raw little-endian data. Reading trusts nothing in the file: see
//! [`SafetensorsHeader`]. Writing gives the same bytes as Python's `safetensors.numpy.save_file`
//! for the same tensors.

pub mod dense;
mod header;

mod byte_source;
mod file;
#[cfg(feature = "object_store")]
pub(crate) mod object;
mod writer;

#[cfg(feature = "object_store")]
pub(crate) use byte_source::is_covered;
#[cfg(feature = "parquet")]
pub(crate) use byte_source::read_exact_at;
pub use byte_source::{ByteSource, FileAccess};
pub use file::SafetensorsFile;
pub use header::{SafetensorsHeader, TensorEntry};
#[cfg(feature = "object_store")]
pub use object::ObjectOptions;
#[cfg(feature = "object_store")]
pub(crate) use object::{FetchedPart, StoredObject};
pub use safetensors::Dtype;
#[cfg(feature = "parquet")]
pub(crate) use writer::write_streamed;
pub use writer::{
    EncodedTensors, SafetensorsWriter, SaveOptions, TensorId, encode_tensors, write_tensors,
};

#[cfg(target_endian = "big")]
compile_error!("values are used in place in files, which are little-endian");
