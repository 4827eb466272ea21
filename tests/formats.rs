//! Data sets and files of other formats: MEDS folders, Parquet, Arrow IPC, and generated patients.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::type_complexity
)]
#![allow(unreachable_pub)]

mod common;

#[path = "formats/audit.rs"]
mod audit;
#[path = "formats/features.rs"]
mod features;
#[path = "formats/generate.rs"]
mod generate;
#[path = "formats/ipc.rs"]
mod ipc;
#[path = "formats/labels.rs"]
mod labels;
#[path = "formats/meds.rs"]
mod meds;
#[path = "formats/meds_torch.rs"]
mod meds_torch;
#[path = "formats/parquet.rs"]
mod parquet_files;
#[path = "formats/parquet_lists.rs"]
mod parquet_lists;
#[path = "formats/support.rs"]
mod support;
#[path = "formats/tiny.rs"]
mod tiny;

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, DictionaryArray, Float32Array, Int64Array, StringArray,
    TimestampMicrosecondArray, UInt16Array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::UInt32Type;
use serrate::table::{Column, RaggedTable};

/// Builds a table with leaves of every kind, null leaves, null lists and empty lists.
fn make_mixed_table() -> RaggedTable {
    let codes: DictionaryArray<UInt32Type> =
        [Some("b"), None, Some("a"), Some("b"), Some("c"), Some("b")].into_iter().collect();
    let columns: [(&str, usize, ArrayRef); 7] = [
        ("id", 0, Arc::new(Int64Array::from(vec![7, i64::MIN, i64::MAX, 0]))),
        (
            "name",
            0,
            Arc::new(StringArray::from(vec![Some("x"), None, Some(""), Some("\u{1F600}")])),
        ),
        (
            "time",
            1,
            Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), None, Some(5), Some(9)])),
        ),
        ("flag", 1, Arc::new(BooleanArray::from(vec![true, false, true, true]))),
        ("code", 2, Arc::new(codes)),
        ("token", 2, Arc::new(UInt16Array::from(vec![1, 2, 65_535, 0, 5, 6]))),
        (
            "value",
            2,
            Arc::new(Float32Array::from(vec![
                Some(f32::NAN),
                None,
                Some(-0.0),
                Some(1.5),
                Some(f32::MAX),
                None,
            ])),
        ),
    ];
    let mut builder = RaggedTable::builder()
        .names(["patient", "visit", "code"])
        .lengths([3, 0, 0, 1])
        .unwrap()
        .lengths([2, 0, 3, 1])
        .unwrap();
    for (name, axis, values) in columns {
        let mut column = Column::new(name, axis, values);
        if name == "value" {
            let rows = NullBuffer::from(vec![true, false, true, true]);
            let visits = NullBuffer::from(vec![true, false, true, true]);
            column = column.with_list_nulls(vec![Some(rows), Some(visits)]);
        }
        builder = builder.push(column);
    }
    builder.build().unwrap()
}
