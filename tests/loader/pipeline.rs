//! Batches do not depend on the threads that build them, and epochs can be resumed or abandoned.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use rayon::ThreadPoolBuilder;
use serrate::dense::AxisSize;
use serrate::io::nrt::{self, ReadOptions, WriteOptions};
use serrate::loader::{Batch, Loader, LoaderOptions, WindowSampling};

use super::support::{
    Named, assert_same, draw_options, make_shards, make_table, make_wide, name_tensors,
    pack_options,
};

fn read_epoch(loader: &Loader, number: u64) -> Vec<Named> {
    loader.epoch(number).unwrap().map(|b| name_tensors(&b.unwrap())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn batches_do_not_depend_on_threads_and_prefetching(
        seed in 0u64..60,
        options in draw_options(),
        prefetch in 0usize..4,
        flat in any::<bool>(),
    ) {
        let shards = make_shards(seed, false);
        let options = if flat { pack_options(&options) } else { options };
        let alone = Loader::try_new(shards.clone(), options.clone()).unwrap();
        let expected = [read_epoch(&alone, 0), read_epoch(&alone, 1)];
        let shared = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
        for options in [
            options.clone().threads(1).prefetch(prefetch.max(1)),
            options.clone().threads(2).prefetch(prefetch),
            options.clone().threads(4).prefetch(prefetch),
            options.clone().pool(shared).prefetch(prefetch),
        ] {
            let loader = Loader::try_new(shards.clone(), options).unwrap();
            for (number, expected) in (0..).zip(&expected) {
                let found = read_epoch(&loader, number);
                assert_eq!(found.len(), expected.len());
                found.iter().zip(expected).for_each(|(f, e)| assert_same(f, e));
            }
        }
    }

    #[test]
    fn a_resumed_epoch_has_the_remaining_batches(
        seed in 0u64..60,
        options in draw_options(),
        threads in 1usize..4,
        from in 0usize..12,
    ) {
        let options = options.threads(threads).prefetch(1);
        let loader = Loader::try_new(make_shards(seed, false), options).unwrap();
        let whole = read_epoch(&loader, 2);
        let tail = &whole[from.min(whole.len())..];
        let check = |resumed: Vec<Batch>| {
            assert_eq!(resumed.len(), tail.len());
            for (i, (batch, expected)) in resumed.iter().zip(tail).enumerate() {
                assert_eq!(batch.number(), from + i);
                assert_same(&name_tensors(batch), expected);
            }
        };
        check(loader.epoch_from(2, from).unwrap().map(Result::unwrap).collect());
        check(loader.epoch(2).unwrap().skip_to(from).map(Result::unwrap).collect());
        check(loader.epoch(2).unwrap().skip(from).map(Result::unwrap).collect());
        // Skips forwards or backwards after three batches were taken.
        let mut started = loader.epoch(2).unwrap();
        for _ in 0..3 {
            started.next();
        }
        let resumed = started.skip_to(from);
        assert_eq!(resumed.len(), tail.len());
        check(resumed.map(Result::unwrap).collect());
    }
}

/// Runs `f` on another thread and panics if it takes longer than a minute.
fn assert_ends(f: impl FnOnce() + Send + 'static) {
    let (done, wait) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        f();
        done.send(()).unwrap();
    });
    match wait.recv_timeout(Duration::from_secs(60)) {
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
            panic!("the loader does not end within a minute")
        }
        _ => thread.join().unwrap(),
    }
}

#[test]
fn dropping_an_epoch_stops_its_threads() {
    assert_ends(|| {
        for (threads, prefetch) in [(1, 1), (2, 0), (2, 4), (4, 100)] {
            let options = LoaderOptions::new(1).threads(threads).prefetch(prefetch);
            let loader = Loader::try_new([make_table(9, 60, make_wide)], options).unwrap();
            for taken in 0..5 {
                let mut started = loader.epoch(0).unwrap();
                let kept: Vec<Batch> = started.by_ref().take(taken).map(Result::unwrap).collect();
                drop(started);
                // Batches remain valid after their epoch is dropped.
                assert_eq!(kept.len(), taken);
                kept.iter().enumerate().for_each(|(i, b)| assert_eq!(b.number(), i));
            }
            // An epoch and its batches remain valid after the loader is dropped.
            let mut started = loader.epoch(0).unwrap();
            let first = started.next().unwrap().unwrap();
            drop(loader);
            let second = started.next().unwrap().unwrap();
            drop(started);
            assert_eq!((first.number(), second.number()), (0, 1));
            assert_eq!(first.tensor("id").unwrap().as_slice::<i64>().unwrap(), [1]);
        }
    });
}

