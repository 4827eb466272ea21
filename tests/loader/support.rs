//! Random shards, random options, and a slow reference for batches.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, Int16Array, Int64Array, UInt8Array,
    UInt16Array,
};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serrate::dense::{AxisSize, DenseOptions, DenseTensor, Fill, PaddingSide, TableDenseOptions};
use serrate::kernels::mask::validity_mask;
use serrate::loader::{Batch, BatchForm, BatchItem, LoaderOptions, WindowSampling};
use serrate::table::RaggedTable;

/// Builds a table of `rows` rows with the columns `id` on axis 0, `t` and `flag` on axis 1, `code`
/// and `value` (with NULL) on axis 2, and `deep` on axis 3. Values are numbered consecutively, so
/// that most of them differ.
pub(crate) fn make_table(seed: u64, rows: usize, code: fn(Vec<u16>) -> ArrayRef) -> RaggedTable {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut lengths = |n: usize, most: usize| -> Vec<usize> {
        (0..n).map(|_| if rng.random_bool(0.2) { 0 } else { rng.random_range(0..=most) }).collect()
    };
    let events = lengths(rows, 9);
    let codes = lengths(events.iter().sum(), 5);
    let deep = lengths(codes.iter().sum(), 3);
    let n: Vec<usize> =
        [events.iter().sum(), codes.iter().sum::<usize>(), deep.iter().sum()].into();
    let first = (seed % 90) as u16 + 1;
    let null = |i: usize| (i * 7 + seed as usize).is_multiple_of(4);
    RaggedTable::builder()
        .rows(rows)
        .lengths(events)
        .unwrap()
        .lengths(codes)
        .unwrap()
        .lengths(deep)
        .unwrap()
        .column("id", 0, Arc::new(Int64Array::from_iter_values((0..rows as i64).map(|i| i + 1))))
        .column("t", 1, Arc::new(Float32Array::from_iter_values((0..n[0]).map(|i| i as f32 + 0.5))))
        .column("flag", 1, Arc::new((0..n[0]).map(|i| Some(i % 3 != 0)).collect::<BooleanArray>()))
        .column("code", 2, code((0..n[1]).map(|i| (i % 100) as u16 + first).collect()))
        .column(
            "value",
            2,
            Arc::new((0..n[1]).map(|i| (!null(i)).then_some(i as f64)).collect::<Float64Array>()),
        )
        .column("deep", 3, Arc::new(UInt8Array::from_iter_values((0..n[2]).map(|i| i as u8 | 1))))
        .build()
        .unwrap()
}

pub(crate) fn make_wide(values: Vec<u16>) -> ArrayRef {
    Arc::new(UInt16Array::from(values))
}

fn make_narrow(values: Vec<u16>) -> ArrayRef {
    Arc::new(UInt8Array::from_iter_values(values.into_iter().map(|v| v as u8)))
}

fn make_signed(values: Vec<u16>) -> ArrayRef {
    Arc::new(Int16Array::from_iter_values(values.into_iter().map(|v| v as i16)))
}

/// Draws up to three shards. The first is a slice, so that its offsets do not start at 0. With
/// `mixed`, the type of `code` differs between shards.
pub(crate) fn make_shards(seed: u64, mixed: bool) -> Vec<RaggedTable> {
    let kinds: [fn(Vec<u16>) -> ArrayRef; 3] =
        if mixed { [make_narrow, make_wide, make_signed] } else { [make_wide; 3] };
    let n = 1 + seed as usize % 3;
    let mut all: Vec<RaggedTable> = (0..n)
        .map(|i| make_table(seed + i as u64, (seed as usize / 3 + 5 * i) % 14, kinds[i]))
        .collect();
    let rows = all[0].num_rows();
    all[0] = all[0].slice(rows / 3, rows - rows / 3).unwrap();
    all
}

pub(crate) fn draw_sampling() -> impl Strategy<Value = WindowSampling> {
    prop_oneof![
        Just(WindowSampling::Random),
        Just(WindowSampling::BalancedRandom),
        Just(WindowSampling::FromStart),
        Just(WindowSampling::ToEnd),
        (1usize..6).prop_map(|stride| WindowSampling::Step { stride }),
    ]
}

