//! Tests of the batch loader: the items of its epochs and the tensors of its batches, compared with
//! slow references.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

#[path = "loader/meds.rs"]
mod meds;
#[path = "loader/memory.rs"]
mod memory;
#[path = "loader/packed.rs"]
mod packed;
#[path = "loader/padded.rs"]
mod padded;
#[path = "loader/pipeline.rs"]
mod pipeline;
#[path = "loader/plan.rs"]
mod plan;
#[path = "loader/records.rs"]
mod records;
#[cfg(feature = "parquet")]
#[path = "loader/reference.rs"]
mod reference;
#[path = "loader/support.rs"]
mod support;
