//! Memory is used again, and there is no more of it than there are batches.

use std::collections::HashSet;

use serrate::dense::DenseTensor;
use serrate::generate::mimic_table;
use serrate::loader::{Batch, Loader, LoaderOptions, Sampling};

use super::support::packed;

fn options() -> LoaderOptions {
    LoaderOptions::new(8).window(64, Sampling::Random).shuffle(3).columns([
        "time_delta_days",
        "code",
        "numeric_value",
    ])
}

fn place(batch: &Batch, name: &str) -> *const u8 {
    batch.tensor(name).unwrap().as_bytes().as_ptr()
}

/// Where the codes of all batches of two epochs were.
fn places(loader: &Loader) -> HashSet<*const u8> {
    let both = (0..2).flat_map(|e| loader.epoch(e).unwrap());
    both.map(|b| place(&b.unwrap(), "code")).collect()
}

#[test]
fn a_dropped_batch_lends_its_memory_to_the_next() {
    let table = mimic_table(120, 5).unwrap();
    for options in [options(), packed(&options())] {
        let loader = Loader::try_new([table.clone()], options).unwrap();
        let mut epoch = loader.epoch(0).unwrap();
        let first = epoch.next().unwrap().unwrap();
        let at = place(&first, "code");
        drop(first);
        // Blocks have room to grow, so that the next batch rarely needs another one.
        assert_eq!(place(&epoch.next().unwrap().unwrap(), "code"), at);
        assert!(places(&loader).len() <= 3);
    }
}

#[test]
fn what_is_still_held_is_not_touched() {
    let loader = Loader::try_new([mimic_table(60, 5).unwrap()], options()).unwrap();
    let mut epoch = loader.epoch(0).unwrap();
    let first = epoch.next().unwrap().unwrap();
    let code: DenseTensor = first.tensor("code").unwrap().clone();
    let part = first.tensor("time_delta_days").unwrap().row(0).unwrap();
    let (copy, part_copy) = (code.as_bytes().to_vec(), part.as_bytes().to_vec());
    drop(first);
    for batch in epoch {
        let batch = batch.unwrap();
        assert_ne!(place(&batch, "code"), code.as_bytes().as_ptr());
    }
    assert_eq!(code.as_bytes(), copy);
    assert_eq!(part.as_bytes(), part_copy);
}

#[test]
fn no_more_blocks_than_batches_in_flight() {
    let table = mimic_table(120, 5).unwrap();
    for (threads, prefetch) in [(1, 0), (1, 1), (2, 0), (2, 2)] {
        let sizes = [serrate::dense::Size::Exactly(64), serrate::dense::Size::Exactly(40)];
        let options = options().threads(threads).prefetch(prefetch).sizes(sizes);
        let loader = Loader::try_new([table.clone()], options).unwrap();
        let places = places(&loader);
        assert!(places.len() <= threads + prefetch, "{threads} {prefetch}: {}", places.len());
    }
}
