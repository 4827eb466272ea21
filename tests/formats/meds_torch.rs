//! Tensorized cohorts, compared with the output of the Python tool meds-torch-data and with a
//! reference that works row by row.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::compute::{sort_to_indices, take_record_batch};
use arrow::datatypes::{DataType, Float32Type, Int64Type, TimestampMicrosecondType, UInt32Type};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serrate::array::Offsets;
use serrate::io::meds::MedsDataset;
use serrate::io::meds_torch::{
    Normalize, TensorizeOptions, TensorizeReport, TensorizedCohort, UnknownCodes, VocabularyFrom,
    tensorize,
};
use serrate::io::nrt;
use serrate::io::safetensors::{Dtype, FileAccess, SafetensorsFile};
use serrate::table::{Column, RaggedTable};

use crate::support::{data_path, read_parquet, write_dataset, write_parquet};
use crate::tiny::micros_at;

pub(crate) fn convert_dataset(
    root: &Path,
    out: &Path,
    options: &TensorizeOptions,
) -> serrate::Result<TensorizeReport> {
    tensorize(&MedsDataset::open(root)?, out, options, |_| ControlFlow::Continue(()))
}

fn read_tensor<const N: usize>(file: &SafetensorsFile, name: &str, dtype: Dtype) -> Vec<[u8; N]> {
    let tensor = file.tensor(name).unwrap();
    assert_eq!((tensor.dtype(), tensor.shape().len()), (dtype, 1), "{name}");
    let bytes = file.read(tensor).unwrap();
    bytes.chunks_exact(N).map(|b| b.try_into().unwrap()).collect()
}

fn read_integers(file: &SafetensorsFile, name: &str) -> Vec<i64> {
    read_tensor(file, name, Dtype::I64).into_iter().map(i64::from_le_bytes).collect()
}

fn read_floats(file: &SafetensorsFile, name: &str) -> Vec<f32> {
    read_tensor(file, name, Dtype::F32).into_iter().map(f32::from_le_bytes).collect()
}

/// Asserts that floats are equal within 1e-5, absolute or relative. NaN equals NaN.
fn assert_close(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        let same = (a.is_nan() && b.is_nan()) || a == b || (a - b).abs() <= 1e-5 * b.abs().max(1.0);
        assert!(same, "{what}[{i}]: {a} instead of {b}");
    }
}

/// Asserts that floats have the same bits, where all NaN are equal.
fn same_bits(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        let same = (a.is_nan() && b.is_nan()) || a.to_bits() == b.to_bits();
        assert!(same, "{what}[{i}]: {a} instead of {b}");
    }
}

/// Asserts that columns have equal types, list lengths and nulls. Floats are compared by
/// [`same_bits`].
fn same_columns(found: &ArrayRef, expected: &ArrayRef, what: &str) {
    // The fields of list elements have different names in the two files.
    let (a, b) = (found.data_type(), expected.data_type());
    assert!(a.equals_datatype(b), "{what}: {a} instead of {b}");
    assert_eq!(found.len(), expected.len(), "{what}");
    assert_eq!(found.logical_nulls(), expected.logical_nulls(), "{what}");
    match (found.as_list_opt::<i64>(), expected.as_list_opt::<i64>()) {
        (Some(a), Some(b)) => {
            assert_eq!(a.value_offsets(), b.value_offsets(), "{what}");
            same_columns(a.values(), b.values(), what);
        }
        _ if *found.data_type() == DataType::Float32 => {
            let numbers = |a: &ArrayRef| -> Vec<f32> {
                a.as_primitive::<Float32Type>().iter().map(|v| v.unwrap_or(f32::NAN)).collect()
            };
            same_bits(&numbers(found), &numbers(expected), what);
        }
        _ => assert_eq!(found, expected, "{what}"),
    }
}

fn same_table(found: &RecordBatch, expected: &RecordBatch, what: &str) {
    let names = |b: &RecordBatch| -> Vec<String> {
        b.schema().fields().iter().map(|f| f.name().clone()).collect()
    };
    assert_eq!(names(found), names(expected), "{what}");
    for (i, name) in names(found).iter().enumerate() {
        same_columns(found.column(i), expected.column(i), &format!("{what} {name}"));
    }
}

const TENSORS: [&str; 5] =
    ["dim1/bounds", "dim1/time_delta_days", "dim2/bounds", "dim2/code", "dim2/numeric_value"];

