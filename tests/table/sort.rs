//! `RaggedTable::sort`.

use std::sync::Arc;

use arrow::array::{Float32Array, Int32Array, Int64Array, StringArray};
use proptest::prelude::*;
use serrate::table::{RaggedTable, SortKey};

use crate::common::torture::{Draw, seed_random};
use crate::model::{N, assert_columns, draw_models};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn sorted_rows_equal_a_stable_sort(
        (model, seed) in draw_models(),
        descending: bool,
        nulls_first: bool,
    ) {
        let mut dice = seed_random(seed ^ 31);
        let keys: Vec<Option<i64>> =
            (0..model.rows).map(|_| (dice.below(4) > 0).then(|| i64::try_from(dice.below(3)).unwrap())).collect();
        let mut table = model.table(seed, false);
        let mut columns = table.columns().to_vec();
        columns.push(serrate::table::Column::new("key", 0, Arc::new(Int64Array::from(keys.clone()))));
        table = table.with_columns(columns).unwrap();
        let key = SortKey { column: "key".into(), descending, nulls_first };
        let mut order: Vec<usize> = (0..model.rows).collect();
        // The reference is a stable sort.
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
}

#[test]
fn sort_accepts_several_keys_and_refuses_lists() {
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
        message(&["code".into()]).contains("\"code\" has 1 level(s) of lists"),
        "{}",
        message(&["code".into()])
    );
    assert!(message(&["x".into()]).contains("no column \"x\""));
}
