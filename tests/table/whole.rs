//! Whole tables: sorted, compared, displayed.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float32Array, Float64Array, Int8Array, Int32Array,
    Int64Array, StringArray, UInt64Array,
};
use arrow::datatypes::{DataType, Int64Type};
use proptest::prelude::*;
use serrate::table::{RaggedTable, SortKey};

use crate::common::torture::{Draw, random};
use crate::model::{N, assert_columns, models};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn sorted_rows_are_in_order((model, seed) in models(), descending: bool, nulls_first: bool) {
        let mut dice = random(seed ^ 31);
        let keys: Vec<Option<i64>> =
            (0..model.rows).map(|_| (dice.below(4) > 0).then(|| i64::try_from(dice.below(3)).unwrap())).collect();
        let mut table = model.table(seed, false);
        let mut columns = table.columns().to_vec();
        columns.push(serrate::table::Column::new("key", 0, Arc::new(Int64Array::from(keys.clone()))));
        table = table.with_columns(columns).unwrap();
        let key = SortKey { column: "key".into(), descending, nulls_first };
        let mut order: Vec<usize> = (0..model.rows).collect();
        // A stable sort, value by value.
        order.sort_by_key(|i| match keys[*i] {
            None => (if nulls_first { -1 } else { 1 }, 0),
            Some(k) => (0, if descending { -k } else { k }),
        });
        let key = [key];
        prop_assert_eq!(&table.sort_indices(&key).unwrap(), &order);
        let sorted = table.sort(&key).unwrap();
        let rows = |r: &[N]| order.iter().map(|i| r[*i].clone()).collect();
        assert_columns(&sorted, &model.with_rows(rows));
    }

    #[test]
    fn equality_sees_every_change((model, seed) in models(), dirt: bool) {
        let table = model.table(seed, dirt);
        // Another layout, with columns in reverse order.
        let mut columns = model.table(seed ^ 5, !dirt);
        let names: Vec<String> = columns.names().map(str::to_owned).collect();
        let turned: Vec<&str> = names.iter().rev().map(String::as_str).collect();
        columns = columns.select(&turned).unwrap();
        prop_assert!(table.equals(&columns, false).unwrap());
        prop_assert_eq!(table == columns, names.len() == 1);
        // One value, one null, one name or one row differs.
        for (i, column) in table.columns().iter().enumerate() {
            let n = column.values().len();
            let with = |values: ArrayRef| {
                let mut all = table.columns().to_vec();
                let nulls = column.list_nulls().to_vec();
                all[i] = serrate::table::Column::new(column.name(), column.axis(), values)
                    .with_list_nulls(nulls);
                table.with_columns(all).unwrap()
            };
            let values: Vec<Option<i64>> =
                column.values().as_primitive::<Int64Type>().iter().collect();
            let as_floats = Float64Array::from_iter(values.iter().map(|v| v.map(|v| f64::from(i32::try_from(v).unwrap()))));
            prop_assert!(table.equals(&with(Arc::new(as_floats)), false).unwrap());
            if n > 0 {
                let mut dice = random(seed ^ 32);
                let at = dice.below(n);
                let mut other = values.clone();
                other[at] = Some(values[at].unwrap_or(-1) + 1);
                prop_assert!(!table.equals(&with(Arc::new(Int64Array::from(other))), true).unwrap());
                let mut missing = values.clone();
                missing[at] = if values[at].is_some() { None } else { Some(0) };
                prop_assert!(!table.equals(&with(Arc::new(Int64Array::from(missing))), true).unwrap());
            }
            let mut all = table.columns().to_vec();
            all[i] = column.clone().renamed("other");
            prop_assert!(!table.equals(&table.with_columns(all).unwrap(), true).unwrap());
        }
        if model.rows > 0 {
            prop_assert!(!table.equals(&table.slice(1, model.rows - 1).unwrap(), true).unwrap());
        }
    }

    #[test]
    fn any_table_can_be_shown((model, seed) in models()) {
        let table = model.table(seed, false);
        let text = table.to_string();
        prop_assert_eq!(text.lines().count(), 1 + table.ndim() + table.columns().len());
        prop_assert!(text.lines().all(|l| l.chars().count() < 160 && !l.ends_with(' ')), "{}", text);
        if model.rows > 0 {
            prop_assert!(!table.index(&[0.into()]).unwrap().to_string().is_empty());
        }
    }
}

fn flat(values: ArrayRef) -> RaggedTable {
    RaggedTable::builder().column("x", 0, values).build().unwrap()
}

