//! The checks of data sets: sound data sets have no findings, and each fault is reported with its
//! file, its position, the value found and the value expected.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float32Array, Float64Array, Int64Array, ListBuilder,
    RecordBatch, StringArray, StringBuilder, TimestampMicrosecondArray,
};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Field};
use serrate::audit::{Audit, CheckOptions, Finding, KINDS, Severity, check};
use serrate::io::meds::MedsDataset;
use serrate::io::nrt::{self, NrtFile, WriteOptions};
use serrate::table::{Column, RaggedTable};

use crate::meds_torch::{codes_file, convert_dataset, make_batch, make_row, splits_file};
use crate::support::{data_path, read_parquet, write_dataset, write_parquet};
use crate::tiny::micros_at;

fn run_audit(root: &Path) -> Audit {
    let audit = check(root, &CheckOptions::default()).unwrap();
    for finding in &audit.findings {
        let kind = KINDS.iter().find(|k| k.name == finding.check);
        assert_eq!(kind.map(|k| k.severity), Some(finding.severity), "{finding}");
    }
    audit
}

/// Returns the findings of the check `name` as strings.
fn list_texts(audit: &Audit, name: &str) -> Vec<String> {
    audit.findings.iter().filter(|f| f.check == name).map(ToString::to_string).collect()
}

fn list_names(audit: &Audit, severity: Severity) -> Vec<&'static str> {
    audit.findings.iter().filter(|f| f.severity == severity).map(|f| f.check).collect()
}

/// Returns the finding of the check `name`, of which there must be exactly one. Its text must
/// contain all `parts`.
#[track_caller]
fn find_one<'a>(audit: &'a Audit, name: &str, parts: &[&str]) -> &'a Finding {
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
    let meds = run_audit(&data_path("synthea-meds"));
    assert_eq!(list_names(&meds, Severity::Error), [""; 0]);
    let unseen =
        find_one(&meds, "unseen-code", &["outside train, 27 code(s) with 52 measurement(s)"]);
    let unknown = find_one(&meds, "unknown-code", &["the file lacks 27 code(s)", "0.2 % of all"]);
    assert_eq!((unseen.count, unknown.count), (52, 52));
    assert_eq!((meds.labels, meds.shards.len()), (1715, 4));
    let total: u64 = meds.shards.iter().map(|s| s.measurements + s.statics).sum();
    assert_eq!(total, 24_866);

    // A cohort that the Python tool has tensorized. All subjects have events, so that it has no
    // shifted rows.
    let theirs = run_audit(&data_path("synthea-meds-torch-data"));
    assert_eq!((theirs.errors(), theirs.kind), (0, "tensorized cohort"));
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    convert_dataset(&data_path("tiny-meds"), &out, &Default::default()).unwrap();
    let ours = run_audit(&out);
    assert_eq!(list_names(&ours, Severity::Error), [""; 0], "{:#?}", ours.findings);
    let labels = CheckOptions { labels: Some(data_path("synthea-meds").join("labels")) };
    assert_eq!(check(data_path("synthea-meds-torch-data"), &labels).unwrap().errors(), 0);

    let e = check(dir.path(), &CheckOptions::default()).unwrap_err().to_string();
    assert!(e.contains("neither a MEDS data set nor a tensorized cohort"), "{e}");
}

