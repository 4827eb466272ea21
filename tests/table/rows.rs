//! Views of rows and events, gathered rows, tables one after the other.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float32Array, Int8Array, Int64Array, StringArray,
    UInt16Array, UInt32Array,
};
use arrow::datatypes::{DataType, Int64Type};
use proptest::prelude::*;
use serrate::Error;
use serrate::array::Layout;
use serrate::table::{RaggedTable, promote_types};

use crate::common::torture::{Draw, random};
use crate::model::{Model, N, assert_columns, column, models};

/// Replaces the lists at a depth, first to last.
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
    fn slices_are_slices((model, seed) in models(), dirt: bool) {
        let table = model.table(seed, dirt);
        let mut dice = random(seed ^ 1);
        let start = dice.below(model.rows + 1);
        let end = start + dice.below(model.rows - start + 1);
        let part = table.slice(start, end - start).unwrap();
        let expected = model.with_rows(|rows| rows[start..end].to_vec());
        assert_columns(&part, &expected);
        // A slice of a slice, and its batch.
        if end > start {
            let last = part.slice(part.num_rows() - 1, 1).unwrap();
            assert_columns(&last, &model.with_rows(|rows| vec![rows[end - 1].clone()]));
        }
        let again = RaggedTable::try_from_batch(&part.to_batch().unwrap()).unwrap();
        assert_columns(&again, &expected);
        prop_assert!(table.slice(0, model.rows + 1).is_err());
        prop_assert!(table.slice(1, usize::MAX).is_err());
    }

    #[test]
    fn rows_and_events_are_views((model, seed) in models(), dirt: bool) {
        let table = model.table(seed, dirt);
        let mut dice = random(seed ^ 2);
        for i in 0..model.rows {
            let row = table.row(i).unwrap();
            prop_assert_eq!(row.index(), i);
            assert_columns(&row.to_table().unwrap(), &model.with_rows(|r| vec![r[i].clone()]));
            let n = row.len();
            prop_assert_eq!(n, model.lengths.first().map_or(0, |l| l[i]));
            let a = dice.below(n + 1);
            let b = a + dice.below(n - a + 1);
            let events = row.events(a..b).unwrap();
            prop_assert_eq!(events.len(), b - a);
            let part = events.to_table().unwrap();
            assert_columns(&part, &model.with_rows(|rows| vec![match &rows[i] {
                N::List(events) => N::List(events[a..b].to_vec()),
                other => other.clone(),
            }]));
            for (name, _, _) in &model.columns {
                let values = events.values(name).unwrap();
                prop_assert_eq!(&*values, &**part.column(name).unwrap().values());
                prop_assert_eq!(events.typed::<Int64Type>(name).unwrap().len(), values.len());
            }
        }
        prop_assert!(table.row(model.rows).is_err());
    }

    #[test]
    fn taken_rows_are_those_asked_for((model, seed) in models(), dirt: bool) {
        let table = model.table(seed, dirt);
        let mut dice = random(seed ^ 3);
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
        // The kinds of lists stay the same.
        prop_assert_eq!(taken.arrow_schema().unwrap(), table.arrow_schema().unwrap());
    }

    #[test]
    fn chosen_elements_of_any_axis((model, seed) in models(), dirt: bool) {
        let table = model.table(seed, dirt);
        let mut dice = random(seed ^ 4);
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
                prop_assert_eq!(N::List(column(&kept, name)), expected, "{} at {}", name, at);
            }
        }
        prop_assert!(table.filter_axis(0, &BooleanArray::from(vec![true; model.rows + 1])).is_err());
        prop_assert!(table.filter_axis(-1, &BooleanArray::from(vec![true; 1000])).is_err());
        prop_assert!(table.filter_axis(9, &BooleanArray::from(Vec::<bool>::new())).is_err());
    }

    #[test]
    fn tables_one_after_the_other((model, seed) in models(), cuts in proptest::collection::vec(0usize..6, 0..4), dirt: bool) {
        // Concatenated parts of a table restore it.
        let table = model.table(seed, dirt);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(model.rows)).collect();
        cuts.sort_unstable();
        cuts.insert(0, 0);
        cuts.push(model.rows);
        let parts: Vec<RaggedTable> =
            cuts.windows(2).map(|w| table.slice(w[0], w[1] - w[0]).unwrap()).collect();
        let joined = RaggedTable::concat(&parts).unwrap();
        prop_assert_eq!(&joined, &table);
        // Two layouts of the same rows.
        let twice = RaggedTable::concat(&[table, model.table(seed ^ 9, !dirt)]).unwrap();
        assert_columns(&twice, &model.with_rows(|r| [r, r].concat()));
    }
}

