//! `RaggedTable::concat`: the rows of several tables, one table after the other.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, Int8Array, Int64Array, StringArray, UInt16Array,
    UInt32Array,
};
use arrow::datatypes::DataType;
use proptest::prelude::*;
use serrate::array::Layout;
use serrate::table::{RaggedTable, promote_types};

use crate::model::{assert_columns, draw_models};

fn make_part(name: &str, axis: usize, values: ArrayRef) -> RaggedTable {
    RaggedTable::builder()
        .lengths([values.len()])
        .unwrap()
        .column(name, axis, values)
        .build()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn concatenated_slices_restore_the_table(
        (model, seed) in draw_models(),
        cuts in proptest::collection::vec(0usize..6, 0..4),
        dirt: bool,
    ) {
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
        // The second table has the same rows in other kinds of lists.
        let twice = RaggedTable::concat(&[table, model.table(seed ^ 9, !dirt)]).unwrap();
        assert_columns(&twice, &model.with_rows(|r| [r, r].concat()));
    }
}

#[test]
fn types_unify_as_numpy_promotes_them() {
    use DataType::*;
    let ints =
        [UInt8, UInt16, UInt32, UInt64, Int8, Int16, Int32, Int64, Float16, Float32, Float64];
    // The entry in row i and column j is `numpy.promote_types(types[i], types[j])`.
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
        make_part("x", 1, Arc::new(UInt16Array::from(vec![Some(60000), None]))),
        make_part("x", 1, Arc::new(Int8Array::from(vec![-1]))),
        make_part("x", 1, Arc::new(Float32Array::from(vec![0.5]))),
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
fn errors_of_concat_name_the_difference() {
    let a = make_part("x", 1, Arc::new(Int64Array::from(vec![1])));
    let error = |b: RaggedTable| RaggedTable::concat(&[a.clone(), b]).unwrap_err().to_string();
    assert!(
        error(make_part("y", 1, Arc::new(Int64Array::from(vec![1]))))
            .contains("table 1 lacks the column(s) \"x\"")
    );
    let extra = a.with_columns(
        [a.columns(), make_part("z", 1, Arc::new(Int64Array::from(vec![1]))).columns()].concat(),
    );
    assert!(error(extra.unwrap()).contains("table 0 lacks the column(s) \"z\""));
    assert!(
        error(make_part("x", 0, Arc::new(Int64Array::from(vec![1]))))
            .contains("has 1 level(s) of lists in table 0, but 0 in table 1")
    );
    assert!(
        error(make_part("x", 1, Arc::new(StringArray::from(vec!["1"]))))
            .contains("column \"x\" of table 1")
    );
    let flat =
        RaggedTable::builder().column("x", 0, Arc::new(Int64Array::from(vec![1]))).build().unwrap();
    assert!(error(flat).contains("is 1 for table 1, but"));
    assert!(RaggedTable::concat(&[]).is_err());
}

#[test]
fn an_axis_stays_uniform_if_all_lists_have_one_size() {
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