fn make_labels(rows: &[(i64, Option<i64>, bool)]) -> RecordBatch {
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
        make_row(1, None, "A", None),
        make_row(1, Some(10), "A", Some(1.0)),
        make_row(1, Some(5), "B", Some(f32::INFINITY)),
        make_row(2, Some(5), "A", Some(f32::NAN)),
        make_row(1, Some(20), "A", None),
        make_row(3, Some(7), "A", Some(-f32::INFINITY)),
    ];
    let held_out = [make_row(2, Some(50), "NEW", Some(1.0)), make_row(4, Some(60), "A", None)];
    let mut wide: Vec<ArrayRef> = make_batch(&held_out, true).columns().to_vec();
    wide[3] = Arc::new(Float64Array::from(vec![Some(1.0), None]));
    let fields = ["subject_id", "time", "code", "numeric_value"];
    let wide = RecordBatch::try_from_iter(fields.into_iter().zip(wide)).unwrap();
    let (_dir, root) = write_dataset(&[
        ("data/train/0.parquet", make_batch(&train, true)),
        ("data/held_out/0.parquet", wide),
        ("metadata/codes.parquet", codes_file(&["A", "B"], &[Some(1), Some(2)], &[])),
        (
            "metadata/subject_splits.parquet",
            splits_file(&[(1, "train"), (2, "train"), (4, "tuning")]),
        ),
        (
            "labels/task/train/0.parquet",
            make_labels(&[
                (1, Some(20), true),
                (1, Some(4), false),
                (99, Some(1), true),
                (4, Some(70), true),
            ]),
        ),
        ("labels/task/train/1.parquet", make_labels(&[(1, None, true)])),
    ]);
    fs::write(root.join("data/train/9.parquet"), b"PAR1 and no more").unwrap();
    let found = run_audit(&root);
    assert_eq!((found.labels, found.shards.len()), (5, 2));
    let order = find_one(
        &found,
        "order",
        &["train/0.parquet", "row 2", "00:00:00.000005", "at or after 1970-01-01 00:00:00.000010"],
    );
    assert_eq!((order.count, order.severity), (2, Severity::Error));
    let twice = found.findings.iter().find(|f| f.check == "subject-twice").unwrap();
    assert!(twice.to_string().contains("subject 2, which is also in held_out/0"), "{twice}");
    let types = found.findings.iter().find(|f| f.check == "types").unwrap();
    assert!(types.to_string().contains("\"numeric_value\""), "{types}");
    let infinite = find_one(&found, "infinite", &["row 2", "inf of B", "finite"]);
    assert_eq!((infinite.count, infinite.severity), (2, Severity::Warning));
    find_one(&found, "unknown-code", &["1 code(s) with 1 measurement(s): NEW"]);
    find_one(&found, "unseen-code", &["NEW"]);
    find_one(&found, "no-split", &["train/0.parquet", "subject 3"]);
    find_one(&found, "unreadable", &["train/9.parquet"]);
    find_one(&found, "label-subject", &["labels/task/train/0.parquet", "row 2", "subject 99"]);
    find_one(&found, "label-early", &["row 1", "subject 1"]);
    find_one(&found, "label-split", &["row 3", "subject 4", "held_out"]);
    find_one(&found, "null", &["1.parquet", "row 0", "prediction_time"]);
    let split = found.findings.iter().filter(|f| f.check == "split").map(ToString::to_string);
    let split: Vec<String> = split.collect();
    assert!(
        split.iter().any(|s| s.contains("assigns to t") && s.contains("subjects of held_out")),
        "{split:?}"
    );
    let shard = found.shards.iter().find(|s| s.name == "train/0").unwrap();
    assert_eq!((shard.subjects, shard.measurements, shard.statics), (3, 5, 1));
    assert_eq!((shard.missing, shard.nan, shard.infinite), (1, 1, 2));

    // Columns that are missing, NULL codes, and vocabularies with errors.
    let good = make_batch(&train[..2], true);
    let mut columns = good.columns().to_vec();
    columns[2] = Arc::new(StringArray::from(vec![Some("A"), None]));
    let (_dir, root) = write_dataset(&[
        ("data/0.parquet", RecordBatch::try_new(good.schema(), columns).unwrap()),
        ("data/1.parquet", good.project(&[0, 1]).unwrap()),
        ("metadata/codes.parquet", codes_file(&["A", "A"], &[Some(1), Some(2)], &[])),
    ]);
    let found = run_audit(&root);
    find_one(&found, "null", &["0.parquet", "\"code\", row 1", "expected a value"]);
    find_one(&found, "columns", &["1.parquet", "no column \"code\""]);
    find_one(&found, "vocabulary", &["codes.parquet", "two tokens"]);
    find_one(&found, "code-twice", &["codes.parquet", "row 1", "\"A\"", "row 0"]);
}

/// Writes a tensorized cohort with the subjects 1 (without events), 2 and 3 in `train/0`, and 4 in
/// `tuning/0`.
fn write_cohort() -> (tempfile::TempDir, std::path::PathBuf) {
    let train = [
        make_row(1, None, "A", None),
        make_row(2, None, "A", Some(1.0)),
        make_row(2, Some(micros_at(0, 1, 0, 0)), "A", Some(1.0)),
        make_row(2, Some(micros_at(0, 1, 0, 0)), "B", None),
        make_row(2, Some(micros_at(1, 1, 0, 0)), "B", Some(2.0)),
        make_row(3, Some(micros_at(2, 0, 0, 0)), "A", Some(2.0)),
    ];
    let (dir, root) = write_dataset(&[
        ("data/train/0.parquet", make_batch(&train, true)),
        (
            "data/tuning/0.parquet",
            make_batch(&[make_row(4, Some(micros_at(0, 0, 0, 0)), "B", None)], true),
        ),
    ]);
    let out = dir.path().join("out");
    convert_dataset(&root, &out, &Default::default()).unwrap();
    (dir, out)
}

