//! Code shared by several test binaries.

pub mod torture;
