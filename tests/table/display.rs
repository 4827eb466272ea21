//! `Display` of tables.

use std::sync::Arc;

use arrow::array::{Int64Array, StringArray};
use proptest::prelude::*;
use serrate::table::RaggedTable;

use crate::model::draw_models;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn any_table_is_displayed_in_short_lines((model, seed) in draw_models()) {
        let table = model.table(seed, false);
        let text = table.to_string();
        prop_assert_eq!(text.lines().count(), 1 + table.ndim() + table.columns().len());
        prop_assert!(text.lines().all(|l| l.chars().count() < 160 && !l.ends_with(' ')), "{}", text);
        if model.rows > 0 {
            prop_assert!(!table.index(&[0.into()]).unwrap().to_string().is_empty());
        }
    }
}

#[test]
fn long_values_are_abbreviated() {
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