#[test]
fn faults_of_cohorts_are_found() {
    let (_dir, root) = write_cohort();
    assert_eq!(list_names(&run_audit(&root), Severity::Error), [""; 0]);
    let path = root.join("data/train/0.nrt");
    let table = NrtFile::open(&path, &Default::default()).unwrap().table().unwrap();
    let overwrite = WriteOptions { overwrite: true, ..WriteOptions::default() };
    let with = |table: &RaggedTable| {
        nrt::write(&path, table, &overwrite).unwrap();
        run_audit(&root)
    };
    let replaced = |name: &str, values: ArrayRef| {
        let columns = table.columns().iter().map(|c| match c.name() == name {
            true => Column::new(name, c.axis(), values.clone()),
            false => c.clone(),
        });
        table.with_columns(columns.collect()).unwrap()
    };

    // If a shard lacks the row of a subject without events, the rows of all later subjects are
    // shifted.
    let found = with(&table.take(&[1, 2]).unwrap());
    find_one(
        &found,
        "rows",
        &[
            "train/0.nrt",
            "2 row(s)",
            "lacks the 1 row(s) without events",
            "from row 0 on",
            "expected 3 as in",
        ],
    );
    let found = with(&table.take(&[1]).unwrap());
    find_one(&found, "rows", &["1 row(s); expected 3"]);
    assert_eq!(found.errors(), 1, "{:#?}", found.findings);
    let found = with(&table.take(&[0, 2, 1]).unwrap());
    find_one(&found, "events", &["row 1 has 1 event(s), but row 1 of the schema file"]);

    let found = with(&replaced("code", Arc::new(Int64Array::from(vec![1, 7, -2, 0]))));
    let token = find_one(&found, "token", &["dim2/code, element 1", "code 7", "0 to 2"]);
    assert_eq!(token.count, 2);
    find_one(&found, "unknown-code", &["element 3", "code 0"]);
    // The code B now occurs only in the split `tuning`.
    find_one(&found, "unseen-code", &["1 code(s): B"]);
    let days = Float32Array::from(vec![f32::NAN, 2.0, 0.0]);
    let found = with(&replaced("time_delta_days", Arc::new(days)));
    let delta = find_one(&found, "delta", &["row 1, event 1", "time_delta_days 2", "expected 1"]);
    assert_eq!(delta.count, 2);
    let numbers = Float32Array::from(vec![f32::INFINITY, f32::NAN, 1.0, 2.0]);
    let found = with(&replaced("numeric_value", Arc::new(numbers)));
    find_one(&found, "infinite", &["dim2/numeric_value, element 0"]);
    assert_eq!((found.errors(), found.shards[0].missing, found.shards[0].infinite), (0, 1, 1));
    let narrow: ArrayRef = Arc::new(arrow::array::UInt16Array::from(vec![1, 2, 2, 1]));
    let found = with(&replaced("code", narrow));
    find_one(&found, "types", &["\"code\"", "UInt16 on axis 2", "Int64 on axis 2"]);
    let found = with(&table.select(&["code", "numeric_value"]).unwrap());
    find_one(&found, "columns", &["dim1/time_delta_days"]);

    // Bounds must not decrease.
    nrt::write(&path, &table, &overwrite).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let sound = bytes.clone();
    let start = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    // The first tensor of the file is dim1/bounds with the values 0, 2, 3. This byte belongs to the
    // 2.
    bytes[start + 8] = 9;
    fs::write(&path, &bytes).unwrap();
    find_one(&run_audit(&root), "bounds", &["train/0.nrt", "dim1/bounds"]);
    fs::write(&path, &sound[..sound.len() - 3]).unwrap();
    find_one(&run_audit(&root), "unreadable", &["train/0.nrt"]);
    fs::write(&path, &sound).unwrap();

    // A subject in two splits, and a shard that lacks one of its two files.
    for folder in ["data", "tokenization/schemas"] {
        let ending = if folder == "data" { "nrt" } else { "parquet" };
        fs::create_dir_all(root.join(folder).join("held_out")).unwrap();
        let shard = |name: &str| root.join(folder).join(format!("{name}.{ending}"));
        fs::copy(shard("tuning/0"), shard("held_out/0")).unwrap();
    }
    let found = run_audit(&root);
    find_one(&found, "subject-twice", &["subject 4", "in held_out/0"]);
    fs::remove_file(root.join("data/held_out/0.nrt")).unwrap();
    find_one(&run_audit(&root), "pair", &["held_out/0.parquet", "no tensors"]);
    fs::remove_file(root.join("metadata/codes.parquet")).unwrap();
    find_one(&run_audit(&root), "vocabulary", &["codes.parquet", "no such file"]);
}

