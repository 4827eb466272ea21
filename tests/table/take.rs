//! `take`, which selects rows by position, and `filter` and `filter_axis`, which select by mask.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, Int64Array, StringArray};
use arrow::datatypes::Int64Type;
use proptest::prelude::*;
use serrate::Error;
use serrate::table::RaggedTable;

use crate::common::torture::{Draw, seed_random};
use crate::model::{Model, N, assert_columns, draw_models, read_column};

/// Returns `node` with `replace` applied, in order, to each value at `depth`.
fn each_list(node: &N, depth: usize, replace: &mut dyn FnMut(&N) -> N) -> N {
    match node {
        N::List(list) if depth > 0 => {
            N::List(list.iter().map(|n| each_list(n, depth - 1, replace)).collect())
        }
        node if depth == 0 => replace(node),
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn take_and_filter_return_the_selected_rows((model, seed) in draw_models(), dirt: bool) {
        let table = model.table(seed, dirt);
        let mut dice = seed_random(seed ^ 3);
        let picked: Vec<usize> = match model.rows {
            0 => Vec::new(),
            n => (0..dice.below(2 * n + 1)).map(|_| dice.below(n)).collect(),
        };
        let taken = table.take(&picked).unwrap();
        prop_assert_eq!(taken.num_rows(), picked.len());
        assert_columns(&taken, &model.with_rows(|r| picked.iter().map(|i| r[*i].clone()).collect()));

        let keep: Vec<Option<bool>> =
            (0..model.rows).map(|_| [None, Some(true), Some(false), Some(true)][dice.below(4)]).collect();
        let kept = table.filter(&BooleanArray::from(keep.clone())).unwrap();
        let rows = |r: &[N]| -> Vec<N> {
            r.iter().zip(&keep).filter(|(_, k)| **k == Some(true)).map(|(x, _)| x.clone()).collect()
        };
        assert_columns(&kept, &model.with_rows(rows));
        // The Arrow types of lists stay the same.
        prop_assert_eq!(taken.arrow_schema().unwrap(), table.arrow_schema().unwrap());
    }

    #[test]
    fn filter_axis_keeps_the_selected_elements((model, seed) in draw_models(), dirt: bool) {
        let table = model.table(seed, dirt);
        let mut dice = seed_random(seed ^ 4);
        for at in 0..table.ndim() {
            let n = table.axis_len(at).unwrap();
            let keep: Vec<Option<bool>> =
                (0..n).map(|_| [None, Some(true), Some(false), Some(true)][dice.below(4)]).collect();
            let axis = i64::try_from(at).unwrap() - i64::try_from(table.ndim()).unwrap();
            let kept = table.filter_axis(axis, &BooleanArray::from(keep.clone())).unwrap();
            for (name, axis, rows) in &model.columns {
                let mut bits = keep.iter();
                let mut choose = |list: &N| match list {
                    N::List(l) => N::List(
                        l.iter().filter(|_| *bits.next().unwrap() == Some(true)).cloned().collect(),
                    ),
                    other => other.clone(),
                };
                let whole = N::List(rows.clone());
                let expected = if *axis < at { whole } else { each_list(&whole, at, &mut choose) };
                prop_assert_eq!(N::List(read_column(&kept, name)), expected, "{} at {}", name, at);
            }
        }
        prop_assert!(table.filter_axis(0, &BooleanArray::from(vec![true; model.rows + 1])).is_err());
        prop_assert!(table.filter_axis(-1, &BooleanArray::from(vec![true; 1000])).is_err());
        prop_assert!(table.filter_axis(9, &BooleanArray::from(Vec::<bool>::new())).is_err());
    }
}

#[test]
fn take_copies_long_rows() {
    let lengths = [100usize, 0, 50, 1000, 3];
    let n: i64 = 1153;
    let text: Vec<String> = (0..n).map(|i| format!("t{i}")).collect();
    let table = RaggedTable::builder()
        .lengths(lengths)
        .unwrap()
        .column("x", 1, Arc::new(Int64Array::from_iter((0..n).map(|i| (i % 7 > 0).then_some(i)))))
        .column("t", 1, Arc::new(StringArray::from(text.clone())))
        .build()
        .unwrap();
    let taken = table.take(&[3, 0, 4, 3]).unwrap();
    let expected: Vec<i64> = (150..1150).chain(0..100).chain(1150..1153).chain(150..1150).collect();
    let x = taken.column("x").unwrap().values().as_primitive::<Int64Type>().clone();
    assert!(x.iter().eq(expected.iter().map(|i| (i % 7 > 0).then_some(*i))));
    let t = taken.column("t").unwrap().values().as_string::<i32>().clone();
    assert!(
        t.iter().flatten().eq(expected.iter().map(|i| text[usize::try_from(*i).unwrap()].as_str()))
    );
}

#[test]
fn take_of_consecutive_rows_does_not_copy() {
    let table = Model::random(5, 5, 2, 3).table(5, false);
    let part = table.take(&[1, 2, 3]).unwrap();
    let at = |t: &RaggedTable| t.column("c0").unwrap().values().to_data().buffers()[0].as_ptr();
    let slice = table.slice(1, 3).unwrap();
    assert_eq!(at(&part), at(&slice));
    assert_eq!(part, slice);
    assert_eq!(read_column(&part, "c0"), read_column(&table, "c0")[1..4]);
    assert!(matches!(table.take(&[5]), Err(Error::OutOfRange { axis: 0, index: 5, size: 5 })));
    assert!(table.filter(&BooleanArray::from(vec![true])).is_err());
}
