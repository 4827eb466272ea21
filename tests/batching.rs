//! Tests of `RaggedBatch` against a slow reference: one vector per sample, of one vector per entry.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

#[path = "batching/convert.rs"]
mod convert;
#[path = "batching/indexing.rs"]
mod indexing;
#[path = "batching/large.rs"]
mod large;
#[path = "batching/masking.rs"]
mod masking;
#[path = "batching/ragged_batch.rs"]
mod ragged_batch;
#[path = "batching/reference.rs"]
mod reference;
#[path = "batching/refused.rs"]
mod refused;