#[test]
fn faults_of_schema_files_are_found() {
    let (_dir, root) = write_cohort();
    let path = root.join("tokenization/schemas/train/0.parquet");
    let schema = read_parquet(&path);
    let with = |name: &str, column: ArrayRef| {
        let fields = schema.schema();
        let columns = fields.fields().iter().zip(schema.columns()).map(|(f, c)| {
            let column = if f.name() == name { column.clone() } else { c.clone() };
            (f.name().clone(), column, true)
        });
        let columns: Vec<_> = columns.collect();
        write_parquet(&path, &RecordBatch::try_from_iter_with_nullable(columns).unwrap());
        run_audit(&root)
    };
    let times = schema["time"].as_list::<i64>();
    let swapped = TimestampMicrosecondArray::from(vec![
        micros_at(1, 1, 0, 0),
        micros_at(0, 1, 0, 0),
        micros_at(2, 0, 0, 0),
    ]);
    let (field, offsets, _, nulls) = times.clone().into_parts();
    let list = arrow::array::LargeListArray::new(field, offsets, Arc::new(swapped), nulls);
    let found = with("time", Arc::new(list));
    find_one(&found, "order", &["schemas/train/0.parquet", "row 1, event 1"]);
    find_one(&found, "start-time", &["row 1"]);
    find_one(&found, "delta", &["row 1, event 1"]);
    let found = with("subject_id", Arc::new(Int64Array::from(vec![1, 3, 3])));
    find_one(&found, "subject-twice", &["row 2", "subject 3", "already in this shard"]);
    let counts = schema["measurements_per_event"].as_list::<i64>();
    let (field, offsets, _, nulls) = counts.clone().into_parts();
    let wrong = arrow::array::UInt32Array::from(vec![2, 2, 1]);
    let list = arrow::array::LargeListArray::new(field, offsets, Arc::new(wrong), nulls);
    let found = with("measurements_per_event", Arc::new(list));
    find_one(&found, "measurements", &["event 1 of the shard has 1 measurement(s)", "is 2"]);
    assert_eq!(schema["static_code"].null_count(), 1);
}

#[test]
fn labels_that_reading_refuses_are_found() {
    let meds = data_path("synthea-meds");
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
    find_one(&found, "types", &["a/0.parquet", "boolean_value", "Int64", "expected booleans"]);
    write_parquet(&dir.path().join("a/0.parquet"), &label("integer_value", whole));
    let found = check(&meds, &options).unwrap();
    assert_eq!(found.errors(), 0, "{:#?}", found.findings);
    // The finding names all tasks. The type of a column is compared only within a task.
    let wide: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    write_parquet(&dir.path().join("b/0.parquet"), &label("categorical_value", wide));
    let found = check(&meds, &options).unwrap();
    find_one(&found, "tasks", &["2 tasks: a, b", "folder of one"]);
    assert_eq!((found.errors(), found.labels), (0, 2), "{:#?}", found.findings);
    let one_file = CheckOptions { labels: Some(dir.path().join("a/0.parquet")) };
    assert_eq!(check(&meds, &one_file).unwrap().labels, 1);
    let none = CheckOptions { labels: Some(dir.path().join("none")) };
    assert!(check(&meds, &none).unwrap_err().to_string().contains("does not exist"));
}

/// Builds a record batch from columns with their names.
fn make_columns(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)))
        .unwrap()
}

