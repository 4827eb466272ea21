//! Ragged tables: all conversions and operations against a slow reference on nested vectors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(unreachable_pub)]

mod common;

#[path = "table/batch.rs"]
mod batch;
#[path = "table/index.rs"]
mod index;
#[path = "table/json.rs"]
mod json;
#[path = "table/long.rs"]
mod long;
#[path = "table/model.rs"]
mod model;
#[path = "common/reference.rs"]
mod reference;
#[path = "table/reshape.rs"]
mod reshape;
#[path = "table/rows.rs"]
mod rows;
#[path = "table/whole.rs"]
mod whole;
