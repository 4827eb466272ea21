//! `unsqueeze`, `squeeze`, `flatten` and `vstack`, compared with nested vectors; scalars of a
//! table.

use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, Int32Array, Int64Array, StringArray};
use arrow::datatypes::{Int32Type, Int64Type};
use proptest::prelude::*;
use serrate::Error;
use serrate::array::Layout;
use serrate::table::{FlattenFill, RaggedTable};

use crate::common::torture::{Draw, seed_random};
use crate::model::{N, draw_models, read_column};
use crate::reference::{flatten, squeeze, unsqueeze};

fn list_lengths(layout: &Layout) -> Vec<usize> {
    (0..layout.lists()).map(|l| layout.length(l)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn unsqueeze_adds_and_squeeze_removes_axes((model, seed) in draw_models(), dirt: bool) {
        let table = model.table(seed, dirt);
        let ndim = table.ndim();
        for at in 0..=ndim {
            let axis = i64::try_from(at).unwrap();
            let wide = table.unsqueeze(axis).unwrap();
            let negative = axis - i64::try_from(ndim + 1).unwrap();
            prop_assert_eq!(&table.unsqueeze(negative).unwrap(), &wide);
            prop_assert_eq!(wide.ndim(), ndim + 1);
            for (name, axis, rows) in &model.columns {
                let expected = unsqueeze(&N::List(rows.clone()), *axis, at);
                let moved = wide.column(name).unwrap().axis();
                prop_assert_eq!(moved, axis + usize::from(axis + 1 >= at));
                prop_assert_eq!(N::List(read_column(&wide, name)), expected);
            }
            prop_assert_eq!(&wide.squeeze(axis).unwrap(), &table);
            prop_assert!(table.unsqueeze(i64::try_from(ndim).unwrap() + 1).is_err());
        }
        // `squeeze` succeeds if and only if every list of the axis has one element.
        for at in 1..ndim {
            let axis = i64::try_from(at).unwrap();
            let plain = table.without_null_lists();
            let all = list_lengths(plain.layout(at).unwrap());
            let Ok(thin) = plain.squeeze(axis) else {
                prop_assert!(all.iter().any(|n| *n != 1));
                continue;
            };
            prop_assert!(all.iter().all(|n| *n == 1));
            for (name, axis, _) in &model.columns {
                let before = N::List(read_column(&plain, name));
                prop_assert_eq!(N::List(read_column(&thin, name)), squeeze(&before, *axis, at));
            }
        }
    }

    #[test]
    fn flatten_merges_axes_and_fills_outer_columns((model, seed) in draw_models(), dirt: bool) {
        let table = model.table(seed, dirt);
        for at in 1..table.ndim() {
            let axis = i64::try_from(at).unwrap();
            let of = list_lengths(table.layout(at).unwrap());
            for fill in [FlattenFill::Zero, FlattenFill::Null, FlattenFill::Repeat] {
                let more = &|n: &N| match fill {
                    FlattenFill::Zero => N::Leaf(0),
                    FlattenFill::Null => N::Null,
                    FlattenFill::Repeat => n.clone(),
                };
                let flat = table.flatten_with(axis, fill).unwrap();
                prop_assert_eq!(flat.ndim(), table.ndim() - 1);
                for (name, axis, rows) in &model.columns {
                    let expected = flatten(&N::List(rows.clone()), *axis, at, &of, more);
                    prop_assert_eq!(
                        N::List(read_column(&flat, name)),
                        expected,
                        "{} at {}",
                        name,
                        at,
                    );
                }
                let again = flat.with_columns(flat.columns().to_vec()).unwrap();
                prop_assert_eq!(again, flat);
            }
            // Flattening a new axis restores the table.
            let wide = table.unsqueeze(axis).unwrap();
            prop_assert_eq!(wide.flatten(axis).unwrap(), table.clone());
        }
        prop_assert!(table.flatten(0).is_err());
    }

    #[test]
    fn vstack_makes_a_row_of_each_table((model, seed) in draw_models(), other in draw_models()) {
        let table = model.table(seed, false);
        let mut dice = seed_random(seed ^ 21);
        let cuts: Vec<RaggedTable> = (0..dice.below(4) + 1)
            .map(|_| {
                let start = dice.below(model.rows + 1);
                table.slice(start, dice.below(model.rows - start + 1)).unwrap()
            })
            .collect();
        let stacked = RaggedTable::vstack(&cuts).unwrap();
        prop_assert_eq!(stacked.num_rows(), cuts.len());
        for (i, cut) in cuts.iter().enumerate() {
            prop_assert_eq!(&stacked.index(&[i64::try_from(i).unwrap().into()]).unwrap(), cut);
        }
        let other = other.0.table(other.1, false);
        let same_names = table.names().eq(other.names());
        if table.ndim() != other.ndim() || !same_names {
            prop_assert!(RaggedTable::vstack(&[table, other]).is_err());
        }
        prop_assert!(RaggedTable::vstack(&[]).is_err());
    }
}

fn make_patients() -> RaggedTable {
    RaggedTable::builder()
        .names(["patient", "visit"])
        .lengths([2, 0, 1])
        .unwrap()
        .column("name", 0, Arc::new(StringArray::from(vec!["a", "b", "c"])))
        .column("alive", 0, Arc::new(BooleanArray::from(vec![Some(true), None, None])))
        .column("time", 1, Arc::new(Int32Array::from(vec![1, 2, 3])))
        .build()
        .unwrap()
}

#[test]
fn squeeze_refuses_axes_with_other_lengths_than_one() {
    let message = |axis| make_patients().squeeze(axis).unwrap_err().to_string();
    assert!(message(0).contains("axis 0 has 3 rows"), "{}", message(0));
    assert!(message(-1).contains("axis 1: list 0 has 2 elements (in row 0)"), "{}", message(-1));
    assert!(matches!(make_patients().squeeze(2), Err(Error::NoSuchAxis { axis: 2, ndim: 2, .. })));
    let last = make_patients().slice(1, 2).unwrap();
    assert!(last.squeeze(1).unwrap_err().to_string().contains("list 0 has 0 elements"));
    let one = make_patients().slice(2, 1).unwrap();
    assert_eq!(one.squeeze(1).unwrap().column("time").unwrap().axis(), 0);
}

#[test]
fn flatten_fills_new_elements_by_type() {
    let flat = make_patients().flatten(1).unwrap();
    assert_eq!(flat.axis_name(0), Some("visit"));
    let alive = flat.column("alive").unwrap().values().as_boolean().clone();
    // The first visit of a patient has the value of the patient, and further visits have false.
    // Null stays null.
    assert_eq!(alive.iter().collect::<Vec<_>>(), [Some(true), Some(false), None]);
    let name = flat.column("name").unwrap().values().as_string::<i32>().clone();
    assert_eq!(name.iter().collect::<Vec<_>>(), [Some("a"), None, Some("c")]);
    let again = make_patients().flatten_with(-1, FlattenFill::Repeat).unwrap();
    let name = again.column("name").unwrap().values().as_string::<i32>().clone();
    assert_eq!(name.iter().collect::<Vec<_>>(), [Some("a"), Some("a"), Some("c")]);
    assert!(make_patients().flatten(0).unwrap_err().to_string().contains("no axis is above"));
}

#[test]
fn scalars_are_kept_and_refused_by_formats_without_scalars() {
    let second = make_patients().index(&[2.into()]).unwrap();
    let names =
        |t: &RaggedTable| t.scalars().iter().map(|s| s.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&second), ["name", "alive"]);
    assert_eq!(names(&second.slice(0, 0).unwrap()), ["name", "alive"]);
    assert_eq!(names(&second.take(&[0, 0]).unwrap()), ["name", "alive"]);
    assert_eq!(names(&second.unsqueeze(1).unwrap()), ["name", "alive"]);
    assert_eq!(names(&second.select(&["time", "name"]).unwrap()), ["name"]);
    assert!(second.column("name").unwrap_err().to_string().contains("name (a scalar)"));
    assert!(second.scalar("time").is_err());
    assert_ne!(second, make_patients().index(&[0.into(), vec![0].into()]).unwrap());
    // Formats without scalars refuse a table with scalars.
    let messages = [
        second.to_batch().unwrap_err(),
        second.to_struct_batch().unwrap_err(),
        second.to_long(&Default::default()).unwrap_err(),
        second.to_json(Default::default()).unwrap_err(),
    ];
    for message in messages.map(|e| e.to_string()) {
        assert!(
            message.contains("\"name\", \"alive\"") && message.contains("unsqueeze"),
            "{message}"
        );
    }
    // Tables are concatenated only if their scalars are equal.
    let first = make_patients().index(&[0.into()]).unwrap();
    let error = RaggedTable::concat(&[first.clone(), second.clone()]).unwrap_err().to_string();
    assert!(error.contains("\"name\"") && error.contains("vstack"), "{error}");
    let twice = RaggedTable::concat(&[first.clone(), first.clone()]).unwrap();
    assert_eq!((twice.num_rows(), names(&twice).len()), (4, 2));
    let rows = RaggedTable::vstack(&[first, second]).unwrap();
    assert_eq!(rows, make_patients().take(&[0, 2]).unwrap());
}

