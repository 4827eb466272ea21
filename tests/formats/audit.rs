//! Checks of data sets: nothing in sound ones, every fault by file, position, found and expected.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float32Array, Float64Array, Int64Array, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use serrate::audit::{Audit, CheckOptions, Finding, Severity, check};
use serrate::io::nrt::{self, NrtFile, WriteOptions};
use serrate::table::{Column, RaggedTable};

use crate::meds_torch::{batch, codes_file, convert, data, made, row, splits_file};
use crate::tiny::{at, write_parquet};

fn audit(root: &Path) -> Audit {
    check(root, &CheckOptions::default()).unwrap()
}

fn names(audit: &Audit, severity: Severity) -> Vec<&'static str> {
    audit.findings.iter().filter(|f| f.severity == severity).map(|f| f.check).collect()
}

/// The one finding of a check, whose description has all `parts`.
#[track_caller]
fn one<'a>(audit: &'a Audit, name: &str, parts: &[&str]) -> &'a Finding {
    let of_name: Vec<&Finding> = audit.findings.iter().filter(|f| f.check == name).collect();
    assert_eq!(of_name.len(), 1, "{name}: {:#?}", audit.findings);
    let text = of_name[0].to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
    of_name[0]
}

#[test]
fn sound_data_has_no_error() {
    let meds = audit(&data("synthea-meds"));
    assert_eq!(names(&meds, Severity::Error), [""; 0]);
    one(&meds, "unseen-code", &["outside train, 27 codes"]);
    one(&meds, "unknown-code", &["it lacks 27 codes"]);
    assert_eq!((meds.labels, meds.shards.len()), (1715, 4));
    let total: u64 = meds.shards.iter().map(|s| s.measurements + s.statics).sum();
    assert_eq!(total, 24_866);

    // The other tool's own output: no subject without events in it, so that nothing is shifted.
    let theirs = audit(&data("synthea-meds-torch-data"));
    assert_eq!((theirs.errors(), theirs.kind), (0, "tensorized cohort"));
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    convert(&data("tiny-meds"), &out, &Default::default()).unwrap();
    let ours = audit(&out);
    assert_eq!(names(&ours, Severity::Error), [""; 0], "{:#?}", ours.findings);
    let labels = CheckOptions { labels: Some(data("synthea-meds").join("labels")) };
    assert_eq!(check(data("synthea-meds-torch-data"), &labels).unwrap().errors(), 0);

    let e = check(dir.path(), &CheckOptions::default()).unwrap_err().to_string();
    assert!(e.contains("neither a MEDS data set nor a tensorized cohort"), "{e}");
}

fn labels(rows: &[(i64, Option<i64>, bool)]) -> RecordBatch {
    let ids: Int64Array = rows.iter().map(|r| r.0).collect();
    let times: TimestampMicrosecondArray = rows.iter().map(|r| r.1).collect();
    let values: BooleanArray = rows.iter().map(|r| Some(r.2)).collect();
    RecordBatch::try_from_iter_with_nullable([
        ("subject_id", Arc::new(ids) as ArrayRef, true),
        ("prediction_time", Arc::new(times), true),
        ("boolean_value", Arc::new(values), true),
    ])
    .unwrap()
}

