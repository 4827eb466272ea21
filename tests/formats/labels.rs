//! Files of labels: their order, types and values, and the errors for invalid files.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Date32Array, Float64Array, Int32Array, Int64Array, NullArray,
    RecordBatch, StringArray, TimestampMicrosecondArray, TimestampNanosecondArray,
    TimestampSecondArray, UInt64Array,
};
use arrow::datatypes::{Float32Type, Int64Type};
use serrate::io::meds::{LabelKind, Labels};

use crate::support::write_parquet;

fn write_file(path: &Path, columns: &[(&str, ArrayRef)]) {
    let columns = columns.iter().map(|(name, values)| (*name, values.clone(), true));
    write_parquet(path, &RecordBatch::try_from_iter_with_nullable(columns).unwrap());
}

fn make_ids(values: &[i64]) -> (&'static str, ArrayRef) {
    ("subject_id", Arc::new(Int64Array::from(values.to_vec())))
}

fn make_times(values: &[i64]) -> (&'static str, ArrayRef) {
    ("prediction_time", Arc::new(TimestampMicrosecondArray::from(values.to_vec())))
}

#[test]
fn files_are_read_in_natural_order_and_all_kinds_of_values_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    write_file(
        &at("task/10.parquet"),
        &[
            make_ids(&[5]),
            make_times(&[50]),
            ("float_value", Arc::new(Float64Array::from(vec![Some(0.1)]))),
            ("boolean_value", Arc::new(NullArray::new(1))),
        ],
    );
    write_file(
        &at("task/9.parquet"),
        &[
            ("categorical_value", Arc::new(StringArray::from(vec![Some("a"), None]))),
            ("note", Arc::new(StringArray::from(vec!["not read", ""]))),
            ("subject_id", Arc::new(Int32Array::from(vec![7, -7]))),
            ("prediction_time", Arc::new(TimestampSecondArray::from(vec![-2, 1]))),
            ("boolean_value", Arc::new(BooleanArray::from(vec![Some(true), None]))),
        ],
    );
    write_file(
        &at("a.parquet"),
        &[
            make_ids(&[9, 9]),
            ("prediction_time", Arc::new(TimestampNanosecondArray::from(vec![3000, 1000]))),
            ("integer_value", Arc::new(UInt64Array::from(vec![Some(3), None]))),
        ],
    );
    fs::write(at("task/README.md"), "no labels").unwrap();
    let labels = Labels::read(dir.path()).unwrap();
    assert_eq!(labels.subject_ids().values(), &[9, 9, 7, -7, 5]);
    assert_eq!(labels.prediction_times().values(), &[3, 1, -2_000_000, 1_000_000, 50]);
    assert_eq!(labels.kinds().collect::<Vec<_>>(), LabelKind::ALL);
    let boolean = labels.value(LabelKind::Boolean).unwrap().as_boolean();
    assert_eq!(boolean.iter().collect::<Vec<_>>(), [None, None, Some(true), None, None]);
    let integer = labels.value(LabelKind::Integer).unwrap().as_primitive::<Int64Type>();
    assert_eq!(integer.iter().collect::<Vec<_>>(), [Some(3), None, None, None, None]);
    let float = labels.value(LabelKind::Float).unwrap().as_primitive::<Float32Type>();
    assert_eq!(float.iter().collect::<Vec<_>>(), [None, None, None, None, Some(0.1)]);
    let text = labels.value(LabelKind::Categorical).unwrap().as_string::<i32>();
    assert_eq!(text.iter().collect::<Vec<_>>(), [None, None, Some("a"), None, None]);
    let batch = labels.to_batch().unwrap();
    assert_eq!((batch.num_rows(), batch.num_columns()), (5, 6));
    assert_eq!(batch.schema().field(2).name(), "boolean_value");

    // A path to one file, a column of dates in place of timestamps, and no column of values.
    let one = at("one.parquet");
    write_file(&one, &[make_ids(&[1]), ("prediction_time", Arc::new(Date32Array::from(vec![2])))]);
    let labels = Labels::read(&one).unwrap();
    assert_eq!((labels.len(), labels.kinds().count(), labels.is_empty()), (1, 0, false));
    assert_eq!(labels.prediction_times().value(0), 2 * 86_400_000_000);
}

#[test]
fn invalid_files_are_errors_that_name_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    let refused = |columns: &[(&str, ArrayRef)], parts: &[&str]| {
        write_file(&path, columns);
        let e = Labels::read(dir.path()).unwrap_err().to_string();
        for part in parts.iter().chain(&["x.parquet"]) {
            assert!(e.contains(part), "{part:?} is not in {e:?}");
        }
    };
    let e = Labels::read(dir.path()).unwrap_err().to_string();
    assert!(e.contains("no *.parquet file"), "{e}");
    assert!(Labels::read(dir.path().join("none")).is_err());
    refused(&[make_ids(&[1])], &["no column \"prediction_time\"", "subject_id"]);
    refused(&[make_times(&[1])], &["no column \"subject_id\""]);
    let gap: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    refused(&[("subject_id", gap), make_times(&[1, 2])], &["\"subject_id\"", "row 1", "NULL"]);
    let gap: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![None, Some(1)]));
    refused(&[make_ids(&[1, 1]), ("prediction_time", gap)], &["\"prediction_time\"", "row 0"]);
    let text: ArrayRef = Arc::new(StringArray::from(vec!["2020-01-01"]));
    refused(&[make_ids(&[1]), ("prediction_time", text.clone())], &["timestamp", "Utf8"]);
    refused(&[("subject_id", text.clone()), make_times(&[1])], &["\"subject_id\"", "integers"]);
    refused(
        &[make_ids(&[1]), make_times(&[1]), ("boolean_value", text)],
        &["\"boolean_value\"", "booleans"],
    );
    let far: ArrayRef = Arc::new(TimestampSecondArray::from(vec![i64::MAX]));
    refused(&[make_ids(&[1]), ("prediction_time", far)], &["\"prediction_time\""]);
    let large: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX]));
    refused(&[make_ids(&[1]), make_times(&[1]), ("integer_value", large)], &["\"integer_value\""]);
    fs::write(&path, b"PAR1 and no more").unwrap();
    assert!(Labels::read(&path).unwrap_err().to_string().contains("x.parquet"));
}

