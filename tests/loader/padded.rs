//! Padded batches, compared with rows that are taken, truncated, concatenated and padded one by
//! one.

use std::sync::Arc;

use arrow::array::{Float64Array, Int64Array, StringArray, TimestampMillisecondArray, UInt64Array};
use proptest::prelude::*;
use serrate::Error;
use serrate::dense::{AxisSize, DType, Fill, PaddingSide};
use serrate::index::parse_index;
use serrate::loader::{BatchForm, Loader, LoaderOptions, WindowSampling};
use serrate::table::RaggedTable;

use super::support::{
    assert_same, compute_reference, draw_options, draw_size, make_shards, make_table, make_wide,
    name_tensors,
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Batches of other shapes, padding sides and fill values reuse the buffers, so that no values
    /// of an earlier batch may remain.
    #[test]
    fn padded_batches_equal_the_reference(
        seed in 0u64..60,
        mixed in any::<bool>(),
        options in draw_options(),
        sizes in proptest::collection::vec(draw_size(), 0..4),
        left in any::<bool>(),
        fill in prop_oneof![Just(None), Just(Some(Fill::Int(1))), Just(Some(Fill::Bool(true)))],
    ) {
        let shards = make_shards(seed, mixed);
        let side = if left { PaddingSide::Left } else { PaddingSide::Right };
        let mut options = options.side(side).sizes(sizes.clone());
        if let Some(fill) = fill {
            options = options.fill(fill);
        }
        let loader = Loader::try_new(shards.clone(), options).unwrap();
        for epoch in 0..2 {
            for batch in loader.epoch(epoch).unwrap() {
                let batch = batch.unwrap();
                let expected = compute_reference(&shards, batch.items(), &sizes, side, fill);
                assert_same(&name_tensors(&batch), &expected);
            }
        }
    }
}

#[test]
fn occupied_bytes_count_the_elements_under_the_masks() {
    let shards = make_shards(31, false);
    for sizes in [vec![], vec![AxisSize::AtMost(2), AxisSize::Exactly(3), AxisSize::AtMost(1)]] {
        let options = LoaderOptions::new(4).sizes(sizes).validity(false).masks([1, 2, 3]);
        let loader = Loader::try_new(shards.clone(), options).unwrap();
        let mut whole = (0, 0);
        for batch in loader.epoch(0).unwrap() {
            let batch = batch.unwrap();
            let ones = |axis: usize| -> usize {
                if axis == 0 {
                    return batch.len();
                }
                let mask = batch.tensor(&format!("dim{axis}/mask")).unwrap();
                mask.as_slice::<u8>().unwrap().iter().map(|b| usize::from(*b)).sum()
            };
            // The bytes of the elements of all columns, plus one per element for the masks.
            let expected =
                8 * ones(0) + (4 + 1 + 1) * ones(1) + (2 + 8 + 1) * ones(2) + 2 * ones(3);
            assert_eq!(batch.occupied_bytes(), expected);
            assert!(batch.nbytes() >= expected);
            whole = (whole.0 + batch.nbytes(), whole.1 + expected);
        }
        let stats = loader.plan(0).stats().unwrap();
        assert_eq!((stats.bytes, stats.occupied), (whole.0 as u64, whole.1 as u64));
    }
}