/// Asserts that all tensors and tables of a cohort equal those of meds-torch-data.
fn same_cohort(found: &Path, expected: &Path) {
    let expected_shards = TensorizedCohort::open(expected).unwrap();
    let found_shards = TensorizedCohort::open(found).unwrap();
    let names = |c: &TensorizedCohort| -> Vec<String> {
        c.shards().iter().map(|s| s.name().to_string()).collect()
    };
    assert_eq!(names(&found_shards), names(&expected_shards));
    for shard in names(&expected_shards) {
        let open = |root: &Path| {
            SafetensorsFile::open(root.join(format!("data/{shard}.nrt")), FileAccess::Map).unwrap()
        };
        let (a, b) = (open(found), open(expected));
        let all = |f: &SafetensorsFile| -> Vec<String> {
            f.tensors().iter().map(|t| t.name().to_string()).collect()
        };
        assert_eq!(all(&a), all(&b), "{shard}");
        assert!(a.header().metadata().is_empty());
        for name in TENSORS {
            let what = format!("{shard} {name}");
            match a.tensor(name).unwrap().dtype() {
                Dtype::I64 => {
                    assert_eq!(read_integers(&a, name), read_integers(&b, name), "{what}")
                }
                _ => same_bits(&read_floats(&a, name), &read_floats(&b, name), &what),
            }
        }
        let schema = format!("tokenization/schemas/{shard}.parquet");
        same_table(
            &read_parquet(&found.join(&schema)),
            &read_parquet(&expected.join(&schema)),
            &schema,
        );
    }
    let codes = "metadata/codes.parquet";
    // In `expected`, codes have any order; ours are sorted by token.
    let expected = read_parquet(&expected.join(codes));
    let order = sort_to_indices(&expected["code/vocab_index"], None, None).unwrap();
    let expected = take_record_batch(&expected, &order).unwrap();
    same_table(&read_parquet(&found.join(codes)), &expected, codes);
}

#[test]
fn cohorts_equal_those_of_meds_torch_data() {
    let dir = tempfile::tempdir().unwrap();
    let compatible =
        TensorizeOptions { normalize: Normalize::Compatible, ..TensorizeOptions::default() };
    for (i, options) in
        [compatible, TensorizeOptions { vocabulary: VocabularyFrom::Train, jobs: 3, ..compatible }]
            .iter()
            .enumerate()
    {
        let out = dir.path().join(i.to_string());
        let report = convert_dataset(&data_path("synthea-meds"), &out, options).unwrap();
        same_cohort(&out, &data_path("synthea-meds-torch-data"));
        let read = 24_866;
        let kept = report.measurements() + report.statics();
        assert_eq!(kept as u64 + report.unknown_measurements(), read);
        assert_eq!((report.unknown.len(), report.codes, report.subjects()), (27, 400, 28));
        assert!(report.unsorted.is_empty() && !report.no_splits);
    }
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        2,
        "other files remain next to the cohorts"
    );
}

/// A row of a MEDS file: subject, time, code and number.
pub(crate) type Measurement = (i64, Option<i64>, String, Option<f32>);

pub(crate) fn make_batch(rows: &[Measurement], numbers: bool) -> RecordBatch {
    let ids: Int64Array = rows.iter().map(|r| r.0).collect();
    let times: TimestampMicrosecondArray = rows.iter().map(|r| r.1).collect();
    let codes: StringArray = rows.iter().map(|r| Some(&r.2)).collect();
    let mut columns: Vec<(&str, ArrayRef)> =
        vec![("subject_id", Arc::new(ids)), ("time", Arc::new(times)), ("code", Arc::new(codes))];
    if numbers {
        let values: Float32Array = rows.iter().map(|r| r.3).collect();
        columns.push(("numeric_value", Arc::new(values)));
    }
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)))
        .unwrap()
}

pub(crate) fn make_row(
    subject: i64,
    time: Option<i64>,
    code: &str,
    value: Option<f32>,
) -> Measurement {
    (subject, time, code.into(), value)
}

pub(crate) fn codes_file(
    codes: &[&str],
    index: &[Option<i64>],
    further: &[(&str, Vec<Option<f64>>)],
) -> RecordBatch {
    let code: StringArray = codes.iter().map(Some).collect();
    let mut columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("code", Arc::new(code), false),
        ("code/vocab_index", Arc::new(Int64Array::from(index.to_vec())), true),
    ];
    for (name, values) in further {
        columns.push((name, Arc::new(Float64Array::from(values.clone())), true));
    }
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

pub(crate) fn splits_file(splits: &[(i64, &str)]) -> RecordBatch {
    let ids: Int64Array = splits.iter().map(|s| s.0).collect();
    let split: StringArray = splits.iter().map(|s| Some(s.1)).collect();
    RecordBatch::try_from_iter([
        ("subject_id", Arc::new(ids) as ArrayRef),
        ("split", Arc::new(split)),
    ])
    .unwrap()
}

/// A subject with its events and static facts.
#[derive(Debug, Default, PartialEq)]
struct Subject {
    id: i64,
    /// The measurements of each time: token and bits of the number.
    events: BTreeMap<i64, Vec<(i64, Option<u32>)>>,
    statics: Vec<(u32, Option<u32>)>,
}

/// Builds the subjects of a shard row by row, in the order of their first row with a known code.
/// Unknown codes get the token 0 if `zero` is set, and are omitted otherwise.
fn build_subjects(rows: &[Measurement], tokens: &BTreeMap<&str, u32>, zero: bool) -> Vec<Subject> {
    let mut subjects: Vec<Subject> = Vec::new();
    for (id, time, code, value) in rows {
        let token = match tokens.get(code.as_str()) {
            Some(token) => *token,
            None if zero => 0,
            None => continue,
        };
        let at = subjects.iter().position(|s| s.id == *id).unwrap_or_else(|| {
            subjects.push(Subject { id: *id, ..Subject::default() });
            subjects.len() - 1
        });
        match time {
            None => subjects[at].statics.push((token, value.map(f32::to_bits))),
            Some(time) => {
                let finite = value.filter(|v| v.is_finite()).map(f32::to_bits);
                subjects[at].events.entry(*time).or_default().push((token.into(), finite));
            }
        }
    }
    subjects
}

