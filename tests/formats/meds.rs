//! MEDS data sets: nested events, static facts, vocabularies, and unusual or damaged files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, Int32Array, Int64Array, ListArray, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type, Int64Type, TimestampMicrosecondType, UInt32Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serrate::Error;
use serrate::io::meds::{
    MedsDataset, MedsReadOptions, MedsShard, VOCABULARY_METADATA, Vocabulary, VocabularyId,
};
use serrate::table::{RaggedTable, UnsortedRows};

use crate::support::{data_path, write_dataset, write_parquet};
use crate::tiny::{micros_at, tiny_folder};

fn read_shard(shard: &str) -> MedsShard {
    MedsDataset::open(tiny_folder())
        .unwrap()
        .shard(shard)
        .unwrap()
        .read(&Default::default())
        .unwrap()
}

fn list_strings(table: &RaggedTable, name: &str) -> Vec<Option<String>> {
    let values = cast(table.column(name).unwrap().values(), &DataType::Utf8).unwrap();
    values.as_string::<i32>().iter().map(|s| s.map(str::to_string)).collect()
}

fn to_some(values: &[&str]) -> Vec<Option<String>> {
    values.iter().map(|s| Some((*s).to_string())).collect()
}

fn list_ids(table: &RaggedTable) -> Vec<i64> {
    let ids = table.column("subject_id").unwrap().values();
    ids.as_primitive::<Int64Type>().values().to_vec()
}

fn list_tokens(table: &RaggedTable, name: &str) -> Vec<u32> {
    table.column(name).unwrap().values().as_primitive::<UInt32Type>().values().to_vec()
}

fn list_floats(table: &RaggedTable, name: &str) -> Vec<Option<f32>> {
    table.column(name).unwrap().values().as_primitive::<Float32Type>().iter().collect()
}

#[test]
fn events_are_nested_by_subject_and_time() {
    let shard = read_shard("train/0");
    let events = &shard.events;
    assert_eq!(shard.name, "train/0");
    assert_eq!(list_ids(events), [1, 2, 4]);
    assert_eq!(
        (0..3).map(|axis| events.axis_name(axis).unwrap()).collect::<Vec<_>>(),
        ["subject", "event", "measurement"]
    );
    assert_eq!(events.array("code").unwrap().lengths(1).unwrap(), [3, 0, 1]);
    assert_eq!(events.array("code").unwrap().lengths(2).unwrap(), [3, 1, 1, 2]);
    let time = events.column("time").unwrap().values();
    assert_eq!(
        time.as_primitive::<TimestampMicrosecondType>().values(),
        &[
            micros_at(0, 8, 30, 0),
            micros_at(0, 20, 45, 15),
            micros_at(2, 8, 30, 0),
            micros_at(30, 0, 0, 0)
        ]
    );
    let hours = |h: f64| Some((h / 24.0) as f32);
    assert_eq!(
        list_floats(events, "time_delta_days"),
        [None, hours(12.0 + 15.0 / 60.0 + 15.0 / 3600.0), hours(35.0 + 44.75 / 60.0), None]
    );
    let deltas = events.column("time_delta_days").unwrap().values().clone();
    assert!(
        deltas.as_primitive::<Float32Type>().values()[0].is_nan(),
        "the buffer has NaN where the value is NULL"
    );
    assert_eq!(
        list_strings(events, "code"),
        to_some(&[
            "ADMISSION",
            "LAB//sodium//mmol/L",
            "LAB//potassium//mmol/L",
            "LAB//sodium//mmol/L",
            "DISCHARGE",
            "LAB//sodium//mmol/L",
            "LAB//sodium//mmol/L"
        ])
    );
    assert_eq!(list_tokens(events, "code_id"), [3, 8, 9, 8, 4, 8, 8]);
    let values = list_floats(events, "numeric_value");
    assert_eq!((values[0], values[1], values[4]), (None, Some(139.5), None));
    assert!(values[3].unwrap().is_nan(), "NaN does not become NULL");
    assert_eq!(values[5].unwrap().to_bits(), (-0.0f32).to_bits());
    let text = list_strings(events, "text_value");
    assert_eq!(text[0].as_deref(), Some("by ambulance"));
    assert_eq!((text[1].as_deref(), text[4].as_deref()), (None, Some("")));
}