#[test]
fn options_select_columns_masks_and_fill_values_and_widen_tokens() {
    let options = LoaderOptions::new(3)
        .columns(["code", "id", "value"])
        .masks([1])
        .fill(-1)
        .fill_column("value", f64::NAN)
        .tokens_as_i64(true);
    let loader = Loader::try_new([make_table(5, 7, make_wide)], options).unwrap();
    let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
    let names: Vec<_> =
        batch.tensors().iter().map(|(n, t)| (n.as_ref(), t.dtype(), t.ndim())).collect();
    assert_eq!(
        names,
        [
            ("code", DType::I64, 3),
            ("id", DType::I64, 1),
            ("value", DType::F64, 3),
            ("dim1/mask", DType::Bool, 2),
            ("value/valid", DType::Bool, 3),
        ]
    );
    let valid = batch.tensor("value/valid").unwrap().as_slice::<u8>().unwrap();
    let values = batch.tensor("value").unwrap().as_slice::<f64>().unwrap();
    assert!(valid.contains(&1) && valid.contains(&0));
    assert!(values.iter().zip(valid).all(|(v, valid)| v.is_nan() == (*valid == 0)));
    let codes = batch.tensor("code").unwrap().as_slice::<i64>().unwrap();
    assert!(codes.contains(&-1) && codes.iter().all(|c| *c == -1 || *c > 0));
    let none = LoaderOptions::new(3).masks([]).validity(false).columns(["value"]);
    let loader = Loader::try_new([make_table(5, 7, make_wide)], none).unwrap();
    let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
    let kept = name_tensors(&batch);
    let own = batch.into_tensors();
    assert_eq!(own.len(), 1);
    assert_same(&own.into_iter().map(|(n, t)| (n.to_string(), t)).collect(), &kept);
}

#[test]
fn tables_without_lists_have_batches() {
    let flat = RaggedTable::builder()
        .column("x", 0, Arc::new(Float64Array::from_iter_values((0..5).map(f64::from))))
        .build()
        .unwrap();
    let options = LoaderOptions::new(2).window(3, WindowSampling::Random);
    let loader = Loader::try_new([flat], options).unwrap();
    let batches: Vec<_> = loader.epoch(0).unwrap().map(Result::unwrap).collect();
    assert_eq!(batches.len(), 3);
    assert_eq!(batches[2].tensor("x").unwrap().as_slice::<f64>().unwrap(), [4.0]);
    assert_eq!(batches[0].items()[1].events, 0..0);
}

#[test]
fn zero_rows_make_no_batches() {
    for n in [1, 3] {
        let shards = vec![make_table(1, 0, make_wide); n];
        let loader = Loader::try_new(shards, LoaderOptions::new(2).shuffle(1).bucket(2)).unwrap();
        assert_eq!(loader.num_rows(), 0);
        assert_eq!(loader.epoch(0).unwrap().count(), 0);
        let stats = loader.plan(0).stats().unwrap();
        assert_eq!((stats.batches, stats.occupied_share()), (0, 1.0));
    }
}

#[test]
fn rows_without_events_are_all_padding() {
    let empty = RaggedTable::builder()
        .lengths([0, 0])
        .unwrap()
        .lengths([])
        .unwrap()
        .column("code", 2, make_wide(vec![]))
        .column("x", 0, Arc::new(UInt64Array::from(vec![1, 2])))
        .build()
        .unwrap();
    let exactly = LoaderOptions::new(2).sizes([AxisSize::Exactly(2), AxisSize::Exactly(1)]);
    let loader = Loader::try_new([empty.clone()], exactly).unwrap();
    let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
    assert_eq!(batch.tensor("code").unwrap().shape(), [2, 2, 1]);
    assert!(batch.tensor("dim2/mask").unwrap().as_bytes().iter().all(|b| *b == 0));
    let loader = Loader::try_new([empty], LoaderOptions::new(2)).unwrap();
    let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
    assert_eq!(batch.tensor("code").unwrap().shape(), [2, 0, 0]);
    assert_eq!(batch.tensor("x").unwrap().as_slice::<u64>().unwrap(), [1, 2]);
}

fn expect_refusal(shards: Vec<RaggedTable>, options: LoaderOptions) -> String {
    Loader::try_new(shards, options).unwrap_err().to_string()
}