/// Draws options other than those of padding, with a random batch size.
pub(crate) fn draw_options() -> impl Strategy<Value = LoaderOptions> {
    (1usize..7).prop_flat_map(options_of)
}

/// Draws options other than those of padding, for batches of `batch` items.
pub(crate) fn options_of(batch: usize) -> impl Strategy<Value = LoaderOptions> {
    (
        proptest::option::of((1usize..6, draw_sampling())),
        proptest::option::of(0u64..4),
        proptest::option::of(1usize..4),
        any::<bool>(),
    )
        .prop_map(move |(window, shuffle, bucket, drop_last)| {
            let mut options = LoaderOptions::new(batch).drop_last(drop_last);
            if let Some((n, sampling)) = window {
                options = options.window(n, sampling);
            }
            if let Some(seed) = shuffle {
                options = options.shuffle(seed);
            }
            if let Some(pool) = bucket {
                options = options.bucket(pool);
            }
            options
        })
}

pub(crate) fn draw_size() -> impl Strategy<Value = AxisSize> {
    prop_oneof![
        3 => Just(AxisSize::Longest),
        1 => (0usize..7).prop_map(AxisSize::AtMost),
        1 => (0usize..7).prop_map(AxisSize::Exactly),
    ]
}

/// Returns a table of the rows of the given items, each truncated to the events of its item.
pub(crate) fn gather_items(shards: &[RaggedTable], items: &[BatchItem]) -> RaggedTable {
    let whole = RaggedTable::concat(shards).unwrap();
    let before = |shard: usize| shards[..shard].iter().map(RaggedTable::num_rows).sum::<usize>();
    let rows: Vec<RaggedTable> = items
        .iter()
        .map(|item| {
            let row = whole.row(before(item.shard) + item.row).unwrap();
            row.events(item.events.clone()).unwrap().to_table().unwrap()
        })
        .collect();
    RaggedTable::concat(&rows).unwrap()
}

pub(crate) type Named = Vec<(String, DenseTensor)>;

/// Returns the expected tensors of a padded batch of the given items.
pub(crate) fn compute_reference(
    shards: &[RaggedTable],
    items: &[BatchItem],
    sizes: &[AxisSize],
    side: PaddingSide,
    fill: Option<Fill>,
) -> Named {
    let table = gather_items(shards, items);
    let dense = DenseOptions { side, fill, ..Default::default() };
    let options =
        TableDenseOptions { dense: dense.clone(), sizes: sizes.into(), ..Default::default() };
    let mut all: Named = table
        .to_dense_with(&options)
        .unwrap()
        .into_iter()
        .filter(|(name, _)| !name.ends_with("/valid"))
        .collect();
    let shape = |name: &str| {
        let tensor = &all.iter().find(|(n, _)| n == name).unwrap().1;
        tensor.shape()[1..].to_vec()
    };
    // If any shard has NULL in a column, every batch has a validity mask of that column.
    let mut valid = Named::new();
    for column in table.columns() {
        let name = column.name();
        let has = |s: &RaggedTable| s.column(name).unwrap().values().null_count() > 0;
        if shards.iter().any(has) {
            let mask =
                validity_mask(&table.array(name).unwrap(), Some(&shape(name)), &dense).unwrap();
            valid.push((format!("{name}/valid"), mask));
        }
    }
    all.extend(valid);
    all
}

pub(crate) fn name_tensors(batch: &Batch) -> Named {
    batch.tensors().iter().map(|(name, t)| (name.to_string(), t.clone())).collect()
}

#[track_caller]
pub(crate) fn assert_same(found: &Named, expected: &Named) {
    let names = |n: &Named| n.iter().map(|(n, _)| n.clone()).collect::<Vec<_>>();
    assert_eq!(names(found), names(expected));
    for ((name, found), (_, expected)) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{name}");
    }
}

pub(crate) fn pack_options(options: &LoaderOptions) -> LoaderOptions {
    options.clone().form(BatchForm::Packed)
}
