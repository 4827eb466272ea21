//! Conversion of ragged data to dense tensors, compared with slow references on nested lists and
//! with results of the Python library `nested_ragged_tensors`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

#[path = "dense/densify.rs"]
mod densify;
#[path = "dense/pad.rs"]
mod pad;
#[path = "common/reference.rs"]
mod reference;
#[path = "dense/table.rs"]
mod table;
#[path = "dense/tree.rs"]
mod tree;
