//! Benchmarks batched operations on 65,536 samples of up to 256 entries: gather, scatter, filter,
//! padding.
//!
//! A table prints the time of each operation next to two lower bounds (floors) from the same run:
//! the time in which all threads copy as many bytes as the operation has to read and write, into
//! memory that was touched before, and into fresh memory, as an operation does. Operations and
//! floors alternate, and the fastest run of each counts. `--peer FILE` reads the data from a
//! safetensors file and prints the results as JSON for `benches/peers/batching.py`.
#![allow(clippy::unwrap_used, missing_docs)]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

use std::hint::black_box;
use std::time::Instant;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde_json::json;
use serrate::batching::{
    IndexOptions, RaggedBatch, batched_bool_indexing, batched_index_mapping,
    batched_indexing_access, batched_indexing_write, batched_inverse_indexing_access,
    get_indices_from_mask, get_mask_from_indices, sum_over_targets,
};
use serrate::dense::{DType, DenseOptions, DenseTensor};
use serrate::io::safetensors::{FileAccess, dense};

const SAMPLES: usize = 65_536;
const MOST: usize = 256;
const ROUNDS: usize = 7;

/// The input of all operations.
struct Data {
    /// The samples, whose entries are float32.
    values: RaggedBatch,
    /// For each sample, distinct indices of some of its entries.
    indices: RaggedBatch,
    /// A boolean per entry.
    mask: RaggedBatch,
    /// The entries as a padded tensor.
    padded: DenseTensor,
}

fn packed(values: DenseTensor, ends: Vec<i64>) -> RaggedBatch {
    RaggedBatch::from_packed(values, &DenseTensor::from_vec([ends.len()], ends).unwrap()).unwrap()
}

impl Data {
    fn generate() -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (mut ends, mut id_ends, mut ids) = (vec![0i64], vec![0i64], Vec::new());
        for _ in 0..SAMPLES {
            let size = rng.random_range(0..=MOST);
            ends.push(ends[ends.len() - 1] + size as i64);
            let mut own: Vec<i64> = (0..size as i64).collect();
            for i in (1..size).rev() {
                own.swap(i, rng.random_range(0..=i));
            }
            own.truncate(rng.random_range(0..=size));
            ids.extend(own);
            id_ends.push(ids.len() as i64);
        }
        let total = ends[SAMPLES] as usize;
        let values = (0..total).map(|_| rng.random_range(-1.0f32..1.0)).collect();
        let flags = (0..total).map(|_| rng.random_range(0..2) == 0).collect::<Vec<_>>();
        let flags = DenseTensor::from_bools([total], flags).unwrap();
        let count = ids.len();
        Self::new(
            packed(DenseTensor::from_vec([total], values).unwrap(), ends),
            packed(DenseTensor::from_vec([count], ids).unwrap(), id_ends),
            &flags,
        )
    }

    fn read(file: &str) -> Self {
        let all = dense::read(file, FileAccess::Read).unwrap();
        let get = |name: &str| all.iter().find(|(n, _)| n == name).unwrap().1.clone();
        let batch =
            |values: &str, ends: &str| RaggedBatch::from_packed(get(values), &get(ends)).unwrap();
        Self::new(batch("values", "ends"), batch("indices", "index_ends"), &get("mask"))
    }

    fn new(values: RaggedBatch, indices: RaggedBatch, mask: &DenseTensor) -> Self {
        let mask = values.create_with_values(mask.clone()).unwrap();
        let padded = values.padded(&DenseOptions::default()).unwrap();
        Self { values, indices, mask, padded }
    }
}

/// Copies bytes on all threads, in chunks of 512 KiB. `from` has half of the bytes of the floor,
/// because a copy reads and writes each byte.
fn copy(from: &[u8], to: &mut [u8]) {
    const PIECE: usize = 512 << 10;
    to.par_chunks_mut(PIECE).zip(from.par_chunks(PIECE)).for_each(|(t, f)| t.copy_from_slice(f));
}

/// The name of an operation, the number of bytes that it has to read and write, and a function that
/// runs it. The result is used for a checksum.
type Task<'a> = (&'static str, usize, Box<dyn Fn() -> DenseTensor + 'a>);

