//! Ragged tables: every way in and out against a slow reference on nested vectors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "table/batch.rs"]
mod batch;
#[path = "table/json.rs"]
mod json;
#[path = "table/long.rs"]
mod long;
#[path = "table/model.rs"]
mod model;
#[path = "table/rows.rs"]
mod rows;
