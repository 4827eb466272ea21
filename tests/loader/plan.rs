//! Plans of epochs: which items are in which batch.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serrate::loader::{BatchItem, EpochPlan, Loader, LoaderOptions, WindowSampling};
use serrate::table::RaggedTable;

use super::support::{draw_options, make_shards, make_table, make_wide, options_of};

fn list_items(plan: &EpochPlan) -> Vec<BatchItem> {
    (0..plan.num_batches()).flat_map(|b| plan.items(b).collect::<Vec<_>>()).collect()
}

fn count_rows(shards: &[RaggedTable], item: &BatchItem) -> usize {
    shards[item.shard].row(item.row).unwrap().len()
}

fn sort_items(items: &[BatchItem]) -> Vec<(usize, usize, usize, usize)> {
    let mut keys: Vec<_> =
        items.iter().map(|i| (i.shard, i.row, i.events.start, i.events.end)).collect();
    keys.sort_unstable();
    keys
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_row_occurs_once_and_windows_follow_their_sampling(
        seed in 0u64..60,
        options in draw_options(),
        window in 1usize..6,
        stride in 1usize..8,
    ) {
        let shards = make_shards(seed, false);
        let rows: usize = shards.iter().map(RaggedTable::num_rows).sum();
        for sampling in
            [WindowSampling::Random, WindowSampling::BalancedRandom, WindowSampling::FromStart, WindowSampling::ToEnd, WindowSampling::Step { stride }]
        {
            let options = options.clone().window(window, sampling).drop_last(false);
            let loader = Loader::try_new(shards.clone(), options).unwrap();
            let plan = loader.plan(seed);
            let items = list_items(&plan);
            prop_assert_eq!(items.len(), plan.num_items());
            let mut of: BTreeMap<(usize, usize), Vec<&BatchItem>> = BTreeMap::new();
            items.iter().for_each(|i| of.entry((i.shard, i.row)).or_default().push(i));
            prop_assert_eq!(of.len(), rows);
            for items in of.values_mut() {
                let len = count_rows(&shards, items[0]);
                let events = items[0].events.clone();
                if !matches!(sampling, WindowSampling::Step { .. }) {
                    prop_assert_eq!(items.len(), 1);
                    let whole = sampling != WindowSampling::BalancedRandom || len <= window;
                    prop_assert!(!whole || events.len() == len.min(window));
                }
                match sampling {
                    WindowSampling::Random => prop_assert!(events.end <= len),
                    WindowSampling::BalancedRandom => {
                        prop_assert!(events.end <= len && events.len() <= window);
                        // A window is shorter than `window` only if an end of the row clips it.
                        let cut = events.start == 0 || events.end == len;
                        prop_assert!(events.len() == window || cut);
                        prop_assert!(len == 0 || !events.is_empty());
                    }
                    WindowSampling::FromStart => prop_assert_eq!(events.start, 0),
                    WindowSampling::ToEnd => prop_assert_eq!(events.end, len),
                    WindowSampling::Step { stride } => {
                        items.sort_by_key(|i| i.events.start);
                        // The expected windows come from a simple loop.
                        let mut expected = vec![(0, len.min(window))];
                        while expected[expected.len() - 1].1 < len {
                            let start = expected.len() * stride;
                            if start >= len {
                                break;
                            }
                            expected.push((start, len.min(start + window)));
                        }
                        let events = items.iter().map(|i| (i.events.start, i.events.end));
                        let found: Vec<_> = events.collect();
                        prop_assert_eq!(found, expected);
                    }
                }
            }
        }
    }

    #[test]
    fn all_batches_but_the_last_are_full(
        seed in 0u64..60,
        (batch, options) in (1usize..7).prop_flat_map(|n| (Just(n), options_of(n))),
    ) {
        let shards = make_shards(seed, false);
        let whole = Loader::try_new(shards.clone(), options.clone().drop_last(false)).unwrap();
        let plan = whole.plan(3);
        let sizes: Vec<usize> = (0..plan.num_batches()).map(|b| plan.items(b).len()).collect();
        prop_assert!(sizes.iter().all(|n| (1..=batch).contains(n)));
        prop_assert!(sizes.iter().filter(|n| **n < batch).count() <= 1);
        prop_assert_eq!(plan.items(plan.num_batches()).len(), 0);
        let stats = plan.stats().unwrap();
        prop_assert_eq!((stats.batches, stats.items), (sizes.len(), plan.num_items()));

        // `drop_last` drops the last batch if it is not full.
        let cut = Loader::try_new(shards, options.drop_last(true)).unwrap().plan(3);
        prop_assert_eq!(cut.num_items(), plan.num_items() / batch * batch);
        prop_assert!((0..cut.num_batches()).all(|b| cut.items(b).len() == batch));
        let (whole, cut) = (sort_items(&list_items(&plan)), sort_items(&list_items(&cut)));
        prop_assert!(cut.iter().all(|i| whole.binary_search(i).is_ok()));
    }

    #[test]
    fn bucketing_keeps_all_items(seed in 0u64..60, options in draw_options(), pool in 1usize..5) {
        let shards = make_shards(seed, false);
        let plain = Loader::try_new(shards.clone(), options.clone().bucket(1)).unwrap();
        let sorted_pools = Loader::try_new(shards, options.bucket(pool)).unwrap();
        let (plain, bucketed) = (list_items(&plain.plan(1)), list_items(&sorted_pools.plan(1)));
        prop_assert_eq!(sort_items(&plain), sort_items(&bucketed));
    }
}

