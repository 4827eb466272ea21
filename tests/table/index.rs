//! `RaggedTable::index`, compared with nested vectors that are indexed element by element.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int32Array, Int64Array, UInt16Array};
use arrow::datatypes::{Int32Type, Int64Type, UInt16Type};
use proptest::prelude::*;
use serrate::Error;
use serrate::index::{Index, IndexArray, parse_index};
use serrate::table::{NanComparison, RaggedTable};

use crate::common::torture::{Draw, Random, seed_random};
use crate::model::{Model, N, draw_models, read_column, read_nested};
use crate::reference::{Nested, Plan};

fn to_i64(n: usize) -> i64 {
    i64::try_from(n).unwrap()
}

fn draw_position(dice: &mut Random) -> i64 {
    to_i64(dice.below(6)) - 3
}

/// Draws an index with items for some of the axes. Its arrays have one element, or the same number
/// of elements. It may contain `...` and `None`.
fn random_index(model: &Model, dice: &mut Random) -> Vec<Index> {
    let count = dice.below(3) + 1;
    let kinds = [2, 4, 6][dice.below(3)];
    let items = dice.below(model.lengths.len() + 2);
    let mut index: Vec<Index> = (0..items)
        .map(|axis| match dice.below(kinds) {
            0 => Index::ALL,
            1 => {
                let mut part = |n| (dice.below(n) > 0).then(|| draw_position(dice));
                let (start, stop) = (part(2), part(2));
                let step = [None, Some(1), Some(-1), Some(2), Some(-3)][dice.below(5)];
                Index::Slice { start, stop, step }
            }
            2 => Index::At(draw_position(dice)),
            3 => draw_position(dice).into(),
            4 => {
                let n = if dice.below(4) == 0 { 1 } else { count };
                (0..n).map(|_| draw_position(dice)).collect::<Vec<_>>().into()
            }
            _ => {
                let rows = if axis == 0 { model.rows } else { 2 };
                (0..rows).map(|_| dice.below(2) == 0).collect::<Vec<_>>().into()
            }
        })
        .collect();
    if dice.below(4) == 0 {
        let at = dice.below(index.len() + 1);
        index.insert(at, Index::Rest);
    }
    for _ in 0..dice.below(3) {
        let at = dice.below(index.len() + 1);
        index.insert(at, Index::NewAxis);
    }
    index
}

/// Returns a column in which the null lists of the levels `1..=levels` are empty lists.
fn blur_column(column: &N, axis: usize, levels: usize) -> N {
    (1..=levels.min(axis)).fold(column.clone(), |n, depth| {
        n.map_at(depth, &|n| if *n == N::Null { N::List(Vec::new()) } else { n.clone() })
    })
}