#[test]
fn facts_without_a_time_are_in_a_table_with_the_same_rows() {
    let MedsShard { events, statics, .. } = read_shard("train/0");
    assert_eq!(list_ids(&statics), list_ids(&events));
    assert_eq!(statics.array("static_code").unwrap().lengths(1).unwrap(), [2, 1, 0]);
    assert_eq!(list_strings(&statics, "static_code"), to_some(&["SEX//F", "BIRTH_YEAR", "SEX//M"]));
    assert_eq!(list_tokens(&statics, "static_code_id"), [1, 5, 2]);
    assert_eq!(list_floats(&statics, "static_numeric_value"), [None, Some(1961.0), None]);
    assert_eq!(list_strings(&statics, "static_text_value"), [None, None, None]);
    assert_eq!(statics.axis_name(1), Some("static"));
}

#[test]
fn unsorted_rows_are_sorted_stably_or_refused() {
    let MedsShard { events, statics, .. } = read_shard("train/1");
    assert_eq!(list_ids(&events), [6, 7]);
    assert_eq!(events.array("code").unwrap().lengths(1).unwrap(), [1, 2]);
    assert_eq!(
        list_strings(&events, "code"),
        to_some(&["ADMISSION", "LAB//sodium//mmol/L", "ADMISSION", "DISCHARGE", "LAB//new"])
    );
    assert_eq!(
        list_tokens(&events, "code_id"),
        [3, 8, 3, 4, 0],
        "codes that are not in the vocabulary become 0"
    );
    assert_eq!(
        list_floats(&events, "time_delta_days"),
        [None, None, Some((1.0 / 86_400.0) as f32)]
    );
    assert_eq!(
        list_floats(&events, "numeric_value"),
        [None; 5],
        "the file lacks the column numeric_value"
    );
    assert_eq!(
        list_strings(&events, "text_value"),
        [const { None }; 5],
        "only other shards have the column text_value"
    );
    assert_eq!(list_strings(&statics, "static_code"), to_some(&["SEX//M", "SEX//F"]));

    let strict = MedsReadOptions { unsorted: UnsortedRows::Refuse, ..Default::default() };
    let data = MedsDataset::open(tiny_folder()).unwrap();
    let e = data.shard("train/1").unwrap().read(&strict).unwrap_err().to_string();
    assert!(e.contains("1.parquet"), "{e}");
    assert!(data.shard("train/0").unwrap().read(&strict).is_ok());
}

#[test]
fn shards_of_other_types_and_empty_shards_have_the_schema_of_the_data_set() {
    let data = MedsDataset::open(tiny_folder()).unwrap();
    let names: Vec<String> = data.shards().map(|s| s.name().to_string()).collect();
    assert_eq!(names, ["held_out/0", "train/0", "train/1", "tuning/0"]);
    let schema = data.schema(&Default::default()).unwrap();
    for shard in data.shards() {
        let batch = shard.read(&Default::default()).unwrap().to_batch().unwrap();
        assert_eq!(batch.schema(), schema, "{}", shard.name());
    }
    let held_out = read_shard("held_out/0").events;
    let values = list_floats(&held_out, "numeric_value");
    assert_eq!(values, [None, Some(f32::INFINITY)]);
    let time = held_out.column("time").unwrap().values();
    assert_eq!(
        time.as_primitive::<TimestampMicrosecondType>().values(),
        &[micros_at(-20_000, 23, 59, 59), micros_at(0, 0, 0, 0)]
    );
    let tuning = read_shard("tuning/0");
    assert_eq!((tuning.events.num_rows(), tuning.events.ndim()), (0, 3));
    assert_eq!((tuning.statics.num_rows(), tuning.statics.ndim()), (0, 2));
}