#[test]
fn scalars_become_dense_tensors_without_axes() {
    let row = make_patients().select(&["alive", "time"]).unwrap().index(&[2.into()]).unwrap();
    let dense = row.to_dense(&Default::default()).unwrap();
    let text: Vec<String> = dense.iter().map(|(n, t)| format!("{n}: {t}")).collect();
    assert_eq!(text, ["time: int32[1] [3]", "alive: bool[] false", "alive/valid: bool[] false"]);
}

#[test]
fn reshaping_does_not_copy_values() {
    let table = make_patients();
    let at = |t: &RaggedTable| {
        t.column("time").unwrap().values().as_primitive::<Int32Type>().values().as_ptr()
    };
    for other in [table.unsqueeze(0), table.unsqueeze(1), table.unsqueeze(-1), table.flatten(1)] {
        assert_eq!(at(&other.unwrap()), at(&table));
    }
    assert_eq!(at(&table.unsqueeze(1).unwrap().squeeze(1).unwrap()), at(&table));
}

#[test]
fn uniform_axes_stay_uniform_when_reshaped() {
    let values = Arc::new(Int64Array::from_iter_values(0..12));
    let table = RaggedTable::builder()
        .layout(Layout::Uniform { size: 2, lists: 2 })
        .layout(Layout::Uniform { size: 3, lists: 4 })
        .column("x", 2, values)
        .build()
        .unwrap();
    let shape = |t: &RaggedTable| t.array("x").unwrap().shape();
    assert_eq!(shape(&table.flatten(2).unwrap()), [Some(2), Some(6)]);
    assert_eq!(shape(&table.flatten(1).unwrap()), [Some(4), Some(3)]);
    assert_eq!(shape(&table.unsqueeze(1).unwrap()), [Some(2), Some(1), Some(2), Some(3)]);
    let part =
        table.index(&[serrate::index::Index::ALL, vec![1, 1, 0].into(), (..2).into()]).unwrap();
    assert_eq!(shape(&part), [Some(2), Some(3), Some(2)]);
    let x = part.column("x").unwrap().values().as_primitive::<Int64Type>().values().to_vec();
    assert_eq!(x, [3, 4, 3, 4, 0, 1, 9, 10, 9, 10, 6, 7]);
}
