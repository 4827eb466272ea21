//! Tests that the loader reuses memory and has at most one set of buffers per batch in flight.

use std::collections::HashSet;

use serrate::dense::DenseTensor;
use serrate::generate::mimic_table;
use serrate::loader::{Batch, Loader, LoaderOptions, WindowSampling};

use super::support::pack_options;

fn make_options() -> LoaderOptions {
    LoaderOptions::new(8).window(64, WindowSampling::Random).shuffle(3).columns([
        "time_delta_days",
        "code",
        "numeric_value",
    ])
}

fn find_place(batch: &Batch, name: &str) -> *const u8 {
    batch.tensor(name).unwrap().as_bytes().as_ptr()
}

/// Returns the distinct addresses of the tensor `code` in all batches of two epochs.
fn list_places(loader: &Loader) -> HashSet<*const u8> {
    let both = (0..2).flat_map(|e| loader.epoch(e).unwrap());
    both.map(|b| find_place(&b.unwrap(), "code")).collect()
}

#[test]
fn the_memory_of_a_dropped_batch_is_reused_by_the_next() {
    let table = mimic_table(120, 5).unwrap();
    for options in [make_options(), pack_options(&make_options())] {
        let loader = Loader::try_new([table.clone()], options).unwrap();
        let mut epoch = loader.epoch(0).unwrap();
        let first = epoch.next().unwrap().unwrap();
        let at = find_place(&first, "code");
        drop(first);
        // Buffers have spare capacity, so that the next batch rarely needs a larger one.
        assert_eq!(find_place(&epoch.next().unwrap().unwrap(), "code"), at);
        assert!(list_places(&loader).len() <= 3);
    }
}

#[test]
fn memory_of_tensors_that_are_still_in_use_is_not_reused() {
    let loader = Loader::try_new([mimic_table(60, 5).unwrap()], make_options()).unwrap();
    let mut epoch = loader.epoch(0).unwrap();
    let first = epoch.next().unwrap().unwrap();
    let code: DenseTensor = first.tensor("code").unwrap().clone();
    let part = first.tensor("time_delta_days").unwrap().row(0).unwrap();
    let (copy, part_copy) = (code.as_bytes().to_vec(), part.as_bytes().to_vec());
    drop(first);
    for batch in epoch {
        let batch = batch.unwrap();
        assert_ne!(find_place(&batch, "code"), code.as_bytes().as_ptr());
    }
    assert_eq!(code.as_bytes(), copy);
    assert_eq!(part.as_bytes(), part_copy);
}

#[test]
fn threads_share_the_padding_of_large_tensors() {
    let table = mimic_table(128, 5).unwrap();
    let loader = |threads, is_trusted| {
        let columns = ["time_delta_days", "code", "numeric_value"];
        let options = LoaderOptions::new(64)
            .window(128, WindowSampling::Random)
            .shuffle(3)
            .columns(columns)
            .threads(threads)
            .trust_padding(is_trusted);
        Loader::try_new([table.clone()], options).unwrap()
    };
    let (one, many) = (loader(1, true), loader(2, false));
    for epoch in 0..3 {
        for (expected, found) in one.epoch(epoch).unwrap().zip(many.epoch(epoch).unwrap()) {
            let (expected, found) = (expected.unwrap(), found.unwrap());
            // Threads build a batch of 8 MiB together, and share padding of more than 4 MiB.
            assert!(found.tensor("numeric_value").unwrap().nbytes() > 5 << 20);
            for name in ["time_delta_days", "code", "numeric_value", "dim2/mask"] {
                let (found, expected) = (found.tensor(name), expected.tensor(name));
                assert!(found.unwrap() == expected.unwrap(), "{name}");
            }
        }
    }
}