fn check_index(model: &Model, table: &RaggedTable, index: &[Index]) {
    let found = table.index(index);
    // A null list becomes an empty list if its elements become the rows of the result.
    let given = index.iter().filter(|i| i.takes_axis()).count();
    let rest = table.ndim().saturating_sub(given);
    let first = index.iter().filter(|i| **i != Index::NewAxis && (**i != Index::Rest || rest > 0));
    let plan = Plan::new(index, table.ndim());
    let apart = plan.as_ref().is_some_and(Plan::is_apart);
    let picks = |i: &&Index| match i {
        Index::At(_) => true,
        Index::Array(_) | Index::Mask(_) => apart,
        _ => false,
    };
    let mut first = first.peekable();
    let begins = first.peek().is_some_and(|i| matches!(i, Index::At(_)));
    let rows_gone = if begins { first.take_while(picks).count() } else { 0 };
    let expected: Option<Vec<(N, usize)>> = plan.and_then(|plan| {
        let of = |(_, axis, rows): &(String, usize, Vec<N>)| {
            let column = blur_column(&N::List(rows.clone()), *axis, rows_gone);
            plan.apply(&column, axis + 1)
        };
        model.columns.iter().map(of).collect()
    });
    let (found, expected) = match (found, expected) {
        (Err(_), None) => return,
        (Ok(found), Some(expected)) => (found, expected),
        (found, expected) => panic!("{index:?}: found {found:?}, expected {expected:?}"),
    };
    for ((name, _, _), (expected, levels)) in model.columns.iter().zip(expected) {
        let (got, got_levels) = match found.scalar(name) {
            Ok(scalar) => (read_nested(scalar.value()).remove(0), 0),
            Err(_) => {
                let axis = found.column(name).unwrap().axis();
                (N::List(read_column(&found, name)), axis + 1)
            }
        };
        assert_eq!(got_levels, levels, "{name} of {index:?}");
        assert_eq!(got, blur_column(&expected, levels.saturating_sub(1), 0), "{name} of {index:?}");
    }
    // `with_columns` checks that the lists of all columns have equal lengths.
    let again = found.with_columns(found.columns().to_vec()).unwrap();
    assert_eq!(again, found);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn indexing_equals_the_reference((model, seed) in draw_models(), dirt: bool) {
        let table = model.table(seed, dirt);
        let mut dice = seed_random(seed ^ 11);
        for _ in 0..6 {
            check_index(&model, &table, &random_index(&model, &mut dice));
        }
    }

    #[test]
    fn rows_by_index_array_equal_taken_rows((model, seed) in draw_models(), dirt: bool) {
        let table = model.table(seed, dirt);
        let mut dice = seed_random(seed ^ 12);
        let rows: Vec<usize> = match model.rows {
            0 => Vec::new(),
            n => (0..dice.below(5)).map(|_| dice.below(n)).collect(),
        };
        let taken = table.take(&rows).unwrap();
        let index: Index = rows.iter().map(|r| to_i64(*r)).collect::<Vec<_>>().into();
        prop_assert_eq!(&table.index(&[index]).unwrap(), &taken);
        let negative: Index =
            rows.iter().map(|r| to_i64(*r) - to_i64(model.rows)).collect::<Vec<_>>().into();
        prop_assert_eq!(&table.index(&[negative]).unwrap(), &taken);
        // Stacked single rows equal the rows that `take` returns, except that null lists are empty.
        let plain = table.without_null_lists();
        let singles: Vec<RaggedTable> =
            rows.iter().map(|r| plain.index(&[to_i64(*r).into()]).unwrap()).collect();
        if !singles.is_empty() {
            let stacked = RaggedTable::vstack(&singles).unwrap();
            prop_assert!(stacked.equals(&plain.take(&rows).unwrap(), NanComparison::Unequal).unwrap());
        }
    }
}

/// Returns a table of two patients with 3 and 1 visits, which have 2, 4, 1 and 3 codes.
fn make_patients() -> RaggedTable {
    RaggedTable::builder()
        .names(["patient", "visit", "code"])
        .lengths([3, 1])
        .unwrap()
        .lengths([2, 4, 1, 3])
        .unwrap()
        .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
        .column("time", 1, Arc::new(Int32Array::from(vec![10, 20, 30, 40])))
        .column("code", 2, Arc::new(UInt16Array::from_iter_values(0..10)))
        .build()
        .unwrap()
}

fn get_row(text: &str) -> serrate::Result<RaggedTable> {
    make_patients().index(&parse_index(text).unwrap())
}

fn list_codes(table: &RaggedTable) -> Vec<u16> {
    table.column("code").unwrap().values().as_primitive::<UInt16Type>().values().to_vec()
}

#[test]
fn the_documented_examples_return_what_they_show() {
    let one = get_row("0, 1:3").unwrap();
    assert_eq!((one.num_rows(), list_codes(&one)), (2, vec![2, 3, 4, 5, 6]));
    assert_eq!(one.scalar("age").unwrap().typed::<Int32Type>().unwrap(), Some(71));
    assert_eq!(one.axis_name(0), Some("visit"));
    let every = get_row(":2, ::2, 0").unwrap();
    assert_eq!((every.max_ndim(), list_codes(&every)), (Some(2), vec![0, 6, 7]));
    assert_eq!(every.array("time").unwrap().lengths(1).unwrap(), [2, 1]);
    // Two arrays select pairs of a row and a visit.
    let pairs = get_row("[0, 1, 0], [2, 0, -3]").unwrap();
    assert_eq!((pairs.num_rows(), list_codes(&pairs)), (3, vec![6, 7, 8, 9, 0, 1]));
    let time = pairs.column("time").unwrap().values().as_primitive::<Int32Type>();
    assert_eq!(time.values(), &[30, 40, 10]);
    assert_eq!(
        pairs.column("age").unwrap().values().as_primitive::<Int32Type>().values(),
        &[71, 38, 71]
    );
    // An integer per axis returns scalars, which `unsqueeze` makes columns again.
    let value = get_row("1, 0, -1").unwrap();
    assert_eq!((value.ndim(), value.num_rows(), value.columns().len()), (0, 0, 0));
    assert_eq!(value.scalar("code").unwrap().typed::<UInt16Type>().unwrap(), Some(9));
    let row = value.unsqueeze(0).unwrap();
    assert_eq!((row.ndim(), row.num_rows(), row.columns().len()), (1, 1, 3));
    assert_eq!(get_row("1, 0, -1, None").unwrap(), row);
    assert_eq!(row.squeeze(0).unwrap(), value);
    assert_eq!(value.index(&[]).unwrap(), value);
}