#[test]
fn an_epoch_ends_even_if_all_threads_of_the_pool_are_busy() {
    assert_ends(|| {
        let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
        let options = LoaderOptions::new(2).pool(Arc::clone(&pool)).prefetch(2);
        let loader = Loader::try_new([make_table(9, 30, make_wide)], options).unwrap();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        pool.spawn(move || wait.recv().unwrap());
        assert_eq!(loader.epoch(0).unwrap().map(Result::unwrap).count(), 15);
        go.send(()).unwrap();
        // An epoch can also be read on a thread of the pool itself.
        assert_eq!(pool.install(|| loader.epoch(1).unwrap().count()), 15);
    });
}

#[test]
fn several_epochs_can_be_read_at_the_same_time() {
    let options = LoaderOptions::new(3).shuffle(5).threads(2).prefetch(1);
    let loader = Loader::try_new([make_table(8, 40, make_wide)], options).unwrap();
    let expected = [read_epoch(&loader, 0), read_epoch(&loader, 1)];
    let both = loader.epoch(0).unwrap().zip(loader.clone().epoch(1).unwrap());
    for (i, (a, b)) in both.enumerate() {
        assert_same(&name_tensors(&a.unwrap()), &expected[0][i]);
        assert_same(&name_tensors(&b.unwrap()), &expected[1][i]);
    }
}

#[test]
fn batches_that_several_threads_build_together_are_the_same() {
    // All batches have at least 8 MiB, except the last, which is small.
    let options = LoaderOptions::new(4)
        .shuffle(5)
        .columns(["t", "code", "value"])
        .sizes([AxisSize::Exactly(900), AxisSize::Exactly(300)])
        .bucket(2);
    let shard = make_table(9, 17, make_wide);
    let alone = Loader::try_new([shard.clone()], options.clone()).unwrap();
    assert!(alone.plan(0).stats().unwrap().largest_batch > 8 << 20);
    let expected = read_epoch(&alone, 0);
    let shared = Arc::new(ThreadPoolBuilder::new().num_threads(3).build().unwrap());
    for prefetch in [0, 1, 3] {
        for options in [options.clone().threads(2), options.clone().pool(Arc::clone(&shared))] {
            let loader = Loader::try_new([shard.clone()], options.prefetch(prefetch)).unwrap();
            for _ in 0..2 {
                let found = read_epoch(&loader, 0);
                assert_eq!(found.len(), expected.len());
                found.iter().zip(&expected).for_each(|(f, e)| assert_same(f, e));
            }
            // Skips forwards and backwards, and drops the epoch before its end.
            let mut skipping = loader.epoch(0).unwrap().skip_to(2);
            assert_same(&name_tensors(&skipping.next().unwrap().unwrap()), &expected[2]);
            let mut back = skipping.skip_to(1);
            assert_same(&name_tensors(&back.next().unwrap().unwrap()), &expected[1]);
            assert_same(&name_tensors(&back.nth(1).unwrap().unwrap()), &expected[3]);
            drop(back);
            // A thread of the pool reads the batches.
            let inside = shared.install(|| read_epoch(&loader, 0));
            inside.iter().zip(&expected).for_each(|(f, e)| assert_same(f, e));
        }
    }
}