#[test]
fn a_batch_has_columns_of_events_and_of_static_facts() {
    let batch = read_shard("train/0").to_batch().unwrap();
    let schema = batch.schema();
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(
        names,
        [
            "subject_id",
            "time",
            "time_delta_days",
            "code",
            "code_id",
            "numeric_value",
            "text_value",
            "static_code",
            "static_code_id",
            "static_numeric_value",
            "static_text_value"
        ]
    );
    let lengths = |name: &str| {
        let list: &ListArray = batch.column_by_name(name).unwrap().as_list();
        list.offsets().lengths().collect::<Vec<_>>()
    };
    assert_eq!(lengths("code"), [3, 0, 1]);
    assert_eq!(lengths("static_code"), [2, 1, 0]);
}

#[test]
fn columns_that_meds_does_not_prescribe_are_selected_by_name() {
    let data = MedsDataset::open(tiny_folder()).unwrap();
    let none = MedsReadOptions { columns: Some(vec![]), ..Default::default() };
    let shard = data.shard("train/0").unwrap().read(&none).unwrap();
    assert!(shard.events.column("text_value").is_err());
    let wrong = MedsReadOptions { columns: Some(vec!["colour".into()]), ..Default::default() };
    let e = data.shard("train/0").unwrap().read(&wrong).unwrap_err();
    assert!(
        matches!(&e, Error::NoSuchColumn { name, available } if name == "colour" && available == "text_value"),
        "{e}"
    );
}

#[test]
fn columns_of_tokens_name_their_vocabulary() {
    let data = MedsDataset::open(tiny_folder()).unwrap();
    let vocabulary = data.vocabulary().unwrap();
    assert_eq!(vocabulary.len(), 7);
    assert_eq!(vocabulary.decode(9), Some("LAB//potassium//mmol/L"));
    let shard = read_shard("train/0");
    for (table, name) in [(&shard.events, "code_id"), (&shard.statics, "static_code_id")] {
        let id = table.column(name).unwrap().field().metadata()[VOCABULARY_METADATA].clone();
        assert_eq!(VocabularyId::parse(&id), Some(vocabulary.id()));
    }
    assert_eq!(vocabulary.id().size(), 10);
}

fn make_rows(id: &[Option<i64>], time: &[Option<i64>], code: &[Option<&str>]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([
        ("subject_id", Arc::new(Int64Array::from(id.to_vec())) as ArrayRef, true),
        ("time", Arc::new(TimestampMicrosecondArray::from(time.to_vec())), true),
        ("code", Arc::new(StringArray::from(code.to_vec())), true),
    ])
    .unwrap()
}

#[test]
fn without_a_column_of_indices_tokens_follow_the_order_of_the_codes() {
    let data =
        make_rows(&[Some(1); 3], &[None, Some(1), Some(2)], &[Some("b"), Some("c"), Some("a")]);
    let (_dir, root) = write_dataset(&[("data/0.parquet", &data)]);
    let from_data = MedsDataset::open(&root).unwrap();
    assert_eq!(from_data.vocabulary().unwrap(), &Vocabulary::from_codes(["a", "b", "c"]).unwrap());
    let shard = from_data.shard("0").unwrap().read(&Default::default()).unwrap();
    assert_eq!(list_tokens(&shard.events, "code_id"), [3, 1]);
    assert_eq!(list_tokens(&shard.statics, "static_code_id"), [2]);

    let code: ArrayRef = Arc::new(StringArray::from(vec!["z", "b"]));
    let codes = RecordBatch::try_from_iter([("code", code)]).unwrap();
    write_parquet(&root.join("metadata/codes.parquet"), &codes);
    let from_file = MedsDataset::open(&root).unwrap();
    assert_eq!(from_file.vocabulary().unwrap(), &Vocabulary::from_codes(["b", "z"]).unwrap());
}