#[test]
fn errors_name_axis_index_and_size() {
    let message = |text: &str| get_row(text).unwrap_err().to_string();
    for (text, expected) in [
        ("2", "index 2 is out of range for axis 0 of size 2"),
        ("-3", "index -3 is out of range for axis 0 of size 2"),
        ("[0, 9]", "index 9 is out of range for axis 0 of size 2"),
        ("1, 1", "index 1 is out of range for axis 1 of size 1"),
        ("0, 2, 1", "index 1 is out of range for axis 2 of size 1"),
        (":, 1", "index 1 is out of range for axis 1 of size 1 in row 1"),
        ("::-1, 1", "index 1 is out of range for axis 1 of size 1 in row 1"),
        ("[1, 0, 1], [0, 0, 7]", "index 7 is out of range for axis 1 of size 1 in row 1"),
        ("1:, :, 3", "index 3 is out of range for axis 2 of size 3 in row 1"),
        ("0, :, 1", "index 1 is out of range for axis 2 of size 1"),
        ("[True]", "a mask of 1 value(s) cannot select from axis 0, which has the size 2"),
        (
            ":, [True, False, True]",
            "a mask of 3 value(s) cannot select from axis 1, which has the size 1 in row 1",
        ),
        (
            ":, [False, False, False]",
            "a mask of 3 value(s) cannot select from axis 1, which has the size 1 in row 1",
        ),
        ("[0, 1], [0, 0, 0]", "index arrays of lengths [2, 3]"),
        (
            "0, 0, 0, 0",
            "4 indices are too many for a table with 3 axes (the first index is axis 0)",
        ),
    ] {
        assert_eq!(&message(text)[..expected.len()], expected, "{text}");
    }
    let flat = IndexArray::try_new([1, 2], vec![0, 1]).unwrap();
    let error = make_patients().index(&[Index::Array(flat)]).unwrap_err().to_string();
    assert!(error.contains("shape [1, 2]"), "{error}");
    let zero = Index::Slice { start: None, stop: None, step: Some(0) };
    assert!(make_patients().index(&[zero]).unwrap_err().to_string().contains("step of 0"));
    assert!(matches!(get_row("5"), Err(Error::OutOfRange { axis: 0, index: 5, size: 2 })));
}

#[test]
fn empty_index_arrays_return_no_rows() {
    // The first of two rows has no elements on axis 1.
    let table = RaggedTable::builder()
        .lengths([0, 1])
        .unwrap()
        .lengths([2])
        .unwrap()
        .lengths([1, 3])
        .unwrap()
        .column("x", 3, Arc::new(UInt16Array::from_iter_values(0..4)))
        .column("row", 0, Arc::new(Int32Array::from(vec![1, 2])))
        .build()
        .unwrap();
    let get = |text: &str| table.index(&parse_index(text).unwrap());
    let none = |dims: &[usize]| Index::Array(IndexArray::try_new(dims.to_vec(), vec![]).unwrap());
    // If a slice is between two arrays, the axis of the arrays precedes the axis of the slice.
    for row in [0, 1] {
        let found = table.index(&[row.into(), none(&[0]), Index::ALL, none(&[0])]).unwrap();
        assert_eq!((found.num_rows(), found.ndim()), (0, 2));
        assert_eq!(found.column("x").unwrap().axis(), 1);
        assert_eq!(found.column("row").unwrap().axis(), 0);
        let rest = table.index(&[row.into(), Index::ALL, none(&[0])]).unwrap();
        assert_eq!((rest.num_rows(), rest.column("x").unwrap().axis()), (0, 2), "{row}");
    }
    // After an empty array, indices are not checked. Before it, they are.
    for fine in ["[], 99", "[], :, 99", "0, [], :, 99", ":, [], :, 99"] {
        assert_eq!(get(fine).unwrap().column("x").unwrap().values().len(), 0, "{fine}");
    }
    for (wrong, axis) in [("99, []", 0), ("99, :, []", 0), (":, 99, []", 1), (":, 99, :, []", 1)] {
        let error = get(wrong).unwrap_err();
        let at = match error {
            Error::OutOfRange { axis, .. } | Error::OutOfRangeIn { axis, .. } => axis,
            other => panic!("{wrong}: {other}"),
        };
        assert_eq!(at, axis, "{wrong}");
    }
    let error = get("1, [False, False], :, []").unwrap_err().to_string();
    assert!(
        error.starts_with("a mask of 2 value(s) cannot select from axis 1, which has the size 1"),
        "{error}"
    );
    assert!(get("1, [False], :, [False, False]").is_ok());
}

