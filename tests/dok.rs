//! `RowMap` compared with the hash map of the standard library, and sparse tensors (`DokTensor`)
//! compared with dense ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)]

#[path = "dok/files.rs"]
mod files;
#[path = "dok/map.rs"]
mod map;
#[path = "dok/tensor.rs"]
mod tensor;