#[test]
fn numbers_are_equal_by_value() {
    let pairs: [(ArrayRef, ArrayRef, bool); 8] = [
        (Arc::new(Int8Array::from(vec![1])), Arc::new(UInt64Array::from(vec![1])), true),
        (Arc::new(Int8Array::from(vec![-1])), Arc::new(UInt64Array::from(vec![u64::MAX])), false),
        (Arc::new(BooleanArray::from(vec![true])), Arc::new(Int32Array::from(vec![1])), true),
        (Arc::new(BooleanArray::from(vec![true])), Arc::new(Float32Array::from(vec![1.0])), true),
        (Arc::new(Float32Array::from(vec![0.0])), Arc::new(Float32Array::from(vec![-0.0])), true),
        (Arc::new(Float32Array::from(vec![0.1])), Arc::new(Float64Array::from(vec![0.1])), false),
        (
            Arc::new(Int64Array::from(vec![(1 << 62) + 1])),
            Arc::new(UInt64Array::from(vec![1 << 62])),
            false,
        ),
        (Arc::new(StringArray::from(vec!["1"])), Arc::new(Int32Array::from(vec![1])), false),
    ];
    for (a, b, same) in pairs {
        assert_eq!(flat(a.clone()).equals(&flat(b.clone()), false).unwrap(), same, "{a:?} {b:?}");
        assert_eq!(flat(b).equals(&flat(a), false).unwrap(), same);
    }
    // Longer than one chunk.
    let long = |last: i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..70_000).chain([last])))
    };
    let narrow = arrow::compute::cast(&long(7), &DataType::Int32).unwrap();
    assert!(flat(long(7)).equals(&flat(narrow.clone()), false).unwrap());
    assert!(!flat(long(8)).equals(&flat(narrow), false).unwrap());
    // A table with one more axis differs, even if no column is on it.
    let deeper = RaggedTable::builder().lengths([0]).unwrap();
    let deeper = deeper.column("x", 0, Arc::new(Int32Array::from(vec![1]))).build().unwrap();
    assert!(!deeper.equals(&flat(Arc::new(Int32Array::from(vec![1]))), false).unwrap());
}

#[test]
fn sorting_by_several_columns_and_what_it_refuses() {
    let table = RaggedTable::builder()
        .lengths([1, 1, 1, 1])
        .unwrap()
        .column("name", 0, Arc::new(StringArray::from(vec!["b", "a", "b", "a"])))
        .column("age", 0, Arc::new(Float32Array::from(vec![1.0, f32::NAN, 2.0, 5.0])))
        .column("code", 1, Arc::new(Int32Array::from(vec![1, 2, 3, 4])))
        .build()
        .unwrap();
    let order = |keys: &[SortKey]| table.sort_indices(keys).unwrap();
    assert_eq!(order(&["name".into(), "age".into()]), [3, 1, 0, 2]);
    let oldest = SortKey { descending: true, ..SortKey::from("age") };
    assert_eq!(order(&[oldest]), [1, 3, 2, 0]);
    let message = |keys: &[SortKey]| table.sort(keys).unwrap_err().to_string();
    assert!(message(&[]).contains("at least one column"));
    assert!(
        message(&["code".into()]).contains("\"code\" is on axis 1"),
        "{}",
        message(&["code".into()])
    );
    assert!(message(&["x".into()]).contains("no column \"x\""));
}

#[test]
fn names_and_depths() {
    let table = RaggedTable::builder()
        .lengths([1])
        .unwrap()
        .lengths([2])
        .unwrap()
        .column("b", 1, Arc::new(Int32Array::from(vec![1])))
        .column("a", 0, Arc::new(Int32Array::from(vec![1])))
        .build()
        .unwrap();
    assert_eq!(table.names().collect::<Vec<_>>(), ["b", "a"]);
    assert_eq!(table.columns_at(0).map(|c| c.name()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(table.columns_at(2).count(), 0);
    // Axis 2 has elements but no column.
    assert_eq!((table.min_ndim(), table.max_ndim(), table.ndim()), (Some(1), Some(2), 3));
    assert_eq!(RaggedTable::builder().build().unwrap().max_ndim(), None);
}

#[test]
fn long_values_are_cut_where_they_are_shown() {
    let table = RaggedTable::builder()
        .lengths([1000, 1])
        .unwrap()
        .column("note", 0, Arc::new(StringArray::from(vec![Some("x".repeat(500)), None])))
        .column("code", 1, Arc::new(Int64Array::from_iter_values(0..1001)))
        .build()
        .unwrap();
    assert_eq!(
        table.to_string(),
        format!(
            "RaggedTable: 2 columns on 2 axes\n  axis 0  2\n  axis 1  1001  in lists of 1 to 1000\n  \
             note  @0  Utf8   \"{}…\", null\n  code  @1  Int64  [0, 1, 2, …, 999], [1000]",
            "x".repeat(40)
        )
    );
    let one = table.index(&[1.into()]).unwrap();
    assert_eq!(
        one.to_string(),
        "RaggedTable: 1 column on 1 axis\n  axis 0  1\n  code  @0  Int64  1000\n  note  =   Utf8   null"
    );
}