#[test]
fn errors_name_file_column_and_row() {
    let message = |files: &[(&str, &RecordBatch)]| {
        let (_dir, root) = write_dataset(files);
        let read = MedsDataset::open(&root)
            .and_then(|d| d.shards().next().unwrap().read(&Default::default()));
        read.unwrap_err().to_string()
    };
    let check = |batch: &RecordBatch, parts: &[&str]| {
        let e = message(&[("data/train/3.parquet", batch)]);
        for part in parts.iter().chain(&["3.parquet"]) {
            assert!(e.contains(part), "{part:?} is not in {e:?}");
        }
    };
    let good = make_rows(&[Some(1), Some(1)], &[Some(1), Some(2)], &[Some("a"), Some("b")]);
    check(&make_rows(&[Some(1), None], &[None; 2], &[Some("a"); 2]), &["subject_id", "row 1"]);
    check(&make_rows(&[Some(1); 2], &[Some(1); 2], &[Some("a"), None]), &["code", "row 1"]);
    check(&good.project(&[0, 1]).unwrap(), &["no column \"code\"", "subject_id, time"]);
    let with = |name: &str, column: ArrayRef| {
        let mut columns: Vec<(String, ArrayRef)> = good
            .schema()
            .fields()
            .iter()
            .zip(good.columns())
            .map(|(f, c)| (f.name().clone(), c.clone()))
            .filter(|(n, _)| n != name)
            .collect();
        columns.push((name.into(), column));
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["1", "2"]));
    check(&with("code", numbers.clone()), &["code", "Int32"]);
    check(&with("time", numbers.clone()), &["time", "Int32"]);
    check(&with("subject_id", text.clone()), &["subject_id", "Utf8"]);
    check(&with("numeric_value", text), &["numeric_value", "Utf8"]);
    let e = message(&[("data/0.parquet", &with("code_id", numbers.clone()))]);
    assert!(
        e.contains("\"code_id\" of the files has the name of a column that is computed"),
        "{e}"
    );

    let a = with("unit", numbers);
    let b = with("unit", Arc::new(StringArray::from(vec!["x", "y"])));
    let (_dir, root) = write_dataset(&[("data/0.parquet", &a), ("data/1.parquet", &b)]);
    let e = MedsDataset::open(&root).unwrap_err().to_string();
    assert!(e.contains("1.parquet") && e.contains("unit") && e.contains("Int32"), "{e}");

    let (_dir, root) = write_dataset(&[("data/0.parquet", &good)]);
    fs::write(root.join("data/1.parquet"), b"PAR1 and no more").unwrap();
    let e = MedsDataset::open(&root).unwrap_err().to_string();
    assert!(e.contains("1.parquet"), "{e}");

    let dir = tempfile::tempdir().unwrap();
    assert!(MedsDataset::open(dir.path()).is_err(), "the folder `data` is missing");
    fs::create_dir(dir.path().join("data")).unwrap();
    let e = MedsDataset::open(dir.path()).unwrap_err().to_string();
    assert!(e.contains("no *.parquet file"), "{e}");
}

#[test]
fn invalid_vocabularies_are_errors() {
    let good = make_rows(&[Some(1)], &[Some(1)], &[Some("a")]);
    let codes = |code: Vec<Option<&str>>, index: Vec<Option<i64>>| {
        RecordBatch::try_from_iter_with_nullable([
            ("code", Arc::new(StringArray::from(code)) as ArrayRef, true),
            ("code/vocab_index", Arc::new(Int64Array::from(index)), true),
        ])
        .unwrap()
    };
    for (batch, part) in [
        (codes(vec![Some("a"), None], vec![Some(1), Some(2)]), "\"code\", row 1"),
        (codes(vec![Some("a")], vec![Some(0)]), "\"code/vocab_index\", row 0: 0 is not a token"),
        (codes(vec![Some("a")], vec![Some(-3)]), "-3 is not a token"),
        (codes(vec![Some("a"); 2], vec![Some(1), Some(2)]), "two tokens"),
    ] {
        let (_dir, root) =
            write_dataset(&[("data/0.parquet", &good), ("metadata/codes.parquet", &batch)]);
        let e = MedsDataset::open(&root).unwrap_err().to_string();
        assert!(e.contains(part) && e.contains("codes.parquet"), "{part} not in {e}");
    }
    // A code whose index is NULL is not in the vocabulary and gets the token 0.
    let batch = codes(vec![Some("a"), Some("b")], vec![None, Some(4)]);
    let (_dir, root) =
        write_dataset(&[("data/0.parquet", &good), ("metadata/codes.parquet", &batch)]);
    let v = MedsDataset::open(&root).unwrap();
    assert_eq!((v.vocabulary().unwrap().encode("a"), v.vocabulary().unwrap().encode("b")), (0, 4));
}

