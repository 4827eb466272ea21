//! Features of labels, compared with a slow reference on random data sets.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{Float64Type, UInt32Type};
use proptest::prelude::*;
use serrate::io::features::{
    FeatureAggregate, FeatureKey, FeatureRows, FeatureSpec, FeatureStore, LabelFeatures,
};
use serrate::io::meds::Labels;
use serrate::io::meds_torch::MedsFolder;
use serrate::io::parquet::ParquetWriteOptions;
use serrate::io::safetensors::SaveOptions;
use serrate::kernels::between::ClosedEnds;

use crate::support::{read_parquet, write_parquet};

const DAY: i64 = 86_400_000_000;
const CODES: [&str; 5] = ["LAB//a", "LAB//b", "LABEL", "DRUG//c", "other"];

/// A measurement: subject, time in days, index in `CODES`, and value.
type Row = (i64, Option<i64>, usize, Option<f32>);

fn write_shard(path: &Path, rows: &[Row]) {
    let ids: Int64Array = rows.iter().map(|r| Some(r.0)).collect();
    let times: TimestampMicrosecondArray = rows.iter().map(|r| r.1.map(|d| d * DAY)).collect();
    let codes: StringArray = rows.iter().map(|r| Some(CODES[r.2])).collect();
    let values: Float32Array = rows.iter().map(|r| r.3).collect();
    let columns: [(&str, ArrayRef, bool); 4] = [
        ("subject_id", Arc::new(ids), false),
        ("time", Arc::new(times), true),
        ("code", Arc::new(codes), false),
        ("numeric_value", Arc::new(values), true),
    ];
    write_parquet(path, &RecordBatch::try_from_iter_with_nullable(columns).unwrap());
}

fn labels_of(labels: &[(i64, i64)]) -> Labels {
    let ids: Int64Array = labels.iter().map(|l| Some(l.0)).collect();
    let times: TimestampMicrosecondArray = labels.iter().map(|l| Some(l.1 * DAY)).collect();
    Labels::try_new(ids, times, vec![]).unwrap()
}

fn make_spec(closure: ClosedEnds) -> FeatureSpec {
    let keys = vec![
        FeatureKey::Code("DRUG//c".into()),
        FeatureKey::Prefix("LAB".into()),
        FeatureKey::Code("LAB//a".into()),
        FeatureKey::Prefix("LAB//".into()),
        FeatureKey::Code("never".into()),
    ];
    let windows = ["3d", "all", "10d", "static"].map(|w| w.parse().unwrap()).to_vec();
    FeatureSpec::try_new(keys, windows, FeatureAggregate::ALL.to_vec()).unwrap().closed(closure)
}

/// Returns the value of one feature for a label, computed from all measurements, or `None` if the
/// feature has no value.
fn compute_reference(
    rows: &[Row],
    label: (i64, i64),
    parts: (&FeatureKey, &str, FeatureAggregate),
    closure: ClosedEnds,
) -> Option<f64> {
    let (key, window, aggregate) = parts;
    let (subject, at) = label;
    let wanted = |code: &str| match key {
        FeatureKey::Code(own) => own.as_ref() == code,
        FeatureKey::Prefix(prefix) => code.starts_with(prefix.as_ref()),
    };
    let (from, to) = (
        matches!(closure, ClosedEnds::Left | ClosedEnds::Both),
        matches!(closure, ClosedEnds::Right | ClosedEnds::Both),
    );
    let within = |day: Option<i64>| match (window, day) {
        ("static", day) => day.is_none(),
        (_, None) => false,
        (window, Some(day)) => {
            let early = match window {
                "all" => false,
                window => {
                    let start = at - window.trim_end_matches('d').parse::<i64>().unwrap();
                    day < start || (day == start && !from)
                }
            };
            !early && (day < at || (day == at && to))
        }
    };
    let mut own: Vec<&Row> =
        rows.iter().filter(|r| r.0 == subject && within(r.1) && wanted(CODES[r.2])).collect();
    own.sort_by_key(|r| r.1);
    if own.is_empty() {
        return None;
    }
    if aggregate == FeatureAggregate::Count {
        return Some(own.len() as f64);
    }
    let values: Vec<(f64, f64)> =
        own.iter().filter_map(|r| Some((r.1.unwrap_or(0) as f64, f64::from(r.3?)))).collect();
    let ys = || values.iter().map(|v| v.1);
    let (n, first) = (values.len() as f64, values.first()?);
    Some(match aggregate {
        FeatureAggregate::Count | FeatureAggregate::ValueCount => n,
        FeatureAggregate::Sum => ys().sum(),
        FeatureAggregate::SumOfSquares => ys().map(|y| y * y).sum(),
        FeatureAggregate::Mean => ys().sum::<f64>() / n,
        FeatureAggregate::Min => ys().fold(f64::INFINITY, f64::min),
        FeatureAggregate::Max => ys().fold(f64::NEG_INFINITY, f64::max),
        FeatureAggregate::First => first.1,
        FeatureAggregate::Last => values.last()?.1,
        FeatureAggregate::Slope => {
            let (x, y) = (values.iter().map(|v| v.0).sum::<f64>() / n, ys().sum::<f64>() / n);
            let spread = values.iter().map(|v| (v.0 - x) * (v.0 - x)).sum::<f64>();
            if spread == 0.0 {
                return None;
            }
            values.iter().map(|v| (v.0 - x) * (v.1 - y)).sum::<f64>() / spread
        }
    })
}

