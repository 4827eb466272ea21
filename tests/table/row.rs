//! Slices of rows, and views of rows and events.

use arrow::array::Array;
use arrow::datatypes::Int64Type;
use proptest::prelude::*;
use serrate::table::RaggedTable;

use crate::common::torture::{Draw, seed_random};
use crate::model::{N, assert_columns, draw_models};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn slices_have_the_rows_of_their_range((model, seed) in draw_models(), dirt: bool) {
        let table = model.table(seed, dirt);
        let mut dice = seed_random(seed ^ 1);
        let start = dice.below(model.rows + 1);
        let end = start + dice.below(model.rows - start + 1);
        let part = table.slice(start, end - start).unwrap();
        let expected = model.with_rows(|rows| rows[start..end].to_vec());
        assert_columns(&part, &expected);
        // A slice may be sliced again, and converted to a batch.
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
    fn row_views_return_the_row_and_its_events((model, seed) in draw_models(), dirt: bool) {
        let table = model.table(seed, dirt);
        let mut dice = seed_random(seed ^ 2);
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
}