fn make_long_table() -> RaggedTable {
    serrate::generate::mimic_table(200, 11).unwrap()
}

#[test]
fn items_are_in_source_order_unless_shuffled() {
    let shards = [make_table(1, 7, make_wide), make_table(2, 4, make_wide)];
    let rows = |plan: &EpochPlan| -> Vec<(usize, usize)> {
        list_items(plan).iter().map(|i| (i.shard, i.row)).collect()
    };
    let ordered: Vec<_> = (0..7).map(|r| (0, r)).chain((0..4).map(|r| (1, r))).collect();
    let plain = Loader::try_new(shards.clone(), LoaderOptions::new(3)).unwrap();
    assert_eq!(rows(&plain.plan(0)), ordered);
    assert_eq!(rows(&plain.plan(5)), ordered);
    let shuffled = Loader::try_new(shards.clone(), LoaderOptions::new(3).shuffle(1)).unwrap();
    let other = Loader::try_new(shards, LoaderOptions::new(3).shuffle(2)).unwrap();
    let (a, b, c) = (rows(&shuffled.plan(0)), rows(&shuffled.plan(1)), rows(&other.plan(0)));
    assert!(a != ordered && a != b && a != c);
    assert_eq!(a, rows(&shuffled.plan(0)));
}

#[test]
fn random_windows_depend_only_on_row_seed_and_epoch() {
    let table = make_long_table();
    let windows = |options: LoaderOptions, epoch| {
        let options = options.window(20, WindowSampling::Random).columns(["code"]);
        let loader = Loader::try_new([table.clone()], options).unwrap();
        sort_items(&list_items(&loader.plan(epoch)))
    };
    let plain = windows(LoaderOptions::new(7).seed(3), 0);
    assert_eq!(plain, windows(LoaderOptions::new(64).shuffle(3), 0));
    assert_eq!(plain, windows(LoaderOptions::new(5).shuffle(3).bucket(4), 0));
    assert_ne!(plain, windows(LoaderOptions::new(7).seed(4), 0));
    assert_ne!(plain, windows(LoaderOptions::new(7).seed(3), 1));
    // A window of `len - 4` events can start at 0 to 4. Over 400 epochs, each start is expected 80
    // times.
    let row = (0..200).find(|r| table.row(*r).unwrap().len() > 24).unwrap();
    let len = table.row(row).unwrap().len();
    let options = LoaderOptions::new(1).window(len - 4, WindowSampling::Random);
    let loader = Loader::try_new([table.slice(row, 1).unwrap()], options).unwrap();
    let mut starts = [0; 5];
    (0..400).for_each(|e| starts[loader.plan(e).items(0).next().unwrap().events.start] += 1);
    assert!(starts.iter().all(|n| (45..115).contains(n)), "{starts:?}");
}

#[test]
fn bucketing_reduces_padding() {
    let share = |pool: Option<usize>| {
        let mut options = LoaderOptions::new(8).window(256, WindowSampling::Random).shuffle(1);
        options = options.columns(["time_delta_days", "code", "numeric_value"]);
        if let Some(pool) = pool {
            options = options.bucket(pool);
        }
        let loader = Loader::try_new([make_long_table()], options).unwrap();
        loader.plan(0).stats().unwrap().occupied_share()
    };
    let (none, some, most) = (share(None), share(Some(4)), share(Some(25)));
    assert!(some > 1.15 * none && most > some, "{none} {some} {most}");
}