/// Reads the subjects of a tensorized shard, and checks the start times and the deltas between
/// times.
fn read_subjects(out: &Path, shard: &str) -> Vec<Subject> {
    let tables = TensorizedCohort::open(out).unwrap().shard(shard).unwrap().read().unwrap();
    let events = &tables.events;
    assert_eq!(tables.statics.num_rows(), events.num_rows());
    let ids = events.column("subject_id").unwrap().values().as_primitive::<Int64Type>();
    let starts = events.column("start_time").unwrap().values();
    let starts = starts.as_primitive::<TimestampMicrosecondType>();
    let times = events.column("time").unwrap().values();
    let times = times.as_primitive::<TimestampMicrosecondType>().values();
    let deltas = events.column("time_delta_days").unwrap().values();
    let deltas = deltas.as_primitive::<Float32Type>().values();
    let tokens = events.column("code").unwrap().values().as_primitive::<Int64Type>().values();
    let values = events.column("numeric_value").unwrap().values();
    let values = values.as_primitive::<Float32Type>();
    assert_eq!(values.null_count(), 0);
    let statics = tables.statics.layout(1).unwrap();
    let facts = tables.statics.column("static_code").unwrap().values();
    let facts = facts.as_primitive::<UInt32Type>().values();
    let numbers = tables.statics.column("static_numeric_value").unwrap().values();
    let numbers = numbers.as_primitive::<Float32Type>();
    (0..events.num_rows())
        .map(|r| {
            let range = events.layout(1).unwrap().range(r);
            assert_eq!(
                starts.is_valid(r).then(|| starts.value(r)),
                range.clone().next().map(|e| times[e])
            );
            let mut subject = Subject { id: ids.value(r), ..Subject::default() };
            for e in range.clone() {
                if e == range.start {
                    assert!(deltas[e].is_nan());
                } else {
                    assert!(times[e] > times[e - 1], "times ascend within a subject");
                    let seconds = (times[e] - times[e - 1]) / 1_000_000;
                    assert_eq!(deltas[e], (seconds as f64 / 86_400.0) as f32);
                }
                let leaves = events.layout(2).unwrap().range(e).map(|m| {
                    (tokens[m], Some(values.value(m)).filter(|v| !v.is_nan()).map(f32::to_bits))
                });
                subject.events.insert(times[e], leaves.collect());
            }
            let own = statics.range(r);
            subject.statics = own
                .map(|f| (facts[f], numbers.is_valid(f).then(|| numbers.value(f).to_bits())))
                .collect();
            subject
        })
        .collect()
}

#[test]
fn random_rows_are_tensorized_like_the_reference() {
    let codes = ["A", "B//1", "C", "b", "unknown//1", "unknown//2"];
    let tokens: BTreeMap<&str, u32> =
        [("A", 4), ("B//1", 1), ("C", 70_000), ("b", 1)].into_iter().collect();
    let index: Vec<Option<i64>> =
        codes.iter().map(|c| tokens.get(c).map(|t| i64::from(*t))).collect();
    let numbers =
        [Some(1.5), Some(-0.0), Some(f32::NAN), Some(f32::INFINITY), None, Some(f32::MAX)];
    for seed in 0..9u64 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut files, mut rows_of) = (Vec::new(), BTreeMap::new());
        for (s, name) in
            ["train/0", "train/deep/er/10", "tuning/0", "held_out/x"].iter().enumerate()
        {
            let mut rows: Vec<Measurement> = Vec::new();
            for _ in 0..rng.random_range(0..60usize) {
                let subject = i64::try_from(s).unwrap() * 100 + rng.random_range(0..6i64);
                let time =
                    rng.random_bool(0.8).then(|| rng.random_range(-3_000_000..90_000_000_000));
                // Few distinct times, so that an event has several measurements.
                let time =
                    time.map(|t: i64| if rng.random_bool(0.7) { t % 5 * 7_000_000 } else { t });
                let code = codes[rng.random_range(0..codes.len())];
                let value = numbers[rng.random_range(0..numbers.len())];
                rows.push(make_row(subject, time, code, value));
            }
            match seed % 3 {
                // Rows are sorted as MEDS requires, by descending subject, or not at all.
                0 => rows.sort_by_key(|r| (r.0, r.1)),
                1 => rows.sort_by_key(|r| -r.0),
                _ => {}
            }
            files.push((format!("data/{name}.parquet"), make_batch(&rows, true)));
            rows_of.insert(*name, rows);
        }
        files.push(("metadata/codes.parquet".into(), codes_file(&codes, &index, &[])));
        let files: Vec<(&str, RecordBatch)> =
            files.iter().map(|(n, b)| (n.as_str(), b.clone())).collect();
        let (dir, root) = write_dataset(&files);
        for unknown in [UnknownCodes::Drop, UnknownCodes::Zero] {
            let zero = unknown == UnknownCodes::Zero;
            let out = dir.path().join(format!("{zero}"));
            let options = TensorizeOptions { unknown, jobs: 2, ..TensorizeOptions::default() };
            let report = convert_dataset(&root, &out, &options).unwrap();
            for (name, rows) in &rows_of {
                let expected = build_subjects(rows, &tokens, zero);
                assert_eq!(read_subjects(&out, name), expected, "seed {seed}, {name}, {zero}");
                let shard = report.shards.iter().find(|s| s.name == *name).unwrap();
                let empty = expected.iter().filter(|s| s.events.is_empty()).count();
                assert_eq!((shard.subjects, shard.without_events), (expected.len(), empty));
            }
            let unknown = rows_of.values().flatten().filter(|r| r.2.starts_with("unknown"));
            assert_eq!(report.unknown_measurements(), unknown.count() as u64);
        }
    }
}

