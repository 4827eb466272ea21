//! `RaggedTable::nest`, which nests a long table by its keys, and `to_long`, which reverses it.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt32Array,
};
use arrow::compute::take_record_batch;
use arrow::datatypes::{Int32Type, Int64Type};
use proptest::prelude::*;
use serrate::table::{Column, LongOptions, NestOptions, RaggedTable, UnsortedRows};

use crate::common::torture::{Draw, seed_random};
use crate::model::draw_models;

type Key = (Option<i64>, Option<i64>);

/// Draws a long table of `n` rows whose keys have few distinct values. Returns the table and its
/// keys.
fn long_table(seed: u64, n: usize, sorted: bool, nulls: bool) -> (RecordBatch, Vec<Key>) {
    let mut dice = seed_random(seed);
    let mut value = |most: usize| {
        let v = i64::try_from(dice.below(most)).unwrap() - 2;
        if nulls && v == 0 { None } else { Some(v) }
    };
    let mut keys: Vec<Key> = (0..n).map(|_| (value(5), value(6))).collect();
    if sorted {
        // `None` sorts before `Some`, as null sorts before values in `nest`.
        keys.sort();
    }
    let subject = Int64Array::from_iter(keys.iter().map(|k| k.0));
    let time = TimestampMicrosecondArray::from_iter(keys.iter().map(|k| k.1));
    let code = UInt32Array::from_iter_values(0..u32::try_from(n).unwrap());
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("code", Arc::new(code) as ArrayRef, false),
        ("subject_id", Arc::new(subject) as ArrayRef, true),
        ("time", Arc::new(time) as ArrayRef, true),
    ]);
    (batch.unwrap(), keys)
}

const KEYS: [&str; 2] = ["subject_id", "time"];

/// Returns the length of each run of equal consecutive keys.
fn run_lengths<T: PartialEq>(keys: &[T]) -> Vec<usize> {
    keys.chunk_by(|a, b| a == b).map(<[T]>::len).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn runs_of_equal_keys_become_lists(seed: u64, n in 0usize..90, nulls: bool) {
        let (batch, keys) = long_table(seed, n, true, nulls);
        let table = RaggedTable::nest(&batch, &KEYS, &NestOptions::default()).unwrap();
        let subjects: Vec<Option<i64>> = keys.iter().map(|k| k.0).collect();
        prop_assert_eq!(table.num_rows(), run_lengths(&subjects).len());
        let codes = table.array("code").unwrap();
        prop_assert_eq!(codes.lengths(2).unwrap(), run_lengths(&keys));
        let events: Vec<Key> = keys.chunk_by(|a, b| a == b).map(|c| c[0]).collect();
        let of_subject: Vec<Option<i64>> = events.iter().map(|k| k.0).collect();
        prop_assert_eq!(codes.lengths(1).unwrap(), run_lengths(&of_subject));
        let times = table.column("time").unwrap();
        prop_assert_eq!(times.axis(), 1);
        prop_assert!(times.values().as_primitive::<arrow::datatypes::TimestampMicrosecondType>()
            .iter().eq(events.iter().map(|k| k.1)));
        prop_assert!(table.column("subject_id").unwrap().values().as_primitive::<Int64Type>()
            .iter().eq(subjects.chunk_by(|a, b| a == b).map(|c| c[0])));
        // `to_long` restores the batch.
        prop_assert_eq!(&table.to_long(&LongOptions::default()).unwrap(), &batch);
    }

    #[test]
    fn unsorted_rows_are_refused_or_sorted_stably(seed: u64, n in 0usize..60, nulls: bool) {
        let (batch, keys) = long_table(seed, n, false, nulls);
        let first = (1..n).find(|i| keys[*i] < keys[i - 1]);
        let refused = RaggedTable::nest(&batch, &KEYS, &NestOptions::default());
        match first {
            None => { prop_assert!(refused.is_ok()); }
            Some(row) => {
                let text = refused.unwrap_err().to_string();
                prop_assert!(text.contains(&format!("row {row} has")), "{} {}", row, text);
            }
        }
        let sorted = NestOptions { unsorted: UnsortedRows::Sort };
        let table = RaggedTable::nest(&batch, &KEYS, &sorted).unwrap();
        let mut order: Vec<u32> = (0..u32::try_from(n).unwrap()).collect();
        order.sort_by_key(|i| keys[*i as usize]);
        let expected = take_record_batch(&batch, &UInt32Array::from(order)).unwrap();
        prop_assert_eq!(&table.to_long(&LongOptions::default()).unwrap(), &expected);
    }

    #[test]
    fn any_table_explodes_to_its_innermost_axis((model, seed) in draw_models(), dirt: bool) {
        let table = model.table(seed, dirt);
        let depth = model.lengths.len();
        let long = table.to_long(&LongOptions::default()).unwrap();
        // `at[axis][i]` is the element of `axis` that contains the innermost element `i`.
        let mut at: Vec<Vec<usize>> = vec![(0..model.rows).collect()];
        for level in &model.lengths {
            let repeat = |v: &Vec<usize>| -> Vec<usize> {
                v.iter().zip(level).flat_map(|(x, n)| std::iter::repeat_n(*x, *n)).collect()
            };
            at = at.iter().map(repeat).collect();
            at.push((0..level.iter().sum()).collect());
        }
        prop_assert_eq!(long.num_rows(), at[depth].len());
        for (i, (name, axis, _)) in model.columns.iter().enumerate() {
            let values = table.column(name).unwrap().values().as_primitive::<Int64Type>().clone();
            let get = |j: &usize| values.is_valid(*j).then(|| values.value(*j));
            prop_assert!(long.column(i).as_primitive::<Int64Type>().iter().eq(at[*axis].iter().map(get)));
        }
        // If `keep_empty` is set, each element with an empty list has one row.
        let all = table.to_long(&LongOptions { keep_empty: true }).unwrap();
        let mut rows = at[depth].len();
        for level in &model.lengths {
            rows += level.iter().filter(|n| **n == 0).count();
        }
        prop_assert_eq!(all.num_rows(), rows);
        for (i, (name, axis, _)) in model.columns.iter().enumerate() {
            let values = table.column(name).unwrap().values();
            if *axis == 0 && depth > 0 {
                prop_assert!(all.column(i).len() >= model.rows);
            }
            prop_assert!(all.column(i).len() - all.column(i).null_count() >= values.len() - values.null_count());
        }
    }
}