#[test]
fn batches_of_files_equal_those_of_their_tables() {
    let dir = tempfile::tempdir().unwrap();
    // Columns without NULL, which `.nrt` cannot hold.
    let columns = ["id", "t", "flag", "code"];
    let tables =
        [make_table(4, 9, make_wide), make_table(5, 0, make_wide), make_table(6, 8, make_wide)]
            .map(|t| t.select(&columns).unwrap());
    let paths: Vec<_> = (0..3).map(|i| dir.path().join(format!("{i}.nrt"))).collect();
    for (table, path) in tables.iter().zip(&paths) {
        nrt::write(path, table, &WriteOptions::default()).unwrap();
    }
    let options =
        LoaderOptions::new(4).shuffle(2).window(3, WindowSampling::Random).columns(columns);
    let files = Loader::open(&paths, options.clone()).unwrap();
    let memory = Loader::try_new(tables, options.clone()).unwrap();
    let (files, memory) = (read_epoch(&files, 1), read_epoch(&memory, 1));
    assert_eq!(files.len(), 5);
    files.iter().zip(&memory).for_each(|(f, m)| assert_same(f, m));
    assert!(Loader::open([dir.path().join("none.nrt")], options).is_err());
}

#[test]
fn axes_without_selected_columns_are_known_from_files_too() {
    let dir = tempfile::tempdir().unwrap();
    let table = make_table(4, 12, make_wide).select(&["id", "t", "flag", "code", "deep"]).unwrap();
    let path = dir.path().join("t.nrt");
    nrt::write(&path, &table, &WriteOptions::default()).unwrap();
    let o = || LoaderOptions::new(3).shuffle(1);
    let step = WindowSampling::Step { stride: 2 };
    for (options, tensors) in [
        // Windows and lengths refer to axis 1, even if no selected column is on it.
        (o().columns(["id"]).window(2, step), 1),
        (o().columns(["id"]).bucket(3), 1),
        (o().columns(["id"]).masks([1]), 2),
        (o().columns(["t", "id"]).masks([1, 2]), 4),
        (o().columns(["t"]).masks([3]), 2),
        (o().columns(["t"]).sizes([AxisSize::AtMost(4), AxisSize::Exactly(2)]), 2),
        (o().columns(["id"]).sizes([AxisSize::Longest; 3]), 1),
        (pack_options(&o().columns(["id"]).window(3, step)), 1),
        (pack_options(&o().columns(["t"])), 3),
    ] {
        let memory = Loader::try_new([table.clone()], options.clone()).unwrap();
        let expected = read_epoch(&memory, 0);
        assert!(expected.iter().all(|batch| batch.len() == tensors), "{options:?}");
        for mmap in [true, false] {
            let read = ReadOptions { mmap, ..Default::default() };
            let files = Loader::open_with([&path], options.clone(), &read).unwrap();
            assert_eq!(files.plan(0).fingerprint(), memory.plan(0).fingerprint());
            let found = read_epoch(&files, 0);
            assert_eq!(found.len(), expected.len());
            found.iter().zip(&expected).for_each(|(f, e)| assert_same(f, e));
        }
    }
    for options in [
        o().columns(["id"]).masks([4]),
        o().columns(["t"]).masks([0]),
        o().columns(["id"]).sizes([AxisSize::Longest; 4]),
        o().sizes([AxisSize::Longest; 4]),
    ] {
        let memory = Loader::try_new([table.clone()], options.clone()).unwrap_err();
        let files = Loader::open([&path], options).unwrap_err();
        assert_eq!(files.to_string(), memory.to_string());
        assert!(memory.to_string().contains('3') || memory.to_string().contains("axis 0"));
    }
}

#[test]
fn files_read_without_mmap_may_be_truncated_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let table = make_table(4, 12, make_wide).select(&["id", "t", "code"]).unwrap();
    let path = dir.path().join("t.nrt");
    nrt::write(&path, &table, &WriteOptions::default()).unwrap();
    let read = ReadOptions { mmap: false, large_lists: true };
    let files = Loader::open_with([&path], LoaderOptions::new(5), &read).unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(8).unwrap();
    let memory = Loader::try_new([table], LoaderOptions::new(5)).unwrap();
    let (files, memory) = (read_epoch(&files, 0), read_epoch(&memory, 0));
    assert_eq!(files.len(), 3);
    files.iter().zip(&memory).for_each(|(f, m)| assert_same(f, m));
}
