//! The MEDS data set in `tests/data/tiny-meds`, which the code below generates, and the codes in
//! `tests/data/tiny-codes`.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float32Array, Float64Array, Int64Array, LargeStringArray, ListBuilder, RecordBatch,
    StringArray, StringBuilder, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray,
};
use arrow::compute::concat_batches;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::support::{data_path, read_parquet, write_parquet};

pub(crate) fn tiny_folder() -> PathBuf {
    data_path("tiny-meds")
}

/// Returns a time on the day `day` after 2020-01-01, in microseconds since 1970.
pub(crate) fn micros_at(day: i64, hour: i64, minute: i64, second: i64) -> i64 {
    ((((18_262 + day) * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000
}

type Row = (i64, Option<i64>, &'static str, Option<f64>, Option<&'static str>);

/// Builds a sorted shard: several measurements per event, an event whose rows are not adjacent,
/// NULL, NaN and static facts.
fn train_0() -> RecordBatch {
    let rows: Vec<Row> = vec![
        (1, None, "SEX//F", None, None),
        (1, None, "BIRTH_YEAR", Some(1961.0), None),
        (1, Some(micros_at(0, 8, 30, 0)), "ADMISSION", None, Some("by ambulance")),
        (1, Some(micros_at(0, 8, 30, 0)), "LAB//sodium//mmol/L", Some(139.5), None),
        (1, Some(micros_at(0, 8, 30, 0)), "LAB//potassium//mmol/L", Some(4.1), None),
        (
            1,
            Some(micros_at(0, 20, 45, 15)),
            "LAB//sodium//mmol/L",
            Some(f64::NAN),
            Some("haemolysed"),
        ),
        (1, Some(micros_at(2, 8, 30, 0)), "DISCHARGE", None, Some("")),
        // A subject with only static facts.
        (2, None, "SEX//M", None, None),
        // A subject with one event and without static facts.
        (4, Some(micros_at(30, 0, 0, 0)), "LAB//sodium//mmol/L", Some(-0.0), None),
        (4, Some(micros_at(30, 0, 0, 0)), "LAB//sodium//mmol/L", Some(141.0), Some("repeated")),
    ];
    make_columns(
        &rows,
        |t| Arc::new(TimestampMicrosecondArray::from(t)),
        |c| Arc::new(StringArray::from(c)),
        Some(|v| {
            let v: Float32Array = v.into_iter().map(|v| v.map(|v| v as f32)).collect();
            Arc::new(v) as ArrayRef
        }),
        true,
    )
}

/// Builds an unsorted shard: rows of a subject that are not adjacent, times in nanoseconds, large
/// strings, and no column of values.
fn train_1() -> RecordBatch {
    let rows: Vec<Row> = vec![
        (7, Some(micros_at(5, 12, 0, 1)), "DISCHARGE", None, None),
        (7, Some(micros_at(5, 12, 0, 0)), "LAB//sodium//mmol/L", None, None),
        (6, Some(micros_at(1, 6, 0, 0)), "ADMISSION", None, None),
        (7, None, "SEX//F", None, None),
        (7, Some(micros_at(5, 12, 0, 1)), "LAB//new", None, None),
        (7, Some(micros_at(5, 12, 0, 0)), "ADMISSION", None, None),
        (6, None, "SEX//M", None, None),
    ];
    make_columns(
        &rows,
        |t| {
            let t: Vec<_> = t.into_iter().map(|t| t.map(|t| t * 1_000)).collect();
            Arc::new(TimestampNanosecondArray::from(t))
        },
        |c| Arc::new(LargeStringArray::from(c)),
        None,
        false,
    )
}

/// Builds a shard with times in milliseconds and float64 values.
fn held_out_0() -> RecordBatch {
    let rows: Vec<Row> = vec![
        (9, Some(micros_at(-20_000, 23, 59, 59)), "ADMISSION", None, None),
        (9, Some(micros_at(0, 0, 0, 0)), "LAB//new", Some(1e300), None),
    ];
    make_columns(
        &rows,
        |t| {
            let t: Vec<_> = t.into_iter().map(|t| t.map(|t| t / 1_000)).collect();
            Arc::new(TimestampMillisecondArray::from(t))
        },
        |c| Arc::new(StringArray::from(c)),
        Some(|v| Arc::new(Float64Array::from(v)) as ArrayRef),
        false,
    )
}

fn make_columns(
    rows: &[Row],
    time: impl Fn(Vec<Option<i64>>) -> ArrayRef,
    code: impl Fn(Vec<&str>) -> ArrayRef,
    value: Option<fn(Vec<Option<f64>>) -> ArrayRef>,
    text: bool,
) -> RecordBatch {
    let ids: Int64Array = rows.iter().map(|r| r.0).collect();
    let mut columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("subject_id", Arc::new(ids), false),
        ("time", time(rows.iter().map(|r| r.1).collect()), true),
        ("code", code(rows.iter().map(|r| r.2).collect()), false),
    ];
    if let Some(value) = value {
        columns.push(("numeric_value", value(rows.iter().map(|r| r.3).collect()), true));
    }
    if text {
        let text: StringArray = rows.iter().map(|r| r.4).collect();
        columns.push(("text_value", Arc::new(text), true));
    }
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn make_codes() -> RecordBatch {
    let rows = [
        ("ADMISSION", Some("Admission to hospital"), 3),
        ("BIRTH_YEAR", None, 5),
        ("DISCHARGE", Some("Discharge"), 4),
        ("LAB//potassium//mmol/L", Some("Potassium in serum"), 9),
        ("LAB//sodium//mmol/L", Some("Sodium in serum"), 8),
        ("SEX//F", None, 1),
        ("SEX//M", None, 2),
    ];
    let code: StringArray = rows.iter().map(|r| Some(r.0)).collect();
    let description: StringArray = rows.iter().map(|r| r.1).collect();
    let index: Int64Array = rows.iter().map(|r| r.2).collect();
    RecordBatch::try_from_iter_with_nullable([
        ("code", Arc::new(code) as ArrayRef, false),
        ("description", Arc::new(description), true),
        ("code/vocab_index", Arc::new(index), true),
    ])
    .unwrap()
}

fn make_splits() -> RecordBatch {
    let ids = Int64Array::from(vec![1, 2, 4, 6, 7, 9]);
    let split = StringArray::from(vec!["train", "train", "train", "train", "train", "held_out"]);
    RecordBatch::try_from_iter_with_nullable([
        ("subject_id", Arc::new(ids) as ArrayRef, false),
        ("split", Arc::new(split), false),
    ])
    .unwrap()
}

fn make_files() -> Vec<(&'static str, RecordBatch)> {
    vec![
        ("data/train/0.parquet", train_0()),
        ("data/train/1.parquet", train_1()),
        ("data/held_out/0.parquet", held_out_0()),
        ("data/tuning/0.parquet", train_0().slice(0, 0)),
        ("metadata/codes.parquet", make_codes()),
        ("metadata/subject_splits.parquet", make_splits()),
    ]
}

const DATASET: &str =
    "{\"dataset_name\": \"tiny\", \"dataset_version\": \"1\", \"meds_version\": \"0.4.1\"}\n";

/// Compares the files in the repository with the generated ones. With `SERRATE_WRITE_TEST_DATA`,
/// writes them first.
#[test]
fn tiny_meds_is_what_is_committed() {
    let root = tiny_folder();
    if std::env::var_os("SERRATE_WRITE_TEST_DATA").is_some() {
        for (name, batch) in make_files() {
            write_parquet(&root.join(name), &batch);
        }
        fs::write(root.join("metadata/dataset.json"), DATASET).unwrap();
    }
    for (name, expected) in make_files() {
        let file = File::open(root.join(name)).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
        let batches: Vec<_> = reader.collect::<Result<_, _>>().unwrap();
        let found = concat_batches(&expected.schema(), &batches).unwrap();
        assert_eq!(found, expected, "{name}");
    }
    assert_eq!(fs::read_to_string(root.join("metadata/dataset.json")).unwrap(), DATASET);
}

/// Builds codes with parents in two ontologies. Two names of one disease are each other's parents.
fn tiny_codes() -> RecordBatch {
    let rows: [(&str, Option<&str>, Option<&[Option<&str>]>); 14] = [
        ("DX//250.00", None, Some(&[Some("ICD9CM/250.00"), Some("SNOMED/44054006")])),
        ("DX//E10.9", None, Some(&[Some("ICD10CM/E10.9")])),
        ("DX//E11.65", None, Some(&[Some("ICD10CM/E11.65")])),
        ("DX//E11.9", Some("type 2 diabetes"), Some(&[Some("ICD10CM/E11.9"), None])),
        ("LAB//HbA1c", None, None),
        ("LAB//glucose", None, Some(&[])),
        ("ICD10CM/E11.65", None, Some(&[Some("ICD10CM/E11.6")])),
        ("ICD10CM/E11.6", None, Some(&[Some("ICD10CM/E11")])),
        ("ICD10CM/E11.9", None, Some(&[Some("ICD10CM/E11")])),
        ("ICD10CM/E11", None, Some(&[Some("ICD10CM/E08-E13"), Some("SNOMED/44054006")])),
        ("SNOMED/44054006", Some("type 2 diabetes"), Some(&[Some("ICD10CM/E11")])),
        ("ICD10CM/E10.9", None, Some(&[Some("ICD10CM/E10")])),
        ("ICD10CM/E10", None, Some(&[Some("ICD10CM/E08-E13")])),
        ("MEDS_BIRTH", None, None),
    ];
    let code: StringArray = rows.iter().map(|r| Some(r.0)).collect();
    let description: StringArray = rows.iter().map(|r| r.1).collect();
    let mut parents = ListBuilder::new(StringBuilder::new());
    for (_, _, own) in rows {
        own.unwrap_or_default().iter().for_each(|p| parents.values().append_option(*p));
        parents.append(own.is_some());
    }
    let columns: [(&str, ArrayRef, bool); 3] = [
        ("code", Arc::new(code), false),
        ("description", Arc::new(description), true),
        ("parent_codes", Arc::new(parents.finish()), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

#[test]
fn tiny_codes_is_what_is_committed() {
    let path = data_path("tiny-codes/codes.parquet");
    if std::env::var_os("SERRATE_WRITE_TEST_DATA").is_some() {
        write_parquet(&path, &tiny_codes());
    }
    assert_eq!(read_parquet(&path), tiny_codes());
}