#[test]
fn integers_and_slices_return_views() {
    let table = make_patients();
    let at = |t: &RaggedTable| {
        t.column("code").unwrap().values().as_primitive::<UInt16Type>().values().as_ptr()
    };
    let whole = at(&table);
    for (view, skipped) in
        [("1", 7), ("1:", 7), ("0, 1", 2), ("0, 1:", 2), ("..., None", 0), ("0, None", 0)]
    {
        assert_eq!(
            at(&table.index(&parse_index(view).unwrap()).unwrap()),
            whole.wrapping_add(skipped),
            "{view}"
        );
    }
    for copy in ["[1, 0]", "::-1", ":, 0", ":, ::2"] {
        let copied = at(&table.index(&parse_index(copy).unwrap()).unwrap());
        assert!(!(0..10).any(|i| copied == whole.wrapping_add(i)), "{copy}");
    }
    let every_event = table.index(&[Index::ALL, (0..9).into()]).unwrap();
    assert_eq!(at(&every_event), whole);
    assert_eq!(every_event, table);
}

#[test]
fn elements_of_null_lists_are_null() {
    // The column x is null, [1, 2]. The column y is null, [3, 4] or [], [3, 4].
    let nulls = || Some(arrow::buffer::NullBuffer::from(vec![false, true]));
    let make = |name: &str, values: Vec<i64>, null: bool| {
        let values: ArrayRef = Arc::new(Int64Array::from(values));
        let column = serrate::table::Column::new(name, 1, values);
        column.with_list_nulls(vec![if null { nulls() } else { None }])
    };
    let table = |both: bool| {
        let columns = [make("x", vec![1, 2], true), make("y", vec![3, 4], both)];
        let mut builder = RaggedTable::builder().lengths([0, 2]).unwrap();
        for column in columns {
            builder = builder.push(column);
        }
        builder.build().unwrap()
    };
    let first = table(true).index(&[Index::ALL, 0.into()]).unwrap();
    let x = first.column("x").unwrap().values().clone();
    assert_eq!(x.as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [None, Some(1)]);
    let taken = table(true).index(&[Index::ALL, vec![1, 1, 0].into()]).unwrap();
    assert_eq!(read_column(&taken, "x")[0], Nested::Null);
    assert_eq!(taken.array("x").unwrap().lengths(1).unwrap(), [0, 3]);
    // If the list of y is empty and not null, the row has no element 0.
    let error = table(false).index(&[Index::ALL, 0.into()]).unwrap_err();
    assert!(matches!(error, Error::OutOfRangeIn { row: 0, axis: 1, index: 0, size: 0 }), "{error}");
}

#[test]
fn ragged_arrays_are_indexed_as_columns_are() {
    let (table, array) = (make_patients(), make_patients().array("code").unwrap());
    for text in ["1", "::-1", "0, -2:", ":, 0", "[1, 0], [0, 0]", "None, 0", "..., 0"] {
        let index = parse_index(text).unwrap();
        let expected = table.index(&index).unwrap().array("code").unwrap();
        assert_eq!(array.index(&index).unwrap(), expected, "{text}");
    }
    let one = array.index(&parse_index("0, 0, 0").unwrap()).unwrap();
    assert_eq!((one.len(), one.ndim()), (1, 1));
    assert!(array.index(&parse_index("9").unwrap()).unwrap_err().is_out_of_range());
}