#[test]
fn a_cohort_reads_as_the_data_set_it_was_made_from() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["synthea-meds", "tiny-meds"] {
        let out = dir.path().join(name);
        let options =
            TensorizeOptions { unknown: UnknownCodes::Zero, ..TensorizeOptions::default() };
        convert_dataset(&data_path(name), &out, &options).unwrap();
        let meds = MedsDataset::open(data_path(name)).unwrap();
        let cohort = TensorizedCohort::open(&out).unwrap();
        let all =
            serrate::io::meds::MedsReadOptions { columns: Some(vec![]), ..Default::default() };
        for (i, shard) in meds.shards().enumerate() {
            let expected = shard.read(&all).unwrap();
            let found = cohort.read_meds(i).unwrap();
            assert_eq!(found.name, expected.name);
            let batch = found.to_batch().unwrap();
            assert_eq!(batch.schema(), cohort.meds_schema().unwrap());
            // Sorts our rows by subject, which is the order of `expected`.
            let order = sort_to_indices(&batch["subject_id"], None, None).unwrap();
            let rows: Vec<usize> = order.values().iter().map(|r| *r as usize).collect();
            for (found, expected) in
                [(found.events, expected.events), (found.statics, expected.statics)]
            {
                let found = found.take(&rows).unwrap();
                for column in expected.columns() {
                    let what = format!("{name} {} {}", shard.name(), column.name());
                    let (a, b) = (
                        found.array(column.name()).unwrap(),
                        expected.array(column.name()).unwrap(),
                    );
                    for axis in 1..=column.axis() {
                        assert_eq!(
                            a.axis(axis).unwrap().layout(),
                            b.axis(axis).unwrap().layout(),
                            "{what}"
                        );
                    }
                    match column.name() {
                        // A code that is not in the vocabulary is NULL in the cohort.
                        "code" | "static_code" => {
                            let texts = |a: &ArrayRef| -> Vec<Option<String>> {
                                let a = a.as_dictionary::<UInt32Type>();
                                let a = a.downcast_dict::<StringArray>().unwrap();
                                a.into_iter().map(|t| t.map(str::to_string)).collect()
                            };
                            for (a, b) in texts(a.leaves()).into_iter().zip(texts(b.leaves())) {
                                let known =
                                    meds.vocabulary().unwrap().encode(b.as_deref().unwrap()) > 0;
                                assert_eq!(a, b.filter(|_| known), "{what}");
                            }
                        }
                        // Tensors store NaN and infinity as NaN, which is read as NULL.
                        "numeric_value" | "static_numeric_value" => {
                            let numbers = |a: &ArrayRef| -> Vec<Option<f32>> {
                                let a = a.as_primitive::<Float32Type>();
                                a.iter().map(|v| v.filter(|v| v.is_finite())).collect()
                            };
                            assert_eq!(numbers(a.leaves()), numbers(b.leaves()), "{what}");
                        }
                        _ => assert_eq!(a.leaves(), b.leaves(), "{what}"),
                    }
                }
            }
        }
    }
}

/// Writes a data set of one shard with the subjects 1 and 3, which have only static facts, and 2
/// and 4.
fn with_gaps() -> (tempfile::TempDir, PathBuf) {
    write_dataset(&[(
        "data/train/0.parquet",
        make_batch(
            &[
                make_row(1, None, "SEX", None),
                make_row(2, None, "SEX", Some(2.0)),
                make_row(2, Some(micros_at(0, 1, 0, 0)), "A", Some(1.0)),
                make_row(2, Some(micros_at(1, 1, 0, 0)), "B", None),
                make_row(3, None, "SEX", None),
                make_row(4, Some(micros_at(2, 0, 0, 0)), "A", Some(2.0)),
            ],
            true,
        ),
    )])
}