#[test]
fn unsuitable_shards_and_options_are_errors_that_name_them() {
    let t = || make_table(3, 4, make_wide);
    let o = || LoaderOptions::new(2);
    assert!(expect_refusal(vec![], o()).contains("no shards"));
    let flat = t().select(&["id"]).unwrap();
    let e = expect_refusal(vec![t(), flat], o());
    assert!(e.contains("shard 1 lacks the column \"t\""), "{e}");
    assert!(
        expect_refusal(vec![t(), RaggedTable::builder().build().unwrap()], o())
            .contains("same number of axes")
    );
    let e = expect_refusal(vec![t(), t()], o().columns(["code", "x"]));
    assert!(e.contains("shard 0") && e.contains("\"x\""), "{e}");
    let one = |values| {
        RaggedTable::builder().lengths([1]).unwrap().column("time", 1, values).build().unwrap()
    };
    let text = || one(Arc::new(StringArray::from(vec!["A"])));
    let time = || one(Arc::new(TimestampMillisecondArray::from(vec![1])));
    let number = || one(Arc::new(UInt64Array::from(vec![1])));
    let e = expect_refusal(vec![text()], o());
    assert!(e.contains("\"time\"") && e.contains("encode strings"), "{e}");
    let e = expect_refusal(vec![time(), number()], o());
    assert!(e.contains("\"time\" of shard 1"), "{e}");
    for (options, message) in [
        (o().fill(-1), "\"flag\": the fill value -1"),
        (o().fill_column("nope", 1), "\"nope\""),
        (o().masks([4]), "axes from 1 to 3"),
        (o().masks([0]), "axes from 1 to 3"),
        (o().masks([1, 1]), "\"dim1/mask\""),
        (LoaderOptions::new(0), "at least 1 item"),
        (o().window(0, WindowSampling::Random), "at least 1 element"),
        (o().window(1, WindowSampling::Step { stride: 0 }), "stride"),
        (o().bucket(0), "pool for bucketing"),
        (o().threads(0), "number of threads"),
        (super::support::pack_options(&o().sizes([AxisSize::Longest])), "packed"),
        (o().position_ids(DType::U8), "int32 or int64"),
    ] {
        let e = expect_refusal(vec![t()], options);
        assert!(e.contains(message), "{e}");
    }
}

#[test]
fn a_value_that_does_not_fit_is_an_error_of_its_batch() {
    let values = Arc::new(UInt64Array::from(vec![Some(1), Some(u64::MAX), None, Some(3)]));
    let t = RaggedTable::builder().lengths([1, 1, 1, 1]).unwrap().column("x", 1, values);
    let options = LoaderOptions::new(1).tokens_as_i64(true);
    let loader = Loader::try_new([t.build().unwrap()], options).unwrap();
    let all: Vec<_> = loader.epoch(0).unwrap().collect();
    assert_eq!(all.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true, true]);
    let e = all[1].as_ref().unwrap_err().to_string();
    assert!(e.contains("batch 1") && e.contains("\"x\"") && e.contains("int64"), "{e}");
    assert_eq!(all[2].as_ref().unwrap().tensor("x").unwrap().as_slice::<i64>().unwrap(), [0]);
}

#[test]
fn too_large_batches_are_refused_before_memory_is_allocated() {
    let loader =
        Loader::try_new([make_table(3, 9, make_wide)], LoaderOptions::new(9).limit(100)).unwrap();
    let e = loader.epoch(0).unwrap().next().unwrap().unwrap_err();
    assert!(matches!(e, Error::TooLarge { limit: 100, .. }), "{e}");
    assert!(loader.plan(0).stats().is_err());
}