#[test]
fn a_subject_in_two_shards_is_refused_unless_allowed() {
    let one = make_rows(&[Some(1), Some(2)], &[Some(1), Some(1)], &[Some("a"), Some("b")]);
    // Subject 2 is in both shards, in the second without a time.
    let two = make_rows(&[Some(2), Some(3)], &[None, Some(1)], &[Some("a"), Some("b")]);
    let (_dir, root) = write_dataset(&[("data/a.parquet", &one), ("data/b.parquet", &two)]);
    let strict = MedsReadOptions::default();
    for order in [[0, 1], [1, 0]] {
        let data = MedsDataset::open(&root).unwrap();
        let shards: Vec<_> = data.shards().collect();
        shards[order[0]].read(&strict).unwrap();
        shards[order[0]].read(&strict).unwrap();
        let e = shards[order[1]].read(&strict).unwrap_err().to_string();
        assert!(e.contains("a.parquet: subject 2 is also in"), "{e}");
        assert!(e.contains("b.parquet"), "{e}");
        let shared = MedsReadOptions { shared_subjects: true, ..strict.clone() };
        assert_eq!(shards[order[1]].read(&shared).unwrap().events.num_rows(), 2);
    }
}

#[test]
fn distinct_subjects_are_found_from_statistics_or_rows() {
    let rows = |ids: &[i64]| {
        let ids: Vec<_> = ids.iter().map(|id| Some(*id)).collect();
        make_rows(&ids, &vec![Some(1); ids.len()], &vec![Some("a"); ids.len()])
    };
    let cases: [(&[i64], &[i64], bool); 7] = [
        // The ranges of subjects in the statistics of the files are disjoint, or they overlap.
        (&[1, 2], &[3, 4], true),
        (&[4, 5], &[1, 2], true),
        (&[1, 3], &[2, 4], true),
        (&[1, 3], &[], true),
        (&[1, 2], &[2, 3], false),
        (&[1, 4], &[2, 4, 5], false),
        // Rows of one subject need not be adjacent in their shard.
        (&[1, 5, 1], &[3], true),
    ];
    for (one, two, distinct) in cases {
        let (_dir, root) =
            write_dataset(&[("data/a.parquet", &rows(one)), ("data/b.parquet", &rows(two))]);
        let data = MedsDataset::open(&root).unwrap();
        assert_eq!(data.has_distinct_subjects(), distinct, "{one:?} {two:?}");
    }
    // A file that cannot be read may contain any subject, so that subjects count as shared.
    let (_dir, root) =
        write_dataset(&[("data/a.parquet", &rows(&[1, 3])), ("data/b.parquet", &rows(&[2, 4]))]);
    let data = MedsDataset::open(&root).unwrap();
    std::fs::remove_file(root.join("data/b.parquet")).unwrap();
    assert!(!data.has_distinct_subjects());
    assert!(MedsDataset::open(data_path("synthea-meds")).unwrap().has_distinct_subjects());
}