#[test]
fn subjects_without_events_are_rows_even_if_the_tensors_lack_them() {
    let (dir, root) = with_gaps();
    let out = dir.path().join("out");
    let report = convert_dataset(&root, &out, &TensorizeOptions::default()).unwrap();
    assert_eq!((report.shards[0].subjects, report.shards[0].without_events), (4, 2));
    let path = out.join("data/train/0.nrt");
    let file = SafetensorsFile::open(&path, FileAccess::Map).unwrap();
    assert_eq!(read_integers(&file, "dim1/bounds"), [0, 2, 2, 3]);
    let whole = read_subjects(&out, "train/0");
    assert_eq!(
        whole.iter().map(|s| (s.id, s.events.len())).collect::<Vec<_>>(),
        [(1, 0), (2, 2), (3, 0), (4, 1)]
    );

    // meds-torch-data omits subjects without events from the tensors, so that its file has only the
    // rows 1 and 3.
    let table = nrt::NrtFile::open(&path, &Default::default()).unwrap().table().unwrap();
    let fewer = table.take(&[1, 3]).unwrap();
    nrt::write(&path, &fewer, &nrt::WriteOptions { overwrite: true, ..Default::default() })
        .unwrap();
    assert_eq!(read_subjects(&out, "train/0"), whole);

    let overwrite = nrt::WriteOptions { overwrite: true, ..Default::default() };
    let message = |table: &RaggedTable| {
        nrt::write(&path, table, &overwrite).unwrap();
        let cohort = TensorizedCohort::open(&out).unwrap();
        cohort.shards()[0].read().unwrap_err().to_string()
    };
    let e = message(&table.take(&[0, 1, 3]).unwrap());
    assert!(e.contains("3 row(s); expected 4") && e.contains("0.nrt"), "{e}");
    let e = message(&table.take(&[3, 1]).unwrap());
    assert!(
        e.contains("row 0 has 1 event(s), but row 1 of the schema file")
            && e.contains("has 2 time(s)"),
        "{e}"
    );
    let e = message(&table.select(&["code"]).unwrap());
    assert!(e.contains("time_delta_days"), "{e}");
    let wrong = RaggedTable::try_new(
        4,
        None,
        vec![
            (None, Offsets::from_lengths([0, 2, 0, 1]).unwrap().into()),
            (None, Offsets::from_lengths([1, 2, 0]).unwrap().into()),
        ],
        table
            .columns()
            .iter()
            .map(|c| Column::new(c.name(), c.axis(), c.values().clone()))
            .collect(),
    )
    .unwrap();
    let e = message(&wrong);
    assert!(e.contains("event 1 of the shard has 2 measurement(s)") && e.contains("is 1"), "{e}");
    let codes = Int64Array::from(vec![1, 2, 9]);
    let columns = table.columns().iter().map(|c| match c.name() {
        "code" => Column::new("code", 2, Arc::new(codes.clone())),
        _ => c.clone(),
    });
    nrt::write(&path, &table.with_columns(columns.collect()).unwrap(), &overwrite).unwrap();
    let e = TensorizedCohort::open(&out).unwrap().read_meds(0).unwrap_err().to_string();
    assert!(
        e.contains("token 9") && e.contains("largest token is 3") && e.contains("0.nrt"),
        "{e}"
    );

    fs::remove_file(&path).unwrap();
    let e = TensorizedCohort::open(&out).unwrap_err().to_string();
    assert!(e.contains("0.parquet") && e.contains("0.nrt"), "{e}");
}

#[test]
fn shards_outside_split_folders_are_divided_by_subject() {
    let rows = [
        make_row(5, Some(1), "A", None),
        make_row(1, None, "B", None),
        make_row(9, Some(2), "held", None),
        make_row(2, Some(3), "A", None),
    ];
    let splits = splits_file(&[(5, "train"), (1, "train"), (9, "extra"), (2, "tuning")]);
    let files = [
        ("data/0.parquet", make_batch(&rows, false)),
        ("data/a/1.parquet", make_batch(&[make_row(9, Some(5), "A", None)], false)),
        ("data/a/train/2.parquet", make_batch(&[make_row(77, Some(5), "C", None)], false)),
        ("metadata/subject_splits.parquet", splits),
    ];
    let (dir, root) = write_dataset(&files);
    let out = dir.path().join("out");
    let report = convert_dataset(&root, &out, &TensorizeOptions::default()).unwrap();
    let names: Vec<&str> = report.shards.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["train/0", "tuning/0", "extra/a/1", "train/a/2"]);
    // The vocabulary has the codes of the split `train`.
    assert_eq!((report.codes, report.unknown), (3, [("held".to_string(), 1)].into()));
    let of = |shard: &str| read_subjects(&out, shard).iter().map(|s| s.id).collect::<Vec<_>>();
    assert_eq!((of("train/0"), of("tuning/0"), of("train/a/2")), (vec![5, 1], vec![2], vec![77]));
    // The only measurement of subject 9 in shard 0 has an unknown code, so that this shard has no
    // subject of the split `extra`.
    assert_eq!(of("extra/a/1"), [9]);

    let (dir, root) = write_dataset(&[
        files[0].clone(),
        ("metadata/subject_splits.parquet", splits_file(&[(5, "train")])),
    ]);
    let e = convert_dataset(&root, &dir.path().join("out"), &TensorizeOptions::default())
        .unwrap_err()
        .to_string();
    assert!(e.contains("subject 2 is in no split") && e.contains("0.parquet"), "{e}");

    let (dir, root) = write_dataset(&files[..1]);
    let report =
        convert_dataset(&root, &dir.path().join("out"), &TensorizeOptions::default()).unwrap();
    assert!(report.no_splits);
    assert_eq!((report.shards[0].name.as_str(), report.codes, report.subjects()), ("0", 3, 4));

    let (dir, root) = write_dataset(&[("data/held_out/0.parquet", make_batch(&rows, false))]);
    let e = convert_dataset(&root, &dir.path().join("out"), &TensorizeOptions::default())
        .unwrap_err()
        .to_string();
    assert!(e.contains("no shard is in the split \"train\""), "{e}");

    let (dir, root) = write_dataset(&[
        ("data/train/a/0.parquet", make_batch(&rows, false)),
        ("data/a/train/0.parquet", make_batch(&rows, false)),
    ]);
    let e = convert_dataset(&root, &dir.path().join("out"), &TensorizeOptions::default())
        .unwrap_err()
        .to_string();
    assert!(e.contains("would both be written as \"train/a/0\""), "{e}");
}