#[test]
fn faults_of_meds_folders_are_found() {
    let train = [
        row(1, None, "A", None),
        row(1, Some(10), "A", Some(1.0)),
        row(1, Some(5), "B", Some(f32::INFINITY)),
        row(2, Some(5), "A", Some(f32::NAN)),
        row(1, Some(20), "A", None),
        row(3, Some(7), "A", Some(-f32::INFINITY)),
    ];
    let held_out = [row(2, Some(50), "NEW", Some(1.0)), row(4, Some(60), "A", None)];
    let mut wide: Vec<ArrayRef> = batch(&held_out, true).columns().to_vec();
    wide[3] = Arc::new(Float64Array::from(vec![Some(1.0), None]));
    let fields = ["subject_id", "time", "code", "numeric_value"];
    let wide = RecordBatch::try_from_iter(fields.into_iter().zip(wide)).unwrap();
    let (_dir, root) = made(&[
        ("data/train/0.parquet", batch(&train, true)),
        ("data/held_out/0.parquet", wide),
        ("metadata/codes.parquet", codes_file(&["A", "B"], &[Some(1), Some(2)], &[])),
        (
            "metadata/subject_splits.parquet",
            splits_file(&[(1, "train"), (2, "train"), (4, "tuning")]),
        ),
        (
            "labels/task/train/0.parquet",
            labels(&[
                (1, Some(20), true),
                (1, Some(4), false),
                (99, Some(1), true),
                (4, Some(70), true),
            ]),
        ),
        ("labels/task/train/1.parquet", labels(&[(1, None, true)])),
    ]);
    fs::write(root.join("data/train/9.parquet"), b"PAR1 and no more").unwrap();
    let found = audit(&root);
    assert_eq!((found.labels, found.shards.len()), (5, 2));
    let order = one(
        &found,
        "order",
        &["train/0.parquet", "row 2", "00:00:00.000005", "not before 1970-01-01 00:00:00.000010"],
    );
    assert_eq!((order.count, order.severity), (2, Severity::Error));
    let twice = found.findings.iter().find(|f| f.check == "subject-twice").unwrap();
    assert!(twice.to_string().contains("subject 2, which is in held_out/0"), "{twice}");
    let types = found.findings.iter().find(|f| f.check == "types").unwrap();
    assert!(types.to_string().contains("\"numeric_value\""), "{types}");
    let infinite = one(&found, "infinite", &["row 2", "inf of B", "finite"]);
    assert_eq!((infinite.count, infinite.severity), (2, Severity::Warning));
    one(&found, "unknown-code", &["1 codes with 1 measurements: NEW"]);
    one(&found, "unseen-code", &["NEW"]);
    one(&found, "no-split", &["train/0.parquet", "subject 3"]);
    one(&found, "unreadable", &["train/9.parquet"]);
    one(&found, "label-subject", &["labels/task/train/0.parquet", "row 2", "subject 99"]);
    one(&found, "label-early", &["row 1", "subject 1"]);
    one(&found, "label-split", &["row 3", "subject 4", "held_out"]);
    one(&found, "null", &["1.parquet", "row 0", "prediction_time"]);
    let split = found.findings.iter().filter(|f| f.check == "split").map(ToString::to_string);
    let split: Vec<String> = split.collect();
    assert!(
        split.iter().any(|s| s.contains("a subject of t") && s.contains("subjects of held_out")),
        "{split:?}"
    );
    let shard = found.shards.iter().find(|s| s.name == "train/0").unwrap();
    assert_eq!((shard.subjects, shard.measurements, shard.statics), (3, 5, 1));
    assert_eq!((shard.missing, shard.nan, shard.infinite), (1, 1, 2));

    // Columns, NULL codes, vocabularies.
    let good = batch(&train[..2], true);
    let mut columns = good.columns().to_vec();
    columns[2] = Arc::new(StringArray::from(vec![Some("A"), None]));
    let (_dir, root) = made(&[
        ("data/0.parquet", RecordBatch::try_new(good.schema(), columns).unwrap()),
        ("data/1.parquet", good.project(&[0, 1]).unwrap()),
        ("metadata/codes.parquet", codes_file(&["A", "A"], &[Some(1), Some(2)], &[])),
    ]);
    let found = audit(&root);
    one(&found, "unreadable", &["0.parquet", "\"code\", row 1"]);
    one(&found, "columns", &["1.parquet", "no column \"code\""]);
    one(&found, "vocabulary", &["codes.parquet", "two tokens"]);
}

/// A cohort of subjects 1 (no events), 2 and 3 in train/0, and 4 in tuning/0.
fn cohort() -> (tempfile::TempDir, std::path::PathBuf) {
    let train = [
        row(1, None, "A", None),
        row(2, None, "A", Some(1.0)),
        row(2, Some(at(0, 1, 0, 0)), "A", Some(1.0)),
        row(2, Some(at(0, 1, 0, 0)), "B", None),
        row(2, Some(at(1, 1, 0, 0)), "B", Some(2.0)),
        row(3, Some(at(2, 0, 0, 0)), "A", Some(2.0)),
    ];
    let (dir, root) = made(&[
        ("data/train/0.parquet", batch(&train, true)),
        ("data/tuning/0.parquet", batch(&[row(4, Some(at(0, 0, 0, 0)), "B", None)], true)),
    ]);
    let out = dir.path().join("out");
    convert(&root, &out, &Default::default()).unwrap();
    (dir, out)
}