#[test]
fn parts_divide_the_batches_of_an_epoch() {
    for seed in [4, 31, 44] {
        for options in [
            LoaderOptions::new(2),
            LoaderOptions::new(2).shuffle(3),
            LoaderOptions::new(2)
                .shuffle(3)
                .bucket(2)
                .window(3, WindowSampling::Step { stride: 2 }),
        ] {
            let shards = make_shards(seed, false);
            let plan =
                |options: LoaderOptions| Loader::try_new(shards.clone(), options).unwrap().plan(1);
            let batches = |plan: &EpochPlan| -> Vec<Vec<BatchItem>> {
                (0..plan.num_batches()).map(|b| plan.items(b).collect()).collect()
            };
            let whole = batches(&plan(options.clone()));
            let full = batches(&plan(options.clone().drop_last(true)));
            for world in 1..5 {
                for rank in 0..world {
                    let part = plan(options.clone().part(rank, world));
                    let expected: Vec<_> =
                        whole.iter().skip(rank).step_by(world).cloned().collect();
                    assert_eq!(batches(&part), expected);
                    let items = expected.iter().map(Vec::len).sum::<usize>();
                    assert_eq!(part.num_items(), items);
                    assert_eq!(part.items(part.num_batches()).len(), 0);
                    assert_eq!(part.stats().unwrap().items, items);
                    // If `drop_last` is set, all parts have the same number of batches.
                    let even = batches(&plan(options.clone().part(rank, world).drop_last(true)));
                    assert_eq!(even.len(), full.len() / world);
                    assert!(even.iter().eq(full.iter().skip(rank).step_by(world).take(even.len())));
                }
            }
        }
    }
    for (rank, world) in [(0, 0), (2, 2), (3, 2)] {
        let options = LoaderOptions::new(2).part(rank, world);
        let e = Loader::try_new(make_shards(1, false), options).unwrap_err().to_string();
        assert!(e.contains(&format!("part {rank} of {world}")), "{e}");
    }
}

#[test]
fn a_part_of_an_epoch_has_the_batches_of_its_plan() {
    let options = LoaderOptions::new(3).shuffle(2).part(1, 3);
    let shards = [make_table(5, 40, make_wide)];
    let alone = Loader::try_new(shards.clone(), options.clone()).unwrap();
    let threads = Loader::try_new(shards, options.threads(2).prefetch(2)).unwrap();
    for loader in [alone, threads] {
        let plan = loader.plan(0);
        let epoch = loader.epoch(0).unwrap();
        assert_eq!((epoch.len(), plan.num_batches()), (5, 5));
        for (i, batch) in epoch.enumerate() {
            let batch = batch.unwrap();
            assert_eq!(batch.number(), i);
            assert!(batch.items().iter().cloned().eq(plan.items(i)));
        }
        assert_eq!(loader.epoch_from(0, 3).unwrap().count(), 2);
    }
}

#[test]
fn fingerprints_differ_by_epoch_options_and_lengths() {
    use serrate::dense::{AxisSize, PaddingSide};
    use serrate::loader::BatchForm;
    let o = || LoaderOptions::new(4).shuffle(1);
    let print = |shards: Vec<RaggedTable>, options: LoaderOptions| {
        Loader::try_new(shards, options).unwrap().plan(2).fingerprint()
    };
    let t = |seed| make_table(seed, 9, make_wide);
    let kept = print(vec![t(4)], o());
    for same in [o().threads(3), o().prefetch(2), o().limit(1 << 20)] {
        assert_eq!(print(vec![t(4)], same), kept);
    }
    let step = |stride| WindowSampling::Step { stride };
    let mut all = vec![
        kept,
        Loader::try_new([t(4)], o()).unwrap().plan(3).fingerprint(),
        print(vec![t(5)], o()),
        print(vec![t(4), t(4)], o()),
        print(vec![t(4).slice(0, 4).unwrap(), t(4).slice(4, 5).unwrap()], o()),
        print(vec![t(4).slice(0, 5).unwrap(), t(4).slice(5, 4).unwrap()], o()),
    ];
    for other in [
        LoaderOptions::new(5).shuffle(1),
        LoaderOptions::new(4).seed(1),
        o().shuffle(2),
        o().bucket(1),
        o().bucket(2),
        o().drop_last(true),
        o().part(0, 2),
        o().part(1, 2),
        o().window(3, WindowSampling::Random),
        o().window(4, WindowSampling::Random),
        o().window(3, WindowSampling::FromStart),
        o().window(3, WindowSampling::ToEnd),
        o().window(3, step(1)),
        o().window(3, step(2)),
        o().form(BatchForm::Packed),
        o().columns(["code"]),
        o().columns(["t"]),
        o().masks([1]),
        o().validity(false),
        o().tokens_as_i64(true),
        o().sizes([AxisSize::Exactly(3)]),
        o().sizes([AxisSize::AtMost(3)]),
        o().sizes([AxisSize::Longest, AxisSize::AtMost(3)]),
        o().side(PaddingSide::Left),
        o().fill(1),
        o().fill(true),
        o().fill_column("code", 1),
        o().fill_column("id", 1),
    ] {
        all.push(print(vec![t(4)], other));
    }
    let n = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), n);
    // A plan must be the same on every machine and in every version.
    let fixed = RaggedTable::builder()
        .lengths([3, 0, 1])
        .unwrap()
        .column("code", 1, make_wide(vec![7, 8, 9, 4]))
        .build()
        .unwrap();
    let options = o().window(2, WindowSampling::Random).bucket(2).fill_column("code", 9).part(0, 2);
    assert_eq!(print(vec![fixed], options), 18_214_343_569_934_286_445);
}