/// Writes a data set in whose split `train` the code A has the values 1, 2 and 6, B has 5 and C has
/// none. Another split has static facts of all three.
fn numbers_set(further: &[(&str, Vec<Option<f64>>)]) -> (tempfile::TempDir, PathBuf) {
    let train = [
        make_row(1, None, "A", Some(1.0)),
        make_row(1, Some(0), "A", Some(2.0)),
        make_row(1, Some(0), "B", Some(5.0)),
        make_row(1, Some(0), "A", None),
        make_row(1, Some(1), "A", Some(6.0)),
        make_row(1, Some(1), "A", Some(f32::NAN)),
        make_row(1, Some(1), "C", None),
    ];
    let held_out = [
        make_row(2, None, "B", Some(7.0)),
        make_row(2, None, "C", Some(7.0)),
        make_row(2, None, "A", Some(7.0)),
        make_row(2, Some(0), "C", Some(3.0)),
    ];
    let codes = codes_file(&["A", "B", "C"], &[Some(1), Some(2), Some(3)], further);
    write_dataset(&[
        ("data/train/0.parquet", make_batch(&train, true)),
        ("data/held_out/0.parquet", make_batch(&held_out, true)),
        ("metadata/codes.parquet", codes),
    ])
}

fn convert_normalized(
    root: &Path,
    out: &Path,
    normalize: Normalize,
) -> (Vec<f32>, Vec<Option<f32>>) {
    let options = TensorizeOptions { normalize, overwrite: true, ..TensorizeOptions::default() };
    convert_dataset(root, out, &options).unwrap();
    let file = SafetensorsFile::open(out.join("data/train/0.nrt"), FileAccess::Map).unwrap();
    let statics = read_parquet(&out.join("tokenization/schemas/held_out/0.parquet"));
    let statics = statics["static_numeric_value"].as_list::<i64>().value(0);
    let statics = statics.as_primitive::<Float32Type>().iter().collect();
    (read_floats(&file, "dim2/numeric_value"), statics)
}

#[test]
fn numbers_are_normalized_by_code() {
    let nan = f32::NAN;
    let std = ((1.0 + 4.0 + 36.0) / 3.0 - 9.0f32).sqrt();
    let a = |v: f32| (v - 3.0) / std;
    let same = |found: &[Option<f32>], expected: &[Option<f32>]| {
        assert_eq!(found.len(), expected.len());
        for (f, e) in found.iter().zip(expected) {
            assert!(
                f == e
                    || (f.unwrap() - e.unwrap()).abs() < 1e-6
                    || e.unwrap().is_nan() && f.unwrap().is_nan(),
                "{found:?} {expected:?}"
            );
        }
    };
    let (dir, root) = numbers_set(&[]);
    for normalize in [Normalize::Compatible, Normalize::Exact] {
        let (train, statics) = convert_normalized(&root, &dir.path().join("out"), normalize);
        // The standard deviation of B is 0, and that of C is unknown. The results are infinite or
        // NaN, both of which tensors store as NaN.
        assert_close(&train, &[a(2.0), nan, nan, a(6.0), nan, nan], "train");
        same(&statics, &[Some(f32::INFINITY), Some(nan), Some(a(7.0))]);
    }
    let (train, statics) = convert_normalized(&root, &dir.path().join("out"), Normalize::No);
    assert_close(&train, &[2.0, 5.0, nan, 6.0, nan, nan], "raw");
    assert_eq!(statics, [Some(7.0); 3]);
    let by_file =
        TensorizeOptions { normalize: Normalize::ByFile, overwrite: true, ..Default::default() };
    let e = convert_dataset(&root, &dir.path().join("out"), &by_file).unwrap_err().to_string();
    assert!(e.contains("values/mean") && e.contains("codes.parquet"), "{e}");

    // If the file of codes has means and deviations, they are used and none is computed, not even
    // for B, which lacks them.
    let given = [
        ("values/mean", vec![Some(1.0), Some(1.0), Some(0.5)]),
        ("values/std", vec![Some(2.0), None, Some(0.5)]),
    ];
    let (dir, root) = numbers_set(&given);
    for normalize in [Normalize::Compatible, Normalize::Exact, Normalize::ByFile] {
        let out = dir.path().join("out");
        let (train, statics) = convert_normalized(&root, &out, normalize);
        assert_close(&train, &[0.5, nan, nan, 2.5, nan, nan], "given");
        assert_eq!(statics, [None, Some(13.0), Some(3.0)]);
        let codes = read_parquet(&out.join("metadata/codes.parquet"));
        assert!(codes.column_by_name("values/sum").is_none());
        assert_eq!(
            codes["values/mean"].as_primitive::<arrow::datatypes::Float64Type>().value(2),
            0.5
        );
    }

    // Sums in the file are used only with `ByFile`; otherwise, those of the split `train` are used.
    let sums = [
        ("values/n_occurrences", vec![Some(2.0), Some(1.0), Some(0.0)]),
        ("values/sum", vec![Some(2.0), Some(5.0), None]),
        ("values/sum_sqd", vec![Some(4.0), Some(25.0), None]),
        ("weight", vec![None, Some(0.25), None]),
    ];
    let (dir, root) = numbers_set(&sums);
    let out = dir.path().join("out");
    let (train, statics) = convert_normalized(&root, &out, Normalize::ByFile);
    assert_close(&train, &[1.0, nan, nan, 5.0, nan, nan], "sums");
    same(&statics, &[Some(f32::INFINITY), None, Some(6.0)]);
    let (train, _) = convert_normalized(&root, &out, Normalize::Compatible);
    assert_close(&train, &[a(2.0), nan, nan, a(6.0), nan, nan], "train");
    let codes = read_parquet(&out.join("metadata/codes.parquet"));
    let names: Vec<String> = codes.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(
        names,
        [
            "code",
            "code/n_occurrences",
            "code/n_subjects",
            "values/n_occurrences",
            "values/sum",
            "values/sum_sqd",
            "code/vocab_index",
            "weight"
        ]
    );
    assert_eq!(codes["values/sum_sqd"].as_primitive::<Float32Type>().values(), &[41.0, 25.0, 0.0]);
}

