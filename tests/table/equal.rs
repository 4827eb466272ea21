//! Equality of tables.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float32Array, Float64Array, Int8Array, Int32Array,
    Int64Array, StringArray, UInt64Array,
};
use arrow::datatypes::{DataType, Int64Type};
use proptest::prelude::*;
use serrate::table::{NanComparison, RaggedTable};

use crate::common::torture::{Draw, seed_random};
use crate::model::draw_models;

fn make_flat(values: ArrayRef) -> RaggedTable {
    RaggedTable::builder().column("x", 0, values).build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn tables_with_any_difference_are_not_equal((model, seed) in draw_models(), dirt: bool) {
        let table = model.table(seed, dirt);
        // A table with other kinds of lists and reversed columns is equal, unless the order counts.
        let mut columns = model.table(seed ^ 5, !dirt);
        let names: Vec<String> = columns.names().map(str::to_owned).collect();
        let turned: Vec<&str> = names.iter().rev().map(String::as_str).collect();
        columns = columns.select(&turned).unwrap();
        prop_assert!(table.equals(&columns, NanComparison::Unequal).unwrap());
        prop_assert_eq!(table == columns, names.len() == 1);
        // A table with another value, null, name or number of rows is not equal.
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
            prop_assert!(table.equals(&with(Arc::new(as_floats)), NanComparison::Unequal).unwrap());
            if n > 0 {
                let mut dice = seed_random(seed ^ 32);
                let at = dice.below(n);
                let mut other = values.clone();
                other[at] = Some(values[at].unwrap_or(-1) + 1);
                prop_assert!(!table.equals(&with(Arc::new(Int64Array::from(other))), NanComparison::Equal).unwrap());
                let mut missing = values.clone();
                missing[at] = if values[at].is_some() { None } else { Some(0) };
                prop_assert!(!table.equals(&with(Arc::new(Int64Array::from(missing))), NanComparison::Equal).unwrap());
            }
            let mut all = table.columns().to_vec();
            all[i] = column.clone().renamed("other");
            prop_assert!(!table.equals(&table.with_columns(all).unwrap(), NanComparison::Equal).unwrap());
        }
        if model.rows > 0 {
            prop_assert!(!table.equals(&table.slice(1, model.rows - 1).unwrap(), NanComparison::Equal).unwrap());
        }
    }
}

#[test]
fn numbers_of_different_types_are_compared_by_value() {
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
        assert_eq!(
            make_flat(a.clone()).equals(&make_flat(b.clone()), NanComparison::Unequal).unwrap(),
            same,
            "{a:?} {b:?}"
        );
        assert_eq!(make_flat(b).equals(&make_flat(a), NanComparison::Unequal).unwrap(), same);
    }
    // The columns are longer than the chunks in which they are compared.
    let long = |last: i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..70_000).chain([last])))
    };
    let narrow = arrow::compute::cast(&long(7), &DataType::Int32).unwrap();
    assert!(make_flat(long(7)).equals(&make_flat(narrow.clone()), NanComparison::Unequal).unwrap());
    assert!(!make_flat(long(8)).equals(&make_flat(narrow), NanComparison::Unequal).unwrap());
    // A table with one more axis differs, even if no column is on it.
    let deeper = RaggedTable::builder().lengths([0]).unwrap();
    let deeper = deeper.column("x", 0, Arc::new(Int32Array::from(vec![1]))).build().unwrap();
    assert!(
        !deeper
            .equals(&make_flat(Arc::new(Int32Array::from(vec![1]))), NanComparison::Unequal)
            .unwrap()
    );
}
