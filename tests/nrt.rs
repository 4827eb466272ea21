//! `.nrt` and safetensors files: compared with files of the Python library `nested_ragged_tensors`,
//! read in different ways, and damaged.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "nrt/damage.rs"]
mod damage;
#[cfg(feature = "sql")]
#[path = "nrt/object.rs"]
mod object;
#[path = "nrt/reading.rs"]
mod reading;
#[cfg(feature = "sql")]
#[path = "common/store.rs"]
mod store;
#[path = "nrt/support.rs"]
mod support;
#[path = "nrt/vectors.rs"]
mod vectors;
#[path = "nrt/writing.rs"]
mod writing;
