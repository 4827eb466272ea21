//! Names and axes of columns.

use std::sync::Arc;

use arrow::array::Int32Array;
use serrate::table::RaggedTable;

#[test]
fn names_and_axes_of_columns_are_listed() {
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
    // Axis 2 exists, although no column is on it.
    assert_eq!((table.min_ndim(), table.max_ndim(), table.ndim()), (Some(1), Some(2), 3));
    assert_eq!(RaggedTable::builder().build().unwrap().max_ndim(), None);
}