#[test]
fn long_rows_are_copied_range_by_range() {
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
fn consecutive_rows_are_taken_without_a_copy() {
    let table = Model::random(5, 5, 2, 3).table(5, false);
    let part = table.take(&[1, 2, 3]).unwrap();
    let at = |t: &RaggedTable| t.column("c0").unwrap().values().to_data().buffers()[0].as_ptr();
    let slice = table.slice(1, 3).unwrap();
    assert_eq!(at(&part), at(&slice));
    assert_eq!(part, slice);
    assert_eq!(column(&part, "c0"), column(&table, "c0")[1..4]);
    assert!(matches!(table.take(&[5]), Err(Error::OutOfRange { axis: 0, index: 5, size: 5 })));
    assert!(table.filter(&BooleanArray::from(vec![true])).is_err());
}

fn part(name: &str, axis: usize, values: ArrayRef) -> RaggedTable {
    RaggedTable::builder()
        .lengths([values.len()])
        .unwrap()
        .column(name, axis, values)
        .build()
        .unwrap()
}

#[test]
fn types_unify_as_numpy_promotes_them() {
    use DataType::*;
    let ints =
        [UInt8, UInt16, UInt32, UInt64, Int8, Int16, Int32, Int64, Float16, Float32, Float64];
    // The results of numpy.promote_types for the same list, row by row.
    let expected = [
        [UInt8, UInt16, UInt32, UInt64, Int16, Int16, Int32, Int64, Float16, Float32, Float64],
        [UInt16, UInt16, UInt32, UInt64, Int32, Int32, Int32, Int64, Float32, Float32, Float64],
        [UInt32, UInt32, UInt32, UInt64, Int64, Int64, Int64, Int64, Float64, Float64, Float64],
        [
            UInt64, UInt64, UInt64, UInt64, Float64, Float64, Float64, Float64, Float64, Float64,
            Float64,
        ],
        [Int16, Int32, Int64, Float64, Int8, Int16, Int32, Int64, Float16, Float32, Float64],
        [Int16, Int32, Int64, Float64, Int16, Int16, Int32, Int64, Float32, Float32, Float64],
        [Int32, Int32, Int64, Float64, Int32, Int32, Int32, Int64, Float64, Float64, Float64],
        [Int64, Int64, Int64, Float64, Int64, Int64, Int64, Int64, Float64, Float64, Float64],
        [
            Float16, Float32, Float64, Float64, Float16, Float32, Float64, Float64, Float16,
            Float32, Float64,
        ],
        [
            Float32, Float32, Float64, Float64, Float32, Float32, Float64, Float64, Float32,
            Float32, Float64,
        ],
        [
            Float64, Float64, Float64, Float64, Float64, Float64, Float64, Float64, Float64,
            Float64, Float64,
        ],
    ];
    for (a, row) in ints.iter().zip(&expected) {
        for (b, t) in ints.iter().zip(row) {
            assert_eq!(promote_types(a, b).as_ref(), Some(t), "{a} {b}");
        }
        assert_eq!(promote_types(&Boolean, a).as_ref(), Some(a));
        assert_eq!(promote_types(a, &Utf8), None);
    }
    let joined = RaggedTable::concat(&[
        part("x", 1, Arc::new(UInt16Array::from(vec![Some(60000), None]))),
        part("x", 1, Arc::new(Int8Array::from(vec![-1]))),
        part("x", 1, Arc::new(Float32Array::from(vec![0.5]))),
    ])
    .unwrap();
    let x = joined.column("x").unwrap();
    assert_eq!(x.data_type(), &Float64);
    assert_eq!(
        x.values().as_primitive::<arrow::datatypes::Float64Type>().iter().collect::<Vec<_>>(),
        [Some(60000.0), None, Some(-1.0), Some(0.5)]
    );
}

#[test]
fn what_cannot_be_concatenated_says_why() {
    let a = part("x", 1, Arc::new(Int64Array::from(vec![1])));
    let error = |b: RaggedTable| RaggedTable::concat(&[a.clone(), b]).unwrap_err().to_string();
    assert!(
        error(part("y", 1, Arc::new(Int64Array::from(vec![1]))))
            .contains("table 1 lacks the column(s) \"x\"")
    );
    let extra = a.with_columns(
        [a.columns(), part("z", 1, Arc::new(Int64Array::from(vec![1]))).columns()].concat(),
    );
    assert!(error(extra.unwrap()).contains("table 0 lacks the column(s) \"z\""));
    assert!(
        error(part("x", 0, Arc::new(Int64Array::from(vec![1]))))
            .contains("on axis 1 in table 0 but on axis 0 in table 1")
    );
    assert!(
        error(part("x", 1, Arc::new(StringArray::from(vec!["1"]))))
            .contains("column \"x\" of table 1")
    );
    let flat =
        RaggedTable::builder().column("x", 0, Arc::new(Int64Array::from(vec![1]))).build().unwrap();
    assert!(error(flat).contains("is 1 for table 1, but"));
    assert!(RaggedTable::concat(&[]).is_err());
}

#[test]
fn an_axis_stays_uniform_where_it_has_one_size_throughout() {
    let uniform = |size: usize, lists: usize| {
        RaggedTable::builder()
            .layout(Layout::Uniform { size, lists })
            .column(
                "x",
                1,
                Arc::new(UInt32Array::from_iter_values(0..u32::try_from(size * lists).unwrap())),
            )
            .build()
            .unwrap()
    };
    let shape =
        |tables: &[RaggedTable]| RaggedTable::concat(tables).unwrap().array("x").unwrap().shape();
    assert_eq!(shape(&[uniform(2, 3), uniform(2, 1)]), [Some(4), Some(2)]);
    assert_eq!(shape(&[uniform(2, 3), uniform(5, 0)]), [Some(3), Some(2)]);
    assert_eq!(shape(&[uniform(2, 3), uniform(3, 1)]), [Some(4), None]);
}