#[test]
fn tokens_of_all_integer_types_become_int64() {
    let one = |values: arrow::array::ArrayRef| {
        RaggedTable::builder().lengths([2]).unwrap().column("code", 1, values).build().unwrap()
    };
    let shards = |large: u64| {
        vec![
            one(Arc::new(UInt64Array::from(vec![1, large]))),
            one(Arc::new(Int64Array::from(vec![-1, i64::MIN]))),
        ]
    };
    let options = LoaderOptions::new(2).tokens_as_i64(true);
    let largest = i64::MAX.cast_unsigned();
    let loader = Loader::try_new(shards(largest), options.clone()).unwrap();
    let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
    // The values are compared as integers, because float64 cannot represent them exactly.
    assert_eq!(
        batch.tensor("code").unwrap().as_slice::<i64>().unwrap(),
        [1, i64::MAX, -1, i64::MIN]
    );
    let loader = Loader::try_new(shards(largest + 1), options.clone()).unwrap();
    let e = loader.epoch(0).unwrap().next().unwrap().unwrap_err().to_string();
    assert!(e.contains("does not fit the type int64"), "{e}");
    // If one shard has floats, the integers of the others become floats, too.
    let mut mixed = shards(1);
    mixed.push(one(Arc::new(Float64Array::from(vec![0.5, 1.0]))));
    let loader = Loader::try_new(mixed, options).unwrap();
    let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
    assert_eq!(batch.tensor("code").unwrap().dtype(), DType::F64);
}

#[test]
fn options_without_effect_are_refused() {
    let t = || vec![make_table(3, 4, make_wide)];
    let o = || LoaderOptions::new(2);
    let e = expect_refusal(t(), o().sizes([AxisSize::Longest; 4]));
    assert!(e.contains("4 sizes are given, but the number of axes after the rows is 3"), "{e}");
    assert!(Loader::try_new(t(), o().sizes([AxisSize::Longest; 3])).is_ok());
    assert!(expect_refusal(t(), o().form(BatchForm::Packed).masks([1])).contains("masks"));
    assert!(expect_refusal(t(), o().form(BatchForm::Packed).masks([])).contains("masks"));
    assert!(
        expect_refusal(t(), o().form(BatchForm::Packed).side(PaddingSide::Left)).contains("side")
    );
}

#[test]
fn scalars_are_refused_by_name() {
    let whole = make_table(5, 7, make_wide);
    let row = (0..7).find(|r| whole.row(*r).unwrap().len() > 1).unwrap();
    let index = |text: &str| whole.index(&parse_index(text).unwrap()).unwrap();
    let indexed = index(&format!("{row}"));
    assert!(indexed.scalar("id").is_ok() && indexed.ndim() > 0);
    let o = || LoaderOptions::new(2);
    let e = expect_refusal(vec![indexed.clone()], o());
    assert!(e.contains("shard 0") && e.contains("\"id\""), "{e}");
    let e = expect_refusal(vec![indexed.clone()], o().columns(["t", "id"]));
    assert!(e.contains("\"id\""), "{e}");
    let loader = Loader::try_new([indexed], o().columns(["t"])).unwrap();
    assert_eq!(loader.num_rows(), whole.row(row).unwrap().len());
    let flat = RaggedTable::builder()
        .lengths([3, 1])
        .unwrap()
        .column("t", 1, make_wide(vec![7, 8, 9, 4]))
        .build()
        .unwrap();
    let point = flat.index(&parse_index("0,1").unwrap()).unwrap();
    assert_eq!(point.ndim(), 0);
    assert!(expect_refusal(vec![point.clone()], o()).contains("\"t\""));
    let none = point.select(&[]).unwrap();
    for options in [o(), o().masks([1]), o().form(BatchForm::Packed)] {
        let e = expect_refusal(vec![none.clone()], options);
        assert!(e.contains("has no axes"), "{e}");
    }
}

#[test]
fn sizes_larger_than_memory_are_refused() {
    let t = make_table(3, 6, make_wide);
    for limit in [Some(1 << 30), None] {
        let sizes = [AxisSize::Exactly(usize::MAX); 2];
        let options =
            LoaderOptions::new(3).columns(["code", "t", "value"]).sizes(sizes).limit(limit);
        let loader = Loader::try_new([t.clone()], options).unwrap();
        let e = loader.epoch(0).unwrap().next().unwrap().unwrap_err().to_string();
        assert!(e.contains("batch 0 of 3 items") && e.contains("set sizes"), "{e}");
        assert_eq!(loader.plan(0).stats().unwrap_err().to_string(), e);
    }
}
