//! Tests of `RaggedTable`: conversions and operations, compared with a slow reference on nested
//! `Vec`s.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(unreachable_pub)]

mod common;

#[path = "table/column.rs"]
mod column;
#[path = "table/concat.rs"]
mod concat;
#[path = "table/display.rs"]
mod display;
#[path = "table/equal.rs"]
mod equal;
#[path = "table/index.rs"]
mod index;
#[path = "table/json.rs"]
mod json;
#[path = "table/long.rs"]
mod long;
#[path = "table/model.rs"]
mod model;
#[path = "table/record_batch.rs"]
mod record_batch;
#[path = "common/reference.rs"]
mod reference;
#[path = "table/reshape.rs"]
mod reshape;
#[path = "table/row.rs"]
mod row;
#[path = "table/sort.rs"]
mod sort;
#[path = "table/take.rs"]
mod take;
