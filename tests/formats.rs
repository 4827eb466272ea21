//! Data sets and files of other formats: MEDS folders, Parquet, Arrow IPC, generated patients.

#![cfg(feature = "parquet")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "formats/meds.rs"]
mod meds;
#[path = "formats/tiny.rs"]
mod tiny;