#[test]
fn deviations_of_many_values_are_computed_in_64_bits() {
    // 70,000 values near 1,000, whose deviation would be lost in sums of 32 bits.
    let n = 70_000u32;
    let value = |i: u32| 1000.0 + (i % 7) as f32 * 0.25;
    let rows: Vec<Measurement> =
        (0..n).map(|i| make_row(1, Some(i64::from(i)), "A", Some(value(i)))).collect();
    let (dir, root) = write_dataset(&[("data/train/0.parquet", make_batch(&rows, true))]);
    let out = dir.path().join("out");
    convert_dataset(
        &root,
        &out,
        &TensorizeOptions { normalize: Normalize::Compatible, ..Default::default() },
    )
    .unwrap();
    let codes = read_parquet(&out.join("metadata/codes.parquet"));
    let count = codes["values/n_occurrences"].as_primitive::<UInt32Type>().value(0);
    let sum = |name: &str| f64::from(codes[name].as_primitive::<Float32Type>().value(0));
    let (mean, squares) =
        (sum("values/sum") / f64::from(count), sum("values/sum_sqd") / f64::from(count));
    let std = (squares - mean * mean).sqrt();
    let file = SafetensorsFile::open(out.join("data/train/0.nrt"), FileAccess::Map).unwrap();
    let expected: Vec<f32> = (0..n).map(|i| ((f64::from(value(i)) - mean) / std) as f32).collect();
    assert_eq!(read_floats(&file, "dim2/numeric_value"), expected);
}

#[test]
fn a_failed_conversion_leaves_no_files() {
    let (dir, root) = with_gaps();
    let out = dir.path().join("some/where/out");
    let codes = codes_file(&["SEX", "A"], &[Some(1), Some(2)], &[]);
    write_parquet(&root.join("metadata/codes.parquet"), &codes);
    let refuse = TensorizeOptions { unknown: UnknownCodes::Refuse, ..TensorizeOptions::default() };
    let e = convert_dataset(&root, &out, &refuse).unwrap_err().to_string();
    assert!(e.contains("0.parquet") && e.contains("row 3") && e.contains("\"B\""), "{e}");
    let stopped =
        tensorize(&MedsDataset::open(&root).unwrap(), &out, &Default::default(), |shards| {
            assert_eq!(shards[0].name, "train/0");
            ControlFlow::Break(())
        });
    assert!(stopped.unwrap_err().to_string().contains("stopped"));
    assert_eq!(fs::read_dir(out.parent().unwrap()).unwrap().count(), 0);

    let options = TensorizeOptions::default();
    convert_dataset(&root, &out, &options).unwrap();
    assert!(matches!(convert_dataset(&root, &out, &options), Err(serrate::Error::Exists(_))));
    let again = TensorizeOptions { overwrite: true, unknown: UnknownCodes::Zero, ..options };
    assert_eq!(convert_dataset(&root, &out, &again).unwrap().measurements(), 3);
    assert_eq!(
        read_integers(
            &SafetensorsFile::open(out.join("data/train/0.nrt"), FileAccess::Map).unwrap(),
            "dim2/code"
        ),
        [2, 0, 2]
    );
    fs::write(out.join("notes.txt"), "mine").unwrap();
    let e = convert_dataset(&root, &out, &again).unwrap_err().to_string();
    assert!(e.contains("notes.txt"), "{e}");
    let e = convert_dataset(&root, &root, &again).unwrap_err().to_string();
    assert!(e.contains("is read from this folder"), "{e}");
    assert_eq!(fs::read_dir(out.parent().unwrap()).unwrap().count(), 1);

    let from_file = TensorizeOptions { vocabulary: VocabularyFrom::File, ..options };
    fs::remove_file(root.join("metadata/codes.parquet")).unwrap();
    let e = convert_dataset(&root, &dir.path().join("b"), &from_file).unwrap_err().to_string();
    assert!(e.contains("codes.parquet"), "{e}");
    let bad = make_batch(&[make_row(1, None, "A", None)], true);
    let empty: ArrayRef = Arc::new(StringArray::from(vec![None::<&str>]));
    let mut columns: Vec<ArrayRef> = bad.columns().to_vec();
    columns[2] = empty;
    write_parquet(
        &root.join("data/train/1.parquet"),
        &RecordBatch::try_new(bad.schema(), columns).unwrap(),
    );
    let e = convert_dataset(&root, &dir.path().join("b"), &options).unwrap_err().to_string();
    assert!(e.contains("1.parquet") && e.contains("\"code\", row 0"), "{e}");
}