#[test]
fn a_column_named_as_the_static_facts_of_another_is_refused() {
    let base = make_rows(&[Some(1)], &[Some(1)], &[Some("a")]);
    let with = |names: &[&str]| {
        let mut columns: Vec<(String, ArrayRef)> = base
            .schema()
            .fields()
            .iter()
            .zip(base.columns())
            .map(|(f, c)| (f.name().clone(), c.clone()))
            .collect();
        for name in names {
            columns.push((name.to_string(), Arc::new(Int64Array::from(vec![7]))));
        }
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let both = with(&["unit", "static_unit"]);
    let (_dir, root) = write_dataset(&[("data/0.parquet", &both)]);
    let data = MedsDataset::open(&root).unwrap();
    let e = data.schema(&MedsReadOptions::default()).unwrap_err().to_string();
    assert!(e.contains("\"static_unit\"") && e.contains("rename it in the files"), "{e}");
    let shard = data.shards().next().unwrap();
    assert!(shard.read(&MedsReadOptions::default()).is_err());
    let one = MedsReadOptions { columns: Some(vec!["unit".into()]), ..Default::default() };
    shard.read(&one).unwrap().to_batch().unwrap();
    // A column may have the name `static_unit` if there is no column `unit` from which it would be
    // derived.
    let (_dir, root) = write_dataset(&[("data/0.parquet", &with(&["static_unit"]))]);
    let data = MedsDataset::open(&root).unwrap();
    data.shards().next().unwrap().read(&MedsReadOptions::default()).unwrap().to_batch().unwrap();
}

#[test]
fn splits_are_read() {
    let splits = MedsDataset::open(tiny_folder()).unwrap().subject_splits().unwrap().unwrap();
    assert_eq!(splits.last(), Some(&(9, "held_out".to_string())));
    let good = make_rows(&[Some(1)], &[Some(1)], &[Some("a")]);
    let (_dir, root) = write_dataset(&[("data/0.parquet", &good)]);
    assert!(MedsDataset::open(root).unwrap().subject_splits().unwrap().is_none());
}

/// Compares each row of the data set Synthea with an event or fact in a nesting built with maps.
#[test]
fn synthea_is_nested_as_its_rows_require() {
    let data = MedsDataset::open(data_path("synthea-meds")).unwrap();
    let (mut measurements, mut events, mut unknown) = (0, 0, 0);
    for shard in data.shards() {
        let file = File::open(shard.path()).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
        type Leaf = (String, Option<f32>);
        let mut expected: BTreeMap<i64, BTreeMap<Option<i64>, Vec<Leaf>>> = BTreeMap::new();
        for batch in reader {
            let batch = batch.unwrap();
            let id = batch["subject_id"].as_primitive::<Int64Type>();
            let time = batch["time"].as_primitive::<TimestampMicrosecondType>();
            let code = batch["code"].as_string::<i32>();
            let value: &Float32Array = batch["numeric_value"].as_primitive();
            for i in 0..batch.num_rows() {
                let leaf = (code.value(i).to_string(), value.is_valid(i).then(|| value.value(i)));
                let time = time.is_valid(i).then(|| time.value(i));
                expected.entry(id.value(i)).or_default().entry(time).or_default().push(leaf);
            }
        }

        assert_eq!(
            shard.num_measurements().unwrap(),
            expected.values().flat_map(|s| s.values()).map(Vec::len).sum::<usize>()
        );
        let shard = shard.read(&Default::default()).unwrap();
        let codes = list_strings(&shard.events, "code");
        let values = list_floats(&shard.events, "numeric_value");
        let statics = list_strings(&shard.statics, "static_code");
        let times = shard.events.column("time").unwrap().values().clone();
        let times = times.as_primitive::<TimestampMicrosecondType>();
        assert_eq!(list_ids(&shard.events), expected.keys().copied().collect::<Vec<_>>());
        let (mut event, mut leaf, mut fact) = (0, 0, 0);
        for (row, by_time) in expected.values().enumerate() {
            let view = shard.events.row(row).unwrap();
            assert_eq!(view.len(), by_time.keys().flatten().count());
            for (time, leaves) in by_time {
                if let Some(time) = time {
                    assert_eq!(times.value(event), *time);
                    assert_eq!(shard.events.layout(2).unwrap().length(event), leaves.len());
                    event += 1;
                }
                for (code, value) in leaves {
                    let (found, at) = match time {
                        Some(_) => (&codes, &mut leaf),
                        None => (&statics, &mut fact),
                    };
                    assert_eq!(found[*at].as_ref(), Some(code));
                    if time.is_some() {
                        assert_eq!(values[*at], *value);
                    }
                    *at += 1;
                }
            }
        }
        assert_eq!((leaf, fact), (codes.len(), statics.len()));
        measurements += leaf + fact;
        events += event;
        unknown += list_tokens(&shard.events, "code_id").iter().filter(|t| **t == 0).count();
    }
    assert_eq!((measurements, events), (24_866, 1_993));
    assert!(unknown > 0, "27 codes are not in the vocabulary");
    assert_eq!(data.vocabulary().unwrap().len(), 400);
}