#[test]
fn faults_of_cohorts_are_found() {
    let (_dir, root) = cohort();
    assert_eq!(names(&audit(&root), Severity::Error), [""; 0]);
    let path = root.join("data/train/0.nrt");
    let table = NrtFile::open(&path, &Default::default()).unwrap().table().unwrap();
    let overwrite = WriteOptions { overwrite: true, ..WriteOptions::default() };
    let with = |table: &RaggedTable| {
        nrt::write(&path, table, &overwrite).unwrap();
        audit(&root)
    };
    let replaced = |name: &str, values: ArrayRef| {
        let columns = table.columns().iter().map(|c| match c.name() == name {
            true => Column::new(name, c.axis(), values.clone()),
            false => c.clone(),
        });
        table.with_columns(columns.collect()).unwrap()
    };

    // Subjects without events left out: what shifts every later patient.
    let found = with(&table.take(&[1, 2]).unwrap());
    one(
        &found,
        "rows",
        &[
            "train/0.nrt",
            "2 rows",
            "lacks 1 that have no events",
            "from row 0 on",
            "expected 3 as in",
        ],
    );
    let found = with(&table.take(&[1]).unwrap());
    one(&found, "rows", &["1 rows; expected 3"]);
    assert_eq!(found.errors(), 1, "{:#?}", found.findings);
    let found = with(&table.take(&[0, 2, 1]).unwrap());
    one(&found, "events", &["row 1 has 1 events; row 1 of"]);

    let found = with(&replaced("code", Arc::new(Int64Array::from(vec![1, 7, -2, 0]))));
    let token = one(&found, "token", &["dim2/code, element 1", "code 7", "0 to 2"]);
    assert_eq!(token.count, 2);
    one(&found, "unknown-code", &["element 3", "code 0"]);
    // B is left in tuning alone.
    one(&found, "unseen-code", &["1 codes: B"]);
    let days = Float32Array::from(vec![f32::NAN, 2.0, 0.0]);
    let found = with(&replaced("time_delta_days", Arc::new(days)));
    let delta = one(&found, "delta", &["row 1, event 1", "time_delta_days 2", "expected 1"]);
    assert_eq!(delta.count, 2);
    let numbers = Float32Array::from(vec![f32::INFINITY, f32::NAN, 1.0, 2.0]);
    let found = with(&replaced("numeric_value", Arc::new(numbers)));
    one(&found, "infinite", &["dim2/numeric_value, element 0"]);
    assert_eq!((found.errors(), found.shards[0].missing, found.shards[0].infinite), (0, 1, 1));
    let narrow: ArrayRef = Arc::new(arrow::array::UInt16Array::from(vec![1, 2, 2, 1]));
    let found = with(&replaced("code", narrow));
    one(&found, "types", &["\"code\"", "UInt16 on axis 2", "Int64 on axis 2"]);
    let found = with(&table.select(&["code", "numeric_value"]).unwrap());
    one(&found, "columns", &["dim1/time_delta_days"]);

    // Bounds that go back.
    nrt::write(&path, &table, &overwrite).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let sound = bytes.clone();
    let start = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    // dim1/bounds is the first tensor: 0, 2, 3.
    bytes[start + 8] = 9;
    fs::write(&path, &bytes).unwrap();
    one(&audit(&root), "bounds", &["train/0.nrt", "dim1/bounds"]);
    fs::write(&path, &sound[..sound.len() - 3]).unwrap();
    one(&audit(&root), "unreadable", &["train/0.nrt"]);
    fs::write(&path, &sound).unwrap();

    // A subject in two splits, and half a shard.
    for folder in ["data", "tokenization/schemas"] {
        let ending = if folder == "data" { "nrt" } else { "parquet" };
        fs::create_dir_all(root.join(folder).join("held_out")).unwrap();
        let shard = |name: &str| root.join(folder).join(format!("{name}.{ending}"));
        fs::copy(shard("tuning/0"), shard("held_out/0")).unwrap();
    }
    let found = audit(&root);
    one(&found, "subject-twice", &["subject 4", "in held_out/0"]);
    fs::remove_file(root.join("data/held_out/0.nrt")).unwrap();
    one(&audit(&root), "pair", &["held_out/0.parquet", "no tensors"]);
    fs::remove_file(root.join("metadata/codes.parquet")).unwrap();
    one(&audit(&root), "vocabulary", &["codes.parquet", "no such file"]);
}

