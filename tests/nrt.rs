//! `.nrt` and safetensors files: against files of the Python library, each other, and damage.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "nrt/damage.rs"]
mod damage;
#[path = "nrt/reading.rs"]
mod reading;
#[path = "nrt/support.rs"]
mod support;
#[path = "nrt/vectors.rs"]
mod vectors;
#[path = "nrt/writing.rs"]
mod writing;