#[test]
fn nest_and_to_long_do_not_copy_leaves() {
    let (batch, _) = long_table(3, 80, true, false);
    let table = RaggedTable::nest(&batch, &KEYS, &NestOptions::default()).unwrap();
    let at = |a: &ArrayRef| a.to_data().buffers()[0].as_ptr();
    assert_eq!(at(table.column("code").unwrap().values()), at(batch.column(0)));
    let long = table.to_long(&LongOptions::default()).unwrap();
    assert_eq!(at(long.column(0)), at(batch.column(0)));
    assert_eq!(table.axis_name(0), Some("subject_id"));
    assert_eq!(table.axis_name(1), Some("time"));
    assert_eq!(table.axis_name(2), None);
    let names: Vec<&str> = table.columns().iter().map(Column::name).collect();
    assert_eq!(names, ["code", "subject_id", "time"]);
}

#[test]
fn long_key_columns_are_compared_in_parallel_blocks() {
    // The table is long enough for several tasks. Runs of equal keys end at, before and after the
    // ends of blocks and tasks.
    let n: i64 = 1_100_003;
    let key = |i: i64| i / 16 + i / 37 + i / (1 << 18);
    let keys: Vec<i64> = (0..n).map(key).collect();
    let batch = RecordBatch::try_from_iter([
        ("k", Arc::new(Int64Array::from(keys.clone())) as ArrayRef),
        ("v", Arc::new(Int64Array::from_iter_values(0..n)) as ArrayRef),
    ])
    .unwrap();
    let table = RaggedTable::nest(&batch, &["k"], &NestOptions::default()).unwrap();
    assert_eq!(table.array("v").unwrap().lengths(1).unwrap(), run_lengths(&keys));
    let part = batch.slice(5, 700_001);
    let table = RaggedTable::nest(&part, &["k"], &NestOptions::default()).unwrap();
    assert_eq!(table.array("v").unwrap().lengths(1).unwrap(), run_lengths(&keys[5..700_006]));
}

fn make_two(key: ArrayRef) -> RecordBatch {
    let v: ArrayRef = Arc::new(Int64Array::from_iter_values(0..i64::try_from(key.len()).unwrap()));
    RecordBatch::try_from_iter([("k", key), ("v", v)]).unwrap()
}

fn read_lengths(key: ArrayRef) -> Vec<usize> {
    let table = RaggedTable::nest(&make_two(key), &["k"], &NestOptions::default()).unwrap();
    table.array("v").unwrap().lengths(1).unwrap()
}