/// Casts the columns that `types` names.
fn cast_columns(batch: &RecordBatch, types: &[(&str, DataType)]) -> RecordBatch {
    let schema = batch.schema();
    let cast_column = |(field, values): (&Arc<Field>, &ArrayRef)| {
        let to = types.iter().find(|(name, _)| name == field.name());
        let values = to.map_or(values.clone(), |(_, t)| cast(values, t).unwrap());
        (field.name().clone(), values, true)
    };
    let columns = schema.fields().iter().zip(batch.columns()).map(cast_column);
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// Builds measurements with two more columns: a list of strings and a string.
fn with_lists(rows: &[crate::meds_torch::Measurement]) -> RecordBatch {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for (i, _) in rows.iter().enumerate() {
        lists.append_value([Some("a"), Some(["b", "c"][i % 2])]);
    }
    let plain = make_batch(rows, true);
    let named = ["subject_id", "time", "code", "numeric_value"].into_iter();
    let mut all: Vec<(&str, ArrayRef)> = named.zip(plain.columns().iter().cloned()).collect();
    all.push(("tags", Arc::new(lists.finish())));
    all.push(("unit", Arc::new(StringArray::from(vec!["mg"; rows.len()]))));
    make_columns(all)
}

fn large_list(item: DataType) -> DataType {
    DataType::LargeList(Arc::new(Field::new("element", item, true)))
}

#[test]
fn equivalent_arrow_types_are_not_a_finding_and_are_read_together() {
    let rows = |subject: i64| {
        [
            make_row(subject, None, "SEX", None),
            make_row(subject, Some(10), "A", Some(1.0)),
            make_row(subject, Some(20), "B", Some(2.0)),
        ]
    };
    let large = [
        ("code", DataType::LargeUtf8),
        ("unit", DataType::LargeUtf8),
        ("tags", large_list(DataType::LargeUtf8)),
    ];
    let views = [
        ("code", DataType::Utf8View),
        ("unit", DataType::Utf8View),
        ("tags", large_list(DataType::Utf8View)),
    ];
    let text = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let (_dir, root) = write_dataset(&[
        ("data/train/0.parquet", with_lists(&rows(1))),
        ("data/train/1.parquet", cast_columns(&with_lists(&rows(2)), &large)),
        ("data/train/2.parquet", cast_columns(&with_lists(&rows(3)), &views)),
        (
            "data/train/3.parquet",
            cast_columns(&with_lists(&rows(4)), &[("unit", text.clone()), ("code", text)]),
        ),
    ]);
    let found = run_audit(&root);
    assert_eq!(list_names(&found, Severity::Error), [""; 0], "{:#?}", found.findings);
    assert_eq!(list_texts(&found, "meds-types"), [""; 0]);
    assert_eq!(found.shards.len(), 4);

    // Every reader casts the columns to common types and reads the same values from each file.
    let dataset = MedsDataset::open(&root).unwrap();
    let shards: Vec<_> = dataset
        .shards()
        .map(|s| s.read(&Default::default()).unwrap().to_batch().unwrap())
        .collect();
    for shard in &shards {
        assert_eq!(shard.schema(), dataset.schema(&Default::default()).unwrap());
    }
    let whole = concat_batches(&shards[0].schema(), &shards).unwrap();
    for name in ["tags", "unit", "static_tags", "numeric_value"] {
        let column = &whole[name];
        for i in 1..4 {
            assert_eq!(&column.slice(i, 1), &column.slice(0, 1), "{name} of shard {i}");
        }
    }
    let out = root.with_file_name("cohort");
    let report = convert_dataset(&root, &out, &Default::default()).unwrap();
    assert_eq!((report.subjects(), report.measurements(), report.codes), (4, 8, 3));
}

#[test]
fn every_column_with_a_wrong_type_is_named() {
    let rows =
        |s: i64| [make_row(s, Some(10), "A", Some(1.0)), make_row(s, Some(20), "B", Some(2.0))];
    let odd = [
        ("subject_id", DataType::Int32),
        ("code", DataType::LargeUtf8),
        ("numeric_value", DataType::Float64),
        ("unit", DataType::LargeBinary),
    ];
    let (_dir, root) = write_dataset(&[
        ("data/0.parquet", cast_columns(&with_lists(&rows(1)), &odd)),
        ("data/1.parquet", with_lists(&rows(2))),
        ("data/2.parquet", with_lists(&rows(3))),
    ]);
    let found = run_audit(&root);
    // MEDS prescribes the types of its own columns, which tells which file is wrong. For other
    // columns, the type in the first file counts as right.
    let types = list_texts(&found, "types");
    assert_eq!(types.len(), 4, "{types:#?}");
    for (file, column, is, due) in [
        ("0.parquet", "subject_id", "Int32", "Int64"),
        ("0.parquet", "numeric_value", "Float64", "Float32"),
        ("1.parquet", "unit", "Utf8", "Binary"),
        ("2.parquet", "unit", "Utf8", "Binary"),
    ] {
        let text = format!("column {column:?}: [types] {is}; expected {due} as in ");
        let has = |t: &&String| t.contains(file) && t.contains(&text) && !t.contains("times)");
        assert!(types.iter().any(|t| has(&t)), "{file}: {text} is not in {types:#?}");
    }
    assert_eq!(found.shards.len(), 3, "all shards are read");

    // If all shards have the same type, they can be read together. The finding then names the types
    // that MEDS does not allow.
    let all: Vec<RecordBatch> = (1..3).map(|s| cast_columns(&with_lists(&rows(s)), &odd)).collect();
    let (_dir, root) =
        write_dataset(&[("data/0.parquet", all[0].clone()), ("data/1.parquet", all[1].clone())]);
    let found = run_audit(&root);
    let types = list_texts(&found, "meds-types");
    assert_eq!((types.len(), found.errors()), (2, 0), "{:#?}", found.findings);
    assert!(
        types[0].contains("Float64; expected Float32, as MEDS prescribes (2 times)"),
        "{types:?}"
    );
    let text = [("subject_id", DataType::Utf8), ("numeric_value", DataType::Utf8)];
    let (_dir, root) =
        write_dataset(&[("data/0.parquet", cast_columns(&with_lists(&rows(1)), &text))]);
    let types = list_texts(&run_audit(&root), "types");
    assert_eq!(types.len(), 2, "{types:#?}");
    assert!(types[0].contains("\"subject_id\": [types] Utf8; expected Int64"), "{types:?}");
    assert!(types[1].contains("\"numeric_value\": [types] Utf8; expected Float32"), "{types:?}");
    let keys = make_batch(&rows(1), true).project(&[3]).unwrap();
    let (_dir, root) = write_dataset(&[("data/0.parquet", keys)]);
    assert_eq!(list_texts(&run_audit(&root), "columns").len(), 3);
}

#[test]
fn rows_with_null_are_named_and_skipped_by_other_checks() {
    let rows: Vec<_> = (0..6).map(|i| make_row(1, Some(10 - i), "A", None)).collect();
    let good = make_batch(&rows, true);
    let ids = Int64Array::from(vec![Some(1), None, None, Some(1), Some(1), Some(1)]);
    let codes = StringArray::from(vec![Some("A"), None, Some("A"), Some("A"), None, Some("A")]);
    let mut all = good.columns().to_vec();
    (all[0], all[2]) = (Arc::new(ids), Arc::new(codes));
    let (_dir, root) =
        write_dataset(&[("data/0.parquet", RecordBatch::try_new(good.schema(), all).unwrap())]);
    let found = run_audit(&root);
    let nulls = list_texts(&found, "null");
    assert_eq!(nulls.len(), 2, "{nulls:?}");
    assert!(
        nulls[0].contains("\"subject_id\", row 1: [null] NULL; expected a value (2 times)"),
        "{nulls:?}"
    );
    assert!(
        nulls[1].contains("\"code\", row 1: [null]") && nulls[1].contains("(2 times)"),
        "{nulls:?}"
    );
    // The rows 0, 3 and 5 have no NULL. Messages still count the rows of the file.
    assert_eq!(find_one(&found, "order", &["row 3: [order]", "00:00:00.000007"]).count, 2);
    assert_eq!(found.shards[0].measurements, 3);
}

#[test]
fn implausible_times_are_found() {
    let us = |year: i64| Some((year - 1970) * 31_556_952 * 1_000_000);
    let rows = [
        make_row(1, us(1600), "A", None),
        make_row(1, us(1900), "A", None),
        make_row(1, us(1990), "A", None),
        make_row(2, us(2150), "A", None),
        make_row(2, us(2151), "B", None),
        make_row(2, us(2152), "B", None),
        make_row(2, us(2999), "A", None),
        make_row(3, None, "A", None),
    ];
    let (_dir, root) = write_dataset(&[("data/train/0.parquet", make_batch(&rows, true))]);
    let found = run_audit(&root);
    let odd =
        find_one(&found, "implausible-time", &["train/0.parquet", "row 0", "of subject 1", "1901"]);
    assert_eq!((odd.count, odd.severity), (3, Severity::Warning));
    assert_eq!(find_one(&found, "future-time", &["row 3", "time 21", "subject 2"]).count, 3);
    // The schema files of a tensorized cohort have the same times, and the check finds them there.
    let out = root.with_file_name("cohort");
    convert_dataset(&root, &out, &Default::default()).unwrap();
    let found = run_audit(&out);
    let place = ["schemas/train/0.parquet", "row 0, event 0"];
    assert_eq!(find_one(&found, "implausible-time", &place).count, 3);
    assert_eq!(find_one(&found, "future-time", &["row 1, event 0"]).count, 3);
}

#[test]
fn events_outside_a_life_are_found() {
    let (day, noon) = (|d| Some(micros_at(d, 0, 0, 0)), |d| Some(micros_at(d, 12, 0, 0)));
    let rows = [
        // The subject is born at noon, with a measurement in the morning before and a fact without
        // a time.
        make_row(1, None, "SEX", None),
        make_row(1, day(0), "A", None),
        make_row(1, noon(0), "MEDS_BIRTH", None),
        make_row(1, noon(0), "B", None),
        make_row(1, noon(9), "MEDS_DEATH", None),
        make_row(1, Some(micros_at(9, 12, 0, 1)), "A", None),
        make_row(1, noon(10), "B", None),
        // A death at midnight stands for the whole day, so that only the next day is after it.
        make_row(2, day(0), "MEDS_BIRTH//GUESSED", None),
        make_row(2, day(5), "MEDS_DEATH", None),
        make_row(2, Some(micros_at(5, 23, 59, 59)), "A", None),
        make_row(2, day(6), "A", None),
        // MEDS_BIRTHDAY is not a birth, because it is another code than MEDS_BIRTH.
        make_row(3, day(0), "MEDS_BIRTHDAY", None),
        make_row(3, day(1), "A", None),
    ];
    let (_dir, root) = write_dataset(&[("data/0.parquet", make_batch(&rows, true))]);
    let found = run_audit(&root);
    let before =
        ["row 1", "A of subject 1 at 2020-01-01 00:00:00, before MEDS_BIRTH at 2020-01-01 12"];
    let before = find_one(&found, "before-birth", &before);
    assert_eq!((before.count, before.severity), (1, Severity::Warning));
    let after = ["row 5", "A of subject 1 at 2020-01-10 12:00:01, after MEDS_DEATH"];
    assert_eq!(find_one(&found, "after-death", &after).count, 3);
}

#[test]
fn repeated_rows_are_found() {
    let time = Some(micros_at(0, 0, 0, 0));
    let rows = [
        make_row(1, None, "SEX", None),
        make_row(1, None, "SEX", None),
        make_row(1, time, "A", Some(1.0)),
        make_row(1, time, "B", None),
        make_row(1, time, "A", Some(1.0)),
        make_row(1, time, "A", Some(2.0)),
        make_row(1, time, "B", None),
        make_row(1, time, "B", None),
        make_row(1, Some(micros_at(1, 0, 0, 0)), "A", Some(1.0)),
        make_row(2, time, "A", Some(1.0)),
    ];
    let (_dir, root) = write_dataset(&[("data/0.parquet", make_batch(&rows, true))]);
    let double = ["0.parquet", "row 1", "SEX of subject 1 without a time, the same as row 0"];
    let found = run_audit(&root);
    let double = find_one(&found, "doubled-row", &double);
    assert_eq!((double.count, double.severity), (4, Severity::Warning));

    // Rows out of order are found, too, across batches and dictionaries.
    let many: Vec<_> = (0..70_000i64)
        .map(|i| make_row(7, Some(micros_at(i % 35_000, 0, 0, 0)), "A", None))
        .collect();
    let (_dir, root) = write_dataset(&[("data/0.parquet", make_batch(&many, true))]);
    let found = run_audit(&root);
    assert_eq!(find_one(&found, "doubled-row", &["row 35000", "the same as row 0"]).count, 35_000);

    // Measurements with different strings are different.
    let texts: Vec<Option<&str>> = vec![
        Some("x"),
        None,
        Some("x"),
        Some("x"),
        Some("y"),
        Some("z"),
        None,
        Some("y"),
        None,
        None,
    ];
    let mut all: Vec<(&str, ArrayRef)> = ["subject_id", "time", "code", "numeric_value"]
        .into_iter()
        .zip(make_batch(&rows, true).columns().iter().cloned())
        .collect();
    all.push(("text_value", Arc::new(StringArray::from(texts))));
    let (_dir, root) = write_dataset(&[("data/0.parquet", make_columns(all))]);
    let found = run_audit(&root);
    // Each pair of rows that are otherwise equal has different values of `text_value`.
    assert_eq!(texts_of(&found), [""; 0]);
    let same = StringArray::from(vec!["x"; 10]);
    let mut all: Vec<(&str, ArrayRef)> = ["subject_id", "time", "code", "numeric_value"]
        .into_iter()
        .zip(make_batch(&rows, true).columns().iter().cloned())
        .collect();
    all.push(("text_value", Arc::new(same)));
    let (_dir, root) = write_dataset(&[("data/0.parquet", make_columns(all))]);
    assert_eq!(
        find_one(&run_audit(&root), "doubled-row", &["row 1", "text_value as in row 0"]).count,
        4
    );
}

fn texts_of(audit: &Audit) -> Vec<String> {
    list_texts(audit, "doubled-row")
}

#[test]
fn contradicting_labels_and_labels_far_from_events_are_found() {
    let day = |d| Some(micros_at(d, 0, 0, 0));
    let rows = [
        make_row(1, day(0), "A", None),
        make_row(1, day(10), "A", None),
        make_row(2, day(0), "A", None),
    ];
    let (_dir, root) = write_dataset(&[
        ("data/train/0.parquet", make_batch(&rows, true)),
        (
            "labels/task/train/0.parquet",
            make_labels(&[
                (1, day(5), true),
                (1, day(6), true),
                (1, day(5), false),
                (1, day(6), true),
                (1, day(375), true),
                (1, day(376), true),
                (1, day(-1), true),
            ]),
        ),
        ("labels/task/train/1.parquet", make_labels(&[(2, day(1), true), (1, day(6), false)])),
    ]);
    let found = run_audit(&root);
    let contradictions = list_texts(&found, "label-contradiction");
    assert_eq!(contradictions.len(), 2, "{contradictions:#?}");
    assert!(contradictions[0].contains("train/0.parquet: row 2"), "{contradictions:?}");
    assert!(contradictions[0].contains("another value than in row 0;"), "{contradictions:?}");
    assert!(contradictions[1].contains("train/1.parquet: row 1"), "{contradictions:?}");
    assert!(contradictions[1].contains("in row 1 of "), "{contradictions:?}");
    assert_eq!(found.errors(), 2);
    assert_eq!(find_one(&found, "label-twice", &["row 3", "as in row 1"]).count, 1);
    assert_eq!(
        find_one(&found, "label-late", &["row 5", "2021-01-11", "last event is at 2020-01-11"])
            .count,
        1
    );
    find_one(&found, "label-early", &["row 6", "without an event before it"]);

    // Labels of different tasks may have different values for the same subject and time.
    let value = |v: i64| {
        make_columns(vec![
            ("subject_id", Arc::new(Int64Array::from(vec![1])) as ArrayRef),
            (
                "prediction_time",
                Arc::new(TimestampMicrosecondArray::from(vec![micros_at(5, 0, 0, 0)])),
            ),
            ("integer_value", Arc::new(Int64Array::from(vec![v]))),
        ])
    };
    let (_dir, root) = write_dataset(&[
        ("data/train/0.parquet", make_batch(&rows, true)),
        ("labels/a/0.parquet", value(1)),
        ("labels/b/0.parquet", value(2)),
    ]);
    let found = run_audit(&root);
    assert_eq!((found.errors(), found.labels), (0, 2), "{:#?}", found.findings);
    let keys = value(1).project(&[0, 1]).unwrap();
    write_parquet(&root.join("labels/b/0.parquet"), &keys);
    find_one(&run_audit(&root), "no-value", &["b/0.parquet", "boolean_value or"]);
}

#[test]
fn labels_that_are_not_finite_are_found() {
    let rows = [make_row(1, Some(micros_at(1, 0, 0, 0)), "A", None)];
    let times = [5, 6, 7, 8].map(|hour| micros_at(5, hour, 0, 0)).to_vec();
    let numbers = vec![Some(1.5), Some(f64::NAN), Some(1e300), None];
    let values = make_columns(vec![
        ("subject_id", Arc::new(Int64Array::from(vec![1; 4])) as ArrayRef),
        ("prediction_time", Arc::new(TimestampMicrosecondArray::from(times))),
        ("float_value", Arc::new(Float64Array::from(numbers))),
    ]);
    let (_dir, root) = write_dataset(&[
        ("data/train/0.parquet", make_batch(&rows, true)),
        ("labels/0.parquet", values),
    ]);
    let found = run_audit(&root);
    let refused = find_one(&found, "label-value", &["row 1", "is NaN", "float32"]);
    assert_eq!(refused.count, 2);
}