#[test]
fn ids_times_and_values_must_have_equal_lengths_and_right_types() {
    let new = |ids: Vec<Option<i64>>, times: Vec<i64>, values: Vec<(LabelKind, ArrayRef)>| {
        Labels::try_new(ids.into(), times.into(), values)
    };
    let yes = |n: usize| -> ArrayRef { Arc::new(BooleanArray::from(vec![true; n])) };
    let sound = new(
        vec![Some(1)],
        vec![2],
        vec![
            (LabelKind::Integer, Arc::new(Int64Array::from(vec![3]))),
            (LabelKind::Boolean, yes(1)),
        ],
    );
    let kinds: Vec<LabelKind> = sound.unwrap().kinds().collect();
    assert_eq!(kinds, [LabelKind::Boolean, LabelKind::Integer]);
    assert!(new(vec![Some(1)], vec![2, 3], vec![]).is_err());
    assert!(new(vec![None], vec![2], vec![]).is_err());
    assert!(new(vec![Some(1)], vec![2], vec![(LabelKind::Boolean, yes(2))]).is_err());
    assert!(new(vec![Some(1)], vec![2], vec![(LabelKind::Integer, yes(1))]).is_err());
    let twice = vec![(LabelKind::Boolean, yes(1)), (LabelKind::Boolean, yes(1))];
    assert!(new(vec![Some(1)], vec![2], twice).unwrap_err().to_string().contains("twice"));
}

#[test]
fn text_order_is_the_order_of_paths_in_python() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a/1", "a/2", "a/10", "a", "b/3", "a-b"] {
        let id =
            i64::try_from(name.len()).unwrap() * 100 + i64::from(name.as_bytes()[name.len() - 1]);
        write_file(
            &dir.path().join(format!("{name}.parquet")),
            &[make_ids(&[id]), make_times(&[1])],
        );
    }
    let of = |labels: Labels| labels.subject_ids().values().to_vec();
    let id = |name: &str| {
        i64::try_from(name.len()).unwrap() * 100 + i64::from(name.as_bytes()[name.len() - 1])
    };
    // The order of Python's sorted(Path(folder).rglob("*.parquet")), which compares the components
    // of paths as strings.
    let python = ["a/1", "a/10", "a/2", "a-b", "a", "b/3"].map(id);
    assert_eq!(of(Labels::read_in_text_order(dir.path()).unwrap()), python);
    assert_ne!(of(Labels::read(dir.path()).unwrap()), python);
}

#[test]
fn tasks_are_read_together_only_if_they_have_the_same_kind_of_value() {
    let dir = tempfile::tempdir().unwrap();
    let yes = |n: usize| -> (&'static str, ArrayRef) {
        ("boolean_value", Arc::new(BooleanArray::from(vec![true; n])))
    };
    let at = |name: &str| dir.path().join(format!("{name}.parquet"));
    write_file(&at("train/0"), &[make_ids(&[1]), make_times(&[1]), yes(1)]);
    write_file(&at("test/0"), &[make_ids(&[2]), make_times(&[1]), yes(1)]);
    // Folders with the names of splits are not tasks.
    assert_eq!(Labels::tasks(dir.path()).unwrap(), [""; 0]);
    fs::remove_dir_all(dir.path().join("train")).unwrap();
    assert_eq!(Labels::tasks(dir.path()).unwrap(), [""; 0]);
    write_file(&at("death/train/0"), &[make_ids(&[3]), make_times(&[1]), yes(1)]);
    assert_eq!(Labels::tasks(dir.path()).unwrap(), ["death", "test"]);
    assert_eq!(Labels::read(dir.path()).unwrap().len(), 2);
    // A column with only NULL does not count as a kind of value.
    let none: ArrayRef = Arc::new(Float64Array::from(vec![None]));
    write_file(&at("test/1"), &[make_ids(&[4]), make_times(&[1]), ("float_value", none)]);
    assert_eq!(Labels::read(dir.path()).unwrap().len(), 3);
    let number: ArrayRef = Arc::new(Int64Array::from(vec![3]));
    write_file(&at("days/0"), &[make_ids(&[5]), make_times(&[1]), ("integer_value", number)]);
    let e = Labels::read(dir.path()).unwrap_err().to_string();
    for part in ["\"days\" has integer_value", "\"death\" has boolean_value", "one task"] {
        assert!(e.contains(part), "{e}");
    }
    assert_eq!(Labels::read(dir.path().join("days")).unwrap().len(), 1);
    let e = Labels::read(dir.path().join("none")).unwrap_err().to_string();
    assert!(e.contains("there is no such file or folder"), "{e}");
}