#[test]
fn faults_of_schema_files_are_found() {
    let (_dir, root) = cohort();
    let path = root.join("tokenization/schemas/train/0.parquet");
    let schema = crate::meds_torch::parquet(&path);
    let with = |name: &str, column: ArrayRef| {
        let fields = schema.schema();
        let columns = fields.fields().iter().zip(schema.columns()).map(|(f, c)| {
            let column = if f.name() == name { column.clone() } else { c.clone() };
            (f.name().clone(), column, true)
        });
        let columns: Vec<_> = columns.collect();
        write_parquet(&path, &RecordBatch::try_from_iter_with_nullable(columns).unwrap());
        audit(&root)
    };
    let times = schema["time"].as_list::<i64>();
    let swapped =
        TimestampMicrosecondArray::from(vec![at(1, 1, 0, 0), at(0, 1, 0, 0), at(2, 0, 0, 0)]);
    let (field, offsets, _, nulls) = times.clone().into_parts();
    let list = arrow::array::LargeListArray::new(field, offsets, Arc::new(swapped), nulls);
    let found = with("time", Arc::new(list));
    one(&found, "order", &["schemas/train/0.parquet", "row 1, event 1"]);
    one(&found, "start-time", &["row 1"]);
    one(&found, "delta", &["row 1, event 1"]);
    let found = with("subject_id", Arc::new(Int64Array::from(vec![1, 3, 3])));
    one(&found, "subject-twice", &["row 2", "subject 3", "in this shard before"]);
    let counts = schema["measurements_per_event"].as_list::<i64>();
    let (field, offsets, _, nulls) = counts.clone().into_parts();
    let wrong = arrow::array::UInt32Array::from(vec![2, 2, 1]);
    let list = arrow::array::LargeListArray::new(field, offsets, Arc::new(wrong), nulls);
    let found = with("measurements_per_event", Arc::new(list));
    one(&found, "measurements", &["event 1 of the shard has 1 measurements", "says 2"]);
    assert_eq!(schema["static_code"].null_count(), 1);
}

#[test]
fn labels_that_reading_refuses_are_found() {
    let meds = data("synthea-meds");
    let dir = tempfile::tempdir().unwrap();
    let label = |name: &str, value: ArrayRef| {
        let keys: [(&str, ArrayRef, bool); 2] = [
            ("subject_id", Arc::new(Int64Array::from(vec![8])), true),
            ("prediction_time", Arc::new(TimestampMicrosecondArray::from(vec![i64::MAX])), true),
        ];
        let all = keys.into_iter().chain([(name, value, true)]);
        RecordBatch::try_from_iter_with_nullable(all).unwrap()
    };
    let whole: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    write_parquet(&dir.path().join("a/0.parquet"), &label("boolean_value", whole.clone()));
    let options = CheckOptions { labels: Some(dir.path().to_path_buf()) };
    let found = check(&meds, &options).unwrap();
    one(&found, "types", &["a/0.parquet", "boolean_value", "Int64", "expected booleans"]);
    write_parquet(&dir.path().join("a/0.parquet"), &label("integer_value", whole));
    let found = check(&meds, &options).unwrap();
    assert_eq!(found.errors(), 0, "{:#?}", found.findings);
    // Several tasks are named; the type of a column is that of its own task.
    let wide: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    write_parquet(&dir.path().join("b/0.parquet"), &label("categorical_value", wide));
    let found = check(&meds, &options).unwrap();
    one(&found, "tasks", &["2 tasks: a, b", "folder of one"]);
    assert_eq!((found.errors(), found.labels), (0, 2), "{:#?}", found.findings);
    let one_file = CheckOptions { labels: Some(dir.path().join("a/0.parquet")) };
    assert_eq!(check(&meds, &one_file).unwrap().labels, 1);
    let none = CheckOptions { labels: Some(dir.path().join("none")) };
    assert!(check(&meds, &none).unwrap_err().to_string().contains("no such file or folder"));
}