#[test]
fn there_are_at_most_as_many_buffers_as_batches_in_flight() {
    let table = mimic_table(120, 5).unwrap();
    for (threads, prefetch) in [(1, 0), (1, 1), (2, 0), (2, 2)] {
        let sizes = [serrate::dense::AxisSize::Exactly(64), serrate::dense::AxisSize::Exactly(40)];
        let options = make_options().threads(threads).prefetch(prefetch).sizes(sizes);
        let loader = Loader::try_new([table.clone()], options).unwrap();
        let places = list_places(&loader);
        assert!(places.len() <= threads + prefetch, "{threads} {prefetch}: {}", places.len());
    }
}

/// Returns a value of `/proc/self/status` in bytes.
#[cfg(target_os = "linux")]
fn read_status(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().strip_suffix("kB").unwrap().trim().parse::<usize>().unwrap()
        * 1024
}

/// Builds 24 batches of 1000 rows. In each, the first row has 60 to 99 events and the others have
/// 3; one more row has 400. All columns have the same size.
#[cfg(target_os = "linux")]
fn make_uneven_table() -> serrate::table::RaggedTable {
    let mut lengths: Vec<usize> = (0..24_000)
        .map(|row| if row % 1000 == 0 { 60 + row / 1000 * 17 % 40 } else { 3 })
        .collect();
    lengths.push(400);
    let n = lengths.iter().sum();
    let values = std::sync::Arc::new(arrow::array::UInt8Array::from(vec![7; n]));
    let mut builder = serrate::table::RaggedTable::builder().lengths(lengths).unwrap();
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        builder = builder.column(name, 1, std::sync::Arc::clone(&values) as _);
    }
    builder.build().unwrap()
}

/// Each case runs in its own process, so that no other test affects its memory.
#[cfg(target_os = "linux")]
#[test]
fn resident_memory_is_that_of_the_batches_in_flight() {
    const CHILD: &str = "SERRATE_TEST_RESIDENT";
    const CASES: [(usize, usize); 4] = [(1, 0), (1, 3), (2, 0), (3, 5)];
    let Ok(case) = std::env::var(CHILD) else {
        for case in 0..CASES.len() {
            let name = "memory::resident_memory_is_that_of_the_batches_in_flight";
            let child = std::process::Command::new(std::env::current_exe().unwrap())
                .args([name, "--exact", "--nocapture", "--test-threads=1"])
                .env(CHILD, case.to_string())
                // Blocks above this threshold return to the operating system as soon as they are
                // freed.
                .env("MALLOC_MMAP_THRESHOLD_", "65536")
                .output()
                .unwrap();
            let out = String::from_utf8_lossy(&child.stdout).into_owned();
            let error = String::from_utf8_lossy(&child.stderr);
            assert!(
                child.status.success() && out.contains("resident memory grew by "),
                "{out}{error}"
            );
        }
        return;
    };
    let (threads, prefetch) = CASES[case.parse::<usize>().unwrap()];
    let in_flight = threads + prefetch;
    // A batch has 8 tensors of less than 0.8 MB each, and a mask.
    let options = LoaderOptions::new(1000).tokens_as_i64(true).threads(threads).prefetch(prefetch);
    let loader = Loader::try_new([make_uneven_table()], options).unwrap();
    let before = read_status("VmRSS");
    let (mut largest, mut most) = (vec![0; 9], 0);
    for epoch in 0..2 {
        // Ends before the last batches are prefetched.
        for batch in loader.epoch(epoch).unwrap().take(12) {
            let batch = batch.unwrap();
            most = batch.nbytes().max(most);
            for ((_, tensor), largest) in batch.tensors().iter().zip(&mut largest) {
                *largest = tensor.nbytes().max(*largest);
            }
        }
    }
    let rise = read_status("VmHWM").saturating_sub(before);
    let blocks: usize = largest.iter().map(|n| n + n / 4).sum();
    println!(
        "resident memory grew by {rise} of {} bytes for {in_flight} batches",
        in_flight * blocks
    );
    // The difference allows for stacks, lists of rows and other small allocations.
    assert!(
        rise <= in_flight * blocks + (4 << 20),
        "{rise} bytes exceed {in_flight} batches of {blocks} bytes"
    );
    assert!(rise >= most, "the measured {rise} bytes are less than the {most} bytes of one batch");
}