#[test]
fn keys_may_be_strings_dictionaries_floats_and_null() {
    assert_eq!(
        read_lengths(Arc::new(StringArray::from(vec![None, None, Some(""), Some("a"), Some("a")]))),
        [2, 1, 2]
    );
    let words: DictionaryArray<Int32Type> = ["a", "a", "b", "c", "c"].into_iter().collect();
    assert_eq!(read_lengths(Arc::new(words)), [2, 1, 2]);
    let floats = vec![-1.0, 0.0, -0.0, 0.0, f64::NAN, -f64::NAN];
    assert_eq!(read_lengths(Arc::new(Float64Array::from(floats))), [1, 3, 2]);
    assert_eq!(read_lengths(Arc::new(Int64Array::from(vec![None, None, Some(i64::MIN)]))), [2, 1]);
    assert_eq!(read_lengths(Arc::new(arrow::array::NullArray::new(3))), [3]);
    assert_eq!(
        read_lengths(Arc::new(arrow::array::BooleanArray::from(vec![false, true, true]))),
        [1, 2]
    );
}

#[test]
fn errors_of_nest_name_the_cause() {
    let options = NestOptions::default();
    let error = |keys: &[&str], key: ArrayRef| {
        RaggedTable::nest(&make_two(key), keys, &options).unwrap_err().to_string()
    };
    let text = error(&["k"], Arc::new(Int64Array::from(vec![1, 2, 2, 1])));
    assert!(text.contains("row 3 has \"k\" = 1 after 2"), "{text}");
    let text = error(&["k"], Arc::new(StringArray::from(vec![Some("a"), None])));
    assert!(text.contains("row 1 has \"k\" = null after a"), "{text}");
    let one = || Arc::new(Int64Array::from(vec![1])) as ArrayRef;
    assert!(error(&["who"], one()).contains("no column \"who\""));
    assert!(error(&[], one()).contains("at least one key"));
    assert!(error(&["k", "k"], one()).contains("given twice"));
    let nested = RaggedTable::nest(&make_two(one()), &["k"], &options).unwrap().to_batch().unwrap();
    let text = RaggedTable::nest(&nested, &["v"], &options).unwrap_err().to_string();
    assert!(text.contains("key \"v\"") && text.contains("one value per row"), "{text}");
}

#[test]
fn the_second_key_is_sorted_within_the_first() {
    let batch = RecordBatch::try_from_iter([
        ("a", Arc::new(Int64Array::from(vec![1, 1, 2, 2])) as ArrayRef),
        ("b", Arc::new(Int64Array::from(vec![5, 9, 3, 3])) as ArrayRef),
        ("v", Arc::new(Int64Array::from(vec![0, 1, 2, 3])) as ArrayRef),
    ])
    .unwrap();
    let table = RaggedTable::nest(&batch, &["a", "b"], &NestOptions::default()).unwrap();
    assert_eq!(table.array("v").unwrap().lengths(2).unwrap(), [1, 1, 2]);
    // Equal keys of the second level in different keys of the first are two elements.
    let batch = RecordBatch::try_from_iter([
        ("a", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef),
        ("b", Arc::new(Int64Array::from(vec![7, 7])) as ArrayRef),
    ])
    .unwrap();
    let table = RaggedTable::nest(&batch, &["a", "b"], &NestOptions::default()).unwrap();
    assert_eq!(table.array("b").unwrap().lengths(1).unwrap(), [1, 1]);
    assert_eq!(table.to_long(&LongOptions::default()).unwrap(), batch);
}

#[test]
fn list_columns_are_nested_below_the_keys() {
    let (long, _) = long_table(11, 40, true, false);
    let events = RaggedTable::nest(&long, &["time"], &NestOptions { unsorted: UnsortedRows::Sort });
    let events = events.unwrap().to_batch().unwrap();
    let by_time = RaggedTable::nest(&events, &["time"], &NestOptions::default()).unwrap();
    assert_eq!(by_time.column("code").unwrap().axis(), 2);
    assert_eq!(by_time.array("code").unwrap().lengths(1).unwrap(), vec![1; events.num_rows()]);
}

#[test]
fn keep_empty_returns_one_row_with_null_per_empty_list() {
    let table = RaggedTable::builder()
        .lengths([2, 0])
        .unwrap()
        .lengths([0, 1])
        .unwrap()
        .column("id", 0, Arc::new(Int64Array::from(vec![7, 8])))
        .column("t", 1, Arc::new(Int64Array::from(vec![1, 2])))
        .column("x", 2, Arc::new(Int64Array::from(vec![5])))
        .build()
        .unwrap();
    let long = table.to_long(&LongOptions { keep_empty: true }).unwrap();
    let column = |i: usize| long.column(i).as_primitive::<Int64Type>().iter().collect::<Vec<_>>();
    assert_eq!(column(0), [Some(7), Some(7), Some(8)]);
    assert_eq!(column(1), [Some(1), Some(2), None]);
    assert_eq!(column(2), [None, Some(5), None]);
    assert_eq!(table.to_long(&LongOptions::default()).unwrap().num_rows(), 1);
}