/// Computes the features of all labels through a store, in blocks of `block` labels.
fn compute_features(
    folder: &Path,
    labels: &Labels,
    spec: &FeatureSpec,
    block: usize,
) -> (FeatureRows, usize) {
    let features =
        LabelFeatures::new(MedsFolder::open(folder).unwrap(), labels.clone(), spec.clone());
    let mut store = FeatureStore::create(folder, labels.len()).unwrap();
    for shard in 0..features.num_shards() {
        let shard = features.read(shard).unwrap();
        for range in shard.blocks(block) {
            store.push(&shard.features(range).unwrap()).unwrap();
        }
    }
    (store.read(0..labels.len()).unwrap(), features.unknown().unwrap())
}

fn draw_rows() -> impl Strategy<Value = Vec<Row>> {
    // Small integers have exact sums, so that the order of addition does not matter.
    let row = (0i64..4, prop::option::weighted(0.9, -20i64..20), 0..CODES.len());
    let value = prop::option::weighted(0.8, (-50i16..50).prop_map(f32::from));
    prop::collection::vec((row, value).prop_map(|((id, day, code), v)| (id, day, code, v)), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn features_equal_the_reference_for_any_shards_and_blocks(
        rows in draw_rows(),
        labels in prop::collection::vec((0i64..5, -22i64..22), 0..12),
        shards in 1i64..4,
        closure in prop::sample::select(vec![ClosedEnds::Right, ClosedEnds::Left, ClosedEnds::Both, ClosedEnds::Neither]),
    ) {
        let (one, many) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write_shard(&one.path().join("data/0.parquet"), &rows);
        for shard in 0..shards {
            let own: Vec<Row> = rows.iter().filter(|r| r.0 % shards == shard).copied().collect();
            write_shard(&many.path().join(format!("data/{shard}.parquet")), &own);
        }
        let (spec, of_labels) = (make_spec(closure), labels_of(&labels));
        let (found, unknown) = compute_features(one.path(), &of_labels, &spec, 1000);
        let known = |l: &(i64, i64)| rows.iter().any(|r| r.0 == l.0);
        prop_assert_eq!(unknown, labels.iter().filter(|l| !known(l)).count());
        for block in [1, 3] {
            prop_assert_eq!(
                &compute_features(many.path(), &of_labels, &spec, block),
                &(found.clone(), unknown),
            );
        }
        let mut all = found.iter();
        for (position, label) in labels.iter().enumerate().filter(|(_, l)| known(l)) {
            let (own, features, values) = all.next().unwrap();
            prop_assert_eq!(own, position);
            let own: BTreeMap<usize, f64> =
                features.iter().map(|f| *f as usize).zip(values.iter().copied()).collect();
            prop_assert!(features.is_sorted());
            for feature in 0..spec.num_features() {
                let (key, window, aggregate) = spec.parts(feature);
                let window = window.to_string();
                let expected =
                    compute_reference(&rows, *label, (key, &window, aggregate), closure);
                let found = own.get(&feature).copied();
                let close = match (found, expected) {
                    (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs().max(1.0),
                    (a, b) => a == b,
                };
                prop_assert!(close, "{}: {found:?}, expected {expected:?}", spec.name(feature));
            }
        }
        prop_assert_eq!(all.next(), None);
    }
}

#[test]
fn without_measurements_counts_are_zero_and_means_null() {
    let dir = tempfile::tempdir().unwrap();
    write_shard(
        &dir.path().join("data/0.parquet"),
        &[(1, Some(1), 0, Some(2.5)), (1, Some(2), 3, None), (2, None, 0, Some(1.0))],
    );
    let labels = labels_of(&[(2, 5), (1, 1), (9, 1), (1, 2)]);
    let keys = vec![FeatureKey::Code("LAB//a".into()), FeatureKey::Code("DRUG//c".into())];
    let aggregates = ["count", "sum", "mean", "last"].map(|a| a.parse().unwrap()).to_vec();
    let spec = FeatureSpec::try_new(keys, vec!["all".parse().unwrap()], aggregates).unwrap();
    let (rows, unknown) = compute_features(dir.path(), &labels, &spec, 10);
    assert_eq!((rows.labels.as_slice(), unknown), ([0, 1, 3].as_slice(), 1));
    let columns = rows.to_columns(&spec, &[0, 1, 2, 3, 4, 5, 6]).unwrap();
    let shown: Vec<String> = columns.iter().map(|c| format!("{c:?}")).collect();
    assert_eq!(columns[0].as_primitive::<arrow::datatypes::Int64Type>().values(), &[0, 1, 1]);
    assert_eq!(columns[1].as_primitive::<Float64Type>().values(), &[0.0, 2.5, 2.5]);
    assert_eq!((columns[1].null_count(), columns[2].null_count()), (0, 1), "{shown:?}");
    assert_eq!(columns[3].data_type(), &arrow::datatypes::DataType::Float32);
    // The code DRUG//c occurs once, without a value.
    assert_eq!(columns[4].as_primitive::<arrow::datatypes::Int64Type>().values(), &[0, 0, 1]);
    assert_eq!((columns[5].null_count(), columns[6].null_count()), (0, 3));
    let list = rows.to_list(&spec).unwrap();
    let lists = list.as_fixed_size_list();
    assert_eq!((lists.value_length(), lists.len()), (8, 3));
    let second = lists.value(1);
    let second: Vec<Option<f64>> = second.as_primitive::<Float64Type>().iter().collect();
    assert_eq!(
        second,
        [Some(1.0), Some(2.5), Some(2.5), Some(2.5), Some(0.0), Some(0.0), None, None]
    );
    let (numbers, values) = rows.to_sparse().unwrap();
    assert_eq!(numbers.as_list::<i32>().value_length(2), 5);
    assert_eq!(numbers.as_list::<i32>().value(2).as_primitive::<UInt32Type>().value(4), 4);
    assert_eq!(values.as_list::<i32>().value(2).as_primitive::<Float64Type>().value(4), 1.0);
    assert!(rows.to_columns(&spec, &[8]).unwrap_err().is_out_of_range());
}

#[test]
fn sparse_files_have_the_numbers_of_their_labels_as_rows() {
    let dir = tempfile::tempdir().unwrap();
    write_shard(&dir.path().join("data/0.parquet"), &[(1, Some(1), 0, Some(2.5))]);
    write_shard(&dir.path().join("data/1.parquet"), &[(0, Some(0), 1, Some(0.5))]);
    let labels = labels_of(&[(1, 5), (0, -1), (7, 1), (0, 2)]);
    let keys = ["LAB//a", "LAB//b"].map(|c| FeatureKey::Code(c.into())).to_vec();
    let aggregates = ["count", "max"].map(|a| a.parse().unwrap()).to_vec();
    let spec = FeatureSpec::try_new(keys, vec!["all".parse().unwrap()], aggregates).unwrap();
    let features =
        LabelFeatures::new(MedsFolder::open(dir.path()).unwrap(), labels.clone(), spec.clone());
    let mut store = FeatureStore::create(dir.path(), labels.len()).unwrap();
    for shard in 0..2 {
        let shard = features.read(shard).unwrap();
        store.push(&shard.features(0..shard.num_labels()).unwrap()).unwrap();
    }
    let path = dir.path().join("x.safetensors");
    store.write_dok(&path, &spec, &SaveOptions::default()).unwrap();
    let tensor = serrate::io::dok::read(&path).unwrap();
    assert_eq!((tensor.shape(), tensor.nnz().unwrap()), (vec![4, 4], 4));
    let at = |row, feature| tensor.at(&[row, feature]).unwrap().to_f64().unwrap();
    assert_eq!((at(0, 0), at(0, 1), at(3, 2), at(3, 3)), (1.0, 2.5, 1.0, 0.5));
    let again = store.write_dok(&path, &spec, &SaveOptions::default()).unwrap_err();
    assert!(again.is_exists(), "{again}");
    let path = dir.path().join("x.parquet");
    store.write_parquet(&path, &ParquetWriteOptions::default()).unwrap();
    let batch = read_parquet(&path);
    let of = |name: &str| batch.column_by_name(name).unwrap().clone();
    assert_eq!(of("row").as_primitive::<arrow::datatypes::Int64Type>().values(), &[0, 0, 3, 3]);
    assert_eq!(of("feature").as_primitive::<UInt32Type>().values(), &[0, 1, 2, 3]);
    assert_eq!(of("value").as_primitive::<Float64Type>().values(), &[1.0, 2.5, 1.0, 0.5]);
}

#[test]
fn a_subject_in_two_shards_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for shard in 0..2 {
        let path = dir.path().join(format!("data/{shard}.parquet"));
        write_shard(&path, &[(1, Some(shard), 0, Some(2.5))]);
    }
    let spec = make_spec(ClosedEnds::Right);
    let features =
        LabelFeatures::new(MedsFolder::open(dir.path()).unwrap(), labels_of(&[(1, 1)]), spec);
    features.read(0).unwrap();
    assert_eq!(features.unknown(), None);
    let message = features.read(1).unwrap_err().to_string();
    assert!(message.contains("subject 1 is also in"), "{message}");
}