fn tasks(d: &Data) -> Vec<Task<'_>> {
    let options = IndexOptions::default();
    let (entries, ids) = (d.values.num_entries(), d.indices.num_entries());
    let taken = batched_indexing_access(&d.values, &d.indices, 0, None, &options).unwrap();
    let width = d.values.max_sample_size();
    let boxes = d
        .values
        .create_with_values({
            let wide = d.values.values().as_slice::<f32>().unwrap();
            let all = wide.iter().flat_map(|v| [*v, -*v, 1.0, 0.0]).collect();
            DenseTensor::from_vec([entries, 4], all).unwrap()
        })
        .unwrap();
    let narrow = d.indices.cast(DType::I32).unwrap();
    let rows = d.padded.num_elements();
    let written = taken.clone();
    vec![
        (
            "gather",
            // The operation reads indices and entries, and writes entries.
            ids * (8 + 4 + 4),
            Box::new(move || {
                let out = batched_indexing_access(&d.values, &d.indices, 0, None, &options);
                out.unwrap().values().clone()
            }),
        ),
        (
            "gather from a padded tensor",
            ids * (8 + 4 + 4),
            Box::new(move || {
                let out = batched_indexing_access(&d.padded, &d.indices, 0, None, &options);
                out.unwrap().values().clone()
            }),
        ),
        (
            "gather, int32 indices",
            ids * (4 + 4 + 4),
            Box::new(move || {
                let out = batched_indexing_access(&d.values, &narrow, 0, None, &options);
                out.unwrap().values().clone()
            }),
        ),
        (
            "gather, entries of 4 float32",
            ids * (8 + 16 + 16),
            Box::new(move || {
                let out = batched_indexing_access(&boxes, &d.indices, 0, None, &options);
                out.unwrap().values().clone()
            }),
        ),
        (
            "scatter",
            // The operation reads and writes the batch, and reads entries and indices.
            entries * (4 + 4) + ids * (8 + 4),
            Box::new(move || {
                let out = batched_indexing_write(&taken, &d.indices, &d.values, None, &options);
                out.unwrap().as_ragged().unwrap().values().clone()
            }),
        ),
        (
            "scatter into rows of filler",
            rows * 4 + ids * (8 + 4),
            Box::new(move || {
                let (from, ids) = (&written, &d.indices);
                batched_inverse_indexing_access(from, ids, width, 0, None, &options).unwrap()
            }),
        ),
        (
            "index mapping",
            entries * (4 + 4) + ids * (8 + 4 + 8),
            Box::new(move || {
                let ids = &d.indices;
                let out = batched_index_mapping(&d.values, ids, ids, &d.values, &options);
                out.unwrap().as_ragged().unwrap().values().clone()
            }),
        ),
        (
            "mask of indices",
            rows + ids * 8,
            Box::new(move || get_mask_from_indices(width, &d.indices).unwrap()),
        ),
        (
            "indices of mask",
            entries + entries / 2 * 8,
            Box::new(move || get_indices_from_mask(&d.mask).unwrap().values().clone()),
        ),
        (
            "filter by mask",
            entries * (4 + 1) + entries / 2 * 4,
            Box::new(move || batched_bool_indexing(&d.values, &d.mask).unwrap().values().clone()),
        ),
        (
            "padded tensor",
            entries * 4 + rows * 4,
            Box::new(move || d.values.padded(&DenseOptions::default()).unwrap()),
        ),
        (
            "from a padded tensor",
            entries * (4 + 4),
            Box::new(move || {
                let sizes = d.values.sample_sizes().unwrap();
                let made = RaggedBatch::try_new(&d.padded, None, Some(sizes), None).unwrap();
                made.values().clone()
            }),
        ),
        ("sums", entries * 4, Box::new(move || sum_over_targets(&d.values).unwrap())),
    ]
}

/// Returns the sum of all elements, each read as an unsigned integer.
fn bits(t: &DenseTensor) -> u64 {
    let width = t.dtype().size();
    t.as_bytes().chunks_exact(width).fold(0u64, |sum, cell| {
        let mut bytes = [0; 8];
        bytes[..width].copy_from_slice(cell);
        sum.wrapping_add(u64::from_le_bytes(bytes))
    })
}

fn seconds<T>(run: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    drop(black_box(run()));
    start.elapsed().as_secs_f64()
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let peer = words.windows(2).find(|w| w[0] == "--peer").map(|w| w[1].clone());
    let data = peer.as_deref().map_or_else(Data::generate, Data::read);
    let tasks = tasks(&data);
    if peer.is_some() {
        let one = |(name, bytes, run): &Task<'_>| {
            let checksum = format!("{:x}", bits(&run()));
            let best = (0..3).map(|_| seconds(run)).fold(f64::INFINITY, f64::min);
            json!({"name": name, "bytes": bytes, "seconds": best, "checksum": checksum})
        };
        println!("{}", json!(tasks.iter().map(one).collect::<Vec<_>>()));
        return;
    }
    println!(
        "{SAMPLES} samples, {} entries, {} indices, {} threads",
        data.values.num_entries(),
        data.indices.num_entries(),
        rayon::current_num_threads()
    );
    println!(
        "{:30}{:>9}{:>9}{:>9}{:>9}{:>8}{:>8}",
        "", "MB", "ms", "copy", "fresh", "x copy", "x fresh"
    );
    for (name, bytes, run) in &tasks {
        let half = bytes / 2;
        let from = vec![1u8; half];
        let mut to = vec![2u8; half];
        let mut best = [f64::INFINITY; 3];
        for _ in 0..ROUNDS {
            let times = [
                seconds(run),
                seconds(|| copy(&from, &mut to)),
                seconds(|| {
                    let mut fresh = vec![0u8; half];
                    copy(&from, &mut fresh);
                    fresh
                }),
            ];
            for (best, time) in best.iter_mut().zip(times) {
                *best = best.min(time);
            }
        }
        let ms = best.map(|s| s * 1e3);
        println!(
            "{name:30}{:9.1}{:9.2}{:9.2}{:9.2}{:8.2}{:8.2}",
            *bytes as f64 / 1e6,
            ms[0],
            ms[1],
            ms[2],
            ms[0] / ms[1],
            ms[0] / ms[2]
        );
    }
}