#[test]
fn shards_without_subjects_or_events_have_tensors() {
    let (dir, root) = write_dataset(&[
        ("data/train/0.parquet", make_batch(&[make_row(3, None, "A", None)], false)),
        ("data/train/1.parquet", make_batch(&[], false)),
    ]);
    let out = dir.path().join("out");
    convert_dataset(&root, &out, &TensorizeOptions::default()).unwrap();
    for (shard, rows) in [("train/0", 1), ("train/1", 0)] {
        let file =
            nrt::NrtFile::open(out.join(format!("data/{shard}.nrt")), &Default::default()).unwrap();
        assert_eq!((file.num_rows(), file.ndim(), file.columns().len()), (rows, 3, 3));
        assert_eq!(read_subjects(&out, shard).len(), rows);
    }
    let schema = read_parquet(&out.join("tokenization/schemas/train/0.parquet"));
    for name in ["start_time", "time", "measurements_per_event"] {
        assert_eq!(schema[name].null_count(), 1, "{name}");
    }
    // meds-torch-data writes an empty shard as a file without tensors.
    let empty = out.join("data/train/1.nrt");
    fs::remove_file(&empty).unwrap();
    serrate::io::safetensors::write_tensors(&empty, [], &Default::default()).unwrap();
    assert!(read_subjects(&out, "train/1").is_empty());
}

#[test]
fn other_data_is_never_replaced() {
    let (dir, root) = with_gaps();
    let other = dir.path().join("other");
    let shard = other.join("data/train/0.parquet");
    fs::create_dir_all(shard.parent().unwrap()).unwrap();
    fs::create_dir_all(other.join("metadata")).unwrap();
    fs::copy(root.join("data/train/0.parquet"), &shard).unwrap();
    let again = TensorizeOptions { overwrite: true, ..TensorizeOptions::default() };
    let e = convert_dataset(&root, &other, &again).unwrap_err().to_string();
    assert!(e.contains("not a tensorized cohort"), "{e}");
    assert!(shard.is_file());
}

#[test]
fn tokens_far_beyond_the_codes_are_refused() {
    let (dir, root) = with_gaps();
    let out = dir.path().join("out");
    convert_dataset(&root, &out, &TensorizeOptions::default()).unwrap();
    let codes = codes_file(&["SEX", "A"], &[Some(1), Some(4_294_967_294)], &[]);
    write_parquet(&out.join("metadata/codes.parquet"), &codes);
    let cohort = TensorizedCohort::open(&out).unwrap();
    let e = cohort.meds_schema().unwrap_err().to_string();
    assert!(e.contains("4294967294") && e.contains("2 codes"), "{e}");
    assert!(cohort.read_meds(0).is_err());
}

#[test]
fn a_subject_in_two_shards_is_refused_unless_allowed() {
    let (a, b) = (
        make_row(1, Some(micros_at(0, 0, 0, 0)), "A", None),
        make_row(1, Some(micros_at(1, 0, 0, 0)), "A", None),
    );
    let (dir, root) = write_dataset(&[
        ("data/train/0.parquet", make_batch(&[a], true)),
        ("data/tuning/0.parquet", make_batch(&[b], true)),
    ]);
    let out = dir.path().join("out");
    for jobs in [1, 2] {
        let options = TensorizeOptions { jobs, ..TensorizeOptions::default() };
        let e = convert_dataset(&root, &out, &options).unwrap_err().to_string();
        assert!(e.contains("train/0.parquet: subject 1 is also in "), "{e}");
        assert!(e.contains("tuning/0.parquet, but"), "{e}");
        assert!(!out.exists());
        let shared = TensorizeOptions { shared_subjects: true, ..options };
        let out = dir.path().join(format!("shared {jobs}"));
        assert_eq!(convert_dataset(&root, &out, &shared).unwrap().subjects(), 2);
    }
}
